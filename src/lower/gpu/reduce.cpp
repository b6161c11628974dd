// Reductions of a block of many threads: each thread combines its own elements, lanes of a warp meet by
// butterflies, what is left meets in a scratch slice. There the holders of the result fetch it, whatever its
// layout; without scratch every thread of a row has it in the end.
#include <algorithm>

#include "analysis/exchange.h"
#include "lower/addressing.h"
#include "lower/gpu/deferred_reduction.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/iteration.h"
#include "lower/gpu/registers.h"
#include "lower/iteration.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "lower/reduction_math.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

using ir::DType;
using ir::ReduceKind;
using layout::Fragment;

namespace {

// One reduction while it is lowered.
class BlockReduction {
 public:
  BlockReduction(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan, ReduceKind kind,
                 int axis, bool accumulate, thread::Block& out)
      : k_(k),
        e_(k.out.exprs),
        op_(op),
        tile_op_(*k.in.program.as<ir::TileOp>(op.stmt)),
        iteration_(*plan.iteration),
        partial_(iteration_.reduce(axis, true)),
        kind_(kind),
        axis_(axis),
        accumulate_(accumulate),
        dst_buffer_(tile_op_.operands[1].buffer),
        type_(k.in.program.buffer(dst_buffer_).type),
        to_(ops::layout_rule(tile_op_).reduction->dst_dims),
        in_parts_(plan.deferred_to && !plan.deferred_to->empty()),
        out_(out),
        x_(analysis::reduction_exchange(k.in.program, op, iteration_, value_plan(k, dst_buffer_),
                                        k.in.target)),
        join_(k, x_, kind, type_, iteration_, axis, op.path),
        chains_(std::max<int64_t>(plan.chains, 1)),
        vector_(plan.vector) {}

  void run() {
    acc_ = add_registers(k_, "partial", type_, partial_.registers() * chains_);
    combine_own();
    join_chains();
    if (in_parts_) return store_own();
    join_.combine_lanes(acc_, partial_.registers(), out_);
    if (!x_.through_scratch) return store_own();
    to_scratch();
    from_scratch();
  }

 private:
  ExprId load(MemoryId m, ExprId index) { return join_.load(m, index); }
  thread::StmtId store(MemoryId m, ExprId index, ExprId value, ExprId predicate = ExprId()) {
    return join_.store(m, index, value, predicate);
  }
  ExprId acc_index(std::vector<ExprId> point) {
    point[static_cast<size_t>(axis_)] = e_.const_int(0);
    return layout_index(k_, partial_.map(), layout::kRegister, point);
  }

  void join_chains() {
    for (int64_t r = 0; chains_ > 1 && r < partial_.registers(); ++r) {
      const ExprId own = e_.const_int(r), other = e_.const_int(r + partial_.registers());
      out_.push_back(store(acc_, own, reduction_combine(e_, kind_, load(acc_, own), load(acc_, other))));
    }
  }

  void combine_own() {
    join_.for_each_register(
        partial_.registers() * chains_,
        [&](ExprId r, thread::Block& body) {
          body.push_back(store(acc_, r, reduction_identity(e_, kind_, type_)));
        },
        out_);
    const bool memory = !in_thread_registers(k_, tile_op_.operands[0].buffer);
    const int64_t bytes = ir::dtype_bytes(k_.in.program.buffer(tile_op_.operands[0].buffer).type);
    if (k_.facts) {
      for (int64_t width = memory ? k_.in.target.vector_bytes / bytes : 1; width > 1; width /= 2)
        combine_vectors(width);
    } else if (memory && vector_ > 1 && combine_vectors(vector_)) {
      return;
    }
    emit_walk(
        k_, {iteration_, 1, op_.path},
        [&](const Nest& nest, thread::Block& body) {
          ExprId at = acc_index(nest.point);
          if (chains_ > 1) {
            const ExprId own = layout_index(k_, iteration_.map(), layout::kRegister, nest.point);
            const ExprId chain = e_.floormod(own, e_.const_int(chains_));
            at = k_.simplified(e_.add(at, e_.mul(chain, e_.const_int(partial_.registers()))));
          }
          body.push_back(combine_into(at, source(nest), nest));
        },
        out_);
  }
  ExprId source(const Nest& nest) {
    const ir::Region& src = tile_op_.operands[0];
    std::vector<ExprId> indices;
    for (size_t d = 0; d < src.offsets.size(); ++d)
      indices.push_back(k_.simplified(e_.add(lower_expr(k_, src.offsets[d]), nest.point[d])));
    return load_element(k_, src.buffer, indices, false);
  }
  thread::StmtId combine_into(ExprId at, ExprId element, const Nest& nest) {
    ExprId v = reduction_term(e_, kind_, e_.cast(type_, element));
    if (const ExprId in = both(k_, ExprId(), nest.inside))
      v = e_.select(in, v, reduction_identity(e_, kind_, type_));
    return store(acc_, at, reduction_combine(e_, kind_, load(acc_, at), v));
  }

  // Elements are fetched a vector at a time and combined one by one. False where none are.
  bool combine_vectors(int64_t width) {
    auto mark = k_.ctx.mark();
    const Nest nest = make_thread_nest(k_, iteration_, width, iteration_.shape(), false);
    const bool vector = !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
    Attempt attempt;
    if (vector) {
      const VarId lane = nest.loops.back().var;
      const DType type = k_.in.program.buffer(tile_op_.operands[0].buffer).type;
      const ExprId element = source(nest);
      const MemoryId fetched = add_registers(k_, "fetched", type, width);
      const ExprId at = e_.load(fetched, type, std::vector<ExprId>{e_.var(lane)});
      thread::Block fetch = {store(fetched, e_.var(lane), element)};
      inspect_vector(k_, nest, fetch, attempt);
      judge_vector(k_, attempt, width, op_.path);
      if (attempt.wide && attempt.legal) {
        thread::Block combine = {combine_into(acc_index(nest.point), at, nest)};
        const size_t inner = nest.loops.size() - 1;
        Nest one_by_one = nest;
        one_by_one.loops.back().form = thread::LoopForm::unrolled;
        thread::Block body = wrap(k_, nest, inner, inner + 1, std::move(fetch), op_.path);
        combine = wrap(k_, one_by_one, inner, inner + 1, std::move(combine), op_.path);
        body.insert(body.end(), combine.begin(), combine.end());
        finish_thread_nest(k_, nest, body);
        body = wrap(k_, nest, 0, inner, std::move(body), op_.path);
        out_.insert(out_.end(), body.begin(), body.end());
      }
    }
    k_.ctx.rollback(mark);
    return attempt.wide && attempt.legal;
  }

  // dst's element of a point of the source's dimensions; the axis does not count.
  std::vector<ExprId> result_element(std::span<const ExprId> point) {
    std::vector<ExprId> indices;
    for (ExprId offset : tile_op_.operands[1].offsets) indices.push_back(lower_expr(k_, offset));
    for (size_t d = 0; d < to_.size(); ++d)
      if (to_[d] >= 0) {
        ExprId& at = indices[static_cast<size_t>(to_[d])];
        at = k_.simplified(e_.add(at, point[d]));
      }
    return indices;
  }
  // Number of a result: the kept dimensions, row-major.
  ExprId result_number(std::span<const ExprId> point) {
    ExprId number = e_.const_int(0);
    for (size_t d = 0; d < point.size(); ++d)
      if (static_cast<int>(d) != axis_) number = e_.add(e_.mul(number, iteration_.shape()[d]), point[d]);
    return k_.simplified(number);
  }

  void put(const Nest& nest, std::span<const ExprId> indices, ExprId value, thread::Block& body,
           bool holders_only) {
    const ExprId predicate = both(k_, nest.writer, both(k_, ExprId(), nest.inside));
    // In memory the old result is read by the thread that writes the new one.
    const ExprId reader = in_thread_registers(k_, dst_buffer_) ? ExprId() : predicate;
    if (accumulate_) {
      const ExprId old = load_element(k_, dst_buffer_, indices, false, reader);
      value = reduction_combine(e_, kind_, reduction_term(e_, kind_, old), value);
    }
    if (in_thread_registers(k_, dst_buffer_)) {
      const FragmentView dst = fragment_view(k_, value_of(k_, dst_buffer_));
      const ExprId mine = holders_only ? holds(k_, *dst.fragment, indices) : ExprId();
      return store_register(k_, dst, indices, value, mine, body, op_.path);
    }
    body.push_back(
        store(memory_of(k_, dst_buffer_), memory_index(k_, dst_buffer_, indices), value, predicate));
  }

  void store_own() {
    bool holders_only = false;
    if (in_thread_registers(k_, dst_buffer_)) {
      const FragmentView dst = fragment_view(k_, value_of(k_, dst_buffer_));
      const auto made = analysis::result_fragment(k_.in.program, op_, iteration_);
      std::vector<int> same;
      for (int d = 0; d < dst.fragment->rank(); ++d) same.push_back(d);
      holders_only =
          made ? !dst.fragment->covers(*made, same) : dst.fragment->replicas() != dst.fragment->threads();
    }
    emit_walk(
        k_, {partial_, 1, op_.path},
        [&](const Nest& nest, thread::Block& body) {
          put(nest, result_element(nest.point), load(acc_, acc_index(nest.point)), body, holders_only);
        },
        out_);
  }

  void to_scratch() {
    join_.begin_scratch();
    ExprId part;
    const ExprId writer = join_.writer(&part);
    emit_walk(
        k_, {partial_, 1, op_.path},
        [&](const Nest& nest, thread::Block& body) {
          join_.put(writer, part, result_number(nest.point), load(acc_, acc_index(nest.point)), nest, body);
        },
        out_);
  }

  void from_scratch() {
    sum_ = add_registers(k_, "sum", type_, 1);
    const ExprId zero = e_.const_int(0);
    const plan::ValuePlan& dst = value_plan(k_, dst_buffer_);
    const bool whole = k_.in.program.tile_shape(dst_buffer_) == tile_op_.operands[1].extents;
    if (dst.fragment && whole) {
      // Each holder of the result fetches it. Source dimensions that dst does not have are of extent 1.
      return emit_walk(
          k_, {*fragment_view(k_, value_of(k_, dst_buffer_)).fragment, 1, op_.path},
          [&](const Nest& nest, thread::Block& body) {
            std::vector<ExprId> point(to_.size(), zero);
            for (size_t d = 0; d < to_.size(); ++d)
              if (to_[d] >= 0) point[d] = nest.point[static_cast<size_t>(to_[d])];
            join_.fetch(sum_, result_number(point), nest, body);
            put(nest, nest.point, load(sum_, zero), body, false);
          },
          out_);
    }
    const Fragment everywhere = Fragment::replicated(partial_.shape(), iteration_.threads());
    emit_walk(
        k_, {dst.fragment ? everywhere : partial_, 1, op_.path},
        [&](const Nest& nest, thread::Block& body) {
          join_.fetch(sum_, result_number(nest.point), nest, body);
          put(nest, result_element(nest.point), load(sum_, zero), body, dst.fragment.has_value());
        },
        out_);
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const analysis::KernelOp& op_;
  const ir::TileOp& tile_op_;
  const Fragment& iteration_;
  const Fragment partial_;  // of the thread's own results, over the source's dimensions
  const ReduceKind kind_;
  const int axis_;
  const bool accumulate_;
  const ir::BufferId dst_buffer_;
  const DType type_;
  const std::vector<int> to_;
  const bool in_parts_;  // the threads of a row meet after the loop
  thread::Block& out_;
  const analysis::ReductionExchange x_;
  DeferredReduction join_;
  const int64_t chains_;  // partial results of one result, a multiple of the results apart
  const int64_t vector_;  // elements of the source that are read at once
  MemoryId acc_, sum_;
};

}  // namespace

void OpLowering::reduce_in_block(int src, int, ReduceKind kind, int axis, bool accumulate) {
  const Fragment& iteration = *plan_.iteration;
  const ir::Region& r = tile_op_->operands[static_cast<size_t>(src)];
  if (in_thread_registers(k_, r.buffer)) {
    const Fragment& held = *fragment_view(k_, value_of(k_, r.buffer)).fragment;
    std::vector<int> same;
    for (int d = 0; d < held.rank(); ++d) same.push_back(d);
    const bool whole = held.shape() == r.extents;
    if (whole ? !held.covers(iteration, same) : held.replicas() != held.threads())
      return k_.fail(DiagCode::target_unsupported, op_.path,
                     "it reduces " + std::string(whole ? "elements" : "a part") + " of fragment '" +
                         k_.in.program.buffer(r.buffer).name + "', which is held as " + held.to_text(),
                     "copy the part into a fragment of its own, or reduce from a shared buffer");
  }
  BlockReduction(k_, op_, plan_, kind, axis, accumulate, out_).run();
}

}  // namespace tilegen::lower
