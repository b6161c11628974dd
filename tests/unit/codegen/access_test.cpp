// Vectorised loads and stores by the form of their index: consecutive, backwards, strided, divided, gathered,
// uniform; with and without predicates; every type.
#include "kernel_builder.h"

namespace tilegen::codegen::test {
namespace {

using thread::LoopForm;

constexpr DType kTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64,    DType::i8,
                            DType::u8,  DType::i32,  DType::i64, DType::boolean, DType::e4m3,
                            DType::e5m2};

struct Shape {
  std::string name;
  // linear element for lane, and whether the lane takes part (limit: a runtime number)
  std::function<ExprId(KernelBuilder&, ExprId lane, ExprId table)> build;
  std::function<int64_t(int64_t lane, const std::vector<int64_t>& table)> index;
};

std::vector<Shape> shapes() {
  auto e = [](KernelBuilder& kb) -> ir::ExprPool& { return kb.p.exprs; };
  return {
      {"consecutive", [=](auto& kb, ExprId l, ExprId) { return e(kb).add(l, 5); },
       [](int64_t l, auto&) { return l + 5; }},
      {"backwards", [=](auto& kb, ExprId l, ExprId) { return e(kb).sub(kb.i(70), l); },
       [](int64_t l, auto&) { return 70 - l; }},
      {"every third", [=](auto& kb, ExprId l, ExprId) { return e(kb).add(e(kb).mul(l, 3), 1); },
       [](int64_t l, auto&) { return 3 * l + 1; }},
      {"uniform", [=](auto& kb, ExprId, ExprId) { return kb.i(9); },
       [](int64_t, auto&) { return int64_t{9}; }},
      {"halves", [=](auto& kb, ExprId l, ExprId) { return e(kb).floordiv(l, kb.i(2)); },
       [](int64_t l, auto&) { return l / 2; }},
      {"wrapped", [=](auto& kb, ExprId l, ExprId) { return e(kb).floormod(e(kb).add(l, 3), kb.i(8)); },
       [](int64_t l, auto&) { return (l + 3) % 8; }},
      {"within one row",
       [=](auto& kb, ExprId l, ExprId) {
         ExprId flat = e(kb).add(l, 128);  // 128 + lane stays in row 1 of rows of 128
         return e(kb).add(e(kb).mul(e(kb).floordiv(flat, kb.i(128)), 2), e(kb).floormod(flat, kb.i(128)));
       },
       [](int64_t l, auto&) { return 2 + l; }},
      {"looked up", [=](auto&, ExprId, ExprId t) { return t; },
       [](int64_t l, auto& t) { return t[static_cast<size_t>(l)]; }},
  };
}

constexpr int64_t kSpan = 256;

// Loads by the shape, stores consecutively; then loads consecutively, stores by the shape.
void check(DType t, const Shape& s, int64_t width, int predicate, bool store_side,
           const target::Target& target) {
  SCOPED_TRACE(std::string(ir::dtype_name(t)) + " " + s.name + " width " + std::to_string(width) +
               " predicate " + std::to_string(predicate) + (store_side ? " store " : " load ") + target.name);
  KernelBuilder kb;
  auto& e = kb.p.exprs;
  MemoryId in = kb.tensor("in", t), out = kb.tensor("out", t), table = kb.tensor("table", DType::i64);
  MemoryId flags = kb.tensor("flags", DType::boolean);
  ExprId n = kb.scalar("n", DType::i64, true);
  ir::VarId lane = kb.loop_var("lane");
  ExprId l = kb.var(lane), at = s.build(kb, l, kb.load(table, l));
  ExprId p = predicate == 1   ? e.lt(l, n)
             : predicate == 2 ? kb.load(flags, l)
             : predicate == 3 ? e.lt(kb.i(3), n)
                              : ExprId();
  ExprId from = store_side ? l : at, to = store_side ? at : l;
  // the predicate guards the side under test; on the load side everything is stored, so that the zeros show
  auto store = kb.store(out, to, kb.load(in, from, store_side ? ExprId() : p), store_side ? p : ExprId());
  kb.p.body = {kb.loop(LoopForm::vectorized, lane, kb.i(width), {store})};
  Compiled code(kb.p, target);
  ASSERT_TRUE(code);
  std::mt19937_64 random(5);
  std::vector<int64_t> lookup(static_cast<size_t>(width));
  for (int64_t k = 0; k < width; ++k) lookup[static_cast<size_t>(k)] = (k * 37 + 11) % kSpan;
  Elements x(t, kSpan), y(t, kSpan), want(t, kSpan), f(DType::boolean, kSpan);
  for (size_t k = 0; k < kSpan; ++k) {
    x.set(k, random_value(t, random)), y.set(k, random_value(t, random)),
        f.set(k, random_value(DType::boolean, random));
    want.set_bits(k, y.bits(k));
  }
  for (int64_t limit : {int64_t{0}, int64_t{3}, width - 1, width + 4}) {
    for (int64_t k = 0; k < width; ++k) {
      bool on = predicate == 1   ? k < limit
                : predicate == 2 ? f.get(static_cast<size_t>(k)).i != 0
                : predicate == 3 ? 3 < limit
                                 : true;
      int64_t where = s.index(k, lookup);
      if (store_side && on) want.set(static_cast<size_t>(where), x.get(static_cast<size_t>(k)));
      if (!store_side) {
        ir::ScalarValue zero{t, 0, 0};
        want.set(static_cast<size_t>(k), on ? x.get(static_cast<size_t>(where)) : zero);
      }
    }
    code.run({x.slot(), y.slot(), slot(lookup.data()), f.slot(), static_cast<uint64_t>(limit)});
    for (size_t k = 0; k < kSpan; ++k)
      ASSERT_TRUE(same(y.get(k), want.get(k)))
          << "element " << k << " limit " << limit << " got " << y.get(k).f << "/" << y.get(k).i << " want "
          << want.get(k).f << "/" << want.get(k).i;
  }
}

TEST(Access, EveryForm) {
  int turn = 0;
  for (const auto& target : runnable_targets())
    for (DType t : kTypes)
      for (const Shape& s : shapes())
        for (int predicate : {0, 1, 2, 3}) {
          // not every combination with every width, side and target: they are independent, so take turns
          bool store_side = ++turn % 2 && s.name != "uniform" && s.name != "halves" && s.name != "wrapped";
          if (target.name == baseline().name && turn % 5 > 1) continue;
          int64_t width = (turn / 2) % 3 == 0 ? 16 : (turn / 2) % 3 == 1 ? 7 : 32;
          check(t, s, width, predicate, store_side, target);
        }
}

TEST(Access, UniformStoreOfVaryingValueKeepsTheLastLane) {
  KernelBuilder kb;
  MemoryId in = kb.tensor("in", DType::f32), out = kb.tensor("out", DType::f32);
  ir::VarId lane = kb.loop_var("lane");
  kb.p.body = {
      kb.loop(LoopForm::vectorized, lane, kb.i(8), {kb.store(out, kb.i(0), kb.load(in, kb.var(lane)))})};
  Compiled code(kb.p, this_machine());
  ASSERT_TRUE(code);
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y = 0;
  code.run({slot(x), slot(&y)});
  EXPECT_EQ(y, 8);
}

// Wider than one piece: the lanes of later pieces start where the earlier ones ended.
TEST(Access, VeryWideLoops) {
  for (int64_t width : {64, 65, 128, 200}) {
    KernelBuilder kb;
    auto& e = kb.p.exprs;
    MemoryId in = kb.tensor("in", DType::i32), out = kb.tensor("out", DType::i32);
    ExprId n = kb.scalar("n", DType::i64, true);
    ir::VarId lane = kb.loop_var("lane");
    ExprId l = kb.var(lane);
    ExprId value = e.add(kb.load(in, e.floordiv(l, kb.i(64))), e.cast(DType::i32, e.floormod(l, kb.i(48))));
    kb.p.body = {kb.loop(LoopForm::vectorized, lane, kb.i(width), {kb.store(out, l, value, e.lt(l, n))})};
    Compiled code(kb.p, this_machine());
    ASSERT_TRUE(code);
    std::vector<int32_t> x{100, 200, 300, 400}, y(256, -1);
    code.run({slot(x.data()), slot(y.data()), static_cast<uint64_t>(width - 3)});
    for (int64_t k = 0; k < 256; ++k)
      EXPECT_EQ(y[static_cast<size_t>(k)], k < width - 3 ? x[static_cast<size_t>(k / 64)] + k % 48 : -1) << k;
  }
}

// Streaming stores: bypass the caches where aligned, and give the same result where not.
TEST(Access, StreamingStores) {
  for (const auto& target : runnable_targets()) {
    KernelBuilder kb;
    auto& e = kb.p.exprs;
    MemoryId in = kb.tensor("in", DType::f32), out = kb.tensor("out", DType::f32);
    ir::VarId v = kb.loop_var("v"), lane = kb.loop_var("lane");
    ExprId at = e.add(e.mul(kb.var(v), 16), kb.var(lane));
    auto body = kb.loop(LoopForm::vectorized, lane, kb.i(16), {kb.store(out, at, kb.load(in, at), {}, true)});
    kb.p.body = {kb.loop(LoopForm::serial, v, kb.i(4), {body})};
    HostCodegenOptions keep;
    keep.keep_assembly = true;
    Compiled code(kb.p, target, keep);
    ASSERT_TRUE(code);
    EXPECT_NE(code.result().assembly.find("vmovntps"), std::string::npos);
    EXPECT_NE(code.result().assembly.find("sfence"), std::string::npos);
    Elements x(DType::f32, 64), y(DType::f32, 80);
    for (size_t k = 0; k < 64; ++k) x.set(k, {DType::f32, 0, static_cast<double>(k)});
    for (size_t offset : {0, 1, 8}) {
      code.run({x.slot(), y.slot() + offset * 4});
      for (size_t k = 0; k < 64; ++k) ASSERT_EQ(y.get(k + offset).f, k);
    }
  }
}

// Two slices of the arena that share bytes are not taken for disjoint.
TEST(Access, OverlappingArenaSlices) {
  KernelBuilder kb;
  MemoryId out = kb.tensor("out", DType::i32);
  MemoryId a = kb.arena("a", DType::i32, 16), b = kb.arena("b", DType::i32, 16);
  kb.p.memories[b.value].arena_offset = kb.p.memories[a.value].arena_offset;
  auto& e = kb.p.exprs;
  kb.p.body = {kb.store(a, kb.i(1), e.const_int(7, DType::i32)),
               kb.store(b, kb.i(1), e.const_int(9, DType::i32)), kb.store(out, kb.i(0), kb.load(a, kb.i(1)))};
  Compiled code(kb.p, this_machine());
  ASSERT_TRUE(code);
  int32_t got = 0;
  code.run({slot(&got)});
  EXPECT_EQ(got, 9);
}

TEST(Access, PrefetchOutOfRangeIsHarmless) {
  KernelBuilder kb;
  MemoryId out = kb.tensor("out", DType::f32);
  kb.p.body = {kb.p.add(thread::Prefetch{out, kb.i(int64_t{1} << 40), 3}, ""),
               kb.store(out, kb.i(0), kb.p.exprs.const_float(2, DType::f32))};
  Compiled code(kb.p, this_machine());
  ASSERT_TRUE(code);
  float y = 0;
  code.run({slot(&y)});
  EXPECT_EQ(y, 2);
}

TEST(LaneReduce, EveryTypeAndWidth) {
  using thread::Combine;
  for (const auto& target : runnable_targets())
    for (DType t : kTypes) {
      if (ir::is_bool(t) || ir::is_storage_only(t)) continue;
      KernelBuilder kb;
      MemoryId in = kb.tensor("in", t), out = kb.tensor("out", t);
      const int64_t widths[] = {1, 2, 3, 7, 8, 16, 31, 64, 100};
      thread::Block body;
      int64_t slot_index = 0;
      for (int64_t w : widths)
        for (Combine c : {Combine::sum, Combine::max, Combine::min})
          for (bool accumulate : {false, true}) {
            thread::LaneReduce r;
            r.combine = c, r.dst = out, r.dst_index = kb.i(slot_index++), r.src = in, r.src_index = kb.i(3);
            r.width = w, r.accumulate = accumulate;
            body.push_back(kb.p.add(r, ""));
          }
      kb.p.body = body;
      Compiled code(kb.p, target);
      ASSERT_TRUE(code);
      Elements x(t, 128), y(t, static_cast<size_t>(slot_index));
      for (size_t k = 0; k < 128; ++k) {  // small integers: sums are exact in every type and order
        int64_t v = static_cast<int64_t>(k * 7 % 5) - (t == DType::u8 ? 0 : 2);
        x.set(k, {t, v, static_cast<double>(v)});
      }
      if (ir::is_float(t)) x.set(3 + 5, {t, 0, NAN});  // ignored by max and min, not by sum
      for (size_t k = 0; k < static_cast<size_t>(slot_index); ++k) y.set(k, {t, 1, 1.0});
      code.run({x.slot(), y.slot()});
      size_t at = 0;
      for (int64_t w : widths)
        for (ExprOp op : {ExprOp::add, ExprOp::max, ExprOp::min})
          for (bool accumulate : {false, true}) {
            ir::ScalarValue want = x.get(3);
            for (int64_t k = 1; k < w; ++k)
              want = ir::eval_binary(op, t, want, x.get(static_cast<size_t>(3 + k)));
            if (accumulate) want = ir::eval_binary(op, t, want, {t, 1, 1.0});
            EXPECT_TRUE(same(y.get(at), want))
                << ir::dtype_name(t) << " width " << w << " " << ir::expr_text(op) << " got " << y.get(at).f
                << "/" << y.get(at).i << " want " << want.f << "/" << want.i;
            ++at;
          }
    }
}

}  // namespace
}  // namespace tilegen::codegen::test
