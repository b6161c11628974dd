// The sticky builder behind the C API: makes Programs, nothing else.
//
// After the first error every call is a cheap no-op that returns an invalid id; finish() reports all diagnostics. Every
// argument is checked here (ids in range, live scopes, types), so nothing a caller passes can crash the process.
// A builder serves one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::builder {

class Builder {
 public:
  Builder(std::string_view name, const Limits& limits);

  bool failed() const { return !diagnostics_.empty(); }
  void set_location(SourceLocation loc) { location_ = std::move(loc); }
  void fail(DiagCode code, std::string_view call, std::string message, std::string hint);

  // Parameters, before the first kernel.
  ir::VarId dim(std::string_view name);
  void dim_fact(ir::VarId dim, int64_t lower, int64_t upper, int64_t divisor);
  ir::VarId scalar(std::string_view name, ir::DType type);
  ir::BufferId tensor(std::string_view name, ir::DType type, std::span<const ir::ExprId> shape,
                      std::span<const ir::ExprId> strides, bool read_only);

  // Expressions. Operand types must agree; integer literals adapt nothing silently.
  ir::ExprId const_int(int64_t v, ir::DType t);
  ir::ExprId const_float(double v, ir::DType t);
  ir::ExprId var(ir::VarId v);
  ir::ExprId load(ir::BufferId buffer, std::span<const ir::ExprId> indices);
  ir::ExprId unary(ir::ExprOp op, ir::ExprId a);
  ir::ExprId binary(ir::ExprOp op, ir::ExprId a, ir::ExprId b);
  ir::ExprId select(ir::ExprId cond, ir::ExprId a, ir::ExprId b);
  ir::ExprId cast(ir::DType t, ir::ExprId a);

  // Scopes: begin_* returns a token, end(token) must match the innermost open one. Token 0 = none (failed builder).
  uint64_t begin_kernel(std::string_view name, std::span<const ir::ExprId> grid, int64_t threads,
                        std::span<ir::VarId> out_block_vars);
  uint64_t begin_loop(ir::LoopKind kind, ir::ExprId begin, ir::ExprId end, int64_t num_stages, std::string_view var_name,
                      ir::VarId* out_var);
  uint64_t begin_parallel(std::span<const int64_t> extents, std::span<ir::VarId> out_vars);
  uint64_t begin_if(ir::ExprId condition);
  void begin_else(uint64_t if_token);
  void end(uint64_t token);

  // Statements of the innermost scope.
  ir::BufferId alloc(std::string_view name, ir::MemScope scope, ir::DType type, std::span<const int64_t> shape);
  // extents empty = whole buffer (offsets must be empty too)
  std::optional<ir::Region> region(ir::BufferId buffer, std::span<const ir::ExprId> offsets,
                                   std::span<const int64_t> extents);
  void tile_op(ir::OpKind kind, std::span<const ir::Region> operands, std::span<const int64_t> attrs, ir::ExprId value);
  void store(ir::BufferId buffer, std::span<const ir::ExprId> indices, ir::ExprId value);

  // Hands the program over after check_program. The builder is spent.
  Expected<std::shared_ptr<const ir::Program>> finish();

 private:
  std::vector<Diagnostic> diagnostics_;
  SourceLocation location_;
};

}  // namespace tilegen::builder
