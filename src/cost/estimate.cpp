#include "cost/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cost/outside.h"
#include "cost/shared_reads.h"

namespace tilegen::cost {

namespace {

// Extent of a grid that tensors tell.
constexpr int64_t kUnknownExtent = 16;
// Points of each dimension of the grid that stand for all.
constexpr int64_t kSamples = 4;

// Fitted as those of kernel_walk.cpp: how much pipes and memories hide of each other;
constexpr double kBesideMemory = 5;
// of the L2's rate, what multiprocessors get that all load (all of it where nothing was measured, as
// bench/amd/loop_model.py has it);
constexpr double kL2Share = 0.6;
// how much both hide of what a block waits for, where others run beside it and where it has a multiprocessor
// for itself: it waits for its own products then (rows that no tile divides, bench/gpu/dynamic_rows.py);
constexpr double kBesideWaits = 2.448, kAlone = 3.92;
// and how much more of it, the more of that are loads of a loop (GEMV);
constexpr double kBesideLoads = 80;
// of device memory's rate, what is left where few multiprocessors ask for it, as a power of their share (few
// rows in 112 blocks and in more; last waves);
constexpr double kFewAsk = 0.3;
// of bytes that several blocks ask for before the L2 has them, how many come once more from device memory, in
// the end (few rows, by pairs of blocks with one copy for both and without);
constexpr double kRepeated = 0.6;
// of blocks of a cluster that share a loop, their meeting, beside which nothing runs (few rows and long sums,
// in all forms);
constexpr double kMeeting = 5500;
// how much longer threads take for each part of the registers there are that they need beyond them.
constexpr double kSpilled = 3.7;

// Of the tensors that the kernel touches, once. What blocks leave for each other comes from the L2.
double tensor_bytes(const PlannedKernel& k) {
  std::map<ir::BufferId, int> passes;  // read, written
  for (const analysis::KernelOp& op : k.ops.ops)
    for (const analysis::OpAccess& a : op.accesses)
      if (!a.value.valid()) passes[a.buffer] |= (a.read ? 1 : 0) | (a.write ? 2 : 0);
  double bytes = 0;
  for (const auto& [buffer, how] : passes) {
    if (how == 3 && k.p.buffer(buffer).workspace) continue;
    double all = ir::dtype_bytes(k.p.buffer(buffer).type);
    for (ir::ExprId extent : k.p.buffer(buffer).shape)
      all *= static_cast<double>(k.sizes.value(extent).value_or(kNominalSize));
    bytes += all * (how == 3 ? 2 : 1);
  }
  return bytes;
}

// Blocks of a grid that stand for all.
class Sample {
 public:
  Sample(const ir::Kernel& kernel, SizedProgram& sizes) : kernel_(kernel), sizes_(sizes) {
    for (ir::ExprId extent : kernel.grid) {
      const auto n = sizes.value(extent);
      known = known && n.has_value();
      grid_.push_back(std::max<int64_t>(0, n.value_or(kUnknownExtent)));
      blocks *= static_cast<double>(grid_.back());
      count *= std::min(grid_.back(), kSamples);
    }
  }

  bool known = true;
  double blocks = 1;
  int64_t count = 1;

  void set(int64_t number) {
    for (size_t d = 0; d < grid_.size(); ++d) {
      const int64_t points = std::min(grid_[d], kSamples), at = number % points;
      number /= points;
      sizes_.set(kernel_.block_vars[d], points == 1 ? 0 : at * (grid_[d] - 1) / (points - 1));
    }
  }

  void start_following() { sizes_.start_asking(); }
  // The block that is set, by those of its indices that something has followed since.
  std::vector<int64_t> followed() const {
    std::vector<int64_t> indices;
    for (ir::VarId v : kernel_.block_vars) {
      const bool asked = sizes_.asked(v);
      indices.push_back(asked ? sizes_.of(v).value_or(0) : 0);
    }
    return indices;
  }

 private:
  const ir::Kernel& kernel_;
  SizedProgram& sizes_;
  std::vector<int64_t> grid_;
};

// Blocks of a sample on their way: those that differ in nothing that the way follows go the same.
class Walks {
 public:
  Walks(Sample& sample, KernelWalk& walk) : sample_(sample), walk_(walk) { sample.start_following(); }

  Span block(int64_t number, double weight) {
    sample_.set(number);
    for (const Walked& w : walked_)
      if (followed(w.number, number)) return walk_.add_times(w.times), w.span;
    Walked w{number, {}, walk_.times()};
    w.span = walk_.block(weight);
    for (size_t i = 0; i < w.times.size(); ++i) w.times[i] = walk_.times()[i] - w.times[i];
    walked_.push_back(std::move(w));
    return walked_.back().span;
  }

 private:
  struct Walked {
    int64_t number;
    Span span;
    std::vector<double> times;  // of its ops
  };
  // As far as the way followed indices, the blocks have the same.
  bool followed(int64_t before, int64_t number) {
    sample_.set(before);
    const std::vector<int64_t> indices = sample_.followed();
    sample_.set(number);
    return indices == sample_.followed();
  }

  Sample& sample_;
  KernelWalk& walk_;
  std::vector<Walked> walked_;
};

// Cycles of one wave, of so many blocks of a multiprocessor.
struct Wave {
  double blocks = 0, pipes = 0, l2 = 0, memory = 0, filled = 0, waits = 0;
  double late = 0;   // of the waits, for loads of a loop
  double loads = 0;  // how much more of these is hidden
  // The copy engine reads and fills with zeros one after the other.
  double device() const { return std::max(l2, memory) + filled; }
  double all() const {
    const double beside = kBesideWaits + loads * late / std::max(1.0, waits);
    return together(together(pipes, device(), kBesideMemory), waits, blocks > 1 ? beside : kAlone);
  }
};

Bound bound_of(const Wave& w, double cycles, const target::Target& t) {
  const double device = w.device();
  if (t.launch_cycles > cycles) return Bound::launch;
  if (w.waits > std::max(w.pipes, device)) return Bound::latency;
  if (w.pipes > device) return Bound::pipe;
  if (w.filled > std::max(w.l2, w.memory)) return Bound::filling;
  return w.memory > w.l2 ? Bound::memory : Bound::l2;
}

}  // namespace

std::vector<OpWork> works_of(const PlannedKernel& k) {
  std::vector<OpWork> works;
  for (const analysis::KernelOp& op : k.ops.ops) works.push_back(op_work(k, op));
  return works;
}

KernelEstimate estimate_kernel(int index, const PlannedKernel& k, SizedProgram& sizes,
                               const std::vector<OpWork>& unsized, const Ahead& ahead, bool spills) {
  const ir::Kernel& kernel = k.p.kernels[static_cast<size_t>(index)];
  std::vector<OpWork> works = unsized;
  if (k.t.filled_bytes_per_cycle > 0) count_filled(k, kernel, sizes, works);
  if (k.t.tensor_copy) count_shared_reads(k, kernel, works);
  const target::Target& t = k.t;
  Sample sample(kernel, sizes);
  KernelEstimate e;
  e.kernel = kernel.name;
  e.occupancy = occupancy(k);
  e.blocks = sample.blocks;
  e.known = sample.known;
  e.memory_bytes = tensor_bytes(k);
  const double l2_bytes_per_cycle = (t.measured_latencies ? kL2Share : 1) * t.l2_bytes_per_cycle;
  const double asking = std::min<double>(t.multiprocessors, e.blocks);
  const double few_ask = t.measured_latencies ? kFewAsk : 0;
  const double filled = std::pow(std::max(1.0, asking) / t.multiprocessors, few_ask);
  const double memory_cycles = asking / (t.memory_bytes_per_cycle * filled);  // of a byte
  const double filled_cycles = t.filled_bytes_per_cycle > 0
                                   ? std::min<double>(t.multiprocessors, e.blocks) / t.filled_bytes_per_cycle
                                   : 0;
  double cold = 0, longest = 0, meeting = 0;
  std::vector<double> times;
  // Twice: how much of what blocks read and write comes from device memory shows when all of it is known.
  for (int pass = 0; pass < 2; ++pass) {
    KernelWalk walk(k, kernel, works, 1 / l2_bytes_per_cycle + cold * memory_cycles, ahead);
    Walks walks(sample, walk);
    e.block = {};
    for (int64_t s = 0; s < sample.count; ++s) {
      const double weight = 1.0 / static_cast<double>(sample.count);
      Span one = walks.block(s, weight);
      longest = std::max(longest, one.serial);
      e.block += one *= weight;
    }
    cold =
        std::min(1.0, e.memory_bytes /
                          std::max(1.0, e.blocks * (e.block.work.read_bytes + e.block.work.written_bytes)));
    times = walk.times();
    e.known = e.known && walk.known();
    meeting = walk.meeting();
  }
  if (spills && e.occupancy.spills()) {
    const double more =
        static_cast<double>(e.occupancy.registers) / static_cast<double>(e.occupancy.may_have) - 1;
    e.block.serial *= 1 + kSpilled * more;
    e.block.threads *= 1 + kSpilled * more;
  }
  for (analysis::OpId i : k.ops.ops.ids())
    e.ops.push_back({k.ops.ops[i].path, works[i.index()].place, times[i.index()],
                     works[i.index()].work * times[i.index()]});

  const double groups =
      t.warpgroup_mma.empty() ? 1 : std::max(1.0, static_cast<double>(k.threads()) / t.warpgroup);
  // So many blocks at once on a multiprocessor.
  const auto wave = [&](double blocks) {
    return Wave{
        blocks,
        blocks * e.block.busy(blocks * groups),
        blocks * e.block.work.l2_bytes / l2_bytes_per_cycle,
        blocks * (cold * e.block.work.l2_bytes + kRepeated * e.block.work.repeated_bytes) * memory_cycles,
        blocks * e.block.work.filled_bytes * filled_cycles,
        e.block.serial,
        e.block.late,
        t.measured_latencies ? kBesideLoads : 0};
  };
  // Clusters do not straddle groups of multiprocessors.
  const int64_t cluster = k.schedule.cluster ? std::max<int64_t>(1, k.schedule.cluster->blocks) : 1;
  const int64_t group = std::max<int64_t>(t.cluster_multiprocessors, cluster);
  const double used = static_cast<double>(group / cluster * cluster) / static_cast<double>(group);
  const double units = cluster > 1 ? std::floor(t.multiprocessors * used) : t.multiprocessors,
               room = units * static_cast<double>(e.occupancy.blocks);
  e.waves = e.blocks / room;
  const double full = std::floor(e.waves), rest = e.blocks - full * room;
  const Wave whole = wave(static_cast<double>(e.occupancy.blocks));
  Wave last = wave(std::ceil(rest / units));
  if (full > 0 && rest > 0) {  // multiprocessors that have less of it leave the memory to the others
    const double share = rest / (units * last.blocks);
    last.memory *= std::pow(share, 1 - few_ask), last.filled *= share;
  }
  e.cycles = full * whole.all() + (rest > 0 ? last.all() : 0);
  if (e.waves <= 1) e.cycles = std::max(e.cycles, longest);
  if (!k.schedule.persistence || !k.schedule.persistence->persistent)
    e.cycles = std::max(e.cycles, t.block_cycles * e.blocks + e.block.serial);
  e.bound = bound_of(full > 0 ? whole : last, e.cycles, t);
  e.pipe = e.block.units > e.block.threads ? e.block.work.busiest() : e.block.work.busiest(/*threads=*/true);
  e.cycles += meeting + (kernel.split ? kMeeting : 0) + t.launch_cycles;
  e.microseconds = e.cycles / t.clock_mhz;
  return e;
}

std::string KernelEstimate::bound_text() const {
  switch (bound) {
    case Bound::pipe:
      return pipe_name(pipe);
    case Bound::latency:
      return "waits";
    case Bound::l2:
      return "L2";
    case Bound::memory:
      return "device memory";
    case Bound::filling:
      return "zeros outside of tensors";
    case Bound::launch:
      return "launch";
  }
  return "";
}

double Estimate::microseconds() const {
  double sum = 0;
  for (const KernelEstimate& k : kernels) sum += k.microseconds;
  return sum;
}

Estimate estimate(const ir::Program& p, const plan::Schedule& schedule, const target::Target& t,
                  const Sizes& given) {
  Estimate e;
  for (size_t i = 0; i < p.kernels.size() && i < schedule.kernels.size(); ++i) {
    const analysis::KernelOps ops = analysis::collect_kernel_ops(p, static_cast<int>(i));
    SizedProgram sizes(p, given);
    const PlannedKernel k{p, ops, schedule.kernels[i], t, sizes};
    e.kernels.push_back(estimate_kernel(static_cast<int>(i), k, sizes, works_of(k)));
  }
  return e;
}

}  // namespace tilegen::cost
