// Every feature of the language in many shapes and types, one table per feature. A program is compiled once and launched
// on several ragged shapes. Each test prints the program and the launch of what disagrees.
//   TILEGEN_LONG=1    the whole product of the tables instead of a sample
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "executors.h"

namespace tilegen::differential {
namespace {

using ir::DType;
using Strings = std::vector<std::string>;

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values)
    for (size_t at = 0; (at = text.find("$" + name, at)) != std::string::npos;) text.replace(at, name.size() + 1, value);
  return text;
}

void expect_agree(Subject& subject, const std::string& text, const Launch& launch) {
  const Outcome o = subject.compare(launch);
  EXPECT_EQ(o.kind, Outcome::Kind::agree) << kind_name(o.kind) << ": " << o.text << "\n" << to_text({text, launch});
}

void expect_agree(const std::string& text, const std::vector<Launch>& launches) {
  Subject subject(text);
  for (const Launch& launch : launches) {
    expect_agree(subject, text, launch);
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<Launch> seeds(std::initializer_list<uint64_t> list, Data data = Data::integers) {
  std::vector<Launch> launches;
  for (uint64_t seed : list) {
    Launch l;
    l.seed = seed;
    l.data = data;
    launches.push_back(l);
  }
  return launches;
}

const DType kAll[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean};

// ---- gemm -------------------------------------------------------------------------------------------------------

struct GemmTypes {
  DType a, b, c;
};
constexpr GemmTypes kGemmTypes[] = {
    {DType::f16, DType::f16, DType::f16}, {DType::f16, DType::f16, DType::f32}, {DType::bf16, DType::bf16, DType::f32},
    {DType::f32, DType::f32, DType::f32}, {DType::f64, DType::f64, DType::f64}, {DType::i8, DType::i8, DType::i32},
    {DType::i8, DType::u8, DType::i32},   {DType::u8, DType::i8, DType::i32},   {DType::u8, DType::u8, DType::i32},
};

struct GemmCase {
  GemmTypes types;
  bool ta = false, tb = false, clear = false;
  std::string a_scope = "shared", b_scope = "shared";
  int64_t m = 64, n = 64, k = 32;  // tile
};

// With `clear` the sum over k is kept in a second tile, so that what clear drops would show.
std::string gemm_text(const GemmCase& g) {
  const std::string name_a = ir::dtype_name(g.types.a), name_b = ir::dtype_name(g.types.b), name_c = ir::dtype_name(g.types.c);
  const std::string zero = std::string(ir::is_float(g.types.c) ? "0.0" : "0") + name_c;
  return replaced(R"(tl 1 program gemm
dim m
dim n
dim k
tensor A: $ta[$ashape] readonly
tensor B: $tb[$bshape] readonly
tensor C: $tc[m, n]

kernel gemm grid (by: ceildiv(m, $M), bx: ceildiv(n, $N)) {
  alloc a: $sa $ta[$atile]
  alloc b: $sb $tb[$btile]
  alloc c: fragment $tc[$M, $N]
  alloc total: fragment $tc[$M, $N]
  copy C[by * $M :+ $M, bx * $N :+ $N] -> c
  fill total, $zero
  pipelined ko in 0 .. ceildiv(k, $K) stages 2 {
    copy A[$aregion] -> a
    copy B[$bregion] -> b
    gemm a, b -> c$attrs
    $sum
  }
  $last
  copy c -> C[by * $M :+ $M, bx * $N :+ $N]
}
)",
                  {{"ashape", g.ta ? "k, m" : "m, k"},
                   {"bshape", g.tb ? "n, k" : "k, n"},
                   {"atile", g.ta ? "$K, $M" : "$M, $K"},
                   {"btile", g.tb ? "$N, $K" : "$K, $N"},
                   {"aregion", g.ta ? "ko * $K :+ $K, by * $M :+ $M" : "by * $M :+ $M, ko * $K :+ $K"},
                   {"bregion", g.tb ? "bx * $N :+ $N, ko * $K :+ $K" : "ko * $K :+ $K, bx * $N :+ $N"},
                   {"attrs", std::string() + (g.ta || g.tb || g.clear ? " {" : "") + (g.ta ? "transpose_a" : "") +
                                 (g.ta && (g.tb || g.clear) ? ", " : "") + (g.tb ? "transpose_b" : "") +
                                 (g.tb && g.clear ? ", " : "") + (g.clear ? "clear" : "") + (g.ta || g.tb || g.clear ? "}" : "")},
                   {"sum", g.clear ? "parallel i, j in $M, $N {\n      total[i, j] = total[i, j] + c[i, j]\n    }" : ""},
                   {"last", g.clear ? "copy total -> c" : ""},
                   {"zero", zero},
                   {"sa", g.a_scope},
                   {"sb", g.b_scope},
                   {"ta", name_a},
                   {"tb", name_b},
                   {"tc", name_c},
                   {"M", std::to_string(g.m)},
                   {"N", std::to_string(g.n)},
                   {"K", std::to_string(g.k)}});
}

Launch gemm_launch(const GemmCase& g, int64_t m, int64_t n, int64_t k, uint64_t seed, Data data) {
  Launch l;
  l.dims = {{"m", m}, {"n", n}, {"k", k}};
  l.seed = seed;
  l.data = data;
  // Whole numbers whose sums C's type holds exactly; f16 sums are kept below 2048.
  l.magnitude = data == Data::reals ? 1 : g.types.c == DType::f16 ? 2 : ir::dtype_bits(g.types.a) == 16 ? 8 : 32;
  if (data == Data::reals && ir::is_float(g.types.c)) {
    // Products of numbers up to 1, and the old C; f16 also rounds once per tile of k.
    l.bound = Bound::of_sum(g.types.c, k + g.k + 2, 1);
  }
  return l;
}

void run_gemm(const GemmCase& g, const std::vector<std::array<int64_t, 3>>& shapes, bool reals) {
  const std::string text = gemm_text(g);
  Subject subject(text);
  uint64_t seed = 1;
  for (const auto& [m, n, k] : shapes) {
    expect_agree(subject, text, gemm_launch(g, m, n, k, seed++, Data::integers));
    if (reals && ir::is_float(g.types.c)) expect_agree(subject, text, gemm_launch(g, m, n, k, seed++, Data::reals));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Gemm, TypesAndTransposes) {
  int at = 0;
  for (const GemmTypes& types : kGemmTypes)
    for (int flags = 0; flags < 8; ++flags, ++at) {
      if (!long_run() && flags != at % 8 && flags != 3 && flags != 4) continue;
      const GemmCase g{types, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
      run_gemm(g, {{33, 17, 64}, {64, 64, 3}}, true);
    }
}

TEST(Gemm, RaggedShapes) {
  const int64_t extents[] = {0, 1, 3, 17, 31, 64, 65, 100, 130};
  for (const GemmTypes& types : {kGemmTypes[1], kGemmTypes[3], kGemmTypes[5]}) {
    std::vector<std::array<int64_t, 3>> shapes;
    for (size_t i = 0; i < std::size(extents); ++i) {
      const auto e = [&](size_t step) { return extents[(i * step + step) % std::size(extents)]; };
      shapes.push_back({extents[i], e(2), e(4)});
    }
    run_gemm({types}, shapes, false);
  }
}

TEST(Gemm, TileSizes) {
  const std::array<int64_t, 3> tiles[] = {{48, 80, 16},  {80, 48, 20}, {100, 100, 10}, {1, 64, 32}, {64, 1, 32}, {3, 5, 7},
                                          {128, 32, 64}, {17, 33, 9},  {8, 24, 1},     {96, 96, 4}, {1, 1, 1},   {31, 130, 12}};
  int at = 0;
  for (const auto& [m, n, k] : tiles)
    for (size_t t = 0; t < std::size(kGemmTypes); ++t, ++at) {
      if (!long_run() && t != static_cast<size_t>(at / 9) % 9 && t != static_cast<size_t>(at / 9 + 4) % 9) continue;
      const GemmCase g{kGemmTypes[t], at % 2 == 1, at % 3 == 1, false, "shared", "shared", m, n, k};
      run_gemm(g, {{m + 5, n + 3, 2 * k + 1}}, false);
    }
}

TEST(Gemm, OperandsInFragments) {
  for (size_t t = 0; t < std::size(kGemmTypes); ++t)
    for (int where = 1; where < 4; ++where) {
      if (!long_run() && where != static_cast<int>(t) % 3 + 1) continue;
      const GemmCase g{kGemmTypes[t], t % 2 == 1, t % 4 < 2, false, where & 1 ? "fragment" : "shared", where & 2 ? "fragment" : "shared", 32, 48, 16};
      run_gemm(g, {{40, 50, 33}}, false);
    }
}

// Dimensions of extent 1 around the matrices.
TEST(Gemm, MatricesAmongMoreDimensions) {
  for (const std::string type : {"f32", "f64"})
    expect_agree(replaced(R"(tl 1 program regions
tensor A: $t[40, 60] readonly
tensor B: $t[60, 50] readonly
tensor C: $t[2, 40, 50]

kernel k grid (g: 1) {
  alloc a: shared $t[40, 1, 60]
  alloc b: shared $t[1, 60, 50]
  alloc c: fragment $t[1, 40, 50]
  copy A -> a
  copy B -> b
  copy C[1 :+ 1, 0 :+ 40, 0 :+ 50] -> c
  gemm a, b -> c
  copy c -> C[0 :+ 1, 0 :+ 40, 0 :+ 50]
}
)", {{"t", type}}), seeds({1, 2}));
}

// ---- reductions -------------------------------------------------------------------------------------------------

struct ReduceTypes {
  DType from, to;
};

std::string reduce_text(ReduceTypes t, const std::vector<int64_t>& shape, size_t axis, const std::string& kind, bool keep,
                        bool accumulate, const std::string& from_scope, const std::string& to_scope) {
  std::string from, to;
  for (size_t d = 0; d < shape.size(); ++d) {
    from += (d ? ", " : "") + std::to_string(shape[d]);
    if (d != axis) to += (to.empty() ? "" : ", ") + std::to_string(shape[d]);
    if (d == axis && keep) to += (to.empty() ? "1" : ", 1");
  }
  return replaced(R"(tl 1 program reduce
tensor X: $from[$shape] readonly
tensor Y: $to[$kept]

kernel k grid (g: 1) {
  alloc x: $fs $from[$shape]
  alloc y: $ts $to[$kept]
  copy X -> x
  copy Y -> y
  reduce x -> y {kind=$kind, axis=$axis$acc}
  copy y -> Y
}
)", {{"from", ir::dtype_name(t.from)}, {"to", ir::dtype_name(t.to)}, {"shape", from}, {"kept", to}, {"fs", from_scope},
     {"ts", to_scope}, {"kind", kind}, {"axis", std::to_string(axis)}, {"acc", accumulate ? ", accumulate" : ""}});
}

TEST(Reduce, KindsTypesAxesShapes) {
  std::vector<ReduceTypes> types = {{DType::f16, DType::f32}, {DType::bf16, DType::f32}, {DType::i8, DType::i32}, {DType::u8, DType::i32}};
  for (DType t : kAll) types.push_back({t, t});
  const std::vector<std::vector<int64_t>> shapes = {{5, 37}, {64, 128}, {1, 1}, {3, 7, 33}, {16, 1}, {1, 100}, {2, 16, 8}, {31, 4}};
  const char* const scopes[] = {"fragment", "shared", "fragment", "local"};
  int at = 0;
  for (const ReduceTypes& t : types)
    for (const std::string kind : {"sum", "max", "min", "absmax"}) {
      if (ir::is_bool(t.from) && (kind == "sum" || kind == "absmax")) continue;
      if (kind == "absmax" && t.from == DType::u8) continue;
      for (const auto& shape : shapes)
        for (size_t axis = 0; axis < shape.size(); ++axis, ++at) {
          if (!long_run() && at % 9 != 0) continue;
          const bool keep = at % 2 == 0, accumulate = at % 3 == 0;
          const std::string text = reduce_text(t, shape, axis, kind, keep, accumulate, scopes[at % 3], scopes[(at / 3) % 4]);
          const int64_t length = shape[axis] + 1;
          Launch whole;
          whole.seed = static_cast<uint64_t>(at);
          whole.magnitude = t.to == DType::f16 ? 8 : t.to == DType::bf16 ? 1 : 0;
          if (kind != "sum") whole.data = Data::bit_patterns;  // exact whatever the values
          Launch reals = whole;
          reals.data = Data::reals;
          if (kind == "sum") reals.bound = Bound::of_sum(t.to, length, 8);
          expect_agree(text, {whole, reals});
          if (HasFailure()) return;
        }
    }
}

TEST(Reduce, VectorToOneElement) {
  for (int64_t n : {1, 2, 15, 16, 17, 128, 1000})
    for (const std::string kind : {"sum", "max"})
      expect_agree(replaced(R"(tl 1 program p
tensor X: f32[$n] readonly
tensor Y: f32[1]
kernel k grid (g: 1) {
  alloc x: fragment f32[$n]
  alloc y: fragment f32[1]
  copy X -> x
  reduce x -> y {kind=$kind}
  copy y -> Y
}
)", {{"n", std::to_string(n)}, {"kind", kind}}), seeds({1, 2}));
}

// ---- copies and casts -------------------------------------------------------------------------------------------

// One kernel per destination type: tensor -> tile -> other tile -> tensor, over the edge on both sides.
TEST(Copy, CastsBetweenAllTypes) {
  for (DType from : kAll) {
    std::string text = "tl 1 program casts\ndim n\ntensor X: " + std::string(ir::dtype_name(from)) + "[n] readonly\n";
    std::string kernels;
    for (DType to : kAll) {
      const std::string name = ir::dtype_name(to);
      text += "tensor Y_" + name + ": " + name + "[n]\ntensor Z_" + name + ": " + name + "[n]\n";
      kernels += replaced(R"(kernel k_$t grid (b: ceildiv(n, 40)) {
  alloc x: shared $f[40]
  alloc y: fragment $t[40]
  copy X[b * 40 :+ 40] -> x
  copy x -> y
  copy y -> Y_$t[b * 40 :+ 40]
  copy X[b * 40 :+ 40] -> Z_$t[b * 40 :+ 40]
  parallel i in 40 {
    if i % 3 == 0 {
      y[i] = cast($t, X[b * 40 + i])
      Z_$t[b * 40 + i] = y[i]
    }
  }
}
)", {{"t", name}, {"f", ir::dtype_name(from)}});
    }
    std::vector<Launch> launches;
    for (int64_t n : {1, 40, 77, 1000}) {
      Launch l;
      l.dims = {{"n", n}};
      l.seed = static_cast<uint64_t>(n);
      l.data = Data::bit_patterns;
      launches.push_back(l);
    }
    expect_agree(text + kernels, launches);
    if (HasFailure()) return;
  }
}

TEST(Copy, OverhangOnEverySide) {
  const char* text = R"(tl 1 program overhang
dim m
dim n
dim row
dim col <= 1000
tensor X: $t[m, n] readonly
tensor Y: $t[m, n]
tensor Z: $t[3, n, m]

kernel k grid (by: ceildiv(m, $M) + 2, bx: ceildiv(n, $N) + 2) {
  alloc t: $s $t[$M, $N]
  alloc u: shared $t[1, $N, $M]
  copy X[by * $M - row :+ $M, bx * $N - col :+ $N] -> t
  copy t -> Y[by * $M - $M :+ $M, bx * $N - $N :+ $N]
  parallel i, j in $M, $N {
    u[0, j, i] = t[i, j]
  }
  copy u -> Z[1 :+ 1, bx * $N - $N :+ $N, by * $M - $M :+ $M]
}
)";
  int at = 0;
  for (const std::string type : {"f32", "u8", "f16", "f64", "bool"})
    for (const auto& [m, n] : {std::pair<int, int>{16, 16}, {5, 33}, {64, 3}, {1, 48}}) {
      if (!long_run() && at++ % 2 == 1) continue;
      const std::string program = replaced(text, {{"t", type}, {"M", std::to_string(m)}, {"N", std::to_string(n)}, {"s", at % 3 ? "fragment" : "shared"}});
      std::vector<Launch> launches;
      for (const auto& d : {std::array<int64_t, 4>{16, 16, 0, 0}, {7, 50, 3, 16}, {100, 1, 16, 1}, {0, 9, 1, 1}, {33, 64, 70, 5}}) {
        Launch l;
        l.dims = {{"m", d[0]}, {"n", d[1]}, {"row", d[2]}, {"col", d[3]}};
        l.seed = static_cast<uint64_t>(++at);
        launches.push_back(l);
      }
      expect_agree(program, launches);
      if (HasFailure()) return;
    }
}

// Enough data for stores that bypass the caches, on several threads.
TEST(Copy, LargeTensors) {
  const char* text = R"(tl 1 program large
dim n
tensor X: $t[n, 1024] readonly
tensor Y: $t[n, 1024]
tensor Z: $t[n, 1024]

kernel k grid (b: ceildiv(n, 16)) {
  alloc x: fragment $t[16, 1024]
  copy X[b * 16 :+ 16, 0 :+ 1024] -> x
  parallel i, j in 16, 1024 {
    x[i, j] = x[i, j] + X[b * 16 + i, 1023 - j]
  }
  copy x -> Y[b * 16 :+ 16, 0 :+ 1024]
  parallel i, j in 16, 1024 {
    Z[b * 16 + i, j] = x[i, j] - X[b * 16 + i, j]
  }
}
)";
  for (const std::string type : {"f32", "i8", "f16"}) {
    Launch l;
    l.dims = {{"n", 100}};
    Launch threads = l;
    threads.max_threads = 4;
    threads.seed = 2;
    expect_agree(replaced(text, {{"t", type}}), {l, threads});
  }
}

TEST(Copy, StridesAndTransposes) {
  const char* text = R"(tl 1 program strides
dim m
dim n
dim pitch
tensor X: $t[m, n] strides [pitch, $step] readonly
tensor Y: $t[n, m] strides [1, pitch]
tensor Z: $t[m, n] strides [$step, m * $step]

kernel k grid (by: ceildiv(m, 24), bx: ceildiv(n, 20)) {
  alloc t: shared $t[24, 20]
  alloc u: fragment $t[20, 24]
  copy X[by * 24 :+ 24, bx * 20 :+ 20] -> t
  parallel j, i in 20, 24 {
    u[j, i] = t[i, j]
  }
  copy u -> Y[bx * 20 :+ 20, by * 24 :+ 24]
  copy t -> Z[by * 24 :+ 24, bx * 20 :+ 20]
}
)";
  for (const std::string type : {"f32", "i8", "bf16", "i64"})
    for (int64_t step : {1, 2, 3}) {
      std::vector<Launch> launches;
      for (const auto& [m, n] : {std::pair<int64_t, int64_t>{24, 20}, {25, 61}, {7, 3}, {100, 1}}) {
        Launch l;
        l.dims = {{"m", m}, {"n", n}, {"pitch", std::max(n * step, m) + 5}};
        l.seed = static_cast<uint64_t>(m * n);
        launches.push_back(l);
      }
      expect_agree(replaced(text, {{"t", type}, {"step", std::to_string(step)}}), launches);
      if (HasFailure()) return;
    }
}

// ---- expressions ------------------------------------------------------------------------------------------------

struct Function {
  const char* text;
  double ulps;      // the stated bound of one executor, doubled; 0 = exact
  double absolute;  // stated near 0 and at saturation
};

// The interpreter computes in double; the stated bounds are for the f32 result, rounded once more for narrow types.
TEST(Expressions, MathFunctions) {
  const Function functions[] = {{"exp(x)", 4, 0},  {"exp2(x)", 4, 0},  {"log(x)", 4, 0},    {"log2(x)", 4, 0},
                                {"rsqrt(x)", 4, 0}, {"tanh(x)", 8, 1e-7}, {"erf(x)", 8, 1e-7}, {"sigmoid(x)", 8, 1e-7},
                                {"sqrt(x)", 0, 0}, {"floor(x)", 0, 0}, {"ceil(x)", 0, 0},   {"abs(x)", 0, 0},
                                {"neg(x)", 0, 0},  {"x / y", 0, 0},    {"x + y", 0, 0},     {"x - y", 0, 0},
                                {"x * y", 0, 0},   {"min(x, y)", 0, 0}, {"max(x, y)", 0, 0}};
  for (const std::string type : {"f32", "f64", "f16", "bf16"}) {
    // Exact ones share a program.
    std::vector<std::pair<Strings, Function>> programs = {{{}, {"", 0, 0}}};
    for (const Function& f : functions) {
      if (f.ulps == 0)
        programs[0].first.push_back(f.text);
      else
        programs.push_back({{f.text}, f});
    }
    for (const auto& [texts, f] : programs) {
      std::string declarations, stores;
      for (size_t i = 0; i < texts.size(); ++i) {
        const std::string y = "Y" + std::to_string(i);
        declarations += "tensor " + y + ": " + type + "[2001]\n";
        stores += "      " + y + "[b * 512 + i] = " + replaced(texts[i], {}) + "\n";
      }
      for (const auto& [from, to] : {std::pair<std::string, std::string>{"x", "A[b * 512 + i]"}, {"y", "B[b * 512 + i]"}})
        for (size_t at = 0; (at = stores.find(from, at)) != std::string::npos; ++at) {
          const bool word = !std::isalpha(static_cast<unsigned char>(stores[at - 1])) && !std::isalnum(static_cast<unsigned char>(stores[at + 1]));
          if (word) stores.replace(at, 1, to), at += to.size();
        }
      const std::string text = "tl 1 program math\ntensor A: " + type + "[2001] readonly\ntensor B: " + type + "[2001] readonly\n" +
                               declarations + "kernel k grid (b: 4) {\n  parallel i in 512 {\n    if b * 512 + i < 2001 {\n" + stores +
                               "    }\n  }\n}\n";
      for (Launch l : seeds({3, 4}, Data::bit_patterns)) {
        l.bound = {2 * f.absolute, f.ulps == 0 ? 0 : type == "f32" || type == "f64" ? 2 * f.ulps : 1};
        expect_agree(text, {l});
      }
      if (HasFailure()) return;
    }
  }
}

TEST(Expressions, IntegerOperators) {
  for (const std::string type : {"i8", "u8", "i32", "i64"}) {
    const Strings ops = {"x + y", "x - y", "x * y", "x // y", "x % y", "x & y", "x | y", "x ^ y", "x << y", "x >> y",
                         "min(x, y)", "max(x, y)", "abs(x)", "neg(x)", "bit_not(x)", "x // 3$s", "x % 7$s", "x // 8$s", "x % 16$s",
                         "(x << 3$s) + (y >> 2$s)", "select(x < y, x, y)", "select(x <= y or x == 3$s, x * x, y)"};
    const std::string suffix = type == "i64" ? "" : type;
    std::string declarations, stores;
    for (size_t i = 0; i < ops.size(); ++i) {
      declarations += "tensor Y" + std::to_string(i) + ": " + type + "[333]\n";
      std::string value = replaced(ops[i], {{"s", suffix}}), out;
      for (size_t at = 0; at < value.size(); ++at) {
        const bool alone = (at == 0 || !std::isalpha(static_cast<unsigned char>(value[at - 1]))) &&
                           (at + 1 == value.size() || !std::isalpha(static_cast<unsigned char>(value[at + 1])));
        out += alone && value[at] == 'x' ? "A[i]" : alone && value[at] == 'y' ? "B[i]" : std::string(1, value[at]);
      }
      stores += "    Y" + std::to_string(i) + "[i] = " + out + "\n";
    }
    expect_agree("tl 1 program integers\ntensor A: " + type + "[333] readonly\ntensor B: " + type + "[333] readonly\n" + declarations +
                     "kernel k grid (b: 1) {\n  parallel i in 333 {\n" + stores + "  }\n}\n",
                 seeds({1, 2, 3}));
    if (HasFailure()) return;
  }
}

TEST(Expressions, ComparisonsAndSelects) {
  for (DType t : kAll)
    expect_agree(replaced(R"(tl 1 program compare
tensor A: $t[500] readonly
tensor B: $t[500] readonly
tensor M: bool[6, 500]
tensor S: $t[500]
tensor N: i32[500]

kernel k grid (b: 1) {
  parallel i in 500 {
    M[0, i] = A[i] < B[i]
    M[1, i] = A[i] <= B[i]
    M[2, i] = A[i] == B[i]
    M[3, i] = A[i] != B[i]
    M[4, i] = not(A[i] < B[i]) and B[i] != B[i]
    M[5, i] = A[i] == A[i] or B[i] < A[i]
    if A[i] < B[i] or i % 7 == 3 {
      S[i] = select(B[i] == A[i], A[i], B[i])
      N[i] = cast(i32, A[i])
    } else {
      if cast(bool, A[i]) {
        S[i] = A[i]
      } else {
        N[i] = N[i] ^ cast(i32, i)
      }
    }
  }
}
)", {{"t", ir::dtype_name(t)}}), seeds({1, 2, 3}, Data::bit_patterns));
}

// Indices that are no plain variable: reversed, strided, divided, gathered, broadcast.
TEST(Expressions, IndexForms) {
  for (const std::string type : {"f32", "i8", "f16", "i64", "bool"})
    for (const std::string scope : {"shared", "fragment"})
      expect_agree(replaced(R"(tl 1 program indices
dim n
tensor P: i32[100] readonly
tensor X: $t[n, 100] readonly
tensor Y: $t[8, n, 100]

kernel k grid (b: n) {
  alloc x: $s $t[100]
  alloc y: $s $t[4, 25]
  copy X[b :+ 1, 0 :+ 100] -> x
  parallel i, j in 4, 25 {
    y[i, j] = x[i * 25 + j]
  }
  parallel i in 100 {
    Y[0, b, i] = x[99 - i]
    Y[1, b, 99 - i] = x[i]
    Y[2, b, i] = x[i // 3 + i % 3]
    Y[3, b, i] = x[(i * 7 + 3) % 100]
    Y[4, b, i] = X[b, i * 2 - 20]
    Y[5, b, i] = y[i % 4, i // 4]
    Y[6, b, i] = x[cast(i64, max(0i32, min(P[i], 99i32)))]
    Y[7, b, i] = X[cast(i64, P[i]), i]
  }
}
)", {{"t", type}, {"s", scope}}), [] {
        std::vector<Launch> l = seeds({1, 2});
        l[0].dims = l[1].dims = {{"n", 5}};
        return l;
      }());
}

// ---- control flow -----------------------------------------------------------------------------------------------

TEST(Loops, EveryKindWithAnyTripCount) {
  const char* text = R"(tl 1 program loops
dim first
dim trips
tensor X: f32[64, 48] readonly
tensor Y: f32[64, 48]
tensor N: i32[8]

kernel k grid (b: 1) {
  alloc x: shared f32[16, 48]
  alloc y: fragment f32[16, 48]
  alloc n: local i32[4]
  fill y, 0.0f32
  fill n, 0i32
  $kind v in first :+ trips {
    copy X[v * 16 - 8 :+ 16, v :+ 48] -> x
    parallel i, j in 16, 48 {
      y[i, j] = y[i, j] + x[i, j]
    }
    n[0] = n[0] + 1i32
    unroll u in -1 .. 2 {
      $kind w in 0 .. v % 3 {
        n[1] = n[1] + cast(i32, u * w + v)
        pipelined z in v .. v + w stages 3 {
          n[2] = n[2] ^ cast(i32, z)
        }
      }
    }
    vectorized u in 0 .. 4 {
      N[u] = N[u] + n[u]
    }
    if n[0] % 2i32 == 0i32 {
      fill x, 1.0f32
    } else {
      copy y -> x
    }
    copy x -> Y[v * 16 :+ 16, 0 :+ 48]
  }
  N[4] = n[0]
  N[5] = n[1]
  N[6] = n[2]
}
)";
  for (const std::string kind : {"serial", "pipelined"}) {
    std::vector<Launch> launches;
    for (const auto& [first, trips] : {std::pair<int64_t, int64_t>{0, 0}, {0, 1}, {1, 2}, {0, 4}, {3, 3}}) {
      Launch l;
      l.dims = {{"first", first}, {"trips", trips}};
      launches.push_back(l);
    }
    expect_agree(replaced(text, {{"kind", kind}}), launches);
  }
}

TEST(Loops, NestedPipelines) {
  const char* text = R"(tl 1 program nested
dim n
dim k
tensor A: f16[n, k] readonly
tensor B: f16[k, 40] readonly
tensor C: f32[n, 40]
tensor R: f32[n]

kernel first grid (b: ceildiv(n, 32)) {
  alloc a: shared f16[16, 24]
  alloc bt: shared f16[24, 40]
  alloc c: fragment f32[16, 40]
  alloc r: fragment f32[16]
  pipelined half in 0 .. 2 stages $outer {
    fill c, 0.0f32
    pipelined ko in 0 .. ceildiv(k, 24) stages $inner {
      copy A[b * 32 + half * 16 :+ 16, ko * 24 :+ 24] -> a
      copy B[ko * 24 :+ 24, 0 :+ 40] -> bt
      gemm a, bt -> c
    }
    reduce c -> r {kind=absmax, axis=1}
    copy c -> C[b * 32 + half * 16 :+ 16, 0 :+ 40]
    copy r -> R[b * 32 + half * 16 :+ 16]
  }
}

kernel second grid (b: n) {
  parallel j in 40 {
    C[b, j] = C[b, j] + R[b] * 2.0f32
  }
}
)";
  for (const auto& [outer, inner] : {std::pair<int, int>{1, 1}, {2, 3}}) {
    std::vector<Launch> launches;
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{0, 5}, {1, 0}, {33, 25}, {100, 70}}) {
      Launch l;
      l.dims = {{"n", n}, {"k", k}};
      launches.push_back(l);
    }
    expect_agree(replaced(text, {{"outer", std::to_string(outer)}, {"inner", std::to_string(inner)}}), launches);
  }
}

TEST(Kernels, RunInOrderOverGridsOfThreeDimensions) {
  const char* text = R"(tl 1 program kernels
dim a
dim b
dim c
scalar s: i32
tensor X: i32[a, b, c]
tensor Y: i32[c, a, b]
tensor S: i32[a]

kernel one grid (i: a, j: ceildiv(b, 3), l: ceildiv(c, 20)) {
  alloc t: fragment i32[3, 20]
  copy X[i :+ 1, j * 3 :+ 3, l * 20 :+ 20] -> t
  parallel u, v in 3, 20 {
    t[u, v] = t[u, v] * s + cast(i32, i * 100 + j * 10 + l)
  }
  copy t -> X[i :+ 1, j * 3 :+ 3, l * 20 :+ 20]
}

kernel two grid (l: c, i: a) {
  parallel u in 64 {
    Y[l, i, u] = X[i, u, l]
  }
}

kernel three grid (i: a) {
  alloc row: local i32[1]
  alloc t: shared i32[8, 8]
  alloc r: fragment i32[8]
  alloc q: fragment i32[1]
  fill row, 0i32
  serial l in 0 .. ceildiv(c, 8) {
    serial j in 0 .. ceildiv(b, 8) {
      copy X[i :+ 1, j * 8 :+ 8, l * 8 :+ 8] -> t
      reduce t -> r {axis=0}
      reduce r -> q
      copy q -> S[i :+ 1]
      row[0] = row[0] + S[i]
    }
  }
  S[i] = row[0]
}
)";
  std::vector<Launch> launches;
  for (const auto& d : {std::array<int64_t, 3>{2, 7, 45}, {1, 1, 1}, {3, 0, 5}, {0, 3, 3}, {4, 64, 20}}) {
    Launch l;
    l.dims = {{"a", d[0]}, {"b", d[1]}, {"c", d[2]}};
    l.seed = static_cast<uint64_t>(d[2]);
    launches.push_back(l);
  }
  expect_agree(text, launches);
}

TEST(Local, BuffersOfEveryType) {
  for (DType t : kAll)
    expect_agree(replaced(R"(tl 1 program locals
scalar s: $t
tensor X: $t[9] readonly
tensor Y: $t[6, 9]

kernel k grid (b: 6) {
  alloc a: local $t[9]
  alloc c: local $t[3, 3]
  fill a, s
  copy X[b :+ 5] -> a[2 :+ 5]
  fill c, s
  serial i in 0 .. 3 {
    c[i, 2 - i] = a[i * 2 + 1]
    if cast(bool, c[i, 2 - i]) {
      a[i] = c[0, 2]
    }
  }
  vectorized v in 0 .. 3 {
    a[v + 6] = c[v, v]
  }
  copy a -> Y[b :+ 1, 0 :+ 9]
}
)", {{"t", ir::dtype_name(t)}}), seeds({1, 2}));
}

}  // namespace
}  // namespace tilegen::differential
