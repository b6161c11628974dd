// Asynchronous copies of the threads of a block, in groups that they commit and await.
//
//   copy_async X[b, lane * 4 :+ 4] -> S[lane * 4 :+ 4]      a loop over the four elements, each stored where
//                                                     ->   it is for the thread; ir/draft_threads.h makes
//                                                          it a parallel loop that is `asynchronous`
//
// requires: a block of a block of threads, room for two statements. ensures: statements of the draft in the
//   block. refuses: what is no copy of a tensor's elements to a shared tile, or of other than 4, 8 or 16
//   bytes.
#pragma once

#include <optional>
#include <string>

#include "ir/draft.h"
#include "ir/program.h"

namespace tilegen::ir {

constexpr int64_t kMaxPendingGroups = 63;

// Why a statement of this word cannot copy from the one to the other, whatever the regions' extents.
std::optional<Diagnostic> tile_load_refusal(const std::string& word, const Program& p, const Region& from,
                                            const Region& to);
// Why copies of the threads cannot be so; nothing where they can.
std::optional<Diagnostic> async_copy_refusal(const Program& p, const Region& from, const Region& to);
// Of regions that are not refused.
StmtId add_async_copy(Program& p, Draft& draft, const Region& from, const Region& to,
                      const SourceLocation& location, Block& block);

// A parallel loop of one store, done where the guard holds (none: always); no store: it is another loop.
struct GuardedCopy {
  const Store* store = nullptr;
  ExprId guard = {};
};
GuardedCopy guarded_copy(const Program& p, const Loop& loop);

// The words of statements about them in the kernel, the first one's; empty: it has none.
std::string_view first_copy_word(const Program& p, const Kernel& kernel);

}  // namespace tilegen::ir
