// Scans that carry a value from tile to tile: what they mean, what they accept, how they refuse.
#include <algorithm>

#include "../check/diagnose.h"
#include "../interp/run_text.h"

namespace tilegen {
namespace {

using interp::Tensor;
using ir::DType;

int32_t wrapped(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); }

int32_t joined(const std::string& kind, int32_t a, int32_t b) {
  if (kind == "max") return std::max(a, b);
  if (kind == "min") return std::min(a, b);
  if (kind == "product") return wrapped(static_cast<int64_t>(a) * b);
  return wrapped(static_cast<int64_t>(a) + b);
}

// Two rows of `tiles` tiles of `width`, by `statement`, in its order; the carried value begins at 3.
std::vector<int64_t> scanned(const std::string& statement, int64_t width, int64_t tiles, bool reverse,
                             const std::vector<int32_t>& x) {
  const auto n = static_cast<size_t>(2 * width * tiles);
  Tensor X(DType::i32, n), Y(DType::i32, n), C(DType::i32, 2);
  for (size_t i = 0; i < n; ++i) X.set(i, x[i]);
  const std::string row = std::to_string(width * tiles), w = std::to_string(width), t = std::to_string(tiles);
  const std::string from = (reverse ? "(" + t + " - 1 - t)" : "t") + (" * " + w);
  const std::string box = "[0 :+ 2, " + from + " :+ " + w + "]";
  interp::run_text(
      "tl 1 program p\nfn keep(a: i32, b: i32) -> i32 { return select(b % 3 == 0, a, b) }\n"
      "tensor X: i32[2, " +
          row + "] readonly\ntensor Y: i32[2, " + row +
          "]\ntensor C: i32[2]\nkernel k grid(g: 1) {\n  alloc x: shared i32[2, " + w +
          "]\n  alloc y: fragment i32[2, " + w +
          "]\n  alloc c: fragment i32[2]\n  fill c, 3\n  serial t in 0 .. " + t + " {\n    copy X" + box +
          " -> x\n    " + statement + "\n    copy y -> Y" + box + "\n  }\n  copy c -> C\n}\n",
      {X.slot(), Y.slot(), C.slot()});
  std::vector<int64_t> all;
  for (size_t i = 0; i < n; ++i) all.push_back(static_cast<int64_t>(Y.values()[i]));
  for (size_t i = 0; i < 2; ++i) all.push_back(static_cast<int64_t>(C.values()[i]));
  return all;
}

TEST(CarriedScan, IsOneScanOfTheRow) {
  for (const std::string kind : {"sum", "max", "min", "product", "keep"})
    for (int64_t width : {1, 7, 8, 20})
      for (int64_t tiles : {1, 3})
        for (bool reverse : {false, true})
          for (bool exclusive : {false, true}) {
            const int64_t row = width * tiles;
            std::vector<int32_t> x;
            for (int64_t i = 0; i < 2 * row; ++i) x.push_back(static_cast<int32_t>((i * 7919 + 13) % 23 - 9));
            std::vector<int64_t> want(static_cast<size_t>(2 * row) + 2);
            for (int64_t r = 0; r < 2; ++r) {
              int32_t total = 3;
              for (int64_t k = 0; k < row; ++k) {
                const auto i = static_cast<size_t>(r * row + (reverse ? row - 1 - k : k));
                const int32_t before = total, left = reverse ? x[i] : total, right = reverse ? total : x[i];
                total = kind != "keep" ? joined(kind, total, x[i]) : right % 3 == 0 ? left : right;
                want[i] = exclusive ? before : total;
              }
              want[static_cast<size_t>(2 * row + r)] = total;
            }
            const std::string flags =
                std::string(reverse ? ", reverse" : "") + (exclusive ? ", exclusive" : "");
            const std::string statement =
                kind == "keep" ? "scan x -> y by keep carry c {axis=1" + flags + "}"
                               : "scan x -> y carry c {kind=" + kind + ", axis=1" + flags + "}";
            EXPECT_EQ(scanned(statement, width, tiles, reverse, x), want)
                << statement << " " << width << " " << tiles;
            if (HasFailure()) return;
          }
}

TEST(CarriedScan, MayWriteItsSource) {
  std::vector<int32_t> x;
  for (int32_t i = 0; i < 48; ++i) x.push_back(i * 5 % 17 - 6);
  for (const std::string flags : {"", ", exclusive"}) {
    const auto apart = scanned("scan x -> y carry c {axis=1" + flags + "}", 8, 3, false, x);
    EXPECT_EQ(scanned("scan x -> x carry c {axis=1" + flags + "} copy x -> y", 8, 3, false, x), apart);
    const auto by = scanned("scan x -> y by keep carry c {axis=1" + flags + "}", 8, 3, false, x);
    EXPECT_EQ(scanned("scan x -> x by keep carry c {axis=1" + flags + "} copy x -> y", 8, 3, false, x), by);
  }
}

std::string said(const std::string& statement) {
  const std::string text =
      "tl 1 program p fn f(a: f32, b: f32, c: f32, d: f32) -> (f32, f32) { return a + c, b * d } "
      "fn one(a: f32, b: f32) -> f32 { return a + b } tensor R: f32[8] kernel k grid(b: 1) threads 128 { "
      "alloc x: fragment f32[8, 8] alloc y: fragment f32[8, 8] alloc h: fragment f16[8, 8] alloc c: fragment "
      "f32[8] alloc d: fragment f32[8, 1] alloc n: fragment i32[8] alloc p: shared bool[8, 8] fill x, 0 fill "
      "y, 0 fill h, 0 fill c, 0 fill d, 0 fill n, 0 fill p, true\n" +
      statement + "\n}";
  auto p = ir::parse_program(text, "t.tl", Limits());
  if (p) return "read";
  const std::string all = p.error().to_text();
  return all.substr(all.find('['));
}

TEST(CarriedScan, Accepts) {
  for (const char* statement :
       {"scan x -> y carry c {axis=1}", "scan x -> x carry d {kind=max, axis=1, reverse, exclusive}",
        "scan x -> y carry d[0 :+ 8, 0 :+ 1] {axis=1}", "scan h -> y carry c {axis=1}",
        "scan x, y -> y, x by f carry c, d {axis=1, exclusive}",
        "scan x[0 :+ 4, 0 :+ 8] -> y[4 :+ 4, 0 :+ 8] carry c[2 :+ 4] {axis=1}"})
    EXPECT_EQ(said(statement), "read") << statement;
}

TEST(CarriedScan, Refuses) {
  EXPECT_EQ(said("scan x -> y carry n {axis=1}"),
            "[dtype_mismatch] k: what scan carries, n[8], is i32, its result y[8, 8] is f32 (carry a tile of "
            "f32)");
  EXPECT_EQ(said("scan x -> y carry c[0 :+ 4] {axis=1}"),
            "[shape_mismatch] k: c[4] does not fit src x[8, 8] without axis 1 (what is carried has src's "
            "extents without the axis, or with extent 1 there)");
  EXPECT_EQ(said("scan x -> y carry c, d {axis=1}"),
            "[rank_mismatch] k: scan of 1 values carries 2 (name a tile for each value: scan x, y -> u, v by "
            "f carry c, d)");
  EXPECT_EQ(
      said("scan x -> y carry R {axis=1}"),
      "[scope_not_allowed] k: what scan carries, R[8]: expected an on-chip buffer (carry a fragment and "
      "copy it to global memory)");
  EXPECT_EQ(said("scan x -> y carry y[0 :+ 8, 0 :+ 1] {axis=1}"),
            "[parallel_race] k: scan carries y[8, 1], of the tile that it writes (carry a tile of its own)");
  EXPECT_EQ(said("scan x, y -> x, y by f carry c, c {axis=1}"),
            "[parallel_race] k: scan carries two values in 'c' (carry a tile for each value)");
  EXPECT_EQ(said("scan p -> p carry c {axis=1}"),
            "[dtype_mismatch] k: dst p[8, 8] is bool, which is not scanned (scan into a tile of numbers that "
            "are computed in, as f32 or i32)");
  EXPECT_EQ(said("scan x -> y carry c {axis=2}"),
            "[bad_attribute] k: axis 2 of scan is outside src x[8, 8] (axes count from 0)");
  EXPECT_EQ(said("scan x -> c carry d {axis=1}"),
            "[shape_mismatch] k: c[8] does not fit src x[8, 8] (the results of scan have src's extents)");
  EXPECT_EQ(said("scan x -> y carry c {axis=1, engine = async_copy}"),
            "[misplaced_statement] k: annotations stand at what is made of several statements (carry the "
            "value by statements of your own: scan, and a parallel loop that adds it)");
  EXPECT_EQ(said("label s: scan x -> y carry c {axis=1}"),
            "[misplaced_statement] k: the label 's' stands in front of a statement that has no path (label "
            "operations, loops, ifs and stores; what names and jumps are is not kept)");
  EXPECT_EQ(
      said("parallel i in 8 { scan x -> y carry c {axis=1} }"),
      "[misplaced_statement] k: scan stands inside a parallel loop (move it out of the loop; a parallel "
      "loop holds no tile operations)");
}

}  // namespace
}  // namespace tilegen
