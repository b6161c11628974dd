// Scalars that are taken once, before what may change what they are read from: bounds of loops, `serial
// i in t[0] .. n` begins where t[0] says then, and what tile operations fill with and where their regions
// begin.
#include "analysis/loads.h"
#include "lower/kernel_lowering.h"
#include "lower/statement_exprs.h"

namespace tilegen::lower {

bool KernelLowering::reads_what_is_written(ExprId program_expr, const ir::Block& body) const {
  std::set<ir::BufferId> written;
  ir::for_each_statement(p_, body, [&](ir::StmtId s, int) {
    if (const auto op = op_of_.find(s); op != op_of_.end())
      for (const analysis::OpAccess& a : op->second->accesses)
        if (a.write) written.insert(a.buffer);
  });
  return analysis::reads_any(p_.exprs, program_expr, written);
}

// As it is before `body`, which may write what it is read from.
ExprId KernelLowering::taken_before(ExprId program_expr, const ir::Block& body, const char* name,
                                    thread::Block& out, const std::string& origin) {
  const ExprId value = lower_expr(program_expr);
  if (!reads_what_is_written(program_expr, body)) return value;
  ir::ExprPool& e = out_.exprs;
  thread::Memory m;
  m.name = name + std::to_string(out_.memories.size());
  m.space = thread::Space::local;
  m.type = e.type(value);
  m.elements = 1;
  m.alignment = ir::dtype_bytes(m.type);
  m.in_registers = true;
  const ir::DType type = m.type;
  const MemoryId held = out_.add_memory(std::move(m));
  const ExprId zero = e.const_int(0);
  out.push_back(out_.add(thread::Store{held, zero, value, ExprId(), false, ExprId()}, origin));
  return e.load(held, type, std::vector<ExprId>{zero});
}

LoopBounds KernelLowering::loop_bounds(const ir::Loop& loop, thread::Block& out, const std::string& origin) {
  const ExprId begin = taken_before(loop.begin, loop.body, "begin", out, origin);
  return {begin, simplified(taken_before(loop.extents[0], loop.body, "extent", out, origin))};
}

void KernelLowering::take_scalars(ir::StmtId id, thread::Block& out, const std::string& origin) {
  const auto* op = p_.as<ir::TileOp>(id);
  if (!op) return;
  const auto take = [&](ExprId program_expr) {
    if (!program_expr.valid() || !reads_what_is_written(program_expr, {id}) || taken_.count(program_expr))
      return;
    const ExprId taken = taken_before(program_expr, {id}, "taken", out, origin);
    taken_[program_expr] = taken;
  };
  take(op->value);
  for (const ir::Region& r : op->operands)
    for (ExprId offset : r.offsets) take(offset);
}

ExprId KernelLowering::repeated(ExprId count, ExprId extent) {
  ir::ExprPool& e = out_.exprs;
  const ExprId all = e.mul(count, extent);
  ctx_.assume(e.le(e.const_int(0), all));
  ctx_.assume(e.le(all, e.const_int(thread::kMaxIterations)));
  return all;
}

void KernelLowering::bind_counter(VarId var, ExprId extent) {
  const int64_t most = arith::range_of(ctx_, extent).hi;
  ctx_.bind(var, 0, most > thread::kMaxIterations ? thread::kMaxIterations : most - 1);
}

}  // namespace tilegen::lower
