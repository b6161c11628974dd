#define _POSIX_C_SOURCE 200112L
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "element.h"

#define MAX_SAMPLES 200

static int report(const char* what, tl_error* error) {
  fprintf(stderr, "%s failed (%s):\n%s\n", what, tl_status_name(tl_error_status(error)),
          tl_error_message(error));
  tl_error_release(error);
  return 0;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int runner_open(struct runner* runner, const char* target_name) {
  tl_error* error = NULL;
  memset(runner, 0, sizeof *runner);
  if (tl_context_create(&runner->context, &error) != TL_OK) return report("making a context", error);
  if (target_name == NULL && tl_target_best(runner->context, &runner->target, &error) != TL_OK)
    return report("looking for a device", error);
  if (target_name != NULL && tl_target_parse(target_name, &runner->target, &error) != TL_OK)
    return report("choosing the target", error);
  return 1;
}

int runner_is_gpu(const struct runner* runner) {
  int64_t warp = 1;
  return tl_target_get_i64(runner->target, "warp", &warp, NULL) == TL_OK && warp > 1;
}

/* The first device of the target's kind; where there is none, loading on device 0 tells what is missing.
 * Warps of 64 lanes are AMD's. */
static size_t find_device(const struct runner* runner) {
  size_t i;
  int64_t warp = 1;
  tl_device_kind kind;
  tl_target_get_i64(runner->target, "warp", &warp, NULL);
  kind = warp == 64 ? TL_DEVICE_HIP : TL_DEVICE_CUDA;
  for (i = 1; runner_is_gpu(runner) && i < tl_device_count(); ++i) {
    tl_device_info info;
    info.struct_size = sizeof info;
    if (tl_device_describe(i, &info) == TL_OK && info.kind == kind) return i;
  }
  return 0;
}

int runner_compile(struct runner* runner, tl_builder* builder) {
  tl_program* program = NULL;
  tl_error* error = NULL;
  tl_device_info info;
  double start, compiled;
  tl_status status = tl_builder_finish(builder, &program, &error);
  tl_builder_destroy(builder);
  if (status != TL_OK) return report("building the program", error);
  start = now_ms();
  status = tl_compile(runner->context, program, runner->target, NULL, &runner->artifact, &error);
  compiled = now_ms() - start;
  tl_program_release(program);
  if (status != TL_OK) return report("compiling", error);
  runner->device = find_device(runner);
  if (tl_kernel_load(runner->context, runner->artifact, runner->device, &runner->kernel, &error) != TL_OK)
    return report("loading", error);
  info.struct_size = sizeof info;
  if (tl_device_describe(runner->device, &info) == TL_OK)
    printf("device    %s, %u %s\n", info.name, (unsigned)info.cores,
           info.kind == TL_DEVICE_HOST ? "threads" : "multiprocessors");
  printf("target    %s\ncompiled  in %.1f ms\n", tl_target_name(runner->target), compiled);
  return 1;
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int runner_array(struct runner* runner, tl_arg* arg, const struct npy_array* array) {
  const size_t bytes = array->count * element_bytes(array->dtype);
  tl_error* error = NULL;
  void* memory = array->data;
  if (runner->device != 0) {
    if (runner->array_count == RUNNER_ARRAYS) {
      fprintf(stderr, "a sample has at most %d arrays\n", RUNNER_ARRAYS);
      return 0;
    }
    if (tl_device_allocate(runner->device, bytes, &memory, &error) != TL_OK)
      return report("allocating device memory", error);
    runner->arrays[runner->array_count] = array;
    runner->memory[runner->array_count++] = memory;
    if (tl_device_copy(runner->device, memory, array->data, bytes, NULL, &error) != TL_OK)
      return report("copying to the device", error);
  }
  arg->kind = TL_ARG_POINTER;
  arg->dtype = array->dtype;
  arg->payload = (uint64_t)(uintptr_t)memory;
  return 1;
}

int runner_fetch(const struct runner* runner) {
  tl_error* error = NULL;
  int i;
  for (i = 0; i < runner->array_count; ++i) {
    const struct npy_array* array = runner->arrays[i];
    if (tl_device_copy(runner->device, array->data, runner->memory[i],
                       array->count * element_bytes(array->dtype), NULL, &error) != TL_OK)
      return report("copying from the device", error);
  }
  return 1;
}

static int launch(const struct runner* runner, const tl_arg* args, size_t count, int launches) {
  tl_error* error = NULL;
  int i;
  for (i = 0; i < launches; ++i)
    if (tl_kernel_launch(runner->kernel, NULL, args, count, &error) != TL_OK)
      return report("launching", error);
  if (tl_device_wait(runner->device, NULL, &error) != TL_OK) return report("running", error);
  return 1;
}

/* A GPU is waited for at the end of a sample, which takes a while: short kernels are launched several times
 * in one, until it lasts a fifth of a millisecond. */
int runner_time(const struct runner* runner, const tl_arg* args, size_t count, int repeats, double* median_ms,
                int* samples) {
  double times[MAX_SAMPLES], begin;
  int taken = 0, launches = 1;
  if (!launch(runner, args, count, 1)) return 0;
  if (repeats > MAX_SAMPLES) repeats = MAX_SAMPLES;
  if (repeats < 1) repeats = 1;
  begin = now_ms();
  do {
    const double start = now_ms();
    double ms;
    if (!launch(runner, args, count, launches)) return 0;
    ms = now_ms() - start;
    if (runner->device != 0 && ms < 0.2 && launches < 1000)
      launches *= 2;
    else
      times[taken++] = ms / launches;
  } while (taken == 0 || (taken < repeats && now_ms() - begin < 500.0));
  qsort(times, (size_t)taken, sizeof *times, compare_doubles);
  *median_ms = times[taken / 2];
  *samples = taken;
  return 1;
}

int runner_print_schedule(const struct runner* runner) {
  const char* text = NULL;
  size_t size = 0;
  tl_error* error = NULL;
  if (tl_artifact_section(runner->artifact, TL_SECTION_SCHEDULE_TEXT, &text, &size, &error) != TL_OK)
    return report("reading the schedule", error);
  printf("schedule:\n%.*s", (int)size, text);
  return 1;
}

void runner_close(struct runner* runner) {
  int i;
  for (i = 0; i < runner->array_count; ++i) tl_device_free(runner->device, runner->memory[i], NULL);
  tl_kernel_release(runner->kernel);
  tl_artifact_release(runner->artifact);
  tl_target_release(runner->target);
  tl_context_release(runner->context);
  memset(runner, 0, sizeof *runner);
}

tl_arg runner_i64(int64_t value) {
  tl_arg arg;
  arg.kind = TL_ARG_I64;
  arg.dtype = 0;
  arg.payload = (uint64_t)value;
  return arg;
}

tl_arg runner_f64(double value) {
  tl_arg arg;
  arg.kind = TL_ARG_F64;
  arg.dtype = 0;
  memcpy(&arg.payload, &value, sizeof value);
  return arg;
}
