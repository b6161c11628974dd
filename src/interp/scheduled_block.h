// A block of a scheduled program under way: its roles, each somewhere in its statements, what has been issued
// and is not in effect, and the hand-over of slots. Not used outside this folder.
#pragma once

#include <list>
#include <map>

#include "interp/operations.h"
#include "interp/run_scheduled.h"

namespace tilegen::interp {

// Random choices, a function of the seed.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n);

 private:
  uint64_t state_;
};

// The tiles of a kernel's grid, and who walks which.
struct GridWalk {
  std::vector<int64_t> extents;
  int64_t tiles = 0, launched = 1;
  expand::Walk walk = expand::Walk::own;
  int64_t taken = 0;
  // Where blocks share a loop's iterations: what each left for the first of them, by point and part.
  std::map<std::pair<int64_t, int64_t>, std::vector<Storage>> parts;
};

class ScheduledBlock {
 public:
  ScheduledBlock(Execution& run, const ir::Program& p, const expand::ScheduledKernel& k, Order order,
                 Chance& chance, GridWalk& grid, int64_t index);

  size_t roles() const { return roles_.size(); }
  // One statement of the role, or where it has to wait none.
  enum class Step : uint8_t { done, waits, ended };
  Step step(size_t role);
  // Something that was issued takes effect, if there is anything.
  void land_one();
  // Names what a role waits for that does not come. False: none waits.
  bool tell_waiting();
  // After the last statements: fails where something is left.
  void end();

 private:
  struct Scope {  // of a Pipelined statement
    ir::StmtId loop;
    int64_t run = 0, begin = 0, extent = 0;
    int64_t filled = 0;  // iterations of earlier runs, where uses count on
    int64_t newest = 0, at = 0;
  };
  struct Frame {
    enum class Kind : uint8_t { list, serial, pipelined, steady, at, multiply, tiles, shares, preamble };
    Kind kind = Kind::list;
    const expand::Block* body = nullptr;
    size_t next = 0;
    ir::StmtId stmt;  // serial, preamble: the loop; multiply: the product
    int64_t i = 0, end = 0, step = 1;
    int64_t begin = 0;      // serial, preamble: of the loop's variable
    int64_t at = 0;         // at: of the scope around
    ir::ScalarValue value;  // at: of the loop's variable around
  };
  struct RoleState {
    const expand::Role* role = nullptr;
    std::vector<Frame> stack;
    std::vector<Scope> scopes;
    std::vector<int64_t> uses;                        // by pipeline: counted by this role
    std::map<ir::StmtId, int64_t> filled;             // iterations of a pipelined loop's runs
    std::map<ir::StmtId, int64_t> begun, iterations;  // by a preamble; of Serial statements
    int64_t runs = 0;
    int64_t groups = 0;  // committed
    std::vector<ir::ScalarValue> vars;
  };
  struct Flight {
    enum class Kind : uint8_t { product, group_copy, tensor_copy, register_copy };
    Kind kind = Kind::product;
    size_t role = 0;
    int64_t run = 0, iteration = 0;
    int64_t group = 0;
    Use use;
    std::unique_ptr<Operation> work;
  };

  template <class Node>
  void execute(RoleState&, const Node&) {}  // no effect on values
  void execute(RoleState& r, const expand::Run& s);
  void execute(RoleState& r, const expand::Issue& s);
  void execute(RoleState& r, const expand::Deposit& s);
  void execute(RoleState& r, const expand::Await& s);
  void execute(RoleState& r, const expand::Acquire& s);
  void execute(RoleState& r, const expand::Commit& s);
  void execute(RoleState& r, const expand::Wait& s);
  void execute(RoleState& r, const expand::Release& s);
  void execute(RoleState& r, const expand::CommitGroup& s);
  void execute(RoleState& r, const expand::WaitGroup& s);
  void execute(RoleState&, const expand::OnBarrier&) {}
  void execute(RoleState& r, const expand::LoadOperands& s);
  void execute(RoleState& r, const expand::Multiply& s);
  bool asks_for_next(RoleState& r, ir::StmtId loop);
  void execute(RoleState& r, const expand::Serial& s);
  void execute(RoleState& r, const expand::Branch& s);
  void execute(RoleState& r, const expand::Version& s);
  void execute(RoleState& r, const expand::PerWarpgroup& s);
  void execute(RoleState& r, const expand::ReduceParts& s);
  void execute(RoleState& r, const expand::Pipelined& s);
  void execute(RoleState& r, const expand::Steady& s);
  void execute(RoleState& r, const expand::At& s);
  void execute(RoleState& r, const expand::Remainder& s);
  void execute(RoleState& r, const expand::WhereIterations& s);
  void execute(RoleState& r, const expand::TileLoop& s);
  void execute(RoleState& r, const expand::Preamble& s);
  void execute(RoleState& r, const expand::BehindPreamble& s);
  void count_uses(RoleState& r, ir::StmtId loop, int64_t uses);
  bool set_point(int64_t turn);

  bool may_go(const RoleState& r, const expand::Stmt& s);
  void finish_frame(RoleState& r);
  bool begin_tile(RoleState& r, int64_t turn);
  void set_iteration(const Scope& scope);
  int64_t number_of(const RoleState& r, expand::Iteration i) const;
  int64_t use_number(const RoleState& r, int pipeline, expand::Iteration at) const;
  Place place_of(const RoleState& r, ValueId value);
  Places places(const RoleState& r) {
    return [this, &r](ValueId value) { return place_of(r, value); };
  }
  std::unique_ptr<Operation> prepare(const RoleState& r, ir::StmtId stmt, bool overwrite);
  bool at_once();
  void land(Flight& f);
  void fail(int pipeline, int64_t use, const std::string& what);
  const expand::Pipeline& line(int pipeline) const { return k_.pipelines[static_cast<size_t>(pipeline)]; }

  Execution& run_;
  const ir::Program& p_;
  const expand::ScheduledKernel& k_;
  const Order order_;
  Chance& chance_;
  GridWalk& grid_;
  Operations ops_;
  BlockTiles tiles_;
  std::vector<RoleState> roles_;
  std::list<Flight> flights_;    // in the order of issue
  std::vector<int64_t> points_;  // of the grid, one a turn
};

}  // namespace tilegen::interp
