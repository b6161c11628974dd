/* tilelang_expressions.h: macros for expressions of tile programs, above tilelang.h. C99.
 *
 *   tl_store(builder, acc, TLE_LIST(i, j), TLE_MAX(TLE_ADD(TLE_AT(acc, i, j), TLE_AT(bias, j)), TLE_F32(0)));
 *   tl_copy(builder, TLE_BOX(A, TLE_RANGE(TLE_MUL(by, TLE_I64(128)), 128), TLE_RANGE(k, 32)),
 *           tl_whole(builder, As));
 *
 * Each is one call of tilelang.h with the builder that the scope names `builder`; another name is what
 * TLE_BUILDER is defined as. TLE_NAME(a, ...) is operation TL_NAME of tl_unary, tl_binary or tl_ternary.
 */
#ifndef TILELANG_EXPRESSIONS_H
#define TILELANG_EXPRESSIONS_H

#include "tilelang.h"

#ifndef TLE_BUILDER
#define TLE_BUILDER builder
#endif

/* Literals; TLE_I64 is what indices, extents and offsets are made of. */
#define TLE_INT(type, value) tl_const_i64(TLE_BUILDER, (type), (value))
#define TLE_FLOAT(type, value) tl_const_f64(TLE_BUILDER, (type), (value))
#define TLE_I32(value) TLE_INT(TL_I32, value)
#define TLE_U32(value) TLE_INT(TL_U32, value)
#define TLE_I64(value) TLE_INT(TL_I64, value)
#define TLE_F16(value) TLE_FLOAT(TL_F16, value)
#define TLE_F32(value) TLE_FLOAT(TL_F32, value)
#define TLE_F64(value) TLE_FLOAT(TL_F64, value)

/* A number of expressions, or of constants, and these: two arguments of a call. */
#define TLE_LIST(...) \
  (uint32_t)(sizeof((const tl_expr[]){__VA_ARGS__}) / sizeof(tl_expr)), (const tl_expr[]) { __VA_ARGS__ }
#define TLE_EXTENTS(...) \
  (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

/* One element: TLE_AT(A, i, j). */
#define TLE_AT(buffer, ...) tl_load(TLE_BUILDER, (buffer), TLE_LIST(__VA_ARGS__))

/* A box: TLE_BOX(A, TLE_RANGE(row, 64), TLE_ONE(column)). */
typedef struct tle_range {
  tl_expr offset;
  int64_t extent;
} tle_range;
enum { TLE_MOST_RANGES = 16 };
static inline tl_region tle_box(tl_builder* b, tl_buffer buffer, uint32_t rank, const tle_range* ranges) {
  tl_expr offsets[TLE_MOST_RANGES];
  int64_t extents[TLE_MOST_RANGES];
  uint32_t d;
  for (d = 0; d < rank && d < TLE_MOST_RANGES; ++d) {
    offsets[d] = ranges[d].offset;
    extents[d] = ranges[d].extent;
  }
  return tl_region_of(b, buffer, rank, offsets, extents);
}
static inline tle_range tle_range_of(tl_expr offset, int64_t extent) {
  tle_range r;
  r.offset = offset;
  r.extent = extent;
  return r;
}
#define TLE_RANGE(offset, extent) tle_range_of((offset), (extent))
#define TLE_ONE(index) tle_range_of((index), 1)
#define TLE_BOX(buffer, ...)                                                                               \
  tle_box(TLE_BUILDER, (buffer), (uint32_t)(sizeof((const tle_range[]){__VA_ARGS__}) / sizeof(tle_range)), \
          (const tle_range[]){__VA_ARGS__})

/* Choices, conversions, calls of functions. */
#define TLE_SELECT(condition, a, b) tl_select(TLE_BUILDER, (condition), (a), (b))
#define TLE_CAST(type, a) tl_cast(TLE_BUILDER, (type), (a))
#define TLE_CAST_BY(type, a, mode) tl_cast_by(TLE_BUILDER, (type), (a), (mode))
#define TLE_BITCAST(type, a) tl_bitcast(TLE_BUILDER, (type), (a))
#define TLE_UNIFORM(word) tl_uniform(TLE_BUILDER, (word))
#define TLE_CALL(function, ...) tl_call(TLE_BUILDER, (function), TLE_LIST(__VA_ARGS__), 0)
#define TLE_CEILDIV(a, b) TLE_FLOORDIV(TLE_ADD(a, TLE_SUB(b, TLE_I64(1))), b)

/* Operations. */
#define TLE_NEG(a) tl_unary(TLE_BUILDER, TL_NEG, (a))
#define TLE_ABS(a) tl_unary(TLE_BUILDER, TL_ABS, (a))
#define TLE_EXP(a) tl_unary(TLE_BUILDER, TL_EXP, (a))
#define TLE_EXP2(a) tl_unary(TLE_BUILDER, TL_EXP2, (a))
#define TLE_LOG(a) tl_unary(TLE_BUILDER, TL_LOG, (a))
#define TLE_LOG2(a) tl_unary(TLE_BUILDER, TL_LOG2, (a))
#define TLE_SQRT(a) tl_unary(TLE_BUILDER, TL_SQRT, (a))
#define TLE_RSQRT(a) tl_unary(TLE_BUILDER, TL_RSQRT, (a))
#define TLE_TANH(a) tl_unary(TLE_BUILDER, TL_TANH, (a))
#define TLE_ERF(a) tl_unary(TLE_BUILDER, TL_ERF, (a))
#define TLE_SIGMOID(a) tl_unary(TLE_BUILDER, TL_SIGMOID, (a))
#define TLE_FLOOR(a) tl_unary(TLE_BUILDER, TL_FLOOR, (a))
#define TLE_CEIL(a) tl_unary(TLE_BUILDER, TL_CEIL, (a))
#define TLE_NOT(a) tl_unary(TLE_BUILDER, TL_NOT, (a))
#define TLE_BIT_NOT(a) tl_unary(TLE_BUILDER, TL_BIT_NOT, (a))
#define TLE_SIN(a) tl_unary(TLE_BUILDER, TL_SIN, (a))
#define TLE_COS(a) tl_unary(TLE_BUILDER, TL_COS, (a))
#define TLE_TAN(a) tl_unary(TLE_BUILDER, TL_TAN, (a))
#define TLE_ASIN(a) tl_unary(TLE_BUILDER, TL_ASIN, (a))
#define TLE_ACOS(a) tl_unary(TLE_BUILDER, TL_ACOS, (a))
#define TLE_ATAN(a) tl_unary(TLE_BUILDER, TL_ATAN, (a))
#define TLE_EXP10(a) tl_unary(TLE_BUILDER, TL_EXP10, (a))
#define TLE_EXPM1(a) tl_unary(TLE_BUILDER, TL_EXPM1, (a))
#define TLE_LOG1P(a) tl_unary(TLE_BUILDER, TL_LOG1P, (a))
#define TLE_CBRT(a) tl_unary(TLE_BUILDER, TL_CBRT, (a))
#define TLE_ERFC(a) tl_unary(TLE_BUILDER, TL_ERFC, (a))
#define TLE_ROUND(a) tl_unary(TLE_BUILDER, TL_ROUND, (a))
#define TLE_RINT(a) tl_unary(TLE_BUILDER, TL_RINT, (a))
#define TLE_TRUNC(a) tl_unary(TLE_BUILDER, TL_TRUNC, (a))
#define TLE_ISNAN(a) tl_unary(TLE_BUILDER, TL_ISNAN, (a))
#define TLE_ISINF(a) tl_unary(TLE_BUILDER, TL_ISINF, (a))
#define TLE_POPCOUNT(a) tl_unary(TLE_BUILDER, TL_POPCOUNT, (a))
#define TLE_CLZ(a) tl_unary(TLE_BUILDER, TL_CLZ, (a))
#define TLE_CTZ(a) tl_unary(TLE_BUILDER, TL_CTZ, (a))

#define TLE_ADD(a, b) tl_binary(TLE_BUILDER, TL_ADD, (a), (b))
#define TLE_SUB(a, b) tl_binary(TLE_BUILDER, TL_SUB, (a), (b))
#define TLE_MUL(a, b) tl_binary(TLE_BUILDER, TL_MUL, (a), (b))
#define TLE_DIV(a, b) tl_binary(TLE_BUILDER, TL_DIV, (a), (b))
#define TLE_FLOORDIV(a, b) tl_binary(TLE_BUILDER, TL_FLOORDIV, (a), (b))
#define TLE_FLOORMOD(a, b) tl_binary(TLE_BUILDER, TL_FLOORMOD, (a), (b))
#define TLE_MIN(a, b) tl_binary(TLE_BUILDER, TL_MIN, (a), (b))
#define TLE_MAX(a, b) tl_binary(TLE_BUILDER, TL_MAX, (a), (b))
#define TLE_LT(a, b) tl_binary(TLE_BUILDER, TL_LT, (a), (b))
#define TLE_LE(a, b) tl_binary(TLE_BUILDER, TL_LE, (a), (b))
#define TLE_EQ(a, b) tl_binary(TLE_BUILDER, TL_EQ, (a), (b))
#define TLE_NE(a, b) tl_binary(TLE_BUILDER, TL_NE, (a), (b))
#define TLE_AND(a, b) tl_binary(TLE_BUILDER, TL_AND, (a), (b))
#define TLE_OR(a, b) tl_binary(TLE_BUILDER, TL_OR, (a), (b))
#define TLE_BIT_AND(a, b) tl_binary(TLE_BUILDER, TL_BIT_AND, (a), (b))
#define TLE_BIT_OR(a, b) tl_binary(TLE_BUILDER, TL_BIT_OR, (a), (b))
#define TLE_BIT_XOR(a, b) tl_binary(TLE_BUILDER, TL_BIT_XOR, (a), (b))
#define TLE_SHL(a, b) tl_binary(TLE_BUILDER, TL_SHL, (a), (b))
#define TLE_SHR(a, b) tl_binary(TLE_BUILDER, TL_SHR, (a), (b))
#define TLE_GT(a, b) tl_binary(TLE_BUILDER, TL_GT, (a), (b))
#define TLE_GE(a, b) tl_binary(TLE_BUILDER, TL_GE, (a), (b))
#define TLE_POW(a, b) tl_binary(TLE_BUILDER, TL_POW, (a), (b))
#define TLE_ATAN2(a, b) tl_binary(TLE_BUILDER, TL_ATAN2, (a), (b))
#define TLE_FMOD(a, b) tl_binary(TLE_BUILDER, TL_FMOD, (a), (b))
#define TLE_COPYSIGN(a, b) tl_binary(TLE_BUILDER, TL_COPYSIGN, (a), (b))
#define TLE_MULHI(a, b) tl_binary(TLE_BUILDER, TL_MULHI, (a), (b))

#define TLE_FMA(a, b, c) tl_ternary(TLE_BUILDER, TL_FMA, (a), (b), (c))
#define TLE_PHILOX(a, b, c) tl_ternary(TLE_BUILDER, TL_PHILOX, (a), (b), (c))

#endif /* TILELANG_EXPRESSIONS_H */
