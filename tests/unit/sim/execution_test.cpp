// What thread programs compute under the simulator.
#include <numeric>
#include <random>

#include "gpu_program.h"
#include "sim/lanes.h"
#include "support/diag_codes.h"

namespace tilegen::sim::test {
namespace {

TEST(SimExecution, ThreadsAndBlocksWriteTheirElements) {
  GpuProgram g(64, 3);
  const MemoryId out = g.tensor("Out", DType::i32);
  const E at = g.block() * 64 + g.thread();
  g.store(out, at, cast(DType::i32, at * 3 + g.warp() * 1000));
  std::vector<int32_t> v(192, -1);
  const SimResult r = run(g, Arguments().tensor(v));
  EXPECT_EQ(texts(r), "");
  for (int i = 0; i < 192; ++i) EXPECT_EQ(v[i], i * 3 + (i % 64) / 32 * 1000);
}

TEST(SimExecution, BlocksOfPartialWarps) {
  GpuProgram g(40);
  const MemoryId out = g.tensor("Out", DType::i32);
  g.store(out, g.thread(), cast(DType::i32, g.thread()));
  std::vector<int32_t> v(40, -1);
  EXPECT_EQ(texts(run(g, Arguments().tensor(v))), "");
  for (int i = 0; i < 40; ++i) EXPECT_EQ(v[i], i);
}

TEST(SimExecution, BranchesDivergeAndMeetAgain) {
  GpuProgram g(32);
  const MemoryId out = g.tensor("Out", DType::i32);
  const MemoryId acc = g.registers("acc", DType::i32, 1);
  const auto number = [&](int64_t v) { return g.num(static_cast<double>(v), DType::i32); };
  g.store(acc, g.i(0), number(1));
  g.branch(
      g.thread() % 2 == 0,
      [&] {
        g.branch(g.thread() % 4 == 0, [&] { g.store(acc, g.i(0), number(10)); });
        g.store(acc, g.i(0), g.load(acc, g.i(0)) + 5);
      },
      [&] { g.store(acc, g.i(0), number(100)); });
  g.store(out, g.thread(), g.load(acc, g.i(0)) + 1);
  std::vector<int32_t> v(32);
  EXPECT_EQ(texts(run(g, Arguments().tensor(v))), "");
  for (int t = 0; t < 32; ++t) EXPECT_EQ(v[t], t % 2 ? 101 : t % 4 == 0 ? 16 : 7);
}

TEST(SimExecution, LoopsHaveTripCountsPerLane) {
  GpuProgram g(32);
  const MemoryId out = g.tensor("Out", DType::i64);
  const MemoryId acc = g.registers("acc", DType::i64, 1);
  g.store(acc, g.i(0), g.i(0));
  g.loop(g.thread() / 3, LoopForm::serial, [&](E outer) {
    g.loop(g.thread() % 3, LoopForm::serial,
           [&](E inner) { g.store(acc, g.i(0), g.load(acc, g.i(0)) + outer * 10 + inner); });
  });
  g.store(out, g.thread(), g.load(acc, g.i(0)));
  std::vector<int64_t> v(32);
  EXPECT_EQ(texts(run(g, Arguments().tensor(v))), "");
  for (int t = 0; t < 32; ++t) {
    int64_t sum = 0;
    for (int o = 0; o < t / 3; ++o)
      for (int i = 0; i < t % 3; ++i) sum += o * 10 + i;
    EXPECT_EQ(v[t], sum) << t;
  }
}

// Two loops of the same variable, and an expression that both use: each has its own value.
TEST(SimExecution, SiblingLoopsOfOneVariable) {
  GpuProgram g(32);
  const MemoryId out = g.tensor("Out", DType::i64);
  const MemoryId acc = g.registers("acc", DType::i64, 1);
  const ir::VarId v = g.p.add_var("i", ir::VarKind::loop);
  const E i{&g.p.exprs, g.p.exprs.var(v)};
  g.store(acc, g.i(0), g.i(0));
  for (int64_t extent : {3, 5}) {
    thread::Loop loop{v, g.p.exprs.const_int(extent), LoopForm::serial, {}};
    g.open.push_back(&loop.body);
    g.store(acc, g.i(0), g.load(acc, g.i(0)) + (i * 7 + g.thread()));
    g.open.pop_back();
    g.add(std::move(loop), "loop");
  }
  g.store(out, g.thread(), g.load(acc, g.i(0)));
  std::vector<int64_t> result(32);
  EXPECT_EQ(texts(run(g, Arguments().tensor(result))), "");
  for (int t = 0; t < 32; ++t) EXPECT_EQ(result[t], 7 * (3 + 10) + 8 * t);
}

TEST(SimExecution, SharedMemoryPassesValuesBetweenWarps) {
  for_each_schedule([](const SimOptions& options) {
    GpuProgram g(128, 4);
    const MemoryId in = g.tensor("In", DType::f32), out = g.tensor("Out", DType::f32);
    const MemoryId tile = g.shared("Tile", DType::f32, 128);
    const E base = g.block() * 128;
    g.store(tile, g.thread(), g.load(in, base + g.thread()));
    g.barrier();
    g.store(out, base + g.thread(), g.load(tile, g.i(127) - g.thread()));
    std::vector<float> x(512), y(512);
    std::iota(x.begin(), x.end(), 0.5f);
    EXPECT_EQ(texts(run(g, Arguments().tensor(x).tensor(y), options)), "");
    for (int i = 0; i < 512; ++i) EXPECT_EQ(y[i], x[i / 128 * 128 + 127 - i % 128]);
  });
}

// Registers permuted within one vectorized store: all are read before one is written.
TEST(SimExecution, VectorizedStoresReadBeforeTheyWrite) {
  GpuProgram g(32);
  const MemoryId in = g.tensor("In", DType::i32), out = g.tensor("Out", DType::i32);
  const MemoryId r = g.registers("r", DType::i32, 4);
  g.loop(g.i(4), LoopForm::vectorized, [&](E v) { g.store(r, v, g.load(in, g.thread() * 4 + v)); });
  g.loop(g.i(4), LoopForm::vectorized, [&](E v) { g.store(r, v, g.load(r, g.i(3) - v)); });
  g.loop(g.i(4), LoopForm::vectorized, [&](E v) { g.store(out, g.thread() * 4 + v, g.load(r, v)); });
  std::vector<int32_t> x(128), y(128);
  std::iota(x.begin(), x.end(), 1);
  EXPECT_EQ(texts(run(g, Arguments().tensor(x).tensor(y))), "");
  for (int i = 0; i < 128; ++i) EXPECT_EQ(y[i], x[i / 4 * 4 + 3 - i % 4]);
}

TEST(SimExecution, PredicatesKeepAccessesFromHappening) {
  GpuProgram g(32);
  const E n = g.dim("n");
  const MemoryId in = g.tensor("In", DType::i32), out = g.tensor("Out", DType::i32);
  const E inside = g.thread() < n;
  g.store_if(out, g.thread(), g.load_if(in, g.thread() + 1, g.thread() + 1 < n), inside);
  std::vector<int32_t> x(20), y(20, -1);
  std::iota(x.begin(), x.end(), 1);
  EXPECT_EQ(texts(run(g, Arguments().dim(20).tensor(x).tensor(y))), "");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(y[i], i < 19 ? i + 2 : 0);
}

TEST(SimExecution, ShufflesGiveTheValueOfAnotherLane) {
  for (const bool butterfly : {true, false}) {
    GpuProgram g(64);
    const MemoryId out = g.tensor("Out", DType::i32);
    const MemoryId r = g.registers("r", DType::i32, 1);
    using Mode = thread::Shuffle::Mode;
    const E source = butterfly ? g.i(5) : (g.lane() * 3) % 32;
    g.add(thread::Shuffle{butterfly ? Mode::butterfly : Mode::indexed, r, g.i(0).id,
                          cast(DType::i32, g.thread() * 2).id, source.id},
          "shuffle");
    g.store(out, g.thread(), g.load(r, g.i(0)));
    std::vector<int32_t> v(64);
    EXPECT_EQ(texts(run(g, Arguments().tensor(v))), "");
    for (int t = 0; t < 64; ++t)
      EXPECT_EQ(v[t], 2 * (t / 32 * 32 + (butterfly ? (t % 32) ^ 5 : t % 32 * 3 % 32)));
  }
}

TEST(SimExecution, LaneReductionsInRegisters) {
  GpuProgram g(32);
  const MemoryId out = g.tensor("Out", DType::f32);
  const MemoryId r = g.registers("r", DType::f32, 4), s = g.registers("s", DType::f32, 1);
  g.loop(g.i(4), LoopForm::unrolled, [&](E u) { g.store(r, u, cast(DType::f32, g.thread() + u * u)); });
  g.store(s, g.i(0), g.num(0.5, DType::f32));
  g.add(thread::LaneReduce{thread::Combine::sum, s, g.i(0).id, r, g.i(0).id, 4, true}, "reduce");
  g.store(out, g.thread(), g.load(s, g.i(0)));
  std::vector<float> v(32);
  EXPECT_EQ(texts(run(g, Arguments().tensor(v))), "");
  for (int t = 0; t < 32; ++t) EXPECT_EQ(v[t], 0.5f + 4 * t + 14);
}

TEST(SimExecution, WarpOrdersSeeTheSameValues) {
  for_each_schedule([](const SimOptions& options) {
    GpuProgram g(256, 2);
    const MemoryId out = g.tensor("Out", DType::i64);
    const MemoryId tile = g.shared("Tile", DType::i64, 256), r = g.registers("r", DType::i64, 1);
    g.store(tile, g.thread(), g.thread());
    g.loop(g.i(8), LoopForm::serial, [&](E) {
      g.barrier();
      g.store(r, g.i(0), g.load(tile, (g.thread() * 5 + 3) % 256) + g.load(tile, g.thread()));
      g.barrier();
      g.store(tile, g.thread(), g.load(r, g.i(0)));
    });
    g.store(out, g.block() * 256 + g.thread(), g.load(tile, g.thread()));
    std::vector<int64_t> v(512), expected(256), next(256);
    std::iota(expected.begin(), expected.end(), 0);
    for (int k = 0; k < 8; ++k) {
      for (int t = 0; t < 256; ++t) next[t] = expected[(t * 5 + 3) % 256] + expected[t];
      expected = next;
    }
    EXPECT_EQ(texts(run(g, Arguments().tensor(v), options)), "");
    for (int i = 0; i < 512; ++i) EXPECT_EQ(v[i], expected[i % 256]);
  });
}

TEST(SimExecution, ForeignAtomsAreRefused) {
  GpuProgram g(32);
  const MemoryId r = g.registers("r", DType::f32, 8);
  g.add(thread::WarpMma{"mma.m99", r, r, r, g.i(0).id, g.i(0).id, g.i(0).id, 1, 1, 1}, "k/gemm#0");
  auto result = simulate(g.p, sm80(), {}, {}, {});
  ASSERT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(result.error().diagnostics[0].code, DiagCode::target_unsupported);
  EXPECT_EQ(result.error().diagnostics[0].op, "k/gemm#0");
}

TEST(SimExecution, GuardsAreChecked) {
  GpuProgram g(32);
  g.dim("n");
  g.p.guards = {{0, 8}};
  const uint64_t good[] = {16}, bad[] = {12};
  const TensorExtent none[1] = {};
  EXPECT_TRUE(static_cast<bool>(simulate(g.p, sm80(), good, none, {})));
  auto refused = simulate(g.p, sm80(), bad, none, {});
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_EQ(refused.error().diagnostics[0].code, DiagCode::launch_fact);
}

TEST(SimExecution, SizesOfTensorsAreGuards) {
  GpuProgram g(32);
  const ir::ExprId n = g.dim("n").id;
  g.tensor("X", DType::f32);
  thread::Guard size{1};
  size.elements = n, size.most_bytes = 64;
  g.p.guards = {size};
  EXPECT_TRUE(guards_hold(g.p, std::array<uint64_t, 2>{16, 0}));
  EXPECT_FALSE(guards_hold(g.p, std::array<uint64_t, 2>{17, 0}));
  g.p.guards[0].reach = g.p.exprs.add(n, g.p.exprs.const_int(4));
  EXPECT_TRUE(guards_hold(g.p, std::array<uint64_t, 2>{12, 0}));
  EXPECT_FALSE(guards_hold(g.p, std::array<uint64_t, 2>{13, 0}));
}

// ---- The evaluator of lanes against the scalar rules of ir/expr.h

class Operand64 {
 public:
  explicit Operand64(uint64_t seed) : random_(seed) {}
  Cell next(DType t) {
    Cell c{.i = 0};
    if (ir::is_bool(t)) {
      c.i = static_cast<int64_t>(random_() & 1);
    } else if (ir::is_float(t)) {
      static const double special[] = {0.0, -0.0, 1.0, -1.5, INFINITY, -INFINITY, NAN, 65504.0, 6e-8, 1e-40};
      const uint64_t kind = random_() % 4;
      c.f = kind == 0 ? special[random_() % std::size(special)]
                      : std::ldexp(static_cast<double>(random_() % 200001) - 100000.0,
                                   static_cast<int>(random_() % 40) - 30);
      c.f = ir::round_to(t, c.f);
    } else {
      c.i = ir::wrap_to(t, random_() % 3 == 0 ? static_cast<int64_t>(random_())
                                              : static_cast<int64_t>(random_() % 41) - 20);
    }
    return c;
  }

 private:
  std::mt19937_64 random_;
};

// A kernel of one store computes every operator in the form that the compiler of expressions picks.
void check_operator(ExprOp o, DType in, DType out, bool constant_operand) {
  GpuProgram g(32);
  const MemoryId ma = g.tensor("A", in), mb = g.tensor("B", in), mo = g.tensor("O", out);
  const E a = g.load(ma, g.thread());
  const E b = constant_operand ? g.num(8, in) : g.load(mb, g.thread());
  ir::ExprNode like;
  like.op = o;
  like.type = out;
  const E value{a.pool, a.pool->operation(like, a.id, b.id, a.id)};
  g.store(mo, g.thread(), value);
  std::vector<uint64_t> va(32), vb(32), vo(32);
  Operand64 random(static_cast<uint64_t>(o) * 1000 + static_cast<uint64_t>(in) * 10 +
                   static_cast<uint64_t>(out));
  std::vector<Cell> ca(32), cb(32);
  for (int round = 0; round < 20; ++round) {
    for (int l = 0; l < 32; ++l) {
      ca[l] = random.next(in);
      cb[l] = constant_operand ? Cell{.i = 8} : random.next(in);
      if (constant_operand && ir::is_float(in)) cb[l].f = 8;
      encode_one(in, ca[l], reinterpret_cast<std::byte*>(va.data()) + l * ir::dtype_bytes(in));
      encode_one(in, cb[l], reinterpret_cast<std::byte*>(vb.data()) + l * ir::dtype_bytes(in));
    }
    ASSERT_EQ(texts(run(g, Arguments().tensor(va).tensor(vb).tensor(vo))), "");
    for (int l = 0; l < 32; ++l) {
      const auto scalar = [&](Cell c) {
        return ir::is_float(in) ? ir::ScalarValue{in, 0, c.f} : ir::ScalarValue{in, c.i, 0};
      };
      const ir::ScalarValue expected =
          ir::eval_operation(o, out, scalar(ca[l]), scalar(cb[l]), scalar(ca[l]));
      const Cell got =
          decode_one(out, reinterpret_cast<const std::byte*>(vo.data()) + l * ir::dtype_bytes(out));
      if (ir::is_float(out)) {
        if (expected.f == expected.f)
          EXPECT_EQ(std::bit_cast<uint64_t>(got.f), std::bit_cast<uint64_t>(expected.f))
              << ir::expr_text(o) << " " << ir::dtype_name(in) << " " << ca[l].f << " " << cb[l].f;
        else
          EXPECT_NE(got.f, got.f);
      } else {
        EXPECT_EQ(got.i, expected.i) << ir::expr_text(o) << " " << ir::dtype_name(in) << " " << ca[l].i << " "
                                     << cb[l].i;
      }
    }
  }
}

const std::vector<DType> kTypes = {DType::f16,  DType::bf16,     DType::f32,      DType::f64,     DType::i8,
                                   DType::u8,   DType::i32,      DType::i64,      DType::boolean, DType::e4m3,
                                   DType::e5m2, DType::e4m3fnuz, DType::e5m2fnuz, DType::i16,     DType::u16,
                                   DType::u32,  DType::u64};

TEST(SimOperators, FollowTheScalarRules) {
  for (size_t k = 0; k < ir::expr_op_count(); ++k) {
    const auto o = static_cast<ExprOp>(k);
    const ir::ExprClass c = ir::expr_class(o);
    if (c == ir::ExprClass::leaf || c == ir::ExprClass::select || c == ir::ExprClass::cast) continue;
    for (DType t : kTypes) {
      const bool fits = c == ir::ExprClass::arith                              ? !ir::is_bool(t)
                        : c == ir::ExprClass::integer                          ? ir::is_integer(t)
                        : c == ir::ExprClass::logic                            ? ir::is_bool(t)
                        : c == ir::ExprClass::random                           ? ir::is_u64(t)
                        : c == ir::ExprClass::math || c == ir::ExprClass::test ? ir::is_float(t)
                                                                               : true;
      if (!fits || ir::is_storage_only(t)) continue;
      const DType out = ir::result_type(o, t);
      check_operator(o, t, out, false);
      if (ir::expr_arity(o) == 2 && !ir::is_bool(t)) check_operator(o, t, out, true);
    }
  }
}

TEST(SimOperators, CastsFollowTheScalarRules) {
  for (DType from : kTypes)
    for (DType to : kTypes)
      if (from != to) check_operator(ExprOp::cast, from, to, false);
}

TEST(SimOperators, BitcastsFollowTheScalarRules) {
  for (DType from : kTypes)
    for (DType to : kTypes)
      if (from != to && ir::same_bits(from, to)) check_operator(ExprOp::bitcast, from, to, false);
}

// Of NaNs, too, which a conversion would make quiet.
TEST(SimOperators, MemoryKeepsEveryBitOfSinglesAndDoubles) {
  for (const uint64_t bits :
       {0x7f800001ull, 0xff9abcdeull, 0x7fc00001ull, 0x80000000ull, 0x00000001ull, 0x3f800000ull}) {
    std::byte in[4], out[4];
    std::memcpy(in, &bits, 4);
    const Cell c = decode_one(DType::f32, in);
    EXPECT_EQ(ir::float_to_bits(DType::f32, c.f), bits);
    encode_one(DType::f32, c, out);
    EXPECT_EQ(std::memcmp(in, out, 4), 0) << bits;
  }
}

TEST(SimOperators, NarrowFormatsKeepEveryBitPattern) {
  for (DType t : {DType::f16, DType::bf16})
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const auto half = static_cast<uint16_t>(bits);
      std::byte in[2], out[2];
      std::memcpy(in, &half, 2);
      const Cell c = decode_one(t, in);
      const double expected = ir::float_from_bits(t, half);
      ASSERT_EQ(std::bit_cast<uint64_t>(c.f), std::bit_cast<uint64_t>(expected));
      encode_one(t, c, out);
      ASSERT_EQ(std::memcmp(in, out, 2), 0) << bits;
    }
}

TEST(SimOperators, ByteFloatsKeepEveryCode) {
  for (DType t : {DType::e4m3, DType::e5m2, DType::e4m3fnuz, DType::e5m2fnuz})
    for (int code = 0; code < 256; ++code) {
      const auto in = static_cast<std::byte>(code);
      std::byte out{};
      encode_one(t, decode_one(t, &in), &out);
      ASSERT_EQ(in, out) << ir::dtype_name(t);
    }
}

TEST(SimOperators, RoundingIsThatOfTheType) {
  std::mt19937_64 random(3);
  for (DType t :
       {DType::f16, DType::bf16, DType::f32, DType::e4m3, DType::e5m2, DType::e4m3fnuz, DType::e5m2fnuz})
    for (int i = 0; i < 200000; ++i) {
      const double scale = std::ldexp(1.0, static_cast<int>(random() % 300) - 150);
      double v = (static_cast<double>(random() % 8192) - 4096) * scale;  // many ties
      if (i % 3 == 0) v *= 1 + 0x1p-30;
      ASSERT_EQ(std::bit_cast<uint64_t>(round_value(t, v)), std::bit_cast<uint64_t>(ir::round_to(t, v))) << v;
    }
}

}  // namespace
}  // namespace tilegen::sim::test
