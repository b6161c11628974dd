/* .npy files and elements of the samples: byte-exact files, orders, damage, rounding.   npy_test FOLDER */
#include "npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

static int failures = 0;
static const char* folder;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                 \
  } while (0)

static const char* in_folder(const char* name) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* A file of version `major` with this dictionary and data. */
static const char* make_file(int major, const char* header, const void* data, size_t bytes) {
  const char* path = in_folder("made.npy");
  FILE* file = fopen(path, "wb");
  const size_t length = strlen(header);
  unsigned char start[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 0, 0, 0, 0, 0, 0};
  start[6] = (unsigned char)major;
  start[8] = (unsigned char)length;
  start[9] = (unsigned char)(length >> 8);
  if (file == NULL) exit(2);
  fwrite(start, 1, major == 1 ? 10 : 12, file);
  fwrite(header, 1, length, file);
  fwrite(data, 1, bytes, file);
  fclose(file);
  return path;
}

static void test_versions_and_orders(void) {
  static const float data[6] = {1, 2, 3, 4, 5, 6};
  char message[NPY_MESSAGE_SIZE];
  struct npy_array array;
  int version;
  for (version = 1; version <= 3; ++version) {
    const char* path =
        make_file(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", data, 24);
    CHECK(npy_read(path, &array, message));
    CHECK(array.dtype == TL_F32 && array.rank == 2 && array.shape[0] == 2 && array.shape[1] == 3 &&
          array.count == 6);
    CHECK(memcmp(array.data, data, 24) == 0);
    npy_free(&array);
  }
  CHECK(npy_read(make_file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", data, 24), &array,
                 message));
  CHECK(element_get(TL_F32, array.data, 1) == 3 &&
        element_get(TL_F32, array.data, 3) == 2); /* [[1 3 5] [2 4 6]] */
  npy_free(&array);
  CHECK(npy_read(make_file(1, "{'shape':(),'fortran_order':False,'descr':'<f8'}", data, 8), &array, message));
  CHECK(array.rank == 0 && array.count == 1 && array.dtype == TL_F64);
  npy_free(&array);
  CHECK(npy_read(make_file(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (0, 7), }", data, 0), &array,
                 message));
  CHECK(array.dtype == TL_BF16 && array.count == 0 && array.data != NULL);
  npy_free(&array);
}

static void test_damage(void) {
  static const struct {
    int version;
    const char *header, *message;
    size_t bytes;
  } cases[] = {
      {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "version", 4},
      {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "element type", 4},
      {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "element type", 4},
      {1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", "fortran_order", 4},
      {1, "{'descr': '<f4', 'fortran_order': False}", "lacks", 4},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "shape", 4},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }", "shape", 8},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2", "shape", 8},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "shape", 4},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }", "shorter", 4},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 100000), }", "shorter", 4},
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "shorter", 7}};
  static const char zeros[16] = {0};
  char message[NPY_MESSAGE_SIZE];
  struct npy_array array;
  size_t i;
  FILE* file;
  for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const char* path = make_file(cases[i].version, cases[i].header, zeros, cases[i].bytes);
    message[0] = '\0';
    CHECK(!npy_read(path, &array, message));
    CHECK(array.data == NULL);
    if (strstr(message, cases[i].message) == NULL || strstr(message, path) == NULL) {
      ++failures;
      fprintf(stderr, "%s\n  gave '%s', expected the file's name and '%s'\n", cases[i].header, message,
              cases[i].message);
    }
  }
  CHECK(!npy_read(in_folder("absent.npy"), &array, message));
  file = fopen(in_folder("short.npy"), "wb");
  fwrite("\x93NUMPY\1", 1, 7, file);
  fclose(file);
  CHECK(!npy_read(in_folder("short.npy"), &array, message));
}

static void test_round_trip(void) {
  static const int64_t shape[3] = {3, 1, 5};
  char message[NPY_MESSAGE_SIZE];
  tl_dtype dtype;
  for (dtype = TL_F16; dtype <= TL_BOOL; ++dtype) {
    struct npy_array out, in;
    CHECK(npy_make(&out, dtype, 3, shape));
    element_random(dtype, out.data, out.count, 7 + dtype);
    CHECK(dtype == TL_BF16 || element_dtype(tl_dtype_name(dtype)) == dtype);
    CHECK(npy_write(in_folder("trip.npy"), &out, message));
    CHECK(npy_read(in_folder("trip.npy"), &in, message));
    CHECK(in.dtype == dtype && in.rank == 3 && memcmp(in.shape, shape, sizeof shape) == 0);
    CHECK(memcmp(in.data, out.data, out.count * element_bytes(dtype)) == 0);
    npy_free(&in);
    npy_free(&out);
  }
}

static uint16_t rounded(tl_dtype dtype, double value) {
  uint16_t bits;
  element_set(dtype, &bits, 0, value);
  return bits;
}

static void test_half_floats(void) {
  const tl_dtype types[2] = {TL_F16, TL_BF16};
  uint32_t bits;
  int t;
  for (t = 0; t < 2; ++t)
    for (bits = 0; bits < 65536; ++bits) {
      const uint16_t stored = (uint16_t)bits;
      const double value = element_get(types[t], &stored, 0);
      if (!isnan(value) && rounded(types[t], value) != stored) ++failures;
    }
  CHECK(rounded(TL_F16, 1 + ldexp(1, -11)) == 0x3c00); /* ties go to even */
  CHECK(rounded(TL_F16, 1 + 3 * ldexp(1, -11)) == 0x3c02);
  CHECK(rounded(TL_F16, 65519.99) == 0x7bff && rounded(TL_F16, 65520) == 0x7c00 &&
        rounded(TL_F16, -1e300) == 0xfc00);
  CHECK(rounded(TL_F16, ldexp(1, -25)) == 0 && rounded(TL_F16, ldexp(1.001, -25)) == 1);
  CHECK(rounded(TL_F16, ldexp(2047, -25)) == 0x0400); /* the largest subnormal rounds up to a normal number */
  CHECK(rounded(TL_BF16, 1 + ldexp(1, -8)) == 0x3f80 && rounded(TL_BF16, 1 + 3 * ldexp(1, -8)) == 0x3f82);
  CHECK(rounded(TL_BF16, 1 + ldexp(1, -8) + ldexp(1, -40)) == 0x3f81); /* no double rounding through f32 */
  CHECK(rounded(TL_BF16, 3.4e38) == 0x7f80 && isnan(element_get(TL_BF16, (const uint16_t[]){0x7fc1}, 0)));
}

int main(int argc, char** argv) {
  folder = argc > 1 ? argv[1] : ".";
  test_versions_and_orders();
  test_damage();
  test_round_trip();
  test_half_floats();
  if (failures == 0) printf("all right\n");
  return failures != 0;
}
