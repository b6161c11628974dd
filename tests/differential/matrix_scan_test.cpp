// Scans of every kind, and places of largest and smallest elements: types, axes, shapes, scopes, threads.
#include "matrix.h"

namespace tilegen::differential {
namespace {

TEST(Scan, KindsTypesAxesShapesScopesThreads) {
  const std::vector<std::vector<int64_t>> shapes = {{1},        {3},       {32},       {100},   {1024},
                                                    {5, 37},    {64, 128}, {3, 7, 33}, {16, 1}, {1, 1024},
                                                    {2, 16, 8}, {128, 64}, {32, 3, 32}};
  const char* const pairs[][2] = {{"fragment", "fragment"}, {"shared", "shared"},  {"shared", "fragment"},
                                  {"fragment", "shared"},   {"local", "fragment"}, {"shared", "local"}};
  int at = 0;
  for (const std::string kind : {"sum", "max", "min", "product"})
    for (DType t : kAll)
      for (const auto& shape : shapes)
        for (size_t axis = 0; axis < shape.size(); ++axis)
          for (const std::string flags : {"", ", exclusive", ", reverse", ", reverse, exclusive"}) {
            ++at;
            if (ir::is_bool(t) || (!long_run() && at % 47 != 0)) continue;
            const auto& scope = pairs[static_cast<size_t>(at / 47) % 6];
            int64_t elements = 1;
            for (int64_t extent : shape) elements *= extent;
            if (elements > 1024 && (std::string(scope[0]) == "local" || std::string(scope[1]) == "local"))
              continue;
            Launch launch;
            launch.seed = static_cast<uint64_t>(at);
            // Sums and products of these are exact, whatever their order.
            launch.magnitude = kind == "product" || t == DType::bf16 || t == DType::f16 ? 1 : 0;
            const bool ordered = kind == "max" || kind == "min" || !ir::is_float(t);
            if (ordered) launch.data = Data::bit_patterns;
            expect_agree(replaced(R"(tl 1 program p
tensor X: $type[$shape] readonly
tensor Y: $type[$shape]
kernel k grid (g: 1) threads $threads {
  alloc x: $fs $type[$shape]
  alloc y: $ts $type[$shape]
  copy X -> x
  scan x -> $dst {kind=$kind, axis=$axis$flags}
  copy $dst -> Y
}
)",
                                  tile_parts(t, shape, shape, axis, at,
                                             {{"fs", scope[0]},
                                              {"ts", scope[1]},
                                              {"dst", at % 3 == 0 ? "x" : "y"},
                                              {"kind", kind},
                                              {"flags", flags}})),
                         {launch});
            if (HasFailure()) return;
          }
}

// Running maxima of long rows, tile by tile; places in an order of bins, as a counting sort has them.
TEST(Scan, InLoopsAndOfParts) {
  std::vector<Launch> launches = seeds({1, 2, 3});
  launches[0].dims = {{"m", 7}, {"n", 77}};
  launches[1].dims = {{"m", 4}, {"n", 256}};
  launches[2].dims = {{"m", 1}, {"n", 0}};
  for (const std::string exclusive : {"", ", exclusive"})
    expect_agree(replaced(R"(tl 1 program p
dim m
dim n
tensor X: f32[m, n] readonly
tensor Y: f32[m, n]
kernel k grid (b: ceildiv(m, 4)) threads 128 {
  alloc x: shared f32[4, 64]
  alloc y: fragment f32[4, 64]
  alloc top: fragment f32[4]
  fill top, -inf:f32
  serial t in 0 .. ceildiv(n, 64) {
    copy X[b * 4 :+ 4, t * 64 :+ 64] -> x
    scan x -> y {kind=max, axis=1$exclusive}
    parallel i, j in 4, 64 { y[i, j] = max(y[i, j], top[i]) }
    reduce x -> top {kind=max, axis=1, accumulate}
    scan x[1 :+ 2, 3 :+ 40] -> x[1 :+ 2, 3 :+ 40] {kind=min, axis=1$exclusive}
    parallel i in 4 { y[i, 5] = y[i, 5] + x[i, 5] }
    copy y -> Y[b * 4 :+ 4, t * 64 :+ 64]
  }
}
)",
                          {{"exclusive", exclusive}}),
                 launches);
}

TEST(ArgReduce, TypesAxesShapes) {
  const std::vector<std::vector<int64_t>> shapes = {{7}, {32}, {5, 37}, {64, 128}, {3, 7, 33}, {1, 300}};
  int at = 0;
  for (const std::string word : {"argmax", "argmin"})
    for (DType t : kAll)
      for (const auto& shape : shapes)
        for (size_t axis = 0; axis < shape.size(); ++axis)
          for (const std::string index : {"i32", "i64"}) {
            ++at;
            if (ir::is_bool(t) || (!long_run() && at % 11 != 0)) continue;
            std::vector<int64_t> kept = shape;
            kept[axis] = 1;
            if (shape.size() > 1 && at % 2 == 0) kept.erase(kept.begin() + static_cast<ptrdiff_t>(axis));
            Launch whole;  // equal elements
            whole.seed = static_cast<uint64_t>(at);
            whole.magnitude = 3;
            Launch any = whole;
            any.data = Data::bit_patterns;  // infinities and NaNs
            Launch distinct;
            distinct.seed = whole.seed + 1;
            expect_agree(replaced(R"(tl 1 program p
tensor X: $type[$shape] readonly
tensor V: $type[$kept]
tensor I: $index[$kept]
kernel k grid (g: 1) {
  alloc x: $scope $type[$shape]
  alloc v: fragment $type[$kept]
  alloc i: fragment $index[$kept]
  copy X -> x
  $word x -> v, i {axis=$axis}
  copy v -> V
  copy i -> I
}
)",
                                  tile_parts(t, shape, kept, axis, at, {{"index", index}, {"word", word}})),
                         {whole, any, distinct});
            if (HasFailure()) return;
          }
}

}  // namespace
}  // namespace tilegen::differential
