// Elements beside each other that threads access one by one: over types, strides, orders and what stands
// between the accesses.
#include "matrix.h"

namespace tilegen::differential {
namespace {

std::vector<Launch> launches() {
  std::vector<Launch> all = seeds({1, 2, 3});
  all[0].dims = {{"m", 3}, {"n", 512}};
  all[1].dims = {{"m", 2}, {"n", 700}};
  all[2].dims = {{"m", 2}, {"n", 1021}};
  for (Launch& l : all) l.magnitude = 30;
  return all;
}

void expect_agree_everywhere(const std::string& text) {
  expect_agree(text, launches());
  if (take_case) return;
  Subject subject(text, {"gfx942", "gfx90a", "sim:gfx942"});
  ASSERT_EQ(subject.invalid(), "") << text;
  for (const Launch& l : launches()) expect_agree(subject, text, l);
}

std::string program(const std::string& type, const std::string& body) {
  return replaced(R"(tl 1 program p
dim m
dim n
tensor X: $type[m, n] readonly
tensor Z: $type[m, n]
tensor Y: $type[m, n]
kernel k grid (b: m, c: ceildiv(n, 512)) threads 128 {
  alloc s: shared $type[512]
  alloc r: shared $type[128, 6]
  threads t in 128 {
    let at = c * 512 + 4 * t
)" + body + "  }\n}\n",
                  {{"type", type}});
}

TEST(JoinedAccesses, OverTypesAndOrders) {
  for (const DType t : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i32, DType::i64})
    for (const std::string body : {
             "unroll i in 0 .. 4 { Y[b, at + i] = X[b, at + i] + X[b, at + i] }\n",
             "unroll i in 0 .. 4 { Y[b, at + 3 - i] = X[b, at + i] }\n",
             "unroll i in 0 .. 3 { Y[b, at + i] = X[b, at + 1 + i] }\n",
             "unroll i in 0 .. 4 { s[4 * t + i] = X[b, at + i] }\nbarrier\n"
             "unroll i in 0 .. 4 { Y[b, at + i] = s[508 - 4 * t + i] }\n",
             "unroll i in 0 .. 4 { r[t, i] = X[b, at + i] }\nr[t, 5] = X[b, at]\nbarrier\n"
             "unroll i in 0 .. 4 { Y[b, at + i] = r[127 - t, i] + r[(t + 1) % 128, 5] }\n",
         })
      expect_agree_everywhere(program(ir::dtype_name(t), body));
}

// Loops that are written out as unrolled ones, and such whose iterations threads meet between.
TEST(JoinedAccesses, OfSerialLoops) {
  for (const std::string body : {
           "serial i in 0 .. 4 { Y[b, at + i] = X[b, at + 3 - i] }\n",
           "var sum = X[b, at] serial i in 0 .. 8 { sum += X[b, c * 512 + i] }\nY[b, at] = sum\n",
           "serial i in 0 .. 4 { s[4 * t + i] = X[b, at + i] }\n"
           "serial i in 0 .. 4 { Y[b, at + i] = s[508 - 4 * t + i] }\n",
           "serial i in 0 .. 4 { s[4 * t + i] = X[b, at + i] }\n"
           "serial i in 0 .. 4 { s[4 * t + i] += X[b, at] }\nY[b, at] = s[511 - 4 * t]\n",
           "s[t] = 0 s[t + 128] = 0\nserial i in 0 .. 4 { s[t + i] = X[b, at + i] }\nY[b, at] = s[131 - t]\n",
           "serial i in 0 .. 4 { if t % 2 == 0 { s[4 * t + i] = X[b, at + i] } else { s[4 * t + i] = X[b, "
           "at] } "
           "}\nserial i in 0 .. 4 { Y[b, at + i] = s[(4 * t + i + 4) % 512] }\n",
           "serial j in 0 .. 3 {\nserial i in 0 .. 4 { s[4 * t + i] = X[b, at + i] }\n"
           "serial i in 0 .. 4 { r[t, i] = s[508 - 4 * t + i] }\n}\n"
           "serial i in 0 .. 4 { Y[b, at + i] = r[(t + 1) % 128, i] }\n",
       })
    for (const std::string type : {"f32", "i8", "f16"}) expect_agree_everywhere(program(type, body));
}

// Loads behind stores to the same elements, stores behind others of them, and conditions.
TEST(JoinedAccesses, WithWhatStandsBetween) {
  for (const std::string body : {
           "Y[b, at] = X[b, at + 1]\nY[b, at + 1] = Y[b, at] + X[b, at]\nY[b, at + 2] = Y[b, at + 1]\n"
           "Y[b, at + 3] = Y[b, at]\n",
           "unroll i in 0 .. 4 { Z[b, at + i] = X[b, at + 3 - i] }\n"
           "unroll i in 0 .. 4 { Y[b, at + i] = Z[b, at + i] + Z[b, at + 3 - i] }\n"
           "unroll i in 0 .. 4 { Z[b, at + i] = Y[b, at + i] }\n",
           "unroll i in 0 .. 4 { Y[b, at + i] = X[b, at + i] }\nY[b, at + 2] = X[b, at]\n"
           "unroll i in 0 .. 4 { Z[b, at + i] = Y[b, at + 3 - i] }\n",
           "Z[b, at] = Z[b, at + 3]\nZ[b, at + 1] = Z[b, at + 2]\nZ[b, at + 2] = Z[b, at]\n"
           "Z[b, at + 3] = Z[b, at + 1]\n",
           "unroll i in 0 .. 4 { if t < 70 { Y[b, at + i] = X[b, at + i] } else { Y[b, at + i] = X[b, at] } "
           "}\n",
           "if t < 70 { unroll i in 0 .. 4 { Y[b, at + i] = X[b, at + i] } }\n"
           "unroll i in 0 .. 4 { Z[b, at + i] = select(t < 3, X[b, at + i], X[b, at + 1]) }\n",
           "unroll i in 0 .. 4 { if X[b, at] > 2.0 { Y[b, at + i] = X[b, at + i] } }\n",
           "unroll i in 0 .. 4 { s[4 * t + i] = X[b, at + i] }\ns[4 * t + 1] = s[4 * t] + s[4 * t + 2]\n"
           "unroll i in 0 .. 4 { Y[b, at + i] = s[4 * t + 3 - i] }\n",
           "unroll i in 0 .. 8 { Y[b, at + i % 4] = X[b, at + i // 2] }\n",
       })
    expect_agree_everywhere(program("f32", body));
}

// Elements that no thread's number names: all threads read them at once.
TEST(JoinedAccesses, OfAllThreads) {
  expect_agree_everywhere(program("f32",
                                  "if t < 6 { s[t] = X[b, c * 512] }\nbarrier\n"
                                  "Y[b, at] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5]\n"));
}

// In parallel loops that nobody gave threads.
TEST(JoinedAccesses, InParallelLoops) {
  expect_agree_everywhere(R"(tl 1 program p
dim m
dim n
tensor X: f16[m, n] readonly
tensor C: f32[m, 2] readonly
tensor Y: f16[m, n]
kernel k grid (b: m, c: ceildiv(n, 512)) threads 128 {
  parallel i in 256 {
    let x = cast(f32, X[b, c * 512 + 2 * i])
    let y = cast(f32, X[b, c * 512 + 2 * i + 1])
    Y[b, c * 512 + 2 * i] = cast(f16, x * C[b, 0] - y * C[b, 1])
    Y[b, c * 512 + 2 * i + 1] = cast(f16, y * C[b, 0] + x * C[b, 1])
  }
}
)");
}

}  // namespace
}  // namespace tilegen::differential
