#include "ir/assertion.h"

namespace tilegen::ir {

void add_assertion(Program& p, const Assertion& what, const SourceLocation& location, Block& block) {
  ReportMaker make(p, what.around, location);
  ExprPool& e = p.exprs;
  Store store;
  store.buffer = make.buffer(Report::assertions, DType::i64, "assert.failed");  // no name of a text
  store.indices = {e.const_int(static_cast<int64_t>(p.messages.size()))};
  store.value = e.sub(e.const_int(kLastPlace), make.place());
  store.atomic = AtomicKind::max;
  p.messages.push_back(what.message);
  p.buffers[store.buffer.value].shape = {e.const_int(static_cast<int64_t>(p.messages.size()))};
  Branch branch;
  branch.condition = e.unary(ExprOp::logical_not, what.condition);
  const StmtId made = make.add(std::move(branch));  // before what it holds, as the text has them
  Block held = make.placed({std::move(store)});
  std::get<Branch>(p.stmts[made.value].node).then_body = std::move(held);
  block.push_back(made);
}

std::optional<AssertionText> assertion_at(const Program& p, StmtId stmt) {
  const auto* branch = p.as<Branch>(stmt);
  if (p.messages.empty() || !branch || branch->then_body.size() != 1 || !branch->else_body.empty()) return {};
  StmtId held = branch->then_body[0];
  if (const auto* loop = p.as<Loop>(held); loop && loop->body.size() == 1) held = loop->body[0];
  const auto* store = p.as<Store>(held);
  int64_t index = 0;
  if (!store || p.buffer(store->buffer).report != Report::assertions ||
      !p.exprs.is_const_int(store->indices[0], &index))
    return {};
  return AssertionText{branch->condition, static_cast<size_t>(index)};
}

}  // namespace tilegen::ir
