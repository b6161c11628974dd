// Products made of a program's own matrix instructions: of PTX on the simulators of what the text says, of
// GCN as machine code too, and on all others as the product that they are.
#include "gemm_program.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

struct AtomRow {
  std::string a, b, c;  // types
  int m, n, k;
  std::string of_a, of_b, of_c;  // layouts
  std::string form, text;
  std::string attrs = "";
  std::string targets = "";  // of GCN
};

const std::vector<AtomRow>& rows() {
  const std::string c16 = "(i, j) -> (i % 8 * 4 + j // 2) * 4 + i // 8 * 2 + j % 2",
                    c8 = "(i, j) -> (i * 4 + j // 2) * 2 + j % 2",
                    registers16 = "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
                    registers8 = "{$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};",
                    tuples = " $0, $1, $2, $3";
  static const std::vector<AtomRow> all = {
      {"f16", "f16", "f32", 16, 8, 16,
       "(i, k) -> (i % 8 * 4 + k % 8 // 2) * 8 + k // 8 * 4 + i // 8 * 2 + k % 2",
       "(k, j) -> (j * 4 + k % 8 // 2) * 4 + k // 8 * 2 + k % 2", c16, "ptx",
       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + registers16},
      {"bf16", "bf16", "f32", 16, 8, 8, "(i, k) -> (i % 8 * 4 + k // 2) * 4 + i // 8 * 2 + k % 2",
       "(k, j) -> (j * 4 + k // 2) * 2 + k % 2", c16, "ptx",
       "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 " + registers8},
      {"i8", "u8", "i32", 8, 8, 16, "(i, k) -> (i * 4 + k // 4) * 4 + k % 4",
       "(k, j) -> (j * 4 + k // 4) * 4 + k % 4", c8, "ptx",
       "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {$0, $1}, {$2}, {$3}, {$4, $5};"},
      {"f64", "f64", "f64", 8, 8, 4, "(i, k) -> i * 4 + k", "(k, j) -> j * 4 + k", c8, "ptx",
       "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$0, $1}, {$2}, {$3}, {$4, $5};"},
      {"f32", "f32", "f32", 16, 8, 8, "(i, k) -> (i % 8 * 4 + k % 4) * 4 + k // 4 * 2 + i // 8",
       "(k, j) -> (j * 4 + k % 4) * 2 + k // 4", c16, "ptx",
       "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
       "{$10, $11, $12, $13};",
       "tf32"},
      {"f16", "f16", "f32", 32, 32, 8, "(i, k) -> (i + k // 4 * 32) * 4 + k % 4",
       "(k, j) -> (j + k // 4 * 32) * 4 + k % 4", "(i, j) -> (j + i // 4 % 2 * 32) * 16 + i // 8 * 4 + i % 4",
       "gcn", "v_mfma_f32_32x32x8f16" + tuples},
      {"f32", "f32", "f32", 16, 16, 4, "(i, k) -> i + k * 16", "(k, j) -> j + k * 16",
       "(i, j) -> (j + i // 4 * 16) * 4 + i % 4", "gcn", "v_mfma_f32_16x16x4f32" + tuples},
      {"f64", "f64", "f64", 16, 16, 4, "(i, k) -> i + k * 16", "(k, j) -> j + k * 16",
       "(i, j) -> (j + i % 4 * 16) * 4 + i // 4", "gcn", "v_mfma_f64_16x16x4f64" + tuples},
  };
  return all;
}

std::string atom_text(const AtomRow& r, const std::string& meaning = "") {
  const auto operand = [](const std::string& name, const std::string& type, int rows, int columns,
                          const std::string& layout) {
    return name + ": " + type + "[" + std::to_string(rows) + ", " + std::to_string(columns) + "] at " +
           layout;
  };
  return "atom mul(" + operand("x", r.a, r.m, r.k, r.of_a) + ", " + operand("y", r.b, r.k, r.n, r.of_b) +
         ", " + operand("z", r.c, r.m, r.n, r.of_c) + ")\n  asm " + r.form + " \"" + r.text + "\"\n" +
         meaning;
}

std::string program(const AtomRow& r, const std::string& meaning = "", const std::string& scope = "shared",
                    bool transposed = false) {
  GemmProgram p;
  p.a = r.a, p.b = r.b, p.sum = p.out = r.c;
  p.a_scope = scope;
  p.ta = p.tb = transposed;
  p.attrs = (r.attrs.empty() ? "" : r.attrs + ", ") + std::string("atom=\"mul\"");
  p.m = 64, p.n = 64, p.k = 32, p.threads = 128;
  std::string text = gemm_text(p);
  return text.insert(text.find("\nkernel ") + 1, atom_text(r, meaning));
}

std::vector<Launch> launches() {
  std::vector<Launch> all = seeds({1, 2});
  all[0].dims = {{"m", 64}, {"n", 64}, {"k", 64}};
  all[1].dims = {{"m", 33}, {"n", 70}, {"k", 50}};
  for (Launch& l : all) l.magnitude = 8;
  return all;
}

void expect_agree_on(const std::string& text, const std::vector<std::string>& targets) {
  Subject subject(text, targets);
  ASSERT_EQ(subject.invalid(), "") << text;
  for (const Launch& l : launches()) expect_agree(subject, text, l);
}

TEST(MatrixAtoms, ProductsAreMadeOfThem) {
  for (const AtomRow& r : rows())
    for (const bool transposed : {false, true}) {
      const std::string text = program(r, "", "shared", transposed);
      if (r.form == "ptx")
        expect_agree_on(text, {"host", "sim:sm_80", "sim:sm_90a", "sim:gfx942"});
      else if (!take_case)
        expect_agree_on(text, {"host", "sim:sm_80", "sim:gfx942", "gfx942", "gfx90a"});
    }
}

TEST(MatrixAtoms, OperandsInFragments) {
  for (const AtomRow& r : rows())
    expect_agree_on(program(r, "", "fragment"), {r.form == "ptx" ? "sim:sm_80" : "sim:gfx942"});
}

// What it says it computes is what the simulator computes: here with products rounded to few bits.
TEST(MatrixAtoms, MeaningsRunOnTheSimulator) {
  const AtomRow& r = rows()[0];
  expect_agree_on(program(r, "{ return z + cast(f32, x) * cast(f32, y) }"), {"host", "sim:sm_80"});
  if (take_case) return;
  const std::string rounded = program(r, "{ return z + cast(f32, cast(e5m2, x)) * cast(f32, y) }");
  const auto kind = [&](const std::string& target) {
    Subject subject(rounded, {target});
    Launch l = launches()[0];
    l.magnitude = 31;  // which e5m2 rounds
    return subject.compare(l).kind;
  };
  EXPECT_EQ(kind("host"), Outcome::Kind::agree);
  EXPECT_EQ(kind("sim:gfx942"), Outcome::Kind::agree);
  EXPECT_EQ(kind("sim:sm_80"), Outcome::Kind::differ);
}

// A layout that the instruction does not have gives other results of machine code, not of the simulator.
TEST(MatrixAtoms, TextIsWhatRuns) {
  if (take_case) return;
  AtomRow r = rows()[6];
  r.of_b = "(k, j) -> j + (3 - k) * 16";
  const auto kind = [&](const std::string& target) {
    Subject subject(program(r), {target});
    return subject.compare(launches()[0]).kind;
  };
  EXPECT_NE(kind("gfx942"), Outcome::Kind::agree);
}

}  // namespace
}  // namespace tilegen::differential
