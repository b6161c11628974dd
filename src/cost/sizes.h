// Sizes that a program leaves open, as an estimate takes them.
//
// requires: a checked program.
// ensures: a number for every dim, given or nominal; numbers of expressions over dims, scalars that are given
//   and block indices.
// refuses: nothing. What a tensor's elements tell is unknown.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/program.h"

namespace tilegen::cost {

using Sizes = std::map<std::string, int64_t>;  // by name of a dim or an integer scalar

// Of a dim of which nothing is said; what its facts allow next to it.
inline constexpr int64_t kNominalSize = 4096;

class SizedProgram {
 public:
  SizedProgram(const ir::Program& p, const Sizes& sizes);

  void set(ir::VarId v, int64_t value) { values_[v.value] = value; }
  std::optional<int64_t> of(ir::VarId v) const {
    asked_[v.value] = 1;
    return values_[v.value];
  }
  std::optional<int64_t> value(ir::ExprId e) const;
  // Whether what was told since then followed the variable's number.
  void start_asking() { asked_.assign(asked_.size(), 0); }
  bool asked(ir::VarId v) const { return asked_[v.value] != 0; }

 private:
  const ir::Program& p_;
  std::vector<std::optional<int64_t>> values_;  // by variable
  mutable std::vector<char> asked_;
};

}  // namespace tilegen::cost
