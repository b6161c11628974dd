#include "schedule/products/op_engines.h"

#include <algorithm>

#include "analysis/block_tree.h"
#include "analysis/copy_groups.h"
#include "analysis/run_ahead.h"
#include "schedule/products/gemm_plan.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpId;
using plan::KernelSchedule;

namespace {

// Statistics of columns are taken of the product's sum, or it is made the operand B of another.
bool columns_together(const ir::Program& p, const KernelOps& ops, const KernelOp& product) {
  std::set<analysis::ValueId> sums = {product.accesses[2].value};
  for (const KernelOp& op : ops.ops) {
    const auto* tile_op = p.as<ir::TileOp>(op.stmt);
    const auto uses = [&](size_t operand) { return sums.count(op.accesses[operand].value) > 0; };
    if (op.form == analysis::OpForm::reduction && tile_op && uses(0) &&
        ops::layout_rule(*tile_op).reduction->axis == 0)
      return true;
    if (op.form == analysis::OpForm::contraction && uses(1)) return true;
    if (op.form != analysis::OpForm::element) continue;
    const bool reads = std::any_of(op.accesses.begin(), op.accesses.end(), [&](const auto& a) {
      return a.read && a.value.valid() && sums.count(a.value);
    });
    for (const analysis::OpAccess& a : op.accesses)
      if (reads && a.write && a.value.valid() && ops.values[a.value].scope != ir::MemScope::shared)
        sums.insert(a.value);
  }
  return false;
}

}  // namespace

Expected<GemmPlans> plan_gemms(const ir::Program& p, const KernelOps& ops, const target::Target& t,
                               int64_t threads, const KernelSchedule* given, const Refusals& refused,
                               const std::set<OpId>& by_each) {
  GemmPlans plans;
  for (OpId i : ops.ops.ids()) {
    const KernelOp& op = ops.ops[i];
    if (op.form != analysis::OpForm::contraction) continue;
    const plan::OpPlan* g = given ? plan::find_op(*given, op.path) : nullptr;
    const auto no = refused.find(i);
    if (by_each.count(i)) {
      const auto& product = *p.as<ir::TileOp>(op.stmt);
      auto plan = plan_warpgroup_gemm(p, product, analysis::gemm_shape(p, product), t, threads, g, nullptr,
                                      threads / t.warpgroup);
      if (plan) plans.emplace(i, std::move(*plan));
      if (plan) continue;
    }
    auto plan = plan_gemm(p, *p.as<ir::TileOp>(op.stmt), t, threads, g, op.path, op.location,
                          no == refused.end() ? "" : no->second, columns_together(p, ops, op));
    if (!plan) return plan.error();
    plans.emplace(i, std::move(*plan));
  }
  return plans;
}

namespace {

// The fewest threads, from the target's default up, whose registers hold the kernel's fragments and what its
// gemms need beside their accumulators.
int64_t choose_threads(const ir::Program& p, const KernelOps& ops, const target::Target& t,
                       const Refusals& refused) {
  const int64_t two_warpgroups = 2 * int64_t{t.warpgroup};
  constexpr int64_t kWithoutGemm = 96;  // registers for fragments where nothing needs them to be large
  int64_t fragment_bytes = 0;
  for (const analysis::Value& v : ops.values) {
    if (v.scope != ir::MemScope::fragment) continue;
    int64_t bytes = ir::dtype_bytes(p.buffer(v.buffer).type);
    for (int64_t extent : v.shape) bytes *= extent;
    fragment_bytes += bytes;
  }
  auto fits = [&](int64_t threads) {
    const int64_t all = fragment_bytes / (4 * threads);
    auto gemms = plan_gemms(p, ops, t, threads, nullptr, refused);
    if (!gemms) return false;
    if (gemms->empty()) return all <= kWithoutGemm;
    int64_t most = 0;
    for (const auto& [index, gemm] : *gemms) {
      const ir::DType type = p.buffer(ops.ops[index].accesses[2].buffer).type;
      most = std::max(most, gemm.registers + all - gemm.c.registers() * ir::dtype_bytes(type) / 4);
    }
    return most <= t.registers_per_thread;
  };
  // Two warpgroups keep the tensor pipe busy where one waits, as long as they split rows only.
  auto by_rows = [&](int64_t threads) {
    auto gemms = plan_gemms(p, ops, t, threads, nullptr, refused);
    return gemms && !gemms->empty() && std::all_of(gemms->begin(), gemms->end(), [](const auto& g) {
             return g.second.engine == plan::Engine::warpgroup_mma &&
                    (g.second.warps_n == 1 || g.second.warps_m == 1);
           });
  };
  if (!t.warpgroup_mma.empty() && fits(two_warpgroups) && by_rows(two_warpgroups)) return two_warpgroups;
  for (int64_t threads = t.default_threads; threads <= t.max_threads; threads *= 2)
    if (fits(threads)) return threads;
  return t.default_threads;
}

}  // namespace

Expected<int64_t> plan_threads(const ir::Program& p, const ir::Kernel& k, const KernelOps& ops,
                               const target::Target& t, const KernelSchedule* given,
                               const Refusals& refused) {
  int64_t threads = t.has_block_threads() ? k.threads : 1;
  if (threads <= 0 && !(given && given->threads)) threads = choose_threads(p, ops, t, refused);
  if (given && given->threads) threads = *given->threads;
  if (threads >= 1 && threads <= t.max_threads && threads % t.warp == 0) return threads;
  return Error(given && given->threads ? DiagCode::schedule_illegal : DiagCode::target_unsupported, k.name,
               std::to_string(threads) + " threads are not possible on " + t.name + ": at most " +
                   std::to_string(t.max_threads) + ", in multiples of " + std::to_string(t.warp),
               "choose another number of threads, or 0 to let the planner choose", k.location);
}

namespace {

// "4, 8 or 16"
std::string choices_text(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : i + 1 < numbers.size() ? ", " : " or ") + std::to_string(numbers[i]);
  return text;
}

}  // namespace

void plan_copy_engines(const ir::Program& p, int kernel, const KernelOps& ops, const target::Target& t,
                       const KernelSchedule* given, infer::InferResult& r) {
  const analysis::BlockTree tree(p, p.kernels[static_cast<size_t>(kernel)]);
  const bool own_groups = analysis::counts_own_groups(p, kernel);
  for (OpId i : ops.ops.ids()) {
    const KernelOp& op = ops.ops[i];
    const auto* tile_op = p.as<ir::TileOp>(op.stmt);
    const ir::Store* moved = tile_op ? nullptr : analysis::moving_store(p, op);
    if (!moved && !(tile_op && ops::is_copy(*tile_op))) continue;
    plan::OpPlan& plan = r.ops[i];
    const plan::OpPlan* g = given ? plan::find_op(*given, op.path) : nullptr;
    if (moved) {  // only where it may run ahead
      const ir::StmtId home = tree.loop_of(op.stmt);
      const auto* around = home.valid() ? p.as<ir::Loop>(home) : nullptr;
      const bool asked = g && g->engine == plan::Engine::async_copy;
      if (!asked && !(around && around->kind == ir::LoopKind::pipelined)) continue;
    } else {
      plan.engine = plan::Engine::vector_copy;
    }
    if (own_groups && !ir::is_asynchronous(p.stmt(op.stmt))) continue;
    const ir::Buffer &src = p.buffer(moved ? p.exprs[moved->value].object : tile_op->operands[0].buffer),
                     &dst = p.buffer(moved ? moved->buffer : tile_op->operands[1].buffer);
    if (!t.async_copy() || src.scope != ir::MemScope::global || dst.scope != ir::MemScope::shared) continue;
    if (g && g->engine == (moved ? plan::Engine::loop : plan::Engine::vector_copy)) continue;
    if (t.copies_in_lane_order && src.type == dst.type) {  // how wide: lane_order_copies.h
      plan.engine = plan::Engine::async_copy;
      continue;
    }
    const int64_t bytes = plan.vector * ir::dtype_bytes(src.type);
    if (src.type == dst.type && std::count(t.async_copy_bytes.begin(), t.async_copy_bytes.end(), bytes) > 0)
      plan.engine = plan::Engine::async_copy;
    else
      r.notes.push_back(
          {op.path, src.type != dst.type
                        ? "no asynchronous copy: the copy casts " + std::string(ir::dtype_name(src.type)) +
                              " to " + ir::dtype_name(dst.type)
                        : "no asynchronous copy: " + std::to_string(bytes) +
                              " bytes a thread, cp.async moves " + choices_text(t.async_copy_bytes)});
  }
}

void plan_streaming(const std::set<ir::BufferId>& read, const KernelOps& ops, const target::Target& t,
                    const KernelSchedule* given, infer::InferResult& r) {
  if (t.streaming_bytes == 0) return;
  for (OpId i : ops.ops.ids()) {
    const plan::OpPlan* g = given ? plan::find_op(*given, ops.ops[i].path) : nullptr;
    for (const analysis::OpAccess& a : ops.ops[i].accesses)
      if (a.write && !a.value.valid())
        r.ops[i].streaming = g && g->streaming ? *g->streaming : !read.count(a.buffer);
  }
}

}  // namespace tilegen::schedule
