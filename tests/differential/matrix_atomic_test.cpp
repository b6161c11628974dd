// Atomic operations: kinds, types, scopes, threads; regions of several blocks that overlap and hang over
// edges; elements that iterations share.
#include "matrix.h"

namespace tilegen::differential {
namespace {

std::vector<DType> types_of(const std::string& kind) {
  if (kind == "and" || kind == "or" || kind == "xor")
    return {DType::i32, DType::i64, DType::u32, DType::u64, DType::u16, DType::i8, DType::u8};
  return {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::i64,
          DType::i16, DType::u16,  DType::u32, DType::u64, DType::i8,  DType::u8};
}

std::vector<Launch> launches_of(DType t, const std::string& kind, uint64_t seed) {
  Launch whole;
  whole.seed = seed;
  whole.dims = {{"n", 37}};
  whole.magnitude = ir::is_float(t) && ir::dtype_bits(t) == 16 ? 1 : 0;
  Launch reals = whole;
  reals.data = Data::reals;
  if (kind == "add" && ir::is_float(t)) reals.bound = Bound::of_sum(t, 128, 8);
  return {whole, reals};
}

TEST(Atomics, KindsTypesScopesThreads) {
  int at = 0;
  for (const std::string kind : {"add", "min", "max", "and", "or", "xor"})
    for (DType t : types_of(kind))
      for (const std::string scope : {"fragment", "shared"}) {
        ++at;
        if (!long_run() && at % 2 == 0 && ir::dtype_bits(t) != 32) continue;
        expect_agree(replaced(R"(tl 1 program p
dim n
tensor X: $type[n, 40] readonly
tensor Y: $type[40]
tensor Z: $type[n, 40]
kernel k grid (b: ceildiv(n, 16)) threads $threads {
  alloc x: $scope $type[16, 40]
  copy X[b * 16 :+ 16, 0 :+ 40] -> x
  atomic x -> Z[b * 8 - 3 :+ 16, 5 :+ 40] {kind=$kind}
  parallel i, j in 16, 40 {
    if i < 11 {
      atomic_$kind(Y[(i + j * 3) % 41], x[i, j])
    }
  }
}
)",
                              {{"type", ir::dtype_name(t)},
                               {"kind", kind},
                               {"scope", scope},
                               {"threads", std::to_string(64 << at % 4)}}),
                     launches_of(t, kind, static_cast<uint64_t>(at)));
        if (HasFailure()) return;
      }
}

// Elements side by side, which machines add to at once: whole rows, rows that begin at pairs or anywhere,
// boxes that hang over an edge, conditions of rows and of elements.
TEST(Atomics, SumsOfNeighbours) {
  int at = 0;
  for (DType t : {DType::f16, DType::bf16, DType::f32})
    for (const int columns : {64, 66, 65})
      for (const int first : {0, 2, 8}) {
        ++at;
        expect_agree(replaced(R"(tl 1 program p
dim n
tensor X: $type[n, 64] readonly
tensor Z: $type[n, $columns]
tensor Y: $type[n, $columns]
kernel k grid (b: ceildiv(n, 16)) threads $threads {
  alloc x: fragment $type[16, 64]
  copy X[b * 16, 0] -> x
  atomic x -> Z[b * 8, $first] {kind=add}
  parallel i, j in 16, 64 {
    if b * 16 + i < n and j < 48 and (i % 3 == 0 or X[b * 16 + i, j] > cast($type, 0)) {
      atomic_add(Y[b * 16 + i, j], x[i, j])
    }
  }
}
)",
                              {{"type", ir::dtype_name(t)},
                               {"columns", std::to_string(columns)},
                               {"first", std::to_string(first)},
                               {"threads", std::to_string(64 << at % 3)}}),
                     launches_of(t, "add", static_cast<uint64_t>(at)));
        if (HasFailure()) return;
      }
}

// Old values of tiles: of kinds, into fragments, shared tiles, boxes of them and the source itself.
TEST(Atomics, OldValuesOfTiles) {
  int at = 0;
  for (const std::string kind : {"exchange", "add", "max", "xor"})
    for (DType t : {DType::i32, DType::u64, DType::i16, DType::f32})
      for (const std::string scope : {"fragment", "shared"})
        for (const std::string old : {"x", "y", "wide[3 :+ 16, 8 :+ 40]"}) {
          ++at;
          if (ir::is_float(t) && kind == "xor") continue;
          if (!long_run() && at % 3 != 0) continue;
          std::string text = replaced(R"(tl 1 program p
dim n
tensor X: $type[n, 40] readonly
tensor Z: $type[n, 40]
tensor Old: $type[n, 40]
kernel k grid (b: ceildiv(n, 16)) threads $threads {
  alloc x: $scope $type[16, 40]
  alloc y: $scope $type[16, 40]
  alloc wide: shared $type[24, 48]
  alloc total: shared $type[16, 40]
  copy X[b * 16 :+ 16, 0 :+ 40] -> x
  copy x -> total
  atomic x -> Z[b * 16 - 3, 5], $old {kind=$kind}
  copy $old -> Old[b * 16 :+ 16, 0 :+ 40]
  atomic x -> total, y {kind=$kind}
  parallel i, j in 16, 40 { if i < 4 { Old[b * 16 + i, j] = y[i, j] + total[i, j] } }
}
)",
                                      {{"type", ir::dtype_name(t)},
                                       {"kind", kind},
                                       {"scope", scope},
                                       {"old", old},
                                       {"threads", std::to_string(64 << at % 3)}});
          expect_agree(text, launches_of(t, kind, static_cast<uint64_t>(at)));
          if (HasFailure()) return;
        }
}

// The sum of all elements, and a histogram, whose places are read.
TEST(Atomics, SumsAndHistograms) {
  Launch launch;
  launch.dims = {{"n", 1000}};
  expect_agree(R"(tl 1 program p
dim n
tensor X: i32[n] readonly
tensor Sum: i64[1]
tensor Count: i32[16]
tensor Last: i32[16]
kernel k grid (b: ceildiv(n, 256)) {
  alloc part: fragment i64[1]
  alloc wide: fragment i64[256]
  parallel i in 256 { wide[i] = cast(i64, X[b * 256 + i]) }
  reduce wide -> part {axis=0}
  atomic part -> Sum
  parallel i in 256 {
    if b * 256 + i < n {
      atomic_add(Count[cast(i64, X[b * 256 + i]) % 16], 1i32)
      atomic_max(Last[cast(i64, X[b * 256 + i]) % 16], cast(i32, b * 256 + i))
    }
  }
}
)",
               {launch});
}

// Old values, where one iteration touches an element, so that they are the same in any order.
TEST(Atomics, OldValues) {
  int at = 0;
  for (const std::string kind : {"add", "min", "max", "and", "or", "xor", "exchange"})
    for (DType t : types_of(kind))
      for (const int64_t points : {1, 40, 300}) {
        ++at;
        if (!long_run() && at % 3 != 0 && (ir::dtype_bits(t) != 32 || points == 40)) continue;
        const std::string text = replaced(R"(tl 1 program p
tensor X: $type[300] readonly
tensor Y: $type[310]
tensor Z: $type[300]
tensor S: $type[300]
kernel k grid (b: 2) threads $threads {
  alloc m: shared $type[$n]
  alloc seen: shared $type[$n]
  alloc f: fragment $type[$n]
  parallel i in $n { m[i] = X[i] }
  parallel i in $n {
    if b == 1 {
      let old = atomic_$kind(Y[309 - i * 2], X[i])
      Z[i] = old
      f[i] = atomic_$kind(m[($n - 1) - i], old)
      seen[i] = atomic_$kind(m[($n - 1) - i], f[i])
    } else {
      f[i] = X[i]
      seen[i] = X[i]
    }
  }
  parallel i in $n { if b == 1 { S[i] = seen[($n - 1) - i] } }
}
)",
                                          {{"type", ir::dtype_name(t)},
                                           {"kind", kind},
                                           {"n", std::to_string(points)},
                                           {"threads", std::to_string(64 << at % 3)}});
        Launch launch;
        launch.seed = static_cast<uint64_t>(at);
        launch.magnitude = ir::is_float(t) && ir::dtype_bits(t) == 16 ? 1 : 0;
        expect_agree(text, {launch});
        if (HasFailure()) return;
      }
}

TEST(Atomics, CompareAndExchange) {
  for (DType t :
       {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
    Launch launch;
    launch.seed = static_cast<uint64_t>(t);
    expect_agree(replaced(R"(tl 1 program p
tensor X: $type[200] readonly
tensor Y: $type[200]
tensor Z: $type[200]
kernel k grid (b: 2) {
  alloc m: shared $type[100]
  parallel i in 100 { m[i] = X[b * 100 + i] % 3$type }
  parallel i in 100 {
    let was = atomic_compare_exchange(m[99 - i], 1$type, X[b * 100 + i])
    atomic_compare_exchange(Y[b * 100 + i], was, 7$type)
    Z[b * 100 + i] = atomic_compare_exchange(Y[b * 100 + i], 7$type, was)
    Z[b * 100 + i] += m[99 - i]
  }
}
)",
                          {{"type", ir::dtype_name(t)}}),
                 {launch});
    if (HasFailure()) return;
  }
}

// Bytes of one word that threads and blocks update at once, beside others that nobody touches, up to the last
// byte of tensors of no whole words.
TEST(Atomics, BytesOfOneWord) {
  Launch launch;
  launch.whole = {{"N", std::vector<int64_t>(3, 0)}, {"M", std::vector<int64_t>(7, 0)}};
  for (const std::string type : {"u8", "i8"}) {
    expect_agree(replaced(R"(tl 1 program p
tensor X: $type[512] readonly
tensor N: $type[3]
tensor M: $type[7]
tensor Y: $type[6]
kernel k grid (b: 2) threads 128 {
  alloc m: shared $type[5]
  alloc other: shared $type[3]
  parallel i in 5 { m[i] = cast($type, i) }
  parallel i in 3 { other[i] = cast($type, 90 + i) }
  parallel i in 256 {
    atomic_add(N[i % 3], X[b * 256 + i])
    atomic_xor(M[(i + b) % 7], X[b * 256 + i])
    atomic_max(m[i % 4], X[i])
    atomic_add(m[4], 1$type)
  }
  parallel i in 3 { if b == 0 { Y[i] = other[i] } }
  parallel i in 3 { if b == 1 { Y[3 + i] = m[i] + m[4] } }
}
)",
                          {{"type", type}}),
                 {launch});
    if (HasFailure()) return;
  }
}

// A tile put in the place of another, where blocks do not meet; what comes before and behind it keeps its
// place, also where the copy engine could combine.
TEST(Atomics, ExchangesOfTiles) {
  int at = 0;
  for (DType t : types_of("exchange"))
    for (const std::string scope : {"fragment", "shared"}) {
      Launch launch;
      launch.dims = {{"n", 37}};
      launch.seed = static_cast<uint64_t>(++at);
      launch.magnitude = ir::is_float(t) && ir::dtype_bits(t) == 16 ? 1 : 0;
      expect_agree(
          replaced(
              R"(tl 1 program p
dim n
tensor X: $type[n, 40] readonly
tensor Y: $type[n, 48]
tensor Z: $type[n, 48]
kernel k grid (b: ceildiv(n, 16)) threads $threads {
  alloc x: $scope $type[16, 40]
  copy X[b * 16 :+ 16, 0 :+ 40] -> x
  atomic x -> Y[b * 16 :+ 16, 5 :+ 40] {kind = add}
  atomic x -> Y[b * 16 :+ 16, 8 :+ 40] {kind = exchange}
  atomic x -> Y[b * 16 :+ 16, 0 :+ 40] {kind = max}
  serial r in 0 .. 2 {
    atomic x -> Z[b * 16 :+ 16, 9 - r :+ 40] {kind = exchange}
  }
}
)",
              {{"type", ir::dtype_name(t)}, {"scope", scope}, {"threads", std::to_string(64 << at % 3)}}),
          {launch});
      if (HasFailure()) return;
    }
}

// Places that iterations of all blocks take: in any order, but each once.
TEST(Atomics, TakenPlaces) {
  Launch launch;
  launch.dims = {{"n", 700}};
  launch.whole = {{"Next", std::vector<int64_t>(4, 0)}, {"Hits", std::vector<int64_t>(2800, 0)}};
  expect_agree(R"(tl 1 program p
dim n
tensor X: i32[n] readonly
tensor Next: i32[4]
tensor Hits: i32[4, n]
kernel k grid (b: ceildiv(n, 128)) {
  parallel i in 128 {
    if b * 128 + i < n {
      let bin = cast(i64, X[b * 128 + i]) % 4
      let place = atomic_add(Next[bin], 1i32)
      atomic_add(Hits[bin, cast(i64, place)], 1i32)
    }
  }
}
)",
               {launch});
}

// The block that comes last does more than the others.
TEST(Atomics, LastBlock) {
  Launch launch;
  launch.dims = {{"n", 600}};
  launch.whole = {{"Done", {0}}};
  expect_agree(R"(tl 1 program p
dim n
tensor X: i32[n] readonly
tensor Done: i32[1]
tensor Sum: i32[1]
tensor Last: i32[1]
kernel clear grid (b: 1) { parallel i in 1 { Sum[0] = 0i32 Last[0] = 0i32 } }
kernel k grid (b: ceildiv(n, 128)) {
  alloc ticket: shared i32[1]
  parallel i in 128 { if b * 128 + i < n { atomic_add(Sum[0], X[b * 128 + i] % 100) } }
  parallel i in 1 { ticket[i] = atomic_add(Done[0], 1i32) }
  if cast(i64, ticket[0]) == ceildiv(n, 128) - 1 {
    parallel i in 64 { atomic_add(Last[0], cast(i32, i)) }
  }
}
)",
               {launch});
}

// Later kernels, and later statements of a block, see what was added.
TEST(Atomics, AreSeenAfterwards) {
  Launch launch;
  launch.dims = {{"n", 5}};
  expect_agree(R"(tl 1 program p
dim n
tensor X: f32[n, 64] readonly
tensor Part: f32[n, 8] workspace
tensor Y: f32[n, 8]
kernel clear grid (b: n) {
  parallel i in 8 { Part[b, i] = 0.0f32 }
}
kernel add grid (b: n) threads 64 {
  parallel i in 64 { atomic_add(Part[b, i % 8], X[b, i]) }
  parallel i in 8 { Y[b, i] = Part[b, (i + 3) % 8] }
}
)",
               {launch});
}

}  // namespace
}  // namespace tilegen::differential
