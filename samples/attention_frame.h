/* What both forms of the attention program share, all keys by one block and the keys in parts: parameters, a
 * block's place, its tiles, and its work over a range of keys. */
#ifndef SAMPLES_ATTENTION_FRAME_H
#define SAMPLES_ATTENTION_FRAME_H

#include "attention_program.h"

struct attention_frame {
  tl_builder* b;
  const struct attention_spec* spec;
  tl_expr batch, heads, all_queries, all_keys, parts, scale, cap;
  tl_expr queries, keys; /* in a block of packed sequences: those of its sequence */
  tl_expr q_heads, rows; /* of Q as the program sees it: split, the rows of a group are those of one head */
  tl_buffer Q, K, V, O, L, query_ends, key_ends;
  /* Of the block: its sequence of the batch, where that begins in tensors, heads, and the tile's first row in
   * it. */
  tl_expr sequence, first_query, first_key, head, kv_head, first;
  tl_buffer Qs, Ks, Vs, scores, weights, out, top, before, part, total;
};

/* On-chip tiles of the kernel that is open. */
void attention_allocate(struct attention_frame* f);

/* Blocks `begin` to `end` of the keys: leaves the weighted sum of V in `out`, and of each row the largest
 * score in `top` and the sum of the weights beside it in `total`. */
void attention_tile(const struct attention_frame* f, tl_expr begin, tl_expr end);

/* out / total, and 0 where no key was seen. */
void attention_divide(const struct attention_frame* f);

/* A score as the exponent of 2 that is its weight. */
tl_expr attention_exponent(const struct attention_frame* f, tl_expr score);

/* log(sum of the weights) of a row, -inf of no key. `exponent`: the top's. */
tl_expr attention_row_sum(const struct attention_frame* f, tl_expr exponent, tl_expr total);

/* The kernels of the keys in parts; parameters are declared. */
void attention_split_build(struct attention_frame* f);

static inline tl_expr add(tl_builder* b, tl_expr x, tl_expr y) { return tl_binary(b, TL_ADD, x, y); }
static inline tl_expr sub(tl_builder* b, tl_expr x, tl_expr y) { return tl_binary(b, TL_SUB, x, y); }
static inline tl_expr mul(tl_builder* b, tl_expr x, tl_expr y) { return tl_binary(b, TL_MUL, x, y); }
static inline tl_expr floor_div(tl_builder* b, tl_expr x, tl_expr y) {
  return tl_binary(b, TL_FLOORDIV, x, y);
}
static inline tl_expr most(tl_builder* b, tl_expr x, tl_expr y) { return tl_binary(b, TL_MAX, x, y); }
static inline tl_expr least(tl_builder* b, tl_expr x, tl_expr y) { return tl_binary(b, TL_MIN, x, y); }
static inline tl_expr ceil_div(tl_builder* b, tl_expr x, int64_t by) {
  return floor_div(b, add(b, x, tl_index(b, by - 1)), tl_index(b, by));
}
static inline tl_expr f32(tl_builder* b, double value) { return tl_const_f64(b, TL_F32, value); }

/* Each row of the tile; each of its elements, of so many columns. */
static inline tl_scope each_row(const struct attention_frame* f, tl_expr* i) {
  return tl_begin_parallel(f->b, 1, &f->spec->tile_queries, NULL, i);
}
static inline tl_scope each(const struct attention_frame* f, int64_t columns, tl_expr ij[2]) {
  int64_t extents[2];
  extents[0] = f->spec->tile_queries;
  extents[1] = columns;
  return tl_begin_parallel(f->b, 2, extents, NULL, ij);
}

#endif
