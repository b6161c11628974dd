// Copies from global to shared memory that run beside the block's other work: cp.async per vector, zeros
// where the source is outside its tensor.
//
// The copies of an op make one group, closed right after them; inside a pipelined loop the loop closes it.
// The wait is not emitted here: planting barriers puts it before the first use.
#include <algorithm>

#include "lower/op_lowering.h"

namespace tilegen::lower {

// Copies of `width` elements; nothing where that is not known to be legal. `edges`: there were predicates.
std::optional<thread::Block> OpLowering::async_copies(int src, int dst, int64_t width, bool& edges,
                                                      ExprId* interior) {
  const int64_t wanted = width * ir::dtype_bytes(type(src));
  const std::vector<int>& widths = k_.target_.async_copy_bytes;
  if (std::find(widths.begin(), widths.end(), wanted) == widths.end()) return std::nullopt;
  ir::ExprPool& e = k_.out_.exprs;
  const ir::BufferId from = tile_op_->operands[static_cast<size_t>(src)].buffer,
                     to = tile_op_->operands[static_cast<size_t>(dst)].buffer;
  auto mark = k_.ctx_.mark();
  k_.bounds_.clear();
  if (k_.assumed_interior_) k_.ctx_.assume(k_.assumed_interior_);
  Nest nest = k_.make_thread_nest(*plan_.iteration, width, plan_.iteration->shape(), false);
  const bool vector = !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
  const VarId lane = vector ? nest.loops.back().var : VarId();
  const auto outside = k_.ctx_.mark();
  if (const ExprId inside = k_.both(ExprId(), nest.inside)) k_.ctx_.assume(inside);  // padding is not copied
  const auto source = element_at(src, nest.point), target = element_at(dst, nest.point);
  const ExprId predicate = k_.bounds_predicate(from, source);
  ExprId src_index = k_.memory_index(from, source), dst_index = k_.memory_index(to, target);
  const MemoryId src_memory = k_.memory_of(from), dst_memory = k_.memory_of(to);
  const int64_t bytes = width * ir::dtype_bytes(k_.out_.memory(src_memory).type);
  auto first = [&](MemoryId m, ExprId index) {
    ExprId rest = index;
    if (vector) {
      const auto split = arith::split_affine(k_.ctx_, index, lane);
      if (!split || !split->stride || *split->stride != 1) return ExprId();
      rest = split->rest;
    }
    const bool aligned =
        k_.out_.memory(m).alignment % bytes == 0 &&
        arith::divisor_of(k_.ctx_, rest) * ir::dtype_bytes(k_.out_.memory(m).type) % bytes == 0;
    return aligned ? rest : ExprId();
  };
  src_index = first(src_memory, src_index);
  dst_index = first(dst_memory, dst_index);
  const bool by_lane = vector && ((predicate && arith::depends_on(e, predicate, lane)) ||
                                  arith::depends_on(e, nest.inside, lane));
  const bool legal = src_index && dst_index && (vector || width == 1) && !by_lane;
  std::optional<thread::Block> result;
  if (legal) {
    edges = predicate.valid();
    *interior = edges ? k_.interior_of_bounds(nest) : ExprId();
    thread::Block body = {k_.out_.add(
        thread::AsyncCopy{dst_memory, dst_index, src_memory, src_index, static_cast<int>(bytes), predicate},
        op_.path)};
    k_.finish_thread_nest(nest, body);
    // Padding and copies of other threads are not copied at all: a condition that is not simplified by
    // itself.
    k_.ctx_.rollback(outside);
    if (const ExprId own = k_.both(nest.writer, k_.both(ExprId(), nest.inside))) {
      body = {k_.out_.add(thread::Branch{own, std::move(body), {}}, op_.path)};
      k_.finish_thread_nest(nest, body);
    }
    result = k_.wrap(nest, 0, nest.loops.size() - (vector ? 1 : 0), std::move(body), op_.path);
  }
  k_.ctx_.rollback(mark);
  return result;
}

// operand[point] = source for every point, as asynchronous copies of planned vectors.
void OpLowering::async_copy_points(int dst) {
  const int src = 1 - dst;
  bool edges = false;
  ExprId interior, nothing;
  auto copies = async_copies(src, dst, plan_.vector, edges, &interior);
  if (!copies)
    return k_.fail(
        DiagCode::schedule_illegal, op_.path,
        "asynchronous copies of " + std::to_string(plan_.vector) +
            " elements: an access is not known to be aligned to them, or they are not of 4, 8 or 16 bytes",
        "give a smaller `vector` or another engine, or leave them out to have them planned");
  if (edges && interior && plan_.full_tile_version.value_or(false)) {
    // Blocks inside the tensors need no predicates.
    k_.assumed_interior_ = interior;
    auto inside = async_copies(src, dst, plan_.vector, edges, &nothing);
    k_.assumed_interior_ = ExprId();
    if (inside)
      copies = thread::Block{
          k_.out_.add(thread::Branch{interior, std::move(*inside), std::move(*copies)}, op_.path)};
  }
  out_.insert(out_.end(), copies->begin(), copies->end());
  if (!k_.groups_closed_by_loop_) out_.push_back(k_.out_.add(thread::AsyncCommit{}, op_.path));
}

void OpLowering::find_async_facts(int dst) {
  plan::OpAccessFacts& facts = k_.facts_of(op_.path);
  std::set<int64_t> legal;
  for (int64_t width = std::max<int64_t>(plan_.vector, 1); width >= 1; width /= 2) {
    const KernelLowering::Sizes before = k_.sizes();
    bool edges = false;
    ExprId interior;
    if (async_copies(1 - dst, dst, width, edges, &interior)) {
      legal.insert(width);
      if (edges && interior) facts.async_interior.insert(width);
    }
    k_.drop_since(before);
  }
  // The loop around may have been peeled: legal is what is legal everywhere.
  if (facts.async_seen)
    std::erase_if(facts.async, [&](int64_t w) { return legal.count(w) == 0; });
  else
    facts.async = std::move(legal);
  facts.async_seen = true;
}

}  // namespace tilegen::lower
