// Elements of few bits: how they come out of memory, and become floats.
#include "gpu_kernel_builder.h"

namespace tilegen::codegen::test {
namespace {

using thread::LoopForm;

// y[8 tid + lane] = value(x[(8 tid + lane) / per]) in shared memory, `parts` times.
template <class Value>
std::string decoded(DType packed, DType to, int64_t per, Value&& value, int64_t parts = 1) {
  GpuBuilder kb(128, "decoded");
  const MemoryId x = kb.shared("x", packed, 1024 * parts / per), y = kb.shared("y", to, 1024 * parts);
  auto& e = kb.p.exprs;
  const ir::VarId lane = kb.loop_var("lane"), part = kb.loop_var("part");
  const ExprId at = e.add(e.mul(kb.var(part), 1024), e.add(e.mul(kb.tid(), 8), kb.var(lane)));
  const ExprId from = e.add(e.add(e.mul(kb.var(part), 1024 / per), e.mul(kb.tid(), 8 / per)),
                            e.floordiv(kb.var(lane), kb.i(per)));
  const thread::StmtId store = kb.store(y, at, value(e, kb.load(x, from), kb.var(lane)));
  const thread::StmtId vector = kb.loop(LoopForm::vectorized, lane, kb.i(8), {store});
  kb.p.body = {kb.loop(LoopForm::unrolled, part, kb.i(parts), {vector})};
  return compile_gpu(kb.p, "sm_90a").ptx;
}

// The 4-bit code `lane` of those of a word, less `zero`.
ExprId nibble(ir::ExprPool& e, ExprId word, ExprId lane, int64_t per, DType t, int64_t zero) {
  const ExprId wide = e.cast(DType::i32, word);
  const ExprId by = e.cast(DType::i32, e.mul(e.floormod(lane, e.const_int(per)), 4));
  const ExprId code = e.binary(ExprOp::bit_and, e.binary(ExprOp::shr, wide, by), e.const_int(15, DType::i32));
  return e.cast(t, e.sub(code, e.const_int(zero, DType::i32)));
}

// A load for all, a permutation, a mask and a multiply-add for two: no conversion.
TEST(NarrowElements, CodesOfFourBits) {
  for (DType packed : {DType::u8, DType::i32, DType::u32, DType::u16})
    for (DType to : {DType::f16, DType::bf16}) {
      const int64_t per = ir::dtype_bits(packed) / 4;
      const std::string ptx = decoded(packed, to, per, [&](ir::ExprPool& e, ExprId word, ExprId lane) {
        return nibble(e, word, lane, per, to, 8);
      });
      EXPECT_EQ(count_of(ptx, "ld.shared"), 1u) << ptx;
      EXPECT_EQ(count_of(ptx, "prmt.b32"), 4u) << ptx;
      const char* const pair = to == DType::f16 ? "f16x2" : "bf16x2";  // fma, or add where it multiplies by 1
      EXPECT_EQ(count_of(ptx, std::string("fma.rn.") + pair) + count_of(ptx, std::string("add.") + pair), 4u)
          << ptx;
      EXPECT_LACKS(ptx, "cvt.rn");
    }
}

// What is added to the float before it is rounded to another is added with the rest.
TEST(NarrowElements, ZeroesOfFloats) {
  const std::string ptx = decoded(DType::u8, DType::f16, 2, [&](ir::ExprPool& e, ExprId word, ExprId lane) {
    return e.sub(nibble(e, word, lane, 2, DType::f16, 0), e.const_float(8, DType::f16));
  });
  EXPECT_EQ(count_of(ptx, "fma.rn.f16x2"), 4u) << ptx;
  EXPECT_LACKS(ptx, "sub.f16x2");
  EXPECT_LACKS(ptx, "add.rn.f16x2");
}

// A rounding to a narrower type in between stays one.
TEST(NarrowElements, OtherFloatsInBetween) {
  const std::string ptx = decoded(DType::u16, DType::f16, 1, [&](ir::ExprPool& e, ExprId word, ExprId) {
    const ExprId code = e.binary(ExprOp::bit_and, e.cast(DType::i32, word), e.const_int(1023, DType::i32));
    return e.cast(DType::f16, e.sub(e.cast(DType::bf16, code), e.const_float(8, DType::bf16)));
  });
  EXPECT_LACKS(ptx, "prmt.b32");
  EXPECT_HAS(ptx, "cvt.rn");
}

TEST(NarrowElements, WholeBytes) {
  for (DType packed : {DType::u8, DType::i8}) {
    const auto whole = [](DType to) {
      return [to](ir::ExprPool& e, ExprId x, ExprId) { return e.cast(to, x); };
    };
    const std::string halves = decoded(packed, DType::f16, 1, whole(DType::f16));
    EXPECT_EQ(count_of(halves, "prmt.b32"), 4u) << halves;
    EXPECT_LACKS(halves, "cvt.rn");
    // Eight bits are more than bf16 has below a power of two.
    EXPECT_HAS(decoded(packed, DType::bf16, 1, whole(DType::bf16)), "cvt.rn.bf16x2.f32");
  }
  EXPECT_HAS(decoded(DType::i16, DType::f16, 1,
                     [](ir::ExprPool& e, ExprId x, ExprId) { return e.cast(DType::f16, x); }),
             "cvt.rn.f32");
}

// Loads of all parts stand in front of the first store, until 32 registers wait.
TEST(NarrowElements, StoresWaitForLoads) {
  const std::string ptx = decoded(
      DType::u8, DType::f16, 2,
      [&](ir::ExprPool& e, ExprId word, ExprId lane) { return nibble(e, word, lane, 2, DType::f16, 8); }, 16);
  const size_t store = ptx.find("st.shared");
  ASSERT_NE(store, std::string::npos) << ptx;
  EXPECT_EQ(count_of(ptx.substr(0, store), "ld.shared"), 8u) << ptx;
  EXPECT_EQ(count_of(ptx, "ld.shared"), 16u) << ptx;
}

// A store to the memory that is read keeps its place.
TEST(NarrowElements, StoresInPlaceDoNotWait) {
  GpuBuilder kb(128, "in_place");
  const MemoryId x = kb.shared("x", DType::f32, 1024);
  auto& e = kb.p.exprs;
  const ir::VarId part = kb.loop_var("part");
  const ExprId at = e.add(e.mul(kb.var(part), 128), kb.tid());
  kb.p.body = {
      kb.loop(LoopForm::unrolled, part, kb.i(8), {kb.store(x, at, e.add(kb.load(x, at), kb.load(x, at)))})};
  const std::string ptx = compile_gpu(kb.p, "sm_90a").ptx;
  EXPECT_EQ(count_of(ptx.substr(0, ptx.find("st.shared")), "ld.shared"), 1u) << ptx;
}

// r[i] = x[128 (tid / 4) + 4 i + tid % 4], rows mixed as a swizzled tile's are.
std::string bytes_of_lanes(bool mixed, int64_t step) {
  GpuBuilder kb(128, "bytes");
  const MemoryId x = kb.shared("x", DType::u8, 4096);
  const MemoryId y = kb.tensor("y", DType::f16);
  kb.align(y, 16);
  auto& e = kb.p.exprs;
  const ir::VarId i = kb.loop_var("i");
  const ExprId row = e.floordiv(kb.tid(), kb.i(4)), lane = e.floormod(kb.tid(), kb.i(4));
  ExprId column = e.add(e.mul(kb.var(i), step), lane);
  if (mixed) column = e.binary(ExprOp::bit_xor, column, e.mul(e.floormod(row, kb.i(2)), 16));
  const ExprId value = e.cast(DType::f16, kb.load(x, e.add(e.mul(row, 128), column)));
  kb.p.body = {
      kb.loop(LoopForm::unrolled, i, kb.i(8), {kb.store(y, e.add(e.mul(kb.var(i), 128), kb.tid()), value)})};
  return compile_gpu(kb.p, "sm_90a").ptx;
}

TEST(NarrowElements, LanesTakeTheirByteOfAWord) {
  for (bool mixed : {false, true}) {
    const std::string ptx = bytes_of_lanes(mixed, 4);
    EXPECT_EQ(count_of(ptx, "ld.shared.v4"), 2u) << ptx;
    EXPECT_EQ(count_of(ptx, "ld.shared"), 2u) << ptx;
  }
  // Every second one begins in the middle of a word: lanes reach into the next.
  EXPECT_EQ(count_of(bytes_of_lanes(false, 2), "ld.shared.u8"), 4u);
}

// r[2 i + j] = the code of 4 bits 2 (tid % 4) + j of word i of a row, rows mixed as a swizzled tile's are.
TEST(NarrowElements, LanesTakeTheirCodesOfAWord) {
  for (DType packed : {DType::i32, DType::u32}) {
    GpuBuilder kb(128, "codes");
    const MemoryId x = kb.shared("x", packed, 1024);
    const MemoryId y = kb.tensor("y", DType::f16);
    kb.align(y, 16);
    auto& e = kb.p.exprs;
    const ir::VarId i = kb.loop_var("i"), j = kb.loop_var("j");
    const ExprId row = e.floordiv(kb.tid(), kb.i(4)), lane = e.floormod(kb.tid(), kb.i(4));
    const ExprId column = e.binary(ExprOp::bit_xor, kb.var(i), e.mul(e.floormod(row, kb.i(2)), 4));
    const ExprId word = kb.load(x, e.add(e.mul(row, 8), column));
    const ExprId by = e.cast(packed, e.add(e.mul(lane, 8), e.mul(kb.var(j), 4)));
    const ExprId code = e.binary(ExprOp::bit_and, e.binary(ExprOp::shr, word, by), e.const_int(15, packed));
    const ExprId value = e.cast(DType::f16, code);
    const ExprId at = e.add(e.mul(kb.var(i), 256), e.add(e.mul(kb.tid(), 2), kb.var(j)));
    const thread::StmtId pair = kb.loop(LoopForm::vectorized, j, kb.i(2), {kb.store(y, at, value)});
    kb.p.body = {kb.loop(LoopForm::unrolled, i, kb.i(8), {pair})};
    const std::string ptx = compile_gpu(kb.p, "sm_90a").ptx;
    EXPECT_EQ(count_of(ptx, "ld.shared"), 8u) << ptx;
    EXPECT_EQ(count_of(ptx, "prmt.b32"), 8u) << ptx;
    EXPECT_LACKS(ptx, "cvt.rn");
  }
}

}  // namespace
}  // namespace tilegen::codegen::test
