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

// Rows that are longer than the tile, in serial and pipelined loops: each kind and the program's own, both
// ways, with and without the element itself, over fragments and shared tiles.
TEST(Scan, CarriedAlongLoops) {
  int at = 0;
  for (const std::string kind : {"sum", "max", "min", "product", "by"})
    for (DType t : {DType::i32, DType::f32, DType::i16, DType::u64})
      for (const std::string flags : {"", ", exclusive", ", reverse", ", reverse, exclusive"})
        for (const int64_t rows : {1, 4, 32}) {
          ++at;
          if (!long_run() && at % 7 != 0) continue;
          std::vector<Launch> launches = seeds({1, 2});
          launches[0].dims = {{"n", 150}};
          launches[1].dims = {{"n", 64}};
          for (Launch& l : launches) l.magnitude = kind == "product" || ir::is_float(t) ? 1 : 0;
          const bool reverse = flags.find("reverse") != std::string::npos;
          const std::string type = ir::dtype_name(t);
          expect_agree(replaced(R"(tl 1 program p
dim n <= 300
fn keep(a: $type, b: $type) -> $type { return select(b > 0, b, a) }
tensor X: $type[$rows, n] readonly
tensor Y: $type[$rows, n]
tensor C: $type[$rows]
kernel k grid (g: 1) threads $threads {
  alloc x: $fs $type[$rows, 64]
  alloc y: $ts $type[$rows, 64]
  alloc c: $cs $type[$kept]
  fill c, 1
  $loop t in 0 .. ceildiv(n, 64) {
    copy X[0 :+ $rows, $tile * 64 :+ 64] -> x
    scan x -> $dst$by carry c {$kind axis=1$flags}
    copy $dst -> Y[0 :+ $rows, $tile * 64 :+ 64]
  }
  parallel i in $rows { C[i] = c[$at] }
}
)",
                                {{"type", type},
                                 {"rows", std::to_string(rows)},
                                 {"threads", at % 2 ? "64" : "128"},
                                 {"fs", at % 3 ? "shared" : "fragment"},
                                 {"ts", at % 5 ? "fragment" : "shared"},
                                 {"cs", at % 4 ? "fragment" : "shared"},
                                 {"kept", std::to_string(rows) + (at % 2 ? "" : ", 1")},
                                 {"at", at % 2 ? "i" : "i, 0"},
                                 {"loop", at % 2 ? "serial" : "pipelined"},
                                 {"tile", reverse ? "(ceildiv(n, 64) - 1 - t)" : "t"},
                                 {"dst", at % 6 == 0 ? "x" : "y"},
                                 {"by", kind == "by" ? " by keep" : ""},
                                 {"kind", kind == "by" ? "" : "kind=" + kind + ","},
                                 {"flags", flags}}),
                       launches);
          if (HasFailure()) return;
        }
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
