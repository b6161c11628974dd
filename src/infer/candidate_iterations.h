// Iteration layouts that are tried for an op.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "infer/fragment_table.h"
#include "infer/in_memory.h"
#include "infer/infer_layouts.h"

namespace tilegen::infer {

std::vector<int64_t> iteration_extents(const ir::Program& p, const analysis::KernelOp& op);

class CandidateIterations {
 public:
  CandidateIterations(const InferInput& in, const RegisterValues& in_registers, FragmentTable& forms)
      : in_(in), in_registers_(in_registers), forms_(forms) {}

  std::vector<layout::Fragment> of(const analysis::KernelOp& op) const;
  // By their ids in the table.
  const std::vector<FormId>& forms_of(const analysis::KernelOp& op);

 private:
  // Row-major iteration with the vector along `dim`.
  std::optional<layout::Fragment> vectors_along(const std::vector<int64_t>& extents, int dim,
                                                int64_t vector) const;
  std::optional<layout::Fragment> vectors_in_blocks(const std::vector<int64_t>& extents, int dim,
                                                    int64_t vector, int64_t block) const;
  std::optional<layout::Fragment> axis_in_registers(const std::vector<int64_t>& extents, int axis,
                                                    int64_t vector) const;
  // `digit` of a dimension, whose values an access to registers permutes, in registers.
  using KeptDigit = std::tuple<int, int64_t, int64_t>;  // dimension, divisor, extent
  std::optional<layout::Fragment> digit_in_registers(const std::vector<int64_t>& extents, int dim,
                                                     int64_t vector, const KeptDigit& digit) const;
  std::set<KeptDigit> permuted_digits(const analysis::KernelOp& op) const;
  int64_t block_along(const analysis::KernelOp& op, int dim) const;
  std::map<int, int64_t> vector_dims(const analysis::KernelOp& op) const;

  const InferInput& in_;
  const RegisterValues& in_registers_;
  FragmentTable& forms_;
  // by extents, dims of vectors with their blocks, axis of a scan or -1, digits that are permuted
  std::map<std::tuple<std::vector<int64_t>, std::map<int, int64_t>, int, std::set<KeptDigit>>,
           std::vector<FormId>>
      forms_of_;
};

}  // namespace tilegen::infer
