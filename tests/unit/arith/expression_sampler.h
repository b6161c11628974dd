// Random expressions, random facts and an evaluator, for the property tests of arith/.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "arith/context.h"
#include "ir/expr.h"

namespace tilegen::arith::testing {

// How one variable is bound and from where its samples come.
struct SampledVar {
  std::string name;
  bool bound = true;
  int64_t lo = 0, hi = 0, divisor = 1;
  int64_t sample_lo = 0, sample_hi = 0;
};

// Numbers at which integers of some width end, and those beside them.
std::vector<int64_t> edge_numbers();

struct Assignment {
  std::vector<int64_t> vars;
  uint64_t memory_seed = 0;  // loads give a hash of this and their indices
};

constexpr size_t kSmallObject = 0;  // i32 elements
constexpr size_t kDataObject = 1;   // i64 elements, any bits

struct SamplerOptions {
  bool data = false;   // loads and variables of any bits
  bool edges = false;  // constants and ranges at the edges of the types
};

class Sampler {
 public:
  Sampler(uint64_t seed, SamplerOptions options);

  ir::ExprPool pool;
  std::vector<SampledVar> vars;

  void bind_all(Context& ctx) const;
  ir::ExprId random_index(int depth);
  ir::ExprId random_condition(int depth);
  Assignment random_assignment();
  int64_t eval(ir::ExprId e, const Assignment& a) const;  // integers and bools, which wrap
  std::string text(ir::ExprId e) const;

  int64_t pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }

 private:
  ir::ExprId random_leaf();
  int64_t edge() { return edges_[static_cast<size_t>(pick(0, static_cast<int64_t>(edges_.size()) - 1))]; }
  std::mt19937_64 random_;
  const SamplerOptions options_;
  const std::vector<int64_t> edges_ = edge_numbers();
};

// Infix text with every nesting in parentheses but sums of products.
std::string expression_text(const ir::ExprPool& pool, ir::ExprId e, const std::vector<std::string>& names);

}  // namespace tilegen::arith::testing
