#include "mutants.h"

#include <algorithm>
#include <optional>
#include <set>

#include "mutant_rewrite.h"

namespace tilegen::sim::test {

namespace {

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
