// Cumulative sums: types, axes, shapes, scopes, threads, both directions, in place; in loops, of parts, with
// products and reductions.
#include "matrix.h"

namespace tilegen::differential {
namespace {

struct SumTypes {
  DType from, to;
};

// Whole numbers whose sums are exact, and reals within the bound of a sum of `length` elements.
std::vector<Launch> sum_launches(DType to, int64_t length, uint64_t seed) {
  Launch whole;
  whole.seed = seed;
  whole.magnitude = to == DType::bf16 || to == DType::f16 ? 1 : 0;
  Launch reals = whole;
  reals.data = Data::reals;
  reals.bound = Bound::of_sum(to, length, 8);
  return {whole, reals};
}

TEST(Cumsum, TypesAxesShapesScopesThreads) {
  std::vector<SumTypes> types = {
      {DType::f16, DType::f32}, {DType::bf16, DType::f32}, {DType::i8, DType::i32}, {DType::u8, DType::i32}};
  for (DType t : kAll)
    if (!ir::is_bool(t)) types.push_back({t, t});
  const std::vector<std::vector<int64_t>> shapes = {
      {1},        {3},     {32},      {100},     {128},      {1024},  {5, 37},   {64, 128},
      {3, 7, 33}, {16, 1}, {1, 1024}, {1024, 2}, {2, 16, 8}, {31, 4}, {128, 64}, {32, 3, 32}};
  const char* const pairs[][2] = {{"fragment", "fragment"}, {"shared", "shared"},  {"shared", "fragment"},
                                  {"fragment", "shared"},   {"local", "fragment"}, {"shared", "local"}};
  int at = 0;
  for (const SumTypes& t : types)
    for (const auto& shape : shapes)
      for (size_t axis = 0; axis < shape.size(); ++axis)
        for (const bool reverse : {false, true}) {
          ++at;
          if (!long_run() && at % 11 != 0) continue;
          const auto& scope = pairs[static_cast<size_t>(at / 11) % 6];
          int64_t elements = 1;
          for (int64_t extent : shape) elements *= extent;
          if (elements > 1024 && (std::string(scope[0]) == "local" || std::string(scope[1]) == "local"))
            continue;
          const bool in_place = t.from == t.to && at % 3 == 0;
          const std::string text = replaced(R"(tl 1 program p
tensor X: $from[$shape] readonly
tensor Y: $to[$shape]
kernel k grid (g: 1) threads $threads {
  alloc x: $fs $from[$shape]
  alloc y: $ts $to[$shape]
  copy X -> x
  cumsum x -> $dst {axis=$axis$reverse}
  copy $dst -> Y
}
)",
                                            {{"from", ir::dtype_name(t.from)},
                                             {"to", ir::dtype_name(t.to)},
                                             {"shape", shape_text(shape)},
                                             {"fs", scope[0]},
                                             {"ts", scope[1]},
                                             {"dst", in_place ? "x" : "y"},
                                             {"axis", std::to_string(axis)},
                                             {"reverse", reverse ? ", reverse" : ""},
                                             {"threads", std::to_string(32 << at % 4)}});
          expect_agree(text, sum_launches(t.to, shape[axis], static_cast<uint64_t>(at)));
          if (HasFailure()) return;
        }
}

// Threads that are no power of two, and more of them than elements.
TEST(Cumsum, AnyNumberOfThreads) {
  for (const int64_t threads : {32, 96, 160, 192, 384, 512})
    for (const std::string shape : {"7", "96", "6, 50", "48, 20"})
      for (const std::string type : {"f32", "f64"})
        expect_agree(replaced(R"(tl 1 program p
tensor X: $t[$shape] readonly
tensor Y: $t[$shape]
kernel k grid (g: 1) threads $threads {
  alloc x: fragment $t[$shape]
  alloc y: shared $t[$shape]
  copy X -> x
  cumsum x -> y
  copy y -> Y
}
)",
                              {{"threads", std::to_string(threads)}, {"t", type}, {"shape", shape}}),
                     seeds({1}));
}

// Running sums of long rows, tile by tile, the total carried; edges read as 0.
TEST(Cumsum, InLoops) {
  std::vector<Launch> launches = seeds({1, 2, 3, 4});
  launches[0].dims = {{"m", 7}, {"n", 77}};
  launches[1].dims = {{"m", 4}, {"n", 512}};
  launches[2].dims = {{"m", 1}, {"n", 1}};
  launches[3].dims = {{"m", 9}, {"n", 0}};
  for (const std::string loop : {"serial", "pipelined"})
    for (const std::string source : {"s", "x"})
      for (const std::string width : {"32", "100", "256"})
        expect_agree(replaced(R"(tl 1 program p
dim m
dim n
tensor X: f32[m, n] readonly
tensor Y: f32[m, n]
kernel k grid (b: ceildiv(m, 4)) threads 128 {
  alloc s: shared f32[4, $w]
  alloc x: fragment f32[4, $w]
  alloc y: fragment f32[4, $w]
  alloc part: fragment f32[4]
  alloc before: fragment f32[4]
  fill before, 0.0f32
  $loop t in 0 .. ceildiv(n, $w) {
    copy X[b * 4 :+ 4, t * $w :+ $w] -> s
    copy s -> x
    cumsum $src -> y {axis=1}
    reduce x -> part {axis=1}
    parallel i, j in 4, $w { y[i, j] = y[i, j] + before[i] }
    parallel i in 4 { before[i] = before[i] + part[i] }
    copy y -> Y[b * 4 :+ 4, t * $w :+ $w]
  }
}
)",
                              {{"loop", loop}, {"src", source}, {"w", width}}),
                     launches);
}

// Accumulators of products, whose elements lie over lanes, registers and warps; sums as operands of one.
TEST(Cumsum, BesideProducts) {
  for (const std::string threads : {"128", "256"})
    for (const std::string axis : {"0", "1"})
      for (const std::string reverse : {"", ", reverse"}) {
        const Strings steps = {
            "gemm a, b -> c {clear}\n  cumsum c -> c {axis=$axis$reverse}",
            "gemm a, b -> c {clear}\n  cumsum c -> d {axis=$axis$reverse}\n  copy d -> c",
            "cumsum a -> a {axis=$axis$reverse}\n  gemm a, b -> c {clear}",
            "gemm a, b -> c {clear}\n  cumsum c -> d {axis=$axis$reverse}\n  reduce d -> r "
            "{axis=1}\n  parallel i, j in 64, 64 { c[i, j] = r[i] }"};
        for (const std::string& step : steps) {
          Launch launch;
          launch.seed = 3;
          launch.magnitude = 1;
          expect_agree(replaced(replaced(R"(tl 1 program p
tensor A: f16[64, 32] readonly
tensor B: f16[32, 64] readonly
tensor C: f32[64, 64]
kernel k grid (g: 1) threads $threads {
  alloc a: shared f16[64, 32]
  alloc b: shared f16[32, 64]
  alloc c: fragment f32[64, 64]
  alloc d: fragment f32[64, 64]
  alloc r: fragment f32[64]
  copy A -> a
  copy B -> b
  $step
  copy c -> C
}
)",
                                         {{"step", step}, {"threads", threads}}),
                                {{"axis", axis}, {"reverse", reverse}}),
                       {launch});
        }
      }
}

// Parts of tiles, at places that blocks tell, and in branches.
TEST(Cumsum, OfParts) {
  for (const std::string scope : {"fragment", "shared"})
    for (const std::string to : {"fragment", "shared"})
      for (const std::string step :
           {"cumsum x[4 :+ 8, 0 :+ 40] -> y[4 :+ 8, 0 :+ 40] {axis=1}",
            "cumsum x[g :+ 6, 3 :+ 1] -> y[2 :+ 6, g * 2 :+ 1]",
            "cumsum x[2 :+ 1, 8 :+ 17] -> y[0 :+ 1, 1 :+ 17] {axis=1}",
            "if g % 2 == 0 { cumsum x -> y {axis=1} } else { cumsum x -> y {reverse} }"})
        expect_agree(replaced(R"(tl 1 program p
tensor X: i32[3, 16, 40] readonly
tensor Y: i32[3, 16, 40]
kernel k grid (g: 3) threads 64 {
  alloc x: $from i32[16, 40]
  alloc y: $to i32[16, 40]
  copy X[g :+ 1, 0 :+ 16, 0 :+ 40] -> x
  copy X[g :+ 1, 0 :+ 16, 0 :+ 40] -> y
  $step
  copy y -> Y[g :+ 1, 0 :+ 16, 0 :+ 40]
}
)",
                              {{"from", scope}, {"to", to}, {"step", step}}),
                     seeds({1}));
}

}  // namespace
}  // namespace tilegen::differential
