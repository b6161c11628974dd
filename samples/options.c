#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

static void print_help(const char* program, const struct option* options, int count, const char* about) {
  static const char* const kValues[] = {"", " TEXT", " N", " X", " DTYPE", ""};
  int i;
  printf("%s\n\nusage: %s", about, program);
  for (i = 0; i < count; ++i)
    if (options[i].kind == OPTION_SIZE) printf(" [%s]", options[i].name);
  printf(" [options]\n");
  for (i = 0; i < count; ++i)
    printf("  %s%-*s %s\n", options[i].name, (int)(22 - strlen(options[i].name)), kValues[options[i].kind],
           options[i].help);
}

static int parse_value(const struct option* option, const char* text) {
  char* end = NULL;
  errno = 0;
  switch (option->kind) {
    case OPTION_TEXT:
      *(const char**)option->out = text;
      return 1;
    case OPTION_INT:
    case OPTION_SIZE:
      *(int64_t*)option->out = strtoll(text, &end, 10);
      return end != text && *end == '\0' && errno == 0 && *(int64_t*)option->out >= 0;
    case OPTION_REAL:
      *(double*)option->out = strtod(text, &end);
      return end != text && *end == '\0' && errno == 0;
    case OPTION_DTYPE:
      *(tl_dtype*)option->out = element_dtype(text);
      return *(tl_dtype*)option->out != 0;
    case OPTION_FLAG:
      break;
  }
  return 0;
}

static const struct option* find_option(const struct option* options, int count, const char* argument,
                                        int* sizes_seen) {
  int i, sizes = 0;
  for (i = 0; i < count; ++i) {
    if (options[i].kind != OPTION_SIZE && strcmp(options[i].name, argument) == 0) return &options[i];
    if (options[i].kind == OPTION_SIZE && argument[0] != '-' && sizes++ == *sizes_seen) {
      ++*sizes_seen;
      return &options[i];
    }
  }
  return NULL;
}

int options_parse(int argc, char** argv, const struct option* options, int count, const char* about,
                  int* exit_code) {
  int i, sizes_seen = 0;
  for (i = 1; i < argc; ++i) {
    const struct option* option;
    if (strcmp(argv[i], "--help") == 0) {
      print_help(argv[0], options, count, about);
      *exit_code = 0;
      return 0;
    }
    *exit_code = 2;
    option = find_option(options, count, argv[i], &sizes_seen);
    if (option == NULL) {
      fprintf(stderr, "%s: what is '%s'? --help lists the options\n", argv[0], argv[i]);
      return 0;
    }
    if (option->kind == OPTION_FLAG) {
      *(int*)option->out = 1;
    } else if (option->kind != OPTION_SIZE && i + 1 == argc) {
      fprintf(stderr, "%s: %s needs a value (%s)\n", argv[0], option->name, option->help);
      return 0;
    } else if (!parse_value(option, option->kind == OPTION_SIZE ? argv[i] : argv[++i])) {
      fprintf(stderr, "%s: '%s' is no value for %s (%s)\n", argv[0], argv[i], option->name, option->help);
      return 0;
    }
  }
  return 1;
}
