#include "mutants.h"

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

// Statements that run, with the block that holds each.
void walk(ThreadProgram& p, thread::Block& block, const std::function<void(thread::Block&, size_t)>& visit) {
  for (size_t i = 0; i < block.size(); ++i) {
    visit(block, i);
    auto& node = p.stmts[block[i].value].node;
    if (auto* loop = std::get_if<thread::Loop>(&node)) walk(p, loop->body, visit);
    if (auto* branch = std::get_if<thread::Branch>(&node)) {
      walk(p, branch->then_body, visit);
      walk(p, branch->else_body, visit);
    }
  }
}

std::vector<StmtId> statements(const ThreadProgram& p) {
  ThreadProgram copy = p;
  std::vector<StmtId> list;
  walk(copy, copy.body, [&](thread::Block& b, size_t i) { list.push_back(b[i]); });
  return list;
}

class Mutator {
 public:
  explicit Mutator(const ThreadProgram& p) : p_(p) {}

  std::vector<Mutant> run() {
    for (StmtId id : statements(p_)) {
      const auto& node = p_.stmts[id.value].node;
      if (std::holds_alternative<thread::Barrier>(node)) remove(Mutation::barrier_removed, id);
      if (std::holds_alternative<thread::AsyncCommit>(node)) remove(Mutation::commit_removed, id);
      if (std::holds_alternative<thread::AsyncWait>(node)) weaken(id);
      remove_predicates(id);
      drop_swizzles(id);
    }
    for (size_t m = 0; m < p_.memories.size(); ++m)
      if (p_.memories[m].slots > 1) reduce_slots(thread::MemoryId(m));
    return std::move(list_);
  }

 private:
  std::string place(StmtId id) const {
    return p_.stmts[id.value].origin + " (statement " + std::to_string(id.value) + ")";
  }
  void add(Mutation m, std::string where, ThreadProgram q) {
    if (print_thread_program(q) != print_thread_program(p_))
      list_.push_back({m, std::move(where), std::move(q)});
  }

  void remove(Mutation m, StmtId id) {
    ThreadProgram q = p_;
    q.stmts[id.value].node = thread::Prefetch{some_memory(), q.exprs.const_int(0), 0};  // does nothing
    add(m, place(id), std::move(q));
  }
  thread::MemoryId some_memory() const {
    for (size_t m = 0; m < p_.memories.size(); ++m)
      if (p_.memories[m].space != thread::Space::local) return thread::MemoryId(m);
    return thread::MemoryId(size_t{0});
  }

  void weaken(StmtId id) {
    ThreadProgram q = p_;
    ++std::get<thread::AsyncWait>(q.stmts[id.value].node).pending;
    add(Mutation::wait_weakened, place(id), std::move(q));
  }

  void remove_predicates(StmtId id) {
    {
      ThreadProgram q = p_;
      auto& node = q.stmts[id.value].node;
      if (auto* s = std::get_if<thread::Store>(&node)) s->predicate = {};
      if (auto* s = std::get_if<thread::AsyncCopy>(&node)) s->predicate = {};
      if (auto* s = std::get_if<thread::Branch>(&node))
        s->condition = q.exprs.binary(ExprOp::eq, q.exprs.const_int(0), q.exprs.const_int(0));
      add(Mutation::predicate_removed, place(id), std::move(q));
    }
    ThreadProgram q = p_;
    for (const Slot& s : slots_of(q.stmts[id.value].node))
      *s.id = Rebuild(q.exprs, [&q](ExprId e) {
        const auto indices = q.exprs.indices(e);
        if (q.exprs[e].op != ExprOp::load || indices.size() < 2) return ExprId();
        const ExprId index[] = {indices[0]};
        return q.exprs.load(q.exprs[e].object, q.exprs[e].type, index);
      })(*s.id);
    add(Mutation::predicate_removed, place(id) + " loads", std::move(q));
  }

  // Without the XOR of the index itself; and of the indices of loads of shared memory.
  void drop_swizzles(StmtId id) {
    ThreadProgram q = p_;
    Rebuild plain(q.exprs,
                  [&q](ExprId e) { return q.exprs[e].op == ExprOp::bit_xor ? q.exprs[e].a : ExprId(); });
    const auto shared = [&](thread::MemoryId m) {
      return m.valid() && q.memory(m).space == thread::Space::shared;
    };
    Rebuild loads(q.exprs, [&](ExprId e) {
      if (q.exprs[e].op != ExprOp::load || !shared(q.exprs[e].object)) return ExprId();
      std::vector<ExprId> indices(q.exprs.indices(e).begin(), q.exprs.indices(e).end());
      indices[0] = plain(indices[0]);
      return q.exprs.load(q.exprs[e].object, q.exprs[e].type, indices);
    });
    for (const Slot& s : slots_of(q.stmts[id.value].node))
      *s.id = shared(s.memory) ? plain(*s.id) : loads(*s.id);
    add(Mutation::swizzle_dropped, place(id), std::move(q));
  }

  void reduce_slots(thread::MemoryId m) {
    ThreadProgram q = p_;
    const int64_t kept = q.memory(m).elements / q.memory(m).slots * (q.memory(m).slots - 1);
    const auto fold = [&](ExprId index) { return q.exprs.floormod(index, q.exprs.const_int(kept)); };
    Rebuild loads(q.exprs, [&](ExprId e) {
      if (q.exprs[e].op != ExprOp::load || q.exprs[e].object != m) return ExprId();
      std::vector<ExprId> indices(q.exprs.indices(e).begin(), q.exprs.indices(e).end());
      indices[0] = fold(indices[0]);
      return q.exprs.load(m, q.exprs[e].type, indices);
    });
    for (StmtId id : statements(p_))
      for (const Slot& s : slots_of(q.stmts[id.value].node)) {
        *s.id = loads(*s.id);
        if (s.memory == m) *s.id = fold(*s.id);
      }
    add(Mutation::slots_reduced, p_.memory(m).name, std::move(q));
  }

  const ThreadProgram& p_;
  std::vector<Mutant> list_;
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

std::vector<Mutant> mutants_of(const ThreadProgram& p, size_t limit) {
  std::map<Mutation, std::vector<Mutant>> by_kind;
  for (Mutant& m : Mutator(p).run()) by_kind[m.mutation].push_back(std::move(m));
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
