#include "schedule/plan_kernel.h"

#include <algorithm>

#include "schedule/cluster_plan.h"
#include "schedule/given_schedule.h"
#include "schedule/launch_plan.h"
#include "schedule/memory_plan.h"
#include "schedule/op_engines.h"
#include "schedule/overlap_plan.h"
#include "schedule/partial_sums.h"
#include "schedule/ping_pong_plan.h"
#include "schedule/pipeline_plan.h"
#include "schedule/raster_plan.h"
#include "schedule/role_plan.h"
#include "schedule/row_factors.h"
#include "schedule/run_ahead.h"
#include "schedule/store_stage.h"
#include "schedule/written_operand.h"

namespace tilegen::schedule {

using infer::KernelOp;
using infer::KernelOps;
using plan::Engine;
using plan::KernelSchedule;

namespace {

constexpr int64_t kBarrierBytes = 16;  // of a slot: full and empty
constexpr int64_t kClaimsBytes = 2 * (kBarrierBytes + 8);

// A fragment that leaves by tensor copies, staged in passes of columns.
struct StagedStore {
  size_t op = 0;
  StoreStage stage;
  int64_t pass = 0;
  bool given = false;
  int64_t bytes(int64_t columns) const {
    return stage.part_bytes / stage.pass_columns * columns * stage.warpgroups_m * stage.warpgroups_n;
  }
};

class KernelPlanner {
 public:
  KernelPlanner(const ir::Program& p, int kernel, const target::Target& t, const PlanOptions& options)
      : p_(p),
        index_(kernel),
        kernel_(p.kernels[static_cast<size_t>(kernel)]),
        target_(t),
        options_(options),
        ops_(infer::collect_kernel_ops(p, kernel)) {}

  Expected<KernelSchedule> plan(const KernelSchedule* given);

 private:
  // Nothing when a product turned out unfit for warpgroups, which is then refused.
  Expected<std::optional<KernelSchedule>> attempt(int64_t threads);
  Expected<KernelSchedule> assemble(int64_t threads);
  bool refuse(const Refusals& more);
  bool leave_to_threads(const Refusals& more);

  void take_engines();
  void find_written_operands(int64_t threads, bool tell);
  void widen_written();
  bool produced_loops_overlap();
  Checked order_products();
  Checked plan_turns(int64_t threads);
  bool threads_meet_for(const KernelOp& op) const;
  void choose_stores();
  void find_stores();
  void store_tile(size_t op, plan::ValuePlan& tile);
  void fit_stores();
  void widen_passes();
  Checked plan_walk(KernelSchedule& s, int64_t threads);
  void widen_channels();
  Checked check_given_engines() const;
  const plan::OpPlan* given_op(size_t op) const {
    return given_ ? plan::find_op(*given_, ops_.ops[op].path) : nullptr;
  }

  EnginePlaces places(const std::vector<plan::ValuePlan>& values) const;
  int64_t arena(const std::map<int, int64_t>& slots) const;
  void plan_loops();

  const ir::Program& p_;
  const int index_;
  const ir::Kernel& kernel_;
  const target::Target& target_;
  const PlanOptions& options_;
  const KernelOps ops_;
  const KernelSchedule* given_ = nullptr;

  Refusals refused_;     // products, by warpgroups
  Refusals by_threads_;  // copies beside them, by the engine
  TensorFeeds feeds_;
  bool keep_in_registers_ = false;  // what would take too many: shared memory does not hold it either
  // Of one attempt.
  GemmPlans gemms_;
  infer::InferResult layouts_;
  std::vector<Scratch> scratch_;
  std::set<size_t> produced_;  // copies that a producer makes
  std::set<int> engine_values_;
  std::vector<WrittenOperand> written_;
  std::vector<plan::ChannelPlan> channels_;
  bool claims_ = false;  // blocks claim their points
  std::vector<StagedStore> stores_;
  Refusals not_stored_;  // why not by tensor copies
  PipelineResult pipelines_;
  std::vector<plan::Note> notes_;
};

Expected<KernelSchedule> KernelPlanner::plan(const KernelSchedule* given) {
  KernelSchedule kept;
  if (given) {
    if (Checked ok = check_names(*given, p_, index_, ops_); !ok) return ok.error();
    kept = without_tensor_copies(*given, p_, ops_, options_.tensor_copies);
    given_ = &kept;
  }
  const TensorFeeds found = find_tensor_feeds(p_, index_, ops_, target_, given_, options_.tensor_copies);
  refused_ = found.refused;
  auto threads = plan_threads(p_, kernel_, ops_, target_, given_, refused_);
  if (!threads) return threads.error();
  for (;;) {  // every round refuses a product more, or leaves a copy to threads
    feeds_ = found;
    feeds_.by_threads.insert(by_threads_.begin(), by_threads_.end());
    for (const auto& [op, why] : refused_) feeds_.fed.erase(op);
    for (const auto& [op, why] : by_threads_) feeds_.beside.erase(op);
    if (refuse(settle(p_, ops_, feeds_))) continue;
    auto schedule = attempt(*threads);
    if (!schedule && !keep_in_registers_ && schedule.error().diagnostics[0].code == DiagCode::limit_memory) {
      keep_in_registers_ = true;
      continue;
    }
    if (!schedule) return schedule.error();
    if (*schedule) return std::move(**schedule);
  }
}

bool KernelPlanner::refuse(const Refusals& more) {
  refused_.insert(more.begin(), more.end());
  return !more.empty();
}

bool KernelPlanner::leave_to_threads(const Refusals& more) {
  by_threads_.insert(more.begin(), more.end());
  return !more.empty();
}

Expected<std::optional<KernelSchedule>> KernelPlanner::attempt(int64_t threads) {
  constexpr std::nullopt_t kAgain = std::nullopt;
  notes_.clear();
  auto gemms = plan_gemms(p_, ops_, target_, threads, given_, refused_);
  if (!gemms) return gemms.error();
  gemms_ = std::move(*gemms);
  if (refuse(unfit_products(p_, ops_, target_, feeds_, gemms_))) return std::optional<KernelSchedule>(kAgain);
  std::erase_if(feeds_.fed, [&](const auto& f) { return gemms_.at(f.first).engine != Engine::warpgroup_mma; });
  if (refuse(settle(p_, ops_, feeds_))) return std::optional<KernelSchedule>(kAgain);

  const bool complete = given_ && is_complete(*given_, ops_);
  auto layouts = complete
                     ? replay(p_, ops_, gemms_, *given_, threads)
                     : infer::infer_layouts({p_, ops_, target_, threads, gemms_, given_, options_.conversions,
                                            keep_in_registers_});
  if (!layouts) return layouts.error();
  layouts_ = std::move(*layouts);
  if (refuse(unfit_layouts(p_, ops_, feeds_, gemms_, layouts_))) return std::optional<KernelSchedule>(kAgain);
  if (leave_to_threads(fit_thread_tiles(p_, ops_, feeds_, layouts_.values))) return std::optional<KernelSchedule>(kAgain);

  auto channels = plan_channels(p_, index_, ops_, feeds_, given_);
  if (!channels) return channels.error();
  channels_ = std::move(*channels);
  take_engines();
  find_written_operands(threads, !complete);
  if (Checked ok = plan_partial_sums(p_, index_, ops_, target_, given_, layouts_); !ok) return ok.error();
  if (Checked ok = plan_row_factors(p_, ops_, given_, layouts_); !ok) return ok.error();
  scratch_ = plan_scratch(p_, index_, ops_, layouts_.values, layouts_.ops, layouts_.conversions, target_);
  choose_stores();
  if (!produced_loops_overlap()) return std::optional<KernelSchedule>(kAgain);
  if (Checked ok = check_given_engines(); !ok) return ok.error();
  if (Checked ok = order_products(); !ok) return ok.error();
  widen_written();
  if (Checked ok = plan_turns(threads); !ok) return ok.error();

  auto schedule = assemble(threads);
  if (!schedule) return schedule.error();
  return std::optional<KernelSchedule>(std::move(*schedule));
}

// What is left once every op, value and loop is decided.
Expected<KernelSchedule> KernelPlanner::assemble(int64_t threads) {
  KernelSchedule s;
  s.kernel = kernel_.name;
  s.threads = threads;
  for (auto [value, slots] : pipelines_.slots) layouts_.values[static_cast<size_t>(value)].slots = slots;
  claims_ = false;
  if (Checked ok = plan_walk(s, threads); !ok) return ok.error();
  for (plan::ChannelPlan& c : channels_)
    for (const plan::ValuePlan& v : layouts_.values)
      if (v.value == c.values.front()) c.slots = v.slots;
  auto memory =
      plan_memory(p_, index_, ops_, layouts_.values, scratch_, target_, places(layouts_.values));
  if (!memory) return memory.error();
  s.raster = plan_raster(p_, kernel_, target_, given_);
  auto launch = plan_launch(kernel_, target_, given_);
  if (!launch) return launch.error();
  s.launch = std::move(*launch);
  s.ops = std::move(layouts_.ops);
  s.values = std::move(layouts_.values);
  s.conversions = std::move(layouts_.conversions);
  s.loops = std::move(pipelines_.loops);
  s.channels = std::move(channels_);
  s.memory = std::move(*memory);
  for (const auto& [op, gemm] : gemms_)
    if (!gemm.note.empty()) s.notes.push_back({ops_.ops[op].path, gemm.note});
  for (const std::vector<plan::Note>& more : {layouts_.notes, notes_, pipelines_.notes})
    s.notes.insert(s.notes.end(), more.begin(), more.end());
  return s;
}

// Who does what, and which points of the grid a block walks over.
Checked KernelPlanner::plan_walk(KernelSchedule& s, int64_t threads) {
  if (!target_.tensor_copy && !(given_ && (given_->roles || given_->persistence || given_->cluster))) return Unit{};
  int64_t own_registers = 0;
  for (const auto& [op, gemm] : gemms_) own_registers = std::max(own_registers, gemm.own_registers);
  const int64_t registers = registers_needed(p_, ops_, layouts_.values) + own_registers;
  auto roles = plan_roles(kernel_, target_, threads, registers, !produced_.empty(), given_);
  if (!roles) return roles.error();
  auto persistence = plan_persistence(p_, kernel_, target_, threads, registers, *roles, arena(pipelines_.slots), given_);
  if (!persistence) return persistence.error();
  auto cluster = plan_cluster(p_, kernel_, ops_, target_, produced_, layouts_, *roles, given_);
  if (!cluster) return cluster.error();
  claims_ = persistence->claimed();
  if (claims_ && !(given_ && given_->persistence) && arena(pipelines_.slots) > target_.shared_bytes) {
    claims_ = false;
    *persistence = {};
    persistence->reason = "shared memory has no room for points that blocks would claim";
  }
  if (persistence->persistent) widen_channels();
  s.cluster = std::move(*cluster);
  s.roles = std::move(*roles);
  s.persistence = std::move(*persistence);
  return Unit{};
}

// Tiles that are filled once for a point of the grid have a second slot where there is room: those of the next point come
// beside the last products of this one.
void KernelPlanner::widen_channels() {
  for (const plan::ChannelPlan& c : channels_) {
    if (!c.loop.empty()) continue;
    std::map<int, int64_t> slots = pipelines_.slots;
    const plan::ChannelPlan* given = nullptr;
    for (size_t i = 0; given_ && i < given_->channels.size(); ++i)
      if (given_->channels[i].name == c.name) given = &given_->channels[i];
    for (size_t v = 0; v < layouts_.values.size(); ++v)
      if (std::find(c.values.begin(), c.values.end(), layouts_.values[v].value) != c.values.end())
        slots[static_cast<int>(v)] = given ? std::clamp<int64_t>(given->slots, 1, 2) : 2;
    if (arena(slots) > target_.shared_bytes) continue;
    pipelines_.slots = slots;
    for (auto [value, count] : slots) layouts_.values[static_cast<size_t>(value)].slots = count;
  }
}

// Copies of the products' tiles are the engine's, all others are the threads'.
void KernelPlanner::take_engines() {
  plan_copy_engines(p_, ops_, target_, given_, layouts_);
  plan_streaming(p_, ops_, target_, given_, layouts_);
  produced_.clear();
  engine_values_.clear();
  for (const auto& [product, feed] : feeds_.fed) produced_.insert(feed.copies.begin(), feed.copies.end());
  for (const auto& [copy, feed] : feeds_.beside) produced_.insert(copy);
  for (size_t i = 0; i < ops_.ops.size(); ++i) {
    plan::OpPlan& plan = layouts_.ops[i];
    if (!produced_.count(i)) {
      // A loop with a producer has no asynchronous copies of the computing threads beside.
      const bool beside = std::any_of(feeds_.fed.begin(), feeds_.fed.end(), [&](const auto& f) {
        const auto inside = ops_inside(p_, ops_, *p_.as<ir::Loop>(f.second.loop));
        return std::find(inside.begin(), inside.end(), &ops_.ops[i]) != inside.end();
      });
      if (beside && plan.engine == Engine::async_copy) plan.engine = Engine::vector_copy;
      if (const auto why = feeds_.by_threads.find(i); beside && why != feeds_.by_threads.end())
        notes_.push_back({ops_.ops[i].path, "no tensor copies: " + why->second});
      continue;
    }
    plan.engine = Engine::tensor_copy;
    plan.iteration.reset();
    plan.vector = 1;
    plan.reason = "a producer has the copy engine fill the tile in boxes";
    for (const infer::OpAccess& a : ops_.ops[i].accesses)
      if (a.write) engine_values_.insert(a.value);
  }
  std::erase_if(layouts_.notes, [&](const plan::Note& n) {
    return std::any_of(produced_.begin(), produced_.end(), [&](size_t op) { return ops_.ops[op].path == n.path; });
  });
}

// Products read them while threads go on. `tell`: the plans' reasons do not say so yet.
void KernelPlanner::find_written_operands(int64_t threads, bool tell) {
  written_ = written_operands(p_, ops_, target_, threads, layouts_.ops, layouts_.values, layouts_.conversions);
  for (const WrittenOperand& w : written_) {
    engine_values_.insert(w.value);
    for (size_t product : w.products)
      if (tell) layouts_.ops[product].reason += written_reason(p_, ops_, w);
  }
}

// What threads write for products of the same iteration has a second slot where there is room: they write the one while the
// products read the other.
void KernelPlanner::widen_written() {
  const std::vector<std::string> paths = ir::statement_paths(p_);
  for (const WrittenOperand& w : written_) {
    plan::ValuePlan& tile = layouts_.values[static_cast<size_t>(w.value)];
    const plan::ValuePlan* given = given_ ? plan::find_value(*given_, tile.value) : nullptr;
    tile.slots = 1;
    const auto feed = feeds_.fed.find(w.products.front());
    if (feed == feeds_.fed.end() || (given && given->slots < 2)) continue;
    const auto loop = std::find_if(pipelines_.loops.begin(), pipelines_.loops.end(),
                                   [&](const plan::LoopPlan& l) { return l.loop == paths[feed->second.loop.value]; });
    if (loop == pipelines_.loops.end() || !may_take_turns(p_, ops_, w, *p_.as<ir::Loop>(feed->second.loop), *loop)) continue;
    std::map<int, int64_t> slots = pipelines_.slots;
    slots[w.value] = 2;
    if (arena(slots) > target_.shared_bytes) continue;
    pipelines_.slots = std::move(slots);
    if (!given) tile.reason += "; written while products read the other slot";
  }
}

EnginePlaces KernelPlanner::places(const std::vector<plan::ValuePlan>& values) const {
  EnginePlaces e;
  e.values = engine_values_;
  for (const StagedStore& s : stores_)
    e.reserved.push_back({ops_.ops[s.op].path + ":stage", s.bytes(s.pass), kEngineAlignment});
  for (const auto& [op, gemm] : gemms_)
    for (int side = 0; side < 2; ++side)
      if (const auto& copy = side == 0 ? gemm.a_copy : gemm.b_copy)
        e.reserved.push_back({ops::k_major_copy_name(ops_.ops[op].path, side),
                              2 * copy->output_extent(0) * copy->element_bytes(), kEngineAlignment});
  for (const plan::ChannelPlan& c : channels_)
    for (const plan::ValuePlan& v : values)
      if (v.value == c.values.front()) e.reserved.push_back({"channel:" + c.name, kBarrierBytes * v.slots, 16});
  if (claims_) e.reserved.push_back({kernel_.name + ":claims", kClaimsBytes, 16});
  return e;
}

int64_t KernelPlanner::arena(const std::map<int, int64_t>& slots) const {
  std::vector<plan::ValuePlan> values = layouts_.values;
  for (auto [value, count] : slots) values[static_cast<size_t>(value)].slots = count;
  return arena_bytes(place_values(p_, index_, ops_, values, scratch_, target_, places(values)));
}

void KernelPlanner::plan_loops() {
  pipelines_ = plan_pipelines(
      p_, index_, ops_, target_, value_bytes(p_, ops_, layouts_.values, target_),
      [&](const std::map<int, int64_t>& slots) { return arena(slots); }, produced_, given_);
}

// One slot leaves a producer nothing to run ahead into.
bool KernelPlanner::produced_loops_overlap() {
  const std::vector<std::string> paths = ir::statement_paths(p_);
  Refusals alone;
  for (const auto& [product, feed] : feeds_.fed)
    for (const plan::LoopPlan& l : pipelines_.loops)
      if (l.loop == paths[feed.loop.value] && l.num_stages < 2)
        alone[product] = "its loop has one stage (" + l.reason + "), a producer would have nothing to overlap";
  // Slots of tiles that threads could copy themselves are the first to go.
  Refusals crowded;
  for (const auto& [product, why] : alone)
    for (const auto& [copy, feed] : feeds_.beside)
      if (feed.loop == feeds_.fed.at(product).loop) crowded.emplace(copy, "with slots for its tile the loop would have one stage");
  return leave_to_threads(crowded) ? false : !refuse(alone);
}

// The order of issue of loops with a producer.
Checked KernelPlanner::order_products() {
  const std::vector<std::string> paths = ir::statement_paths(p_);
  std::map<ir::StmtId, std::set<const KernelOp*>> products;
  std::set<const KernelOp*> copies;
  for (const auto& [product, feed] : feeds_.fed) products[feed.loop].insert(&ops_.ops[product]);
  for (size_t op : produced_) copies.insert(&ops_.ops[op]);
  for (const auto& [loop, of_loop] : products)
    for (plan::LoopPlan& l : pipelines_.loops) {
      if (l.loop != paths[loop.value]) continue;
      const plan::LoopPlan* given = given_ ? plan::find_loop(*given_, l.loop) : nullptr;
      std::string note;
      Checked ok = order_loop(p_, ops_, loop, of_loop, copies, given && !given->stages.empty(), l, note);
      if (!ok) return ok;
      if (!note.empty()) notes_.push_back({l.loop, note});
    }
  return Unit{};
}

// Shared memory that threads write, or a tensor that the program writes, may need a barrier in front of the op or in it.
bool KernelPlanner::threads_meet_for(const KernelOp& op) const {
  const auto feed = feeds_.fed.find(static_cast<size_t>(&op - ops_.ops.data()));
  for (const WrittenOperand& w : written_) {
    const bool before = feed != feeds_.fed.end() && !written_inside(p_, ops_, w, *p_.as<ir::Loop>(feed->second.loop));
    for (const infer::OpAccess& a : op.accesses)
      if (a.value == w.value && !w.own_rows && !before) return true;
  }
  const auto shared = [&](int value) {
    return layouts_.values[static_cast<size_t>(value)].memory && !engine_values_.count(value);
  };
  for (const infer::OpAccess& a : op.accesses)
    if (a.value >= 0 ? shared(a.value) : !p_.buffer(a.buffer).read_only) return true;
  for (const auto& [where, value] : ops_.scalar_reads)
    if (where.first == op.stmt && value >= 0 && shared(value)) return true;
  if (const auto gemm = gemms_.find(static_cast<size_t>(&op - ops_.ops.data()));
      gemm != gemms_.end() && (gemm->second.a_copy || gemm->second.b_copy))
    return true;
  return std::any_of(scratch_.begin(), scratch_.end(), [&](const Scratch& s) { return s.statement == op.path; });
}

// Behind the order of issue.
Checked KernelPlanner::plan_turns(int64_t threads) {
  const std::vector<std::string> paths = ir::statement_paths(p_);
  TurnFacts facts;
  facts.threads = threads;
  for (const auto& [product, feed] : feeds_.fed) facts.products[&ops_.ops[product]] = gemms_.at(product).cycles;
  for (size_t op : produced_) facts.copies.insert(&ops_.ops[op]);
  for (const KernelOp& op : ops_.ops)
    if (threads_meet_for(op)) facts.meetings.insert(&op);
  for (plan::LoopPlan& l : pipelines_.loops) {
    const plan::LoopPlan* given = given_ ? plan::find_loop(*given_, l.loop) : nullptr;
    const auto loop = static_cast<size_t>(std::find(paths.begin(), paths.end(), l.loop) - paths.begin());
    if (Checked ok = plan_ping_pong(p_, ops_, ir::StmtId(loop), facts, given ? given->ping_pong : std::nullopt, l); !ok)
      return ok;
  }
  return Unit{};
}

// Which fragments and tiles leave by tensor copies, and the stages of the loops beside them.
void KernelPlanner::choose_stores() {
  stores_.clear();
  not_stored_.clear();
  if (!produced_.empty()) find_stores();
  fit_stores();
  widen_passes();
  for (const StagedStore& s : stores_) {
    plan::OpPlan& plan = layouts_.ops[s.op];
    plan.engine = Engine::tensor_copy;
    plan.iteration.reset();
    plan.vector = 1;
    plan.pass_columns = s.pass;
    plan.reason = "staged in shared memory, " + std::to_string(s.pass) + " of " + std::to_string(s.stage.columns) +
                  " columns of a warpgroup at once";
  }
}

void KernelPlanner::find_stores() {
  for (size_t i = 0; i < ops_.ops.size(); ++i) {
    const auto* copy = p_.as<ir::TileOp>(ops_.ops[i].stmt);
    if (!copy || copy->kind != ir::OpKind::copy || p_.buffer(copy->operands[1].buffer).scope != ir::MemScope::global ||
        ops_.ops[i].accesses[0].value < 0)
      continue;
    const plan::OpPlan* g = given_op(i);
    if (g && g->engine != Engine::loop && g->engine != Engine::tensor_copy) continue;
    std::string why = options_.tensor_copies == TensorCopies::loads_and_stores
                          ? store_refusal(p_, ops_, i, layouts_.values, layouts_.conversions)
                          : "planned without them";
    plan::ValuePlan& source = layouts_.values[static_cast<size_t>(ops_.ops[i].accesses[0].value)];
    if (why.empty() && source.memory) {
      store_tile(i, source);
      continue;
    }
    StagedStore s;
    if (why.empty()) {
      s.op = i;
      s.stage = *store_stage(p_, ops_.ops[i], *source.fragment, nullptr);
      s.pass = s.stage.inner;
      if (g && g->pass_columns > 0) {
        s.given = true;
        s.pass = g->pass_columns;
        if (s.pass % s.stage.inner != 0 || s.stage.columns % s.pass != 0)
          why = "passes of " + std::to_string(s.pass) + " columns do not divide " + std::to_string(s.stage.columns) +
                " into multiples of " + std::to_string(s.stage.inner);
      }
    }
    if (why.empty()) {
      stores_.push_back(std::move(s));
    } else {
      not_stored_[i] = why;
      notes_.push_back({ops_.ops[i].path, "no tensor copies: " + why});
    }
  }
}

void KernelPlanner::store_tile(size_t op, plan::ValuePlan& tile) {
  if (auto boxed = store_tile_layout(p_, ops_.ops[op], tile)) {
    tile.memory = std::move(*boxed);
    tile.reason = "boxes of the copy engine: no instruction asks for another form";
  }
  plan::OpPlan& plan = layouts_.ops[op];
  plan.engine = Engine::tensor_copy;  // the iteration stays: threads can do the copy as well
  plan.reason = "the copy engine stores the tile in boxes";
  engine_values_.insert(ops_.ops[op].accesses[0].value);
}

// Loops keep two stages beside staged stores, or the stores are plain.
void KernelPlanner::fit_stores() {
  plan_loops();
  const std::vector<std::string> paths = ir::statement_paths(p_);
  const bool crowded = arena(pipelines_.slots) > target_.shared_bytes ||
                       std::any_of(feeds_.fed.begin(), feeds_.fed.end(), [&](const auto& f) {
                         return std::any_of(pipelines_.loops.begin(), pipelines_.loops.end(), [&](const auto& l) {
                           return l.loop == paths[f.second.loop.value] && l.num_stages < 2;
                         });
                       });
  if (stores_.empty() || !crowded) return;
  for (const StagedStore& s : stores_) {
    const std::string why = "its staged tile of " + std::to_string(s.bytes(s.pass)) +
                            " bytes does not fit beside two stages of the loop's tiles";
    not_stored_[s.op] = why;
    notes_.push_back({ops_.ops[s.op].path, "no tensor copies: " + why});
  }
  stores_.clear();
  plan_loops();
}

// The widest passes that leave the loops their stages.
void KernelPlanner::widen_passes() {
  for (StagedStore& s : stores_) {
    const int64_t least = s.pass;
    for (int64_t pass = s.stage.columns; !s.given && pass > least; pass -= s.stage.inner) {
      if (s.stage.columns % pass != 0) continue;
      s.pass = pass;
      if (arena(pipelines_.slots) <= target_.shared_bytes) break;
      s.pass = least;
    }
  }
}

Checked KernelPlanner::check_given_engines() const {
  for (size_t i = 0; i < ops_.ops.size(); ++i) {
    const plan::OpPlan* g = given_op(i);
    if (!g || g->engine != Engine::tensor_copy || layouts_.ops[i].engine == Engine::tensor_copy) continue;
    std::string why = "no product of warpgroups in a pipelined loop uses its tile";
    if (const auto it = not_stored_.find(i); it != not_stored_.end()) why = it->second;
    for (const auto& [product, refusal] : refused_) why += "; " + ops_.ops[product].path + ": " + refusal;
    return Error(DiagCode::schedule_illegal, ops_.ops[i].path, "the schedule gives tensor copies, but " + why,
                 "leave the engine out to let the planner choose", ops_.ops[i].location);
  }
  return Unit{};
}

}  // namespace

Expected<KernelSchedule> plan_kernel(const ir::Program& p, int kernel, const target::Target& t,
                                     const KernelSchedule* given, const PlanOptions& options) {
  return KernelPlanner(p, kernel, t, options).plan(given);
}

}  // namespace tilegen::schedule
