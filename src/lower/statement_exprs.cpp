#include "lower/statement_exprs.h"

#include <utility>

namespace tilegen::lower {

using ir::ExprId;

namespace {

struct Fields {
  const std::function<void(ExprId&)>& visit;

  void operator()(thread::Loop& s) const { all({&s.extent, &s.condition}); }
  void operator()(thread::Branch& s) const { visit(s.condition); }
  void operator()(thread::Store& s) const {
    all({&s.index, &s.value, &s.predicate, &s.streaming_if, &s.expected, &s.old_index});
  }
  void operator()(thread::LaneReduce& s) const { all({&s.dst_index, &s.src_index}); }
  void operator()(thread::HostMma& s) const { all({&s.a_index, &s.b_index, &s.c_index}); }
  void operator()(thread::Prefetch& s) const { visit(s.index); }
  void operator()(thread::Barrier&) const {}
  void operator()(thread::AsyncCopy& s) const { all({&s.dst_index, &s.src_index, &s.predicate}); }
  void operator()(thread::AsyncCommit&) const {}
  void operator()(thread::AsyncWait&) const {}
  void operator()(thread::Shuffle& s) const { all({&s.dst_index, &s.value, &s.lane}); }
  void operator()(thread::Vote& s) const { all({&s.dst_index, &s.value}); }
  void operator()(thread::LoadMatrix& s) const { all({&s.dst_index, &s.src_index}); }
  void operator()(thread::StoreMatrix& s) const { all({&s.dst_index, &s.src_index}); }
  void operator()(thread::WarpMma& s) const { all({&s.a_index, &s.b_index, &s.c_index, &s.places_index}); }
  void operator()(thread::Roles&) const {}
  void operator()(thread::OneThread&) const {}
  void operator()(thread::TransactionArrive& s) const { all({&s.index, &s.block}); }
  void operator()(thread::TransactionWait& s) const { all({&s.index, &s.parity, &s.unless}); }
  void operator()(thread::TransactionTest& s) const { all({&s.index, &s.parity, &s.dst_index}); }
  void operator()(thread::FetchTile& s) const { visit(s.dst_index); }
  void operator()(thread::TensorLoad& s) const {
    all({&s.dst_index, &s.barrier_index});
    for (ExprId& c : s.coordinates) visit(c);
  }
  void operator()(thread::TensorStore& s) const {
    visit(s.src_index);
    for (ExprId& c : s.coordinates) visit(c);
  }
  void operator()(thread::BulkCommit&) const {}
  void operator()(thread::BulkWait&) const {}
  void operator()(thread::ProxyFence&) const {}
  void operator()(thread::ClusterBarrier&) const {}
  void operator()(thread::GridDependencyWait&) const {}
  void operator()(thread::ClusterLoad& s) const { all({&s.dst_index, &s.src_index, &s.block}); }
  void operator()(thread::WarpgroupMma& s) const {
    all({&s.a_index, &s.b_index, &s.c_index, &s.accumulate, &s.places_index});
  }
  void operator()(thread::WarpgroupFence&) const {}
  void operator()(thread::WarpgroupCommit&) const {}
  void operator()(thread::WarpgroupWait&) const {}

 private:
  void all(std::initializer_list<ExprId*> list) const {
    for (ExprId* e : list) visit(*e);
  }
};

}  // namespace

void for_each_expr(thread::StmtNode& node, const std::function<void(ExprId&)>& visit) {
  std::visit([&](auto& s) { Fields{visit}(s); }, node);
}

void for_each_expr_below(thread::ThreadProgram& p, const thread::Block& block,
                         const std::function<void(ExprId&)>& visit) {
  for (thread::StmtId id : block) {
    thread::StmtNode& node = p.stmts[id.value].node;
    for_each_expr(node, visit);
    for (const thread::Block* inside : thread::blocks_inside(std::as_const(node)))
      for_each_expr_below(p, *inside, visit);
  }
}

}  // namespace tilegen::lower
