// Matrix instructions of a program: what it holds of them, and what is refused.
#include "ir/matrix_atom.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

struct Parts {
  std::string a = "f16[16, 8] at (i, k) -> (i % 8 * 4 + k // 2) * 4 + i // 8 * 2 + k % 2";
  std::string b = "f16[8, 8] at (k, j) -> (j * 4 + k // 2) * 2 + k % 2";
  std::string c = "f32[16, 8] at (i, j) -> (i % 8 * 4 + j // 2) * 4 + i // 8 * 2 + j % 2";
  std::string text =
      "asm ptx \"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6},\"\n"
      "  \"{$7, $8, $9, $10};\"";
  std::string meaning = "";
};

Expected<Program> read(const Parts& p) {
  return parse_program(
      "tl 1 program p\natom mul(a: " + p.a + ", b: " + p.b + ", c: " + p.c + ") cycles 9\n" + p.text + "\n" +
          p.meaning + "\ntensor X: f32[32]\nkernel k grid (g: 1) {\n  parallel i in 32 { X[i] = 1 }\n}\n",
      "p.tl", Limits());
}

TEST(MatrixAtom, ProgramsHoldThemAndRoundTrip) {
  for (const std::string meaning : {"", "{ return fma(cast(f32, a), cast(f32, b), c) }"}) {
    Parts parts;
    parts.meaning = meaning;
    auto p = read(parts);
    ASSERT_TRUE(p) << p.error().to_text();
    const NativeFunction* f = find_matrix_atom(*p, "mul");
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(f->atom->m, 16);
    EXPECT_EQ(f->atom->n, 8);
    EXPECT_EQ(f->atom->k, 8);
    EXPECT_EQ(f->atom->cycles, 9);
    EXPECT_EQ(f->results.empty(), meaning.empty());
    EXPECT_EQ(find_matrix_atom(*p, "div"), nullptr);
    const std::string printed = print_program(*p);
    auto again = parse_program(printed, "q.tl", Limits());
    ASSERT_TRUE(again) << again.error().to_text() << printed;
    EXPECT_EQ(print_program(*again), printed);
    EXPECT_EQ(program_hash(*again), program_hash(*p));
  }
  Parts other;
  other.b = "f16[8, 8] at (k, j) -> (j * 4 + k % 4) * 2 + k // 4";
  EXPECT_NE(program_hash(*read(other)), program_hash(*read({})));  // a layout is part of a program
}

TEST(MatrixAtom, MeaningsRoundAsTheySay) {
  Parts parts;
  parts.meaning = "{ return cast(f32, cast(f16, c + cast(f32, a) * cast(f32, b))) }";
  auto p = read(parts);
  ASSERT_TRUE(p) << p.error().to_text();
  const ScalarValue c =
      atom_step(*find_matrix_atom(*p, "mul"), {DType::f16, 0, 1}, {DType::f16, 0, 1}, {DType::f32, 0, 2048});
  EXPECT_EQ(c.f, 2048);  // 2049 is no half
}

TEST(MatrixAtom, Refused) {
  const auto refused = [](auto change) {
    Parts parts;
    change(parts);
    auto p = read(parts);
    return p ? std::string("nothing is wrong") : p.error().to_text();
  };
  const struct {
    std::string got, words;
  } rows[] = {
      {refused([](Parts& p) { p.a = "f16[16, 8] at (i, k) -> i * 8 + k - 1"; }), "puts element [0, 0] at -1"},
      {refused([](Parts& p) { p.a = "f16[16, 8] at (i, k) -> i * 8 + k // 2"; }), "where element [0, 0] is"},
      {refused([](Parts& p) { p.a = "f16[16, 4] at (i, k) -> i * 4 + k"; }), "A is m x k, B is k x n"},
      {refused([](Parts& p) { p.b = "i64[8, 8] at (k, j) -> k * 8 + j"; }), "no product multiplies"},
      {refused([](Parts& p) { p.c = "f16[16, 8] at (i, j) -> i * 8 + j"; }), "no product sums in"},
      {refused([](Parts& p) { p.text = "asm gcn \"v_mfma_f32_16x8x8f16 $0, $1, $2, $3\""; }),
       "is not of whole registers of 4 bytes in each of 64 lanes"},
      {refused([](Parts& p) { p.text = ""; }), "has 0 texts, expected 1"},
      {refused([](Parts& p) { p.text += " asm gcn \"v_mfma_f32_16x8x8f16 $0, $1, $2, $3\""; }),
       "has 2 texts, expected 1"},
      {refused([](Parts& p) { p.text.insert(p.text.find(", {$4"), ", $4"); }),
       "expected '{' and the registers of A"},
      {refused([](Parts& p) { p.text.insert(p.text.rfind('"'), " exit;"); }), "expected the text's end"},
      {refused([](Parts& p) { p.meaning = "{ return c + cast(f32, a) }"; }), "plus the product"},
      {refused([](Parts& p) { p.meaning = "{ return cast(f32, a) * cast(f32, b) }"; }), "plus the product"},
      {refused([](Parts& p) { p.a = "f16[16, 8] at (i, k) -> i * 8 + a"; }), "expected an integer constant"},
  };
  for (const auto& row : rows)
    EXPECT_NE(row.got.find(row.words), std::string::npos) << row.words << "\n" << row.got;
}

}  // namespace
}  // namespace tilegen::ir
