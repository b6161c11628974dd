// Programs that show what a defect changed: probes of predicates, stores and reach, and poison.
#include <limits>
#include <optional>
#include <set>

#include "mutant_rewrite.h"
#include "mutants.h"

namespace tilegen::sim::test {

namespace {

void collect_predicates(ir::ExprPool& e, ExprId root, std::set<ExprId>& seen, std::set<ExprId>& out) {
  if (!root.valid() || !seen.insert(root).second) return;
  const ExprNode n = e[root];
  for (ExprId operand : {n.a, n.b, n.c}) collect_predicates(e, operand, seen, out);
  if (n.op != ExprOp::load) return;
  const std::vector<ExprId> indices(e.indices(root).begin(), e.indices(root).end());
  for (ExprId i : indices) collect_predicates(e, i, seen, out);
  if (indices.size() > 1) out.insert(indices[1]);
}

// What the site drops.
std::set<ExprId> dropped_predicates(ThreadProgram& p, const MutationSite& site) {
  std::set<ExprId> list, seen;
  auto& node = p.stmts[site.at].node;
  if (site.loads) {
    for (const Slot& s : slots_of(node)) collect_predicates(p.exprs, *s.id, seen, list);
    return list;
  }
  if (auto* s = std::get_if<thread::Store>(&node)) list = {s->predicate};
  if (auto* s = std::get_if<thread::AsyncCopy>(&node)) list = {s->predicate};
  if (auto* s = std::get_if<thread::Branch>(&node)) list = {s->condition};
  return list;
}

thread::Store far_store(ThreadProgram& q, ExprId predicate) {
  thread::Store probe;
  probe.memory = memory_outside_registers(q);
  probe.index = q.exprs.const_int(INT64_MIN / 16);
  probe.value = q.exprs.const_number(0, q.memory(probe.memory).type);
  probe.predicate = predicate;
  return probe;
}

// In place of stores: far ones, wherever what would be stored is not what is there. When none of them runs,
// the stores change nothing, whatever their order.
class StoreChecks {
 public:
  explicit StoreChecks(ThreadProgram& q) : q_(q) {}

  // Nothing where a statement does more than store.
  std::optional<thread::Block> of(const thread::Block& body) {
    thread::Block out;
    for (StmtId id : body) {
      const thread::StmtNode node = q_.stmts[id.value].node;
      if (const auto* s = std::get_if<thread::Store>(&node)) {
        out.push_back(q_.add(check(*s, s->predicate), "probe"));
      } else if (const auto* l = std::get_if<thread::Loop>(&node)) {
        thread::Loop loop = *l;
        if (!replace(loop.body)) return std::nullopt;
        out.push_back(q_.add(loop, "probe"));
      } else if (const auto* b = std::get_if<thread::Branch>(&node)) {
        thread::Branch branch = *b;
        if (!replace(branch.then_body) || !replace(branch.else_body)) return std::nullopt;
        out.push_back(q_.add(branch, "probe"));
      } else {
        return std::nullopt;
      }
    }
    return out;
  }

  // Of one store where `when` holds; invalid: always.
  thread::Store check(const thread::Store& store, ExprId when) {
    if (store.atomic) return check_atomic(store, when);
    const ExprId there =
        q_.exprs.load(store.memory, q_.memory(store.memory).type, std::vector<ExprId>{store.index});
    ExprId changes = differ(store.value, there);
    if (ir::is_float(q_.exprs.type(there))) {  // a NaN is no other NaN
      const ExprId both_nan = both(differ(store.value, store.value), differ(there, there));
      changes = both(changes, q_.exprs.unary(ExprOp::logical_not, both_nan));
    }
    return far_store(q_, when.valid() ? both(when, changes) : changes);
  }

 private:
  // A plain load of what others combine is a race, so only the value can tell that nothing changes.
  thread::Store check_atomic(const thread::Store& store, ExprId when) {
    const bool adds = *store.atomic == ir::AtomicKind::add || *store.atomic == ir::AtomicKind::bit_or ||
                      *store.atomic == ir::AtomicKind::bit_xor;
    if (!adds || store.old.valid()) return far_store(q_, when);
    const ExprId changes = differ(store.value, q_.exprs.const_number(0, q_.exprs.type(store.value)));
    return far_store(q_, when.valid() ? both(when, changes) : changes);
  }
  bool replace(thread::Block& body) {
    const std::optional<thread::Block> checked = of(body);
    if (checked) body = *checked;
    return checked.has_value();
  }
  ExprId both(ExprId a, ExprId b) { return q_.exprs.binary(ExprOp::logical_and, a, b); }
  ExprId number(ExprId e) {
    const ir::DType type = q_.exprs.type(e);
    return ir::is_bool(type)    ? q_.exprs.cast(ir::DType::i32, e)
           : ir::is_float(type) ? q_.exprs.cast(ir::DType::f64, e)
                                : e;
  }
  ExprId differ(ExprId a, ExprId b) { return q_.exprs.binary(ExprOp::ne, number(a), number(b)); }

  ThreadProgram& q_;
};

// Puts a worthless value wherever a statement would write.
class Poison {
 public:
  Poison(ThreadProgram& q, int value) : q_(q), value_(value) {}

  bool apply(const MutationSite& site) {
    const StmtId id(site.at);
    if (site.loads) return loads(id);
    auto& node = q_.stmts[id.value].node;
    if (auto* branch = std::get_if<thread::Branch>(&node)) {
      const thread::Block body = branch->then_body, skipped = branch->else_body;
      thread::Block other = spoilt(skipped);
      for (StmtId s : spoilt(body)) other.push_back(s);
      std::get<thread::Branch>(q_.stmts[id.value].node).else_body = std::move(other);
      return possible_;
    }
    const ExprId predicate = *dropped_predicates(q_, site).begin();
    thread::Block other = spoilt({id}, q_.exprs.unary(ExprOp::logical_not, predicate));
    return possible_ && insert_before(q_, q_.body, id, other);
  }

 private:
  ExprId worthless(ir::DType type) {
    return ir::is_float(type) ? q_.exprs.const_float(std::numeric_limits<double>::quiet_NaN(), type)
                              : q_.exprs.const_int(ir::is_bool(type) ? value_ & 1 : value_, type);
  }

  bool loads(StmtId id) {
    Rebuild rebuild(q_.exprs, [&](ExprId e) {
      const auto indices = q_.exprs.indices(e);
      if (q_.exprs[e].op != ExprOp::load || indices.size() < 2) return ExprId();
      return q_.exprs.select(indices[1], e, worthless(q_.exprs[e].type));
    });
    for (const Slot& s : slots_of(q_.stmts[id.value].node)) *s.id = rebuild(*s.id);
    return true;
  }

  // An atomic one that leaves the element as it is.
  bool adds_nothing(const thread::Store& store) const {
    int64_t operand = 0;
    return (store.atomic == ir::AtomicKind::add || store.atomic == ir::AtomicKind::bit_or ||
            store.atomic == ir::AtomicKind::bit_xor) &&
           q_.exprs.is_const_int(store.value, &operand) && operand == 0;
  }

  void put(thread::MemoryId memory, ExprId index, int64_t count, ExprId predicate, thread::Block& out) {
    for (int64_t i = 0; i < count; ++i) {
      thread::Store store;
      store.memory = memory;
      store.index = q_.exprs.add(index, q_.exprs.const_int(i));
      store.value = worthless(q_.memory(memory).type);
      store.predicate = predicate;
      out.push_back(q_.add(store, "poison"));
    }
  }

  thread::Block spoilt(const thread::Block& body, ExprId predicate = {}) {
    thread::Block out;
    for (StmtId id : body) {
      const thread::StmtNode node = q_.stmts[id.value].node;
      const auto registers = [&](thread::MemoryId memory, int64_t matrices) {
        return matrices * 4 / ir::dtype_bytes(q_.memory(memory).type);
      };
      if (const auto* s = std::get_if<thread::Store>(&node); s && s->old.valid() && adds_nothing(*s)) {
        put(s->old, s->old_index, 1, predicate.valid() ? predicate : s->predicate, out);
      } else if (s) {
        thread::Store store = *s;
        store.value = worthless(q_.memory(s->memory).type);
        if (store.atomic) store.atomic = ir::AtomicKind::exchange;  // others may touch it at once
        store.expected = store.old_index = {}, store.old = {};
        if (predicate.valid()) store.predicate = predicate;
        out.push_back(q_.add(store, "poison"));
      } else if (const auto* c = std::get_if<thread::AsyncCopy>(&node)) {
        if (predicate.valid()) return possible_ = false, out;  // the copy itself would land later
        put(c->dst, c->dst_index, c->bytes / ir::dtype_bytes(q_.memory(c->dst).type), {}, out);
      } else if (const auto* m = std::get_if<thread::LoadMatrix>(&node)) {
        put(m->dst, m->dst_index, registers(m->dst, m->matrices), {}, out);
      } else if (const auto* l = std::get_if<thread::Loop>(&node)) {
        thread::Loop loop = *l;
        loop.body = spoilt(l->body);
        out.push_back(q_.add(loop, "poison"));
      } else if (const auto* b = std::get_if<thread::Branch>(&node)) {
        thread::Branch branch = *b;
        branch.then_body = spoilt(b->then_body);
        branch.else_body = spoilt(b->else_body);
        out.push_back(q_.add(branch, "poison"));
      } else if (std::holds_alternative<thread::Barrier>(node) ||
                 std::holds_alternative<thread::AsyncCommit>(node) ||
                 std::holds_alternative<thread::AsyncWait>(node)) {
        out.push_back(q_.add(node, "poison"));  // orders what is there, and writes nothing
      } else {
        possible_ = false;
      }
    }
    return out;
  }

  ThreadProgram& q_;
  int value_;
  bool possible_ = true;
};

}  // namespace

std::optional<ThreadProgram> predicate_probe(const ThreadProgram& p, const MutationSite& site) {
  if (site.mutation != Mutation::predicate_removed) return std::nullopt;
  ThreadProgram q = p;
  thread::Block probes;
  for (ExprId predicate : dropped_predicates(q, site))
    probes.push_back(q.add(far_store(q, q.exprs.unary(ExprOp::logical_not, predicate)), "probe"));
  insert_before(q, q.body, StmtId(site.at), probes);
  return q;
}

std::optional<ThreadProgram> reach_probe(const ThreadProgram& p, const MutationSite& site) {
  if (site.mutation == Mutation::slots_reduced) return std::nullopt;
  ThreadProgram q = p;
  const StmtId probe = q.add(far_store(q, {}), "probe");
  insert_before(q, q.body, StmtId(site.at), {probe});
  return q;
}

std::optional<ThreadProgram> store_probe(const ThreadProgram& p, const MutationSite& site) {
  if (site.mutation != Mutation::predicate_removed || site.loads) return std::nullopt;
  ThreadProgram q = p;
  StoreChecks checks(q);
  const thread::StmtNode node = p.stmts[site.at].node;
  if (const auto* store = std::get_if<thread::Store>(&node); store && store->predicate.valid()) {
    const ExprId dropped = q.exprs.unary(ExprOp::logical_not, store->predicate);
    insert_before(q, q.body, StmtId(site.at), {q.add(checks.check(*store, dropped), "probe")});
    return q;
  }
  const auto* branch = std::get_if<thread::Branch>(&node);
  if (!branch || !branch->else_body.empty()) return std::nullopt;
  const std::optional<thread::Block> skipped = checks.of(branch->then_body);
  if (!skipped) return std::nullopt;
  std::get<thread::Branch>(q.stmts[site.at].node).else_body = *skipped;
  return q;
}

std::optional<ThreadProgram> poisoned(const ThreadProgram& p, const MutationSite& site, int poison) {
  if (site.mutation != Mutation::predicate_removed) return std::nullopt;
  ThreadProgram q = p;
  return Poison(q, poison).apply(site) ? std::optional(std::move(q)) : std::nullopt;
}

}  // namespace tilegen::sim::test
