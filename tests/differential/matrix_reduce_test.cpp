// Reductions: kinds, types, axes, shapes, with and without the old value.
#include <algorithm>
#include <array>

#include "matrix.h"

namespace tilegen::differential {
namespace {

struct ReduceTypes {
  DType from, to;
};

std::string reduce_text(ReduceTypes t, const std::vector<int64_t>& shape, size_t axis,
                        const std::string& kind, bool keep, bool accumulate, const std::string& from_scope,
                        const std::string& to_scope) {
  std::string from, to;
  for (size_t d = 0; d < shape.size(); ++d) {
    from += (d ? ", " : "") + std::to_string(shape[d]);
    if (d != axis) to += (to.empty() ? "" : ", ") + std::to_string(shape[d]);
    if (d == axis && keep) to += (to.empty() ? "1" : ", 1");
  }
  return replaced(R"(tl 1 program reduce
tensor X: $from[$shape] readonly
tensor Y: $to[$kept]

kernel k grid (g: 1) {
  alloc x: $fs $from[$shape]
  alloc y: $ts $to[$kept]
  copy X -> x
  copy Y -> y
  reduce x -> y {kind=$kind, axis=$axis$acc}
  copy y -> Y
}
)",
                  {{"from", ir::dtype_name(t.from)},
                   {"to", ir::dtype_name(t.to)},
                   {"shape", from},
                   {"kept", to},
                   {"fs", from_scope},
                   {"ts", to_scope},
                   {"kind", kind},
                   {"axis", std::to_string(axis)},
                   {"acc", accumulate ? ", accumulate" : ""}});
}

TEST(Reduce, KindsTypesAxesShapes) {
  std::vector<ReduceTypes> types = {{DType::f16, DType::f32}, {DType::bf16, DType::f32},
                                    {DType::i8, DType::i32},  {DType::u8, DType::i32},
                                    {DType::i16, DType::i32}, {DType::u16, DType::i32}};
  for (DType t : kAll) types.push_back({t, t});
  const std::vector<std::vector<int64_t>> shapes = {{5, 37}, {64, 128}, {1, 1},     {3, 7, 33},
                                                    {16, 1}, {1, 100},  {2, 16, 8}, {31, 4}};
  const char* const scopes[] = {"fragment", "shared", "fragment", "local"};
  int at = 0;
  for (const ReduceTypes& t : types)
    for (const std::string kind : {"sum", "max", "min", "absmax", "product", "and", "or", "xor", "abssum"}) {
      const bool absolute = kind == "absmax" || kind == "abssum", adds = kind == "sum" || kind == "abssum";
      const bool of_bits = kind == "and" || kind == "or" || kind == "xor";
      if (ir::is_bool(t.from) && (adds || absolute || kind == "product")) continue;
      if (absolute && ir::dtype_kind(t.from) == ir::DTypeKind::unsigned_int) continue;
      if (of_bits && ir::is_float(t.from)) continue;
      for (const auto& shape : shapes)
        for (size_t axis = 0; axis < shape.size(); ++axis, ++at) {
          if (!long_run() && at % 17 != 0) continue;  // prime to the 18 axes of the shapes
          const bool keep = at % 2 == 0, accumulate = at % 3 == 0;
          const std::string text =
              reduce_text(t, shape, axis, kind, keep, accumulate, scopes[at % 3], scopes[(at / 3) % 4]);
          const int64_t length = shape[axis] + 1;
          Launch whole;
          whole.seed = static_cast<uint64_t>(at);
          whole.magnitude = t.to == DType::f16 ? 8 : t.to == DType::bf16 ? 1 : 0;
          const bool product = kind == "product" && ir::is_float(t.to);
          if (product) whole.magnitude = 1;                        // 1, 0, -1
          if (!adds && !product) whole.data = Data::bit_patterns;  // exact whatever the values
          if (product) {
            expect_agree(text, {whole});
            continue;
          }
          Launch reals = whole;
          reals.data = Data::reals;
          if (adds) reals.bound = Bound::of_sum(t.to, length, 8);
          expect_agree(text, {whole, reals});
          if (HasFailure()) return;
        }
    }
}

TEST(Reduce, VectorToOneElement) {
  for (int64_t n : {1, 2, 15, 16, 17, 128, 1000})
    for (const std::string kind : {"sum", "max"})
      expect_agree(replaced(R"(tl 1 program p
tensor X: f32[$n] readonly
tensor Y: f32[1]
kernel k grid (g: 1) {
  alloc x: fragment f32[$n]
  alloc y: fragment f32[1]
  copy X -> x
  reduce x -> y {kind=$kind}
  copy y -> Y
}
)",
                            {{"n", std::to_string(n)}, {"kind", kind}}),
                   seeds({1, 2}));
}

// Sums that a loop carries: in parts where it only adds up and scales them, whole where it uses them.
TEST(Reduce, SumsThatALoopCarries) {
  const std::string text = R"(tl 1 program p
dim m
dim outer
tensor X: $from[16, m] readonly
tensor Y: $to[16]
tensor Z: $to[16]
kernel k grid (b: 1) threads 128 {
  alloc x: fragment $from[$rows, $cols]
  alloc part: fragment $to[$rows]
  alloc more: fragment $to[$rows]
  alloc total: fragment $to[$rows]
  alloc beside: fragment $to[$rows]
  copy Y[0 :+ $rows] -> total
  copy Z[0 :+ $rows] -> beside
  $front
  serial u in 0 .. outer {
    $again
    $kind t in 0 .. ceildiv(m, $cols) {
      copy X[0 :+ $rows, t * $cols :+ $cols] -> x
      $body
    }
    $after
  }
  copy total -> Y[0 :+ $rows]
  copy beside -> Z[0 :+ $rows]
}
)";
  const std::string part = "reduce x -> part {axis=1}\n      ";
  const Strings bodies = {
      part + "parallel i in $rows { total[i] = total[i] + part[i] }",
      "reduce x -> total {axis=1, accumulate}",
      part + "parallel i in $rows { total[i] = total[i] * $flip - part[i] * beside[i] }",
      part +
          "copy part -> more\n      if t % 2 == 0 { parallel i in $rows { total[i] = total[i] + more[i] } }",
      part +
          "parallel i, j in $rows, $cols { x[i, j] = x[i, j] + x[i, j] }\n      reduce x -> more {axis=1}\n" +
          "      parallel i in $rows { total[i] = part[i] + total[i] * $flip + more[i]\n beside[i] = "
          "beside[i] - more[i] }",
      part +
          "parallel i in $rows { if total[i] > $zero { total[i] = total[i] - part[i] } else { total[i] = "
          "part[i] } }",
      "if t % 2 == 1 { reduce x -> total {axis=1} }",
  };
  const Strings fronts = {"", "fill total, $zero"}, agains = {"", "fill total, $zero"};
  const Strings behinds = {"", "parallel i in $rows { total[i] = total[i] - beside[i] }"};
  const std::vector<ReduceTypes> types = {{DType::f32, DType::f32}, {DType::i32, DType::i32},
                                          {DType::f64, DType::f64}, {DType::i8, DType::i32},
                                          {DType::f16, DType::f32}, {DType::i64, DType::i64}};
  int at = 0;
  for (const std::string& body : bodies)
    for (const std::string& front : fronts)
      for (const std::string& again : agains)
        for (const std::string& behind : behinds)
          for (const std::string kind : {"serial", "pipelined"})
            for (const auto& [rows, cols] : {std::pair<int, int>{16, 64}, {2, 512}}) {
              const ReduceTypes t = types[static_cast<size_t>(at) % types.size()];
              if (!long_run() && ++at % 7 != 0) continue;
              const bool real = ir::is_float(t.to);
              const std::string name = ir::dtype_name(t.to);
              const std::string program = replaced(text, {{"body", body},
                                                          {"front", front},
                                                          {"again", again},
                                                          {"after", behind},
                                                          {"kind", kind},
                                                          {"rows", std::to_string(rows)},
                                                          {"cols", std::to_string(cols)},
                                                          {"from", ir::dtype_name(t.from)},
                                                          {"to", name},
                                                          {"zero", real ? "0.0" + name : "0" + name},
                                                          {"flip", real ? "-1.0" + name : "3" + name}});
              std::vector<Launch> launches;
              for (const auto& [m, outer] : {std::pair<int64_t, int64_t>{0, 1}, {40, 1}, {700, 2}}) {
                Launch l;
                l.dims = {{"m", m}, {"outer", outer}};
                launches.push_back(l);
              }
              expect_agree(program, launches);
              if (HasFailure()) return;
            }
}

}  // namespace
}  // namespace tilegen::differential
