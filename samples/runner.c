#define _POSIX_C_SOURCE 200112L
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* The first device that runs code for this target by name, else device 0: loading tells what does not fit. */
static size_t find_device(const tl_target* target) {
  size_t i;
  for (i = 0; i < tl_device_count(); ++i) {
    tl_device_info info;
    info.struct_size = sizeof info;
    if (tl_device_describe(i, &info) == TL_OK && strcmp(info.target, tl_target_name(target)) == 0) return i;
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
  runner->device = find_device(runner->target);
  if (tl_kernel_load(runner->context, runner->artifact, runner->device, &runner->kernel, &error) != TL_OK)
    return report("loading", error);
  info.struct_size = sizeof info;
  if (tl_device_describe(runner->device, &info) == TL_OK)
    printf("device    %s, %u threads\n", info.name, (unsigned)info.cores);
  printf("target    %s\ncompiled  in %.1f ms\n", tl_target_name(runner->target), compiled);
  return 1;
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int runner_time(const struct runner* runner, const tl_arg* args, size_t count, int repeats, double* median_ms,
                int* samples) {
  double times[MAX_SAMPLES], begin;
  tl_error* error = NULL;
  int taken = 0;
  if (tl_kernel_launch(runner->kernel, NULL, args, count, &error) != TL_OK) return report("launching", error);
  if (repeats > MAX_SAMPLES) repeats = MAX_SAMPLES;
  if (repeats < 1) repeats = 1;
  begin = now_ms();
  do {
    const double start = now_ms();
    if (tl_kernel_launch(runner->kernel, NULL, args, count, &error) != TL_OK)
      return report("launching", error);
    times[taken++] = now_ms() - start;
  } while (taken < repeats && now_ms() - begin < 500.0);
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
  tl_kernel_release(runner->kernel);
  tl_artifact_release(runner->artifact);
  tl_target_release(runner->target);
  tl_context_release(runner->context);
  memset(runner, 0, sizeof *runner);
}

tl_arg runner_pointer(tl_dtype dtype, const void* data) {
  tl_arg arg;
  arg.kind = TL_ARG_POINTER;
  arg.dtype = dtype;
  arg.payload = (uint64_t)(uintptr_t)data;
  return arg;
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
