// The memory that a launch has of its own: a program's workspaces, one after the other in one piece.
//
// requires: slots with every dim bound. ensures: each workspace begins at a multiple of kAlignment. refuses:
// launch_shape for extents that are negative or overflow, limit_memory where the host has none left.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"
#include "runtime/reports.h"
#include "runtime/scalar_code.h"
#include "support/diagnostic.h"

namespace tilegen::runtime {

class Workspace {
 public:
  static constexpr int64_t kAlignment = 256;

  // Of parameters from `first` on; reports only where these are all.
  explicit Workspace(const ir::Program& program, size_t first = 0);

  bool empty() const { return tensors_.empty(); }
  // Leaves each workspace's offset in its slot; the bytes of all.
  Expected<int64_t> lay_out(std::span<uint64_t> slots) const;
  // Offsets become addresses.
  void place(uint64_t base, std::span<uint64_t> slots) const {
    for (const Tensor& t : tensors_) slots[t.param] += base;
  }

  // run() with workspaces in host memory; `marked`: filled with bytes 0xff, NaNs to floats. Reports go to
  // `sink`.
  template <class Run>
  Checked in_host_memory(std::span<uint64_t> slots, bool marked, Run&& run, const LineSink& sink = {}) const {
    if (empty()) return run();
    auto bytes = lay_out(slots);
    if (!bytes) return bytes.error();
    const std::unique_ptr<void, Release> memory(allocate(*bytes, marked));
    if (!memory) return no_memory(*bytes);
    place(reinterpret_cast<uint64_t>(memory.get()), slots);
    reports_.clear(slots);
    const Checked done = run();
    if (reports_.empty()) return done;
    const Checked told = reports_.tell_host_memory(slots, sink);
    return done ? told : done;
  }

  const Reports& reports() const { return reports_; }

 private:
  struct Tensor {
    size_t param = 0;
    int64_t element = 4;  // bytes
    std::span<const ir::ExprId> shape;
  };
  struct Release {
    void operator()(void* memory) const { std::free(memory); }
  };
  static void* allocate(int64_t bytes, bool marked);
  static Error no_memory(int64_t bytes);
  bool find_extents(std::span<const uint64_t> slots, std::vector<int64_t>& many,
                    std::span<int64_t>& extents) const;
  Error refusal(const Tensor& t, std::span<const int64_t> extents) const;

  const ir::Program& program_;
  Reports reports_;
  std::vector<Tensor> tensors_;
  size_t extents_ = 0;              // of all of them
  std::optional<ScalarCode> code_;  // their values
};

}  // namespace tilegen::runtime
