/* Few queries, many keys: a kernel whose blocks take a part of the keys each, and one that combines what they
 * found. Between the two a part leaves its result over its keys, and log2 of the sum of its weights: -inf of
 * no key. */
#include <math.h>

#include "attention_frame.h"

enum { TOGETHER = 16 }; /* parts that are combined at once */

/* What the kernels leave for each other is no parameter: each launch has its own. */
struct between {
  tl_buffer partial, sums;
};

static struct between declare_workspaces(const struct attention_frame* f) {
  struct between found;
  tl_expr shape[4];
  shape[0] = mul(f->b, f->batch, f->heads);
  shape[1] = f->parts;
  shape[2] = f->rows;
  shape[3] = tl_index(f->b, f->spec->dim);
  found.partial = tl_tensor(f->b, "partial", TL_F32, 4, shape, NULL, TL_TENSOR_WORKSPACE);
  found.sums = tl_tensor(f->b, "sums", TL_F32, 3, shape, NULL, TL_TENSOR_WORKSPACE);
  return found;
}

/* ---- parts */

/* The blocks of keys of one part: equal shares, but for one block, of those that some query sees. There are
 * few queries, so these differ little from row to row. */
static void find_blocks(const struct attention_frame* f, tl_expr part, tl_expr* begin, tl_expr* end) {
  tl_builder* b = f->b;
  const struct attention_spec* spec = f->spec;
  tl_expr first = tl_index(b, 0), blocks = ceil_div(b, f->keys, spec->tile_keys);
  if (spec->left != ATTENTION_ALL) {
    first = sub(b, sub(b, f->keys, f->queries), tl_index(b, spec->left));
    first = floor_div(b, most(b, first, tl_index(b, 0)), tl_index(b, spec->tile_keys));
    blocks = sub(b, blocks, first);
  }
  *begin = add(b, first, floor_div(b, mul(b, part, blocks), f->parts));
  *end = add(b, first, floor_div(b, mul(b, add(b, part, tl_index(b, 1)), blocks), f->parts));
}

static void leave(const struct attention_frame* f, const struct between* to, tl_expr pair, tl_expr part) {
  tl_builder* b = f->b;
  tl_expr i, at[3], offsets[4], sum;
  tl_scope loop, branch;
  int64_t extents[4];
  loop = each_row(f, &i);
  at[0] = offsets[0] = pair;
  at[1] = offsets[1] = part;
  at[2] = add(b, f->first, i);
  branch = tl_begin_if(b, tl_binary(b, TL_LT, at[2], f->rows));
  sum = attention_exponent(f, tl_load(b, f->top, 1, &i));
  tl_store(b, to->sums, 3, at, add(b, sum, tl_unary(b, TL_LOG2, tl_load(b, f->total, 1, &i))));
  tl_end(b, branch);
  tl_end(b, loop);
  attention_divide(f);
  offsets[2] = f->first;
  offsets[3] = tl_index(b, 0);
  extents[0] = extents[1] = 1;
  extents[2] = f->spec->tile_queries;
  extents[3] = f->spec->dim;
  tl_copy(b, tl_whole(b, f->out), tl_region_of(b, to->partial, 4, offsets, extents));
}

static void build_parts(struct attention_frame* f, const struct between* to) {
  static const char* const names[3] = {"pair", "slice", "bq"};
  tl_builder* b = f->b;
  tl_expr grid[3], block[3], begin, end;
  tl_scope kernel;
  grid[0] = mul(b, f->batch, f->heads);
  grid[1] = f->parts;
  grid[2] = ceil_div(b, f->rows, f->spec->tile_queries);
  kernel = tl_begin_kernel(b, "attention", 3, grid, f->spec->threads, names, block);
  f->sequence = floor_div(b, block[0], f->heads);
  f->head = f->kv_head = tl_binary(b, TL_FLOORMOD, block[0], f->heads);
  f->first = mul(b, block[2], tl_index(b, f->spec->tile_queries));
  attention_allocate(f);
  find_blocks(f, block[1], &begin, &end);
  attention_tile(f, begin, end);
  leave(f, to, block[0], block[1]);
  tl_end(b, kernel);
}

/* ---- combining: one row of O from its parts, in a loop over parts as the first kernel's is over keys */

struct combination {
  tl_buffer share, found;              /* of the parts of a step: weight, result */
  tl_buffer top, before, piece, total; /* one element each */
  tl_buffer out, more;
};

static tl_buffer fragment(const struct attention_frame* f, const char* name, uint32_t rank, int64_t first) {
  int64_t shape[2];
  shape[0] = first;
  shape[1] = f->spec->dim;
  return tl_alloc(f->b, name, TL_SCOPE_FRAGMENT, TL_F32, rank, shape);
}

static struct combination allocate(const struct attention_frame* f) {
  struct combination c;
  c.share = fragment(f, "share", 1, TOGETHER);
  c.found = fragment(f, "found", 2, TOGETHER);
  c.top = fragment(f, "top", 1, 1);
  c.before = fragment(f, "before", 1, 1);
  c.piece = fragment(f, "piece", 1, 1);
  c.total = fragment(f, "total", 1, 1);
  c.out = fragment(f, "out", 1, f->spec->dim);
  c.more = fragment(f, "more", 1, f->spec->dim);
  return c;
}

/* The shares of a step's parts beside the largest sum so far; parts after the last count nothing. */
static void weigh(const struct attention_frame* f, const struct combination* c, tl_expr first) {
  static const int64_t one = 1, many = TOGETHER;
  tl_builder* b = f->b;
  const tl_expr none = tl_index(b, 0);
  tl_expr i, x;
  tl_scope loop = tl_begin_parallel(b, 1, &many, NULL, &i);
  x = tl_binary(b, TL_LT, add(b, first, i), f->parts);
  tl_store(b, c->share, 1, &i, tl_select(b, x, tl_load(b, c->share, 1, &i), f32(b, -INFINITY)));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, c->top), tl_whole(b, c->before));
  tl_reduce(b, tl_whole(b, c->share), tl_whole(b, c->top), TL_REDUCE_MAX, 0, TL_REDUCE_ACCUMULATE);
  loop = tl_begin_parallel(b, 1, &many, NULL, &i);
  x = sub(b, tl_load(b, c->share, 1, &i), tl_load(b, c->top, 1, &none));
  tl_store(b, c->share, 1, &i, tl_unary(b, TL_EXP2, x));
  tl_end(b, loop);
  loop = tl_begin_parallel(b, 1, &one, NULL, &i);
  x = sub(b, tl_load(b, c->before, 1, &i), tl_load(b, c->top, 1, &i));
  tl_store(b, c->before, 1, &i, tl_unary(b, TL_EXP2, x));
  tl_end(b, loop);
  tl_reduce(b, tl_whole(b, c->share), tl_whole(b, c->piece), TL_REDUCE_SUM, 0, 0);
  loop = tl_begin_parallel(b, 1, &one, NULL, &i);
  x = mul(b, tl_load(b, c->total, 1, &i), tl_load(b, c->before, 1, &i));
  tl_store(b, c->total, 1, &i, add(b, x, tl_load(b, c->piece, 1, &i)));
  tl_end(b, loop);
}

static void add_up(const struct attention_frame* f, const struct combination* c) {
  tl_builder* b = f->b;
  const tl_expr none = tl_index(b, 0);
  int64_t shape[2];
  tl_expr ij[2], i, x;
  tl_scope loop;
  shape[0] = TOGETHER;
  shape[1] = f->spec->dim;
  loop = tl_begin_parallel(b, 2, shape, NULL, ij);
  tl_store(b, c->found, 2, ij, mul(b, tl_load(b, c->found, 2, ij), tl_load(b, c->share, 1, ij)));
  tl_end(b, loop);
  tl_reduce(b, tl_whole(b, c->found), tl_whole(b, c->more), TL_REDUCE_SUM, 0, 0);
  loop = tl_begin_parallel(b, 1, &f->spec->dim, NULL, &i);
  x = mul(b, tl_load(b, c->out, 1, &i), tl_load(b, c->before, 1, &none));
  tl_store(b, c->out, 1, &i, add(b, x, tl_load(b, c->more, 1, &i)));
  tl_end(b, loop);
}

/* After the loop: L of the row, and its result divided by the total. */
static void finish(const struct attention_frame* f, const struct combination* c, const tl_expr row[3]) {
  static const int64_t one = 1;
  tl_builder* b = f->b;
  const tl_expr none = tl_index(b, 0);
  tl_expr i, x, offsets[4];
  int64_t extents[4];
  tl_scope loop;
  if (f->spec->row_sums) {
    loop = tl_begin_parallel(b, 1, &one, NULL, &i);
    x = attention_row_sum(f, tl_load(b, c->top, 1, &i), tl_load(b, c->total, 1, &i));
    tl_store(b, f->L, 3, row, x);
    tl_end(b, loop);
  }
  loop = tl_begin_parallel(b, 1, &f->spec->dim, NULL, &i);
  x = tl_load(b, c->total, 1, &none);
  x = tl_select(b, tl_binary(b, TL_GT, x, f32(b, 0)), tl_binary(b, TL_DIV, f32(b, 1), x), f32(b, 0));
  tl_store(b, c->out, 1, &i, mul(b, tl_load(b, c->out, 1, &i), x));
  tl_end(b, loop);
  offsets[0] = row[0];
  offsets[1] = row[1];
  offsets[2] = row[2];
  offsets[3] = none;
  extents[0] = extents[1] = extents[2] = 1;
  extents[3] = f->spec->dim;
  tl_copy(b, tl_whole(b, c->out), tl_region_of(b, f->O, 4, offsets, extents));
}

static void build_combine(const struct attention_frame* f, const struct between* from) {
  static const char* const names[3] = {"bb", "bh", "row"};
  tl_builder* b = f->b;
  struct combination c;
  tl_expr grid[3], row[3], offsets[4], step;
  tl_scope kernel, steps;
  int64_t extents[4];
  grid[0] = f->batch;
  grid[1] = f->heads;
  grid[2] = f->rows;
  kernel = tl_begin_kernel(b, "combine", 3, grid, f->spec->threads ? 64 : 0, names, row);
  c = allocate(f);
  tl_fill(b, tl_whole(b, c.out), f32(b, 0));
  tl_fill(b, tl_whole(b, c.total), f32(b, 0));
  tl_fill(b, tl_whole(b, c.top), f32(b, -1e30));
  steps = tl_begin_loop(b, TL_LOOP_SERIAL, tl_index(b, 0), ceil_div(b, f->parts, TOGETHER), 0, "step", &step);
  offsets[0] = add(b, mul(b, row[0], f->heads), row[1]);
  offsets[1] = mul(b, step, tl_index(b, TOGETHER));
  offsets[2] = row[2];
  offsets[3] = tl_index(b, 0);
  extents[0] = extents[2] = 1;
  extents[1] = TOGETHER;
  extents[3] = f->spec->dim;
  tl_copy(b, tl_region_of(b, from->sums, 3, offsets, extents), tl_whole(b, c.share));
  tl_copy(b, tl_region_of(b, from->partial, 4, offsets, extents), tl_whole(b, c.found));
  weigh(f, &c, offsets[1]);
  add_up(f, &c);
  tl_end(b, steps);
  finish(f, &c, row);
  tl_end(b, kernel);
}

void attention_split_build(struct attention_frame* f) {
  const struct between kernels = declare_workspaces(f);
  build_parts(f, &kernels);
  build_combine(f, &kernels);
}
