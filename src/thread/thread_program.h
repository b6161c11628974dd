// The thread program: what one thread of a block does, structured, per target, before LLVM.
//
// It shares expressions (ir/expr.h) with the tile level; its statements are types of their own. A load names
// a Memory and takes {linear element index} or {linear element index, predicate}. On the host a block has one
// thread and the lanes of a `vectorized` loop are SIMD lanes; on GPUs `thread_var` is the thread index within
// the block.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "ir/program.h"
#include "support/diagnostic.h"

namespace tilegen::thread {

using MemoryId = ir::ObjectId;
using StmtId = Id<struct ThreadStmtTag>;
using Block = std::vector<StmtId>;

// global: a kernel parameter. shared: a slice of the block's arena. local: private to the thread; small and
// indexed by constants it lives in registers (`in_registers`), else (host only) in the arena.
enum class Space : uint8_t { global, shared, local };
const char* space_name(Space s);

struct Memory {
  std::string name;
  Space space = Space::global;
  ir::DType type = ir::DType::f32;
  int64_t elements = 0;       // 0 for global: known at launch only
  int64_t alignment = 0;      // bytes the base is known to be aligned to (>= element size)
  int64_t arena_offset = -1;  // bytes, when it lives in the arena
  int64_t slots = 1;          // shared: copies alive at once, one behind the other: slot s begins at s * elements / slots
  bool in_registers = false;  // local: every index is a constant after unrolling; on GPUs always
  bool read_only = false;
  int param = -1;  // global: index into ThreadProgram::params
};

// How a loop runs. serial: as written. unrolled: fully, at emission (extent is a constant). vectorized: the
// variable is the SIMD lane (host) or the elements of one wide access (GPU); extent is a constant; the body
// holds only Stores. On GPUs a load or store in it whose index is lane + (the same for all lanes) and whose predicate is
// the same for all lanes is one access of extent * element bytes, in parts of at most 16 bytes, and the address must be
// aligned to the size of a part; any other access goes element by element.
enum class LoopForm : uint8_t { serial, unrolled, vectorized };

struct Loop {
  ir::VarId var;  // from 0 to extent, step 1
  ir::ExprId extent;
  LoopForm form = LoopForm::serial;
  Block body;
};

struct Branch {
  ir::ExprId condition;
  Block then_body;
  Block else_body;
};

// memory[index] = value where predicate holds (no predicate: always). In a vectorized loop index, value and
// predicate may vary by lane; an index that is not lane-affine with stride 1 or 0 is scattered.
struct Store {
  MemoryId memory;
  ir::ExprId index;
  ir::ExprId value;
  ir::ExprId predicate;     // optional
  bool streaming = false;   // the line will not be read again soon: bypass the caches where the target can
  ir::ExprId streaming_if;  // optional, uniform: only when it holds
};

// dst[dst_index] = combine over `width` lanes of src[src_index .. +width) ; with `accumulate` the old dst
// too.
enum class Combine : uint8_t { sum, max, min };
struct LaneReduce {
  Combine combine = Combine::sum;
  MemoryId dst;
  ir::ExprId dst_index;
  MemoryId src;
  ir::ExprId src_index;
  int64_t width = 1;
  bool accumulate = false;
};

// One matrix atom of the target: C[mr x nr] (+)= A[mr x kt] * B[kt x nr] on memories of this thread.
// Element (i,k) of A is at a_index + i*a_row + (k / pack)*a_k + k % pack, element (k,j) of B at
// b_index + (k/pack)*b_k + j*pack + k%pack, element (i,j) of C at c_index + i*c_row + j. `pack` consecutive k
// share one accumulation step (2 for bf16 dot products, 4 for i8). The loop over k is inside the atom and
// keeps C in registers.
struct HostMma {
  int mr = 1, nr = 1;
  int64_t k = 1;  // multiple of pack
  int pack = 1;
  MemoryId a, b, c;
  ir::ExprId a_index, b_index, c_index;
  int64_t a_row = 0, a_k = 1, b_k = 0, c_row = 0;
  bool clear = false;  // C = instead of C +=
};

// Hint: the `bytes` from memory[index] on will be read soon. Never faults; out-of-range is harmless.
struct Prefetch {
  MemoryId memory;
  ir::ExprId index;
  int locality = 2;  // 3 = nearest cache
};

// `threads` threads of the block (0: all of them) meet at hardware barrier `id` (bar.sync); shared memory written before
// is visible behind. With `arrive_only` the thread does not wait (bar.arrive). A no-op where a block has one thread.
struct Barrier {
  int id = 0;
  int64_t threads = 0;  // multiple of the warp
  bool arrive_only = false;
};

// cp.async: `bytes` (4, 8 or 16) from global src[src_index ..) to shared dst[dst_index ..) of the same type, both
// aligned to `bytes`. Where the predicate does not hold the source is not read and zeros are written. The bytes land
// some time before the AsyncWait that covers their group returns; until then neither side may be touched.
struct AsyncCopy {
  MemoryId dst;
  ir::ExprId dst_index;
  MemoryId src;
  ir::ExprId src_index;
  int bytes = 16;
  ir::ExprId predicate;  // optional
};
// Closes the group of this thread's copies issued since the last commit (it may be empty).
struct AsyncCommit {};
// Waits until at most `pending` of this thread's newest groups are unfinished. The bytes of finished groups are then
// visible to this thread; to others behind the next Barrier.
struct AsyncWait {
  int64_t pending = 0;
};

// dst[dst_index] = `value` as computed by another lane of the warp: lane (own ^ `lane`) for butterfly, lane `lane`
// for indexed. 32-bit and smaller types.
struct Shuffle {
  enum class Mode : uint8_t { butterfly, indexed } mode = Mode::butterfly;
  MemoryId dst;
  ir::ExprId dst_index;
  ir::ExprId value;
  ir::ExprId lane;  // i64; butterfly: the same for all lanes
};

// ldmatrix: `matrices` (1, 2 or 4) 8x8 matrices of 16-bit units (one element of 2 bytes, two of 1, half of one of 4) from
// shared memory into registers. Lane 8*i + r holds in src_index the first element of row r of matrix i (lanes beyond are
// ignored); rows are 16 bytes, 16-byte aligned. Lane l receives units 2*(l%4) and 2*(l%4)+1 of row l/4 of matrix i
// (transposed: units l/4 of rows 2*(l%4) and 2*(l%4)+1, 2-byte elements only) as the elements
// [dst_index + i*e, dst_index + (i+1)*e), e = 4 / element bytes.
struct LoadMatrix {
  MemoryId dst;
  ir::ExprId dst_index;
  MemoryId src;
  ir::ExprId src_index;
  int matrices = 4;
  bool transpose = false;
};
// stmatrix: the reverse, registers to shared memory (targets that have it); 2-byte elements.
struct StoreMatrix {
  MemoryId dst;
  ir::ExprId dst_index;  // shared: the lane's row
  MemoryId src;
  ir::ExprId src_index;  // registers
  int matrices = 4;
  bool transpose = false;
};

// One matrix instruction of a warp, a row of the target's table: C += A * B on registers, each operand's elements
// consecutive in the order of the atom's fragment.
struct WarpMma {
  std::string atom;
  MemoryId a, b, c;
  ir::ExprId a_index, b_index, c_index;
  int a_registers = 0, b_registers = 0, c_registers = 0;  // elements a lane holds of each operand
};

using StmtNode = std::variant<Loop, Branch, Store, LaneReduce, HostMma, Prefetch, Barrier, AsyncCopy, AsyncCommit,
                              AsyncWait, Shuffle, LoadMatrix, StoreMatrix, WarpMma>;

struct Stmt {
  StmtNode node;
  std::string origin;  // path of the user's operation
};

// A kernel parameter slot, 8 bytes each at launch: a tensor's base address, a dim as i64, or a scalar's bits
// in the low bytes of the slot.
struct Param {
  enum class Kind : uint8_t { dim, scalar, tensor } kind = Kind::tensor;
  std::string name;
  ir::DType type = ir::DType::i64;
  ir::VarId var;    // dim, scalar
  MemoryId memory;  // tensor
};

// What a launch must see hold before it runs this form of the kernel; otherwise it takes the next variant.
// The parameter's value (a dim), or its address (a tensor), is a multiple of `divisor`.
struct Guard {
  int param = -1;  // index into ThreadProgram::params
  int64_t divisor = 1;
  bool operator==(const Guard&) const = default;
};

struct ThreadProgram {
  std::string name;  // kernel name, [A-Za-z0-9_]+
  ir::ExprPool exprs;
  std::vector<ir::Var> vars;  // dims, scalars, block indices, thread, loop variables
  std::vector<Memory> memories;
  std::vector<Stmt> stmts;
  std::vector<Param> params;
  std::vector<ir::ExprId> grid;  // 1..3, slowest first, over dims and scalars
  std::vector<ir::VarId> block_vars;
  ir::VarId thread_var;  // invalid when threads == 1
  int64_t threads = 1;
  int64_t arena_bytes = 0;
  int64_t min_blocks = 1;     // blocks of a multiprocessor that registers should allow for (GPU)
  std::vector<Guard> guards;  // facts the code relies on: alignments and divisors that the program does not promise
  Block body;

  StmtId add(StmtNode node, std::string origin);
  ir::VarId add_var(std::string name, ir::VarKind kind);
  MemoryId add_memory(Memory m);
  const Memory& memory(MemoryId id) const { return memories[id.value]; }
};

std::string print_thread_program(const ThreadProgram& p);

// The invariants every later stage relies on; empty when they hold. Used between stages in tests and under
// verify=1.
//  - every id is in range; a variable is used only under the loop that defines it; types agree as
//  expr_ops.def says
//  - loads and stores name memories of their element type; read_only memories are not stored to
//  - vectorized and unrolled loops have constant extents; a vectorized body has only Stores
//  - in_registers memories are indexed by constants, unrolled variables and the lane variable only
//  - constant indices of sized memories are in range; arena slices are aligned and inside arena_bytes
//  - statements form a tree (each stands in one place) at most 256 deep; loop variables may be used by
//  sibling loops
//  - a sized memory is either in registers or has an arena slice; a global one and its parameter name each
//  other
//  - sides of an mma are all floats or all integers; a lane reduction keeps the type
//  - async copies go from global to shared memory of one type, 4, 8 or 16 bytes, a whole number of elements; matrix loads
//  from shared memory to registers, matrix stores the other way; warp-level statements stand in blocks of whole warps
//  - guards name parameters and divisors of at least 1
std::vector<std::string> verify_thread_program(const ThreadProgram& p);

}  // namespace tilegen::thread
