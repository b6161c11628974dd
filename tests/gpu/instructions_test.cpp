// Every row of the atom table and every warp-level statement, alone in a kernel, on the hardware and on the simulator: a
// meaning that both the compiler and the simulator have wrong would agree everywhere else.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "../differential/data.h"
#include "one_instruction.h"
#include "runtime/devices.h"

namespace tilegen::gpu {
namespace {

using differential::Data;
using differential::Random;
using ir::DType;
using ir::ExprId;

std::optional<target::Target> device_target() {
  if (!differential::has_cuda_device()) return std::nullopt;
  auto t = runtime::find_target("cuda");
  return t ? std::optional(*t) : std::nullopt;
}

std::vector<std::byte> elements(DType type, int64_t count, Data data, double magnitude, uint64_t seed) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
  std::vector<std::byte> out(static_cast<size_t>(count) * bytes);
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = differential::random_element(random, type, data, magnitude);
    std::memcpy(&out[static_cast<size_t>(i) * bytes], &bits, bytes);
  }
  return out;
}

double value_of(DType type, const std::vector<std::byte>& memory, size_t i) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
  uint64_t bits = 0;
  std::memcpy(&bits, &memory[i * bytes], bytes);
  if (ir::is_float(type)) return ir::float_from_bits(type, bits);
  return static_cast<double>(ir::wrap_to(type, static_cast<int64_t>(bits)));
}

// How far the hardware may be from the simulator: its sum of products is not rounded as f32 additions in order are.
double tolerance(const target::MmaAtom& atom, double largest_product) {
  if (!ir::is_float(atom.c)) return 0;
  const double epsilon = atom.c == DType::f64 ? 0x1p-52 : atom.c == DType::f16 ? 0x1p-10 : 0x1p-22;
  return epsilon * (atom.k + 1) * largest_product;
}

void expect_same(const target::MmaAtom& atom, const std::vector<std::byte>& device, const std::vector<std::byte>& simulated,
                 double bound) {
  const size_t count = device.size() / static_cast<size_t>(ir::dtype_bytes(atom.c));
  for (size_t i = 0; i < count; ++i) {
    const double d = value_of(atom.c, device, i), s = value_of(atom.c, simulated, i);
    if (std::isnan(d) && std::isnan(s)) continue;
    if (d == s) continue;
    ASSERT_TRUE(std::isfinite(d) && std::isfinite(s) && std::fabs(d - s) <= bound)
        << "element " << i << ": the device has " << d << ", the simulator " << s;
  }
}

// Operands of which several lanes hold a copy: the copies are equal, as they are in a program.
void make_copies_equal(const layout::Fragment& f, DType type, std::vector<std::byte>& lanes) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
  for (int64_t i = 0; i < f.shape()[0]; ++i)
    for (int64_t j = 0; j < f.shape()[1]; ++j) {
      const std::vector<int64_t> index = {i, j};
      const std::vector<int64_t> holders = f.holders(index);
      const auto place = [&](int64_t lane) {
        return static_cast<size_t>(lane * f.registers() + f.register_of(index)) * bytes;
      };
      for (int64_t lane : holders) std::memcpy(&lanes[place(lane)], &lanes[place(holders.front())], bytes);
    }
}

struct Case {
  const char* name;
  Data data;
  double magnitude;
};

void compare_atom(const target::Target& target, const target::MmaAtom& atom, const Case& c) {
  SCOPED_TRACE(atom.name + ", " + c.name);
  const int64_t na = atom.a_layout.registers(), nb = atom.b_layout.registers(), nc = atom.c_layout.registers();
  WarpProgram p("atom");
  const auto ta = p.tensor("A", atom.a, 32 * na), tb = p.tensor("B", atom.b, 32 * nb), tc = p.tensor("C", atom.c, 32 * nc);
  const auto a = p.registers("a", atom.a, na), b = p.registers("b", atom.b, nb), acc = p.registers("c", atom.c, nc);
  p.load(a, ta, na);
  p.load(b, tb, nb);
  p.load(acc, tc, nc);
  p.add(thread::WarpMma{atom.name, a, b, acc, p.at(0), p.at(0), p.at(0), static_cast<int>(na), static_cast<int>(nb),
                        static_cast<int>(nc)});
  p.store(tc, acc, nc);
  ASSERT_EQ(thread::verify_thread_program(p.program()), std::vector<std::string>());
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Tensors start = {elements(atom.a, 32 * na, c.data, c.magnitude, seed),
                     elements(atom.b, 32 * nb, c.data, c.magnitude, seed + 100),
                     elements(atom.c, 32 * nc, c.data, c.magnitude, seed + 200)};
    make_copies_equal(atom.a_layout, atom.a, start[0]);
    make_copies_equal(atom.b_layout, atom.b, start[1]);
    Tensors device = start, simulated = start;
    ASSERT_EQ(run_on_device(p, target, device), "");
    ASSERT_EQ(run_simulated(p, target, simulated), "");
    expect_same(atom, device[2], simulated[2], tolerance(atom, std::max(c.magnitude * c.magnitude, 1.0)));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Instructions, MatrixAtomsMeanWhatTheSimulatorSays) {
  const auto target = device_target();
  if (!target) GTEST_SKIP() << "no CUDA device";
  const Case cases[] = {{"whole numbers", Data::integers, 8}, {"reals", Data::reals, 2},
                        {"whole numbers with NaN, infinities and zeros", Data::integers_specials, 8}};
  int compared = 0;
  for (const target::MmaAtom& atom : target->mma) {
    if (atom.name.starts_with("fma.")) continue;  // multiply-adds are plain expressions
    ++compared;
    for (const Case& c : cases) compare_atom(*target, atom, c);
    if (HasFatalFailure()) std::cout << "differs: " << atom.name << "\n";
    else std::cout << "verified: " << atom.name << "\n";
  }
  EXPECT_GE(compared, 18);
}

// Casts of 8-bit floats, of every code and to each from values that round, saturate and are special: element for
// element, where a NaN is a NaN.
void compare_cast(const target::Target& target, DType from, DType to, const std::vector<std::byte>& values) {
  SCOPED_TRACE(std::string(ir::dtype_name(from)) + " to " + ir::dtype_name(to));
  const int64_t count = static_cast<int64_t>(values.size()) / ir::dtype_bytes(from) / 32;
  WarpProgram p("casts");
  const auto in = p.tensor("A", from, 32 * count), out = p.tensor("B", to, 32 * count);
  const auto own = p.registers("own", from, count), cast = p.registers("cast", to, count);
  p.load(own, in, count);
  ir::ExprPool& e = p.exprs();
  for (int64_t i = 0; i < count; ++i)
    p.add(thread::Store{cast, p.at(i), e.cast(to, e.load(own, from, std::vector<ExprId>{p.at(i)})), ExprId(), false, ExprId()});
  p.store(out, cast, count);
  ASSERT_EQ(thread::verify_thread_program(p.program()), std::vector<std::string>());
  Tensors device = {values, std::vector<std::byte>(static_cast<size_t>(32 * count * ir::dtype_bytes(to)))}, simulated = device;
  ASSERT_EQ(run_on_device(p, target, device), "");
  ASSERT_EQ(run_simulated(p, target, simulated), "");
  for (size_t i = 0; i < static_cast<size_t>(32 * count); ++i) {
    const double d = value_of(to, device[1], i), s = value_of(to, simulated[1], i);
    ASSERT_TRUE(d == s ? std::signbit(d) == std::signbit(s) : std::isnan(d) && std::isnan(s))
        << value_of(from, values, i) << " is " << d << " on the device and " << s << " in the simulator";
  }
}

std::vector<std::byte> all_bytes() {
  std::vector<std::byte> values;
  for (int code = 0; code < 256; ++code) values.push_back(static_cast<std::byte>(code));
  return values;
}

// Every value of the 8-bit type, the ties between neighbours and the numbers around them, what is beyond, specials.
std::vector<std::byte> around(DType from, DType to) {
  std::vector<double> reals = {0.0,  -0.0,   INFINITY, -INFINITY, NAN,    448,   449,   463,   464,    465,   480,  57344,
                               61439, 61440, 65504,    65536,     1e30,   -1e30, 1e-30, 1e-40, -1e-45, 2e-5, 1e-3, 3e38};
  for (uint64_t code = 0; code < 0x7b; ++code) {
    const double low = ir::float_from_bits(to, code), high = ir::float_from_bits(to, code + 1), tie = (low + high) / 2;
    for (double x : {low, tie, tie + (high - low) / 64, tie - (high - low) / 64}) {
      reals.push_back(x);
      reals.push_back(-x);
    }
  }
  reals.resize((reals.size() + 31) / 32 * 32);
  std::vector<std::byte> values(reals.size() * static_cast<size_t>(ir::dtype_bytes(from)));
  for (size_t i = 0; i < reals.size(); ++i) {
    const uint64_t bits = ir::float_to_bits(from, reals[i]);
    std::memcpy(&values[i * static_cast<size_t>(ir::dtype_bytes(from))], &bits, static_cast<size_t>(ir::dtype_bytes(from)));
  }
  return values;
}

TEST(Instructions, CastsOfByteFloats) {
  const auto target = device_target();
  if (!target) GTEST_SKIP() << "no CUDA device";
  // The device's conversions, and the integer sequences of older ones.
  for (const target::Target& compiled : {*target, *target::find_target("sm_80")})
    for (DType fp8 : {DType::e4m3, DType::e5m2}) {
      for (DType to : {DType::f32, DType::f16, DType::bf16, DType::f64, fp8 == DType::e4m3 ? DType::e5m2 : DType::e4m3})
        compare_cast(compiled, fp8, to, all_bytes());
      for (DType from : {DType::f32, DType::f16, DType::bf16, DType::f64}) compare_cast(compiled, from, fp8, around(from, fp8));
      if (HasFatalFailure()) return;
    }
}

// Exactly the same bytes.
void expect_equal(const WarpProgram& p, const target::Target& target, const Tensors& start) {
  ASSERT_EQ(thread::verify_thread_program(p.program()), std::vector<std::string>());
  Tensors device = start, simulated = start;
  ASSERT_EQ(run_on_device(p, target, device), "");
  ASSERT_EQ(run_simulated(p, target, simulated), "");
  for (size_t t = 0; t < start.size(); ++t)
    for (size_t i = 0; i < start[t].size(); ++i)
      ASSERT_EQ(static_cast<int>(device[t][i]), static_cast<int>(simulated[t][i])) << "tensor " << t << ", byte " << i;
}

TEST(Instructions, MatrixLoads) {
  const auto target = device_target();
  if (!target) GTEST_SKIP() << "no CUDA device";
  for (DType type : {DType::f16, DType::i8, DType::f32})
    for (int matrices : {1, 2, 4})
      for (bool transpose : {false, true}) {
        const int64_t element = ir::dtype_bytes(type);
        if (transpose && element != 2) continue;
        SCOPED_TRACE(std::string(ir::dtype_name(type)) + " x" + std::to_string(matrices) + (transpose ? " transposed" : ""));
        const int64_t row = 16 / element, count = 4 * matrices / element, tile = 32 * row;
        WarpProgram p("loads");
        const auto in = p.tensor("A", type, tile), out = p.tensor("B", type, 32 * count);
        const auto tile_memory = p.shared("tile", type, tile);
        const auto staged = p.registers("staged", type, row), got = p.registers("got", type, count);
        p.load(staged, in, row);
        ir::ExprPool& e = p.exprs();
        for (int64_t r = 0; r < row; ++r)
          p.add(thread::Store{tile_memory, e.add(e.mul(p.lane(), row), r),
                              e.load(staged, type, std::vector<ExprId>{p.at(r)}), ExprId(), false, ExprId()});
        p.add(thread::Barrier{});
        p.add(thread::LoadMatrix{got, p.at(0), tile_memory, e.mul(p.lane(), row), matrices, transpose});
        p.store(out, got, count);
        expect_equal(p, *target, {elements(type, tile, Data::bit_patterns, 0, 7), elements(type, 32 * count, Data::integers, 1, 8)});
      }
}

TEST(Instructions, MatrixStores) {
  const auto target = device_target();
  if (!target) GTEST_SKIP() << "no CUDA device";
  for (int matrices : {1, 2, 4})
    for (bool transpose : {false, true}) {
      SCOPED_TRACE(std::to_string(matrices) + (transpose ? " transposed" : ""));
      const int64_t count = 2 * matrices, row = 8, tile = 8 * matrices * row;
      WarpProgram p("stores");
      const auto in = p.tensor("A", DType::f16, 32 * count), out = p.tensor("B", DType::f16, tile);
      const auto tile_memory = p.shared("tile", DType::f16, 32 * row);
      const auto held = p.registers("held", DType::f16, count);
      p.load(held, in, count);
      ir::ExprPool& e = p.exprs();
      p.add(thread::StoreMatrix{tile_memory, e.mul(p.lane(), row), held, p.at(0), matrices, transpose});
      p.add(thread::Barrier{});
      for (int64_t i = 0; i < tile / 32; ++i) {
        const ExprId at = e.add(p.lane(), i * 32);
        p.add(thread::Store{out, at, e.load(tile_memory, DType::f16, std::vector<ExprId>{at}), ExprId(), false, ExprId()});
      }
      expect_equal(p, *target, {elements(DType::f16, 32 * count, Data::bit_patterns, 0, 3), elements(DType::f16, tile, Data::integers, 1, 4)});
    }
}

TEST(Instructions, Shuffles) {
  const auto target = device_target();
  if (!target) GTEST_SKIP() << "no CUDA device";
  for (DType type : {DType::f32, DType::f16, DType::i8, DType::i32, DType::boolean})
    for (int64_t mask : {1, 2, 4, 8, 16, 31}) {
      WarpProgram p("shuffles");
      const auto in = p.tensor("A", type, 32), out = p.tensor("B", type, 32), turned = p.tensor("C", type, 32);
      const auto own = p.registers("own", type, 1), got = p.registers("got", type, 1), other = p.registers("other", type, 1);
      p.load(own, in, 1);
      ir::ExprPool& e = p.exprs();
      const ExprId value = e.load(own, type, std::vector<ExprId>{p.at(0)});
      p.add(thread::Shuffle{thread::Shuffle::Mode::butterfly, got, p.at(0), value, p.at(mask)});
      p.add(thread::Shuffle{thread::Shuffle::Mode::indexed, other, p.at(0), value, e.floormod(e.add(p.lane(), mask), p.at(32))});
      p.store(out, got, 1);
      p.store(turned, other, 1);
      SCOPED_TRACE(std::string(ir::dtype_name(type)) + " " + std::to_string(mask));
      expect_equal(p, *target, {elements(type, 32, Data::integers, 100, 5), elements(type, 32, Data::integers, 1, 6),
                                elements(type, 32, Data::integers, 1, 9)});
    }
}

TEST(Instructions, AsyncCopiesFillWithZeros) {
  const auto target = device_target();
  if (!target) GTEST_SKIP() << "no CUDA device";
  for (int bytes : {4, 8, 16}) {
    SCOPED_TRACE(bytes);
    const int64_t n = bytes / 2;
    WarpProgram p("copies");
    const auto in = p.tensor("A", DType::f16, 32 * n), out = p.tensor("B", DType::f16, 32 * n);
    const auto tile = p.shared("tile", DType::f16, 32 * n);
    ir::ExprPool& e = p.exprs();
    const ExprId first = e.mul(p.lane(), n);
    p.add(thread::AsyncCopy{tile, first, in, first, bytes, e.binary(ir::ExprOp::ne, e.floormod(p.lane(), p.at(3)), p.at(0))});
    p.add(thread::AsyncCommit{});
    p.add(thread::AsyncWait{0});
    for (int64_t i = 0; i < n; ++i) {
      const ExprId at = e.add(first, i);
      p.add(thread::Store{out, at, e.load(tile, DType::f16, std::vector<ExprId>{at}), ExprId(), false, ExprId()});
    }
    expect_equal(p, *target, {elements(DType::f16, 32 * n, Data::integers, 50, 1), elements(DType::f16, 32 * n, Data::integers, 1, 2)});
  }
}

}  // namespace
}  // namespace tilegen::gpu
