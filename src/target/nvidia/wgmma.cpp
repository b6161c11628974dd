// Matrix instructions of a warpgroup (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"): which
// there are and where the 128 threads have the elements of A and of the accumulator. In the layouts thread =
// 32 * warp + 4 * g + t.
#include <algorithm>
#include <cassert>

#include "target/lane_layout.h"
#include "target/nvidia/nvidia.h"

namespace tilegen::target {

using ir::DType;
using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kThread;
using layout::Layout;

namespace {

// Digits of one dimension, least significant first: extent, output and stride.
struct D {
  int64_t extent;
  int output;
  int64_t stride;
};

Fragment over_warpgroup(int64_t rows, int64_t columns, std::initializer_list<D> row,
                        std::initializer_list<D> column) {
  std::vector<Digit> digits;
  for (int dim : {0, 1}) {
    int64_t weight = 1;
    for (const D& d : dim == 0 ? row : column) {
      if (d.extent > 1) digits.push_back({dim, d.extent, weight, d.output, d.stride});
      weight *= d.extent;
    }
  }
  auto map = Layout::make({rows, columns}, std::move(digits), 2);
  assert(map && "a warpgroup operand is not a layout");
  auto fragment = Fragment::make(*map, nvidia::kWarpgroup);
  assert(fragment && "a warpgroup operand is not a fragment");
  return *fragment;
}

std::vector<int> multiples_of_8() {
  std::vector<int> widths;
  for (int n = 8; n <= 256; n += 8) widths.push_back(n);
  return widths;
}

// 8-bit integers: 8, 16, 24, then multiples of 16.
std::vector<int> integer_widths() {
  std::vector<int> widths = {8, 16, 24};
  for (int n = 32; n <= 256; n += 16) widths.push_back(n);
  return widths;
}

// PTX ISA, "Register Fragments": eight rows of a warp at a time, columns in pairs.
Fragment accumulator(const WarpgroupAtom& atom, int n) {
  return over_warpgroup(atom.m, n, {{8, kThread, 4}, {2, kRegister, 2}, {4, kThread, nvidia::kWarp}},
                        {{2, kRegister, 1}, {4, kThread, 1}, {n / 8, kRegister, 4}});
}

Fragment a_operand(const WarpgroupAtom& atom) {
  const int64_t word = 4 / ir::dtype_bytes(atom.a);  // elements of a 32-bit register
  return over_warpgroup(
      atom.m, atom.a_k(), {{8, kThread, 4}, {2, kRegister, word}, {4, kThread, nvidia::kWarp}},
      {{word, kRegister, 1}, {4, kThread, 1}, {atom.a_k() / (4 * word), kRegister, 2 * word}});
}

// PTX ISA, "Matrix fragments for warpgroup-level multiply-accumulate operation with sparse matrix A": a warp
// has the places of its 16 rows, as those of mma.sp lie; of 16-bit types the first lanes of a quad
// (sparsity selector 0).
Fragment places_of_16_bits() {
  return over_lanes(nvidia::kWarpgroup, {64, 8},
                    {{0, 8, kThread, 4},
                     {0, 2, kRegister, 4},
                     {0, 4, kThread, nvidia::kWarp},
                     {1, 4, kRegister, 1},
                     {1, 2, kThread, 1},
                     {layout::kReplica, 2, kThread, 2}});
}
Fragment places_of_8_bits() {
  return over_lanes(nvidia::kWarpgroup, {64, 16},
                    {{0, 8, kThread, 4},
                     {0, 2, kThread, 1},
                     {0, 4, kThread, nvidia::kWarp},
                     {1, 8, kRegister, 1},
                     {1, 2, kThread, 2}});
}

}  // namespace

std::string warpgroup_instruction_name(const WarpgroupAtom& atom, int n) {
  std::string name = atom.name;  // "wgmma.k16...." -> "wgmma.m64n256k16...."
  return name.insert(name.find(".k") + 1, "m" + std::to_string(atom.m) + "n" + std::to_string(n));
}

std::optional<WarpgroupInstruction> find_warpgroup_atom(const Target& t, std::string_view name) {
  for (const auto* atoms : {&t.warpgroup_mma, &t.sparse_warpgroup_mma})
    for (const WarpgroupAtom& atom : *atoms)
      for (int width : atom.widths)
        if (warpgroup_instruction_name(atom, width) == name) return WarpgroupInstruction{&atom, width};
  return std::nullopt;
}

namespace nvidia {

// PTX versions times 10.
constexpr int kPtx = 80, kMixedSignsPtx = 84, kSparsePtx = 82;

// The tensor pipe takes 64 x 8 x 16 products of 16-bit numbers in 4 cycles, of 8-bit ones twice as many, of
// tf32 half as many.
std::vector<WarpgroupAtom> warpgroup_atoms() {
  constexpr int kRows = 64, kCycles = 4;
  const std::vector<int> all = multiples_of_8(), integers = integer_widths();
  std::vector<WarpgroupAtom> atoms;
  const auto add = [&](std::string name, int k, DType a, DType b, DType c, const std::vector<int>& widths,
                       bool mn_major, MmaSemantics meaning, int ptx = kPtx) {
    atoms.push_back({std::move(name), kRows, k, a, b, c, widths, mn_major, kCycles, meaning, accumulator,
                     a_operand, ptx});
  };
  add("wgmma.k16.f32.f16.f16", 16, DType::f16, DType::f16, DType::f32, all, true, meaning::dot_f32);
  add("wgmma.k16.f32.bf16.bf16", 16, DType::bf16, DType::bf16, DType::f32, all, true, meaning::dot_f32);
  add("wgmma.k16.f16.f16.f16", 16, DType::f16, DType::f16, DType::f16, all, true, meaning::dot_f16);
  add("wgmma.k8.f32.tf32.tf32", 8, DType::f32, DType::f32, DType::f32, all, false,
      meaning::dot_tf32_truncated);
  for (DType a : {DType::e4m3, DType::e5m2})
    for (DType b : {DType::e4m3, DType::e5m2})
      add(std::string("wgmma.k32.f32.") + ir::dtype_name(a) + "." + ir::dtype_name(b), 32, a, b, DType::f32,
          all, false, meaning::dot_f32);
  const auto sign = [](DType t) { return t == DType::i8 ? "s8" : "u8"; };
  for (DType a : {DType::i8, DType::u8})
    for (DType b : {DType::i8, DType::u8})
      add(std::string("wgmma.k32.s32.") + sign(a) + "." + sign(b), 32, a, b, DType::i32, integers, false,
          meaning::dot_i32, a == b ? kPtx : kMixedSignsPtx);
  return atoms;
}

// Rows of 16-bit and 8-bit types again, of twice the depth in the time of one.
std::vector<WarpgroupAtom> sparse_warpgroup_atoms() {
  std::vector<WarpgroupAtom> atoms;
  for (WarpgroupAtom atom : warpgroup_atoms()) {
    const int bytes = ir::dtype_bytes(atom.a);
    if (bytes > 2) continue;
    const std::string k = "k" + std::to_string(atom.k);
    atom.k *= 2;
    atom.name.replace(atom.name.find(k), k.size(), "sp.k" + std::to_string(atom.k));
    atom.places = bytes == 2 ? places_of_16_bits() : places_of_8_bits();
    atom.isa_version = std::max(atom.isa_version, kSparsePtx);
    atoms.push_back(std::move(atom));
  }
  return atoms;
}

}  // namespace nvidia

}  // namespace tilegen::target
