// Warpgroup split, instruction width and operand layouts of a gemm on wgmma.
#include <algorithm>
#include <tuple>
#include <utility>

#include "analysis/tile_parts.h"
#include "analysis/warp_partition.h"
#include "analysis/warpgroup_operand.h"
#include "cost/product_work.h"
#include "ir/op_kinds.h"
#include "schedule/products/gemm_plan.h"
#include "support/checked.h"

namespace tilegen::schedule {

using analysis::boxed_operand;
using analysis::k_major_copy;
using analysis::matrix_dims;
using analysis::needs_k_major_copy;
using analysis::OperandSide;
using analysis::partitioned;
using analysis::side_of;
using analysis::swaps_operands;
using analysis::transposed_block;
using analysis::WarpGrid;
using ir::TileOp;
using layout::Digit;
using layout::Fragment;
using layout::Layout;
using layout::Swizzle;
using target::Target;
using target::WarpgroupAtom;

namespace {

constexpr int64_t kTurnedRegisters = 32;  // elements on their way into a copy, and their addresses
constexpr int64_t kOtherRegisters = 32;   // addresses, barriers, loop counters, an element on its way out

std::string number(int64_t v) { return std::to_string(v); }

std::string warpgroups_text(int64_t n) { return number(n) + (n == 1 ? " warpgroup" : " warpgroups"); }

std::string shape_text(const GemmShape& s) { return number(s.m) + "x" + number(s.n) + "x" + number(s.k); }

// The product as the instructions see it: `s` with A and B, rows and columns swapped where the tile's are.
struct View {
  GemmShape s;
  bool swapped = false;
  OperandSide sides[2];  // A and B of the instructions
  bool a_shared = true;
  bool copied[2] = {false, false};  // `sides` are those of copies
  std::string refused;              // a copy that cannot be made
  int operand(int side) const { return swapped ? 1 - side : side; }
  const char* name(int side) const { return (side == 0) != swapped ? "A" : "B"; }
};

bool in_shared(const ir::Program& p, const TileOp& op, int operand) {
  return p.buffer(op.operands[static_cast<size_t>(operand)].buffer).scope == ir::MemScope::shared;
}

// The operand of the op as it lies in its tile.
OperandSide lying(const ir::Program& p, const TileOp& op, int operand) {
  const ir::Region& r = op.operands[static_cast<size_t>(operand)];
  const bool transpose = op.flag(operand == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b);
  OperandSide side = side_of(matrix_dims(p, r, transpose), operand);
  if (in_shared(p, op, operand)) side.together = analysis::filled_together(p, r.buffer, side.inner());
  return side;
}

View view_of(const ir::Program& p, const TileOp& op, const GemmShape& s, const Target& t) {
  View v;
  v.s = s;
  v.swapped = swaps_operands(s, t) && s.n % t.warpgroup_rows() == 0;
  if (v.swapped) {
    std::swap(v.s.m, v.s.n);
    std::swap(v.s.a, v.s.b);
  }
  v.sides[v.swapped] = lying(p, op, 0);
  v.sides[!v.swapped] = lying(p, op, 1);
  v.a_shared = in_shared(p, op, v.swapped ? 1 : 0);
  return v;
}

// Operands that the instructions do not read as they lie are copied.
void copy_operands(View& v, const WarpgroupAtom& atom) {
  for (int side = v.a_shared ? 0 : 1; side < 2; ++side) {
    OperandSide& s = v.sides[side];
    if (!needs_k_major_copy(atom, s.dims, v.operand(side))) continue;
    const ir::DType type = side == 0 ? v.s.a : v.s.b;
    const auto copy = k_major_copy(s.dims, v.operand(side), ir::dtype_bytes(type), atom.m);
    if (!copy)
      v.refused = std::string(v.name(side)) + " of " + ir::dtype_name(type) +
                  " must be stored with k as the last dimension: warps turn blocks of " +
                  number(transposed_block(ir::dtype_bytes(type)).k) + "x" +
                  number(transposed_block(ir::dtype_bytes(type)).rows) + ", which do not divide " +
                  number(s.extent(s.k)) + "x" + number(s.extent(s.rows));
    else
      s = side_of(copy->dims, v.operand(side));
    v.copied[side] = true;
  }
}

// Instructions of one k step.
struct Split {
  const WarpgroupAtom* atom = nullptr;
  int64_t m = 1, n = 1;  // warpgroups
  int width = 0;         // columns of an instruction
};

struct Cost {
  double cycles = 0;
  int64_t registers = 0;
  int64_t own_registers = 0;  // of them
};

Cost cost_of(const View& v, const Split& x, const Target& t) {
  const GemmShape& s = v.s;
  const int64_t reps = s.m / (x.atom->m * x.m), columns = s.n / x.n, k_steps = s.k / x.atom->k;
  const int64_t a_bytes = x.atom->m * x.atom->a_k() * ir::dtype_bytes(s.a);
  Cost c;
  c.cycles = cost::cycles_of(
      cost::warpgroup_product(s, {x.atom, x.m, x.n, x.width, v.a_shared, {v.copied[0], v.copied[1]}}, t));
  if (s.promote) c.own_registers = x.width / 2;  // one instruction's sums
  if (v.copied[0] || v.copied[1]) c.own_registers += kTurnedRegisters;
  c.registers = reps * columns * ir::dtype_bytes(s.c) / 8 + c.own_registers + kOtherRegisters +
                (v.a_shared ? 0 : reps * k_steps * a_bytes / (4 * t.warpgroup)) +
                (s.sparse ? reps * k_steps : 0);
  return c;
}

bool allows(ir::WarpPolicy policy, const Split& x, bool swapped) {
  return policy == ir::WarpPolicy::square ||
         ((policy == ir::WarpPolicy::full_row) != swapped ? x.n == 1 : x.m == 1);
}

// Warps along the rows and columns of the op's C.
std::pair<int64_t, int64_t> warps_of(const Split& x, bool swapped, const Target& t) {
  const int64_t along_rows = t.warpgroup_warps() * x.m;
  return swapped ? std::pair(x.n, along_rows) : std::pair(along_rows, x.n);
}

// 32-bit floats are multiplied as tf32 only, where the program says so.
const WarpgroupAtom* atom_for(const Target& t, const TileOp& op, const GemmShape& s) {
  if (s.a == ir::DType::f32 && !op.flag(ir::gemm_attr::tf32)) return nullptr;
  for (const WarpgroupAtom& atom : s.sparse ? t.sparse_warpgroup_mma : t.warpgroup_mma)
    if (atom.a == s.a && atom.b == s.b && atom.c == s.c) return &atom;
  return nullptr;
}

bool is_whole(const ir::Program& p, const ir::Region& r) { return r.extents == p.tile_shape(r.buffer); }

// What the shape, the types and the scopes alone forbid; empty where nothing does.
std::string refusal(const ir::Program& p, const TileOp& op, const View& v, const Target& t, int64_t threads,
                    const WarpgroupAtom* atom) {
  const GemmShape& s = v.s;
  if (t.warpgroup_mma.empty()) return t.name + " has no warpgroup instructions";
  if (!atom)
    return std::string(s.sparse ? "none multiplies sparse " : "none multiplies ") + ir::dtype_name(s.a) +
           " by " + ir::dtype_name(s.b) + " into " + ir::dtype_name(s.c);
  for (const ir::Region& r : op.operands)
    if (!is_whole(p, r)) return "'" + p.buffer(r.buffer).name + "' is used in parts";
  if (!in_shared(p, op, v.operand(1))) {
    const std::string name = v.name(1);
    const std::string narrow = s.b_held ? " and has no multiple of " + number(atom->m) + " columns" : "";
    return name + " is in registers" + narrow + ", it takes " + name + " from shared memory";
  }
  if (threads % t.warpgroup != 0)
    return number(threads) + " threads are no multiple of a warpgroup's " + number(t.warpgroup);
  if (s.m % atom->m != 0) return number(s.m) + " rows are no multiple of " + number(atom->m);
  if (s.k % atom->k != 0) return "k " + number(s.k) + " is no multiple of " + number(atom->k);
  return "";
}

// B can lie as instructions of this width read it: a sparse one's k are more bytes than its A's, all of them
// in one row.
bool reads_b(const View& v, const WarpgroupAtom& atom, int width) {
  const int bytes = ir::dtype_bytes(v.s.b);
  const auto boxed = boxed_operand(v.sides[1], width, bytes);
  return boxed && (!atom.sparse() || analysis::warpgroup_operand_form(*boxed, v.sides[1].dims, v.operand(1),
                                                                      bytes, width, atom.k));
}

// Of a thread, beside its sums of the instruction. By ptxas 13.0 (C7602), which has no more for it than the
// kernel is launched with, whatever the role has later.
constexpr int64_t kInstructionRegisters = 26;

bool has_registers(const View& v, int64_t warpgroups, int width, const Target& t) {
  const int64_t threads = (warpgroups + 1) * t.warpgroup,  // with a producer's
      launched = t.registers_per_multiprocessor / threads / 8 * 8,
                sums = width / 2 * ir::dtype_bytes(v.s.c) / 4;
  return sums + kInstructionRegisters <= launched;
}

// Splits over the warpgroups, rows first, and widths, that divide the tile and that the schedule and the
// policy allow.
std::vector<Split> splits(const View& v, const WarpgroupAtom* atom, int64_t warpgroups, ir::WarpPolicy policy,
                          const plan::OpPlan* given, const Target& t) {
  const GemmShape& s = v.s;
  const bool given_atom = given && !given->atom.empty(),
             given_split = given && given->warps_m + given->warps_n > 0;
  std::vector<Split> list;
  for (int64_t m = warpgroups; m >= 1; --m) {
    Split x{atom, m, warpgroups / m, 0};
    if (x.m * x.n != warpgroups || s.m % (atom->m * x.m) != 0 || s.n % x.n != 0) continue;
    const auto own_split = [&] {
      const auto [along_m, along_n] = warps_of(x, v.swapped, t);
      return is_split(*given, along_m, along_n);
    };
    if (given_split ? !own_split() : !allows(policy, x, v.swapped)) continue;
    for (int width : atom->widths) {
      x.width = width;
      if (s.n / x.n % width != 0 || !reads_b(v, *atom, width) || !has_registers(v, warpgroups, width, t))
        continue;
      if (given_atom && given->atom != target::warpgroup_instruction_name(*atom, width)) continue;
      list.push_back(x);
    }
  }
  return list;
}

struct Choice {
  std::optional<Split> split;
  Cost cost;
  int64_t fewest = 0;  // registers of splits that need too many
};

Choice cheapest(const std::vector<Split>& splits, const View& v, int64_t limit, const Target& t) {
  Choice best;
  for (const Split& x : splits) {
    const Cost c = cost_of(v, x, t);
    if (c.registers > limit) {
      best.fewest = best.fewest == 0 ? c.registers : std::min(best.fewest, c.registers);
    } else if (!best.split || c.cycles < best.cost.cycles ||
               (c.cycles == best.cost.cycles && x.width > best.split->width)) {
      best.split = x;
      best.cost = c;
    }
  }
  return best;
}

GemmPlan make_plan(const ir::Program& p, const TileOp& op, const View& v, const Split& x, int64_t copies,
                   const Target& t) {
  const GemmShape& s = v.s;
  const int64_t reps = s.m / (x.atom->m * x.m), columns = s.n / x.n;
  const WarpGrid grid{x.m, x.n, copies};
  GemmPlan plan;
  plan.engine = plan::Engine::warpgroup_mma;
  plan.atom = target::warpgroup_instruction_name(*x.atom, x.width);
  std::tie(plan.warps_m, plan.warps_n) = warps_of(x, v.swapped, t);
  MatrixDims c = matrix_dims(p, op.operands[2], v.swapped);
  plan.c = partitioned(x.atom->accumulator(x.width), {{reps, columns / x.width}, {x.m, x.n}}, grid, c,
                       {s.m, s.n}, t.warpgroup);
  const int bytes[2] = {ir::dtype_bytes(s.a), ir::dtype_bytes(s.b)};
  std::optional<Layout>& left = v.swapped ? plan.b_memory : plan.a_memory;
  std::optional<Layout>& right = v.swapped ? plan.a_memory : plan.b_memory;
  if (v.a_shared) {
    left = boxed_operand(v.sides[0], x.atom->m, bytes[0]);
  } else {
    MatrixDims a = v.sides[0].dims;
    if (v.swapped) std::swap(a.row, a.col);
    (v.swapped ? plan.b_fragment : plan.a_fragment) = partitioned(
        x.atom->a_operand(), {{reps, s.k / x.atom->k}, {x.m, 1}}, grid, a, {s.m, s.a_k()}, t.warpgroup);
  }
  right = boxed_operand(v.sides[1], x.width, bytes[1]);
  for (int side = 0; side < 2; ++side) {
    if (!v.copied[side]) continue;
    const int operand = v.operand(side);
    auto& memory = operand == 0 ? plan.a_memory : plan.b_memory;
    (operand == 0 ? plan.a_copy : plan.b_copy) = std::move(memory);
    const OperandSide lies = lying(p, op, operand);
    memory = boxed_operand(lies, lies.extent(lies.rows), bytes[side]);
  }
  return plan;
}

std::string reason_of(const View& v, const Split& x, const std::string& warpgroups, int64_t copies) {
  if (copies > 1) return "one warpgroup has the whole tile: " + number(copies) + " have iterations by turns";
  const int64_t rows = v.s.m / x.m, columns = v.s.n / x.n;
  std::string reason = "least shared memory traffic of what divides the tile over " + warpgroups + ": " +
                       number(v.swapped ? columns : rows) + "x" + number(v.swapped ? rows : columns) +
                       " a warpgroup";
  if (v.swapped)
    reason +=
        ", B in the place of A: " +
        (v.s.b_held ? "it is in registers"
                    : number(v.s.n) + " rows are no multiple of the instruction's " + number(x.atom->m));
  for (int side = 0; side < 2; ++side)
    if (v.copied[side])
      reason += std::string(", ") + v.name(side) + " turned on the way: the instructions read " +
                ir::dtype_name(side == 0 ? v.s.a : v.s.b) + " along k only";
  if (v.s.promote)
    reason += ", " + number(x.width) + " columns of sums at a time beside them, added after " +
              number(std::min(v.s.k, ir::gemm_attr::kPromoted)) + " of k";
  return reason;
}

}  // namespace

Fragment warpgroup_left_fragment(const ir::Program& p, const TileOp& op, const target::WarpgroupAtom& atom,
                                 int64_t copies, const Target& t) {
  const MatrixDims dims = matrix_dims(p, op.operands[0], op.flag(ir::gemm_attr::transpose_a));
  const GemmShape s = analysis::gemm_shape(p, op);
  return partitioned(atom.a_operand(), {{s.m / atom.m, s.k / atom.k}, {1, 1}}, {1, 1, copies}, dims,
                     {s.m, s.a_k()}, t.warpgroup);
}

std::optional<GemmPlan> plan_warpgroup_gemm(const ir::Program& p, const TileOp& op, const GemmShape& shape,
                                            const Target& t, int64_t threads, const plan::OpPlan* given,
                                            std::string* reason, int64_t copies) {
  auto refuse = [&](std::string why) {
    if (reason) *reason = std::move(why);
    return std::nullopt;
  };
  View v = view_of(p, op, shape, t);
  const GemmShape& s = v.s;
  const WarpgroupAtom* atom = atom_for(t, op, s);
  if (std::string why = refusal(p, op, v, t, threads, atom); !why.empty()) return refuse(std::move(why));
  copy_operands(v, *atom);
  if (!v.refused.empty()) return refuse(v.refused);
  if (v.a_shared && !boxed_operand(v.sides[0], atom->m, ir::dtype_bytes(s.a)))
    return refuse(std::string("rows of ") + v.name(0) + " are no multiples of 32 bytes");

  const int64_t limit = target::most_consumer_registers(t, threads);
  const auto policy = static_cast<ir::WarpPolicy>(op.attrs[ir::gemm_attr::policy]);
  const Choice best =
      cheapest(splits(v, atom, threads / t.warpgroup / copies, policy, given, t), v, limit, t);
  if (!best.split && best.fewest > 0)
    return refuse("a thread would need " + number(best.fewest) + " registers of " + number(limit) +
                  "; use more threads or a smaller tile");
  const std::string warpgroups = warpgroups_text(threads / t.warpgroup);
  if (!best.split)
    return refuse("no instruction's width divides a " + shape_text(shape) + " tile split over " + warpgroups +
                  (given && (!given->atom.empty() || given->warps_m + given->warps_n > 0)
                       ? " as the schedule says"
                       : ""));
  GemmPlan plan = make_plan(p, op, v, *best.split, copies, t);
  plan.registers = best.cost.registers;
  plan.own_registers = best.cost.own_registers;
  plan.cycles = best.cost.cycles;
  plan.reason = reason_of(v, *best.split, warpgroups, copies);
  return plan;
}

}  // namespace tilegen::schedule
