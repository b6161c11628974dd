// Conditions in a block of threads that all threads, or all lanes of a group, see alike.
#include <algorithm>

#include "ir/draft_resolver.h"
#include "ir/draft_threads.h"
#include "ir/expr_nodes.h"
#include "ir/op_kinds.h"

namespace tilegen::ir {

namespace {

// What an expression is where a variable has a number.
class WithNumber : public ExprRewriter {
 public:
  WithNumber(const ExprPool& from, ExprPool& to, VarId var, int64_t number)
      : ExprRewriter(from, to), var_(var), number_(number) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    return n.var() == var_ ? to_->const_int(number_) : to_->var(n.var(), n.type);
  }

 private:
  VarId var_;
  int64_t number_;
};

// Of integers a comparison as a program writes it. NaN fails a comparison and its opposite.
ExprId opposite(ExprPool& pool, ExprId e) {
  const ExprNode n = pool[e];
  const bool compares = n.op == ExprOp::lt || n.op == ExprOp::le;
  if (!compares || is_float(pool.type(n.a))) return pool.unary(ExprOp::logical_not, e);
  return pool.binary(n.op == ExprOp::lt ? ExprOp::le : ExprOp::lt, n.b, n.a);
}

constexpr int kDepth = 32;  // of conditions that are looked at for every thread

}  // namespace

void DraftResolver::refuse_divergent(std::string_view word, bool of_block) {
  error(DiagCode::misplaced_statement,
        std::string(word) + " stands where " +
            (of_block ? "threads of the block" : "lanes of a group of its threads") +
            " may go different ways",
        std::string("put it outside of ifs whose conditions and loops whose bounds name ") +
            (of_block ? "the threads' numbers or values" : "the lanes' numbers or values of threads") +
            " of the block, and let these choose what is computed");
}

// It names no variable, or not the last one. Elements that it loads are then the same for all threads, or all
// lanes of a group. What these voted for is an element of each, which no condition around loops can be.
bool DraftResolver::is_alike(ExprId root, Of threads) const {
  if (threads == Of::group && is_alike_in_warps(root)) return true;
  const std::vector<VarId>& own = threads_->head.vars;
  const size_t variables = threads == Of::block ? own.size() : 1;
  ExprNodes nodes(p_.exprs, {root});
  while (const ExprId e = nodes.next()) {
    const ExprNode& n = p_.exprs[e];
    if (threads == Of::group && threads_->alike.contains(e))
      nodes.skip_operands();
    else if (n.op == ExprOp::var &&
             std::find(own.end() - static_cast<ptrdiff_t>(variables), own.end(), n.var()) != own.end())
      return false;
  }
  return true;
}

// What stands in it that cuts the block are asynchronous copies, which each thread may have or not, and
// arrivals, which a lane may make for its warp.
bool DraftResolver::is_of_some_lanes(StmtId s) const {
  std::vector<StmtId> todo{s};
  while (!todo.empty()) {
    const StmtId next = todo.back();
    todo.pop_back();
    const auto& node = written_[next.value].node;
    if (draft_.async_copies.contains(next)) continue;
    const auto* op = std::get_if<TileOp>(&node);
    if (draft_.exchanges.contains(next) || draft_.barriers.contains(next)) return false;
    if (draft_.bulk_copies.contains(next)) return false;
    if (op && op->kind != OpKind::mbarrier_arrive) return false;
    const auto add = [&](const Block& b) { todo.insert(todo.end(), b.begin(), b.end()); };
    if (const auto* loop = std::get_if<Loop>(&node)) add(loop->body);
    if (const auto* branch = std::get_if<Branch>(&node)) add(branch->then_body), add(branch->else_body);
  }
  return true;
}

// The parts of a conjunction that all threads of the block see alike, and the others; none: an invalid id.
std::pair<ExprId, ExprId> DraftResolver::split_condition(ExprId condition) {
  std::pair<ExprId, ExprId> split;
  std::vector<std::pair<ExprId, bool>> todo{{condition, true}};  // and whether it is to hold
  while (!todo.empty()) {
    const auto [e, holds] = todo.back();
    todo.pop_back();
    const ExprNode n = p_.exprs[e];
    int64_t number = 0;
    if (n.op == ExprOp::logical_not) {
      todo.emplace_back(n.a, !holds);
    } else if (n.op == (holds ? ExprOp::logical_and : ExprOp::logical_or)) {
      todo.emplace_back(n.b, holds);
      todo.emplace_back(n.a, holds);
    } else if (n.op == ExprOp::select && p_.exprs.is_const_int(n.c, &number) && (number != 0) != holds) {
      todo.emplace_back(n.b, holds);
      todo.emplace_back(n.a, true);
    } else if (n.op == ExprOp::select && p_.exprs.is_const_int(n.b, &number) && (number != 0) != holds) {
      todo.emplace_back(n.c, holds);
      todo.emplace_back(n.a, false);
    } else {
      const ExprId part = holds ? e : opposite(p_.exprs, e);
      ExprId& of = is_alike(e, Of::block) ? split.first : split.second;
      of = of.valid() ? p_.exprs.logical_and(of, part) : part;
    }
  }
  return split;
}

// Where the last variable counts no lanes but whole warps: the same expression for all threads of each.
bool DraftResolver::is_alike_in_warps(ExprId e) const {
  int64_t threads = 0;
  p_.exprs.is_const_int(threads_->head.extents.back(), &threads);
  if (has_lanes(threads) || threads % kMaxLanes != 0 || p_.exprs[e].depth > kDepth) return false;
  ExprPool pool;
  ExprId of_warp;
  for (int64_t t = 0; t < threads; ++t) {
    const ExprId here = WithNumber(p_.exprs, pool, threads_->head.vars.back(), t).rewrite(e);
    if (t % kMaxLanes == 0) of_warp = here;
    if (here != of_warp) return false;
  }
  return true;
}

}  // namespace tilegen::ir
