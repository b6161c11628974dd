#include "schedule/memory/tile_accesses.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "analysis/loads.h"
#include "analysis/neighbour_accesses.h"
#include "analysis/projection.h"
#include "infer/access_cost.h"
#include "ir/store_parts.h"
#include "ops/op.h"
#include "schedule/memory/index_value.h"
#include "support/checked.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::OpId;
using analysis::ValueId;
using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kReplica;

namespace {

constexpr int64_t kMaxRequests = 64;  // of one access that are listed

// Loops over what one thread does, and the thread digits, as lowering makes them of an iteration layout.
class Walk {
 public:
  Walk(const Fragment& f, int64_t vector) : shape_(f.shape()), threads_(f.threads()) {
    for (const Digit& d : f.map().digits()) {
      if (d.output == layout::kThread && d.stride > 0) digits_.push_back(d);
      if (d.dim != kReplica && (d.output == kRegister || d.stride == 0)) loops_.push_back(d);
    }
    std::sort(digits_.begin(), digits_.end(),
              [](const auto& a, const auto& b) { return a.stride > b.stride; });
    for (Digit& d : loops_) {
      if (d.output != kRegister || d.stride != 1 || d.weight != 1 || d.extent % vector != 0) continue;
      lane_dim_ = d.dim;
      vector_ = vector;
      d.extent /= vector;
      d.weight *= vector;
    }
    for (const Digit& d : loops_) steps_ *= d.extent;
  }

  int64_t steps() const { return steps_; }
  size_t rank() const { return shape_.size(); }
  int64_t vector() const { return vector_; }
  int lane_dim() const { return lane_dim_; }

  // The point of a thread in a step, at the first lane of its vector. False: padding; of a writer, a copy.
  bool point(int64_t thread, int64_t step, bool write, std::span<int64_t> at) const {
    std::fill(at.begin(), at.end(), 0);
    for (const Digit& d : digits_) {
      const int64_t value = thread / d.stride;
      thread %= d.stride;
      if (write && (value >= d.extent || (d.dim == kReplica && value != 0))) return false;
      if (d.dim != kReplica) at[static_cast<size_t>(d.dim)] += value % d.extent * d.weight;
    }
    if (write && thread != 0) return false;
    for (const Digit& d : loops_) {
      at[static_cast<size_t>(d.dim)] += step % d.extent * d.weight;
      step /= d.extent;
    }
    for (size_t k = 0; k < at.size(); ++k)
      if (at[k] >= shape_[k]) return false;
    return true;
  }

 private:
  std::vector<int64_t> shape_;
  int64_t threads_ = 1, steps_ = 1, vector_ = 1;
  int lane_dim_ = -1;
  std::vector<Digit> digits_, loops_;
};

class Collector {
 public:
  Collector(const ir::Program& p, const analysis::KernelOps& ops, ValueId value, analysis::ValuePlans values,
            const target::Target& t, bool joined)
      : p_(p), ops_(ops), value_(value), values_(values), target_(t), join_(joined) {
    shape_ = ops.values[value].shape;
    row_ = row_dim(shape_);
    buffer_ = ops.values[value].buffer;
    most_ = std::max<int64_t>(1, t.vector_bytes / ir::dtype_bytes(p.buffer(buffer_).type));
  }

  void add(const KernelOp& op, const plan::OpPlan& plan) {
    if (std::none_of(op.accesses.begin(), op.accesses.end(),
                     [&](const auto& a) { return a.value == value_; }) ||
        !plan.iteration)
      return;
    depth_ = std::pow(8.0, op.depth);
    if (op.form == analysis::OpForm::reduction) return reduction(op, plan);
    if (op.form != analysis::OpForm::element) return;
    keep_vector(op, plan);
    if (const auto* copy = p_.as<ir::TileOp>(op.stmt)) return regions(op, *copy, plan);
    if (const auto* loop = p_.as<ir::Loop>(op.stmt)) {
      find_joined(op, plan);
      for (ir::StmtId s : loop->body) statement(s, loop->vars, plan);
    } else {
      statement(op.stmt, {}, plan);
    }
  }

  TileAccesses take() { return std::move(result_); }

 private:
  // A vector that the plan states along the tile's rows stays possible, even where lowering takes it apart.
  void keep_vector(const KernelOp& op, const plan::OpPlan& plan) {
    const int along = analysis::vector_dim(*plan.iteration);
    for (size_t i = 0; i < op.view.accesses.size(); ++i) {
      const ops::ElementAccess& a = op.view.accesses[i];
      if (along < 0 || op.accesses[i].value != value_ || a.dim_of.empty()) continue;
      const auto walk = a.terms.empty() ? std::nullopt : a.walk(along);
      if (a.dim_of[row_] == along || (walk && walk->dim == static_cast<int>(row_)))
        result_.widest = std::max(result_.widest, std::min(plan.vector, most_));
    }
  }

  bool inside(std::span<const int64_t> index) const {
    for (size_t d = 0; d < shape_.size(); ++d)
      if (index[d] < 0 || index[d] >= shape_[d]) return false;
    return true;
  }

  // Accesses to elements beside each other that lowering joins, where no loop is a vector.
  void find_joined(const KernelOp& op, const plan::OpPlan& plan) {
    joined_.clear(), joins_ = false;
    if (plan.vector < 2 || Walk(*plan.iteration, plan.vector).vector() > 1) return;
    for (const analysis::NeighbourRun& run : analysis::neighbour_runs(p_, op, target_.vector_bytes)) {
      const int64_t width = std::min(run.width(), plan.vector);
      joins_ = true;
      if (run.buffer != buffer_) continue;
      result_.apart = !join_;
      for (int64_t i = 0; join_ && i < run.width(); ++i)
        joined_[{run.write, run.elements[static_cast<size_t>(i)]}] = i % width == 0 ? width : 0;
    }
  }
  // Elements that move with this one; 0: it moves with another, or has been counted.
  int64_t take_joined(std::span<const ir::ExprId> indices, bool write) {
    const auto found = joined_.find({write, {indices.begin(), indices.end()}});
    return found == joined_.end() || branches_ > 0 ? 1 : std::exchange(found->second, 0);
  }

  // Requests of all warps in all steps, or an even part of them, of `beside` elements for each point.
  // `along`: the dimension of the points along which only the index of the tile's rows changes, by one a
  // point; negative: none is known. `element(point, index)`: the element of the tile at a point of the
  // iterations; false where there is none, or nobody knows it.
  template <class Element>
  void walk(const Fragment& iteration, int64_t vector, bool write, const Element& element, int64_t beside = 1,
            int along = -1) {
    const Walk w(iteration, std::min(vector, most_));
    const int64_t warps = ceil_div(iteration.threads(), int64_t{target_.warp}), all = warps * w.steps();
    const int64_t stride = all <= kMaxRequests ? 1 : ceil_div(all, kMaxRequests) | 1;
    const double weight = depth_ * static_cast<double>(all) / static_cast<double>(ceil_div(all, stride));
    std::vector<int64_t> point(iteration.shape().size()), index(shape_.size()), next(shape_.size());
    for (int64_t r = 0; r < all; r += stride) {
      if (along >= 0 && along == w.lane_dim() && branches_ == 0) {
        TileRequest whole{{}, std::max(w.vector(), beside), weight};
        if (whole_vectors(w, iteration.threads(), r % warps, r / warps, write, element, whole.indices)) {
          result_.widest = std::max(result_.widest, whole.elements);
          if (!whole.indices.empty()) result_.requests.push_back(std::move(whole));
          continue;
        }
      }
      std::vector<TileRequest> lanes(static_cast<size_t>(w.vector()));  // one by one
      for (TileRequest& l : lanes) l.indices.reserve(static_cast<size_t>(target_.warp) * shape_.size());
      bool together = branches_ == 0;  // a condition is asked for each element
      for (int64_t lane = 0; lane < target_.warp; ++lane) {
        const int64_t thread = r % warps * target_.warp + lane;
        if (thread >= iteration.threads() || !w.point(thread, r / warps, write, point)) continue;
        for (int64_t v = 0; v < w.vector(); ++v) {
          if (v > 0) ++point[static_cast<size_t>(w.lane_dim())];
          if (!element(point, next) || !inside(next)) {
            together = together && v == 0;
            break;
          }
          if (v == 0) index = next;
          together = together && follows(index, next, v) && index[row_] % w.vector() == 0;
          auto& list = lanes[static_cast<size_t>(v)].indices;
          list.insert(list.end(), next.begin(), next.end());
        }
      }
      if (together) {
        lanes.resize(1);
        lanes[0].elements = std::max(w.vector(), beside);
        result_.widest = std::max(result_.widest, lanes[0].elements);
      } else if (std::all_of(lanes.begin(), lanes.end(),
                             [&](const TileRequest& l) { return l.indices == lanes[0].indices; })) {
        lanes.resize(1);  // an element that the whole vector takes
      }
      for (TileRequest& l : lanes) {
        l.weight = weight;
        if (!l.indices.empty()) result_.requests.push_back(std::move(l));
      }
    }
  }
  // The elements with which the vectors of a warp's lanes begin, where all lie in the tile, at their
  // multiples; else false. Elements of a vector follow the first one.
  template <class Element>
  bool whole_vectors(const Walk& w, int64_t threads, int64_t warp, int64_t step, bool write,
                     const Element& element, std::vector<int64_t>& first) {
    std::vector<int64_t> point(w.rank()), index(shape_.size());
    first.reserve(static_cast<size_t>(target_.warp) * shape_.size());
    for (int64_t lane = 0; lane < target_.warp; ++lane) {
      const int64_t thread = warp * target_.warp + lane;
      if (thread >= threads || !w.point(thread, step, write, point)) continue;
      if (!element(point, index) || !inside(index) || index[row_] % w.vector() != 0 ||
          index[row_] + w.vector() > shape_[row_])
        return false;
      first.insert(first.end(), index.begin(), index.end());
    }
    return true;
  }
  // Consecutive along the last dimension.
  bool follows(std::span<const int64_t> first, std::span<const int64_t> index, int64_t by) const {
    for (size_t d = 0; d < index.size(); ++d)
      if (index[d] != first[d] + (d == row_ ? by : 0)) return false;
    return !index.empty();
  }

  // The dimension of the points that is the index of the tile's rows, and no other's; negative: none.
  int straight_dim(const ops::ElementAccess& a) const {
    if (a.dim_of.empty()) return -1;
    const int along = a.dim_of[row_];
    for (size_t d = 0; d < a.dim_of.size(); ++d)
      if (d != row_ && (a.dim_of[d] == along || (a.dim_of[d] < 0 && !a.terms.empty() && !a.terms[d].empty())))
        return -1;
    return along;
  }
  int straight_dim(std::span<const IndexValue> indices) const {
    const int along = indices.empty() ? -1 : indices[row_].is_dim();
    for (size_t d = 0; along >= 0 && d < indices.size(); ++d)
      if (d != row_ && indices[d].depends_on(along)) return -1;
    return along;
  }
  int64_t constant(ir::ExprId e) const {
    int64_t v = 0;
    return p_.exprs.is_const_int(e, &v) ? v : 0;
  }

  // A loop's body.
  void statement(ir::StmtId id, const std::vector<ir::VarId>& vars, const plan::OpPlan& plan) {
    if (const auto* branch = p_.as<ir::Branch>(id)) {
      loads(branch->condition, vars, plan);
      ++branches_;
      for (const ir::Block* block : {&branch->then_body, &branch->else_body})
        for (ir::StmtId s : *block) statement(s, vars, plan);
      --branches_;
    }
    const auto* store = p_.as<ir::Store>(id);
    if (!store) return;
    ir::visit_exprs(*store, [&](ir::ExprId e) { loads(e, vars, plan); });
    ir::visit_written(*store, [&](ir::BufferId b, const std::vector<ir::ExprId>& at) {
      if (b == buffer_) indexed(at, vars, plan, true);
    });
  }
  void loads(ir::ExprId root, const std::vector<ir::VarId>& vars, const plan::OpPlan& plan) {
    analysis::any_load(p_.exprs, root, [&](ir::ExprId load, const ir::ExprNode& n) {
      if (n.object == buffer_) indexed(p_.exprs.indices(load), vars, plan, false);
      return false;
    });
  }
  void indexed(std::span<const ir::ExprId> indices, const std::vector<ir::VarId>& vars,
               const plan::OpPlan& plan, bool write) {
    const int64_t beside = take_joined(indices, write);
    if (beside == 0) return;
    std::vector<IndexValue> values;
    for (ir::ExprId i : indices) values.emplace_back(p_, vars, i);
    walk(
        *plan.iteration, joins_ ? 1 : std::max<int64_t>(plan.vector, 1), write,
        [&](std::span<const int64_t> point, std::span<int64_t> index) {
          for (size_t d = 0; d < index.size(); ++d) {
            const auto i = values[d].at(point);
            if (!i) return false;
            index[d] = *i;
          }
          return true;
        },
        beside, straight_dim(values));
  }

  // A copy or a fill. Of a part of a fragment every thread walks what it holds (lower/gpu_element.cpp).
  void regions(const KernelOp& op, const ir::TileOp& copy, const plan::OpPlan& plan) {
    const int part =
        analysis::part_of_fragment(p_, op, [&](ValueId v) { return values_[v].fragment.has_value(); });
    for (size_t i = 0; i < op.accesses.size(); ++i) {
      if (op.accesses[i].value != value_) continue;
      const ops::ElementAccess& a = op.view.accesses[i];
      const auto element = [&](std::span<const int64_t> point, std::span<int64_t> index) {
        for (size_t d = 0; d < index.size(); ++d)
          index[d] = (a.unknown[d].valid() ? 0 : a.offset[d]) + a.index_at(d, point);
        return true;
      };
      if (part < 0) {
        walk(*plan.iteration, std::max<int64_t>(plan.vector, 1), a.write, element, 1, straight_dim(a));
        continue;
      }
      const ops::ElementAccess& held = op.view.accesses[static_cast<size_t>(part)];
      const ir::Region& box = copy.operands[static_cast<size_t>(part)];
      std::vector<int64_t> at(op.view.extents.size());
      walk(*values_[op.accesses[static_cast<size_t>(part)].value].fragment, most_, a.write,
           [&](std::span<const int64_t> point, std::span<int64_t> index) {
             std::fill(at.begin(), at.end(), 0);
             for (size_t d = 0; d < point.size(); ++d) {
               const int64_t offset = point[d] - constant(box.offsets[d]);
               if (offset < 0 || offset >= box.extents[d]) return false;
               if (held.dim_of[d] >= 0) at[static_cast<size_t>(held.dim_of[d])] = offset;
             }
             return element(at, index);
           });
    }
  }

  void reduction(const KernelOp& op, const plan::OpPlan& plan) {
    const auto& reduce = *p_.as<ir::TileOp>(op.stmt);
    const ops::Reduction reduction = *ops::layout_rule(reduce).reduction;
    const int axis = reduction.axis;
    if (op.accesses[0].value == value_)
      walk(
          *plan.iteration, most_, false,
          [&](std::span<const int64_t> point, std::span<int64_t> index) {
            for (size_t d = 0; d < index.size(); ++d)
              index[d] = constant(reduce.operands[0].offsets[d]) + point[d];
            return true;
          },
          1, static_cast<int>(row_));
    if (op.accesses[1].value != value_) return;
    const std::vector<int>& to = reduction.dst_dims;
    const auto result = [&](std::span<const int64_t> point, std::span<int64_t> index) {
      for (size_t d = 0; d < index.size(); ++d) index[d] = constant(reduce.operands[1].offsets[d]);
      for (size_t d = 0; d < to.size(); ++d)
        if (to[d] >= 0) index[static_cast<size_t>(to[d])] += point[d];
      return true;
    };
    const Fragment made = plan.iteration->reduce(axis, true);
    walk(made, 1, true, result);
    if (op.accesses[1].read) walk(made, 1, true, result);
  }

  const ir::Program& p_;
  const analysis::KernelOps& ops_;
  const ValueId value_;
  const analysis::ValuePlans values_;
  const target::Target& target_;
  const bool join_;
  std::vector<int64_t> shape_;
  size_t row_ = 0;
  ir::BufferId buffer_;
  int64_t most_ = 1;                                                    // elements of the widest access
  double depth_ = 1;                                                    // of the loops around the op
  int branches_ = 0;                                                    // around the statement
  std::map<std::pair<bool, std::vector<ir::ExprId>>, int64_t> joined_;  // of the op
  bool joins_ = false;  // the op's loops are no vectors: it has runs, of this tile or of others
  TileAccesses result_;
};

}  // namespace

size_t row_dim(std::span<const int64_t> shape) {
  size_t dim = shape.size();
  while (dim > 1 && shape[dim - 1] == 1) --dim;
  return dim == 0 ? 0 : dim - 1;
}

TileAccesses accesses_of_tile(const ir::Program& p, const analysis::KernelOps& ops, ValueId value,
                              analysis::ValuePlans values, analysis::OpPlans plans, const target::Target& t,
                              bool joined) {
  Collector c(p, ops, value, values, t, joined);
  for (OpId i : ops.ops.ids()) c.add(ops.ops[i], plans[i]);
  return c.take();
}

}  // namespace tilegen::schedule
