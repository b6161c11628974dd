// atomic and the statements on one element: what they accept, the words in which they refuse, what they mean.
#include "../check/diagnose.h"
#include "../interp/run_text.h"

namespace tilegen {
namespace {

using check::diagnose;
using interp::Tensor;
using ir::DType;

TEST(Atomic, Accepts) {
  for (const char* body :
       {"fill Cf, 0.0f32 atomic Cf -> C }", "fill Cf, 0.0f32 atomic Cf -> C {kind=max} }",
        "fill Cf, 0.0f32 atomic Cf -> C {kind=exchange} }",
        "fill As, 0.0f16 atomic As -> A[0 :+ 64, 0 :+ 64] }",
        "fill S, 0.0f32 atomic S -> C[3 :+ 1, 0 :+ 64] }",
        "parallel i in 64 { atomic_add(C[i % 3, 0], 1.0f32) } }",
        "fill S, 0.0f32 parallel i in 64 { atomic_add(S[i % 8], 1.0f32) } }",
        "parallel i in 64 { atomic_exchange(C[i % 3, 0], 1.0f32) } }",
        "parallel i in 64 { atomic_min(C[0, i], 1.0f32) atomic_max(C[0, 63 - i], 2.0f32) } }"})
    EXPECT_EQ(diagnose(body), "") << body;
}

// Where the old values are taken, too; what the declaration says is named.
TEST(Atomic, RefusesWhatIsNotWritten) {
  for (const std::string mark : {"readonly", "constant"}) {
    const auto p =
        ir::parse_program("tl 1 program p tensor T: f32[64] " + mark +
                              "\nkernel k grid(b: 1) {\n alloc x: fragment f32[64] fill x, 0.0f32\n"
                              " atomic x -> T, x {kind = exchange} }",
                          "t.tl", Limits());
    ASSERT_FALSE(static_cast<bool>(p));
    EXPECT_EQ(p.error().to_text(), "t.tl:4:2: error [write_to_input] k: atomic_exchange on T[64], which is " +
                                       mark + " (declare it without " + mark + ")");
  }
}

TEST(Atomic, Refuses) {
  EXPECT_EQ(diagnose("fill Cf, 0.0f32 fill S, 0.0f32 atomic Cf[0 :+ 1, 0 :+ 64] -> S }"),
            "t.tl:6:33: error [scope_not_allowed] k/atomic#0: dst S[64] (f32, shared): expected a tensor"
            " (threads of one block combine values with reduce, or in a parallel loop)");
  EXPECT_EQ(diagnose("fill Cf, 0.0f32 atomic Cf -> C {kind=xor} }"),
            "t.tl:6:18: error [dtype_mismatch] k/atomic#0: dst C[64, 64] (f32, global): there is no "
            "atomic_xor of its"
            " type (bits are combined in tensors of integers)");
  EXPECT_EQ(diagnose("fill As, 0.0f16 atomic As -> C }"),
            "t.tl:6:18: error [dtype_mismatch] k/atomic#0: src As[64, 64] (f16, shared) and dst C[64, 64] "
            "(f32, global)"
            " have different types (copy src into a buffer of dst's type first)");
  EXPECT_EQ(diagnose("fill S, 0.0f32 atomic S -> C }"),
            "t.tl:6:17: error [shape_mismatch] k/atomic#0: src S[64] (f32, shared) and dst C[64, 64] (f32, "
            "global) have"
            " different extents (give both regions the same extents; when the ranks differ, dimensions of "
            "extent 1 may be left out, and neighbouring dimensions of one region may be one of the other)");
  EXPECT_EQ(diagnose("parallel i in 64 { atomic_or(C[0, i], 1.0f32) } }"),
            "t.tl:6:21: error [dtype_mismatch] k/i/store#0: C is f32, of which there is no atomic_or (use a "
            "tensor of integers)");
  EXPECT_EQ(
      diagnose("fill Cf, 0.0f32 parallel i in 64 { atomic_add(Cf[i, 0], 1.0f32) } }"),
      "t.tl:6:37: error [misplaced_statement] k/i/store#0: atomic_add of Cf (fragment): expected an element "
      "of a tensor or of a shared tile, inside a parallel loop (combine in a shared tile or a tensor, or "
      "with "
      "reduce)");
}

// Atomic operations meet each other, not plain accesses.
TEST(Atomic, Races) {
  EXPECT_NE(diagnose("parallel i in 64 { atomic_add(C[0, i % 8], 1.0f32) C[0, i] = 1.0f32 } }")
                .find("parallel_race"),
            std::string::npos);
  EXPECT_NE(diagnose("fill V, 0.0f32 parallel i in 64 { atomic_add(C[0, i % 8], 1.0f32) V[i] = C[0, i] } }")
                .find("parallel_race"),
            std::string::npos);
}

TEST(Atomic, Meaning) {
  Tensor x(DType::i32, 12), y(DType::i32, 3, 100), h(DType::i32, 4);
  for (size_t i = 0; i < 12; ++i) x.set(i, static_cast<double>(i));
  // Two blocks of rows on one region that hangs over the edge; a histogram of remainders.
  interp::run_text(R"(tl 1 program t
tensor X: i32[4, 3] readonly
tensor Y: i32[3]
tensor H: i32[4]
kernel k grid(b: 4) {
  alloc x: fragment i32[3]
  copy X[b :+ 1, 0 :+ 3] -> x
  atomic x -> Y[1 :+ 3]
  parallel i in 3 { atomic_max(H[cast(i64, x[i] % 4i32)], x[i]) }
})",
                   {x.slot(), y.slot(), h.slot()});
  EXPECT_EQ(y.values(), (std::vector<double>{100, 100 + 0 + 3 + 6 + 9, 100 + 1 + 4 + 7 + 10}));
  EXPECT_EQ(h.values(), (std::vector<double>{8, 9, 10, 11}));
}

}  // namespace
}  // namespace tilegen
