#include "mutants.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace tilegen::sim::test {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using thread::StmtId;
using thread::ThreadProgram;

namespace {

// Rebuilds `root` with `change` applied to each node, innermost first; an invalid id keeps the node.
class Rebuild {
 public:
  using Change = std::function<ExprId(ExprId rebuilt)>;
  Rebuild(ir::ExprPool& pool, Change change) : pool_(pool), change_(std::move(change)) {}

  ExprId operator()(ExprId root) {
    if (!root.valid()) return root;
    if (auto known = memo_.find(root); known != memo_.end()) return known->second;
    const ExprNode n = pool_[root];
    ExprId made = root;
    if (n.op == ExprOp::load) {
      std::vector<ExprId> indices(pool_.indices(root).begin(), pool_.indices(root).end());
      for (ExprId& i : indices) i = (*this)(i);
      made = pool_.load(n.object, n.type, indices);
    } else if (ir::expr_arity(n.op) > 0) {
      const ExprId a = (*this)(n.a), b = (*this)(n.b), c = (*this)(n.c);
      if (a != n.a || b != n.b || c != n.c)
        made = n.op == ExprOp::cast        ? pool_.cast(n.type, a)
               : ir::expr_arity(n.op) == 1 ? pool_.unary(n.op, a)
               : ir::expr_arity(n.op) == 2 ? pool_.binary(n.op, a, b)
                                           : pool_.select(a, b, c);
    }
    const ExprId changed = change_(made);
    return memo_[root] = changed.valid() ? changed : made;
  }

 private:
  ir::ExprPool& pool_;
  Change change_;
  std::map<ExprId, ExprId> memo_;
};

// The expressions of a statement, and the memory that each indexes (invalid: none).
struct Slot {
  ExprId* id;
  thread::MemoryId memory;
};
std::vector<Slot> slots_of(thread::StmtNode& node) {
  if (auto* s = std::get_if<thread::Store>(&node))
    return {{&s->index, s->memory}, {&s->value, {}}, {&s->predicate, {}}};
  if (auto* s = std::get_if<thread::AsyncCopy>(&node))
    return {{&s->dst_index, s->dst}, {&s->src_index, s->src}, {&s->predicate, {}}};
  if (auto* s = std::get_if<thread::LoadMatrix>(&node))
    return {{&s->dst_index, s->dst}, {&s->src_index, s->src}};
  if (auto* s = std::get_if<thread::StoreMatrix>(&node))
    return {{&s->dst_index, s->dst}, {&s->src_index, s->src}};
  if (auto* s = std::get_if<thread::Shuffle>(&node))
    return {{&s->dst_index, s->dst}, {&s->value, {}}, {&s->lane, {}}};
  if (auto* s = std::get_if<thread::Branch>(&node)) return {{&s->condition, {}}};
  if (auto* s = std::get_if<thread::Loop>(&node)) return {{&s->extent, {}}};
  return {};
}

// Puts statements in front of another, wherever it stands.
bool insert_before(ThreadProgram& p, thread::Block& block, StmtId at, const thread::Block& inserted) {
  const auto found = std::find(block.begin(), block.end(), at);
  if (found != block.end()) return block.insert(found, inserted.begin(), inserted.end()), true;
  for (StmtId id : block) {
    auto& node = p.stmts[id.value].node;
    if (auto* loop = std::get_if<thread::Loop>(&node))
      if (insert_before(p, loop->body, at, inserted)) return true;
    if (auto* branch = std::get_if<thread::Branch>(&node))
      if (insert_before(p, branch->then_body, at, inserted) ||
          insert_before(p, branch->else_body, at, inserted))
        return true;
  }
  return false;
}

void list_statements(const ThreadProgram& p, const thread::Block& block, std::vector<StmtId>& list) {
  for (StmtId id : block) {
    list.push_back(id);
    const auto& node = p.stmts[id.value].node;
    if (const auto* loop = std::get_if<thread::Loop>(&node)) list_statements(p, loop->body, list);
    if (const auto* branch = std::get_if<thread::Branch>(&node)) {
      list_statements(p, branch->then_body, list);
      list_statements(p, branch->else_body, list);
    }
  }
}

std::vector<StmtId> statements(const ThreadProgram& p) {
  std::vector<StmtId> list;
  list_statements(p, p.body, list);
  return list;
}

std::string place(const ThreadProgram& p, StmtId id) {
  return p.stmts[id.value].origin + " (statement " + std::to_string(id.value) + ")";
}

// Changes one program in one place; `changed` tells whether there was anything to change.
class Mutator {
 public:
  explicit Mutator(ThreadProgram& q) : q_(q) {}
  bool changed = false;

  void apply(const MutationSite& site) {
    const StmtId id(site.at);
    switch (site.mutation) {
      case Mutation::barrier_removed:
      case Mutation::commit_removed:
        node(id) = thread::Prefetch{memory_outside_registers(q_), q_.exprs.const_int(0), 0};  // does nothing
        changed = true;
        return;
      case Mutation::wait_weakened:
        ++std::get<thread::AsyncWait>(node(id)).pending;
        changed = true;
        return;
      case Mutation::slots_reduced:
        return reduce_slots(thread::MemoryId(site.at));
      case Mutation::predicate_removed:
        return site.loads ? remove_load_predicates(id) : remove_predicate(id);
      case Mutation::swizzle_dropped:
        return drop_swizzles(id);
    }
  }

  static thread::MemoryId memory_outside_registers(const ThreadProgram& p) {
    for (size_t m = 0; m < p.memories.size(); ++m)
      if (p.memories[m].space != thread::Space::local) return thread::MemoryId(m);
    return thread::MemoryId(size_t{0});
  }

 private:
  thread::StmtNode& node(StmtId id) { return q_.stmts[id.value].node; }

  void remove_predicate(StmtId id) {
    if (auto* s = std::get_if<thread::Store>(&node(id))) changed = s->predicate.valid(), s->predicate = {};
    if (auto* s = std::get_if<thread::AsyncCopy>(&node(id)))
      changed = s->predicate.valid(), s->predicate = {};
    if (auto* s = std::get_if<thread::Branch>(&node(id))) {
      const ExprId always = q_.exprs.binary(ExprOp::eq, q_.exprs.const_int(0), q_.exprs.const_int(0));
      changed = s->condition != always;
      s->condition = always;
    }
  }

  void remove_load_predicates(StmtId id) {
    Rebuild rebuild(q_.exprs, [&](ExprId e) {
      const auto indices = q_.exprs.indices(e);
      if (q_.exprs[e].op != ExprOp::load || indices.size() < 2) return ExprId();
      changed = true;
      const ExprId index[] = {indices[0]};
      return q_.exprs.load(q_.exprs[e].object, q_.exprs[e].type, index);
    });
    rebuild_all(id, rebuild);
  }
  void rebuild_all(StmtId id, Rebuild& rebuild) {
    for (const Slot& s : slots_of(node(id))) *s.id = rebuild(*s.id);
  }

  // Without the XOR of the index itself; and of the indices of loads of shared memory.
  void drop_swizzles(StmtId id) {
    Rebuild plain(q_.exprs, [&](ExprId e) {
      if (q_.exprs[e].op != ExprOp::bit_xor) return ExprId();
      changed = true;
      return q_.exprs[e].a;
    });
    const auto shared = [&](thread::MemoryId m) {
      return m.valid() && q_.memory(m).space == thread::Space::shared;
    };
    Rebuild loads(q_.exprs, [&](ExprId e) {
      if (q_.exprs[e].op != ExprOp::load || !shared(q_.exprs[e].object)) return ExprId();
      std::vector<ExprId> indices(q_.exprs.indices(e).begin(), q_.exprs.indices(e).end());
      indices[0] = plain(indices[0]);
      return q_.exprs.load(q_.exprs[e].object, q_.exprs[e].type, indices);
    });
    for (const Slot& s : slots_of(node(id))) *s.id = shared(s.memory) ? plain(*s.id) : loads(*s.id);
  }

  void reduce_slots(thread::MemoryId m) {
    const thread::Memory& memory = q_.memory(m);
    const int64_t kept = memory.elements / memory.slots * (memory.slots - 1);
    const auto fold = [&](ExprId index) {
      changed = true;
      return q_.exprs.floormod(index, q_.exprs.const_int(kept));
    };
    Rebuild loads(q_.exprs, [&](ExprId e) {
      if (q_.exprs[e].op != ExprOp::load || q_.exprs[e].object != m) return ExprId();
      std::vector<ExprId> indices(q_.exprs.indices(e).begin(), q_.exprs.indices(e).end());
      indices[0] = fold(indices[0]);
      return q_.exprs.load(m, q_.exprs[e].type, indices);
    });
    for (StmtId id : statements(q_))
      for (const Slot& s : slots_of(node(id))) {
        *s.id = loads(*s.id);
        if (s.memory == m) *s.id = fold(*s.id);
      }
  }

  ThreadProgram& q_;
};

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
  probe.memory = Mutator::memory_outside_registers(q);
  probe.index = q.exprs.const_int(INT64_MIN / 16);
  probe.value = q.exprs.const_number(0, q.memory(probe.memory).type);
  probe.predicate = predicate;
  return probe;
}

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
      if (const auto* s = std::get_if<thread::Store>(&node)) {
        thread::Store store = *s;
        store.value = worthless(q_.memory(s->memory).type);
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

const char* mutation_name(Mutation m) {
  switch (m) {
    case Mutation::barrier_removed:
      return "barrier removed";
    case Mutation::wait_weakened:
      return "wait weakened";
    case Mutation::commit_removed:
      return "commit removed";
    case Mutation::slots_reduced:
      return "slots reduced";
    case Mutation::predicate_removed:
      return "predicate removed";
    case Mutation::swizzle_dropped:
      return "swizzle dropped";
  }
  return "?";
}

std::vector<MutationSite> mutation_sites(const ThreadProgram& p) {
  std::vector<MutationSite> list;
  for (StmtId id : statements(p)) {
    const auto& node = p.stmts[id.value].node;
    const auto add = [&](Mutation m, bool loads = false) {
      list.push_back({m, id.value, loads, place(p, id) + (loads ? " loads" : "")});
    };
    if (std::holds_alternative<thread::Barrier>(node)) add(Mutation::barrier_removed);
    if (std::holds_alternative<thread::AsyncCommit>(node)) add(Mutation::commit_removed);
    if (std::holds_alternative<thread::AsyncWait>(node)) add(Mutation::wait_weakened);
    if (std::holds_alternative<thread::Store>(node) || std::holds_alternative<thread::AsyncCopy>(node) ||
        std::holds_alternative<thread::Branch>(node))
      add(Mutation::predicate_removed);
    if (std::holds_alternative<thread::Prefetch>(node) || std::holds_alternative<thread::Barrier>(node))
      continue;
    add(Mutation::predicate_removed, true);
    add(Mutation::swizzle_dropped);
  }
  for (size_t m = 0; m < p.memories.size(); ++m)
    if (p.memories[m].slots > 1)
      list.push_back({Mutation::slots_reduced, static_cast<uint32_t>(m), false, p.memories[m].name});
  return list;
}

std::optional<ThreadProgram> mutate(const ThreadProgram& p, const MutationSite& site) {
  ThreadProgram q = p;
  Mutator mutator(q);
  mutator.apply(site);
  if (!mutator.changed) return std::nullopt;
  return q;
}

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
  const auto* store = std::get_if<thread::Store>(&p.stmts[site.at].node);
  if (!store || !store->predicate.valid()) return std::nullopt;
  ThreadProgram q = p;
  const ExprId there = q.exprs.load(store->memory, p.memory(store->memory).type, std::vector<ExprId>{store->index});
  const auto both = [&](ExprId a, ExprId b) { return q.exprs.binary(ExprOp::logical_and, a, b); };
  const auto number = [&](ExprId e) {
    const ir::DType type = q.exprs.type(e);
    return ir::is_bool(type) ? q.exprs.cast(ir::DType::i32, e) : ir::is_float(type) ? q.exprs.cast(ir::DType::f64, e) : e;
  };
  const auto differ = [&](ExprId a, ExprId b) { return q.exprs.binary(ExprOp::ne, number(a), number(b)); };
  ExprId changes = both(q.exprs.unary(ExprOp::logical_not, store->predicate), differ(store->value, there));
  if (ir::is_float(q.exprs.type(there))) {  // a NaN is no other NaN
    const ExprId both_nan = both(differ(store->value, store->value), differ(there, there));
    changes = both(changes, q.exprs.unary(ExprOp::logical_not, both_nan));
  }
  insert_before(q, q.body, StmtId(site.at), {q.add(far_store(q, changes), "probe")});
  return q;
}

std::optional<ThreadProgram> poisoned(const ThreadProgram& p, const MutationSite& site, int poison) {
  if (site.mutation != Mutation::predicate_removed) return std::nullopt;
  ThreadProgram q = p;
  return Poison(q, poison).apply(site) ? std::optional(std::move(q)) : std::nullopt;
}

std::vector<Mutant> mutants_of(const ThreadProgram& p, size_t limit) {
  std::map<Mutation, std::vector<Mutant>> by_kind;
  for (const MutationSite& site : mutation_sites(p))
    if (auto q = mutate(p, site))
      by_kind[site.mutation].push_back({site.mutation, site.where, std::move(*q)});
  std::vector<Mutant> list;
  for (auto& [kind, all] : by_kind) {
    const size_t wanted = std::min(limit, all.size());
    for (size_t i = 0; i < wanted; ++i) list.push_back(std::move(all[i * all.size() / wanted]));
  }
  return list;
}

MutantReport judge_mutants(const std::vector<Mutant>& mutants,
                           const std::function<MutantOutcome(const ThreadProgram&)>& run) {
  MutantReport report;
  for (const Mutant& m : mutants) {
    MutantReport::Row& row = report.rows[m.mutation];
    ++row.mutants;
    const MutantOutcome outcome = run(m.program);
    std::set<std::string> kinds;
    for (FindingKind k : outcome.findings) kinds.insert(finding_name(k));
    for (const std::string& k : kinds) ++row.kinds[k];
    if (!kinds.empty()) {
      ++row.by_findings;
    } else if (outcome.values_differ) {
      ++row.by_values;
    } else {
      ++row.survived;
      row.survivors.push_back(m.where);
    }
  }
  return report;
}

int MutantReport::survivors() const {
  int n = 0;
  for (const auto& [kind, row] : rows) n += row.survived;
  return n;
}

std::string MutantReport::to_text() const {
  std::string text;
  for (const auto& [mutation, row] : rows) {
    text += std::string(mutation_name(mutation)) + ": " + std::to_string(row.mutants) + " mutants, " +
            std::to_string(row.by_findings) + " killed by findings, " + std::to_string(row.by_values) +
            " by values only, " + std::to_string(row.survived) + " survive;";
    for (const auto& [kind, n] : row.kinds) text += " " + kind + " " + std::to_string(n);
    text += "\n";
    for (const std::string& s : row.survivors) text += "  survives: " + s + "\n";
  }
  return text;
}

}  // namespace tilegen::sim::test
