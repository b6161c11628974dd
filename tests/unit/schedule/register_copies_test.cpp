// Tiles that come through registers on targets without asynchronous copies.
#include "schedule/pipeline/register_copies.h"

#include "layout/bank_model.h"
#include "plan_support.h"

namespace tilegen::schedule {
namespace {

using plan::Engine;

struct Parts {
  int tile = 128, k = 32;
  std::string type = "f16";
  std::string stages = "";
  std::string more;  // in the loop, before the product
};

std::shared_ptr<const ir::Program> gemm(const Parts& t) {
  const std::string n = std::to_string(t.tile), k = std::to_string(t.k);
  return program_from(
      "tl 1 program p\ndim m divisible 64\ndim n divisible 64\ndim k divisible 64\n"
      "tensor A: " +
      t.type + "[m, k] readonly\ntensor B: " + t.type +
      "[k, n] readonly\ntensor C: f32[m, n]\nkernel g grid (by: ceildiv(m, " + n + "), bx: ceildiv(n, " + n +
      ")) threads 256 {\n alloc As: shared f16[" + n + ", " + k + "]\n alloc Bs: shared f16[" + k + ", " + n +
      "]\n alloc acc: fragment f32[" + n + ", " + n +
      "]\n fill acc, 0.0f32\n pipelined ko in 0 .. ceildiv(k, " + k + ")" + t.stages + " {\n copy A[by * " +
      n + " :+ " + n + ", ko * " + k + " :+ " + k + "] -> As\n copy B[ko * " + k + " :+ " + k + ", bx * " +
      n + " :+ " + n + "] -> Bs\n" + t.more + " gemm As, Bs -> acc\n }\n copy acc -> C[by * " + n + " :+ " +
      n + ", bx * " + n + " :+ " + n + "]\n}\n");
}

plan::KernelSchedule plan_of(const Parts& t, const char* target = "gfx942",
                             const plan::Schedule* given = nullptr) {
  auto s = plan_for(*gemm(t), target, given);
  EXPECT_TRUE(s) << s.error().to_text();
  return s ? s->kernels[0] : plan::KernelSchedule();
}

std::string note_of(const plan::KernelSchedule& k, const std::string& path) {
  for (const plan::Note& n : k.notes)
    if (n.path == path) return n.text;
  return "";
}

bool through_registers(const plan::KernelSchedule& k) {
  return plan::find_op(k, "g/ko/copy#0")->engine == Engine::register_copy;
}

// Loads two iterations ahead, one of which lies in the other slot.
TEST(RegisterCopies, TilesOfALoopRunAhead) {
  for (const char* target : {"gfx942", "gfx90a"}) {
    const plan::KernelSchedule k = plan_of({}, target);
    EXPECT_TRUE(through_registers(k)) << target;
    EXPECT_EQ(plan::find_op(k, "g/ko/copy#1")->engine, Engine::register_copy);
    ASSERT_EQ(k.loops.size(), 1u);
    EXPECT_EQ(k.loops[0].num_stages, 3);
    EXPECT_EQ(plan::find_value(k, "g:As")->slots, 2);
  }
  EXPECT_FALSE(through_registers(plan_of({}, "sm_80"))) << "there are asynchronous copies";
}

TEST(RegisterCopies, OfStagesThatAreAskedFor) {
  const plan::KernelSchedule two = plan_of({.stages = " stages 2"});
  EXPECT_TRUE(through_registers(two));
  EXPECT_EQ(plan::find_value(two, "g:As")->slots, 1) << "the newest iteration is in registers";
  const plan::KernelSchedule one = plan_of({.stages = " stages 1"});
  EXPECT_FALSE(through_registers(one));
  EXPECT_EQ(plan::find_op(one, "g/ko/copy#0")->engine, Engine::vector_copy);
}

// B lies along n in memory and is read along k: blocks of 4 by 4 elements, four k together in the tile.
TEST(RegisterCopies, TilesOfTheOtherOrderAreTransposed) {
  const plan::KernelSchedule k = plan_of({});
  const plan::OpPlan &a = *plan::find_op(k, "g/ko/copy#0"), &b = *plan::find_op(k, "g/ko/copy#1");
  EXPECT_EQ(a.vector, 8) << "16 bytes, stored in the two pieces that its tile keeps together";
  EXPECT_EQ(plan::find_value(k, "g:As")->memory->contiguous_run(1), 4);
  EXPECT_TRUE(b.transposing.value_or(false));
  EXPECT_EQ(b.vector, 4);
  EXPECT_EQ(plan::find_value(k, "g:Bs")->memory->contiguous_run(0), 4);
  EXPECT_EQ(plan::find_value(k, "g:Bs")->memory->contiguous_run(1), 1);
  // What others read or write as it is stays as it is.
  for (const char* more : {" parallel i, j in 32, 128 {\n Bs[i, j] = Bs[i, j] + 1.0f16\n }\n"}) {
    const plan::KernelSchedule read = plan_of({.more = more});
    EXPECT_FALSE(plan::find_op(read, "g/ko/copy#1")->transposing.value_or(false));
  }
  EXPECT_FALSE(plan::find_op(plan_of({}, "sm_80"), "g/ko/copy#1")->transposing.value_or(false));
  plan::Schedule given;
  given.kernels = {{.kernel = "g"}};
  given.kernels[0].ops = {{.op = "g/ko/copy#1", .transposing = false}};
  EXPECT_FALSE(plan::find_op(plan_of({}, "gfx942", &given), "g/ko/copy#1")->transposing.value_or(false));
}

// What the lanes of a wave read at once, 8 bytes each, lies in different banks.
TEST(RegisterCopies, OperandsOfWavesHaveNoBankConflicts) {
  for (int k : {32, 64}) {
    const plan::KernelSchedule s = plan_of({.k = k});
    for (const char* value : {"g:As", "g:Bs"}) {
      const layout::Layout& lies = *plan::find_value(s, value)->memory;
      const bool rows_first = value[2] == 'A';
      std::vector<int64_t> bytes;
      for (int64_t lane = 0; lane < 64; ++lane) {  // of mfma.32x32x8: a row, and four of k
        const int64_t row = lane % 32, first = lane / 32 * 4;
        const std::vector<int64_t> at = rows_first ? std::vector{row, first} : std::vector{first, row};
        bytes.push_back(2 * lies.offset(at));
      }
      EXPECT_EQ(layout::bank_conflicts(bytes, 8, target_named("gfx942").banks), 0) << value << " " << k;
    }
  }
}

// Operands are loaded further ahead where a step's products are done before a load is there.
TEST(RegisterCopies, OperandsAreLoadedStepsAhead) {
  const int64_t planned = plan::find_op(plan_of({}), "g/ko/gemm#0")->steps_ahead;
  EXPECT_GE(planned, 1);
  EXPECT_LE(planned, 3);
  EXPECT_EQ(plan::find_op(plan_of({}, "sm_80"), "g/ko/gemm#0")->steps_ahead, 0) << "one, as ever";
  plan::Schedule given;
  given.kernels = {{.kernel = "g"}};
  given.kernels[0].ops = {{.op = "g/ko/gemm#0", .steps_ahead = 2}};
  for (const char* target : {"gfx942", "sm_80"})
    EXPECT_EQ(plan::find_op(plan_of({}, target, &given), "g/ko/gemm#0")->steps_ahead, 2) << target;
}

// The registers are of the source's type: the cast waits for the load, and the load for nobody.
TEST(RegisterCopies, CopiesThatCast) { EXPECT_TRUE(through_registers(plan_of({.type = "f32"}))); }

TEST(RegisterCopies, FewerStagesWhereSharedMemoryEnds) {
  const plan::KernelSchedule k = plan_of({.tile = 128, .k = 128});
  EXPECT_EQ(k.loops[0].num_stages, 2);
  EXPECT_EQ(plan::find_value(k, "g:As")->slots, 1);
  EXPECT_NE(note_of(k, "g/ko").find("fewer stages"), std::string::npos) << note_of(k, "g/ko");
}

TEST(RegisterCopies, AnEngineThatIsGivenHolds) {
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "g";
  given.kernels[0].ops = {{.op = "g/ko/copy#0", .engine = Engine::vector_copy}};
  const plan::KernelSchedule k = plan_of({}, "gfx942", &given);
  EXPECT_FALSE(through_registers(k));
  EXPECT_EQ(plan::find_op(k, "g/ko/copy#1")->engine, Engine::register_copy);
  EXPECT_EQ(note_of(k, "g/ko/copy#0"), "does not run ahead: the schedule gives it engine 'vector_copy'");
  given.kernels[0].ops[0].engine = Engine::register_copy;
  EXPECT_TRUE(through_registers(plan_of({}, "gfx942", &given)));
  auto refused = plan_for(*gemm({.stages = " stages 1"}), "gfx942", &given);
  EXPECT_FALSE(refused) << "nothing of the loop runs ahead";
}

TEST(RegisterCopies, WhatDependsOnTheLoopStays) {
  const plan::KernelSchedule k =
      plan_of({.more = " parallel i, j in 128, 32 { As[i, j] = As[i, j] * 2.0f16 }\n"});
  EXPECT_FALSE(through_registers(k));
  EXPECT_EQ(note_of(k, "g/ko/copy#0"), "does not run ahead: another operation writes the tile too");
}

// A in registers, of rows of `k`; `more` stands in the loop, before the product.
std::shared_ptr<const ir::Program> gemm_of_registers(const std::string& k, const std::string& stages = "",
                                                     const std::string& more = "", int threads = 128) {
  return program_from(
      "tl 1 program p\ndim m divisible 64\ndim n divisible 64\ndim k divisible 64\n"
      "tensor A: f16[m, k] readonly\ntensor B: f16[k, n] readonly\ntensor C: f32[m, n]\n"
      "kernel g grid (by: ceildiv(m, 64), bx: ceildiv(n, 64)) threads " +
      std::to_string(threads) + " {\n alloc a: fragment f16[64, " + k + "]\n alloc Bs: shared f16[" + k +
      ", 64]\n alloc acc: fragment f32[64, 64]\n fill acc, 0.0f32\n pipelined ko in 0 .. ceildiv(k, " + k +
      ")" + stages + " {\n copy A[by * 64 :+ 64, ko * " + k + " :+ " + k + "] -> a\n copy B[ko * " + k +
      " :+ " + k + ", bx * 64 :+ 64] -> Bs\n" + more + " gemm a, Bs -> acc {policy=full_row}\n }\n" +
      " copy acc -> C[by * 64 :+ 64, bx * 64 :+ 64]\n}\n");
}

using Stages = std::vector<std::pair<std::string, int64_t>>;

// The tile's other slot takes an iteration more than the fragment, which has none.
TEST(RegisterCopies, FragmentsRunAheadByOneIteration) {
  for (const char* target : {"gfx942", "gfx90a"}) {
    const auto s = plan_for(*gemm_of_registers("32", " stages 3"), target);
    ASSERT_TRUE(s) << s.error().to_text();
    const plan::KernelSchedule& k = s->kernels[0];
    EXPECT_TRUE(through_registers(k)) << target;
    EXPECT_EQ(k.loops[0].stages, (Stages{{"g/ko/copy#0", 1}, {"g/ko/copy#1", 0}, {"g/ko/gemm#0", 2}}));
    EXPECT_EQ(plan::find_value(k, "g:a")->slots, 1);
    EXPECT_EQ(plan::find_value(k, "g:Bs")->slots, 2);
  }
  const auto s = plan_for(*gemm_of_registers("32"), "sm_80");
  ASSERT_TRUE(s);
  EXPECT_FALSE(through_registers(s->kernels[0])) << "other warps run beside a load there";
}

TEST(RegisterCopies, FragmentsThatStay) {
  const auto why = [](const std::shared_ptr<const ir::Program>& p) {
    const auto s = plan_for(*p, "gfx942");
    EXPECT_TRUE(s) << s.error().to_text();
    if (!s) return std::string();
    EXPECT_FALSE(through_registers(s->kernels[0]));
    return note_of(s->kernels[0], "g/ko/copy#0");
  };
  const std::string twice = " parallel i, j in 64, 32 { a[i, j] = a[i, j] * 2.0f16 }\n";
  EXPECT_EQ(why(gemm_of_registers("32", "", twice)),
            "does not run ahead: another operation writes the tile too");
  const std::string many = why(gemm_of_registers("512", "", "", 64));
  EXPECT_EQ(many.rfind("does not run ahead: a thread would keep 256 registers of it beside", 0), 0) << many;
}

TEST(RegisterCopies, StagesOfFragmentsThatAreGiven) {
  plan::Schedule given;
  given.kernels = {{.kernel = "g"}};
  plan::LoopPlan loop;
  loop.loop = "g/ko";
  loop.num_stages = 3;
  const auto plan = [&](int64_t stage) {
    loop.stages = {{"g/ko/copy#0", stage}, {"g/ko/copy#1", 0}, {"g/ko/gemm#0", 2}};
    given.kernels[0].loops = {loop};
    return plan_for(*gemm_of_registers("32"), "gfx942", &given);
  };
  const auto ahead = plan(1), stays = plan(2), refused = plan(0);
  ASSERT_TRUE(ahead && stays);
  EXPECT_TRUE(through_registers(ahead->kernels[0]));
  EXPECT_FALSE(through_registers(stays->kernels[0]));
  ASSERT_FALSE(refused) << "one iteration's loads have registers";
  EXPECT_NE(refused.error().to_text().find("gives g/ko/copy#0 stage 0, expected 1 to 2"), std::string::npos)
      << refused.error().to_text();
}

}  // namespace
}  // namespace tilegen::schedule
