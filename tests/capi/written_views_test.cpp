// Views of elements of other widths that are written, and atomic operations of tiles with their old values,
// through the builder.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

constexpr int64_t kPoints = 32;

struct Scene {
  tl_builder* b;
  tl_buffer x, y;
  tl_expr base;  // of the block's points in X and Y

  tl_expr index(int64_t v) const { return tl_index(b, v); }
  tl_expr sum(tl_expr p, tl_expr q) const { return tl_binary(b, TL_ADD, p, q); }
  tl_expr times(tl_expr p, int64_t by) const { return tl_binary(b, TL_MUL, p, index(by)); }
  tl_expr of(tl_buffer t, tl_expr at) const { return tl_load(b, t, 1, &at); }
  void put(tl_buffer t, tl_expr at, tl_expr value) const { tl_store(b, t, 1, &at, value); }
  tl_buffer alloc(const char* name, uint32_t scope, tl_dtype type, int64_t size) const {
    return tl_alloc(b, name, scope, type, 1, &size);
  }
  void parallel(int64_t extent, const std::function<void(tl_expr)>& body) const {
    tl_expr point;
    const tl_scope loop = tl_begin_parallel(b, 1, &extent, nullptr, &point);
    body(point);
    tl_end(b, loop);
  }
};

Program of_blocks(const std::function<void(const Scene&)>& body, std::string* mistake = nullptr) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kPoints);
  Scene s{b, tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY),
          tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0), tl_expr{}};
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kPoints - 1)), size);
  tl_expr block;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 0, nullptr, &block);
  s.base = tl_binary(b, TL_MUL, block, size);
  body(s);
  tl_end(b, kernel);
  return made_by(owner, mistake);
}

// Words of bytes are written as numbers of 64 bits.
TEST(WrittenViews, OfMoreBits) {
  const Program program = of_blocks([](const Scene& s) {
    const tl_buffer bytes = s.alloc("bytes", TL_SCOPE_SHARED, TL_U8, 8 * kPoints);
    const tl_buffer words = tl_view_reinterpret(s.b, bytes, TL_I64);
    s.parallel(kPoints, [&](tl_expr p) { s.put(words, p, s.times(s.of(s.x, s.sum(s.base, p)), 0x10203)); });
    s.parallel(kPoints, [&](tl_expr p) {
      const auto byte = [&](int64_t q) {
        return tl_cast(s.b, TL_I64, s.of(bytes, s.sum(s.times(p, 8), s.index(q))));
      };
      s.put(s.y, s.sum(s.base, p), s.sum(byte(0), s.sum(s.times(byte(1), 1000), s.times(byte(7), 1000000))));
    });
  });
  expect_everywhere(program, numbers(61), [](int64_t v) {
    const int64_t word = v * 0x10203;
    return (word & 255) + (word >> 8 & 255) * 1000;
  });
}

// Quarters of numbers of 64 bits: by iterations beside each other, by a loop of each, and one of them alone.
TEST(WrittenViews, OfFewerBits) {
  const Program program = of_blocks([](const Scene& s) {
    const tl_buffer t = s.alloc("t", TL_SCOPE_SHARED, TL_I64, kPoints);
    const tl_buffer u = s.alloc("u", TL_SCOPE_FRAGMENT, TL_I64, kPoints);
    const tl_buffer parts = tl_view_reinterpret(s.b, t, TL_U16);
    const tl_buffer halves = tl_view_reinterpret(s.b, u, TL_I32);
    const auto x = [&](tl_expr p) { return s.of(s.x, s.sum(s.base, p)); };
    s.parallel(4 * kPoints, [&](tl_expr p) {
      const tl_expr of = tl_binary(s.b, TL_FLOORDIV, p, s.index(4));
      const tl_expr part = tl_binary(s.b, TL_FLOORMOD, p, s.index(4));
      s.put(parts, p, tl_cast(s.b, TL_U16, s.sum(x(of), part)));
    });
    s.parallel(kPoints, [&](tl_expr p) {
      tl_expr q;
      const tl_scope loop = tl_begin_loop(s.b, TL_LOOP_UNROLL, s.index(0), s.index(2), 0, nullptr, &q);
      s.put(halves, s.sum(s.times(p, 2), q), tl_cast(s.b, TL_I32, s.sum(x(p), q)));
      tl_end(s.b, loop);
    });
    s.parallel(kPoints, [&](tl_expr p) {
      s.put(parts, s.sum(s.times(p, 4), s.index(3)), tl_const_i64(s.b, TL_U16, 1));
    });
    s.parallel(kPoints, [&](tl_expr p) {
      s.put(s.y, s.sum(s.base, p), tl_binary(s.b, TL_BIT_XOR, s.of(t, p), s.of(u, p)));
    });
  });
  expect_everywhere(program, numbers(70), [](int64_t v) {
    const int64_t quarters = v | (v + 1) << 16 | (v + 2) << 32 | int64_t{1} << 48;
    return quarters ^ (v | (v + 1) << 32);
  });
}

TEST(WrittenViews, Mistakes) {
  std::string text;
  of_blocks(
      [](const Scene& s) {
        const tl_buffer halves = tl_view_reinterpret(s.b, s.y, TL_I32);
        s.parallel(kPoints, [&](tl_expr p) { s.put(halves, s.times(p, 2), tl_const_i64(s.b, TL_I32, 1)); });
      },
      &text);
  EXPECT_NE(text.find("elements of 'Y' of i64 are written in parts, as the view"), std::string::npos) << text;
  of_blocks(
      [](const Scene& s) {
        const tl_buffer t = s.alloc("t", TL_SCOPE_SHARED, TL_I64, kPoints);
        const tl_buffer halves = tl_view_reinterpret(s.b, t, TL_I32);
        s.parallel(kPoints, [&](tl_expr p) {
          tl_store_atomic(s.b, halves, 1, &p, tl_const_i64(s.b, TL_I32, 1), TL_ATOMIC_ADD);
        });
      },
      &text);
  EXPECT_NE(text.find("an atomic operation takes the view"), std::string::npos) << text;
}

// A tile of a block is added to another, whose elements were these.
TEST(OldValues, OfTiles) {
  const Program program = of_blocks([](const Scene& s) {
    const tl_buffer t = s.alloc("t", TL_SCOPE_SHARED, TL_I64, kPoints);
    const tl_buffer more = s.alloc("more", TL_SCOPE_FRAGMENT, TL_I64, kPoints);
    const tl_buffer old = s.alloc("old", TL_SCOPE_FRAGMENT, TL_I64, kPoints);
    s.parallel(kPoints, [&](tl_expr p) { s.put(t, p, s.of(s.x, s.sum(s.base, p))); });
    tl_fill(s.b, tl_whole(s.b, more), tl_const_i64(s.b, TL_I64, 5));
    tl_atomic_fetch(s.b, tl_whole(s.b, more), tl_whole(s.b, t), tl_whole(s.b, old), TL_ATOMIC_ADD);
    s.parallel(kPoints, [&](tl_expr p) {
      s.put(s.y, s.sum(s.base, p), s.sum(s.times(s.of(old, p), 1000), s.of(t, p)));
    });
  });
  expect_everywhere(program, numbers(45), [](int64_t v) { return v * 1000 + v + 5; });
}

}  // namespace
}  // namespace tilegen::test
