#include "cost/op_work.h"

#include <algorithm>
#include <cmath>

#include "analysis/alternation.h"
#include "analysis/exchange.h"
#include "analysis/neighbour_accesses.h"
#include "analysis/warpgroup_operand.h"
#include "cost/conversion_work.h"
#include "cost/expression_work.h"
#include "cost/product_work.h"
#include "ir/op_kinds.h"
#include "layout/bank_model.h"
#include "layout/tensor_tile.h"
#include "support/checked.h"

namespace tilegen::cost {

using analysis::KernelOp;
using analysis::OpAccess;
using layout::Digit;
using layout::Fragment;
using plan::Engine;

namespace {

// Fitted as those of kernel_walk.cpp: what a byte of a line that is fetched for nothing costs, of one that is
// wanted (rows of 64 bytes in GEMM); issue slots of a warp for an op, however small: its instructions beside
// those for elements, and results that they wait for (attention of small tiles).
constexpr double kPartOfLine = 0.518, kOpInstructions = 14.7;

// Of a wave, beside a copy that goes to shared memory in the order of lanes: its addresses on both sides,
// whether it is in bounds, and where the first lane's word goes (of the code of gfx942).
constexpr double kLaneOrderInstructions = 7;

double as_double(int64_t v) { return static_cast<double>(v); }

// Rows of a tensor are no whole lines apart.
bool begins_inside_lines(const PlannedKernel& k, const ir::Buffer& b) {
  if (b.shape.size() < 2) return false;
  const size_t outer = b.shape.size() - 2;
  const auto stride = k.sizes.value(b.strides.empty() ? b.shape.back() : b.strides[outer]);
  return stride && *stride * ir::dtype_bytes(b.type) % k.t.line_bytes != 0;
}

// Of `bytes` in rows of so many: what is left of a line is fetched in part.
double served_bytes(const PlannedKernel& k, const ir::Buffer& b, double bytes, double row) {
  const auto line = as_double(k.t.line_bytes);
  const double lines =
      (std::ceil(row / line) + (begins_inside_lines(k, b) ? 1 : 0)) * line / std::max(row, 1.0);
  return bytes * (1 + kPartOfLine * (std::min(lines, 4.0) - 1));
}

int64_t region_elements(const ir::Region& r) {
  int64_t n = 1;
  for (int64_t extent : r.extents) n *= extent;
  return n;
}

// Threads of an op that is spread over fragments' registers.
class ThreadOp {
 public:
  ThreadOp(const PlannedKernel& k, const KernelOp& op) : k_(k), op_(op), plan_(k.plan(op)) {
    registers_ = plan_.iteration ? as_double(plan_.iteration->registers()) : own_share();
  }

  OpWork work() {
    const auto* loop = k_.p.as<ir::Loop>(op_.stmt);
    if (loop)
      out_.work +=
          loop_work(k_.p, *loop, iteration(), k_.threads(), plan_.unmasked_version.value_or(false), k_.t);
    for (size_t i = 0; i < op_.accesses.size(); ++i) access(i);
    if (!loop) issue(registers_ * moves());
    if (!loop && converts()) convert(0.5 * registers_);
    if (plan_.skip_if_identity) out_.work *= 0.25;
    return out_;
  }

 private:
  const Fragment* iteration() const { return plan_.iteration ? &*plan_.iteration : nullptr; }
  double own_share() const {
    double points = 1;
    for (int64_t extent : op_.view.extents) points *= as_double(extent);
    return std::max(1.0, points / as_double(k_.threads()));
  }
  double warps() const { return as_double(ceil_div(k_.threads(), int64_t{k_.t.warp})); }
  // Of a thread.
  void issue(double instructions) { out_.work[Pipe::issue] += instructions * warps() / k_.t.schedulers; }
  void convert(double elements) {
    issue(elements);
    out_.work[Pipe::convert] += elements * warps() * k_.t.warp / k_.t.convert_lanes;
  }

  bool in_registers(const OpAccess& a) const {
    return a.value.valid() && k_.value(a.value).fragment.has_value();
  }
  // Instructions an element takes beside its accesses: a move between registers.
  double moves() const {
    return std::all_of(op_.accesses.begin(), op_.accesses.end(),
                       [&](const OpAccess& a) { return in_registers(a); })
               ? 1
               : 0;
  }
  bool converts() const {
    ir::DType first = ir::DType::none;
    for (const OpAccess& a : op_.accesses) {
      const ir::DType type = k_.p.buffer(a.buffer).type;
      if (first != ir::DType::none && type != first) return true;
      first = type;
    }
    return false;
  }

  // Calls `visit` with where each lane of the first warp is at its first point.
  template <class Visit>
  void for_each_lane(Visit&& visit) const {
    std::vector<int64_t> point(op_.view.extents.size());
    for (int64_t lane = 0; lane < std::min<int64_t>(k_.t.warp, k_.threads()); ++lane) {
      std::fill(point.begin(), point.end(), 0);
      for (const Digit& d : iteration()->map().digits())
        if (d.output == layout::kThread && d.dim >= 0 && d.stride > 0)
          point[static_cast<size_t>(d.dim)] += lane / d.stride % d.extent * d.weight;
      visit(point);
    }
  }

  // Of one access of a warp, rows of the tensor lying apart.
  double lines(const ops::ElementAccess& view, int64_t bytes, double least) const {
    const bool irregular =
        view.any_unknown() && (view.names.empty() || view.is_unknown(view.names.size() - 1));
    if (!iteration() || irregular) return irregular ? as_double(k_.t.warp) : least;
    const size_t rank = view.dim_of.size();
    std::vector<int64_t> touched;  // lines, by their indices
    for_each_lane([&](const std::vector<int64_t>& point) {
      const size_t own = touched.size();
      for (size_t d = 0; d < rank; ++d) touched.push_back(row_of(view, d, point));
      if (rank > 0) touched.back() = touched.back() * bytes / k_.t.line_bytes;
      for (size_t at = own; rank > 0 && at > 0; at -= rank)  // a neighbour's first
        if (std::equal(&touched[own], &touched[own] + rank, &touched[at - rank])) return touched.resize(own);
    });
    return std::max(least, rank == 0 ? 1 : as_double(static_cast<int64_t>(touched.size() / rank)));
  }

  // Of an index that memory has, another one for each point that its own dimensions tell apart.
  static int64_t row_of(const ops::ElementAccess& view, size_t d, const std::vector<int64_t>& point) {
    if (!view.is_unknown(d)) return view.index_at(d, point);
    int64_t row = 0;
    for (size_t k = 0; k < point.size(); ++k)
      if ((view.names[d] >> k & 1) != 0) row = (row << 20) + point[k];
    return row;
  }

  // Bytes of a row of the tensor that the op's points name.
  double row_bytes(const ops::ElementAccess& view, int64_t bytes) const {
    const int walked = view.along_last();
    return as_double(walked < 0 ? bytes : bytes * op_.view.extents[static_cast<size_t>(walked)]);
  }

  void access(size_t i) {
    const OpAccess& a = op_.accesses[i];
    const analysis::JoinedAccess joined = i < joined_.size() ? joined_[i] : analysis::JoinedAccess();
    if (in_registers(a) || joined.elements == 0) return;
    const ops::ElementAccess& view = op_.view.accesses[i];
    const ir::Buffer& buffer = k_.p.buffer(a.buffer);
    const int64_t bytes = ir::dtype_bytes(buffer.type);
    const bool walks = view.along_last() >= 0, together = joined.elements > 1;
    const int64_t vector = together || !walks ? joined.elements : std::max<int64_t>(1, plan_.vector);
    const bool uniform =
        std::all_of(view.dim_of.begin(), view.dim_of.end(), [](int d) { return d == ops::kUniformIndex; });
    const double accesses =
        uniform ? 1 : registers_points(view) / (walks && !together ? as_double(vector) : 1);
    const bool by_lanes = plan_.engine == Engine::async_copy && k_.t.copies_in_lane_order;
    issue(by_lanes && !a.value.valid() ? accesses * (1 + kLaneOrderInstructions) : accesses);
    const double warp_bytes = as_double(bytes * vector * k_.t.warp);
    if (buffer.scope == ir::MemScope::global) {
      const double least = std::max(1.0, warp_bytes / as_double(k_.t.line_bytes)),
                   touched = uniform            ? 1
                             : joined.continued ? least
                                                : lines(view, bytes, least),
                   row = joined.continued ? as_double(bytes * vector * op_.view.extents.back())
                                          : row_bytes(view, bytes * (together ? vector : 1));
      out_.work[Pipe::global] += accesses * warps() * touched;
      out_.least_lines += accesses * warps() * std::min(touched, least);
      const double moved = own_elements(view) * as_double(bytes * joined.elements) *
                           std::max(1.0, as_double(k_.t.fetch_bytes) / row);
      (a.write ? out_.work.written_bytes : out_.work.read_bytes) += moved;
      out_.work.l2_bytes += served_bytes(k_, buffer, moved, row);
      if (!a.write) out_.reads_tensor = true;
      return;
    }
    out_.work[Pipe::shared] += accesses * warps() * wavefronts(i, view, vector);
    out_.least_wavefronts +=
        accesses * warps() * std::max(1.0, warp_bytes / as_double(k_.t.banks.row_bytes()));
    if (!a.write) out_.work.latency = std::max(out_.work.latency, k_.t.shared_latency);
  }

  // Elements of the buffer that the op's points name.
  double own_elements(const ops::ElementAccess& view) const {
    double n = 1;
    for (size_t d = 0; d < op_.view.extents.size(); ++d)
      if (view.depends_on(static_cast<int>(d))) n *= as_double(op_.view.extents[d]);
    return n;
  }
  // Of a thread's points, those at which the access differs.
  double registers_points(const ops::ElementAccess& view) const {
    if (!iteration()) return registers_;
    double points = 1;
    for (const Digit& d : iteration()->map().digits())
      if (d.output == layout::kRegister && d.dim >= 0 && view.depends_on(d.dim))
        points *= as_double(d.extent);
    return points;
  }

  // Of one access of a warp: its first.
  double wavefronts(size_t i, const ops::ElementAccess& view, int64_t vector) const {
    const ir::Buffer& buffer = k_.p.buffer(op_.accesses[i].buffer);
    const int bytes = ir::dtype_bytes(buffer.type) * static_cast<int>(vector);
    const double least = std::max(1.0, as_double(bytes * k_.t.warp) / as_double(k_.t.banks.row_bytes()));
    const auto& memory = op_.accesses[i].value.valid() ? k_.value(op_.accesses[i].value).memory
                                                       : std::optional<layout::Layout>();
    if (!iteration() || !memory || (i < joined_.size() && joined_[i].continued)) return least;
    std::vector<int64_t> addresses, index;
    for_each_lane([&](const std::vector<int64_t>& point) {
      index.clear();
      for (size_t b = 0; b < view.dim_of.size(); ++b) {
        const int64_t at = view.index_at(b, point);
        index.push_back(std::min(at, memory->shape()[b] - 1));
      }
      addresses.push_back(memory->offset(index) * ir::dtype_bytes(buffer.type));
    });
    return as_double(layout::wavefronts(addresses, bytes, k_.t.banks));
  }

  const PlannedKernel& k_;
  const KernelOp& op_;
  const plan::OpPlan& plan_;
  double registers_ = 1;
  const std::vector<analysis::JoinedAccess> joined_ =
      analysis::joined_accesses(k_.p, op_, plan_, k_.schedule.values, k_.t.vector_bytes);
  OpWork out_;
};

OpWork reduction(const PlannedKernel& k, const KernelOp& op) {
  const plan::OpPlan& plan = k.plan(op);
  const auto& tile = *k.p.as<ir::TileOp>(op.stmt);
  OpWork out;
  if (!plan.iteration) return out;
  const double warps = as_double(ceil_div(k.threads(), int64_t{k.t.warp}));
  const int axis = ops::layout_rule(tile).reduction->axis;
  const double own = as_double(plan.iteration->registers()),
               results = as_double(plan.iteration->reduce(axis, true).registers());
  double instructions = own;
  const analysis::OpAccess& from = op.accesses[0];
  if (!k.value(from.value).fragment) {
    instructions += own;
    out.work[Pipe::shared] += own * warps;
  }
  if (!plan.deferred_to) {
    const auto exchange =
        analysis::reduction_exchange(k.p, op, *plan.iteration, k.value(op.accesses[1].value), k.t);
    const auto steps = as_double(static_cast<int64_t>(exchange.butterflies.size()));
    instructions += 2 * steps * results;
    out.work[Pipe::shared] += steps * results * warps;
    if (exchange.through_scratch) {
      const double parts = as_double(exchange.parts);
      instructions += results * (1 + 2 * parts);
      out.work[Pipe::shared] += results * (1 + parts) * warps;
      out.work.latency += 2 * k.t.meeting_latency + 2 * k.t.shared_latency;
    }
  }
  out.work[Pipe::issue] = instructions * warps / k.t.schedulers;
  out.work[Pipe::plain] = own * warps * k.t.warp / k.t.plain_lanes;
  out.work.latency += 4 * own / std::max(1.0, results) / as_double(std::max<int64_t>(1, plan.chains) * 4);
  return out;
}

// A and B as the instructions see them.
OpWork warpgroup_op(const PlannedKernel& k, const KernelOp& op, const ir::TileOp& tile) {
  const plan::OpPlan& plan = k.plan(op);
  OpWork out;
  out.place = OpPlace::units;
  const auto found = target::find_warpgroup_atom(k.t, plan.atom);
  if (!found) return out;
  analysis::GemmShape s = analysis::gemm_shape(k.p, tile);
  const bool swapped = analysis::swaps_operands(s, k.t);
  WarpgroupSplit x{found->atom, plan.warps_m / k.t.warpgroup_warps(), plan.warps_n, found->n};
  if (swapped) {
    std::swap(s.m, s.n);
    std::swap(s.a, s.b);
    x.m = plan.warps_n / k.t.warpgroup_warps(), x.n = plan.warps_m;
  }
  x.m = std::max<int64_t>(1, x.m), x.n = std::max<int64_t>(1, x.n);
  for (int side = 0; side < 2; ++side) {
    const int operand = swapped ? 1 - side : side;
    const ir::Region& r = tile.operands[static_cast<size_t>(operand)];
    const bool shared = k.p.buffer(r.buffer).scope == ir::MemScope::shared;
    if (side == 0) x.a_shared = shared;
    x.copied[side] =
        shared &&
        analysis::needs_k_major_copy(
            *found->atom,
            analysis::matrix_dims(
                k.p, r, tile.flag(operand == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b)),
            operand);
  }
  const ProductWork w = warpgroup_product(s, x, k.t);
  out.work[Pipe::tensor] = w.product;
  out.work[Pipe::shared] = w.loads;
  out.work[Pipe::plain] = w.sums;
  out.work[Pipe::issue] = w.sums + 12 * as_double(k.threads()) / k.t.warp / k.t.schedulers;
  return out;
}

OpWork warp_op(const PlannedKernel& k, const KernelOp& op, const ir::TileOp& tile) {
  const plan::OpPlan& plan = k.plan(op);
  OpWork out;
  const target::MmaAtom* atom = target::find_mma_atom(k.t, plan.atom);
  if (!atom) return out;
  const analysis::GemmShape s = analysis::gemm_shape(k.p, tile);
  const int64_t warps = k.threads() / k.t.warp;
  const analysis::WarpGrid g{std::max<int64_t>(1, plan.warps_m), std::max<int64_t>(1, plan.warps_n),
                             std::max<int64_t>(1, warps / std::max<int64_t>(1, plan.warps_m * plan.warps_n))};
  OperandSource from[2];
  for (int side = 0; side < 2; ++side) {
    const ir::Region& r = tile.operands[static_cast<size_t>(side)];
    const bool transpose = tile.flag(side == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b);
    from[side] = {k.p.buffer(r.buffer).scope == ir::MemScope::shared,
                  analysis::k_is_contiguous(analysis::matrix_dims(k.p, r, transpose), side)};
  }
  const ProductWork w = warp_product(s, *atom, g, from, k.t);
  const analysis::WarpTile each = analysis::warp_tile(s, *atom, g);
  const double instructions = as_double(each.m * each.n * each.k * warps);
  const bool lanes = atom->unit != target::MmaUnit::matrix;
  out.work[lanes ? Pipe::plain : Pipe::tensor] = w.product;
  out.work[Pipe::shared] = w.loads;
  out.work[Pipe::issue] =
      (lanes ? w.product : instructions / k.t.schedulers) + w.loads / 4 / k.t.schedulers * 1.5 + w.sums;
  out.work.latency = k.t.shared_latency + 33;
  return out;
}

OpWork engine_copy(const PlannedKernel& k, const KernelOp& op, const ir::TileOp& tile) {
  OpWork out;
  const ir::Region &from = tile.operands[0], &to = tile.operands[1];
  const bool loads = k.p.buffer(from.buffer).scope == ir::MemScope::global;
  const ir::Region& tensor = loads ? from : to;
  const double elements = as_double(region_elements(tensor));
  const double bytes = elements * ir::dtype_bytes(k.p.buffer(tensor.buffer).type);
  out.place = loads ? OpPlace::engine : OpPlace::threads;
  (loads ? out.work.read_bytes : out.work.written_bytes) = bytes;
  const auto row = as_double(tensor.extents.empty() ? 1 : tensor.extents.back()) *
                   ir::dtype_bytes(k.p.buffer(tensor.buffer).type);
  // In boxes of at most the widest swizzle.
  out.work.l2_bytes = served_bytes(k, k.p.buffer(tensor.buffer), bytes,
                                   std::min(row, as_double(std::end(layout::kBoxSwizzles)[-1])));
  if (loads) return out;
  // Out of a fragment: converted, staged, read by the engine.
  const bool staged = op.accesses[0].value.valid() && k.value(op.accesses[0].value).fragment.has_value();
  if (staged) {
    if (k.p.buffer(from.buffer).type != k.p.buffer(to.buffer).type)
      out.work[Pipe::convert] = 0.5 * elements / k.t.convert_lanes;
    out.work[Pipe::issue] = elements / k.t.warp / k.t.schedulers;
    out.work.latency = 4 * k.t.meeting_latency;
  }
  out.work[Pipe::shared] = (staged ? 2 : 1) * bytes / k.t.shared_bytes_per_cycle;
  return out;
}

}  // namespace

int64_t warpgroups_by_turns(const PlannedKernel& k, const KernelOp& op) {
  const auto& iteration = k.plan(op).iteration;
  if (!iteration || !analysis::has_turns(k.schedule, op.path)) return 1;
  for (const layout::Digit& d : iteration->map().digits())
    if (d.dim == layout::kReplica && d.stride == k.t.warpgroup) return d.extent;
  return 1;
}

OpWork op_work(const PlannedKernel& k, const KernelOp& op) {
  const plan::OpPlan& plan = k.plan(op);
  const auto* tile = k.p.as<ir::TileOp>(op.stmt);
  if (plan.elided.value_or(false)) return {};
  OpWork out;
  if (plan.engine == Engine::tensor_copy && tile)
    out = engine_copy(k, op, *tile);
  else if (plan.engine == Engine::warpgroup_mma && tile)
    out = warpgroup_op(k, op, *tile);
  else if (op.form == analysis::OpForm::contraction && tile)
    out = warp_op(k, op, *tile);
  else if (op.form == analysis::OpForm::reduction && tile)
    out = reduction(k, op);
  else
    out = ThreadOp(k, op).work();
  if (plan.engine == Engine::async_copy || plan.engine == Engine::register_copy) {
    out.place = OpPlace::background;
    out.reads_tensor = false;
  }
  if (out.place == OpPlace::threads)
    out.work[Pipe::issue] += kOpInstructions * as_double(k.threads()) / k.t.warp / k.t.schedulers;
  count_conversions(k, op, out);
  out.work *= 1 / as_double(warpgroups_by_turns(k, op));
  return out;
}

}  // namespace tilegen::cost
