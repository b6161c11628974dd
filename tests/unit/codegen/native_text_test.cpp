// Which text of a function is code for a target, and where in the code it stands.
#include "codegen/native_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "codegen/backend.h"
#include "driver/compile.h"
#include "ir/bitcode_text.h"
#include "ir/text.h"
#include "support/diag_codes.h"
#include "target/target.h"

namespace tilegen::codegen {
namespace {

constexpr char kProgram[] = R"(tl 1 program p
tensor A: f32[64]
fn rcp(x: f32) -> f32
  asm ptx "rcp.approx.ftz.f32 $0, $1;"
  asm gcn "v_rcp_f32 $0, $1"
  llvm host "define float @rcp(float %x) { %r = fdiv float 1.0, %x ret float %r }"
{ return 1 / x }
fn half(x: f32) -> f32
  asm ptx "mul.f32 $0, $1, 0f3f000000;"
  llvm "define float @half(float %x) { %r = fmul float %x, 0.5 ret float %r }"
{ return x * 0.5 }
kernel k grid (b: 1) {
  parallel i in 64 { A[i] = rcp(half(A[i])) }
}
)";

TEST(NativeText, OfATarget) {
  auto p = ir::parse_program(kProgram, "p.tl", Limits());
  ASSERT_TRUE(p) << p.error().to_text();
  EXPECT_EQ(native_text_list(p->natives, target::CodeFormat::ptx), "rcp asm ptx\nhalf asm ptx\n");
  EXPECT_EQ(native_text_list(p->natives, target::CodeFormat::hsaco), "rcp asm gcn\nhalf llvm\n");
  EXPECT_EQ(native_text_list(p->natives, target::CodeFormat::object), "rcp llvm host\nhalf llvm\n");
}

TEST(NativeText, LinesAreOfFunctions) {
  const std::string text =
      "a;\n\t// begin inline asm\n\tst;\n// end inline asm\nb;\n\t// begin inline asm\n\t// f\nx;\ny;\n"
      "\t// end inline asm\nc;\n";
  const char* const names[] = {"", "", "", "", "", "", "f", "f", "f", "", "", ""};
  for (size_t line = 1; line <= std::size(names); ++line)
    EXPECT_EQ(native_function_at(text, line), names[line - 1]) << line;
  EXPECT_EQ(native_function_at("", 7), "");
}

// LLVM keeps vector instructions apart where the hardware wants it, but for those in a text: around it,
// behind functions that come late, and longer where arguments may be results of matrix instructions.
TEST(NativeText, IdleCyclesStandAroundInstructions) {
  const auto assembly = [](const std::string& body) {
    auto p = ir::parse_program(
        "tl 1 program p\ntensor A: f32[64, 64]\ntensor B: f16[64, 64]\n"
        "fn f(x: f32) -> f32 asm gcn \"v_rcp_f32 $0, $1; v_mul_f32 $0, $0, $0\" "
        "{ return 1 / x * (1 / x) }\nkernel k grid (b: 1) {\n" +
            body + "}\n",
        "p.tl", Limits());
    if (!p) {
      ADD_FAILURE() << p.error().to_text();
      return std::string();
    }
    driver::CompileOptions options;
    options.keep_assembly = true;
    const auto target = target::find_target("gfx942");
    const auto made = driver::compile(std::make_shared<const ir::Program>(*p), *target, options);
    if (!made) ADD_FAILURE() << made.error().to_text();
    return made ? (*made)->assembly : std::string();
  };
  const auto count = [](const std::string& text, const std::string& part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  const std::string plain = assembly("  parallel i, j in 64, 64 { A[i, j] = f(A[i, j]) }\n");
  const size_t calls = count(plain, "; f\n");
  EXPECT_GT(calls, 0u) << plain;
  EXPECT_EQ(count(plain, "s_nop 15"), 0u) << plain;
  EXPECT_GE(count(plain, "s_nop 0"), 2 * calls) << plain;
  EXPECT_GE(count(plain, "s_nop 1"), calls) << plain;
  const std::string product = assembly(
      "  alloc t: shared f16[64, 64]\n  alloc c: fragment f32[64, 64]\n  copy B -> t\n  fill c, 0.0f32\n"
      "  gemm t, t -> c\n  parallel i, j in 64, 64 { c[i, j] = f(c[i, j]) }\n  copy c -> A\n");
  EXPECT_GT(count(product, "v_mfma"), 0u) << product;
  EXPECT_EQ(count(product, "s_nop 15"), count(product, "; f\n")) << product;
}

// As LLVM writes them.
TEST(NativeText, LinesOfCode) {
  auto p = ir::parse_program(kProgram, "p.tl", Limits());
  ASSERT_TRUE(p);
  const auto target = target::find_target("sm_80");
  ASSERT_TRUE(target);
  const auto artifact = driver::compile(std::make_shared<const ir::Program>(*p), *target, {});
  ASSERT_TRUE(artifact) << artifact.error().to_text();
  const std::string& ptx = (*artifact)->code;
  size_t line = 1, found = 0;
  for (size_t at = 0; at < ptx.size(); ++line) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size());
    const std::string text = ptx.substr(at, end - at);
    if (text.find("rcp.approx") != text.npos) {
      EXPECT_EQ(native_function_at(ptx, line), "rcp") << text;
      ++found;
    }
    if (text.find("0f3f000000") != text.npos) {
      EXPECT_EQ(native_function_at(ptx, line), "half") << text;
      ++found;
    }
    if (text.find(".entry") != text.npos) {
      EXPECT_EQ(native_function_at(ptx, line), "") << text;
    }
    at = end + 1;
  }
  EXPECT_GE(found, 2u) << ptx;
}

// Bytes that are nearly bitcode: text that LLVM reads, or a refusal with its reason.
TEST(NativeText, OfSpoiltBitcode) {
  std::ifstream in(std::string(TILEGEN_SOURCE_DIR) + "/tests/fuzz/corpus/bitcode/mix.bc", std::ios::binary);
  const std::vector<uint8_t> whole{std::istreambuf_iterator<char>(in), {}};
  ASSERT_FALSE(whole.empty());
  const auto target = target::find_target("host");
  std::mt19937 random(7);
  int texts = 0, taken = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint8_t> bytes = whole;
    for (auto edits = i == 0 ? 0 : 1 + random() % 3; edits > 0; --edits)
      bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    const auto text = ir::bitcode_text(bytes);
    if (!text) continue;
    ++texts;
    std::string lines;
    for (const char c : *text) lines += c == '\n' ? "\"\n\"" : std::string(1, c);
    const auto p = ir::parse_program(
        "tl 1 program p\ntensor A: i64[8]\nfn mix(a: i64, b: i64) -> (i64, i64)\n"
        "  llvm \"" +
            lines +
            "\"\n{ return a ^ b, a + b }\n"
            "kernel k grid (g: 1) { parallel i in 8 { A[i] = mix:1(A[i], 3) } }\n",
        "p.tl", Limits());
    if (!p) continue;
    const auto wrong = check_native_text(p->natives, *target);
    taken += !wrong;
    if (wrong) {
      EXPECT_EQ(wrong->diagnostics[0].code, DiagCode::bad_native_text) << wrong->to_text() << *text;
    }
    if (i == 0) {
      EXPECT_FALSE(wrong) << wrong->to_text();
    }
  }
  EXPECT_GT(texts, 100);
  EXPECT_GT(taken, 50);
  EXPECT_LT(taken, texts);
}

}  // namespace
}  // namespace tilegen::codegen
