// One version of a kernel's code as a launch needs it: what it relies on, how many blocks it has and how its
// tensor maps are made, evaluated without allocation. A kernel has several versions; a launch takes the first
// that fits.
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

// What a launch's arguments make of a thread::TensorMap: bytes for the address and strides, elements for
// extents.
struct TensorShape {
  static constexpr size_t kMaxRank = 5;
  uint64_t address = 0;
  size_t rank = 0;
  uint64_t extents[kMaxRank] = {};      // innermost first
  uint64_t strides[kMaxRank - 1] = {};  // of dimensions 1, 2, ...
};

class KernelVersion {
 public:
  explicit KernelVersion(const thread::ThreadProgram& program);

  // What every launch asks of the program, side by side.
  struct Traits {
    uint32_t threads = 1, shared_bytes = 0, cluster = 1;
    uint8_t rank = 1;  // of the grid
    bool persistent = false, dynamic_tiles = false, dependent = false;
    bool only_slots = true;              // no parameters after them: divisors, then tensor maps
    uint32_t plain_slots = 0, maps = 0;  // parameters: slots and divisors, tensor maps
  };
  const Traits& traits() const { return traits_; }

  const thread::ThreadProgram& program() const { return *program_; }
  uint64_t id() const { return id_; }  // of no other version of this process, but of its copies

  // Whether the parameters are what the code relies on, and every tensor is one the copy engine can describe.
  bool fits(std::span<const uint64_t> slots) const {
    return guards_hold(slots) && (program_->tensor_maps.empty() || shapes(slots, {}));
  }
  bool guards_hold(std::span<const uint64_t> slots) const {
    for (const Guard& g : guards_)
      if ((slots[g.slot] & g.low_bits) != 0 || (g.odd != 1 && slots[g.slot] % g.odd != 0)) return false;
    return sizes_.empty() || sizes_hold(slots);
  }
  // The program's divisors, in order, each with its reciprocal.
  void divisors(std::span<const uint64_t> slots, std::span<uint64_t> out) const;

  std::string guards_text() const;  // "A % 16 == 0, m % 8 == 0, A of at most 1024 bytes"; "" for none

  // The shapes of the tensor maps, in order, into `out` where it is not empty. False where the copy engine
  // cannot describe one (CUDA driver API, "Tensor Map Object Management"): an address or a stride that is no
  // multiple of 16 bytes, a stride of 2^40 or more, an extent of 0 or above 2^32.
  bool shapes(std::span<const uint64_t> slots, std::span<TensorShape> out) const;

  Expected<Grid> grid(std::span<const uint64_t> slots) const;
  // As many extents as the grid has dimensions, slowest first; they wrap like every executor's. False where
  // only grid() can tell.
  bool find_extents(std::span<const uint64_t> slots, std::span<int64_t> extents) const {
    if (!grid_code_) return false;
    grid_code_->run({reinterpret_cast<const int64_t*>(slots.data()), slots.size()}, extents);
    return true;
  }

 private:
  struct Guard {
    size_t slot = 0;
    uint64_t divisor = 1;
    uint64_t low_bits = 0, odd = 1;  // the divisor is (low_bits + 1) * odd
  };
  // Elements of tensors, as many as the version can bound.
  struct Size {
    size_t slot = 0;
    int64_t most_elements = 0, most_bytes = 0;
  };
  bool sizes_hold(std::span<const uint64_t> slots) const;

  std::vector<Guard> guards_;
  std::vector<Size> sizes_;
  std::optional<ScalarCode> size_code_;
  Traits traits_;
  std::optional<ScalarCode> grid_code_;
  uint64_t id_;
  const thread::ThreadProgram* program_;
  std::optional<ScalarCode> divisor_code_;
  std::vector<bool> stored_;            // by map: boxes are stored through it
  std::optional<ScalarCode> map_code_;  // of each map its extents, then its strides
};

// All versions of an artifact, by kernel of the program, best first. The artifact must outlive them.
std::vector<std::vector<KernelVersion>> kernel_versions(const driver::Artifact& artifact);

// The version a launch takes. Refuses (launch_alignment) where none fits, naming what the last one relies on.
Expected<const KernelVersion*> choose_version(const std::vector<KernelVersion>& versions,
                                              const std::string& kernel, std::span<const uint64_t> slots);

// The error of a kernel none of whose versions fits.
Error no_version(const std::vector<KernelVersion>& versions, const std::string& kernel);

}  // namespace tilegen::runtime
