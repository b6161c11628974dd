// Functions that round, in random programs. Each call has a tensor of its own, which nothing else reads and
// which is compared by the bound of docs/numerics.md; its arguments are exact. The numbers are of a series of
// their own: what else a seed makes is the same with and without.
#include <algorithm>
#include <cmath>

#include "random_generator.h"

namespace tilegen::differential {

namespace {

// Where arguments lie, and the largest errors in units of the last place, of f32 on any executor and of f64.
// A fast form has f32 alone, and is not asked beyond these arguments.
struct CallRow {
  const char* name;
  double low, high;
  double f32, f64;
  double absolute = 0;
  double second_low = 0, second_high = 0;  // of a second argument
};

constexpr double kLeast = 0x1p-126;  // of the normal numbers: what is below may count as 0
constexpr double relative(double error) { return error * 0x1p24; }

constexpr CallRow kCalls[] = {
    {"exp", -8, 8, 2.5, 1.5, kLeast},
    {"exp2", -8, 8, 2.5, 1, kLeast},
    {"exp10", -4, 4, 1.5, 1.5, kLeast},
    {"expm1", -4, 4, 1.5, 2},
    {"log", 0.125, 16, 1, 1.5},
    {"log2", 0.125, 16, 1.5, 1},
    {"log1p", -0.5, 16, 1.5, 1.5},
    {"sqrt", 0, 16, 0, 0},
    {"rsqrt", 0.125, 16, 1.5, 1.5},
    {"cbrt", -16, 16, 1, 1},
    {"tanh", -4, 4, 2, 1.5},
    {"sigmoid", -8, 8, 4, 2},
    {"erf", -4, 4, 1.5, 1.5},
    {"erfc", -4, 4, 5, 3.5},
    {"sin", -16, 16, 1.25, 1},
    {"cos", -16, 16, 1.25, 1},
    {"tan", -16, 16, 2.5, 2.5},
    {"asin", -1, 1, 1.5, 1.5},
    {"acos", -1, 1, 1.5, 1.5},
    {"atan", -16, 16, 2, 1.5},
    {"atan2", -8, 8, 2, 2, 0, -8, 8},
    {"pow", 0.125, 4, 1.5, 1.5, 0, -3, 3},
};

constexpr CallRow kFastCalls[] = {
    {"fast_exp", -8, 8, relative(9 * 0x1p-22), 0},
    {"fast_exp2", -8, 8, relative(0x1p-22), 0},
    {"fast_exp10", -4, 4, relative(5 * 0x1p-22), 0},
    {"fast_log", 0.125, 16, relative(0x1p-21), 0, 0x1p-21},
    {"fast_log2", 0.125, 16, relative(0x1p-21), 0, 0x1p-21},
    {"fast_sin", -6, 6, 0, 0, 0x1p-20},
    {"fast_cos", -6, 6, 0, 0, 0x1p-20},
    {"fast_tanh", -4, 4, relative(0.000524), 0},  // 2^-10.9
    {"fast_sigmoid", -8, 8, relative(12 * 0x1p-22), 0},
    {"fast_sqrt", 0.125, 16, relative(0x1p-22), 0},
    {"fast_rsqrt", 0.125, 16, relative(0x1p-22), 0},
    {"fast_div", -16, 16, relative(0x1p-22), 0, 0, 0.125, 8},
    {"fast_pow", 0.125, 4, relative(37 * 0x1p-22), 0, 0, -3, 3},
};

std::string decimal(DType t, double v) {
  std::string text = std::to_string(v);
  return (v < 0 ? "(" + text : text) + ir::dtype_name(t) + (v < 0 ? ")" : "");
}

}  // namespace

void Generator::begin_calls(uint64_t seed) {
  of_calls_ = Random(seed, "calls");
  has_calls_ = of_calls_.chance(4);
}

// In front of a statement outside of parallel loops.
void Generator::use_call() {
  if (!has_calls_ || grid_.size() > 3) return;
  std::swap(r_, of_calls_);
  if (r_.chance(5)) inexact_call();
  std::swap(r_, of_calls_);
}

// A number from low to high: eighths of what the point is, or an element within these.
std::string Generator::argument(DType t, double low, double high, bool anything) {
  const std::string type = ir::dtype_name(t);
  if (!r_.chance(3)) {
    const auto steps = static_cast<int64_t>((high - low) * 8) + 1;
    return "(cast(" + type + ", (" + index(2) + ") % " + std::to_string(steps) + ") * " + decimal(t, 0.125) +
           " + " + decimal(t, low) + ")";
  }
  const std::string value = leaf(t).text;
  if (anything && r_.chance(2)) return value;
  return "min(max(" + value + " * " + decimal(t, 0.25) + ", " + decimal(t, low) + "), " + decimal(t, high) +
         ")";
}

void Generator::inexact_call() {
  const bool fast = r_.chance(3);
  const CallRow& f =
      fast ? r_.pick(std::span<const CallRow>(kFastCalls)) : r_.pick(std::span<const CallRow>(kCalls));
  const DType t = fast ? DType::f32 : r_.pick({DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16});
  const int64_t rows = r_.pick<int64_t>({1, 2, 3, 8, 16}), columns = r_.pick<int64_t>({1, 4, 17, 32, 33, 64});
  if (!affordable(8 * rows * columns)) return;
  const std::string type = ir::dtype_name(t), n = fresh("n"),
                    extents = std::to_string(rows) + ", " + std::to_string(columns);
  std::string shape, place, box;
  for (const GridVar& g : grid_) {
    shape += g.extent.text + ", ";
    place += g.name + ", ";
    box += g.name + " :+ 1, ";
  }
  declarations_ += "tensor " + n + ": " + type + "[" + shape + extents + "]\n";
  // Both sides may be wrong: the function of the reference by a unit.
  Bound& bound = bounds_[n];
  bound.ulps = ir::dtype_bits(t) == 16 ? 1 : (t == DType::f64 ? f.f64 : f.f32) + 1;
  bound.absolute = f.absolute;
  std::string through;
  if (r_.chance(2)) {
    through = fresh("n");
    allocs_ += "  alloc " + through + ": " + r_.pick({"shared ", "fragment "}) + type + "[" + extents + "]\n";
  }
  const size_t outer_vars = vars_.size();
  const auto v = begin_points({rows, columns});
  // Beyond its arguments a fast form has no bound, and pow of anything may end between two types' ends.
  const bool anything = !fast && f.second_low == f.second_high;
  std::string call = f.name + ("(" + argument(t, f.low, f.high, anything));
  if (f.second_low != f.second_high) call += ", " + argument(t, f.second_low, f.second_high, false);
  call += ")";
  if (r_.chance(3)) call = (r_.chance(2) ? "neg(" : "abs(") + call + ")";
  if (r_.chance(4)) call = "select(" + bool_expr(1).text + ", " + call + ", " + number_text(t, 1) + ")";
  const std::string at = v[0] + ", " + v[1];
  line((through.empty() ? n + "[" + place + at : through + "[" + at) + "] = " + call);
  end_points(outer_vars);
  if (!through.empty())
    line("copy " + through + " -> " + n + "[" + box + "0 :+ " + std::to_string(rows) + ", 0 :+ " +
         std::to_string(columns) + "]");
}

}  // namespace tilegen::differential
