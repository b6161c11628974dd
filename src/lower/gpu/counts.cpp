#include "lower/gpu/counts.h"

#include "analysis/block_tree.h"
#include "lower/gpu/registers.h"
#include "lower/loop_bounds.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

namespace {

bool counted(const LoweringContext& k, ir::StmtId s) {
  return analysis::runs_irregularly(k.in.program, k.in.kernel, k.in.tree, s, k.grid.tile_var.valid());
}

MemoryId count_of(LoweringContext& k, const void* what, const char* name) {
  const auto [count, fresh] = k.role.fillings.try_emplace(what);
  if (fresh) count->second = add_registers(k, name, ir::DType::i32, 1);
  return count->second;
}

// Known to be a small number, which slots and phases are cheap to tell from.
ExprId held_count(LoweringContext& k, MemoryId count) {
  ir::ExprPool& e = k.out.exprs;
  return e.binary(ir::ExprOp::min, e.binary(ir::ExprOp::max, held_number(k, count), e.const_int(0)),
                  e.const_int(thread::kMaxPersistentPoints));
}

void add_to_count(LoweringContext& k, MemoryId count, ExprId more, thread::Block& out) {
  ir::ExprPool& e = k.out.exprs;
  const ExprId sum =
      e.cast(ir::DType::i32,
             k.simplified(e.add(held_number(k, count), e.binary(ir::ExprOp::max, more, e.const_int(0)))));
  out.push_back(
      k.out.add(thread::Store{count, e.const_int(0), sum, ExprId(), false, ExprId()}, k.in.kernel.name));
}

bool uses_counted(const LoweringContext& k, const PipelineBarriers& c) {
  return !c.pipeline->loop.valid() && counted(k, k.in.ops.ops[c.pipeline->copies.front()].stmt);
}

}  // namespace

ExprId held_number(LoweringContext& k, MemoryId number) {
  ir::ExprPool& e = k.out.exprs;
  return e.cast(ir::DType::i64, e.load(number, ir::DType::i32, std::vector<ExprId>{e.const_int(0)}));
}

ExprId fillings_before(LoweringContext& k, ir::StmtId loop, ExprId extent) {
  return counted(k, loop) ? held_count(k, count_of(k, &k.in.program.stmt(loop), "fillings"))
                          : repeated(k, k.role.iteration_counts, extent);
}

void count_fillings(LoweringContext& k, ir::StmtId loop, ExprId extent, thread::Block& out) {
  if (counted(k, loop)) add_to_count(k, count_of(k, &k.in.program.stmt(loop), "fillings"), extent, out);
}

ExprId uses_before(LoweringContext& k, const PipelineBarriers& c) {
  return uses_counted(k, c) ? held_count(k, count_of(k, c.pipeline, "uses")) : k.role.iteration_counts;
}

void count_use(LoweringContext& k, const PipelineBarriers& c, thread::Block& out) {
  if (uses_counted(k, c)) add_to_count(k, count_of(k, c.pipeline, "uses"), k.out.exprs.const_int(1), out);
}

}  // namespace tilegen::lower
