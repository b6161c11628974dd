#include "lower/statement_exprs.h"

namespace tilegen::lower {

using ir::ExprId;

namespace {

struct Fields {
  const std::function<void(ExprId&)>& visit;

  void operator()(thread::Loop& s) const { visit(s.extent); }
  void operator()(thread::Branch& s) const { visit(s.condition); }
  void operator()(thread::Store& s) const { all({&s.index, &s.value, &s.predicate, &s.streaming_if}); }
  void operator()(thread::LaneReduce& s) const { all({&s.dst_index, &s.src_index}); }
  void operator()(thread::HostMma& s) const { all({&s.a_index, &s.b_index, &s.c_index}); }
  void operator()(thread::Prefetch& s) const { visit(s.index); }
  void operator()(thread::Barrier&) const {}
  void operator()(thread::AsyncCopy& s) const { all({&s.dst_index, &s.src_index, &s.predicate}); }
  void operator()(thread::AsyncCommit&) const {}
  void operator()(thread::AsyncWait&) const {}
  void operator()(thread::Shuffle& s) const { all({&s.dst_index, &s.value, &s.lane}); }
  void operator()(thread::LoadMatrix& s) const { all({&s.dst_index, &s.src_index}); }
  void operator()(thread::StoreMatrix& s) const { all({&s.dst_index, &s.src_index}); }
  void operator()(thread::WarpMma& s) const { all({&s.a_index, &s.b_index, &s.c_index}); }

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
    if (const auto* l = std::get_if<thread::Loop>(&node)) {
      for_each_expr_below(p, l->body, visit);
    } else if (const auto* b = std::get_if<thread::Branch>(&node)) {
      for_each_expr_below(p, b->then_body, visit);
      for_each_expr_below(p, b->else_body, visit);
    }
  }
}

}  // namespace tilegen::lower
