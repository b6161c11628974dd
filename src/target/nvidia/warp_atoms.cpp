// Matrix atoms of a warp: the instructions of the PTX ISA ("Matrix Fragments for mma"), and multiply-adds.
#include <algorithm>
#include <initializer_list>

#include "target/lane_layout.h"
#include "target/multiply_adds.h"
#include "target/nvidia/nvidia.h"

namespace tilegen::target::nvidia {

using ir::DType;
using layout::Fragment;
using layout::kRegister;
using layout::kReplica;
using layout::kThread;

namespace {

Fragment over_lanes(std::vector<int64_t> shape, std::initializer_list<LaneDigit> list) {
  return target::over_lanes(kWarp, std::move(shape), list);
}

// Rows of a table read better as rows. In all of them lane = 4 * g + t.
// clang-format off
Fragment c_16x8() {
  return over_lanes({16, 8}, {{0, 8, kThread, 4}, {0, 2, kRegister, 2}, {1, 2, kRegister, 1},
                              {1, 4, kThread, 1}});
}

MmaAtom m16n8k16(const char* name, const char* instruction, DType in, DType out, MmaSemantics meaning) {
  return {name, 16, 8, 16, in, in, out,
          over_lanes({16, 16}, {{0, 8, kThread, 4}, {0, 2, kRegister, 2},
                                {1, 2, kRegister, 1}, {1, 4, kThread, 1}, {1, 2, kRegister, 4}}),
          over_lanes({16, 8}, {{0, 2, kRegister, 1}, {0, 4, kThread, 1}, {0, 2, kRegister, 2},
                               {1, 8, kThread, 4}}),
          c_16x8(), 16, meaning, MmaUnit::matrix, instruction};
}

MmaAtom m16n8k32(const std::string& name, const std::string& instruction, DType a, DType b, DType out,
                 MmaSemantics meaning) {
  return {name, 16, 8, 32, a, b, out,
          over_lanes({16, 32}, {{0, 8, kThread, 4}, {0, 2, kRegister, 4},
                                {1, 4, kRegister, 1}, {1, 4, kThread, 1}, {1, 2, kRegister, 8}}),
          over_lanes({32, 8}, {{0, 4, kRegister, 1}, {0, 4, kThread, 1}, {0, 2, kRegister, 4},
                               {1, 8, kThread, 4}}),
          c_16x8(), 16, meaning, MmaUnit::matrix, instruction};
}

// Operands of 4 bytes, which the instruction takes as tf32.
MmaAtom m16n8k8_tf32() {
  return {"mma.m16n8k8.f32.tf32", 16, 8, 8, DType::f32, DType::f32, DType::f32,
          over_lanes({16, 8}, {{0, 8, kThread, 4}, {0, 2, kRegister, 1}, {1, 4, kThread, 1},
                               {1, 2, kRegister, 2}}),
          over_lanes({8, 8}, {{0, 4, kThread, 1}, {0, 2, kRegister, 1}, {1, 8, kThread, 4}}),
          c_16x8(), 16, meaning::dot_tf32, MmaUnit::matrix, "llvm.nvvm.mma.m16n8k8.row.col.tf32",
          /*tf32=*/true};
}

MmaAtom m16n8k4_tf32() {
  return {"mma.m16n8k4.f32.tf32", 16, 8, 4, DType::f32, DType::f32, DType::f32,
          over_lanes({16, 4}, {{0, 8, kThread, 4}, {0, 2, kRegister, 1}, {1, 4, kThread, 1}}),
          over_lanes({4, 8}, {{0, 4, kThread, 1}, {1, 8, kThread, 4}}),
          c_16x8(), 8, meaning::dot_tf32, MmaUnit::matrix, "llvm.nvvm.mma.m16n8k4.row.col.tf32",
          /*tf32=*/true};
}

MmaAtom m8n8k4_f64() {
  return {"mma.m8n8k4.f64", 8, 8, 4, DType::f64, DType::f64, DType::f64,
          over_lanes({8, 4}, {{0, 8, kThread, 4}, {1, 4, kThread, 1}}),
          over_lanes({4, 8}, {{0, 4, kThread, 1}, {1, 8, kThread, 4}}),
          over_lanes({8, 8}, {{0, 8, kThread, 4}, {1, 2, kRegister, 1}, {1, 4, kThread, 1}}),
          8, meaning::fma_f64, MmaUnit::matrix, "llvm.nvvm.mma.m8n8k4.row.col.f64"};
}

// Two values of each four along k: A lies as the whole operand of half the depth. A lane's places are those
// of a row's 16 neighbours in each half of its register, or of 32; the first lanes of a quad have those of
// 16-bit types (sparsity selector 0).
MmaAtom m16n8k32_sparse(const std::string& name, const std::string& types, DType in, DType out,
                        MmaSemantics meaning) {
  MmaAtom atom = {"mma.sp.m16n8k32" + name, 16, 8, 32, in, in, out,
                  over_lanes({16, 16}, {{0, 8, kThread, 4}, {0, 2, kRegister, 2},
                                        {1, 2, kRegister, 1}, {1, 4, kThread, 1}, {1, 2, kRegister, 4}}),
                  over_lanes({32, 8}, {{0, 2, kRegister, 1}, {0, 4, kThread, 1}, {0, 4, kRegister, 2},
                                       {1, 8, kThread, 4}}),
                  c_16x8(), 16, meaning, MmaUnit::matrix, "mma.sp.sync.aligned.m16n8k32.row.col" + types};
  atom.places = over_lanes({16, 8}, {{0, 8, kThread, 4}, {0, 2, kRegister, 4},
                                     {1, 4, kRegister, 1}, {1, 2, kThread, 1}, {kReplica, 2, kThread, 2}});
  return atom;
}

MmaAtom m16n8k64_sparse(const std::string& name, const std::string& types, DType a, DType b, DType out,
                        MmaSemantics meaning) {
  MmaAtom atom = {"mma.sp.m16n8k64" + name, 16, 8, 64, a, b, out,
                  over_lanes({16, 32}, {{0, 8, kThread, 4}, {0, 2, kRegister, 4},
                                        {1, 4, kRegister, 1}, {1, 4, kThread, 1}, {1, 2, kRegister, 8}}),
                  over_lanes({64, 8}, {{0, 4, kRegister, 1}, {0, 4, kThread, 1}, {0, 4, kRegister, 4},
                                       {1, 8, kThread, 4}}),
                  c_16x8(), 16, meaning, MmaUnit::matrix, "mma.sp.sync.aligned.m16n8k64.row.col" + types};
  atom.places = over_lanes({16, 16}, {{0, 8, kThread, 4}, {0, 2, kThread, 1},
                                      {1, 8, kRegister, 1}, {1, 2, kThread, 2}});
  return atom;
}

// clang-format on

// 8-bit floats came with PTX 8.4; LLVM has no intrinsic.
constexpr int kFp8Ptx = 84;
constexpr int kSparsePtx = 71;

void add_fp8_atoms(std::vector<MmaAtom>& atoms) {
  for (DType a : {DType::e4m3, DType::e5m2})
    for (DType b : {DType::e4m3, DType::e5m2}) {
      const std::string types = std::string(".f32.") + ir::dtype_name(a) + "." + ir::dtype_name(b);
      atoms.push_back(m16n8k32("mma.m16n8k32" + types, "mma.sync.aligned.m16n8k32.row.col" + types + ".f32",
                               a, b, DType::f32, meaning::dot_f32));
      atoms.back().isa_version = kFp8Ptx;
    }
}

// 8-bit integers; LLVM writes a type once where both are the same.
void add_integer_atoms(std::vector<MmaAtom>& atoms) {
  const auto sign = [](DType t) { return t == DType::i8 ? ".s8" : ".u8"; };
  for (const auto& [a, b] : {std::pair(DType::i8, DType::i8), std::pair(DType::u8, DType::u8),
                             std::pair(DType::i8, DType::u8), std::pair(DType::u8, DType::i8)})
    atoms.push_back(
        m16n8k32(std::string("mma.m16n8k32.s32") + sign(a) + sign(b),
                 std::string("llvm.nvvm.mma.m16n8k32.row.col") + sign(a) + (a == b ? "" : sign(b)), a, b,
                 DType::i32, meaning::dot_i32));
}

}  // namespace

// "mma.sp" of PTX 7.1; the form with ordered metadata, of PTX 8.5, is the same instruction on these devices,
// and takes places in ascending order alone.
std::vector<MmaAtom> sparse_warp_atoms(bool fp8) {
  std::vector<MmaAtom> atoms = {
      m16n8k32_sparse(".f32.f16", ".f32.f16.f16.f32", DType::f16, DType::f32, meaning::dot_f32),
      m16n8k32_sparse(".f32.bf16", ".f32.bf16.bf16.f32", DType::bf16, DType::f32, meaning::dot_f32),
  };
  for (const auto& [a, b] : {std::pair(DType::i8, DType::i8), std::pair(DType::u8, DType::u8),
                             std::pair(DType::i8, DType::u8), std::pair(DType::u8, DType::i8)}) {
    const auto sign = [](DType t) { return t == DType::i8 ? ".s8" : ".u8"; };
    const std::string types = std::string(".s32") + sign(a) + sign(b);
    atoms.push_back(m16n8k64_sparse(types, types + ".s32", a, b, DType::i32, meaning::dot_i32));
  }
  for (DType a : {DType::e4m3, DType::e5m2})
    for (DType b : {DType::e4m3, DType::e5m2}) {
      if (!fp8) continue;
      const std::string types = std::string(".f32.") + ir::dtype_name(a) + "." + ir::dtype_name(b);
      atoms.push_back(m16n8k64_sparse(types, types + ".f32", a, b, DType::f32, meaning::dot_f32));
      atoms.back().isa_version = kFp8Ptx;
    }
  for (MmaAtom& atom : atoms) atom.isa_version = std::max(atom.isa_version, kSparsePtx);
  return atoms;
}

std::vector<MmaAtom> warp_atoms(bool fp8) {
  std::vector<MmaAtom> atoms = {
      m16n8k16("mma.m16n8k16.f32.f16", "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", DType::f16, DType::f32,
               meaning::dot_f32),
      m16n8k16("mma.m16n8k16.f16.f16", "llvm.nvvm.mma.m16n8k16.row.col.f16.f16", DType::f16, DType::f16,
               meaning::dot_f16),
      m16n8k16("mma.m16n8k16.f32.bf16", "llvm.nvvm.mma.m16n8k16.row.col.bf16", DType::bf16, DType::f32,
               meaning::dot_f32),
  };
  add_integer_atoms(atoms);
  atoms.push_back(m8n8k4_f64());
  atoms.push_back(m16n8k8_tf32());
  atoms.push_back(m16n8k4_tf32());
  if (fp8) add_fp8_atoms(atoms);
  // 8 x 4 lanes, a warp on the 16 lanes of a scheduler.
  const LaneGrid grid = {.rows = 8, .columns = 4, .cycles = 2};
  std::vector<DotProduct> dots;
  for (DType a : {DType::i8, DType::u8})
    for (DType b : {DType::i8, DType::u8}) {
      const auto sign = [](DType t) { return t == DType::i8 ? ".s8" : ".u8"; };
      dots.push_back({std::string("dp4a.s32") + sign(a) + sign(b), a, b, DType::i32, meaning::dot_i32});
    }
  for (MmaAtom& atom : dot_atoms(grid, dots)) atoms.push_back(std::move(atom));
  for (MmaAtom& atom : multiply_add_atoms(grid)) atoms.push_back(std::move(atom));
  return atoms;
}

}  // namespace tilegen::target::nvidia
