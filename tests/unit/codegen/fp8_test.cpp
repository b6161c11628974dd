// The integer conversions of the 8-bit floats, scalar and vectorised: every code, every value of f16, ties,
// and what saturates.
#include <cmath>

#include "kernel_builder.h"

namespace tilegen::codegen::test {
namespace {

using thread::LoopForm;

constexpr DType kBytes[] = {DType::e4m3, DType::e5m2, DType::e4m3fnuz, DType::e5m2fnuz};

// out[i] = cast(to, in[i]) on every target of this machine and in both forms, against ir's cast.
void check_cast(Elements& in, DType from, DType to, int64_t count) {
  for (const auto& target : runnable_targets())
    for (LoopForm form : {LoopForm::serial, LoopForm::vectorized}) {
      SCOPED_TRACE(std::string(ir::dtype_name(from)) + " to " + ir::dtype_name(to) + " " + target.name);
      KernelBuilder kb;
      auto& e = kb.p.exprs;
      MemoryId x = kb.tensor("x", from), y = kb.tensor("y", to);
      ir::VarId v = kb.loop_var("v"), lane = kb.loop_var("lane");
      ExprId at = e.add(e.mul(kb.var(v), 16), kb.var(lane));
      auto lanes = kb.loop(form, lane, kb.i(16), {kb.store(y, at, e.cast(to, kb.load(x, at)))});
      kb.p.body = {kb.loop(LoopForm::serial, v, kb.i(count / 16), {lanes})};
      Compiled code(kb.p, target);
      ASSERT_TRUE(code);
      Elements got(to, static_cast<size_t>(count));
      code.run({in.slot(), got.slot()});
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        const ir::ScalarValue want = ir::eval_cast(to, in.get(i)), have = got.get(i);
        ASSERT_TRUE(want.f == have.f ? std::signbit(want.f) == std::signbit(have.f)
                                     : want.f != want.f && have.f != have.f)
            << i << ": " << in.get(i).f << " gives " << have.f << ", not " << want.f;
      }
    }
}

TEST(Fp8, EveryCodeDecodes) {
  for (DType from : kBytes)
    for (DType to : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      Elements in(from, 256);
      for (size_t i = 0; i < 256; ++i) in.set(i, {from, 0, ir::float_from_bits(from, i)});
      check_cast(in, from, to, 256);
    }
}

TEST(Fp8, EveryHalfEncodes) {
  for (DType to : kBytes) {
    Elements in(DType::f16, 65536);
    for (size_t i = 0; i < 65536; ++i) in.set(i, {DType::f16, 0, ir::float_from_bits(DType::f16, i)});
    check_cast(in, DType::f16, to, 65536);
  }
}

TEST(Fp8, TiesAndTheirNeighboursEncode) {
  for (DType from : {DType::f32, DType::f64})
    for (DType to : kBytes) {
      Elements in(from, 2048);
      size_t i = 0;
      const auto add = [&](double x) {
        in.set(i++, {from, 0, x});
        in.set(i++, {from, 0, -x});
      };
      const double hair = from == DType::f32 ? 0x1p-23 : 0x1p-52;
      for (uint64_t code = 0; code < 0x7b; ++code) {
        const double tie = (ir::float_from_bits(to, code) + ir::float_from_bits(to, code + 1)) / 2;
        add(tie), add(tie * (1 + hair)), add(tie * (1 - hair)), add(ir::float_from_bits(to, code));
      }
      for (double x :
           {239.0, 240.0, 247.0, 248.0, 249.0, 447.0, 448.0, 463.0, 464.0, 465.0, 57344.0, 61439.0, 61440.0,
            65536.0, 1e30, 1e-30, 1e-40, static_cast<double>(INFINITY), static_cast<double>(NAN)})
        add(x);
      check_cast(in, from, to, 2048);
    }
}

}  // namespace
}  // namespace tilegen::codegen::test
