#include "lower/host/prefetch_blocks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "thread/perfect_nest.h"

namespace tilegen::lower {

using thread::PerfectNest;

using ir::ExprId;
using thread::ThreadProgram;

namespace {

// Loads of global memory without a predicate, and the work, of a nest's stores.
struct NestFacts {
  std::vector<ExprId> global_loads;
  int work = 0;
  bool global = false;  // reads or writes global memory at all
};

int work_of(const ir::ExprNode& n) {
  if (ir::expr_class(n.op) == ir::ExprClass::math)
    return n.op == ir::ExprOp::sqrt || n.op == ir::ExprOp::div ? 4 : 12;
  return ir::expr_arity(n.op) > 0 && ir::is_float(n.type) ? 1 : 0;
}

void collect(const ThreadProgram& p, ExprId id, std::set<ExprId>& seen, NestFacts& facts) {
  if (!id || !seen.insert(id).second) return;
  const ir::ExprNode& n = p.exprs[id];
  facts.work += work_of(n);
  for (ExprId operand : {n.a, n.b, n.c}) collect(p, operand, seen, facts);
  if (n.op != ir::ExprOp::load || p.memory(n.object).space != thread::Space::global) return;
  facts.global = true;
  if (n.index_count == 1) facts.global_loads.push_back(id);
}

NestFacts facts_of(const ThreadProgram& p, const PerfectNest& nest) {
  NestFacts facts;
  std::set<ExprId> seen;
  for (thread::StmtId s : nest.stores) {
    const auto& store = std::get<thread::Store>(p.stmts[s.value].node);
    collect(p, store.value, seen, facts);
    facts.global = facts.global || p.memory(store.memory).space == thread::Space::global;
  }
  return facts;
}

constexpr int kMinimumWork = 8;  // a nest on global memory lighter than this is itself bound by memory

}  // namespace

void prefetch_blocks(ThreadProgram& p) {
  if (p.block_vars.empty() || p.threads != 1) return;
  const size_t count = p.body.size();
  std::vector<std::optional<PerfectNest>> nests;
  std::vector<NestFacts> facts(count);
  for (size_t i = 0; i < count; ++i) {
    nests.push_back(thread::perfect_nest(p, p.body[i]));
    if (nests[i]) facts[i] = facts_of(p, *nests[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    const auto& reader = nests[i];
    if (!reader || reader->loops.size() < 2) continue;
    const NestFacts& reads = facts[i];
    if (reads.global_loads.empty()) continue;
    size_t at = i;  // of the carrier
    int most_work = 0;
    for (size_t k = i + 1; k < count; ++k) {
      if (facts[k].work <= most_work || (facts[k].global && facts[k].work < kMinimumWork)) continue;
      if (!nests[k] || !thread::same_loops(p, *reader, *nests[k])) continue;
      most_work = facts[k].work;
      at = k;
    }
    if (at == i) continue;
    const auto& carrier = nests[at];
    // One prefetch a vector: the lane variable reads 0.
    std::map<ir::VarId, ExprId> map = thread::loop_variables(p, *reader, *carrier);
    const auto& innermost = std::get<thread::Loop>(p.stmts[reader->loops.back().value].node);
    if (innermost.form != thread::LoopForm::vectorized) continue;
    map[innermost.var] = p.exprs.const_int(0);
    thread::VarSubstitution here(p.exprs, map);
    map[p.block_vars.back()] = p.exprs.add(p.exprs.var(p.block_vars.back()), int64_t{1});
    thread::VarSubstitution ahead(p.exprs, std::move(map));
    thread::Block added;
    for (ExprId load : reads.global_loads) {
      ExprId index = p.exprs.indices(load)[0];
      if (thread::reads_memory(p, index)) continue;
      ExprId next = ahead(index);
      if (next == here(index)) continue;  // the next block reads the same tile
      added.push_back(
          p.add(thread::Prefetch{p.exprs[load].object, next, 2}, p.stmts[p.body[i].value].origin));
    }
    auto& parent = std::get<thread::Loop>(p.stmts[carrier->loops[carrier->loops.size() - 2].value].node);
    parent.body.insert(parent.body.begin(), added.begin(), added.end());
    if (!added.empty()) nests[at].reset();  // perfect no more
  }
}

}  // namespace tilegen::lower
