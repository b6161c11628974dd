// Where the threads of a row meet, each with a part of the row's result: lanes of a warp by butterflies, what
// is left in a scratch slice. Used by reductions and by sums that a loop has carried in parts.
#pragma once

#include "analysis/exchange.h"
#include "lower/gpu/exchange.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

class DeferredReduction {
 public:
  // `iteration`, `axis`: of the reduction that makes the parts.
  DeferredReduction(LoweringContext& k, const analysis::ReductionExchange& x, ir::ReduceKind kind,
                    ir::DType type, const layout::Fragment& iteration, int axis, const std::string& path)
      : k_(k),
        e_(k.out.exprs),
        x_(x),
        kind_(kind),
        type_(type),
        iteration_(iteration),
        axis_(axis),
        path_(path) {}

  ExprId load(MemoryId m, ExprId index) { return e_.load(m, type_, std::vector<ExprId>{index}); }
  thread::StmtId store(MemoryId m, ExprId index, ExprId value, ExprId predicate = ExprId()) {
    return k_.out.add(thread::Store{m, index, value, predicate, false, ExprId()}, path_);
  }
  // for r in 0 .. count, unrolled
  using EmitRegister = std::function<void(ExprId r, thread::Block& body)>;
  void for_each_register(int64_t count, const EmitRegister& emit, thread::Block& out);

  // Afterwards each of the lanes has the result of them all.
  void combine_lanes(MemoryId parts, int64_t count, thread::Block& out);
  // The first of the threads of a row; invalid: each is alone with its row.
  ExprId first_of_row();

  void begin_scratch() { scratch_ = scratch_memory(k_, path_, type_, x_.scratch_elements()); }
  // This thread writes the part that its lanes have, which is number `part`: first of the copies, first of
  // the lanes that have met.
  ExprId writer(ExprId* part);
  // The part of result `number` to scratch, by one thread.
  void put(ExprId writer, ExprId part, ExprId number, ExprId value, const Nest& nest, thread::Block& body);
  // All parts of result `number`, from scratch to sum[0].
  void fetch(MemoryId sum, ExprId number, const Nest& nest, thread::Block& body);

 private:
  ExprId is_zero(ExprId v) { return k_.simplified(e_.binary(ir::ExprOp::eq, v, e_.const_int(0))); }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const analysis::ReductionExchange& x_;
  const ir::ReduceKind kind_;
  const ir::DType type_;
  const layout::Fragment& iteration_;
  const int axis_;
  const std::string& path_;
  MemoryId scratch_;
};

}  // namespace tilegen::lower
