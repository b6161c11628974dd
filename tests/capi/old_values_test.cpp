// Old values of atomic operations, and random words, through the builder.
#include <gtest/gtest.h>

#include <string>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

constexpr int64_t kPoints = 32;

// Word lane % 4 of Philox 4x32-10, as its paper has it.
uint32_t philox(uint64_t seed, uint64_t offset, uint64_t lane) {
  uint64_t c[4] = {offset & UINT32_MAX, offset >> 32, (lane >> 2) & UINT32_MAX, lane >> 34};
  uint64_t k[2] = {seed & UINT32_MAX, seed >> 32};
  for (int round = 0; round < 10; ++round) {
    const uint64_t even = 0xD2511F53 * c[0], odd = 0xCD9E8D57 * c[2];
    c[0] = (odd >> 32) ^ c[1] ^ k[0], c[1] = odd & UINT32_MAX;
    c[2] = (even >> 32) ^ c[3] ^ k[1], c[3] = even & UINT32_MAX;
    k[0] = (k[0] + 0x9E3779B9) & UINT32_MAX, k[1] = (k[1] + 0xBB67AE85) & UINT32_MAX;
  }
  return static_cast<uint32_t>(c[lane & 3]);
}

// Y[b * 32 + i] = what `make` gives of X's element there, in blocks of 32 points with a shared tile of i64.
template <class Make>
Program of_points(const Make& make, std::string* mistake = nullptr) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kPoints);
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kPoints - 1)), size);
  tl_expr block, point;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 0, nullptr, &block);
  const tl_buffer tile = tl_alloc(b, "t", TL_SCOPE_SHARED, TL_I64, 1, &kPoints);
  const tl_expr base = tl_binary(b, TL_MUL, block, size);
  tl_scope loop = tl_begin_parallel(b, 1, &kPoints, nullptr, &point);
  tl_expr at = tl_binary(b, TL_ADD, base, point);
  tl_store(b, tile, 1, &point, tl_load(b, x, 1, &at));
  tl_end(b, loop);
  loop = tl_begin_parallel(b, 1, &kPoints, nullptr, &point);
  at = tl_binary(b, TL_ADD, base, point);
  tl_store(b, y, 1, &at, make(b, tile, point));
  tl_end(b, loop);
  tl_end(b, kernel);
  return made_by(owner, mistake);
}

TEST(OldValues, OfKinds) {
  const Program program = of_points([](tl_builder* b, tl_buffer tile, tl_expr point) {
    const tl_expr added = tl_fetch_atomic(b, tile, 1, &point, tl_index(b, 5), TL_ATOMIC_ADD, "added");
    const tl_expr least = tl_fetch_atomic(b, tile, 1, &point, tl_index(b, 20), TL_ATOMIC_MIN, nullptr);
    const tl_expr last = tl_fetch_atomic(b, tile, 1, &point, tl_index(b, 0), TL_ATOMIC_EXCHANGE, nullptr);
    const tl_expr thousand = tl_index(b, 1000);
    const tl_expr high = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, added, thousand), least);
    return tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, high, thousand), last);
  });
  expect_everywhere(program, numbers(64), [](int64_t v) {
    const int64_t sum = v + 5, least = sum < 20 ? sum : 20;
    return (v * 1000 + sum) * 1000 + least;
  });
}

TEST(OldValues, CompareExchange) {
  const Program program = of_points([](tl_builder* b, tl_buffer tile, tl_expr point) {
    const tl_expr seen = tl_compare_exchange(b, tile, 1, &point, tl_index(b, 7), tl_index(b, 100), "seen");
    const tl_expr then = tl_compare_exchange(b, tile, 1, &point, tl_index(b, 100), seen, nullptr);
    return tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, then, tl_index(b, 1000)), tl_load(b, tile, 1, &point));
  });
  expect_everywhere(program, numbers(61), [](int64_t v) { return (v == 7 ? 100 : v) * 1000 + v; });
}

TEST(OldValues, RandomWords) {
  ASSERT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0xdc1cd104c6628b8), 0xd16cfe09u);

  const Program program = of_points([](tl_builder* b, tl_buffer tile, tl_expr point) {
    const tl_expr seed = tl_const_i64(b, TL_I32, 99), value = tl_load(b, tile, 1, &point);
    const tl_expr word = tl_ternary(b, TL_PHILOX, seed, value, tl_index(b, 6));
    const tl_expr part = tl_binary(b, TL_MUL, tl_uniform(b, word), tl_const_f64(b, TL_F32, 0x1p24));
    return tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, tl_cast(b, TL_I64, word), tl_index(b, 2)),
                     tl_cast(b, TL_I64, part));
  });
  expect_everywhere(program, numbers(40), [](int64_t v) {
    const uint32_t word = philox(99, static_cast<uint64_t>(v), 6);
    return 2 * int64_t{word} + int64_t{word >> 8};
  });
}

TEST(OldValues, Mistakes) {
  const auto said = [](const auto& make) {
    std::string text;
    of_points(make, &text);
    return text;
  };
  const auto one = [](tl_builder* b) { return tl_index(b, 1); };
  const auto expect_words = [](const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  expect_words(said([&](tl_builder* b, tl_buffer t, tl_expr p) {
                 return tl_fetch_atomic(b, t, 1, &p, tl_const_f64(b, TL_F32, 1), TL_ATOMIC_ADD, "x");
               }),
               "the value is f32");
  expect_words(said([&](tl_builder* b, tl_buffer t, tl_expr p) {
                 return tl_compare_exchange(b, t, 1, &p, tl_const_i64(b, TL_I32, 1), one(b), "x");
               }),
               "the value is i32");
  expect_words(said([&](tl_builder* b, tl_buffer t, tl_expr p) {
                 return tl_fetch_atomic(b, t, 1, &p, one(b), 8, "x");
               }),
               "there is no atomic operation 8");
  expect_words(said([&](tl_builder* b, tl_buffer t, tl_expr p) {
                 return tl_fetch_atomic(b, t, 1, &p, one(b), TL_ATOMIC_ADD, "not a name");
               }),
               "not a name");
  expect_words(said([&](tl_builder* b, tl_buffer, tl_expr p) { return tl_uniform(b, p); }),
               "it takes u32, not i64");
  expect_words(said([&](tl_builder* b, tl_buffer, tl_expr p) {
                 return tl_ternary(b, TL_PHILOX, p, p, tl_const_f64(b, TL_F32, 1));
               }),
               "'philox' takes an integer, not f32");
}

TEST(OldValues, StandInParallelLoops) {
  const Context context = make_context();
  const Builder b = make_builder(context);
  tl_expr block;
  const tl_expr one = tl_index(b.get(), 1);
  const int64_t size = 1;
  const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
  const tl_buffer t = tl_alloc(b.get(), "t", TL_SCOPE_SHARED, TL_I64, 1, &size);
  EXPECT_EQ(tl_fetch_atomic(b.get(), t, 1, &block, one, TL_ATOMIC_ADD, "x").bits, 0u);
  tl_end(b.get(), kernel);
  Failure failure;
  EXPECT_NE(finish(b, nullptr, &failure), TL_OK);
  EXPECT_STREQ(first(failure).code, "misplaced_statement");
  EXPECT_STREQ(first(failure).op, "tl_fetch_atomic");
}

}  // namespace
}  // namespace tilegen::test
