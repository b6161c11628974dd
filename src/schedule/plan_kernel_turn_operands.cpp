// Operands of products in loops whose iterations two warpgroups have by turns (plan_kernel_alternation.cpp).
// A tile whose columns the warpgroups share comes in as many parts: a warpgroup that is done with its columns
// gives them back before the other is with its own, and the next scores begin with the part that is there
// first. And the warpgroup that has made the weights of an iteration has them in registers already, which
// spares shared memory as many reads.
#include <algorithm>

#include "analysis/gemm_shape.h"
#include "analysis/tensor_copy.h"
#include "ir/op_kinds.h"
#include "ir/statement_paths.h"
#include "schedule/kernel_planner.h"
#include "schedule/products/gemm_plan.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

namespace {

constexpr int64_t kWarpgroups = 2;
constexpr int kLeft = 0, kRight = 1;

bool contains(const std::vector<OpId>& list, OpId op) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

}  // namespace

// Why the tile that the pipeline of the loop brings does not come in a part for each warpgroup.
std::string KernelPlanner::no_parts_of_tile(const plan::PipelinePlan& c,
                                            const analysis::Alternation& a) const {
  if (c.values.size() > 1) return "several tiles come together";
  bool shared_columns = false;
  for (const auto& [where, value] : ops_.scalar_reads)
    if (ops_.values[value].name == c.values.front()) return "threads read its elements";
  for (OpId i : ops_.ops.ids())
    for (size_t at = 0; at < ops_.ops[i].accesses.size(); ++at) {
      const analysis::OpAccess& x = ops_.ops[i].accesses[at];
      if (!x.value.valid() || ops_.values[x.value].name != c.values.front()) continue;
      const std::string& path = ops_.ops[i].path;
      if (produced_.count(i)) {
        std::string why;
        const auto dims = analysis::tensor_copy_dims(p_, *p_.as<ir::TileOp>(ops_.ops[i].stmt), &why);
        const int bytes = ir::dtype_bytes(p_.buffer(x.buffer).type);
        const auto boxes = dims ? analysis::tensor_boxes(*dims, *layouts_.values[x.value].memory, bytes, &why)
                                : std::nullopt;
        if (!boxes) return why;
        if (boxes->column_boxes % kWarpgroups != 0)
          return "its columns do not divide into boxes for each warpgroup";
        continue;
      }
      const bool own = contains(a.products, i), shared = contains(a.shared, i);
      if ((!own && !shared) || ops_.ops[i].form != analysis::OpForm::contraction)
        return path + " is no product, and reads all of it";
      const auto& op = *p_.as<ir::TileOp>(ops_.ops[i].stmt);
      const analysis::GemmShape shape = analysis::gemm_shape(p_, op);
      const ir::Region& r = op.operands[at];
      if (at != kRight || analysis::swaps_operands(shape, target_) || shape.sparse || shape.promote ||
          r.extents != p_.tile_shape(r.buffer))
        return path + " does not read all of it as its right operand";
      const bool along_k = analysis::k_is_contiguous(
          analysis::matrix_dims(p_, r, op.flag(ir::gemm_attr::transpose_b)), kRight);
      const plan::OpPlan& plan = layouts_.ops[i];
      const auto instruction = target::find_warpgroup_atom(target_, plan.atom);
      if (along_k && (!own || !instruction || shape.k % (kWarpgroups * instruction->atom->k) != 0))
        return path + " sums over its columns";
      if (!along_k && (!shared || plan.warps_n != kWarpgroups))
        return path + " needs all of its columns in each warpgroup";
      shared_columns = shared_columns || !along_k;
    }
  return shared_columns ? "" : "no product has columns of it for each warpgroup";
}

// A product of both warpgroups reads one of its tiles.
bool KernelPlanner::is_shared_operand(const plan::PipelinePlan& c, const analysis::Alternation& a) const {
  return std::any_of(a.shared.begin(), a.shared.end(), [&](OpId i) {
    return std::any_of(ops_.ops[i].accesses.begin(), ops_.ops[i].accesses.end(), [&](const auto& x) {
      return x.value.valid() && std::count(c.values.begin(), c.values.end(), ops_.values[x.value].name) > 0;
    });
  });
}

Checked KernelPlanner::part_tiles_of_turns() {
  for (const auto& [loop, a] : alternations_)
    for (plan::PipelinePlan& c : copy_pipelines_) {
      if (c.loop != paths_[loop.value]) continue;
      const plan::PipelinePlan* given = given_ ? plan::find_pipeline(*given_, c.name) : nullptr;
      const int64_t asked = given ? given->parts : 0;
      c.parts = asked;
      if (asked == 1) continue;
      if (asked == 0 && !is_shared_operand(c, a)) continue;
      std::string why = no_parts_of_tile(c, a);
      if (why.empty() && asked > kWarpgroups)
        why = "two warpgroups share its columns, expected " + std::to_string(kWarpgroups) + " parts";
      if (why.empty()) {
        c.parts = kWarpgroups;
        if (arena(pipelines_.slots) > target_.shared_bytes)
          why = "shared memory has no room for its barriers";
      }
      if (why.empty()) continue;
      c.parts = 0;
      if (asked > 0)
        return Error(
            DiagCode::schedule_illegal, c.loop,
            "the schedule has pipeline '" + c.name + "' in " + std::to_string(asked) + " parts, but " + why,
            "leave `parts` out to have them decided", p_.stmts[loop.value].location);
      notes_.push_back({c.loop, "'" + c.values.front() + "' does not come in parts: " + why});
    }
  return Unit{};
}

// Why the warpgroup that makes the product's left operand does not take it from registers.
std::string KernelPlanner::no_own_left(OpId product, const analysis::Alternation& a,
                                       const KernelSchedule& s) const {
  const auto& op = *p_.as<ir::TileOp>(ops_.ops[product].stmt);
  const analysis::GemmShape shape = analysis::gemm_shape(p_, op);
  const ValueId left = ops_.ops[product].accesses[kLeft].value;
  const ir::Region& r = op.operands[kLeft];
  if (analysis::swaps_operands(shape, target_) || shape.sparse || r.extents != p_.tile_shape(r.buffer))
    return "it does not read all of the tile as its left operand";
  const auto made = std::find_if(a.work.begin(), a.work.end(), [&](OpId i) {
    const auto& list = ops_.ops[i].accesses;
    return std::any_of(list.begin(), list.end(),
                       [&](const analysis::OpAccess& x) { return x.write && x.value == left; });
  });
  if (made == a.work.end()) return "no warpgroup makes its left operand in the loop";
  if (!s.ops[made->index()].matrix_stores.value_or(false))
    return ops_.ops[*made].path + " does not store matrices";
  const auto& copy = *p_.as<ir::TileOp>(ops_.ops[*made].stmt);
  if (p_.buffer(copy.operands[0].buffer).type == p_.buffer(copy.operands[1].buffer).type)
    return ops_.ops[*made].path + " stores registers that the threads go on with";
  const auto& held = s.values[ops_.value_of(ops_.ops[*made], copy.operands[0].buffer).index()].fragment;
  const auto instruction = target::find_warpgroup_atom(target_, s.ops[product.index()].atom);
  if (!instruction || !held) return "its elements are not held by threads";
  const layout::Fragment taken = warpgroup_left_fragment(p_, op, *instruction->atom, kWarpgroups, target_);
  return held->equivalent(taken) ? "" : "the instructions take its elements from other registers";
}

Checked KernelPlanner::plan_own_operands(KernelSchedule& s) const {
  for (const auto& [loop, a] : alternations_)
    for (OpId i : a.shared) {
      if (ops_.ops[i].form != analysis::OpForm::contraction) continue;
      const plan::OpPlan* given = given_op(i);
      if (given && given->left_in_registers == false) {
        s.ops[i.index()].left_in_registers = false;
        continue;
      }
      const std::string why = no_own_left(i, a, s), &path = ops_.ops[i].path;
      if (why.empty()) {
        s.ops[i.index()].left_in_registers = true;
        continue;
      }
      if (given && given->left_in_registers == true)
        return Error(DiagCode::schedule_illegal, path,
                     "the schedule has its own left operand in registers (left_in_registers), but " + why,
                     "leave `left_in_registers` out to have it decided",
                     p_.stmts[ops_.ops[i].stmt.value].location);
      s.notes.push_back({path, "its left operand is read from shared memory by both warpgroups: " + why});
    }
  return Unit{};
}

}  // namespace tilegen::schedule
