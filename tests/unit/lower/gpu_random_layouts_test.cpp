// Layouts and shapes that are drawn, on the simulator, against the interpreter.
#include "gpu_arguments.h"

namespace tilegen::lower {
namespace {

// A fragment over `threads` threads with random digits: every dimension's powers of two go to threads or
// registers in any order, the threads left over hold copies, hold nothing, or stand between.
layout::Fragment random_fragment(const std::vector<int64_t>& shape, int64_t threads, std::mt19937& random) {
  std::vector<layout::Digit> digits;
  for (size_t d = 0; d < shape.size(); ++d)
    for (int64_t weight = 1; weight < shape[d]; weight *= 2)
      digits.push_back({static_cast<int>(d), 2, weight, layout::kRegister, 0});
  std::vector<size_t> order(digits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  int64_t thread = 1, reg = 1, copies = 1;
  for (size_t i : order) {
    const uint32_t pick = random() % 8;
    if (pick == 0 && thread < threads) {  // a copy, or a gap
      if (random() % 2) {
        digits.push_back({layout::kReplica, 2, copies, layout::kThread, thread});
        copies *= 2;
      }
      thread *= 2;
    }
    const bool to_thread = pick < 6 && thread < threads;
    digits[i].output = to_thread ? layout::kThread : layout::kRegister;
    digits[i].stride = to_thread ? thread : reg;
    (to_thread ? thread : reg) *= 2;
  }
  if (thread < threads && random() % 4)
    digits.push_back({layout::kReplica, threads / thread, copies, layout::kThread, thread});
  auto map = layout::Layout::make(shape, std::move(digits), 2);
  EXPECT_TRUE(map) << map.error().to_text();
  auto f = layout::Fragment::make(*map, threads);
  EXPECT_TRUE(f) << f.error().to_text();
  return *f;
}

// Values handed through fragments whose layouts were drawn at random: every conversion, reductions over any
// digits.
void run_random_layouts(const char* type, const std::string& kind, uint32_t seed) {
  const std::string t = type;
  const ir::Program p = [&] {
    const std::string text =
        "tl 1 program random\ntensor X: " + t + "[16, 32] readonly\ntensor Y: " + t +
        "[16, 32]\ntensor R: " + t + "[16]\ntensor C: " + t + "[1, 32]\n" +
        "kernel k grid (b: 1) threads 128 {\n"
        "  alloc x: fragment " +
        t + "[16, 32]\n  alloc y: fragment " + t +
        "[16, 32]\n"
        "  alloc z: fragment " +
        t +
        "[32, 16]\n"
        "  alloc r: fragment " +
        t + "[16]\n  alloc c: fragment " + t +
        "[1, 32]\n"
        "  alloc l: local " +
        t +
        "[4]\n"
        "  copy X -> x\n"
        "  parallel i, j in 16, 32 {\n    y[i, j] = x[i, j]\n  }\n"
        "  reduce x -> r { kind = " +
        kind +
        ", axis = 1 }\n"
        "  reduce y -> c { kind = " +
        kind +
        ", axis = 0 }\n"
        "  reduce y -> r { kind = " +
        kind +
        ", axis = 1, accumulate }\n"
        "  parallel i, j in 16, 32 {\n    if x[i, j] < r[i] {\n      y[i, j] = c[0, j]\n    }\n"
        "    z[j, i] = x[i, j]\n  }\n"
        "  parallel i, j in 32, 16 {\n    x[j, i] = z[i, j] + y[j, i]\n  }\n"
        "  copy x -> Y\n  copy r -> R\n  copy c -> C\n}\n";
    auto parsed = ir::parse_program(text, "random.tl", Limits{});
    EXPECT_TRUE(parsed) << parsed.error().to_text();
    return std::move(*parsed);
  }();
  std::mt19937 random(seed);
  const target::Target target = *target::find_target("sm_80");
  auto planned = schedule::plan_program(p, target, {});
  ASSERT_TRUE(planned) << planned.error().to_text();
  plan::Schedule given;
  given.target = planned->target;
  given.kernels.push_back({});
  given.kernels[0].kernel = "k";
  for (const plan::ValuePlan& v : planned->kernels[0].values) {
    if (!v.fragment || v.value == "k:l" || random() % 4 == 0) continue;
    plan::ValuePlan fixed;
    fixed.value = v.value;
    fixed.fragment = random_fragment(v.fragment->shape(), 128, random);
    given.kernels[0].values.push_back(std::move(fixed));
  }
  schedule::PlanOptions options;
  options.given = &given;
  auto schedule = schedule::plan_program(p, target, options);
  ASSERT_TRUE(schedule) << schedule.error().to_text();
  bool ran = false;
  run_lowered(p, target, *schedule, {}, true, &ran);
  EXPECT_TRUE(ran);
  if (testing::Test::HasFailure())
    ADD_FAILURE() << "seed " << seed << "\n" << plan::schedule_to_text(*schedule);
}

TEST(GpuProgram, AnyLayoutsOfItsValues) {
  const std::pair<const char*, const char*> forms[] = {
      {"f32", "sum"}, {"i32", "max"}, {"f64", "absmax"}, {"f16", "min"}};
  for (uint32_t seed = 1; seed <= 25 && !HasFailure(); ++seed)
    run_random_layouts(forms[seed % 4].first, forms[seed % 4].second, seed);
}

// Tiles of any extents on any number of threads, tensors that end anywhere.
void run_random_shapes(uint32_t seed) {
  std::mt19937 random(seed);
  auto upto = [&](uint32_t n) { return std::to_string(1 + random() % n); };
  const std::string m = upto(24), n = upto(70), threads = std::to_string(32 * (1 + random() % 8));
  const char* types[] = {"f32", "f16", "i32", "f64", "bf16"};
  const std::string t = types[random() % 5], u = random() % 2 ? t : "f32";
  const char* kinds[] = {"sum", "max", "min", "absmax"};
  const std::string kind = kinds[t[0] == 'i' ? 1 + random() % 2 : 1 + random() % 3];
  const std::string scope = random() % 2 ? "shared" : "fragment",
                    reduced = random() % 2 ? "shared" : "fragment";
  const std::string box = m + ", " + n, at = "b * " + m + " :+ " + m + ", c * " + n + " :+ " + n;
  const std::string text =
      "tl 1 program random\ndim p\ndim q" + std::string(random() % 2 ? " divisible 4" : "") +
      "\ntensor X: " + t + "[p, q] readonly\ntensor Y: " + u + "[p, q]\ntensor R: " + t +
      "[p]\ntensor C: " + t + "[q]\n" + "kernel k grid (b: ceildiv(p, " + m + "), c: ceildiv(q, " + n +
      ")) threads " + threads + " {\n" + "  alloc x: " + scope + " " + t + "[" + box +
      "]\n  alloc y: fragment " + u + "[" + box + "]\n" + "  alloc r: " + reduced + " " + t + "[" + m +
      "]\n  alloc c1: fragment " + t + "[1, " + n + "]\n" + "  copy X[" + at +
      "] -> x\n  reduce x -> r { kind = " + kind + ", axis = 1 }\n" + "  reduce x -> c1 { kind = " + kind +
      ", axis = 0 }\n" + "  parallel i, j in " + box + " {\n    y[i, j] = cast(" + u +
      ", max(x[i, j] - r[i], c1[0, j]))\n" + "    if c == 0 and j == 0 and b * " + m +
      " + i < p {\n      R[b * " + m + " + i] = r[i]\n    }\n  }\n" + "  copy y -> Y[" + at + "]\n" +
      "  if b == 0 {\n    copy c1 -> C[c * " + n + " :+ " + n + "]\n  }\n}\n";
  auto parsed = ir::parse_program(text, "random.tl", Limits{});
  ASSERT_TRUE(parsed) << parsed.error().to_text() << text;
  for (const Diagnostic& d : check::check_program(*parsed, Limits{})) ADD_FAILURE() << d.to_text() << text;
  const target::Target target = *target::find_target("sm_80");
  auto schedule = schedule::plan_program(*parsed, target, {});
  ASSERT_TRUE(schedule) << schedule.error().to_text() << text;
  const int64_t p = 1 + random() % 50,
                q = 4 * (1 + random() % 40) + (text.find("divisible") == text.npos ? random() % 4 : 0);
  bool ran = false;
  run_lowered(*parsed, target, *schedule, {p, q}, true, &ran);
  run_lowered(*parsed, target, *schedule, {p, q}, false, &ran);
  EXPECT_TRUE(ran);
  if (testing::Test::HasFailure())
    ADD_FAILURE() << "seed " << seed << ", p " << p << ", q " << q << "\n" << text;
}

TEST(GpuProgram, AnyShapes) {
  for (uint32_t seed = 1; seed <= 30 && !HasFailure(); ++seed) run_random_shapes(seed);
}

}  // namespace
}  // namespace tilegen::lower
