// Sparse products: which instructions do them, which are expanded, and why.
#include "schedule/form/sparse_products.h"
#include "plan_support.h"
#include "schedule/form/decode_sparse.h"

namespace tilegen::schedule {
namespace {

struct Sparse {
  int64_t m = 64, n = 64, k = 64;
  std::string a = "f16", b = "f16", c = "f32", word = "u16", words = "shared", values = "shared",
              annotation = "";
};

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [from, to] : words)
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

std::shared_ptr<const ir::Program> product(const Sparse& s) {
  const auto text = [](int64_t v) { return std::to_string(v); };
  const int64_t bits = s.word == "u8" ? 8 : s.word == "u16" ? 16 : 32;
  return program_from(replaced(R"(tl 1 program p
tensor V: TA[MM, HALF] readonly
tensor P: TW[MM, COUNT] readonly
tensor B: TB[KK, NN] readonly
tensor C: TC[MM, NN]
kernel k grid (b: 4) threads 128 {
  alloc v: AT TA[MM, HALF]
  alloc p: PT TW[MM, COUNT]
  alloc x: shared TB[KK, NN]
  alloc c: fragment TC[MM, NN]
  copy V -> v
  copy P -> p
  copy B -> x
  gemm_sparse v, x, p -> c {clearANNOTATION}
  copy c -> C
}
)",
                               {{"ANNOTATION", s.annotation},
                                {"MM", text(s.m)},
                                {"NN", text(s.n)},
                                {"KK", text(s.k)},
                                {"HALF", text(s.k / 2)},
                                {"COUNT", text(s.k / bits)},
                                {"TA", s.a},
                                {"TB", s.b},
                                {"TC", s.c},
                                {"TW", s.word},
                                {"AT", s.values},
                                {"PT", s.words}}));
}

// The product's atom, or why its operand is expanded.
std::string done_by(const Sparse& s, const std::string& target) {
  const auto p = product(s);
  if (!p) return "no program";
  if (const auto notes = decoding_notes(*p, target_named(target)); !notes.empty()) {
    EXPECT_EQ(notes.front().path, "k/gemm_sparse#0");
    return notes.front().text;
  }
  const auto schedule = plan_for(*p, target);
  if (!schedule) return schedule.error().to_text();
  return plan::find_op(schedule->kernels[0], "k/gemm_sparse#0")->atom;
}

TEST(SparseProducts, AreDoneByInstructionsOfTheirTypes) {
  for (const char* words : {"shared", "fragment"})
    for (const char* values : {"shared", "fragment"})
      for (const char* word : {"u8", "u16", "u32"}) {
        EXPECT_EQ(done_by({.word = word, .words = words, .values = values}, "sm_80"),
                  "mma.sp.m16n8k32.f32.f16");
        EXPECT_EQ(
            done_by({.a = "bf16", .b = "bf16", .word = word, .words = words, .values = values}, "sm_89"),
            "mma.sp.m16n8k32.f32.bf16");
        EXPECT_EQ(done_by({.a = "u8", .b = "i8", .c = "i32", .word = word, .words = words}, "sm_90"),
                  "mma.sp.m16n8k64.s32.u8.s8");
      }
  EXPECT_EQ(done_by({.c = "f16"}, "sm_80"), "mma.sp.m16n8k32.f32.f16") << "summed in f32, rounded once";
  EXPECT_EQ(done_by({.a = "e4m3", .b = "e5m2"}, "sm_89"), "mma.sp.m16n8k64.f32.e4m3.e5m2");
  EXPECT_EQ(done_by({.m = 128, .k = 128}, "sm_90a"), "wgmma.sp.m64n64k32.f32.f16.f16");
  EXPECT_EQ(done_by({.a = "f16"}, "gfx942"), "smfmac.32x32x16.f32.f16");
  EXPECT_EQ(done_by({.a = "i8", .b = "i8", .c = "i32"}, "gfx942"), "smfmac.32x32x32.s32.s8");
  EXPECT_EQ(done_by({.a = "e4m3fnuz", .b = "e5m2fnuz"}, "gfx942"), "smfmac.32x32x32.f32.e4m3fnuz.e5m2fnuz");
  EXPECT_EQ(done_by({.m = 24, .n = 20}, "sm_80"), "mma.sp.m16n8k32.f32.f16") << "overhangs";
}

TEST(SparseProducts, AreExpandedWhereNoInstructionDoesThem) {
  const std::string begin = "its operand is expanded beside it: ";
  EXPECT_EQ(done_by({.a = "f32", .b = "f32"}, "sm_80"),
            begin + "sm_80 multiplies whole operands of f32 and f32");
  EXPECT_EQ(done_by({.a = "e4m3", .b = "e4m3"}, "sm_80"),
            begin + "sm_80 multiplies whole operands of e4m3 and e4m3");
  EXPECT_EQ(done_by({.k = 48}, "sm_80"),
            begin + "k is 48, no multiple of the mma.sp.m16n8k32.f32.f16 instruction's 32");
  EXPECT_EQ(done_by({}, "gfx90a"), begin + "gfx90a multiplies whole operands");
  EXPECT_EQ(done_by({.a = "u8", .b = "i8", .c = "i32"}, "gfx942"),
            begin + "gfx942 multiplies whole operands of u8 and i8");
  EXPECT_EQ(done_by({}, "x86-64-v4"), begin + "x86-64-v4 multiplies whole operands");
}

TEST(SparseProducts, OfWordsInRegistersReadThemInMemory) {
  const auto p = product({.words = "fragment"});
  const ir::Program form = planned_form(*p, "sm_80");
  const std::vector<ir::StmtId> products = sparse_products(form);
  ASSERT_EQ(products.size(), 1u);
  const ir::Buffer& words = form.buffer(form.as<ir::TileOp>(products[0])->operands[3].buffer);
  EXPECT_EQ(words.scope, ir::MemScope::shared);
  EXPECT_EQ(words.name, "words");
}

plan::Schedule naming(const std::string& atom) {
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "k";
  given.kernels[0].ops.resize(1);
  given.kernels[0].ops[0].op = "k/gemm_sparse#0";
  given.kernels[0].ops[0].atom = atom;
  return given;
}

// The atom that is planned where the schedule names one, or why it is refused.
std::string named(const std::string& atom, const Sparse& s, const std::string& target) {
  const plan::Schedule given = naming(atom);
  const auto p = product(s);
  const auto schedule = p ? plan_for(*p, target, &given) : Expected<plan::Schedule>(Error());
  if (!schedule) return schedule.error().to_text();
  return plan::find_op(schedule->kernels[0], "k/gemm_sparse#0")->atom;
}

TEST(SparseProducts, TakeTheInstructionThatASchedulesNames) {
  EXPECT_EQ(named("mma.sp.m16n8k32.f32.f16", {}, "sm_80"), "mma.sp.m16n8k32.f32.f16");
  EXPECT_EQ(named("mma.sp.m16n8k32.f32.f16", {.m = 128, .k = 128}, "sm_90a"), "mma.sp.m16n8k32.f32.f16");
  EXPECT_EQ(named("wgmma.sp.m64n32k32.f32.f16.f16", {.m = 128, .k = 128}, "sm_90a"),
            "wgmma.sp.m64n32k32.f32.f16.f16");
  EXPECT_EQ(named("smfmac.16x16x32.f32.f16", {}, "gfx942"), "smfmac.16x16x32.f32.f16");
  EXPECT_EQ(named("mma.m16n8k16.f32.f16", {}, "sm_80"), "mma.m16n8k16.f32.f16") << "of the expanded operand";
  const plan::Schedule whole = naming("mma.m16n8k16.f32.f16");
  const auto notes = decoding_notes(*product({}), target_named("sm_80"), &whole);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].text.find("'mma.m16n8k16.f32.f16' is asked for and multiplies whole operands"),
            std::string::npos)
      << notes[0].text;
}

TEST(SparseProducts, TakeTheInstructionThatAnAnnotationNames) {
  for (const char* atom : {"mma.sp.m16n8k32.f32.f16", "mma.m16n8k16.f32.f16",
                           "wgmma.sp.m64n16k32.f32.f16.f16", "wgmma.m64n64k16.f32.f16.f16"}) {
    const Sparse s = {.m = 128, .k = 128, .annotation = std::string(", atom = \"") + atom + "\""};
    const auto schedule = plan_for(*product(s), "sm_90a");
    ASSERT_TRUE(schedule) << schedule.error().to_text();
    EXPECT_EQ(plan::find_op(schedule->kernels[0], "k/gemm_sparse#0")->atom, atom);
    // What was planned, given for the program without it, is planned again.
    const auto again = plan_for(*product({.m = 128, .k = 128}), "sm_90a", &*schedule);
    ASSERT_TRUE(again) << again.error().to_text();
    EXPECT_EQ(plan::find_op(again->kernels[0], "k/gemm_sparse#0")->atom, atom);
  }
}

TEST(SparseProducts, AreRefusedWhereTheNamedInstructionCannot) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(named("mma.sp.m16n8k32.f32.f16", {.k = 48}, "sm_80"),
         "cannot do a 64x64x48 sparse gemm of f16 and f16 into f32 with 4 warps: k is no multiple of the "
         "instruction's 32");
  expect(named("mma.sp.m16n8k32.f32.bf16", {}, "sm_80"), "it multiplies bf16 by bf16 into f32");
  expect(named("mma.sp.m16n8k64.f32.e4m3.e4m3", {}, "sm_80"), "'mma.sp.m16n8k64.f32.e4m3.e4m3'");
  expect(named("wgmma.sp.m64n32k32.f32.f16.f16", {.m = 48, .k = 128}, "sm_90a"),
         "48 rows are no multiple of 64");
}

}  // namespace
}  // namespace tilegen::schedule
