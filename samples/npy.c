#include "npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

#define MAX_HEADER 65536
static const unsigned char kMagic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

static const struct {
  const char* descr;
  tl_dtype dtype;
} kTypes[] = {{"<f2", TL_F16}, {"<f4", TL_F32},  {"<f8", TL_F64},  {"|i1", TL_I8},  {"|u1", TL_U8},
              {"<i4", TL_I32}, {"<i8", TL_I64},  {"|b1", TL_BOOL}, {"<i2", TL_I16}, {"<u4", TL_U32},
              {"<u8", TL_U64}, {"<u2", TL_BF16}, {"|V2", TL_BF16}, {"<V2", TL_BF16}};

static int fail(char* message, const char* path, const char* why) {
  snprintf(message, NPY_MESSAGE_SIZE, "%s: %s", path, why);
  return 0;
}

static int count_elements(int rank, const int64_t* shape, size_t* out) {
  size_t count = 1;
  int i;
  for (i = 0; i < rank; ++i) {
    if (shape[i] < 0 || (shape[i] > 0 && count > ((size_t)1 << 46) / (size_t)shape[i])) return 0;
    count *= (size_t)shape[i];
  }
  *out = count;
  return 1;
}

int npy_make(struct npy_array* out, tl_dtype dtype, int rank, const int64_t* shape) {
  memset(out, 0, sizeof *out);
  if (rank < 0 || rank > NPY_MAX_RANK || !count_elements(rank, shape, &out->count)) return 0;
  out->dtype = dtype;
  out->rank = rank;
  memcpy(out->shape, shape, (size_t)rank * sizeof *shape);
  out->data = element_alloc(dtype, out->count);
  return out->data != NULL;
}

void npy_free(struct npy_array* array) {
  free(array->data);
  memset(array, 0, sizeof *array);
}

/* ---------------------------------------------------------------------------------------------- the header
 * -- */

static const char* skip_spaces(const char* p) {
  while (*p == ' ' || *p == '\t' || *p == '\n') ++p;
  return p;
}

/* The text after 'key': in the dictionary, or NULL. */
static const char* find_key(const char* header, const char* key) {
  const size_t length = strlen(key);
  const char* p;
  for (p = strchr(header, '\''); p != NULL; p = strchr(p + 1, '\'')) {
    if (strncmp(p + 1, key, length) == 0 && p[1 + length] == '\'') {
      p = skip_spaces(p + length + 2);
      return *p == ':' ? skip_spaces(p + 1) : NULL;
    }
  }
  return NULL;
}

static int parse_shape(const char* p, struct npy_array* out) {
  if (*p++ != '(') return 0;
  for (p = skip_spaces(p); *p != ')'; p = skip_spaces(p)) {
    char* end;
    if (*p < '0' || *p > '9' || out->rank == NPY_MAX_RANK) return 0;
    errno = 0;
    out->shape[out->rank++] = (int64_t)strtoll(p, &end, 10);
    if (errno != 0) return 0;
    p = skip_spaces(end);
    if (*p == ',')
      ++p;
    else if (*p != ')')
      return 0;
  }
  return 1;
}

static int parse_header(const char* path, const char* header, struct npy_array* out, int* fortran,
                        char* message) {
  const char* descr = find_key(header, "descr");
  const char* order = find_key(header, "fortran_order");
  const char* shape = find_key(header, "shape");
  size_t i;
  if (descr == NULL || order == NULL || shape == NULL)
    return fail(message, path, "the .npy header lacks descr, fortran_order or shape");
  for (i = 0; i < sizeof kTypes / sizeof *kTypes; ++i)
    if (*descr == '\'' && strncmp(descr + 1, kTypes[i].descr, 3) == 0 && descr[4] == '\'')
      out->dtype = kTypes[i].dtype;
  if (out->dtype == 0) {
    snprintf(
        message, NPY_MESSAGE_SIZE,
        "%s: element type %.12s is not supported; little-endian f2 f4 f8 i1 u1 i4 i8 b1 are, and u2 as bf16",
        path, descr);
    return 0;
  }
  if (strncmp(order, "True", 4) != 0 && strncmp(order, "False", 5) != 0)
    return fail(message, path, "fortran_order in the .npy header is neither True nor False");
  *fortran = *order == 'T';
  if (!parse_shape(shape, out))
    return fail(message, path, "the shape in the .npy header is malformed or has over 8 dimensions");
  return 1;
}

/* Reads magic, version and dictionary; the file then stands at the data. */
static int read_header(FILE* file, const char* path, struct npy_array* out, int* fortran, char* message) {
  unsigned char start[12];
  size_t length, prefix;
  char* header;
  int ok;
  if (fread(start, 1, 8, file) != 8 || memcmp(start, kMagic, sizeof kMagic) != 0)
    return fail(message, path, "not a .npy file");
  if (start[6] < 1 || start[6] > 3) return fail(message, path, "a .npy version other than 1, 2 and 3");
  prefix = start[6] == 1 ? 2 : 4;
  if (fread(start + 8, 1, prefix, file) != prefix) return fail(message, path, "the .npy header is cut off");
  length = start[8] | (size_t)start[9] << 8;
  if (prefix == 4) length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  if (length > MAX_HEADER) return fail(message, path, "the .npy header is longer than 65536 bytes");
  header = calloc(length + 1, 1);
  if (header == NULL) return fail(message, path, "no memory for the header");
  ok = fread(header, 1, length, file) == length ? parse_header(path, header, out, fortran, message)
                                                : fail(message, path, "the .npy header is cut off");
  free(header);
  return ok;
}

/* ---------------------------------------------------------------------------------------------- the data --
 */

static int to_c_order(struct npy_array* array) {
  const size_t bytes = element_bytes(array->dtype);
  char* turned = element_alloc(array->dtype, array->count);
  int64_t index[NPY_MAX_RANK] = {0};
  size_t source, target;
  int d;
  if (turned == NULL) return 0;
  for (source = 0; source < array->count; ++source) { /* the first index runs fastest in the file */
    for (target = 0, d = 0; d < array->rank; ++d)
      target = target * (size_t)array->shape[d] + (size_t)index[d];
    memcpy(turned + target * bytes, (char*)array->data + source * bytes, bytes);
    for (d = 0; d < array->rank && ++index[d] == array->shape[d]; ++d) index[d] = 0;
  }
  free(array->data);
  array->data = turned;
  return 1;
}

/* Before memory is asked for: a header may claim any size. Pipes cannot be measured and are read as they
 * come. */
static int data_is_there(FILE* file, const struct npy_array* header) {
  size_t count;
  long here, end;
  if (!count_elements(header->rank, header->shape, &count)) return 0;
  here = ftell(file);
  if (here < 0 || fseek(file, 0, SEEK_END) != 0) return 1;
  end = ftell(file);
  return fseek(file, here, SEEK_SET) == 0 && (size_t)(end - here) / element_bytes(header->dtype) >= count;
}

int npy_read(const char* path, struct npy_array* out, char message[NPY_MESSAGE_SIZE]) {
  FILE* file = fopen(path, "rb");
  struct npy_array header;
  int fortran = 0, ok;
  memset(out, 0, sizeof *out);
  memset(&header, 0, sizeof header);
  if (file == NULL) return fail(message, path, strerror(errno));
  ok = read_header(file, path, &header, &fortran, message);
  if (ok && !data_is_there(file, &header))
    ok = fail(message, path, "the file is shorter than its header says");
  if (ok && !npy_make(out, header.dtype, header.rank, header.shape))
    ok = fail(message, path, "the array is too large for the memory of this machine");
  if (ok && fread(out->data, element_bytes(out->dtype), out->count, file) != out->count)
    ok = fail(message, path, "the file is shorter than its header says");
  if (ok && fortran && out->rank > 1 && !to_c_order(out))
    ok = fail(message, path, "no memory to turn Fortran order");
  fclose(file);
  if (!ok) npy_free(out);
  return ok;
}

int npy_write(const char* path, const struct npy_array* array, char message[NPY_MESSAGE_SIZE]) {
  char header[512];
  unsigned char start[10];
  const char* descr = NULL;
  FILE* file;
  size_t i, length, padded;
  int ok, d;
  for (i = 0; i < sizeof kTypes / sizeof *kTypes && descr == NULL; ++i)
    if (kTypes[i].dtype == array->dtype) descr = kTypes[i].descr;
  if (descr == NULL) return fail(message, path, "an element type that .npy cannot hold");
  length = (size_t)sprintf(header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (d = 0; d < array->rank; ++d)
    length += (size_t)sprintf(header + length, "%lld, ", (long long)array->shape[d]);
  length += (size_t)sprintf(header + length, "), }");
  padded = (sizeof start + length + 1 + 63) / 64 * 64 - sizeof start; /* data begins at a multiple of 64 */
  memset(header + length, ' ', padded - length);
  header[padded - 1] = '\n';
  memcpy(start, kMagic, sizeof kMagic);
  start[6] = 1;
  start[7] = 0;
  start[8] = (unsigned char)(padded & 255);
  start[9] = (unsigned char)(padded >> 8);
  file = fopen(path, "wb");
  if (file == NULL) return fail(message, path, strerror(errno));
  ok = fwrite(start, 1, sizeof start, file) == sizeof start && fwrite(header, 1, padded, file) == padded &&
       fwrite(array->data, element_bytes(array->dtype), array->count, file) == array->count;
  if (fclose(file) != 0) ok = 0;
  return ok ? 1 : fail(message, path, "could not be written in full");
}
