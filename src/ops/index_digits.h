// An index as digits of the iteration: which part of which iteration variable stands at which weight.
//
//   x[j // 2 % 16 * 4 + j % 4]  ->  j/2 % 16 * 4 + j/1 % 4 * 1
//   x[63 - j], j ^ 32, (j + 16) % 64: digits whose values are mirrored or turned
//
// However an index is written, equal ones have equal digits: quotients, remainders, shifts, masks and sums of
// them are worked out on the digits. Layouts are maps of digits, so who holds the element follows from these.
//
// What is refused: indices that are no such sums (products of variables, data, sums that carry from one digit
// into another), and digits that do not divide the extents.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"

namespace tilegen::ops {

// A part of an index: point[dim] // divisor % modulus * weight; of modulus 0 without that.
struct IndexTerm {
  int dim = 0;
  int64_t divisor = 1, modulus = 0, weight = 1;
  // Of its `modulus` values, which is given then: value v is modulus - 1 - v, and (v + turn) % modulus of
  // that.
  bool mirrored = false;
  int64_t turn = 0;

  bool is_permuted() const { return mirrored || turn != 0; }
  int64_t at(std::span<const int64_t> point) const;
  bool operator==(const IndexTerm&) const = default;
};

struct IndexDigits {
  int64_t constant = 0;
  std::vector<IndexTerm> terms;  // by ascending weight
};

// `extents`: of the iteration variables, which begin at 0.
std::optional<IndexDigits> index_digits(const ir::Program& p, ir::ExprId index,
                                        std::span<const ir::VarId> vars, std::span<const int64_t> extents);

}  // namespace tilegen::ops
