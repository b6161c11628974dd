// Element-wise loops: every operator and function over special values, and every form of index.
#include <algorithm>
#include <array>
#include <bit>

#include "matrix.h"

namespace tilegen::differential {
namespace {

struct Function {
  const char* text;
  double ulps;      // the stated bound of one executor, doubled; 0 = exact
  double absolute;  // stated near 0, below the normal numbers and at saturation
};

// The interpreter computes in double; the stated bounds are for the f32 result, rounded once more for narrow
// types.
TEST(Expressions, MathFunctions) {
  const Function functions[] = {{"exp(x)", 4, 0},
                                {"exp2(x)", 4, 0x1p-126},
                                {"log(x)", 4, 0},
                                {"log2(x)", 4, 0},
                                {"rsqrt(x)", 4, 0},
                                {"tanh(x)", 8, 1e-7},
                                {"erf(x)", 8, 1e-7},
                                {"sigmoid(x)", 8, 1e-7},
                                {"sqrt(x)", 0, 0},
                                {"floor(x)", 0, 0},
                                {"ceil(x)", 0, 0},
                                {"abs(x)", 0, 0},
                                {"neg(x)", 0, 0},
                                {"x / y", 0, 0},
                                {"x + y", 0, 0},
                                {"x - y", 0, 0},
                                {"x * y", 0, 0},
                                {"min(x, y)", 0, 0},
                                {"max(x, y)", 0, 0},
                                {"round(x)", 0, 0},
                                {"rint(x)", 0, 0},
                                {"trunc(x)", 0, 0},
                                {"copysign(x, select(isnan(y), x, y))", 0, 0},
                                {"select(isnan(x) or isinf(y), y, x)", 0, 0}};
  // Narrow types take the results of f32.
  const Function wide_only[] = {
      {"sin(x)", 4, 0},      {"cos(x)", 4, 0},     {"tan(x)", 5, 0},       {"asin(x)", 4, 0},
      {"acos(x)", 4, 0},     {"atan(x)", 4, 0},    {"exp10(x)", 4, 0},     {"expm1(x)", 4, 0},
      {"log1p(x)", 4, 0},    {"cbrt(x)", 4, 0},    {"erfc(x)", 9, 0},      {"pow(x, y)", 4, 0},
      {"atan2(x, y)", 4, 0}, {"fmod(x, y)", 0, 0}, {"fma(x, y, x)", 0, 0}, {"copysign(x, y)", 0, 0}};
  for (const std::string type : {"f32", "f64", "f16", "bf16"}) {
    // Those of one bound share a program.
    std::vector<std::pair<Strings, Function>> programs;
    std::vector<Function> all(std::begin(functions), std::end(functions));
    if (type == "f32" || type == "f64") all.insert(all.end(), std::begin(wide_only), std::end(wide_only));
    for (const Function& f : all) {
      auto same = std::find_if(programs.begin(), programs.end(), [&](const auto& p) {
        return p.second.ulps == f.ulps && p.second.absolute == f.absolute;
      });
      if (same == programs.end()) same = programs.insert(same, {{}, f});
      same->first.push_back(f.text);
    }
    for (const auto& [texts, f] : programs) {
      std::string declarations, stores;
      for (size_t i = 0; i < texts.size(); ++i) {
        const std::string y = "Y" + std::to_string(i);
        declarations += "tensor " + y + ": " + type + "[2001]\n";
        stores += "      " + y + "[b * 128 + i] = " + replaced(texts[i], {}) + "\n";
      }
      for (const auto& [from, to] :
           {std::pair<std::string, std::string>{"x", "A[b * 128 + i]"}, {"y", "B[b * 128 + i]"}})
        for (size_t at = 0; (at = stores.find(from, at)) != std::string::npos; ++at) {
          const bool word = !std::isalpha(static_cast<unsigned char>(stores[at - 1])) &&
                            !std::isalnum(static_cast<unsigned char>(stores[at + 1]));
          if (word) stores.replace(at, 1, to), at += to.size();
        }
      const std::string text =
          "tl 1 program math\ntensor A: " + type + "[2001] readonly\ntensor B: " + type +
          "[2001] readonly\n" + declarations +
          "kernel k grid (b: 16) {\n  parallel i in 128 {\n    if b * 128 + i < 2001 {\n" + stores +
          "    }\n  }\n}\n";
      std::vector<Launch> launches = seeds({3, 4}, Data::bit_patterns);
      for (Launch& l : launches)
        l.bound = {2 * f.absolute, f.ulps == 0 ? 0 : type == "f32" || type == "f64" ? 2 * f.ulps : 1};
      expect_agree(text, launches);
      if (HasFailure()) return;
    }
  }
}

TEST(Expressions, IntegerOperators) {
  for (const std::string type : {"i8", "u8", "i32", "i64"}) {
    const Strings ops = {"x + y",
                         "x - y",
                         "x * y",
                         "x // y",
                         "x % y",
                         "x & y",
                         "x | y",
                         "x ^ y",
                         "x << y",
                         "x >> y",
                         "min(x, y)",
                         "max(x, y)",
                         "abs(x)",
                         "neg(x)",
                         "bit_not(x)",
                         "popcount(x)",
                         "clz(x)",
                         "ctz(x)",
                         "mulhi(x, y)",
                         "x // 3$s",
                         "x % 7$s",
                         "x // 8$s",
                         "x % 16$s",
                         "(x << 3$s) + (y >> 2$s)",
                         "select(x < y, x, y)",
                         "select(x <= y or x == 3$s, x * x, y)"};
    const std::string suffix = type == "i64" ? "" : type;
    std::string declarations, stores;
    for (size_t i = 0; i < ops.size(); ++i) {
      declarations += "tensor Y" + std::to_string(i) + ": " + type + "[333]\n";
      std::string value = replaced(ops[i], {{"s", suffix}}), out;
      for (size_t at = 0; at < value.size(); ++at) {
        const bool alone =
            (at == 0 || !std::isalpha(static_cast<unsigned char>(value[at - 1]))) &&
            (at + 1 == value.size() || !std::isalpha(static_cast<unsigned char>(value[at + 1])));
        out += alone && value[at] == 'x'   ? "A[i]"
               : alone && value[at] == 'y' ? "B[i]"
                                           : std::string(1, value[at]);
      }
      stores += "    Y" + std::to_string(i) + "[i] = " + out + "\n";
    }
    expect_agree("tl 1 program integers\ntensor A: " + type + "[333] readonly\ntensor B: " + type +
                     "[333] readonly\n" + declarations + "kernel k grid (b: 1) {\n  parallel i in 333 {\n" +
                     stores + "  }\n}\n",
                 seeds({1, 2, 3}));
    if (HasFailure()) return;
  }
}

// Integers of few bits, cut out of words, become 16-bit floats by way of their digits.
TEST(Expressions, FieldsOfWords) {
  struct Field {
    int bits, first;
    const char* plus;
  };
  const Field fields[] = {{4, 0, "- 8"},    {4, 0, ""},        {2, 0, "- 2"},    {1, 0, ""},
                          {3, 1, "+ 5"},    {7, 0, "- 64"},    {8, 0, ""},       {8, 0, "- 128"},
                          {10, 0, "- 512"}, {10, 3, "- 1024"}, {5, 2, "+ 1000"}, {6, 0, "- 1"},
                          {12, 0, ""}};
  for (const std::string type : {"u8", "i8", "u16", "i16", "u32", "i32"})
    for (const std::string to : {"f16", "bf16"}) {
      const int64_t word = std::stoi(type.substr(1));
      std::string declarations, stores;
      int count = 0;
      for (const Field& f : fields) {
        const int64_t step = std::bit_ceil(static_cast<uint64_t>(f.bits)), of_word = word / step;
        if (f.first + f.bits > step || of_word < 1) continue;
        const std::string y = "Y" + std::to_string(count++);
        declarations += "tensor " + y + ": " + to + "[" + std::to_string(256 * of_word) + "]\n";
        stores += replaced(
            "  parallel i in $n {\n    $y[b * $n + i] = cast($to, ((cast(i32, A[b * 64 + i // $of]) >> "
            "cast(i32, i % $of * $step + $first)) & $mask) $plus)\n  }\n",
            {{"n", std::to_string(64 * of_word)},
             {"y", y},
             {"to", to},
             {"of", std::to_string(of_word)},
             {"step", std::to_string(step)},
             {"first", std::to_string(f.first)},
             {"mask", std::to_string((1 << f.bits) - 1)},
             {"plus", f.plus}});
      }
      declarations += "tensor Z: " + to + "[256]\n";
      stores += "  parallel i in 64 {\n    Z[b * 64 + i] = cast(" + to + ", A[b * 64 + i])\n  }\n";
      expect_agree("tl 1 program fields\ntensor A: " + type + "[256] readonly\n" + declarations +
                       "kernel k grid (b: 4) threads 64 {\n" + stores + "}\n",
                   seeds({1, 2}, Data::bit_patterns));
      if (HasFailure()) return;
    }
}

// Bit for bit: words of lanes that share a block and of lanes that do not, of seeds and offsets of any type.
TEST(Expressions, RandomWords) {
  expect_agree(R"(tl 1 program words
scalar seed: i64
scalar small: u32
tensor A: i64[300] readonly
tensor W: u32[4, 300]
tensor U: f32[300]
tensor D: f32[300]
kernel k grid (b: 3) {
  parallel i in 100 {
    let at = b * 100 + i
    W[0, at] = philox(seed, A[at], at)
    W[1, at] = philox(small, at // 4, b)
    W[2, at] = philox(A[at], A[299 - at], A[(at * 7) % 300])
    W[3, at] = philox(123456789012345, 5, 4 * at + 3)
    U[at] = uniform(philox(seed, 0, at))
    D[at] = select(uniform(philox(seed, 1, at)) < 0.25, 0.0f32, cast(f32, A[at]) * (1.0f32 / 0.75f32))
  }
}
)",
               seeds({1, 2, 3}));
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
)",
                          {{"t", ir::dtype_name(t)}}),
                 seeds({1, 2, 3}, Data::bit_patterns));
}

// Bit for bit, NaNs too: of elements, through tiles and through views of tiles, by copies and by loops.
TEST(Expressions, BitsOfEveryType) {
  struct Types {
    std::string t, u, i;
  };
  for (const Types& types : {Types{"f16", "u16", "i16"},
                             {"bf16", "i16", "u16"},
                             {"f32", "u32", "i32"},
                             {"f64", "i64", "u64"},
                             {"e4m3", "u8", "i8"},
                             {"e5m2", "i8", "u8"},
                             {"e4m3fnuz", "u8", "i8"},
                             {"e5m2fnuz", "i8", "u8"}})
    for (const std::string scope : {"shared", "fragment"}) {
      expect_agree(replaced(R"(tl 1 program bits
tensor A: $t[512] readonly
tensor B: $u[512] readonly
tensor U: $u[4, 512]
tensor S: $i[512]
tensor F: $t[4, 512]

kernel k grid (b: 2) {
  alloc x: $s $t[256]
  alloc y: $s $t[16, 16]
  view bits = reinterpret(x, $u)
  view square = reinterpret(y, $u)
  view row = reshape(square, [256])
  parallel i in 256 {
    let at = b * 256 + i
    U[0, at] = bitcast($u, A[at])
    S[at] = bitcast($i, A[at]) ^ 1
    F[0, at] = bitcast($t, B[at])
    F[1, at] = bitcast($t, bitcast($u, A[at]) ^ (B[at] & 3))
    x[i] = A[at]
  }
  copy bits -> U[1 :+ 1, b * 256 :+ 256]
  parallel i in 256 { bits[i] = bits[i] ^ B[b * 256 + i] }
  copy bits -> row
  copy x -> F[2 :+ 1, b * 256 :+ 256]
  fill square[0 :+ 1, 0 :+ 16], 7
  copy row -> U[2 :+ 1, b * 256 :+ 256]
  parallel i, j in 16, 16 { U[3, b * 256 + i * 16 + j] = square[i, j] - 1 }
  copy y -> F[3 :+ 1, b * 256 :+ 256]
}
)",
                            {{"t", types.t}, {"u", types.u}, {"i", types.i}, {"s", scope}}),
                   seeds({1, 2}, Data::bit_patterns));
      if (HasFailure()) return;
    }
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
)",
                            {{"t", type}, {"s", scope}}),
                   [] {
                     std::vector<Launch> l = seeds({1, 2});
                     l[0].dims = l[1].dims = {{"n", 5}};
                     return l;
                   }());
}

}  // namespace
}  // namespace tilegen::differential
