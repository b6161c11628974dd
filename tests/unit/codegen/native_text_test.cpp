// Which text of a function is code for a target, and where in the code it stands.
#include "codegen/native_text.h"

#include <gtest/gtest.h>

#include "codegen/backend.h"
#include "driver/compile.h"
#include "ir/text.h"
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

}  // namespace
}  // namespace tilegen::codegen
