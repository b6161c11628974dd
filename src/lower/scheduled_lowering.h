// Statements of the scheduled program -> thread statements: roles, loops and what hands tiles over.
// Operations are operation.h's.
#pragma once

#include "lower/gpu/carried_sums.h"
#include "lower/gpu/gemm.h"
#include "lower/gpu/program_barriers.h"
#include "lower/lowering_context.h"
#include "lower/operation.h"

namespace tilegen::lower {

// The loop of a Pipelined statement while its body is lowered.
struct LoopScope {
  const ir::Loop* loop = nullptr;
  std::string origin;
  ExprId begin, extent;
  ExprId end;        // the extent, as the statements of a remainder know it
  bool fed = false;  // by a producer: iterations are numbered over all runs of the loop
  ExprId filled;     // how often iterations have begun before the loop does, where roles count them
  ExprId newest;     // the counter of the steady state
  MemoryId answers;  // of peeks, by pipeline
  std::map<ir::StmtId, std::unique_ptr<StagedGemm>> products;  // with register prefetch
};

class ScheduledLowering {
 public:
  ScheduledLowering(LoweringContext& k, const expand::ScheduledKernel& scheduled)
      : k_(k), e_(k.out.exprs), scheduled_(scheduled) {}

  void run();

 private:
  void lower(const expand::Block& b, thread::Block& out);

  // scheduled_lowering.cpp
  void lower(const expand::Run& s, thread::Block& out) { lower_operation(k_, s, out); }
  void lower(const expand::Version& s, thread::Block& out) { lower_operation(k_, s, out); }
  void lower(const expand::Issue& s, thread::Block& out);
  void lower(const expand::Deposit& s, thread::Block& out) { lower_operation(k_, s, out); }
  void lower(const expand::Serial& s, thread::Block& out);
  void lower(const expand::Branch& s, thread::Block& out);
  void lower(const expand::SplitSums& s, thread::Block& out) { split_sums(k_, s.loop, out); }
  void lower(const expand::JoinSums& s, thread::Block& out) { join_sums(k_, s.loop, out); }

  // gpu/roles.cpp
  void roles();
  thread::Role lower_role(const expand::Role& r);
  ExprId tiles_of_block();
  void lower(const expand::TileLoop& s, thread::Block& out);
  void lower(const expand::Order& s, thread::Block& out);
  void lower(const expand::Barrier& s, thread::Block& out);
  void lower(const expand::Fence&, thread::Block& out) { emit(thread::ProxyFence{}, out); }
  void lower(const expand::AwaitStores&, thread::Block& out);
  void lower(const expand::GridDependencyWait&, thread::Block& out) {
    emit(thread::GridDependencyWait{}, out);
  }
  void lower(const expand::ClusterBarrier&, thread::Block& out) { emit(thread::ClusterBarrier{}, out); }

  // gpu/preamble.cpp
  void lower(const expand::Preamble& s, thread::Block& out);
  void lower(const expand::BehindPreamble& s, thread::Block& out);
  ExprId begins_with_the_launch();

  // gpu/per_warpgroup.cpp
  void lower(const expand::PerWarpgroup& s, thread::Block& out);
  void lower(const expand::ProductsDone& s, thread::Block& out);
  void lower(const expand::PutRows& s, thread::Block& out);
  void lower(const expand::FetchRows& s, thread::Block& out);
  void lower(const expand::WithFetched& s, thread::Block& out);
  MemoryId rows_of(ir::StmtId loop, int64_t warpgroup, ValueId value);
  layout::Layout rows_layout(ValueId value) const;

  // gpu/reduce_parts.cpp
  void lower(const expand::ReduceParts& s, thread::Block& out);

  // gpu/pipelines.cpp
  ExprId use_number(const PipelineBarriers& line, expand::Iteration at);
  void lower(const expand::Acquire& s, thread::Block& out);
  void lower(const expand::Commit& s, thread::Block& out);
  void lower(const expand::Wait& s, thread::Block& out);
  void lower(const expand::Peek& s, thread::Block& out);
  void lower(const expand::Release& s, thread::Block& out);
  void lower(const expand::CommitGroup&, thread::Block& out) { emit(thread::AsyncCommit{}, out); }
  void lower(const expand::WaitGroup& s, thread::Block& out) { emit(thread::AsyncWait{s.pending}, out); }
  void lower(const expand::OnBarrier& s, thread::Block& out) { on_barrier(k_, s.op, out); }
  void lower(const expand::Await& s, thread::Block& out);
  ExprId answer_of(const PipelineBarriers& line);

  // gpu/scheduled_loop.cpp
  void lower(const expand::Pipelined& s, thread::Block& out);
  void lower(const expand::Steady& s, thread::Block& out);
  void lower(const expand::At& s, thread::Block& out);
  void lower(const expand::Remainder& s, thread::Block& out);
  void lower(const expand::WhereIterations& s, thread::Block& out);
  void lower(const expand::LoadOperands& s, thread::Block& out);
  void lower(const expand::Multiply& s, thread::Block& out);
  ExprId number_of(expand::Iteration i);
  void enter(ExprId iteration);
  ExprId any_iteration(int64_t least = 1);
  ExprId iterations_from(int64_t first);
  MemoryId registers_of(ValueId value, ExprId slot);
  MemoryId registers_at(const expand::ValueAt& v);
  StagedGemm& staged(ir::StmtId product);

  const std::string& origin() const { return scope_ ? scope_->origin : k_.in.kernel.name; }
  template <class Node>
  void emit(Node node, thread::Block& out) {
    out.push_back(k_.out.add(std::move(node), origin()));
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const expand::ScheduledKernel& scheduled_;
  LoopScope* scope_ = nullptr;
  ExprId counter_;  // of the innermost Serial loop
  // Of rows that warpgroups hand over: places, by the one that puts, and registers beside.
  std::map<std::tuple<ir::StmtId, int64_t, ValueId>, MemoryId> rows_;
  std::map<ValueId, MemoryId> fetched_;
};

}  // namespace tilegen::lower
