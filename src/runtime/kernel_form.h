// One form of a kernel's code as a launch needs it: what it relies on and how many blocks it has, evaluated
// without allocation. A kernel has several forms; a launch takes the first that fits.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "runtime/host/grid.h"
#include "runtime/scalar_code.h"
#include "thread/thread_program.h"

namespace tilegen::runtime {

class KernelForm {
 public:
  explicit KernelForm(const thread::ThreadProgram& program);

  const thread::ThreadProgram& program() const { return *program_; }

  // Whether the parameters are what the code relies on.
  bool fits(std::span<const uint64_t> slots) const {
    for (const Guard& g : guards_)
      if (slots[g.slot] % g.divisor != 0) return false;
    return true;
  }
  std::string guards_text() const;  // "A % 16 == 0, m % 8 == 0"; "" for none

  Expected<Grid> grid(std::span<const uint64_t> slots) const;

 private:
  struct Guard {
    size_t slot = 0;
    uint64_t divisor = 1;
  };
  const thread::ThreadProgram* program_;
  std::vector<Guard> guards_;
  std::optional<ScalarCode> grid_code_;
};

// All forms of an artifact, by kernel of the program, best first. The artifact must outlive them.
std::vector<std::vector<KernelForm>> kernel_forms(const driver::Artifact& artifact);

// The form a launch takes. Refuses (launch_alignment) where none fits, naming what the last one relies on.
Expected<const KernelForm*> choose_form(const std::vector<KernelForm>& forms, const std::string& kernel,
                                        std::span<const uint64_t> slots);

}  // namespace tilegen::runtime
