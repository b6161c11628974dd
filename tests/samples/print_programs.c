/* The samples' programs, as tiles of a GPU have them, as text: print_programs FOLDER */
#include <stdio.h>
#include <string.h>

#include "attention_program.h"
#include "gemm_program.h"
#include "row_programs.h"

static const char* folder;
static tl_context* context;

static int fail(tl_error* error) {
  fprintf(stderr, "%s\n", tl_error_message(error));
  tl_error_release(error);
  return 0;
}

static tl_builder* begin(const char* name) {
  tl_builder* builder = NULL;
  tl_error* error = NULL;
  if (tl_builder_create(context, name, &builder, &error) != TL_OK) fail(error);
  return builder;
}

static int end(tl_builder* builder, const char* name) {
  char path[4096];
  tl_program* program = NULL;
  tl_blob* text = NULL;
  tl_error* error = NULL;
  FILE* file;
  int ok;
  if (tl_builder_finish(builder, &program, &error) != TL_OK ||
      tl_program_print(program, &text, &error) != TL_OK)
    return fail(error);
  snprintf(path, sizeof path, "%s/%s.tl", folder, name);
  file = fopen(path, "wb");
  ok = file && fwrite(tl_blob_data(text), 1, tl_blob_size(text), file) == tl_blob_size(text);
  if (file && fclose(file) != 0) ok = 0;
  tl_blob_release(text);
  tl_program_release(program);
  tl_builder_destroy(builder);
  return ok;
}

static int gemm(const char* name, tl_dtype dtype, int transpose_a, int transpose_b) {
  struct gemm_spec spec;
  tl_builder* b = begin(name);
  memset(&spec, 0, sizeof spec);
  spec.dtype = spec.out_dtype = dtype;
  spec.bias_dtype = dtype;
  spec.sum_dtype = gemm_sum_dtype(dtype);
  spec.transpose_a = transpose_a;
  spec.transpose_b = transpose_b;
  spec.gpu = 1;
  if (b) gemm_build(b, &spec);
  return b && end(b, name);
}

static int rows(const char* name, void (*build)(tl_builder*, const struct row_spec*), int64_t heads) {
  struct row_spec spec = row_spec_make(TL_F16, 1000, 1);
  tl_builder* b = begin(name);
  spec.heads = heads;
  if (heads > 1) spec.cols = spec.tile_cols = 1024;
  if (b) build(b, &spec);
  return b && end(b, name);
}

static int attention(const char* name, int causal, int split, int packed) {
  struct attention_spec spec = attention_spec_make(TL_F16, 64, 1, causal, "sm_90a");
  tl_builder* b = begin(name);
  spec.split = split;
  spec.packed = packed;
  attention_spec_fit(&spec, "sm_90a");
  if (b) attention_build(b, &spec);
  return b && end(b, name);
}

int main(int argc, char** argv) {
  tl_error* error = NULL;
  int ok;
  if (argc != 2) return 2;
  folder = argv[1];
  if (tl_context_create(&context, &error) != TL_OK) return fail(error), 1;
  ok = gemm("sample_gemm", TL_F16, 0, 0) && gemm("sample_gemm_tt", TL_F16, 1, 1) &&
       gemm("sample_gemm_f32", TL_F32, 0, 1) && rows("sample_softmax", softmax_build, 1) &&
       rows("sample_layernorm", layernorm_build, 1) && rows("sample_rmsnorm", rmsnorm_build, 1) &&
       rows("sample_rotary", rotary_build, 8) && attention("sample_attention", 0, 0, 0) &&
       attention("sample_attention_causal", 1, 0, 0) && attention("sample_attention_split", 0, 1, 0) &&
       attention("sample_attention_packed", 0, 0, 1);
  tl_context_release(context);
  return ok ? 0 : 1;
}
