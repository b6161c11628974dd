#include "ops/gemm_plan.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ops/op.h"

namespace tilegen::ops {

using ir::TileOp;
using layout::Digit;
using layout::Fragment;
using layout::Layout;
using target::MicroKernelAtom;
using target::MmaAtom;
using target::Target;

namespace {

std::string number(int64_t v) { return std::to_string(v); }

Layout checked_layout(std::vector<int64_t> shape, std::vector<Digit> digits) {
  std::erase_if(digits, [](const Digit& d) { return d.extent == 1; });
  auto l = Layout::make(std::move(shape), std::move(digits), 1);
  assert(l && "gemm operand layout is a mixed radix system by construction");
  return *l;
}

// ---- host
// ------------------------------------------------------------------------------------------------------

// Cycles of one k step per multiply-add, from issue limits: two FMA pipes, two loads a cycle, accumulators
// enough to hide the FMA latency; loads cost a little even when they fit beside the FMAs.
double cost_per_mac(int64_t mr, int64_t nr, int64_t lanes) {
  constexpr double kFmaLatency = 4, kLoadWeight = 0.1;
  double vectors = static_cast<double>(nr) / static_cast<double>(lanes);
  double fmas = static_cast<double>(mr) * vectors, loads = static_cast<double>(mr) + vectors;
  double cycles = std::max({fmas / 2, loads / 2, kFmaLatency}) + kLoadWeight * loads;
  return cycles / (static_cast<double>(mr) * static_cast<double>(nr));
}

int64_t vector_lanes(const MicroKernelAtom& atom, int64_t nr) {
  int64_t lanes = atom.lanes;
  while (nr % lanes != 0) lanes /= 2;
  return lanes;
}

bool fits_registers(const MicroKernelAtom& atom, int64_t mr, int64_t nr) {
  int64_t vectors = nr / vector_lanes(atom, nr);
  return mr * vectors + vectors + 1 <= atom.registers;
}

MicroTile best_tile(const MicroKernelAtom& atom, int64_t m, int64_t n) {
  MicroTile best{&atom, 1, 1};
  double best_cost = INFINITY;
  for (int64_t nr = 1; nr <= n && nr <= 8 * atom.lanes; ++nr) {
    if (n % nr != 0) continue;
    for (int64_t mr = 1; mr <= m && mr <= atom.registers; ++mr) {
      if (m % mr != 0 || !fits_registers(atom, mr, nr)) continue;
      double cost = cost_per_mac(mr, nr, vector_lanes(atom, nr));
      if (cost < best_cost - 1e-12) {
        best_cost = cost;
        best = {&atom, mr, nr};
      }
    }
  }
  return best;
}

// Row of A: plain row-major when one k is taken at a time (the micro-kernel broadcasts single elements, any
// constant strides serve); `pack` consecutive k adjacent otherwise.
Layout host_a(const MatrixDims& a, int64_t m, int64_t k, int64_t pack) {
  if (pack == 1) return Layout::row_major(a.shape);
  // (k / pack, m, k % pack) when stored k-major, (m, k) when stored m-major: pack elements of one row stay
  // together.
  if (a.col > a.row) return Layout::row_major(a.shape);
  return checked_layout(
      a.shape, {{a.row, m, 1, 0, pack}, {a.col, pack, 1, 0, 1}, {a.col, k / pack, pack, 0, m * pack}});
}

// B as packed panels of nr columns: (n / nr, k / pack, n % nr, k % pack).
Layout host_b(const MatrixDims& b, int64_t n, int64_t k, int64_t nr, int64_t pack) {
  return checked_layout(b.shape, {{b.row, pack, 1, 0, 1},
                                  {b.row, k / pack, pack, 0, nr * pack},
                                  {b.col, nr, 1, 0, pack},
                                  {b.col, n / nr, nr, 0, k * nr}});
}

// C as tiles of mr x nr, one behind the other: what the micro-kernel loads and stores is contiguous.
Layout host_c(const MatrixDims& c, int64_t m, int64_t n, int64_t mr, int64_t nr) {
  return checked_layout(c.shape, {{c.row, mr, 1, 0, nr},
                                  {c.row, m / mr, mr, 0, mr * nr},
                                  {c.col, nr, 1, 0, 1},
                                  {c.col, n / nr, nr, 0, m * nr}});
}

Expected<MicroTile> pick_micro_tile(const GemmShape& s, const Target& t, const plan::OpPlan* given,
                                    const std::string& path, const SourceLocation& loc) {
  if (given && !given->atom.empty()) {
    auto tile = micro_tile_from_name(t, given->atom);
    if (!tile || tile->atom->a != s.a || tile->atom->b != s.b || tile->atom->c != s.c ||
        s.m % tile->mr != 0 || s.n % tile->nr != 0 || s.k % tile->atom->pack != 0)
      return Error(DiagCode::schedule_illegal, path,
                   "the schedule gives atom '" + given->atom + "', which does not fit a " + number(s.m) +
                       "x" + number(s.n) + "x" + number(s.k) + " gemm of " + ir::dtype_name(s.a) + " and " +
                       ir::dtype_name(s.b) + " into " + ir::dtype_name(s.c) + " on " + t.name,
                   "leave the atom out to let the planner choose, or give a tile that divides the gemm", loc);
    return *tile;
  }
  for (const MicroKernelAtom& atom : t.micro_kernels)
    if (atom.a == s.a && atom.b == s.b && atom.c == s.c && s.k % atom.pack == 0)
      return best_tile(atom, s.m, s.n);
  return Error(DiagCode::no_atom, path,
               std::string("no micro-kernel of ") + t.name + " multiplies " + ir::dtype_name(s.a) + " by " +
                   ir::dtype_name(s.b) + " into " + ir::dtype_name(s.c),
               "use a type combination listed in docs/language.md, or cast the operands while copying them",
               loc);
}

Expected<GemmPlan> plan_host(const ir::Program& p, const TileOp& op, const GemmShape& s, const Target& t,
                             const plan::OpPlan* given, const std::string& path, const SourceLocation& loc) {
  auto tile = pick_micro_tile(s, t, given, path, loc);
  if (!tile) return tile.error();
  const int64_t pack = tile->atom->pack;
  MatrixDims a = matrix_dims(p, op.operands[0], op.flag(ir::gemm_attr::transpose_a));
  MatrixDims b = matrix_dims(p, op.operands[1], op.flag(ir::gemm_attr::transpose_b));
  MatrixDims c = matrix_dims(p, op.operands[2], false);
  GemmPlan plan;
  plan.engine = plan::Engine::micro_kernel;
  plan.atom = tile->atom->name + ":" + number(tile->mr) + "x" + number(tile->nr);
  plan.c = Fragment::single_thread(host_c(c, s.m, s.n, tile->mr, tile->nr));
  Layout la = host_a(a, s.m, s.k, pack), lb = host_b(b, s.n, s.k, tile->nr, pack);
  if (p.buffer(op.operands[0].buffer).scope == ir::MemScope::shared)
    plan.a_memory = la;
  else
    plan.a_fragment = Fragment::single_thread(la);
  if (p.buffer(op.operands[1].buffer).scope == ir::MemScope::shared)
    plan.b_memory = lb;
  else
    plan.b_fragment = Fragment::single_thread(lb);
  int64_t lanes = vector_lanes(*tile->atom, tile->nr);
  plan.reason = "register tile of " + number(tile->mr * tile->nr / lanes) + " accumulators of " +
                number(lanes) + " lanes; fewest cycles per multiply-add among the tiles that divide " +
                number(s.m) + "x" + number(s.n);
  return plan;
}

// ---- NVIDIA
// ----------------------------------------------------------------------------------------------------

struct WarpGrid {
  int64_t m = 1, n = 1;
};

bool grid_divides(const GemmShape& s, const MmaAtom& atom, int64_t wm, int64_t wn) {
  return s.m % (wm * atom.m) == 0 && s.n % (wn * atom.n) == 0;
}

// square: least operand traffic per warp, that is the smallest tile_m + tile_n; full_row: all warps along m;
// full_col: along n.
std::optional<WarpGrid> warp_grid(const GemmShape& s, const MmaAtom& atom, int64_t warps,
                                  ir::WarpPolicy policy) {
  std::optional<WarpGrid> best;
  int64_t best_cost = INT64_MAX;
  for (int64_t wm = 1; wm <= warps; ++wm) {
    if (warps % wm != 0) continue;
    int64_t wn = warps / wm;
    if (policy == ir::WarpPolicy::full_row && wn != 1) continue;
    if (policy == ir::WarpPolicy::full_col && wm != 1) continue;
    if (!grid_divides(s, atom, wm, wn)) continue;
    int64_t cost = s.m / wm + s.n / wn;
    if (cost < best_cost) {
      best_cost = cost;
      best = WarpGrid{wm, wn};
    }
  }
  return best;
}

// Two-dimensional fragment of an m x n tile spread over the dimensions of a buffer that may be transposed or
// have unit dimensions in front.
Fragment place(const Fragment& f, const MatrixDims& m) {
  std::vector<Digit> digits;
  for (Digit d : f.map().digits()) {
    if (d.dim != layout::kReplica) d.dim = d.dim == 0 ? m.row : m.col;
    digits.push_back(d);
  }
  auto map = Layout::make(m.shape, std::move(digits), 2);
  assert(map);
  auto placed = Fragment::make(*map, f.threads());
  assert(placed);
  return *placed;
}

// Swizzled rows for ldmatrix: the widest XOR atom the contiguous extent fills, so that eight rows of 16 bytes
// fall into distinct banks.
Layout nvidia_shared(const MatrixDims& m, ir::DType type) {
  Layout plain = Layout::row_major(m.shape);
  int bytes = ir::dtype_bytes(type);
  int64_t row_bytes = m.shape.back() * bytes;
  layout::Swizzle s;
  if (row_bytes % 128 == 0)
    s = {3, 4, 3};
  else if (row_bytes % 64 == 0)
    s = {2, 4, 3};
  else if (row_bytes % 32 == 0)
    s = {1, 4, 3};
  if (s.none()) return plain;
  auto swizzled = plain.with_swizzle(s, bytes);
  return swizzled ? *swizzled : plain;
}

GemmPlan nvidia_layouts(const ir::Program& p, const TileOp& op, const GemmShape& s, const MmaAtom& atom,
                        WarpGrid g, int64_t threads) {
  const std::vector<int> n_fastest = {1, 0};
  const std::vector<int64_t> by_warps = {g.m, g.n}, by_m = {g.m, 1}, by_n = {1, g.n};
  const std::vector<int64_t> c_reps = {s.m / g.m / atom.m, s.n / g.n / atom.n},
                             a_reps = {c_reps[0], s.k / atom.k}, b_reps = {s.k / atom.k, c_reps[1]};
  (void)threads;
  GemmPlan plan;
  plan.engine = plan::Engine::mma;
  plan.atom = atom.name;
  plan.warps_m = g.m;
  plan.warps_n = g.n;
  plan.c = place(atom.c_layout.repeat(c_reps, n_fastest).repeat_on_thread(by_warps, n_fastest),
                 matrix_dims(p, op.operands[2], false));
  MatrixDims a = matrix_dims(p, op.operands[0], op.flag(ir::gemm_attr::transpose_a));
  MatrixDims b = matrix_dims(p, op.operands[1], op.flag(ir::gemm_attr::transpose_b));
  if (p.buffer(op.operands[0].buffer).scope == ir::MemScope::shared)
    plan.a_memory = nvidia_shared(a, s.a);
  else
    plan.a_fragment =
        place(atom.a_layout.repeat(a_reps, n_fastest).replicate(g.n).repeat_on_thread(by_m, n_fastest), a);
  if (p.buffer(op.operands[1].buffer).scope == ir::MemScope::shared)
    plan.b_memory = nvidia_shared(b, s.b);
  else
    plan.b_fragment =
        place(atom.b_layout.repeat(b_reps, n_fastest).repeat_on_thread(by_n, n_fastest).replicate(g.m), b);
  return plan;
}

Expected<GemmPlan> plan_nvidia(const ir::Program& p, const TileOp& op, const GemmShape& s, const Target& t,
                               int64_t threads, const plan::OpPlan* given, const std::string& path,
                               const SourceLocation& loc) {
  const bool given_atom = given && !given->atom.empty();
  auto policy = static_cast<ir::WarpPolicy>(op.attrs[ir::gemm_attr::policy]);
  const int64_t warps = threads / t.warp;
  std::string tried;
  for (const MmaAtom& atom : t.mma) {
    if (atom.a != s.a || atom.b != s.b || atom.c != s.c) continue;
    if (given_atom && atom.name != given->atom) continue;
    tried += (tried.empty() ? "" : ", ") + atom.name;
    if (s.k % atom.k != 0) continue;
    std::optional<WarpGrid> grid;
    if (given && given->warps_m * given->warps_n > 1) {
      if (given->warps_m * given->warps_n == warps && grid_divides(s, atom, given->warps_m, given->warps_n))
        grid = WarpGrid{given->warps_m, given->warps_n};
    } else {
      grid = warp_grid(s, atom, warps, policy);
    }
    if (!grid) continue;
    GemmPlan plan = nvidia_layouts(p, op, s, atom, *grid, threads);
    plan.reason = "first row of " + t.name + "'s table whose shape " + number(atom.m) + "x" + number(atom.n) +
                  "x" + number(atom.k) + " divides the tile over " + number(warps) + " warps";
    return plan;
  }
  std::string what = number(s.m) + "x" + number(s.n) + "x" + number(s.k) + " gemm of " + ir::dtype_name(s.a) +
                     " and " + ir::dtype_name(s.b) + " into " + ir::dtype_name(s.c);
  if (given_atom || (given && given->warps_m * given->warps_n > 1))
    return Error(DiagCode::schedule_illegal, path,
                 "the schedule's atom '" + given->atom + "' with " + number(given->warps_m) + "x" +
                     number(given->warps_n) + " warps cannot do a " + what + " with " + number(warps) +
                     " warps",
                 "leave atom and warps out to let the planner choose", loc);
  if (tried.empty())
    return Error(DiagCode::no_atom, path, "no instruction of " + t.name + " does a " + what,
                 "use a type combination listed in docs/language.md, or cast the operands while copying them",
                 loc);
  return Error(
      DiagCode::no_atom, path,
      "a " + what + " cannot be split over " + number(warps) + " warps with " + tried,
      "use a tile whose m, n and k are multiples of the instruction's, or other `threads`, or policy square",
      loc);
}

}  // namespace

MatrixDims matrix_dims(const ir::Program& p, const ir::Region& r, bool transpose) {
  MatrixDims m;
  m.shape = p.tile_shape(r.buffer);
  const std::vector<int> dims = matched_dims(r, 2);
  m.row = dims[0];
  m.col = dims[1];
  if (transpose) std::swap(m.row, m.col);
  return m;
}

GemmShape gemm_shape(const ir::Program& p, const TileOp& op) {
  MatrixDims a = matrix_dims(p, op.operands[0], op.flag(ir::gemm_attr::transpose_a));
  MatrixDims c = matrix_dims(p, op.operands[2], false);
  auto at = [](const MatrixDims& m, int dim) { return m.shape[static_cast<size_t>(dim)]; };
  return {at(c, c.row),
          at(c, c.col),
          at(a, a.col),
          p.buffer(op.operands[0].buffer).type,
          p.buffer(op.operands[1].buffer).type,
          p.buffer(op.operands[2].buffer).type};
}

std::optional<MicroTile> micro_tile_from_name(const Target& t, std::string_view name) {
  size_t colon = name.rfind(':'), x = name.rfind('x');
  if (colon == std::string_view::npos || x == std::string_view::npos || x < colon) return std::nullopt;
  auto parse = [](std::string_view s) -> int64_t {
    int64_t v = 0;
    if (s.empty() || s.size() > 4) return 0;
    for (char c : s) {
      if (c < '0' || c > '9') return 0;
      v = v * 10 + (c - '0');
    }
    return v;
  };
  int64_t mr = parse(name.substr(colon + 1, x - colon - 1)), nr = parse(name.substr(x + 1));
  if (mr < 1 || nr < 1) return std::nullopt;
  for (const MicroKernelAtom& atom : t.micro_kernels)
    if (atom.name == name.substr(0, colon) && fits_registers(atom, mr, nr)) return MicroTile{&atom, mr, nr};
  return std::nullopt;
}

Expected<GemmPlan> plan_gemm(const ir::Program& p, const TileOp& op, const Target& target, int64_t threads,
                             const plan::OpPlan* given, const std::string& path,
                             const SourceLocation& location) {
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (op.operands[i].extents != p.tile_shape(op.operands[i].buffer))
      return Error(DiagCode::target_unsupported, path,
                   "operand " + std::string(ir::op_row(op.kind).operands[i].name) + " is a part of buffer '" +
                       p.buffer(op.operands[i].buffer).name + "'",
                   "give gemm whole buffers: allocate the part as a buffer of its own and copy it", location);
  GemmShape s = gemm_shape(p, op);
  return target.is_host() ? plan_host(p, op, s, target, given, path, location)
                          : plan_nvidia(p, op, s, target, threads, given, path, location);
}

}  // namespace tilegen::ops
