// Packed types: what every code is worth, what casts make of values, and where codes lie in bytes.

#include "ir/packed_types.h"

#include <cmath>
#include <limits>

#include "run_text.h"

namespace tilegen::interp {
namespace {

using ir::DType;

constexpr DType kPacked[] = {DType::i4, DType::u4, DType::i2, DType::u2, DType::e2m1, DType::e8m0};
constexpr double kE2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

double worth(DType t, int code) {
  switch (t) {
    case DType::i4:
      return code < 8 ? code : code - 16;
    case DType::i2:
      return code < 2 ? code : code - 4;
    case DType::e2m1:
      return code < 8 ? kE2m1[code] : -kE2m1[code - 8];
    case DType::e8m0:
      return code == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
    default:
      return code;
  }
}

bool same(double a, double b) { return a == b || (a != a && b != b); }

// A byte for each two elements, or four, or one: every byte that there is, all of its elements.
TEST(PackedTypes, EveryCode) {
  for (DType t : kPacked) {
    const int bits = ir::dtype_bits(t), in_byte = 8 / bits, n = 256 * in_byte;
    Tensor x(DType::u8, 256), y(DType::f32, static_cast<size_t>(n)), z(DType::f32, static_cast<size_t>(n));
    for (size_t i = 0; i < 256; ++i) x.set(i, static_cast<double>(i));
    const std::string type = ir::dtype_name(t), count = std::to_string(n);
    run_text("tl 1 program p tensor X: " + type + "[1, " + count + "] readonly tensor Y: f32[" + count +
                 "] tensor Z: f32[" + count + "] kernel k grid(b: 1) { alloc s: shared " + type + "[1, " +
                 count + "] alloc f: fragment " + type + "[" + count +
                 "] copy X -> s copy s -> f parallel i in " + count +
                 " { Y[i] = cast(f32, s[0, i]) Z[i] = cast(f32, f[i]) } }",
             {x.slot(), y.slot(), z.slot()});
    for (int i = 0; i < n; ++i) {
      const int code = (i / in_byte >> i % in_byte * bits) & ((1 << bits) - 1);
      EXPECT_TRUE(same(y.at(static_cast<size_t>(i)), worth(t, code))) << type << " " << code;
      EXPECT_TRUE(same(z.at(static_cast<size_t>(i)), worth(t, code))) << type << " " << code;
      EXPECT_TRUE(same(worth(t, code), ir::is_float(t) ? ir::float_from_bits(t, static_cast<uint64_t>(code))
                                                       : static_cast<double>(ir::wrap_to(t, code))))
          << type << " " << code;
    }
  }
}

// The nearest value by search; of two the even code.
int nearest_e2m1(double x) {
  const double size = x != x ? 6 : std::min(std::fabs(x), 6.0);
  int best = 0;
  for (int code = 1; code < 8; ++code) {
    const double was = std::fabs(kE2m1[best] - size), is = std::fabs(kE2m1[code] - size);
    if (is < was || (is == was && code % 2 == 0)) best = code;
  }
  return best + (x == x && std::signbit(x) ? 8 : 0);
}

int cast_to(DType t, double x) {
  const double inf = std::numeric_limits<double>::infinity();
  if (t == DType::e2m1) return nearest_e2m1(x);
  if (t == DType::e8m0) {
    if (!(x >= 0) || std::signbit(x) || x == inf) return 255;
    int code = 0;
    while (code < 254 && x >= 1.5 * std::ldexp(1.0, code - 127)) ++code;
    return code;
  }
  const bool is_signed = ir::dtype_kind(t) == ir::DTypeKind::signed_int;
  const int bits = ir::dtype_bits(t), end = 1 << (is_signed ? bits - 1 : bits);
  const double whole = x != x ? 0 : std::trunc(std::clamp(x, is_signed ? -1.0 * end : 0.0, end - 1.0));
  return static_cast<int>(whole) & ((1 << bits) - 1);
}

TEST(PackedTypes, Casts) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {inf,   -inf,  inf - inf, -0.0,  1e30,   -1e30,
                                1e-30, 3e-39, 5e-39,     1e-45, 2.6e38, -1e-30};
  for (int i = -36; i <= 36; ++i) values.push_back(i * 0.25), values.push_back(i * 0.25 + 0.03125);
  while (values.size() % 4 != 0) values.push_back(7);
  const std::string n = std::to_string(values.size());
  for (DType t : kPacked)
    for (DType from : {DType::f32, DType::f64, DType::f16, DType::i32}) {
      const std::string type = ir::dtype_name(t);
      const size_t in_byte = static_cast<size_t>(8 / ir::dtype_bits(t));
      Tensor x(from, values.size()), y(DType::u8, values.size() / in_byte, 0xaa);
      for (size_t i = 0; i < values.size(); ++i)
        x.set(i,
              from == DType::i32 ? std::trunc(std::fabs(values[i]) < 100 ? values[i] * 3 : 77) : values[i]);
      run_text("tl 1 program p tensor X: " + std::string(ir::dtype_name(from)) + "[" + n +
                   "] tensor Y: " + type + "[" + n + "] kernel k grid(b: 1) { parallel i in " + n +
                   " { Y[i] = cast(" + type + ", X[i]) } }",
               {x.slot(), y.slot()});
      for (size_t i = 0; i < values.size(); ++i) {
        const int bits = ir::dtype_bits(t), mask = (1 << bits) - 1;
        const int got =
            static_cast<int>(y.at(i / in_byte)) >> (i % in_byte * static_cast<size_t>(bits)) & mask;
        const int want =
            from == DType::i32 && !ir::is_float(t) ? static_cast<int>(x.at(i)) & mask : cast_to(t, x.at(i));
        EXPECT_EQ(got, want) << type << " of " << x.at(i) << ", a " << ir::dtype_name(from);
        if (ir::is_float(t)) {
          EXPECT_EQ(ir::float_to_bits(t, x.at(i)), static_cast<uint64_t>(want)) << type;
        }
      }
    }
}

// Bytes move whole, and where elements are written they keep those beside them.
TEST(PackedTypes, WritesGiveWholeBytes) {
  Tensor x(DType::u8, 4 * 8), y(DType::u8, 4 * 8, 0xee), z(DType::u8, 8 * 4, 0xee), w(DType::u8, 4 * 8, 0xee);
  for (size_t i = 0; i < 32; ++i) x.set(i, static_cast<double>((i * 37 + 11) % 256));
  run_text(
      "tl 1 program p dim n divisible 8 tensor X: u4[4, n] readonly tensor Y: i4[4, n] tensor Z: u4[n // 2, "
      "8] "
      "tensor W: u4[4, n] kernel k grid(b: 1) { alloc s: shared u4[4, 16] alloc t: shared u4[2, 8, 8] "
      "view r = reshape(t, [16, 8]) view f = reshape(t, [128]) fill W[0 :+ 4, 0 :+ 16], 0 "
      "fill t, cast(u4, 5) copy X[0 :+ 4, 0 :+ 16] -> s "
      "parallel i, j in 4, 16 { if i > 0 { Y[i, j] = bitcast(i4, cast(u4, 15 - cast(i32, s[i, j]))) } } "
      "parallel p in 64 { f[p] = s[p // 16, p % 16] } copy r[0 :+ 8, 0 :+ 8] -> Z[0 :+ 8, 0 :+ 8] "
      "copy X[0 :+ 4, 3 :+ 8] -> W[0 :+ 4, 4 :+ 8] }",
      {16, x.slot(), y.slot(), z.slot(), w.slot()});
  const auto code = [](const Tensor& t, size_t at) {
    return static_cast<int>(t.at(at / 2)) >> at % 2 * 4 & 15;
  };
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 16; ++j) {
      EXPECT_EQ(code(y, i * 16 + j), i > 0 ? 15 - code(x, i * 16 + j) : 14);
      EXPECT_EQ(code(z, i * 16 + j), code(x, i * 16 + j));
      EXPECT_EQ(code(w, i * 16 + j), j >= 4 && j < 12 ? code(x, i * 16 + j - 1) : 0);
    }
}

}  // namespace
}  // namespace tilegen::interp
