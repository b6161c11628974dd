// Instructions that all lanes of a warp execute together: shuffles, matrix loads and stores, matrix
// instructions.
#include "sim/warp_instructions.h"

#include <algorithm>
#include <cstring>

#include "sim/cluster_run.h"
#include "sim/element_check.h"
#include "sim/memory_access.h"
#include "sim/run_findings.h"
#include "sim/sparse_operand.h"
#include "target/operand_matrices.h"

namespace tilegen::sim {

using thread::Space;

namespace {

constexpr size_t kMaxOperand = 1024;  // elements of one operand of a warp's instruction

LaneMask bit(int lane) { return LaneMask{1} << lane; }

constexpr int kRows = target::kMatrixRows;
constexpr int kRowBytes = target::kMatrixRowBytes;
constexpr int kLaneBytes = 4;  // of one matrix that a lane holds
constexpr int kUnitBytes = 2;  // that a transposed load keeps together

void gather(ClusterRun& run, Warp& w, uint32_t access, const MemoryView& m, int64_t index,
            const std::vector<uint32_t>& table, double* to) {
  const bool floating = ir::is_float(m.type);
  for (size_t r = 0; r * w.width() < table.size(); ++r) {
    const Cell* from = read_register(run, w, access, w.mask, m, index + static_cast<int64_t>(r));
    const uint32_t* at = &table[r * w.width()];
    for (int l = 0; l < w.lanes; ++l)
      if (at[l] != kNothing) to[at[l]] = floating ? from[l].f : static_cast<double>(from[l].i);
  }
}

}  // namespace

void shuffle(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::Shuffle>(s);
  converged(run, w, s, FindingKind::divergent_instruction);
  ++run.counters.shuffles;
  const Operand value = w.values.operand(s.y), lane = w.values.operand(s.z);
  const auto finding = [&](FindingKind kind, int at, std::string detail) {
    Event e;
    e.kind = kind;
    e.stmt = s.stmt;
    e.block = run.block;
    e.thread = thread_of(w, at);
    e.detail = std::move(detail);
    report(run, std::move(e));
  };
  std::array<Cell, kMaxLanes> result{};
  const int first = std::countr_zero(w.mask);
  for (int l = 0; l < w.lanes; ++l) {
    if ((w.mask & bit(l)) == 0) continue;
    int64_t from = lane[l].i;
    if (n.mode == thread::Shuffle::Mode::butterfly) {
      if (from != lane[first].i)
        finding(FindingKind::divergent_operand, l,
                "the lane mask of a butterfly differs from that of lane " + std::to_string(first));
      from ^= l;
    }
    if (from < 0 || from >= w.lanes) {
      finding(FindingKind::out_of_bounds, l, "lane " + std::to_string(from) + " does not exist");
      from &= w.lanes - 1;
    }
    result[static_cast<size_t>(l)] = value[static_cast<int>(from)];
  }
  write_lanes(run, w, s.access, w.mask, w.values.operand(s.x), {result.data(), 1}, true);
}

void vote(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::Vote>(s);
  converged(run, w, s, FindingKind::divergent_instruction);
  ++run.counters.votes;
  const Operand value = w.values.operand(s.y);
  const int group = static_cast<int>(n.lanes);
  std::array<Cell, kMaxLanes> result{};
  for (int l = 0; l < w.lanes; ++l) {
    const int first = l / group * group;
    int64_t word = 0;
    for (int i = 0; i < group && first + i < w.lanes; ++i) {
      if ((w.mask & bit(first + i)) == 0) continue;
      const int64_t of = value[first + i].i;
      const bool holds = n.mode == thread::Vote::Mode::match ? of == value[l].i : of != 0;
      word |= int64_t{holds} << i;
    }
    result[static_cast<size_t>(l)].i = n.mode == thread::Vote::Mode::any ? int64_t{word != 0} : word;
  }
  write_lanes(run, w, s.access, w.mask, w.values.operand(s.x), {result.data(), 1}, true);
}

void fetch_tile(ClusterRun& run, Warp& w, const Step& s) {
  std::array<Cell, kMaxLanes> number{};
  for (int l = 0; l < w.lanes; ++l)
    if ((w.mask & bit(l)) != 0) number[static_cast<size_t>(l)].i = run.launch.tile_order->take(run.block);
  write_lanes(run, w, s.access, w.mask, w.values.operand(s.x), {number.data(), 1}, true);
}

void cluster_load(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::ClusterLoad>(s);
  const MemoryView &registers = run.memory(n.dst), &shared = run.memory(n.src);
  const int64_t first = scalar(w, s.x), bytes = int64_t{n.elements} * shared.element;
  if (!register_range(run, w, s.access, registers, first, n.elements)) return;
  Addresses a = locate(run, w, s.access2, w.mask, w.values.operand(s.y), true);
  check_alignment(run, w, s.access2, a, bytes);
  const Operand block = w.values.operand(s.z);
  const uint32_t epoch = run.order.epoch(w.index);
  for (int l = 0; l < w.lanes; ++l) {
    if ((a.lanes & bit(l)) == 0) continue;
    const int64_t rank = block[l].i;
    if (rank < 0 || rank >= run.program.cluster) {
      step_finding(run, FindingKind::out_of_bounds, s.stmt, thread_of(w, l),
                   "there is no block " + std::to_string(rank) + " of the cluster");
      a.lanes &= ~bit(l);
      continue;
    }
    a.at[static_cast<size_t>(l)] += (rank - w.rank) * run.arena_stride;
    if (rank != w.rank) run.reached[{w.index, static_cast<int>(rank)}] = {epoch, s.stmt, thread_of(w, l)};
  }
  count_access(run, s.access2, shared, a, bytes);
  check_history(run, w, s.access2, shared, a, bytes, false);
  for (int e = 0; e < n.elements; ++e) {
    Cell* to = write_register(run, w, s.access, w.mask, registers, first + e);
    for (int l = 0; l < w.lanes; ++l)
      if ((a.lanes & bit(l)) != 0)
        to[l] = decode_one(registers.type,
                           run.arena.data() + a.at[static_cast<size_t>(l)] + int64_t{e} * shared.element);
  }
}

ir::ExprOp operation_of(thread::Combine combine) {
  switch (combine) {
    case thread::Combine::sum:
      return ir::ExprOp::add;
    case thread::Combine::max:
      return ir::ExprOp::max;
    case thread::Combine::min:
      return ir::ExprOp::min;
    case thread::Combine::product:
      return ir::ExprOp::mul;
    case thread::Combine::bit_and:
      return ir::ExprOp::bit_and;
    case thread::Combine::bit_or:
      return ir::ExprOp::bit_or;
    case thread::Combine::bit_xor:
      return ir::ExprOp::bit_xor;
  }
  return ir::ExprOp::add;
}

void lane_reduce(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::LaneReduce>(s);
  const MemoryView &dst = run.memory(n.dst), &src = run.memory(n.src);
  const int64_t to = scalar(w, s.x), from = scalar(w, s.y);
  if (!register_range(run, w, s.access, dst, to, 1) || !register_range(run, w, s.access2, src, from, n.width))
    return;
  const ir::ExprOp op = operation_of(n.combine);
  const bool floating = ir::is_float(dst.type);
  const auto scalar_of = [&](Cell c) {
    return floating ? ir::ScalarValue{dst.type, 0, c.f} : ir::ScalarValue{dst.type, c.i, 0};
  };
  std::array<Cell, kMaxLanes> result{};
  for (int64_t i = n.accumulate ? -1 : 0; i < n.width; ++i) {
    const Cell* x = i < 0 ? read_register(run, w, s.access, w.mask, dst, to)
                          : read_register(run, w, s.access2, w.mask, src, from + i);
    for (int l = 0; l < w.lanes; ++l) {
      Cell& r = result[static_cast<size_t>(l)];
      const bool first = i == (n.accumulate ? -1 : 0);
      if (first) {
        r = x[l];
        continue;
      }
      const ir::ScalarValue v = ir::eval_binary(op, dst.type, scalar_of(r), scalar_of(x[l]));
      floating ? void(r.f = v.f) : void(r.i = v.i);
    }
  }
  write_lanes(run, w, s.access, w.mask, w.values.operand(s.x), {result.data(), 1}, true);
}

// Matrix i, row r is named by lane 8 * i + r; lane l holds the four bytes from 4 * (l % 4) of row l / 4, or,
// transposed, the two bytes of unit l / 4 of the rows 2 * (l % 4) and the next.
void matrices(ClusterRun& run, Warp& w, const Step& s, bool load) {
  converged(run, w, s, FindingKind::divergent_instruction);
  const auto& stmt = run.program.stmts[s.stmt].node;
  const bool transpose =
      load ? std::get<thread::LoadMatrix>(stmt).transpose : std::get<thread::StoreMatrix>(stmt).transpose;
  const int count =
      load ? std::get<thread::LoadMatrix>(stmt).matrices : std::get<thread::StoreMatrix>(stmt).matrices;
  const MemoryView& registers = run.memory(run.code.accesses[s.access].memory);
  const MemoryView& shared = run.memory(run.code.accesses[s.access2].memory);
  const int per_lane = kLaneBytes / shared.element;
  const int64_t first = scalar(w, s.x);
  if (!register_range(run, w, s.access, registers, first, int64_t{count} * per_lane)) return;
  const LaneMask rows = count * kRows >= w.lanes ? w.all : bit(count * kRows) - 1;
  const Addresses a = locate(run, w, s.access2, rows & w.mask, w.values.operand(s.y), true);
  check_alignment(run, w, s.access2, a, kRowBytes);
  count_access(run, s.access2, shared, a, kRowBytes);
  check_history(run, w, s.access2, shared, a, kRowBytes, true);
  const StatementPlaces* places = statement_places(run, s.stmt);
  const bool noted = places != nullptr && places->product;
  for (int i = 0; i < count; ++i)
    for (int e = 0; e < per_lane; ++e) {
      const int64_t index = first + int64_t{i} * per_lane + e;
      const Cell* from = load ? nullptr : read_register(run, w, s.access, w.mask, registers, index);
      Cell* to = load ? write_register(run, w, s.access, w.mask, registers, index) : nullptr;
      for (int l = 0; l < w.lanes; ++l) {
        if ((w.mask & bit(l)) == 0) continue;
        const int64_t within = int64_t{e} * shared.element;  // of the four bytes
        const int row = kRows * i + (transpose ? 2 * (l % 4) + static_cast<int>(within / kUnitBytes) : l / 4);
        const int64_t byte =
            transpose ? kUnitBytes * (l / 4) + within % kUnitBytes : kLaneBytes * (l % 4) + within;
        if ((a.lanes & bit(row)) == 0) {
          if (load) to[l].i = 0;
          continue;
        }
        if (load && noted)
          w.origins[(registers.first_register + static_cast<size_t>(index)) * w.width() +
                    static_cast<size_t>(l)] =
              origin_of(run, w, run.code.accesses[s.access2].memory, l,
                        (run.in_arena(a.at[static_cast<size_t>(row)] + byte) - shared.arena_offset) /
                            shared.element);
        std::byte* at = run.arena.data() + a.at[static_cast<size_t>(row)] + byte;
        if (load)
          to[l] = decode_one(registers.type, at);
        else
          encode_one(registers.type, from[l], at);
      }
    }
}

void mma(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::WarpMma>(s);
  converged(run, w, s, FindingKind::divergent_instruction);
  ++run.counters.matrix_instructions;
  ++w.matrix_instructions;
  const AtomTables& tables = run.code.atoms[s.atom];
  const target::MmaAtom& atom = *tables.atom;
  const MemoryView &ma = run.memory(n.a), &mb = run.memory(n.b), &mc = run.memory(n.c);
  const int64_t ia = scalar(w, s.x), ib = scalar(w, s.y), ic = scalar(w, s.z);
  if (!register_range(run, w, s.access_a, ma, ia, n.a_registers) ||
      !register_range(run, w, s.access_b, mb, ib, n.b_registers) ||
      !register_range(run, w, s.access, mc, ic, n.c_registers))
    return;
  const int64_t places_at = atom.sparse() ? scalar(w, s.coordinates[0]) : 0;
  if (atom.sparse() && !register_range(run, w, s.access_places, run.memory(n.places), places_at, 1)) return;
  if (const StatementPlaces* places = statement_places(run, s.stmt); places != nullptr && places->product)
    check_product(run, w, s);
  std::array<double, kMaxOperand> a, b, c;
  gather(run, w, s.access_a, ma, ia, tables.a, a.data());
  gather(run, w, s.access_b, mb, ib, tables.b, b.data());
  gather(run, w, s.access, mc, ic, tables.c, c.data());
  if (atom.sparse()) {
    const Cell* words = read_register(run, w, s.access_places, w.mask, run.memory(n.places), places_at);
    std::array<size_t, kMaxOperand> places{};  // of A's values
    std::array<double, kMaxOperand> taken;
    read_places(
        tables.places, w.width(), kNothing, [&](size_t l) { return words[l].i; }, places.data());
    multiply_sparse(atom.meaning, {atom.m, atom.n, atom.a_k()}, places.data(), a.data(), b.data(), c.data(),
                    taken.data());
  } else {
    atom.meaning({atom.m, atom.n, atom.k}, a.data(), b.data(), c.data());
  }
  const bool floating = ir::is_float(mc.type);
  for (int r = 0; r < n.c_registers; ++r) {
    Cell* to = write_register(run, w, s.access, w.mask, mc, ic + r);
    const uint32_t* at = &tables.c[static_cast<size_t>(r) * w.width()];
    for (int l = 0; l < w.lanes; ++l) {
      if ((w.mask & bit(l)) == 0 || at[l] == kNothing) continue;
      floating ? void(to[l].f = c[at[l]]) : void(to[l].i = static_cast<int64_t>(c[at[l]]));
    }
  }
}

}  // namespace tilegen::sim
