#include "launch_programs.h"

#include "attention_program.h"

namespace bench {
namespace {

tl_expr ceil_div(tl_builder* b, tl_expr x, int64_t by) {
  return tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, x, tl_index(b, by - 1)), tl_index(b, by));
}

tl_expr times(tl_builder* b, tl_expr x, int64_t factor) {
  return tl_binary(b, TL_MUL, x, tl_index(b, factor));
}

tl_buffer matrix(tl_builder* b, const char* name, tl_expr rows, tl_expr columns, uint32_t flags) {
  const tl_expr shape[2] = {rows, columns};
  return tl_tensor(b, name, TL_F16, 2, shape, nullptr, flags);
}

tl_region box(tl_builder* b, tl_buffer tensor, tl_expr row, tl_expr column, const int64_t* extents) {
  const tl_expr offsets[2] = {row, column};
  return tl_region_of(b, tensor, 2, offsets, extents);
}

}  // namespace

void build_add(tl_builder* b) {
  static const char* const names[1] = {"i"};
  constexpr int64_t kTile = 1024;
  const int64_t tile[1] = {kTile};
  const tl_expr n = tl_dim(b, "n");
  const tl_buffer x = tl_tensor(b, "X", TL_F32, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_F32, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer z = tl_tensor(b, "Z", TL_F32, 1, &n, nullptr, 0);
  tl_expr grid = ceil_div(b, n, kTile), block, i;
  const tl_scope kernel = tl_begin_kernel(b, "add", 1, &grid, 128, nullptr, &block);
  const tl_scope loop = tl_begin_parallel(b, 1, tile, names, &i);
  const tl_expr at = tl_binary(b, TL_ADD, times(b, block, kTile), i);
  tl_store(b, z, 1, &at, tl_binary(b, TL_ADD, tl_load(b, x, 1, &at), tl_load(b, y, 1, &at)));
  tl_end(b, loop);
  tl_end(b, kernel);
}

void build_gemm(tl_builder* b) {
  static const char* const names[2] = {"by", "bx"};
  constexpr int64_t kRows = 128, kColumns = 256, kDepth = 64;
  const int64_t a_tile[2] = {kRows, kDepth}, b_tile[2] = {kColumns, kDepth}, c_tile[2] = {kRows, kColumns};
  const tl_expr m = tl_dim(b, "m"), n = tl_dim(b, "n"), k = tl_dim(b, "k");
  const tl_buffer A = matrix(b, "A", m, k, TL_TENSOR_READ_ONLY),
                  B = matrix(b, "B", n, k, TL_TENSOR_READ_ONLY);
  const tl_buffer C = matrix(b, "C", m, n, 0);
  const tl_expr grid[2] = {ceil_div(b, m, kRows), ceil_div(b, n, kColumns)};
  tl_expr by_bx[2], ko;
  const tl_scope kernel = tl_begin_kernel(b, "gemm", 2, grid, 256, names, by_bx);
  const tl_buffer As = tl_alloc(b, "As", TL_SCOPE_SHARED, TL_F16, 2, a_tile);
  const tl_buffer Bs = tl_alloc(b, "Bs", TL_SCOPE_SHARED, TL_F16, 2, b_tile);
  const tl_buffer acc = tl_alloc(b, "acc", TL_SCOPE_FRAGMENT, TL_F32, 2, c_tile);
  const tl_expr row = times(b, by_bx[0], kRows), column = times(b, by_bx[1], kColumns);
  tl_fill(b, tl_whole(b, acc), tl_const_f64(b, TL_F32, 0));
  const tl_scope loop =
      tl_begin_loop(b, TL_LOOP_PIPELINED, tl_index(b, 0), ceil_div(b, k, kDepth), 4, "ko", &ko);
  const tl_expr depth = times(b, ko, kDepth);
  tl_copy(b, box(b, A, row, depth, a_tile), tl_whole(b, As));
  tl_copy(b, box(b, B, column, depth, b_tile), tl_whole(b, Bs));
  tl_gemm(b, tl_whole(b, As), tl_whole(b, Bs), tl_whole(b, acc), TL_GEMM_TRANSPOSE_B, TL_POLICY_DEFAULT);
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, acc), box(b, C, row, column, c_tile));
  tl_end(b, kernel);
}

void build_attention(tl_builder* b) {
  const attention_spec spec = attention_spec_make(TL_F16, 128, 1, 1, "sm_90a");
  attention_build(b, &spec);
}

}  // namespace bench
