// Functions with native text: the meaning on interpreter, host and simulators, instructions of AMD targets on
// the interpreter of them, LLVM IR on each of these but the simulators.
#include "codegen/native_text.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

constexpr char kProgram[] = R"(tl 1 program p
dim m
tensor X: $t[m, 40] readonly
tensor Y: $t[m, 40] readonly
tensor Z: $t[m, 40]
$fn
kernel k grid (g: ceildiv(m, 12)) {
  alloc x: $scope $t[12, 40]
  copy X[g * 12 :+ 12, 0 :+ 40] -> x
  parallel i, j in 12, 40 {
    let u = f(x[i, j], Y[g * 12 + i, j])
    x[i, j] = f(u, x[i, j])
  }
  copy x -> Z[g * 12 :+ 12, 0 :+ 40]
}
)";

struct Row {
  DType type;
  std::string meaning, ptx, gcn, llvm;  // llvm: of %x and %y into %r
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {DType::f32, "fma(x, y, x)", "fma.rn.f32 $0, $1, $2, $1;", "v_fma_f32 $0, $1, $2, $1",
       "%r = call float @llvm.fma.f32(float %x, float %y, float %x)"},
      {DType::f64, "fma(x, y, x)", "fma.rn.f64 $0, $1, $2, $1;", "v_fma_f64 $0, $1, $2, $1",
       "%r = call double @llvm.fma.f64(double %x, double %y, double %x)"},
      {DType::f16, "x + y", "add.f16 $0, $1, $2;", "v_add_f16 $0, $1, $2", "%r = fadd half %x, %y"},
      {DType::bf16, "select(x < y, x, y)", "", "",
       "%c = fcmp olt bfloat %x, %y\n%r = select i1 %c, bfloat %x, bfloat %y"},
      {DType::i16, "x + y", "add.s16 $0, $1, $2;", "v_add_u16 $0, $1, $2", "%r = add i16 %x, %y"},
      {DType::u16, "x ^ y", "xor.b16 $0, $1, $2;", "v_xor_b32 $0, $1, $2", "%r = xor i16 %x, %y"},
      {DType::i32, "(x & y) | x", "lop3.b32 $0, $1, $2, $1, 0xea;", "v_and_or_b32 $0, $1, $2, $1",
       "%a = and i32 %x, %y\n%r = or i32 %a, %x"},
      {DType::u32, "(x >> 4) & 255", "{ .reg .b32 t; shr.u32 t, $1, 4; and.b32 $0, t, 255; }",
       "v_lshrrev_b32 $0, 4, $1; v_and_b32 $0, 0xff, $0", "%s = lshr i32 %x, 4\n%r = and i32 %s, 255"},
      {DType::i64, "x ^ y", "xor.b64 $0, $1, $2;", "", "%r = xor i64 %x, %y"},
      {DType::u64, "x << 3", "shl.b64 $0, $1, 3;", "v_lshlrev_b64 $0, 3, $1", "%r = shl i64 %x, 3"},
  };
  return all;
}

std::string llvm_type(DType t) {
  if (t == DType::f16) return "half";
  if (t == DType::bf16) return "bfloat";
  if (ir::is_float(t)) return t == DType::f32 ? "float" : "double";
  return "i" + std::to_string(ir::dtype_bits(t));
}

std::string quoted_lines(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '\n' ? std::string("\"\n    \"") : std::string(1, c);
  return out + "\"";
}

std::string llvm_text(const Row& row) {
  const std::string t = llvm_type(row.type);
  std::string text =
      "define " + t + " @f(" + t + " %x, " + t + " %y) {\n" + row.llvm + "\nret " + t + " %r\n}";
  if (row.llvm.find("@llvm.") != std::string::npos)
    text += "\ndeclare " + t + " @llvm.fma." + (row.type == DType::f32 ? "f32" : "f64") + "(" + t + ", " + t +
            ", " + t + ")";
  return text;
}

std::vector<Launch> launches() {
  std::vector<Launch> all = seeds({1, 2});
  all[0].dims = {{"m", 12}};
  all[1].dims = {{"m", 29}};
  for (Launch& l : all) l.magnitude = 8;
  return all;
}

std::string program(const Row& row, const std::string& texts, const std::string& scope) {
  const std::string t = ir::dtype_name(row.type);
  return replaced(kProgram, {{"fn", "fn f(x: " + t + ", y: " + t + ") -> " + t + " " + texts + "{ return " +
                                        row.meaning + " }"},
                             {"t", t},
                             {"scope", scope}});
}

void expect_agree_on(const std::string& text, const std::vector<std::string>& targets) {
  Subject subject(text, targets);
  ASSERT_EQ(subject.invalid(), "") << text;
  for (const Launch& l : launches()) expect_agree(subject, text, l);
}

TEST(Native, Instructions) {
  for (const Row& row : rows()) {
    std::string texts;
    if (!row.ptx.empty()) texts += "asm ptx " + quoted_lines(row.ptx) + " ";
    if (!row.gcn.empty()) texts += "asm gcn " + quoted_lines(row.gcn) + " ";
    for (const std::string scope : {"fragment", "shared"}) {
      const std::string text = program(row, texts, scope);
      expect_agree(text, launches());
      if (!row.gcn.empty() && !take_case) expect_agree_on(text, {"gfx942", "gfx90a"});
    }
  }
}

TEST(Native, LlvmFunctions) {
  for (const Row& row : rows()) {
    const std::string text = program(row, "llvm " + quoted_lines(llvm_text(row)) + " ", "fragment");
    if (take_case) continue;  // its native text runs on hosts
    expect_agree_on(text, {"host", "x86-64-v3", "sim:sm_80", "sim:sm_90a", "gfx942"});
  }
}

// What disagrees with its meaning is told: the texts are what runs.
TEST(Native, TextIsWhatRuns) {
  const Row wrong{DType::i32, "x + y", "", "v_sub_u32 $0, $1, $2", "%r = sub i32 %x, %y"};
  const auto kind = [&](const std::string& texts, const std::string& target) {
    Subject subject(program(wrong, texts, "fragment"), {target});
    return subject.compare(launches()[0]).kind;
  };
  EXPECT_EQ(kind("asm gcn " + quoted_lines(wrong.gcn) + " ", "gfx942"), Outcome::Kind::differ);
  EXPECT_EQ(kind("llvm " + quoted_lines(llvm_text(wrong)) + " ", "host"), Outcome::Kind::differ);
  EXPECT_EQ(kind("llvm host " + quoted_lines(llvm_text(wrong)) + " ", "gfx942"), Outcome::Kind::agree);
  EXPECT_EQ(kind("asm gcn " + quoted_lines(wrong.gcn) + " ", "sim:gfx942"), Outcome::Kind::agree);
}

}  // namespace
}  // namespace tilegen::differential
