// Parallel loops that move elements of tensors: vectors of them, made ahead as asynchronous copies.
#include "plan_support.h"

namespace tilegen::schedule {
namespace {

using plan::Engine;

struct Parts {
  std::string loop = "parallel i, j in 64, 64 { a[i, j] = A[cast(i64, P[b * 64 + i]), ko * 64 + j] }";
  std::string kind = "pipelined", stages = " stages 3", before = "";
};

plan::KernelSchedule plan_of(const Parts& t, const char* target = "sm_80",
                             const plan::Schedule* given = nullptr) {
  auto p = program_from(
      "tl 1 program p\ndim m\ndim e\ndim k divisible 64\ntensor A: f16[m, k] readonly\n"
      "tensor W: f16[64, 64] readonly\ntensor P: i32[e] readonly\ntensor C: f32[e, 64]\n"
      "kernel g grid (b: ceildiv(e, 64)) threads 128 {\n alloc a: shared f16[64, 64]\n"
      " alloc w: shared f16[64, 64]\n alloc s: fragment f32[64, 64]\n alloc own: shared i32[64]\n"
      " copy W -> w\n fill s, 0\n " +
      t.kind + " ko in 0 .. ceildiv(k, 64)" + t.stages + " {\n " + t.before + " " + t.loop +
      "\n gemm a, w -> s\n }\n copy s -> C[b * 64 :+ 64, 0 :+ 64]\n}\n");
  auto s = p ? plan_for(*p, target, given) : Expected<plan::Schedule>(plan::Schedule());
  EXPECT_TRUE(s) << s.error().to_text();
  return s && !s->kernels.empty() ? s->kernels[0] : plan::KernelSchedule();
}

const plan::OpPlan& moving(const plan::KernelSchedule& k) { return *plan::find_op(k, "g/ko/i.j"); }

bool is_ahead(const plan::KernelSchedule& k) {
  const auto* stages = k.loops.empty() ? nullptr : &k.loops[0].stages;
  return stages && !stages->empty() && stages->front().second == 0 && k.loops[0].num_stages == 3;
}
std::string notes_of(const plan::KernelSchedule& k) {
  std::string all;
  for (const plan::Note& n : k.notes) all += n.path + ": " + n.text + "\n";
  return all;
}

TEST(GatheredTiles, RowsRunAheadInVectors) {
  const plan::KernelSchedule k = plan_of({});
  EXPECT_EQ(moving(k).engine, Engine::async_copy);
  EXPECT_EQ(moving(k).vector, 8);
  EXPECT_TRUE(is_ahead(k)) << notes_of(k);
  EXPECT_EQ(plan::find_value(k, "g:a")->slots, 3);
}

// An index that changes along the vector may name any elements.
TEST(GatheredTiles, OnlyWhatLiesSideBySideIsAVector) {
  const plan::KernelSchedule across =
      plan_of({.loop = "parallel i, j in 64, 64 { a[i, j] = A[b * 64 + i, cast(i64, P[b * 64 + j])] }"});
  EXPECT_NE(moving(across).engine, Engine::async_copy) << "single elements of 2 bytes";
}

TEST(GatheredTiles, OnlyMovesRunAhead) {
  for (const char* loop :
       {"parallel i, j in 64, 64 { a[i, j] = A[b * 64 + i, ko * 64 + j] * 2 }",
        "parallel i, j in 64, 32 { a[i, j] = A[b * 64 + i, ko * 64 + j] }",
        "parallel i, j in 64, 64 { if j < 32 { a[i, j] = A[b * 64 + i, ko * 64 + j] } }",
        "parallel i, j in 64, 64 { a[i, j] = A[cast(i64, P[b * 64 + i]) + cast(i64, a[i, j]), j] }"}) {
    Parts t;
    t.loop = loop;
    t.before = t.loop.find("32") != std::string::npos || t.loop.find("a[i, j]), j") != std::string::npos
                   ? "fill a, 0"
                   : "";
    EXPECT_FALSE(is_ahead(plan_of(t))) << loop;
  }
  EXPECT_FALSE(is_ahead(plan_of({.kind = "serial", .stages = ""})));
  Parts held;
  held.before = "copy P[ko * 64 :+ 64] -> own";
  held.loop = "parallel i, j in 64, 64 { a[i, j] = A[cast(i64, own[i]), ko * 64 + j] }";
  const plan::KernelSchedule k = plan_of(held);
  EXPECT_NE(notes_of(k).find("g/ko/i.j: does not run ahead: its place depends on what the loop computes"),
            std::string::npos)
      << notes_of(k);
}

TEST(GatheredTiles, TheScheduleMayGiveAnotherEngine) {
  plan::Schedule given;
  plan::KernelSchedule k;
  k.kernel = "g";
  plan::OpPlan op;
  op.op = "g/ko/i.j";
  op.engine = Engine::loop;
  k.ops.push_back(op);
  given.kernels.push_back(k);
  const plan::KernelSchedule got = plan_of({}, "sm_80", &given);
  EXPECT_EQ(moving(got).engine, Engine::loop);
  EXPECT_EQ(moving(got).vector, 8);
}

}  // namespace
}  // namespace tilegen::schedule
