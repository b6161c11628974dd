// The interpreter of AMD machine code: kernels of LLVM IR against their definitions on the host, in strict
// mode and under several orders of waves; and faults planted in them, which it must see.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "code_object.h"
#include "llvm_kernels.h"
#include "number_formats.h"

namespace tilegen::amdemu {
namespace {

constexpr const char* kCpus[] = {"gfx942", "gfx90a"};

template <class T>
Memory memory_of(const char* name, std::vector<T>& v, bool writable = true) {
  return {name, std::as_writable_bytes(std::span(v)), writable};
}

template <class T>
std::vector<T> numbers(size_t count, int least, int most, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> some(least, most);
  std::vector<T> v(count);
  for (T& x : v) x = static_cast<T>(some(random));
  return v;
}

constexpr const char* kAdd = R"(
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @add(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i64 %n) {
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %m = mul i32 %g, 256
  %i = add i32 %m, %t
  %ix = zext i32 %i to i64
  %ok = icmp slt i64 %ix, %n
  br i1 %ok, label %do, label %end
do:
  %pa = getelementptr float, ptr addrspace(1) %a, i64 %ix
  %pb = getelementptr float, ptr addrspace(1) %b, i64 %ix
  %pc = getelementptr float, ptr addrspace(1) %c, i64 %ix
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %z = fadd float %x, %y
  store float %z, ptr addrspace(1) %pc
  br label %end
end:
  ret void
}
)";

struct AddRun {
  std::vector<float> a = numbers<float>(1000, -99, 99, 1), b = numbers<float>(1000, -99, 99, 2), c;
  LaunchResult result;
};
AddRun run_add(CodeObject& code, uint64_t elements, bool writable = true) {
  AddRun run;
  run.c.assign(1000, 7);
  const Memory memories[] = {memory_of("a", run.a, false), memory_of("b", run.b, false),
                             memory_of("c", run.c, writable)};
  const Argument arguments[] = {{0, 0}, {0, 1}, {0, 2}, {elements}};
  LaunchOptions options;
  options.grid[0] = 4, options.block[0] = 256;
  options.report_unwritten = true;
  run.result = code.launch("add", memories, arguments, options);
  return run;
}

TEST(Interpreter, AddsVectors) {
  for (const char* cpu : kCpus) {
    CodeObject code(code_object_of(kAdd, cpu));
    EXPECT_EQ(code.cpu(), cpu);
    EXPECT_TRUE(code.unknown().empty());
    const AddRun run = run_add(code, 900);
    ASSERT_EQ(run.result.error, "");
    EXPECT_TRUE(run.result.warnings.empty());
    EXPECT_GT(run.result.instructions, 100u);
    for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(run.c[i], i < 900 ? run.a[i] + run.b[i] : 7) << i;
  }
}

TEST(Interpreter, AnAccessOutsideATensorEndsTheLaunch) {
  CodeObject code(code_object_of(kAdd, "gfx942"));
  const AddRun beyond = run_add(code, 1001);
  EXPECT_NE(beyond.result.error.find("outside buffer 'a' of 4000 bytes"), std::string::npos)
      << beyond.result.error;
  const AddRun read_only = run_add(code, 900, false);
  EXPECT_NE(read_only.result.error.find("read-only buffer 'c'"), std::string::npos) << read_only.result.error;
}

// A block turns its 256 numbers round, through LDS.
std::string turned(const char* between) {
  return std::string(R"(
@shared = internal addrspace(3) global [256 x i32] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
define amdgpu_kernel void @turn(ptr addrspace(1) %in, ptr addrspace(1) %out) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %in, i32 %t
  %v = load i32, ptr addrspace(1) %p
  %s = getelementptr [256 x i32], ptr addrspace(3) @shared, i32 0, i32 %t
  store i32 %v, ptr addrspace(3) %s
)") + between +
         R"(
  %r = sub i32 255, %t
  %q = getelementptr [256 x i32], ptr addrspace(3) @shared, i32 0, i32 %r
  %w = load i32, ptr addrspace(3) %q
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %w, ptr addrspace(1) %o
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }
)";
}
constexpr const char* kWholeBarrier = R"(
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
)";

// Seeds under which the result is wrong, or the launch ends.
int wrong_seeds(const std::string& object, int seeds) {
  CodeObject code(object);
  int wrong = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    std::vector<int32_t> in = numbers<int32_t>(256, -1000, 1000, 3), out(256, 0);
    const Memory memories[] = {memory_of("in", in), memory_of("out", out)};
    const Argument arguments[] = {{0, 0}, {0, 1}};
    LaunchOptions options;
    options.block[0] = 256;
    options.seed = static_cast<uint64_t>(seed);
    const LaunchResult result = code.launch("turn", memories, arguments, options);
    const std::vector<int32_t> expected(in.rbegin(), in.rend());
    wrong += !result.error.empty() || out != expected;
  }
  return wrong;
}

TEST(Interpreter, WavesMeetAtABarrier) {
  for (const char* cpu : kCpus)
    EXPECT_EQ(wrong_seeds(code_object_of(turned(kWholeBarrier), cpu), 8), 0) << cpu;
}

TEST(Interpreter, SeesAMissingBarrier) { EXPECT_GT(wrong_seeds(code_object_of(turned(""), "gfx942"), 8), 0); }

TEST(Interpreter, SeesABarrierWithoutItsWait) {
  EXPECT_GT(wrong_seeds(code_object_of(turned("  call void @llvm.amdgcn.s.barrier()\n"), "gfx942"), 8), 0);
}

// Each wait in turn becomes an s_nop, but for what the end of the program waits for.
TEST(Interpreter, SeesEveryMissingWait) {
  const std::string object = code_object_of(turned(kWholeBarrier), "gfx942");
  int waits = 0;
  for (size_t at = 0; at + 4 <= object.size(); at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, object.data() + at, 4);
    if (word >> 16 != 0xbf8c) continue;  // s_waitcnt
    const uint32_t nop = 0xbf800000;
    std::string spoilt = object;
    std::memcpy(spoilt.data() + at, &nop, 4);
    EXPECT_GT(wrong_seeds(spoilt, 8), 0) << "without the wait at " << at;
    ++waits;
  }
  EXPECT_GE(waits, 4);
}

// A sum over the lanes by DPP, swizzles and a backward permutation, as reductions do it.
TEST(Interpreter, LanesExchangeValues) {
  const char* text = R"(
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32)
define amdgpu_kernel void @sum(ptr addrspace(1) %in, ptr addrspace(1) %out) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %in, i32 %t
  %v0 = load i32, ptr addrspace(1) %p
  %d1 = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %v0, i32 177, i32 15, i32 15, i1 true)
  %v1 = add i32 %v0, %d1
  %d2 = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %v1, i32 78, i32 15, i32 15, i1 true)
  %v2 = add i32 %v1, %d2
  %d3 = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %v2, i32 321, i32 15, i32 15, i1 true)
  %v3 = add i32 %v2, %d3
  %d4 = call i32 @llvm.amdgcn.update.dpp.i32(i32 poison, i32 %v3, i32 296, i32 15, i32 15, i1 true)
  %v4 = add i32 %v3, %d4
  %d5 = call i32 @llvm.amdgcn.ds.swizzle(i32 %v4, i32 16415)
  %v5 = add i32 %v4, %d5
  %x = xor i32 %t, 32
  %a = shl i32 %x, 2
  %d6 = call i32 @llvm.amdgcn.ds.bpermute(i32 %a, i32 %v5)
  %v6 = add i32 %v5, %d6
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %v6, ptr addrspace(1) %q
  ret void
}
)";
  for (const char* cpu : kCpus) {
    CodeObject code(code_object_of(text, cpu));
    std::vector<int32_t> in = numbers<int32_t>(64, -1000, 1000, 4), out(64, 0);
    const Memory memories[] = {memory_of("in", in), memory_of("out", out)};
    const Argument arguments[] = {{0, 0}, {0, 1}};
    LaunchOptions options;
    options.block[0] = 64;
    ASSERT_EQ(code.launch("sum", memories, arguments, options).error, "");
    int32_t sum = 0;
    for (int32_t v : in) sum += v;
    for (int32_t v : out) EXPECT_EQ(v, sum);
  }
}

// D = A * B + C by one matrix instruction, operands where the instruction set documents have them: lane l has
// row, or column, l % size of A and B, and of each four k from 4 * (l / size) on.
void check_matrix(const char* cpu, int size, int k, const std::string& name) {
  const int lanes = 64, kept = size * size / lanes;
  const std::string sum = "<" + std::to_string(kept) + " x float>";
  const std::string text = "declare i32 @llvm.amdgcn.workitem.id.x()\ndeclare " + sum +
                           " @llvm.amdgcn.mfma." + name + "(<4 x half>, <4 x half>, " + sum +
                           R"(, i32 immarg, i32 immarg, i32 immarg)
define amdgpu_kernel void @product(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %d) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <4 x half>, ptr addrspace(1) %a, i32 %t
  %pb = getelementptr <4 x half>, ptr addrspace(1) %b, i32 %t
  %pd = getelementptr )" + sum +
                           R"(, ptr addrspace(1) %d, i32 %t
  %x = load <4 x half>, ptr addrspace(1) %pa
  %y = load <4 x half>, ptr addrspace(1) %pb
  %z = load )" + sum + R"(, ptr addrspace(1) %pd
  %w = call )" + sum + " @llvm.amdgcn.mfma." +
                           name + "(<4 x half> %x, <4 x half> %y, " + sum +
                           R"( %z, i32 0, i32 0, i32 0)
  store )" + sum + R"( %w, ptr addrspace(1) %pd
  ret void
}
)";
  CodeObject code(code_object_of(text, cpu));
  const std::vector<int> whole = numbers<int>(static_cast<size_t>(lanes * 8), -5, 5, 5);
  std::vector<uint16_t> a, b;
  for (int i = 0; i < lanes * 4; ++i) {
    a.push_back(float_to_half(static_cast<float>(whole[static_cast<size_t>(i)])));
    b.push_back(float_to_half(static_cast<float>(whole[static_cast<size_t>(lanes * 4 + i)])));
  }
  std::vector<float> d = numbers<float>(static_cast<size_t>(lanes * kept), -9, 9, 6), expected = d;
  for (int lane = 0; lane < lanes; ++lane)
    for (int r = 0; r < kept; ++r) {
      const int row = 8 * (r / 4) * (size / 32) + 4 * (lane / size) + r % 4, column = lane % size;
      for (int i = 0; i < k; ++i) {
        const auto at = [&](int line) { return static_cast<size_t>(4 * (line + size * (i / 4)) + i % 4); };
        expected[static_cast<size_t>(lane * kept + r)] +=
            half_to_float(a[at(row)]) * half_to_float(b[at(column)]);
      }
    }
  const Memory memories[] = {memory_of("a", a), memory_of("b", b), memory_of("d", d)};
  const Argument arguments[] = {{0, 0}, {0, 1}, {0, 2}};
  LaunchOptions options;
  options.block[0] = 64;
  ASSERT_EQ(code.launch("product", memories, arguments, options).error, "") << cpu;
  EXPECT_EQ(d, expected) << cpu << " " << name;
}

TEST(Interpreter, MultipliesMatrices) {
  for (const char* cpu : kCpus) {
    check_matrix(cpu, 32, 8, "f32.32x32x8f16");
    check_matrix(cpu, 16, 16, "f32.16x16x16f16");
  }
}

// D += A * B of an A of two values of each four k: lane l has row l % size, the values of 8 k from
// 8 * (l / size) on, and their places in the low byte of its indices.
void check_sparse_matrix(int size, int k) {
  const int lanes = 64, kept = size * size / lanes;
  const std::string sum = "<" + std::to_string(kept) + " x float>",
                    shape = std::to_string(size) + "x" + std::to_string(size) + "x" + std::to_string(k);
  const std::string call = sum + " @llvm.amdgcn.smfmac.f32." + shape + ".f16(<4 x half>";
  const std::string text = "declare i32 @llvm.amdgcn.workitem.id.x()\ndeclare " + call + ", <8 x half>, " +
                           sum +
                           R"(, i32, i32 immarg, i32 immarg)
define amdgpu_kernel void @product(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %p, ptr addrspace(1) %d) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <4 x half>, ptr addrspace(1) %a, i32 %t
  %pb = getelementptr <8 x half>, ptr addrspace(1) %b, i32 %t
  %pp = getelementptr i32, ptr addrspace(1) %p, i32 %t
  %pd = getelementptr )" + sum +
                           R"(, ptr addrspace(1) %d, i32 %t
  %x = load <4 x half>, ptr addrspace(1) %pa
  %y = load <8 x half>, ptr addrspace(1) %pb
  %i = load i32, ptr addrspace(1) %pp
  %z = load )" + sum + R"(, ptr addrspace(1) %pd
  %w = call )" + call + " %x, <8 x half> %y, " +
                           sum + R"( %z, i32 %i, i32 0, i32 0)
  store )" + sum + R"( %w, ptr addrspace(1) %pd
  ret void
}
)";
  CodeObject code(code_object_of(text, "gfx942"));
  const std::vector<int> whole = numbers<int>(static_cast<size_t>(lanes * 12), -5, 5, 5),
                         any = numbers<int>(static_cast<size_t>(lanes * 4), 0, 11, 8);
  std::vector<uint16_t> a, b;
  std::vector<uint32_t> places;
  const auto half = [&](int i) { return float_to_half(static_cast<float>(whole[static_cast<size_t>(i)])); };
  for (int i = 0; i < lanes * 4; ++i) a.push_back(half(i));
  for (int i = 0; i < lanes * 8; ++i) b.push_back(half(lanes * 4 + i));
  for (int l = 0; l < lanes; ++l) {
    uint32_t word = 0xabcd0000u | 0xef00u;  // what is not read
    for (int group = 0; group < 2; ++group) {
      const int choice = any[static_cast<size_t>(2 * l + group)];
      const uint32_t first = static_cast<uint32_t>(choice % 4),
                     second = (first + 1 + static_cast<uint32_t>(choice / 4)) % 4;
      word |= (first | second << 2) << 4 * group;
    }
    places.push_back(word);
  }
  std::vector<float> d = numbers<float>(static_cast<size_t>(lanes * kept), -9, 9, 6), expected = d;
  for (int lane = 0; lane < lanes; ++lane)
    for (int r = 0; r < kept; ++r) {
      const int row = 8 * (r / 4) * (size / 32) + 4 * (lane / size) + r % 4, column = lane % size;
      for (int value = 0; value < k / 2; ++value) {
        const int of_a = row + size * (value / 4);
        const int place = static_cast<int>(places[static_cast<size_t>(of_a)] >> 2 * (value % 4) & 3),
                  at = value / 2 * 4 + place;
        expected[static_cast<size_t>(lane * kept + r)] +=
            half_to_float(a[static_cast<size_t>(4 * of_a + value % 4)]) *
            half_to_float(b[static_cast<size_t>(8 * (column + size * (at / 8)) + at % 8)]);
      }
    }
  const Memory memories[] = {memory_of("a", a), memory_of("b", b), memory_of("p", places), memory_of("d", d)};
  const Argument arguments[] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}};
  LaunchOptions options;
  options.block[0] = 64;
  ASSERT_EQ(code.launch("product", memories, arguments, options).error, "");
  EXPECT_EQ(d, expected) << shape;
}

TEST(Interpreter, MultipliesSparseMatrices) {
  check_sparse_matrix(16, 32);
  check_sparse_matrix(32, 16);
}

TEST(NumberFormats, HalvesRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float f = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(f)) continue;
    ASSERT_EQ(float_to_half(f), bits);
  }
  EXPECT_EQ(float_to_half(65520.f), 0x7c00);
  EXPECT_EQ(float_to_half(65519.f), 0x7bff);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);
  EXPECT_EQ(float_to_half(0x1.8p-25f), 1);
}

TEST(NumberFormats, EightBitFloatsReadBack) {
  for (bool bf8 : {false, true})
    for (uint32_t bits = 0; bits < 0x100; ++bits) {
      const float f = fp8_to_float(static_cast<uint8_t>(bits), bf8);
      if (bits == 0x80) {
        EXPECT_TRUE(std::isnan(f));
        continue;
      }
      ASSERT_EQ(float_to_fp8(f, bf8, {}), bits) << f;
    }
  EXPECT_EQ(float_to_fp8(1e6f, false, {}), 0x80);
  EXPECT_EQ(float_to_fp8(1e6f, false, {.saturating = true}), 0x7f);
}

}  // namespace
}  // namespace tilegen::amdemu
