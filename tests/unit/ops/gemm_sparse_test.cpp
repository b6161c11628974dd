// compress and gemm_sparse: what they accept, how they refuse, and what they mean: pruned rows against a sort
// by magnitude, products against those of the matrix that values and places make.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "../check/diagnose.h"
#include "../interp/run_text.h"
#include "ir/compress.h"

namespace tilegen {
namespace {

using check::diagnose;
using interp::Tensor;
using ir::DType;

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [from, to] : words)
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

struct Compressed {
  std::vector<double> values, words;
};

// As elements of the type are.
std::vector<double> rounded(DType type, std::vector<double> row) {
  Tensor x(type, row.size());
  for (size_t i = 0; i < row.size(); ++i) x.set(i, row[i]);
  return x.values();
}

Compressed compressed(DType type, DType word, const std::vector<double>& row) {
  const size_t bits = static_cast<size_t>(ir::dtype_bits(word));
  Tensor x(type, row.size()), v(type, row.size() / 2), p(word, row.size() / bits);
  for (size_t i = 0; i < row.size(); ++i) x.set(i, row[i]);
  interp::run_text(replaced(R"(tl 1 program p
tensor X: TYPE[K] readonly
tensor V: TYPE[HALF]
tensor P: WORD[WORDS]
kernel k grid(b: 1) {
  alloc x: fragment TYPE[K]
  alloc v: shared TYPE[HALF]
  alloc p: fragment WORD[WORDS]
  copy X -> x
  compress x -> v, p
  copy v -> V
  copy p -> P
}
)",
                            {{"TYPE", ir::dtype_name(type)},
                             {"WORDS", std::to_string(p.size())},
                             {"WORD", ir::dtype_name(word)},
                             {"HALF", std::to_string(v.size())},
                             {"K", std::to_string(row.size())}}),
                   {x.slot(), v.slot(), p.slot()});
  return {v.values(), p.values()};
}

double magnitude(double v) { return std::isnan(v) ? std::numeric_limits<double>::infinity() : std::fabs(v); }

TEST(Compress, KeepsTheTwoOfGreatestMagnitude) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::mt19937 random(3);
  for (DType type :
       {DType::f16, DType::bf16, DType::f32, DType::f64, DType::e4m3, DType::e5m2, DType::i8, DType::u8})
    for (DType word : {DType::u8, DType::u16, DType::u32}) {
      std::vector<double> row;
      for (int i = 0; i < 128; ++i) {
        const double special[] = {kInf, -kInf, -0.0, 0.0};
        double v = static_cast<double>(random() % 9) - (type == DType::u8 ? 0 : 4);
        if (type == DType::i8 && random() % 8 == 0) v = -128;
        if (ir::is_float(type) && type != DType::e4m3 && random() % 5 == 0) v = special[random() % 4];
        row.push_back(v);
      }
      row = rounded(type, std::move(row));
      const Compressed got = compressed(type, word, row);
      const int64_t bits = ir::dtype_bits(word);
      for (int64_t g = 0; g < 32; ++g) {
        std::array<int64_t, 4> order = {0, 1, 2, 3};
        const auto element = [&](int64_t i) { return row[static_cast<size_t>(g * 4 + i)]; };
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return magnitude(element(a)) > magnitude(element(b)); });
        const auto [low, high] = std::minmax(order[0], order[1]);
        const auto places = ir::sparse_places(
            static_cast<int64_t>(got.words[static_cast<size_t>(g * 4 / bits)]), g * 4 % bits);
        EXPECT_EQ(places.first, low) << ir::dtype_name(type) << " " << g;
        EXPECT_EQ(places.second, high) << ir::dtype_name(type) << " " << g;
        for (int64_t i : {0, 1}) {
          const double value = got.values[static_cast<size_t>(g * 2 + i)], of = element(i == 0 ? low : high);
          EXPECT_EQ(value, of);
          EXPECT_EQ(std::signbit(value), std::signbit(of));
        }
      }
    }
}

TEST(Compress, NaNIsTheGreatest) {
  const double kInf = std::numeric_limits<double>::infinity();
  const Compressed got = compressed(DType::f16, DType::u8, {kInf, NAN, -kInf, 1, NAN, kInf, NAN, 3});
  EXPECT_EQ(got.words, (std::vector<double>{0x84}));  // places 0, 1 and 0, 2
  EXPECT_EQ(got.values[0], kInf);
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(got.values[i]));
}

// Any bits as places: the second value stands above the first.
TEST(GemmSparse, IsTheProductOfTheExpandedOperand) {
  constexpr int64_t m = 5, n = 3, k = 64;
  std::mt19937 random(11);
  for (DType word : {DType::u8, DType::u16, DType::u32})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const int64_t bits = ir::dtype_bits(word);
        Tensor v(DType::i8, m * k / 2), p(word, static_cast<size_t>(m * k / bits)), b(DType::i8, k * n),
            c(DType::i32, m * n, 7);
        const auto fill = [&](Tensor& t, uint32_t values, int64_t first) {
          for (size_t i = 0; i < t.size(); ++i) t.set(i, static_cast<double>(first + random() % values));
        };
        fill(v, 200, -100), fill(b, 200, -100);
        fill(p, bits == 32 ? UINT32_MAX : uint32_t{1} << bits, 0);
        interp::run_text(replaced(R"(tl 1 program p
tensor V: i8[VSHAPE] readonly
tensor P: WORD[5, WORDS] readonly
tensor B: i8[BSHAPE] readonly
tensor C: i32[5, 3]
kernel k grid(g: 1) {
  alloc v: shared i8[VSHAPE]
  alloc p: shared WORD[5, WORDS]
  alloc b: shared i8[BSHAPE]
  alloc c: fragment i32[5, 3]
  copy V -> v
  copy P -> p
  copy B -> b
  copy C -> c
  gemm_sparse v, b, p -> c {transpose_a = ATRANS, transpose_b = BTRANS}
  copy c -> C
}
)",
                                  {{"VSHAPE", transpose_a ? "32, 5" : "5, 32"},
                                   {"BSHAPE", transpose_b ? "3, 64" : "64, 3"},
                                   {"WORDS", std::to_string(k / bits)},
                                   {"WORD", ir::dtype_name(word)},
                                   {"ATRANS", transpose_a ? "true" : "false"},
                                   {"BTRANS", transpose_b ? "true" : "false"}}),
                         {v.slot(), p.slot(), b.slot(), c.slot()});
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = 7;
            for (int64_t at = 0; at < k; ++at) {
              const int64_t tells =
                  static_cast<int64_t>(p.at(static_cast<size_t>(i * (k / bits) + at / bits)));
              const int64_t shift = at % bits / 4 * 4, first = tells >> shift & 3,
                            second = tells >> shift >> 2 & 3;
              if (second != at % 4 && first != at % 4) continue;
              const int64_t place = at / 4 * 2 + (second == at % 4 ? 1 : 0);
              sum += v.at(static_cast<size_t>(transpose_a ? place * m + i : i * (k / 2) + place)) *
                     b.at(static_cast<size_t>(transpose_b ? j * k + at : at * n + j));
            }
            EXPECT_EQ(c.at(static_cast<size_t>(i * n + j)), sum) << i << " " << j;
          }
      }
}

constexpr const char* kTiles = "fill As, 0.0f16 fill Bs, 0.0f16 fill Cf, 0.0f32 fill U, 0u8 ";

TEST(GemmSparse, Accepts) {
  for (const char* body : {"gemm_sparse As[0 :+ 64, 0 :+ 8], Bs[0 :+ 16, 0 :+ 64], U -> Cf }",
                           "gemm_sparse As[0 :+ 8, 0 :+ 64], Bs[0 :+ 64, 0 :+ 16], U -> Cf "
                           "{transpose_a, transpose_b, clear, policy = full_row} }"})
    EXPECT_EQ(diagnose(kTiles + std::string(body)), "") << body;
}

TEST(GemmSparse, Refuses) {
  const auto said = [](const std::string& body) { return diagnose(kTiles + body); };
  EXPECT_EQ(
      said("gemm_sparse As[0 :+ 64, 0 :+ 8], Bs[0 :+ 16, 0 :+ 64], S[0 :+ 64] -> Cf }"),
      "t.tl:6:62: error [dtype_mismatch] k/gemm_sparse#0: meta S[64] (f32, shared) is f32, expected words of "
      "u8, u16 or u32 (compress writes them; two bits of each word tell the place of one value)");
  EXPECT_EQ(said("gemm_sparse As[0 :+ 64, 0 :+ 8], Bs[0 :+ 32, 0 :+ 64], U -> Cf }"),
            "t.tl:6:62: error [shape_mismatch] k/gemm_sparse#0: a As[64, 8], b Bs[32, 64], c Cf[64, 64], "
            "meta U[64, 2]: k in a, two values of each four, is 16, in b 32 (a is m x k / 2, b is k x n, c "
            "is m x n, meta is m x k / w in words of w bits; transpose_a and transpose_b say that a or b is "
            "stored transposed)");
  EXPECT_EQ(said("gemm_sparse As[0 :+ 64, 0 :+ 10], Bs[0 :+ 20, 0 :+ 64], U -> Cf }"),
            "t.tl:6:62: error [shape_mismatch] k/gemm_sparse#0: a As[64, 10], b Bs[20, 64], c Cf[64, 64], "
            "meta U[64, 2]: k is 20, no multiple of the 8 that a word of meta tells of (a is m x k / 2, b is "
            "k x n, c is m x n, meta is m x k / w in words of w bits; transpose_a and transpose_b say that a "
            "or b is stored transposed)");
  EXPECT_EQ(said("gemm_sparse As[0 :+ 64, 0 :+ 8], Bs[0 :+ 16, 0 :+ 64], U[0 :+ 32, 0 :+ 2] -> Cf }"),
            "t.tl:6:62: error [shape_mismatch] k/gemm_sparse#0: a As[64, 8], b Bs[16, 64], c Cf[64, 64], "
            "meta U[32, 2]: m in meta is 32, in a 64 (a is m x k / 2, b is k x n, c is m x n, meta is m x k "
            "/ w in words of w bits; transpose_a and transpose_b say that a or b is stored transposed)");
  EXPECT_EQ(
      said("gemm_sparse As[0 :+ 64, 0 :+ 8], Bs[0 :+ 16, 0 :+ 64], U[0 :+ 64, 0 :+ 1] -> Cf }"),
      "t.tl:6:62: error [shape_mismatch] k/gemm_sparse#0: a As[64, 8], b Bs[16, 64], c Cf[64, 64], meta "
      "U[64, 1]: words of meta along k is 1, expected 2 (a is m x k / 2, b is k x n, c is m x n, meta is m x "
      "k / w in words of w bits; transpose_a and transpose_b say that a or b is stored transposed)");
  EXPECT_EQ(said("gemm_sparse As[0 :+ 64, 0 :+ 8], Bs[0 :+ 16, 0 :+ 32], U -> Cf }"),
            "t.tl:6:62: error [shape_mismatch] k/gemm_sparse#0: a As[64, 8], b Bs[16, 32], c Cf[64, 64], "
            "meta U[64, 2]: n in c is 64, in b 32 (a is m x k / 2, b is k x n, c is m x n, meta is m x k / w "
            "in words of w bits; transpose_a and transpose_b say that a or b is stored transposed)");
  EXPECT_EQ(said("gemm_sparse A[0 :+ 64, 0 :+ 8], Bs[0 :+ 16, 0 :+ 64], U -> Cf }"),
            "t.tl:6:62: error [scope_not_allowed] k/gemm_sparse#0: a A[64, 8] (f16, global): expected a "
            "shared or fragment buffer (copy it into a shared buffer first)");
}

TEST(Compress, Refuses) {
  const auto said = [](const std::string& body) -> std::string {
    const std::string text = check::kDeclarations + std::string(" fill As, 0.0f16 ") + body;
    auto program = ir::parse_program(text, "t.tl", Limits());
    return program ? "accepted" : program.error().to_text();
  };
  EXPECT_EQ(said("compress As[0 :+ 64, 0 :+ 16] -> Bs[0 :+ 64, 0 :+ 8], U }"), "accepted");
  EXPECT_EQ(said("compress A[0 :+ 64, 0 :+ 16] -> Bs[0 :+ 64, 0 :+ 8], U }"),
            "t.tl:6:18: error [scope_not_allowed] k: A[64, 16]: expected an on-chip buffer (compress tiles "
            "and copy from or to global memory)");
  EXPECT_EQ(said("compress As[0 :+ 64, 0 :+ 16] -> As[0 :+ 64, 16 :+ 8], U }"),
            "t.tl:6:18: error [parallel_race] k: compress of As[64, 16]: two of its three tiles are one (use "
            "a tile of its own for each)");
  EXPECT_EQ(said("compress As[0 :+ 64, 0 :+ 16] -> Cf[0 :+ 64, 0 :+ 8], U }"),
            "t.tl:6:18: error [dtype_mismatch] k: compress of As[64, 16], which is f16, into Cf, which is "
            "f32 (use one type)");
  EXPECT_EQ(said("compress As[0 :+ 64, 0 :+ 16] -> Bs[0 :+ 64, 0 :+ 8], S }"),
            "t.tl:6:18: error [dtype_mismatch] k: the places that compress tells are words of u8, u16 or "
            "u32, S is f32 (use a tile of u16)");
  EXPECT_EQ(said("compress As[0 :+ 64, 0 :+ 12] -> Bs[0 :+ 64, 0 :+ 6], U }"),
            "t.tl:6:18: error [bad_shape] k: compress of As[64, 12]: 12 elements in a row, no multiple of "
            "the 8 that a word of u8 tells of (use smaller words, or a row filled with zeros)");
  EXPECT_EQ(said("compress As[0 :+ 64, 0 :+ 16] -> Bs[0 :+ 64, 0 :+ 16], U }"),
            "t.tl:6:18: error [shape_mismatch] k: Bs[64, 16] does not fit compress of As[64, 16] (it has the "
            "extents [64, 8])");
  EXPECT_EQ(said("fill P, true compress P -> Q, W }"),
            "t.tl:6:31: error [dtype_mismatch] k: compress of P[64]: there is no sparse product of bool "
            "(compress floats of 8 bits or more, i8 or u8)");
}

}  // namespace
}  // namespace tilegen
