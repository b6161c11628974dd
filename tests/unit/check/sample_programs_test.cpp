// The sample programs are legal, and stay so when printed and read back.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::check {
namespace {

void expect_legal(const ir::Program& p, const std::string& name) {
  for (const Diagnostic& d : check_program(p, Limits()))
    EXPECT_NE(d.severity, Severity::error) << name << ": " << d.to_text();
}

TEST(SamplePrograms, HaveNoErrors) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TILEGEN_SOURCE_DIR "/tests/files/text")) {
    if (entry.path().extension() != ".tl") continue;
    ++seen;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    Expected<ir::Program> p = ir::parse_program(text, entry.path().filename().string(), Limits());
    ASSERT_TRUE(p) << p.error().to_text();
    expect_legal(*p, "as written");
    Expected<ir::Program> again = ir::parse_program(ir::print_program(*p), "printed", Limits());
    ASSERT_TRUE(again) << again.error().to_text();
    expect_legal(*again, "as printed");
  }
  EXPECT_GE(seen, 12);
}

}  // namespace
}  // namespace tilegen::check
