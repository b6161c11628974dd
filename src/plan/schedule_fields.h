// The fields of a Schedule's entries: one row per field, in the order in which they are written.
//
// A row has the key, the member, the values it may have, and what it means. JSON both ways
// (schedule_json.cpp), the words of an op in the readable form (schedule_text.cpp), the comparison of a given
// entry with the planned one (schedule/check_result.cpp) and the tables of docs/schedule.md are made from
// these rows.
//
// A new field is a member in schedule.h and a row here. `shown` is how the readable form names the field,
// with % for the value; without it the form does not show it, or has words of its own.
#pragma once

#include <tuple>

#include "plan/field_kinds.h"

namespace tilegen::plan {

template <class E>
struct EntryFields;

// Calls visit(row) for every field of E.
template <class E, class Visit>
void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... row) { (visit(row), ...); }, EntryFields<E>::rows());
}

template <>
struct EntryFields<OpPlan> {
  using E = OpPlan;
  static constexpr auto rows() {
    return std::tuple{
        NameField<E>{"op", &E::op, "path of the operation"},
        EngineField<E>{"engine", &E::engine, "how it is done"},
        TextField<E>{"atom", &E::atom, "row of the target's table of instructions, where one is used", "%"},
        NumberField<E>{"warps_m", &E::warps_m, 1, 1024, 0, "products: parts of the tile's rows, one a warp"},
        NumberField<E>{"warps_n", &E::warps_n, 1, 1024, 0,
                       "products: parts of the tile's columns, one a warp"},
        LayoutField<E, layout::Fragment>{"iteration", &E::iteration,
                                         "element-wise work: which thread does which point"},
        NumberField<E>{"vector", &E::vector, 1, 1024, 0, "elements that one access moves", "vector %", 1},
        FlagField<E>{"streaming", &E::streaming, "results are stored past the caches", "streaming"},
        WordField<E, 3>{
            "cache",
            &E::cache,
            {"evict_first", "evict_last", "no_allocate"},
            "what caches do with lines of the tensors that it reads and writes: these are the first or the "
            "last to go, or take no place in the nearest cache",
            "cache %"},
        NumberField<E>{"epilogue_columns", &E::epilogue_columns, 1, kMaxNumber, 0,
                       "`tensor_copy` out of a fragment: columns that a warpgroup stages at once",
                       "epilogue tiles of % columns"},
        OptionalText<E>{"deferred_to", &E::deferred_to,
                        "sums: the loop after which the threads of a row meet; empty: in the operation",
                        "deferred to %"},
        OptionalText<E>{"skip_if_identity", &E::skip_if_identity,
                        "value of row factors: lanes leave the operation out where all of theirs are 1",
                        "skipped where % is 1"},
        FlagField<E>{"elided", &E::elided,
                     "fills with zeros: the product after, or that of a loop after, overwrites", "elided"},
        NumberField<E>{"chains", &E::chains, 1, 2, 0,
                       "reductions: partial results of a thread, none of which waits for another", "% chains",
                       1},
        FlagField<E>{"matrix_stores", &E::matrix_stores,
                     "copies of accumulators to a shared tile: matrices of 8x8 elements at a time (stmatrix)",
                     "matrix stores"},
        FlagField<E>{"full_tile_version", &E::full_tile_version,
                     "blocks whose accesses to tensors are all in bounds run code without predicates",
                     "full-tile version"},
        FlagField<E>{"unmasked_version", &E::unmasked_version,
                     "blocks in which a condition on indices holds for every element run code without it",
                     "unmasked version"},
        NumberField<E>{"unroll", &E::unroll, 1, kMaxNumber, 0,
                       "copies of its body that loops over a thread's points make at most, where they need "
                       "not be unrolled",
                       "unroll %"},
        NumberField<E>{"mask_parts", &E::mask_parts, 1, kMaxNumber, 0,
                       "parts of a thread's points, each taken in the form in which the warp knows a "
                       "condition on indices",
                       "mask known by warps in % parts", 1},
        NumberField<E>{"steps_ahead", &E::steps_ahead, 1, 64, 0,
                       "products of a warp: steps along k by which operands are loaded ahead from shared "
                       "memory",
                       "operands % steps ahead", 1},
        FlagField<E>{"transposing", &E::transposing,
                     "loads of a tile: a thread's block is loaded along the tensor's rows and stored along "
                     "the tile's",
                     "transposing"},
        FlagField<E>{"left_in_registers", &E::left_in_registers,
                     "products by turns: the warpgroup that has made the left operand takes it from its "
                     "registers",
                     "own left operand in registers"},
        FlagField<E>{"preamble", &E::preamble,
                     "`tensor_copy` of a constant tensor: a producer begins the loop's first iterations "
                     "before the kernel in front of this one has ended",
                     "in the preamble"},
        FlagField<E>{"computed_first", &E::computed_first,
                     "`tensor_copy` out of a fragment: its values are computed before the first pass",
                     "computed first"},
        NamesField<E>{"through_memory", &E::through_memory, false,
                      "fragments that the operation finds in shared memory", "% through memory"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<ValuePlan> {
  using E = ValuePlan;
  static constexpr auto rows() {
    return std::tuple{
        NameField<E>{"value", &E::value, "name of the value"},
        LayoutField<E, layout::Fragment>{"fragment", &E::fragment, "layout over threads and registers"},
        LayoutField<E, layout::Layout>{"memory", &E::memory, "layout in shared memory"},
        NumberField<E>{"slots", &E::slots, 1, 1024, 0, "copies alive at once"},
        OriginField<E>{"origin", &E::origin, "who decided the layout"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<LoopPlan> {
  using E = LoopPlan;
  static constexpr auto rows() {
    return std::tuple{
        NameField<E>{"loop", &E::loop, "path of the pipelined loop"},
        NumberField<E>{"num_stages", &E::num_stages, 1, 1024, 0, "iterations in flight at once"},
        StagesField<E>{"stages", &E::stages, "`op` and `stage` of each operation, in the order of issue"},
        FlagField<E>{"ping_pong", &E::ping_pong, "computing warpgroups take turns to issue their products",
                     "ping-pong"},
        FlagField<E>{"register_prefetch", &E::register_prefetch,
                     "registers for the first step of an iteration are loaded beside the last instructions "
                     "of the one before",
                     "register prefetch"},
        FlagField<E>{"drained", &E::drained, "an iteration awaits all products that it issues", "drained"},
        FlagField<E>{"peek", &E::peek,
                     "the first wait of an iteration is asked for beside the last work of the one before",
                     "peek"},
        FlagField<E>{"alternating", &E::alternating,
                     "two computing warpgroups have iterations by turns: the one makes an iteration's scores "
                     "and weights, both multiply with them",
                     "alternating"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<ConversionPlan> {
  using E = ConversionPlan;
  static constexpr auto rows() {
    return std::tuple{RequiredText<E>{"value", &E::value, "name of the value"},
                      RequiredText<E>{"producer", &E::producer, "operation that holds it one way"},
                      RequiredText<E>{"consumer", &E::consumer, "operation that holds it the other way"},
                      KindField<E>{"kind", &E::kind, "how it is moved"},
                      FragmentField<E>{"from", &E::from, "layout that it has"},
                      FragmentField<E>{"to", &E::to, "layout that it gets"},
                      NumberField<E>{"cost", &E::cost, 0, INT64_MAX, 0, "estimated cycles of the block"},
                      ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<RasterPlan> {
  using E = RasterPlan;
  static constexpr auto rows() {
    return std::tuple{
        WordField<E, 5>{"order",
                        &E::order,
                        {"row_major", "column_major", "grouped", "by_die", "lpt"},
                        "order in which blocks walk the tiles"},
        NumberField<E>{"group", &E::group, 1, kMaxNumber, 0,
                       "`grouped`, `by_die`: rows of tiles walked together", nullptr, 1},
        NumberField<E>{"dies", &E::dies, 1, kMaxNumber, 0,
                       "`by_die`: dies to which blocks go in turn; each walks tiles after one another",
                       nullptr, 1},
        NumberField<E>{"dimension", &E::dimension, 0, 2, kOpen,
                       "`lpt`: dimension of the grid along which the work changes"},
        FlagField<E>{"increasing", &E::increasing, "`lpt`: the work grows with the index", nullptr, true},
        NumberField<E>{"group_iterations", &E::group_iterations, 0, kMaxNumber, kOpen,
                       "`lpt`: iterations of the longest loop up to which points go together"},
        NumberField<E>{"group_tiles", &E::group_tiles, 0, kMaxNumber, kOpen,
                       "`lpt`: tiles that a group has at least"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<RolePlan> {
  using E = RolePlan;
  static constexpr auto rows() {
    return std::tuple{
        NameField<E>{"name", &E::name, "name of the role; the first computes, the others are producers"},
        NumberField<E>{"warps", &E::warps, 1, 32, kOpen, "warps; of the first role, the kernel's threads"},
        NumberField<E>{"registers", &E::registers, 0, 256, kOpen, "registers of a thread; 0: as launched"},
        NamesField<E>{"ops", &E::ops, false, "tensor copies that a producer issues"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<PersistencePlan> {
  using E = PersistencePlan;
  static constexpr auto rows() {
    return std::tuple{
        SetFlag<E>{"persistent", &E::persistent, true,
                   "blocks walk over several tiles, as many blocks as are resident at once"},
        WordField<E, 2>{"order",
                        &E::order,
                        {"static", "dynamic"},
                        "`static`: each walks tiles that its index tells; `dynamic`: each takes the next one "
                        "that nobody has"},
        FlagField<E>{"skip_empty_tiles", &E::skip_empty_tiles,
                     "`dynamic`: tiles at which nothing would be stored are passed over"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<ClusterPlan> {
  using E = ClusterPlan;
  static constexpr auto rows() {
    return std::tuple{
        NumberField<E>{"blocks", &E::blocks, 1, 1024, 0,
                       "blocks that run at once on neighbouring multiprocessors and read tiles for each "
                       "other; 1: none"},
        TextField<E>{"along", &E::along, "block index, as named in the program, that tells them apart"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<SplitPlan> {
  using E = SplitPlan;
  static constexpr auto rows() {
    return std::tuple{
        TextField<E>{"loop", &E::loop, "path of the loop whose iterations blocks share"},
        NumberField<E>{"parts", &E::parts, 1, 1024, 0,
                       "blocks that do a part of them each; one of them sums up and does what follows, or "
                       "each a share; 1: none"},
        WordField<E, 3>{
            "through",
            &E::through,
            {"cluster", "cluster_shares", "workspace"},
            "`cluster`: the blocks of a point are one, and the first reads the sums of the others "
            "in their shared memory; `cluster_shares`: each reads those of its share of the tile, and does "
            "what follows for it; `workspace`: the block that comes last reads them in global "
            "memory"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<OverlapPlan> {
  using E = OverlapPlan;
  static constexpr auto rows() {
    return std::tuple{
        SetFlag<E>{"last_tiles", &E::last_tiles, true,
                   "tiles that would reach beyond a tensor lie within it, over a part of the one before"},
        NamesField<E>{"along", &E::along, false, "block indices, as named in the program, for which they do"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<LaunchPlan> {
  using E = LaunchPlan;
  static constexpr auto rows() {
    return std::tuple{
        FlagField<E>{"dependent", &E::dependent,
                     "blocks may begin while the kernel before this one on its stream ends; they wait "
                     "for its end before they touch memory"},
        NumberField<E>{"min_blocks", &E::min_blocks, 1, 64, 0,
                       "blocks of a multiprocessor that its registers should allow for",
                       "registers for % blocks", 1},
        NumberField<E>{"registers", &E::registers, 16, 256, 0, "registers of a thread at most",
                       "at most % registers"},
        ReasonField<E>{"reason", &E::reason}};
  }
};

template <>
struct EntryFields<PipelinePlan> {
  using E = PipelinePlan;
  static constexpr auto rows() {
    return std::tuple{
        NameField<E>{"name", &E::name, "name of the pipeline"},
        RequiredText<E>{"loop", &E::loop, "pipelined loop whose iterations fill it; empty: the body"},
        NamesField<E>{"values", &E::values, true, "tiles that are handed over together"},
        NumberField<E>{"slots", &E::slots, 1, 1024, 0, "copies of each tile"},
        NumberField<E>{"parts", &E::parts, 1, 16, 0,
                       "of the columns of its tile, each filled and given back by itself"}};
  }
};

template <>
struct EntryFields<Assumption> {
  using E = Assumption;
  static constexpr auto rows() {
    return std::tuple{
        NameField<E>{"param", &E::param, "tensor or dim of the program"},
        NumberField<E>{"multiple", &E::multiple, 1, kMaxNumber, kOpen,
                       "of what its value, or a tensor's address in bytes, is a multiple", nullptr, 0, true},
        NumberField<E>{"most_bytes", &E::most_bytes, 1, INT64_C(1) << 32, 0,
                       "that the tensor has, so that the hardware bounds its guarded accesses"}};
  }
};

template <>
struct EntryFields<MemoryPlan> {
  using E = MemoryPlan;
  static constexpr auto rows() {
    return std::tuple{
        StorageField<E>{"storage", &E::storage, "what the place is for"},
        RequiredText<E>{"owner", &E::owner, "value, operation or loop, pipeline or kernel"},
        TextField<E>{"value", &E::value, "`copy`: the value that the operation works on there"},
        NumberField<E>{"offset", &E::offset, 0, INT64_MAX, kOpen, "first byte", nullptr, 0, true},
        NumberField<E>{"bytes", &E::bytes, 0, INT64_MAX, kOpen, "of all slots", nullptr, 0, true}};
  }
};

template <>
struct EntryFields<Note> {
  using E = Note;
  static constexpr auto rows() {
    return std::tuple{RequiredText<E>{"path", &E::path, "operation, loop, value or kernel"},
                      RequiredText<E>{"text", &E::text, "what was refused, and why"}};
  }
};

// "| field | meaning |" for the entries of a kernel's schedule: the tables of docs/schedule.md.
std::string schedule_field_tables();

}  // namespace tilegen::plan
