#include "lower/gpu/bulk_copies.h"

#include <algorithm>
#include <numeric>

#include "arith/prove.h"
#include "ir/annotations.h"
#include "ir/bulk_copy.h"
#include "ir/copy_groups.h"
#include "layout/tensor_tile.h"
#include "lower/addressing.h"
#include "lower/gpu/tensor.h"
#include "lower/lowering_context.h"
#include "lower/operation.h"
#include "thread/index_program.h"

namespace tilegen::lower {

namespace {

using Box = std::vector<int64_t>;

constexpr size_t kMaxDims = 5;        // of a tensor map
constexpr int64_t kMaxRounds = 4096;  // that are looked at one by one

// What the loop does, compared with what the copy engine would.
class BoxReader {
 public:
  BoxReader(LoweringContext& k, const Box& box, const ir::Loop& rounds, VarId round, thread::BulkCopy& form)
      : k_(k), e_(k.out.exprs), p_(k.in.program), box_(box), rounds_(rounds), round_(round), form_(form) {}

  std::string read() {
    if (std::any_of(box_.begin(), box_.end(), [](int64_t n) { return n < 2; }) || box_.size() > kMaxDims)
      return "the box that the annotation names is none of a tensor";
    if (*std::max_element(box_.begin(), box_.end()) > layout::kMaxBoxExtent)
      return "a box has at most " + std::to_string(layout::kMaxBoxExtent) + " elements along a dimension";
    const auto* loop = rounds_.body.size() == 1 ? p_.as<ir::Loop>(rounds_.body.front()) : nullptr;
    if (!loop || !ir::is_asynchronous(p_.stmt(rounds_.body.front())))
      return "the loop holds more than a copy";
    begin_operation(k_, rounds_.body.front());
    const ir::GuardedCopy copy = ir::guarded_copy(p_, *loop);
    if (!copy.store || p_.exprs[copy.store->value].op != ir::ExprOp::load) return "it is no copy of elements";
    if (!e_.is_const_int(k_.simplified(lower_expr(k_, rounds_.extents.front())), &count_) ||
        loop->vars.empty())
      return "its rounds are no constant";
    if (count_ < 1 || count_ > kMaxRounds) return "its rounds are no few";
    if (!k_.out.thread_var.valid() || k_.out.threads % k_.in.target.warp != 0)
      return "the block has no whole warps";
    const auto mark = k_.ctx.mark();
    const std::string why = read(*loop, *copy.store, copy.guard);
    k_.ctx.rollback(mark);
    return why;
  }

 private:
  std::string read(const ir::Loop& loop, const ir::Store& store, ExprId guard) {
    k_.ctx.bind(round_, 0, count_ - 1);
    const ExprId thread = e_.var(k_.out.thread_var);
    int64_t stride = 1, chunk = 1;
    for (size_t d = loop.vars.size() - 1; d-- > 0;) {
      int64_t extent = 1;
      p_.exprs.is_const_int(loop.extents[d], &extent);
      k_.names.vars[loop.vars[d]] =
          e_.floormod(e_.floordiv(thread, e_.const_int(stride)), e_.const_int(extent));
      stride *= extent;
    }
    p_.exprs.is_const_int(loop.extents.back(), &chunk);
    if (chunk < 1 || box_.back() % chunk != 0) return "its rows are no whole chunks";
    const VarId part = k_.out.add_var("part", ir::VarKind::loop);
    k_.ctx.bind(part, 0, chunk - 1);
    k_.names.vars[loop.vars.back()] = e_.var(part);
    varies_ = {round_, k_.out.thread_var, part};
    if (std::string why = read_threads(guard, chunk); !why.empty()) return why;
    const ExprId first = e_.const_int(form_.first), warp = e_.const_int(k_.in.target.warp);
    k_.ctx.assume(e_.le(first, thread));
    k_.ctx.assume(e_.lt(thread, e_.const_int(form_.first + form_.threads)));
    const ExprId own = e_.sub(e_.floordiv(thread, warp), e_.const_int(form_.first / k_.in.target.warp));
    coordinates_ = ir::bulk_coordinates(
        e_, box_, chunk, e_.add(e_.mul(e_.var(round_), form_.threads / k_.in.target.warp), own),
        e_.floormod(thread, warp), e_.var(part));
    for (ExprId& c : coordinates_) c = k_.simplified(c);
    return read_places(store);
  }

  // Which threads copy: whole warps behind each other, chunk by chunk of the box.
  std::string read_threads(ExprId guard, int64_t chunk) {
    const int64_t warp = k_.in.target.warp, threads = k_.out.threads;
    const int64_t chunks = std::accumulate(box_.begin(), box_.end(), int64_t{1}, std::multiplies<>()) / chunk;
    form_.first = 0;
    form_.threads = threads;
    if (!guard.valid()) return chunks == count_ * threads ? "" : "its threads do not make up the box";
    const ExprId condition = k_.simplified(lower_expr(k_, guard));
    const thread::IndexProgram holds(e_, condition);
    thread::PointValues at(k_.out.vars.size());
    const auto copies = [&](int64_t round, int64_t t) {
      at.set(round_, round);
      at.set(k_.out.thread_var, t);
      return holds.eval(at);
    };
    while (form_.first < threads && copies(0, form_.first) == 0) ++form_.first;
    for (form_.threads = 0; form_.first + form_.threads < threads; ++form_.threads)
      if (copies(0, form_.first + form_.threads) == 0) break;
    if (form_.threads % warp != 0) form_.threads = (form_.threads + warp - 1) / warp * warp;
    if (form_.first % warp != 0 || form_.threads == 0) return "its threads are no whole warps";
    for (int64_t round = 0; round < count_; ++round)
      for (int64_t t = 0; t < threads; ++t) {
        const int64_t number = round * form_.threads + t - form_.first;
        const bool wanted = form_.first <= t && t < form_.first + form_.threads && number < chunks;
        if (copies(round, t) != int64_t{wanted}) return "its threads do not make up the box";
      }
    return "";
  }

  std::string read_places(const ir::Store& store) {
    const ir::ExprNode& load = p_.exprs[store.value];
    const ir::BufferId from = load.object, to = store.buffer;
    std::vector<ExprId> source, target;
    Box from_box, to_box;
    const auto indices = p_.exprs.indices(store.value);
    if (!split({indices.begin(), indices.end()}, source, from_box) || !split(store.indices, target, to_box))
      return "its places are not known to be those of a box";
    if (std::string why = tensor_refusal(from, source, from_box); !why.empty()) return why;
    if (std::string why = tile_refusal(to, to_box); !why.empty()) return why;
    form_.load.dst = memory_of(k_, to);
    form_.load.dst_index = k_.simplified(memory_index(k_, to, target));
    const int64_t bytes = ir::dtype_bytes(p_.buffer(to).type);
    if (k_.out.memory(form_.load.dst).arena_offset % layout::kBoxAlignment != 0 ||
        arith::divisor_of(k_.ctx, form_.load.dst_index) * bytes % layout::kBoxAlignment != 0)
      return "its place in the tile is not known to be a multiple of " +
             std::to_string(layout::kBoxAlignment) + " bytes";
    form_.load.announces = true;
    form_.map = box_map(k_, from, {from_box.rbegin(), from_box.rend()});
    for (size_t d = source.size(); d-- > 0;)
      form_.load.coordinates.push_back(
          k_.simplified(tensor_coordinate(k_.ctx, source[d], lower_expr(k_, p_.buffer(from).shape[d]))));
    return "";
  }

  // Each index is the place of the box and a coordinate in it, or the same for all that is copied.
  bool split(const std::vector<ExprId>& indices, std::vector<ExprId>& places, Box& extents) {
    size_t next = 0;
    for (const ExprId i : indices) {
      ExprId index = k_.simplified(lower_expr(k_, i));
      int64_t extent = 1;
      if (varies(index)) {
        if (next == box_.size()) return false;
        const auto place = arith::exact_difference(k_.ctx, index, coordinates_[next]);
        if (!place) return false;
        index = k_.simplified(arith::from_affine(k_.ctx, *place));
        extent = box_[next++];
        if (varies(index)) return false;
      }
      places.push_back(index);
      extents.push_back(extent);
    }
    return next == box_.size();
  }
  bool varies(ExprId e) const {
    return std::any_of(varies_.begin(), varies_.end(), [&](VarId v) { return arith::depends_on(e_, e, v); });
  }

  std::string tensor_refusal(ir::BufferId id, const std::vector<ExprId>& places, const Box& extents) {
    const ir::Buffer& b = p_.buffer(id);
    const std::string tensor = "tensor '" + b.name + "'";
    const int64_t bytes = ir::dtype_bytes(b.type), unit = layout::kTensorUnit;
    int64_t dense = 1;
    if (!b.read_only) return tensor + " may be written, and is read past the caches of threads";
    if (b.optional) return tensor + " is optional, and a null address has no tensor map";
    if (b.shape.size() > kMaxDims) return tensor + " has more than 5 dimensions";
    if (!b.strides.empty() && (!p_.exprs.is_const_int(b.strides.back(), &dense) || dense != 1))
      return "the last dimension of " + tensor + " is not dense";
    if (extents.back() * bytes % unit != 0) return "a row of its box is no multiple of 16 bytes";
    if (arith::divisor_of(k_.ctx, places.back()) * bytes % unit != 0)
      return "its place along the dense dimension of " + tensor +
             " is not known to be a multiple of 16 bytes";
    return "";
  }

  // Rows behind each other, and nothing of the tile between them.
  std::string tile_refusal(ir::BufferId id, const Box& extents) {
    const std::vector<int64_t> shape = p_.tile_shape(id);
    const auto& layout = value_plan(k_, id).memory;
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
    const auto in_order = [&](const layout::Digit& digit) {
      return digit.dim >= 0 && digit.stride == strides[static_cast<size_t>(digit.dim)] * digit.weight;
    };
    if (!layout || !layout->swizzle().none() ||
        !std::all_of(layout->digits().begin(), layout->digits().end(), in_order))
      return "the tile's layout is not its elements in row-major order";
    bool inside = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (inside && extents[d] != shape[d]) return "the box is no dense part of the tile";
      inside = inside || extents[d] > 1;
    }
    return "";
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const ir::Program& p_;
  const Box& box_;
  const ir::Loop& rounds_;
  const VarId round_;
  thread::BulkCopy& form_;
  int64_t count_ = 0;
  std::vector<VarId> varies_;
  std::vector<ExprId> coordinates_;
};

}  // namespace

void note_bulk_copy(LoweringContext& k, ir::StmtId loop, thread::StmtId lowered) {
  const Box box = ir::bulk_box(k.in.program.stmt(loop));
  if (box.empty() || !k.in.target.tensor_copy || k.facts || k.specialised()) return;
  thread::BulkCopy form;
  form.loop = lowered;
  const VarId round = std::get<thread::Loop>(k.out.stmts[lowered.value].node).var;
  form.refusal = BoxReader(k, box, *k.in.program.as<ir::Loop>(loop), round, form).read();
  k.out.bulk_copies.push_back(std::move(form));
}

}  // namespace tilegen::lower
