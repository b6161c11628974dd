// Solves a program's dims from equations "expression over dims and integer scalars = number", one unknown at
// a time. Scalars are set beforehand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace tilegen::runtime {

// Whether a launch without this tensor has one less that the dim is an extent of.
bool may_leave_out(const ir::Program& program, const ir::Buffer& tensor, ir::VarId dim);

class DimSolver {
 public:
  explicit DimSolver(const ir::Program& program) : program_(program), known_(program.vars.size()) {}
  // Dims and integer scalars known from a launch's slots, one per parameter.
  DimSolver(const ir::Program& program, std::span<const uint64_t> slots);

  bool is_known(ir::VarId v) const { return known_[v.value].has_value(); }
  size_t known_count() const { return sources_.size(); }
  int64_t value(ir::VarId v) const { return *known_[v.value]; }
  // Where the value came from: "argument 'm'", "extent 0 of tensor 'A'".
  const std::string& source(ir::VarId v) const { return sources_.at(v.value); }
  void set(ir::VarId v, int64_t value, std::string source);

  struct Equation {
    ir::ExprId expr;
    int64_t actual = 0;
    size_t param = 0;
    std::string what;  // "extent 0 of tensor 'A'"
  };
  // Solves what can be solved; the first equation that cannot hold is returned.
  std::optional<Equation> solve(const std::vector<Equation>& equations);

  // Value of an expression whose dims are known; none where it overflows or reads anything else.
  std::optional<int64_t> evaluate(ir::ExprId root) const;

  // "m = 128 from extent 0 of tensor 'A', n = ..." of the dims that an expression uses.
  std::string explain(ir::ExprId root) const;

 private:
  // constant + sum of coefficient * unknown dim; not affine: no use before more is known.
  struct Affine {
    bool affine = true;
    int64_t constant = 0;
    std::vector<std::pair<ir::VarId, int64_t>> terms;
    bool is_constant() const { return affine && terms.empty(); }
  };
  Affine affine_form(ir::ExprId root) const;
  Affine combine(const ir::ExprNode& n, const Affine& a, const Affine& b, const Affine& c) const;
  enum class Outcome { holds, fails, waits, solved };
  Outcome step(const Equation& e);
  std::optional<Equation> without_quotient(const Equation& e) const;

  const ir::Program& program_;
  std::vector<std::optional<int64_t>> known_;
  std::unordered_map<uint32_t, std::string> sources_;
};

}  // namespace tilegen::runtime
