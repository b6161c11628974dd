// Functions of the library: what a program that calls them holds, and whose text counts as the library's.
#include "ir/library_functions.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ir/native_asm.h"
#include "ir/text.h"

namespace tilegen::ir {
namespace {

Expected<Program> read(const std::string& before, const std::string& value) {
  return parse_program("tl 1 program p\n" + before +
                           "tensor X: f32[64]\nkernel k grid (b: 1) {\n  parallel i in 64 "
                           "{ X[i] = " +
                           value + " }\n}\n",
                       "p.tl", Limits());
}

TEST(LibraryFunctions, TextsAreTaken) {
  std::set<std::string_view> names;
  for (const LibraryFunction& f : library_functions()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_FALSE(read_native_asm(NativeForm::ptx, f.ptx, 1, f.parameters).error) << f.name;
    if (f.gcn.empty()) continue;
    const NativeAsmRead gcn = read_native_asm(NativeForm::gcn, f.gcn, 1, f.parameters);
    EXPECT_FALSE(gcn.error) << f.name;
  }
}

TEST(LibraryFunctions, ProgramsHoldThoseThatTheyCall) {
  const auto p = read("", "fast_exp(fast_div(X[i], 3)) + fast_exp(1)");
  ASSERT_TRUE(p) << p.error().to_text();
  ASSERT_EQ(p->natives.size(), 2u);
  for (const auto& f : p->natives) EXPECT_TRUE(is_library_function(*f)) << f->name;
  const std::string printed = print_program(*p);
  EXPECT_NE(printed.find("fn fast_div(x: f32, y: f32) -> f32\n    asm ptx \"div.approx.f32 $0, $1, $2;\""),
            std::string::npos)
      << printed;
  const auto again = parse_program(printed, "q.tl", Limits());
  ASSERT_TRUE(again) << again.error().to_text();
  EXPECT_EQ(print_program(*again), printed);
  EXPECT_EQ(program_hash(*again), program_hash(*p));
  for (const auto& f : again->natives) EXPECT_TRUE(is_library_function(*f)) << f->name;
}

// The program's own, whatever it is called; its text is not the library's.
TEST(LibraryFunctions, TheProgramsOwnComeFirst) {
  const auto plain = read("fn fast_exp(x: f32) -> f32 { return x + 1 }\n", "fast_exp(X[i])");
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->natives.empty());
  const std::string head = "fn fast_exp(x: f32) -> f32 asm ptx ";
  for (const char* text :
       {"\"ex2.approx.f32 $0, $1;\" { return exp(x) }\n",
        "\"mul.f32 $0, $1, 0f3FB8AA3B;\" asm gcn \"v_exp_f32 $0, $1\" { return exp(x) }\n"}) {
    const auto own = read(head + text, "fast_exp(X[i])");
    ASSERT_TRUE(own) << own.error().to_text();
    ASSERT_EQ(own->natives.size(), 1u);
    EXPECT_FALSE(is_library_function(*own->natives[0]));
  }
}

TEST(LibraryFunctions, BytesArePermuted) {
  ExprPool e;
  Program p;
  const LibraryFunction& f = *find_library_function(p, "byte_permute");
  const auto permuted = [&](uint32_t a, uint32_t b, uint32_t s) {
    const ExprId args[] = {e.const_int(a, DType::u32), e.const_int(b, DType::u32),
                           e.const_int(s, DType::u32)};
    return static_cast<uint32_t>(e[f.meaning(e, std::span<const ExprId>(args))].imm);
  };
  EXPECT_EQ(permuted(0x44332211, 0x88776655, 0x3210), 0x44332211u);
  EXPECT_EQ(permuted(0x44332211, 0x88776655, 0x7654), 0x88776655u);
  EXPECT_EQ(permuted(0x44332211, 0x88776655, 0x0123), 0x11223344u);
  EXPECT_EQ(permuted(0x44332211, 0x88776655, 0x70f8), 0x8811ff00u);
}

}  // namespace
}  // namespace tilegen::ir
