#include "attention_program.h"

#include <math.h>
#include <string.h>

#include "attention_frame.h"
#include "element.h"

struct attention_spec attention_spec_make(tl_dtype dtype, int64_t dim, int64_t group, int causal,
                                          const char* target) {
  struct attention_spec spec;
  memset(&spec, 0, sizeof spec);
  spec.dtype = dtype;
  spec.dim = dim;
  spec.group = group;
  spec.left = ATTENTION_ALL;
  spec.right = causal ? 0 : ATTENTION_ALL;
  attention_spec_fit(&spec, target);
  return spec;
}

void attention_spec_fit(struct attention_spec* spec, const char* target) {
  const int gpu = strstr(target, "sm_") != NULL;
  const int warpgroups = strstr(target, "sm_90a") != NULL && spec->dtype != TL_F32;
  const int64_t row_bytes = spec->dim * (int64_t)element_bytes(spec->dtype);
  spec->tile_queries = warpgroups && !spec->split ? 128 : 64; /* split: few queries, one warpgroup's rows */
  spec->tile_keys = warpgroups ? (spec->dim <= 128 ? 128 : 64) : gpu && row_bytes > 256 ? 32 : 64;
  spec->threads = warpgroups && !spec->split ? 256 : gpu ? 128 : 0;
}

/* ---- parameters */

/* [batch, heads, length, dim], packed [length, heads, dim]. With heads last the strides are those of memory
 * [batch, length, heads, dim], and nothing else in the program changes. */
static tl_buffer tensor(const struct attention_frame* f, const char* name, tl_expr heads, tl_expr length,
                        uint32_t flags) {
  tl_builder* b = f->b;
  const struct attention_spec* spec = f->spec;
  const tl_expr dim = tl_index(b, spec->dim);
  tl_expr shape[4], strides[4];
  shape[0] = f->batch;
  shape[1] = heads;
  shape[2] = length;
  shape[3] = dim;
  if (spec->packed) {
    shape[0] = length;
    shape[2] = dim;
    return tl_tensor(b, name, spec->dtype, 3, shape, NULL, flags);
  }
  strides[0] = mul(b, length, mul(b, heads, dim));
  strides[1] = dim;
  strides[2] = mul(b, heads, dim);
  strides[3] = tl_index(b, 1);
  return tl_tensor(b, name, spec->dtype, 4, shape, spec->heads_last ? strides : NULL, flags);
}

static void declare_dims(struct attention_frame* f) {
  tl_builder* b = f->b;
  f->batch = tl_dim(b, "batch");
  f->heads = tl_dim(b, "heads");
  if (f->spec->packed) {
    f->all_queries = tl_dim(b, "all_queries");
    f->all_keys = tl_dim(b, "all_keys");
  }
  f->queries = tl_dim(b, "queries");
  if (!f->spec->packed) f->keys = tl_dim(b, "keys");
  if (f->spec->split) {
    f->parts = tl_dim(b, "parts");
    tl_dim_fact(b, f->parts, 1, INT64_MAX, 1);
  }
  f->scale = tl_scalar(b, "scale", TL_F32);
  if (f->spec->cap) f->cap = tl_scalar(b, "cap", TL_F32);
}

static void declare_tensors(struct attention_frame* f) {
  tl_builder* b = f->b;
  const struct attention_spec* spec = f->spec;
  const tl_expr group = tl_index(b, spec->group);
  tl_expr keys, places, shape[3];
  f->q_heads = spec->split ? f->heads : mul(b, f->heads, group);
  f->rows = spec->split ? mul(b, f->queries, group) : spec->packed ? f->all_queries : f->queries;
  keys = spec->packed ? f->all_keys : f->keys;
  f->Q = tensor(f, "Q", f->q_heads, f->rows, TL_TENSOR_READ_ONLY);
  f->K = tensor(f, "K", f->heads, keys, TL_TENSOR_READ_ONLY);
  f->V = tensor(f, "V", f->heads, keys, TL_TENSOR_READ_ONLY);
  if (spec->packed) { /* read only, so that whoever copies may read them for itself */
    places = add(b, f->batch, tl_index(b, 1));
    f->query_ends = tl_tensor(b, "query_ends", TL_I32, 1, &places, NULL, TL_TENSOR_READ_ONLY);
    f->key_ends = tl_tensor(b, "key_ends", TL_I32, 1, &places, NULL, TL_TENSOR_READ_ONLY);
  }
  f->O = tensor(f, "O", f->q_heads, f->rows, 0);
  if (!spec->row_sums) return;
  shape[0] = f->batch;
  shape[1] = f->q_heads;
  shape[2] = f->rows;
  f->L = tl_tensor(b, "L", TL_F32, spec->packed ? 2 : 3, spec->packed ? shape + 1 : shape, NULL, 0);
}

/* ---- a block's work over keys */

void attention_allocate(struct attention_frame* f) {
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

/* `rows` rows of a head of the block's sequence. `first`: counted from where the tensor begins. */
static tl_region box(const struct attention_frame* f, tl_buffer tensor, tl_expr head, tl_expr first,
                     int64_t rows) {
  tl_expr offsets[4];
  int64_t extents[4];
  const int packed = f->spec->packed;
  offsets[0] = packed ? first : f->sequence;
  offsets[1] = head;
  offsets[2] = packed ? tl_index(f->b, 0) : first;
  offsets[3] = tl_index(f->b, 0);
  extents[0] = packed ? rows : 1;
  extents[1] = 1;
  extents[2] = packed ? f->spec->dim : rows;
  extents[3] = f->spec->dim;
  return tl_region_of(f->b, tensor, packed ? 3 : 4, offsets, extents);
}

/* Scores are capped, and keys that a query may not see score -inf. */
static void mask(const struct attention_frame* f, tl_expr first_key) {
  tl_builder* b = f->b;
  const struct attention_spec* spec = f->spec;
  tl_expr ij[2], key, row, place, seen, score;
  const tl_scope loop = each(f, spec->tile_keys, ij);
  key = add(b, first_key, ij[1]);
  row = add(b, f->first, ij[0]);
  if (spec->split) row = tl_binary(b, TL_FLOORMOD, row, most(b, f->queries, tl_index(b, 1)));
  place = add(b, row, sub(b, f->keys, f->queries));
  seen = tl_binary(b, TL_LT, key, f->keys);
  if (spec->right != ATTENTION_ALL)
    seen = tl_binary(b, TL_AND, seen, tl_binary(b, TL_LE, key, add(b, place, tl_index(b, spec->right))));
  if (spec->left != ATTENTION_ALL)
    seen = tl_binary(b, TL_AND, seen, tl_binary(b, TL_GE, key, sub(b, place, tl_index(b, spec->left))));
  score = tl_load(b, f->scores, 2, ij);
  if (spec->cap) {
    score = mul(b, score, tl_binary(b, TL_DIV, f->scale, f->cap));
    score = mul(b, tl_unary(b, TL_TANH, score), f->cap);
  }
  tl_store(b, f->scores, 2, ij, tl_select(b, seen, score, f32(b, -INFINITY)));
  tl_end(b, loop);
}

tl_expr attention_exponent(const struct attention_frame* f, tl_expr score) {
  return f->spec->cap ? score : mul(f->b, score, f->scale); /* capped scores are scaled already */
}

/* Scores become weights beside the largest of the row so far; what was summed before shrinks accordingly. */
static void weigh(const struct attention_frame* f) {
  tl_builder* b = f->b;
  tl_expr ij[2], i, x;
  tl_scope loop;
  tl_copy(b, tl_whole(b, f->top), tl_whole(b, f->before));
  tl_reduce(b, tl_whole(b, f->scores), tl_whole(b, f->top), TL_REDUCE_MAX, 1, TL_REDUCE_ACCUMULATE);
  loop = each(f, f->spec->tile_keys, ij);
  x = attention_exponent(f, tl_load(b, f->scores, 2, ij));
  x = sub(b, x, attention_exponent(f, tl_load(b, f->top, 1, ij)));
  tl_store(b, f->scores, 2, ij, tl_unary(b, TL_EXP2, x));
  tl_end(b, loop);
  loop = each_row(f, &i);
  x = attention_exponent(f, sub(b, tl_load(b, f->before, 1, &i), tl_load(b, f->top, 1, &i)));
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

void attention_tile(const struct attention_frame* f, tl_expr begin, tl_expr end) {
  tl_builder* b = f->b;
  const struct attention_spec* spec = f->spec;
  tl_expr kb, first_key;
  tl_scope loop;
  tl_copy(b, box(f, f->Q, f->head, add(b, f->first_query, f->first), spec->tile_queries), tl_whole(b, f->Qs));
  tl_fill(b, tl_whole(b, f->out), f32(b, 0));
  tl_fill(b, tl_whole(b, f->total), f32(b, 0));
  tl_fill(b, tl_whole(b, f->top), f32(b, -1e30)); /* below every score, and finite */
  loop = tl_begin_loop(b, TL_LOOP_PIPELINED, begin, end, spec->threads ? 2 : 0, "kb", &kb);
  first_key = mul(b, kb, tl_index(b, spec->tile_keys));
  tl_copy(b, box(f, f->K, f->kv_head, add(b, f->first_key, first_key), spec->tile_keys), tl_whole(b, f->Ks));
  tl_gemm(b, tl_whole(b, f->Qs), tl_whole(b, f->Ks), tl_whole(b, f->scores),
          TL_GEMM_TRANSPOSE_B | TL_GEMM_CLEAR, TL_POLICY_DEFAULT);
  mask(f, first_key);
  weigh(f);
  tl_copy(b, box(f, f->V, f->kv_head, add(b, f->first_key, first_key), spec->tile_keys), tl_whole(b, f->Vs));
  tl_gemm(b, tl_whole(b, f->weights), tl_whole(b, f->Vs), tl_whole(b, f->out), 0, TL_POLICY_DEFAULT);
  tl_end(b, loop);
}

void attention_divide(const struct attention_frame* f) {
  tl_builder* b = f->b;
  tl_expr ij[2], i, total;
  tl_scope loop = each_row(f, &i);
  total = tl_load(b, f->total, 1, &i);
  total =
      tl_select(b, tl_binary(b, TL_GT, total, f32(b, 0)), tl_binary(b, TL_DIV, f32(b, 1), total), f32(b, 0));
  tl_store(b, f->total, 1, &i, total);
  tl_end(b, loop);
  loop = each(f, f->spec->dim, ij);
  tl_store(b, f->out, 2, ij, mul(b, tl_load(b, f->out, 2, ij), tl_load(b, f->total, 1, ij)));
  tl_end(b, loop);
}

tl_expr attention_row_sum(const struct attention_frame* f, tl_expr exponent, tl_expr total) {
  return mul(f->b, add(f->b, exponent, tl_unary(f->b, TL_LOG2, total)), f32(f->b, 0.6931471805599453));
}

/* ---- all keys by one block */

/* Where a sequence of packed ones begins, and how long it is. Never before the tensor: known, results
 * may leave through the copy engine. */
static tl_expr sequence_place(const struct attention_frame* f, tl_buffer ends, tl_expr* length) {
  tl_builder* b = f->b;
  const tl_expr next = add(b, f->sequence, tl_index(b, 1));
  const tl_expr begin = most(b, tl_cast(b, TL_I64, tl_load(b, ends, 1, &f->sequence)), tl_index(b, 0));
  *length = sub(b, tl_cast(b, TL_I64, tl_load(b, ends, 1, &next)), begin);
  return begin;
}

/* The blocks of keys that some query of the tile sees. */
static void find_blocks(const struct attention_frame* f, tl_expr* begin, tl_expr* end) {
  tl_builder* b = f->b;
  const struct attention_spec* spec = f->spec;
  const tl_expr zero = tl_index(b, 0), place = add(b, f->first, sub(b, f->keys, f->queries));
  *begin = zero;
  *end = f->keys;
  if (spec->right != ATTENTION_ALL)
    *end = least(b, f->keys, add(b, place, tl_index(b, spec->tile_queries + spec->right)));
  if (spec->left != ATTENTION_ALL)
    *begin =
        floor_div(b, most(b, sub(b, place, tl_index(b, spec->left)), zero), tl_index(b, spec->tile_keys));
  if (spec->packed) *end = tl_select(b, tl_binary(b, TL_LT, f->first, f->queries), *end, zero);
  *end = ceil_div(b, *end, spec->tile_keys);
}

static void store_row_sums(const struct attention_frame* f) {
  tl_builder* b = f->b;
  tl_expr i, row, at[3], sum;
  const tl_scope loop = each_row(f, &i);
  tl_scope branch;
  row = add(b, f->first, i);
  at[0] = f->sequence;
  at[1] = f->head;
  at[2] = add(b, f->first_query, row);
  branch = tl_begin_if(b, tl_binary(b, TL_LT, row, f->queries));
  sum = attention_row_sum(f, attention_exponent(f, tl_load(b, f->top, 1, &i)), tl_load(b, f->total, 1, &i));
  tl_store(b, f->L, f->spec->packed ? 2 : 3, f->spec->packed ? at + 1 : at, sum);
  tl_end(b, branch);
  tl_end(b, loop);
}

/* What hangs over the end of a packed sequence is the next one's: whole tiles are copied, others row by row.
 */
static void store_out(const struct attention_frame* f) {
  tl_builder* b = f->b;
  const int64_t rows = f->spec->tile_queries;
  const tl_expr first = add(b, f->first_query, f->first);
  const tl_region whole = box(f, f->O, f->head, first, rows);
  tl_expr ij[2], at[3];
  tl_scope branch, loop, row;
  if (!f->spec->packed) {
    tl_copy(b, tl_whole(b, f->out), whole);
    return;
  }
  branch = tl_begin_if(b, tl_binary(b, TL_LE, add(b, f->first, tl_index(b, rows)), f->queries));
  tl_copy(b, tl_whole(b, f->out), whole);
  tl_begin_else(b, branch);
  loop = each(f, f->spec->dim, ij);
  row = tl_begin_if(b, tl_binary(b, TL_LT, add(b, f->first, ij[0]), f->queries));
  at[0] = add(b, first, ij[0]);
  at[1] = f->head;
  at[2] = ij[1];
  tl_store(b, f->O, 3, at, tl_cast(b, f->spec->dtype, tl_load(b, f->out, 2, ij)));
  tl_end(b, row);
  tl_end(b, loop);
  tl_end(b, branch);
}

static void build_whole(struct attention_frame* f) {
  static const char* const names[3] = {"bb", "bh", "bq"};
  tl_builder* b = f->b;
  const struct attention_spec* spec = f->spec;
  tl_expr grid[3], block[3], begin, end;
  tl_scope kernel;
  grid[0] = f->batch;
  grid[1] = f->q_heads;
  grid[2] = ceil_div(b, f->queries, spec->tile_queries);
  kernel = tl_begin_kernel(b, "attention", 3, grid, spec->threads, names, block);
  f->sequence = block[0];
  f->head = block[1];
  f->kv_head = floor_div(b, f->head, tl_index(b, spec->group));
  f->first = mul(b, block[2], tl_index(b, spec->tile_queries));
  if (spec->packed) {
    f->first_query = sequence_place(f, f->query_ends, &f->queries);
    f->first_key = sequence_place(f, f->key_ends, &f->keys);
  }
  attention_allocate(f);
  find_blocks(f, &begin, &end);
  attention_tile(f, begin, end);
  if (spec->row_sums) store_row_sums(f);
  attention_divide(f);
  store_out(f);
  tl_end(b, kernel);
}

void attention_build(tl_builder* b, const struct attention_spec* spec) {
  struct attention_frame f;
  memset(&f, 0, sizeof f);
  f.b = b;
  f.spec = spec;
  declare_dims(&f);
  declare_tensors(&f);
  f.first_query = f.first_key = tl_index(b, 0);
  if (spec->split)
    attention_split_build(&f);
  else
    build_whole(&f);
}
