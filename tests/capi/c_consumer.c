/* A C99 client from end to end: build, print, parse, interpret, compile, look inside, launch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"
#include "tilelang.h"

struct DLDevice { int32_t device_type, device_id; };
struct DLDataType { uint8_t code, bits; uint16_t lanes; };
struct DLTensor {
  void *data;
  struct DLDevice device;
  int32_t ndim;
  struct DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

static int failures = 0;

static void check(int good, const char *what, tl_error *error) {
  if (!good) {
    fprintf(stderr, "FAILED: %s\n%s\n", what, tl_error_message(error));
    ++failures;
  }
  tl_error_release(error);
}

#define CHECK(condition) check((condition), #condition, NULL)
#define OK(call) check((call) == TL_OK, #call, error)

enum { M = 40, N = 24, K = 50 };
static float a[M * K], b[K * N], c[M * N], expected[M * N];

static void fill_inputs(void) {
  int i, j, l;
  for (i = 0; i < M * K; ++i) a[i] = (float)((i * 7) % 11) - 5.0f;
  for (i = 0; i < K * N; ++i) b[i] = (float)((i * 5) % 13) - 6.0f;
  for (i = 0; i < M; ++i)
    for (j = 0; j < N; ++j) {
      float sum = 0;
      for (l = 0; l < K; ++l) sum += a[i * K + l] * b[l * N + j];
      expected[i * N + j] = sum;
    }
}

/* The inputs are small integers, so every order of summation gives the same floats. */
static int result_is_right(void) {
  const int right = memcmp(c, expected, sizeof c) == 0;
  memset(c, 0, sizeof c);
  return right;
}

static tl_arg tensor_arg(void *data) {
  tl_arg arg;
  arg.kind = TL_ARG_POINTER;
  arg.dtype = TL_F32;
  arg.payload = (uint64_t)(uintptr_t)data;
  return arg;
}

static tl_arg i64_arg(int64_t value) {
  tl_arg arg;
  arg.kind = TL_ARG_I64;
  arg.dtype = 0;
  arg.payload = (uint64_t)value;
  return arg;
}

static void show_program(const tl_context *context, const tl_program *program) {
  tl_error *error = NULL;
  tl_blob *text = NULL;
  tl_program *again = NULL;
  tl_param_info info;
  CHECK(strcmp(tl_program_name(program), "matmul") == 0);
  CHECK(tl_program_param_count(program) == 6);
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  CHECK(tl_program_param(program, 3, &info) == TL_OK);
  CHECK(info.kind == TL_PARAM_TENSOR && info.rank == 2 && info.read_only == 1 && strcmp(info.name, "A") == 0);
  CHECK(info.struct_size == sizeof info);
  OK(tl_program_print(program, &text, &error));
  CHECK(strlen(tl_blob_data(text)) == tl_blob_size(text));
  OK(tl_program_parse(context, tl_blob_data(text), tl_blob_size(text), "again.tl", &again, &error));
  CHECK(strlen(tl_program_hash(program)) == 32);
  CHECK(strcmp(tl_program_hash(program), tl_program_hash(again)) == 0);
  tl_blob_release(text);
  tl_program_release(again);
}

static void launch(const tl_kernel *kernel) {
  tl_error *error = NULL;
  tl_launch how;
  tl_arg args[6];
  int64_t shape_a[2] = {M, K}, shape_b[2] = {K, N}, shape_c[2] = {M, N};
  struct DLTensor ta, tb, tc;
  const struct DLTensor *tensors[3];
  memset(&ta, 0, sizeof ta);
  ta.device.device_type = 1;
  ta.ndim = 2;
  ta.dtype.code = 2, ta.dtype.bits = 32, ta.dtype.lanes = 1;
  tb = tc = ta;
  ta.data = a, ta.shape = shape_a;
  tb.data = b, tb.shape = shape_b;
  tc.data = c, tc.shape = shape_c;
  tensors[0] = &ta, tensors[1] = &tb, tensors[2] = &tc;
  OK(tl_kernel_launch_dlpack(kernel, NULL, tensors, 3, &error));
  CHECK(result_is_right());

  memset(&how, 0, sizeof how);
  how.struct_size = sizeof how;
  how.max_threads = 1;
  args[0] = i64_arg(M), args[1] = i64_arg(N), args[2] = i64_arg(K);
  args[3] = tensor_arg(a), args[4] = tensor_arg(b), args[5] = tensor_arg(c);
  OK(tl_kernel_launch(kernel, &how, args, 6, &error));
  CHECK(result_is_right());

  shape_b[0] = K + 1;
  CHECK(tl_kernel_launch_dlpack(kernel, NULL, tensors, 3, &error) == TL_LAUNCH_ARGUMENT);
  CHECK(error != NULL && strstr(tl_error_message(error), "launch_shape") != NULL);
  tl_error_release(error);
}

static void compile_and_run(const tl_context *context, const tl_program *program) {
  static const char *const keep[] = {"keep_ir", "keep_assembly", "verify"};
  tl_error *error = NULL;
  tl_target *target = NULL;
  tl_options *options = NULL;
  tl_artifact *artifact = NULL;
  tl_kernel *kernel = NULL;
  const char *text = NULL, *name = NULL;
  size_t size = 0, i;
  double ms = -1;
  tl_section section;
  OK(tl_target_best(context, &target, &error));
  CHECK(tl_target_name(target)[0] != 0);
  tl_target_release(target);
  OK(tl_target_parse("host", &target, &error));
  OK(tl_options_create(&options, &error));
  for (i = 0; i < sizeof keep / sizeof keep[0]; ++i) OK(tl_options_set_bool(options, keep[i], 1, &error));
  OK(tl_compile(context, program, target, options, &artifact, &error));
  for (section = TL_SECTION_TILE_IR; section <= TL_SECTION_ASSEMBLY; ++section) {
    OK(tl_artifact_section(artifact, section, &text, &size, &error));
    CHECK(size > 0 && strlen(text) == size);
  }
  CHECK(tl_artifact_warning_count(artifact) == 0); /* hosts have no estimates */
  CHECK(tl_artifact_stage_count(artifact) > 0);
  CHECK(tl_artifact_stage(artifact, 0, &name, &ms) == TL_OK && name[0] != 0 && ms >= 0);
  OK(tl_kernel_load(context, artifact, TL_DEVICE_ANY, &kernel, &error));
  OK(tl_kernel_prepare(kernel, &error));
  for (i = 0; i < tl_kernel_form_count(kernel); ++i) {
    tl_kernel_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    OK(tl_kernel_describe(kernel, i, &info, &error));
    CHECK(info.name[0] != 0 && info.threads > 0 && info.compile_ms > 0);
    CHECK(info.accumulation_registers == 0 && info.scalar_registers == 0); /* the host has none that count */
  }
  CHECK(i > 0);
  /* Children keep what they need: release order is free. */
  tl_artifact_release(artifact);
  tl_options_destroy(options);
  tl_target_release(target);
  if (kernel) launch(kernel);
  tl_kernel_release(kernel);
}

static void device_memory(void) {
  char in[16] = "copied", out[16] = "";
  void *memory = NULL;
  tl_error *error = NULL;
  CHECK(tl_device_count() >= 1);
  OK(tl_device_allocate(0, sizeof in, &memory, &error));
  OK(tl_device_copy(0, memory, in, sizeof in, NULL, &error));
  OK(tl_device_copy(0, out, memory, sizeof out, NULL, &error));
  OK(tl_device_wait(0, NULL, &error));
  CHECK(strcmp(in, out) == 0);
  OK(tl_device_free(0, memory, &error));
}

int main(void) {
  tl_error *error = NULL;
  tl_context *context = NULL;
  tl_builder *builder = NULL;
  tl_program *program = NULL;
  tl_arg args[6];
  fill_inputs();
  CHECK(tilelang_api_version() == TL_API_VERSION);
  OK(tl_context_create(&context, &error));
  OK(tl_builder_create(context, "matmul", &builder, &error));
  build_gemm(builder);
  CHECK(tl_builder_status(builder) == TL_OK);
  OK(tl_builder_finish(builder, &program, &error));
  tl_builder_destroy(builder);
  if (program) {
    show_program(context, program);
    args[0] = i64_arg(M), args[1] = i64_arg(N), args[2] = i64_arg(K);
    args[3] = tensor_arg(a), args[4] = tensor_arg(b), args[5] = tensor_arg(c);
    OK(tl_interpret(program, args, 6, &error));
    CHECK(result_is_right());
    compile_and_run(context, program);
  }
  device_memory();
  tl_program_release(program);
  tl_context_release(context);
  return failures != 0;
}
