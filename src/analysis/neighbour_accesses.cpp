// The four stores that an unrolled loop leaves of
//
//   unroll i in 0 .. 4 { Y[b, 4 * t + i] = X[b, 4 * t + i] }
//
// differ in a constant of their last index: affine forms of one kind, told apart by their constants.
#include "analysis/neighbour_accesses.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/loads.h"
#include "analysis/projection.h"
#include "arith/prove.h"
#include "ir/store_parts.h"

namespace tilegen::analysis {

using ir::BufferId;
using ir::ExprId;

namespace {

constexpr size_t kMaxAccesses = 256;  // of an op that are looked at

class RunFinder {
 public:
  RunFinder(const ir::Program& p, const KernelOp& op, int64_t most_bytes)
      : p_(p), most_bytes_(most_bytes), exprs_(p.exprs), ctx_(exprs_) {
    const std::vector<int64_t> greatest = ir::greatest_values(p);
    for (const ir::Param& param : p.params)
      if (param.kind != ir::Param::Kind::tensor) {
        const ir::Var& v = p.var(param.var);
        if (v.kind == ir::VarKind::dim) ctx_.bind(param.var, v.lower, greatest[param.var.value], v.divisor);
      }
    const auto* loop = p.as<ir::Loop>(op.stmt);
    if (!loop) return;
    for (size_t d = 0; d < loop->vars.size() && d < op.view.extents.size(); ++d)
      ctx_.bind(loop->vars[d], 0, op.view.extents[d] - 1);
    if (!loop->vars.empty()) last_ = loop->vars.back();
    for (ir::StmtId s : loop->body) statement(s);
  }

  std::vector<NeighbourRun> run() {
    std::vector<NeighbourRun> list;
    for (auto& [row, elements] : rows_) add_runs(row, elements, list);
    return list;
  }

 private:
  // Accesses whose elements lie in one row, their last indices apart by constants.
  struct Row {
    BufferId buffer;
    bool write = false;
    std::vector<ExprId> outer;
    std::map<ExprId, int64_t> terms;
    bool operator<(const Row& o) const {
      return std::tie(buffer, write, outer, terms) < std::tie(o.buffer, o.write, o.outer, o.terms);
    }
  };
  using Elements = std::map<int64_t, std::vector<ExprId>>;  // by the constant

  void statement(ir::StmtId id) {
    const auto* store = p_.as<ir::Store>(id);
    if (!store || store->atomic) return;
    ir::visit_exprs(*store, [&](ExprId root) {
      any_load(p_.exprs, root, [&](ExprId load, const ir::ExprNode& n) {
        access(n.object, p_.exprs.indices(load), false);
        return false;
      });
    });
    access(store->buffer, store->indices, true);
  }

  void access(BufferId buffer, std::span<const ExprId> indices, bool write) {
    const ir::Buffer& b = p_.buffer(buffer);
    if (indices.empty() || ++seen_ > kMaxAccesses) return;
    if (b.scope != ir::MemScope::global && b.scope != ir::MemScope::shared) return;
    int64_t stride = 1;
    if (!b.strides.empty() && (!p_.exprs.is_const_int(b.strides.back(), &stride) || stride != 1)) return;
    for (ExprId index : indices)
      if (any_load(p_.exprs, index, [](ExprId, const ir::ExprNode&) { return true; })) return;
    const auto last = arith::to_affine(ctx_, indices.back());
    if (!last) return;
    Row row{buffer, write, {indices.begin(), indices.end() - 1}, last->terms};
    rows_[std::move(row)].emplace(last->constant, std::vector<ExprId>(indices.begin(), indices.end()));
  }

  void add_runs(const Row& row, Elements& elements, std::vector<NeighbourRun>& list) {
    const int64_t divisor =
        arith::divisor_of(ctx_, arith::from_affine(ctx_, {row.terms, 0}));  // 0: of everything
    for (int64_t width = most_bytes_ / ir::dtype_bytes(p_.buffer(row.buffer).type); width > 1; width /= 2) {
      if (divisor % width != 0) continue;
      for (auto it = elements.begin(); it != elements.end();) {
        const auto next = std::next(it);
        if (it->first % width != 0 || !is_run(elements, it, width)) {
          it = next;
          continue;
        }
        NeighbourRun run{row.buffer, row.write, {}, false};
        for (int64_t i = 0; i < width; ++i, it = elements.erase(it)) run.elements.push_back(it->second);
        const auto split =
            last_.valid() ? arith::split_affine(ctx_, run.elements[0].back(), last_) : std::nullopt;
        run.continued = split && split->stride == width;
        list.push_back(std::move(run));
      }
    }
  }

  static bool is_run(const Elements& elements, Elements::const_iterator it, int64_t width) {
    for (int64_t i = 0, first = it->first; i < width; ++i, ++it)
      if (it == elements.end() || it->first != first + i) return false;
    return true;
  }

  const ir::Program& p_;
  const int64_t most_bytes_;
  ir::ExprPool exprs_;
  arith::Context ctx_;
  ir::VarId last_;
  size_t seen_ = 0;
  std::map<Row, Elements> rows_;
};

// In memory where elements of a row that lie beside each other stay so.
bool keeps_runs(ValueId value, ValuePlans values, int64_t width) {
  if (!value.valid() || !values[value].memory) return true;
  return values[value].memory->contiguous_run(values[value].memory->rank() - 1) % width == 0;
}

}  // namespace

std::vector<NeighbourRun> neighbour_runs(const ir::Program& p, const KernelOp& op, int64_t most_bytes) {
  return p.as<ir::Loop>(op.stmt) ? RunFinder(p, op, most_bytes).run() : std::vector<NeighbourRun>();
}

bool walks_in_vectors(const ir::Program& p, const KernelOp& op, const layout::Fragment& iteration,
                      int64_t vector) {
  const layout::Digit* digit = vector_digit(iteration);
  if (!digit || digit->extent % vector != 0) return false;
  return std::any_of(op.view.accesses.begin(), op.view.accesses.end(), [&](const ops::ElementAccess& a) {
    const ir::MemScope scope = p.buffer(a.buffer).scope;
    return (scope == ir::MemScope::global || scope == ir::MemScope::shared) && a.along_last() == digit->dim;
  });
}

std::vector<JoinedAccess> joined_accesses(const ir::Program& p, const KernelOp& op, const plan::OpPlan& plan,
                                          ValuePlans values, int64_t most_bytes) {
  const auto* loop = p.as<ir::Loop>(op.stmt);
  if (!loop || plan.vector < 2 || !plan.iteration) return {};
  if (walks_in_vectors(p, op, *plan.iteration, plan.vector)) return {};
  std::vector<JoinedAccess> list;
  for (const NeighbourRun& run : neighbour_runs(p, op, most_bytes)) {
    const int64_t width = std::min(run.width(), plan.vector);
    list.resize(op.view.accesses.size());
    for (size_t i = 0; i < run.elements.size(); ++i) {
      const ops::ElementAccess own = ops::loop_access(p, *loop, run.buffer, run.elements[i], run.write);
      for (size_t a = 0; a < list.size(); ++a)
        if (op.view.accesses[a].write == run.write && op.view.accesses[a].same_elements(own) &&
            keeps_runs(op.accesses[a].value, values, width))
          list[a] = {static_cast<int64_t>(i) % width == 0 ? width : 0, run.continued && width == run.width()};
    }
  }
  return list;
}

}  // namespace tilegen::analysis
