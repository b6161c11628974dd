// One walk over the roles of a program with concrete numbers: its processes run in turns, wait for each
// other, and what they do to memory that is handed over is judged.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "thread/place_history.h"
#include "thread/role_program.h"
#include "thread/sync_accesses.h"

namespace tilegen::thread {

class RoleWalk {
 public:
  // Pairs of statements that a hazard was found for.
  using Seen = std::set<std::pair<StmtId, StmtId>>;

  RoleWalk(const RoleProgram& r, const PointValues& launch, std::vector<std::string>& hazards, Seen& seen);
  void run();

 private:
  enum class State : uint8_t { ready, at_barrier, at_phase, at_product, done };
  using Places = std::vector<std::pair<int64_t, int64_t>>;  // elements of a memory, from and to
  // A product, a copy out by the engine or an asynchronous copy, and the group that it belongs to.
  struct Work {
    uint32_t number = 0;
    int64_t group = 0;
    StmtId stmt;
  };
  // A phase that a test asked for.
  struct Tested {
    int array = 0;
    int64_t index = 0, parity = 0;
    bool operator==(const Tested&) const = default;
  };
  struct Running {
    Running(const RoleProcess& p, const PointValues& launch, int64_t block)
        : process(p), block(block), values(launch), pc(p.begin), threads(p.threads) {}
    const RoleProcess& process;
    const int64_t block;  // of the cluster
    PointValues values;
    uint32_t pc;
    int64_t threads;  // that run now
    State state = State::ready;
    std::vector<std::pair<int64_t, int64_t>> loops;  // iteration, extent
    std::vector<int64_t> outside;                    // threads around a OneThread
    PlaceClock knows;
    uint32_t epoch = 1, products = 0, stores = 0, copies = 0;
    int64_t product_commits = 0, bulk_commits = 0, copy_commits = 0;
    std::vector<Work> products_under_way, stores_under_way, copies_under_way;
    int64_t fetched = 0;
    int array = 0;  // waiting: for what
    int64_t index = 0, parity = 0;
    StmtId at;
    std::map<std::pair<MemoryId, ir::ExprId>, Tested> tested;  // by where the answer is
    int64_t gathering = 0;                                     // loops around that gather
    std::map<size_t, Places> gathered;                         // places of operands, by touch
    std::vector<Work> reached;  // by block of the cluster: the newest arrival at one of its barriers
  };
  // A transaction barrier: its phases, and the newest that a copy came to and that someone waited for.
  struct Phase {
    int64_t number = 0, arrived = 0, to_land = 0, unclaimed = 0;
    uint32_t loaded = 0, waited = 0;
    StmtId load;
    PlaceClock current, completed;
  };
  // At a hardware barrier.
  struct Meeting {
    int64_t arrived = 0, wanted = 0;
    std::vector<size_t> here, waiting;
    StmtId last;  // to arrive
    PlaceClock clock;
  };

  template <class Node>
  const Node& node(const RoleStep& s) const {
    return std::get<Node>(p_.stmts[s.stmt.value].node);
  }
  // Unknown values, of loaded data, count as `unknown`.
  int64_t eval(Running& x, int value, int64_t unknown) {
    if (p_.thread_var.valid()) x.values.set(p_.thread_var, x.process.samples[0]);
    return r_.values[static_cast<size_t>(value)].eval(x.values).value_or(unknown);
  }
  // Barriers of all blocks of the cluster stand in one array, and so does their memory.
  int64_t of_block(int array, int64_t block, int64_t index) const {
    return block * p_.barriers[static_cast<size_t>(array)].count + index;
  }
  int64_t arrivals_wanted(int array) const { return p_.barriers[static_cast<size_t>(array)].arrivals; }
  int product_party(const Running& x) const {
    return first_product_ + static_cast<int>(x.block) * groups_ + x.process.group;
  }
  // Asynchronous copies of a process, and its copies out by the engine.
  int copy_party(int i) const { return static_cast<int>(running_.size()) + i; }
  int store_party(int i) const { return 2 * static_cast<int>(running_.size()) + i; }

  // role_walk.cpp
  void release(Running& x, int i, PlaceClock& to);
  void step(int i);
  void iterate(Running& x, int i, const RoleStep& loop, uint32_t begin);
  void meet(Running& x, int i, size_t at, int64_t wanted, bool arrive_only);
  Phase* phase(const RoleStep& s, int array, int64_t block, int64_t index);
  std::vector<std::pair<int64_t, int64_t>> arrivals(Running& x, const RoleStep& s);
  void arrive(Running& x, int i, const RoleStep& s);
  void advance(int array, int64_t index);
  void pass(Running& x, Phase& f);
  void wait(Running& x, const RoleStep& s);
  void test(Running& x, const RoleStep& s);
  void check_tested(Running& x, const RoleStep& s, ir::ExprId unless);

  // role_reports.cpp
  void hazard(StmtId id, StmtId other, const std::string& text);
  std::string phase_text(int array, int64_t index) const;
  std::string name_of(const Running& x) const;
  void report_stuck();
  void check_end();

  // role_copies.cpp
  int64_t box_bytes(int map) const;
  int64_t byte_of(const Running& x, MemoryId memory, int64_t index) const;
  void cluster_load(Running& x, int i, const RoleStep& s);
  void load(Running& x, int i, const RoleStep& s);
  void store(Running& x, int i, const RoleStep& s);
  void bulk_wait(Running& x, int i, const BulkWait& n);
  void copy_wait(Running& x, int i, const AsyncWait& n);
  void product(Running& x, int i, const RoleStep& s);
  const std::vector<OperandRange>& ranges_of(const WarpgroupMma& m, bool of_a);
  void issue_together(Running& x);
  void product_wait(Running& x, const WarpgroupWait& n);
  void check_place(const RoleStep& s, int map, MemoryId memory, int64_t index);
  std::optional<std::pair<int64_t, int64_t>> touched(Running& x, const RoleTouch& a);
  void touch(Running& x, int i, const RoleStep& s);
  void touch_places(Running& x, int i, const RoleTouch& a, Places& places);
  void touch_gathered(Running& x, int i);
  bool tells_threads_apart(int condition) const;
  void leave_out(size_t first, size_t last);

  const RoleProgram& r_;
  const ThreadProgram& p_;
  std::vector<std::string>& hazards_;
  Seen& seen_;
  PlaceHistory places_;
  std::vector<Running> running_;
  std::vector<std::vector<Phase>> phases_;
  const size_t named_barriers_;
  std::vector<Meeting> meetings_;    // of each block, then of the cluster
  std::vector<int64_t> at_product_;  // by warpgroup: threads that wait for the others of it
  std::vector<int> first_load_;
  int first_product_ = 0, groups_ = 0;
  std::vector<PointValues::Elements> handed_;  // by block
  Places places_of_step_;
  std::map<std::pair<const WarpgroupMma*, bool>, std::vector<OperandRange>> ranges_;  // of A, or of B
  int64_t steps_ = 0;
};

}  // namespace tilegen::thread
