#include "target/host/host.h"

#include <array>
#include <utility>

#include "target/registry.h"

namespace tilegen::target::host {

using ir::DType;

namespace {

// Rows, best first for one dtype triple; conditions on the CPU stand beside them.
std::vector<MicroKernelAtom> micro_kernels(const CpuFacts& f) {
  const int bytes = f.avx512 ? 64 : 32;
  const int registers = f.avx512 ? 32 : 16;
  const int f32 = bytes / 4, f64 = bytes / 8;
  std::vector<MicroKernelAtom> rows;
  // Intel AMX: eight registers of 16 rows of 64 bytes; a product of three full ones takes 16 cycles (Intel 64
  // and IA-32 Architectures Optimization Reference Manual, chapter on AMX).
  constexpr int kTileRows = 16, kTiles = 8, kProductCycles = 16;
  const auto matrix = [&](std::string name, DType a, DType b, DType c, int pack) {
    const int k = kTileRows * pack;
    rows.push_back({std::move(name), a, b, c, kTileRows, kTiles, pack,
                    kTileRows * kTileRows * k / kProductCycles, kTileRows, k});
  };
  if (f.amx_bf16) matrix("tdpbf16ps", DType::bf16, DType::bf16, DType::f32, 2);
  if (f.amx_f16) matrix("tdpfp16ps", DType::f16, DType::f16, DType::f32, 2);
  if (f.amx_i8) {
    matrix("tdpbssd", DType::i8, DType::i8, DType::i32, 4);
    matrix("tdpbsud", DType::i8, DType::u8, DType::i32, 4);
    matrix("tdpbusd", DType::u8, DType::i8, DType::i32, 4);
    matrix("tdpbuud", DType::u8, DType::u8, DType::i32, 4);
  }
  if (f.avx512_bf16)
    rows.push_back({"dpbf16ps", DType::bf16, DType::bf16, DType::f32, f32, registers, 2, 4 * f32});
  // Bytes of one sign on both sides go through the instruction of both signs with an offset.
  if (f.avx512_vnni)
    for (DType a : {DType::u8, DType::i8})
      for (DType b : {DType::u8, DType::i8})
        rows.push_back({"vpdpbusd." + std::string(ir::dtype_name(a)) + "." + ir::dtype_name(b), a, b,
                        DType::i32, f32, registers, 4, 8 * f32});
  rows.push_back({"fma.f32", DType::f32, DType::f32, DType::f32, f32, registers, 1, 2 * f32});
  rows.push_back({"fma.f64", DType::f64, DType::f64, DType::f64, f64, registers, 1, 2 * f64});
  rows.push_back({"fma.f32.f16", DType::f16, DType::f16, DType::f32, f32, registers, 1, f32});
  rows.push_back({"fma.f32.bf16", DType::bf16, DType::bf16, DType::f32, f32, registers, 1, f32});
  rows.push_back({"fma.f16", DType::f16, DType::f16, DType::f16, f32, registers, 1, f32});
  for (DType a : {DType::i8, DType::u8})
    for (DType b : {DType::i8, DType::u8})
      rows.push_back({"mul.i32." + std::string(ir::dtype_name(a)) + "." + ir::dtype_name(b), a, b, DType::i32,
                      f32, registers, 1, f32});
  for (const auto& kind : {std::array{DType::e4m3, DType::e5m2}, {DType::e4m3fnuz, DType::e5m2fnuz}})
    for (DType a : kind)
      for (DType b : kind)
        rows.push_back({"fma.f32." + std::string(ir::dtype_name(a)) + "." + ir::dtype_name(b), a, b,
                        DType::f32, f32, registers, 1, f32});
  return rows;
}

}  // namespace

Target from_facts(std::string name, const CpuFacts& facts) {
  Target t;
  t.name = std::move(name);
  t.vendor = kVendor.name;
  t.code = CodeFormat::object;
  t.shared_bytes =
      int64_t{256} << 20;  // the arena of a block; tiles should fit the caches, nothing forces them to
  t.vector_bytes = facts.avx512 ? 64 : 32;
  t.cpu = facts.cpu;
  t.features = facts.features;
  t.l1_bytes = facts.l1_bytes;
  t.l2_bytes = facts.l2_bytes;
  t.streaming_bytes = facts.l3_bytes / 2;
  t.micro_kernels = micro_kernels(facts);
  return t;
}

namespace {

// Levels of the x86-64 psABI, which LLVM has as cpus; the last with what came with matrix registers.
struct Level {
  std::string_view name, cpu;
  bool avx512 = false, amx = false;
};
constexpr Level kLevels[] = {
    {"x86-64-v3", "x86-64-v3"}, {"x86-64-v4", "x86-64-v4", true}, {"x86-64-v4-amx", "x86-64-v4", true, true}};
constexpr std::array kAmxFeatures = {"+amx-bf16",   "+amx-int8",   "+amx-tile",
                                     "+avx512bf16", "+avx512vnni", "+avxvnni"};
constexpr std::string_view kThisMachine = "host";

std::vector<std::string_view> names() {
  std::vector<std::string_view> all = {kThisMachine};
  for (const Level& level : kLevels) all.push_back(level.name);
  return all;
}

std::optional<Target> find(std::string_view name) {
  if (name == kThisMachine) return from_facts(std::string(name), this_machine());
  for (const Level& level : kLevels) {
    if (level.name != name) continue;
    CpuFacts f;
    f.cpu = std::string(level.cpu);
    f.avx512 = level.avx512;
    if (level.amx) {
      f.features.assign(kAmxFeatures.begin(), kAmxFeatures.end());
      f.avx512_bf16 = f.avx512_vnni = f.avx_vnni = f.amx_bf16 = f.amx_i8 = true;
    }
    return from_facts(std::string(name), f);
  }
  return std::nullopt;
}

}  // namespace

const Vendor kVendor = {"host", names, find};

}  // namespace tilegen::target::host
