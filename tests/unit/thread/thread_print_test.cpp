// Thread programs as text.
#include "legal_program.h"

namespace tilegen::thread {
namespace {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using ir::VarKind;

TEST_F(ThreadVerifyTest, PrintIsReadableAndStable) {
  append(LaneReduce{Combine::max, tile, c(0), acc, c(0), 8, true});
  EXPECT_EQ(print_thread_program(p), R"(thread_program axpy threads 1 arena 384
grid bx: (n + 63) // 64
params
  dim n: i64 = n
  scalar alpha: f32 = alpha
  tensor X: f32 = X
  tensor Y: f32 = Y
memories
  global X: f32 align 4 readonly param 2
  global Y: f32 align 4 param 3
  shared T: f32[64] align 64 arena@128
  local acc: f32[8] align 64 registers
body
  prefetch X[1000] locality 3  ; axpy/i
  serial i in 0..8 {  ; axpy/i
    vectorized v in 0..8 {  ; axpy/copy#0
      T[i * 8 + v] = alpha * X[bx * 64 + (i * 8 + v) if bx * 64 + (i * 8 + v) < n] if bx * 64 + (i * 8 + v) < n  ; axpy/copy#0
    }
    unrolled u in 0..8 {  ; axpy/s
      acc[u] = T[i + u]  ; axpy/s
    }
    if i < n {  ; axpy/if#0
      Y[bx + i] = acc[0]  ; axpy/s
    }
  }
  barrier  ; axpy/i
  T[0] = max of 8 lanes from acc[0] accumulate  ; extra
)");
  EXPECT_EQ(print_thread_program(p), print_thread_program(p));
}

TEST_F(ThreadVerifyTest, PrintingAnExponentialGraphIsBounded) {
  ExprId e = use(n);
  for (int k = 0; k < 200; ++k) e = p.exprs.binary(ExprOp::mul, e, e);
  append(Store{tile, e, load(tile, c(0)), {}});
  EXPECT_LT(print_thread_program(p).size(), size_t{1} << 16);
  EXPECT_TRUE(verify_thread_program(p).empty());
}

TEST_F(ThreadVerifyTest, EqualNamesAreToldApart) {
  append(Loop{p.add_var("i", VarKind::loop), c(3), LoopForm::serial, {}});
  const std::string text = print_thread_program(p);
  EXPECT_NE(text.find("serial i#3 in 0..8"), std::string::npos) << text;
  EXPECT_NE(text.find("serial i#6 in 0..3"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilegen::thread
