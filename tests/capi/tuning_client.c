/* A C99 client that tunes: on the host for real, by a function of its own, and from what is remembered. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tilelang.h"

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

static const char text[] =
    "tl 1 program fill\nparam WIDTH in {1, 64, 2048}\ndim m\ntensor X: f32[m, 2048]\n"
    "kernel k grid (b: m, c: 2048 // WIDTH) {\n"
    "  parallel i in WIDTH { X[b, c * WIDTH + i] = 1.0f32 }\n}\n";

/* Takes its time from the values: 64 is the best. */
struct Asked {
  int calls, wrong;
};

static void measure(void *user, tl_measurement *m) {
  struct Asked *asked = (struct Asked *)user;
  tl_compile_param_info info;
  info.struct_size = sizeof info;
  ++asked->calls;
  asked->wrong += m->struct_size < sizeof *m || m->value_count != 1 || m->step >= m->steps ||
                  tl_program_compile_param(m->program, 0, &info) != TL_OK || info.value != m->values[0];
  if (m->values[0] == 1)
    m->refusal = "too many blocks";
  else
    m->microseconds = (double)m->values[0];
}

static tl_configuration_info configuration(const tl_tuning *tuning, size_t index) {
  tl_configuration_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  CHECK(tl_tuning_configuration(tuning, index, &info) == TL_OK);
  return info;
}

/* Files of a folder, removed where `remove_them` says so. */
static int files_in(const char *folder, int remove_them) {
  int count = 0;
  char path[1024];
  DIR *open = opendir(folder);
  struct dirent *entry;
  while (open && (entry = readdir(open)) != NULL) {
    if (entry->d_name[0] == '.') continue;
    ++count;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (remove_them) remove(path);
  }
  if (open) closedir(open);
  return count;
}

/* The value that the compiled program has. */
static int64_t compiled_value(const tl_context *context, const tl_program *program, const tl_target *target,
                              const tl_options *options) {
  tl_artifact *artifact = NULL;
  tl_error *error = NULL;
  const char *data = NULL, *at;
  size_t size = 0;
  long value = 0;
  OK(tl_compile(context, program, target, options, &artifact, &error));
  CHECK(tl_artifact_section(artifact, TL_SECTION_TILE_IR, &data, &size, NULL) == TL_OK);
  at = data ? strstr(data, "param WIDTH = ") : NULL;
  CHECK(at && sscanf(at, "param WIDTH = %ld", &value) == 1);
  tl_artifact_release(artifact);
  return value;
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : "tuning_client_records";
  tl_context *context = NULL;
  tl_program *program = NULL, *bound = NULL;
  tl_target *target = NULL;
  tl_options *options = NULL;
  tl_tuning *tuning = NULL;
  tl_error *error = NULL;
  tl_configuration_info info;
  struct Asked asked = {0, 0};
  double slow = 0, fast = 0;
  int calls;
  const char *name = "WIDTH";
  const int64_t one = 1, whole = 2048;

  OK(tl_context_create(&context, &error));
  OK(tl_program_parse(context, text, sizeof text - 1, NULL, &program, &error));
  OK(tl_target_parse("host", &target, &error));
  OK(tl_options_create(&options, &error));
  OK(tl_options_set_str(options, "sizes", "m=64", &error));

  /* A single program: a block for each element costs. */
  OK(tl_program_bind(context, program, &name, &one, 1, &bound, &error));
  OK(tl_measure(context, bound, target, options, &slow, &error));
  tl_program_release(bound);
  OK(tl_program_bind(context, program, &name, &whole, 1, &bound, &error));
  OK(tl_measure(context, bound, target, options, &fast, &error));
  tl_program_release(bound);
  CHECK(fast > 0 && slow > fast);
  CHECK(tl_measure(context, NULL, target, options, &fast, NULL) == TL_INVALID_ARGUMENT && fast == 0);
  CHECK(tl_measure(context, program, target, options, NULL, NULL) == TL_INVALID_ARGUMENT);

  /* All of them on the device. */
  OK(tl_options_set_str(options, "tune", "measure", &error));
  OK(tl_tune(context, program, target, options, &tuning, &error));
  CHECK(tl_tuning_count(tuning) == 3);
  info = configuration(tuning, 2);
  CHECK(info.values[0] == 1 && info.measured_microseconds > 0 && info.microseconds == 0 && !info.refusal);
  CHECK(configuration(tuning, 0).measured_microseconds <= configuration(tuning, 1).measured_microseconds);
  tl_tuning_release(tuning);

  /* A caller of an earlier version has a smaller struct. */
  OK(tl_tune_measured(context, program, target, options, measure, &asked, &tuning, &error));
  CHECK(asked.calls > 3 && asked.wrong == 0);
  memset(&info, 0x5a, sizeof info);
  info.struct_size = (uint32_t)offsetof(tl_configuration_info, measured_microseconds);
  CHECK(tl_tuning_configuration(tuning, 0, &info) == TL_OK && info.values[0] == 64);
  CHECK(info.measured_microseconds != 64); /* not written */
  CHECK(configuration(tuning, 0).measured_microseconds == 64);
  CHECK(configuration(tuning, 1).values[0] == 2048);
  info = configuration(tuning, 2);
  CHECK(info.refusal && strstr(info.refusal, "too many blocks"));
  tl_tuning_release(tuning);

  /* Remembered: the function is asked no more, and tl_compile takes the best without a run. */
  files_in(folder, 1); /* of an earlier run */
  OK(tl_options_set_str(options, "tune_records", folder, &error));
  OK(tl_options_set_str(options, "sizes", "m=77", &error));
  OK(tl_tune_measured(context, program, target, options, measure, &asked, &tuning, &error));
  tl_tuning_release(tuning);
  CHECK(files_in(folder, 0) == 1);
  calls = asked.calls;
  OK(tl_options_set_str(options, "sizes", "m=90", &error)); /* of the same bucket */
  OK(tl_tune_measured(context, program, target, options, measure, &asked, &tuning, &error));
  CHECK(asked.calls == calls);
  CHECK(configuration(tuning, 0).measured_microseconds == 64);
  tl_tuning_release(tuning);
  CHECK(compiled_value(context, program, target, options) == 64);
  OK(tl_options_set_str(options, "tune", "none", &error));
  CHECK(compiled_value(context, program, target, options) == 1);

  tl_options_destroy(options);
  tl_target_release(target);
  tl_program_release(program);
  tl_context_release(context);
  if (failures == 0) printf("tuned\n");
  return failures != 0;
}
