// What a program's annotations ask for stands in the plan, or is refused at their place.
#include "schedule/annotations.h"

#include <gtest/gtest.h>

#include <regex>

#include "driver/compile.h"
#include "ir/text.h"

namespace tilegen::driver {
namespace {

struct Marks {
  std::string kernel, a, b, loop, load, store, product;
};

std::string gemm(const Marks& m = {}) {
  return "tl 1 program p\ndim m <= 4096\ndim n <= 4096 divisible 8\ndim k <= 4096 divisible 64\n"
         "tensor A: f16[m, k] readonly\ntensor B: f16[k, n] readonly\ntensor C: f16[m, n]\n"
         "kernel gemm grid(by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 128 " +
         m.kernel + " {\nalloc As: shared f16[128, 64] " + m.a + "\nalloc Bs: shared f16[64, 128] " + m.b +
         "\nalloc acc: fragment f32[128, 128]\nfill acc, 0\npipelined ko in 0 .. k // 64 " + m.loop +
         " {\nlabel load: copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As " + m.load +
         "\ncopy B[ko * 64 :+ 64, bx * 128 :+ 128] -> Bs\nlabel product: gemm As, Bs -> acc " + m.product +
         "\n}\ncopy acc -> C[by * 128 :+ 128, bx * 128 :+ 128] " + m.store + "\n}\n";
}

Expected<std::shared_ptr<const Artifact>> planned(const std::string& text, const char* target,
                                                  std::optional<plan::Schedule> given = {}) {
  auto p = ir::parse_program(text, "t.tl", Limits{});
  if (!p) return p.error();
  CompileOptions options;
  options.plan_only = true;
  options.schedule = std::move(given);
  return compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target(target), options);
}

plan::KernelSchedule plan_of(const std::string& text, const char* target = "sm_80",
                             std::optional<plan::Schedule> given = {}) {
  auto a = planned(text, target, std::move(given));
  if (a) return (*a)->schedule.kernels[0];
  ADD_FAILURE() << a.error().to_text() << "\n" << text;
  return {};
}
std::string refused(const std::string& text, const char* target = "sm_80",
                    std::optional<plan::Schedule> given = {}) {
  auto a = planned(text, target, std::move(given));
  return a ? "planned" : a.error().diagnostics[0].to_text();
}
void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(Annotations, OfOperationsArePlanned) {
  const auto vector = [](const std::string& load) {
    return plan::find_op(plan_of(gemm({.load = load})), "gemm/load")->vector;
  };
  EXPECT_EQ(vector(""), 8);
  EXPECT_EQ(vector("{vector = 4}"), 4);
  const auto loaded = plan_of(gemm({.load = "{engine = vector_copy}"}));
  EXPECT_EQ(plan::find_op(loaded, "gemm/load")->engine, plan::Engine::vector_copy);
  const auto product = plan_of(gemm({.product = "{warps = [4, 1]}"}));
  EXPECT_EQ(plan::find_op(product, "gemm/product")->warps_m, 4);
  EXPECT_EQ(plan::find_op(product, "gemm/product")->warps_n, 1);
  const auto whole = plan_of(gemm({.store = "{full_tile_version = false}"}));
  EXPECT_FALSE(plan::find_op(whole, "gemm/copy#0")->full_tile_version.value_or(false));
}

TEST(Annotations, OfTilesArePlanned) {
  const auto memory = [](const Marks& m, const std::string& value) {
    return plan::find_value(plan_of(gemm(m)), value)->memory->to_text();
  };
  EXPECT_EQ(memory({.a = "{swizzle = 128}"}, "gemm:As"),
            "(128,64) -> [0: d0/1%128*64 + d1/1%64*1] swizzle(3,4,3)@2");
  EXPECT_EQ(memory({.a = "{swizzle = 64}"}, "gemm:As"),
            "(128,64) -> [0: d0/1%128*32 + d1/1%32*1 + d1/32%2*4096] swizzle(2,4,3)@2");
  EXPECT_EQ(memory({.b = "{padding = 8}"}, "gemm:Bs"), "(64,128) -> [0: d0/1%64*136 + d1/1%128*1]");
  EXPECT_EQ(memory({.b = "{layout = (i, j) -> i * 136 + j}"}, "gemm:Bs"),
            "(64,128) -> [0: d0/1%64*136 + d1/1%128*1]");
  EXPECT_EQ(memory({.a = "{layout = (i, j) -> i * 64 + (j ^ i % 8 * 8)}"}, "gemm:As"),
            "(128,64) -> [0: d0/1%128*64 + d1/1%64*1] swizzle(3,4,3)@2");
  EXPECT_EQ(plan::find_value(plan_of(gemm({.b = "{padding = 8}"})), "gemm:Bs")->origin, plan::Origin::given);
}

TEST(Annotations, OfLoopsAndKernelsArePlanned) {
  const auto two = plan_of(gemm({.kernel = "with {raster = grouped, group = 4, min_blocks = 2}"}));
  EXPECT_EQ(two.raster->order, "grouped");
  EXPECT_EQ(two.raster->group, 4);
  EXPECT_EQ(two.launch->min_blocks, 2);
  const auto staged = plan_of(gemm({.loop = "stages 2 with {drained = false}"}));
  EXPECT_EQ(plan::find_loop(staged, "gemm/ko")->num_stages, 2);
  const auto slots = plan_of(gemm({.a = "{slots = 2}", .b = "{slots = 2}", .loop = "stages 2"}));
  EXPECT_EQ(plan::find_value(slots, "gemm:As")->slots, 2);
  const auto cluster =
      plan_of(gemm({.kernel = "with {cluster = 2, cluster_along = by, persistence = static}"}), "sm_90a");
  EXPECT_EQ(cluster.cluster->blocks, 2);
  EXPECT_EQ(cluster.cluster->along, "by");
  EXPECT_TRUE(cluster.persistence->persistent);
  const auto alone =
      plan_of(gemm({.kernel = "with {persistence = none}", .loop = "with {ping_pong = false}"}), "sm_90a");
  EXPECT_FALSE(alone.persistence && alone.persistence->persistent);
}

// One way for both: a schedule with the same fields gives the same plan.
TEST(Annotations, ArePlannedAsAGivenSchedule) {
  plan::Schedule given;
  given.kernels.emplace_back().kernel = "gemm";
  given.kernels[0].ops.emplace_back().op = "gemm/load";
  given.kernels[0].ops[0].vector = 4;
  given.kernels[0].raster.emplace().order = "column_major";
  auto by_schedule = plan_of(gemm(), "sm_80", given);
  auto by_program = plan_of(gemm({.kernel = "with {raster = column_major}", .load = "{vector = 4}"}));
  EXPECT_EQ(plan::schedule_to_text({"", "", {by_schedule}}), plan::schedule_to_text({"", "", {by_program}}));
}

TEST(Annotations, AGivenScheduleStandsAbove) {
  plan::Schedule given;
  given.kernels.emplace_back().kernel = "gemm";
  given.kernels[0].ops.emplace_back().op = "gemm/ko/copy#0";  // as without its label
  given.kernels[0].ops[0].vector = 2;
  const auto plan =
      plan_of(gemm({.kernel = "with {raster = column_major}", .load = "{vector = 4, engine = vector_copy}"}),
              "sm_80", given);
  EXPECT_EQ(plan::find_op(plan, "gemm/load")->vector, 2);
  EXPECT_EQ(plan::find_op(plan, "gemm/load")->engine, plan::Engine::vector_copy);
  EXPECT_EQ(plan.raster->order, "column_major");
  given.kernels[0].ops[0].op = "gemm/load";
  given.kernels[0].ops[0].engine = plan::Engine::tensor_copy;
  const std::string wrong = refused(gemm({.load = "{vector = 4, engine = vector_copy}"}), "sm_80", given);
  expect_words(wrong, "t.tl:14:13: error [schedule_illegal] gemm/load: the schedule gives tensor copies");
  given.kernels[0].ops[0].engine.reset();
  EXPECT_EQ(plan::find_op(plan_of(gemm(), "sm_80", given), "gemm/load")->vector, 2);
}

TEST(Annotations, OfParallelLoopsAreOfTheirOperations) {
  const std::string head =
      "tl 1 program p\ndim n divisible 64\ntensor X: f32[n] readonly\ntensor Y: f32[n]\ntensor Z: f32[n]\n"
      "kernel k grid(b: n // 1024) threads 128 {\nlabel both: parallel i in 1024 with {";
  const std::string tail =
      "} {\nY[b * 1024 + i] = X[b * 1024 + i]\nZ[b * 1024 + i] = X[b * 1024 + i] + 1\n}\n}\n";
  const auto plan = plan_of(head + "vector = 2" + tail);
  ASSERT_FALSE(plan.ops.empty());
  for (const plan::OpPlan& op : plan.ops) {
    EXPECT_EQ(op.vector, 2) << op.op;
    EXPECT_EQ(op.op.rfind("k/both", 0), 0u) << op.op;
  }
}

TEST(Annotations, WhatCannotBeHadIsRefusedAtItsPlace) {
  expect_words(
      refused(gemm({.load = "{engine = tensor_copy}"})),
      "t.tl:14:59: error [schedule_illegal] gemm/load: the annotation `engine`: the schedule gives tensor "
      "copies, but sm_80 has no copy engine");
  expect_words(refused(gemm({.load = "{vector = 3}"})), "the annotation `vector`: ");
  expect_words(refused(gemm({.product = "{warps = [3, 1]}"})), "the annotation `warps`: ");
  expect_words(refused(gemm({.product = "{warps = [4]}"})),
               "the annotation `warps` has 1 numbers, expected 2");
  expect_words(refused(gemm({.product = "{atom = \"mma.none\"}"})), "the annotation `atom`: ");
  expect_words(refused(gemm({.kernel = "with {cluster = 2}"})), "the annotation `cluster`: ");
  expect_words(refused(gemm({.kernel = "with {raster = row_major, group = 4}"})), "the annotation `group`: ");
  expect_words(refused(gemm({.kernel = "with {dependent}"})), "the annotation `dependent`: ");
  expect_words(refused(gemm({.kernel = "with {overlap = [bz]}"}), "sm_90a"), "t.tl:8:");
  expect_words(refused(gemm({.loop = "with {ping_pong}"})), "the annotation `ping_pong`: ");
  expect_words(refused(gemm({.loop = "with {split = 65}"})), "blocks cannot share its iterations");
  EXPECT_EQ(plan_of(gemm({.loop = "with {split = 3}"})).split->through, "workspace");
  expect_words(refused(gemm({.a = "{slots = 7}"})), "the annotation `slots`: ");
}

TEST(Annotations, LayoutsThatAreNoneAreRefused) {
  expect_words(refused(gemm({.a = "{swizzle = 16}"})),
               "t.tl:9:32: error [schedule_illegal] gemm:As: the annotation `swizzle` is not "
               "possible: a swizzle of 16 bytes, expected 32, 64 or 128");
  expect_words(refused(gemm({.a = "{swizzle = 128, padding = 8}"})),
               "`swizzle` and `padding` both say where elements lie");
  expect_words(refused(gemm({.a = "{layout = (i, j) -> i * 64 + (j + i) % 64}"})),
               "element (1, 63) is at offset 64, and those along each dimension come to another there");
  expect_words(refused(gemm({.a = "{layout = (i, j) -> i * 32 + j}"})), "two elements share a place");
  expect_words(refused(gemm({.a = "{layout = (i) -> i}"})),
               "a function of 1 indices, and the tile has 2 dimensions");
  expect_words(refused(gemm({.a = "{layout = \"(64,64) -> [0: d0/1%64*64 + d1/1%64*1]\"}"})),
               "expected a layout of shape");
  expect_words(refused(gemm({.a = "{layout = \"(64,64) -> [\"}"})),
               "the annotation `layout` is not possible");
  std::string text = gemm();
  const std::string fragment = "fragment f32[128, 128]";
  text.replace(text.find(fragment), fragment.size(), fragment + " {padding = 8}");
  expect_words(refused(text), "the tile is in registers");
}

// Registers by a function: thread * registers + register.
TEST(Annotations, FragmentsAreFunctionsToo) {
  const auto kernel = [](const std::string& layout, const std::string& threads = " threads 128") {
    return "tl 1 program p\ntensor X: f32[16, 32]\nkernel k grid(b: 1)" + threads +
           " {\nalloc x: fragment f32[16, 32] {layout = " + layout +
           "}\ncopy X -> x\nparallel i, j in 16, 32 { x[i, j] *= 2 }\ncopy x -> X\n}\n";
  };
  const std::string by_rows = "(i, j) -> (i // 4 * 32 + j) * 4 + i % 4";
  const auto planned_layout = [](const std::string& text) {
    for (const plan::ValuePlan& v : plan_of(text).values)
      if (v.value == "k:x" && v.fragment) return v.fragment->to_text();
    return std::string("none");
  };
  const std::string text = planned_layout(kernel(by_rows));
  EXPECT_EQ(text, "threads 128 : (16,32) -> [0: d0/4%4*32 + d1/1%32*1; 1: d0/1%4*1]");
  EXPECT_EQ(planned_layout(kernel('"' + text + '"')), text);
  const auto place = [](const std::string& why) {
    return "t.tl:4:32: error [schedule_illegal] k:x: the annotation `layout` is not possible: " + why;
  };
  expect_words(refused(kernel(by_rows, "")),
               place("a function tells thread * registers + register, and the kernel does"));
  expect_words(refused(kernel(by_rows, " threads 96")),
               place("512 elements are no whole registers of 96 threads"));
  expect_words(refused(kernel("(i, j) -> i * 32 + (j ^ i % 4)")),
               place("threads and registers are mixed by XOR"));
  expect_words(refused(kernel("(i, j) -> i * 32 + j // 2 * 2")), place(""));
  expect_words(refused(kernel("\"threads 128 : (4,32) -> [\"")), "the text of a fragment");
}

// A computing thread's, and the producer's.
TEST(Annotations, RegistersOfRoles) {
  const auto with = [](const std::string& numbers) {
    return gemm({.kernel = "with {role_registers = " + numbers + "}"});
  };
  const plan::KernelSchedule k = plan_of(with("[216, 56]"), "sm_90a");
  ASSERT_TRUE(k.roles && k.roles->size() == 2);
  EXPECT_EQ((*k.roles)[0].registers, 216);
  EXPECT_EQ((*k.roles)[1].registers, 56);
  EXPECT_EQ((*k.roles)[1].ops, (std::vector<std::string>{"gemm/load", "gemm/ko/copy#1"}));
  expect_words(refused(with("[216]"), "sm_90a"), "has 1 numbers, expected 2");
  expect_words(
      refused(with("[217, 56]"), "sm_90a"),
      "t.tl:8:78: error [schedule_illegal] gemm: the annotation `role_registers`: the given roles are not "
      "possible: 217 registers are no multiple of 8");
  expect_words(refused(with("[216, 56]")),
               "t.tl:8:78: error [schedule_illegal] gemm: the annotation `role_registers`: ");
  expect_words(refused(gemm({.kernel = "with {registers = 96}"}), "sm_90a"), "role_registers = [240, 24]");
}

TEST(Annotations, IterationsAreFunctionsToo) {
  const auto kernel = [](const std::string& iteration) {
    return "tl 1 program p\ntensor X: f32[16, 32]\nkernel k grid(b: 1) threads 128 {\nlabel l: parallel i, j "
           "in 16, "
           "32 with {iteration = " +
           iteration + "} { X[i, j] *= 2 }\n}\n";
  };
  const auto planned_iteration = [](const std::string& text) {
    const plan::KernelSchedule k = plan_of(text);
    for (const plan::OpPlan& op : k.ops)
      if (op.iteration) return op.iteration->to_text();
    return std::string("none");
  };
  const std::string text = planned_iteration(kernel("(i, j) -> (i % 4 * 32 + j) * 4 + i // 4"));
  EXPECT_EQ(text, "threads 128 : (16,32) -> [0: d0/1%4*32 + d1/1%32*1; 1: d0/4%4*1]");
  EXPECT_EQ(planned_iteration(kernel('"' + text + '"')), text);
  expect_words(refused(kernel("(i, j) -> i * 32 + j // 2")), "the annotation `iteration` is not possible: ");
}

// The code of the first version.
std::string code_of(const std::string& text, const char* target) {
  auto p = ir::parse_program(text, "t.tl", Limits{});
  if (!p) return p.error().to_text();
  auto a = compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target(target), {});
  return a ? (*a)->code : a.error().to_text();
}

TEST(Annotations, CachesAreTold) {
  const std::string ahead =
      code_of(gemm({.load = "{cache = evict_last}", .store = "{cache = evict_first}"}), "sm_80");
  expect_words(ahead, "createpolicy.fractional.L2::evict_last.b64");
  expect_words(ahead, "cp.async.cg.shared.global.L2::cache_hint");
  // Also where a number of bytes is read; the shared address always through a permutation.
  const std::regex partial("cp\\.async\\.c[ag]\\.shared\\.global\\S*cache_hint \\[[^;]*\\], 16, %r\\d"),
      bare("cp\\.async\\.c[ag]\\.shared\\.global\\S*cache_hint \\[%r");
  EXPECT_TRUE(std::regex_search(ahead, partial));
  EXPECT_FALSE(std::regex_search(ahead, bare));
  expect_words(ahead, "createpolicy.fractional.L2::evict_first.b64");
  expect_words(ahead, "st.global.L2::cache_hint");
  const std::string by_threads =
      code_of(gemm({.load = "{engine = vector_copy, cache = no_allocate}"}), "sm_80");
  expect_words(by_threads, "ld.global.L1::no_allocate");
  EXPECT_EQ(by_threads.find("cache_hint"), std::string::npos);
  const std::string boxes = code_of(gemm({.load = "{cache = evict_first}"}), "sm_90a");
  expect_words(boxes, "mbarrier::complete_tx::bytes.L2::cache_hint");
  EXPECT_EQ(code_of(gemm(), "sm_80").find("createpolicy"), std::string::npos);
}

TEST(Annotations, CachesThatCannotBeTold) {
  expect_words(refused(gemm({.product = "{cache = evict_first}"})),
               "the annotation `cache`: the given `cache` "
               "'evict_first' is not possible: it accesses no tensor");
  expect_words(refused(gemm({.load = "{cache = evict_first}"}), "gfx942"),
               "gfx942 has no accesses that tell caches");
  expect_words(refused(gemm({.load = "{engine = async_copy, cache = evict_first}"}), "gfx942"),
               "gfx942 has no accesses that tell caches");
  expect_words(refused(gemm({.load = "{vector = 4, cache = no_allocate}"})), "go through the nearest cache");
  std::string twice = gemm({.load = "{cache = evict_first}"});
  const std::string b = "copy B[ko * 64 :+ 64, bx * 128 :+ 128] -> Bs";
  twice.replace(twice.find(b), b.size(), b + " copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As");
  expect_words(refused(twice), "reads tensor 'A' too, and says nothing of it");
}

TEST(Annotations, RegistersAreBounded) {
  expect_words(code_of(gemm({.kernel = "with {registers = 200}"}), "sm_80"), ".maxnreg 200");
  EXPECT_EQ(code_of(gemm(), "sm_80").find(".maxnreg"), std::string::npos);
  expect_words(refused(gemm({.kernel = "with {registers = 96}"}), "sm_90a"), "the annotation `registers`: ");
  expect_words(refused(gemm({.kernel = "with {registers = 96}"}), "gfx942"),
               "is not told how many registers");
  expect_words(refused(gemm({.kernel = "with {registers = 96}", .load = "{engine = async_copy}"}), "gfx942"),
               "is not told how many registers");
}

TEST(Annotations, OrderAndStageTakeLabels) {
  const std::string b = "copy B[";
  const auto with = [&](const std::string& loop) {
    std::string text = gemm({.loop = loop});
    return text.replace(text.find(b), b.size(), "label other: " + b);
  };
  const auto plan = plan_of(with("stages 3 with {order = [load, other, product], stage = [1, 0, 2]}"));
  EXPECT_EQ(plan::find_loop(plan, "gemm/ko")->stages,
            (std::vector<std::pair<std::string, int64_t>>{
                {"gemm/load", 1}, {"gemm/other", 0}, {"gemm/product", 2}}));
  expect_words(refused(with("with {order = [load]}")), "1 names in `order` and no numbers in `stage`");
  expect_words(refused(with("with {order = [load, nobody], stage = [0, 0]}")), "`order` names 'nobody'");
  expect_words(refused(with("stages 3 with {order = [load, product], stage = [0, 2]}")),
               "leaves out gemm/other");
  expect_words(refused(with("stages 3 with {order = [other, load, product], stage = [0, 0, 2]}")), "order");
}

TEST(Annotations, AreLeftOutOnHostsWithANote) {
  const auto plan = plan_of(
      gemm({.kernel = "with {raster = grouped}", .a = "{swizzle = 128}", .load = "{vector = 4}"}), "host");
  int found = 0;
  for (const plan::Note& n : plan.notes)
    found += n.text.find("is left out: it decides for blocks of threads") != n.text.npos;
  EXPECT_EQ(found, 3);
}

}  // namespace
}  // namespace tilegen::driver
