#include "cost/kernel_walk.h"

#include <algorithm>
#include <cmath>

#include "analysis/idle_tiles.h"
#include "analysis/run_ahead.h"
#include "analysis/split_loop.h"
#include "analysis/sum_shares.h"

namespace tilegen::cost {

namespace {

// Trips of a loop whose length tensors tell.
constexpr int64_t kUnknownTrips = 16;

// Fitted to the times of bench/results/configurations*.json (bench/gpu/model_order.py), one H200:
// how much products and threads' work on their sums hide of each other (attention): on a multiprocessor,
constexpr double kTurns = 1.45;
// and of a group of warps whose products run on;
constexpr double kRunsOn = 1.28;
// how much less time ops take that use different pipes where many groups of warps run (GEMV, attention), as a
// power of their number;
constexpr double kSpread = 0.238;
// and products the loads of shared memory that serve them (narrow tiles of GEMM);
constexpr double kServed = 2.074;
// cycles until a product's sums can be read;
constexpr double kProductLatency = 54;
// of a product's time, for how much its slot is not asked for again though the next ones are there (GEMM of 2
// and 3 slots);
constexpr double kHeld = 0.716;
// instructions of a warp that waits for a tile and gives it back (attention of small tiles), more beside
// threads' work where slots are no power of two, whose number is no mask (attention of 2 and 3 slots), and
// cycles from a tile's arrival until those that wait for it go on;
constexpr double kWaitInstructions = 102, kOddInstructions = 12, kHandOver = 121;
// bytes in a cycle of the sums that blocks of a cluster read of each other (few rows and long sums, in all
// forms);
constexpr double kOtherBytes = 4;
// the same of what blocks leave for each other in a workspace and of what the last of them reads, and cycles
// of the operation that orders the one before the other;
constexpr double kLeftBytes = 8, kGatheredBytes = 18, kOrder = 2200;
// how much later tiles come that wait for slots of all blocks of a cluster (few rows, with and without);
constexpr double kOtherSlots = 300;
// instructions in a cycle of a warp by itself, dependences among them.
constexpr double kOwnRate = 0.234;

// Of targets of which no time was measured: how many latencies of the memory loads take that are asked for
// when the machine waits for them, the rate of a warp by itself (an instruction in 4 cycles, docs/hip.md),
// and what of a tile's bytes a load waits for that stands between a product's instructions.
constexpr double kEstimatedExposed = 2, kEstimatedRate = 0.25, kBetween = 0.25;

double exposed_latency(const target::Target& t) {
  return t.memory_latency * (t.measured_latencies ? 1 : kEstimatedExposed);
}

}  // namespace

double together(double a, double b, double overlap) {
  const double most = std::max(a, b), least = std::min(a, b);
  return most <= 0 ? 0 : most * std::pow(1 + std::pow(least / most, overlap), 1 / overlap);
}

Span& Span::operator+=(const Span& more) {
  serial += more.serial;
  late += more.late;
  units += more.units;
  threads += more.threads;
  work += more.work;
  return *this;
}

Span& Span::operator*=(double times) {
  serial *= times;
  late *= times;
  units *= times;
  threads *= times;
  work *= times;
  return *this;
}

double Span::busy(double groups) const {
  const double most = work.busy(/*threads=*/true);
  const double spread = std::max(0.0, threads - most) / std::pow(std::max(1.0, groups), kSpread);
  return together(units, std::min(threads, most) + spread, kTurns);
}

struct KernelWalk::Parts {
  Span threads;              // without what the engine and the units do
  double products = 0;       // serial, of units
  double hidden_bytes = 0;   // that are read beside
  double exposed_bytes = 0;  // that threads wait for
  double waits = 0;          // for loads, those after one another at once
  double background = 0;     // serial, of threads beside others' work
  bool last_was_load = false;
};

KernelWalk::KernelWalk(const PlannedKernel& k, const ir::Kernel& kernel, const std::vector<OpWork>& works,
                       double cycles_of_byte, const Ahead& ahead)
    : k_(k),
      kernel_(kernel),
      works_(works),
      cycles_of_byte_(cycles_of_byte),
      ahead_(ahead),
      times_(works.size()) {
  for (analysis::OpId i : k.ops.ops.ids()) of_[k.ops.ops[i].stmt] = i;
  if (!k.t.warpgroup_mma.empty())
    warpgroups_ = std::max(1.0, static_cast<double>(k.threads()) / k.t.warpgroup);
}

// What the last block of a point reads of all: loops of parts whose loads are under way together. False:
// another statement.
bool KernelWalk::gather(ir::StmtId id, double weight, Span& span) {
  const auto* groups = k_.p.as<ir::Loop>(id);
  const auto* parts = groups && groups->body.size() == 1 ? k_.p.as<ir::Loop>(groups->body.front()) : nullptr;
  if (!parts || parts->kind != ir::LoopKind::unroll || parts->body.size() != 1) return false;
  const auto at = of_.find(parts->body.front());
  const auto trips = k_.sizes.value(groups->extents[0]), together = k_.sizes.value(parts->extents[0]);
  if (at == of_.end() || !trips || !together) return false;
  const OpWork& w = works_[at->second.index()];
  double bytes = sizeof(float);  // of a part, of sums of one word
  for (int64_t extent : k_.ops.ops[at->second].view.extents) bytes *= static_cast<double>(extent);
  const double times = static_cast<double>(*trips * *together);
  times_[at->second.index()] += weight * times;
  Span all;
  all.work += w.work;
  all.threads = w.work.busy();
  span += all *= times;
  meeting_ += times * bytes / kGatheredBytes + bytes / kLeftBytes;
  return true;
}

// Of blocks whose sums meet in a workspace the last of a point alone does what follows; what it takes is a
// part of each block's work, and all of the way until the kernel's end.
Span KernelWalk::block_in_parts(double weight) {
  int64_t parts = 1;
  k_.p.exprs.is_const_int(kernel_.grid.front(), &parts);
  const double share = 1 / static_cast<double>(parts);
  const auto& last = std::get<ir::Branch>(k_.p.stmt(kernel_.body.back()).node);
  ir::Block own, rest;
  for (ir::StmtId id : kernel_.body)
    if (const auto* loop = k_.p.as<ir::Loop>(id);
        id != kernel_.body.back() && !(loop && loop->condition.valid()))
      own.push_back(id);
  Span span = walk(own, weight, {}), behind;
  meeting_ = kOrder;
  for (ir::StmtId id : last.then_body)
    if (!gather(id, weight * share, behind)) rest.push_back(id);
  behind += walk(rest, weight * share, {});
  const double serial = behind.serial;
  span += behind *= share;
  span.serial += (1 - share) * serial;
  return span;
}

Span KernelWalk::block(double weight) {
  if (kernel_.workspace_split) return block_in_parts(weight);
  if (!kernel_.split) return walk(kernel_.body, weight, {});
  // Of blocks that share a loop the first alone does what follows it, or each a share.
  const bool shares = std::any_of(kernel_.body.begin(), kernel_.body.end(),
                                  [&](ir::StmtId s) { return analysis::takes_share(k_.p, kernel_, s); });
  const bool first = shares || k_.sizes.of(kernel_.split->part).value_or(0) == 0;
  ir::Block own;
  for (ir::StmtId id : kernel_.body) {
    own.push_back(id);
    if (!first && id == kernel_.split->loop) break;
  }
  Span span = walk(own, weight, {});
  const int64_t parts = k_.schedule.cluster ? k_.schedule.cluster->blocks : 1;
  double bytes = 0;
  for (const plan::MemoryPlan& m : k_.schedule.memory)
    if (m.storage == plan::Storage::parts) bytes += static_cast<double>(m.bytes);
  const auto registers = static_cast<int64_t>(bytes) / (4 * k_.threads());
  double read = 0;  // bytes of other blocks
  if (shares)       // by all at once: of what the first of two reads, the mean over blocks has half
    read = (parts == 2 ? bytes / 2 : bytes) / 2;
  else if (analysis::share_of_sums(registers, parts) > 0)
    read = first ? 2 * bytes : bytes;
  else if (first)
    read = static_cast<double>(parts - 1) * bytes;
  span.serial += k_.t.cluster_cycles + read / kOtherBytes;
  span.threads += read / kOtherBytes;
  return span;
}

// Of one of so many actors that share the work: its warps alone issue at their own rate.
double KernelWalk::own_serial(const Work& w, double actors) const {
  const double warps = std::max(1.0, static_cast<double>(k_.threads()) / k_.t.warp / actors);
  const double rate =
      std::min<double>(k_.t.schedulers, warps * (k_.t.measured_latencies ? kOwnRate : kEstimatedRate)) /
      k_.t.schedulers;
  double most = w[Pipe::issue] / actors / rate;
  for (Pipe p : {Pipe::plain, Pipe::convert, Pipe::special, Pipe::shared, Pipe::global})
    most = std::max(most, w[p] / actors);
  return most + w.latency;
}

// Of an asynchronous product of one of the warpgroups, until its sums can be read.
double KernelWalk::product_serial(const Work& w) const {
  return std::max(w[Pipe::tensor], w[Pipe::shared]) / warpgroups_ + kProductLatency;
}

Span KernelWalk::walk(const ir::Block& body, double weight, ir::StmtId loop) {
  Parts parts;
  for (ir::StmtId id : body) statement(id, weight, parts);
  return combine(parts, loop);
}

void KernelWalk::statement(ir::StmtId id, double weight, Parts& parts) {
  if (const auto at = of_.find(id); at != of_.end()) return op(at->second, weight, parts);
  if (k_.p.as<ir::Loop>(id)) return loop(id, weight, parts);
  const auto* branch = k_.p.as<ir::Branch>(id);
  if (!branch) return;
  if (const auto condition = k_.sizes.value(branch->condition)) {
    for (ir::StmtId s : *condition != 0 ? branch->then_body : branch->else_body) statement(s, weight, parts);
    return;
  }
  for (const ir::Block* side : {&branch->then_body, &branch->else_body}) {
    Span span = walk(*side, weight / 2, {});
    parts.threads += span *= 0.5;
  }
}

void KernelWalk::loop(ir::StmtId id, double weight, Parts& parts) {
  const ir::Loop& loop = *k_.p.as<ir::Loop>(id);
  const auto trips = loop.condition.valid() ? std::optional<int64_t>() : k_.sizes.value(loop.extents[0]);
  known_ = known_ && trips.has_value();
  const auto n = static_cast<double>(std::max<int64_t>(0, trips.value_or(kUnknownTrips)));
  if (n == 0) return;
  Span span = walk(loop.body, weight * n, id);
  span.late *= (n - 1) / n;
  span *= n;
  span.serial += fill_;
  parts.threads += span;
  parts.last_was_load = false;
}

void KernelWalk::op(analysis::OpId id, double weight, Parts& parts) {
  const OpWork& w = works_[id.index()];
  times_[id.index()] += weight;
  parts.threads.work += w.work;
  switch (w.place) {
    case OpPlace::engine:
      parts.hidden_bytes += w.work.l2_bytes;
      break;
    case OpPlace::background:
      parts.hidden_bytes += w.work.l2_bytes;
      parts.threads.threads += w.work.busy();
      parts.threads.serial += own_serial(w.work, 1);
      parts.background += own_serial(w.work, 1);
      break;
    case OpPlace::units:
      parts.products += product_serial(w.work);
      parts.threads.units += together(w.work[Pipe::tensor], w.work[Pipe::shared], kServed);
      parts.threads.threads += w.work[Pipe::plain];
      parts.threads.serial += w.work[Pipe::plain];
      break;
    case OpPlace::threads:
      parts.threads.threads += w.work.busy();
      parts.threads.serial += std::max(w.work[Pipe::tensor], own_serial(w.work, warpgroups_));
      if (w.reads_tensor && !parts.last_was_load) parts.waits += 1;
      parts.exposed_bytes += w.work.l2_bytes;
      break;
  }
  parts.last_was_load = w.reads_tensor;
}

Span KernelWalk::combine(const Parts& parts, ir::StmtId loop) {
  const target::Target& t = k_.t;
  Span span = parts.threads;
  const plan::LoopPlan* plan = loop.valid() ? find_plan(*k_.p.as<ir::Loop>(loop)) : nullptr;
  const auto overlaps = [](const plan::LoopPlan& l) {  // products run on while threads do other things
    return (l.drained && !*l.drained) || l.alternating.value_or(false) ||
           std::any_of(l.stages.begin(), l.stages.end(),
                       [&](const auto& s) { return s.second > l.num_stages - 1; });
  };
  const Slots slots = plan ? slots_of(*plan) : Slots();
  const bool odd = (slots.slots & (slots.slots - 1)) != 0 && parts.threads.serial > 0;
  const double waits = slots.pipelines * (kWaitInstructions + (odd ? kOddInstructions : 0)) *
                       static_cast<double>(k_.threads()) / t.warp / t.schedulers;
  const bool run_on = parts.products > 0 && plan && overlaps(*plan);
  // What threads do for tiles that come is done beside products that run on.
  // Of loops that blocks share, tiles are there before products ask (the same).
  const bool there = (kernel_.split || kernel_.workspace_split) && slots.slots > 1 && parts.products > 0 &&
                     parts.threads.serial <= 0;
  const double handing = slots.produced && !there ? waits + slots.pipelines * kHandOver : 0;
  if (run_on)
    span.serial = together(parts.products, parts.threads.serial + handing, kRunsOn);
  else
    span.serial = parts.products + parts.threads.serial + handing;
  const bool ahead = loop.valid() && loop == ahead_.loop;
  const bool of_threads = ahead && ahead_.threads;
  const double hidden_bytes = parts.hidden_bytes + (of_threads ? parts.exposed_bytes : 0);
  if (!of_threads) {
    const double late = parts.waits * exposed_latency(t) + parts.exposed_bytes * cycles_of_byte_;
    span.serial += late;
    if (loop.valid()) span.late += late;
  }
  fill_ = 0;
  if (hidden_bytes <= 0) return span;
  const bool clustered = !kernel_.split && k_.schedule.cluster && k_.schedule.cluster->blocks > 1;
  // Deposits and loads stand between the product's instructions: a load waits for few others.
  const bool registers = plan && through_registers(*plan);
  const bool between = registers && plan->register_prefetch.value_or(false);
  const double arrival = t.memory_latency + hidden_bytes * cycles_of_byte_ * (between ? kBetween : 1) +
                         (clustered ? kOtherSlots : 0);
  // Iterations that tiles are asked for ahead: the slot that a product reads is none of them.
  double depth = !plan ? 0
                       : static_cast<double>(slots.produced ? std::max<int64_t>(1, slots.slots - 1)
                                                            : plan->num_stages - 1);
  // Registers take the loads of one iteration, while another is worked on. With one slot threads meet twice.
  if (registers) {
    depth = std::min(depth, 1.0);
    if (between) span.serial -= std::min(parts.background, parts.threads.serial - parts.background);
    if (plan->num_stages == 2) span.serial += t.meeting_latency + t.shared_latency;
  }
  if (ahead) depth = std::max(depth, static_cast<double>(ahead_.iterations));
  if (depth < 1) {
    span.serial += arrival;
    return span;
  }
  span.threads += waits;
  const double held = slots.produced ? kHeld * parts.products / slots.pipelines : 0;
  span.serial = slots.produced && slots.slots == 1 ? span.serial + late_in_one_slot(*k_.p.as<ir::Loop>(loop))
                                                   : std::max(span.serial, (arrival + held) / depth);
  if (!persistent()) fill_ = arrival;
  return span;
}

// Cycles for which an iteration waits for tiles that have one slot: the next contents are on their way only
// while a tile lies idle.
double KernelWalk::late_in_one_slot(const ir::Loop& loop) const {
  double late = 0;
  for (const analysis::KernelOp* copy : analysis::ops_inside(k_.p, k_.ops, loop)) {
    const OpWork& load = works_[k_.ops.id_of(*copy).index()];
    if (load.place != OpPlace::engine) continue;
    const analysis::ValueId tile = copy->accesses.back().value;
    if (!tile.valid()) continue;
    double idle = 0;
    for (const analysis::KernelOp* op : analysis::ops_beside_idle_tile(k_.p, k_.ops, loop, tile)) {
      const OpWork& w = works_[k_.ops.id_of(*op).index()];
      if (w.place == OpPlace::units)
        idle += product_serial(w.work);
      else if (w.place == OpPlace::threads)
        idle += own_serial(w.work, warpgroups_);
    }
    late = std::max(late, exposed_latency(k_.t) + load.work.l2_bytes * cycles_of_byte_ - idle);
  }
  return late;
}

bool KernelWalk::through_registers(const plan::LoopPlan& l) const {
  return std::any_of(l.stages.begin(), l.stages.end(), [&](const auto& s) {
    const plan::OpPlan* op = plan::find_op(k_.schedule, s.first);
    return op && op->engine == plan::Engine::register_copy;
  });
}

bool KernelWalk::persistent() const { return k_.schedule.persistence && k_.schedule.persistence->persistent; }

const plan::LoopPlan* KernelWalk::find_plan(const ir::Loop& loop) const {
  if (loop.kind != ir::LoopKind::pipelined) return nullptr;
  for (ir::StmtId s : loop.body) {
    const auto at = of_.find(s);
    if (at == of_.end()) continue;
    const std::string& path = k_.ops.ops[at->second].path;
    for (const plan::LoopPlan& l : k_.schedule.loops)
      if (std::any_of(l.stages.begin(), l.stages.end(), [&](const auto& st) { return st.first == path; }))
        return &l;
  }
  return nullptr;
}

KernelWalk::Slots KernelWalk::slots_of(const plan::LoopPlan& l) const {
  Slots s;
  for (const plan::PipelinePlan& c : k_.schedule.pipelines)
    if (c.loop == l.loop) {
      s.slots = s.produced ? std::min(s.slots, c.slots) : c.slots;
      s.produced = true;
      s.pipelines += 1;
    }
  return s;
}

}  // namespace tilegen::cost
