#include "thread/sync_verify.h"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>

#include "thread/index_program.h"
#include "thread/loop_lengths.h"
#include "thread/sync_accesses.h"

namespace tilegen::thread {

using ir::ExprId;
using ir::VarId;

namespace {

constexpr int64_t kNobody = -1, kMany = -2, kSynchronous = -1;
constexpr int64_t kLongestLoop = 512;     // iterations of one loop that are looked at
constexpr int64_t kMaxSteps = 4'000'000;  // thread steps of one walk
constexpr size_t kMaxHazards = 16;
constexpr int64_t kFew = 8;         // threads that are evaluated for one by one
constexpr int64_t kProducts = -16;  // a product of warpgroup g as a reader is kProducts - g

// What happened to one unit of memory last.
struct Cell {
  int64_t writer = kNobody, write_epoch = -1, write_group = kSynchronous, write_instance = -1;
  int64_t reader = kNobody, read_epoch = -1, read_instance = -1;
  int64_t product = kNobody;  // the newest that reads it
  StmtId write_stmt, read_stmt;
};

struct Groups {
  int64_t open = 0;                     // number of the group being filled
  std::vector<int64_t> finished_epoch;  // of closed groups: epoch of the wait that saw them done, or -1
};

// Memory that lowering has ordered by other means is judged by verify_transactions; not what threads write
// for products, whose threads it does not tell apart.
bool is_watched(const ThreadProgram& p, const std::vector<bool>& operands, MemoryId id) {
  const Memory& m = p.memory(id);
  return m.space == Space::shared && (!m.ordered || operands[id.value]);
}

using Row = std::vector<std::optional<int64_t>>;  // by thread

class Walk {
 public:
  Walk(const ThreadProgram& p, int64_t unit, bool taken, std::vector<std::string>& hazards,
       std::set<std::pair<StmtId, StmtId>>& seen)
      : p_(p),
        warpgroup_(static_cast<size_t>(p.machine.warpgroup)),
        unit_(unit),
        taken_(taken),
        split_(split_barriers(p)),
        operands_(written_operands(p)),
        hazards_(hazards),
        seen_(seen),
        values_(p.vars.size()),
        begin_(p.vars.size()),
        groups_(static_cast<size_t>(p.threads)),
        cells_(static_cast<size_t>(p.arena_bytes / unit + 1)) {}

  PointValues& values() { return values_; }

  // Whether a walk of these values is this one once more.
  bool repeats(const PointValues& values, bool taken) const {
    return (taken == taken_ || !asked_) &&
           std::all_of(programs_.begin(), programs_.end(), [&](const auto& entry) {
             const std::vector<VarId>& vars = entry.second.vars();
             return std::all_of(vars.begin(), vars.end(), [&](VarId v) { return values[v] == begin_[v]; });
           });
  }

  // False when the walk was given up: too many steps, or a loop longer than is looked at.
  bool run() {
    std::vector<bool> all(static_cast<size_t>(p_.threads), true);
    present_ = p_.threads;
    begin_ = values_;
    return block(p_.body, all);
  }

 private:
  const IndexProgram& compiled(ExprId e) {
    auto it = programs_.find(e);
    if (it == programs_.end()) it = programs_.emplace(e, IndexProgram(p_.exprs, e)).first;
    return it->second;
  }
  std::optional<int64_t> value(ExprId e, int64_t thread) {
    if (p_.thread_var.valid()) values_.set(p_.thread_var, thread);
    return compiled(e).eval(values_);
  }
  bool holds(std::optional<int64_t> condition) {
    asked_ = asked_ || !condition;
    return condition.value_or(taken_) != 0;
  }
  void values(ExprId e, Row& row) { compiled(e).eval_along(p_.thread_var, p_.threads, values_, row); }

  bool block(const Block& b, const std::vector<bool>& active) {
    for (StmtId id : b)
      if (!statement(id, active)) return false;
    return true;
  }

  bool statement(StmtId id, const std::vector<bool>& active) {
    const StmtNode& node = p_.stmts[id.value].node;
    if (const auto* loop = std::get_if<Loop>(&node); loop && loop->form != LoopForm::vectorized)
      return serial(id, *loop, active);
    if (const auto* branch = std::get_if<Branch>(&node)) {
      touch(id, sync_accesses(p_, id), active);
      std::vector<bool> then_active = active, else_active = active;
      bool any_then = false, any_else = false;
      values(branch->condition, row_);
      for (size_t t = 0; t < active.size(); ++t) {
        if (!active[t]) continue;
        const bool yes = holds(row_[t]);
        then_active[t] = yes;
        else_active[t] = !yes;
        (yes ? any_then : any_else) = true;
      }
      return (!any_then || block(branch->then_body, then_active)) &&
             (!any_else || block(branch->else_body, else_active));
    }
    if (const auto* roles = std::get_if<Roles>(&node)) return each_role(*roles);
    if (const auto* one = std::get_if<OneThread>(&node)) return one_of_each_warp(*one, active);
    if (const auto* barrier = std::get_if<Barrier>(&node)) return meet(id, *barrier, active);
    if (std::holds_alternative<WarpgroupMma>(node)) return product(id, active);
    if (std::holds_alternative<WarpgroupCommit>(node)) {
      for_groups(active, [&](Products& g) { ++g.commits; });
      return true;
    }
    if (const auto* wait = std::get_if<WarpgroupWait>(&node)) {
      for_groups(active, [&](Products& g) {
        for (auto [number, group] : g.under_way)
          if (group + wait->pending < g.commits) finished_[static_cast<size_t>(number)] = true;
      });
      return true;
    }
    if (std::holds_alternative<AsyncCommit>(node)) {
      for (size_t t = 0; t < active.size(); ++t)
        if (active[t]) {
          groups_[t].finished_epoch.push_back(-1);
          ++groups_[t].open;
        }
      return true;
    }
    if (const auto* wait = std::get_if<AsyncWait>(&node)) {
      for (size_t t = 0; t < active.size(); ++t)
        for (int64_t g = 0; active[t] && g < groups_[t].open - wait->pending; ++g)
          if (int64_t& epoch = groups_[t].finished_epoch[static_cast<size_t>(g)]; epoch < 0) epoch = epoch_;
      return true;
    }
    auto it = accesses_.find(id);
    if (it == accesses_.end()) it = accesses_.emplace(id, sync_accesses(p_, id)).first;
    touch(id, it->second, active);
    return steps_ < kMaxSteps;
  }

  // One role after the other: what they share is ordered memory.
  bool each_role(const Roles& roles) {
    for (const Role& role : roles.roles) {
      std::vector<bool> active(static_cast<size_t>(p_.threads), false);
      std::fill_n(active.begin() + role.first_thread, role.threads, true);
      present_ = role.threads;
      ++epoch_;
      if (!block(role.body, active)) return false;
    }
    return true;
  }

  bool one_of_each_warp(const OneThread& one, const std::vector<bool>& active) {
    const auto warp = static_cast<size_t>(p_.machine.warp);
    std::vector<bool> elected(active.size(), false);
    for (size_t t = 0; t < active.size(); t = (t / warp + 1) * warp) {
      const size_t end = std::min(active.size(), t + warp);
      while (t + 1 < end && !active[t]) ++t;
      elected[t] = active[t];
    }
    return block(one.body, elected);
  }

  // In a role a barrier may be one of its own, or of the part of its threads that comes by.
  bool meet(StmtId id, const Barrier& barrier, const std::vector<bool>& active) {
    // orders none but those that wait
    if (barrier.arrive_only || (split_ >> barrier.id & 1) != 0) return true;
    const int64_t here = std::count(active.begin(), active.end(), true);
    const int64_t wanted = barrier.threads == 0 ? p_.threads : barrier.threads;
    if (wanted == present_ && here != wanted)
      hazard(id, id, "a barrier that not all threads of the block reach");
    if (wanted == present_ || (present_ < p_.threads && wanted == here)) ++epoch_;
    return true;
  }

  // Products under way of a warpgroup: their numbers and groups.
  struct Products {
    int64_t commits = 0;
    std::vector<std::pair<int64_t, int64_t>> under_way;
  };
  template <class F>
  void for_groups(const std::vector<bool>& active, F f) {
    products_.resize(active.size() / warpgroup_ + 1);
    for (size_t t = 0; t < active.size(); t += warpgroup_)
      if (active[t]) f(products_[t / warpgroup_]);
  }

  // The first thread of each warpgroup stands for it. Operands are being read until the wait.
  bool product(StmtId id, const std::vector<bool>& active) {
    std::vector<bool> first(active.size(), false);
    for (size_t t = 0; t < active.size(); t += warpgroup_) first[t] = active[t];
    const auto number = static_cast<int64_t>(finished_.size());
    finished_.push_back(false);
    for_groups(active, [&](Products& g) { g.under_way.push_back({number, g.commits}); });
    product_ = number;
    touch(id, sync_accesses(p_, id), first);
    product_ = kNobody;
    return steps_ < kMaxSteps;
  }

  bool serial(StmtId id, const Loop& loop, const std::vector<bool>& active) {
    touch(id, sync_accesses(p_, loop), active);
    std::vector<int64_t> trips(active.size(), 0);
    int64_t longest = 0;
    values(loop.extent, row_);
    for (size_t t = 0; t < active.size(); ++t)
      if (active[t]) longest = std::max(longest, trips[t] = row_[t].value_or(1));
    if (longest > kLongestLoop) return false;
    for (int64_t i = 0; i < longest; ++i) {
      std::vector<bool> inside = active;
      for (size_t t = 0; t < active.size(); ++t) inside[t] = active[t] && i < trips[t];
      values_.set(loop.var, i);
      if (!block(loop.body, inside)) return false;
    }
    values_.clear(loop.var);
    return true;
  }

  void touch(StmtId id, const std::vector<SyncAccess>& accesses, const std::vector<bool>& active) {
    ++instance_;
    for (bool write : {false, true})
      for (const SyncAccess& a : accesses) {
        if (a.write != write || !is_watched(p_, operands_, a.memory)) continue;
        std::vector<Places> places(static_cast<size_t>(a.lanes));
        const bool few = std::count(active.begin(), active.end(), true) < kFew;
        for (int64_t lane = 0; lane < a.lanes && !few; ++lane) {
          if (a.lane.valid()) values_.set(a.lane, lane);
          Places& of_lane = places[static_cast<size_t>(lane)];
          if (a.predicate.valid()) values(a.predicate, of_lane.predicate);
          values(a.index, of_lane.index);
        }
        for (size_t t = 0; t < active.size(); ++t) {
          const auto thread = static_cast<int64_t>(t);
          if (!active[t] || (a.row_lanes > 0 && thread % p_.machine.warp >= a.row_lanes)) continue;
          for (size_t lane = 0; lane < places.size(); ++lane) {
            ++steps_;
            if (a.lane.valid()) values_.set(a.lane, static_cast<int64_t>(lane));
            if (a.predicate.valid() && !holds(few ? value(a.predicate, thread) : places[lane].predicate[t]))
              continue;
            access(id, a, thread, few ? value(a.index, thread) : places[lane].index[t]);
          }
        }
      }
  }

  // What one lane of each thread accesses.
  struct Places {
    Row predicate, index;
  };

  void access(StmtId id, const SyncAccess& a, int64_t thread, std::optional<int64_t> index) {
    const Memory& m = p_.memory(a.memory);
    const int64_t bytes = ir::dtype_bytes(m.type);
    if (!index && m.ordered) return;  // a slot that the program counts
    const int64_t first = index ? *index + a.offset : 0, count = index ? a.count : m.elements;
    if (first < 0 || first + count > m.elements) {
      hazard(id, id, "an index outside of " + m.name + ": " + std::to_string(first));
      return;
    }
    const int64_t begin = (m.arena_offset + first * bytes) / unit_;
    const int64_t end = (m.arena_offset + (first + count) * bytes + unit_ - 1) / unit_;
    for (int64_t c = begin; c < end; ++c) {
      Cell& cell = cells_[static_cast<size_t>(c)];
      if (a.write)
        write(id, a, thread, cell);
      else
        read(id, a, thread, cell);
    }
  }

  bool write_is_visible(const Cell& cell, int64_t thread) const {
    if (cell.writer == kNobody) return true;
    if (cell.write_group == kSynchronous)
      return (cell.writer == thread && thread != kMany) || cell.write_epoch < epoch_;
    if (cell.writer == kMany) return false;
    const Groups& g = groups_[static_cast<size_t>(cell.writer)];
    if (cell.write_group >= g.open) return false;
    const int64_t done = g.finished_epoch[static_cast<size_t>(cell.write_group)];
    return done >= 0 && (cell.writer == thread || done < epoch_);
  }

  void read(StmtId id, const SyncAccess& a, int64_t thread, Cell& cell) {
    const int64_t group = thread / static_cast<int64_t>(warpgroup_);
    const int64_t who = product_ != kNobody ? kProducts - group : a.collective ? kMany : thread;
    if (!write_is_visible(cell, who))
      clash(id, cell.write_stmt, a, thread, cell.writer, "reads what", "writes");
    if (cell.read_epoch < epoch_)
      cell.reader = who;
    else if (cell.reader != who)
      cell.reader = kMany;
    if (product_ != kNobody) cell.product = product_;
    cell.read_epoch = epoch_;
    cell.read_instance = instance_;
    cell.read_stmt = id;
  }

  void write(StmtId id, const SyncAccess& a, int64_t thread, Cell& cell) {
    const int64_t who = a.collective ? kMany : thread;
    if (cell.write_instance != instance_ && !write_is_visible(cell, who))
      clash(id, cell.write_stmt, a, thread, cell.writer, "writes what", "writes");
    // Its own product a warpgroup waits for without a barrier.
    const bool own_product = cell.reader == kProducts - thread / static_cast<int64_t>(warpgroup_);
    if (cell.reader != kNobody && !own_product && cell.read_epoch == epoch_ &&
        (cell.reader != who || who == kMany) && cell.read_instance != instance_)
      clash(id, cell.read_stmt, a, thread, cell.reader, "writes what", "reads");
    if (cell.product != kNobody && !finished_[static_cast<size_t>(cell.product)])
      hazard(id, cell.read_stmt,
             thread_text(thread) + " writes in " + p_.memory(a.memory).name +
                 " what a product reads that was not waited for");
    const bool copies = !a.async && cell.write_instance == instance_ && cell.writer != who;
    cell.writer = copies ? kMany : who;
    cell.write_epoch = epoch_;
    cell.write_group = a.async ? groups_[static_cast<size_t>(thread)].open : kSynchronous;
    cell.write_instance = instance_;
    cell.write_stmt = id;
  }

  static std::string thread_text(int64_t thread) {
    if (thread <= kProducts) return "a product";
    return thread == kMany ? "several threads" : "thread " + std::to_string(thread);
  }
  void clash(StmtId id, StmtId other, const SyncAccess& a, int64_t thread, int64_t other_thread,
             const char* verb, const char* other_verb) {
    hazard(id, other,
           thread_text(thread) + " " + verb + " " + thread_text(other_thread) + " " + other_verb + " in " +
               p_.memory(a.memory).name + " with no barrier" +
               (p_.stmts[other.value].node.index() == StmtNode(AsyncCopy{}).index() ? " after a wait" : "") +
               " in between");
  }
  void hazard(StmtId id, StmtId other, const std::string& text) {
    if (!seen_.insert({id, other}).second || hazards_.size() >= kMaxHazards) return;
    const std::string &x = p_.stmts[id.value].origin, &y = p_.stmts[other.value].origin;
    hazards_.push_back(x + (id == other || x == y ? "" : " after " + y) + ": " + text);
  }

  const ThreadProgram& p_;
  const size_t warpgroup_;            // threads
  const int64_t unit_;                // bytes of a cell
  const bool taken_;                  // what unknown conditions are
  const uint32_t split_;              // barriers at which some only arrive
  const std::vector<bool> operands_;  // memories that threads write and products read
  std::vector<std::string>& hazards_;
  std::set<std::pair<StmtId, StmtId>>& seen_;
  PointValues values_, begin_;
  bool asked_ = false;          // a condition was unknown
  std::vector<Groups> groups_;  // by thread
  std::vector<Cell> cells_;
  std::unordered_map<ExprId, IndexProgram> programs_;
  std::unordered_map<StmtId, std::vector<SyncAccess>> accesses_;
  std::vector<Products> products_;  // by warpgroup
  std::vector<bool> finished_;      // products, by number
  Row row_;
  int64_t product_ = kNobody;  // being issued
  int64_t present_ = 0;        // threads of the role, or of the block
  int64_t epoch_ = 0, instance_ = 0, steps_ = 0;
};

}  // namespace

std::vector<std::string> verify_synchronization(const ThreadProgram& p) {
  std::vector<std::string> hazards;
  if (p.threads <= 1 || p.arena_bytes == 0) return hazards;
  const std::vector<bool> operands = written_operands(p);
  bool any = false;
  for (size_t m = 0; m < p.memories.size(); ++m) any = any || is_watched(p, operands, MemoryId(m));
  if (!any) return hazards;
  int64_t unit = 8, slots = 1;
  for (const Memory& m : p.memories) {
    if (m.space != Space::shared) continue;
    unit = std::min<int64_t>(unit, ir::dtype_bytes(m.type));
    slots = std::max(slots, m.slots);
  }
  const LoopLengths lengths(p);
  std::set<std::pair<StmtId, StmtId>> seen;
  std::vector<std::unique_ptr<Walk>> walks;
  for (int64_t trips : {int64_t{0}, int64_t{1}, int64_t{2}, slots, slots + 2})
    for (bool taken : {true, false}) {
      auto walk = std::make_unique<Walk>(p, unit, taken, hazards, seen);
      lengths.choose(trips, taken, walk->values());
      if (std::any_of(walks.begin(), walks.end(),
                      [&](const auto& w) { return w->repeats(walk->values(), taken); }))
        continue;
      walk->run();
      walks.push_back(std::move(walk));
    }
  return hazards;
}

}  // namespace tilegen::thread
