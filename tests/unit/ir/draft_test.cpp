// Named values, assignments, loops inside parallel loops and literals without types: what they make.
#include <gtest/gtest.h>

#include <sstream>

#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

std::string kernel_of(const std::string& body, const std::string& loop = "parallel i, j in 4, 8") {
  return "tl 1 program t\ndim n\nscalar a: f32\ntensor A: f32[n, 8] readonly\ntensor B: f32[n, 8]\n"
         "tensor C: f16[n, 8]\nkernel k grid(b: n) {\n  alloc x: fragment f32[4, 8]\n  alloc c: local "
         "i32[1]\n" +
         loop + " {\n" + body + "\n}\n}\n";
}

// The statements of the printed loop, a line each without indentation; allocs in front.
std::string made(const std::string& text) {
  Expected<Program> p = parse_program(text, "t.tl", Limits());
  if (!p) return p.error().to_text();
  const std::string printed = print_program(*p);
  Expected<Program> again = parse_program(printed, "again.tl", Limits());
  EXPECT_TRUE(again && print_program(*again) == printed) << printed;
  std::string out, line;
  std::istringstream lines(printed.substr(printed.find("alloc c")));
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    line.erase(0, line.find_first_not_of(' '));
    if (line != "}" && line.rfind("parallel", 0) != 0) out += line + "\n";
  }
  return out;
}

TEST(Draft, NamesStandForTheirExpressions) {
  EXPECT_EQ(made(kernel_of("let y = x[i, j] * a x[i, j] = max(y, 0)")),
            "x[i, j] = max(x[i, j] * a, 0.0f32)\n");
  EXPECT_EQ(made(kernel_of("let r = b * 4 + i B[r, j] = A[r, j]")), "B[b * 4 + i, j] = A[b * 4 + i, j]\n");
  EXPECT_EQ(made(kernel_of("let y: f32 = 2 x[i, j] = y")), "x[i, j] = 2.0f32\n");
  EXPECT_EQ(made(kernel_of("var s = a if j < 4 { s = s * 2 } x[i, j] = s")),
            "x[i, j] = select(j < 4, a * 2.0f32, a)\n");
}

// What a later store changes is kept before it, once, and only where somebody asks for it afterwards.
TEST(Draft, ValuesStayWhatTheyWere) {
  EXPECT_EQ(made(kernel_of("let y = x[i, j] x[i, j] = a x[i, j] = x[i, j] + y")),
            "alloc y: fragment f32[4, 8]\ny[i, j] = x[i, j]\nx[i, j] = a\nx[i, j] = x[i, j] + y[i, j]\n");
  EXPECT_EQ(made(kernel_of("let y = x[i, j] x[i, j] = y + 1")), "x[i, j] = x[i, j] + 1.0f32\n");
  // Tensors that are written may share memory; those that are read alone do not.
  EXPECT_EQ(made(kernel_of("let y = B[i, j] C[i, j] = 0 x[i, j] = y")),
            "alloc y: fragment f32[4, 8]\ny[i, j] = B[i, j]\nC[i, j] = 0.0f16\nx[i, j] = y[i, j]\n");
  EXPECT_EQ(made(kernel_of("let y = A[i, j] C[i, j] = 0 x[i, j] = y")),
            "C[i, j] = 0.0f16\nx[i, j] = A[i, j]\n");
  // A name of the kernel's is not taken twice.
  EXPECT_EQ(made(kernel_of("if j < 2 { let y = x[i, j] x[i, j] = a B[i, j] = y }\n"
                           "if j > 5 { let y = x[i, j] x[i, j] = 1 B[i, j] = y }")),
            "alloc y: fragment f32[4, 8]\nalloc y_1: fragment f32[4, 8]\nif j < 2 {\ny[i, j] = x[i, j]\n"
            "x[i, j] = a\nB[i, j] = y[i, j]\nif 5 < j {\ny_1[i, j] = x[i, j]\nx[i, j] = 1.0f32\n"
            "B[i, j] = y_1[i, j]\n");
  // Outside of parallel loops in a local tile.
  EXPECT_EQ(made(kernel_of("let y = c[0] c[0] = 3 c[0] += y", "serial q in 0 .. n")),
            "alloc y: local i32[1]\nserial q in 0 .. n {\ny[0] = c[0]\nc[0] = 3i32\nc[0] = c[0] + y[0]\n");
}

TEST(Draft, LoopsAreWrittenOut) {
  EXPECT_EQ(made(kernel_of("var s = a unroll k in 0 .. 3 { s += A[k, j] } x[i, j] = s")),
            "x[i, j] = a + A[0, j] + A[1, j] + A[2, j]\n");
  EXPECT_EQ(made(kernel_of("serial k in 1 .. 3 { unroll l in 0 .. k { x[k, l] = a } }")),
            "x[1, 0] = a\nx[2, 0] = a\nx[2, 1] = a\n");
  EXPECT_EQ(made(kernel_of("serial k in 2 .. 2 { x[i, k] = a } x[i, j] = a")), "x[i, j] = a\n");
}

// A large expression has one copy.
TEST(Draft, LargeValuesAreKept) {
  const std::string text =
      made(kernel_of("var s = x[i, j] serial k in 0 .. 40 { s = s * s + s } x[i, j] = s"));
  EXPECT_NE(text.find("alloc s: fragment f32[4, 8]\n"), std::string::npos);
  EXPECT_LT(text.size(), 20000u);
}

TEST(Draft, CompoundAssignments) {
  EXPECT_EQ(made(kernel_of("x[i, j] += a x[i, j] -= 1 x[i, j] *= 2 + a x[i, j] /= 3")),
            "x[i, j] = x[i, j] + a\nx[i, j] = x[i, j] - 1.0f32\nx[i, j] = x[i, j] * (2.0f32 + a)\n"
            "x[i, j] = x[i, j] / 3.0f32\n");
  EXPECT_EQ(
      made(kernel_of("var k = 7 k //= 2 k %= 5 k &= 3 k |= 8 k ^= 1 k <<= 2 k >>= i x[i, j] = cast(f32, k)")),
      made(kernel_of("var k = 7 k = k // 2 k = k % 5 k = k & 3 k = k | 8 k = k ^ 1 k = k << 2 k = k >> i "
                     "x[i, j] = cast(f32, k)")));
}

TEST(Draft, HexadecimalIntegers) {
  EXPECT_EQ(made(kernel_of("x[i, j] = cast(f32, (cast(u32, i & 0xF) ^ 0x000f000fu32) + 0x7F)")),
            made(kernel_of("x[i, j] = cast(f32, (cast(u32, i & 15) ^ 983055u32) + 127)")));
  EXPECT_EQ(made(kernel_of("serial k in 0x0 .. 0x2 { x[i, j] += cast(f32, -0x10 + k) }")),
            made(kernel_of("serial k in 0 .. 2 { x[i, j] += cast(f32, -16 + k) }")));
}

// In base 2, and parted.
TEST(Draft, LiteralsOfDigits) {
  const std::pair<const char*, const char*> cases[] = {
      {"x[i, j] = cast(f32, i & 0b1_01 | 0B10)", "x[i, j] = cast(f32, i & 5 | 2)"},
      {"x[i, j] = cast(f32, cast(u32, i) & 0b1111_0000u32)", "x[i, j] = cast(f32, cast(u32, i) & 240u32)"},
      {"x[i, j] = cast(f32, i * 1_000_000 + 0x_ff_00)", "x[i, j] = cast(f32, i * 1000000 + 65280)"},
      {"x[i, j] = 1_000.2_5 + 1_0e1_0f32 + 0x3f80_0000:f32", "x[i, j] = 1000.25 + 10e10f32 + 0x3f800000:f32"},
      {"serial k in 0b0 .. 1_0 - 8 { x[i, k] = -2_0 }", "serial k in 0 .. 2 { x[i, k] = -20 }"},
      {"switch i { case 0b11 { x[i, j] = 1_6 } case 0x_1i64 { x[i, j] = 3 } }",
       "switch i { case 3 { x[i, j] = 16 } case 1i64 { x[i, j] = 3 } }"},
      {"} sort x -> x {axis=0b1} parallel i, j in 0b100, 0x_8 { x[i, j] = a",
       "} sort x -> x {axis=1} parallel i, j in 4, 8 { x[i, j] = a"},
  };
  for (auto [given, wanted] : cases) EXPECT_EQ(made(kernel_of(given)), made(kernel_of(wanted))) << given;
  const std::pair<const char*, const char*> wrong[] = {
      {"x[i, j] = cast(f32, i + 0b12)", "expected a numeric type after the digits, found number 0b12"},
      {"x[i, j] = cast(f32, i + 1_)", "expected a numeric type after the digits, found number 1_"},
      {"x[i, j] = cast(f32, i + 0b)", "number 0b does not fit i64"},
      {"x[i, j] = 0b101",
       "number 0b101 is an integer, expected a value of type f32 (write its decimal digits)"},
      {"x[i, j] = a * 16_777_217", "number 16_777_217 is no value of f32 (write 16777217.0f32"},
  };
  for (auto [given, said] : wrong)
    EXPECT_NE(made(kernel_of(given)).find(said), std::string::npos) << given << "\n"
                                                                    << made(kernel_of(given));
}

// A literal without a type takes that of what it is combined with, or of where it is stored.
TEST(Draft, LiteralsOfTheirContext) {
  const std::pair<const char*, const char*> cases[] = {
      {"x[i, j] = 0.5", "x[i, j] = 0.5f32"},
      {"x[i, j] = -7", "x[i, j] = -7.0f32"},
      {"C[i, j] = 0.25", "C[i, j] = 0.25f16"},
      {"x[i, j] = max(a, 0)", "x[i, j] = max(a, 0.0f32)"},
      {"x[i, j] = fma(2, a, 0.5)", "x[i, j] = fma(2.0f32, a, 0.5f32)"},
      {"x[i, j] = select(a > 1, 1, a)", "x[i, j] = select(1.0f32 < a, 1.0f32, a)"},
      {"x[i, j] = a * (2)", "x[i, j] = a * 2.0f32"},
      {"x[i, j] = a * (1 / 4.0) + sqrt(16)", "x[i, j] = a * 0.25f32 + 4.0f32"},
      {"x[i, j] = select(a > 1, 1, -(2 + 1)) * 2", "x[i, j] = select(1.0f32 < a, 1.0f32, -3.0f32) * 2.0f32"},
      {"x[i, j] = max(a, min(1, 2) - 3)", "x[i, j] = max(a, -2.0f32)"},
      {"x[i, j] = cast(f32, c[0] & 1 << 4 | select(a > 1, 1, 0) * 2)",
       "x[i, j] = cast(f32, c[0] & 16i32 | select(1.0f32 < a, 1i32, 0i32) * 2i32)"},
      {"x[i, j] = cast(f32, 7 // 2) + cast(f32, 1 / 4.0)", "x[i, j] = 3.25f32"},
      {"x[i, j] = cast(f32, 0.5)", "x[i, j] = 0.5f32"},
      {"x[i, j] = cast(f32, 3 * j)", "x[i, j] = cast(f32, 3 * j)"},
      {"x[i, j] = cast(f32, c[0] + 1 << 2)", "x[i, j] = cast(f32, c[0] + 1i32 << 2i32)"},
      {"x[i, j + 1] = A[i * 2, j // 3]", "x[i, j + 1] = A[i * 2, j // 3]"},
  };
  for (auto [given, wanted] : cases) EXPECT_EQ(made(kernel_of(given)), std::string(wanted) + "\n") << given;
}

// Trips that the launch tells of all points: the loop stands around the parallel one.
TEST(Draft, LoopsOfTheLaunchAreAround) {
  EXPECT_EQ(made(kernel_of("serial k in 0 .. n { x[i, j] += A[k, j] }")),
            "serial k in 0 .. n {\nx[i, j] = x[i, j] + A[k, j]\n");
  EXPECT_EQ(made(kernel_of("let m = n // 2 var s = a serial k in 1 .. m { s += A[k, j] } x[i, j] = s")),
            "alloc s: fragment f32[4, 8]\ns[i, j] = a\nserial k in 1 .. n // 2 {\ns[i, j] = s[i, j] + A[k, "
            "j]\nx[i, j] = s[i, j]\n");
  // Of names whose values are constant it is written out.
  EXPECT_EQ(made(kernel_of("let m = 2 unroll l in 0 .. 2 { serial k in l .. m { x[k, l] = a } }")),
            "x[0, 0] = a\nx[1, 0] = a\nx[1, 1] = a\n");
}

// Of each point: it goes on while one does, and each runs under its own condition.
TEST(Draft, LoopsOfPointsGoOnForOne) {
  const std::string asks =
      "reduce more_1 -> some {kind=or, axis=1}\nreduce some -> any {kind=or}\nagain[0] = any[0]\n";
  const std::string tiles =
      "alloc more_1: fragment bool[4, 8]\nalloc some: fragment bool[4]\nalloc any: shared bool[1]\nalloc "
      "again: local bool[1]\n";
  EXPECT_EQ(made(kernel_of("while x[i, j] > a { x[i, j] -= 1 }")),
            "alloc going: fragment bool[4, 8]\n" + tiles +
                "going[i, j] = a < x[i, j]\nmore_1[i, j] = going[i, j]\n" + asks +
                "serial trip in 0 .. 2147483647 while again[0] {\nif going[i, j] {\nx[i, j] = x[i, j] - "
                "1.0f32\ngoing[i, j] = a < x[i, j]\nmore_1[i, j] = going[i, j]\n" +
                asks);
  const std::string trips = made(kernel_of("serial k in j .. i { x[i, j] += A[k, j] }"));
  for (const char* line :
       {"trips_1[i, j] = i - j\n", "first_1[i, j] = j\n", "more_1[i, j] = 0 < trips_1[i, j]\n",
        "serial trip in 0 .. 2147483647 while again[0] {\n", "more_1[i, j] = trip + 1 < trips_1[i, j]\n"})
    EXPECT_NE(trips.find(line), std::string::npos) << line << trips;
}

TEST(Draft, Mistakes) {
  const std::pair<const char*, const char*> cases[] = {
      {"let y = 1.5 * 2.5 x[i, j] = y",
       "[syntax_error] k: expected an integer of type i64, found number 1.5 (write its type"},
      {"x[i, j] = cast(f32, cast(u8, j) + (200 + 100))",
       "[syntax_error] k: what '+' makes of its literals does not fit u8"},
      {"x[i, j] = 7 // 2", "'//' takes integers, found f32"},
      {"let y = 1.5 x[i, j] = y", "found number 1.5 (write its type, for example 1.5f32"},
      {"x[i, j] = cast(f32, c[0] * 1.5)", "expected an integer of type i32, found number 1.5"},
      {"x[i, j] = a * 16777217",
       "number 16777217 is no value of f32 (write 16777217.0f32 for the nearest one)"},
      {"x[i, j] = cast(f32, c[0] & 5000000000)", "does not fit i32"},
      {"let y = a y = 2", "'y' is named by let and cannot be assigned (declare it with var"},
      {"i = 2", "'i' cannot be assigned (only what var declares changes"},
      {"a += 2", "'a' cannot be assigned"},
      {"var s = a s = j", "'s' is f32, the new value is i64 (write cast(f32, ...) around it)"},
      {"let y: f16 = a", "'y' is declared f16, the value is f32"},
      {"let x = a", "'x' is already declared"},
      {"if j < 2 { let y = a } x[i, j] = y", "found the unknown name 'y'"},
      {"let y = y + a", "found the unknown name 'y'"},
      {"unroll k in 0 .. n { x[i, j] = a }",
       "[bad_shape] k: a loop of kind unroll inside a parallel loop has bounds that are not constant (give "
       "it "
       "constant bounds, or make it serial)"},
      {"unroll k in 0 .. 200 { unroll l in 0 .. 200 { x[i, j] = a } }",
       "[limit_unroll] k: loops inside a parallel"
       " loop are written out and make 40000 copies"},
  };
  for (auto [given, wanted] : cases) {
    const std::string said = made(kernel_of(given));
    EXPECT_NE(said.find(wanted), std::string::npos) << given << "\n" << said;
  }
  EXPECT_NE(
      made(kernel_of("var s = c[0]", "serial q in 0 .. n")).find("var s stands outside a parallel loop"),
      std::string::npos);
}

// A kernel with the declarations before it.
std::string with(const std::string& declarations, const std::string& body) {
  std::string text = kernel_of(body);
  return text.insert(text.find("kernel"), declarations + "\n");
}

TEST(Draft, ConstantsAndFunctions) {
  EXPECT_EQ(made(with("let four = 4 let half: f32 = 0.5", "x[i % four, j] = half * a")),
            "x[i % 4, j] = 0.5f32 * a\n");
  EXPECT_EQ(
      made(with("fn f(v: f32, k: i64) { let w = v * v return w + cast(f32, k) }", "x[i, j] = f(a + 1, j)")),
      "x[i, j] = (a + 1.0f32) * (a + 1.0f32) + cast(f32, j)\n");
  EXPECT_EQ(
      made(with("fn two() -> f32 { return 2 }\nfn f(v: f32) { return v * two() }", "x[i, j] = f(3) + f(a)")),
      "x[i, j] = 6.0f32 + a * 2.0f32\n");
  const std::pair<const char*, const char*> cases[] = {
      {"fn f(v: f32) -> f32 { return v }", "argument 1 of 'f' is i64, its parameter 'v' is f32"},
      {"fn f(v: i64, w: i64) { return v }", "'f' takes 2 arguments, found 1"},
      {"fn f(v: i64) -> f32 { return v }", "the function gives f32, its result is i64"},
      {"fn f(v: i64) { return f(v) }", "found the unknown name 'f'"},
      {"fn exp(v: i64) { return v }", "there is a function 'exp' already"},
      {"fn f(v: i64) { return v } fn f(w: i64) { return w }", "there is a function 'f' already"},
      {"fn f(v: i64) { return w }", "found the unknown name 'w'"},
      {"fn f(v: i64) { let n = v return n }", "'n' is already declared"},
  };
  for (auto [given, wanted] : cases) {
    const std::string said = made(with(given, "x[i, j] = f(i)"));
    EXPECT_NE(said.find(wanted), std::string::npos) << given << "\n" << said;
  }
  EXPECT_NE(made(with("let r = n * 2", "unroll k in 0 .. 2 { x[k, j] = a } } parallel l in r {"))
                .find("expected an integer constant, found 'r'"),
            std::string::npos);
}

TEST(Draft, StepsOfLoops) {
  EXPECT_EQ(made(kernel_of("unroll k in 1 .. 8 step 3 { x[i, j] += cast(f32, k) }")),
            "x[i, j] = x[i, j] + 1.0f32\nx[i, j] = x[i, j] + 4.0f32\nx[i, j] = x[i, j] + 7.0f32\n");
  EXPECT_EQ(made(kernel_of("c[0] = cast(i32, q)", "serial q in 2 .. n step 4")),
            "serial q in 0 .. (n - 2 + 3) // 4 {\nc[0] = cast(i32, 2 + q * 4)\n");
  // The begin is taken once.
  EXPECT_EQ(made(kernel_of("c[0] = cast(i32, q)", "serial q in cast(i64, c[0]) :+ 9 step 2")),
            "alloc q_1: local i64[1]\nq_1[0] = cast(i64, c[0])\nserial q in 0 .. 5 {\n"
            "c[0] = cast(i32, q_1[0] + q * 2)\n");
  EXPECT_NE(made(kernel_of("c[0] = 1", "serial q in 0 .. n step 0")).find("a loop has the step 0"),
            std::string::npos);
}

// What is made of ifs is read back as it was, also beside a function, whose program is resolved again.
TEST(Draft, EmptyIfsStay) {
  const std::string nothing = "unroll k in 0 .. 0 { x[i, j] = y }";
  std::string text =
      kernel_of("let y = a if j < 2 { " + nothing + " } else { if i < 3 { " + nothing + " } }");
  const std::string ifs = "if j < 2 {\n} else {\nif i < 3 {\n";
  EXPECT_EQ(made(text), ifs);
  text.insert(text.find("kernel"),
              "fn f(v: f32) -> f32 asm ptx \"add.rn.f32 $0, $1, $1;\" { return v + v }\n");
  EXPECT_EQ(made(text), ifs);
  EXPECT_EQ(made(kernel_of("if j < 2 { let y = a if j < 1 { } } x[i, j] = 1")), "x[i, j] = 1.0f32\n");
}

TEST(Draft, ChainsOfIfs) {
  EXPECT_EQ(made(kernel_of("if j < 2 { x[i, j] = a } else if j < 4 { x[i, j] = 2 } else { x[i, j] = 3 }")),
            "if j < 2 {\nx[i, j] = a\n} else {\nif j < 4 {\nx[i, j] = 2.0f32\n} else {\nx[i, j] = 3.0f32\n");
  EXPECT_EQ(made(kernel_of("if j < 2 { x[i, j] = a } else if j < 4 { x[i, j] = 2 } x[i, j] = 3")),
            "if j < 2 {\nx[i, j] = a\n} else {\nif j < 4 {\nx[i, j] = 2.0f32\nx[i, j] = 3.0f32\n");
  EXPECT_NE(
      made(kernel_of("if j < 2 { } else if i { } x[i, j] = 3")).find("the condition of an if has type i64"),
      std::string::npos);
  EXPECT_NE(made(kernel_of("if j < 2 { } else if j < 3 { } else { } else { }")).find("'else' follows only"),
            std::string::npos);
}

}  // namespace
}  // namespace tilegen::ir
