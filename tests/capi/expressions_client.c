/* Expressions by the macros of tilelang_expressions.h: programs equal to those of their text. */
#include <stdio.h>
#include <string.h>

#define TLE_BUILDER at_hand
#include "tilelang_expressions.h"

static int failures = 0;

static void compare(const tl_context* context, tl_builder* builder, const char* text) {
  tl_program *made = NULL, *read = NULL;
  tl_error* error = NULL;
  if (tl_builder_finish(builder, &made, &error) != TL_OK ||
      tl_program_parse(context, text, strlen(text), "text", &read, &error) != TL_OK) {
    fprintf(stderr, "FAILED: %s\n", tl_error_message(error));
    ++failures;
  } else if (strcmp(tl_program_hash(made), tl_program_hash(read)) != 0) {
    tl_blob* shown = NULL;
    tl_program_print(made, &shown, NULL);
    fprintf(stderr, "FAILED: expected\n%s\nfound\n%s\n", text, tl_blob_data(shown));
    tl_blob_release(shown);
    ++failures;
  }
  tl_error_release(error);
  tl_program_release(made);
  tl_program_release(read);
  tl_builder_destroy(builder);
}

/* A tile that comes in boxes, and elements of all kinds. */
static void tile_of_rows(const tl_context* context) {
  tl_builder* at_hand = NULL;
  tl_expr m, b, i[2], x;
  tl_buffer source, result, tile;
  tl_scope kernel, loop;
  tl_builder_create(context, "rows", &at_hand, NULL);
  m = tl_dim(at_hand, "m");
  source = tl_tensor(at_hand, "X", TL_F32, TLE_LIST(m, TLE_I64(40)), NULL, TL_TENSOR_READ_ONLY);
  result = tl_tensor(at_hand, "Y", TL_F32, TLE_LIST(m, TLE_I64(40)), NULL, 0);
  kernel = tl_begin_kernel(at_hand, "k", 1, (const tl_expr[]){TLE_CEILDIV(m, TLE_I64(16))}, 0, NULL, &b);
  tile = tl_alloc(at_hand, "t", TL_SCOPE_FRAGMENT, TL_F32, TLE_EXTENTS(16, 40));
  tl_copy(at_hand, TLE_BOX(source, TLE_RANGE(TLE_MUL(b, TLE_I64(16)), 16), TLE_RANGE(TLE_I64(0), 40)),
          tl_whole(at_hand, tile));
  loop = tl_begin_parallel(at_hand, TLE_EXTENTS(16, 40), NULL, i);
  x = TLE_AT(tile, i[0], i[1]);
  x = TLE_SELECT(TLE_LT(x, TLE_F32(0)), TLE_EXP(x), TLE_FMA(x, x, TLE_F32(1)));
  x = TLE_MAX(x, TLE_CAST(TL_F32, TLE_CAST_BY(TL_F16, x, TL_CAST_ZERO | TL_CAST_SATURATE)));
  tl_store(at_hand, tile, TLE_LIST(i[0], i[1]), TLE_CALL("fast_tanh", x));
  tl_end(at_hand, loop);
  tl_copy(at_hand, tl_whole(at_hand, tile),
          TLE_BOX(result, TLE_RANGE(TLE_MUL(b, TLE_I64(16)), 16), TLE_RANGE(TLE_I64(0), 40)));
  tl_end(at_hand, kernel);
  compare(
      context, at_hand,
      "tl 1 program rows dim m tensor X: f32[m, 40] readonly tensor Y: f32[m, 40]\n"
      "kernel k grid (bx: ceildiv(m, 16)) {\n"
      "  alloc t: fragment f32[16, 40]\n"
      "  copy X[bx * 16 :+ 16, 0 :+ 40] -> t\n"
      "  parallel v0, v1 in 16, 40 {\n"
      "    t[v0, v1] = fast_tanh(max(select(t[v0, v1] < 0, exp(t[v0, v1]), fma(t[v0, v1], t[v0, v1], 1)),\n"
      "      cast(f32, cast(f16, select(t[v0, v1] < 0, exp(t[v0, v1]), fma(t[v0, v1], t[v0, v1], 1)),\n"
      "        zero, saturate))))\n"
      "  }\n"
      "  copy t -> Y[bx * 16 :+ 16, 0 :+ 40]\n"
      "}\n");
}

/* A row of a tensor, integers, bits. */
static void one_row(const tl_context* context) {
  tl_builder* at_hand = NULL;
  tl_expr b, i, x;
  tl_buffer source, result, tile;
  tl_scope kernel, loop;
  tl_builder_create(context, "one", &at_hand, NULL);
  source = tl_tensor(at_hand, "X", TL_U32, TLE_LIST(TLE_I64(8), TLE_I64(64)), NULL, 0);
  result = tl_tensor(at_hand, "Y", TL_F32, TLE_LIST(TLE_I64(8), TLE_I64(64)), NULL, 0);
  kernel = tl_begin_kernel(at_hand, "k", 1, (const tl_expr[]){TLE_I64(8)}, 0, NULL, &b);
  tile = tl_alloc(at_hand, "t", TL_SCOPE_SHARED, TL_U32, TLE_EXTENTS(64));
  tl_copy(at_hand, TLE_BOX(source, TLE_ONE(b), TLE_RANGE(TLE_I64(0), 64)), tl_whole(at_hand, tile));
  loop = tl_begin_parallel(at_hand, TLE_EXTENTS(64), NULL, &i);
  x = TLE_BIT_XOR(TLE_SHR(TLE_AT(tile, i), TLE_U32(3)), TLE_POPCOUNT(TLE_AT(tile, i)));
  tl_store(at_hand, result, TLE_LIST(b, i), TLE_ADD(TLE_BITCAST(TL_F32, x), TLE_UNIFORM(x)));
  tl_end(at_hand, loop);
  tl_end(at_hand, kernel);
  compare(
      context, at_hand,
      "tl 1 program one tensor X: u32[8, 64] tensor Y: f32[8, 64]\n"
      "kernel k grid (bx: 8) {\n"
      "  alloc t: shared u32[64]\n"
      "  copy X[bx, 0 :+ 64] -> t\n"
      "  parallel v0 in 64 {\n"
      "    Y[bx, v0] = bitcast(f32, t[v0] >> 3 ^ popcount(t[v0])) + uniform(t[v0] >> 3 ^ popcount(t[v0]))\n"
      "  }\n"
      "}\n");
}

int main(void) {
  tl_context* context = NULL;
  if (tl_context_create(&context, NULL) != TL_OK) return 1;
  tile_of_rows(context);
  one_row(context);
  tl_context_release(context);
  return failures != 0;
}
