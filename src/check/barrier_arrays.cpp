#include "check/barrier_arrays.h"

#include "check/barrier_faults.h"
#include "ir/op_kinds.h"

namespace tilegen::check {

namespace {

BarrierFault attribute(std::string why, std::string hint) {
  return {DiagCode::bad_attribute, std::move(why), std::move(hint)};
}

}  // namespace

std::string threads_text(const ir::ThreadRange& t) {
  return words({"threads ", std::to_string(t.first), " to ", std::to_string(t.first + t.count - 1)});
}

std::optional<BarrierFault> array_fault(const ir::Program& p, ir::BufferId array, int64_t before) {
  const ir::Buffer& tile = p.buffer(array);
  const auto participants = ir::barrier_participants(tile);
  const char* key = participants ? "participants" : "arrivals";
  const char* kind = participants ? "named barriers" : "transaction barriers";
  const std::string way = participants ? words({"alloc ", tile.name, ": shared u64[1] {participants = 256}"})
                                       : words({"alloc ", tile.name, ": shared u64[3] {arrivals = 32}"});
  if (participants && ir::barrier_arrivals(tile))
    return attribute(words({tile.name, " has arrivals, as transaction barriers have, and participants, as ",
                            "named barriers have"}),
                     "let it have one of them");
  if (tile.scope != ir::MemScope::shared || tile.type != ir::DType::u64 || tile.shape.size() != 1)
    return attribute(words({"a tile with ", key, " is an array of ", kind, ", expected shared u64 of one ",
                            "dimension, found ", ir::scope_name(tile.scope), " ", ir::dtype_name(tile.type),
                            " of ", std::to_string(tile.shape.size())}),
                     words({"allocate it so: ", way}));
  const int64_t count = p.tile_shape(array).front();
  if (participants) {
    if (*participants % kBarrierWarp != 0)
      return attribute(words({"a named barrier of ", std::to_string(*participants),
                              " participants, expected whole warps of ", std::to_string(kBarrierWarp)}),
                       words({"count the threads that come by, those that only arrive among them: ", way}));
    if (before + count > kMaxNamedBarriers)
      return attribute(
          words({"the kernel names ", std::to_string(before + count), " barriers, at most ",
                 std::to_string(kMaxNamedBarriers),
                 " can be had: the machine has 16, one of them for the whole block"}),
          "let a barrier be used again behind a meeting, or index an array of transaction barriers");
    return std::nullopt;
  }
  const int64_t arrivals = *ir::barrier_arrivals(tile);
  if (arrivals > ir::kMaxArrivals)
    return attribute(words({"a phase of ", std::to_string(arrivals), " arrivals, at most ",
                            std::to_string(ir::kMaxArrivals), " are counted"}),
                     words({"count the threads that arrive: ", way}));
  if (before + count > kMaxBarriers)
    return attribute(
        words({"the kernel has more than ", std::to_string(kMaxBarriers), " transaction barriers"}),
        "let a ring have fewer slots");
  return std::nullopt;
}

std::optional<BarrierFault> use_fault(const ir::Program& p, const ir::Kernel& kernel, const ir::TileOp& op,
                                      bool declared, bool pipelined) {
  const std::string word(ir::op_row(op.kind).text);
  const ir::Region& at = op.operands.front();
  const ir::Buffer& tile = p.buffer(at.buffer);
  const bool named = ir::is_named_barrier_op(op.kind);
  const std::string found =
      words({", found ", tile.name, " (", ir::scope_name(tile.scope), " ", ir::dtype_name(tile.type), ")"});
  if (!declared || named != ir::barrier_participants(tile).has_value())
    return named ? attribute(words({word, " is of a named barrier", found}),
                             "allocate it, with the threads that come by: alloc loaded: shared u64[1] "
                             "{participants = 256}")
                 : attribute(words({word, " is of a transaction barrier", found}),
                             "allocate barriers, with the arrivals of a phase: alloc full: shared u64[3] "
                             "{arrivals = 32}");
  if (at.extents.front() != 1)
    return BarrierFault{
        DiagCode::bad_shape,
        words({word, " is of ", std::to_string(at.extents.front()), " barriers, expected one"}),
        words({"name one of them, ", tile.name, named ? "[0]" : "[k % 3]"})};
  int64_t number = 0;
  if (named && !p.exprs.is_const_int(at.offsets.front(), &number))
    return attribute(words({"which barrier of ", tile.name, " ", word,
                            " is of is computed, and the machine's are told by constants"}),
                     "write an if for each of them, or index an array of transaction barriers");
  if (pipelined)
    return BarrierFault{DiagCode::misplaced_statement,
                        words({word, " stands in a pipelined loop, whose iterations the planner overlaps"}),
                        "make the loop serial: the warps of each side go on by themselves"};
  if (kernel.threads == 0)
    return attribute(words({word, " counts threads, and the kernel does not say how many it has"}),
                     "write threads 160 behind the kernel's grid");
  const ir::ThreadRange threads = ir::threads_of(op, kernel);
  if (threads.first < 0 || threads.count < 1 || threads.count > kernel.threads ||
      threads.first > kernel.threads - threads.count || threads.first % kBarrierWarp != 0 ||
      threads.count % kBarrierWarp != 0)
    return attribute(words({word, " is of ", threads_text(threads), ", expected whole warps of ",
                            std::to_string(kBarrierWarp), " of the kernel's ", std::to_string(kernel.threads),
                            " threads"}),
                     named ? "let all lanes of a warp come by"
                           : "let all lanes of a warp come by, and count each of them in arrivals");
  if (op.kind == ir::OpKind::mbarrier_arrive && op.flag(ir::mbarrier_arrive_attr::elected) &&
      op.flag(ir::mbarrier_arrive_attr::copies))
    return attribute(
        words({word, " with copies is of one lane of each warp, whose own copies it waits for alone"}),
        "leave out elected, and count each lane in arrivals");
  return std::nullopt;
}

}  // namespace tilegen::check
