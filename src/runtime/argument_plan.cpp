#include "runtime/argument_plan.h"

#include <algorithm>

namespace tilegen::runtime {
namespace {

using ir::DType;

// scale * var + offset with one dim, as sums, differences and constant products make it.
struct Affine {
  ir::VarId var;
  int64_t scale = 0, offset = 0;
};

std::optional<Affine> affine(const ir::ExprPool& pool, ir::ExprId id) {
  const ir::ExprNode& n = pool[id];
  if (n.type != DType::i64) return std::nullopt;
  if (n.op == ir::ExprOp::const_int) return Affine{{}, 0, n.imm};
  if (n.op == ir::ExprOp::var) return Affine{n.var(), 1, 0};
  if (n.op != ir::ExprOp::add && n.op != ir::ExprOp::sub && n.op != ir::ExprOp::mul) return std::nullopt;
  const auto a = affine(pool, n.a);
  if (!a) return std::nullopt;  // before the other side: a shared operand is walked once
  const auto b = affine(pool, n.b);
  if (!b || (a->var && b->var)) return std::nullopt;
  Affine out;
  bool overflow = false;
  if (n.op == ir::ExprOp::mul) {
    const Affine& scaled = a->var ? *a : *b;
    const int64_t factor = (a->var ? *b : *a).offset;
    out.var = scaled.var;
    overflow = __builtin_mul_overflow(scaled.scale, factor, &out.scale) ||
               __builtin_mul_overflow(scaled.offset, factor, &out.offset);
  } else if (n.op == ir::ExprOp::add) {
    out.var = a->var ? a->var : b->var;
    out.scale = a->var ? a->scale : b->scale;
    overflow = __builtin_add_overflow(a->offset, b->offset, &out.offset);
  } else {
    out.var = a->var ? a->var : b->var;
    overflow = (!a->var && b->var && __builtin_sub_overflow(int64_t{0}, b->scale, &out.scale)) ||
               __builtin_sub_overflow(a->offset, b->offset, &out.offset);
    if (a->var) out.scale = a->scale;
  }
  if (overflow) return std::nullopt;
  return out;
}

}  // namespace

ArgumentPlan::ArgumentPlan(const ir::Program& program) {
  if (program.params.size() > kMaxParams) return;
  std::vector<int> slot_of(program.vars.size(), -1);
  for (size_t i = 0; i < program.params.size(); ++i)
    if (program.params[i].kind != ir::Param::Kind::tensor)
      slot_of[program.params[i].var.value] = static_cast<int>(i);
  std::vector<ir::ExprId> roots;
  const std::vector<int64_t> greatest = ir::greatest_values(program);
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ir::Param& p = program.params[i];
    Param row;
    row.kind = p.kind;
    row.workspace = program.is_workspace(p);
    row.presence = program.is_presence(p);
    if (row.workspace || row.presence) {
      ++implied_;
    } else if (p.kind == ir::Param::Kind::tensor) {
      const ir::Buffer& b = program.buffer(p.buffer);
      Tensor t;
      t.param = i;
      t.type = b.type;
      t.element = ir::dtype_bytes(b.type);
      t.low_bits = static_cast<uint64_t>(t.element) - 1;
      t.optional = b.optional;
      t.least = !b.optional && is_accessed(program, p.buffer) ? 1 : 0;
      t.rank = b.shape.size();
      t.extents = extents_.size();
      add_extents(program, b.shape, slot_of, roots);
      if (t.rank > kMaxRank) return;
      t.strided = !b.strides.empty();
      any_strided_ |= t.strided;
      t.strides = extents_.size();
      add_extents(program, b.strides, slot_of, roots);
      tensors_.push_back(t);
    } else {
      const ir::Var& v = program.var(p.var);
      row.type = v.type;
      if (p.kind == ir::Param::Kind::dim) {
        if (v.divisor < 1) return;
        const auto divisor = static_cast<uint64_t>(v.divisor), power = divisor & (~divisor + 1);
        dims_.push_back(
            {i, std::max<int64_t>(v.lower, 0), greatest[p.var.value], power - 1, divisor / power});
      }
    }
    params_.push_back(row);
  }
  if (roots.size() > kMaxRoots) return;
  if (!roots.empty()) {
    code_ = ScalarCode::compile(program.exprs, roots, [&](ir::VarId v) { return slot_of[v.value]; });
    if (!code_) return;
  }
  usable_ = true;
  find_ordinary();
}

void ArgumentPlan::find_ordinary() {
  int64_t most = int64_t{1} << 62;
  for (const Tensor& t : tensors_) {
    const auto fits = [&](int64_t dim) {
      int64_t bytes = t.element;
      for (size_t d = 0; d < t.rank; ++d) {
        const Extent& e = extents_[t.extents + d];
        int64_t extent = e.offset;
        if (e.dim >= 0 && (__builtin_mul_overflow(dim, e.scale, &extent) ||
                           __builtin_add_overflow(extent, e.offset, &extent)))
          return false;
        if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
      }
      return true;
    };
    for (size_t d = 0; d < t.rank; ++d) {
      const Extent& e = extents_[t.extents + d];
      if (e.root >= 0 || (e.dim < 0 ? e.offset < 1 : e.scale < 1 || e.offset < 0)) return;
    }
    while (most > 0 && !fits(most)) most /= 2;
  }
  ordinary_ = !any_strided_ && !code_;
  for (Dim& d : dims_) {
    d.first_ordinary = std::max<int64_t>(d.lower, 1);
    d.last_ordinary = std::min(d.upper, most);
  }
}

void ArgumentPlan::add_extents(const ir::Program& program, const std::vector<ir::ExprId>& list,
                               const std::vector<int>& slot_of, std::vector<ir::ExprId>& roots) {
  for (ir::ExprId e : list) {
    Extent row;
    const auto form = affine(program.exprs, e);
    const bool dim = form && form->var && program.var(form->var).kind == ir::VarKind::dim;
    if (form && (!form->var || form->scale == 0)) {
      row.offset = form->offset;
    } else if (dim && slot_of[form->var.value] >= 0) {
      row.dim = slot_of[form->var.value];
      row.scale = form->scale;
      row.offset = form->offset;
    } else {
      row.root = static_cast<int>(roots.size());
      roots.push_back(e);
    }
    extents_.push_back(row);
  }
}

}  // namespace tilegen::runtime
