// Programs with views are programs of their tiles: what they become, and what is refused.
#include "ir/tile_view.h"

#include "view_program.h"

namespace tilegen::ir {
namespace {

const ViewProgram kProgram = {
    "tl 1 program p\ndim n\ntensor X: f16[n, 4, 8, 16]\ntensor Y: f16[n, 16, 32]\nkernel main grid(b: "
    "n) "
    "{\n"
    "alloc a: shared f16[32, 16] alloc w: shared f16[16, 32] alloc c: fragment f32[32, 32]\n"
    "alloc q: shared f16[2, 16, 16] alloc r: fragment f16[32]\n",
    "alloc r: fragment f16[32]\n"};

std::string made(const std::string& body) { return kProgram.made(body); }
void expect_same(const std::string& with, const std::string& without) { kProgram.expect_same(with, without); }
void expect_error(const std::string& body, const std::string& words) { kProgram.expect_error(body, words); }

// Neighbours of the last dimension as one element, and several of each.
TEST(TileView, OtherWidths) {
  const std::string wide = "fill a, 0 view u = reinterpret(a, u32) ",
                    narrow = "fill c, 0 view u = reinterpret(c, u16) ";
  const std::string pair =
      "(cast(u32, bitcast(u16, a[i, j * 2 + 0])) << 0) | (cast(u32, bitcast(u16, a[i, j * 2 + 1])) << 16)";
  expect_same(wide + "parallel i, j in 32, 8 { c[i, j] = bitcast(f32, u[i, j]) }",
              "fill a, 0 parallel i, j in 32, 8 { c[i, j] = bitcast(f32, " + pair + ") }");
  expect_same(wide + "view v = reinterpret(c, u32) view part = v[0 :+ 32, 0 :+ 8] copy u -> part",
              "fill a, 0 parallel i, j in 32, 8 { c[i, j] = bitcast(f32, " + pair + ") }");
  expect_same(
      narrow + "parallel i, j in 32, 32 { w[j % 16, i] = bitcast(f16, u[i, j]) }",
      "fill c, 0 parallel i, j in 32, 32 { w[j % 16, i] = bitcast(f16, cast(u16, bitcast(u32, c[i, j // "
      "2]) >> cast(u32, j % 2 * 16))) }");
  expect_same(
      "fill a, 0 view t = transpose(a) view u = reinterpret(t, u32) parallel i, j in 16, 16 { c[i, j] = "
      "cast(f32, u[i, j]) }",
      "fill a, 0 parallel i, j in 16, 16 { c[i, j] = cast(f32, (cast(u32, bitcast(u16, a[j * 2 + 0, i])) << "
      "0) "
      "| (cast(u32, bitcast(u16, a[j * 2 + 1, i])) << 16)) }");
  expect_error(wide + "parallel i in 32 { c[i, 0] = cast(f32, u[i, 8]) }",
               "index 8 in dimension 1 of the view 'u' [32, 8] is outside");
  expect_error(wide + "view v = reinterpret(u, u8) parallel i in 32 { c[i, 0] = cast(f32, v[i, 0]) }",
               "name it of the tile itself, whose elements have 16 bits");
  expect_error("view v = a[0 :+ 32, 0 :+ 3] view u = reinterpret(v, f32)",
               "the last extent of 'v' [32, 3] is not known to be a multiple of 2");
}

// Elements of more bits are stored part by part, each from the value as it is before the first one is.
TEST(TileView, WrittenOtherWidths) {
  const std::string wide = "view u = reinterpret(a, u32) ";
  const auto parts = [](const std::string& value) {
    return "a[i, j * 2] = bitcast(f16, cast(u16, " + value + ")) a[i, j * 2 + 1] = bitcast(f16, cast(u16, " +
           value + " >> 16u32)) ";
  };
  expect_same(wide + "fill u, 0", "parallel i, j in 32, 8 { a[i, j * 2] = 0 a[i, j * 2 + 1] = 0 }");
  expect_same(wide + "parallel i, j in 32, 8 { u[i, j] = 15360u32 }",
              "parallel i, j in 32, 8 { a[i, j * 2] = 1 a[i, j * 2 + 1] = 0 }");
  expect_same(wide + "copy c[0 :+ 32, 0 :+ 8] -> u",
              "parallel i, j in 32, 8 { " + parts("cast(u32, c[i, j])") + "}");
  expect_same(
      "view t = transpose(a) view u = reinterpret(t, i32) view v = reinterpret(u, u32) "
      "parallel i, j in 16, 16 { v[i, j] = cast(u32, j) }",
      "parallel i, j in 16, 16 { a[j * 2, i] = bitcast(f16, cast(u16, cast(u32, cast(i32, cast(u32, "
      "j))))) a[j * 2 + 1, i] = bitcast(f16, cast(u16, cast(u32, cast(i32, cast(u32, j))) >> 16u32)) "
      "}");
  const std::string old =
      "((cast(u32, bitcast(u16, a[i, j * 2 + 0])) << 0) | (cast(u32, bitcast(u16, a[i, j * 2 + "
      "1])) << 16)) + 1";
  expect_same("fill a, 0 " + wide + "parallel i, j in 32, 8 { u[i, j] = u[i, j] + 1 }",
              "fill a, 0 parallel i, j in 32, 8 { let stored = " + old + " " + parts("stored") + "}");
  expect_error(wide + "parallel i in 32 { atomic_add(u[i, 0], 1) }",
               "an atomic operation takes the view 'u' of u32, and the elements of 'a' are f16");
  expect_error(
      wide + "view v = reinterpret(u, u8) fill v, 0",
      "'v' is a view of a view of another number of bits than its tile's (name it of the tile itself");
  expect_error(wide + "parallel i in 32 { u[i, 8] = 1 }",
               "index 8 in dimension 1 of the view 'u' [32, 8] is outside");
}

// Old values of atomic operations on elements of another type are of that type.
TEST(TileView, AtomicOperationsOnBits) {
  const std::string h = "alloc h: shared i32[32] fill h, 0 ";
  expect_same(
      h + "view u = reinterpret(h, u32) parallel i in 32 { let old = atomic_add(u[i], 7) c[i, 0] = cast(f32, "
          "old) }",
      h + "parallel i in 32 { let old = atomic_add(h[i], 7) c[i, 0] = cast(f32, bitcast(u32, old)) }");
  expect_same(
      "alloc s: shared f32[32] fill s, 0 view u = reinterpret(s, u32) parallel i in 32 { "
      "atomic_exchange(u[i], 1065353216) }",
      "alloc s: shared f32[32] fill s, 0 parallel i in 32 { atomic_exchange(s[i], 1) }");
  for (const std::string refused : {"atomic_max(u[i], 1)", "atomic_min(u[i], 1)"})
    expect_error(h + "view u = reinterpret(h, u32) parallel i in 32 { " + refused + " }",
                 "an atomic operation takes a view of type u32 of 'h', whose elements are i32");
  expect_error(
      "alloc s: shared f32[32] fill s, 0 view u = reinterpret(s, u32) parallel i in 32 { atomic_add(u[i], 1) "
      "}",
      "an atomic operation takes a view of type u32 of 's', whose elements are f32");
  expect_error("alloc o: shared u16[64] " + h +
                   "view u = reinterpret(o, i32) parallel i in 32 { u[i] = "
                   "atomic_add(h[i], 1) }",
               "an old value goes to the view 'u' of i32, and the elements of 'o' are u16 (old values go to "
               "elements of memory; name the value, let old = ..., and store that)");
}

TEST(TileView, BoxesOfReshapedTiles) {
  expect_same("view v = reshape(a, [4, 8, 16]) copy X[b :+ 1, 0 :+ 4, 0 :+ 8, 0 :+ 16] -> v",
              "copy X[b :+ 1, 0 :+ 4, 0 :+ 8, 0 :+ 16] -> a");
  expect_same(
      "view v = reshape(a, [4, 8, 16]) copy X[b :+ 1, 2 :+ 2, 0 :+ 8, 3 :+ 5] -> v[1 :+ 2, 0 :+ 8, 0 :+ 5]",
      "copy X[b :+ 1, 2 :+ 2, 0 :+ 8, 3 :+ 5] -> a[8 :+ 16, 0 :+ 5]");
  expect_same("view v = reshape(a, [4, 8, 16]) serial i in 0 .. 4 { fill v[i :+ 1, 2 :+ 3, 0 :+ 16], 0 }",
              "serial i in 0 .. 4 { fill a[i * 8 + 2 :+ 3, 0 :+ 16], 0 }");
  // Of a tile of more dimensions.
  expect_same("view v = reshape(q, [32, 16]) fill v, 0", "fill q, 0");
  expect_same("view v = reshape(q, [32, 16]) serial i in 0 .. 4 { fill v[i * 8 :+ 8, 0 :+ 16], 0 }",
              "serial i in 0 .. 4 { fill q[i * 8 // 16 :+ 1, i * 8 % 16 :+ 8, 0 :+ 16], 0 }");
  expect_same("view v = reshape(q, [32, 16]) view u = reshape(v, [512]) fill u[256 :+ 256], 0",
              "fill q[1 :+ 1, 0 :+ 16, 0 :+ 16], 0");
}

TEST(TileView, BitsOfTiles) {
  const std::string u = "view u = reinterpret(a, u16) ";
  expect_same("fill a, 0 " + u + "parallel i, j in 32, 16 { u[i, j] = u[i, j] ^ 32768 }",
              "fill a, 0 parallel i, j in 32, 16 { a[i, j] = bitcast(f16, bitcast(u16, a[i, j]) ^ 32768) }");
  expect_same(u + "fill u[0 :+ 4, 0 :+ 16], 15360", "fill a[0 :+ 4, 0 :+ 16], 1");
  expect_same(u + "fill a, 0 parallel i, j in 32, 16 { c[i, j] = cast(f32, u[i, j]) }",
              "fill a, 0 parallel i, j in 32, 16 { c[i, j] = cast(f32, bitcast(u16, a[i, j])) }");
  // Other views of it, and it of them; copies move elements one by one.
  expect_same(
      "view v = reshape(a, [512]) view w2 = reinterpret(v, bf16) view y = reinterpret(w2, i16) "
      "parallel i in 512 { y[i] = -1 }",
      "parallel i in 512 { a[i // 16, i % 16] = 0xffff:f16 }");
  expect_same(
      u + "view t = transpose(u) fill a, 0 fill w, 0 view x = reinterpret(w, i16) copy t -> x",
      "fill a, 0 fill w, 0 parallel i, j in 16, 32 { w[i, j] = bitcast(f16, cast(i16, bitcast(u16, a[j, "
      "i]))) }");
  expect_same("view u = reinterpret(a, f16) fill u, 0", "fill a, 0");  // its own type
  expect_error("view u = reinterpret(a, bool)", "a bool has no bits of its own");
  expect_error("view u = reinterpret(a, f17)", "[unknown_name]");
  expect_error(u + "fill a, 0 parallel i, j in 32, 16 { atomic_add(u[i, j], 1) }",
               "an atomic operation takes a view of type u16 of 'a', whose elements are f16");
}

// Operations take a tile of the elements of what is no box of the tile, or of another type.
TEST(TileView, OperandsInTiles) {
  const std::string s = "alloc s: fragment u32[32] ", m = "alloc m: fragment f32[32, 4] ",
                    own = "fill a, 0 fill c, 0 scan c -> c {kind = max} scan a -> a {kind = max} ";
  // Read in front of the operation, by a loop of the view's name.
  expect_same(s + "view u = reinterpret(c, u32) " + own + "reduce u -> s {kind = max, axis = 1}",
              s + "alloc u_1: fragment u32[32, 32] " + own +
                  "label u_1: parallel i, j in 32, 32 { u_1[i, j] "
                  "= bitcast(u32, c[i, j]) } reduce u_1 -> s {kind = max, axis = 1}");
  expect_same("view u = reinterpret(a, bf16) " + own + "gemm u, u -> c {transpose_b}",
              "alloc u_1: fragment bf16[32, 16] alloc u_2: fragment bf16[32, 16] " + own +
                  "label u_1: parallel i, j in 32, 16 { u_1[i, j] = bitcast(bf16, a[i, j]) } "
                  "label u_2: parallel i_1, j_1 in 32, 16 { u_2[i_1, j_1] = bitcast(bf16, a[i_1, j_1]) } "
                  "gemm u_1, u_2 -> c {transpose_b}");
  expect_same(m + "view v = reshape(c, [32, 4, 8]) fill c, 0 reduce v -> m {kind = sum, axis = 2}",
              m + "alloc v_1: fragment f32[32, 4, 8] fill c, 0 label v_1: parallel i, j, k in 32, 4, 8 { "
                  "v_1[i, j, k] = c[i, j * 8 + k] } reduce v_1 -> m {kind = sum, axis = 2}");
  // Of other widths, and of a part.
  expect_same(s + "view u = reinterpret(a, u32) fill a, 0 reduce u[8 :+ 4, 0 :+ 8] -> s[0 :+ 4] {kind = xor, "
                  "axis = 1}",
              s + "alloc u_1: fragment u32[4, 8] fill a, 0 label u_1: parallel i, j in 4, 8 { u_1[i, j] = "
                  "cast(u32, bitcast(u16, a[8 + i, j * 2 + 0])) << 0 | cast(u32, bitcast(u16, a[8 + i, j * 2 "
                  "+ 1])) << 16 } reduce u_1 -> s[0 :+ 4] {kind = xor, axis = 1}");
  // Written behind it; read, too, where old values count.
  const std::string sum = "alloc f: fragment f32[32] alloc g: fragment f32[4, 8, 4] ";
  const std::string into = " {kind = sum, axis = 2";
  expect_same(sum + "view v = reshape(f, [4, 8]) fill g, 0 reduce g -> v" + into + "}",
              sum + "alloc v_1: fragment f32[4, 8] fill g, 0 reduce g -> v_1" + into +
                  "} label v_1: parallel i, j in 4, 8 { f[i * 8 + j] = v_1[i, j] }");
  expect_same(sum + "view v = reshape(f, [4, 8]) fill g, 0 fill f, 1 reduce g -> v" + into + ", accumulate}",
              sum +
                  "alloc v_1: fragment f32[4, 8] fill g, 0 fill f, 1 label v_1: parallel i, j in 4, 8 { "
                  "v_1[i, j] = f[i * 8 + j] } reduce g -> v_1" +
                  into + ", accumulate} parallel i_1, j_1 in 4, 8 { f[i_1 * 8 + j_1] = v_1[i_1, j_1] }");
  // In the loop around, whose iterations see each other's.
  expect_same(
      sum + "view v = reshape(f, [4, 8]) fill f, 1 serial e in 0 .. 2 { scan v -> v {kind = sum} }",
      sum +
          "alloc v_1: fragment f32[4, 8] alloc v_2: fragment f32[4, 8] fill f, 1 serial e in 0 .. 2 { "
          "label v_1: parallel i, j in 4, 8 { v_1[i, j] = f[i * 8 + j] } scan v_1 -> v_2 {kind = sum} "
          "label v_2: parallel i_1, j_1 in 4, 8 { f[i_1 * 8 + j_1] = v_2[i_1, j_1] } }");
  // An atomic operation is one of the elements.
  expect_same(
      "alloc h: shared u16[4, 8, 16] view u = reinterpret(h, f16) fill h, 0 scan h -> h {kind = max} "
      "atomic u -> X[b :+ 1, 0 :+ 4, 0 :+ 8, 0 :+ 16]",
      "alloc h: shared u16[4, 8, 16] fill h, 0 scan h -> h {kind = max} parallel i, j, k in 4, 8, 16 { "
      "atomic_add(X[b, i, j, k], bitcast(f16, h[i, j, k])) }");
  expect_same(sum +
                  "alloc e: fragment u32[16, 2] view u = reinterpret(r, u32) fill e, 0 "
                  "reduce e -> u {kind = max, axis = 1}",
              sum +
                  "alloc e: fragment u32[16, 2] alloc u_1: fragment u32[16] fill e, 0 reduce e -> u_1 {kind "
                  "= max, axis = 1} "
                  "label u_1: parallel i in 16 { r[i * 2] = bitcast(f16, cast(u16, u_1[i])) "
                  "r[i * 2 + 1] = bitcast(f16, cast(u16, u_1[i] >> 16u32)) }");
  expect_error(
      "view y = reinterpret(Y, u16) alloc h: shared u16[16, 32] fill h, 0 atomic h -> y[b :+ 1, 0 :+ 16, 0 "
      ":+ 32] {kind = or}",
      "[dtype_mismatch] main: an atomic operation takes a view of type u16");
}

// A tile that all operations see as one other type has that one.
TEST(TileView, TilesOfTheTypeThatOperationsSee) {
  const std::string bits = "{ d[i, j] = cast(u16, i) } ", fill = "fill c, 0 ";
  expect_same("alloc d: shared u16[32, 16] view h = reinterpret(d, f16) fill d, 0 parallel i, j in 32, 16 " +
                  bits + fill + "gemm h, w -> c parallel i, j in 32, 16 { a[i, j] = cast(f16, d[i, j]) }",
              "alloc d: shared f16[32, 16] fill d, 0 parallel i, j in 32, 16 { d[i, j] = bitcast(f16, "
              "cast(u16, i)) } " +
                  fill +
                  "gemm d, w -> c parallel i, j in 32, 16 { a[i, j] = cast(f16, bitcast(u16, d[i, j])) }");
  // Through other views, and copied as that type.
  expect_same(
      "alloc d: shared u16[2, 32, 16] view part = d[1 :+ 1, 0 :+ 32, 0 :+ 16] view h = reinterpret(part, "
      "f16) "
      "copy a -> h fill a, 0 " +
          fill + "gemm h, w -> c",
      "alloc d: shared f16[2, 32, 16] copy a -> d[1 :+ 1, 0 :+ 32, 0 :+ 16] fill a, 0 " + fill +
          "gemm d[1 :+ 1, 0 :+ 32, 0 :+ 16], w -> c");
  expect_same(
      "alloc h: shared u16[4, 8, 16] view u = reinterpret(h, f16) fill h, 0 atomic u -> X[b :+ 1, 0 :+ 4, "
      "0 :+ 8, 0 :+ 16]",
      "alloc h: shared f16[4, 8, 16] fill h, 0 atomic h -> X[b :+ 1, 0 :+ 4, 0 :+ 8, 0 :+ 16]");
  expect_same(
      "alloc d: shared u16[16, 32] view h = reinterpret(d, f16) view y = reinterpret(Y, u16) parallel i, j "
      "in "
      "16, 32 { d[i, j] = y[b, i, j] } fill c, 0 gemm h, h -> c {transpose_a}",
      "alloc d: shared f16[16, 32] parallel i, j in 16, 32 { d[i, j] = Y[b, i, j] } fill c, 0 gemm d, d -> c "
      "{transpose_a}");
  // Not what an operation, atomic ones too, has in its own type, or as two others; nor what is copied from
  // memory.
  const std::string d = "alloc d: shared u16[32, 16] view h = reinterpret(d, f16) ";
  for (const std::string use :
       {"fill d, 0 scan d -> d {kind = max}", "fill d, 0 parallel i in 32 { atomic_add(d[i, 0], 1) }",
        "fill d, 0 view y = reinterpret(d, bf16) gemm y, y -> c {transpose_b}", "fill e, 0 copy e -> d"})
    EXPECT_NE(made("alloc e: shared u16[32, 16] " + d + fill + use + " gemm h, w -> c").find("d: shared u16"),
              std::string::npos)
        << use << made("alloc e: shared u16[32, 16] " + d + fill + use + " gemm h, w -> c");
  EXPECT_NE(
      made("alloc g: shared f16[16, 32] view y = reinterpret(g, bf16) fill c, 0 parallel i, j in 16, 32 { "
           "g[i, j] = Y[b, i, j] } gemm y, y -> c {transpose_a}")
          .find("g: shared f16"),
      std::string::npos);
}

// Tiles that threads copy to asynchronously, through a view too, keep their type; no others do for them.
TEST(TileView, TilesBesideAsynchronousCopies) {
  const ViewProgram program = {
      "tl 1 program p\ndim n\ntensor Y: f16[n, 16, 32]\nkernel main grid(b: n) threads 32 {\n"
      "alloc c: fragment f32[32, 32]\n",
      "kernel main"};
  const std::string head =
      "alloc d: shared u16[32, 16] view h = reinterpret(d, f16) alloc e: shared u16[16, 32] "
      "view v = reinterpret(e, f16) threads t in 32 { d[t, 0] = cast(u16, t) ";
  const std::string copies[] = {"copy_async Y[b, 0, t % 8 * 4 :+ 4] -> v[0, t % 8 * 4 :+ 4] ",
                                "copy_bulk Y[b, 0 :+ 16, 0 :+ 32] -> v[0 :+ 16, 0 :+ 32] "};
  for (const std::string& copy : copies) {
    const std::string text =
        program.made(head + copy + "commit_group wait_group 0 } fill c, 0 gemm h, v -> c");
    EXPECT_NE(text.find("d: shared f16[32, 16]"), std::string::npos) << text;
    EXPECT_NE(text.find("d[t, 0] = bitcast(f16, cast(u16, t))"), std::string::npos) << text;
    EXPECT_NE(text.find("e: shared u16[16, 32]"), std::string::npos) << text;
  }
}

TEST(TileView, ElementsOfReshapedTiles) {
  expect_same(
      "fill a, 0 view v = reshape(a, [4, 8, 16]) parallel i, j, k in 4, 8, 16 { q[i // 2, i % 2 * 8 + j, k] "
      "= v[3 - i, 7, k] + 1 }",
      "fill a, 0 parallel i, j, k in 4, 8, 16 { q[i // 2, i % 2 * 8 + j, k] = a[(3 - i) * 8 + 7, k] + 1 }");
  expect_same("view v = reshape(q, [32, 16]) parallel i, k in 32, 16 { v[i, k] = 0 }",
              "parallel i, k in 32, 16 { q[i // 16, i % 16, k] = 0 }");
  expect_same("view v = reshape(r, [1, 32, 1]) parallel i in 32 { v[0, i, 0] = 0 }",
              "parallel i in 32 { r[i] = 0 }");
}

TEST(TileView, TransposedTiles) {
  expect_same("view v = transpose(a) fill a, 0 fill c, 0 gemm a, v -> c",
              "fill a, 0 fill c, 0 gemm a, a -> c {transpose_b}");
  expect_same("view v = transpose(w) fill w, 0 fill c, 0 gemm v, w -> c {clear}",
              "fill w, 0 fill c, 0 gemm w, w -> c {transpose_a, clear}");
  expect_same("view v = transpose(a, [1, 0]) fill v[0 :+ 16, 8 :+ 4], 0", "fill a[8 :+ 4, 0 :+ 16], 0");
  expect_same("view v = transpose(a) copy Y[b :+ 1, 0 :+ 16, 0 :+ 32] -> v",
              "parallel i, j in 16, 32 { a[j, i] = Y[b, i, j] }");
  expect_same("view v = transpose(q, [1, 2, 0]) parallel i, j, k in 16, 16, 2 { v[i, j, k] = 0 }",
              "parallel i, j, k in 16, 16, 2 { q[k, i, j] = 0 }");
}

TEST(TileView, PartsOfTiles) {
  expect_same("view v = a[8 :+ 16, 4 :+ 8] fill v[2 :+ 4, 0 :+ 8], 0 parallel i, j in 16, 8 { v[i, j] = 1 }",
              "fill a[10 :+ 4, 4 :+ 8], 0 parallel i, j in 16, 8 { a[i + 8, j + 4] = 1 }");
  expect_same("serial s in 0 .. 2 { view v = a[s * 16 :+ 16, 0 :+ 16] fill v, 0 }",
              "serial s in 0 .. 2 { fill a[s * 16 :+ 16, 0 :+ 16], 0 }");
  expect_same(
      "view v = q[1 :+ 1, 0 :+ 16, 0 :+ 16] view u = reshape(v, [16, 16]) fill q, 0 fill c, 0 "
      "gemm u, q[0 :+ 1, 0 :+ 16, 0 :+ 16] -> c[0 :+ 16, 0 :+ 16]",
      "fill q, 0 fill c, 0 gemm q[1 :+ 1, 0 :+ 16, 0 :+ 16], q[0 :+ 1, 0 :+ 16, 0 :+ 16] -> "
      "c[0 :+ 16, 0 :+ 16]");
}

// What is no box of the tile is moved element by element.
TEST(TileView, NoBoxOfTheTile) {
  expect_same("view v = reshape(a, [4, 8, 16]) fill v[0 :+ 4, 0 :+ 4, 0 :+ 16], 0",
              "parallel i, j, k in 4, 4, 16 { a[i * 8 + j, k] = 0 }");
  expect_same("view v = reshape(a, [16, 32]) fill w, 0 copy w -> v",
              "fill w, 0 parallel i, j in 16, 32 { a[(i * 32 + j) // 16, (i * 32 + j) % 16] = w[i, j] }");
  expect_same("serial i in 0 .. 3 { view v = reshape(q, [32, 16]) fill v[i * 5 :+ 4, 0 :+ 16], 0 }",
              "serial i in 0 .. 3 { parallel i_1, j in 4, 16 { q[(i * 5 + i_1) // 16, (i * 5 + i_1) % 16, j] "
              "= 0 } }");
}

TEST(TileView, Refused) {
  expect_error("view v = reshape(a, [4, 8, 15])",
               "[shape_mismatch] main: 'a' [32, 16] has 512 elements, its view [4, 8, 15] 480");
  expect_error("view v = reshape(a, [0, 8])", "[bad_shape]");
  expect_error("view v = transpose(a, [0, 0])",
               "[bad_attribute] main: the order [0, 0] does not name each dimension");
  expect_error("view v = transpose(a, [1])", "[bad_attribute]");
  expect_error("view v = a[24 :+ 16, 0 :+ 16]",
               "[index_out_of_bounds] main: the box [16, 16] leaves 'a' [32, 16]");
  expect_error("view v = reshap(a, [512])", "[unknown_name] main: expected a kind of view, found 'reshap'");
  expect_error("view v = reshape(b, [512])", "[syntax_error]");
  expect_error("parallel i in 4 { view v = reshape(a, [512]) }", "[misplaced_statement]");
  expect_error("view v = reshape(a, [4, 8, 16]) parallel i in 4 { v[i, 8, 0] = 0 }",
               "[index_out_of_bounds] main: index 8 in dimension 1 of the view 'v' [4, 8, 16] is outside");
  expect_error("view v = reshape(a, [4, 8, 16]) fill v[0 :+ 1, 4 :+ 8, 0 :+ 16], 0",
               "[index_out_of_bounds] main: index 11 in dimension 1 of the view 'v'");
  expect_error(
      "view v = reshape(X, [n, 32, 16]) fill w, 0 fill c, 0 gemm v[b :+ 1, 0 :+ 32, 0 :+ 16], w -> c",
      "[shape_mismatch] main: gemm's operand 'a', [1, 32, 16] of the view 'v', is no box of these dimensions "
      "of the tile 'X'");
  expect_error("view v = reshape(a, [4, 8, 16]) copy Y[b :+ 1, 0 :+ 16, 0 :+ 32] -> v",
               "[shape_mismatch] main: src Y[1, 16, 32] and dst v[4, 8, 16] have different extents");
  expect_error("view v = reshape(a, [16, 32]) copy X[b :+ 1, 0 :+ 4, 0 :+ 8, 0 :+ 16] -> v",
               "[shape_mismatch]");
  expect_error("view a = reshape(w, [512])", "[duplicate_name]");
}

// "view" names what it likes.
TEST(TileView, NoWordOfTheLanguage) {
  EXPECT_EQ(made("fill a, 0\n").find("error"), std::string::npos);
  const auto p = parse_program(
      "tl 1 program p\ntensor view: f32[8]\nkernel k grid(b: 1) {\nparallel i in 8 { view[i] = 1 }\n}\n",
      "t.tl", Limits());
  EXPECT_TRUE(bool(p));
}

}  // namespace
}  // namespace tilegen::ir
