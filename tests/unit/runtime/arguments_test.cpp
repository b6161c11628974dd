#include "runtime/arguments.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <string>

#include "ir/text.h"
#include "runtime/argument_plan.h"
#include "runtime/dim_solver.h"

namespace tilegen::runtime {
namespace {

using Kind = Argument::Kind;

ir::Program parse(const std::string& declarations, const std::string& body = "") {
  const std::string text = "tl 1 program p\n" + declarations + "kernel k grid(block: 1) {\n" + body + "}\n";
  auto program = ir::parse_program(text, "p.tl", Limits());
  EXPECT_TRUE(program) << (program ? "" : program.error().to_text());
  return program ? std::move(*program) : ir::Program();
}

alignas(64) char memory[64];

// Arguments borrow their shapes.
std::span<const int64_t> kept(std::vector<int64_t> extents) {
  static std::deque<std::vector<int64_t>> all;
  return all.emplace_back(std::move(extents));
}

Argument tensor(ir::DType t, std::vector<int64_t> shape, std::vector<int64_t> strides = {},
                void* at = memory) {
  Argument a;
  a.kind = Kind::tensor;
  a.bits = reinterpret_cast<uint64_t>(at);
  a.type = t;
  a.shape = kept(std::move(shape));
  a.strides = kept(std::move(strides));
  return a;
}
Argument pointer(void* at = memory) {
  Argument a;
  a.kind = Kind::pointer;
  a.bits = reinterpret_cast<uint64_t>(at);
  return a;
}
Argument integer(int64_t v) {
  Argument a;
  a.kind = Kind::integer;
  a.bits = static_cast<uint64_t>(v);
  return a;
}
Argument floating(double v) {
  Argument a;
  a.kind = Kind::floating;
  a.bits = std::bit_cast<uint64_t>(v);
  return a;
}

using Slots = std::vector<uint64_t>;

// The plan may leave a launch to the binder; what it settles itself must come out the same.
void expect_plan_agrees(const ir::Program& p, const std::vector<Argument>& arguments, const Slots* expected) {
  Slots planned(p.params.size(), ~uint64_t{0});
  if (!ArgumentPlan(p).bind(arguments, {}, planned)) return;
  ASSERT_TRUE(expected) << "the plan accepts what the binder refuses";
  EXPECT_EQ(planned, *expected);
}

Slots bind(const ir::Program& p, const std::vector<Argument>& arguments) {
  auto slots = bind_arguments(p, arguments);
  EXPECT_TRUE(slots) << (slots ? "" : slots.error().to_text());
  if (slots) expect_plan_agrees(p, arguments, &*slots);
  return slots ? *slots : Slots();
}

std::string refusal(const ir::Program& p, const std::vector<Argument>& arguments) {
  const auto slots = bind_arguments(p, arguments);
  if (slots) return "accepted";
  expect_plan_agrees(p, arguments, nullptr);
  EXPECT_EQ(slots.error().status(), StatusCode::launch_argument);
  EXPECT_EQ(slots.error().diagnostics[0].stage, "launch");
  EXPECT_FALSE(slots.error().diagnostics[0].hint.empty());
  return slots.error().to_text();
}

void expect_refusal(const ir::Program& p, const std::vector<Argument>& arguments, const std::string& part) {
  const std::string text = refusal(p, arguments);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

const uint64_t kAt = reinterpret_cast<uint64_t>(memory);

TEST(Arguments, DimsAreSolvedFromExtents) {
  const ir::Program p = parse("dim m\ndim n\ntensor A: f32[m, n]\n");
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {3, 5})}), (Slots{3, 5, kAt}));
  EXPECT_EQ(bind(p, {Argument(), Argument(), tensor(ir::DType::f32, {3, 5})}), (Slots{3, 5, kAt}));
  EXPECT_EQ(bind(p, {integer(3), Argument(), tensor(ir::DType::f32, {3, 5})}), (Slots{3, 5, kAt}));
  expect_refusal(p, {integer(4), Argument(), tensor(ir::DType::f32, {3, 5})}, "(m = 4 from argument 'm')");
}

TEST(Arguments, LinearEquationsAreSolved) {
  const ir::Program p = parse("dim m\ndim n\ntensor A: f32[2 * m + 1]\ntensor B: f32[m + 3 * n]\n");
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {9}), tensor(ir::DType::f32, {10})}), (Slots{4, 2, kAt, kAt}));
  expect_refusal(p, {tensor(ir::DType::f32, {8}), tensor(ir::DType::f32, {10})},
                 "[launch_shape] A: extent 0 of tensor 'A' is 8, which no value of its dimensions gives");
  expect_refusal(p, {tensor(ir::DType::f32, {9}), tensor(ir::DType::f32, {1})}, "no value of its dimensions");
}

// A quotient gives no unique dim; it is checked once the dim is known.
TEST(Arguments, OtherEquationsWait) {
  const ir::Program p = parse("dim m\ntensor A: f32[(m + 7) // 8]\ntensor B: f32[m]\n");
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {2}), tensor(ir::DType::f32, {10})}), (Slots{10, kAt, kAt}));
  expect_refusal(p, {tensor(ir::DType::f32, {3}), tensor(ir::DType::f32, {10})},
                 "extent 0 of tensor 'A' is 3");
  expect_refusal(parse("dim m\ntensor A: f32[m // 8]\n"), {tensor(ir::DType::f32, {3})},
                 "[launch_kind] m: dimension 'm' cannot be found");
}

TEST(Arguments, StridesGiveDims) {
  const ir::Program p = parse("dim m\ndim ld\ntensor A: f32[m, 4] strides [ld, 1]\n");
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {3, 4}, {10, 1})}), (Slots{3, 10, kAt}));
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {3, 4})}), (Slots{3, 4, kAt}));  // compact
  expect_refusal(p, {tensor(ir::DType::f32, {3, 4}, {10, 2})},
                 "[launch_stride] A: stride 1 of tensor 'A' is 2");
  // A row alone has no row stride to speak of, so nothing says what ld is.
  expect_refusal(p, {tensor(ir::DType::f32, {1, 4}, {10, 1})}, "[launch_kind] ld");
}

TEST(Arguments, ExtentThatWaitsForAStride) {
  const ir::Program p = parse("dim m\ndim ld\ntensor A: f32[2, m + ld] strides [ld, 1]\n");
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {2, 7}, {5, 1})}), (Slots{2, 5, kAt}));
}

TEST(Arguments, CompactTensorsMustBe) {
  const ir::Program p = parse("dim m\ntensor A: f32[m, 4]\n");
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {3, 4}, {4, 1})}), (Slots{3, kAt}));
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {1, 4}, {99, 1})}), (Slots{1, kAt}));  // meaningless stride
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {0, 4}, {99, 7})}), (Slots{0, kAt}));
  expect_refusal(p, {tensor(ir::DType::f32, {3, 4}, {5, 1})}, "so it would be 4");
  expect_refusal(p, {tensor(ir::DType::f32, {3, 4}, {5})}, "[launch_rank]");
}

TEST(Arguments, EmptyTensorsMayBeNull) {
  const ir::Program p =
      parse("dim m\ntensor A: f32[m, 4]\n", "alloc x: shared f32[1, 4]\ncopy A[0 :+ 1, 0 :+ 4] -> x\n");
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {0, 4}, {}, nullptr)}), (Slots{0, 0}));
  EXPECT_EQ(bind(p, {integer(0), pointer(nullptr)}), (Slots{0, 0}));
  expect_refusal(p, {integer(1), pointer(nullptr)}, "[launch_kind] A: the address of tensor 'A' is null");
}

TEST(Arguments, TensorsThatNoKernelAccessesMayBeNull) {
  const std::string tensors = "dim m\ntensor A: f32[m, 4]\ntensor B: i32[m]\n";
  const std::string reads[] = {"copy A[0 :+ 1, 0 :+ 4] -> x\n",
                               "parallel i, j in 1, 4 {\nx[i, j] = A[i, j]\n}\n",
                               "if A[0, 0] > 0.0f32 {\nfill x, 0.0f32\n}\n", "fill x, A[0, 0]\n"};
  for (const std::string& read : reads) {
    const ir::Program p = parse(tensors, "alloc x: shared f32[1, 4]\n" + read);
    EXPECT_EQ(bind(p, {integer(3), pointer(), pointer(nullptr)}), (Slots{3, kAt, 0})) << read;
    expect_refusal(p, {integer(3), pointer(nullptr), pointer()},
                   "[launch_kind] A: the address of tensor 'A' is null");
  }
  const ir::Program writes = parse(tensors, "parallel i in 1 {\nB[i] = 1i32\n}\n");
  EXPECT_EQ(bind(writes, {integer(3), pointer(nullptr), pointer()}), (Slots{3, 0, kAt}));
  expect_refusal(writes, {integer(3), pointer(), pointer(nullptr)},
                 "[launch_kind] B: the address of tensor 'B' is null");
}

TEST(Arguments, ScalarsAreTheirBits) {
  const ir::Program p =
      parse("scalar h: f16\nscalar f: f32\nscalar d: f64\nscalar i: i8\nscalar b: bool\nscalar l: i64\n");
  EXPECT_EQ(bind(p, {floating(1.0), floating(-2.0), floating(0.5), integer(-1), integer(1), integer(-1)}),
            (Slots{0x3c00, 0xc0000000u, std::bit_cast<uint64_t>(0.5), 0xff, 1, ~uint64_t{0}}));
  const auto with = [&](Argument i, Argument b) {
    return std::vector<Argument>{floating(0), floating(0), floating(0), i, b, integer(0)};
  };
  expect_refusal(p, with(integer(128), integer(0)), "[launch_dtype] i: 128 is not a value of i8");
  expect_refusal(p, with(integer(0), integer(2)), "[launch_dtype] b");
  expect_refusal(p, with(floating(1), integer(0)), "[launch_kind] i: expected an integer");
  Argument typed = integer(3);
  typed.type = ir::DType::i32;
  expect_refusal(p, with(typed, integer(0)), "the argument says i32");
}

TEST(Arguments, FactsAreChecked) {
  const ir::Program p = parse("dim m >= 8 <= 64 divisible 8\ntensor A: f32[m]\n");
  EXPECT_EQ(bind(p, {tensor(ir::DType::f32, {64})}), (Slots{64, kAt}));
  expect_refusal(p, {tensor(ir::DType::f32, {0})}, "at least 8");
  expect_refusal(p, {tensor(ir::DType::f32, {72})}, "at most 64");
  expect_refusal(p, {tensor(ir::DType::f32, {12})},
                 "'m' is 12 (from extent 0 of tensor 'A'), the program says it is divisible by 8");
  const ir::Program plain = parse("dim m\ntensor A: f32[m]\n");
  expect_refusal(plain, {integer(-1), pointer()}, "[launch_fact] m: 'm' is -1");
}

TEST(Arguments, ShapesOfPointersAreEvaluated) {
  const ir::Program p = parse("dim m\ntensor A: f32[m - 4, m * m]\n");
  EXPECT_EQ(bind(p, {integer(5), pointer()}), (Slots{5, kAt}));
  expect_refusal(p, {integer(3), pointer()}, "extent 0 of tensor 'A' would be -1");
  expect_refusal(p, {integer(int64_t{1} << 40), pointer()},
                 "[launch_shape] A: extent 1 of tensor 'A' overflows");
  expect_refusal(p, {integer(int64_t{1} << 31), pointer()}, "overflows 64 bits");
}

TEST(Arguments, StridesOfPointersAreEvaluated) {
  const ir::Program p = parse("dim m\ndim ld\ntensor A: f32[m] strides [ld - 8]\n");
  EXPECT_EQ(bind(p, {integer(5), integer(8), pointer()}), (Slots{5, 8, kAt}));
  expect_refusal(p, {integer(5), integer(7), pointer()}, "stride 0 of tensor 'A' would be -1");
  expect_refusal(p, {integer(5), integer(int64_t{1} << 62), pointer()}, "it may be at most 281474976710656");
}

TEST(Arguments, ScalarsMayStandInExtents) {
  const ir::Program p = parse("scalar rows: i64\ntensor A: f32[rows, 2]\n");
  EXPECT_EQ(bind(p, {integer(3), tensor(ir::DType::f32, {3, 2})}), (Slots{3, kAt}));
  expect_refusal(p, {integer(4), tensor(ir::DType::f32, {3, 2})}, "the program says 4");
}

TEST(Arguments, MisalignedAndForeignTensors) {
  const ir::Program p = parse("tensor A: f32[4]\ntensor B: i8[4]\n");
  EXPECT_EQ(bind(p, {pointer(), pointer(memory + 1)}), (Slots{kAt, kAt + 1}));
  expect_refusal(p, {pointer(memory + 2), pointer()}, "[launch_alignment] A");
  Argument far = tensor(ir::DType::i8, {4});
  far.place = {MemoryPlace::cuda, 0};
  expect_refusal(p, {pointer(), far}, "[launch_device] B: tensor 'B' lives on cuda:0");
  expect_refusal(p, {pointer(), tensor(ir::DType::u8, {4})},
                 "[launch_dtype] B: tensor 'B' is i8, the argument is u8");
  expect_refusal(p, {pointer(), tensor(ir::DType::none, {4})}, "a type the language does not have");
  expect_refusal(p, {pointer(), tensor(ir::DType::i8, {4, 1})}, "[launch_rank]");
  expect_refusal(p, {pointer(), tensor(ir::DType::i8, {-4})}, "[launch_shape]");
  expect_refusal(p, {pointer()}, "[launch_arity] p: expected 2 arguments (A, B), got 1");
}

// Hostile descriptions must not overflow anything on the way to their refusal.
TEST(Arguments, HugeExtents) {
  const ir::Program p = parse("dim m\ndim n\ndim ld\ntensor A: f64[m, n, 3] strides [ld, 3, 1]\n");
  const int64_t big = std::numeric_limits<int64_t>::max();
  expect_refusal(p, {tensor(ir::DType::f64, {big, big, 3})}, "launch_");
  expect_refusal(p, {tensor(ir::DType::f64, {big, big, big}, {big, big, big})}, "launch_");
}

// Doubling forty times is a tree of 2^40 leaves over 40 nodes.
TEST(Arguments, SharedSubexpressionsCostOnce) {
  ir::Program p = parse("dim m\ntensor A: f32[m]\n");
  ir::ExprId e = p.buffers[0].shape[0];
  for (int i = 0; i < 40; ++i) e = p.exprs.binary(ir::ExprOp::max, p.exprs.add(e, e), e);
  p.buffers[0].shape[0] = e;
  EXPECT_EQ(bind(p, {integer(0), tensor(ir::DType::f32, {0})}), (Slots{0, kAt}));
  expect_refusal(p, {tensor(ir::DType::f32, {0})}, "cannot be found");
}

// Launches of these kinds must not reach the binder, which allocates.
TEST(ArgumentPlan, SettlesTheUsualLaunches) {
  const auto settles = [](const std::string& declarations, const std::vector<Argument>& arguments) {
    const ir::Program p = parse(declarations);
    Slots slots(p.params.size());
    const bool settled = ArgumentPlan(p).bind(arguments, {}, slots);
    if (settled) {
      EXPECT_EQ(slots, bind(p, arguments)) << declarations;
    }
    return settled;
  };
  const auto f32 = ir::DType::f32;
  EXPECT_TRUE(settles("dim m\ndim n\ntensor A: f32[m, n]\n", {tensor(f32, {3, 5})}));
  EXPECT_TRUE(settles("dim m\ndim n\ntensor A: f32[m, n]\n", {integer(3), integer(5), pointer()}));
  EXPECT_TRUE(settles("dim m\ntensor A: f32[2 * m + 1, 4]\n", {tensor(f32, {9, 4}, {4, 1})}));
  EXPECT_TRUE(settles("dim m\ntensor A: f32[10 - m]\n", {tensor(f32, {3})}));
  EXPECT_TRUE(settles("dim m\ntensor A: f32[(m + 7) // 8]\ntensor B: f32[m]\n",
                      {tensor(f32, {2}), tensor(f32, {10})}));
  EXPECT_TRUE(
      settles("dim m\ndim ld\ntensor A: f32[m, 4] strides [ld, 1]\n", {tensor(f32, {3, 4}, {10, 1})}));
  EXPECT_TRUE(
      settles("dim m\ndim ld\ntensor A: f32[m, 4] strides [ld, 1]\n", {integer(3), integer(10), pointer()}));
  EXPECT_TRUE(settles("dim m >= 8 <= 64 divisible 8\nscalar s: f32\nscalar c: i8\ntensor A: f32[m]\n",
                      {floating(2.5), integer(-3), tensor(f32, {16})}));
  EXPECT_TRUE(settles("scalar rows: i64\ntensor A: f32[rows, 2]\n", {integer(3), tensor(f32, {3, 2})}));
  EXPECT_TRUE(settles("dim m\ntensor A: f32[m, 4]\n", {tensor(f32, {0, 4}, {}, nullptr)}));
  EXPECT_FALSE(settles("dim m\ntensor A: f32[m // 8]\n", {tensor(f32, {3})}));
}

// Values alone, at the ends of what the program and the tensors allow: what is settled is what the binder
// says, and what the binder takes is settled where no tensor is empty.
TEST(ArgumentPlan, ValuesAtTheirEnds) {
  const ir::Program p = parse(
      "dim m >= 12 <= 1099511627776 divisible 12\ndim n\nscalar s: f32\ntensor A: f32[m, n]\ntensor B: f16[3 "
      "* m + 1, 2]\n");
  const ArgumentPlan plan(p);
  int taken = 0;
  for (const int64_t m : {int64_t{-12}, int64_t{0}, int64_t{12}, int64_t{13}, int64_t{16}, int64_t{36},
                          int64_t{1099511627772}, int64_t{1099511627784}})
    for (const int64_t n :
         {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1} << 20, int64_t{1} << 61, INT64_MAX})
      for (const double s : {2.5, 1e300, std::numeric_limits<double>::quiet_NaN()})
        for (const uint64_t a : {uint64_t{0}, uint64_t{2}, uint64_t{4096}})
          for (const auto& [type, b] : {std::pair{ir::DType::none, 8192},
                                        {ir::DType::f16, 8193},
                                        {ir::DType::f16, 8194},
                                        {ir::DType::bf16, 8192}}) {
            std::vector<Argument> args = {integer(m), integer(n), floating(s), pointer(), pointer()};
            args[3].bits = a;
            args[4].bits = static_cast<uint64_t>(b), args[4].type = type;
            Slots planned(p.params.size());
            const bool settled = plan.bind(args, {}, planned);
            const auto slots = bind_arguments(p, args);
            ASSERT_EQ(settled, static_cast<bool>(slots)) << m << " " << n << " " << a << " " << b;
            if (!settled) continue;
            ASSERT_EQ(planned, *slots) << m << " " << n << " " << s;
            ++taken;
          }
  EXPECT_GT(taken, 50);
}

// Index arithmetic on what extents and strides are made of does not wrap, also where the tensor is empty;
// other dims are any number.
TEST(Arguments, DimsOfTensorsAreWithinReach) {
  const ir::Program p =
      parse("dim m\ndim half\ndim ld\ndim far\ntensor A: f32[m, 2 * half] strides [ld, 1]\n");
  constexpr int64_t most = ir::kMaxExtent;
  const ArgumentPlan plan(p);
  for (const auto& [m, k, ld] : {std::array{int64_t{0}, most, most}, std::array{most, int64_t{0}, int64_t{1}},
                                 std::array{int64_t{1}, most / 2, most}}) {
    Slots slots(p.params.size());
    EXPECT_TRUE(
        plan.bind(std::vector<Argument>{integer(m), integer(k), integer(ld), integer(INT64_MAX), pointer()},
                  {}, slots));
    EXPECT_EQ(bind(p, {integer(m), integer(k), integer(ld), integer(INT64_MAX), pointer()}), slots);
  }
  for (const auto& [m, k, ld] :
       {std::array{int64_t{0}, most + 1, int64_t{1}}, std::array{most + 1, int64_t{0}, int64_t{1}},
        std::array{int64_t{1}, int64_t{1}, most + 1}}) {
    const std::vector<Argument> args = {integer(m), integer(k), integer(ld), integer(1), pointer()};
    Slots slots(p.params.size());
    EXPECT_FALSE(plan.bind(args, {}, slots));
    expect_refusal(p, args, "it may be at most 281474976710656");
  }
}

// No argument gives a workspace, so nothing tells a dimension that only its shape has.
TEST(Arguments, WorkspacesAreNoArguments) {
  const ir::Program p =
      parse("dim m\ndim n\ntensor A: f32[m]\ntensor W: f32[m, n] workspace\ntensor B: f32[m]\n");
  const auto f32 = ir::DType::f32;
  EXPECT_EQ(bind(p, {integer(3), integer(5), pointer(), pointer()}), (Slots{3, 5, kAt, 0, kAt}));
  EXPECT_EQ(bind(p, {Argument(), integer(5), tensor(f32, {3}), pointer()}), (Slots{3, 5, kAt, 0, kAt}));
  EXPECT_NE(refusal(p, {tensor(f32, {3}), tensor(f32, {3})}).find("dimension 'n' cannot be found"),
            std::string::npos);
  EXPECT_NE(refusal(p, {integer(3), integer(5), pointer(), pointer(), pointer()})
                .find("expected 4 arguments (m, n, A, B), or 2 without the dimensions, got 5"),
            std::string::npos);
}

// Random extents and arguments, right and wrong ones, through both.
TEST(ArgumentPlan, AgreesWithTheBinder) {
  std::mt19937 random(1);
  const auto pick = [&](const auto& list) { return list[random() % std::size(list)]; };
  const char* const kExtents[] = {"m",         "n",        "4", "m + 1", "2 * n", "m - n", "(m + 3) // 4",
                                  "max(m, n)", "3 * m - 6"};
  const int64_t kNumbers[] = {0, 1, 2, 3, 4, 5, 6, 8, 12, -1, int64_t{1} << 62};
  int settled = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = "dim m\ndim n divisible 2\ntensor A: f32[";
    text += std::string(pick(kExtents)) + ", " + pick(kExtents) + "]\n";
    const size_t second = random() % 4 == 0 ? 2 : 1;
    if (second == 2) text += std::string("tensor W: f32[") + pick(kExtents) + "] workspace\n";
    text += std::string("tensor B: f32[") + pick(kExtents) + "]";
    if (random() % 3 == 0) text += " strides [" + std::string(pick(kExtents)) + "]";
    if (random() % 4 == 0) text += " optional";
    const ir::Program p = parse(text + "\n");
    const int64_t m = pick(kNumbers), n = pick(kNumbers);
    const auto extent = [&](size_t buffer, size_t d) {
      DimSolver solver(p);
      solver.set(p.params[0].var, m, "");
      solver.set(p.params[1].var, n, "");
      const auto value = solver.evaluate(p.buffers[buffer].shape[d]);
      return value && random() % 16 != 0 ? *value : pick(kNumbers);
    };
    std::vector<Argument> args;
    if (random() % 2) args = {random() % 2 ? integer(m) : Argument(), random() % 2 ? integer(n) : Argument()};
    args.push_back(random() % 4 ? tensor(ir::DType::f32, {extent(0, 0), extent(0, 1)}) : pointer());
    std::vector<int64_t> strides;
    if (random() % 2) strides = {pick(kNumbers)};
    args.push_back(random() % 4 ? tensor(ir::DType::f32, {extent(second, 0)}, strides)
                                : pointer(random() % 3 ? memory : nullptr));
    Slots planned(p.params.size());
    if (!ArgumentPlan(p).bind(args, {}, planned)) continue;
    ++settled;
    const auto slots = bind_arguments(p, args);
    ASSERT_TRUE(slots) << text << ": " << slots.error().to_text();
    ASSERT_EQ(planned, *slots) << text;
  }
  EXPECT_GT(settled, 500);
}

}  // namespace
}  // namespace tilegen::runtime
