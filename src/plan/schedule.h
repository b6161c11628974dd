// Schedule: every decision the compiler took for one program and one target, as plain data, with the reason
// of each.
//
// Printable (to_text), JSON both ways, overridable field by field: a Schedule given to compile() is taken as
// the decision wherever a field is set, and the planner fills what is missing. A full Schedule replays with
// the planner never called. Names are paths (ir/program.h). Decisions come first in every struct; fields
// marked *derived* are recorded for the reader, ignored on input and recomputed.
//
// A field that is unset, empty or 0 (kOpen where 0 says something) is no choice of its entry. In a given
// schedule it is left to the planner: JSON without the key reads so.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layout/fragment.h"
#include "support/diagnostic.h"
#include "support/limits.h"

namespace tilegen::plan {

inline constexpr int64_t kOpen = -1;

// Who decided: the hardware or a matrix atom (strict), a neighbour already pinned (common), the cost model
// (free), the caller's Schedule (given).
enum class Origin : uint8_t { strict, common, free, given };
const char* origin_name(Origin o);

// Layout of one value: a web of definitions and uses of an on-chip buffer. The first web of a buffer is named
// by the buffer's path ("gemm:acc"), later ones add a tag ("gemm:acc@1").
struct ValuePlan {
  std::string value;
  std::optional<layout::Fragment> fragment;  // fragment and local scope
  std::optional<layout::Layout> memory;      // shared scope, and what registers cannot hold
  int64_t slots = 0;                         // copies alive at once in a pipelined loop
  Origin origin = Origin::free;
  std::string reason;
  bool operator==(const ValuePlan&) const = default;
};

// How one op (tile op, parallel loop or store) is done.
// tensor_copy: the copy engine moves boxes (TMA), between a tensor and a shared tile, or out of a fragment
// through a staged tile. warpgroup_mma: asynchronous matrix instructions of warpgroups (wgmma).
// register_copy: a tile load in two halves, into registers iterations ahead and from there to the tile.
enum class Engine : uint8_t {
  loop,
  vector_copy,
  async_copy,
  mma,
  micro_kernel,
  lane_reduce,
  tensor_copy,
  warpgroup_mma,
  register_copy
};
const char* engine_name(Engine e);

struct OpPlan {
  std::string op;
  std::optional<Engine> engine;
  std::string atom;                           // row of the target's atom table
  int64_t warps_m = 0, warps_n = 0;           // gemm: how warps split the tile
  std::optional<layout::Fragment> iteration;  // element-wise work: iteration point -> (thread, register)
  int64_t vector = 0;                         // elements one access moves
  std::optional<bool> streaming;              // results bypass the caches
  std::string cache;  // accesses to tensors: evict_first | evict_last | no_allocate; empty: as usual
  // tensor_copy out of a fragment: columns a warpgroup stages at once
  int64_t epilogue_columns = 0;
  std::string reason;
  // Fragments whose elements the op finds in shared memory: put there before it, fetched from there
  // after it.
  std::vector<std::string> through_memory;
  // Sums: the loop (its path) after which the threads of a row meet, each keeping a part of the row's sum
  // until then. Empty: they meet in the op, every time.
  std::optional<std::string> deferred_to;
  // Element-wise products with a factor of the row: the value of the factors. Lanes of a warp leave the op
  // out where all of theirs are 1, which changes nothing. Empty: they compute.
  std::optional<std::string> skip_if_identity;
  // Fills with zeros: the first product of the loop after overwrites what would be cleared; the fill is done
  // where the loop has no iteration.
  std::optional<bool> elided;
  std::optional<bool> matrix_stores;  // copies of accumulators to a shared tile: by 8x8 matrices of a warp
  // Versions of the op's code, chosen while the kernel runs: blocks whose accesses to tensors are all in
  // bounds need no predicates; blocks in which a condition on indices holds everywhere do without it.
  std::optional<bool> full_tile_version, unmasked_version;
  // tensor_copy out of a fragment: its values are all computed before the first pass, so that what they
  // are computed from is dead there.
  std::optional<bool> computed_first;
  int64_t chains = 0;  // reductions: partial results of a thread, combined at the end
  // Copies of the body that loops over a thread's points come to, where these need not be unrolled; 0: all.
  int64_t unroll = 0;
  // Parts of a thread's points. A warp whose lanes all lie on one side of a condition on indices takes a part
  // in the form in which the condition is known. 0 and 1: no parts.
  int64_t mask_parts = 0;
  // Products of a warp: steps along k by which operands are loaded from shared memory ahead; 0: one.
  int64_t steps_ahead = 0;
  // Loads of tiles whose neighbours lie along another dimension than the tensor's: a thread loads a block of
  // elements along the one and stores it along the other.
  std::optional<bool> transposing;
  // Products of iterations that warpgroups have by turns: the one that has made the left operand, a tile that
  // threads write, takes it from the registers that it was stored from.
  std::optional<bool> left_in_registers;
  // tensor_copy of a constant tensor: a producer begins as many of the loop's iterations as its pipeline has
  // slots before the kernel in front of this one has ended.
  std::optional<bool> preamble;
  bool operator==(const OpPlan&) const = default;
};

// A pipelined loop. `stages` lists the ops of its body with the stage they run in.
struct LoopPlan {
  std::string loop;
  int64_t num_stages = 0;
  std::vector<std::pair<std::string, int64_t>> stages;
  std::string reason;
  // Computing warpgroups take turns to issue an iteration's products: while one works on its elements,
  // another's products have the matrix units. Of no meaning where warpgroups make no products.
  std::optional<bool> ping_pong;
  // The product's registers of an iteration's first step are loaded before the last instructions of the
  // iteration before.
  std::optional<bool> register_prefetch;
  // Each iteration awaits the products that it issues; else those at its end are in flight over it.
  std::optional<bool> drained;
  // What the next iteration begins with waiting for is asked for before the last op of an iteration.
  std::optional<bool> peek;
  // Two computing warpgroups have iterations by turns: the one makes an iteration's scores and weights, both
  // multiply with them.
  std::optional<bool> alternating;
  bool operator==(const LoopPlan&) const = default;
};

// Data movement inserted because two ops hold one value differently.
struct ConversionPlan {
  std::string value;
  std::string producer, consumer;                              // ops that disagree
  layout::ConversionKind kind = layout::ConversionKind::none;  // none: open, as fragments of no dimension are
  layout::Fragment from, to;
  int64_t cost = 0;  // estimated cycles of the block
  std::string reason;
  bool operator==(const ConversionPlan&) const = default;
};

// An optimisation that was refused, or anything else a user should know.
struct Note {
  std::string path;
  std::string text;
  bool operator==(const Note&) const = default;
};

struct RasterPlan {
  std::string order = "row_major";  // row_major | column_major | grouped | by_die | lpt
  int64_t group = 0;                // grouped, by_die: rows of tiles walked together
  // by_die: the blocks that go to one of so many dies in turn walk tiles of grouped order after one another.
  int64_t dies = 0;
  // lpt: blocks have the more work the larger (`increasing`) or the smaller their index along
  // `dimension` is, and go by falling work; points of the other dimensions go together as long as their
  // longest loops have no more than `group_iterations` iterations, and at least so many that they have
  // `group_tiles` tiles.
  int64_t dimension = kOpen;
  std::optional<bool> increasing;
  int64_t group_iterations = kOpen, group_tiles = kOpen;
  std::string reason;
  bool operator==(const RasterPlan&) const = default;
};

// Tiles that one role fills and another uses, handed over by transaction barriers: one "full" and one "empty"
// barrier a slot. The values are copied together, used together and given back together.
struct PipelinePlan {
  std::string name;
  std::string loop;                 // the pipelined loop whose iterations fill it; empty: the kernel's body
  std::vector<std::string> values;  // tiles, each with `slots` slots
  int64_t slots = 0;
  // Of the columns of its tile: each is filled and given back by itself, with barriers of its own. 0: one.
  int64_t parts = 0;
  bool operator==(const PipelinePlan&) const = default;
};

// Warps with an instruction list of their own, in the order of their threads. The first role of a kernel
// computes: it has `threads` and all operations that no other role lists. The others are producers: one
// thread of each issues the tensor copies in `ops`, which fill pipelines.
struct RolePlan {
  std::string name;
  int64_t warps = kOpen;
  int64_t registers = kOpen;     // of a thread; 0: as launched
  std::vector<std::string> ops;  // in program order; none in a given schedule: what no other role lists
  std::string reason;
  bool operator==(const RolePlan&) const = default;
};

// Whether blocks walk over several points of the grid, as many as are resident at once. static: each walks
// points that its own index tells, as many as any other (give or take one). claimed: it takes the next one
// that nobody has whenever it is ready for one.
struct PersistencePlan {
  bool persistent = false;
  std::string order;  // static | dynamic
  // claimed: points at which a block would store nothing are passed over by the thread that claims.
  std::optional<bool> skip_empty_tiles;
  bool dynamic() const { return persistent && order == "dynamic"; }
  std::string reason;
  bool operator==(const PersistencePlan&) const = default;
};

// Blocks that run at once on neighbouring multiprocessors and are neighbours along one dimension of the grid:
// tiles that are the same for all of them are read once, each block a part of them, and delivered to all.
struct ClusterPlan {
  int64_t blocks = 1;  // or 0: open
  std::string along;   // name of the kernel's block index that tells the blocks of a cluster apart
  std::string reason;
  bool operator==(const ClusterPlan&) const = default;
};

// Blocks that share the iterations of a loop, a part each, one after the other. One of them has the sums of
// all parts, in their order, and does what follows the loop. through cluster: the first of the cluster of a
// point of the grid, from the others' shared memory; cluster_shares: each a share of what follows; workspace:
// the one that comes last to its point, from memory that all have left their sums in. In a given schedule: no
// choice of its own where other fields of the kernel are given; then no loop is split.
struct SplitPlan {
  std::string loop;   // path; empty: none
  int64_t parts = 1;  // or 0: open
  std::string reason;
  std::string through = {};  // cluster | cluster_shares | workspace; empty: open
  bool operator==(const SplitPlan&) const = default;
};

// Tiles that would reach beyond a tensor lie within it, over a part of the one before: the copy engine fills
// nothing with zeros. `along`: names of the kernel's block indices whose last tiles do.
struct OverlapPlan {
  bool last_tiles = true;
  std::vector<std::string> along;
  std::string reason;
  bool operator==(const OverlapPlan&) const = default;
};

// How the kernel follows the one before it on its stream. `dependent`: its blocks begin, and make
// themselves ready, while that one ends; they wait for its end before they touch memory, and let the kernel
// after do the same.
// `min_blocks`: as many of the kernel's blocks as a multiprocessor should have registers for. `registers`: as
// many as a thread may have at most.
struct LaunchPlan {
  std::optional<bool> dependent;
  std::string reason;
  int64_t min_blocks = 0;
  int64_t registers = 0;
  bool operator==(const LaunchPlan&) const = default;
};

// What a place in a block's on-chip memory is for. value: an on-chip value, its slots one after the other.
// copy: `value`, as the op `owner` works on it in memory. scratch: an exchange between the threads of a
// statement. stage: the staged tile of a tensor_copy out of a fragment. operand_a, operand_b: a product's
// operand, transposed. barriers: of a pipeline, "full" then "empty", one of each a slot. tile_scheduler:
// numbers of the tiles that a block took from the grid, after the barriers that hand them over. parts: the
// sums of a block that shares a loop's iterations, for the first block of its cluster.
enum class Storage : uint8_t {
  value,
  copy,
  scratch,
  stage,
  operand_a,
  operand_b,
  barriers,
  tile_scheduler,
  parts
};
const char* storage_name(Storage s);

// Tiles that the tile scheduler hands over at once, and bytes of one's number.
inline constexpr int64_t kTileSlots = 2, kTileBytes = 4;

// Derived: where each lies.
struct MemoryPlan {
  Storage storage = Storage::value;
  std::string owner;  // value, path of a statement, pipeline or kernel
  std::string value;  // of a copy
  int64_t offset = 0, bytes = 0;
  bool operator==(const MemoryPlan&) const = default;
};

// What the code relies on though the program does not promise it: a tensor's address, in bytes, or the value
// of a dim is a multiple; a tensor has at most so many bytes. Launches with other arguments take a fallback
// version.
struct Assumption {
  std::string param;
  int64_t multiple = 0;
  int64_t most_bytes = 0;  // 0: any number
  bool operator==(const Assumption&) const = default;
};

struct KernelSchedule {
  std::string kernel;
  std::optional<int64_t> threads;  // computing threads of a block
  std::optional<RasterPlan> raster;
  std::optional<std::vector<RolePlan>> roles;  // none: every thread has all operations
  std::optional<PersistencePlan> persistence;
  std::optional<ClusterPlan> cluster;
  std::optional<SplitPlan> split;
  std::optional<OverlapPlan> overlap;
  std::optional<LaunchPlan> launch;
  std::vector<OpPlan> ops;
  std::vector<ValuePlan> values;
  std::vector<LoopPlan> loops;
  std::vector<PipelinePlan> pipelines;
  std::vector<ConversionPlan> conversions;
  std::optional<std::vector<Assumption>> assumptions;
  std::vector<MemoryPlan> memory;  // derived
  std::vector<Note> notes;         // derived
  bool has_producer() const { return roles && roles->size() > 1; }
  bool operator==(const KernelSchedule&) const = default;
};

struct Schedule {
  std::string target;
  std::string program_hash;  // of the program it was made for; empty fits any
  std::vector<KernelSchedule> kernels;

  const KernelSchedule* find(std::string_view kernel) const;
  bool operator==(const Schedule&) const = default;
};

const OpPlan* find_op(const KernelSchedule& k, std::string_view path);
const ValuePlan* find_value(const KernelSchedule& k, std::string_view value);
const LoopPlan* find_loop(const KernelSchedule& k, std::string_view path);
const PipelinePlan* find_pipeline(const KernelSchedule& k, std::string_view name);
const MemoryPlan* find_memory(const KernelSchedule& k, Storage storage, std::string_view owner,
                              std::string_view value = {});

// Readable form, one line per decision with its reason. Deterministic.
std::string schedule_to_text(const Schedule& s);

// JSON, one object, keys named like the fields; layouts and fragments are strings in their text form. A key
// may be left out, but for the names of things.
// Unknown keys, wrong types, duplicates (of keys, or of an op, value, loop or kernel in its list) and depth
// over 32 are json_error naming the JSON path. from_json(to_json(s)) == s but for derived fields being kept
// too.
std::string schedule_to_json(const Schedule& s);
Expected<Schedule> schedule_from_json(std::string_view text, const Limits& limits);

}  // namespace tilegen::plan
