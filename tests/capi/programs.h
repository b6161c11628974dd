/* Small programs that the C tests build through the public interface. C99. */
#ifndef TILEGEN_TESTS_CAPI_PROGRAMS_H
#define TILEGEN_TESTS_CAPI_PROGRAMS_H

#include "tilelang.h"

/* C[m, n] = A[m, k] * B[k, n], f32, blocks of 16 x 16 x 16; m, n, k symbolic. Leaves the builder
 * unfinished. */
static inline void build_gemm(tl_builder *b) {
  tl_expr m = tl_dim(b, "m"), n = tl_dim(b, "n"), k = tl_dim(b, "k");
  tl_expr shape_a[2], shape_b[2], shape_c[2], grid[2], block[2], ko, zero, sixteen, fifteen, row, col, depth,
      trips;
  tl_expr off[2];
  const int64_t tile[2] = {16, 16};
  tl_buffer A, B, C, As, Bs, acc;
  tl_scope kernel, loop;
  shape_a[0] = m, shape_a[1] = k;
  shape_b[0] = k, shape_b[1] = n;
  shape_c[0] = m, shape_c[1] = n;
  A = tl_tensor(b, "A", TL_F32, 2, shape_a, NULL, TL_TENSOR_READ_ONLY);
  B = tl_tensor(b, "B", TL_F32, 2, shape_b, NULL, TL_TENSOR_READ_ONLY);
  C = tl_tensor(b, "C", TL_F32, 2, shape_c, NULL, 0);
  zero = tl_index(b, 0), fifteen = tl_index(b, 15), sixteen = tl_index(b, 16);
  grid[0] = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, m, fifteen), sixteen);
  grid[1] = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, fifteen), sixteen);
  trips = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, k, fifteen), sixteen);
  kernel = tl_begin_kernel(b, "gemm", 2, grid, 0, NULL, block);
  As = tl_alloc(b, "As", TL_SCOPE_SHARED, TL_F32, 2, tile);
  Bs = tl_alloc(b, "Bs", TL_SCOPE_SHARED, TL_F32, 2, tile);
  acc = tl_alloc(b, "acc", TL_SCOPE_FRAGMENT, TL_F32, 2, tile);
  row = tl_binary(b, TL_MUL, block[0], sixteen);
  col = tl_binary(b, TL_MUL, block[1], sixteen);
  tl_fill(b, tl_whole(b, acc), tl_const_f64(b, TL_F32, 0.0));
  loop = tl_begin_loop(b, TL_LOOP_PIPELINED, zero, trips, 0, "ko", &ko);
  depth = tl_binary(b, TL_MUL, ko, sixteen);
  off[0] = row, off[1] = depth;
  tl_copy(b, tl_region_of(b, A, 2, off, tile), tl_whole(b, As));
  off[0] = depth, off[1] = col;
  tl_copy(b, tl_region_of(b, B, 2, off, tile), tl_whole(b, Bs));
  tl_gemm(b, tl_whole(b, As), tl_whole(b, Bs), tl_whole(b, acc), 0, TL_POLICY_DEFAULT);
  tl_end(b, loop);
  off[0] = row, off[1] = col;
  tl_copy(b, tl_whole(b, acc), tl_region_of(b, C, 2, off, tile));
  tl_end(b, kernel);
}

#endif
