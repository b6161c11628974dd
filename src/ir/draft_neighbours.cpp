// Serial loops of a thread over elements beside each other: copies of the body that wide accesses are made of
// (analysis/neighbour_accesses.h), as of an unrolled loop.
//
//   serial i in 0 .. 4 { s += X[b, 4 * t + i] }   ->   s += X[b, 4 * t]   s += X[b, 4 * t + 1]   ...
//
// Threads meet around a serial loop and between its iterations. In one part they do not: this is a loop whose
// iterations tell no other thread anything. It reads no element that it writes but its own, and no thread
// writes what another one does in another iteration, as the indices' coefficients show.
//
// refuses: nothing; other loops stay loops, annotated ones among them.
#include <algorithm>

#include "ir/draft_resolver.h"
#include "ir/expr_nodes.h"
#include "ir/store_parts.h"

namespace tilegen::ir {

namespace {

constexpr int64_t kMaxTrips = 32, kMaxStatements = 128;  // of copies
constexpr size_t kMaxTerms = 64;                         // of an index

}  // namespace

// A sum of variables times constants and of what is the same for all threads and iterations.
struct DraftResolver::SumOfVars {
  std::map<VarId, int64_t> factors;
  bool known = true;
  int64_t of(VarId v) const {
    const auto it = factors.find(v);
    return it == factors.end() ? 0 : it->second;
  }
};

DraftResolver::SumOfVars DraftResolver::sum_of_vars(ExprId root, const LeafLoop& loop) const {
  SumOfVars sum;
  std::vector<std::pair<ExprId, std::optional<int64_t>>> todo{{root, 1}};  // no factor: inside of other terms
  for (size_t steps = 0; !todo.empty() && sum.known; ++steps) {
    const auto [e, factor] = todo.back();
    todo.pop_back();
    if (!e.valid()) continue;
    const ExprNode& n = p_.exprs[e];
    int64_t number = 0;
    if (steps > kMaxTerms || n.op == ExprOp::load || n.op == ExprOp::native_call) {
      sum.known = false;
    } else if (n.op == ExprOp::var) {
      const VarId v = n.var();
      const auto named = loop.lets.find(v);
      const auto value = values_.find(v);
      if (named != loop.lets.end()) {
        todo.emplace_back(named->second, factor);
        sum.known = named->second.valid();
      } else if (value != values_.end()) {
        todo.emplace_back(value->second, factor);
      } else if (loop.extents.contains(v)) {
        const auto more = factor ? checked_add(sum.of(v), *factor) : std::nullopt;
        if (more) sum.factors[v] = *more;
        sum.known = more.has_value();
      } else {
        sum.known = !draft_.temporaries.contains(v);
      }
    } else if (factor && n.op == ExprOp::add) {
      todo.emplace_back(n.a, factor);
      todo.emplace_back(n.b, factor);
    } else if (factor && n.op == ExprOp::sub) {
      todo.emplace_back(n.a, factor);
      todo.emplace_back(n.b, checked_mul(*factor, int64_t{-1}));
    } else if (factor && n.op == ExprOp::mul && p_.exprs.is_const_int(n.b, &number)) {
      todo.emplace_back(n.a, checked_mul(*factor, number));
    } else if (factor && n.op == ExprOp::mul && p_.exprs.is_const_int(n.a, &number)) {
      todo.emplace_back(n.b, checked_mul(*factor, number));
    } else {
      for (const ExprId part : {n.a, n.b, n.c}) todo.emplace_back(part, std::nullopt);
    }
  }
  return sum;
}

// Iterations of threads have an element each.
bool DraftResolver::has_own_elements(std::span<const ExprId> indices, const LeafLoop& loop) const {
  std::set<VarId> seen;
  for (const ExprId index : indices) {
    const SumOfVars sum = sum_of_vars(index, loop);
    if (!sum.known) return false;
    std::vector<std::pair<int64_t, int64_t>> terms;  // factor and extent
    for (const auto& [v, factor] : sum.factors) {
      if (factor == 0 || loop.extents.at(v) == 1) continue;
      if (factor == INT64_MIN || !seen.insert(v).second) return false;
      terms.emplace_back(factor < 0 ? -factor : factor, loop.extents.at(v));
    }
    std::sort(terms.begin(), terms.end());
    int64_t reach = 1;  // places that the terms so far tell apart
    for (const auto& [factor, extent] : terms) {
      if (factor < reach) return false;
      const auto span = checked_mul(factor, extent - 1);
      const auto next = span ? checked_add(reach, *span) : std::nullopt;
      if (!next) return false;
      reach = *next;
    }
  }
  return std::all_of(loop.extents.begin(), loop.extents.end(),
                     [&](const auto& e) { return e.second == 1 || seen.contains(e.first); });
}

bool DraftResolver::is_along(std::span<const ExprId> indices, const LeafLoop& loop) const {
  for (size_t d = 0; d < indices.size(); ++d) {
    const SumOfVars sum = sum_of_vars(indices[d], loop);
    const int64_t step = sum.of(loop.counter);
    if (!sum.known || (d + 1 < indices.size() ? step != 0 : step != 1 && step != -1)) return false;
  }
  return true;
}

BufferId DraftResolver::viewed(BufferId b) const {
  for (auto it = draft_.views.find(b); it != draft_.views.end(); it = draft_.views.find(b)) b = it->second.of;
  return b;
}

// The loop's statements, where they are named values, stores and ifs alone.
std::optional<DraftResolver::LeafLoop> DraftResolver::leaf_loop(StmtId s) const {
  const Stmt& written = written_[s.value];
  const auto* head = std::get_if<Loop>(&written.node);
  if (!head || head->kind != LoopKind::serial || head->condition.valid() || !written.label.empty() ||
      !written.annotations.empty())
    return std::nullopt;
  LeafLoop loop{head->vars.front(), {}, {}, {}, {}};
  int64_t trips = 0, begin = 0;
  if (!p_.exprs.is_const_int(head->begin, &begin) || !p_.exprs.is_const_int(head->extents[0], &trips) ||
      trips < 2 || trips > kMaxTrips)
    return std::nullopt;
  loop.extents[loop.counter] = trips;
  for (size_t d = 0; d < threads_->head.vars.size(); ++d)
    p_.exprs.is_const_int(threads_->head.extents[d], &loop.extents[threads_->head.vars[d]]);
  std::vector<StmtId> todo(head->body.rbegin(), head->body.rend());
  for (int64_t statements = 1; !todo.empty(); ++statements) {
    const StmtId next = todo.back();
    todo.pop_back();
    if (statements * trips > kMaxStatements || !written_[next.value].label.empty()) return std::nullopt;
    const auto& node = written_[next.value].node;
    const auto named = draft_.assignments.find(next);
    const auto* store = std::get_if<Store>(&node);
    const auto* branch = std::get_if<Branch>(&node);
    if (named != draft_.assignments.end()) {
      const auto& [var, value] = named->second;
      if (draft_.temporaries.at(var) || !loop.lets.emplace(var, value).second) loop.lets[var] = ExprId();
      loop.exprs.push_back(value);
    } else if (store && !store->atomic && !store->old) {
      loop.stores.push_back(store);
      visit_exprs(*store, [&](ExprId e) { loop.exprs.push_back(e); });
    } else if (branch && !draft_.jumps.contains(next) && !draft_.barriers.contains(next)) {
      loop.exprs.push_back(branch->condition);
      for (const Block* side : {&branch->else_body, &branch->then_body})
        todo.insert(todo.end(), side->rbegin(), side->rend());
    } else {
      return std::nullopt;
    }
  }
  return loop;
}

// The last position of what it holds.
int64_t DraftResolver::end_of(StmtId s) const {
  int64_t last = uses_.position(s);
  std::vector<StmtId> todo{s};
  while (!todo.empty()) {
    const StmtId next = todo.back();
    todo.pop_back();
    last = std::max(last, uses_.position(next));
    const auto add = [&](const Block& b) { todo.insert(todo.end(), b.begin(), b.end()); };
    if (const auto* loop = std::get_if<Loop>(&written_[next.value].node)) add(loop->body);
    if (const auto* branch = std::get_if<Branch>(&written_[next.value].node))
      add(branch->then_body), add(branch->else_body);
  }
  return last;
}

// Whether the serial loop is of that kind.
bool DraftResolver::walks_neighbours(StmtId s) const {
  const std::optional<LeafLoop> loop = leaf_loop(s);
  if (!loop) return false;
  std::map<BufferId, const Store*> written;
  bool along = false;
  for (const Store* store : loop->stores) {
    if (!written.emplace(viewed(store->buffer), store).second || draft_.views.contains(store->buffer) ||
        !has_own_elements(store->indices, *loop))
      return false;
    along = along || is_along(store->indices, *loop);
  }
  ExprNodes nodes(p_.exprs, loop->exprs);
  while (const ExprId e = nodes.next()) {
    const ExprNode& n = p_.exprs[e];
    if (n.op == ExprOp::var)
      if (const auto value = values_.find(n.var()); value != values_.end()) nodes.add(value->second);
    if (n.op != ExprOp::load) continue;
    const auto indices = p_.exprs.indices(e);
    const auto store = written.find(viewed(n.object));
    if (store != written.end() && (store->second->buffer != n.object ||
                                   !std::equal(indices.begin(), indices.end(), store->second->indices.begin(),
                                               store->second->indices.end())))
      return false;
    along = along || is_along(indices, *loop);
  }
  return along;
}

}  // namespace tilegen::ir
