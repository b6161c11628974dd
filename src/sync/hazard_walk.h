// Accesses that no barrier orders yet, followed through a program: what is outstanding after a statement,
// and what a statement needs in front.
//
// Loops are walked as consecutive iterations, of which as many are told apart as the slots of a memory reach.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "sync/conflicts.h"
#include "sync/transaction_order.h"

namespace tilegen::sync {

// An access that no barrier orders yet.
struct Outstanding {
  int access = 0;  // id of its class
  Bindings at;     // parallel to the class's loops
  bool in_flight = false;
  bool met = false;               // each warpgroup has met since
  uint32_t met_in = 0;            // sets of warps that have met since, as bits
  uint32_t known_to = 0;          // sets of warps that have waited for an arrival since, as bits
  uint32_t chosen = 0, left = 0;  // it is there only where these choices are so, as bits, and these not
  // Arrivals since of warps that the access comes before, the earliest of each: in which iteration.
  std::map<thread::StmtId, Binding> arrivals = {};
  auto operator<=>(const Outstanding&) const = default;
};
// One of a state's accesses, by the number that the walk gave it, and the commits since it was issued as an
// async copy (0 for others).
struct Held {
  uint32_t access = 0;
  int64_t commits = 0;
  bool operator==(const Held&) const = default;
};
// Ascending by number, each once: states are copied and compared at every statement.
using State = std::vector<Held>;

// Puts a changed state in order again.
void close(State& state);

enum class Need : uint8_t { nothing, barrier, wait };  // wait: for async copies, with a barrier

class HazardWalk {
 public:
  // `by_iterations`: of asynchronous copies, what conditions around them say of short loops counts, too. What
  // few iterations copy may go to a place whose index has no variable left. It takes longer.
  // `named`: barriers that the program names order what is in front of them.
  HazardWalk(thread::ThreadProgram& p, bool by_iterations, bool named);

  // Changes the state to the one after; the need is that of the statement, or of the neediest of the block.
  Need walk(const thread::Block& block, State& state);
  Need walk(thread::StmtId id, State& state);
  Need walk_loop(thread::StmtId id, State& state);
  // Walks the statement where it only touches memory and needs nothing; else false, and the state is as it
  // was. Copies no state.
  bool enters(thread::StmtId id, State& state);
  // Of the accesses of the statement itself: a branch's condition, a loop's extent.
  Need meet(thread::StmtId id, State& state);

  // What is walked until leave() is the current iteration of the loop; age() makes the state's an earlier
  // one.
  void enter(const OpenLoop& loop);
  void leave();
  // What is walked until leave_branch() is done where the condition has this value.
  void enter_branch(ir::ExprId condition, bool value);
  void leave_branch() { conditions_.pop_back(); }
  // Leaves of the state what there is where the condition has this value.
  void choose(ir::ExprId condition, bool value, State& state);
  void age(State& state, const OpenLoop& loop);

  // The statement is a barrier of these warps: what they alone did before it comes before what they alone do
  // behind it. False where no more are told apart.
  bool add_warp_barrier(thread::StmtId id, const WarpRange& warps);
  // Of the accesses of the state that the statement needs a barrier for, and of its own to what they are of;
  // none where these are not of threads alone.
  WarpRange warps_to_await(thread::StmtId id, const State& state);

  OpenLoop open_loop(thread::StmtId id);
  bool is_leaf(thread::StmtId id) const;  // vectorized loops are
  bool touches_memory(thread::StmtId id);
  // Every thread meets those of its warpgroup, and nothing else is done.
  bool is_warpgroup_barrier(thread::StmtId id) const;
  bool varies(ir::ExprId e) const;  // between the threads of a block
  int64_t back() const { return back_; }
  const TransactionOrder& transactions() const { return transactions_; }
  bool inside_transactions() const {
    return std::any_of(around_.begin(), around_.end(),
                       [&](const OpenLoop& l) { return transactions_.inside(l.var); });
  }
  thread::MemoryId accessed(const Held& h) const { return oracle_[(*this)[h].access].access.memory; }
  const std::string& origin(const Held& h) const { return oracle_[(*this)[h].access].from; }
  const Outstanding& operator[](const Held& h) const { return *outstanding_[h.access]; }

 private:
  struct Leaf {
    std::vector<int> classes;
    bool known = false;
  };
  // What accesses become by one change, by their numbers.
  static constexpr int64_t kNotAsked = -2, kGone = -1;
  using Changes = std::vector<int64_t>;
  template <class T>
  const T* as(thread::StmtId id) const;
  uint32_t number_of(Outstanding o);
  template <class Change>
  int64_t rebound(uint32_t access, const OpenLoop& loop, Change&& change);
  template <class Change>
  State rebound(const State& state, const OpenLoop& loop, Changes& known, Change&& change);
  State from_numbers(const State& state, const OpenLoop& loop, int64_t now);
  State released(const State& state, const OpenLoop& loop);
  // hazard_transactions.cpp
  void arrive(const TransactionOrder::Point& at, State& state);
  void wait(const TransactionOrder::Point& at, State& state);
  bool hands_over(thread::StmtId id);
  Need walk_sides(const thread::Branch& branch, State& state);
  bool comes_before(const Outstanding& access, const TransactionOrder::Point& arrival);
  Need walk_leaf(thread::StmtId id, State& state);
  Need meet(thread::StmtId id, const State& state, std::vector<uint32_t>& fresh);
  Need between(uint32_t earlier, uint32_t later);
  bool orders_block(int earlier, int later);
  const WarpRange& warps_of(int access);
  Need find_between(const Outstanding& earlier, const Outstanding& later);
  const std::vector<int>& classes_of(thread::StmtId id);
  bool shared_by_accesses(const thread::SyncAccess& a);
  // With the conditions of the branches around.
  thread::SyncAccess conditioned(thread::SyncAccess a);
  void find_written_tensors(const thread::Block& block);

  thread::ThreadProgram& p_;
  const uint32_t split_;  // barriers at which some only arrive
  const bool by_iterations_;
  ConflictOracle oracle_;
  int64_t back_ = 3;  // iterations told apart
  std::vector<OpenLoop> around_;
  // Of the branches around: of threads alone, and of threads and loops; invalid: nothing is told.
  struct Condition {
    ir::ExprId of_threads, of_iterations;
  };
  std::vector<Condition> conditions_;
  std::map<ir::VarId, Binding> current_;
  std::map<Outstanding, uint32_t> numbers_;
  std::vector<const Outstanding*> outstanding_;  // keys of numbers_, by number
  std::map<ir::VarId, Changes> aged_, released_;
  std::unordered_map<uint64_t, Need> needs_;  // by the numbers of the earlier and the later
  std::unordered_map<thread::StmtId, Leaf> leaves_;
  std::unordered_map<thread::StmtId, bool> touches_;
  std::set<thread::MemoryId> written_tensors_;
  std::map<thread::StmtId, size_t> warp_barriers_;  // the number of each in warp_sets_
  std::vector<WarpRange> warp_sets_;
  std::map<int, WarpRange> warps_;  // by access
  const TransactionOrder transactions_;
  std::unordered_map<thread::StmtId, bool> hands_over_;
  std::vector<WarpRange> waiting_;  // bits of Outstanding::known_to
  std::map<std::pair<thread::StmtId, thread::StmtId>, std::optional<int64_t>> iterations_back_;
};

}  // namespace tilegen::sync
