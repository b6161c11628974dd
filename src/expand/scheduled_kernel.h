// The scheduled program: a kernel after expansion. Every role has a statement list of its own, pipelined
// loops are prologue, steady state and drain, and what hands tiles over or waits for results is a statement.
//
// Statements name operations of the tile program by their statement; how one is done is the Schedule's to
// say, and its versions are statements here. Iterations are named relative to the innermost Pipelined
// statement.
//
// A pipeline is a ring of slots. Use number n of it has slot n % slots; where the loop that fills it runs
// again, numbers go on after those of the run before, except for asynchronous copies, which begin with slot
// 0 in every run. The producer acquires a slot, issues the copies and commits; the consumer waits for a slot,
// reads it and releases it. Filled by asynchronous copies of the consuming threads themselves a pipeline has
// commit groups in place of barriers; written by threads, or loaded by them through registers, meetings of
// these. Slots in registers need neither:
// a thread knows what it has; which slot an iteration means is told by its number, never at run time.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "analysis/alternation.h"
#include "analysis/carried_sums.h"
#include "analysis/kernel_ops.h"
#include "analysis/sum_shares.h"
#include "analysis/written_operand.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::expand {

using analysis::OpId;
using analysis::ValueId;
using ir::StmtId;

enum class Transport : uint8_t { tensor_copy, async_copy, register_copy, threads, registers };

struct Pipeline {
  std::string name;
  Transport transport = Transport::tensor_copy;
  std::set<ValueId> values;
  int64_t slots = 1;
  const ir::Block* home = nullptr;  // the block with what fills it
  StmtId loop;                      // whose body that is; invalid: filled once whenever the block runs
  std::vector<OpId> copies;         // tensor_copy: what fills it, in order
  bool by_turns = false;            // threads: of a warpgroup's iterations, which have a slot of their own
  // tensor_copy: of its tile's columns it has the `part`th of so many equal ones; its slots are the tile's.
  int64_t part = 0, parts = 1;
};

// A run of the loop begins with slot 0.
inline bool begins_anew(const Pipeline& line) {
  return line.transport == Transport::async_copy || line.transport == Transport::register_copy ||
         line.transport == Transport::registers || line.by_turns;
}

// An iteration of the loop of the innermost Pipelined statement: `plus` after the first one, after the
// counter of the steady state, or after the end. `none`: what belongs to no iteration.
struct Iteration {
  enum class From : uint8_t { first, newest, end, none };
  From from = From::newest;
  int64_t plus = 0;
  Iteration operator+(int64_t n) const { return {from, plus + n}; }
  bool operator==(const Iteration&) const = default;
};

struct Stmt;
using Block = std::vector<Stmt>;

// An operation whose effects are there after it. `overwrite`: a product that does not add to its sums.
// `stages_in_turn`: a store through a staged tile, of several of which another one always runs between two of
// its runs. Each waits for the earlier ones where its threads meet, and finds its own staged tile read.
struct Run {
  StmtId op;
  bool overwrite = false;
  bool stages_in_turn = false;
};
// An operation that goes on after it: copies of a producer (pending until the pipeline's slot is full),
// copies into a commit group, products (pending until awaited), loads of tiles to registers (until Deposit).
// `part`: of tiles that come in parts, the one that it fills or reads; kWhole: all of them. `own_left`: the
// product's left operand is what these threads have stored last, in the registers that it was stored from.
struct Issue {
  static constexpr int64_t kWhole = -1;
  StmtId op;
  bool overwrite = false;
  int64_t part = kWhole;
  bool own_left = false;
};
// What reads that part, or all, of tiles that come in parts reads what the pipeline brings.
inline bool brings(const Pipeline& line, int64_t part) {
  return line.parts == 1 || part == Issue::kWhole || part == line.part;
}
// What a copy has loaded to registers for the iteration goes to its tile.
struct Deposit {
  StmtId op;
};
// The product of an iteration, if the loop has it.
struct Token {
  StmtId op;
  Iteration at;
  bool operator==(const Token&) const = default;
};
// A value as the iteration has it.
struct ValueAt {
  ValueId value;
  Iteration at{Iteration::From::none, 0};
};
// The `finished` products are waited for; `pending` younger ones may go on. `values`: registers that are
// valid after it. `after_work`: not before the threads have done what stands in front.
struct Await {
  std::vector<Token> finished;
  int64_t pending = 0;
  std::vector<ValueAt> values;
  bool after_work = false;
};

struct Acquire {
  int pipeline = -1;
};
struct Commit {
  int pipeline = -1;
};
struct Wait {
  int pipeline = -1;
  Iteration at;
  bool peeked = false;  // a Peek has asked for it
};
// Asks whether a slot is full, for a Wait that comes later.
struct Peek {
  int pipeline = -1;
  Iteration at;
};
struct Release {
  int pipeline = -1;
  Iteration at;
  bool where_exists = false;  // the iteration may be none of the loop's
};

struct CommitGroup {};
struct WaitGroup {
  int64_t pending = 0;
};

// Threads arrive at a transaction barrier of the program, or wait for one of its phases.
struct OnBarrier {
  StmtId op;
};

// Threads that meet: a warpgroup's, or all of the role.
enum class Scope : uint8_t { warpgroup, role };
struct Barrier {
  Scope scope = Scope::role;
};
// What threads have written to shared memory is there for engines that read it by another proxy; what they
// have read is read before such an engine overwrites it (PTX ISA, "Proxies").
struct Fence {};

// Order of the computing warpgroups' products (ping-pong), a ring: `begin` gives warpgroup 0 the first turn
// and `end` takes it back, each once; in between every warpgroup waits for its turn and passes it on.
struct Order {
  enum class Step : uint8_t { begin, wait, pass, end };
  Step step = Step::wait;
};

// Each computing warpgroup has a list of its own, and meets the others only where these say so. `body`: what
// they come to, done by all threads in program order.
struct PerWarpgroup {
  std::vector<Block> bodies;  // by warpgroup
  Block body;
};
// The warpgroup's own products are about to be done: the other waits for it before it issues its own.
struct ProductsDone {
  bool waits = false;  // this is the other
};
// One of two warpgroups is done with this part of an iteration's work: values of rows go to the other by
// shared memory, and behind the middle part tiles that it has written are there for products of both. The
// other waits for it.
struct PutRows {
  StmtId loop;
  int64_t warpgroup = 0;  // that puts
  std::vector<ValueId> values;
  analysis::Alternation::Part part = analysis::Alternation::Part::middle;
};
struct FetchRows {
  StmtId loop;
  int64_t warpgroup = 0;  // that has put
  std::vector<ValueId> values;
  std::set<ValueId> beside;  // of them: to registers beside those of the warpgroup's own iteration
  analysis::Alternation::Part part = analysis::Alternation::Part::middle;
};
// Values of rows mean those that were fetched beside.
struct WithFetched {
  std::set<ValueId> values;
  Block body;
};

// Sums that the loop carries in parts: split before it, joined after it.
struct SplitSums {
  StmtId loop;
};
struct JoinSums {
  StmtId loop;
};

// Blocks of the cluster have shared the loop's iterations: the first has the sums of all after it, and does
// `body`. With `shares` each block has those of its own, for the ops in `body` that take them, and does it.
struct ReduceParts {
  StmtId loop;
  std::vector<ValueId> sums;
  std::vector<analysis::SumShare> shares;
  Block body;
};

// Register prefetch: the operands of the product's first step, and the product with `before_last` before
// its last instructions, and `beside` spread between those in front of them.
struct LoadOperands {
  StmtId product;
};
struct Multiply {
  StmtId product;
  Block beside, before_last;
};

// A loop or branch as the program has it.
struct Serial {
  StmtId loop;
  Block body;
};
struct Branch {
  StmtId branch;
  Block then_body, else_body;
};

// Versions of one operation: Run or Issue of it, or versions of it on other conditions, in each body. The
// condition is the same for all threads of the block; that of a factor, for those of a warp.
struct Version {
  enum class Condition : uint8_t {
    full_tile,          // all its accesses to tensors are in bounds
    unmasked,           // its conditions on indices, those of selects and of stores, leave all elements alone
    factor_is_not_one,  // an element of `factor` is not 1; else_body is empty
  };
  Condition condition = Condition::full_tile;
  StmtId op;
  ValueId factor;
  Block then_body, else_body;
};

// The bounds of the loop are taken here; inside, iterations have numbers.
struct Pipelined {
  StmtId loop;
  Block body;
};
// Iterations first, first + 1, .. in order, `step` of them in one body; the counter, `newest`, is the first
// of these. What `step` leaves over is for a Remainder.
struct Steady {
  int64_t first = 0;
  int64_t step = 1;
  Block body;
};
// After a Steady: case r where it has left r iterations over, of at least `first`.
struct Remainder {
  int64_t first = 0;
  std::vector<Block> cases;
};
// What stands in it belongs to the iteration. `where_exists`: done where the loop has it.
struct At {
  Iteration iteration;
  bool where_exists = false;
  Block body;
};
struct WhereIterations {
  int64_t least = 1;  // as many or more
  Block then_body, else_body;
};

// The tiles of the grid that a block computes: its own; those that its index tells; or those that it fetches
// from the tile scheduler. One role fetches the number of the next tile at the end of `body`, and hands it to
// the others, which have it there (`dynamic`).
enum class Walk : uint8_t { own, fixed, dynamic, fetch };
struct TileLoop {
  Walk walk = Walk::own;
  Block body;
};

// Iterations 0, 1, .. of the loop, as many as it has and `iterations` at most, of the block's first tile: a
// producer begins their uses of pipelines before the kernel in front has ended. Blocks that begin later than
// a launch does may do without.
struct Preamble {
  StmtId loop;
  int64_t iterations = 0;
  Block body;
};
// Of an iteration that no Preamble has begun.
struct BehindPreamble {
  StmtId loop;
  int64_t iterations = 0;
  Block body;
};
// The kernel in front of this one on its stream has ended. Where no role has a Preamble, all begin with it.
struct GridDependencyWait {};

// Bulk stores of the role have been read from shared memory.
struct AwaitStores {};
// All blocks of the cluster meet.
struct ClusterBarrier {};

struct Stmt {
  std::variant<Run, Issue, Deposit, Await, Acquire, Commit, Wait, Peek, Release, CommitGroup, WaitGroup,
               OnBarrier, Barrier, Fence, Order, PerWarpgroup, ProductsDone, PutRows, FetchRows, WithFetched,
               SplitSums, JoinSums, ReduceParts, LoadOperands, Multiply, Serial, Branch, Version, Pipelined,
               Steady, Remainder, At, WhereIterations, TileLoop, Preamble, BehindPreamble, GridDependencyWait,
               AwaitStores, ClusterBarrier>
      node;
};

enum class RoleKind : uint8_t { all, consumer, producer };
struct Role {
  std::string name;
  RoleKind kind = RoleKind::all;
  int64_t first_thread = 0, threads = 0;
  int64_t registers = 0;  // of a thread; 0: as launched
  Block body;
};

// Refers to the program's and the schedule's kernel, which outlive it.
struct ScheduledKernel {
  int kernel = 0;
  const plan::KernelSchedule* schedule = nullptr;
  std::shared_ptr<const analysis::KernelOps> ops;
  std::vector<Pipeline> pipelines;
  std::vector<analysis::ThreadWrittenOperand> written;  // of products that a producer feeds
  std::vector<analysis::CarriedSums> carried;
  std::vector<ValueId> parts;  // sums of which a block has a part, where blocks share a loop's iterations
  std::vector<analysis::SumShare> shares;  // of them, where each block takes one
  std::vector<Role> roles;
};

// With its part, where the tile comes in several.
std::string name_of(const Pipeline& line);

// Of Run and Issue; invalid: another statement.
StmtId operation_of(const Stmt& s);

// Roles begin before the kernel in front has ended.
bool has_preamble(const ScheduledKernel& k);

// A producer fills tiles of the loop's iterations.
bool fed_by_producer(const ScheduledKernel& k, StmtId loop);

// Readable form: pipelines, then one role after the other. Deterministic.
std::string print_scheduled(const ir::Program& p, const ScheduledKernel& k);

}  // namespace tilegen::expand
