// What LLVM's assembler makes of tests/unit/ir/bitcode/NAME.ll stands in tests/fuzz/corpus/bitcode/NAME.bc.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "ir/bitcode_text.h"
#include "ir/text.h"

namespace tilegen::ir {
namespace {

std::vector<uint8_t> bytes_of(const std::string& name) {
  std::ifstream in(std::string(TILEGEN_SOURCE_DIR) + "/tests/fuzz/corpus/bitcode/" + name + ".bc",
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string text_of(const std::string& name) {
  const auto text = bitcode_text(bytes_of(name));
  return text ? *text : text.error().to_text();
}

TEST(Bitcode, FunctionsCallEachOther) {
  EXPECT_EQ(text_of("mix"),
            "define { i64, i64 } @mix(i64 %v2, i64 %v3) {\n"
            "b0:\n"
            "  %v5 = xor i64 %v2, %v3\n"
            "  %v6 = call i64 @sum(i64 %v2, i64 %v3)\n"
            "  %v7 = insertvalue { i64, i64 } undef, i64 %v5, 0\n"
            "  %v8 = insertvalue { i64, i64 } %v7, i64 %v6, 1\n"
            "  ret { i64, i64 } %v8\n"
            "}\n"
            "define i64 @sum(i64 %v2, i64 %v3) {\n"
            "b0:\n"
            "  %v4 = add i64 %v2, %v3\n"
            "  ret i64 %v4\n"
            "}\n");
}

void expect_lines(const std::string& text, const std::vector<const char*>& lines) {
  for (const char* line : lines) EXPECT_NE(text.find(line), text.npos) << line << "\n" << text;
}

TEST(Bitcode, BranchesAndVectors) {
  expect_lines(
      text_of("control_flow"),
      {"define { i64, float } @flow(i64 %v3, i64 %v4, float %v5, half %v6) {\n",
       "  br i1 %v21, label %b1, label %b2\nb1:\n", "  %v22 = phi i64 [zeroinitializer, %b0], [%v25, %b1]\n",
       "  %v25 = add nuw i64 %v22, 1\n", "  %v30 = fmul fast float %v28, %v29\n",
       "  switch i64 %v27, label %b4 [ i64 3, label %b3 i64 4, label %b4 ]\n", "[0x3FF3333340000000, %b3]\n",
       "  %v33 = shufflevector <4 x i32> %v32, <4 x i32> poison, <4 x i32> <i32 2, i32 1, "
       "i32 0, i32 3>\n",
       "  %v37 = select i1 %v21, i64 %v36, i64 -123456789012\n", "  %v38 = freeze i64 %v37\n",
       "declare float @llvm.sqrt.f32(float)\n"});
}

TEST(Bitcode, Constants) {
  expect_lines(text_of("constants"),
               {"{ half 0xH3C00, [2 x i32] [i32 1, i32 4294967289] }", "u0x00000000000000020000000000000000",
                "fadd nnan reassoc <2 x double> %v8, <double 0x7FF8000000000000, double 0x01A56E1FC2F8F359>",
                "fcmp fast olt <2 x double>", "<double 0x3FF0000000000000, double undef>", "0xR3FC0",
                "call nnan float @llvm.fabs.f32(float %v32)", "0x7FF0000000000000", "lshr exact i32"});
}

// A program holds the text and no bytes.
TEST(Bitcode, OfAProgram) {
  std::string lines;
  for (const char c : text_of("mix")) lines += c == '\n' ? "\"\n\"" : std::string(1, c);
  const auto p = parse_program(
      "tl 1 program p\ntensor A: i64[8]\nfn mix(a: i64, b: i64) -> (i64, i64)\n  llvm \"" + lines +
          "\"\n{ return a ^ b, a + b }\nkernel k grid (g: 1) { parallel i in 8 { A[i] = mix:1(A[i], 3) } }\n",
      "p.tl", Limits());
  EXPECT_TRUE(p) << p.error().to_text();
}

TEST(Bitcode, Refused) {
  const auto why = [](const std::vector<uint8_t>& bytes) {
    const auto text = bitcode_text(bytes);
    return text ? *text : text.error().to_text();
  };
  EXPECT_NE(why({}).find("it does not begin with the bytes of bitcode"), std::string::npos);
  EXPECT_NE(why({'B', 'C', 0xc0, 0xde, 0, 0, 0, 0}).find("a block ends that did not begin"),
            std::string::npos);
  EXPECT_NE(why(std::vector<uint8_t>((1 << 20) + 1)).find("[limit_bytes]"), std::string::npos);
  std::vector<uint8_t> bytes = bytes_of("mix");
  bytes.resize(bytes.size() - 200);
  EXPECT_NE(why(bytes).find("[bad_native_text]"), std::string::npos) << why(bytes);
}

}  // namespace
}  // namespace tilegen::ir
