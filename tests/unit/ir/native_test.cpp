// Functions with native text: what a program holds of them, what their text may be, and what is refused.
#include "ir/native.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/native_asm.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr char kBody[] =
    "tensor A: f32[64]\n"
    "tensor B: u32[64]\n"
    "kernel k grid (b: 1) {\n"
    "  parallel i in 64 {\n"
    "    A[i] = twice(A[i])\n"
    "    let q, r = parts(B[i], 7)\n"
    "    B[i] = q ^ r + parts:1(q, 3)\n"
    "  }\n"
    "}\n";
constexpr char kFunctions[] =
    "fn twice(x: f32) -> f32 asm ptx \"add.f32 $0, $1, $1;\" asm gcn \"v_add_f32 $0, $1, $1\" { return x * 2 "
    "}\n"
    "fn parts(a: u32, b: u32) -> (u32, u32) asm ptx \"div.u32 $0, $2, $3;\" \"rem.u32 $1, $2, $3;\" "
    "{ return a // b, a % b }\n";

Expected<Program> read(const std::string& functions) {
  return parse_program("tl 1 program p\n" + functions + kBody, "p.tl", Limits());
}

TEST(Native, ProgramsHoldCallsAndRoundTrip) {
  auto p = read(kFunctions);
  ASSERT_TRUE(p) << p.error().to_text();
  ASSERT_EQ(p->natives.size(), 2u);
  EXPECT_EQ(p->natives[0]->forms(), "asm ptx, asm gcn");
  EXPECT_EQ(p->natives[1]->text(NativeForm::ptx)->text, "div.u32 $0, $2, $3;\nrem.u32 $1, $2, $3;");
  const std::string printed = print_program(*p);
  EXPECT_NE(printed.find("A[i] = twice(A[i])"), std::string::npos) << printed;
  EXPECT_NE(printed.find("parts:1(parts:0(B[i], 7u32), 3u32)"), std::string::npos) << printed;
  auto again = parse_program(printed, "q.tl", Limits());
  ASSERT_TRUE(again) << again.error().to_text();
  EXPECT_EQ(print_program(*again), printed);
  EXPECT_EQ(program_hash(*again), program_hash(*p));
  auto other = read(std::string(kFunctions).replace(std::string(kFunctions).find("add.f32"), 7, "mul.f32"));
  ASSERT_TRUE(other);
  EXPECT_NE(program_hash(*other), program_hash(*p));  // text is part of a program
}

// Of literals a call is the meaning's value; other calls keep their arguments, whatever the meaning does.
TEST(Native, CallsAreFoldedAsTheirMeaning) {
  auto p = read(kFunctions);
  ASSERT_TRUE(p);
  ExprPool& e = p->exprs;
  const ExprId four = e.const_float(4, DType::f32), eight = e.const_float(8, DType::f32);
  const ExprId args[] = {four};
  EXPECT_EQ(call_native(*p, 0, args, 0), eight);
  const ExprId a = e.var(VarId(size_t{0}), DType::u32), b = e.const_int(3, DType::u32);
  const ExprId both[] = {a, b};
  const ExprId call = call_native(*p, 1, both, 1);
  EXPECT_EQ(e[call].op, ExprOp::native_call);
  EXPECT_EQ(e[e[call].a].op, ExprOp::floormod);
  const ExprPool::NativeCall parts = e.native_parts(call);
  EXPECT_EQ(parts.function, 1u);
  EXPECT_EQ(parts.result, 1u);
  EXPECT_EQ(parts.args, (std::vector<ExprId>{a, b}));
  EXPECT_TRUE(calls_native(e, e.binary(ExprOp::add, call, a)));
  EXPECT_FALSE(calls_native(e, e[call].a));
}

// As a builder may have made them: names of parameters are printed as no others'.
TEST(Native, NamesOfParametersArePrintedApart) {
  Program p;
  p.name = "p";
  auto parsed = read(kFunctions);
  ASSERT_TRUE(parsed);
  p = *parsed;
  NativeFunction f = *p.natives[1];
  f.parameters[0].name = f.parameters[1].name = "A";
  p.natives[1] = std::make_shared<const NativeFunction>(f);
  const std::string printed = print_program(p);
  EXPECT_NE(printed.find("fn parts(A_1: u32, A_2: u32) -> (u32, u32)\n"), std::string::npos) << printed;
  auto again = parse_program(printed, "q.tl", Limits());
  ASSERT_TRUE(again) << again.error().to_text();
  EXPECT_EQ(print_program(*again), printed);
}

void refused(DiagCode code, const std::string& part, const std::string& functions) {
  const auto p = read(functions);
  ASSERT_FALSE(p) << functions;
  const Diagnostic& d = p.error().diagnostics[0];
  EXPECT_EQ(d.code, code) << d.message;
  EXPECT_NE((d.message + d.hint).find(part), std::string::npos) << d.message << " / " << d.hint;
  EXPECT_FALSE(d.hint.empty());
  EXPECT_EQ(d.location.file, "p.tl");
}

TEST(Native, Refusals) {
  const std::string ptx = "asm ptx \"add.f32 $0, $1, $1;\" ", end = "{ return x }\n";
  refused(DiagCode::dtype_mismatch, "parameter 'x' of 'f' is i8", "fn f(x: i8) -> i8 " + ptx + end);
  refused(DiagCode::dtype_mismatch, "result 1 of 'f' is bool",
          "fn f(x: f32) -> bool " + ptx + "{ return x < 0 }\n");
  refused(DiagCode::rank_mismatch, "no parameters", "fn f() -> f32 " + ptx + "{ return 1 }\n");
  refused(DiagCode::out_of_scope, "uses 'n'",
          "scalar n: f32\nfn f(x: f32) -> f32 " + ptx + "{ return x + n }\n");
  refused(DiagCode::scope_not_allowed, "reads memory",
          "tensor T: f32[4]\nfn f(x: f32) -> f32 " + ptx + "{ return x + T[0] }\n");
  refused(DiagCode::duplicate_name, "two texts asm ptx", "fn f(x: f32) -> f32 " + ptx + ptx + end);
  refused(DiagCode::bad_native_text, "asm ptx of 'f': the instruction 'bar.sync' is not taken",
          "fn f(x: f32) -> f32 asm ptx \"bar.sync 0;\" " + end);
  refused(DiagCode::bad_native_text, "defines no function @f", "fn f(x: f32) -> f32 llvm \"ret\" " + end);
  refused(DiagCode::syntax_error, "one of ptx, gcn", "fn f(x: f32) -> f32 asm x86 \"\" " + end);
  refused(DiagCode::syntax_error, "the native text", "fn f(x: f32) -> f32 asm ptx { return x }\n");
  refused(DiagCode::rank_mismatch, "name them all", std::string(kFunctions) + "let c = parts(3, 4)\n");
  refused(DiagCode::rank_mismatch, "no result 2", std::string(kFunctions) + "let c = parts:2(3, 4)\n");
}

std::string wrong(NativeForm form, const std::string& text, size_t results = 1, size_t parameters = 2) {
  const NativeAsmRead read = read_native_asm(form, text, results, parameters);
  return read.error ? read.error->message : "";
}

TEST(NativeAsm, PtxComputesInRegistersOfItsOwn) {
  const auto ptx = [](const std::string& text) { return wrong(NativeForm::ptx, text); };
  EXPECT_EQ(ptx("add.rn.f32 $0, $1, $2;"), "");
  EXPECT_EQ(ptx("{ .reg .b32 t, u; .reg .pred p; and.b32 t, $1, 0xff; setp.lt.u32 p|p, t, 3;\n"
                "mov.b64 {t, u}, $2; @!p add.u32 t, t, -1; selp.b32 $0, t, u, p; }"),
            "");
  EXPECT_EQ(ptx("fma.rn.f32 $0, $1, 0f3f800000, $2;"), "");
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "never writes its result $0"},
      {"add.f32 $0, $1, $2", "expected ';'"},
      {"add.f32 $0, $1, $3;", "no operand $3"},
      {"add.f32 $0, $1, $99999999999999999999;", "no operand"},
      {"add.f32 $1, $0, $2;", "writes its parameter $1"},
      {"{ .reg .b32 t; mov.b32 t, $1; }", "never writes its result $0"},
      {"mov.u32 $0, %tid;", "'%' is no operand"},
      {"mov.b32 $0, %r1;", "'%' is no operand"},
      {"mov.b32 $0, shared_memory;", "'shared_memory' is no operand"},
      {"ld.global.f32 $0, [$1];", "'ld.global.f32' is not taken"},
      {"mov.b32 $0, [$1];", "'[' is no operand"},
      {"st.shared.f32 [$1], $0;", "is not taken"},
      {"L1: add.f32 $0, $1, $2; bra L1;", "'L1' is not taken"},
      {"add.f32 $0, $1, $2; bra L1;", "'bra' is not taken"},
      {"ret;", "'ret' is not taken"},
      {"exit;", "'exit' is not taken"},
      {"add.f32 $0, $1, $2; } .visible .entry evil() {", "'}' closes nothing"},
      {".entry evil() { ret; }", "'.entry' is not taken"},
      {".reg .b32 t; mov.b32 $0, $1;", "outside of braces"},
      {"{ .reg b32 t; }", "registers' type"},
      {"{ .reg .b32 t<4>; }", "expected ';'"},
      {"{ .shared .b32 t; mov.b32 $0, $1; }", "'.shared' is not taken"},
      {"{ add.f32 $0, $1, $2;", "'{' is not closed"},
      {"{ .reg .b32 t; } mov.b32 $0, t;", "'t' is no operand"},
      {"shfl.sync.idx.b32 $0, $1, 0, 31, 0xffffffff;", "is not taken"},
      {"call f, ($1);", "is not taken"},
      {"@q mov.b32 $0, $1;", "'q' is no operand"},
      {"add.f32 $0, $1, $2; // \n", "expected an instruction"},
      {std::string(40, '{') + "add.f32 $0, $1, $2;" + std::string(40, '}'), "deeper"},
  };
  for (const auto& [text, part] : table) {
    const std::string message = ptx(text);
    EXPECT_NE(message.find(part), std::string::npos) << text << ": " << message;
  }
}

TEST(NativeAsm, GcnComputesInVectorRegisters) {
  const auto gcn = [](const std::string& text) { return wrong(NativeForm::gcn, text); };
  EXPECT_EQ(gcn("v_fma_f32 $0, -$1, |$2|, 1.0 clamp"), "");
  EXPECT_EQ(gcn("v_pk_fma_f16 $0, $1, $2, $2 op_sel:[0,1,0] op_sel_hi:[1,0,1]"), "");
  EXPECT_EQ(gcn("v_cmp_lt_f32 vcc, $1, $2\nv_cndmask_b32 $0, $1, $2, vcc;"), "");
  const NativeAsm read =
      read_native_asm(NativeForm::gcn, "v_cmp_lt_f32 vcc, $1, $2; v_cndmask_b32 $0, abs($1), $2, vcc", 1, 2)
          .code;
  EXPECT_EQ(read.text, "v_cmp_lt_f32 vcc, $1, $2\nv_cndmask_b32 $0, abs($1), $2, vcc");
  EXPECT_EQ(read.instructions, 2);
  EXPECT_TRUE(read.carry);
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "never writes its result $0"},
      {"v_mov_b32 $0, v1", "'v1' is no operand"},
      {"v_mov_b32 v1, $1", "'v1' is no operand"},
      {"v_mov_b32 $1, $2", "writes its parameter $1"},
      {"v_mov_b32 $0, s[0:1]", "'s' is no operand"},
      {"s_endpgm", "'s_endpgm' is not taken"},
      {"s_branch 4", "is not taken"},
      {"global_load_dword $0, $1, off", "is not taken"},
      {"ds_read_b32 $0, $1", "is not taken"},
      {"v_readfirstlane_b32 $0, $1", "is not taken"},
      {"v_cmpx_lt_f32 vcc, $1, $2", "is not taken"},
      {"v_mfma_f32_4x4x1f32 $0, $1, $2, $1", "is not taken"},
      {"v_swap_b32 $0, $1", "is not taken"},
      {"v_mov_b32_dpp $0, $1 quad_perm:[0,1,2,3]", "is not taken"},
      {"v_mov_b32 $0, $1 row_shl:1", "found 'row_shl'"},
      {"label: v_mov_b32 $0, $1", "is not taken"},
      {".globl evil", "is not taken"},
      {"v_mov_b32 $0, $1 $2", "found '$2'"},
      {"v_mov_b32 $0, |$1", "expected '|'"},
      {"v_cmp_lt_f32 vcc, $1, $2", "never writes its result $0"},
      {"v_mov_b32 $0, exec", "'exec' is no operand"},
  };
  for (const auto& [text, part] : table) {
    const std::string message = gcn(text);
    EXPECT_NE(message.find(part), std::string::npos) << text << ": " << message;
  }
}

}  // namespace
}  // namespace tilegen::ir
