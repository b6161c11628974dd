// Whether two accesses to memory that threads share can meet in one element, and by different threads: the
// questions of barrier planting. "clash" is always a legal answer, the others are proofs.
//
// An access inside loops stands for one execution per iteration; a Binding says which one is meant. Slots of
// a memory are compared as expressions (iteration i + 2 writes slot (i + 2) % 3 while i reads i % 3); what
// happens within a slot by enumerating threads and the iterations of small loops, up to a bound.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "arith/context.h"
#include "sync/footprint.h"
#include "thread/index_program.h"
#include "thread/sync_accesses.h"

namespace tilegen::sync {

inline constexpr int64_t kMaxTogether = 64;  // iterations of loops looked at one by one

struct OpenLoop {
  ir::VarId var;
  int64_t extent = -1;  // -1: not a constant
  std::string origin;   // path of the user's operation or loop
  bool ends = false;    // a condition is asked before each iteration: there may be fewer, and none
  int64_t bound = -1;   // where the extent is not a constant: iterations there are at most; -1: not known
  int64_t most() const { return extent >= 0 ? extent : bound; }
  bool is_short() const { return most() >= 0 && most() <= kMaxTogether; }
  bool operator==(const OpenLoop& o) const { return var == o.var && extent == o.extent; }
};

// Which iteration of a loop an access belongs to: the one `value` before the current one, one at least as far
// back, number `value`, or any.
struct Binding {
  enum class Kind : uint8_t { any, back, far, at } kind = Kind::any;
  int64_t value = 0;
  auto operator<=>(const Binding&) const = default;
};
using Bindings = std::vector<Binding>;

// One access of a statement, wherever it is executed.
struct AccessClass {
  thread::SyncAccess access;
  std::vector<OpenLoop> loops;  // those around that the access depends on, outermost first
  // Writes to tensors and atomic ones: the user's operation; its loops around count as well, as far as they
  // are the user's.
  std::string op;
  std::string origin;         // of accesses to tensors: the operation
  std::string from;           // the first operation that has it
  std::vector<bool> follows;  // parallel to loops: the access depends on it

  // The iteration of a loop that `at`, parallel to loops, means; nothing where the loop is not among them.
  std::optional<Binding> binding_of(const Bindings& at, ir::VarId var) const;
  ir::ExprId slot;    // of a memory with slots, where it can be told
  ir::ExprId within;  // index without the slot's part; invalid: anywhere in it
};

class ConflictOracle {
 public:
  explicit ConflictOracle(thread::ThreadProgram& p);

  // Id of the class; equal accesses of one operation share one.
  int add(const thread::SyncAccess& access, const std::vector<OpenLoop>& around, const std::string& origin);
  const AccessClass& operator[](int id) const { return classes_[static_cast<size_t>(id)]; }

  // Two writes of one execution of an operation to a tensor, or of executions that write the same: its points
  // have elements of their own, and one thread writes a point.
  bool same_points(int a, const Bindings& a_at, int b, const Bindings& b_at) const;

  Meeting meeting(int a, const Bindings& a_at, int b, const Bindings& b_at);

  // Of a loop's extent: iterations there are at most, if few; else -1.
  int64_t bound_of(ir::ExprId extent);
  // What a branch's condition says of threads and of the short loops around. In others places are told apart
  // by how they repeat, which a condition that holds up to some iteration would hide.
  ir::ExprId implied(ir::ExprId condition, const std::vector<OpenLoop>& around);

 private:
  struct Answer {
    Bindings a, b;
    Meeting meeting;
  };

  void part_slot(AccessClass& c);
  // Wherever the access happens, 0 <= e < size, as far as points can be looked at one by one.
  bool stays_below(const AccessClass& c, ir::ExprId e, int64_t size) const;
  // Ranges of the two indices, as far as they differ, have no element in common.
  bool apart(int a, const Bindings& a_at, int b, const Bindings& b_at);
  ir::ExprId bound_slot(int id, const Bindings& at);
  ir::ExprId make_bound_slot(const AccessClass& c, const Bindings& at);
  bool slots_differ(ir::ExprId a, ir::ExprId b);
  Meeting compare(int a, const Bindings& a_at, int b, const Bindings& b_at);
  Meeting enumerate(int a, const Bindings& a_at, int b, const Bindings& b_at);

  using Assigned = std::map<ir::VarId, int64_t>;
  // What an access touches: `shift` elements after a footprint that is kept.
  struct Touched {
    const Footprint* footprint = nullptr;  // null: cannot be told
    int64_t shift = 0;
  };
  // Nothing where either cannot be told.
  static std::optional<Meeting> meet(const Touched& a, const Touched& b);
  Touched touched(int id, const Assigned& assigned);
  const Footprint* footprint(int id, const Assigned& assigned);
  // Calls visit(value of e, executing thread) wherever the access happens, with all variables that are not
  // assigned over their range; false where that cannot be told, or takes too long, or visit stopped it.
  bool for_each_access(const AccessClass& c, ir::ExprId e, const Assigned& assigned,
                       const std::function<bool(int64_t, int64_t)>& visit) const;
  std::optional<int64_t> step_of(int id, ir::VarId loop);
  int64_t common_period(int a, int b, ir::VarId loop);
  int64_t of_a_period(int a, int b, const OpenLoop& loop, const Binding& earlier, const Binding& later);
  std::vector<ir::ExprId> told_conditions(const AccessClass& c) const;

  thread::ThreadProgram& p_;
  arith::Context ctx_;
  std::vector<AccessClass> classes_;
  std::map<thread::MemoryId, std::vector<int>> by_memory_;   // the classes of each
  std::unordered_map<uint64_t, std::vector<Answer>> known_;  // by the two classes
  std::unordered_map<int, std::vector<std::pair<Bindings, ir::ExprId>>> bound_slots_;
  std::map<std::pair<int, Assigned>, std::optional<Footprint>> footprints_;
  std::map<std::pair<int, ir::VarId>, std::optional<int64_t>> steps_;
  std::map<std::pair<ir::ExprId, ir::ExprId>, bool> slot_answers_;
};

}  // namespace tilegen::sync
