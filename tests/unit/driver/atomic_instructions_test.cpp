// Atomic operations in the machine code: an instruction where the machine has one, for two elements where it
// adds two.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "ir/text.h"

namespace tilegen::driver {
namespace {

std::string code_of(const std::string& tensors, const std::string& body, const char* target = "sm_80") {
  const std::string text =
      "tl 1 program p\ndim n\n" + tensors + "\nkernel k grid (b: n) threads 128 {\n" + body + "\n}\n";
  auto p = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return "";
  CompileOptions options;
  options.verify = options.keep_assembly = true;
  const auto a =
      compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target(target), options);
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

// Sums of one tile of `type`, whose rows of `columns` begin at multiples of so many elements.
std::string tile_sums(const std::string& type, int columns, const char* target) {
  return code_of("tensor Z: " + type + "[n * 16, " + std::to_string(columns) + "]",
                 "alloc h: fragment " + type + "[16, 64] fill h, 1 atomic h -> Z[b * 16, 0] {kind = add}",
                 target);
}

TEST(AtomicInstructions, SumsOfVectors) {
  struct Row {
    const char *type, *form, *pair, *one;
    int columns_of_pairs;
  };
  for (const Row& row :
       {Row{"f32", ".v4.f32", ".v2.f32", "atom.global.add.f32", 66},
        Row{"f16", ".noftz.v4.f16x2", ".noftz.f16x2", "atom.global.add.noftz.f16", 66},
        Row{"bf16", ".noftz.v4.bf16x2", ".noftz.bf16x2", "atom.global.add.noftz.bf16", 66}}) {
    for (const char* target : {"sm_90", "sm_90a"}) {
      const std::string whole = tile_sums(row.type, 64, target);
      EXPECT_GT(count_of(whole, std::string("red.global.add") + row.form), 0) << whole;
      EXPECT_EQ(count_of(whole, "atom.") + count_of(whole, ".cas."), 0) << whole;
      EXPECT_EQ(count_of(whole, ".version 8.1"), 1) << whole;
      const std::string pairs = tile_sums(row.type, row.columns_of_pairs, target);
      EXPECT_EQ(count_of(pairs, std::string("red.global.add") + row.pair + " "), 4) << pairs;
      EXPECT_EQ(count_of(pairs, ".v4."), 0) << pairs;
      // Rows that begin anywhere: one at a time.
      const std::string odd = tile_sums(row.type, 65, target);
      EXPECT_EQ(count_of(odd, row.one), 8) << odd;
      EXPECT_EQ(count_of(odd, "red.") + count_of(odd, ".cas."), 0) << odd;
    }
    const std::string older = tile_sums(row.type, 64, "sm_80");
    EXPECT_EQ(count_of(older, ".v4.") + count_of(older, "bf16x2"), 0) << older;
  }
  EXPECT_GT(count_of(tile_sums("bf16", 64, "sm_80"), "atom.global.cas.b32"), 0);
}

// What each element's own condition decides is no vector.
TEST(AtomicInstructions, SumsUnderConditions) {
  const std::string code =
      code_of("dim m\ntensor Z: f32[m]\ntensor X: f32[m] readonly",
              "parallel i in 512 { if X[i] > 0f32 { atomic_add(Z[i], 1f32) } }", "sm_90");
  EXPECT_GT(count_of(code, "atom.global.add.f32"), 0) << code;
  EXPECT_EQ(count_of(code, "red.global"), 0) << code;
}

// Alone, in shared memory, and with the old value: bf16 by an instruction where there is one.
TEST(AtomicInstructions, Bf16OneByOne) {
  const std::string tensors = "tensor X: i32[n, 128] readonly\ntensor Z: bf16[64]\ntensor Y: bf16[n, 128]";
  const std::string add = "parallel i in 128 { atomic_add(Z[cast(i64, X[b, i])], cast(bf16, 1)) }";
  EXPECT_EQ(count_of(code_of(tensors, add, "sm_90"), "atom.global.add.noftz.bf16"), 1);
  EXPECT_EQ(count_of(code_of(tensors, add, "sm_80"), "atom.global.cas.b32"), 1);
  for (const auto& [body, instruction] :
       {std::pair("alloc s: shared bf16[64] fill s, 0 parallel i in 128 { atomic_add(s[cast(i64, X[b, i])], "
                  "cast(bf16, 1)) } copy s -> Z",
                  "atom.shared.add.noftz.bf16"),
        std::pair(
            "parallel i in 128 { let o = atomic_add(Z[cast(i64, X[b, i])], cast(bf16, 1)) Y[b, i] = o }",
            "atom.global.add.noftz.bf16")}) {
    const std::string code = code_of(tensors, body, "sm_90");
    EXPECT_GT(count_of(code, instruction), 0) << code;
    EXPECT_EQ(count_of(code, ".cas."), 0) << code;
  }
}

}  // namespace
}  // namespace tilegen::driver
