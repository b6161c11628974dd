#include "schedule/plan_program.h"

#include <algorithm>
#include <set>

#include "infer/infer_layouts.h"
#include "infer/kernel_ops.h"
#include "ops/gemm_plan.h"
#include "schedule/memory_plan.h"
#include "schedule/pipeline_plan.h"
#include "schedule/raster_plan.h"

namespace tilegen::schedule {

using infer::KernelOp;
using infer::KernelOps;
using plan::KernelSchedule;

namespace {

using GemmPlans = std::map<size_t, ops::GemmPlan>;

Expected<GemmPlans> plan_gemms(const ir::Program& p, const KernelOps& ops, const target::Target& t,
                               int64_t threads, const KernelSchedule* given) {
  GemmPlans plans;
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    const KernelOp& op = ops.ops[i];
    if (op.form != infer::OpForm::gemm) continue;
    const plan::OpPlan* g = given ? plan::find_op(*given, op.path) : nullptr;
    auto plan = ops::plan_gemm(p, *p.as<ir::TileOp>(op.stmt), t, threads, g, op.path, op.location,
                               "its tiles do not come by tensor copies");
    if (!plan) return plan.error();
    plans.emplace(i, std::move(*plan));
  }
  return plans;
}

// The fewest threads, from the target's default up, whose registers hold the kernel's fragments and what its
// gemms need beside their accumulators.
int64_t choose_threads(const ir::Program& p, const KernelOps& ops, const target::Target& t) {
  constexpr int64_t kWithoutGemm = 96;  // registers for fragments where nothing needs them to be large
  int64_t fragment_bytes = 0;
  for (const infer::Value& v : ops.values) {
    if (v.scope != ir::MemScope::fragment) continue;
    int64_t bytes = ir::dtype_bytes(p.buffer(v.buffer).type);
    for (int64_t extent : v.shape) bytes *= extent;
    fragment_bytes += bytes;
  }
  auto fits = [&](int64_t threads) {
    const int64_t all = fragment_bytes / (4 * threads);
    auto gemms = plan_gemms(p, ops, t, threads, nullptr);
    if (!gemms) return false;
    if (gemms->empty()) return all <= kWithoutGemm;
    int64_t most = 0;
    for (const auto& [index, gemm] : *gemms) {
      const ir::DType type = p.buffer(ops.ops[index].accesses[2].buffer).type;
      most = std::max(most, gemm.registers + all - gemm.c.registers() * ir::dtype_bytes(type) / 4);
    }
    return most <= t.registers_per_thread;
  };
  for (int64_t threads = t.default_threads; threads <= t.max_threads; threads *= 2)
    if (fits(threads)) return threads;
  return t.default_threads;
}

Expected<int64_t> plan_threads(const ir::Program& p, const ir::Kernel& k, const KernelOps& ops,
                               const target::Target& t, const KernelSchedule* given) {
  int64_t threads = t.is_host() ? 1 : k.threads;
  if (threads <= 0 && !(given && given->threads)) threads = choose_threads(p, ops, t);
  if (given && given->threads) threads = *given->threads;
  if (threads >= 1 && threads <= t.max_threads && threads % t.warp == 0) return threads;
  return Error(given && given->threads ? DiagCode::schedule_illegal : DiagCode::target_unsupported, k.name,
               std::to_string(threads) + " threads are not possible on " + t.name + ": at most " +
                   std::to_string(t.max_threads) + ", in multiples of " + std::to_string(t.warp),
               "choose another number of threads, or 0 to let the planner choose", k.location);
}

// A given schedule may name only what the kernel has.
Checked check_names(const KernelSchedule& given, const ir::Program& p, int kernel, const KernelOps& ops) {
  std::set<std::string> op_names, value_names, loop_names;
  for (const KernelOp& op : ops.ops) op_names.insert(op.path);
  for (const infer::Value& v : ops.values) value_names.insert(v.name);
  std::vector<std::string> paths = ir::statement_paths(p);
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
    if (const auto* loop = p.as<ir::Loop>(id); loop && loop->kind == ir::LoopKind::pipelined)
      loop_names.insert(paths[id.value]);
  });
  auto refuse = [&](const char* what, const std::string& name,
                    const std::set<std::string>& known) -> Checked {
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    return Error(
        DiagCode::schedule_mismatch, given.kernel,
        std::string("the schedule names ") + what + " '" + name + "', which the kernel does not have",
        std::string("known: ") + (list.empty() ? "none" : list));
  };
  for (const auto& o : given.ops)
    if (!op_names.count(o.op)) return refuse("op", o.op, op_names);
  for (const auto& v : given.values)
    if (!value_names.count(v.value)) return refuse("value", v.value, value_names);
  for (const auto& l : given.loops)
    if (!loop_names.count(l.loop)) return refuse("loop", l.loop, loop_names);
  return Unit{};
}

bool is_complete(const KernelSchedule& given, const KernelOps& ops) {
  for (const KernelOp& op : ops.ops) {
    const plan::OpPlan* g = plan::find_op(given, op.path);
    if (!g || (op.form != infer::OpForm::gemm && !g->iteration)) return false;
    if (op.form == infer::OpForm::gemm && g->atom.empty() && g->engine != plan::Engine::loop) return false;
  }
  for (const infer::Value& v : ops.values) {
    const plan::ValuePlan* g = plan::find_value(given, v.name);
    if (!g || (!g->fragment && !g->memory)) return false;
  }
  return true;
}

// A full schedule is taken as it is, once it is seen to fit: inference is not asked.
Expected<infer::InferResult> replay(const ir::Program& p, const KernelOps& ops, const GemmPlans& gemms,
                                    const KernelSchedule& given, int64_t threads) {
  infer::InferResult r;
  auto illegal = [&](const std::string& name, const std::string& message) {
    return Error(DiagCode::schedule_illegal, name, message, "delete the field to have it inferred");
  };
  for (const infer::Value& v : ops.values) {
    plan::ValuePlan plan = *plan::find_value(given, v.name);
    plan.slots = 1;
    const bool registers = v.scope == ir::MemScope::fragment || v.scope == ir::MemScope::local;
    const bool place = registers ? plan.fragment.has_value() != plan.memory.has_value() : plan.memory.has_value();
    if (!place || (!registers && plan.fragment) || (registers && plan.memory && threads == 1) ||
        (plan.fragment ? plan.fragment->shape() : plan.memory->shape()) != v.shape ||
        (plan.fragment && plan.fragment->threads() != threads) ||
        (plan.memory && !plan.memory->is_injective()))
      return illegal(v.name,
                     "the given layout does not fit the buffer's scope, its shape or the block's threads");
    r.values.push_back(std::move(plan));
  }
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    const KernelOp& op = ops.ops[i];
    plan::OpPlan plan = *plan::find_op(given, op.path);
    if (op.form == infer::OpForm::gemm && plan.engine != plan::Engine::loop) {
      const ops::GemmPlan& g = gemms.at(i);
      auto fits = [&](int operand, const std::optional<layout::Layout>& m, const layout::Fragment* f) {
        const plan::ValuePlan& v =
            r.values[static_cast<size_t>(op.accesses[static_cast<size_t>(operand)].value)];
        if (m && threads == 1) return v.memory && v.memory->equivalent(*m);
        const bool converted = std::any_of(given.conversions.begin(), given.conversions.end(), [&](const auto& c) {
          return c.value == v.value && c.producer == op.path;
        });
        if (f && (threads == 1 || (operand == 2 && !converted))) return v.fragment && v.fragment->equivalent(*f);
        return true;
      };
      if (!fits(0, g.a_memory, g.a_fragment ? &*g.a_fragment : nullptr) ||
          !fits(1, g.b_memory, g.b_fragment ? &*g.b_fragment : nullptr) || !fits(2, std::nullopt, &g.c))
        return illegal(op.path, "an operand's given layout is not the one atom '" + g.atom + "' works on");
    } else if (op.form == infer::OpForm::element && plan.iteration &&
               (plan.iteration->shape() != op.view.extents || plan.iteration->threads() != threads)) {
      return illegal(op.path,
                     "the given iteration layout does not fit the op's extents or the block's threads");
    }
    r.ops.push_back(std::move(plan));
  }
  r.conversions = given.conversions;
  (void)p;
  return r;
}

// Copies between global and shared memory: asynchronous where the target can and 4, 8 or 16 bytes move at
// once.
void plan_copy_engines(const ir::Program& p, const KernelOps& ops, const target::Target& t,
                       infer::InferResult& r) {
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    const KernelOp& op = ops.ops[i];
    const auto* tile_op = p.as<ir::TileOp>(op.stmt);
    if (!tile_op || tile_op->kind != ir::OpKind::copy) continue;
    plan::OpPlan& plan = r.ops[i];
    plan.engine = plan::Engine::vector_copy;
    const ir::Buffer &src = p.buffer(tile_op->operands[0].buffer),
                     &dst = p.buffer(tile_op->operands[1].buffer);
    if (!t.async_copy || src.scope != ir::MemScope::global || dst.scope != ir::MemScope::shared) continue;
    int64_t bytes = plan.vector * ir::dtype_bytes(src.type);
    if (src.type == dst.type && (bytes == 4 || bytes == 8 || bytes == 16))
      plan.engine = plan::Engine::async_copy;
    else
      r.notes.push_back({op.path, src.type != dst.type ? "no asynchronous copy: the copy casts " +
                                                             std::string(ir::dtype_name(src.type)) + " to " +
                                                             ir::dtype_name(dst.type)
                                                       : "no asynchronous copy: " + std::to_string(bytes) +
                                                             " bytes a thread, cp.async moves 4, 8 or 16"});
  }
}

// On the host, results that the program never reads again need not displace the caches' contents.
void plan_streaming(const ir::Program& p, const KernelOps& ops, const target::Target& t,
                    const KernelSchedule* given, infer::InferResult& r) {
  if (t.streaming_bytes == 0) return;
  std::set<ir::BufferId> read;
  for (int k = 0; k < static_cast<int>(p.kernels.size()); ++k)
    for (const KernelOp& op : infer::collect_kernel_ops(p, k).ops)
      for (const infer::OpAccess& a : op.accesses)
        if (a.read) read.insert(a.buffer);
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    if (given && plan::find_op(*given, ops.ops[i].path)) continue;
    for (const infer::OpAccess& a : ops.ops[i].accesses)
      if (a.write && a.value < 0 && !read.count(a.buffer)) r.ops[i].streaming = true;
  }
}

Expected<KernelSchedule> plan_kernel(const ir::Program& p, int index, const target::Target& t,
                                     const KernelSchedule* given, bool conversions) {
  const ir::Kernel& kernel = p.kernels[static_cast<size_t>(index)];
  KernelOps ops = infer::collect_kernel_ops(p, index);
  if (given)
    if (Checked ok = check_names(*given, p, index, ops); !ok) return ok.error();

  KernelSchedule s;
  s.kernel = kernel.name;
  auto threads = plan_threads(p, kernel, ops, t, given);
  if (!threads) return threads.error();
  s.threads = *threads;

  auto gemms = plan_gemms(p, ops, t, *threads, given);
  if (!gemms) return gemms.error();

  Expected<infer::InferResult> layouts =
      given && is_complete(*given, ops)
          ? replay(p, ops, *gemms, *given, *threads)
          : infer::infer_layouts({p, ops, t, *threads, *gemms, given, conversions});
  if (!layouts) return layouts.error();
  plan_copy_engines(p, ops, t, *layouts);
  plan_streaming(p, ops, t, given, *layouts);

  const std::vector<Scratch> scratch =
      plan_scratch(p, ops, layouts->values, layouts->ops, layouts->conversions, t);
  const auto arena = [&](const std::map<int, int64_t>& slots) {
    std::vector<plan::ValuePlan> values = layouts->values;
    for (auto [value, count] : slots) values[static_cast<size_t>(value)].slots = count;
    return arena_bytes(place_values(p, index, ops, values, scratch, t));
  };
  PipelineResult pipelines =
      plan_pipelines(p, index, ops, t, value_bytes(p, ops, layouts->values, t), arena, given);
  for (auto [value, slots] : pipelines.slots) layouts->values[static_cast<size_t>(value)].slots = slots;
  auto memory = plan_memory(p, index, ops, layouts->values, scratch, t);
  if (!memory) return memory.error();

  s.raster = plan_raster(p, kernel, t, given);
  s.ops = std::move(layouts->ops);
  s.values = std::move(layouts->values);
  s.conversions = std::move(layouts->conversions);
  s.loops = std::move(pipelines.loops);
  s.memory = std::move(*memory);
  s.notes = std::move(layouts->notes);
  s.notes.insert(s.notes.end(), pipelines.notes.begin(), pipelines.notes.end());
  return s;
}

}  // namespace

Expected<plan::Schedule> plan_program(const ir::Program& p, const target::Target& target,
                                      const PlanOptions& options) {
  plan::Schedule s;
  s.target = target.name;
  if (options.given) {
    for (const KernelSchedule& g : options.given->kernels)
      if (std::none_of(p.kernels.begin(), p.kernels.end(),
                       [&](const ir::Kernel& k) { return k.name == g.kernel; }))
        return Error(DiagCode::schedule_mismatch, g.kernel,
                     "the schedule names kernel '" + g.kernel + "', which the program does not have",
                     "use the schedule of this program");
  }
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    const KernelSchedule* given = options.given ? options.given->find(p.kernels[k].name) : nullptr;
    auto kernel = plan_kernel(p, static_cast<int>(k), target, given, options.conversions);
    if (!kernel) return kernel.error();
    s.kernels.push_back(std::move(*kernel));
  }
  return s;
}

}  // namespace tilegen::schedule
