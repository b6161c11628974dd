// The form of a thread program that the simulator runs: flat steps, with their expressions as instructions
// over the lanes of a warp.
//
// An instruction whose value is the same for all lanes (`uniform`) is evaluated once. Expressions without
// loads are evaluated where their variables change: in the prologue of the warp or at the start of an
// iteration, not at each use. All operations are total, so evaluating one that is not needed is harmless.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::sim {

// The machine that is simulated; simulate() refuses targets of other figures.
constexpr int kMaxLanes = 64;       // of a warp; it has as many as its program says, a power of two
using LaneMask = uint64_t;          // a bit for each
constexpr int kGroupThreads = 128;  // of a warpgroup whose instructions are simulated
constexpr int kBanks = 32, kBankBits = 2, kBankBytes = 1 << kBankBits, kBankRowBytes = kBanks * kBankBytes;
constexpr int kSectorBits = 5, kSectorBytes = 1 << kSectorBits;  // of global memory
constexpr uint32_t kNothing = 0xffffffffu;

// The value of one lane: integers and bools in `i`, floats of all types in `f`, exact.
union Cell {
  int64_t i;
  double f;
};

// Where a value lives. Uniform values and those that outlive their segment belong to a warp; temporaries of a
// segment are shared by all warps, which change places only between steps.
struct Ref {
  enum class Space : uint8_t { none, uniform, kept, temporary };
  Space space = Space::none;
  uint32_t at = 0;  // number of the value within its space
  explicit operator bool() const { return space != Space::none; }
  int stride() const { return space == Space::uniform ? 0 : 1; }
};

enum class Code : uint8_t {
  general,  // one call of the scalar evaluator per lane
  load,
  add_i,
  sub_i,
  mul_i,
  div_i,
  mod_i,
  div_pow2,
  mod_pow2,
  min_i,
  max_i,
  lt_i,
  le_i,
  eq_i,
  ne_i,
  lt_f,
  le_f,
  eq_f,
  ne_f,
  and_i,
  or_i,
  xor_i,
  not_b,
  shl_i,
  shr_i,
  select,
  wrap,
  add_f,
  sub_f,
  mul_f,
  div_f,
  round,
};

struct Instr {
  Code code = Code::general;
  ir::ExprOp op = ir::ExprOp::const_int;
  ir::DType type = ir::DType::none;     // of the result
  ir::DType operand = ir::DType::none;  // of the first operand
  bool uniform = false;
  Ref dst, a, b, c;
  int64_t imm = 0;             // shift or mask of the power-of-two forms
  uint32_t access = kNothing;  // load
};

// One load or store of the program text.
struct Access {
  thread::MemoryId memory;
  uint32_t stmt = 0;
  const char* action = "";
  bool write = false;
  int64_t width = 1;                                    // elements of one lane
  std::optional<ir::AtomicKind> atomic = std::nullopt;  // of a write
  ir::AtomicOrder order = ir::AtomicOrder::relaxed;
  bool fetches = false;  // the old value of an atomic one goes somewhere
};

// What orders the atomic operations of an access: those of one operation of the program come in any order,
// and those of one kind that any order leaves the same.
struct AtomicUse {
  uint32_t operation = 0;  // a number; 0: not atomic
  uint32_t kind = 0;       // 0: its order shows, by what is left or by an old value
  bool meets(const AtomicUse& o) const { return operation == o.operation || (kind != 0 && kind == o.kind); }
};

enum class StepKind : uint8_t {
  loop_begin,
  loop_while,
  loop_end,
  branch,
  branch_else,
  branch_end,
  store,
  wide_store,
  lane_reduce,
  barrier,
  async_copy,
  async_commit,
  async_wait,
  shuffle,
  vote,
  load_matrix,
  store_matrix,
  mma,
  role,  // the warps of a role go on, others jump
  role_end,
  one_thread,
  transaction_arrive,
  transaction_wait,
  transaction_test,
  fetch_tile,
  tensor_load,
  tensor_store,
  bulk_commit,
  bulk_wait,
  proxy_fence,
  cluster_barrier,
  cluster_load,
  warpgroup_mma,
  warpgroup_fence,
  warpgroup_commit,
  warpgroup_wait,
  end,
};

struct AtomTables {
  const target::MmaAtom* atom = nullptr;
  std::vector<uint32_t> a, b, c;  // element of the gathered matrix by [register * lanes + lane]
  std::vector<uint32_t> places;   // sparse: group of four, by [position in the word * lanes + lane]
};

// A matrix instruction of a warpgroup: elements of A, of one step, and of the accumulator that a thread holds
// in a register, by [register * 128 + thread].
struct WarpgroupTables {
  std::string name;
  const target::WarpgroupAtom* atom = nullptr;
  int n = 0;
  std::vector<uint32_t> a, c;
  std::vector<uint32_t> places;  // sparse: group of four, by [position in the word * 128 + thread]
};

struct Step {
  StepKind kind = StepKind::end;
  uint32_t stmt = 0;
  uint32_t segment = kNothing;       // evaluated before the step
  uint32_t lane_segment = kNothing;  // wide_store: evaluated for each element; loops: for each iteration
  // loop_begin, loop_while: the loop's end; loop_end: its begin; branch: its else; else: its end
  uint32_t jump = 0;
  // loop: extent, -; while, branch: condition; fetch_tile: dst; store: index, value, predicate; async: dst,
  // src, predicate; shuffle: dst, value, lane; vote: dst, value;
  // matrices: registers, rows; mma: a, b, c; transactions: index, parity,
  // a wait's `unless`, a test's dst; tensor copies:
  // place in shared memory, index of the barrier
  Ref x, y, z;
  Ref variable;                                       // loop, wide_store
  int64_t extent = 0;                                 // wide_store; branch: taken together; one_thread: met
  int64_t width = 1;                                  // wide_store: elements of one access of the store
  uint32_t access = kNothing, access2 = kNothing;     // mma: of C
  uint32_t access_a = kNothing, access_b = kNothing;  // mma
  uint32_t access_places = kNothing;  // sparse; their index is coordinates[0], of products [1]
  uint32_t atom = kNothing;           // or the number of a role
  // tensor copies; products: [0] accumulate, [1] places; atomic stores: [0] expected, [1] index of the old
  // value
  std::array<Ref, 5> coordinates;
  // store: the value is an element of this memory as it lies there, at `moved`, where `moved_if` holds
  uint32_t moved_from = kNothing;
  Ref moved, moved_if;
  bool keeps_load = false;  // store: of a tensor's element to a register, as it is
  // store: adds the product of registers `moved` and `times` to what it replaces
  uint32_t times = kNothing;  // memory
  Ref times_at;
};

using Segment = std::vector<Instr>;

struct Bytecode {
  const thread::ThreadProgram* program = nullptr;
  int lanes = 1;                  // of a warp
  std::vector<Segment> segments;  // 0: the prologue of a warp
  std::vector<Step> steps;
  std::vector<Access> accesses;
  std::vector<AtomicUse> atomic_uses;  // by access
  std::vector<AtomTables> atoms;
  std::vector<WarpgroupTables> warpgroup_atoms;
  std::vector<Cell> uniform;            // initial values of the uniform space: constants
  std::vector<uint32_t> variables;      // uniform place of each variable, kNothing for the thread variable
  uint32_t thread_value = kNothing;     // kept place of the thread variable
  uint32_t first_thread = kNothing;     // uniform place of the number of lane 0's thread
  uint32_t kept = 0, temporaries = 0;   // sizes of the other spaces
  std::vector<uint32_t> register_base;  // per memory: first element in the register file
  uint32_t registers = 0;
};

}  // namespace tilegen::sim
