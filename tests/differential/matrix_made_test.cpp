// Sorts, first elements, reductions and scans by a combination of the program: types, axes, shapes, scopes.
#include "matrix.h"

namespace tilegen::differential {
namespace {

// Many equal elements, infinities and NaNs, and X falling and rising along the axis: random elements hardly
// ever come first from one half of a row alone.
std::vector<Launch> rows_to_sort(int seed, DType t, const std::vector<int64_t>& shape, size_t axis) {
  std::vector<Launch> launches(4);
  for (Launch& launch : launches) {
    launch.seed = static_cast<uint64_t>(seed);
    launch.magnitude = 3;
  }
  launches[1].data = Data::bit_patterns;
  int64_t elements = 1, apart = 1;
  for (size_t d = 0; d < shape.size(); ++d) elements *= shape[d], apart *= d > axis ? shape[d] : 1;
  const int64_t n = shape[axis], middle = ir::dtype_kind(t) == ir::DTypeKind::unsigned_int ? 0 : n / 2;
  for (const bool rising : {false, true}) {
    std::vector<int64_t>& x = launches[rising ? 3 : 2].whole["X"];
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t at = i / apart % n, place = (rising ? at : n - 1 - at) - middle;
      const int64_t value = ir::dtype_bits(t) == 8 ? place * 127 / n : place;
      x.push_back(ir::is_float(t) ? static_cast<int64_t>(ir::float_to_bits(t, static_cast<double>(value)))
                                  : value);
    }
  }
  return launches;
}

TEST(Sort, TypesAxesShapesScopesThreads) {
  const std::vector<std::vector<int64_t>> shapes = {{1},     {7},      {32},      {300},
                                                    {5, 37}, {64, 16}, {3, 7, 9}, {16, 100}};
  int at = 0;
  for (const std::string word : {"sort", "topk"})
    for (DType t : kAll)
      for (const auto& shape : shapes)
        for (size_t axis = 0; axis < shape.size(); ++axis)
          for (bool turned : {false, true}) {
            ++at;
            if (ir::is_bool(t) || (!long_run() && at % 23 != 0)) continue;
            std::vector<int64_t> kept = shape;
            if (word == "topk") kept[axis] = 1 + at % kept[axis];
            expect_agree(replaced(R"(tl 1 program p
tensor X: $type[$shape] readonly
tensor Y: $type[$kept]
tensor I: $index[$kept]
kernel k grid (g: 1) threads $threads {
  alloc x: $scope $type[$shape]
  alloc y: $to $type[$kept]
  alloc i: fragment $index[$kept]
  copy X -> x
  $word x -> y, i {axis=$axis$flag}
  copy y -> Y
  copy i -> I
}
)",
                                  tile_parts(t, shape, kept, axis, at,
                                             {{"index", at % 2 ? "i32" : "i64"},
                                              {"word", word},
                                              {"flag", !turned          ? ""
                                                       : word == "sort" ? ", descending"
                                                                        : ", smallest"}})),
                         rows_to_sort(at, t, shape, axis));
            if (HasFailure()) return;
          }
}

// Rows within a warp, over several and with padding, several to a warp; keys with and without places; first
// elements that threads, warps and blocks come to.
TEST(Sort, RowsInLanesAndWarps) {
  struct Rows {
    std::vector<int64_t> shape;
    size_t axis;
    int64_t wanted;  // all: sort
  };
  const Rows list[] = {{{32}, 0, 32},      {{64}, 0, 64},      {{2, 64}, 1, 64},   {{64, 4}, 0, 64},
                       {{16, 32}, 1, 32},  {{4, 256}, 1, 256}, {{256, 2}, 0, 256}, {{127}, 0, 127},
                       {{2, 129}, 1, 129}, {{1024}, 0, 1024},  {{4096}, 0, 4096},  {{3, 64}, 1, 64},
                       {{4, 256}, 1, 8},   {{4, 256}, 1, 32},  {{2, 100}, 1, 5},   {{4096}, 0, 8},
                       {{4096}, 0, 33},    {{1, 2048}, 1, 1},  {{128, 8}, 0, 3},   {{2, 2, 64}, 1, 2},
                       {{512}, 0, 100}};
  int at = 0;
  for (const Rows& rows : list)
    for (DType t :
         {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8, DType::u16, DType::i32, DType::u64})
      for (bool places : {false, true}) {
        ++at;
        if (!long_run() && at % 9 != 0) continue;
        std::vector<int64_t> kept = rows.shape;
        kept[rows.axis] = rows.wanted;
        const bool all = kept == rows.shape;
        expect_agree(replaced(std::string(R"(tl 1 program p
tensor X: $type[$shape] readonly
tensor Y: $type[$kept]
tensor I: i32[$kept]
kernel k grid (g: 1) threads $threads {
  alloc x: $scope $type[$shape]
  alloc y: $to $type[$kept]
  alloc i: fragment i32[$kept]
  copy X -> x
  fill i, 7
)") + (places ? "  $word x -> y, i {axis=$axis$flag}\n" : "  $word x -> y {axis=$axis$flag}\n") +
                                  R"(  copy y -> Y
  copy i -> I
}
)",
                              tile_parts(t, rows.shape, kept, rows.axis, at,
                                         {{"word", all ? "sort" : "topk"},
                                          {"flag", at % 2 ? ""
                                                   : all  ? ", descending"
                                                          : ", smallest"}})),
                     rows_to_sort(at, t, rows.shape, rows.axis));
        if (HasFailure()) return;
      }
}

// Maps x -> a x + b one after the other; the order matters, and in integers every order of combining
// neighbours gives the same bits.
TEST(Combination, AxesShapesScopesThreads) {
  const std::vector<std::vector<int64_t>> shapes = {{1},     {7},       {32},      {97},     {300},
                                                    {5, 37}, {128, 16}, {3, 7, 9}, {16, 100}};
  int at = 0;
  for (const std::string word : {"reduce", "scan"})
    for (DType t : {DType::i32, DType::u64, DType::u8})
      for (const auto& shape : shapes)
        for (size_t axis = 0; axis < shape.size(); ++axis)
          for (bool flag : {false, true}) {
            ++at;
            if (!long_run() && at % 7 != 0) continue;
            std::vector<int64_t> kept = shape;
            if (word == "reduce") kept[axis] = 1;
            if (word == "reduce" && shape.size() > 1 && at % 2 == 0)
              kept.erase(kept.begin() + static_cast<ptrdiff_t>(axis));
            Launch launch;
            launch.seed = static_cast<uint64_t>(at);
            launch.data = Data::bit_patterns;
            expect_agree(replaced(R"(tl 1 program p
tensor A: $type[$shape] readonly
tensor B: $type[$shape] readonly
tensor P: $type[$kept]
tensor Q: $type[$kept]
fn then(a: $type, b: $type, a_2: $type, b_2: $type) -> ($type, $type) { return a * a_2, b * a_2 + b_2 }
kernel k grid (g: 1) threads $threads {
  alloc a: $scope $type[$shape]
  alloc b: fragment $type[$shape]
  alloc p: $to $type[$kept]
  alloc q: fragment $type[$kept]
  copy A -> a
  copy B -> b
  fill p, 1
  fill q, 0
  $word a, b -> p, q by then {axis=$axis$flag}
  copy p -> P
  copy q -> Q
}
)",
                                  tile_parts(t, shape, kept, axis, at,
                                             {{"word", word},
                                              {"flag", !flag              ? ""
                                                       : word == "reduce" ? ", accumulate"
                                                                          : ", reverse"}})),
                         {launch});
            if (HasFailure()) return;
          }
}

TEST(Combination, ScansFromAGroup) {
  const std::vector<std::vector<int64_t>> shapes = {{1},     {7},       {9},       {32},    {97},
                                                    {5, 37}, {128, 16}, {3, 7, 9}, {16, 65}};
  int at = 0;
  for (DType t : {DType::i32, DType::u64, DType::i16})
    for (const auto& shape : shapes)
      for (size_t axis = 0; axis < shape.size(); ++axis)
        for (const char* flags : {"", ", exclusive", ", reverse", ", reverse, exclusive"}) {
          ++at;
          if (!long_run() && at % 11 != 0) continue;
          Launch launch;
          launch.seed = static_cast<uint64_t>(at);
          launch.data = Data::bit_patterns;
          expect_agree(replaced(R"(tl 1 program p
scalar s: $type
tensor A: $type[$shape] readonly
tensor B: $type[$shape] readonly
tensor P: $type[$shape]
tensor Q: $type[$shape]
fn then(a: $type, b: $type, a_2: $type, b_2: $type) -> ($type, $type) { return a * a_2, b * a_2 + b_2 }
kernel k grid (g: 1) threads $threads {
  alloc a: $scope $type[$shape]
  alloc b: fragment $type[$shape]
  alloc p: $to $type[$shape]
  copy A -> a
  copy B -> b
  scan a, b -> p, b by then from 3, s {axis=$axis$flags}
  copy p -> P
  copy b -> Q
}
)",
                                tile_parts(t, shape, shape, axis, at, {{"flags", flags}})),
                       {launch});
          if (HasFailure()) return;
        }
}

// How often the largest of a row stands in it, tile by tile.
TEST(Combination, InLoops) {
  std::vector<Launch> launches = seeds({1, 2, 3});
  launches[0].dims = {{"m", 7}, {"n", 77}};
  launches[1].dims = {{"m", 4}, {"n", 256}};
  launches[2].dims = {{"m", 1}, {"n", 1}};
  expect_agree(R"(tl 1 program p
dim m
dim n
tensor X: f32[m, n] readonly
tensor Top: f32[m]
tensor Often: f32[m]
fn largest(top: f32, often: f32, top_2: f32, often_2: f32) -> (f32, f32) {
  let t = max(top, top_2)
  return t, select(top == t, often, 0) + select(top_2 == t, often_2, 0)
}
kernel k grid (b: ceildiv(m, 4)) threads 128 {
  alloc x: fragment f32[4, 64]
  alloc one: fragment f32[4, 64]
  alloc top: fragment f32[4]
  alloc often: fragment f32[4]
  fill top, -1000
  fill often, 0
  serial t in 0 .. ceildiv(n, 64) {
    copy X[b * 4 :+ 4, t * 64 :+ 64] -> x
    parallel i, j in 4, 64 { x[i, j] = rint(x[i, j] * 2) one[i, j] = select(t * 64 + j < n, 1.0f32, 0.0f32) }
    reduce x, one -> top, often by largest {axis=1, accumulate}
  }
  copy top -> Top[b * 4 :+ 4]
  copy often -> Often[b * 4 :+ 4]
}
)",
               launches);
}

}  // namespace
}  // namespace tilegen::differential
