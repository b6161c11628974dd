// Casts, shuffles and asynchronous copies of a warp alone in a kernel, against their definitions: on the
// simulator, and on the first CUDA device. A meaning that both the compiler and the simulator have wrong
// would agree everywhere else.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "one_instruction.h"

namespace tilegen::gpu {
namespace {

using differential::Data;
using ir::DType;
using ir::ExprId;

// Rounded once to nearest even; 8-bit floats saturate, at infinity too.
double converted(DType to, double value) {
  if (ir::dtype_bytes(to) == 1 && !std::isnan(value)) {
    const double largest = to == DType::e4m3 ? 448 : 57344;
    value = std::min(std::max(value, -largest), largest);
  }
  return ir::float_from_bits(to, ir::float_to_bits(to, value));
}

// Casts of 8-bit floats, of every code and to each from values that round, saturate and are special: element
// for element, where a NaN is a NaN.
void compare_cast(const target::Target& target, DType from, DType to, const std::vector<std::byte>& values) {
  SCOPED_TRACE(target.name + " " + ir::dtype_name(from) + " to " + ir::dtype_name(to));
  const int64_t count = static_cast<int64_t>(values.size()) / ir::dtype_bytes(from) / 32;
  WarpProgram p("casts");
  const auto in = p.tensor("A", from, 32 * count), out = p.tensor("B", to, 32 * count);
  const auto own = p.registers("own", from, count), cast = p.registers("cast", to, count);
  p.load(own, in, count);
  ir::ExprPool& e = p.exprs();
  for (int64_t i = 0; i < count; ++i)
    p.add(thread::Store{cast, p.at(i), e.cast(to, e.load(own, from, std::vector<ExprId>{p.at(i)})), ExprId(),
                        false, ExprId()});
  p.store(out, cast, count);
  const Tensors start = {values,
                         std::vector<std::byte>(static_cast<size_t>(32 * count * ir::dtype_bytes(to)))};
  expect_result(p, target, start, [&](const Tensors& results) {
    for (size_t i = 0; i < static_cast<size_t>(32 * count); ++i) {
      const double value = element_value(from, values, i), got = element_value(to, results[1], i);
      const double expected = converted(to, value);
      if (expected == got ? std::signbit(expected) == std::signbit(got)
                          : std::isnan(expected) && std::isnan(got))
        continue;
      return std::to_string(value) + " becomes " + std::to_string(got) + ", expected " +
             std::to_string(expected);
    }
    return std::string();
  });
}

std::vector<std::byte> all_bytes() {
  std::vector<std::byte> values;
  for (int code = 0; code < 256; ++code) values.push_back(static_cast<std::byte>(code));
  return values;
}

// Every value of the 8-bit type, the ties between neighbours and the numbers around them, what is beyond,
// specials.
std::vector<std::byte> around(DType from, DType to) {
  std::vector<double> reals = {0.0,  -0.0,  INFINITY, -INFINITY, NAN,    448,   449,   463,
                               464,  465,   480,      57344,     61439,  61440, 65504, 65536,
                               1e30, -1e30, 1e-30,    1e-40,     -1e-45, 2e-5,  1e-3,  3e38};
  for (uint64_t code = 0; code < 0x7b; ++code) {
    const double low = ir::float_from_bits(to, code), high = ir::float_from_bits(to, code + 1),
                 tie = (low + high) / 2;
    for (double x : {low, tie, tie + (high - low) / 64, tie - (high - low) / 64}) {
      reals.push_back(x);
      reals.push_back(-x);
    }
  }
  reals.resize((reals.size() + 31) / 32 * 32);
  std::vector<std::byte> values(reals.size() * static_cast<size_t>(ir::dtype_bytes(from)));
  for (size_t i = 0; i < reals.size(); ++i) {
    const uint64_t bits = ir::float_to_bits(from, reals[i]);
    std::memcpy(&values[i * static_cast<size_t>(ir::dtype_bytes(from))], &bits,
                static_cast<size_t>(ir::dtype_bytes(from)));
  }
  return values;
}

TEST(Instructions, CastsOfByteFloats) {
  // The device's conversions, and the integer sequences of older ones.
  for (const target::Target& compiled : {instruction_target(), *target::find_target("sm_80")})
    for (DType fp8 : {DType::e4m3, DType::e5m2}) {
      for (DType to :
           {DType::f32, DType::f16, DType::bf16, DType::f64, fp8 == DType::e4m3 ? DType::e5m2 : DType::e4m3})
        compare_cast(compiled, fp8, to, all_bytes());
      for (DType from : {DType::f32, DType::f16, DType::bf16, DType::f64})
        compare_cast(compiled, from, fp8, around(from, fp8));
    }
}

TEST(Instructions, Shuffles) {
  const target::Target target = instruction_target();
  for (DType type : {DType::f32, DType::f16, DType::i8, DType::i32, DType::boolean})
    for (int64_t mask : {1, 2, 4, 8, 16, 31}) {
      SCOPED_TRACE(std::string(ir::dtype_name(type)) + " " + std::to_string(mask));
      WarpProgram p("shuffles");
      const auto in = p.tensor("A", type, 32), out = p.tensor("B", type, 32),
                 turned = p.tensor("C", type, 32);
      const auto own = p.registers("own", type, 1), got = p.registers("got", type, 1),
                 other = p.registers("other", type, 1);
      p.load(own, in, 1);
      ir::ExprPool& e = p.exprs();
      const ExprId value = e.load(own, type, std::vector<ExprId>{p.at(0)});
      p.add(thread::Shuffle{thread::Shuffle::Mode::butterfly, got, p.at(0), value, p.at(mask)});
      p.add(thread::Shuffle{thread::Shuffle::Mode::indexed, other, p.at(0), value,
                            e.floormod(e.add(p.lane(), mask), p.at(32))});
      p.store(out, got, 1);
      p.store(turned, other, 1);
      const Tensors start = {elements(type, 32, Data::integers, 100, 5),
                             elements(type, 32, Data::integers, 1, 6),
                             elements(type, 32, Data::integers, 1, 9)};
      Tensors expected = start;
      const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
      for (size_t lane = 0; lane < 32; ++lane) {
        std::memcpy(&expected[1][lane * bytes], &start[0][(lane ^ static_cast<size_t>(mask)) * bytes], bytes);
        std::memcpy(&expected[2][lane * bytes], &start[0][(lane + static_cast<size_t>(mask)) % 32 * bytes],
                    bytes);
      }
      expect_bytes(p, target, start, expected);
    }
}

// Of groups of each size; what lanes of a type compare, and what holds for some, all and none of a group.
TEST(Instructions, Votes) {
  const target::Target target = instruction_target();
  for (DType type : {DType::i8, DType::u16, DType::i32, DType::i64})
    for (int64_t lanes : {2, 4, 8, 16, 32}) {
      SCOPED_TRACE(std::string(ir::dtype_name(type)) + " " + std::to_string(lanes));
      WarpProgram p("votes");
      const auto in = p.tensor("A", type, 32), any = p.tensor("B", DType::boolean, 32),
                 ballot = p.tensor("C", DType::u32, 32), match = p.tensor("D", DType::u32, 32);
      const auto own = p.registers("own", type, 1), some = p.registers("some", DType::boolean, 1),
                 who = p.registers("who", DType::u32, 1), alike = p.registers("alike", DType::u32, 1);
      p.load(own, in, 1);
      ir::ExprPool& e = p.exprs();
      const ExprId value = e.load(own, type, std::vector<ExprId>{p.at(0)});
      const ExprId holds = e.binary(ir::ExprOp::lt, e.const_int(3, type), value);
      using Mode = thread::Vote::Mode;
      p.add(thread::Vote{Mode::any, some, p.at(0), holds, lanes});
      p.add(thread::Vote{Mode::ballot, who, p.at(0), holds, lanes});
      p.add(thread::Vote{Mode::match, alike, p.at(0), value, lanes});
      p.store(any, some, 1);
      p.store(ballot, who, 1);
      p.store(match, alike, 1);
      Tensors start = {
          elements(type, 32, Data::integers, 1, 5), elements(DType::boolean, 32, Data::integers, 1, 6),
          elements(DType::u32, 32, Data::integers, 1, 7), elements(DType::u32, 32, Data::integers, 1, 8)};
      const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
      // The upper bytes tell values apart, too. Nothing holds in the last lanes, all in those before them.
      const auto at = [](size_t lane) {
        return lane < 16 ? lane * lane % 7 : lane < 24 ? 4 + lane % 2 : lane % 3;
      };
      const auto far = [](size_t lane) { return lane % 5 == 0 ? 64 : 0; };
      for (size_t lane = 0; lane < 32; ++lane) {
        start[0][lane * bytes] = static_cast<std::byte>(at(lane));
        for (size_t b = 1; b < bytes; ++b)
          start[0][lane * bytes + b] = static_cast<std::byte>(b + 1 == bytes ? far(lane) : 0);
      }
      Tensors expected = start;
      const auto equal = [&](size_t a, size_t b) {
        return std::memcmp(&start[0][a * bytes], &start[0][b * bytes], bytes) == 0;
      };
      for (size_t lane = 0; lane < 32; ++lane) {
        const auto group = static_cast<size_t>(lanes), first = lane / group * group;
        uint32_t voted = 0, same = 0;
        for (size_t i = 0; i < group; ++i) {
          const size_t other = first + i;
          const bool holds_there = at(other) > 3 || (bytes > 1 && far(other) > 0);
          voted |= static_cast<uint32_t>(holds_there) << i;
          same |= static_cast<uint32_t>(equal(lane, other)) << i;
        }
        expected[1][lane] = static_cast<std::byte>(voted != 0);
        std::memcpy(&expected[2][lane * 4], &voted, 4);
        std::memcpy(&expected[3][lane * 4], &same, 4);
      }
      expect_bytes(p, target, start, expected);
    }
}

// Several elements from one lane, which share words where they are smaller; kept or not as the lane has it.
TEST(Instructions, ShufflesInARow) {
  const target::Target target = instruction_target();
  for (DType type : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i32})
    for (int count : {2, 3, 4, 6}) {
      SCOPED_TRACE(std::string(ir::dtype_name(type)) + " " + std::to_string(count));
      WarpProgram p("shuffles");
      const auto in = p.tensor("A", type, 32 * count), out = p.tensor("B", type, 32 * count);
      const auto own = p.registers("own", type, count), got = p.registers("got", type, count),
                 kept = p.registers("kept", type, count);
      p.load(own, in, count);
      ir::ExprPool& e = p.exprs();
      const auto element = [&](thread::MemoryId m, int i) {
        return e.load(m, type, std::vector<ExprId>{p.at(i)});
      };
      const ExprId lane = e.floormod(e.add(p.lane(), 5), p.at(32));
      for (int i = 0; i < count; ++i)
        p.add(thread::Shuffle{thread::Shuffle::Mode::indexed, got, p.at(i), element(own, i), lane});
      // The neighbour's order in odd lanes.
      const ExprId odd = e.binary(ir::ExprOp::eq, e.floormod(p.lane(), p.at(2)), p.at(1));
      for (int i = 0; i < count; ++i) {
        p.add(thread::Store{kept, p.at(i), element(got, i), ExprId(), false, ExprId()});
        p.add(thread::Store{kept, p.at(i), element(got, count - 1 - i), odd, false, ExprId()});
      }
      p.store(out, kept, count);
      const Tensors start = {elements(type, 32 * count, Data::integers, 100, 5),
                             elements(type, 32 * count, Data::integers, 1, 6)};
      Tensors expected = start;
      const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
      for (size_t l = 0; l < 32; ++l)
        for (size_t i = 0, n = static_cast<size_t>(count); i < n; ++i) {
          const size_t from = l % 2 == 1 ? n - 1 - i : i;
          std::memcpy(&expected[1][(l * n + i) * bytes], &start[0][((l + 5) % 32 * n + from) * bytes], bytes);
        }
      expect_bytes(p, target, start, expected);
    }
}

// Where one lane's condition holds all lanes take the branch, else none.
TEST(Instructions, BranchesTakenTogether) {
  const target::Target target = instruction_target();
  for (int64_t who : {-1, 0, 17, 31}) {
    SCOPED_TRACE(who);
    WarpProgram p("together");
    const auto in = p.tensor("A", DType::i32, 32), out = p.tensor("B", DType::i32, 32);
    const auto own = p.registers("own", DType::i32, 1);
    p.load(own, in, 1);
    ir::ExprPool& e = p.exprs();
    thread::Branch branch{e.binary(ir::ExprOp::eq, p.lane(), p.at(who)), {}, {}, true};
    const ExprId more = e.binary(ir::ExprOp::add, e.load(own, DType::i32, std::vector<ExprId>{p.at(0)}),
                                 e.const_int(7, DType::i32));
    branch.then_body = {p.inside(thread::Store{own, p.at(0), more, ExprId(), false, ExprId()})};
    p.add(std::move(branch));
    p.store(out, own, 1);
    const Tensors start = {elements(DType::i32, 32, Data::integers, 100, 5),
                           elements(DType::i32, 32, Data::integers, 1, 6)};
    Tensors expected = start;
    for (size_t lane = 0; lane < 32; ++lane) {
      int32_t v = 0;
      std::memcpy(&v, &start[0][lane * 4], 4);
      v += who < 0 ? 0 : 7;
      std::memcpy(&expected[1][lane * 4], &v, 4);
    }
    expect_bytes(p, target, start, expected);
  }
}

TEST(Instructions, AsyncCopiesFillWithZeros) {
  const target::Target target = instruction_target();
  for (int bytes : {4, 8, 16}) {
    SCOPED_TRACE(bytes);
    const int64_t n = bytes / 2;
    WarpProgram p("copies");
    const auto in = p.tensor("A", DType::f16, 32 * n), out = p.tensor("B", DType::f16, 32 * n);
    const auto tile = p.shared("tile", DType::f16, 32 * n);
    ir::ExprPool& e = p.exprs();
    const ExprId first = e.mul(p.lane(), n);
    p.add(thread::AsyncCopy{tile, first, in, first, bytes,
                            e.binary(ir::ExprOp::ne, e.floormod(p.lane(), p.at(3)), p.at(0))});
    p.add(thread::AsyncCommit{});
    p.add(thread::AsyncWait{0});
    for (int64_t i = 0; i < n; ++i) {
      const ExprId at = e.add(first, i);
      p.add(thread::Store{out, at, e.load(tile, DType::f16, std::vector<ExprId>{at}), ExprId(), false,
                          ExprId()});
    }
    const Tensors start = {elements(DType::f16, 32 * n, Data::integers, 50, 1),
                           elements(DType::f16, 32 * n, Data::integers, 1, 2)};
    Tensors expected = start;
    for (size_t i = 0; i < expected[1].size(); ++i)
      expected[1][i] = i / static_cast<size_t>(bytes) % 3 == 0 ? std::byte{0} : start[0][i];
    expect_bytes(p, target, start, expected);
  }
}

}  // namespace
}  // namespace tilegen::gpu
