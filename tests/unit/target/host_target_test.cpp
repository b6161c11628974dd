// Host targets: what follows from a CPU's facts.
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "target/host/host.h"
#include "target/target.h"

namespace tilegen::target {
namespace {

using ir::DType;

host::CpuFacts facts(bool avx512, bool bf16, bool vnni) {
  host::CpuFacts f;
  f.avx512 = avx512;
  f.avx512_bf16 = bf16;
  f.avx512_vnni = vnni;
  return f;
}

const MicroKernelAtom* first_row(const Target& t, DType a, DType b, DType c) {
  for (const MicroKernelAtom& row : t.micro_kernels)
    if (row.a == a && row.b == b && row.c == c) return &row;
  return nullptr;
}

TEST(HostTarget, RowsAreSane) {
  for (bool avx512 : {false, true})
    for (bool extra : {false, true}) {
      const Target t = host::from_facts("cpu", facts(avx512, avx512 && extra, avx512 && extra));
      EXPECT_EQ(t.code, CodeFormat::object);
      EXPECT_FALSE(t.has_block_threads());
      EXPECT_TRUE(t.addressable_registers());
      EXPECT_EQ(t.vector_bytes, avx512 ? 64 : 32);
      EXPECT_EQ(t.warp, 1);
      EXPECT_EQ(t.max_threads, 1);
      EXPECT_EQ(t.registers_per_thread, 0);
      EXPECT_TRUE(t.mma.empty());
      EXPECT_LT(t.l1_bytes, t.l2_bytes);
      EXPECT_GT(t.streaming_bytes, t.l2_bytes);
      std::set<std::string> names;
      for (const MicroKernelAtom& row : t.micro_kernels) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_EQ(row.registers, avx512 ? 32 : 16) << row.name;
        // A register of C holds `lanes` elements; f16 accumulates in f32.
        EXPECT_EQ(row.lanes * std::max(ir::dtype_bytes(row.c), 4), t.vector_bytes) << row.name;
        EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(row.lanes))) << row.name;
        EXPECT_TRUE(row.pack == 1 || row.pack * ir::dtype_bytes(row.a) == 4) << row.name;
        EXPECT_EQ(ir::dtype_bytes(row.a), ir::dtype_bytes(row.b)) << row.name;
        EXPECT_EQ(ir::is_float(row.a), ir::is_float(row.c)) << row.name;
        EXPECT_GE(row.macs_per_cycle, row.lanes) << row.name;
      }
    }
}

TEST(HostTarget, EveryTypeCombinationOfAGemmHasARow) {
  for (bool avx512 : {false, true}) {
    const Target t = host::from_facts("cpu", facts(avx512, avx512, avx512));
    for (auto [a, b, c] : {std::tuple{DType::f32, DType::f32, DType::f32},
                           {DType::f64, DType::f64, DType::f64},
                           {DType::f16, DType::f16, DType::f32},
                           {DType::bf16, DType::bf16, DType::f32},
                           {DType::f16, DType::f16, DType::f16},
                           {DType::i8, DType::i8, DType::i32},
                           {DType::i8, DType::u8, DType::i32},
                           {DType::u8, DType::i8, DType::i32},
                           {DType::u8, DType::u8, DType::i32},
                           {DType::e4m3, DType::e4m3, DType::f32},
                           {DType::e4m3, DType::e5m2, DType::f32},
                           {DType::e5m2, DType::e4m3, DType::f32},
                           {DType::e5m2, DType::e5m2, DType::f32},
                           {DType::e4m3fnuz, DType::e5m2fnuz, DType::f32}})
      EXPECT_NE(first_row(t, a, b, c), nullptr)
          << ir::dtype_name(a) << " " << ir::dtype_name(b) << " " << ir::dtype_name(c);
  }
}

TEST(HostTarget, TheBestRowComesFirst) {
  const Target plain = host::from_facts("cpu", facts(true, false, false));
  const Target rich = host::from_facts("cpu", facts(true, true, true));
  EXPECT_EQ(first_row(plain, DType::bf16, DType::bf16, DType::f32)->name, "fma.f32.bf16");
  EXPECT_EQ(first_row(rich, DType::bf16, DType::bf16, DType::f32)->name, "dpbf16ps");
  EXPECT_EQ(first_row(rich, DType::bf16, DType::bf16, DType::f32)->pack, 2);
  EXPECT_EQ(first_row(rich, DType::u8, DType::i8, DType::i32)->name, "vpdpbusd.u8.i8");
  EXPECT_EQ(first_row(rich, DType::u8, DType::i8, DType::i32)->pack, 4);
  EXPECT_EQ(first_row(rich, DType::u8, DType::u8, DType::i32)->name, "vpdpbusd.u8.u8");
  for (size_t i = 0; i < rich.micro_kernels.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      const MicroKernelAtom &worse = rich.micro_kernels[i], &better = rich.micro_kernels[k];
      if (worse.a == better.a && worse.b == better.b && worse.c == better.c) {
        EXPECT_GT(better.macs_per_cycle, worse.macs_per_cycle) << better.name;
      }
    }
}

}  // namespace
}  // namespace tilegen::target
