// Matrix products (MFMA, SMFMAC): all lanes take part, whatever EXEC says.
//
// D[m x n] = A[m x k] * B[k x n] + C for each of several blocks. Lane l has row, or column, l % m of block
// l / m % blocks, and as many k as its registers hold, from those of its group l / (m * blocks) on. Sparse:
// of A a lane has two values of each four k, and their places in its register of indices; D is added to.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <memory>

#include "vector_operands.h"

namespace tilegen::amdemu {

namespace {

enum Element : uint32_t { kF16, kBf16, kF32, kI8, kFp8, kBf8, kXf32, kF64 };
enum Sum : uint32_t { kSumF32, kSumI32, kSumF64 };

struct MatrixForm {
  int m, n, k, blocks, lane_k;
  Element a, b;
  Sum d;

  explicit MatrixForm(const Instruction& in)
      : m(static_cast<int>(in.matrix[0])),
        n(static_cast<int>(in.matrix[1])),
        k(static_cast<int>(in.matrix[2])),
        blocks(static_cast<int>(in.matrix[3])),
        lane_k(static_cast<int>(in.matrix[4])),
        a(static_cast<Element>(in.matrix[5])),
        b(static_cast<Element>(in.matrix[6])),
        d(static_cast<Sum>(in.matrix[7])) {}
  int kept() const { return m * n * blocks / kLanes; }  // elements of D of a lane
};

// Element `e` of a lane's registers from `first` on.
double element_of(const Wave& w, int first, int lane, int e, Element type) {
  const auto word = [&](int r) { return w.vectors[(first + r) * kLanes + lane]; };
  switch (type) {
    case kF16:
      return half_to_float(static_cast<uint16_t>(word(e / 2) >> (16 * (e & 1))));
    case kBf16:
      return bf16_to_float(static_cast<uint16_t>(word(e / 2) >> (16 * (e & 1))));
    case kF32:
      return std::bit_cast<float>(word(e));
    case kXf32: {  // rounded to 10 bits of mantissa
      const uint32_t x = word(e);
      return std::bit_cast<float>((x + 0xfff + (x >> 13 & 1)) & 0xffffe000u);
    }
    case kI8:
      return static_cast<int8_t>(word(e / 4) >> (8 * (e & 3)));
    case kFp8:
    case kBf8:
      return fp8_to_float(static_cast<uint8_t>(word(e / 4) >> (8 * (e & 3))), type == kBf8);
    case kF64:
      break;
  }
  return std::bit_cast<double>(word(2 * e) | static_cast<uint64_t>(word(2 * e + 1)) << 32);
}

// Place of the r-th element of D of a lane, in m x n matrices after each other.
size_t place_of(const MatrixForm& f, int r, int l) {
  int block = 0, row = 0, column = l % f.m;
  if (f.d == kSumF64) {
    if (f.m == 16)
      row = 4 * r + l / 16;
    else
      block = l / 4 % 4, row = l / 16, column = l % 4;
  } else if (f.m == 32) {
    const int q = r % 16;
    block = r / 16, row = 8 * (q / 4) + 4 * (l / 32) + q % 4;
  } else if (f.m == 16) {
    block = r / 4, row = 4 * (l / 16) + r % 4;
  } else {
    block = l / 4, row = r;
  }
  return static_cast<size_t>((block * f.m + row) * f.n + column);
}

// The lane whose elements of B a lane takes, as the modifier says.
int lane_of_b(const Instruction& in, int l) {
  switch (in.blgp) {
    case 0:
      return l;
    case 1:
      return l & 31;
    case 2:
      return (l & 31) + 32;
    case 3:
      return (l + 16) & 63;
    default:
      return (l & 15) + 16 * (in.blgp - 4);
  }
}

struct Matrices {
  std::array<double, 4 * 64 * 64> a, b, c;
};

bool flushes(const Wave& w, const MatrixForm& f) {
  return w.machine->gfx90a && (f.a == kF16 || f.a == kBf16);
}

void gather_operands(const Wave& w, const Instruction& in, const MatrixForm& f, Matrices& all) {
  const double least = f.a == kF16 ? 0x1p-14 : 0x1p-126;
  const auto flushed = [&](double x) { return flushes(w, f) && std::fabs(x) < least ? 0 : x; };
  const bool negate = f.d == kSumF64;
  for (int l = 0; l < kLanes; ++l) {
    const int line = l % f.m, block = l / f.m % f.blocks, group = l / (f.m * f.blocks);
    const int from = negate ? l : lane_of_b(in, l);
    for (int e = 0; e < f.lane_k; ++e) {
      const int k = group * f.lane_k + e;
      const double x = flushed(element_of(w, in.operands[1].first, l, e, f.a));
      const double y = flushed(element_of(w, in.operands[2].first, from, e, f.b));
      all.a[static_cast<size_t>((block * f.m + line) * f.k + k)] = negate && (in.neg_lo & 1) ? -x : x;
      all.b[static_cast<size_t>((block * f.k + k) * f.n + line)] = negate && (in.neg_lo & 2) ? -y : y;
    }
  }
}

double constant_sum(const Operand& c, Sum type) {
  if (c.is_float) return c.real;
  if (type == kSumI32) return static_cast<double>(c.value);
  if (type == kSumF64) return std::bit_cast<double>(static_cast<uint64_t>(c.value));
  return std::bit_cast<float>(static_cast<uint32_t>(c.value));
}

void gather_sums(const Wave& w, const Instruction& in, const MatrixForm& f, const Operand& c, Matrices& all) {
  if (c.kind != OperandKind::immediate && c.kind != OperandKind::vector)
    fail("a matrix sum: %s", in.text.c_str());
  for (int r = 0; r < f.kept(); ++r)
    for (int l = 0; l < kLanes; ++l) {
      double v = 0;
      if (c.kind == OperandKind::immediate)
        v = constant_sum(c, f.d);
      else if (f.d == kSumI32)
        v = static_cast<int32_t>(w.vectors[(c.first + r) * kLanes + l]);
      else
        v = element_of(w, c.first, l, r, f.d == kSumF64 ? kF64 : kF32);
      all.c[place_of(f, r, l)] = f.d == kSumF64 && (in.neg_lo & 4) ? -v : v;
    }
}

// f32 and f64: a chain of fused multiply-adds. Others: exact products, and one rounding of the sum.
void multiply(const Instruction& in, const MatrixForm& f, Matrices& all) {
  for (int block = 0; block < f.blocks; ++block) {
    const int block_a = in.cbsz ? (block & ~((1 << in.cbsz) - 1)) + in.abid : block;
    for (int i = 0; i < f.m; ++i)
      for (int j = 0; j < f.n; ++j) {
        double& sum = all.c[static_cast<size_t>((block * f.m + i) * f.n + j)];
        for (int k = 0; k < f.k; ++k) {
          const double x = all.a[static_cast<size_t>((block_a * f.m + i) * f.k + k)];
          const double y = all.b[static_cast<size_t>((block * f.k + k) * f.n + j)];
          if (f.a == kF32)
            sum = std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(sum));
          else if (f.a == kF64)
            sum = std::fma(x, y, sum);
          else
            sum += x * y;
        }
      }
  }
}

void scatter_sums(Wave& w, const Instruction& in, const MatrixForm& f, const Matrices& all) {
  const int first = in.operands[0].first;
  for (int r = 0; r < f.kept(); ++r)
    for (int l = 0; l < kLanes; ++l) {
      const double v = all.c[place_of(f, r, l)];
      if (f.d == kSumF64) {
        const auto bits = std::bit_cast<uint64_t>(v);
        w.vectors[(first + 2 * r) * kLanes + l] = static_cast<uint32_t>(bits);
        w.vectors[(first + 2 * r + 1) * kLanes + l] = static_cast<uint32_t>(bits >> 32);
      } else if (f.d == kSumI32) {
        w.vectors[(first + r) * kLanes + l] = static_cast<uint32_t>(static_cast<int64_t>(v));
      } else {
        const auto rounded = static_cast<float>(v);
        const bool flushed = flushes(w, f) && std::fabs(rounded) < 0x1p-126f;
        w.vectors[(first + r) * kLanes + l] = std::bit_cast<uint32_t>(flushed ? 0.f : rounded);
      }
    }
  for (int i = 0; i < in.operands[0].registers; ++i) w.written[static_cast<size_t>(first + i)] = ~uint64_t{0};
}

void check_written(Wave& w, const Instruction& in) {
  for (int o = 1; o < 4; ++o) {
    if (in.operands[o].kind != OperandKind::vector) continue;
    for (int i = 0; i < in.operands[o].registers; ++i) {
      const int reg = in.operands[o].first + i;
      if (const uint64_t unwritten = ~w.written[static_cast<size_t>(reg)])
        unwritten_read(w, in, reg, unwritten);
    }
  }
}

void run_product(Wave& w, const Instruction& in) {
  // On the heap: a library that is loaded late has little thread-local memory.
  static thread_local const std::unique_ptr<Matrices> kept = std::make_unique<Matrices>();
  Matrices& all = *kept;
  const MatrixForm f(in);
  if (in.operands[1].kind != OperandKind::vector || in.operands[2].kind != OperandKind::vector)
    fail("a matrix operand: %s", in.text.c_str());
  if (w.machine->report_unwritten) check_written(w, in);
  gather_operands(w, in, f, all);
  gather_sums(w, in, f, in.operands[3], all);
  multiply(in, f, all);
  scatter_sums(w, in, f, all);
}

// k of a value of a row of A.
int kept_k(const Wave& w, const Instruction& in, const MatrixForm& f, int row, int value) {
  const int lane_values = f.lane_k / 2, lane = row + f.m * (value / lane_values);
  const uint32_t word = w.vectors[in.operands[3].first * kLanes + lane];
  return value / 2 * 4 + static_cast<int>(word >> 2 * (value % lane_values) & 3);
}

void run_sparse_product(Wave& w, const Instruction& in) {
  const MatrixForm f(in);
  for (int o = 1; o < 4; ++o)
    if (in.operands[o].kind != OperandKind::vector) fail("a matrix operand: %s", in.text.c_str());
  if (in.cbsz != 0) fail("a part of the indices: %s", in.text.c_str());
  if (w.machine->report_unwritten) check_written(w, in);
  static thread_local const std::unique_ptr<Matrices> kept = std::make_unique<Matrices>();
  Matrices& all = *kept;
  gather_sums(w, in, f, in.operands[0], all);
  for (int l = 0; l < kLanes; ++l)
    for (int e = 0; e < f.lane_k; ++e) {
      const int line = l % f.m, k = l / f.m * f.lane_k + e;
      all.b[static_cast<size_t>(k * f.n + line)] = element_of(w, in.operands[2].first, l, e, f.b);
      if (e % 2 == 0)
        all.a[static_cast<size_t>(line * f.k / 2 + k / 2)] =
            element_of(w, in.operands[1].first, l, e / 2, f.a);
    }
  for (int i = 0; i < f.m; ++i)
    for (int value = 0; value < f.k / 2; ++value) {
      const int k = kept_k(w, in, f, i, value);
      const double x = all.a[static_cast<size_t>(i * f.k / 2 + value)];
      for (int j = 0; j < f.n; ++j)
        all.c[static_cast<size_t>(i * f.n + j)] += x * all.b[static_cast<size_t>(k * f.n + j)];
    }
  scatter_sums(w, in, f, all);
}

struct ElementName {
  const char* name;
  Element a, b;
  int bits;
};
constexpr ElementName kElements[] = {
    {"f16", kF16, kF16, 16},    {"bf16", kBf16, kBf16, 16}, {"bf16_1k", kBf16, kBf16, 16},
    {"f32", kF32, kF32, 32},    {"i8", kI8, kI8, 8},        {"xf32", kXf32, kXf32, 32},
    {"f64", kF64, kF64, 64},    {"fp8_fp8", kFp8, kFp8, 8}, {"bf8_bf8", kBf8, kBf8, 8},
    {"fp8_bf8", kFp8, kBf8, 8}, {"bf8_fp8", kBf8, kFp8, 8}};

}  // namespace

// "v_mfma_f32_32x32x8_f16", "v_mfma_f32_4x4x4_16b_f16", "v_smfmac_f32_16x16x32_f16"
bool bind_matrix(Instruction& in, const std::string& mnemonic) {
  char sum[8] = {};
  int m = 0, n = 0, k = 0, read = 0;
  const bool sparse = mnemonic.starts_with("v_smfmac_");
  const char* const form_of_name = sparse ? "v_smfmac_%3[a-z0-9]_%dx%dx%d%n" : "v_mfma_%3[a-z0-9]_%dx%dx%d%n";
  if (std::sscanf(mnemonic.c_str(), form_of_name, sum, &m, &n, &k, &read) < 4) return false;
  std::string types = mnemonic.substr(static_cast<size_t>(read));
  if (types.starts_with('_')) types = types.substr(1);
  const size_t blocks_end = types.find("b_");
  if (blocks_end <= 2 && !types.empty() && std::isdigit(static_cast<unsigned char>(types[0])))
    types = types.substr(blocks_end + 2);
  const auto found = std::find_if(std::begin(kElements), std::end(kElements),
                                  [&](const ElementName& e) { return types == e.name; });
  if (found == std::end(kElements)) return false;
  const int lane_k = in.operands[sparse ? 2 : 1].registers * 32 / found->bits,
            blocks = kLanes * lane_k / (m * k);
  if (blocks < 1 || in.operand_count < 4) return false;
  const Sum d = sum[0] == 'i' ? kSumI32 : std::string(sum) == "f64" ? kSumF64 : kSumF32;
  const uint32_t form[8] = {static_cast<uint32_t>(m),
                            static_cast<uint32_t>(n),
                            static_cast<uint32_t>(k),
                            static_cast<uint32_t>(blocks),
                            static_cast<uint32_t>(lane_k),
                            found->a,
                            found->b,
                            d};
  std::copy(std::begin(form), std::end(form), in.matrix);
  in.run = sparse ? run_sparse_product : run_product;
  return true;
}

}  // namespace tilegen::amdemu
