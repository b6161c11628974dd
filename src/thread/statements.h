// The statements of a thread program, and what they name: memories, transaction barriers, tensor maps.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "ir/program.h"
#include "support/diagnostic.h"
#include "thread/warp_statements.h"

namespace tilegen::thread {

using StmtId = Id<struct ThreadStmtTag>;
using Block = std::vector<StmtId>;

// global: a kernel parameter. shared: a slice of the block's arena. local: private to the thread; small and
// indexed by constants it lives in registers (`in_registers`), else (host only) in the arena.
enum class Space : uint8_t { global, shared, local };
const char* space_name(Space s);

// How what is loaded or stored treats caches: it is the first or the last to go, or no line of the nearest
// cache is taken for it (GPU). Results do not depend on it.
enum class Caching : uint8_t { usual, evict_first, evict_last, no_allocate };

struct Memory {
  std::string name;
  Space space = Space::global;
  ir::DType type = ir::DType::f32;
  int64_t elements = 0;       // 0 for global: known at launch only
  int64_t alignment = 0;      // bytes the base is known to be aligned to (>= element size)
  int64_t arena_offset = -1;  // bytes, when it lives in the arena
  // shared: copies alive at once, one after the other: slot s begins at s * elements / slots
  int64_t slots = 1;
  bool in_registers = false;  // local: every index is a constant after unrolling; on GPUs always
  bool read_only = false;
  int param = -1;                                           // global: index into ThreadProgram::params
  Caching loads = Caching::usual, stores = Caching::usual;  // global
};

// An array of transaction barriers (mbarrier) in the block's arena. A phase completes when `arrivals` threads
// have arrived and all bytes that were announced have landed; the barrier is then in its next phase. All are
// initialised, and visible to every thread and engine of the block's cluster, before the body begins.
struct TransactionBarriers {
  std::string name;
  int64_t count = 1;
  int64_t arrivals = 1;
  int64_t arena_offset = -1;  // bytes, a multiple of 8; 8 bytes each
};

// How the copy engine sees a tensor (CUtensorMap, tiled): made at launch from the launch's arguments, a
// parameter of the kernel. Elements outside the extents read as zero and are not written.
struct TensorMap {
  std::string name;
  MemoryId tensor;                  // global; its address is the map's, 16-byte aligned
  std::vector<ir::ExprId> extents;  // elements, innermost first, over dims and scalars; 1 .. 5 dimensions
  // bytes, of dimensions 1, 2, ...: multiples of 16; the innermost is dense
  std::vector<ir::ExprId> strides;
  std::vector<int64_t> box;  // elements of one copy, innermost first; each at most 256
  int swizzle = 0;           // bytes: 0, 32, 64 or 128; the box is that wide (any width for 0)
};

// How a loop runs. serial: as written. unrolled: fully, at emission (extent is a constant). vectorized: the
// variable is the SIMD lane (host) or the elements of one wide access (GPU); extent is a constant; the body
// holds only Stores. On GPUs a load or store in it whose index is lane + (the same for all lanes) and whose
// predicate is the same for all lanes is one access of extent * element bytes, in parts of at most 16 bytes,
// and the address must be aligned to the size of a part; any other access goes element by element.
enum class LoopForm : uint8_t { serial, unrolled, vectorized };

struct Loop {
  ir::VarId var;  // from 0 to extent, step 1
  ir::ExprId extent;
  LoopForm form = LoopForm::serial;
  Block body;
  // optional, of serial loops: asked before each iteration, the first that it does not hold for ends the loop
  ir::ExprId condition = {};
  bool rolled = false;  // serial, GPU: stays a loop in the machine's code, whatever its extent
};

struct Branch {
  ir::ExprId condition;
  Block then_body;
  Block else_body;
  // the warp is converged: its lanes all take then_body where the condition holds for one, else none
  bool together = false;
};

// memory[index] = value where predicate holds (no predicate: always). With `atomic` it becomes what the kind
// makes of the old value and `value`; such stores of several threads to one element come one after the other,
// in any order. In a vectorized loop index, value and predicate may vary by lane; an index that is not
// lane-affine with stride 1 or 0 is scattered.
struct Store {
  MemoryId memory;
  ir::ExprId index;
  ir::ExprId value;
  ir::ExprId predicate;     // optional
  bool streaming = false;   // the line will not be read again soon: bypass the caches where the target can
  ir::ExprId streaming_if;  // optional, uniform: only when it holds
  std::optional<ir::AtomicKind> atomic = std::nullopt;  // global or shared memory
  ir::ExprId expected = {};                             // of compare_exchange
  // Optional, of atomic ones: an element of shared memory, which becomes the old value where the predicate
  // holds.
  MemoryId old = {};
  ir::ExprId old_index = {};
  // Of atomic ones: of the block to global memory, where barriers stand between it and what it orders of
  // other threads; of the thread to shared memory.
  ir::AtomicOrder order = ir::AtomicOrder::relaxed;
};

// dst[dst_index] = combine over `width` lanes of src[src_index .. +width) ; with `accumulate` the old dst
// too.
enum class Combine : uint8_t { sum, max, min, product, bit_and, bit_or, bit_xor };
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
// Element (i,k) of A is at a_index + i*a_row + (k / step)*a_k + k % step, element (k,j) of B at
// b_index + (k/pack)*b_k + j*pack + k%pack, element (i,j) of C at c_index + i*c_row + j. `pack` consecutive k
// share one sum of an instruction (2 for bf16 dot products, 4 for i8), `step` of them one instruction: pack
// with vectors, tile.k with matrix registers. The loop over k is inside the atom and keeps C in registers.
struct MatrixRegisters {      // Intel AMX
  int rows = 0, columns = 0;  // of C in one of them; 0: C is in vectors
  int k = 0;                  // of A in one of them: multiple of pack
};
struct HostMma {
  int mr = 1, nr = 1;
  int64_t k = 1;  // multiple of the step
  int pack = 1;
  MatrixRegisters tile;  // rows divide mr, columns divide nr
  int64_t step() const { return tile.k > 0 ? tile.k : pack; }
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

// `threads` threads of the block (0: all of them) meet at hardware barrier `id` (bar.sync); shared memory
// written before is visible after. With `arrive_only` the thread does not wait (bar.arrive): those that do
// wait for as many arrivals as `threads` says, their own among them. A no-op where a block has one thread.
struct Barrier {
  int id = 0;
  int64_t threads = 0;  // multiple of the warp
  bool arrive_only = false;
};

// cp.async: `bytes` (4, 8 or 16) from global src[src_index ..) to shared dst[dst_index ..) of the same type,
// both aligned to `bytes`. Where the predicate does not hold the source is not read and zeros are written.
// The bytes land some time before the AsyncWait that covers their group returns; until then neither side may
// be touched.
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
// Waits until at most `pending` of this thread's newest groups are unfinished. The bytes of finished groups
// are then visible to this thread; to others after the next Barrier.
struct AsyncWait {
  int64_t pending = 0;
};

// ---- Hopper: warps with different tasks, transaction barriers, the copy engine, matrix instructions of a
// warpgroup
//
// The copy engine (TensorLoad, TensorStore) and WarpgroupMma reach shared memory through the asynchronous
// proxy: what threads wrote by plain stores they see after a ProxyFence of the writing threads and a
//   barrier.

// Warps with tasks of their own. Stands once, at the end of the program's body; the roles' threads are
// consecutive and make up the block. A thread of a role sees the same thread variable as ever.
struct Role {
  std::string name;
  // multiples of the warp; of a warpgroup (128) where `registers` are asked for
  int64_t first_thread = 0, threads = 0;
  // of a thread (setmaxnreg): a multiple of 8 in 24 .. 256; 0: as launched
  int registers = 0;
  Block body;
};
struct Roles {
  std::vector<Role> roles;
};

// One thread of every warp that comes by runs the body (elect.sync); the warp is converged here.
struct OneThread {
  Block body;
};

// Each executing thread arrives at barrier `index` of the array; with `bytes` it first announces that many
// bytes to land. With `block` the barrier is that of the cluster's block of this rank, and nothing is
// announced.
struct TransactionArrive {
  int barriers = -1;  // index into ThreadProgram::barriers
  ir::ExprId index;
  int64_t bytes = 0;  // mbarrier.arrive.expect_tx where positive
  ir::ExprId block;   // optional, i64 in 0 .. cluster - 1; may differ between threads
  // A thread arrives when the AsyncCopies that it has issued are done, some time later: their bytes are then
  // there for those who wait for the phase. Without bytes and block.
  bool copies = false;
};
// Waits until the phase of parity `parity` (0 or 1) has completed. A fresh barrier is in phase 0: a wait for
// parity 1 passes at once. What was written before the completing arrivals, and bytes that landed, are
// visible after it.
struct TransactionWait {
  int barriers = -1;
  ir::ExprId index;
  ir::ExprId parity;  // i64, the same for the warp
  // optional, bool, the same for the warp: a TransactionTest for this phase has found it completed
  ir::ExprId unless;
};
// dst[dst_index] = 1 where the phase of parity `parity` has completed, else 0: asked ahead of the wait, so
// that the answer is there when it is needed. After a 1 the same is visible as after a TransactionWait.
struct TransactionTest {
  int barriers = -1;
  ir::ExprId index;
  ir::ExprId parity;  // i64, the same for the warp
  MemoryId dst;       // i32, in registers
  ir::ExprId dst_index;
};

// dst[dst_index] = how many claims of the launch, of any block, came before this one
// (ThreadProgram::dynamic_tiles): every thread that runs it claims, in no particular order; it orders nothing
// else. The launch makes as many claims as its grid has points, the last of which leaves the counter at 0 for
// the next launch.
struct FetchTile {
  MemoryId dst;  // i32, in registers
  ir::ExprId dst_index;
};

// TMA: the box of `map` at `coordinates` (elements, innermost first; may be beyond the extents, and negative
// for loads; the innermost a multiple of 16 bytes) to dst[dst_index ..), or back. In memory the box is dense,
// innermost first, with 16-byte units XORed by the row as the map's swizzle says (on byte addresses: bits 4..
// ^= bits 7.., 1, 2 or 3 of them for 32, 64, 128 bytes). The place is aligned to 128 bytes, to 8 rows of the
// swizzle where there is one. One thread issues it. A load reports the box's whole bytes to
// `barriers[barrier_index]` when they have landed, announced by itself with `announces`, else by an arrival.
// A store belongs to the thread's bulk group and is clipped
// in units of 16 bytes. A load with `multicast` goes to all blocks of the cluster whose rank is a bit of it:
// to the same place, reported to the same barrier, of each.
struct TensorLoad {
  int map = -1;  // index into ThreadProgram::tensor_maps
  std::vector<ir::ExprId> coordinates;
  MemoryId dst;
  ir::ExprId dst_index;
  int barriers = -1;
  ir::ExprId barrier_index;
  int64_t multicast = 0;   // 0: to the own block
  bool announces = false;  // mbarrier.expect_tx, in front of it
};
struct TensorStore {
  int map = -1;
  std::vector<ir::ExprId> coordinates;
  MemoryId src;
  ir::ExprId src_index;
  std::optional<ir::AtomicKind> reduction = std::nullopt;  // of the old elements and the tile's, in the L2
};
// Closes the group of this thread's TensorStores since the last commit.
struct BulkCommit {};
// Waits until at most `pending` of this thread's newest groups are unfinished; `read`: only until they have
// read shared memory.
struct BulkWait {
  int64_t pending = 0;
  bool read = false;
};
// This thread's plain accesses to shared memory before it come before accesses of the asynchronous proxy
// after it.
struct ProxyFence {};

// All threads of the cluster meet: what they did before, to any shared memory of the cluster, is visible
// after. At the end of a body it keeps blocks from leaving while others may still reach their shared memory.
struct ClusterBarrier {};
// The kernel in front of this one on its stream has ended, and what it wrote is seen (griddepcontrol.wait).
// Of a dependent kernel; where it stands nowhere, the body begins behind it.
struct GridDependencyWait {};

// dst[dst_index + i] = src[src_index + i] of the cluster's block of rank `block`, i in 0 .. elements - 1: one
// access of 4, 8 or 16 bytes (ld.shared::cluster) from shared memory, aligned to that, to registers of the
// same type of 4 bytes. That block wrote them before the two met last, and is there until they meet again.
struct ClusterLoad {
  MemoryId dst;
  ir::ExprId dst_index;
  MemoryId src;
  ir::ExprId src_index;
  int elements = 1;
  ir::ExprId block;  // i64 in 0 .. cluster - 1
};

// How an operand of WarpgroupMma lies in shared memory (PTX ISA, "Asynchronous warpgroup level matrix: shared
// memory layout"): rows of `swizzle` bytes (128, 64, 32; 0: 8 x 16-byte core matrices), swizzled as
// TensorLoad does. k_major: a row runs along k, `stride_bytes` from 8 rows to the next 8. Else a row runs
// along m or n: `stride_bytes` from 8 k to the next 8, `leading_bytes` from one row's worth of m or n to the
//   next.
struct MatrixForm {
  int swizzle = 128;
  bool k_major = true;
  int64_t leading_bytes = 0, stride_bytes = 0;
  bool operator==(const MatrixForm&) const = default;
};

// wgmma of the 4 warps of a warpgroup, all executing it: C[64 x n] += A[64 x k] * B[k x n], one instruction
// per k step. Step s takes A and B at a_index + a_steps[s] and b_index + b_steps[s] (elements of shared
// memory; registers when A is in registers). Indices of shared memory are the same for the warpgroup. C's
// registers, A's and those of places may not be touched until a WarpgroupWait covers the instruction's group.
// Where `accumulate` does not hold the first step overwrites C (no expression: it accumulates). Of a sparse
// instruction A is 64 x k / 2, and step s takes the thread's register of places at places_index + s.
struct WarpgroupMma {
  std::string atom;  // "wgmma.m64n256k16.f32.f16.f16": target::find_warpgroup_atom
  MemoryId a, b, c;
  ir::ExprId a_index, b_index, c_index;
  std::vector<int64_t> a_steps, b_steps;
  MatrixForm a_form, b_form;  // a_form: A in shared memory
  ir::ExprId accumulate;      // optional, bool, the same for the warpgroup
  MemoryId places = {};       // of a sparse instruction (target::WarpgroupAtom::places), of u32
  ir::ExprId places_index = {};

  bool sparse() const { return places.valid(); }
};
// Before the first WarpgroupMma of a group whose registers (C, A, places) were touched: orders those accesses
// before it.
struct WarpgroupFence {};
// Closes the group of the warpgroup's products issued since the last commit.
struct WarpgroupCommit {};
// Waits until at most `pending` of the newest groups are unfinished. After it the values of `registers` are
// those of finished products: code generation moves no use of them before it. Work on `registers` that
// stands before the wait stays there with `after_work`: it runs beside the products.
struct WarpgroupWait {
  int64_t pending = 0;
  std::vector<MemoryId> registers;
  bool after_work = false;
};

using StmtNode =
    std::variant<Loop, Branch, Store, LaneReduce, HostMma, Prefetch, Barrier, AsyncCopy, AsyncCommit,
                 AsyncWait, Shuffle, Vote, LoadMatrix, StoreMatrix, WarpMma, Roles, OneThread,
                 TransactionArrive, TransactionWait, TransactionTest, FetchTile, TensorLoad, TensorStore,
                 BulkCommit, BulkWait, ProxyFence, ClusterBarrier, GridDependencyWait, ClusterLoad,
                 WarpgroupMma, WarpgroupFence, WarpgroupCommit, WarpgroupWait>;

// The blocks that stand directly inside a statement, in the order of the text.
std::vector<const Block*> blocks_inside(const StmtNode& node);
std::vector<Block*> blocks_inside(StmtNode& node);

}  // namespace tilegen::thread
