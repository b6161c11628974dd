// Evaluates expressions against the variables and buffers of the running block.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interp/storage.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"

namespace tilegen::interp {

// What went wrong, still without the statement it happened in.
struct Fault {
  DiagCode code{};  // internal_error
  std::string message;
  std::string hint;
};

// Only what a result needs is evaluated: the side a select does not take, and the second operand of an `and`
// or `or` decided by the first, may name elements that do not exist. Values are kept per node within one
// step, so a shared subexpression costs once.
class Evaluator {
 public:
  Evaluator(const ir::Program& program, std::vector<Storage>& buffers, const Cancellation* cancellation);

  void set(ir::VarId var, ir::ScalarValue value) { vars_[var.value] = value; }
  void set(ir::VarId var, int64_t value) { vars_[var.value] = {ir::DType::i64, value, 0}; }

  ir::ScalarValue get(ir::VarId var) const { return vars_[var.value]; }
  // Another set of variables comes into force, the one until now into its place.
  void exchange(std::vector<ir::ScalarValue>& vars) { vars_.swap(vars); }
  const std::vector<ir::ScalarValue>& vars() const { return vars_; }

  // Variables or buffers changed: forget the values of nodes.
  void begin_step() {
    ++step_;
    count_work();
  }
  ir::ScalarValue eval(ir::ExprId id);
  int64_t eval_index(ir::ExprId id) { return eval(id).i; }

  ir::ScalarValue load(ir::BufferId buffer, std::span<const int64_t> index) {
    count_work();
    ir::ScalarValue value;
    const AccessResult result = buffers_[buffer.value].load(index, &value);
    if (result != AccessResult::done) record(result, buffer, index);
    return value;
  }
  void store(ir::BufferId buffer, std::span<const int64_t> index, ir::ScalarValue value) {
    count_work();
    const AccessResult result = buffers_[buffer.value].store(index, value);
    if (result != AccessResult::done) record(result, buffer, index);
  }

  // A statement, an iteration or an access: so often the caller is asked whether to go on.
  void count_work() {
    if (stop_()) give_up();
  }

  // The first fault stays; values after it mean nothing. Giving up is one without a fault.
  bool failed() const { return failed_; }
  void fail(Fault fault) {
    if (!failed_) fault_ = std::move(fault);
    failed_ = true;
  }
  const std::optional<Fault>& fault() const { return fault_; }

 private:
  ir::ScalarValue eval_node(const ir::ExprNode& n, ir::ExprId id);
  ir::ScalarValue eval_load(const ir::ExprNode& n, ir::ExprId id);
  void give_up() { failed_ = true; }
  void record(AccessResult result, ir::BufferId buffer, std::span<const int64_t> index);

  const ir::Program& program_;
  std::vector<Storage>& buffers_;
  std::vector<ir::ScalarValue> vars_;
  std::vector<ir::ScalarValue> values_;
  std::vector<uint64_t> stamps_;
  uint64_t step_ = 1;
  StopCheck stop_;
  bool failed_ = false;
  std::optional<Fault> fault_;
};

}  // namespace tilegen::interp
