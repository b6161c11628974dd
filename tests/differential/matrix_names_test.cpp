// Named values, assignments and loops inside parallel loops: types, where they are kept, branches.
#include "matrix.h"

namespace tilegen::differential {
namespace {

// Kept before a store that changes what they read: in fragments, outside of parallel loops in local tiles.
TEST(Names, KeptInMemory) {
  for (DType t : kAll) {
    if (ir::is_bool(t)) continue;
    for (const std::string scope : {"fragment", "shared"})
      expect_agree(replaced(R"(tl 1 program p
dim m
tensor X: $t[m, 40] readonly
tensor Y: $t[m, 40]
tensor Z: $t[m, 40]
kernel k grid (g: ceildiv(m, 12)) {
  alloc x: $scope $t[12, 40]
  alloc n: local i64[1]
  copy X[g * 12 :+ 12, 0 :+ 40] -> x
  fill n, 1
  let first = n[0] + g
  serial s in 0 .. 3 {
    let before = n[0]
    n[0] = before + first % 3
    parallel i, j in 12, 40 {
      let old = x[i, j]
      let sum = old + cast($t, before)
      x[i, j] = sum
      if j > 4 {
        x[i, j] = old
        Z[g * 12 + i, j] = sum - old
      } else {
        Z[g * 12 + i, j] = x[i, j]
      }
    }
  }
  copy x -> Y[g * 12 :+ 12, 0 :+ 40]
}
)",
                            {{"t", ir::dtype_name(t)}, {"scope", scope}}),
                   [] {
                     std::vector<Launch> launches = seeds({1, 2, 3});
                     launches[0].dims = {{"m", 12}};
                     launches[1].dims = {{"m", 29}};
                     launches[2].dims = {{"m", 0}};
                     for (Launch& l : launches) l.magnitude = 8;
                     return launches;
                   }());
  }
}

// Carried through loops: a product of whole rows, the place of the first negative element, a bitwise fold.
TEST(Names, CarriedThroughLoops) {
  for (const int trips : {1, 3, 16, 70})
    for (const std::string loop : {"serial", "unroll"})
      expect_agree(replaced(R"(tl 1 program p
tensor A: f32[24, $k] readonly
tensor B: f32[$k, 20] readonly
tensor I: i32[24, $k] readonly
tensor C: f32[24, 20]
tensor F: i32[24, 20]
kernel k grid (g: 1) {
  parallel i, j in 24, 20 {
    var sum = 0.0f32
    var place = -1i32
    var bits = 0i32
    $loop k in 0 .. $k {
      sum = fma(A[i, k], B[k, j], sum)
      let element = I[i, k]
      if place < 0 and element < 0 { place = cast(i32, k) }
      bits = bits ^ (element << cast(i32, j))
    }
    C[i, j] = sum
    F[i, j] = place ^ bits
  }
}
)",
                            {{"k", std::to_string(trips)}, {"loop", loop}}),
                   [] {
                     std::vector<Launch> launches = seeds({1, 2});
                     for (Launch& l : launches) l.magnitude = 4;
                     return launches;
                   }());
}

// Of both sides of an if, with stores in between and without.
TEST(Names, AssignedInBranches) {
  for (const std::string store : {"", "y[i, j] = s"})
    for (const std::string condition : {"x[i, j] > 0", "j % 3 == 0", "i < g"})
      expect_agree(replaced(R"(tl 1 program p
tensor X: f32[4, 16, 32] readonly
tensor Y: f32[4, 16, 32]
kernel k grid (g: 4) {
  alloc x: shared f32[16, 32]
  alloc y: fragment f32[16, 32]
  copy X[g :+ 1, 0 :+ 16, 0 :+ 32] -> x
  fill y, 3
  parallel i, j in 16, 32 {
    var s = x[i, j]
    var t = 1.0f32
    if $condition {
      s += 1
      $store
      t = s - y[i, j]
    } else {
      t = y[i, j] + s
      serial r in 0 .. 2 { s = t - s }
    }
    y[i, j] = s + 2 * t
  }
  copy y -> Y[g :+ 1, 0 :+ 16, 0 :+ 32]
}
)",
                            {{"store", store}, {"condition", condition}}),
                   [] {
                     std::vector<Launch> launches = seeds({1});
                     launches[0].magnitude = 16;
                     return launches;
                   }());
}

}  // namespace
}  // namespace tilegen::differential
