// Engine, atom, warp split and operand layouts of a gemm on NVIDIA GPUs.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "analysis/warp_partition.h"
#include "cost/product_work.h"
#include "ir/op_kinds.h"
#include "schedule/products/gemm_plan.h"
#include "schedule/products/gemm_shared_layout.h"
#include "schedule/products/made_operand.h"
#include "support/checked.h"
#include "support/diag_codes.h"
#include "target/multiply_adds.h"
#include "target/operand_matrices.h"

namespace tilegen::schedule {

using analysis::k_is_contiguous;
using analysis::matrix_dims;
using analysis::operand_dims;
using analysis::operand_fragment;
using analysis::warp_tile;
using analysis::WarpGrid;
using analysis::WarpTile;
using ir::TileOp;
using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kThread;
using layout::Layout;
using target::is_multiply_add;
using target::MmaAtom;
using target::Target;

namespace {

std::string number(int64_t v) { return std::to_string(v); }

// Splits of `warps` over m, n and copies that the policy allows.
std::vector<WarpGrid> warp_grids(int64_t warps, ir::WarpPolicy policy) {
  std::vector<WarpGrid> list;
  for (int64_t m = 1; m <= warps; ++m)
    for (int64_t n = 1; m * n <= warps; ++n) {
      if (warps % (m * n) != 0) continue;
      if (policy == ir::WarpPolicy::full_row && n != 1) continue;
      if (policy == ir::WarpPolicy::full_col && m != 1) continue;
      list.push_back({m, n, warps / (m * n)});
    }
  return list;
}

bool divides(const GemmShape& s, const MmaAtom& atom, const WarpGrid& g) {
  return s.m % (g.m * atom.m) == 0 && s.n % (g.n * atom.n) == 0 && s.k % atom.k == 0;
}

// Of a warp; dot products of bytes are a thread's.
bool is_matrix_instruction(const MmaAtom& atom) { return atom.unit == target::MmaUnit::matrix; }

// What may overhang a tile. Rows and columns beyond it are computed from others and stored nowhere; steps
// along k would add.
enum class Pad : uint8_t { none, instructions, multiply_adds };

bool fits(const GemmShape& s, const MmaAtom& atom, const WarpGrid& g, Pad pad) {
  switch (pad) {
    case Pad::none:
      return divides(s, atom, g);
    case Pad::instructions:
      return is_matrix_instruction(atom) && s.k % atom.k == 0;
    case Pad::multiply_adds:
      return is_multiply_add(atom);
  }
  return false;
}

// An f16 C is summed in f32 and rounded once, which no instruction with f16 accumulators does.
bool serves(const MmaAtom& atom, const GemmShape& s) {
  return (s.tf32 || !atom.tf32) && atom.a == s.a && atom.b == s.b &&
         atom.c == (s.c == ir::DType::f16 ? ir::DType::f32 : s.c);
}

// Those of the target that multiply such an A.
const std::vector<MmaAtom>& atoms_of(const Target& t, const GemmShape& s) {
  return s.sparse ? t.sparse_mma : t.mma;
}

// Rows that a program gives are for products that name them.
bool is_open(const MmaAtom& atom, const plan::OpPlan* given) {
  return !atom.given || (given && given->atom == atom.name);
}

// ---- cost

struct Cost {
  double cycles = 0;
  int64_t registers = 0;
  int64_t own_registers = 0;  // of them
  bool operator<(const Cost& o) const { return cycles < o.cycles; }
};

Cost cost_of(const GemmShape& s, const MmaAtom& atom, const WarpGrid& g, const cost::OperandSource (&from)[2],
             const Target& t) {
  constexpr int64_t kOtherRegisters = 40;  // addresses, predicates, loop counters
  const WarpTile w = warp_tile(s, atom, g);
  auto words = [](const Fragment& f, ir::DType type) {
    return ceil_div(f.registers() * ir::dtype_bytes(type), int64_t{4});
  };
  Cost cost;
  cost.own_registers = s.promote && !is_multiply_add(atom) ? w.m * w.n * words(atom.c_layout, atom.c) : 0;
  const int64_t accumulators = w.m * w.n * words(atom.c_layout, atom.c) + cost.own_registers;
  const int64_t a = w.m * words(atom.a_layout, atom.a), b = w.n * words(atom.b_layout, atom.b);
  const int64_t places = atom.sparse() ? 2 * w.m : 0;
  cost.registers = accumulators + (from[0].shared ? 2 * a : a * w.k) + (from[1].shared ? 2 * b : b * w.k) +
                   places + kOtherRegisters;
  cost.cycles = cost::cycles_of(cost::warp_product(s, atom, g, from, t));
  if (cost.registers > t.registers_per_thread)
    cost.cycles *= 4 * static_cast<double>(cost.registers) / static_cast<double>(t.registers_per_thread);
  return cost;
}

// ---- the plan

int64_t laid_together(const ir::Program& p, const TileOp& op, const MmaAtom& atom, int side,
                      const Target& t) {
  return k_laid_together(p, op.operands[static_cast<size_t>(side)], atom, side, operand_dims(p, op, side), t);
}

// Where a wave issues in order: until a load is there, with those of other waves in front of it. Elsewhere
// one step is enough.
int64_t steps_ahead(const MmaAtom& atom, const WarpTile& w, const Target& t) {
  constexpr double kLatencies = 2;
  constexpr int64_t kMostSteps = 3;
  if (!t.register_copies || is_multiply_add(atom)) return 0;
  const auto step = static_cast<double>(w.m * w.n * atom.cycles);
  const auto steps = static_cast<int64_t>(std::ceil(kLatencies * t.shared_latency / std::max(step, 1.0)));
  return std::clamp<int64_t>(steps, 1, kMostSteps);
}

GemmPlan make_plan(const ir::Program& p, const TileOp& op, const GemmShape& s, const MmaAtom& atom,
                   const WarpGrid& g, const Target& t) {
  const WarpTile w = warp_tile(s, atom, g);
  GemmPlan plan;
  plan.engine = plan::Engine::mma;
  plan.atom = atom.name;
  plan.warps_m = g.m;
  plan.warps_n = g.n;
  if (std::any_of(op.operands.begin(), op.operands.begin() + 2,
                  [&](const ir::Region& r) { return p.buffer(r.buffer).scope == ir::MemScope::shared; }))
    plan.steps_ahead = steps_ahead(atom, w, t);
  plan.c = analysis::partitioned(atom.c_layout, {{w.m, w.n}, {g.m, g.n}}, g,
                                 matrix_dims(p, op.operands[2], false), {s.m, s.n}, t.warp);
  plan.loop_over_k = is_multiply_add(atom) && target::is_loop_over_k(atom, w.m, w.n, w.k);
  for (int side = 0; side < 2; ++side) {
    if (p.buffer(op.operands[static_cast<size_t>(side)].buffer).scope == ir::MemScope::shared)
      (side == 0 ? plan.a_memory : plan.b_memory) =
          shared_layout(atom, side, operand_dims(p, op, side), side == 0 ? s.a : s.b, t.banks,
                        laid_together(p, op, atom, side, t));
    else
      (side == 0 ? plan.a_fragment : plan.b_fragment) = operand_fragment(p, op, atom, g, side, t.warp);
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

// What keeps multiply-adds from being instructions of matrices: an extent that is no multiple of the
// instruction's.
// Of 8-bit floats, each vendor's matrix instructions take a kind of its own, or none.
std::string no_instruction_of_type(const GemmShape& s, const Target& t) {
  if (!ir::is_storage_only(s.a)) return "";
  std::string taken;
  using enum ir::DType;
  for (ir::DType type : {e4m3, e5m2, e4m3fnuz, e5m2fnuz})
    if (std::any_of(t.mma.begin(), t.mma.end(), [&](const MmaAtom& atom) {
          return !atom.given && is_matrix_instruction(atom) && atom.a == type;
        }))
      taken += (taken.empty() ? "" : " and ") + std::string(ir::dtype_name(type));
  return "no matrix instructions: " + t.name +
         (taken.empty() ? " has none of 8-bit floats (copy the operands to f16, which is exact)"
                        : "'s take " + taken +
                              " (copy the operands to these, exact up to their largest values, or to f16)");
}

std::string no_instruction(const GemmShape& s, const Target& t, bool in_parts) {
  for (const MmaAtom& atom : t.mma) {
    if (atom.given || !serves(atom, s) || !is_matrix_instruction(atom)) continue;
    const std::string begin = "no matrix instructions: ",
                      of = ", no multiple of the " + atom.name + " instruction's ";
    if (s.k % atom.k != 0)
      return begin + "k is " + number(s.k) + of + number(atom.k) +
             " (copy the operands into tiles of more, filled with zeros)";
    if (in_parts && s.m % atom.m != 0)
      return begin + "m is " + number(s.m) + of + number(atom.m) + ", of a part of a fragment";
    if (in_parts && s.n % atom.n != 0)
      return begin + "n is " + number(s.n) + of + number(atom.n) + ", of a part of a fragment";
    return "";
  }
  return no_instruction_of_type(s, t);
}

// Why a row that the program gives cannot do the product, where shape and types say so.
std::string why_not(const GemmShape& s, const MmaAtom& atom) {
  if (s.sparse != atom.sparse())
    return s.sparse ? ": it multiplies whole operands" : ": its A holds two values of each four neighbours";
  if (s.sparse && s.k % atom.k != 0) return ": k is no multiple of the instruction's " + number(atom.k);
  if (s.sparse && !serves(atom, s))
    return std::string(": it multiplies ") + ir::dtype_name(atom.a) + " by " + ir::dtype_name(atom.b) +
           " into " + ir::dtype_name(atom.c);
  if (!atom.given) return "";
  if (atom.tf32 && !s.tf32 && s.a == ir::DType::f32)
    return ": the instruction rounds operands to tf32, which gemm allows where it says tf32";
  if (!serves(atom, s))
    return std::string(": it multiplies ") + ir::dtype_name(atom.a) + " by " + ir::dtype_name(atom.b) +
           " into " + ir::dtype_name(atom.c);
  if (s.k % atom.k != 0) return ": k is no multiple of the instruction's " + number(atom.k);
  return "";
}

// The rows that multiply these types.
std::string considered_of(const GemmShape& s, const Target& t) {
  std::string names;
  for (const MmaAtom& atom : atoms_of(t, s))
    if (!atom.given && serves(atom, s)) names += (names.empty() ? "" : ", ") + atom.name;
  return names.empty() ? "none" : names;
}

bool asks_for_warpgroups(const plan::OpPlan* given) {
  return given && (given->engine == plan::Engine::warpgroup_mma || given->atom.starts_with("wgmma."));
}

// Nothing, with the reason in `refused`, where warpgroups cannot; an error where the schedule asks for them
// all the same.
Expected<std::optional<GemmPlan>> plan_by_warpgroups(const ir::Program& p, const TileOp& op,
                                                     const GemmShape& s, const Target& t, int64_t threads,
                                                     const plan::OpPlan* given, const std::string& path,
                                                     const SourceLocation& loc,
                                                     const std::string& no_warpgroups, std::string& refused) {
  const bool asked = asks_for_warpgroups(given);
  if (given && !asked && (given->engine == plan::Engine::mma || !given->atom.empty()))
    return std::optional<GemmPlan>();
  std::string why = no_warpgroups;
  if (why.empty())
    if (auto plan = plan_warpgroup_gemm(p, op, s, t, threads, given, &why)) return plan;
  if (asked)
    return Error(DiagCode::schedule_illegal, path, "the schedule gives warpgroup instructions, but " + why,
                 "leave engine, atom and warps out to let the planner choose", loc);
  refused = std::move(why);
  return std::optional<GemmPlan>();
}

}  // namespace

Expected<GemmPlan> plan_mma_gemm(const ir::Program& p, const TileOp& op, const GemmShape& s, const Target& t,
                                 int64_t threads, const plan::OpPlan* given, const std::string& path,
                                 const SourceLocation& loc, const std::string& no_warpgroups,
                                 bool columns_together) {
  if (Checked ok = check_parts(p, op, path, loc); !ok) return ok.error();
  if (given && given->engine && *given->engine != plan::Engine::mma &&
      (*given->engine != plan::Engine::warpgroup_mma || t.warpgroup_mma.empty()))
    return Error(DiagCode::schedule_illegal, path,
                 std::string("the schedule gives engine '") + plan::engine_name(*given->engine) +
                     "', but on " + t.name + " products are done by 'mma'" +
                     (t.warpgroup_mma.empty() ? "" : " or 'warpgroup_mma'"),
                 "leave engine, atom and warps out to let the planner choose", loc);
  std::string refused;  // by warpgroups
  std::optional<GemmPlan> by_warpgroups;
  if (!t.warpgroup_mma.empty()) {
    auto plan = plan_by_warpgroups(p, op, s, t, threads, given, path, loc, no_warpgroups, refused);
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
    const bool along_k =
        k_is_contiguous(matrix_dims(p, r, transpose), side) ||
        std::any_of(atoms_of(t, s).begin(), atoms_of(t, s).end(), [&](const MmaAtom& atom) {
          return serves(atom, s) && is_open(atom, given) && laid_together(p, op, atom, side, t) > 1;
        });
    const bool shared = p.buffer(r.buffer).scope == ir::MemScope::shared;
    return cost::OperandSource{shared, along_k, shared ? 0 : operations_of_element(p, op, r.buffer)};
  };
  const cost::OperandSource from[2] = {source(0), source(1)};
  struct Choice {
    const MmaAtom* atom = nullptr;
    WarpGrid grid;
    Cost cost;
  };
  Choice best;
  bool any = false;
  std::string considered;
  auto consider = [&](const MmaAtom& atom, const WarpGrid& g) {
    const Cost cost = cost_of(s, atom, g, from, t);
    const bool same = best.atom && !(cost < best.cost) && !(best.cost < cost);
    const bool lies_better =
        best.atom && atom.transposed != columns_together && best.atom->transposed == columns_together;
    if (!best.atom || cost < best.cost || (same && lies_better)) best = {&atom, g, cost};
  };
  const bool in_parts = std::any_of(op.operands.begin(), op.operands.end(), [&](const ir::Region& r) {
    return p.buffer(r.buffer).scope != ir::MemScope::shared && r.extents != p.tile_shape(r.buffer);
  });
  // Exact divisions first; then matrix instructions on a tile that is padded along m and n, where none
  // divides it; then multiply-adds on a padded tile.
  for (Pad pad : {Pad::none, Pad::instructions, Pad::multiply_adds}) {
    if (best.atom && (pad == Pad::multiply_adds || is_matrix_instruction(*best.atom))) break;
    if (pad != Pad::none && in_parts) break;
    for (const MmaAtom& atom : atoms_of(t, s)) {
      if (!serves(atom, s) || !is_open(atom, given) || (given_atom && atom.name != given->atom)) continue;
      any = true;
      if (pad == Pad::none) considered += (considered.empty() ? "" : ", ") + atom.name;
      for (const WarpGrid& g : warp_grids(warps, given_grid ? ir::WarpPolicy::square : policy)) {
        if (given_grid && !is_split(*given, g.m, g.n)) continue;
        if (fits(s, atom, g, pad)) consider(atom, g);
      }
    }
  }
  if (by_warpgroups) {
    if (!best.atom || by_warpgroups->cycles <= best.cost.cycles) return std::move(*by_warpgroups);
    refused = "they take " + number(static_cast<int64_t>(by_warpgroups->cycles)) + " cycles, " +
              best.atom->name + " " + number(static_cast<int64_t>(best.cost.cycles));
  }
  std::string what = number(s.m) + "x" + number(s.n) + "x" + number(s.k) +
                     (s.sparse ? " sparse gemm of " : " gemm of ") + ir::dtype_name(s.a) + " and " +
                     ir::dtype_name(s.b) + " into " + ir::dtype_name(s.c);
  if (best.atom) {
    GemmPlan plan = make_plan(p, op, s, *best.atom, best.grid, t);
    plan.registers = best.cost.registers;
    plan.cycles = best.cost.cycles;
    plan.own_registers = best.cost.own_registers;
    plan.no_warpgroups = refused;
    if (!refused.empty()) plan.note = "no warpgroup instructions: " + refused;
    const WarpTile w = warp_tile(s, *best.atom, best.grid);
    plan.reason = "fewest cycles of what divides the tile over " + number(warps) + " warps (" + considered +
                  "): " + number(w.m * best.atom->m) + "x" + number(w.n * best.atom->n) + " a warp";
    if (best.grid.copies > 1) plan.reason += ", every one done by " + number(best.grid.copies);
    if (!divides(s, *best.atom, best.grid))
      plan.reason =
          "no instruction divides a " + what + ": " +
          (is_multiply_add(*best.atom) ? "multiply-adds on a padded tile"
                                       : number(w.m * best.atom->m) + "x" + number(w.n * best.atom->n) +
                                             " a warp, some of it beyond the tile");
    if (const std::string why =
            !is_matrix_instruction(*best.atom) && !given_atom ? no_instruction(s, t, in_parts) : "";
        !why.empty())
      plan.note += (plan.note.empty() ? "" : "; ") + why;
    return plan;
  }
  const MmaAtom* const named = given_atom ? target::find_mma_atom(t, given->atom) : nullptr;
  std::string why = named ? why_not(s, *named) : "";
  if (given_atom && !named)
    why = ": " + t.name + " has no such instruction, of these types " + considered_of(s, t);
  if (given_atom || given_grid)
    return Error(DiagCode::schedule_illegal, path,
                 (given_atom ? "the schedule's atom '" + given->atom + "'" : "no instruction of " + t.name) +
                     (given_grid ? " with " + split_text(*given) + " warps " : " ") +
                     (given_atom ? "cannot do a " : "does a ") + what + " with " + number(warps) + " warps" +
                     why,
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

}  // namespace tilegen::schedule
