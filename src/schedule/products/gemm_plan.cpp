#include "schedule/products/gemm_plan.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "ir/op_kinds.h"
#include "support/diag_codes.h"
#include "target/micro_tile.h"

namespace tilegen::schedule {

using analysis::gemm_shape;
using analysis::matrix_dims;
using ir::TileOp;
using layout::Digit;
using layout::Fragment;
using layout::Layout;
using target::MicroKernelAtom;
using target::MicroTile;
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

// Of a product of `k` steps by a register tile: what a step reads, and how much the nearest cache holds.
struct MicroCost {
  int64_t k = 1, operand_bytes = 4, sum_bytes = 4, l1_bytes = 0;

  // Cycles of one step per multiply-add, from issue limits: two FMA pipes, two loads a cycle, accumulators
  // enough to hide the FMA latency; loads cost a little even when they fit beside the FMAs. Rows of A and
  // tiles of C come from the second cache, and the panel of B too where the tiles that pass by drive it out
  // of the first.
  double per_mac(int64_t mr, int64_t nr, int64_t lanes) const {
    constexpr double kFmaLatency = 4, kLoadWeight = 0.1, kFarBytesPerCycle = 64;
    const double vectors = static_cast<double>(nr) / static_cast<double>(lanes);
    const double fmas = static_cast<double>(mr) * vectors, loads = static_cast<double>(mr) + vectors;
    const int64_t row_bytes = mr * k * operand_bytes, panel_bytes = nr * k * operand_bytes,
                  tile_bytes = mr * nr * sum_bytes;
    const bool near = row_bytes + panel_bytes + tile_bytes <= l1_bytes;
    const double far = static_cast<double>(row_bytes + 2 * tile_bytes + (near ? 0 : panel_bytes)) /
                       static_cast<double>(k) / kFarBytesPerCycle;
    const double cycles = std::max({fmas / 2, loads / 2, kFmaLatency}) + kLoadWeight * loads + far;
    return cycles / (static_cast<double>(mr) * static_cast<double>(nr));
  }
};

// A register tile and what it takes: cycles of a multiply-add of elements.
struct PricedTile {
  MicroTile tile;
  double cycles = INFINITY;
};

PricedTile best_vector_tile(const MicroKernelAtom& atom, const GemmShape& s, int64_t l1_bytes) {
  constexpr int64_t kUsualL1Bytes = int64_t{32} << 10;  // of the CPUs that the target may be run on
  const MicroCost cost{s.k / atom.pack, int64_t{atom.pack} * ir::dtype_bytes(atom.a), ir::dtype_bytes(atom.c),
                       l1_bytes > 0 ? l1_bytes : kUsualL1Bytes};
  PricedTile best{{&atom, 1, 1}};
  for (int64_t nr = 1; nr <= s.n && nr <= 8 * atom.lanes; ++nr) {
    if (s.n % nr != 0) continue;
    for (int64_t mr = 1; mr <= s.m && mr <= atom.registers; ++mr) {
      if (s.m % mr != 0 || !fits_registers(atom, mr, nr)) continue;
      const double here = cost.per_mac(mr, nr, vector_lanes(atom, nr)) / atom.pack;
      if (here < best.cycles - 1e-12) best = {{&atom, mr, nr}, here};
    }
  }
  return best;
}

// A product of matrix registers takes a cycle for each row of A, or of B where these are more, and its sum is
// there 52 cycles after it began (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on
// AMX). Registers are loaded beside it, a row of A or B in half a cycle at best: loads cost a little even
// then. Tiles of C are loaded and stored around all of k, a row a cycle.
PricedTile best_matrix_tile(const MicroKernelAtom& atom, const GemmShape& s) {
  constexpr double kProductLatency = 52, kLoadWeight = 0.1;
  PricedTile best{{&atom, 1, 1}};
  const int64_t most = int64_t{atom.registers} * atom.tile_rows;
  for (int64_t nr = 1; nr <= s.n && nr <= most; ++nr) {
    if (s.n % nr != 0) continue;
    for (int64_t mr = 1; mr <= s.m && mr <= most; ++mr) {
      if (s.m % mr != 0) continue;
      const auto t = matrix_tiles(atom, mr, nr, s.k);
      if (!t) continue;
      const int64_t sums = t->k / atom.pack;
      const double products = static_cast<double>(t->down * t->across * std::max(t->rows, sums)),
                   loads = static_cast<double>(t->down * t->rows + t->across * sums) / 2,
                   ends = static_cast<double>(2 * mr * t->across * t->k) / static_cast<double>(s.k);
      const double cycles = std::max({products, loads, kProductLatency}) + kLoadWeight * loads + ends;
      const double here = cycles / static_cast<double>(mr * nr * t->k);
      if (here < best.cycles - 1e-12) best = {{&atom, mr, nr}, here};
    }
  }
  return best;
}

// Panels of A for matrix registers of `step` elements of k: (m / mr, k / step, m % mr, k % step).
Layout host_a_panels(const MatrixDims& a, int64_t m, int64_t k, int64_t mr, int64_t step) {
  return checked_layout(a.shape, {{a.row, mr, 1, 0, step},
                                  {a.row, m / mr, mr, 0, mr * k},
                                  {a.col, step, 1, 0, 1},
                                  {a.col, k / step, step, 0, mr * step}});
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

// C as tiles of mr x nr, one after the other: what the micro-kernel loads and stores is contiguous.
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
  // Of rows alike the best comes first; small products may be faster in vectors than in matrix registers.
  PricedTile best;
  bool vectors = false;
  for (const MicroKernelAtom& atom : t.micro_kernels) {
    if (atom.a != s.a || atom.b != s.b || atom.c != s.c || s.k % atom.pack != 0) continue;
    if (atom.tile_rows == 0 && std::exchange(vectors, true)) continue;
    const PricedTile here =
        atom.tile_rows > 0 ? best_matrix_tile(atom, s) : best_vector_tile(atom, s, t.l1_bytes);
    if (!best.tile.atom || here.cycles < best.cycles) best = here;
  }
  if (best.tile.atom) return best.tile;
  return Error(DiagCode::no_atom, path,
               std::string("no micro-kernel of ") + t.name + " multiplies " + ir::dtype_name(s.a) + " by " +
                   ir::dtype_name(s.b) + " into " + ir::dtype_name(s.c),
               "use a type combination listed in docs/language.md, or cast the operands while copying them",
               loc);
}

// Plain loops walk buffers as they lie.
GemmPlan plan_loops(const ir::Program& p, const TileOp& op) {
  auto plain = [&](int operand) {
    return Layout::row_major(p.tile_shape(op.operands[static_cast<size_t>(operand)].buffer));
  };
  auto in_memory = [&](int operand) {
    return p.buffer(op.operands[static_cast<size_t>(operand)].buffer).scope == ir::MemScope::shared;
  };
  GemmPlan plan;
  plan.engine = plan::Engine::loop;
  plan.c = Fragment::single_thread(plain(2));
  if (in_memory(0))
    plan.a_memory = plain(0);
  else
    plan.a_fragment = Fragment::single_thread(plain(0));
  if (in_memory(1))
    plan.b_memory = plain(1);
  else
    plan.b_fragment = Fragment::single_thread(plain(1));
  return plan;
}

bool is_host_engine(const plan::OpPlan* given, bool parts) {
  if (!given || !given->engine) return true;
  return *given->engine == plan::Engine::loop || (!parts && *given->engine == plan::Engine::micro_kernel);
}

Expected<GemmPlan> plan_host(const ir::Program& p, const TileOp& op, const GemmShape& s, const Target& t,
                             const plan::OpPlan* given, const std::string& path, const SourceLocation& loc) {
  const bool parts = std::any_of(op.operands.begin(), op.operands.end(),
                                 [&](const ir::Region& r) { return r.extents != p.tile_shape(r.buffer); });
  const auto illegal = [&](std::string why) {
    return Error(DiagCode::schedule_illegal, path, std::move(why),
                 "leave engine, atom and warps out to let the planner choose", loc);
  };
  if (!is_host_engine(given, parts))
    return illegal(std::string("the schedule gives engine '") + plan::engine_name(*given->engine) +
                   "', but on " + t.name +
                   (parts ? " parts of buffers are multiplied by 'loop'"
                          : " products are done by 'micro_kernel' or 'loop'"));
  if (given && !is_split(*given, 1, 1))
    return illegal("the schedule splits it over " + split_text(*given) + " warps, and " + t.name +
                   " has none");
  const bool loops = given && given->engine == plan::Engine::loop;
  if (parts || loops) {
    if (given && !given->atom.empty())
      return illegal("the schedule gives atom '" + given->atom + "', and plain loops have none");
    GemmPlan plan = plan_loops(p, op);
    plan.reason = parts ? "plain loops: an operand is a part of its buffer, micro-kernels walk whole ones"
                        : "plain loops: as given";
    return plan;
  }
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
  const auto registers = matrix_tiles(*tile->atom, tile->mr, tile->nr, s.k);
  Layout la = registers ? host_a_panels(a, s.m, s.k, tile->mr, registers->k) : host_a(a, s.m, s.k, pack),
         lb = host_b(b, s.n, s.k, tile->nr, pack);
  if (p.buffer(op.operands[0].buffer).scope == ir::MemScope::shared)
    plan.a_memory = la;
  else
    plan.a_fragment = Fragment::single_thread(la);
  if (p.buffer(op.operands[1].buffer).scope == ir::MemScope::shared)
    plan.b_memory = lb;
  else
    plan.b_fragment = Fragment::single_thread(lb);
  if (registers) {
    plan.reason = "register tile of " + number(registers->down * registers->across) +
                  " matrix registers of " + number(registers->rows) + "x" + number(registers->columns) +
                  ", " + number(registers->k) +
                  " of k at a time; fewest cycles per multiply-add among the tiles that divide " +
                  number(s.m) + "x" + number(s.n);
    return plan;
  }
  int64_t lanes = vector_lanes(*tile->atom, tile->nr);
  plan.reason = "register tile of " + number(tile->mr * tile->nr / lanes) + " accumulators of " +
                number(lanes) + " lanes; fewest cycles per multiply-add among the tiles that divide " +
                number(s.m) + "x" + number(s.n);
  return plan;
}

}  // namespace

std::string split_text(const plan::OpPlan& given) {
  const auto text = [](int64_t warps) { return warps == 0 ? std::string("any") : number(warps); };
  return text(given.warps_m) + "x" + text(given.warps_n);
}

Expected<GemmPlan> plan_gemm(const ir::Program& p, const TileOp& op, const Target& target, int64_t threads,
                             const plan::OpPlan* given, const std::string& path,
                             const SourceLocation& location, const std::string& no_warpgroups,
                             bool columns_together) {
  GemmShape s = gemm_shape(p, op);
  assert((!s.sparse || !target.sparse_mma.empty()) && "sparse products are expanded before");
  return !target.micro_kernels.empty() ? plan_host(p, op, s, target, given, path, location)
                                       : plan_mma_gemm(p, op, s, target, threads, given, path, location,
                                                       no_warpgroups, columns_together);
}

}  // namespace tilegen::schedule
