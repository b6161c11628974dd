// Loads whose values a walk with concrete numbers knows: registers that hold indices or count, tensors that
// the program only reads, numbers that roles hand each other through shared memory.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "thread/index_program.h"
#include "thread/thread_program.h"

namespace tilegen::thread {

class WalkLoads {
 public:
  // `handed_over`: sync_accesses.h, by memory.
  WalkLoads(const ThreadProgram& p, const std::vector<bool>& handed_over);

  // Of conditions, bounds, slots and phases; and of the places that threads touch, which floats leave open.
  const KnownLoads& of_numbers() const { return numbers_; }
  const KnownLoads& of_places() const { return places_; }
  // Whole numbers in shared memory that one role's threads write for another's, and no engine touches.
  const std::set<MemoryId>& handed() const { return handed_; }
  // Tensors that are only read: all threads read the same.
  const std::set<MemoryId>& tensors() const { return tensors_; }
  // The variable that stands for the register that the statement sets.
  std::optional<ir::VarId> changing(const StmtNode& node) const;
  // Variables of the program, and those.
  size_t variables() const { return p_.vars.size() + numbers_.changing.size(); }

 private:
  void find_handed(const std::vector<bool>& handed_over);
  bool takes_handed(const Shuffle& shuffle) const;
  void find_registers();
  void find_tensors();

  const ThreadProgram& p_;
  KnownLoads numbers_, places_;
  std::set<MemoryId> handed_, tensors_;
};

}  // namespace tilegen::thread
