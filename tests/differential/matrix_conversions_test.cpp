// Casts that round or end otherwise, fast forms of functions, permuted bytes, views of other widths.
#include "matrix.h"

namespace tilegen::differential {
namespace {

// One store for each value, of tensors of 333 elements.
std::string each(const std::string& inputs, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string declarations = inputs, stores;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string y = "Y" + std::to_string(i);
    declarations += "tensor " + y + ": " + values[i].first + "[333]\n";
    stores += "      " + y + "[b * 128 + i] = " + values[i].second + "\n";
  }
  return "tl 1 program conversions\n" + declarations +
         "kernel k grid (b: 3) {\n  parallel i in 128 {\n    if b * 128 + i < 333 {\n      let x = A[b * 128 "
         "+ i]\n" +
         stores + "    }\n  }\n}\n";
}

TEST(Conversions, FloatsRoundAsAsked) {
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"f32", "f16"},
                                 {"f32", "bf16"},
                                 {"f16", "bf16"},
                                 {"f64", "f32"},
                                 {"f64", "f16"},
                                 {"i32", "f32"},
                                 {"u32", "f16"},
                                 {"i16", "bf16"}}) {
    std::vector<std::pair<std::string, std::string>> values;
    for (const std::string mode :
         {"nearest", "zero", "down", "up", "saturate", "zero, saturate", "up, saturate"})
      values.emplace_back(to, "cast(" + to + ", x, " + mode + ")");
    expect_agree(each("tensor A: " + from + "[333] readonly\n", values), seeds({1, 2}, Data::bit_patterns));
    if (HasFailure()) return;
  }
}

TEST(Conversions, IntegersRoundAndSaturate) {
  for (const std::string from : {"f16", "bf16", "f32", "f64", "i8", "u8", "i16", "u32", "i64", "u64"}) {
    const bool floats = from[0] == 'f' || from[0] == 'b';
    std::vector<std::pair<std::string, std::string>> values;
    for (const std::string to : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"})
      for (const std::string mode : {"nearest", "down", "up, saturate", "saturate"})
        if (floats || mode == "saturate") values.emplace_back(to, "cast(" + to + ", x, " + mode + ")");
    expect_agree(each("tensor A: " + from + "[333] readonly\n", values), seeds({3}, Data::bit_patterns));
    if (HasFailure()) return;
  }
}

TEST(Conversions, NarrowFloatsOverflow) {
  for (const std::string from : {"f16", "f32", "f64", "i32"}) {
    std::vector<std::pair<std::string, std::string>> values;
    for (const std::string to : {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz"})
      values.emplace_back("u8", "select(x == x, bitcast(u8, cast(" + to + ", x, overflow)), 0)");
    expect_agree(each("tensor A: " + from + "[333] readonly\n", values), seeds({4, 5}, Data::bit_patterns));
    if (HasFailure()) return;
  }
}

// Of numbers near 1, where a device keeps the bounds of docs/numerics.md within these.
TEST(Conversions, FastForms) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const std::string f :
       {"exp", "exp2", "exp10", "log", "log2", "sin", "cos", "sigmoid", "sqrt", "rsqrt"})
    values.emplace_back("f32", "fast_" + f + "(abs(x) + 1)");
  values.emplace_back("f32", "fast_div(x, abs(x) + 1)");
  values.emplace_back("f32", "fast_pow(abs(x) + 1, 1.5)");
  const auto launches = [](double absolute, double ulps) {
    std::vector<Launch> list = seeds({6, 7}, Data::reals);
    for (Launch& l : list) l.magnitude = 2, l.bound = {absolute, ulps};
    return list;
  };
  expect_agree(each("tensor A: f32[333] readonly\n", values), launches(0x1p-18, 64));
  expect_agree(each("tensor A: f32[333] readonly\n", {{"f32", "fast_tanh(x)"}}), launches(0x1p-10, 0x1p14));
}

TEST(Conversions, BytesAndWidths) {
  expect_agree(each("tensor A: u32[333] readonly\n", {{"u32", "byte_permute(x, x * 2654435761, x >> 7)"},
                                                      {"u32", "byte_permute(x, 0, 0x3120)"},
                                                      {"u32", "byte_permute(7, x, 0xfc84)"}}),
               seeds({8}, Data::bit_patterns));
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"u8", "u32"},
                                 {"i8", "f16"},
                                 {"u4", "u16"},
                                 {"i2", "u32"},
                                 {"f16", "u64"},
                                 {"u32", "u8"},
                                 {"f64", "f32"},
                                 {"u16", "i4"},
                                 {"u32", "e2m1"}})
    for (const bool tile : {false, true}) {
      const int a = std::stoi(from.substr(from.find_first_of("0123456789"))),
                b = to == "e2m1" ? 4 : std::stoi(to.substr(to.find_first_of("0123456789")));
      const std::string columns = std::to_string(48 * a / b), half = b < 8 ? "f32" : to;
      const std::string text = replaced(
          "tl 1 program widths\ndim m\ntensor X: $from[m, 48] readonly\ntensor Y: $half[m, $columns]\n"
          "kernel k grid (b: ceildiv(m, 8)) {\n$before  parallel i, j in 8, $columns {\n    Y[b * 8 + i, j] "
          "= "
          "$value\n  }\n}\n",
          {{"before",
            tile ? "  alloc s: shared $from[8, 48]\n  view w = reinterpret(s, $to)\n  copy X[b * 8 :+ 8, 0 "
                   ":+ 48] -> s\n"
                 : "  view w = reinterpret(X, $to)\n"},
           {"value", b < 8 ? "cast(f32, w[$row, j])" : "w[$row, j]"},
           {"row", tile ? "i" : "b * 8 + i"},
           {"from", from},
           {"to", to},
           {"half", half},
           {"columns", columns}});
      std::vector<Launch> launches = seeds({9}, Data::bit_patterns);
      for (Launch& l : launches) l.dims["m"] = 21;
      expect_agree(text, launches);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace tilegen::differential
