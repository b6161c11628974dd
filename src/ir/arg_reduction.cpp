#include "ir/arg_reduction.h"

#include <algorithm>

#include "ir/op_kinds.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

std::string shape_text(const std::vector<int64_t>& extents) {
  std::string text;
  for (int64_t e : extents) text += (text.empty() ? "" : ", ") + std::to_string(e);
  return "[" + text + "]";
}

Diagnostic wrong(DiagCode code, std::string message, std::string hint) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  d.hint = std::move(hint);
  return d;
}

class ArgReducer {
 public:
  ArgReducer(Program& p, const ArgReduction& what, const SourceLocation& location, Block& block)
      : p_(p), what_(what), location_(location), block_(block) {}

  std::optional<Diagnostic> check() const {
    const std::string word = what_.largest ? "argmax" : "argmin";
    const auto rank = static_cast<int64_t>(what_.src.extents.size());
    if (what_.axis < 0 || what_.axis >= rank)
      return wrong(DiagCode::bad_attribute,
                   "axis " + std::to_string(what_.axis) + " of " + word + " is outside src " +
                       p_.buffer(what_.src.buffer).name + shape_text(what_.src.extents),
                   "axes count from 0");
    for (const Region* r : {&what_.value, &what_.index})
      if (!fits(*r))
        return wrong(
            DiagCode::shape_mismatch,
            p_.buffer(r->buffer).name + shape_text(r->extents) + " does not fit src " +
                p_.buffer(what_.src.buffer).name + shape_text(what_.src.extents) + " without axis " +
                std::to_string(what_.axis),
            "the results of " + word + " have src's extents without the axis, or with extent 1 there");
    const DType index = p_.buffer(what_.index.buffer).type;
    if (index != DType::i32 && index != DType::i64)
      return wrong(DiagCode::dtype_mismatch,
                   "the place that " + word + " tells is i32 or i64, " + p_.buffer(what_.index.buffer).name +
                       " is " + dtype_name(index),
                   "use a tile of i32");
    return std::nullopt;
  }

  void run() {
    reduce(what_.src, what_.value, what_.largest ? ReduceKind::max : ReduceKind::min);
    Region places = find_places();
    reduce(places, what_.index, ReduceKind::min);
  }

 private:
  bool fits(const Region& r) const {
    std::vector<int64_t> kept = what_.src.extents, removed = kept;
    kept[static_cast<size_t>(what_.axis)] = 1;
    removed.erase(removed.begin() + what_.axis);
    return r.extents == kept || r.extents == removed;
  }

  StmtId add(std::variant<Loop, Branch, Store, TileOp> node) {
    p_.stmts.push_back({std::move(node), location_});
    return StmtId(p_.stmts.size() - 1);
  }

  void reduce(const Region& from, const Region& to, ReduceKind kind) {
    TileOp op;
    op.kind = OpKind::reduce;
    op.operands = {from, to};
    op.attrs[reduce_attr::kind] = static_cast<int64_t>(kind);
    op.attrs[reduce_attr::axis] = what_.axis;
    block_.push_back(add(std::move(op)));
  }

  // For each element the place where it stands, if it is the one that was found, else beyond all of them.
  Region find_places() {
    ExprPool& e = p_.exprs;
    const DType type = p_.buffer(what_.index.buffer).type;
    const auto axis = static_cast<size_t>(what_.axis);
    Loop loop;
    loop.kind = LoopKind::parallel;
    loop.begin = e.const_int(0);
    Region places{BufferId(p_.buffers.size()), {}, what_.src.extents};
    Buffer tile;
    tile.name = free_name("place");
    tile.scope = MemScope::fragment;
    tile.type = type;
    tile.kernel = static_cast<int>(p_.kernels.size()) - 1;
    tile.location = location_;
    std::vector<ExprId> point, element, found;
    for (size_t d = 0; d < places.extents.size(); ++d) {
      const ExprId extent = e.const_int(places.extents[d]);
      Var var;
      var.name = free_name("v" + std::to_string(d));
      var.location = location_;
      loop.vars.push_back(VarId(p_.vars.size()));
      p_.vars.push_back(std::move(var));
      loop.extents.push_back(extent);
      tile.shape.push_back(extent);
      places.offsets.push_back(e.const_int(0));
      point.push_back(e.var(loop.vars.back()));
      element.push_back(e.add(what_.src.offsets[d], point.back()));
    }
    const bool keeps_axis = what_.value.extents.size() == point.size();
    for (size_t d = 0; d < what_.value.extents.size(); ++d) {
      const size_t from = keeps_axis || d < axis ? d : d + 1;
      found.push_back(from == axis ? what_.value.offsets[d] : e.add(what_.value.offsets[d], point[from]));
    }
    p_.buffers.push_back(std::move(tile));
    const auto load = [&](BufferId b, const std::vector<ExprId>& at) {
      return e.load(b, p_.buffer(b).type, at);
    };
    const ExprId value = load(what_.value.buffer, found);
    const ExprId same = e.binary(
        ExprOp::eq, e.cast(p_.buffer(what_.value.buffer).type, load(what_.src.buffer, element)), value);
    const ExprId place = e.select(same, e.cast(type, point[axis]), e.const_int(places.extents[axis], type));
    const StmtId made = add(std::move(loop));  // before what it holds, as the text has them
    const StmtId store = add(Store{places.buffer, point, place});
    std::get<Loop>(p_.stmts[made.value].node).body = {store};
    block_.push_back(made);
    return places;
  }

  std::string free_name(const std::string& wanted) const {
    const auto taken = [&](const std::string& name) {
      const auto same = [&](const auto& object) { return object.name == name; };
      return std::any_of(p_.buffers.begin(), p_.buffers.end(), same) ||
             std::any_of(p_.vars.begin(), p_.vars.end(), same) ||
             std::any_of(p_.kernels.begin(), p_.kernels.end(), same) ||
             std::any_of(p_.compile_params.begin(), p_.compile_params.end(), same);
    };
    std::string name = wanted;
    for (size_t n = 1; taken(name); ++n) name = wanted + "_" + std::to_string(n);
    return name;
  }

  Program& p_;
  const ArgReduction& what_;
  const SourceLocation& location_;
  Block& block_;
};

}  // namespace

std::optional<Diagnostic> add_arg_reduction(Program& p, const ArgReduction& what,
                                            const SourceLocation& location, Block& block) {
  ArgReducer reducer(p, what, location, block);
  if (auto error = reducer.check()) return error;
  reducer.run();
  return std::nullopt;
}

}  // namespace tilegen::ir
