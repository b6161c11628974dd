// Loops inside parallel loops and blocks of threads that only the launch bounds: by a condition of each
// point, by trips of each, or of all.
#include "matrix.h"

namespace tilegen::differential {
namespace {

constexpr const char* kPoints = R"(tl 1 program p
dim n <= 40
scalar most: i64
tensor X: i32[n, 24] readonly
tensor L: i32[n] readonly
tensor Y: i32[n, 24]
tensor Z: i32[n, 24]

kernel k grid (b: ceildiv(n, 8)) threads $threads {
  alloc x: $scope i32[8, 24]
  alloc z: $to i32[8, 24]
  copy X[b * 8 :+ 8, 0 :+ 24] -> x
  fill z, 3
  parallel i, j in 8, 24 { x[i, j] = x[i, j] % 50 }
  parallel i, j in 8, 24 {
    let own = x[i, j]
    var s = own
    var trips = 0i32
    $body
    Y[b * 8 + i, j] = s + own
    z[i, j] = z[i, j] * 5 + trips
  }
  copy z -> Z[b * 8 :+ 8, 0 :+ 24]
}
)";

// What each point does stands in front of the loop, in it and behind it.
TEST(PointLoops, EveryFormAndPlace) {
  const Strings bodies = {
      // a condition of the point
      "while s > 1 { s = select(s % 2 == 0, s // 2, s - 3) trips += 1 }",
      "while s % 7 != 0 and trips < 9 { s += 1 trips += 1 if s % 5 == 0 { break } if s % 3 == 0 { continue } "
      "trips += 2 }",
      "while cast(i64, trips) < most { trips += 1 z[i, j] += s }",
      "while x[i, j] > 2 { x[i, j] -= 3 trips += 1 }",
      // trips of the point, of all
      "serial t in 0 .. cast(i64, L[b * 8 + i] % 6) { s += X[t, j] trips += cast(i32, t) }",
      "serial t in j // 8 .. cast(i64, own % 7) { s = s * 3 + cast(i32, t) trips += 1 }",
      "serial t in 0 .. n % 5 { s += X[t, j] trips += 1 }",
      "serial t in b .. n // 8 { unroll u in 0 .. 2 { s += X[t * 2 + u, j] } trips += 1 }",
      "serial t in 0 .. n while s < 60 { s += X[t, j] * X[t, j] trips += 1 }",
      "serial t in 0 .. cast(i64, own % 9) while s < 30 { s += cast(i32, t) * 4 trips += 1 if trips == 4 { "
      "break } }",
      // in ifs and loops
      "if own > 2 { while s > 1 { s -= 2 trips += 1 } } else { s = 5 }",
      "if n > 9 { serial t in 0 .. n // 4 { s += cast(i32, t) } } trips = s",
      "unroll u in 0 .. 3 { while s > cast(i32, 4 * u) { s -= 2 trips += 1 } s += 3 }",
      "serial u in 0 .. n % 4 { var q = own while q > cast(i32, u) { q = q // 2 trips += 1 } s += q }",
      "while s > 0 { var q = s while q > 0 { q = q // 2 trips += 1 } s = s - 1 - q }",
      "while s > 0 { if s % 2 == 0 { serial t in 0 .. cast(i64, s % 5) { trips += cast(i32, t) } } s = s // "
      "2 }",
      "serial t in 0 .. 3 { s += cast(i32, t) } while s > 9 { s -= 4 unroll v in 0 .. 2 { trips += cast(i32, "
      "v) } }",
  };
  int at = 0;
  for (const std::string& body : bodies) {
    ++at;
    std::vector<Launch> launches = launches_of_n({8, 21, 1});
    for (Launch& l : launches) l.dims["most"] = 4;
    expect_agree(replaced(kPoints, {{"body", body},
                                    {"threads", std::to_string(32 << at % 3)},
                                    {"scope", at % 2 ? "shared" : "fragment"},
                                    {"to", at % 3 ? "fragment" : "shared"}}),
                 launches);
    if (HasFailure()) return;
  }
}

// Rows of a sparse matrix, begun and ended by a table.
TEST(PointLoops, SparseRows) {
  const char* text = R"(tl 1 program p
dim n <= 40
tensor Begin: i32[n] readonly
tensor Length: i32[n] readonly
tensor Column: i32[64] readonly
tensor V: f32[64] readonly
tensor X: f32[16] readonly
tensor Y: f32[n]
kernel k grid (b: ceildiv(n, 32)) threads 64 {
  $points {
    let row = b * 32 + i
    var s = 0.0f32
    let first = cast(i64, Begin[row] % 40)
    serial t in first .. first + cast(i64, Length[row] % 9) {
      s += V[t] * X[cast(i64, Column[t] % 16)]
    }
    Y[row] = s
  }
}
)";
  for (const std::string points : {"parallel i in 32", "parallel i, one in 32, 1"})
    expect_agree(replaced(text, {{"points", points}}), launches_of_n({32, 19, 40}));
}

// Threads leave by themselves, and meet in front of the loop and behind it.
TEST(PointLoops, Threads) {
  const Strings bodies = {
      "while s > 1 { s = select(s % 2 == 0, s // 2, s - 3) trips += 1 }",
      "serial t in 0 .. cast(i64, s % 7) { s += X[b, t] trips += 1 }",
      "if warp == 1 { while s > 0 { s -= 5 trips += 1 } }",
      "serial t in 0 .. n % 3 { s += shuffle_xor(s, 1) while s > 20 { s -= 7 trips += 1 } }",
      "if lane > 9 { serial t in lane .. 24 while s < 50 { s += cast(i32, t) trips += 1 } } barrier",
  };
  for (const std::string& body : bodies) {
    expect_agree(replaced(R"(tl 1 program p
dim n <= 40
tensor X: i32[n, 64] readonly
tensor Y: i32[n, 64]
kernel k grid (b: n) threads 64 {
  alloc part: shared i32[2, 32]
  threads warp, lane in 2, 32 {
    var s = X[b, warp * 32 + lane] % 40
    var trips = 0i32
    s += shuffle_xor(s, 3)
    $body
    part[warp, lane] = s
    barrier
    let other = part[1 - warp, lane]
    Y[b, warp * 32 + lane] = shuffle(s, 5) * 100 + trips + other
  }
}
)",
                          {{"body", body}}),
                 launches_of_n({1, 7, 11}));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilegen::differential
