#include "row_programs.h"

/* A block's rows as [rows, heads, dim / 2]: the low halves of its heads and the high ones. */
struct halves {
  const struct row_spec* spec;
  int64_t tile[3], angles[2];
  tl_buffer low, high, turned, c, s;
};

static struct halves allocate(tl_builder* b, const struct row_spec* spec) {
  struct halves h;
  h.spec = spec;
  h.tile[0] = h.angles[0] = spec->tile_rows;
  h.tile[1] = spec->heads;
  h.tile[2] = h.angles[1] = spec->cols / spec->heads / 2;
  h.low = tl_alloc(b, "low", TL_SCOPE_FRAGMENT, spec->compute, 3, h.tile);
  h.high = tl_alloc(b, "high", TL_SCOPE_FRAGMENT, spec->compute, 3, h.tile);
  h.turned = tl_alloc(b, "turned", TL_SCOPE_FRAGMENT, spec->compute, 3, h.tile);
  h.c = tl_alloc(b, "c", TL_SCOPE_FRAGMENT, spec->compute, 2, h.angles);
  h.s = tl_alloc(b, "s", TL_SCOPE_FRAGMENT, spec->compute, 2, h.angles);
  return h;
}

/* into = x * c + y * s, or less y * s. */
static void turn(tl_builder* b, const struct halves* h, tl_buffer x, tl_buffer y, tl_binary_op sign,
                 tl_buffer into) {
  static const char* const names[3] = {"i", "h", "j"};
  tl_expr at[3], angle[2], along, across;
  const tl_scope loop = tl_begin_parallel(b, 3, h->tile, names, at);
  angle[0] = at[0];
  angle[1] = at[2];
  along = tl_binary(b, TL_MUL, tl_load(b, x, 3, at), tl_load(b, h->c, 2, angle));
  across = tl_binary(b, TL_MUL, tl_load(b, y, 3, at), tl_load(b, h->s, 2, angle));
  tl_store(b, into, 3, at, tl_binary(b, sign, along, across));
  tl_end(b, loop);
}

void rotary_build(tl_builder* b, const struct row_spec* spec) {
  static const char* const names[1] = {"by"};
  const int64_t half = spec->cols / spec->heads / 2;
  const tl_expr m = tl_dim(b, "m"), rows = tl_index(b, spec->tile_rows);
  tl_expr shape[3], angles[2], blocks, block, origin[3], middle[3];
  tl_buffer X, cosines, sines, Y;
  struct halves h;
  tl_scope kernel;
  shape[0] = angles[0] = m;
  shape[1] = tl_index(b, spec->heads);
  shape[2] = tl_index(b, 2 * half);
  angles[1] = tl_index(b, half);
  X = tl_tensor(b, "X", spec->dtype, 3, shape, NULL, TL_TENSOR_READ_ONLY);
  cosines = tl_tensor(b, "cosines", TL_F32, 2, angles, NULL, TL_TENSOR_READ_ONLY);
  sines = tl_tensor(b, "sines", TL_F32, 2, angles, NULL, TL_TENSOR_READ_ONLY);
  Y = tl_tensor(b, "Y", spec->dtype, 3, shape, NULL, 0);
  blocks = tl_binary(b, TL_ADD, m, tl_index(b, spec->tile_rows - 1));
  blocks = tl_binary(b, TL_FLOORDIV, blocks, rows);
  kernel = tl_begin_kernel(b, "rotary", 1, &blocks, spec->threads, names, &block);
  origin[0] = middle[0] = tl_binary(b, TL_MUL, block, rows);
  origin[1] = middle[1] = origin[2] = tl_index(b, 0);
  middle[2] = tl_index(b, half);
  h = allocate(b, spec);
  tl_copy(b, tl_region_of(b, X, 3, origin, h.tile), tl_whole(b, h.low));
  tl_copy(b, tl_region_of(b, X, 3, middle, h.tile), tl_whole(b, h.high));
  tl_copy(b, tl_region_of(b, cosines, 2, origin, h.angles), tl_whole(b, h.c));
  tl_copy(b, tl_region_of(b, sines, 2, origin, h.angles), tl_whole(b, h.s));
  turn(b, &h, h.low, h.high, TL_SUB, h.turned);
  tl_copy(b, tl_whole(b, h.turned), tl_region_of(b, Y, 3, origin, h.tile));
  turn(b, &h, h.high, h.low, TL_ADD, h.high);
  tl_copy(b, tl_whole(b, h.high), tl_region_of(b, Y, 3, middle, h.tile));
  tl_end(b, kernel);
}
