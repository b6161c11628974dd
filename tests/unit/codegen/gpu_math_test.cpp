// Functions and casts of GPU kernels: instructions where the numerics contract lets them, no calls, all
// types.
#include "gpu_kernel_builder.h"

namespace tilegen::codegen::test {
namespace {

// y[t] = op(x[t]) or op(x[t], y[t]).
thread::ThreadProgram function(ExprOp op, DType t) {
  GpuBuilder kb(256, "function");
  MemoryId x = kb.tensor("x", t), y = kb.tensor("y", t);
  auto& e = kb.p.exprs;
  ExprId a = kb.load(x, kb.tid()), b = kb.load(y, kb.tid());
  ExprId v = ir::expr_arity(op) == 3   ? e.ternary(op, a, b, a)
             : ir::expr_arity(op) == 2 ? e.binary(op, a, b)
                                       : e.unary(op, a);
  kb.p.body = {kb.store(y, kb.tid(), ir::is_bool(e.type(v)) ? e.cast(t, v) : v)};
  return kb.p;
}

thread::ThreadProgram cast(DType from, DType to) {
  GpuBuilder kb(256, "cast");
  MemoryId x = kb.tensor("x", from), y = kb.tensor("y", to);
  kb.p.body = {kb.store(y, kb.tid(), kb.p.exprs.cast(to, kb.load(x, kb.tid())))};
  return kb.p;
}

const DType kAll[] = {DType::f16,      DType::bf16, DType::f32,     DType::f64,  DType::i8,   DType::u8,
                      DType::i32,      DType::i64,  DType::boolean, DType::e4m3, DType::e5m2, DType::e4m3fnuz,
                      DType::e5m2fnuz, DType::i16,  DType::u16,     DType::u32,  DType::u64};

TEST(GpuMath, FunctionsOfAllFloats) {
  std::vector<thread::ThreadProgram> all;
  for (DType t : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (ExprOp op :
         {ExprOp::neg,      ExprOp::abs,   ExprOp::exp,   ExprOp::exp2,  ExprOp::log,   ExprOp::log2,
          ExprOp::tanh,     ExprOp::erf,   ExprOp::sqrt,  ExprOp::rsqrt, ExprOp::add,   ExprOp::div,
          ExprOp::sigmoid,  ExprOp::min,   ExprOp::max,   ExprOp::floor, ExprOp::sub,   ExprOp::ceil,
          ExprOp::mul,      ExprOp::lt,    ExprOp::le,    ExprOp::eq,    ExprOp::ne,    ExprOp::sin,
          ExprOp::cos,      ExprOp::tan,   ExprOp::asin,  ExprOp::acos,  ExprOp::atan,  ExprOp::exp10,
          ExprOp::expm1,    ExprOp::log1p, ExprOp::cbrt,  ExprOp::erfc,  ExprOp::round, ExprOp::rint,
          ExprOp::trunc,    ExprOp::isnan, ExprOp::isinf, ExprOp::pow,   ExprOp::atan2, ExprOp::fmod,
          ExprOp::copysign, ExprOp::fma})
      all.push_back(function(op, t));
  ASSEMBLES_OR_SKIP(all, {"call", "bra"});
}

TEST(GpuMath, OperatorsOfAllIntegers) {
  std::vector<thread::ThreadProgram> all;
  for (DType t :
       {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64})
    for (ExprOp op :
         {ExprOp::neg,      ExprOp::abs,      ExprOp::bit_not, ExprOp::add, ExprOp::sub,     ExprOp::mul,
          ExprOp::floordiv, ExprOp::floormod, ExprOp::min,     ExprOp::max, ExprOp::bit_and, ExprOp::bit_or,
          ExprOp::bit_xor,  ExprOp::shl,      ExprOp::shr,     ExprOp::lt,  ExprOp::le,      ExprOp::eq,
          ExprOp::ne,       ExprOp::popcount, ExprOp::clz,     ExprOp::ctz, ExprOp::mulhi})
      all.push_back(function(op, t));
  ASSEMBLES_OR_SKIP(all, {"call"});
}

// ptxas makes calls of divisions of these widths, and their functions may lose a caller's register.
TEST(GpuMath, DivisionsWithoutCallsOfPtxas) {
  for (DType t : {DType::i8, DType::u8, DType::i16, DType::u16, DType::i64, DType::u64})
    for (ExprOp op : {ExprOp::floordiv, ExprOp::floormod}) {
      const std::string ptx = compile_gpu(function(op, t)).ptx;
      EXPECT_TRUE(ptx.find("div.") != std::string::npos || ptx.find("rem.") != std::string::npos) << ptx;
      for (const char* called :
           {"div.s16", "div.u16", "rem.s16", "rem.u16", "div.s64", "div.u64", "rem.s64", "rem.u64"})
        EXPECT_LACKS(ptx, called);
    }
}

// ptxas gets those of 16 bits wrong beside a compare with the same constant.
TEST(GpuMath, ExtremaOfWords) {
  for (DType t : {DType::i8, DType::u8, DType::i16, DType::u16})
    for (ExprOp op : {ExprOp::min, ExprOp::max}) {
      const std::string ptx = compile_gpu(function(op, t)).ptx;
      for (const char* narrow : {"min.s16", "min.u16", "max.s16", "max.u16"}) EXPECT_LACKS(ptx, narrow);
      EXPECT_TRUE(ptx.find("min.") != std::string::npos || ptx.find("max.") != std::string::npos) << ptx;
    }
}

// ptxas takes them for no less than 0, as that of the least number is.
TEST(GpuMath, NoInstructionsOfAbsoluteValues) {
  for (DType t : {DType::i8, DType::i16, DType::i32, DType::i64}) {
    const std::string ptx = compile_gpu(function(ExprOp::abs, t)).ptx;
    EXPECT_LACKS(ptx, "abs.s");
    EXPECT_HAS(ptx, "xor.b");
  }
  EXPECT_HAS(compile_gpu(function(ExprOp::abs, DType::f32)).ptx, "abs.f");
}

// ptxas widens the minus of a 16-bit number without its wrap, and takes the carry of a product's upper word
// for a borrow.
TEST(GpuMath, DifferencesThatPtxasGetsRight) {
  GpuBuilder kb(128, "differences");
  const MemoryId x = kb.tensor("x", DType::i16), y = kb.tensor("y", DType::i32),
                 u = kb.tensor("u", DType::u32), z = kb.tensor("z", DType::u64);
  auto& e = kb.p.exprs;
  const ExprId minus = e.unary(ExprOp::neg, kb.load(x, kb.tid()));
  const ExprId upper = e.binary(ExprOp::mulhi, kb.load(u, kb.tid()), e.const_int(3000000000, DType::u32));
  const ExprId parity = e.binary(ExprOp::bit_and, kb.load(u, kb.tid()), e.const_int(1, DType::u32));
  kb.p.body = {kb.store(y, kb.tid(), e.binary(ExprOp::min, e.cast(DType::i32, minus), kb.load(y, kb.tid()))),
               kb.store(z, kb.tid(), e.sub(e.cast(DType::u64, upper), e.cast(DType::u64, parity)))};
  const std::string ptx = compile_gpu(kb.p, "sm_90a").ptx;
  EXPECT_LACKS(ptx, "neg.s16");
  EXPECT_HAS(ptx, "mul.hi.u32");
  EXPECT_LACKS(ptx, "sub.s64");
  ASSEMBLES_OR_SKIP(kb.p);
}

TEST(GpuMath, Casts) {
  std::vector<thread::ThreadProgram> all;
  for (DType from : kAll)
    for (DType to : kAll) all.push_back(cast(from, to));
  EXPECT_HAS(compile_gpu(cast(DType::f32, DType::bf16)).ptx, "cvt.rn.bf16.f32");
  EXPECT_HAS(compile_gpu(cast(DType::f32, DType::f16)).ptx, "cvt.rn.f16.f32");
  EXPECT_HAS(compile_gpu(cast(DType::f64, DType::i32)).ptx, "cvt.rzi.s32.f64");
  EXPECT_HAS(compile_gpu(cast(DType::f64, DType::u32)).ptx, "cvt.rzi.u32.f64");
  EXPECT_HAS(compile_gpu(cast(DType::f32, DType::u64)).ptx, "cvt.rzi.ftz.u64.f32");
  EXPECT_LACKS(compile_gpu(cast(DType::f32, DType::i32)).ptx, "setp");
  // What is out of range is a value, and no reason to take the other operand of a select.
  for (DType from : {DType::f32, DType::f64}) {
    GpuBuilder beyond(256, "beyond");
    MemoryId z = beyond.tensor("z", DType::u32);
    ir::ExprPool& pool = beyond.p.exprs;
    const ir::ExprId known = pool.lt(beyond.tid(), pool.const_int(7));
    const ir::ExprId v = pool.select(known, pool.cast(from, beyond.tid()), pool.const_float(-1.0, from));
    beyond.p.body = {beyond.store(z, beyond.tid(), pool.cast(DType::u32, v))};
    EXPECT_HAS(compile_gpu(beyond.p).ptx, from == DType::f64 ? "0dBFF0000000000000" : "0fBF800000");
  }
  // Large numbers of few significant bits are rounded all the same: to infinity.
  GpuBuilder kb(256, "large");
  MemoryId y = kb.tensor("y", DType::f32);
  ir::ExprPool& e = kb.p.exprs;
  const ir::ExprId large = e.cast(DType::f16, e.mul(kb.tid(), e.const_int(int64_t{1} << 62)));
  kb.p.body = {kb.store(y, kb.tid(), e.cast(DType::f32, large))};
  EXPECT_HAS(compile_gpu(kb.p).ptx, "cvt.rn.f16");
  // NaN becomes 0, which these instructions do not do by themselves.
  EXPECT_HAS(compile_gpu(cast(DType::f32, DType::i64)).ptx, "setp.nan.f32");
  EXPECT_HAS(compile_gpu(cast(DType::f16, DType::i64)).ptx, "setp.nan.f16");
  for (DType to : {DType::i8, DType::u8, DType::i16, DType::i32, DType::u32, DType::i64, DType::u64})
    EXPECT_HAS(compile_gpu(cast(DType::f64, to)).ptx, "setp.nan.f64");
  for (DType from : kAll) EXPECT_HAS(compile_gpu(cast(from, DType::i64)).ptx, "st.global.u64");
  ASSEMBLES_OR_SKIP(all);
}

// Exact where the contract says exact, and cheap where it leaves room.
TEST(GpuMath, Instructions) {
  auto text = [](ExprOp op, DType t) { return compile_gpu(function(op, t)).ptx; };
  EXPECT_HAS(text(ExprOp::sqrt, DType::f32), "sqrt.rn.f32");
  EXPECT_HAS(text(ExprOp::div, DType::f32), "div.rn.f32");
  EXPECT_HAS(text(ExprOp::div, DType::f64), "div.rn.f64");
  EXPECT_HAS(text(ExprOp::max, DType::f32), "max.f32");
  EXPECT_HAS(text(ExprOp::min, DType::f64), "min.f64");
  EXPECT_HAS(text(ExprOp::exp, DType::f32), "ex2.approx.ftz.f32");
  EXPECT_HAS(text(ExprOp::exp2, DType::f32), "ex2.approx.ftz.f32");
  EXPECT_HAS(text(ExprOp::exp2, DType::f16), "ex2.approx.f32");
  EXPECT_HAS(text(ExprOp::add, DType::f16), "add.f16");
  EXPECT_HAS(text(ExprOp::tanh, DType::f32), "rcp.approx.ftz.f32");
  EXPECT_LACKS(text(ExprOp::tanh, DType::f32), "div");
  EXPECT_LACKS(text(ExprOp::erf, DType::f32), "ex2.approx");
}

}  // namespace
}  // namespace tilegen::codegen::test
