// Expressions compiled for evaluation at many points: indices and conditions of a thread program.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace tilegen::thread {

// Values of variables, by VarId; absent = unknown.
class PointValues {
 public:
  explicit PointValues(size_t vars) : values_(vars) {}
  void set(ir::VarId v, int64_t value) { values_[v.value] = value; }
  void clear(ir::VarId v) { values_[v.value].reset(); }
  const std::optional<int64_t>& operator[](ir::VarId v) const { return values_[v.value]; }

  // What memory holds that a walk writes: looked at before what `data` memory holds.
  using Elements = std::map<std::pair<ir::ObjectId, int64_t>, int64_t>;
  void set_elements(const Elements* elements) { elements_ = elements; }
  std::optional<int64_t> element(ir::ObjectId memory, int64_t index) const {
    if (!elements_) return std::nullopt;
    const auto it = elements_->find({memory, index});
    return it == elements_->end() ? std::nullopt : std::optional(it->second);
  }

  // What `data` memory holds: element i is (i + 1) * step, as offsets of parts after one another are.
  void set_data(ir::ObjectId memory, int64_t step) { data_[memory] = step; }
  std::optional<int64_t> data(ir::ObjectId memory) const {
    const auto it = data_.find(memory);
    return it == data_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  std::vector<std::optional<int64_t>> values_;
  std::map<ir::ObjectId, int64_t> data_;
  const Elements* elements_ = nullptr;
};

// Loads that are more than unknown. Registers, by memory and element: those that hold the value of an
// expression wherever they are read, and those that change, as variables beyond the program's own. Memory
// that nothing changes: the point says what it holds.
struct KnownLoads {
  std::map<std::pair<ir::ObjectId, int64_t>, ir::ExprId> named;
  std::map<std::pair<ir::ObjectId, int64_t>, ir::VarId> changing;
  std::set<ir::ObjectId> data;
};

// One expression of integers, floats inside it included. Other loads are unknown; so is what depends on them,
// but for conjunctions and selections that the known side decides.
class IndexProgram {
 public:
  IndexProgram(const ir::ExprPool& pool, ir::ExprId root, const KnownLoads* loads = nullptr);
  std::optional<int64_t> eval(const PointValues& at) const;
  // For each of 0 .. count - 1 as the value of `v`, which may be invalid.
  void eval_along(ir::VarId v, int64_t count, const PointValues& at,
                  std::vector<std::optional<int64_t>>& values) const;
  const std::vector<ir::VarId>& vars() const { return vars_; }  // ascending
  bool reads_memory() const { return reads_memory_; }
  bool depends_on(ir::VarId v) const;
  const std::set<ir::ObjectId>& data() const { return data_; }

 private:
  struct Value {
    int64_t v = 0;
    bool known = false;
    double f = 0;  // of a float
  };
  struct Step {
    ir::ExprOp op;
    ir::DType type, operand_type;
    int a = -1, b = -1, c = -1;
    int64_t imm = 0;
    bool index = false;  // i64 arithmetic
    ir::ObjectId data;   // load: of what
  };
  static constexpr int kDataBit = 63;  // what depends on `data` memory
  static constexpr uint64_t kData = uint64_t{1} << kDataBit;
  uint64_t bit_of(ir::VarId v) const;
  static Value of_type(ir::DType type, int64_t v);
  Value run(const Step& s, const PointValues& at) const;
  Value run_other(const Step& s) const;
  void run_along(size_t step, int64_t count, const PointValues& at) const;

  std::vector<Step> steps_;
  std::vector<ir::VarId> vars_;
  std::set<ir::ObjectId> data_;
  bool reads_memory_ = false;
  mutable std::vector<Value> values_;
  // Steps whose variables are as they were have the value that they had. By step: the variables that it
  // depends on, as bits; by variable: what it was.
  std::vector<uint64_t> depends_;
  mutable std::vector<std::optional<int64_t>> last_;
  mutable bool evaluated_ = false;
  // of the steps that depend on the variable; empty: the others
  mutable std::vector<std::vector<Value>> rows_;
};

}  // namespace tilegen::thread
