// Integers that wrap: expressions as a value, an index, a divisor, a bound, a condition, the begin of a
// region.
#include "random_generator.h"

namespace tilegen::differential {

namespace {

constexpr int64_t kPlaces = 128;  // elements of an output: one of each iteration

}  // namespace

int64_t Generator::edge() {
  const auto power = [&](int bits) {
    const int64_t beside = r_.pick<int64_t>({-1, 0, 0, 0, 1});
    return ((int64_t{1} << bits) + beside) * (r_.chance(3) ? -1 : 1);
  };
  switch (r_.below(4)) {
    case 0:
      return r_.pick<int64_t>(
          {INT64_MAX, INT64_MAX - 1, INT64_MAX - 7, INT64_MAX - 63, INT64_MIN, INT64_MIN + 1, INT64_MIN + 8});
    case 1:
      return power(r_.pick({31, 32, 33}));
    case 2:
      return power(r_.pick({61, 62, 62}));
    default:
      return power(static_cast<int>(r_.between(40, 62)));
  }
}

// The lowest number has no literal: it is written as a difference.
std::string Generator::integer_constant() {
  const int64_t v =
      r_.chance(2) ? edge() : r_.pick<int64_t>({0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 100, -1, -2, -3, -8});
  if (v == INT64_MIN) return "(-9223372036854775807 - 1)";
  return v < 0 ? "(" + std::to_string(v) + ")" : std::to_string(v);
}

std::string Generator::integer(int depth) {
  if (depth <= 0 || r_.chance(8)) {
    if (!r_.chance(4)) return r_.pick(std::span<const IndexVar>(vars_)).name;
    if (r_.chance(2)) return r_.pick(std::span<const std::string>(dims_));
    const auto& [name, type] = scalars_[static_cast<size_t>(r_.below(static_cast<int64_t>(scalars_.size())))];
    return type == DType::i64 ? name : "cast(i64, " + name + ")";
  }
  const std::string a = integer(depth - 1);
  const auto other = [&] { return r_.chance(3) ? integer(depth - 1) : integer_constant(); };
  switch (r_.below(16)) {
    case 0:
    case 1:
    case 2:
      return "(" + a + r_.pick({" + ", " - "}) + other() + ")";
    case 3:
    case 4:
    case 5:
      return "(" + a + " * " + other() + ")";
    case 6:
    case 7:
    case 8:
      return "(" + a + " // " + other() + ")";
    case 9:
    case 10:
    case 11:
      return "(" + a + " % " + other() + ")";
    case 12:
      return r_.pick({"min(", "max("}) + a + ", " + other() + ")";
    case 13:
      return "(" + a + r_.pick({" << ", " >> "}) + std::to_string(r_.between(0, 65)) + ")";
    case 14:
      if (r_.chance(4)) return "mulhi(" + a + ", " + other() + ")";
      return r_.chance(2) ? r_.pick({"neg(", "abs(", "bit_not(", "popcount(", "clz(", "ctz("}) + a + ")"
                          : "(" + a + r_.pick({" & ", " | ", " ^ "}) + other() + ")";
    default:
      return r_.chance(2) ? "cast(i64, cast(i32, " + a + "))"
                          : "select(" + integer_condition(depth - 1) + ", " + a + ", " + other() + ")";
  }
}

std::string Generator::integer_condition(int depth) {
  const std::string a = integer(depth), b = r_.chance(2) ? integer(depth) : integer_constant();
  const std::string one = "(" + a + r_.pick({" < ", " <= ", " == ", " != ", " > ", " >= "}) + b + ")";
  if (!r_.chance(5)) return one;
  return "(" + one + r_.pick({" and ", " or "}) + integer_condition(depth - 1) + ")";
}

// What an expression is used for; `place` is the iteration's own element.
void Generator::integer_statement(int number, const std::string& place) {
  const std::string y = "Y" + std::to_string(number) + "[" + place + "]", e = integer(3);
  switch (r_.below(7)) {
    case 0:
      return line(y + " = " + e);
    case 1:
      return line(y + " = X[" + e + "]");
    case 2:
      return line(y + " = select(" + integer_condition(2) + ", " + e + ", X[" + integer(2) + "])");
    case 3:
      return line(y + " = X[X[" + e + "] * " + integer_constant() + "]");
    case 4:  // one iteration only: elsewhere two could write one element
      line("if " + place + " == " + std::to_string(r_.below(kPlaces)) + " {");
      line("  W" + std::to_string(number) + "[" + e + "] = " + integer(2));
      return line("}");
    case 5:
      line("if " + integer_condition(2) + " {");
      line("  W" + std::to_string(number) + "[" + place + " + X[" + e + "] * 0] = " + integer(2));
      return line("}");
    default:
      line("if " + integer_condition(2) + " {");
      line("  " + y + " = " + e);
      return line("}");
  }
}

// Of a region that begins anywhere; only one block writes there.
void Generator::integer_copy(int number) {
  const std::string n = std::to_string(number);
  allocs_ += "  alloc f" + n + ": " + r_.pick({"fragment", "shared"}) + " i64[16]\n";
  line("copy X[" + integer(3) + " :+ 16] -> f" + n);
  if (r_.chance(2)) return line("copy f" + n + " -> Y" + n + "[b * 64 :+ 16]");
  line("if b == " + std::to_string(r_.below(2)) + " {");
  line("  copy f" + n + " -> W" + n + "[" + integer(3) + " :+ 16]");
  line("}");
}

Case Generator::run_integers(uint64_t seed) {
  Case c;
  const int64_t n = r_.pick<int64_t>({1, 31, 100, 128});
  declarations_ = std::string("dim n") + r_.pick({"", " >= 1", " <= 128"}) +
                  "\ndim far\nscalar s: i64\nscalar t: i64\nscalar q: i32\n" +
                  "tensor X: i64[n + 64] readonly\n";
  dims_ = {"n", "far"};
  scalars_ = {{"s", DType::i64}, {"t", DType::i64}, {"q", DType::i32}};
  for (int k = 0; k < kIntegersOfAProgram; ++k)
    declarations_ +=
        "tensor Y" + std::to_string(k) + ": i64[128]\ntensor W" + std::to_string(k) + ": i64[128]\n";
  vars_ = {{"b", 2}};
  const int copies = r_.chance(3) ? 2 : 0;
  for (int k = 0; k < copies; ++k) integer_copy(k);
  // Eight iterations that begin anywhere, or two dimensions of a parallel loop.
  std::string place = "b * 64 + j * 8 + i";
  const bool serial = r_.chance(2);
  if (serial) {
    const std::string begin = r_.chance(3) ? "0" : integer(2);
    place = "b * 64 + j % 8 * 8 + i";
    line("serial j in " + begin + " :+ " + (r_.chance(3) ? "min(max(" + integer(2) + ", 0), 8)" : "8") +
         " {");
    line("parallel i in 8 {");
  } else {
    line("parallel j, i in 8, 8 {");
  }
  vars_.insert(vars_.end(), {{"j", serial ? 0 : 8}, {"i", 8}, {"(b * 8 + i)", 16}, {"(i + 8 * j)", 0}});
  for (int k = copies; k < kIntegersOfAProgram; ++k) integer_statement(k, place);
  line("}");
  if (serial) line("}");
  c.text = "tl 1 program e" + std::to_string(seed) + "\n" + declarations_ + "\nkernel k grid (b: 2)" +
           r_.pick({"", " threads 32", " threads 64"}) + " {\n" + allocs_ + body_ + "}\n";
  const int64_t far = edge();
  c.launch.dims = {{"n", n}, {"far", r_.chance(2) ? r_.below(200) : far < 0 ? ~far : far}};
  for (const char* name : {"s", "t"}) c.launch.dims[name] = r_.chance(2) ? r_.between(-9, 9) : edge();
  c.launch.seed = seed;
  return c;
}

Case random_integers(uint64_t seed) {
  return Generator(seed * 0x9e3779b97f4a7c15u + 3, {}).run_integers(seed);
}

}  // namespace tilegen::differential
