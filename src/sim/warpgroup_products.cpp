// Matrix products of warpgroups: issued when the four warps have met, done at some time before the wait that
// covers them, with registers that nobody else may touch meanwhile.
#include "sim/warpgroup_products.h"

#include <algorithm>

#include "sim/cluster_run.h"
#include "sim/memory_access.h"
#include "sim/run_findings.h"
#include "sim/sparse_operand.h"

namespace tilegen::sim {

namespace {

size_t in_group(int warp) { return static_cast<size_t>(warp % kGroupWarps); }

// The product has the registers of one warp from now on. False when they do not exist.
bool take_registers(ClusterRun& run, Warp& w, uint32_t access, thread::MemoryId id, int64_t first,
                    int64_t count, bool read, uint32_t work) {
  const MemoryView& m = run.memory(id);
  if (!register_range(run, w, access, m, first, count)) return false;
  const auto begin = m.first_register + static_cast<size_t>(first), end = begin + static_cast<size_t>(count);
  for (size_t at = begin; at < end; ++at) {
    const int64_t index = static_cast<int64_t>(at) - m.first_register;
    if (w.touched_at[at] == w.fences + 1 || w.fences == 0)
      access_finding(
          run, FindingKind::product_not_fenced, access, first_thread(w, w.mask), index,
          w.fences == 0 ? "the warp has run no fence" : "the register was touched since the newest fence");
    if (read && w.in_product[at] == 0 && w.written[at] != w.all)
      access_finding(run, FindingKind::uninitialised_read, access, first_thread(w, w.all & ~w.written[at]),
                     index, "nothing has written this register of the thread");
    w.in_product[at] = work;
  }
  w.has_products = true;
  return true;
}

void judge_registers(ClusterRun& run, int number, Product& p) {
  const auto& n = run.node<thread::WarpgroupMma>(*p.step);
  const WarpgroupTables& atom = run.code.warpgroup_atoms[p.step->atom];
  for (int i = 0; i < kGroupWarps; ++i) {
    Warp& w = run.warps[static_cast<size_t>(number * kGroupWarps + i)];
    const auto c_registers = static_cast<int64_t>(atom.c.size()) / kGroupThreads;
    p.sound &= take_registers(run, w, p.step->access, n.c, p.c, c_registers, p.accumulate, p.work);
    if (n.sparse())
      p.sound &= take_registers(run, w, p.step->access_places, n.places, p.places,
                                static_cast<int64_t>(n.a_steps.size()), true, p.work);
    if (!run.memory(n.a).in_registers) continue;
    for (int64_t step : n.a_steps)
      p.sound &= take_registers(run, w, p.step->access_a, n.a, p.a + step,
                                static_cast<int64_t>(atom.a.size()) / kGroupThreads, true, p.work);
  }
}

// Of A's values of one step.
void places_of(ClusterRun& run, int number, const Product& p, size_t step, std::vector<size_t>& places) {
  const auto& n = run.node<thread::WarpgroupMma>(*p.step);
  const MemoryView& m = run.memory(n.places);
  const size_t at = m.first_register + static_cast<size_t>(p.places) + step;
  const auto word = [&](size_t thread) {
    const Warp& w = run.warps[static_cast<size_t>(number * kGroupWarps) + thread / run.width()];
    return w.registers[at * w.width() + thread % w.width()].i;
  };
  read_places(run.code.warpgroup_atoms[p.step->atom].places, kGroupThreads, kNothing, word, places.data());
}

// All steps, ascending, on C as it is in the registers.
void compute(ClusterRun& run, int number, Product& p) {
  p.computed = true;
  if (!p.sound) return;
  const auto& n = run.node<thread::WarpgroupMma>(*p.step);
  const WarpgroupTables& tables = run.code.warpgroup_atoms[p.step->atom];
  const target::WarpgroupAtom& atom = *tables.atom;
  const MemoryView &ma = run.memory(n.a), &mc = run.memory(n.c);
  const int64_t rows = 64, columns = tables.n;
  const auto room = [](int64_t elements) { return std::vector<double>(static_cast<size_t>(elements)); };
  std::vector<double> a = room(rows * atom.a_k()), b = room(columns * atom.k), c = room(rows * columns),
                      taken = room(atom.sparse() ? columns * atom.a_k() : 0);
  std::vector<size_t> places(atom.sparse() ? a.size() : 0);
  // Between the registers of the four warps and a matrix.
  const auto each_register = [&](const MemoryView& m, int64_t first, const std::vector<uint32_t>& table,
                                 auto f) {
    for (size_t r = 0; r * kGroupThreads < table.size(); ++r)
      for (int i = 0; i < kGroupWarps; ++i) {
        Warp& w = run.warps[static_cast<size_t>(number * kGroupWarps + i)];
        const size_t at = m.first_register + static_cast<size_t>(first) + r;
        f(w, at, &table[r * kGroupThreads + static_cast<size_t>(i) * w.width()]);
      }
  };
  const auto gather = [&](const MemoryView& m, int64_t first, const std::vector<uint32_t>& table,
                          double* to) {
    const bool floating = ir::is_float(m.type);
    each_register(m, first, table, [&](Warp& w, size_t at, const uint32_t* place) {
      const Cell* from = &w.registers[at * w.width()];
      for (int l = 0; l < w.lanes; ++l)
        if (place[l] != kNothing) to[place[l]] = floating ? from[l].f : static_cast<double>(from[l].i);
    });
  };
  if (p.accumulate) gather(mc, p.c, tables.c, c.data());
  for (size_t step = 0; step < n.b_steps.size(); ++step) {
    if (ma.in_registers)
      gather(ma, p.a + n.a_steps[step], tables.a, a.data());
    else
      read_operand(run, p, true, step, a.data());
    read_operand(run, p, false, step, b.data());
    const target::MmaExtents shape = {static_cast<int>(rows), static_cast<int>(columns), atom.a_k()};
    if (!atom.sparse()) {
      atom.meaning(shape, a.data(), b.data(), c.data());
      continue;
    }
    places_of(run, number, p, step, places);
    multiply_sparse(atom.meaning, shape, places.data(), a.data(), b.data(), c.data(), taken.data());
  }
  const bool floating = ir::is_float(mc.type);
  each_register(mc, p.c, tables.c, [&](Warp& w, size_t at, const uint32_t* place) {
    Cell* to = &w.registers[at * w.width()];
    w.written[at] = w.all;
    for (int l = 0; l < w.lanes; ++l)
      if (place[l] != kNothing)
        floating ? void(to[l].f = c[place[l]]) : void(to[l].i = static_cast<int64_t>(c[place[l]]));
  });
}

void issue(ClusterRun& run, int number) {
  Warpgroup& g = run.groups[static_cast<size_t>(number)];
  g.here = 0;
  Product p = g.next;
  const auto& n = run.node<thread::WarpgroupMma>(*p.step);
  const int party = run.engines.product(number);
  p.work = run.order.epoch(party);
  run.asked_by[static_cast<size_t>(party)] = number * kGroupThreads;
  run.counters.matrix_instructions += static_cast<int64_t>(n.b_steps.size());
  judge_registers(run, number, p);
  if (!run.memory(n.a).in_registers) judge_operand(run, number, p, true);
  judge_operand(run, number, p, false);
  run.order.advance(party);
  if (!run.options.async_latest) compute(run, number, p);
  g.under_way.push_back(p);
  for (int i = 0; i < kGroupWarps; ++i)
    run.warps[static_cast<size_t>(number * kGroupWarps + i)].state = WarpState::ready;
}

}  // namespace

void warpgroup_mma(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::WarpgroupMma>(s);
  converged(run, w, s, FindingKind::divergent_instruction);
  if (w.mask == 0) return;
  const int number = w.index / kGroupWarps;
  const MemoryView &a = run.memory(n.a), &b = run.memory(n.b);
  Product mine;
  mine.step = &s;
  mine.a = same_for_lanes(run, w, s, s.x, "the place of A");
  mine.b =
      run.arena_begin(w.rank) + b.arena_offset + same_for_lanes(run, w, s, s.y, "the place of B") * b.element;
  mine.c = same_for_lanes(run, w, s, s.z, "the place of C");
  if (n.sparse()) mine.places = same_for_lanes(run, w, s, s.coordinates[1], "the place of A's places");
  if (!a.in_registers) mine.a = run.arena_begin(w.rank) + a.arena_offset + mine.a * a.element;
  const Ref accumulate = s.coordinates[0];
  mine.accumulate = !accumulate || same_for_lanes(run, w, s, accumulate, "whether to accumulate") != 0;
  if ((number + 1) * kGroupWarps > static_cast<int>(run.warps.size()))
    return step_finding(run, FindingKind::divergent_instruction, s.stmt, first_thread(w, w.mask),
                        "the block has no four warps here");
  Warpgroup& g = run.groups[static_cast<size_t>(number)];
  if (g.here == 0) {
    g.next = mine;
  } else if (g.next.step != &s || g.next.a != mine.a || g.next.b != mine.b || g.next.c != mine.c ||
             g.next.places != mine.places || g.next.accumulate != mine.accumulate) {
    step_finding(run, FindingKind::divergent_operand, s.stmt, first_thread(w, w.mask),
                 "the warps of the warpgroup disagree about the product or its operands");
  }
  g.next.group[in_group(w.index)] = w.product_commits;
  g.here |= 1u << in_group(w.index);
  w.state = WarpState::waiting;
  w.awaited = Awaited::warpgroup;
  if (g.here == (1u << kGroupWarps) - 1) issue(run, number);
}

// Products of finished groups are done, and their operands read. Registers are given back where the wait
// names them.
void warpgroup_wait(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::WarpgroupWait>(s);
  converged(run, w, s, FindingKind::divergent_instruction);
  const int number = w.index / kGroupWarps, party = run.engines.product(number);
  Warpgroup& g = run.groups[static_cast<size_t>(number)];
  uint32_t first_left = run.order.epoch(party);
  for (Product& p : g.under_way) {
    if (p.group[in_group(w.index)] + n.pending >= w.product_commits) {
      first_left = p.work;
      break;
    }
    if (!p.computed) compute(run, number, p);
    p.waited[in_group(w.index)] = true;
  }
  run.order.see(w.index, w.mask, w.mask == w.all, party, first_left - 1);
  std::erase_if(g.under_way, [](const Product& p) {
    return std::all_of(p.waited.begin(), p.waited.end(), [](bool waited) { return waited; });
  });
  for (size_t id = 0; id < run.launch.memories.size(); ++id) {
    const MemoryView& m = run.launch.memories[id];
    if (!m.in_registers) continue;
    // A's registers are only read: code generation has nothing to keep after the wait.
    const bool named =
        std::find(n.registers.begin(), n.registers.end(), thread::MemoryId(id)) != n.registers.end();
    for (size_t at = m.first_register; at < m.first_register + static_cast<size_t>(m.elements); ++at)
      if (w.in_product[at] < first_left && (named || run.launch.product_inputs[id])) w.in_product[at] = 0;
  }
}

}  // namespace tilegen::sim
