// Engine, atom, warp split and operand layouts of a gemm on NVIDIA GPUs.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "layout/bank_model.h"
#include "ops/gemm_plan.h"
#include "ops/gemm_spread.h"
#include "support/checked.h"

namespace tilegen::ops {

using ir::TileOp;
using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kThread;
using layout::Layout;
using target::MmaAtom;
using target::Target;

namespace {

std::string number(int64_t v) { return std::to_string(v); }

// What a warp does: atoms along each dimension.
struct WarpTile {
  int64_t m = 0, n = 0, k = 0;
};
WarpTile warp_tile(const GemmShape& s, const MmaAtom& atom, const WarpGrid& g) {
  return {ceil_div(s.m, g.m * atom.m), ceil_div(s.n, g.n * atom.n), ceil_div(s.k, int64_t{atom.k})};
}

bool divides(const GemmShape& s, const MmaAtom& atom, const WarpGrid& g) {
  return s.m % (g.m * atom.m) == 0 && s.n % (g.n * atom.n) == 0 && s.k % atom.k == 0;
}

// An f16 C is summed in f32 and rounded once, which no instruction with f16 accumulators does.
bool serves(const MmaAtom& atom, const GemmShape& s) {
  return (s.tf32 || !atom.tf32) && atom.a == s.a && atom.b == s.b &&
         atom.c == (s.c == ir::DType::f16 ? ir::DType::f32 : s.c);
}

// ---- cost

struct Cost {
  double cycles = 0;
  int64_t registers = 0;
  int64_t own_registers = 0;  // of them
  bool operator<(const Cost& o) const { return cycles < o.cycles; }
};

// Where an operand is read from.
struct Source {
  bool shared = true;
  bool along_k = true;  // elements along k lie beside each other
};

// Wavefronts of shared memory that a warp takes for one k step of an operand's atom.
int64_t load_wavefronts(const MmaAtom& atom, int side, const Source& from) {
  const Fragment& f = side == 0 ? atom.a_layout : atom.b_layout;
  const int64_t bytes = ir::dtype_bytes(side == 0 ? atom.a : atom.b);
  if (!is_multiply_add(atom) && bytes == 1 && !from.along_k) return f.registers();  // byte by byte
  const auto matrices = operand_matrices(atom, side);
  if (!matrices.empty()) return static_cast<int64_t>(matrices.size());
  return std::max<int64_t>(1, ceil_div(f.registers() * bytes, int64_t{4}));
}

Cost cost_of(const GemmShape& s, const MmaAtom& atom, const WarpGrid& g, const Source& from_a, const Source& from_b,
             const Target& t) {
  const bool a_shared = from_a.shared, b_shared = from_b.shared;
  constexpr double kSchedulers = 4;        // of a multiprocessor
  constexpr int64_t kOtherRegisters = 40;  // addresses, predicates, loop counters
  const WarpTile w = warp_tile(s, atom, g);
  const double warps = static_cast<double>(g.m * g.n * g.copies);
  const double issue = warps * static_cast<double>(w.m * w.n * w.k * atom.cycles) / kSchedulers;
  const double loads = static_cast<double>((a_shared ? w.m * load_wavefronts(atom, 0, from_a) : 0) +
                                           (b_shared ? w.n * load_wavefronts(atom, 1, from_b) : 0)) *
                       static_cast<double>(w.k) * warps;
  auto words = [](const Fragment& f, ir::DType type) {
    return ceil_div(f.registers() * ir::dtype_bytes(type), int64_t{4});
  };
  Cost cost;
  cost.own_registers = s.promote && !is_multiply_add(atom) ? w.m * w.n * words(atom.c_layout, atom.c) : 0;
  const int64_t accumulators = w.m * w.n * words(atom.c_layout, atom.c) + cost.own_registers;
  const int64_t a = w.m * words(atom.a_layout, atom.a), b = w.n * words(atom.b_layout, atom.b);
  cost.registers =
      accumulators + (a_shared ? 2 * a : a * w.k) + (b_shared ? 2 * b : b * w.k) + kOtherRegisters;
  // Loads run beside the instructions but share issue slots with them.
  cost.cycles = std::max(issue, loads) + 0.25 * std::min(issue, loads);
  if (cost.registers > t.registers_per_thread)
    cost.cycles *= 4 * static_cast<double>(cost.registers) / static_cast<double>(t.registers_per_thread);
  return cost;
}

// ---- shared memory

// Byte addresses of one warp-wide access.
struct WarpAccess {
  std::vector<std::vector<int64_t>> lanes;  // index of each lane's first element
  int bytes = 16;
};

// Neighbouring k of a row that a lane holds in neighbouring registers.
int64_t registers_along_k(const Fragment& f, int side) {
  for (const Digit& d : f.map().digits())
    if (d.dim == 1 - side && d.weight == 1 && d.output == kRegister && d.stride == 1) return d.extent;
  return 1;
}

// Rows of 16 bytes that ldmatrix takes at once, or the elements that the lanes of an atom hold.
std::vector<WarpAccess> operand_reads(const MmaAtom& atom, int side, const MatrixDims& m, int bytes) {
  std::vector<WarpAccess> reads;
  const bool contiguous = k_is_contiguous(m, side);
  auto at = [&](int64_t outer, int64_t k) {
    return side == 0 ? m.at<int64_t>(outer, k, 0) : m.at<int64_t>(k, outer, 0);
  };
  const int64_t outer_extent = m.shape[static_cast<size_t>(side == 0 ? m.row : m.col)];
  const int64_t k_extent = m.shape[static_cast<size_t>(side == 0 ? m.col : m.row)];
  if (!operand_matrices(atom, side).empty() && (contiguous || bytes == 2)) {
    const int64_t chunk = 16 / bytes;
    for (int64_t begin : {int64_t{0}, int64_t{1}}) {
      WarpAccess a;
      for (int64_t r = 0; r < 8; ++r) {
        const int64_t outer = contiguous ? r : begin * chunk, k = contiguous ? begin * chunk : r;
        if (outer < outer_extent && k < k_extent) a.lanes.push_back(at(outer, k));
      }
      reads.push_back(std::move(a));
    }
    return reads;
  }
  const Fragment& f = side == 0 ? atom.a_layout : atom.b_layout;
  const int64_t together = contiguous ? registers_along_k(f, side) : 1;
  for (int64_t reg = 0; reg < f.registers(); reg += together) {
    WarpAccess a;
    a.bytes = bytes * static_cast<int>(together);
    for (int64_t i = 0; i < f.shape()[0]; ++i)
      for (int64_t j = 0; j < f.shape()[1]; ++j)
        for (int64_t r = 0; r < f.replicas(); ++r) {
          const std::vector<int64_t> index = {i, j};
          if (f.map().eval(index, r)[kRegister] != reg) continue;
          const int64_t outer = side == 0 ? i : j, k = side == 0 ? j : i;
          if (outer < outer_extent && k < k_extent) a.lanes.push_back(at(outer, k));
        }
    reads.push_back(std::move(a));
  }
  return reads;
}

// Eight neighbouring pieces of 16 bytes, as copies write them.
std::vector<WarpAccess> row_writes(const MatrixDims& m, int bytes) {
  WarpAccess a;
  const int64_t chunk = std::max(1, 16 / bytes), columns = m.shape.back();
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < m.shape.size(); ++d) rows *= m.shape[d];
  for (int64_t piece = 0; piece < 8; ++piece) {
    const int64_t pieces = std::max<int64_t>(1, columns / chunk), row = piece / pieces;
    if (row >= rows) break;
    std::vector<int64_t> index(m.shape.size(), 0);
    index.back() = piece % pieces * chunk;
    int64_t rest = row;
    for (size_t d = m.shape.size() - 1; d-- > 0;) {
      index[d] = rest % m.shape[d];
      rest /= m.shape[d];
    }
    a.lanes.push_back(std::move(index));
  }
  return {a};
}

int64_t wavefronts_of(const Layout& l, const std::vector<WarpAccess>& accesses, int element_bytes) {
  int64_t sum = 0;
  for (const WarpAccess& a : accesses) {
    std::vector<int64_t> addresses;
    for (const auto& index : a.lanes) addresses.push_back(l.offset(index) * element_bytes);
    sum += layout::wavefronts(addresses, a.bytes);
  }
  return sum;
}

// Rows of 16-byte pieces whose order an XOR changes from row to row, or, where no XOR makes the atom's loads
// free of bank conflicts, padded rows.
Layout shared_layout(const MmaAtom& atom, int side, const MatrixDims& m, ir::DType type) {
  const int bytes = ir::dtype_bytes(type);
  const auto reads = operand_reads(atom, side, m, bytes), writes = row_writes(m, bytes);
  const Layout plain = Layout::row_major(m.shape);
  const int64_t tile_bytes = plain.output_extent(0) * bytes, row_bytes = m.shape.back() * bytes;
  auto cost = [&](const Layout& l) {
    return 4 * wavefronts_of(l, reads, bytes) + wavefronts_of(l, writes, bytes);
  };
  Layout best = plain;
  int64_t best_cost = row_bytes % 16 == 0 ? cost(plain) : INT64_MAX;
  auto consider = [&](const Layout& l) {
    if (const int64_t c = cost(l); c < best_cost) {
      best_cost = c;
      best = l;
    }
  };
  if (row_bytes % 16 == 0)
    for (int bits = 1; bits <= 3; ++bits)
      for (int shift = std::max(bits, 3); shift <= 8; ++shift) {
        if (tile_bytes % (int64_t{16} << bits) != 0) continue;
        if (auto l = plain.with_swizzle({bits, 4, shift}, bytes)) consider(*l);
      }
  const int64_t pad_to = ceil_div(row_bytes, int64_t{16}) * 16;
  for (int64_t padded : {pad_to, pad_to + 16})
    if (m.shape.size() >= 2 && padded > row_bytes && (padded - row_bytes) % bytes == 0)
      consider(Layout::padded_row_major(m.shape, (padded - row_bytes) / bytes));
  return best;
}

// ---- the plan

GemmPlan make_plan(const ir::Program& p, const TileOp& op, const GemmShape& s, const MmaAtom& atom,
                   const WarpGrid& g, const Target& t) {
  const WarpTile w = warp_tile(s, atom, g);
  GemmPlan plan;
  plan.engine = plan::Engine::mma;
  plan.atom = atom.name;
  plan.warps_m = g.m;
  plan.warps_n = g.n;
  plan.c = spread(atom.c_layout, {{w.m, w.n}, {g.m, g.n}}, g, matrix_dims(p, op.operands[2], false),
                  {s.m, s.n}, t.warp);
  for (int side = 0; side < 2; ++side) {
    const MatrixDims m =
        matrix_dims(p, op.operands[static_cast<size_t>(side)],
                    op.flag(side == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b));
    if (p.buffer(op.operands[static_cast<size_t>(side)].buffer).scope == ir::MemScope::shared)
      (side == 0 ? plan.a_memory : plan.b_memory) = shared_layout(atom, side, m, side == 0 ? s.a : s.b);
    else if (side == 0)
      plan.a_fragment = spread(atom.a_layout, {{w.m, w.k}, {g.m, 1}}, g, m, {s.m, s.k}, t.warp);
    else
      plan.b_fragment = spread(atom.b_layout, {{w.k, w.n}, {1, g.n}}, g, m, {s.k, s.n}, t.warp);
  }
  return plan;
}

// Registers hold parts of one size only, so that a part's place is known.
Checked check_parts(const ir::Program& p, const TileOp& op, const std::string& path,
                    const SourceLocation& loc) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const ir::Region& r = op.operands[i];
    if (p.buffer(r.buffer).scope == ir::MemScope::shared) continue;
    const std::vector<int64_t> shape = p.tile_shape(r.buffer);
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t offset = 0;
      const bool fixed = p.exprs.is_const_int(r.offsets[d], &offset);
      if (shape[d] % r.extents[d] == 0 && (shape[d] == r.extents[d] || !fixed || offset % r.extents[d] == 0))
        continue;
      return Error(DiagCode::target_unsupported, path,
                   "operand " + std::string(ir::op_row(op.kind).operands[i].name) +
                       " is a part of fragment '" + p.buffer(r.buffer).name +
                       "' that does not stand at a multiple of its size",
                   "give gemm whole fragments: allocate the part as a buffer of its own and copy it", loc);
    }
  }
  return Unit{};
}

bool asks_for_warpgroups(const plan::OpPlan* given) {
  return given && (given->engine == plan::Engine::warpgroup_mma || given->atom.starts_with("wgmma."));
}

// Nothing, with a note, where warpgroups cannot; an error where the schedule asks for them all the same.
Expected<std::optional<GemmPlan>> plan_by_warpgroups(const ir::Program& p, const TileOp& op, const GemmShape& s,
                                                     const Target& t, int64_t threads, const plan::OpPlan* given,
                                                     const std::string& path, const SourceLocation& loc,
                                                     const std::string& no_warpgroups, std::string& note) {
  const bool asked = asks_for_warpgroups(given);
  if (given && !asked && (given->engine == plan::Engine::mma || !given->atom.empty())) return std::optional<GemmPlan>();
  std::string why = no_warpgroups;
  if (why.empty())
    if (auto plan = plan_warpgroup_gemm(p, op, s, t, threads, given, &why)) return plan;
  if (asked)
    return Error(DiagCode::schedule_illegal, path, "the schedule gives warpgroup instructions, but " + why,
                 "leave engine, atom and warps out to let the planner choose", loc);
  note = "no warpgroup instructions: " + why;
  return std::optional<GemmPlan>();
}

}  // namespace

std::vector<OperandMatrix> operand_matrices(const MmaAtom& atom, int side) {
  const Fragment& f = side == 0 ? atom.a_layout : atom.b_layout;
  const int bytes = ir::dtype_bytes(side == 0 ? atom.a : atom.b);
  if (bytes > 4 || f.replicas() != 1) return {};
  const int64_t e = 4 / bytes, matrices = f.registers() / e;
  if (f.registers() % e != 0 || matrices == 0) return {};
  struct Point {
    int64_t row = -1, k = -1;
  };
  std::vector<Point> held(static_cast<size_t>(32 * f.registers()));
  for (int64_t i = 0; i < f.shape()[0]; ++i)
    for (int64_t j = 0; j < f.shape()[1]; ++j) {
      const std::vector<int64_t> index = {i, j}, place = f.map().eval(index);
      held[static_cast<size_t>(place[kThread] * f.registers() + place[kRegister])] =
          side == 0 ? Point{i, j} : Point{j, i};
    }
  std::vector<OperandMatrix> result;
  for (int64_t m = 0; m < matrices; ++m) {
    const Point first = held[static_cast<size_t>(m * e)];
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t u = 0; u < e; ++u) {
        const Point at = held[static_cast<size_t>(lane * f.registers() + m * e + u)];
        if (at.row != first.row + lane / 4 || at.k != first.k + lane % 4 * e + u) return {};
      }
    result.push_back({first.row, first.k});
  }
  return result;
}

Expected<GemmPlan> plan_nvidia_gemm(const ir::Program& p, const TileOp& op, const GemmShape& s,
                                    const Target& t, int64_t threads, const plan::OpPlan* given,
                                    const std::string& path, const SourceLocation& loc,
                                    const std::string& no_warpgroups) {
  if (Checked ok = check_parts(p, op, path, loc); !ok) return ok.error();
  if (given && given->engine && *given->engine != plan::Engine::mma &&
      (*given->engine != plan::Engine::warpgroup_mma || t.warpgroup_mma.empty()))
    return Error(DiagCode::schedule_illegal, path,
                 std::string("the schedule gives engine '") + plan::engine_name(*given->engine) + "', but on " + t.name +
                     " products are done by 'mma'" + (t.warpgroup_mma.empty() ? "" : " or 'warpgroup_mma'"),
                 "leave engine, atom and warps out to let the planner choose", loc);
  std::string note;
  std::optional<GemmPlan> by_warpgroups;
  if (!t.warpgroup_mma.empty()) {
    auto plan = plan_by_warpgroups(p, op, s, t, threads, given, path, loc, no_warpgroups, note);
    if (!plan) return plan.error();
    by_warpgroups = std::move(*plan);
    if (by_warpgroups && asks_for_warpgroups(given)) return std::move(*by_warpgroups);
  }
  const bool given_atom = given && !given->atom.empty(),
             given_grid = given && given->warps_m + given->warps_n > 0;
  auto policy = static_cast<ir::WarpPolicy>(op.attrs[ir::gemm_attr::policy]);
  const int64_t warps = threads / t.warp;
  const auto source = [&](int side) {
    const ir::Region& r = op.operands[static_cast<size_t>(side)];
    const bool transpose = op.flag(side == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b);
    return Source{p.buffer(r.buffer).scope == ir::MemScope::shared, k_is_contiguous(matrix_dims(p, r, transpose), side)};
  };
  const Source from_a = source(0), from_b = source(1);
  struct Choice {
    const MmaAtom* atom = nullptr;
    WarpGrid grid;
    Cost cost;
  };
  Choice best;
  bool any = false;
  std::string considered;
  auto consider = [&](const MmaAtom& atom, const WarpGrid& g) {
    const Cost cost = cost_of(s, atom, g, from_a, from_b, t);
    if (!best.atom || cost < best.cost) best = {&atom, g, cost};
  };
  const bool in_parts = std::any_of(op.operands.begin(), op.operands.end(), [&](const ir::Region& r) {
    return p.buffer(r.buffer).scope != ir::MemScope::shared && r.extents != p.tile_shape(r.buffer);
  });
  // Exact divisions first; what overhangs is for plain multiply-adds, and never better.
  for (bool padded : {false, true}) {
    if (best.atom || (padded && in_parts)) break;
    for (const MmaAtom& atom : t.mma) {
      if (!serves(atom, s) || (given_atom && atom.name != given->atom)) continue;
      any = true;
      if (padded && !is_multiply_add(atom)) continue;
      if (!padded) considered += (considered.empty() ? "" : ", ") + atom.name;
      for (const WarpGrid& g : warp_grids(warps, given_grid ? ir::WarpPolicy::square : policy)) {
        if (given_grid && !is_split(*given, g.m, g.n)) continue;
        if (padded || divides(s, atom, g)) consider(atom, g);
      }
    }
  }
  if (by_warpgroups) {
    if (!best.atom || by_warpgroups->cycles <= best.cost.cycles) return std::move(*by_warpgroups);
    note = "no warpgroup instructions: they take " + number(static_cast<int64_t>(by_warpgroups->cycles)) + " cycles, " +
           best.atom->name + " " + number(static_cast<int64_t>(best.cost.cycles));
  }
  std::string what = number(s.m) + "x" + number(s.n) + "x" + number(s.k) + " gemm of " + ir::dtype_name(s.a) +
                     " and " + ir::dtype_name(s.b) + " into " + ir::dtype_name(s.c);
  if (best.atom) {
    GemmPlan plan = make_plan(p, op, s, *best.atom, best.grid, t);
    plan.registers = best.cost.registers;
    plan.cycles = best.cost.cycles;
    plan.own_registers = best.cost.own_registers;
    plan.note = note;
    const WarpTile w = warp_tile(s, *best.atom, best.grid);
    plan.reason = "fewest cycles of what divides the tile over " + number(warps) + " warps (" + considered +
                  "): " + number(w.m * best.atom->m) + "x" + number(w.n * best.atom->n) + " a warp";
    if (best.grid.copies > 1) plan.reason += ", every one done by " + number(best.grid.copies);
    if (!divides(s, *best.atom, best.grid))
      plan.reason = "no instruction divides a " + what + ": multiply-adds on a padded tile";
    return plan;
  }
  if (given_atom || given_grid)
    return Error(DiagCode::schedule_illegal, path,
                 "the schedule's atom " + (given_atom ? "'" + given->atom + "'" : std::string("of any name")) + " with " +
                     split_text(*given) + " warps cannot do a " + what + " with " + number(warps) + " warps",
                 "leave atom and warps out to let the planner choose", loc);
  if (!any)
    return Error(DiagCode::no_atom, path, "no instruction of " + t.name + " does a " + what,
                 "use a type combination listed in docs/language.md, or cast the operands while copying them",
                 loc);
  return Error(
      DiagCode::no_atom, path,
      "a " + what + " cannot be split over " + number(warps) + " warps with " + considered,
      "use a tile whose m, n and k are multiples of the instruction's, or other `threads`, or policy square",
      loc);
}

}  // namespace tilegen::ops
