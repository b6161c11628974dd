// Optional tensors: every way to reach one, with it and without, in sizes that no tile divides. A launch
// without it passes null, so an access that is executed in front of its condition is a fault, or a finding of
// the simulator.
#include "matrix.h"

namespace tilegen::differential {
namespace {

std::vector<Launch> launches() {
  std::vector<Launch> list;
  for (const int64_t n : {0, 1, 37, 130})
    for (const int64_t x : {0, 1})
      for (const int64_t z : {0, 1}) {
        Launch l;
        l.dims = {{"n", n}, {"present(X)", x}, {"present(Z)", z}};
        l.seed = static_cast<uint64_t>(n) + 7;
        list.push_back(l);
      }
  return list;
}

const char* const kProgram = R"(tl 1 program optional
dim n
tensor A: $type[n, 32] readonly
tensor I: i32[n] readonly
tensor X: $type[n, 32] readonly optional
tensor Y: $type[n, 32]
tensor Z: $type[n, 32] optional

kernel k grid (b: ceildiv(n, 16)) threads $threads {
  alloc a: $scope $type[16, 32]
  alloc x: $scope $type[16, 32]
  alloc s: shared $type[16, 32]
  alloc l: local $type[1]
  copy A[b * 16 :+ 16, 0 :+ 32] -> a
  $body
  copy a -> Y[b * 16 :+ 16, 0 :+ 32]
}
)";

// Bodies that read X.
const Strings kReads = {
    "if present(X) {\n    copy X[b * 16 :+ 16, 0 :+ 32] -> x\n"
    "    parallel i, j in 16, 32 { a[i, j] = a[i, j] + x[i, j] }\n  }",
    "if present(X) {\n    copy X[b * 16 :+ 16, 0 :+ 32] -> s\n"
    "    parallel i, j in 16, 32 { a[i, j] = a[i, j] + s[15 - i, j] }\n  }",
    "if present(X) { copy X[b * 16 - 3 :+ 16, 0 :+ 32] -> x } else { copy A[b * 16 + 1 :+ 16, 0 :+ 32] -> x "
    "}\n"
    "  parallel i, j in 16, 32 { a[i, j] = x[i, j] }",
    "parallel i, j in 16, 32 {\n    if present(X) { a[i, j] = a[i, j] + X[b * 16 + i, j] }\n  }",
    "parallel i, j in 16, 32 { a[i, j] = a[i, j] + select(present(X), X[b * 16 + i, j], $two) }",
    "parallel i, j in 16, 32 { a[i, j] = select(not present(X), a[i, j], X[b * 16 + i, 31 - j]) }",
    // Conditions that ask for more.
    "parallel i, j in 16, 32 {\n    if present(X) and X[b * 16 + i, j] < $two { a[i, j] = $two }\n  }",
    "parallel i, j in 16, 32 {\n    if not present(X) or X[b * 16 + i, 0] < $two { a[i, j] = $two } else "
    "{ a[i, j] = X[b * 16 + i, j] }\n  }",
    "if present(X) and n > 20 {\n    copy X[0 :+ 16, 0 :+ 32] -> a\n  }",
    // A neighbourhood, and places that are read.
    "parallel i, j in 16, 8 {\n    if present(X) {\n"
    "      a[i, j * 4] = X[b * 16 + i, j * 4] + X[b * 16 + i, j * 4 + 1] + X[b * 16 + i, j * 4 + 2] + X[b * "
    "16 + i, "
    "j * 4 + 3]\n    }\n  }",
    "parallel i, j in 16, 32 {\n    let at = b * 16 + i\n    if at < n {\n      let row = cast(i64, I[at]) % "
    "9\n"
    "      a[i, j] = a[i, j] + select(present(X), X[row, j], $two)\n    }\n  }",
    // The same for a block.
    "l[0] = select(present(X), X[b * 16, 3], $two)\n"
    "  parallel i, j in 16, 32 { a[i, j] = a[i, j] + l[0] }",
    "fill x, $two\n  serial r in 0 .. 3 while present(X) {\n    copy X[b * 16 + r :+ 16, 0 :+ 32] -> s\n"
    "    parallel i, j in 16, 32 { x[i, j] = x[i, j] + s[i, j] }\n  }\n"
    "  parallel i, j in 16, 32 { a[i, j] = a[i, j] + x[i, j] }",
    "pipelined i in 0 .. 5 stages 3 {\n    copy A[b * 16 + i :+ 16, 0 :+ 32] -> s\n"
    "    if present(X) { copy X[b * 16 + i :+ 16, 0 :+ 32] -> x } else { fill x, $two }\n"
    "    parallel u, v in 16, 32 { a[u, v] = a[u, v] + s[u, v] + x[u, v] }\n  }",
    "if present(X) {\n    pipelined i in 0 .. 5 stages 3 {\n      copy X[b * 16 + i :+ 16, 0 :+ 32] -> s\n"
    "      parallel u, v in 16, 32 { a[u, v] = a[u, v] + s[u, v] }\n    }\n  }",
    "if not present(X) { return }\n  copy X[b * 16 + 2 :+ 16, 0 :+ 32] -> a",
};

// Bodies that write Z.
const Strings kWrites = {
    "if present(Z) { copy a -> Z[b * 16 :+ 16, 0 :+ 32] }",
    "parallel i, j in 16, 32 {\n    if present(Z) { Z[b * 16 + i, j] = a[i, j] }\n  }",
    "parallel i, j in 16, 32 {\n    if present(Z) and a[i, j] < $two { Z[b * 16 + i, j] = a[i, j] + $two }\n "
    " }",
    "if present(Z) {\n    parallel i, j in 16, 32 { Z[b * 16 + i, j] = Z[b * 16 + i, j] + a[i, j] }\n  }",
    "if present(Z) and present(X) {\n    copy X[b * 16 :+ 16, 0 :+ 32] -> s\n    copy s -> Z[b * 16 :+ 16, 0 "
    ":+ 32]\n  }",
};

const Strings kAtomics = {
    "parallel i, j in 16, 32 {\n    if present(Z) { atomic_add(Z[b * 16 + i, j % 4], a[i, j]) }\n  }",
    "if present(Z) { atomic a -> Z[b * 16 :+ 16, 0 :+ 32] {kind = add} }",
};

void run(const Strings& bodies, DType type, const char* two) {
  int at = 0;
  for (const std::string& body : bodies)
    for (const char* scope : {"fragment", "shared"}) {
      ++at;
      expect_agree(
          replaced(replaced(kProgram, {{"body", body}}), {{"type", ir::dtype_name(type)},
                                                          {"scope", scope},
                                                          {"two", two},
                                                          {"threads", std::to_string(64 << at % 2)}}),
          launches());
      if (testing::Test::HasFailure()) return;
    }
}

TEST(Optional, ReadsOfNull) { run(kReads, DType::f32, "2.0f32"); }
TEST(Optional, ReadsOfNarrowTypes) { run(kReads, DType::f16, "2.0f16"); }
TEST(Optional, ReadsOfIntegers) { run(kReads, DType::i32, "2i32"); }
TEST(Optional, WritesOfNull) { run(kWrites, DType::f32, "2.0f32"); }
TEST(Optional, WritesOfBytes) { run(kWrites, DType::u8, "2u8"); }
TEST(Optional, AtomicOperations) { run(kAtomics, DType::i32, "2i32"); }

// A launch without an optional result does not have the blocks that make it.
TEST(Optional, GridsAskForPresence) {
  expect_agree(R"(tl 1 program grids
dim n
tensor X: f32[n] readonly
tensor Z: f32[n] optional

kernel k grid (b: select(present(Z), ceildiv(n, 64), 0)) threads 64 {
  parallel i in 64 {
    if present(Z) { Z[b * 64 + i] = X[b * 64 + i] * 2.0f32 }
  }
}
)",
               launches());
}

// Threads that copy by themselves ask, too.
TEST(Optional, BlocksOfThreads) {
  expect_agree(R"(tl 1 program threads
dim n
tensor X: f32[n, 64] readonly optional
tensor Y: f32[n, 64]
tensor Z: f32[n, 64] optional

kernel k grid (b: n) threads 64 {
  alloc x: shared f32[64]
  threads t in 64 {
    x[t] = 1.0f32
    barrier
    if present(X) {
      copy_async X[b, t] -> x[t]
    }
    commit_group
    wait_group 0
    barrier
    Y[b, t] = x[63 - t] + select(present(X), X[b, t], 3.0f32)
    if present(Z) { Z[b, t] = x[t] }
  }
}
)",
               launches());
}

}  // namespace
}  // namespace tilegen::differential
