// Given schedules, field by field: what is illegal is refused by its name, what is left out is planned again,
// what is accepted stands in the result.
#include "hopper_plans.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

constexpr const char* kRows = R"(tl 1 program p
dim n
tensor X: f32[n, 64] readonly
tensor S: f32[n]
kernel k grid (b: ceildiv(n, 8)) threads 128 {
  alloc x: fragment f32[8, 64]
  alloc s: fragment f32[8]
  copy X[b * 8 :+ 8, 0 :+ 64] -> x
  reduce x -> s {axis=1}
  copy s -> S[b * 8 :+ 8]
}
)";

std::string product() { return gemm_text(128, 128, 32, 3, 128); }

Expected<plan::Schedule> given(const ir::Program& p, const std::string& target,
                               const std::string& kernel_members) {
  auto s = plan::schedule_from_json(
      R"({"kernels": [{"kernel": ")" + p.kernels[0].name + "\", " + kernel_members + "}]}", Limits{});
  if (!s) return s.error();
  return plan_for(p, target, &*s);
}

struct Refusal {
  std::string text, target, members, message;
};

TEST(CheckSchedule, IllegalFieldsAreRefusedByName) {
  const std::string gemm = R"("op": "gemm/ko/gemm#0")", copy = R"("op": "gemm/ko/copy#0")",
                    as = R"("value": "gemm:As")";
  const auto ops = [](const std::string& o) { return "\"ops\": [{" + o + "}]"; };
  const auto values = [](const std::string& v) { return "\"values\": [{" + v + "}]"; };
  const auto loop = [](const std::string& l) { return R"("loops": [{"loop": "gemm/ko", )" + l + "}]"; };
  const auto stages = [&](int a, int b, int g) {
    return loop(R"("stages": [{"op": "gemm/ko/copy#0", "stage": )" + std::to_string(a) +
                R"(}, {"op": "gemm/ko/copy#1", "stage": )" + std::to_string(b) +
                R"(}, {"op": "gemm/ko/gemm#0", "stage": )" + std::to_string(g) + "}]");
  };
  const std::string p = product();
  const Refusal cases[] = {
      {p, "sm_80", ops(gemm + R"(, "engine": "loop")"),
       "the schedule gives engine 'loop', but on sm_80 products are done by 'mma'"},
      {p, "sm_80", ops(gemm + R"(, "engine": "warpgroup_mma")"), "but on sm_80 products are done by 'mma'"},
      {p, "host", ops(gemm + R"(, "engine": "mma")"), "products are done by 'micro_kernel' or 'loop'"},
      {p, "host", ops(gemm + R"(, "warps_m": 2)"), "the schedule splits it over 2xany warps"},
      {p, "sm_80", ops(gemm + R"(, "warps_m": 3)"), "no instruction of sm_80 with 3xany warps does a 128x128x32 gemm"},
      {p, "sm_80", ops(gemm + R"(, "atom": "none")"), "the schedule's atom 'none'"},
      {p, "sm_80", ops(gemm + R"(, "iteration": "threads 128 : (128,32) -> [0: d0/1%128*1; 1: d1/1%32*1]")"),
       "a product has none"},
      {p, "sm_80", ops(gemm + R"(, "vector": 4)"), "the schedule gives `vector` 4"},
      {p, "sm_80", ops(copy + R"(, "vector": 3)"),
       "the schedule gives `vector` 3, but with the program, the target and its other fields it is 8"},
      {p, "sm_80", ops(copy + R"(, "vector": 1, "engine": "async_copy")"),
       "the schedule gives `engine` 'async_copy'"},
      {p, "sm_80", ops(copy + R"(, "engine": "loop")"), "the schedule gives `engine` 'loop'"},
      {p, "sm_80", ops(copy + R"(, "warps_n": 2)"), "the schedule gives `warps_n` 2"},
      {p, "sm_80", ops(copy + R"(, "streaming": true)"), "the schedule gives `streaming` true"},
      {p, "sm_80", ops(copy + R"(, "epilogue_columns": 8)"), "the schedule gives `epilogue_columns` 8"},
      {p, "sm_80", ops(copy + R"(, "through_memory": ["gemm:As"])"),
       "the schedule gives `through_memory` [gemm:As]"},
      {p, "sm_80", ops(copy + R"(, "skip_if_identity": "gemm:As")"), "which is no factor"},
      {p, "sm_80", values(as + R"(, "slots": 1)"),
       "the schedule gives `slots` 1, but with the program, the target and its other fields it is 3"},
      {p, "sm_80", values(as + R"(, "fragment": "threads 128 : (128,32) -> [0: d0/1%128*1; 1: d1/1%32*1]")"),
       "a fragment is of registers"},
      {p, "sm_80", values(as + R"(, "memory": "(32,128) -> [0: d0/1%32*128 + d1/1%128*1]")"),
       "expected a layout of shape (128, 32), got (32, 128)"},
      {p, "sm_80", values(as + R"(, "memory": "(128,32) -> [0: d0/1%128*16 + d1/1%32*1]")"),
       "two elements share a place"},
      {p, "sm_80", values(as + R"(, "memory": "(128,32) -> [0: d0/1%128*1000000 + d1/1%32*1]")"),
       "on-chip memory holds"},
      {p, "sm_80", values(as + R"(, "memory": "(128,32) -> [0: d0/1%128*32 + d1/1%32*1] swizzle(2,4,3)@4")"),
       "its swizzle is of elements of 4 bytes"},
      {p, "sm_80", values(as + R"(, "memory": "(128,32) -> [0: d0/1%128*32 + d1/1%32*1] swizzle(2,14,3)@2")"),
       "its swizzle reaches beyond the tile"},
      {p, "sm_80", values(R"("value": "gemm:acc", "memory": "(128,128) -> [0: d0/1%128*128 + d1/1%128*1]")"),
       "a gemm works on its registers"},
      {p, "sm_80", stages(0, 0, 1), "`stages` gives gemm/ko/gemm#0 stage 1, expected 2"},
      {p, "sm_80", stages(2, 3, 2), "`stages` gives gemm/ko/copy#1 stage 3, expected 0 to 2"},
      {p, "sm_80", loop(R"("stages": [{"op": "gemm/ko/copy#0", "stage": 0}])"), "`stages` leaves out"},
      {p, "sm_80", loop(R"("num_stages": 1000)"), "bytes of on-chip memory"},
      {p, "host", loop(R"("num_stages": 2)"), "the schedule gives `num_stages` 2"},
      {p, "sm_80", loop(R"("ping_pong": true)"), "take turns (ping_pong)"},
      {p, "sm_90a", stages(1, 0, 2), "`stages` gives gemm/ko/copy#0 stage 1, expected 0: its producer"},
      {p, "sm_80", R"("raster": {"order": "lpt"})", "no pipelined loop's length depends on a block index"},
      {p, "sm_80", R"("raster": {"order": "row_major", "group": 4})",
       "`group` is 4, which only 'grouped' and 'by_die' have"},
      {p, "sm_80", R"("raster": {"order": "grouped", "dies": 4})", "`dies` is 4, which only 'by_die' has"},
      {p, "sm_80", R"("raster": {"order": "row_major", "dimension": 1})", "are of order 'lpt' only"},
      {p, "host", R"("raster": {"order": "column_major"})", "walks tiles by rows"},
      {kRows, "sm_80", R"("raster": {"order": "grouped"})", "which takes two dimensions of the grid"},
      {p, "sm_80", R"("roles": [{"name": "a"}, {"name": "b"}])", "a producer has nothing to do"},
      {p, "sm_80", R"("persistence": {"persistent": true})", "it needs a producer"},
      {p, "sm_80", R"("launch": {"dependent": true})", "does not know"},
      {p, "sm_80", R"("pipelines": [{"name": "c", "loop": "gemm/ko", "values": ["gemm:As"]}])",
       "the given pipelines do not hold"},
      {p, "sm_80", R"("threads": 100)", "100 threads are not possible"},
      {p, "sm_90a",
       R"("pipelines": [{"name": "gemm/ko", "loop": "gemm/ko", "values": ["gemm:As", "gemm:Bs"], "slots": 9}])",
       "the schedule gives `pipelines.slots` 9"},
      {kRows, "sm_80", ops(R"("op": "k/reduce#0", "iteration": "threads 128 : (8) -> [0: d0/1%8*1; 1: 0]")"),
       "expected a layout of shape (8, 64), got (8)"},
      {kRows, "sm_80",
       ops(R"("op": "k/copy#0", "iteration": "threads 64 : (8,64) -> [0: d1/1%64*1; 1: d0/1%8*1]")"),
       "expected one over the block's 128 threads, got 64"},
      {kRows, "sm_80",
       ops(R"("op": "k/copy#0", "iteration": "threads 128 : (8,64) -> [0: d1/1%64*1; 1: d0/1%8*0]")"),
       "two elements share a register"},
      {kRows, "sm_80",
       ops(R"("op": "k/copy#0", "iteration": "threads 128 : (8,64) -> [0: d1/1%4*2 + d0/1%2*5; 1: d1/4%16*1 + d0/2%4*16]")"),
       "its thread digits overlap"},
      {kRows, "host",
       ops(R"("op": "k/copy#0", "iteration": "threads 1 : (8,64) -> [0: 0; 1: d0/1%8388608*64 + d1/1%64*1]")"),
       "a thread has at most"},
      {kRows, "sm_80", ops(R"("op": "k/reduce#0", "deferred_to": "k/loop")"), "no loop is around it"},
      {kRows, "sm_80",
       R"("conversions": [{"value": "k:x", "producer": "k/copy#0", "consumer": "k/reduce#0"}])",
       "held so that there is no such conversion"},
      {kRows, "sm_80", R"("conversions": [{"value": "k:x", "producer": "k/none", "consumer": "k/reduce#0"}])",
       "names op 'k/none'"},
  };
  for (const Refusal& r : cases) {
    auto program = program_from(r.text);
    ASSERT_TRUE(program);
    auto s = given(*program, r.target, r.members);
    ASSERT_FALSE(s) << r.members << " is accepted on " << r.target << "\n" << plan::schedule_to_text(*s);
    const Diagnostic& d = s.error().diagnostics[0];
    EXPECT_NE(d.message.find(r.message), std::string::npos)
        << r.members << " on " << r.target << ": " << d.message;
    EXPECT_NE(d.code, DiagCode::internal_error) << d.message;
    EXPECT_FALSE(d.hint.empty()) << d.message;
  }
}

TEST(CheckSchedule, OtherTargetsAndProgramsAreRefused) {
  auto program = program_from(product());
  plan::Schedule s = planned(*program);
  s.program_hash = "0123";
  auto r = plan_for(*program, "sm_90a", &s);
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().diagnostics[0].message.find("the schedule is for program 0123"), std::string::npos);
  s.program_hash.clear();
  EXPECT_TRUE(plan_for(*program, "sim:sm_90a", &s));
  r = plan_for(*program, "sm_80", &s);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::schedule_mismatch);
  EXPECT_NE(r.error().diagnostics[0].message.find("the schedule is for target 'sm_90a'"), std::string::npos);
}

// One field alone: the others of its entry are planned.
TEST(CheckSchedule, AFieldMayStandAlone) {
  auto program = program_from(product());
  auto s = given(*program, "sm_80", R"("ops": [{"op": "gemm/ko/gemm#0", "warps_m": 4}])");
  ASSERT_TRUE(s) << s.error().to_text();
  const plan::OpPlan* gemm = plan::find_op(s->kernels[0], "gemm/ko/gemm#0");
  EXPECT_EQ(gemm->warps_m, 4);
  EXPECT_EQ(gemm->warps_n, 1);
  EXPECT_EQ(gemm->engine, plan::Engine::mma);
  s = given(
      *program, "sm_80",
      R"("ops": [{"op": "gemm/ko/copy#0", "vector": 2}], "loops": [{"loop": "gemm/ko", "num_stages": 2}])");
  ASSERT_TRUE(s) << s.error().to_text();
  EXPECT_EQ(plan::find_op(s->kernels[0], "gemm/ko/copy#0")->vector, 2);
  EXPECT_EQ(plan::find_op(s->kernels[0], "gemm/ko/copy#0")->engine, plan::Engine::async_copy);
  EXPECT_EQ(plan::find_value(s->kernels[0], "gemm:As")->slots, 2);
  EXPECT_EQ(plan::find_loop(s->kernels[0], "gemm/ko")->stages.back().second, 1);
  s = given(*program, "host", R"("ops": [{"op": "gemm/ko/gemm#0", "engine": "loop"}])");
  ASSERT_TRUE(s) << s.error().to_text();
  EXPECT_EQ(plan::find_op(s->kernels[0], "gemm/ko/gemm#0")->engine, plan::Engine::loop);
  s = given(*program, "sm_90a", R"("roles": [{"name": "a"}, {"name": "b", "warps": 4}])");
  ASSERT_TRUE(s) << s.error().to_text();
  EXPECT_EQ((*s->kernels[0].roles)[1].warps, 4);
}

// Of every field of a full schedule, the key taken out: planned again as it was.
TEST(CheckSchedule, FieldsOfOpsAreThePlannersWhenLeftOut) {
  for (const char* target : {"sm_80", "sm_90a", "host"}) {
    auto program = program_from(product());
    auto full = plan_for(*program, target);
    ASSERT_TRUE(full) << full.error().to_text();
    for (size_t i = 0; i < full->kernels[0].ops.size(); ++i)
      for (int field = 0; field < 6; ++field) {
        plan::Schedule less = *full;
        plan::OpPlan& op = less.kernels[0].ops[i];
        switch (field) {
          case 0:
            op.engine.reset();
            break;
          case 1:
            op.atom.clear();
            break;
          case 2:
            op.warps_m = 0;
            break;
          case 3:
            op.warps_n = 0;
            break;
          case 4:
            op.vector = 0;
            break;
          default:
            op.streaming.reset();
        }
        auto again = plan_for(*program, target, &less);
        ASSERT_TRUE(again) << op.op << " " << again.error().to_text();
        EXPECT_EQ(plan::schedule_to_json(*again), plan::schedule_to_json(*full)) << op.op << " " << field;
      }
  }
}

// What one kernel's loop needs where it needs no copy engine is what the caller gives.
TEST(CheckSchedule, FormsWithoutTheCopyEngineTakeWhatIsGiven) {
  auto program = program_from(product());
  auto s = plan::schedule_from_json(
      R"({"kernels": [{"kernel": "gemm", "loops": [{"loop": "gemm/ko", "num_stages": 2}]}]})", Limits{});
  ASSERT_TRUE(s);
  for (TensorCopies allowed :
       {TensorCopies::loads_and_stores, TensorCopies::loads, TensorCopies::product_loads, TensorCopies::none})
    EXPECT_EQ(plan::find_loop(planned(*program, allowed, &*s).kernels[0], "gemm/ko")->num_stages, 2);
  const plan::Schedule full = planned(*program);
  for (TensorCopies allowed : {TensorCopies::loads, TensorCopies::product_loads, TensorCopies::none}) {
    auto below = plan_with(*program, allowed, &full);
    EXPECT_TRUE(below) << below.error().to_text();
  }
}

}  // namespace
}  // namespace tilegen::schedule
