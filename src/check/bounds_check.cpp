// Indices and regions of on-chip buffers. An error is certain: either no value of the index is inside, or the
// access always runs with its loops and the ends of the index's range are attained. Global tensors have no
// bad index.
#include "check/context.h"
#include "check/expr_walk.h"
#include "check/index_form.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::check {
namespace {

using arith::Interval;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::StmtId;

class BoundsCheck {
 public:
  explicit BoundsCheck(CheckContext& ctx)
      : ctx_(ctx), p_(ctx.program), walk_(ctx.program), forms_(ctx.program) {}

  void run();

 private:
  void check_block(const ir::Block& block, bool guarded);
  void check_statement(StmtId id, bool guarded);
  bool bind_loop(const ir::Loop& loop);
  bool bind_counter(ir::VarId var, Bounds begin, Bounds extent);
  void check_loads(StmtId id, bool guarded);
  void check_element(StmtId id, ir::BufferId buffer, std::span<const ExprId> indices, bool guarded);
  void check_region(StmtId id, const ir::Region& r, bool guarded);
  bool outside(Bounds at, int64_t extent, int64_t size, bool guarded) const;

  CheckContext& ctx_;
  const ir::Program& p_;
  ExprWalk walk_;
  IndexForms forms_;
};

void BoundsCheck::run() {
  const std::vector<int64_t> greatest = ir::greatest_values(p_);
  for (size_t v = 0; v < p_.vars.size(); ++v) {
    const ir::Var& var = p_.vars[v];
    if (var.kind == ir::VarKind::dim)
      forms_.bind(ir::VarId(v), {{var.lower, greatest[v]}, var.lower == greatest[v]});
  }
  for (const ir::Kernel& k : p_.kernels) {
    bool runs = true;
    for (size_t d = 0; d < k.grid.size(); ++d)
      runs &= bind_counter(k.block_vars[d], {Interval::point(0), true}, forms_.bounds(k.grid[d]));
    if (runs) check_block(k.body, false);
  }
}

// False when the body never runs.
bool BoundsCheck::bind_counter(ir::VarId var, Bounds begin, Bounds extent) {
  if (extent.range.hi <= 0) return false;
  const Interval last =
      arith::interval_add(arith::interval_add(begin.range, extent.range), Interval::point(-1));
  const bool attained = begin.range.is_point() && extent.range.is_point();
  forms_.bind(var, {{begin.range.lo, std::max(last.hi, begin.range.lo)}, attained});
  return true;
}

bool BoundsCheck::bind_loop(const ir::Loop& loop) {
  bool runs = true;
  for (size_t d = 0; d < loop.vars.size(); ++d)
    runs &= bind_counter(loop.vars[d], forms_.bounds(loop.begin), forms_.bounds(loop.extents[d]));
  return runs;
}

void BoundsCheck::check_block(const ir::Block& block, bool guarded) {
  for (StmtId id : block) check_statement(id, guarded);
}

void BoundsCheck::check_statement(StmtId id, bool guarded) {
  if (ctx_.stop()) return;
  if (ctx_.broken[id.value]) return;
  check_loads(id, guarded);
  if (const auto* loop = p_.as<ir::Loop>(id)) {
    if (bind_loop(*loop)) check_block(loop->body, guarded || loop->condition.valid());
  } else if (const auto* branch = p_.as<ir::Branch>(id)) {
    check_block(branch->then_body, true);
    check_block(branch->else_body, true);
  } else if (const auto* store = p_.as<ir::Store>(id)) {
    if (store->atomic != ir::AtomicKind::append)
      ir::visit_written(
          *store, [&](ir::BufferId b, const std::vector<ExprId>& at) { check_element(id, b, at, guarded); });
  } else if (const auto* op = p_.as<ir::TileOp>(id)) {
    for (const ir::Region& r : op->operands) check_region(id, r, guarded);
  }
}

void BoundsCheck::check_loads(StmtId id, bool guarded) {
  // First what is evaluated for certain, then everything, as if guarded: a select may skip some of it.
  for (const bool always : {true, false}) {
    walk_.start();
    for_each_root(p_, id, [&](ExprId root) {
      walk_.visit(
          root,
          [&](ExprId e, const ExprNode& n) {
            if (n.op == ExprOp::load && !ctx_.broken[id.value])
              check_element(id, n.object, p_.exprs.indices(e), guarded || !always);
          },
          always);
    });
  }
}

bool BoundsCheck::outside(Bounds at, int64_t extent, int64_t size, bool guarded) const {
  const int64_t last = size - extent;  // largest legal start
  if (last < 0 || at.range.hi < 0 || at.range.lo > last) return true;
  return !guarded && at.attained && (at.range.lo < 0 || at.range.hi > last);
}

std::string range_text(Interval r) {
  const std::string lo = r.lo == Interval::kMin ? "-inf" : std::to_string(r.lo);
  if (r.is_point()) return lo;
  // The largest extent of all is no bound that the user wrote.
  return lo + " to " + (r.hi >= ir::kMaxExtent - 1 ? "inf" : std::to_string(r.hi));
}

void BoundsCheck::check_element(StmtId id, ir::BufferId buffer, std::span<const ExprId> indices,
                                bool guarded) {
  const ir::Buffer& b = p_.buffer(buffer);
  if (b.scope == ir::MemScope::global) return;
  const std::vector<int64_t> shape = p_.tile_shape(buffer);
  for (size_t d = 0; d < shape.size(); ++d) {
    const Bounds at = forms_.bounds(indices[d]);
    if (!outside(at, 1, shape[d], guarded)) continue;
    ctx_.error(DiagCode::index_out_of_bounds, id,
               "index " + std::to_string(d) + " of " + b.name + " is " + range_text(at.range) +
                   ", legal is 0 to " + std::to_string(shape[d] - 1),
               "guard the access with an if, or make the buffer larger");
    return;
  }
}

void BoundsCheck::check_region(StmtId id, const ir::Region& r, bool guarded) {
  const ir::Buffer& b = p_.buffer(r.buffer);
  if (b.scope == ir::MemScope::global) return;
  const std::vector<int64_t> shape = p_.tile_shape(r.buffer);
  for (size_t d = 0; d < shape.size(); ++d) {
    const Bounds at = forms_.bounds(r.offsets[d]);
    if (!outside(at, r.extents[d], shape[d], guarded)) continue;
    ctx_.error(DiagCode::index_out_of_bounds, id,
               "dimension " + std::to_string(d) + " of the region of " + b.name + " starts at " +
                   range_text(at.range) + " with extent " + std::to_string(r.extents[d]) +
                   ", the buffer's extent is " + std::to_string(shape[d]),
               "only regions of global tensors may hang over the edge; make the region smaller");
    return;
  }
}

}  // namespace

void check_bounds(CheckContext& ctx) { BoundsCheck(ctx).run(); }

}  // namespace tilegen::check
