#include "gemm_program.h"

#include "element.h"

tl_dtype gemm_sum_dtype(tl_dtype dtype) {
  if (!element_is_float(dtype)) return TL_I32;
  return dtype == TL_F64 ? TL_F64 : TL_F32;
}

static tl_expr ceil_div(tl_builder* b, tl_expr a, int64_t tile) {
  return tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, a, tl_index(b, tile - 1)), tl_index(b, tile));
}

static tl_expr times(tl_builder* b, tl_expr a, int64_t factor) {
  return tl_binary(b, TL_MUL, a, tl_index(b, factor));
}

/* A rows x cols matrix parameter that may be stored transposed. */
static tl_buffer matrix(tl_builder* b, const char* name, tl_dtype dtype, int transposed, tl_expr rows,
                        tl_expr cols, uint32_t flags) {
  tl_expr shape[2];
  shape[0] = transposed ? cols : rows;
  shape[1] = transposed ? rows : cols;
  return tl_tensor(b, name, dtype, 2, shape, NULL, flags);
}

/* Its box at (row, col); `extents` are those of the stored form. */
static tl_region box(tl_builder* b, tl_buffer matrix, int transposed, tl_expr row, tl_expr col,
                     const int64_t* extents) {
  tl_expr offsets[2];
  offsets[0] = transposed ? col : row;
  offsets[1] = transposed ? row : col;
  return tl_region_of(b, matrix, 2, offsets, extents);
}

/* acc = max(acc + bias, 0): the bias row is broadcast down the rows of the accumulator. */
static void add_bias_and_relu(tl_builder* b, tl_buffer acc, const int64_t* tile, tl_region bias,
                              tl_buffer bias_row, tl_expr zero) {
  static const char* const names[2] = {"i", "j"};
  tl_expr ij[2], sum;
  tl_scope loop;
  tl_copy(b, bias, tl_whole(b, bias_row));
  loop = tl_begin_parallel(b, 2, tile, names, ij);
  sum = tl_binary(b, TL_ADD, tl_load(b, acc, 2, ij), tl_load(b, bias_row, 1, &ij[1]));
  tl_store(b, acc, 2, ij, tl_binary(b, TL_MAX, sum, zero));
  tl_end(b, loop);
}

void gemm_build(tl_builder* b, const struct gemm_spec* spec) {
  static const char* const names[2] = {"by", "bx"};
  /* On a CPU: what the second cache of a core holds beside the tiles of the next step. */
  const int64_t wide = element_bytes(spec->dtype) >= 4;
  const int64_t tm = spec->gpu ? 128 : 256, tn = tm, tk = spec->gpu ? 32 : wide ? 128 : 256;
  const int64_t a_tile[2] = {spec->transpose_a ? tk : tm, spec->transpose_a ? tm : tk};
  const int64_t b_tile[2] = {spec->transpose_b ? tn : tk, spec->transpose_b ? tk : tn};
  const int64_t c_tile[2] = {tm, tn};
  const uint32_t flags =
      (spec->transpose_a ? TL_GEMM_TRANSPOSE_A : 0) | (spec->transpose_b ? TL_GEMM_TRANSPOSE_B : 0);

  const tl_expr m = tl_dim(b, "m"), n = tl_dim(b, "n"), k = tl_dim(b, "k");
  const tl_buffer A = matrix(b, "A", spec->dtype, spec->transpose_a, m, k, TL_TENSOR_READ_ONLY);
  const tl_buffer B = matrix(b, "B", spec->dtype, spec->transpose_b, k, n, TL_TENSOR_READ_ONLY);
  tl_buffer bias = {0}, bias_row = {0}, C, As, Bs, acc;
  tl_expr grid[2], block[2], row, col, ko, zero;
  tl_scope kernel, loop;
  if (spec->bias_dtype != 0) bias = tl_tensor(b, "bias", spec->bias_dtype, 1, &n, NULL, TL_TENSOR_READ_ONLY);
  C = matrix(b, "C", spec->out_dtype, 0, m, n, 0);

  grid[0] = ceil_div(b, m, tm);
  grid[1] = ceil_div(b, n, tn);
  kernel = tl_begin_kernel(b, "gemm", 2, grid, spec->gpu ? 128 : 0, names, block);
  row = times(b, block[0], tm);
  col = times(b, block[1], tn);
  As = tl_alloc(b, "As", TL_SCOPE_SHARED, spec->dtype, 2, a_tile);
  Bs = tl_alloc(b, "Bs", TL_SCOPE_SHARED, spec->dtype, 2, b_tile);
  acc = tl_alloc(b, "acc", TL_SCOPE_FRAGMENT, spec->sum_dtype, 2, c_tile);
  if (spec->bias_dtype != 0) bias_row = tl_alloc(b, "bias_row", TL_SCOPE_FRAGMENT, spec->sum_dtype, 1, &tn);
  zero = element_is_float(spec->sum_dtype) ? tl_const_f64(b, spec->sum_dtype, 0)
                                           : tl_const_i64(b, spec->sum_dtype, 0);

  tl_fill(b, tl_whole(b, acc), zero);
  loop =
      tl_begin_loop(b, TL_LOOP_PIPELINED, tl_index(b, 0), ceil_div(b, k, tk), spec->gpu ? 3 : 0, "ko", &ko);
  tl_copy(b, box(b, A, spec->transpose_a, row, times(b, ko, tk), a_tile), tl_whole(b, As));
  tl_copy(b, box(b, B, spec->transpose_b, times(b, ko, tk), col, b_tile), tl_whole(b, Bs));
  tl_gemm(b, tl_whole(b, As), tl_whole(b, Bs), tl_whole(b, acc), flags, TL_POLICY_DEFAULT);
  tl_end(b, loop);
  if (spec->bias_dtype != 0)
    add_bias_and_relu(b, acc, c_tile, tl_region_of(b, bias, 1, &col, &tn), bias_row, zero);
  tl_copy(b, tl_whole(b, acc), box(b, C, 0, row, col, c_tile));
  tl_end(b, kernel);
}
