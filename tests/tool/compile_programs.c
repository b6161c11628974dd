/* Compiles programs one after the other in one process and writes what their threads do:
 *   compile_programs [FILE TARGET]... */
#include <stdio.h>
#include <stdlib.h>
#include <tilelang.h>

static int fail(const char* file, tl_error* error) {
  fprintf(stderr, "%s: %s\n", file, error ? tl_error_message(error) : "cannot be read");
  tl_error_release(error);
  return 0;
}

/* Text of the file, `*size` bytes; NULL when it cannot be read. */
static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  char* text = NULL;
  long end;
  if (!file) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0) {
    *size = (size_t)end;
    text = malloc(*size);
    if (text && fread(text, 1, *size, file) != *size) {
      free(text);
      text = NULL;
    }
  }
  fclose(file);
  return text;
}

static int compile(tl_context* context, const char* path, const char* target_name) {
  size_t size = 0;
  char* text = read_file(path, &size);
  tl_target* target = NULL;
  tl_program* program = NULL;
  tl_artifact* artifact = NULL;
  tl_error* error = NULL;
  const char* threads = NULL;
  int ok = text && tl_target_parse(target_name, &target, &error) == TL_OK &&
           tl_program_parse(context, text, size, path, &program, &error) == TL_OK &&
           tl_compile(context, program, target, NULL, &artifact, &error) == TL_OK &&
           tl_artifact_section(artifact, TL_SECTION_THREAD_PROGRAM, &threads, &size, &error) == TL_OK &&
           size > 0 && fwrite(threads, 1, size, stdout) == size;
  if (!ok) fail(path, error);
  tl_artifact_release(artifact);
  tl_program_release(program);
  tl_target_release(target);
  free(text);
  return ok;
}

int main(int argc, char** argv) {
  tl_context* context = NULL;
  tl_error* error = NULL;
  int i, ok = argc > 2;
  if (tl_context_create(&context, &error) != TL_OK) return fail("context", error), 1;
  for (i = 1; ok && i + 1 < argc; i += 2) ok = compile(context, argv[i], argv[i + 1]);
  tl_context_release(context);
  return ok ? 0 : 1;
}
