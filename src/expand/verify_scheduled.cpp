#include "expand/verify_scheduled.h"

#include <algorithm>
#include <deque>
#include <map>

#include "expand/scheduled_trace.h"
#include "expand/versions.h"
#include "ir/statement_paths.h"

namespace tilegen::expand {

namespace {

using analysis::KernelOp;

constexpr size_t kMaxWords = 4;  // named in one message

// One run of all roles: each goes on until it has to wait for another.
class Player {
 public:
  Player(const ir::Program& p, const ScheduledKernel& k, const ir::KernelPaths& paths, const Lengths& run,
         std::vector<std::string>& broken)
      : p_(p), k_(k), paths_(paths), run_(run), broken_(broken), lines_(k.pipelines.size()) {
    roles_.reserve(k.roles.size());
    for (const Role& r : k.roles) {
      roles_.emplace_back();
      roles_.back().role = &r;
      roles_.back().events = trace_role(p, k, r, run);
      roles_.back().alone = !has_preamble(k);
    }
  }

  void play() {
    for (bool moved = true; moved && !enough();) {
      moved = false;
      for (Played& r : roles_)
        while (r.next < r.events.size() && !enough() && may_go(r.events[r.next])) {
          execute(r, r.events[r.next++]);
          moved = true;
        }
    }
    if (enough()) return;
    for (const Played& r : roles_)
      if (r.next < r.events.size())
        return tell("role " + r.role->name + " waits for ever for pipeline '" +
                    name(waited_for(r.events[r.next])) + "', use " + std::to_string(r.events[r.next].use));
    for (const Played& r : roles_) {
      for (const Flight& f : r.flights) tell(path(f.op) + " is never awaited");
      for (const auto& [copy, iteration] : r.loaded)
        tell(path(copy) + " loads iteration " + std::to_string(iteration) + ", which is never deposited");
      if (r.turn != 0) tell("role " + r.role->name + " ends within a turn of its products");
    }
    for (size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].committed != lines_[i].released)
        tell("pipeline '" + name(static_cast<int>(i)) + "' is filled " + std::to_string(lines_[i].committed) +
             " times and released " + std::to_string(lines_[i].released) + " times");
  }

 private:
  // Of a pipeline between roles. Uses below a count have the state.
  struct Line {
    int64_t acquired = 0, committed = 0, released = 0;
    std::set<int64_t> waited;  // and not released
  };
  struct Flight {
    StmtId op;
    Event issued;
  };
  struct Played {
    const Role* role = nullptr;
    std::vector<Event> events;
    size_t next = 0;
    std::deque<Flight> flights;  // oldest first
    int turn = 0;                // 1: between a wait for the turn and its passing on
    bool alone = true;           // the kernel in front has ended
    // commit groups: by value and slot the iteration that lies there, and the group it came with
    struct Filled {
      int64_t iteration = -1, group = 0;
    };
    std::map<std::pair<ValueId, int64_t>, Filled> filled;
    int64_t groups = 0, complete = 0;
    std::map<StmtId, int64_t> loaded;  // by copy: the iteration that its registers hold
    // Meetings of a warpgroup's threads so far, and those before a use of a pipeline was waited for.
    int64_t met = 0;
    std::map<std::pair<int, int64_t>, int64_t> seen_full;
  };

  bool enough() const { return broken_.size() >= kMaxWords; }
  void tell(std::string words) {
    words += " (loops of " + std::to_string(run_.iterations) + " iterations)";
    if (!enough() && std::find(broken_.begin(), broken_.end(), words) == broken_.end())
      broken_.push_back(std::move(words));
  }
  const std::string& path(StmtId id) const { return paths_[id.value]; }
  std::string name(int line) const { return name_of(k_.pipelines[static_cast<size_t>(line)]); }
  static int64_t part_of(const Event& e) {
    const auto* issue = std::get_if<Issue>(&e.stmt->node);
    return issue ? issue->part : Issue::kWhole;
  }
  bool reads_constants(StmtId id) const {
    const KernelOp* o = op(id);
    return o && std::all_of(o->accesses.begin(), o->accesses.end(), [&](const analysis::OpAccess& a) {
             return a.value.valid() || p_.buffer(a.buffer).constant;
           });
  }
  const KernelOp* op(StmtId id) const {
    for (const KernelOp& o : k_.ops->ops)
      if (o.stmt == id) return &o;
    return nullptr;
  }

  static int waited_for(const Event& e) {
    if (const auto* acquire = std::get_if<Acquire>(&e.stmt->node)) return acquire->pipeline;
    return std::get<Wait>(e.stmt->node).pipeline;
  }
  bool may_go(const Event& e) const {
    if (const auto* s = std::get_if<Acquire>(&e.stmt->node)) {
      const Line& line = lines_[static_cast<size_t>(s->pipeline)];
      return e.use < k_.pipelines[static_cast<size_t>(s->pipeline)].slots + line.released;
    }
    if (const auto* s = std::get_if<Wait>(&e.stmt->node))
      return e.use < lines_[static_cast<size_t>(s->pipeline)].committed;
    return true;
  }

  // What the kernel in front may still write is not touched.
  void execute(Played& r, const Event& e) {
    if (const StmtId id = operation_of(*e.stmt); id.valid() && !r.alone && !reads_constants(id))
      tell(path(id) + " runs before the kernel in front has ended, and its tensor is not constant");
    std::visit([&](const auto& node) { step(r, e, node); }, e.stmt->node);
  }
  template <class Node>
  void step(Played&, const Event&, const Node&) {}

  void step(Played&, const Event& e, const Acquire& s) {
    Line& line = lines_[static_cast<size_t>(s.pipeline)];
    if (e.use != line.acquired++) tell("pipeline '" + name(s.pipeline) + "' is acquired out of order");
  }
  void step(Played&, const Event&, const Commit& s) {
    Line& line = lines_[static_cast<size_t>(s.pipeline)];
    if (++line.committed > line.acquired)
      tell("pipeline '" + name(s.pipeline) + "' is committed without being acquired");
  }
  void step(Played& r, const Event&, const Barrier&) { ++r.met; }
  void step(Played& r, const Event&, const FetchRows&) { ++r.met; }
  void step(Played& r, const Event&, const ProductsDone& s) { r.met += s.waits ? 1 : 0; }
  void step(Played& r, const Event&, const PutRows& s) {
    r.met += s.part == analysis::Alternation::Part::middle ? 1 : 0;
  }
  void step(Played& r, const Event& e, const Wait& s) {
    r.seen_full[{s.pipeline, e.use}] = r.met;
    Line& line = lines_[static_cast<size_t>(s.pipeline)];
    if (e.use < line.released || !line.waited.insert(e.use).second)
      tell("use " + std::to_string(e.use) + " of pipeline '" + name(s.pipeline) + "' is waited for twice");
  }
  void step(Played& r, const Event& e, const Release& s) {
    Line& line = lines_[static_cast<size_t>(s.pipeline)];
    if (line.waited.erase(e.use) == 0 || e.use != line.released)
      tell("use " + std::to_string(e.use) + " of pipeline '" + name(s.pipeline) +
           "' is released before it is waited for, or out of order");
    ++line.released;
    const Pipeline& pipeline = k_.pipelines[static_cast<size_t>(s.pipeline)];
    if (const auto seen = r.seen_full.find({s.pipeline, e.use});
        seen != r.seen_full.end() && seen->second == r.met && pipeline.loop.valid())
      tell("use " + std::to_string(e.use) + " of pipeline '" + name(s.pipeline) +
           "' is released before all threads have seen it full: they do not meet in between");
    for (const Flight& f : r.flights)
      for (const analysis::OpAccess& a : op(f.op)->accesses)
        if (pipeline.values.count(a.value) && runs_on(f, a) && brings(pipeline, part_of(f.issued)) &&
            (!pipeline.loop.valid() || f.issued.iteration(pipeline.loop) == e.use))
          tell("the slot that " + path(f.op) + " reads is released while it runs");
  }

  void step(Played& r, const Event&, const GridDependencyWait&) { r.alone = true; }
  void step(Played& r, const Event& e, const Run& s) { touch(r, e, s.op, false); }
  void step(Played& r, const Event& e, const Multiply& s) { touch(r, e, s.product, false); }
  void step(Played& r, const Event& e, const LoadOperands& s) { touch(r, e, s.product, false); }
  void step(Played& r, const Event& e, const Issue& s) {
    const KernelOp& o = *op(s.op);
    if (r.role->kind == RoleKind::producer) {
      for (const analysis::OpAccess& a : o.accesses)
        for (size_t i = 0; i < lines_.size(); ++i)
          if (a.write && k_.pipelines[i].values.count(a.value) && brings(k_.pipelines[i], s.part) &&
              (e.use >= lines_[i].acquired || e.use < lines_[i].committed))
            tell(path(s.op) + " fills a slot that is not acquired");
      return;
    }
    const plan::OpPlan* plan = plan::find_op(*k_.schedule, o.path);
    if (plan && plan->engine == plan::Engine::warpgroup_mma) {
      touch(r, e, s.op, true);
      r.flights.push_back({s.op, e});
      return;
    }
    if (plan && plan->engine == plan::Engine::register_copy) {
      if (!r.loaded.emplace(s.op, iteration_of(e)).second)
        tell(path(s.op) + " loads to registers that hold another iteration");
      return;
    }
    for (const Pipeline& line : k_.pipelines)
      for (const analysis::OpAccess& a : o.accesses)
        if (a.write && line.transport == Transport::async_copy && line.values.count(a.value))
          if (const auto i = e.iteration(line.loop)) r.filled[{a.value, *i % line.slots}] = {*i, r.groups};
  }
  void step(Played& r, const Event& e, const Deposit& s) {
    const auto loaded = r.loaded.find(s.op);
    if (loaded == r.loaded.end() || loaded->second != iteration_of(e))
      tell(path(s.op) + " deposits iteration " + std::to_string(iteration_of(e)) + ", which is not loaded");
    if (loaded != r.loaded.end()) r.loaded.erase(loaded);
    for (const Pipeline& line : k_.pipelines)
      for (const analysis::OpAccess& a : op(s.op)->accesses)
        if (a.write && line.transport == Transport::register_copy && line.values.count(a.value))
          if (const auto i = e.iteration(line.loop)) r.filled[{a.value, *i % line.slots}] = {*i, -1};
  }
  static int64_t iteration_of(const Event& e) {
    return e.iterations.empty() ? 0 : e.iterations.back().second;
  }
  void step(Played& r, const Event&, const CommitGroup&) { ++r.groups; }
  void step(Played&, const Event&, const OnBarrier&) {}  // of the program, which is in order
  void step(Played& r, const Event&, const WaitGroup& s) {
    r.complete = std::max(r.complete, r.groups - s.pending);
  }

  // A product keeps the warps of a warpgroup together.
  void step(Played& r, const Event& e, const Await& s) {
    if (!e.finished.empty()) ++r.met;
    for (StmtId product : e.finished) {
      if (r.flights.empty() || r.flights.front().op != product) {
        tell(path(product) + " is awaited, and is not the oldest product in flight");
        return;
      }
      r.flights.pop_front();
    }
    if (static_cast<int64_t>(r.flights.size()) > s.pending)
      tell("a wait leaves " + std::to_string(s.pending) + " products pending, in flight are " +
           std::to_string(r.flights.size()));
    if (!e.finished.empty() && static_cast<int64_t>(r.flights.size()) < s.pending)
      tell("a wait for " + path(e.finished.back()) + " lets " + std::to_string(s.pending) +
           " products go on, after it are " + std::to_string(r.flights.size()));
  }

  void step(Played& r, const Event&, const ReduceParts& s) {
    for (const Flight& f : r.flights)
      for (const analysis::OpAccess& a : op(f.op)->accesses)
        if (std::find(s.sums.begin(), s.sums.end(), a.value) != s.sums.end())
          tell("parts of '" + k_.ops->values[a.value].name + "' are summed while " + path(f.op) + " runs");
  }

  void step(Played& r, const Event&, const Order& s) {
    if (s.step == Order::Step::wait && ++r.turn != 1) tell("a turn is waited for within a turn");
    if (s.step == Order::Step::pass && --r.turn != 0) tell("a turn is passed on that was not waited for");
  }

  // An operation of the computing threads, or a product of theirs, uses its values.
  void touch(Played& r, const Event& e, StmtId id, bool product) {
    const KernelOp* o = op(id);
    if (!o) return;
    for (const analysis::OpAccess& a : o->accesses) {
      if (!a.value.valid()) continue;
      for (size_t i = 0; i < lines_.size(); ++i)
        if (k_.pipelines[i].values.count(a.value) && brings(k_.pipelines[i], part_of(e)))
          in_slot(r, e, id, i, a);
      for (const Flight& f : r.flights)
        for (const analysis::OpAccess& b : op(f.op)->accesses)
          if (b.value == a.value && (a.write || b.write) && runs_on(f, b) && !apart(e, f, a, b, product))
            tell(path(id) + " touches '" + k_.ops->values[a.value].name + "' while " + path(f.op) + " runs");
    }
  }

  // An operand that is transposed for the product is read by threads before it is issued.
  bool runs_on(const Flight& f, const analysis::OpAccess& a) const {
    const KernelOp& product = *op(f.op);
    const auto side = &a - product.accesses.data();
    return side > 1 ||
           !plan::find_memory(*k_.schedule, side == 0 ? plan::Storage::operand_a : plan::Storage::operand_b,
                              product.path);
  }

  // Products add to the same sums in the order of issue; slots that iterations use in turn are others.
  bool apart(const Event& e, const Flight& f, const analysis::OpAccess& a, const analysis::OpAccess& b,
             bool product) const {
    if (product && a.write && b.write) return true;
    for (const Pipeline& line : k_.pipelines)
      if ((line.transport == Transport::threads || line.transport == Transport::registers) &&
          line.values.count(a.value))
        return (e.iteration(line.loop).value_or(0) - f.issued.iteration(line.loop).value_or(0)) %
                   line.slots !=
               0;
    return false;
  }

  void in_slot(Played& r, const Event& e, StmtId id, size_t i, const analysis::OpAccess& a) {
    const Pipeline& pipeline = k_.pipelines[i];
    const auto iteration = pipeline.loop.valid() ? e.iteration(pipeline.loop) : lines_[i].released;
    if (!iteration) {
      if (pipeline.transport == Transport::tensor_copy)
        tell(path(id) + " reads pipeline '" + name_of(pipeline) + "' outside of its loop");
      return;
    }
    if (pipeline.transport == Transport::tensor_copy && !lines_[i].waited.count(*iteration))
      tell(path(id) + " reads use " + std::to_string(*iteration) + " of pipeline '" + name_of(pipeline) +
           "', which is not waited for or released");
    const bool by_threads =
        pipeline.transport == Transport::async_copy || pipeline.transport == Transport::register_copy;
    if (by_threads && a.read) {
      const auto there = r.filled.find({a.value, *iteration % pipeline.slots});
      if (there == r.filled.end() || there->second.iteration != *iteration)
        tell(path(id) + " reads iteration " + std::to_string(*iteration) + " of '" + pipeline.name +
             "', whose slot has another");
      else if (there->second.group >= r.complete)
        tell(path(id) + " reads '" + pipeline.name + "' before its copies are awaited");
    }
  }

  const ir::Program& p_;
  const ScheduledKernel& k_;
  const ir::KernelPaths& paths_;
  const Lengths run_;
  std::vector<std::string>& broken_;
  std::vector<Played> roles_;
  std::vector<Line> lines_;
};

}  // namespace

std::vector<std::string> verify_scheduled(const ir::Program& p, const ScheduledKernel& k) {
  std::vector<std::string> broken;
  int64_t slots = 1;
  for (const Pipeline& line : k.pipelines) slots = std::max(slots, line.slots);
  const ir::KernelPaths paths(p, k.kernel);
  const auto play = [&](const Lengths& run) {
    if (broken.empty()) Player(p, k, paths, run, broken).play();
  };
  for (const Role& r : k.roles)
    if (std::string words = broken_version(r.body); !words.empty())
      broken.push_back("role " + r.name + ": " + words);
  if (k.pipelines.empty()) return broken;
  const size_t lists = std::any_of(k.schedule->loops.begin(), k.schedule->loops.end(),
                                   [](const plan::LoopPlan& l) { return l.alternating.value_or(false); })
                           ? 2
                           : 1;
  for (int64_t iterations : {int64_t{0}, int64_t{1}, int64_t{2}, slots + 2})
    for (bool conditions : {true, false})
      for (size_t w = 0; w < lists; ++w) play({iterations, 2, iterations <= 2 ? 3 : 2, conditions, w});
  return broken;
}

}  // namespace tilegen::expand
