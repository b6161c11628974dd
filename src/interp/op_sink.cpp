#include "interp/op_sink.h"

namespace tilegen::interp {

OpSink::OpSink(const ir::Program& program, Evaluator& evaluator, const ir::TileOp& op)
    : program_(program), evaluator_(evaluator), op_(op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    for (ir::ExprId offset : op.operands[i].offsets) offsets_[i].push_back(evaluator.eval_index(offset));
    element_[i].resize(offsets_[i].size());
  }
  if (op.value.valid()) value_ = evaluator.eval(op.value);
}

// Wraps like the index arithmetic it stands for, so a wild offset is outside rather than undefined.
std::span<const int64_t> OpSink::absolute(int operand, std::span<const int64_t> index) {
  std::vector<int64_t>& element = element_[operand];
  for (size_t d = 0; d < index.size(); ++d)
    element[d] =
        static_cast<int64_t>(static_cast<uint64_t>(offsets_[operand][d]) + static_cast<uint64_t>(index[d]));
  return element;
}

ir::ScalarValue OpSink::read(int operand, std::span<const int64_t> index) {
  return evaluator_.load(op_.operands[operand].buffer, absolute(operand, index));
}

void OpSink::write(int operand, std::span<const int64_t> index, ir::ScalarValue value) {
  if (!evaluator_.failed()) evaluator_.store(op_.operands[operand].buffer, absolute(operand, index), value);
}

}  // namespace tilegen::interp
