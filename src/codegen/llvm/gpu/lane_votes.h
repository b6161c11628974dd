// Votes of lanes: what groups of lanes or together by shuffles of halves, of which each lane has the same
// bits, or a bit of its own, or none.
//
//   x = select(c, 1 << lane, 0)
//   x |= shuffle(x, lane ^ 16)                  x = ballot(c)
//   x |= shuffle(x, lane ^ 8) ...        ->
//   x |= shuffle(x, lane ^ 1)
//
// The lane of a shuffle and the bits of a lane are computed for every thread of a block, so any spelling of
// them will do. requires: one instruction for what is computed alike. ensures: the same values; shuffles that
// nothing uses are gone. why here: programs that vote by shuffles of their own mean the same as those that
// say ballot (thread::Vote), and the loops that hold these are written out by then.
#pragma once

#include <optional>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

namespace tilegen::codegen {

// What `bits` are in the lane `lane * 2^-scale`, or with `flips` in that of the own number xor `lane`.
struct LaneMove {
  llvm::Value* bits = nullptr;
  llvm::Value* lane = nullptr;
  unsigned scale = 0;
  bool flips = false;
};

// How a vendor's machine does it.
struct LaneInstructions {
  unsigned warp = 32;
  llvm::Intrinsic::ID thread;  // number of the thread in its block, with its range
  // Moves between all lanes of a warp.
  std::optional<LaneMove> (*move)(const llvm::IntrinsicInst& call);
  // For which lanes the condition holds, `warp` bits; whether it does for one.
  llvm::Value* (*ballot)(llvm::IRBuilder<>& b, llvm::Value* condition);
  llvm::Value* (*any)(llvm::IRBuilder<>& b, llvm::Value* condition);
};

// Of the bits of a warp those of the thread's own group, the first lane's lowest: 32 bits.
llvm::Value* word_of_group(llvm::IRBuilderBase& b, llvm::Value* ballot, llvm::Value* thread, unsigned warp,
                           uint64_t lanes);

// Whether the function is another one then.
bool select_votes(llvm::Function& f, const LaneInstructions& machine);

}  // namespace tilegen::codegen
