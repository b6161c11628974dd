#include "ir/point_loops.h"

#include <algorithm>

#include "support/diag_codes.h"

namespace tilegen::ir {

BufferId PointLoops::tile(std::string_view name, MemScope scope, DType type, const Extents& shape) {
  Buffer tile;
  tile.name = free_name(name);
  tile.scope = scope;
  tile.type = type;
  tile.kernel = kernel_ < 0 ? static_cast<int>(p_.kernels.size()) - 1 : kernel_;
  tile.location = location_;
  for (int64_t extent : shape) tile.shape.push_back(p_.exprs.const_int(extent));
  p_.buffers.push_back(std::move(tile));
  return BufferId(p_.buffers.size() - 1);
}

Exprs PointLoops::begin(const Extents& extents) {
  while (names_.size() < extents.size()) names_.push_back(free_name("v" + std::to_string(names_.size())));
  Loop loop;
  loop.kind = LoopKind::parallel;
  loop.begin = p_.exprs.const_int(0);
  Exprs point;
  for (size_t d = 0; d < extents.size(); ++d) {
    Var var;
    var.name = names_[d];
    var.location = location_;
    loop.vars.push_back(VarId(p_.vars.size()));
    p_.vars.push_back(std::move(var));
    loop.extents.push_back(p_.exprs.const_int(extents[d]));
    point.push_back(p_.exprs.var(loop.vars.back()));
  }
  loop_ = add(std::move(loop));
  block_.push_back(loop_);
  return point;
}

void PointLoops::store(BufferId to, const Exprs& indices, ExprId value) { store(Store{to, indices, value}); }

void PointLoops::store(Store what) {
  const StmtId made = add(std::move(what));
  std::get<Loop>(p_.stmts[loop_.value].node).body.push_back(made);
}

ExprId PointLoops::load(BufferId from, const Exprs& indices) {
  return p_.exprs.load(from, p_.buffer(from).type, indices);
}

void PointLoops::store(const Tiles& to, const Exprs& indices, const Exprs& values) {
  for (size_t i = 0; i < to.size(); ++i) store(to[i], indices, values[i]);
}

Exprs PointLoops::load(const Tiles& from, const Exprs& indices) {
  Exprs values;
  for (BufferId b : from) values.push_back(load(b, indices));
  return values;
}

void PointLoops::append(TileOp op) { block_.push_back(add(std::move(op))); }

StmtId PointLoops::add(std::variant<Loop, Branch, Store, TileOp> node) {
  p_.stmts.push_back({std::move(node), location_});
  return StmtId(p_.stmts.size() - 1);
}

std::string PointLoops::free_name(std::string_view wanted) const {
  const auto taken = [&](const std::string& name) {
    const auto same = [&](const auto& object) { return object.name == name; };
    return std::any_of(p_.buffers.begin(), p_.buffers.end(), same) ||
           std::any_of(p_.vars.begin(), p_.vars.end(), same) ||
           std::any_of(p_.kernels.begin(), p_.kernels.end(), same) ||
           std::any_of(p_.compile_params.begin(), p_.compile_params.end(), same);
  };
  std::string name(wanted);
  for (size_t n = 1; taken(name); ++n) name = std::string(wanted) + "_" + std::to_string(n);
  return name;
}

Exprs element_of(ExprPool& e, const Region& r, const Exprs& point) {
  Exprs indices;
  for (size_t d = 0; d < r.offsets.size(); ++d) indices.push_back(e.add(r.offsets[d], point[d]));
  return indices;
}

bool fits_without_axis(const Extents& src, const Extents& dst, int64_t axis) {
  Extents kept = src, removed = src;
  kept[static_cast<size_t>(axis)] = 1;
  removed.erase(removed.begin() + axis);
  return dst == kept || dst == removed;
}

Exprs without_axis(ExprPool& e, Exprs point, size_t axis, size_t rank) {
  if (rank == point.size())
    point[axis] = e.const_int(0);
  else
    point.erase(point.begin() + static_cast<ptrdiff_t>(axis));
  return point;
}

std::string extents_text(const Extents& extents) {
  std::string text;
  for (int64_t e : extents) text += (text.empty() ? "" : ", ") + std::to_string(e);
  return "[" + text + "]";
}

std::string region_text(const Program& p, const Region& r) {
  return p.buffer(r.buffer).name + extents_text(r.extents);
}

Diagnostic diagnostic(DiagCode code, std::string message, std::string hint) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  d.hint = std::move(hint);
  return d;
}

std::optional<Diagnostic> refuse_beyond_limits(const Program& p, const MadeSize& made, const Limits& limits,
                                               const std::string& from) {
  const auto size = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  if (size(p.stmts) + made.statements <= limits.statements &&
      size(p.buffers) + made.buffers <= limits.buffers && size(p.exprs) + made.nodes <= limits.expr_nodes)
    return std::nullopt;
  return diagnostic(DiagCode::limit_nodes, from + " is more statements than the program has room for",
                    "split the program");
}

}  // namespace tilegen::ir
