//   Y[4 * t] = X[4 * t] * 2            vectorized l in 0..4 { x[l] = X[4 * t + l] }
//   Y[4 * t + 1] = X[4 * t + 1] * 2    y[0] = x[0] * 2 ... y[3] = x[3] * 2
//   ...                                vectorized l in 0..4 { Y[4 * t + l] = y[l] }
//
// A load moves up to the first of its run, a store down to the last of its own. Tensors of one type may be
// one (docs/language.md, launching), whose elements are then told apart by their indices.
#include "lower/gpu/joined_accesses.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "arith/prove.h"
#include "lower/accesses.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/statement_exprs.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

using arith::Affine;
using thread::Store;

constexpr size_t kMaxStatements = 256;  // of a point: each is compared with others
constexpr int64_t kMostBelow = 4096;    // elements of a constant that a swizzle leaves alone

class ReplacedLoads final : public ir::ExprRewriter {
 public:
  explicit ReplacedLoads(ir::ExprPool& e) : ExprRewriter(e, e) {}
  void put(ExprId load, ExprId by) { replace(load, by); }
};

class Joiner {
 public:
  Joiner(LoweringContext& k, int64_t width, thread::Block& body, const std::string& origin)
      : k_(k), e_(k.out.exprs), width_(width), body_(body), origin_(origin) {}

  bool run() {
    if (body_.size() > kMaxStatements || !collect()) return false;
    for (auto& [row, elements] : loads_) join_row(row, elements, false);
    for (auto& [row, elements] : stores_) join_row(row, elements, true);
    write_out();
    return made_;
  }

 private:
  // One element: where it is accessed, in the order of the statements.
  struct Element {
    ExprId index, predicate;
    ExprId under;                                 // of loads: the predicate of the statement
    std::vector<std::pair<size_t, ExprId>> uses;  // statement, and the load
    bool alone = false;                           // under several predicates: it stays what it is
  };
  struct Row {
    MemoryId memory;
    std::map<ExprId, int64_t> terms;
    bool operator<(const Row& o) const { return std::tie(memory, terms) < std::tie(o.memory, o.terms); }
  };
  using Elements = std::map<int64_t, Element>;

  const Store& store(size_t at) const { return std::get<Store>(k_.out.stmts[body_[at].value].node); }
  // Constants below what a swizzle XORs stand beside it: (8 * t + 1) ^ 8 * u is (8 * t ^ 8 * u) + 1.
  std::optional<Affine> place_of(ExprId index) {
    auto place = arith::to_affine(k_.ctx, k_.simplified(index));
    if (!place) return place;
    const auto terms = place->terms;
    for (const auto& [atom, weight] : terms) {
      const ir::ExprNode n = e_[atom];
      if (n.op != ir::ExprOp::bit_xor) continue;
      for (const auto& [own, other] : {std::pair(n.a, n.b), std::pair(n.b, n.a)}) {
        const auto sum = arith::to_affine(k_.ctx, own);
        if (!sum) continue;
        const int64_t divisor = arith::divisor_of(k_.ctx, arith::from_affine(k_.ctx, {sum->terms, 0})) |
                                arith::divisor_of(k_.ctx, other) | kMostBelow,
                      low = sum->constant & ((divisor & -divisor) - 1);
        if (low == 0) continue;
        const ExprId rest = arith::from_affine(k_.ctx, {sum->terms, sum->constant - low});
        place->terms.erase(atom);
        place->terms[k_.simplified(e_.binary(ir::ExprOp::bit_xor, rest, other))] += weight;
        place->constant += weight * low;
        break;
      }
    }
    return place;
  }

  // False where there are other statements than stores of values.
  bool collect() {
    for (size_t at = 0; at < body_.size(); ++at) {
      const auto* s = std::get_if<Store>(&k_.out.stmts[body_[at].value].node);
      if (!s || s->atomic || s->expected.valid() || s->old.valid()) return false;
    }
    for (size_t at = 0; at < body_.size(); ++at) {
      const Store s = store(at);
      std::set<ExprId> seen;
      for (ExprId root : {s.index, s.value, s.predicate}) loads(root, s.predicate, at, seen);
      add(stores_, s.memory, s.index, s.predicate, ExprId(), at, ExprId());
    }
    return true;
  }

  void loads(ExprId id, ExprId under, size_t at, std::set<ExprId>& seen) {
    if (!id || !seen.insert(id).second) return;
    const ir::ExprNode n = e_[id];
    for (ExprId operand : {n.a, n.b, n.c}) loads(operand, under, at, seen);
    if (n.op != ir::ExprOp::load) return;
    const std::vector<ExprId> indices(e_.indices(id).begin(), e_.indices(id).end());
    for (ExprId index : indices) loads(index, under, at, seen);
    add(loads_, n.object, indices[0], indices.size() > 1 ? indices[1] : ExprId(), under, at, id);
  }

  void add(std::map<Row, Elements>& rows, MemoryId memory, ExprId index, ExprId predicate, ExprId under,
           size_t at, ExprId load) {
    if (k_.out.memory(memory).in_registers) return;
    for (ExprId e : {index, predicate, under})
      if (thread::reads_memory(k_.out, e)) return;  // it may be another value at another statement
    const auto affine = place_of(index);
    if (!affine) return;
    Element& element = rows[{memory, affine->terms}][affine->constant];
    if (!element.index) element = {index, predicate, under, {}};
    element.alone = element.alone || element.predicate != predicate || element.under != under;
    element.uses.emplace_back(at, load);
  }

  void join_row(const Row& row, Elements& elements, bool write) {
    const thread::Memory& m = k_.out.memory(row.memory);
    const int64_t bytes = ir::dtype_bytes(m.type),
                  divisor = arith::divisor_of(k_.ctx, arith::from_affine(k_.ctx, Affine{row.terms, 0}));
    for (int64_t width = std::min(width_, k_.in.target.vector_bytes / bytes); width > 1; width /= 2) {
      if (divisor % width != 0 || m.alignment % (width * bytes) != 0) continue;
      for (auto it = elements.begin(); it != elements.end();) {
        const auto next = std::next(it);
        std::vector<Element*> run;
        if (it->first % width == 0) run = run_at(elements, it, width);
        if (!run.empty() && same_predicate(run) && (write ? join_stores(row, run) : join_loads(row, run))) {
          made_ = made_ || width == width_;
          for (int64_t i = 0; i < width; ++i) it = elements.erase(it);
          continue;
        }
        it = next;
      }
    }
  }

  static std::vector<Element*> run_at(Elements& elements, Elements::iterator it, int64_t width) {
    std::vector<Element*> run;
    for (int64_t i = 0, first = it->first; i < width; ++i, ++it) {
      if (it == elements.end() || it->first != first + i || it->second.alone) return {};
      run.push_back(&it->second);
    }
    return run;
  }

  // A bound of whole runs holds for all of a run's elements, or for none.
  bool same_predicate(const std::vector<Element*>& run) {
    return std::all_of(run.begin() + 1, run.end(), [&](const Element* e) {
      return same(run.front()->predicate, e->predicate) && same(run.front()->under, e->under);
    });
  }
  bool same(ExprId a, ExprId b) { return a == b || (a && b && implies(a, b) && implies(b, a)); }
  bool implies(ExprId a, ExprId b) {
    const auto mark = k_.ctx.mark();
    k_.ctx.assume(a);
    const bool holds = arith::prove(k_.ctx, b);
    k_.ctx.rollback(mark);
    return holds;
  }

  // The element of memory may be this one of the row.
  bool meets(MemoryId memory, ExprId index, const Row& row, const Element& element) {
    if (!may_alias(k_.out, memory, row.memory)) return false;
    const thread::Memory &a = k_.out.memory(memory), &b = k_.out.memory(row.memory);
    if (memory != row.memory && a.space != thread::Space::global) return true;
    if (memory != row.memory && a.type != b.type) return false;
    if (!index || thread::reads_memory(k_.out, index)) return true;
    const auto at = place_of(index), own = place_of(element.index);
    return !at || !own || at->terms != own->terms || at->constant == own->constant;
  }
  bool stores_to(size_t at, const Row& row, const Element& element) {
    return meets(store(at).memory, store(at).index, row, element);
  }
  bool loads_from(size_t at, const Row& row, const Element& element) {
    const Store s = store(at);
    std::set<ExprId> seen;
    std::vector<Access> loads;
    for (ExprId root : {s.index, s.value, s.predicate}) collect_loads(e_, root, seen, loads);
    const auto joined = wide_loads_.find(at);
    if (joined != wide_loads_.end()) loads.insert(loads.end(), joined->second.begin(), joined->second.end());
    return std::any_of(loads.begin(), loads.end(),
                       [&](const Access& a) { return meets(a.memory, a.index, row, element); });
  }

  bool join_loads(const Row& row, const std::vector<Element*>& run) {
    size_t first = body_.size();
    for (const Element* e : run) first = std::min(first, e->uses.front().first);
    for (const Element* e : run)
      for (size_t at = first; at < e->uses.back().first; ++at)
        if (stores_to(at, row, *e)) return false;
    const MemoryId joined = joined_registers(row, run);
    before_[first].push_back(wide(run, [&](ExprId lane) {
      const std::vector<ExprId> from = run.front()->predicate
                                           ? std::vector{beside(run, lane), run.front()->predicate}
                                           : std::vector{beside(run, lane)};
      return Store{joined, lane, e_.load(row.memory, k_.out.memory(joined).type, from), run.front()->under};
    }));
    for (const Element* e : run) wide_loads_[first].push_back({row.memory, e->index, false});
    for (size_t i = 0; i < run.size(); ++i)
      for (const auto& [at, load] : run[i]->uses) replaced_[at][load] = element_of(joined, i);
    return true;
  }

  bool join_stores(const Row& row, const std::vector<Element*>& run) {
    size_t last = 0;
    const Store& kind = store(run.front()->uses.front().first);
    for (const Element* e : run) {
      const Store& s = store(e->uses.front().first);
      if (e->uses.size() != 1 || s.streaming != kind.streaming || s.streaming_if != kind.streaming_if)
        return false;
      last = std::max(last, e->uses.front().first);
    }
    for (const Element* e : run)
      for (size_t at = e->uses.front().first + 1; at <= last; ++at)
        if (loads_from(at, row, *e) || stores_to(at, row, *e)) return false;
    const MemoryId joined = joined_registers(row, run);
    for (size_t i = 0; i < run.size(); ++i) staged_[run[i]->uses[0].first] = {joined, i};
    const Store of = kind;
    behind_[last].push_back(wide(run, [&](ExprId lane) {
      return Store{
          row.memory,   beside(run, lane), e_.load(joined, k_.out.memory(joined).type, std::vector{lane}),
          of.predicate, of.streaming,      of.streaming_if};
    }));
    return true;
  }

  MemoryId joined_registers(const Row& row, const std::vector<Element*>& run) {
    return add_registers(k_, "joined", k_.out.memory(row.memory).type, static_cast<int64_t>(run.size()));
  }
  ExprId element_of(MemoryId joined, size_t i) {
    return e_.load(joined, k_.out.memory(joined).type, std::vector{e_.const_int(static_cast<int64_t>(i))});
  }
  ExprId beside(const std::vector<Element*>& run, ExprId lane) {
    return k_.simplified(e_.add(run.front()->index, lane));
  }
  template <class Statement>
  thread::StmtId wide(const std::vector<Element*>& run, Statement&& statement) {
    const auto lanes = static_cast<int64_t>(run.size());
    const VarId var = k_.out.add_var("lane" + std::to_string(k_.out.vars.size()), ir::VarKind::loop);
    k_.ctx.bind(var, 0, lanes - 1);
    const thread::Block one = {k_.out.add(statement(e_.var(var)), origin_)};
    return k_.out.add(thread::Loop{var, e_.const_int(lanes), thread::LoopForm::vectorized, one}, origin_);
  }

  void write_out() {
    thread::Block out;
    for (size_t at = 0; at < body_.size(); ++at) {
      if (const auto it = replaced_.find(at); it != replaced_.end()) {
        ReplacedLoads rewrite(e_);
        for (const auto& [load, by] : it->second) rewrite.put(load, by);
        for_each_expr(k_.out.stmts[body_[at].value].node, [&](ExprId& e) {
          if (e) e = rewrite.rewrite(e);
        });
      }
      if (const auto it = staged_.find(at); it != staged_.end()) {
        auto& s = std::get<Store>(k_.out.stmts[body_[at].value].node);
        s = Store{it->second.first, e_.const_int(static_cast<int64_t>(it->second.second)), s.value,
                  s.predicate};
      }
      const auto before = before_.find(at), behind = behind_.find(at);
      if (before != before_.end()) out.insert(out.end(), before->second.begin(), before->second.end());
      out.push_back(body_[at]);
      if (behind != behind_.end()) out.insert(out.end(), behind->second.begin(), behind->second.end());
    }
    body_ = std::move(out);
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const int64_t width_;
  thread::Block& body_;
  const std::string& origin_;
  std::map<Row, Elements> loads_, stores_;
  bool made_ = false;
  // By the statement at which it happens.
  std::map<size_t, thread::Block> before_, behind_;
  std::map<size_t, std::vector<Access>> wide_loads_;  // elements of those in `before_`
  std::map<size_t, std::map<ExprId, ExprId>> replaced_;
  std::map<size_t, std::pair<MemoryId, size_t>> staged_;
};

}  // namespace

bool join_accesses(LoweringContext& k, int64_t width, thread::Block& body, const std::string& origin) {
  return Joiner(k, width, body, origin).run();
}

}  // namespace tilegen::lower
