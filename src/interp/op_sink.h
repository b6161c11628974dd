// Runs the reference meaning of one tile op against the interpreter's buffers.
#pragma once

#include <array>
#include <vector>

#include "interp/evaluator.h"
#include "ops/reference_sink.h"

namespace tilegen::interp {

class OpSink final : public ops::ReferenceSink {
 public:
  // Evaluates the region offsets and the op's scalar at once; requires a step begun by the caller.
  OpSink(const ir::Program& program, Evaluator& evaluator, const ir::TileOp& op);

  ir::ScalarValue read(int operand, std::span<const int64_t> index) override;
  void write(int operand, std::span<const int64_t> index, ir::ScalarValue value) override;
  std::span<const int64_t> extents(int operand) const override { return op_.operands[operand].extents; }
  ir::DType type(int operand) const override { return program_.buffer(op_.operands[operand].buffer).type; }
  ir::ScalarValue value() override { return value_; }
  bool stopped() const override { return evaluator_.failed(); }

 private:
  std::span<const int64_t> absolute(int operand, std::span<const int64_t> index);

  const ir::Program& program_;
  Evaluator& evaluator_;
  const ir::TileOp& op_;
  std::array<std::vector<int64_t>, ir::kMaxOperands> offsets_;
  std::array<std::vector<int64_t>, ir::kMaxOperands> element_;
  ir::ScalarValue value_;
};

}  // namespace tilegen::interp
