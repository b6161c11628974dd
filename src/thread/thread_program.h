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
  bool in_registers = false;  // local: every index is a constant after unrolling
  bool read_only = false;
  int param = -1;  // global: index into ThreadProgram::params
};

// How a loop runs. serial: as written. unrolled: fully, at emission (extent is a constant). vectorized: the
// variable is the SIMD lane (host) or the elements of one wide access (GPU); extent is a constant; the body
// holds only Stores.
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

// All threads of the block meet; shared memory written before is visible behind. A no-op where a block has
// one thread.
struct Barrier {};

struct Stmt {
  std::variant<Loop, Branch, Store, LaneReduce, HostMma, Prefetch, Barrier> node;
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
  Block body;

  StmtId add(std::variant<Loop, Branch, Store, LaneReduce, HostMma, Prefetch, Barrier> node,
             std::string origin);
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
std::vector<std::string> verify_thread_program(const ThreadProgram& p);

}  // namespace tilegen::thread
