// Reductions of a block of many threads: each thread combines its own elements, lanes of a warp meet by butterflies,
// what is left meets in a scratch slice. There the holders of the result fetch it, whatever its layout; without scratch
// every thread of a row has it in the end.
#include <algorithm>

#include "lower/kernel_lowering.h"
#include "lower/reduction_math.h"
#include "ops/op.h"

namespace tilegen::lower {

using ir::DType;
using ir::ReduceKind;
using layout::Fragment;

namespace {

constexpr int64_t kUnrolledParts = 16;  // partial results that are fetched without a loop

}  // namespace

// One reduction while it is lowered.
class BlockReduction {
 public:
  BlockReduction(KernelLowering& k, const infer::KernelOp& op, const Fragment& iteration, ReduceKind kind, int axis,
                 bool accumulate, thread::Block& out)
      : k_(k),
        e_(k.out_.exprs),
        op_(op),
        tile_op_(*k.p_.as<ir::TileOp>(op.stmt)),
        iteration_(iteration),
        partial_(iteration.reduce(axis, true)),
        kind_(kind),
        axis_(axis),
        accumulate_(accumulate),
        dst_buffer_(tile_op_.operands[1].buffer),
        type_(k.p_.buffer(dst_buffer_).type),
        to_(ops::reduce_dst_dims(tile_op_)),
        out_(out) {}

  void run() {
    const plan::ValuePlan& dst = k_.value_plan(dst_buffer_);
    x_ = schedule::reduction_exchange(k_.p_, op_, iteration_, dst, k_.target_);
    acc_ = k_.add_registers("partial", type_, partial_.registers());
    combine_own();
    combine_lanes();
    if (!x_.through_scratch) return store_own();
    to_scratch();
    from_scratch();
  }

 private:
  ExprId load(MemoryId m, ExprId index) { return e_.load(m, type_, std::vector<ExprId>{index}); }
  thread::StmtId store(MemoryId m, ExprId index, ExprId value, ExprId predicate = ExprId()) {
    return k_.out_.add(thread::Store{m, index, value, predicate, false, ExprId()}, op_.path);
  }
  // for r in 0 .. registers of the partial results, unrolled
  void for_each_partial(const std::function<void(ExprId r, thread::Block& body)>& emit) {
    const VarId var = k_.out_.add_var("r" + std::to_string(k_.out_.vars.size()), ir::VarKind::loop);
    const int64_t registers = partial_.registers();
    thread::Block body;
    emit(registers == 1 ? e_.const_int(0) : e_.var(var), body);
    if (registers > 1)
      body = {k_.out_.add(thread::Loop{var, e_.const_int(registers), thread::LoopForm::unrolled, std::move(body)}, op_.path)};
    out_.insert(out_.end(), body.begin(), body.end());
  }
  ExprId acc_index(std::vector<ExprId> point) {
    point[static_cast<size_t>(axis_)] = e_.const_int(0);
    return k_.layout_index(partial_.map(), layout::kRegister, point);
  }

  void combine_own() {
    for_each_partial([&](ExprId r, thread::Block& body) {
      body.push_back(store(acc_, r, reduction_identity(e_, kind_, type_)));
    });
    const bool memory = !k_.in_thread_registers(tile_op_.operands[0].buffer);
    const int64_t bytes = ir::dtype_bytes(k_.p_.buffer(tile_op_.operands[0].buffer).type);
    for (int64_t width = k_.target_.vector_bytes / bytes; memory && width > 1; width /= 2)
      if (combine_vectors(width)) return;
    k_.emit_walk({iteration_, 1, false, op_.path},
                 [&](const Nest& nest, thread::Block& body) {
                   body.push_back(combine_into(acc_index(nest.point), source(nest), nest));
                 },
                 out_);
  }
  ExprId source(const Nest& nest) {
    const ir::Region& src = tile_op_.operands[0];
    std::vector<ExprId> indices;
    for (size_t d = 0; d < src.offsets.size(); ++d)
      indices.push_back(k_.simplified(e_.add(k_.lower_expr(src.offsets[d]), nest.point[d])));
    return k_.load_element(src.buffer, indices, false);
  }
  thread::StmtId combine_into(ExprId at, ExprId element, const Nest& nest) {
    ExprId v = reduction_term(e_, kind_, e_.cast(type_, element));
    if (const ExprId in = k_.both(ExprId(), nest.inside)) v = e_.select(in, v, reduction_identity(e_, kind_, type_));
    return store(acc_, at, reduction_combine(e_, kind_, load(acc_, at), v));
  }

  // Elements are fetched a vector at a time and combined one by one. False where vectors are not legal.
  bool combine_vectors(int64_t width) {
    auto mark = k_.ctx_.mark();
    const Nest nest = k_.make_thread_nest(iteration_, width, iteration_.shape(), false);
    const bool vector = !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
    KernelLowering::Attempt attempt;
    if (vector) {
      const VarId lane = nest.loops.back().var;
      const DType type = k_.p_.buffer(tile_op_.operands[0].buffer).type;
      const ExprId element = source(nest);
      const MemoryId fetched = k_.add_registers("fetched", type, width);
      const ExprId at = e_.load(fetched, type, std::vector<ExprId>{e_.var(lane)});
      thread::Block fetch = {store(fetched, e_.var(lane), element)};
      k_.inspect_vector(nest, fetch, attempt);
      if (attempt.wide && attempt.legal) {
        thread::Block combine = {combine_into(acc_index(nest.point), at, nest)};
        const size_t inner = nest.loops.size() - 1;
        Nest one_by_one = nest;
        one_by_one.loops.back().form = thread::LoopForm::unrolled;
        thread::Block body = k_.wrap(nest, inner, inner + 1, std::move(fetch), op_.path);
        combine = k_.wrap(one_by_one, inner, inner + 1, std::move(combine), op_.path);
        body.insert(body.end(), combine.begin(), combine.end());
        k_.finish_thread_nest(nest, body);
        body = k_.wrap(nest, 0, inner, std::move(body), op_.path);
        out_.insert(out_.end(), body.begin(), body.end());
      }
    }
    k_.ctx_.rollback(mark);
    return attempt.wide && attempt.legal;
  }

  void combine_lanes() {
    if (x_.butterflies.empty()) return;
    const MemoryId other = k_.add_registers("other", type_, 1);
    const ExprId zero = e_.const_int(0);
    for (int64_t mask : x_.butterflies)
      for_each_partial([&](ExprId r, thread::Block& body) {
        body.push_back(k_.out_.add(
            thread::Shuffle{thread::Shuffle::Mode::butterfly, other, zero, load(acc_, r), e_.const_int(mask)}, op_.path));
        body.push_back(store(acc_, r, reduction_combine(e_, kind_, load(acc_, r), load(other, zero))));
      });
  }

  // dst's element of a point of the source's dimensions; the axis does not count.
  std::vector<ExprId> result_element(std::span<const ExprId> point) {
    std::vector<ExprId> indices;
    for (ExprId offset : tile_op_.operands[1].offsets) indices.push_back(k_.lower_expr(offset));
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

  void put(const Nest& nest, std::span<const ExprId> indices, ExprId value, thread::Block& body, bool holders_only) {
    const ExprId predicate = k_.both(nest.writer, k_.both(ExprId(), nest.inside));
    // In memory the old result is read by the thread that writes the new one.
    const ExprId reader = k_.in_thread_registers(dst_buffer_) ? ExprId() : predicate;
    if (accumulate_) value = reduction_combine(e_, kind_, k_.load_element(dst_buffer_, indices, false, reader), value);
    if (k_.in_thread_registers(dst_buffer_)) {
      const Held dst = k_.held(k_.value_of(dst_buffer_));
      const ExprId mine = holders_only ? k_.holds(*dst.fragment, indices) : ExprId();
      return k_.store_register(dst, indices, value, mine, body, op_.path);
    }
    body.push_back(store(k_.memory_of(dst_buffer_), k_.memory_index(dst_buffer_, indices), value, predicate));
  }

  void store_own() {
    bool holders_only = false;
    if (k_.in_thread_registers(dst_buffer_)) {
      const Held dst = k_.held(k_.value_of(dst_buffer_));
      const auto made = schedule::result_fragment(k_.p_, op_, iteration_);
      std::vector<int> same;
      for (int d = 0; d < dst.fragment->rank(); ++d) same.push_back(d);
      holders_only = made ? !dst.fragment->covers(*made, same) : dst.fragment->replicas() != dst.fragment->threads();
    }
    k_.emit_walk({partial_, 1, false, op_.path},
                 [&](const Nest& nest, thread::Block& body) {
                   put(nest, result_element(nest.point), load(acc_, acc_index(nest.point)), body, holders_only);
                 },
                 out_);
  }

  // Of the threads with the same partial result one writes: first of the copies, first of the lanes that have met.
  ExprId partial_writer(ExprId* part) {
    const KernelLowering::ThreadDigits threads = k_.thread_digits(iteration_);
    ExprId writer = threads.reached;
    *part = e_.const_int(0);
    int64_t scale = 1;
    auto is_zero = [&](ExprId v) { return k_.simplified(e_.binary(ir::ExprOp::eq, v, e_.const_int(0))); };
    for (size_t i = threads.digits.size(); i-- > 0;) {
      const auto& t = threads.digits[i];
      if (t.digit.dim == layout::kReplica) writer = k_.both(writer, is_zero(t.value));
      if (t.digit.dim != axis_) continue;
      for (const auto& p : x_.partials) {
        if (p.digit.stride != t.digit.stride) continue;
        if (p.reached > 1) writer = k_.both(writer, is_zero(e_.floormod(t.value, e_.const_int(p.reached))));
        if (p.reached == p.digit.extent) continue;
        *part = e_.add(*part, e_.mul(e_.floordiv(t.value, e_.const_int(p.reached)), scale));
        scale *= p.digit.extent / p.reached;
      }
    }
    *part = k_.simplified(*part);
    return writer;
  }

  void to_scratch() {
    scratch_ = k_.scratch(op_.path, type_, x_.scratch_elements());
    ExprId part;
    const ExprId writer = partial_writer(&part);
    k_.emit_walk({partial_, 1, false, op_.path},
                 [&](const Nest& nest, thread::Block& body) {
                   const ExprId at = k_.simplified(e_.add(e_.mul(part, x_.results), result_number(nest.point)));
                   body.push_back(store(scratch_, at, load(acc_, acc_index(nest.point)),
                                        k_.both(writer, k_.both(ExprId(), nest.inside))));
                 },
                 out_);
  }

  // Combines the partial results of one element into `sum_`.
  void fetch(const Nest& nest, std::span<const ExprId> point, thread::Block& body) {
    const ExprId zero = e_.const_int(0), number = result_number(point);
    auto part = [&](ExprId p) {
      std::vector<ExprId> operands = {k_.simplified(e_.add(e_.mul(p, x_.results), number))};
      if (const ExprId in = k_.both(ExprId(), nest.inside)) operands.push_back(in);
      return e_.load(scratch_, type_, operands);
    };
    body.push_back(store(sum_, zero, part(zero)));
    if (x_.parts == 1) return;
    const VarId var = k_.out_.add_var("p" + std::to_string(k_.out_.vars.size()), ir::VarKind::loop);
    k_.ctx_.bind(var, 0, x_.parts - 2);
    const thread::LoopForm form = x_.parts <= kUnrolledParts ? thread::LoopForm::unrolled : thread::LoopForm::serial;
    const ExprId next = reduction_combine(e_, kind_, load(sum_, zero), part(e_.add(e_.var(var), 1)));
    body.push_back(k_.out_.add(thread::Loop{var, e_.const_int(x_.parts - 1), form, {store(sum_, zero, next)}}, op_.path));
  }

  void from_scratch() {
    sum_ = k_.add_registers("sum", type_, 1);
    const ExprId zero = e_.const_int(0);
    const plan::ValuePlan& dst = k_.value_plan(dst_buffer_);
    const bool whole = k_.p_.tile_shape(dst_buffer_) == tile_op_.operands[1].extents;
    if (dst.fragment && whole) {
      // Each holder of the result fetches it. Source dimensions that dst does not have are of extent 1.
      return k_.emit_walk({*k_.held(k_.value_of(dst_buffer_)).fragment, 1, false, op_.path},
                          [&](const Nest& nest, thread::Block& body) {
                            std::vector<ExprId> point(to_.size(), zero);
                            for (size_t d = 0; d < to_.size(); ++d)
                              if (to_[d] >= 0) point[d] = nest.point[static_cast<size_t>(to_[d])];
                            fetch(nest, point, body);
                            put(nest, nest.point, load(sum_, zero), body, false);
                          },
                          out_);
    }
    const Fragment everywhere = Fragment::replicated(partial_.shape(), iteration_.threads());
    k_.emit_walk({dst.fragment ? everywhere : partial_, 1, false, op_.path},
                 [&](const Nest& nest, thread::Block& body) {
                   fetch(nest, nest.point, body);
                   put(nest, result_element(nest.point), load(sum_, zero), body, dst.fragment.has_value());
                 },
                 out_);
  }

  KernelLowering& k_;
  ir::ExprPool& e_;
  const infer::KernelOp& op_;
  const ir::TileOp& tile_op_;
  const Fragment& iteration_;
  const Fragment partial_;  // of the thread's own results, over the source's dimensions
  const ReduceKind kind_;
  const int axis_;
  const bool accumulate_;
  const ir::BufferId dst_buffer_;
  const DType type_;
  const std::vector<int> to_;
  thread::Block& out_;
  schedule::ReductionExchange x_;
  MemoryId acc_, scratch_, sum_;
};

void OpLowering::reduce_in_block(int src, int, ReduceKind kind, int axis, bool accumulate) {
  const Fragment& iteration = *plan_.iteration;
  const ir::Region& r = tile_op_->operands[static_cast<size_t>(src)];
  if (k_.in_thread_registers(r.buffer)) {
    const Fragment& held = *k_.held(k_.value_of(r.buffer)).fragment;
    std::vector<int> same;
    for (int d = 0; d < held.rank(); ++d) same.push_back(d);
    const bool whole = held.shape() == r.extents;
    if (whole ? !held.covers(iteration, same) : held.replicas() != held.threads())
      return k_.fail(DiagCode::target_unsupported, op_.path,
                     "it reduces " + std::string(whole ? "elements" : "a part") + " of fragment '" +
                         k_.p_.buffer(r.buffer).name + "', which is held as " + held.to_text(),
                     "copy the part into a fragment of its own, or reduce from a shared buffer");
  }
  BlockReduction(k_, op_, iteration, kind, axis, accumulate, out_).run();
}

}  // namespace tilegen::lower
