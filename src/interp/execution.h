// A launch of a tile program under way: its parameters, its buffers, and the statements of the tile program
// run on them. What the interpreters of this folder share.
#pragma once

#include <span>
#include <vector>

#include "interp/evaluator.h"
#include "interp/storage.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"

namespace tilegen::interp {

class Execution {
 public:
  Execution(const ir::Program& program, const Cancellation* cancellation)
      : program_(program),
        cancellation_(cancellation),
        buffers_(program.buffers.size()),
        evaluator_(program, buffers_, cancellation) {}
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  Checked bind(std::span<const uint64_t> params);
  // Extents of a kernel's grid; an error where it has more blocks than are interpreted.
  Expected<std::vector<int64_t>> grid_of(const ir::Kernel& kernel);
  // Tiles of a kernel: none of their elements is written.
  std::vector<ir::BufferId> place_tiles(size_t kernel);

  void run_block(const ir::Block& block);
  void run_statement(ir::StmtId id);
  struct Bounds {
    int64_t begin = 0, extent = 0;
  };
  // Of a loop of one variable, as its begin and its extent are now.
  Bounds bounds_of(const ir::Loop& loop);
  bool holds(const ir::Branch& branch);
  bool goes_on(const ir::Loop& loop);  // whether the condition asks for the iteration that is set

  // What comes of the launch; a fault is that of the first statement blamed.
  Checked outcome() const;
  void blame(ir::StmtId id) {
    if (!failed_at_.valid()) failed_at_ = id;
  }

  Evaluator& evaluator() { return evaluator_; }
  std::vector<Storage>& buffers() { return buffers_; }
  bool failed() const { return evaluator_.failed(); }

 private:
  Checked bind_tensor(ir::BufferId id, uint64_t address);
  Checked check_grid(const ir::Kernel& kernel, std::span<const int64_t> grid) const;
  void run_loop(const ir::Loop& loop);
  void run_parallel(const ir::Loop& loop);
  void run_store(const ir::Store& store);

  const ir::Program& program_;
  const Cancellation* cancellation_;
  std::vector<Storage> buffers_;
  Evaluator evaluator_;
  ir::StmtId failed_at_;  // the innermost statement running when the fault came
  std::vector<int64_t> index_;
};

// Iteration `i` of a loop that begins at `begin`; wraps as index arithmetic does.
inline int64_t iteration_at(int64_t begin, int64_t i) {
  return static_cast<int64_t>(static_cast<uint64_t>(begin) + static_cast<uint64_t>(i));
}

}  // namespace tilegen::interp
