// Names of a draft get their values (ir/draft.h). Not used outside of that step.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/draft.h"
#include "ir/draft_exprs.h"
#include "ir/draft_uses.h"
#include "ir/transaction_barriers.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir {

class DraftSubstitution : public ExprRewriter {
 public:
  DraftSubstitution(ExprPool& pool, const Draft& draft, const std::map<VarId, ExprId>& values)
      : ExprRewriter(pool, pool), draft_(draft), values_(values) {}

  VarId unknown;  // a name that has no value here

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto it = values_.find(n.var());
    if (it != values_.end()) return it->second;
    if (draft_.temporaries.contains(n.var())) unknown = n.var();
    return to_->var(n.var(), n.type);
  }

 private:
  const Draft& draft_;
  const std::map<VarId, ExprId>& values_;
};

class DraftResolver {
 public:
  DraftResolver(Program& p, const Draft& draft, const Limits& limits)
      : p_(p), draft_(draft), limits_(limits), uses_(p, draft), exprs_(p) {}

  // Whether statements are in another order than their ids.
  bool reorders() const { return cut_; }
  // A tile that a name is kept in: points have elements of their own.
  bool keeps(BufferId b) const { return kept_.contains(b); }

  std::vector<Diagnostic> run() {
    written_ = std::move(p_.stmts);
    p_.stmts.clear();
    for (kernel_ = 0; kernel_ < p_.kernels.size() && errors_.empty(); ++kernel_) {
      values_.clear();
      Block body;
      run_block(p_.kernels[kernel_].body, body);
      p_.kernels[kernel_].body = std::move(body);
    }
    return std::move(errors_);
  }

 private:
  using Values = std::map<VarId, ExprId>;
  using Buffers = DraftExprs::Buffers;

  struct Memory {
    BufferId buffer;
    ExprId element;      // a load of it
    bool fixed = false;  // every assignment stores
  };

  void run_block(const Block& block, Block& out) {
    for (StmtId s : block) {
      if (!errors_.empty()) return;
      location_ = written_[s.value].location;
      run_statement(s, out);
    }
  }
  void run_statement(StmtId s, Block& out);
  void run_store(StmtId s, Store store, Block& out);
  void run_tile_op(StmtId s, TileOp op, Block& out);
  void run_branch(StmtId s, Block& out);
  void run_pure_branch(StmtId s, ExprId condition, Block& out);
  void run_loop(StmtId s, Loop loop, Block& out);
  // `run` is given the body of every trip.
  template <class Run>
  void write_out(const Loop& loop, Run&& run);

  // draft_threads.cpp: blocks of threads
  void run_threads(StmtId s, Loop loop, Block& out);
  void run_threads_block(const Block& block, Block& out);
  void run_exchange(StmtId s, Block& out);
  void run_async_copy(StmtId s, Block& out);
  void run_bulk_copy(StmtId s, Block& out);  // draft_bulk_copies.cpp
  bool is_of_some_lanes(StmtId s) const;
  bool split_branch(StmtId s, const Branch& branch, Block& out);
  void hoist_branch(StmtId s, const Branch& branch, ExprId of_groups, Block& out);
  void hoist_loop(StmtId s, Block& out);
  std::map<VarId, bool> fix_assigned(StmtId s, Block& out);
  void end_part(Block& out, int64_t at);
  std::string_view meeting(StmtId s) const;
  // draft_walks.cpp: loops inside parallel loops whose trips only the launch knows
  struct Walk {
    Memory more;                      // of each point: whether it goes on
    std::vector<BufferId> results{};  // of reductions of that, the last of one element
    ExprId again{};
  };
  bool is_written_out(ExprId root);
  void find_walks(const Block& block);
  bool holds_walk(StmtId s) const;
  bool is_of_block(ExprId e);
  bool run_walking(StmtId s, Block& out);
  void run_walk(StmtId s, Block& out);
  Walk begin_walk(VarId more);
  void ask_points(const Walk& walk, ExprId more, Block& out);
  // draft_barriers.cpp
  struct ComingBy {
    ThreadRange threads;
    bool elected = false;  // one lane of each warp
  };
  std::optional<ComingBy> guarded_threads() const;
  void run_barrier_op(StmtId s, TileOp op, Block& out);
  void guard_branch(StmtId s, const Branch& branch, Block& out);
  Memory define(VarId var, ExprId value);
  void flush_guarded();
  void refuse_divergent(std::string_view word, bool of_block = false);

  // draft_alike.cpp
  enum class Of : uint8_t { block, group };
  bool is_alike(ExprId e, Of threads) const;
  bool is_alike_in_warps(ExprId e) const;
  std::pair<ExprId, ExprId> split_condition(ExprId condition);

  // draft_neighbours.cpp: serial loops over elements beside each other
  struct LeafLoop {
    VarId counter;
    std::map<VarId, int64_t> extents;  // of the counter and of the threads
    std::map<VarId, ExprId> lets;      // no expression: of names that have several values
    std::vector<const Store*> stores;
    std::vector<ExprId> exprs;
  };
  struct SumOfVars;
  SumOfVars sum_of_vars(ExprId root, const LeafLoop& loop) const;
  bool has_own_elements(std::span<const ExprId> indices, const LeafLoop& loop) const;
  bool is_along(std::span<const ExprId> indices, const LeafLoop& loop) const;
  BufferId viewed(BufferId b) const;
  std::optional<LeafLoop> leaf_loop(StmtId s) const;
  bool walks_neighbours(StmtId s) const;
  int64_t end_of(StmtId s) const;

  void assign(VarId var, ExprId value, int64_t at, Block& out);
  void keep(VarId var, int64_t at, Block& out);
  void keep_large(VarId var, int64_t at, Block& out);
  bool assigns_memory(StmtId s) const;
  void keep_before_writes(const Buffers& buffers, int64_t at, Block& out);
  Memory make_memory(VarId var, MemScope in_parallel = MemScope::fragment);
  bool read_by_others(BufferId buffer, VarId but, int64_t at);

  ExprId resolved(ExprId e);
  // What becomes of `written` has its label and annotations.
  StmtId emit(std::variant<Loop, Branch, Store, TileOp> node, Block& out, StmtId written = {});
  Buffers writes_of(StmtId s) const;
  void add_writes(StmtId s, Buffers& buffers) const;
  bool live(VarId var, int64_t at) const { return uses_.last(var) > at; }
  void error(DiagCode code, std::string message, std::string hint);
  void too_many(int64_t limit, const char* what);

  Program& p_;
  const Draft& draft_;
  const Limits& limits_;
  DraftUses uses_;
  DraftExprs exprs_;
  std::vector<Stmt> written_;  // the statements as they were
  size_t kernel_ = 0;
  SourceLocation location_;
  Values values_;
  std::map<VarId, Memory> memory_;
  const Loop* parallel_ = nullptr;
  // The block of threads being resolved, whose statements are in parts: parallel loops behind each other.
  struct Threads {
    Loop head;  // without its body
    Annotations annotations;
    Block whole;                  // of the part that is open
    Block body;                   // what comes behind it there, under the guard
    ExprId guard = {};            // bool: the group of lanes runs what is being resolved; none: all do
    size_t first = 0;             // statement that may be of that part
    std::set<ExprId> alike = {};  // values of exchanges that are the same for the lanes of a group
    bool points = false;          // of a parallel loop, whose other loops are written out
    std::string label = {};       // of the first part
  };
  Threads* threads_ = nullptr;
  std::set<StmtId> walks_;                           // of the parallel loop or block of threads
  std::set<VarId> counted_;                          // variables of loops that are written out
  std::map<VarId, std::vector<ExprId>> assigned_{};  // to names
  bool cut_ = false;
  std::set<BufferId> kept_;  // that names are kept in
  int pure_ = 0;             // ifs without statements around
  int64_t copies_ = 1;       // of what is written out
  std::vector<Diagnostic> errors_;
};

// A copy of the body for every trip.
template <class Run>
void DraftResolver::write_out(const Loop& loop, Run&& run) {
  int64_t begin = 0, trips = 0;
  if (!errors_.empty()) return;
  if (loop.vars.size() != 1 || loop.extents.size() != 1 || !p_.exprs.is_const_int(loop.begin, &begin) ||
      !p_.exprs.is_const_int(loop.extents[0], &trips) || !checked_add(begin, trips))
    return error(DiagCode::bad_shape,
                 std::string("a loop of kind ") + loop_kind_name(loop.kind) +
                     " inside a parallel loop has bounds that are not constant",
                 "give it constant bounds, or make it serial");
  const int64_t outer = copies_;
  copies_ = checked_mul(copies_, std::max<int64_t>(trips, 1)).value_or(INT64_MAX);
  if (copies_ > limits_.unroll)
    return error(DiagCode::limit_unroll,
                 "loops inside a parallel loop are written out and make " + std::to_string(copies_) +
                     " copies, the limit is " + std::to_string(limits_.unroll),
                 "let them run less often, or put a serial loop around the parallel one");
  const Values before = values_;
  for (int64_t k = 0; k < trips && errors_.empty(); ++k) {
    values_[loop.vars[0]] = p_.exprs.const_int(begin + k);
    run();
  }
  std::erase_if(values_, [&](const auto& v) { return !before.contains(v.first); });
  copies_ = outer;
}

}  // namespace tilegen::ir
