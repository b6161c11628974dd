#include "cost/occupancy.h"

#include <algorithm>
#include <limits>

#include "support/checked.h"
#include "target/resident_blocks.h"

namespace tilegen::cost {

namespace {

// Addresses, predicates, counters, an element on its way; by ptxas 13.0 of attention and row programs, as the
// rest here:
constexpr int64_t kOtherRegisters = 23;
// how many times what is needed the vendor's assembler takes where it may;
constexpr double kTaken = 1.03;
// of the registers of values that end at an op of threads, those that values which begin there take over;
constexpr double kTakenOver = 0.75;
// of what a load converts, what is under way beside the results.
constexpr double kUnderWay = 0.7;

int64_t words(int64_t elements, ir::DType type) {
  return ceil_div(elements * ir::dtype_bytes(type), int64_t{4});
}

// From its first op to its last, in program order.
struct Life {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
  int64_t words = 0;
};

bool multiplies(const PlannedKernel& k) {
  return std::any_of(k.schedule.ops.begin(), k.schedule.ops.end(), [](const plan::OpPlan& op) {
    return op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma;
  });
}

// Registers of 4 bytes for values at the fullest op.
class ValueWords {
 public:
  explicit ValueWords(const PlannedKernel& k) : k_(k), lives_(k.schedule.values.size()) {
    for (analysis::OpId i : k.ops.ops.ids())
      for (const analysis::OpAccess& a : k.ops.ops[i].accesses) {
        if (!a.value.valid()) continue;
        Life& life = lives_[a.value.index()];
        life.first = std::min(life.first, place(i)), life.last = std::max(life.last, place(i));
      }
    for (size_t v = 0; v < lives_.size(); ++v) {
      const plan::ValuePlan& value = k.schedule.values[v];
      if (value.fragment && lives_[v].last >= 0)
        lives_[v].words = words(value.fragment->registers() * std::max<int64_t>(1, value.slots),
                                k.p.buffer(k.ops.values[analysis::ValueId(v)].buffer).type);
    }
    for (const plan::LoopPlan& l : k.schedule.loops) keep_of_lagging(l);
  }

  // With what loads that convert have under way, where `loads`.
  int64_t most(bool loads) const {
    int64_t most = 0;
    for (analysis::OpId i : k_.ops.ops.ids())
      most = std::max(most, at(i) + (loads ? under_way(k_.ops.ops[i]) : 0));
    return most;
  }

 private:
  static int64_t place(analysis::OpId op) { return static_cast<int64_t>(op.index()); }

  // What an op of this iteration shares with one that lags lives in two iterations: all through the loop.
  void keep_of_lagging(const plan::LoopPlan& l) {
    if (std::all_of(l.stages.begin(), l.stages.end(),
                    [&](const auto& s) { return s.second <= l.num_stages - 1; }))
      return;
    std::vector<char> lagging(lives_.size(), 0), newest(lives_.size(), 0);
    Life loop;
    for (analysis::OpId i : k_.ops.ops.ids()) {
      const auto stage = std::find_if(l.stages.begin(), l.stages.end(),
                                      [&](const auto& s) { return s.first == k_.ops.ops[i].path; });
      if (stage == l.stages.end()) continue;
      loop.first = std::min(loop.first, place(i)), loop.last = std::max(loop.last, place(i));
      for (const analysis::OpAccess& a : k_.ops.ops[i].accesses)
        if (a.value.valid()) (stage->second > l.num_stages - 1 ? lagging : newest)[a.value.index()] = 1;
    }
    // One op further at both ends: nothing takes its registers over.
    for (size_t v = 0; v < lives_.size(); ++v)
      if (lagging[v] && newest[v]) {
        lives_[v].first = std::min(lives_[v].first, loop.first - 1);
        lives_[v].last = std::max(lives_[v].last, loop.last + 1);
      }
  }

  int64_t at(analysis::OpId op) const {
    int64_t held = 0, ends = 0, begins = 0;
    for (const Life& life : lives_)
      if (life.first <= place(op) && place(op) <= life.last)
        (life.first == place(op) ? begins : life.last == place(op) ? ends : held) += life.words;
    const int64_t least = std::min(ends, begins);
    // A product has all of its operands until it is done.
    const bool shares = k_.ops.ops[op].form != analysis::OpForm::contraction;
    return held + ends + begins -
           (shares ? static_cast<int64_t>(kTakenOver * static_cast<double>(least)) : 0);
  }

  int64_t under_way(const analysis::KernelOp& op) const {
    const analysis::OpAccess *from = nullptr, *to = nullptr;
    for (const analysis::OpAccess& a : op.accesses) {
      if (!a.value.valid() && a.read) from = &a;
      if (a.value.valid() && a.write) to = &a;
    }
    if (!from || !to || op.accesses.size() != 2) return 0;
    const plan::ValuePlan& value = k_.schedule.values[to->value.index()];
    const ir::DType loaded = k_.p.buffer(from->buffer).type, held = k_.p.buffer(to->buffer).type;
    if (!value.fragment || loaded == held) return 0;
    return static_cast<int64_t>(kUnderWay * static_cast<double>(words(value.fragment->registers(), held)));
  }

  const PlannedKernel& k_;
  std::vector<Life> lives_;  // by value
};

}  // namespace

Occupancy occupancy(const PlannedKernel& k) {
  const target::Target& t = k.t;
  Occupancy o;
  const ValueWords values(k);
  o.registers = values.most(/*loads=*/false) + kOtherRegisters;
  int64_t arena = 0;
  for (const plan::MemoryPlan& m : k.schedule.memory) arena = std::max(arena, m.offset + m.bytes);
  int64_t threads = k.threads(), given = 0;
  if (k.schedule.roles && !k.schedule.roles->empty()) {
    threads = 0;
    for (const plan::RolePlan& r : *k.schedule.roles) threads += r.warps * t.warp;
    given = k.schedule.roles->front().registers;
  }
  const int64_t whole = ceil_div(threads, int64_t{t.warpgroup}) * t.warpgroup;
  o.may_have = given > 0 ? given : std::min<int64_t>(t.registers_per_thread, t.registers_at_launch(whole));
  const int64_t unit = t.register_unit;
  // Where nothing tells the vendor's assembler how many blocks there shall be, it takes what it likes.
  const int64_t min_blocks = k.schedule.launch ? k.schedule.launch->min_blocks : 1;
  const int64_t taken =
      multiplies(k) || min_blocks > 1
          ? o.registers
          : static_cast<int64_t>(kTaken * static_cast<double>(values.most(/*loads=*/true) + kOtherRegisters));
  const int64_t each =
      std::min(o.may_have, std::max<int64_t>(t.least_registers, ceil_div(taken, unit) * unit));
  const int64_t shared = arena + t.reserved_shared_bytes;
  const int64_t by_shared = (t.shared_bytes + t.reserved_shared_bytes) / std::max<int64_t>(1, shared);
  const int64_t by_registers = given > 0 ? 1 : target::blocks_by_registers(t, each, threads);
  const int64_t by_threads = std::min(t.blocks_per_multiprocessor, t.threads_per_multiprocessor / threads);
  o.blocks = std::max<int64_t>(1, std::min({by_shared, by_registers, by_threads}));
  o.bound = o.blocks >= by_shared ? "shared memory" : o.blocks >= by_registers ? "registers" : "threads";
  return o;
}

}  // namespace tilegen::cost
