#include "schedule/plan_kernel.h"

#include <algorithm>

#include "analysis/run_ahead.h"
#include "analysis/tensor_bytes.h"
#include "analysis/transaction_barriers.h"
#include "analysis/warpgroup_operand.h"
#include "ir/statement_paths.h"
#include "schedule/accesses/assumption_plan.h"
#include "schedule/accesses/cache_plan.h"
#include "schedule/check/check_schedule.h"
#include "schedule/grid/launch_plan.h"
#include "schedule/grid/preamble_plan.h"
#include "schedule/grid/occupancy_plan.h"
#include "schedule/grid/raster_plan.h"
#include "schedule/kernel_planner.h"
#include "schedule/memory/matrix_stores.h"
#include "schedule/pipeline/register_copies.h"
#include "schedule/plan_form.h"
#include "schedule/products/reduction_chains.h"
#include "schedule/products/register_prefetch.h"
#include "schedule/products/zero_init.h"
#include "schedule/reductions/conditional_rescale.h"
#include "schedule/reductions/deferred_reduction.h"
#include "schedule/transport/lane_order_copies.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

namespace {

// Of the tile scheduler: a full and an empty barrier of each slot, and the tile's number there.
int64_t tile_scheduler_bytes(const target::Target& t) {
  return plan::kTileSlots * (2 * t.transaction_barrier_bytes + plan::kTileBytes);
}

std::string written_reason(const ir::Program& p, const KernelOps& ops,
                           const analysis::ThreadWrittenOperand& w) {
  return "; threads write '" + p.buffer(ops.values[w.value].buffer).name + "', " +
         (w.own_rows ? "each warpgroup what it multiplies: the warpgroup meets"
                     : "for all warpgroups: these meet");
}

}  // namespace

Expected<KernelSchedule> KernelPlanner::plan(const KernelSchedule* given) {
  KernelSchedule kept;
  if (given) {
    if (Checked ok = check_names(*given, p_, index_, ops_); !ok) return ok.error();
    kept = without_tensor_copies(*given, p_, index_, ops_, options_.tensor_copies);
    given_ = &kept;
  }
  const TensorLoads found =
      find_product_loads(p_, index_, ops_, dependences_, target_, given_, options_.tensor_copies);
  refused_ = found.refused;
  auto threads = plan_threads(p_, kernel_, ops_, target_, given_, refused_);
  if (!threads) return threads.error();
  if (given_)
    if (Checked ok = check_layouts(*given_, p_, ops_, target_, *threads); !ok) return ok.error();
  for (;;) {  // every round refuses a product more, or leaves a copy to threads
    find_loads(found);
    if (refuse(settle(p_, index_, ops_, tensor_loads_))) continue;
    auto schedule = attempt(*threads);
    if (!schedule && !keep_in_registers_ && schedule.error().diagnostics[0].code == DiagCode::limit_memory) {
      keep_in_registers_ = true;
      continue;
    }
    if (!schedule && give_up_alternations(schedule.error().diagnostics[0].message)) continue;
    if (!schedule) return schedule.error();
    if (!*schedule) continue;
    if (given_)
      if (Checked ok = check_result(*given_, p_, index_, ops_, **schedule); !ok) return ok.error();
    return std::move(**schedule);
  }
}

bool KernelPlanner::refuse(const Refusals& more) {
  if (!more.empty() && give_up_alternations(more.begin()->second)) return true;
  refused_.insert(more.begin(), more.end());
  return !more.empty();
}

bool KernelPlanner::leave_to_threads(const Refusals& more) {
  if (!more.empty() && give_up_alternations(more.begin()->second)) return true;
  by_threads_.insert(more.begin(), more.end());
  return !more.empty();
}

Expected<std::optional<KernelSchedule>> KernelPlanner::attempt(int64_t threads) {
  constexpr std::nullopt_t kAgain = std::nullopt;
  notes_.clear();
  if (Checked ok = find_alternations(threads); !ok) return ok.error();
  auto gemms = plan_gemms(p_, ops_, target_, threads, given_, refused_, done_by_each(true));
  if (!gemms) return gemms.error();
  gemms_ = std::move(*gemms);
  if (refuse(left_to_warps())) return std::optional<KernelSchedule>(kAgain);
  if (refuse(unfit_products(p_, ops_, target_, tensor_loads_, gemms_, given_)))
    return std::optional<KernelSchedule>(kAgain);
  std::erase_if(tensor_loads_.products,
                [&](const auto& f) { return gemms_.at(f.first).engine != Engine::warpgroup_mma; });
  if (refuse(settle(p_, index_, ops_, tensor_loads_))) return std::optional<KernelSchedule>(kAgain);
  // Known before the layouts are: nothing adds loads from here on.
  if (kernel_.split && !given_ && tensor_loads_.products.empty() && tensor_loads_.tiles.empty())
    return no_producer_of_parts();
  box_operands(p_, ops_, tensor_loads_, gemms_);

  auto layouts = infer::infer_layouts(
      {p_, ops_, target_, threads, gemms_, given_, options_.conversions, keep_in_registers_});
  if (!layouts) return layouts.error();
  layouts_ = std::move(*layouts);
  take_given_conversions();
  if (refuse(unfit_layouts(p_, ops_, tensor_loads_, gemms_, layouts_)))
    return std::optional<KernelSchedule>(kAgain);
  if (leave_to_threads(unfit_threads(threads))) return std::optional<KernelSchedule>(kAgain);
  if (leave_to_threads(fit_thread_tiles(p_, ops_, tensor_loads_, layouts_.values)))
    return std::optional<KernelSchedule>(kAgain);

  auto pipelines = plan_copy_pipelines(p_, index_, ops_, tensor_loads_, given_);
  if (!pipelines) return pipelines.error();
  copy_pipelines_ = std::move(*pipelines);
  take_engines();
  find_written_operands(threads);
  if (!in_order()) {
    if (Checked ok = plan_partial_sums(p_, index_, ops_, target_, given_, done_by_each(false), layouts_); !ok)
      return ok.error();
    if (Checked ok = plan_conditional_rescale(p_, ops_, target_, given_, layouts_); !ok) return ok.error();
  }
  scratch_ = plan_scratch(p_, index_, ops_, layouts_.values, layouts_.ops, layouts_.conversions, target_);
  add_handed_rows();
  choose_stores();
  lay_out_tiles();
  place_lane_order_copies(threads);
  if (!produced_loops_overlap()) return std::optional<KernelSchedule>(kAgain);
  if (pipelines_.refused) return *pipelines_.refused;
  if (Checked ok = check_given_engines(); !ok) return ok.error();
  const PingPongFacts facts = ping_pong_facts(threads);
  if (Checked ok = order_products(facts); !ok) return ok.error();
  widen_written();
  if (!alternations_hold()) return std::optional<KernelSchedule>(kAgain);
  if (Checked ok = part_tiles_of_turns(); !ok) return ok.error();
  if (Checked ok = plan_ping_pong_loops(facts); !ok) return ok.error();
  if (Checked ok = plan_loop_ends(); !ok) return ok.error();

  auto schedule = assemble(threads);
  if (!schedule) return schedule.error();
  return std::optional<KernelSchedule>(std::move(*schedule));
}

// What is left once every op, value and loop is decided.
Expected<KernelSchedule> KernelPlanner::assemble(int64_t threads) {
  KernelSchedule s;
  s.kernel = kernel_.name;
  s.threads = threads;
  for (auto [value, slots] : pipelines_.slots) layouts_.values[value].slots = slots;
  dynamic_tiles_ = false;
  if (given_ && given_->split && given_->split->parts == 1) s.split = given_->split;
  if (kernel_.workspace_split) s.split = split_plan(*kernel_.workspace_split, "workspace");
  if (options_.overlap) s.overlap = *options_.overlap;
  if (Checked ok = plan_walk(s, threads); !ok) return ok.error();
  for (plan::PipelinePlan& c : copy_pipelines_)
    for (const plan::ValuePlan& v : layouts_.values)
      if (v.value == c.values.front()) c.slots = v.slots;
  take_register_copies(ops_, target_, pipelines_.loops, layouts_);
  auto memory =
      plan_memory(p_, index_, ops_, liveness_, layouts_.values, scratch_, target_, places(layouts_.values));
  if (!memory) return memory.error();
  auto raster = plan_raster(p_, kernel_, target_, given_);
  if (!raster) return raster.error();
  s.raster = std::move(*raster);
  auto launch = plan_launch(kernel_, target_, given_);
  if (!launch) return launch.error();
  s.launch = std::move(*launch);
  s.ops = std::move(layouts_.ops).list();
  s.values = std::move(layouts_.values).list();
  s.conversions = std::move(layouts_.conversions);
  s.loops = std::move(pipelines_.loops);
  s.pipelines = std::move(copy_pipelines_);
  s.memory = std::move(*memory);
  for (const auto& [op, gemm] : gemms_)
    if (!gemm.note.empty()) s.notes.push_back({ops_.ops[op].path, gemm.note});
  for (const std::vector<plan::Note>& more : {layouts_.notes, notes_, pipelines_.notes})
    s.notes.insert(s.notes.end(), more.begin(), more.end());
  keep_given_accesses(s);
  if (Checked ok = plan_caching(p_, ops_, target_, given_, s); !ok) return ok.error();
  if (!target_.has_block_threads()) return s;
  if (Checked ok = plan_assumptions(p_, ops_, target_, options_.assumptions, given_, s); !ok)
    return ok.error();
  plan_zero_init(p_, index_, ops_, given_, s);
  plan_reduction_chains(p_, ops_, given_, s);
  plan_matrix_stores(p_, ops_, target_, given_, s);
  if (Checked ok = plan_own_operands(s); !ok) return ok.error();
  if (Checked ok = plan_preamble(p_, index_, ops_, given_, s); !ok) return ok.error();
  plan_register_prefetch(p_, index_, ops_, target_, given_, s);
  plan_min_blocks(p_, ops_, target_, given_, s);
  if (Checked ok = plan_most_registers(kernel_, target_, given_, s); !ok) return ok.error();
  return s;
}

// Copies that a producer makes are the engine's, all others are the threads'.
void KernelPlanner::take_engines() {
  plan_copy_engines(p_, index_, ops_, target_, given_, layouts_);
  plan_streaming(*options_.read, ops_, target_, given_, layouts_);
  produced_.clear();
  engine_values_.clear();
  for (const auto& [product, load] : tensor_loads_.products)
    produced_.insert(load.copies.begin(), load.copies.end());
  for (const auto& [copy, load] : tensor_loads_.tiles) produced_.insert(copy);
  for (OpId i : ops_.ops.ids()) {
    plan::OpPlan& plan = layouts_.ops[i];
    if (!produced_.count(i)) {
      // A loop with a producer has no asynchronous copies of the computing threads beside.
      const bool beside =
          std::any_of(tensor_loads_.products.begin(), tensor_loads_.products.end(), [&](const auto& f) {
            if (!f.second.loop.valid()) return false;
            const auto inside = analysis::ops_inside(p_, ops_, *p_.as<ir::Loop>(f.second.loop));
            return std::find(inside.begin(), inside.end(), &ops_.ops[i]) != inside.end();
          });
      if (beside && plan.engine == Engine::async_copy)
        plan.engine = p_.as<ir::TileOp>(ops_.ops[i].stmt) ? Engine::vector_copy : Engine::loop;
      if (const auto why = tensor_loads_.by_threads.find(i); why != tensor_loads_.by_threads.end())
        notes_.push_back({ops_.ops[i].path, "no tensor copies: " + why->second});
      continue;
    }
    plan.engine = Engine::tensor_copy;
    plan.iteration.reset();
    plan.vector = 0;
    plan.reason = "a producer has the copy engine fill the tile in boxes";
    for (const analysis::OpAccess& a : ops_.ops[i].accesses)
      if (a.write) engine_values_.insert(a.value);
  }
  std::erase_if(layouts_.notes, [&](const plan::Note& n) {
    return std::any_of(produced_.begin(), produced_.end(),
                       [&](OpId op) { return ops_.ops[op].path == n.path; });
  });
}

// Why the tensor that a copy reads is none that asynchronous copies reach. What is assumed of its size is
// planned later (assumption_plan.h).
std::string KernelPlanner::beyond_buffers(OpId copy) const {
  if (!target_.buffer_async_copies) return "";
  for (const analysis::OpAccess& a : ops_.ops[copy].accesses) {
    const ir::Buffer& b = p_.buffer(a.buffer);
    if (!a.read || b.scope != ir::MemScope::global) continue;
    if (!analysis::TensorBytes(p_).goes_up(a.buffer))
      return "strides of '" + b.name + "' may go down, and " + target_.name +
             " reaches a tensor from its start";
    if (!given_ || !given_->assumptions) continue;
    const auto said = [&](const plan::Assumption& s) { return s.param == b.name && s.most_bytes > 0; };
    if (std::none_of(given_->assumptions->begin(), given_->assumptions->end(), said))
      return "the schedule's assumptions leave `most_bytes` of '" + b.name + "' out, and " + target_.name +
             " reaches " + std::to_string(target_.buffer_bytes) + " bytes";
  }
  return "";
}

// Tiles lie as they will: which lane fetches what follows from it.
void KernelPlanner::place_lane_order_copies(int64_t threads) {
  if (!target_.copies_in_lane_order) return;
  for (OpId i : ops_.ops.ids()) {
    plan::OpPlan& plan = layouts_.ops[i];
    if (plan.engine != Engine::async_copy) continue;
    const auto& tile = *std::find_if(ops_.ops[i].accesses.begin(), ops_.ops[i].accesses.end(),
                                     [](const analysis::OpAccess& a) { return a.write; });
    LaneOrderCopy copy = lane_order_copy(ops_.ops[i], *layouts_.values[tile.value].memory,
                                         ir::dtype_bytes(p_.buffer(tile.buffer).type), threads, target_);
    if (std::string why = beyond_buffers(i); !why.empty()) copy = {std::nullopt, 0, std::move(why)};
    if (copy.iteration) {
      plan.iteration = std::move(copy.iteration);
      plan.vector = copy.vector;
      plan.reason = "a word of each lane, side by side in shared memory";
    } else {
      plan.engine = p_.as<ir::TileOp>(ops_.ops[i].stmt) ? Engine::vector_copy : Engine::loop;
      notes_.push_back({ops_.ops[i].path, "no asynchronous copy: " + copy.why});
    }
  }
}

// Products read them while threads go on.
void KernelPlanner::find_written_operands(int64_t threads) {
  written_ = analysis::written_operands(p_, ops_, target_, threads, layouts_.ops, layouts_.values,
                                        layouts_.conversions);
  for (const analysis::ThreadWrittenOperand& w : written_) {
    engine_values_.insert(w.value);
    for (OpId product : w.products) layouts_.ops[product].reason += written_reason(p_, ops_, w);
  }
}

// What threads write for products of the same iteration has a second slot where there is room: they write the
// one while the products read the other.
void KernelPlanner::widen_written() {
  for (const analysis::ThreadWrittenOperand& w : written_) {
    plan::ValuePlan& tile = layouts_.values[w.value];
    const plan::ValuePlan* given = given_ ? plan::find_value(*given_, tile.value) : nullptr;
    tile.slots = 1;
    const auto load = tensor_loads_.products.find(w.products.front());
    if (in_order() || load == tensor_loads_.products.end() || !load->second.direct ||
        (given && given->slots == 1))
      continue;
    const auto loop =
        std::find_if(pipelines_.loops.begin(), pipelines_.loops.end(),
                     [&](const plan::LoopPlan& l) { return l.loop == paths_[load->second.loop.value]; });
    if (loop == pipelines_.loops.end() ||
        !analysis::may_double_buffer(p_, ops_, w, *p_.as<ir::Loop>(load->second.loop), *loop))
      continue;
    std::map<ValueId, int64_t> slots = pipelines_.slots;
    slots[w.value] = 2;
    if (arena(slots) > target_.shared_bytes) continue;
    pipelines_.slots = std::move(slots);
    if (!given) tile.reason += "; written while products read the other slot";
  }
}

SharedReservations KernelPlanner::places(analysis::ValuePlans values) const {
  SharedReservations e;
  e.values = engine_values_;
  e.stages_share = stages_share_;
  for (const analysis::ThreadWrittenOperand& w : written_) e.written.insert(w.value);
  for (const StagedStore& s : stores_)
    e.reserved.push_back(
        {plan::Storage::stage, ops_.ops[s.op].path, s.bytes(s.pass), target_.tensor_tile_alignment});
  for (const auto& [op, gemm] : gemms_)
    for (int side = 0; side < 2; ++side)
      if (const auto& copy = side == 0 ? gemm.a_copy : gemm.b_copy)
        e.reserved.push_back({side == 0 ? plan::Storage::operand_a : plan::Storage::operand_b,
                              ops_.ops[op].path, 2 * copy->output_extent(0) * copy->element_bytes(),
                              target_.tensor_tile_alignment});
  for (const plan::PipelinePlan& c : copy_pipelines_)
    for (const plan::ValuePlan& v : values)
      if (v.value == c.values.front())
        e.reserved.push_back({plan::Storage::barriers, c.name,
                              2 * target_.transaction_barrier_bytes * v.slots * std::max<int64_t>(1, c.parts),
                              16});
  if (analysis::has_transaction_barriers(target_))
    for (ir::BufferId b : ir::barriers_of(p_, index_))
      e.reserved.push_back({plan::Storage::barriers, ir::buffer_path(p_, b),
                            target_.transaction_barrier_bytes * p_.tile_shape(b).front(), 16});
  if (kernel_.split) {
    e.split_loop = paths_[kernel_.split->loop.value];
    e.reserved.push_back(
        {plan::Storage::parts, e.split_loop, parts_bytes(values), target_.tensor_tile_alignment});
  }
  if (dynamic_tiles_)
    e.reserved.push_back({plan::Storage::tile_scheduler, kernel_.name, tile_scheduler_bytes(target_), 16});
  return e;
}

int64_t KernelPlanner::arena(const std::map<ValueId, int64_t>& slots) const {
  IdVector<ValueId, plan::ValuePlan> values = layouts_.values;
  for (auto [value, count] : slots) values[value].slots = count;
  return arena_bytes(place_values(p_, ops_, liveness_, values, scratch_, target_, places(values)));
}

void KernelPlanner::plan_loops() {
  pipelines_ = plan_pipelines(
      p_, index_, ops_, dependences_, target_, value_bytes(p_, ops_, layouts_.values, target_),
      [&](const std::map<ValueId, int64_t>& slots) { return arena(slots); }, produced_, options_.single_wave,
      given_, not_loaded(p_, ops_, target_, given_, layouts_), options_.most_stages);
}

namespace {

// Of a target that could do both: the tiles come through registers, or by asynchronous copies where these are
// asked for.
target::Target with_one_transport(const target::Target& t, const KernelSchedule* given,
                                  const PlanOptions& options) {
  target::Target less = t;
  const bool direct = options.direct_copies ||
                      (given && std::any_of(given->ops.begin(), given->ops.end(), [](const plan::OpPlan& op) {
                         return op.engine == Engine::async_copy;
                       }));
  if (direct)
    less.register_copies = false;
  else
    less.async_copy_bytes.clear();
  return less;
}

}  // namespace

Expected<KernelSchedule> plan_kernel(const ir::Program& p, int kernel, const target::Target& t,
                                     const KernelSchedule* given, const PlanOptions& options) {
  PlanOptions how = options;
  how.tensor_copies = std::max(options.tensor_copies, copies_of_form(options.form));
  if (options.form < PlanForm::no_async_copies) {
    if (t.buffer_async_copies && options.assumptions != Assumptions::all) {
      target::Target less = t;
      less.async_copy_bytes.clear();
      return KernelPlanner(p, kernel, less, how).plan(given);
    }
    if (!t.register_copies || !t.async_copy()) return KernelPlanner(p, kernel, t, how).plan(given);
    const target::Target one = with_one_transport(t, given, options);
    return KernelPlanner(p, kernel, one, how).plan(given);
  }
  const target::Target less = target_of_form(t, options.form);
  return KernelPlanner(p, kernel, less, how).plan(given);
}

}  // namespace tilegen::schedule
