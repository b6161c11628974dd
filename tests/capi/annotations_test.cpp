// Labels and annotations through the C interface: the same programs as their texts, with the same results.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

const char* const kText = R"(kernel k grid (b: (n + 31) // 32) threads 32 with {raster = row_major} {
  alloc t: shared i64[32] {layout = (i) -> i // 8 * 10 + i % 8}
  alloc s: fragment i64[32]
  label load: copy X[b * 32 :+ 32] -> t {vector = 1}
  pipelined r in 0 .. 1 with {drained = false} {
    label add: parallel i in 32 with {unroll = 8} {
      s[i] = t[i] + 1
    }
  }
  copy s -> Y[b * 32 :+ 32] {full_tile_version = false}
}
)";

void build(tl_builder* b) {
  const tl_expr n = tl_dim(b, "n");
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, 31)), tl_index(b, 32));
  tl_expr block, r, i;
  const char* const names[] = {"b"};
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 32, names, &block);
  tl_annotate_kernel(b, "raster = row_major");
  const int64_t size = 32;
  const tl_buffer t = tl_alloc(b, "t", TL_SCOPE_SHARED, TL_I64, 1, &size);
  const tl_buffer s = tl_alloc(b, "s", TL_SCOPE_FRAGMENT, TL_I64, 1, &size);
  tl_annotate_tile(b, t, "layout = (i) -> i // 8 * 10 + i % 8");
  const tl_expr at = tl_binary(b, TL_MUL, block, tl_index(b, 32));
  tl_label(b, "load");
  tl_annotate(b, "vector = 1");
  tl_copy(b, tl_region_of(b, x, 1, &at, &size), tl_whole(b, t));
  tl_annotate(b, "drained = false");
  const tl_scope loop = tl_begin_loop(b, TL_LOOP_PIPELINED, tl_index(b, 0), tl_index(b, 1), 0, "r", &r);
  tl_label(b, "add");
  tl_annotate(b, "unroll = 8");
  const char* const points[] = {"i"};
  const tl_scope parallel = tl_begin_parallel(b, 1, &size, points, &i);
  tl_store(b, s, 1, &i, tl_binary(b, TL_ADD, tl_load(b, t, 1, &i), tl_index(b, 1)));
  tl_end(b, parallel);
  tl_end(b, loop);
  tl_annotate(b, "full_tile_version = false");
  tl_copy(b, tl_whole(b, s), tl_region_of(b, y, 1, &at, &size));
  tl_end(b, kernel);
}

TEST(Annotations, BuiltAsTheTextSays) {
  const Context context = make_context();
  const Builder b = make_builder(context);
  build(b.get());
  Program built(nullptr);
  Failure failure;
  ASSERT_EQ(finish(b, &built, &failure), TL_OK) << first(failure).message;
  const Program text = parse(kText);
  EXPECT_STREQ(tl_program_hash(built.get()), tl_program_hash(text.get()));
  expect_everywhere(text, numbers(75), [](int64_t v) { return v + 1; });
}

// What the call says of a kernel with a tile, and of what follows.
std::string mistake(const std::function<void(tl_builder*, tl_buffer tensor, tl_buffer tile)>& make) {
  const Context context = make_context();
  const Builder b = make_builder(context);
  const tl_expr n = tl_dim(b.get(), "n");
  const tl_buffer x = tl_tensor(b.get(), "X", TL_I64, 1, &n, nullptr, 0);
  tl_expr block;
  const int64_t size = 32;
  const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, &n, 32, nullptr, &block);
  const tl_buffer t = tl_alloc(b.get(), "t", TL_SCOPE_SHARED, TL_I64, 1, &size);
  make(b.get(), x, t);
  tl_end(b.get(), kernel);
  Failure failure;
  EXPECT_NE(finish(b, nullptr, &failure), TL_OK);
  return std::string(first(failure).op) + ": " + first(failure).code + ": " + first(failure).message;
}

void expect_words(const std::string& text, const char* words) {
  EXPECT_NE(text.find(words), std::string::npos) << text;
}
void fill(tl_builder* b, tl_buffer t) { tl_fill(b, tl_whole(b, t), tl_index(b, 0)); }

TEST(Annotations, Mistakes) {
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer t) {
                 tl_label(b, "x"), fill(b, t), tl_label(b, "x"), fill(b, t);
               }),
               "tl_label: duplicate_name: the kernel has a label 'x' already");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) { tl_label(b, "x"), tl_label(b, "y"); }),
               "two labels, 'x' and 'y'");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) { tl_label(b, "while"); }),
               "is a word of the language");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) { tl_label(b, "a b"); }), "cannot be a name");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) { tl_label(b, nullptr); }), "null_argument");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) { tl_label(b, "x"); }),
               "tl_end: misplaced_statement: the label 'x' stands in front of what has no path");
  expect_words(
      mistake([](tl_builder* b, tl_buffer, tl_buffer) { tl_label(b, "x"), tl_let(b, "v", tl_index(b, 4)); }),
      "tl_let: misplaced_statement");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer t) { tl_annotate(b, "vector 8"), fill(b, t); }),
               "tl_fill: syntax_error: expected '='");
  expect_words(
      mistake([](tl_builder* b, tl_buffer, tl_buffer t) { tl_annotate(b, "vector = 8}"), fill(b, t); }),
      "expected ',' and a further annotation");
  expect_words(
      mistake([](tl_builder* b, tl_buffer, tl_buffer t) { tl_annotate(b, "swizzle = 64"), fill(b, t); }),
      "tl_fill: unknown_name: fill has no annotation 'swizzle'");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) {
                 tl_annotate(b, "vector = 8"), tl_annotate(b, "unroll = 8");
               }),
               "a statement is annotated twice");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) {
                 tl_annotate(b, "vector = 8");
                 tl_begin_if(b, tl_binary(b, TL_LT, tl_index(b, 0), tl_index(b, 1)));
               }),
               "tl_begin_if: misplaced_statement: it has no annotations");
  expect_words(mistake([](tl_builder* b, tl_buffer x, tl_buffer) { tl_annotate_tile(b, x, "swizzle = 64"); }),
               "tensor 'X' is no tile of its own");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer t) {
                 tl_annotate_tile(b, tl_view_reshape(b, t, 1, std::vector<int64_t>{32}.data()), "slots = 2");
               }),
               "is no tile of its own");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer t) {
                 tl_annotate_tile(b, t, "slots = 2"), tl_annotate_tile(b, t, "slots = 3");
               }),
               "the annotation 'slots' is given twice");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) { tl_annotate_kernel(b, ""); }),
               "tl_annotate_kernel");
  expect_words(mistake([](tl_builder* b, tl_buffer, tl_buffer) {
                 const int64_t extent = 4;
                 tl_expr i;
                 tl_begin_parallel(b, 1, &extent, nullptr, &i);
                 tl_annotate(b, "vector = 8");
               }),
               "annotations stand inside a parallel loop");
}

}  // namespace
}  // namespace tilegen::test
