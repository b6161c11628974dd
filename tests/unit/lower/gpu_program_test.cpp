// GPU thread programs, run by the simulator, against the interpreter on random inputs; ragged sizes included.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "../schedule/complete_plan.h"
#include "check/check_program.h"
#include "interp/interpreter.h"
#include "interp/storage.h"
#include "ir/text.h"
#include "schedule/plan_program.h"
#include "sim/simulator.h"
#include "simulated_launch.h"

namespace tilegen::lower {
namespace {

struct Case {
  const char* file;           // below tests/files
  std::vector<int64_t> dims;  // dims and scalars, in parameter order
  const char* name;
};

ir::Program load_program(const std::string& file) {
  const auto path = std::filesystem::path(TILEGEN_SOURCE_DIR) / "tests/files" / file;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream s;
  s << in.rdbuf();
  auto program = ir::parse_program(s.str(), file, Limits{});
  EXPECT_TRUE(program) << program.error().to_text();
  if (!program) return {};
  for (const Diagnostic& d : check::check_program(*program, Limits{})) ADD_FAILURE() << d.to_text();
  return std::move(*program);
}

using test::launch_value;

// The arguments of a launch with random tensors.
struct Arguments {
  std::vector<uint64_t> slots;
  std::vector<std::vector<std::byte>> tensors;  // by parameter; empty for others
  std::vector<ir::ScalarValue> values;

  Arguments(const ir::Program& p, const std::vector<int64_t>& dims, uint32_t seed) {
    std::mt19937 random(seed);
    std::map<ir::VarId, int64_t> vars;
    size_t next = 0;
    for (const ir::Param& param : p.params) {
      if (param.kind == ir::Param::Kind::tensor) continue;
      vars[param.var] = dims.at(next++);
    }
    for (const ir::Param& param : p.params) {
      tensors.emplace_back();
      values.emplace_back();
      if (param.kind != ir::Param::Kind::tensor) {
        const ir::DType type = p.var(param.var).type;
        const int64_t v = vars[param.var];
        values.back() = {type, v, static_cast<double>(v)};
        slots.push_back(interp::value_to_bits(values.back()));
        continue;
      }
      const ir::Buffer& b = p.buffer(param.buffer);
      int64_t elements = 1;
      if (b.strides.empty()) {
        for (ir::ExprId extent : b.shape) elements *= launch_value(p.exprs, extent, vars);
      } else {
        for (size_t d = 0; d < b.shape.size(); ++d)
          elements +=
              (launch_value(p.exprs, b.shape[d], vars) - 1) * launch_value(p.exprs, b.strides[d], vars);
      }
      fill(b.type, elements, random);
      slots.push_back(std::bit_cast<uint64_t>(tensors.back().data()));
    }
  }

 private:
  void fill(ir::DType type, int64_t elements, std::mt19937& random) {
    const size_t bytes = static_cast<size_t>(ir::dtype_bytes(type));
    tensors.back().resize(static_cast<size_t>(elements) * bytes);
    for (int64_t i = 0; i < elements; ++i) {
      ir::ScalarValue v{type, static_cast<int64_t>(random() % 17) - 8,
                        (static_cast<int>(random() % 257) - 128) / 64.0};
      if (ir::is_bool(type)) v.i &= 1;
      if (type == ir::DType::u8) v.i += 8;
      const uint64_t bits = interp::value_to_bits(v);
      std::memcpy(&tensors.back()[static_cast<size_t>(i) * bytes], &bits, bytes);
    }
  }
};

double tolerance(ir::DType t) {
  switch (t) {
    case ir::DType::f16:
      return 4e-3;
    case ir::DType::bf16:
      return 3e-2;
    case ir::DType::f32:
      return 2e-5;
    case ir::DType::f64:
      return 1e-12;
    default:
      return 0;
  }
}

void expect_equal(const ir::Program& p, const Arguments& got, const Arguments& want) {
  for (size_t i = 0; i < p.params.size(); ++i) {
    if (p.params[i].kind != ir::Param::Kind::tensor) continue;
    const ir::Buffer& b = p.buffer(p.params[i].buffer);
    const size_t bytes = static_cast<size_t>(ir::dtype_bytes(b.type));
    int wrong = 0;
    for (size_t e = 0; e * bytes < want.tensors[i].size() && wrong < 3; ++e) {
      uint64_t x = 0, y = 0;
      std::memcpy(&x, &got.tensors[i][e * bytes], bytes);
      std::memcpy(&y, &want.tensors[i][e * bytes], bytes);
      const ir::ScalarValue g = interp::value_from_bits(b.type, x), w = interp::value_from_bits(b.type, y);
      const bool same = ir::is_float(b.type)
                            ? (std::isnan(g.f) && std::isnan(w.f)) || g.f == w.f ||
                                  std::abs(g.f - w.f) <= tolerance(b.type) * std::max(1.0, std::abs(w.f))
                            : g.i == w.i;
      if (same) continue;
      ++wrong;
      ADD_FAILURE() << b.name << "[" << e << "] is "
                    << (ir::is_float(b.type) ? g.f : static_cast<double>(g.i)) << ", expected "
                    << (ir::is_float(b.type) ? w.f : static_cast<double>(w.i));
    }
  }
}

// One launch of the kernels in one form, where its guards hold.
void run_lowered(const ir::Program& p, const target::Target& target, const plan::Schedule& schedule,
                 const std::vector<int64_t>& dims, bool assume_aligned, bool* ran) {
  Arguments got(p, dims, 7), want(p, dims, 7);
  *ran = true;
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    auto lowered = schedule::lowered_as_planned(
        p, static_cast<int>(k), schedule.kernels[k], target,
        assume_aligned ? schedule::Assumptions::all : schedule::Assumptions::none);
    if (!lowered) {
      ADD_FAILURE() << lowered.error().to_text();
      return;
    }
    for (const std::string& broken : thread::verify_thread_program(*lowered)) ADD_FAILURE() << broken;
    if (!sim::guards_hold(*lowered, got.slots)) {
      *ran = false;
      return;
    }
    std::vector<sim::TensorExtent> extents;
    for (const auto& tensor : got.tensors) extents.push_back({0, static_cast<int64_t>(tensor.size())});
    auto ran_it = sim::simulate(*lowered, target, got.slots, extents, {});
    if (!ran_it) {
      ADD_FAILURE() << ran_it.error().to_text();
      return;
    }
    for (const sim::Finding& f : ran_it->findings) ADD_FAILURE() << f.to_text();
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << thread::print_thread_program(*lowered);
      return;
    }
  }
  const Checked outcome = interp::interpret(p, want.slots);
  EXPECT_TRUE(outcome) << outcome.error().to_text();
  expect_equal(p, got, want);
}

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class GpuProgram : public ::testing::TestWithParam<Case> {};

TEST_P(GpuProgram, ComputesWhatTheInterpreterDoes) {
  const ir::Program p = load_program(GetParam().file);
  ASSERT_FALSE(HasFailure());
  const target::Target target = *target::find_target("sm_80");
  auto schedule = schedule::plan_program(p, target, {});
  ASSERT_TRUE(schedule) << schedule.error().to_text();
  bool ran = false;
  run_lowered(p, target, *schedule, GetParam().dims, true, &ran);
  run_lowered(p, target, *schedule, GetParam().dims, false, &ran);
  EXPECT_TRUE(ran) << "the form without assumptions runs always";
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuProgram,
    ::testing::Values(Case{"lower/elementwise_ragged.tl", {1000}, "ragged_aligned"},
                      Case{"lower/elementwise_ragged.tl", {769}, "ragged_odd"},
                      Case{"lower/branch_changes_condition.tl", {}, "branches"},
                      Case{"lower/strided_tensors.tl", {32, 72}, "strided"},
                      Case{"lower/strided_tensors.tl", {16, 65}, "strided_odd_pitch"},
                      Case{"lower/wide_stores.tl", {20, 136}, "wide"},
                      Case{"lower/wide_stores.tl", {17, 131}, "wide_odd"},
                      Case{"lower/row_softmax.tl", {3}, "row_softmax"},
                      Case{"lower/reduce_both_axes.tl", {48}, "both_axes"},
                      Case{"lower/streamed_beside_kept.tl", {128}, "streamed"},
                      Case{"plan/softmax.tl", {2}, "softmax"}, Case{"plan/layernorm.tl", {2, 1}, "layernorm"},
                      Case{"plan/convert_replication.tl", {}, "convert_replication"},
                      Case{"plan/convert_shared_bounce.tl", {}, "convert_shared_bounce"},
                      Case{"plan/convert_doubles.tl", {}, "convert_doubles"},
                      Case{"plan/convert_shuffle.tl", {}, "convert_shuffle"},
                      Case{"plan/bias_replication.tl", {}, "bias_replication"},
                      Case{"plan/chained_gemm.tl", {130}, "chained_gemm"},
                      Case{"plan/gemm_bias_relu.tl", {136, 136, 72}, "gemm_bias_relu"},
                      Case{"plan/flash_attention.tl", {70, 128, 1}, "flash_attention"},
                      Case{"text/all_dtypes.tl", {130, 1, 2, 3, 4, 5, 6, 7, 8, 1}, "all_dtypes"},
                      Case{"text/all_dtypes.tl", {128, 1, 2, 3, 4, 5, 6, 7, 8, 1}, "all_dtypes_whole"},
                      Case{"text/elementwise_add.tl", {33, 132}, "add"},
                      Case{"text/elementwise_add.tl", {33, 131}, "add_odd"},
                      Case{"text/elementwise_gelu.tl", {1033}, "gelu"},
                      Case{"text/expressions.tl", {200, 2, 3, 4, 1}, "expressions"},
                      Case{"text/loops_and_branches.tl", {128, 70, 1, 3}, "loops_and_branches"},
                      Case{"text/rmsnorm.tl", {2, 1}, "rmsnorm"},
                      Case{"text/row_reductions.tl", {10}, "row_reductions"},
                      Case{"text/strided.tl", {20, 68, 72}, "strided_tiles"},
                      Case{"text/strided.tl", {20, 68, 80}, "strided_tiles_pitch"},
                      Case{"lower/fragment_parts.tl", {}, "fragment_parts"},
                      Case{"lower/copies_of_points.tl", {}, "copies_of_points"},
                      Case{"lower/scalars_from_tiles.tl", {}, "scalars_from_tiles"},
                      Case{"text/transpose.tl", {40, 36}, "transpose"},
                      Case{"text/transpose.tl", {33, 37}, "transpose_odd"}),
    [](const auto& info) { return info.param.name; });

TEST(GpuProgram, AnyOrderOfBlocks) {
  const target::Target target = *target::find_target("sm_80");
  for (const char* file : {"lower/wide_stores.tl", "lower/grid_of_three.tl"}) {
    const ir::Program p = load_program(file);
    auto schedule = schedule::plan_program(p, target, {});
    ASSERT_TRUE(schedule) << schedule.error().to_text();
    for (const auto& [order, group] :
         {std::pair("row_major", 1), {"column_major", 1}, {"grouped", 2}, {"grouped", 3}, {"grouped", 64}}) {
      schedule->kernels[0].raster->order = order;
      schedule->kernels[0].raster->group = group;
      bool ran = false;
      run_lowered(p, target, *schedule, {67, 264}, true, &ran);
      EXPECT_TRUE(ran);
      ASSERT_FALSE(HasFailure()) << file << ", " << order << " " << group;
    }
  }
}

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

// Threads that hold no column of a tile of 24 do not push a block to the edge.
TEST(GpuProgram, BlocksInsideTheTensorsCountNoPadding) {
  auto p = ir::parse_program(R"(tl 1 program padded
dim m
dim n
dim k
tensor A: f32[k, m] readonly
tensor B: f32[k, n] readonly
tensor C: f32[m, n]

kernel gemm grid (y: ceildiv(m, 8), x: ceildiv(n, 24)) {
  alloc a: shared f32[1, 8]
  alloc b: shared f32[1, 24]
  alloc c: fragment f32[8, 24]
  fill c, 0.0f32
  pipelined step in 0 .. k stages 2 {
    copy A[step :+ 1, y * 8 :+ 8] -> a
    copy B[step :+ 1, x * 24 :+ 24] -> b
    gemm a, b -> c {transpose_a, tf32}
  }
  copy c -> C[y * 8 :+ 8, x * 24 :+ 24]
}
)",
                             "padded.tl", Limits{});
  ASSERT_TRUE(p) << p.error().to_text();
  const auto target = *target::find_target("sm_80");
  auto schedule = schedule::plan_program(*p, target, {});
  ASSERT_TRUE(schedule) << schedule.error().to_text();
  auto lowered = schedule::lowered_as_planned(*p, 0, schedule->kernels[0], target);
  ASSERT_TRUE(lowered) << lowered.error().to_text();
  const std::string text = thread::print_thread_program(*lowered);
  EXPECT_NE(text.find("* 24 + 23 < n {"), std::string::npos) << text;
  EXPECT_EQ(text.find("* 24 + 31 < n"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilegen::lower
