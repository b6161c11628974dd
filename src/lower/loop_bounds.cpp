// Scalars that are taken once, before what may change what they are read from: bounds of loops, `serial
// i in t[0] .. n` begins where t[0] says then, and what tile operations fill with and where their regions
// begin.
#include "lower/loop_bounds.h"

#include "analysis/loads.h"
#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/lowering_context.h"
#include "lower/statement_exprs.h"

namespace tilegen::lower {

namespace {

// As it is before `body`, which may write what it is read from.
ExprId taken_before(LoweringContext& k, ExprId program_expr, const ir::Block& body, const char* name,
                    thread::Block& out, const std::string& origin) {
  const ExprId value = lower_expr(k, program_expr);
  if (!reads_what_is_written(k, program_expr, body)) return value;
  ir::ExprPool& e = k.out.exprs;
  thread::Memory m;
  m.name = name + std::to_string(k.out.memories.size());
  m.space = thread::Space::local;
  m.type = e.type(value);
  m.elements = 1;
  m.alignment = ir::dtype_bytes(m.type);
  m.in_registers = true;
  const ir::DType type = m.type;
  const MemoryId held = k.out.add_memory(std::move(m));
  const ExprId zero = e.const_int(0);
  out.push_back(k.out.add(thread::Store{held, zero, value, ExprId(), false, ExprId()}, origin));
  return e.load(held, type, std::vector<ExprId>{zero});
}

}  // namespace

bool reads_what_is_written(const LoweringContext& k, ExprId program_expr, const ir::Block& body) {
  std::set<ir::BufferId> written;
  ir::for_each_statement(k.in.program, body, [&](ir::StmtId s, int) {
    if (const auto op = k.in.op_of.find(s); op != k.in.op_of.end())
      for (const analysis::OpAccess& a : op->second->accesses)
        if (a.write) written.insert(a.buffer);
  });
  return analysis::reads_any(k.in.program.exprs, program_expr, written);
}

LoopBounds loop_bounds(LoweringContext& k, const ir::Loop& loop, thread::Block& out,
                       const std::string& origin) {
  const ExprId begin = taken_before(k, loop.begin, loop.body, "begin", out, origin);
  return {begin, k.simplified(taken_before(k, loop.extents[0], loop.body, "extent", out, origin))};
}

void take_scalars(LoweringContext& k, ir::StmtId id, thread::Block& out, const std::string& origin) {
  const auto* op = k.in.program.as<ir::TileOp>(id);
  if (!op) return;
  const auto take = [&](ExprId program_expr) {
    if (!program_expr.valid() || !reads_what_is_written(k, program_expr, {id}) ||
        k.at.taken.count(program_expr))
      return;
    const ExprId taken = taken_before(k, program_expr, {id}, "taken", out, origin);
    k.at.taken[program_expr] = taken;
  };
  take(op->value);
  for (const ir::Region& r : op->operands)
    for (ExprId offset : r.offsets) take(offset);
}

ExprId repeated(LoweringContext& k, ExprId count, ExprId extent) {
  ir::ExprPool& e = k.out.exprs;
  const ExprId all = e.mul(count, extent);
  k.ctx.assume(e.le(e.const_int(0), all));
  k.ctx.assume(e.le(all, e.const_int(thread::kMaxIterations)));
  return all;
}

void bind_counter(LoweringContext& k, VarId var, ExprId extent) {
  const int64_t most = arith::range_of(k.ctx, extent).hi;
  k.ctx.bind(var, 0, most > thread::kMaxIterations ? thread::kMaxIterations : most - 1);
}

}  // namespace tilegen::lower
