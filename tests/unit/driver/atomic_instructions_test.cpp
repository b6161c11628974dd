// Atomic operations in the machine code: an instruction where the machine has one, for two elements where it
// adds two.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "ir/text.h"

namespace tilegen::driver {
namespace {

std::string code_of(const std::string& tensors, const std::string& body) {
  const std::string text =
      "tl 1 program p\ndim n\n" + tensors + "\nkernel k grid (b: n) threads 128 {\n" + body + "\n}\n";
  auto p = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return "";
  CompileOptions options;
  options.verify = options.keep_assembly = true;
  const auto a =
      compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target("sm_80"), options);
  EXPECT_TRUE(a) << a.error().to_text() << text;
  return a ? (*a)->assembly : "";
}

int count_of(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(AtomicInstructions, SumsOfHalvesAreOfPairs) {
  const std::string body = "alloc h: fragment f16[16, 64] fill h, 1 atomic h -> Z[b * 16, 0] {kind = add}";
  const std::string code = code_of("tensor Z: f16[n * 16, 64]", body);
  EXPECT_EQ(count_of(code, "red.global.add.noftz.f16x2"), 4) << code;
  EXPECT_EQ(count_of(code, ".cas."), 0) << code;
  // Rows that begin in the middle of a pair: one at a time.
  const std::string odd = code_of("tensor Z: f16[n * 16, 65]", body);
  EXPECT_EQ(count_of(odd, "f16x2"), 0) << odd;
  EXPECT_EQ(count_of(odd, "atom.global.add.noftz.f16"), 8) << odd;
}

TEST(AtomicInstructions, HalvesOneByOne) {
  const std::string tensors = "tensor X: i32[n, 128] readonly\ntensor Z: f16[64]";
  const std::string data =
      code_of(tensors, "parallel i in 128 { atomic_add(Z[cast(i64, X[b, i])], cast(f16, 1)) }");
  EXPECT_EQ(count_of(data, "atom.global.add.noftz.f16"), 1) << data;
  const std::string tile = code_of(tensors,
                                   "alloc s: shared f16[64] fill s, 0 parallel i in 128 { "
                                   "atomic_add(s[cast(i64, X[b, i])], cast(f16, 1)) } copy s -> Z");
  EXPECT_GT(count_of(tile, "atom.shared.add.noftz.f16"), 0) << tile;
  EXPECT_EQ(count_of(tile, ".cas."), 0) << tile;
  // Of NaN the instructions have rules of their own.
  const std::string least =
      code_of(tensors, "parallel i in 128 { atomic_min(Z[cast(i64, X[b, i])], cast(f16, 1)) }");
  EXPECT_EQ(count_of(least, "atom.global.cas.b32"), 1) << least;
}

}  // namespace
}  // namespace tilegen::driver
