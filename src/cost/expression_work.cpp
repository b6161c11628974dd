#include "cost/expression_work.h"

#include <map>

namespace tilegen::cost {

namespace {

// Instructions of one element, by the lanes that they take.
struct Price {
  double plain = 0, convert = 0, special = 0;
  double issued() const { return plain + convert + special; }
};

// As lowering emits them, for f32; narrower types are computed in it.
Price price_of(const ir::ExprPool& e, const ir::ExprNode& n) {
  using ir::ExprOp;
  switch (n.op) {
    case ExprOp::cast: {
      const ir::DType from = e.type(n.a);
      if (ir::is_float(from) && ir::is_float(n.type))  // two at once
        return from == n.type ? Price{} : Price{.convert = 0.5};
      return ir::is_float(from) != ir::is_float(n.type) ? Price{.convert = 1} : Price{.plain = 1};
    }
    case ExprOp::exp2:
    case ExprOp::exp:
      return {.plain = n.op == ExprOp::exp ? 8.0 : 1.0, .special = 1};
    case ExprOp::log2:
    case ExprOp::log:
    case ExprOp::rsqrt:
      return {.plain = 3, .special = 1};
    case ExprOp::sqrt:
    case ExprOp::div:
    case ExprOp::tanh:
      return {.plain = 15, .special = 1};
    case ExprOp::sigmoid:
      return {.plain = 8, .special = 2};
    case ExprOp::erf:
      return {.plain = 20, .special = 1};
    case ExprOp::floordiv:
    case ExprOp::floormod:
      return {.plain = 8};
    default:
      return {.plain = 1};
  }
}

class Expressions {
 public:
  Expressions(const ir::Program& p, const ir::Loop& loop, const layout::Fragment* iteration, int64_t threads,
              bool unmasked)
      : p_(p),
        e_(p.exprs),
        iteration_(iteration),
        threads_(static_cast<double>(threads)),
        unmasked_(unmasked) {
    for (size_t d = 0; d < loop.vars.size(); ++d) {
      int64_t extent = 1;
      e_.is_const_int(loop.extents[d], &extent);
      extents_.emplace_back(loop.vars[d], static_cast<double>(extent));
    }
  }

  Price all;  // of one thread

  void add(ir::ExprId root) { visit(root); }

 private:
  struct Node {
    bool element = false;  // one is read below
    uint32_t along = 0;    // variables it differs along
  };

  Node visit(ir::ExprId id, bool fused = false) {
    if (!id.valid()) return {};
    if (const auto known = seen_.find(id); known != seen_.end()) return known->second;
    const ir::ExprNode& n = e_[id];
    Node node;
    if (n.op == ir::ExprOp::var)
      for (size_t d = 0; d < extents_.size(); ++d)
        if (extents_[d].first == n.var()) node.along |= uint32_t{1} << d;
    if (n.op == ir::ExprOp::load) {
      node.element = true;
      for (ir::ExprId index : e_.indices(id)) node.along |= visit(index).along;
    }
    const bool sum = (n.op == ir::ExprOp::add || n.op == ir::ExprOp::sub) && ir::is_float(n.type);
    bool one = sum;  // product, which the addition takes along
    for (ir::ExprId operand : {n.a, n.b, n.c}) {
      if (!operand.valid()) continue;
      const bool takes = one && e_[operand].op == ir::ExprOp::mul && !seen_.count(operand);
      if (takes) one = false;
      const Node below = visit(operand, takes);
      node.element = node.element || below.element;
      node.along |= below.along;
    }
    const bool index_only = !node.element;  // a condition on indices, or the indices themselves
    const bool priced = n.op != ir::ExprOp::load && !fused &&
                        (node.element ? !(unmasked_ && n.op == ir::ExprOp::select && !reads(n.a))
                                      : !unmasked_ && n.type == ir::DType::boolean);
    if (priced) {
      const Price one_point = price_of(e_, n);
      const double points = points_of(node.along) * (index_only ? 0.5 : 1);
      all.plain += one_point.plain * points;
      all.convert += one_point.convert * points;
      all.special += one_point.special * points;
    }
    seen_.emplace(id, node);
    return node;
  }

  bool reads(ir::ExprId id) { return visit(id).element; }

  // Of a thread.
  double points_of(uint32_t along) const {
    double points = 1;
    if (iteration_) {
      for (const layout::Digit& d : iteration_->map().digits())
        if (d.output == layout::kRegister && d.dim >= 0 && (along >> d.dim & 1) != 0)
          points *= static_cast<double>(d.extent);
      return points;
    }
    for (size_t d = 0; d < extents_.size(); ++d)
      if ((along >> d & 1) != 0) points *= extents_[d].second;
    return std::max(1.0, points / threads_);
  }

  const ir::Program& p_;
  const ir::ExprPool& e_;
  const layout::Fragment* iteration_;
  const double threads_;
  const bool unmasked_;
  std::vector<std::pair<ir::VarId, double>> extents_;
  std::map<ir::ExprId, Node> seen_;
};

}  // namespace

Work loop_work(const ir::Program& p, const ir::Loop& loop, const layout::Fragment* iteration, int64_t threads,
               bool unmasked, const target::Target& t) {
  Expressions expressions(p, loop, iteration, threads, unmasked);
  ir::for_each_statement(p, loop.body, [&](ir::StmtId id, int) {
    if (const auto* store = p.as<ir::Store>(id)) expressions.add(store->value);
    if (const auto* branch = p.as<ir::Branch>(id)) expressions.add(branch->condition);
  });
  const Price& one = expressions.all;
  const double lanes = static_cast<double>(threads);
  Work w;
  w[Pipe::issue] = one.issued() * lanes / t.warp / t.schedulers;
  w[Pipe::plain] = one.plain * lanes / t.plain_lanes;
  w[Pipe::convert] = one.convert * lanes / t.convert_lanes;
  w[Pipe::special] = one.special * lanes / t.special_lanes;
  w.latency = 20;  // of a chain of a few dependent instructions
  return w;
}

}  // namespace tilegen::cost
