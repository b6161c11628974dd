#include "attention_program.h"

#include <math.h>
#include <string.h>

#include "element.h"

struct attention_spec attention_spec_make(tl_dtype dtype, int64_t dim, int64_t group, int causal,
                                          const char* target) {
  struct attention_spec spec;
  const int gpu = strstr(target, "sm_") != NULL, warpgroups = strstr(target, "sm_90a") != NULL && dtype != TL_F32;
  spec.dtype = dtype;
  spec.dim = dim;
  spec.group = group;
  spec.causal = causal;
  spec.split = 0;
  spec.tile_queries = warpgroups ? 128 : 64;
  spec.tile_keys = warpgroups ? (dim <= 128 ? 128 : 64) : gpu && dim * (int64_t)element_bytes(dtype) > 256 ? 32 : 64;
  spec.threads = warpgroups ? 256 : gpu ? 128 : 0;
  return spec;
}

/* What the parts of the program share. */
struct frame {
  tl_builder* b;
  const struct attention_spec* spec;
  tl_expr queries, keys, scale, batch, head, first; /* of the block: its batch, head and first query */
  tl_expr heads, rows, parts, slice; /* rows of queries of a head of K; the block's part of the keys */
  tl_buffer Qs, Ks, Vs, scores, weights, out, top, before, part, total, partial, sums;
};

enum { TOGETHER = 16 }; /* parts that are combined at once */

static tl_expr add(tl_builder* b, tl_expr x, tl_expr y) { return tl_binary(b, TL_ADD, x, y); }
static tl_expr sub(tl_builder* b, tl_expr x, tl_expr y) { return tl_binary(b, TL_SUB, x, y); }
static tl_expr mul(tl_builder* b, tl_expr x, tl_expr y) { return tl_binary(b, TL_MUL, x, y); }
static tl_expr ceil_div(tl_builder* b, tl_expr x, int64_t by) {
  return tl_binary(b, TL_FLOORDIV, add(b, x, tl_index(b, by - 1)), tl_index(b, by));
}

static tl_buffer tensor(tl_builder* b, const struct attention_spec* spec, const char* name, tl_expr batch, tl_expr heads,
                        tl_expr length, uint32_t flags) {
  tl_expr shape[4];
  shape[0] = batch;
  shape[1] = heads;
  shape[2] = length;
  shape[3] = tl_index(b, spec->dim);
  return tl_tensor(b, name, spec->dtype, 4, shape, NULL, flags);
}

/* `rows` rows of a head from `first` on. */
static tl_region box(const struct frame* f, tl_buffer tensor, tl_expr head, tl_expr first, int64_t rows) {
  tl_expr offsets[4];
  int64_t extents[4];
  offsets[0] = f->batch;
  offsets[1] = head;
  offsets[2] = first;
  offsets[3] = tl_index(f->b, 0);
  extents[0] = extents[1] = 1;
  extents[2] = rows;
  extents[3] = f->spec->dim;
  return tl_region_of(f->b, tensor, 4, offsets, extents);
}

static tl_scope each_row(const struct frame* f, tl_expr* i) {
  return tl_begin_parallel(f->b, 1, &f->spec->tile_queries, NULL, i);
}
static tl_scope each(const struct frame* f, int64_t columns, tl_expr ij[2]) {
  int64_t extents[2];
  extents[0] = f->spec->tile_queries;
  extents[1] = columns;
  return tl_begin_parallel(f->b, 2, extents, NULL, ij);
}

/* Keys that a query may not see score -inf. */
static void mask(const struct frame* f, tl_expr first_key) {
  tl_builder* b = f->b;
  tl_expr ij[2], key, seen;
  const tl_scope loop = each(f, f->spec->tile_keys, ij);
  key = add(b, first_key, ij[1]);
  seen = tl_binary(b, TL_LT, key, f->keys);
  if (f->spec->causal) {
    tl_expr query = add(b, f->first, ij[0]), last;
    if (f->spec->split) query = tl_binary(b, TL_FLOORMOD, query, tl_binary(b, TL_MAX, f->queries, tl_index(b, 1)));
    last = add(b, query, sub(b, f->keys, f->queries));
    seen = tl_binary(b, TL_AND, seen, tl_binary(b, TL_LE, key, last));
  }
  tl_store(b, f->scores, 2, ij, tl_select(b, seen, tl_load(b, f->scores, 2, ij), tl_const_f64(b, TL_F32, -INFINITY)));
  tl_end(b, loop);
}

/* Scores become weights beside the largest of the row so far; what was summed before shrinks accordingly. */
static void weigh(const struct frame* f) {
  tl_builder* b = f->b;
  tl_expr ij[2], i, x;
  tl_scope loop;
  tl_copy(b, tl_whole(b, f->top), tl_whole(b, f->before));
  tl_reduce(b, tl_whole(b, f->scores), tl_whole(b, f->top), TL_REDUCE_MAX, 1, TL_REDUCE_ACCUMULATE);
  loop = each(f, f->spec->tile_keys, ij);
  x = sub(b, mul(b, tl_load(b, f->scores, 2, ij), f->scale), mul(b, tl_load(b, f->top, 1, ij), f->scale));
  tl_store(b, f->scores, 2, ij, tl_unary(b, TL_EXP2, x));
  tl_end(b, loop);
  loop = each_row(f, &i);
  x = mul(b, sub(b, tl_load(b, f->before, 1, &i), tl_load(b, f->top, 1, &i)), f->scale);
  tl_store(b, f->before, 1, &i, tl_unary(b, TL_EXP2, x));
  tl_end(b, loop);
  tl_reduce(b, tl_whole(b, f->scores), tl_whole(b, f->part), TL_REDUCE_SUM, 1, 0);
  loop = each_row(f, &i);
  x = mul(b, tl_load(b, f->total, 1, &i), tl_load(b, f->before, 1, &i));
  tl_store(b, f->total, 1, &i, add(b, x, tl_load(b, f->part, 1, &i)));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, f->scores), tl_whole(b, f->weights));
  loop = each(f, f->spec->dim, ij);
  tl_store(b, f->out, 2, ij, mul(b, tl_load(b, f->out, 2, ij), tl_load(b, f->before, 1, ij)));
  tl_end(b, loop);
}

/* out / total, and 0 where no key was seen. */
static void divide(const struct frame* f) {
  tl_builder* b = f->b;
  const tl_expr zero = tl_const_f64(b, TL_F32, 0), one = tl_const_f64(b, TL_F32, 1);
  tl_expr ij[2], i, total;
  tl_scope loop = each_row(f, &i);
  total = tl_load(b, f->total, 1, &i);
  total = tl_select(b, tl_binary(b, TL_GT, total, zero), tl_binary(b, TL_DIV, one, total), zero);
  tl_store(b, f->total, 1, &i, total);
  tl_end(b, loop);
  loop = each(f, f->spec->dim, ij);
  tl_store(b, f->out, 2, ij, mul(b, tl_load(b, f->out, 2, ij), tl_load(b, f->total, 1, ij)));
  tl_end(b, loop);
}

/* What a part leaves for the second kernel: its result, and log2 of the sum of its weights, -inf of no key. */
static void leave(const struct frame* f) {
  tl_builder* b = f->b;
  tl_expr i, at[3], offsets[4];
  tl_scope loop, branch;
  int64_t extents[4];
  loop = each_row(f, &i);
  at[0] = offsets[0] = add(b, mul(b, f->batch, f->heads), f->head);
  at[1] = offsets[1] = f->slice;
  at[2] = add(b, f->first, i);
  branch = tl_begin_if(b, tl_binary(b, TL_LT, at[2], f->rows));
  tl_store(b, f->sums, 3, at,
           add(b, mul(b, tl_load(b, f->top, 1, &i), f->scale), tl_unary(b, TL_LOG2, tl_load(b, f->total, 1, &i))));
  tl_end(b, branch);
  tl_end(b, loop);
  divide(f);
  offsets[2] = f->first;
  offsets[3] = tl_index(b, 0);
  extents[0] = extents[1] = 1;
  extents[2] = f->spec->tile_queries;
  extents[3] = f->spec->dim;
  tl_copy(b, tl_whole(b, f->out), tl_region_of(b, f->partial, 4, offsets, extents));
}

/* One row of O from its parts: a loop over parts as the first kernel's is over keys. */
static void combine(struct frame* f, tl_expr batch, tl_expr heads, tl_buffer O, int gpu) {
  static const char* const names[3] = {"bb", "bh", "row"};
  static const int64_t one = 1, many = TOGETHER;
  const tl_expr zero = tl_const_f64(f->b, TL_F32, 0), unit = tl_const_f64(f->b, TL_F32, 1);
  const int64_t dim = f->spec->dim;
  int64_t found_shape[2], extents[4];
  tl_builder* b = f->b;
  tl_expr grid[3], block[3], offsets[4], step, first, i, ij[2], x, none = tl_index(b, 0);
  tl_buffer share, found, top, before, piece, total, out, more;
  tl_scope kernel, steps, loop;
  grid[0] = batch;
  grid[1] = heads;
  grid[2] = f->rows;
  found_shape[0] = TOGETHER;
  found_shape[1] = dim;
  kernel = tl_begin_kernel(b, "combine", 3, grid, gpu ? 64 : 0, names, block);
  share = tl_alloc(b, "share", TL_SCOPE_FRAGMENT, TL_F32, 1, &many);
  found = tl_alloc(b, "found", TL_SCOPE_FRAGMENT, TL_F32, 2, found_shape);
  top = tl_alloc(b, "top", TL_SCOPE_FRAGMENT, TL_F32, 1, &one);
  before = tl_alloc(b, "before", TL_SCOPE_FRAGMENT, TL_F32, 1, &one);
  piece = tl_alloc(b, "piece", TL_SCOPE_FRAGMENT, TL_F32, 1, &one);
  total = tl_alloc(b, "total", TL_SCOPE_FRAGMENT, TL_F32, 1, &one);
  out = tl_alloc(b, "out", TL_SCOPE_FRAGMENT, TL_F32, 1, &dim);
  more = tl_alloc(b, "more", TL_SCOPE_FRAGMENT, TL_F32, 1, &dim);
  tl_fill(b, tl_whole(b, out), zero);
  tl_fill(b, tl_whole(b, total), zero);
  tl_fill(b, tl_whole(b, top), tl_const_f64(b, TL_F32, -1e30));
  steps = tl_begin_loop(b, TL_LOOP_SERIAL, none, ceil_div(b, f->parts, TOGETHER), 0, "step", &step);
  first = mul(b, step, tl_index(b, TOGETHER));
  offsets[0] = add(b, mul(b, block[0], heads), block[1]);
  offsets[1] = first;
  offsets[2] = block[2];
  offsets[3] = none;
  extents[0] = extents[2] = 1;
  extents[1] = TOGETHER;
  extents[3] = dim;
  tl_copy(b, tl_region_of(b, f->sums, 3, offsets, extents), tl_whole(b, share));
  tl_copy(b, tl_region_of(b, f->partial, 4, offsets, extents), tl_whole(b, found));
  loop = tl_begin_parallel(b, 1, &many, NULL, &i);
  x = tl_binary(b, TL_LT, add(b, first, i), f->parts);
  tl_store(b, share, 1, &i, tl_select(b, x, tl_load(b, share, 1, &i), tl_const_f64(b, TL_F32, -INFINITY)));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, top), tl_whole(b, before));
  tl_reduce(b, tl_whole(b, share), tl_whole(b, top), TL_REDUCE_MAX, 0, TL_REDUCE_ACCUMULATE);
  loop = tl_begin_parallel(b, 1, &many, NULL, &i);
  tl_store(b, share, 1, &i, tl_unary(b, TL_EXP2, sub(b, tl_load(b, share, 1, &i), tl_load(b, top, 1, &none))));
  tl_end(b, loop);
  loop = tl_begin_parallel(b, 1, &one, NULL, &i);
  tl_store(b, before, 1, &i, tl_unary(b, TL_EXP2, sub(b, tl_load(b, before, 1, &i), tl_load(b, top, 1, &i))));
  tl_end(b, loop);
  tl_reduce(b, tl_whole(b, share), tl_whole(b, piece), TL_REDUCE_SUM, 0, 0);
  loop = tl_begin_parallel(b, 1, &one, NULL, &i);
  x = mul(b, tl_load(b, total, 1, &i), tl_load(b, before, 1, &i));
  tl_store(b, total, 1, &i, add(b, x, tl_load(b, piece, 1, &i)));
  tl_end(b, loop);
  loop = tl_begin_parallel(b, 2, found_shape, NULL, ij);
  tl_store(b, found, 2, ij, mul(b, tl_load(b, found, 2, ij), tl_load(b, share, 1, ij)));
  tl_end(b, loop);
  tl_reduce(b, tl_whole(b, found), tl_whole(b, more), TL_REDUCE_SUM, 0, 0);
  loop = tl_begin_parallel(b, 1, &dim, NULL, &i);
  x = mul(b, tl_load(b, out, 1, &i), tl_load(b, before, 1, &none));
  tl_store(b, out, 1, &i, add(b, x, tl_load(b, more, 1, &i)));
  tl_end(b, loop);
  tl_end(b, steps);
  loop = tl_begin_parallel(b, 1, &dim, NULL, &i);
  x = tl_load(b, total, 1, &none);
  x = tl_select(b, tl_binary(b, TL_GT, x, zero), tl_binary(b, TL_DIV, unit, x), zero);
  tl_store(b, out, 1, &i, mul(b, tl_load(b, out, 1, &i), x));
  tl_end(b, loop);
  offsets[0] = block[0];
  offsets[1] = block[1];
  extents[1] = 1;
  tl_copy(b, tl_whole(b, out), tl_region_of(b, O, 4, offsets, extents));
  tl_end(b, kernel);
}

static void allocate(struct frame* f) {
  tl_builder* b = f->b;
  const struct attention_spec* spec = f->spec;
  int64_t q[2], k[2], s[2];
  q[0] = s[0] = spec->tile_queries;
  k[0] = s[1] = spec->tile_keys;
  q[1] = k[1] = spec->dim;
  f->Qs = tl_alloc(b, "Qs", TL_SCOPE_SHARED, spec->dtype, 2, q);
  f->Ks = tl_alloc(b, "Ks", TL_SCOPE_SHARED, spec->dtype, 2, k);
  f->Vs = tl_alloc(b, "Vs", TL_SCOPE_SHARED, spec->dtype, 2, k);
  f->scores = tl_alloc(b, "scores", TL_SCOPE_FRAGMENT, TL_F32, 2, s);
  f->weights = tl_alloc(b, "weights", TL_SCOPE_FRAGMENT, spec->dtype, 2, s);
  f->out = tl_alloc(b, "out", TL_SCOPE_FRAGMENT, TL_F32, 2, q);
  f->top = tl_alloc(b, "top", TL_SCOPE_FRAGMENT, TL_F32, 1, q);
  f->before = tl_alloc(b, "before", TL_SCOPE_FRAGMENT, TL_F32, 1, q);
  f->part = tl_alloc(b, "part", TL_SCOPE_FRAGMENT, TL_F32, 1, q);
  f->total = tl_alloc(b, "total", TL_SCOPE_FRAGMENT, TL_F32, 1, q);
}

/* The tensors between the kernels are no parameters: each launch has its own. */
static void declare_workspaces(struct frame* f, tl_expr batch) {
  tl_expr shape[4];
  shape[0] = mul(f->b, batch, f->heads);
  shape[1] = f->parts;
  shape[2] = f->rows;
  shape[3] = tl_index(f->b, f->spec->dim);
  f->partial = tl_tensor(f->b, "partial", TL_F32, 4, shape, NULL, TL_TENSOR_WORKSPACE);
  f->sums = tl_tensor(f->b, "sums", TL_F32, 3, shape, NULL, TL_TENSOR_WORKSPACE);
}

void attention_build(tl_builder* b, const struct attention_spec* spec) {
  static const char* const names[3] = {"bb", "bh", "bq"};
  static const char* const split_names[3] = {"pair", "slice", "bq"};
  struct frame f;
  tl_expr batch, q_heads, kv_head, grid[3], block[3], begin, end, kb, first_key;
  tl_buffer Q, K, V, O;
  tl_scope kernel, loop;
  memset(&f, 0, sizeof f);
  f.b = b;
  f.spec = spec;
  batch = tl_dim(b, "batch");
  f.heads = tl_dim(b, "heads");
  f.queries = tl_dim(b, "queries");
  f.keys = tl_dim(b, "keys");
  if (spec->split) {
    f.parts = tl_dim(b, "parts");
    tl_dim_fact(b, f.parts, 1, INT64_MAX, 1);
  }
  f.scale = tl_scalar(b, "scale", TL_F32);
  q_heads = spec->split ? f.heads : mul(b, f.heads, tl_index(b, spec->group));
  f.rows = spec->split ? mul(b, f.queries, tl_index(b, spec->group)) : f.queries;
  Q = tensor(b, spec, "Q", batch, q_heads, f.rows, TL_TENSOR_READ_ONLY);
  K = tensor(b, spec, "K", batch, f.heads, f.keys, TL_TENSOR_READ_ONLY);
  V = tensor(b, spec, "V", batch, f.heads, f.keys, TL_TENSOR_READ_ONLY);
  O = tensor(b, spec, "O", batch, q_heads, f.rows, 0);
  if (spec->split) declare_workspaces(&f, batch);

  grid[0] = spec->split ? mul(b, batch, f.heads) : batch;
  grid[1] = spec->split ? f.parts : q_heads;
  grid[2] = ceil_div(b, f.rows, spec->tile_queries);
  kernel = tl_begin_kernel(b, "attention", 3, grid, (int)spec->threads, spec->split ? split_names : names, block);
  f.batch = spec->split ? tl_binary(b, TL_FLOORDIV, block[0], f.heads) : block[0];
  f.head = spec->split ? tl_binary(b, TL_FLOORMOD, block[0], f.heads) : block[1];
  f.slice = block[1];
  f.first = mul(b, block[2], tl_index(b, spec->tile_queries));
  kv_head = spec->split ? f.head : tl_binary(b, TL_FLOORDIV, f.head, tl_index(b, spec->group));
  allocate(&f);

  tl_copy(b, box(&f, Q, f.head, f.first, spec->tile_queries), tl_whole(b, f.Qs));
  tl_fill(b, tl_whole(b, f.out), tl_const_f64(b, TL_F32, 0));
  tl_fill(b, tl_whole(b, f.total), tl_const_f64(b, TL_F32, 0));
  tl_fill(b, tl_whole(b, f.top), tl_const_f64(b, TL_F32, -1e30)); /* below every score, and finite */
  begin = tl_index(b, 0);
  end = ceil_div(b, f.keys, spec->tile_keys);
  if (spec->split) {
    begin = tl_binary(b, TL_FLOORDIV, mul(b, f.slice, end), f.parts);
    end = tl_binary(b, TL_FLOORDIV, mul(b, add(b, f.slice, tl_index(b, 1)), end), f.parts);
  } else if (spec->causal) { /* behind the last query of the tile nothing is seen */
    const tl_expr last = add(b, add(b, f.first, tl_index(b, spec->tile_queries)), sub(b, f.keys, f.queries));
    end = tl_binary(b, TL_MIN, end, ceil_div(b, last, spec->tile_keys));
  }
  loop = tl_begin_loop(b, TL_LOOP_PIPELINED, begin, end, spec->threads ? 2 : 0, "kb", &kb);
  first_key = mul(b, kb, tl_index(b, spec->tile_keys));
  tl_copy(b, box(&f, K, kv_head, first_key, spec->tile_keys), tl_whole(b, f.Ks));
  tl_gemm(b, tl_whole(b, f.Qs), tl_whole(b, f.Ks), tl_whole(b, f.scores), TL_GEMM_TRANSPOSE_B | TL_GEMM_CLEAR,
          TL_POLICY_DEFAULT);
  mask(&f, first_key);
  weigh(&f);
  tl_copy(b, box(&f, V, kv_head, first_key, spec->tile_keys), tl_whole(b, f.Vs));
  tl_gemm(b, tl_whole(b, f.weights), tl_whole(b, f.Vs), tl_whole(b, f.out), 0, TL_POLICY_DEFAULT);
  tl_end(b, loop);
  if (spec->split) {
    leave(&f);
  } else {
    divide(&f);
    tl_copy(b, tl_whole(b, f.out), box(&f, O, f.head, f.first, spec->tile_queries));
  }
  tl_end(b, kernel);
  if (spec->split) combine(&f, batch, f.heads, O, spec->threads != 0);
}
