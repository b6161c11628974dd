// The thread program: what one thread of a block does, structured, per target, before LLVM.
//
// It shares expressions (ir/expr.h) with the tile level; its statements are types of their own. A load names
// a Memory and takes {linear element index} or {linear element index, predicate}. On the host a block has one
// thread and the lanes of a `vectorized` loop are SIMD lanes; on GPUs `thread_var` is the thread index within
// the block.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "thread/machine.h"
#include "thread/named_barriers.h"
#include "thread/statements.h"

namespace tilegen::thread {

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
  // Of a tensor, where most_bytes is not 0: its elements, from the first to the last, over dims and scalars;
  // they have at most `most_bytes` bytes. Where `reach` is given, indices below it do, too.
  ir::ExprId elements;
  int64_t most_bytes = 0;
  // A predicate, an index, and so on: of an access with this index the predicate says no more than that it is
  // below `elements`, where those beside it hold; where it does not the index is below `reach`.
  std::vector<ir::ExprId> bounds;
  ir::ExprId reach;
  bool operator==(const Guard&) const = default;
};

// A loop in which threads copy a box of a tensor asynchronously, and how the copy engine does the same
// (lower/gpu/bulk_copies.h).
struct BulkCopy {
  StmtId loop;
  std::string refusal;             // why the engine cannot; empty: it can
  TensorMap map;                   // of a box, none of the program's yet
  TensorLoad load;                 // all but its map and its barrier
  int64_t first = 0, threads = 0;  // that copy
};

// A persistent program's limits, which every launch of it keeps: points of the grid, blocks that are resident
// at once.
constexpr int64_t kMaxPersistentPoints = int64_t{1} << 30, kMaxResidentBlocks = 65535;
// The counter of a loop, or of a grid, that begins at 0 never gets here: at a nanosecond each, that takes
// weeks.
constexpr int64_t kMaxIterations = int64_t{1} << 52;

struct ThreadProgram {
  std::string name;  // kernel name, [A-Za-z0-9_]+
  Machine machine;   // that it is made for
  ir::ExprPool exprs;
  std::vector<std::shared_ptr<const ir::NativeFunction>> natives;  // the program's, whose calls exprs have
  std::vector<ir::Var> vars;  // dims, scalars, block indices, thread, loop variables
  std::vector<Memory> memories;
  std::vector<Stmt> stmts;
  std::vector<Param> params;
  std::vector<ir::ExprId> grid;  // 1..3, slowest first, over dims and scalars
  std::vector<ir::VarId> block_vars;
  // Persistent programs: the number of blocks that were launched, at most grid[0] and at most as many as are
  // resident at once. The body walks the points block, block + launched, ... of the (one-dimensional) grid
  // itself. Of kind block_index. Invalid: a block per point.
  ir::VarId launched_var;
  // Persistent programs: a block walks the point `block` and then points that it claims, `launched` +
  // FetchTile, until one is none of the grid. The counter is a parameter of the kernel after all others: its
  // address, 8 bytes; it is 0 when a launch begins, and no two launches that may run at once share it.
  bool dynamic_tiles = false;
  ir::VarId thread_var;  // invalid when threads == 1
  int64_t threads = 1;
  int64_t arena_bytes = 0;
  // Blocks of a cluster (1: none): they have consecutive indices, run at once and reach each other's shared
  // memory. A block's rank is its index modulo the cluster. The one-dimensional grid, and launched_var, are
  // multiples of it.
  int64_t cluster = 1;
  // The launch lets blocks begin while the kernel before it on its stream still runs. Before the body
  // begins they wait for that one's end and see what it wrote; the kernel after may begin its blocks when
  // all of these run (griddepcontrol). A launch that does not is right, too.
  bool dependent = false;
  // Several blocks may write an element of a tensor, all of them the same value.
  bool overlapping_blocks = false;
  int64_t min_blocks = 1;      // blocks of a multiprocessor that registers should allow for (GPU)
  int64_t most_registers = 0;  // of a thread (GPU); 0: as many as there are
  std::vector<TransactionBarriers> barriers;
  std::vector<NamedBarrier> named_barriers;  // the first is number 1
  // What indices are divided by though no constant, over dims and integer scalars, positive wherever a block
  // runs: a launch passes each one's value and reciprocal (thread/reciprocal.h), two slots each after
  // `params`, for code that multiplies. What the expressions mean does not depend on it.
  std::vector<ir::ExprId> divisors;
  std::vector<TensorMap> tensor_maps;  // kernel parameters after `divisors`
  std::vector<BulkCopy> bulk_copies;   // for the passes behind lowering
  // facts the code relies on: alignments and divisors that the program does not promise
  std::vector<Guard> guards;
  Block body;

  StmtId add(StmtNode node, std::string origin);
  ir::VarId add_var(std::string name, ir::VarKind kind);
  MemoryId add_memory(Memory m);
  int named_barrier(NamedBarrier b);  // its number, a new one where it has none
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
//  - async copies go from global to shared memory of one type, 4, 8 or 16 bytes, a whole number of elements;
//    matrix loads from shared memory to registers, matrix stores the other way; warp-level statements stand
//    in blocks of whole warps
//  - guards name parameters and divisors of at least 1, and bytes of tensors alone; their expressions and
//    `divisors` are over dims and scalars
//  - Roles stand once, last in the body, and make up the block; their registers, times threads, are no more
//    than the block is launched with; statements of a warpgroup stand in roles or blocks of whole warpgroups
//  - a cluster has a power of two of blocks, at most the machine's, of a one-dimensional grid; ranks and
//  multicast masks are of its blocks
//  - a loop with a condition is serial, and the condition does not use its variable; claims stand in programs
//    that have a counter, which are persistent, without clusters
//  - transaction barriers and tensor maps that statements name exist; barriers have their place in the arena;
//    places and boxes of tensor copies fit; the registers of a WarpgroupMma in flight are not touched before
//    the wait that covers it
std::vector<std::string> verify_thread_program(const ThreadProgram& p);

}  // namespace tilegen::thread
