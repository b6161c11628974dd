#include "ir/copy_groups.h"

#include <algorithm>

#include "ir/annotations.h"
#include "ir/op_kinds.h"
#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

int64_t elements_of(const Region& r) {
  int64_t most = 1;
  for (int64_t n : r.extents) most = std::max(most, n);
  return most;
}

// One dimension of the region at most has several elements.
bool is_line(const Region& r) {
  return std::count_if(r.extents.begin(), r.extents.end(), [](int64_t n) { return n > 1; }) <= 1;
}

std::vector<ExprId> element_at(Program& p, const Region& r, ExprId part) {
  std::vector<ExprId> indices;
  for (size_t d = 0; d < r.offsets.size(); ++d)
    indices.push_back(r.extents[d] > 1 ? p.exprs.add(r.offsets[d], part) : r.offsets[d]);
  return indices;
}

}  // namespace

std::optional<Diagnostic> tile_load_refusal(const std::string& word, const Program& p, const Region& from,
                                            const Region& to) {
  const Buffer &src = p.buffer(from.buffer), &dst = p.buffer(to.buffer);
  if (src.scope != MemScope::global || dst.scope != MemScope::shared)
    return diagnostic(DiagCode::scope_not_allowed,
                      word + " copies from " + src.name + " (" + scope_name(src.scope) + ") to " + dst.name +
                          " (" + scope_name(dst.scope) + "), expected a tensor and a shared tile",
                      "store the elements one by one: " + dst.name + "[...] = " + src.name + "[...]");
  if (src.type != dst.type || is_packed(src.type))
    return diagnostic(DiagCode::dtype_mismatch,
                      word + " copies " + std::string(dtype_name(src.type)) + " to " + dtype_name(dst.type) +
                          ", expected elements of one type, each of whole bytes",
                      "copy the bytes as they are, and cast what is read from the tile");
  return std::nullopt;
}

std::optional<Diagnostic> async_copy_refusal(const Program& p, const Region& from, const Region& to) {
  if (auto refused = tile_load_refusal("copy_async", p, from, to)) return refused;
  const Buffer &src = p.buffer(from.buffer), &dst = p.buffer(to.buffer);
  const int64_t elements = elements_of(from);
  if (!is_line(from) || !is_line(to) || elements_of(to) != elements)
    return diagnostic(DiagCode::shape_mismatch,
                      "copy_async copies a box of " + src.name + " to another one of " + dst.name +
                          ", expected as many elements beside each other on both sides",
                      "give one index of each a range: X[row, at :+ 4] -> tile[place :+ 4]");
  const int64_t bytes = elements * dtype_bytes(src.type);
  if (bytes == 4 || bytes == 8 || bytes == 16) return std::nullopt;
  return diagnostic(DiagCode::bad_shape,
                    "copy_async copies " + std::to_string(elements) + " elements of " + dtype_name(src.type) +
                        ", " + std::to_string(bytes) + " bytes of a thread, expected 4, 8 or 16",
                    "let a thread copy a range of so many bytes: X[row, at :+ 4] -> tile[place :+ 4]");
}

StmtId add_async_copy(Program& p, Draft& draft, const Region& from, const Region& to,
                      const SourceLocation& location, Block& block) {
  Var v;
  v.name = "part";
  v.location = location;
  const VarId var(p.vars.size());
  p.vars.push_back(std::move(v));
  const ExprId part = p.exprs.var(var);
  const ExprId value = p.exprs.load(from.buffer, p.buffer(from.buffer).type, element_at(p, from, part));
  const StmtId store(p.stmts.size());
  p.stmts.push_back({Store{to.buffer, element_at(p, to, part), value}, location});
  Loop loop;
  loop.kind = LoopKind::parallel;
  loop.vars = {var};
  loop.begin = p.exprs.const_int(0);
  loop.extents = {p.exprs.const_int(elements_of(from))};
  loop.body = {store};
  const StmtId made(p.stmts.size());
  p.stmts.push_back({std::move(loop), location});
  draft.async_copies.insert(made);
  block.push_back(made);
  return made;
}

GuardedCopy guarded_copy(const Program& p, const Loop& loop) {
  const Block* body = &loop.body;
  GuardedCopy found;
  if (body->size() == 1)
    if (const auto* branch = p.as<Branch>(body->front()); branch && branch->else_body.empty()) {
      found.guard = branch->condition;
      body = &branch->then_body;
    }
  found.store = body->size() == 1 ? p.as<Store>(body->front()) : nullptr;
  return found;
}

std::string_view first_copy_word(const Program& p, const Kernel& kernel) {
  std::string_view found;
  for_each_statement(p, kernel.body, [&](StmtId s, int) {
    if (!found.empty()) return;
    const auto* op = p.as<TileOp>(s);
    if (op && (op->kind == OpKind::commit_group || op->kind == OpKind::wait_group))
      found = op_row(op->kind).text;
    if (is_asynchronous(p.stmt(s))) found = "copy_async";
  });
  return found;
}

}  // namespace tilegen::ir
