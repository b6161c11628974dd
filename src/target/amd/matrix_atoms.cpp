// Matrix instructions of a wave ("CDNA 3" and "CDNA 2" instruction set documents, "Dense Matrix Fused
// Multiply-Add"). Of an operand a lane has a row of A, or a column of B, and `held` neighbouring k; of the
// sum a column, rows in groups of four; transposed a row, and columns in groups of four: what row statistics
// and an operand A of a further product want.
#include "target/amd/amd.h"
#include "target/lane_layout.h"

namespace tilegen::target::amd {

using ir::DType;
using layout::Fragment;
using layout::kRegister;
using layout::kThread;

namespace {

struct Row {
  std::string name;
  std::string instruction;
  int size, k;  // of D and along k
  DType in, out;
  MmaSemantics meaning;
  int rate;                     // multiply-adds a cycle
  DType in_b = DType::none;     // where it differs
  std::string transposed = {};  // the instruction of exchanged operands, where that is another one
  bool tf32 = false;
};

// `row`, `column`: the dimensions that are those of what the instruction computes.
Fragment sums(const Row& r, int row, int column) {
  if (r.out == DType::f64)
    return over_lanes(kWave, {16, 16},
                      {{row, 4, kThread, 16}, {row, 4, kRegister, 1}, {column, 16, kThread, 1}});
  if (r.size == 16)
    return over_lanes(kWave, {16, 16},
                      {{row, 4, kRegister, 1}, {row, 4, kThread, 16}, {column, 16, kThread, 1}});
  return over_lanes(
      kWave, {32, 32},
      {{row, 4, kRegister, 1}, {row, 2, kThread, 32}, {row, 4, kRegister, 4}, {column, 32, kThread, 1}});
}

MmaAtom atom_of(const Row& r, bool transposed) {
  const int groups = kWave / r.size, held = r.k / groups;
  return {transposed ? r.name + ".t" : r.name,
          r.size,
          r.size,
          r.k,
          r.in,
          r.in_b == DType::none ? r.in : r.in_b,
          r.out,
          over_lanes(kWave, {r.size, r.k},
                     {{0, r.size, kThread, 1}, {1, held, kRegister, 1}, {1, groups, kThread, r.size}}),
          over_lanes(kWave, {r.k, r.size},
                     {{0, held, kRegister, 1}, {0, groups, kThread, r.size}, {1, r.size, kThread, 1}}),
          transposed ? sums(r, 1, 0) : sums(r, 0, 1),
          r.size * r.size * r.k / r.rate,
          r.meaning,
          MmaUnit::matrix,
          transposed && !r.transposed.empty() ? r.transposed : r.instruction,
          r.tf32,
          /*isa_version=*/0,
          /*waits_around_loops=*/true,
          transposed};
}

std::string byte_float(DType t) { return t == DType::e4m3fnuz ? "fp8" : "bf8"; }

// 8-bit floats of the FNUZ kind, each with each.
std::vector<Row> fnuz_rows(int rate) {
  std::vector<Row> rows;
  for (DType a : {DType::e4m3fnuz, DType::e5m2fnuz})
    for (DType b : {DType::e4m3fnuz, DType::e5m2fnuz})
      for (const char* shape : {"32x32x16", "16x16x32"}) {
        const bool large = shape[0] == '3';
        const std::string instruction = std::string("llvm.amdgcn.mfma.f32.") + shape + ".";
        rows.push_back({std::string("mfma.") + shape + ".f32." + ir::dtype_name(a) + "." + ir::dtype_name(b),
                        instruction + byte_float(a) + "." + byte_float(b), large ? 32 : 16, large ? 16 : 32,
                        a, DType::f32, meaning::dot_f32, rate, b,
                        instruction + byte_float(b) + "." + byte_float(a)});
      }
  return rows;
}

// Two values of each four along k ("CDNA 3" instruction set document, "4:2 Structural Sparsity"): of A a lane
// has the values of its k of B, and their places in the low bits of its register.
MmaAtom sparse_atom_of(const std::string& name, const std::string& instruction, int size, int k, DType a,
                       DType b, DType out, const MmaSemantics& meaning, int rate) {
  Row row = {name, instruction, size, k, a, out, meaning, 2 * rate, b};
  MmaAtom atom = atom_of(row, false);
  const int groups = kWave / size, held = k / groups;
  atom.a_layout = over_lanes(
      kWave, {size, k / 2}, {{0, size, kThread, 1}, {1, held / 2, kRegister, 1}, {1, groups, kThread, size}});
  atom.places = over_lanes(kWave, {size, k / 4},
                           {{0, size, kThread, 1}, {1, held / 4, kRegister, 1}, {1, groups, kThread, size}});
  return atom;
}

}  // namespace

std::vector<MmaAtom> sparse_matrix_atoms(const MatrixRates& rates) {
  std::vector<MmaAtom> atoms;
  const auto add = [&](bool large, bool bytes, const std::string& types, const std::string& llvm_types,
                       DType a, DType b, DType out, const MmaSemantics& meaning) {
    const int size = large ? 32 : 16, k = (large ? 16 : 32) * (bytes ? 2 : 1);
    const std::string shape = std::to_string(size) + "x" + std::to_string(size) + "x" + std::to_string(k);
    atoms.push_back(sparse_atom_of(
        "smfmac." + shape + types,
        std::string("llvm.amdgcn.smfmac.") + (out == DType::i32 ? "i32." : "f32.") + shape + llvm_types, size,
        k, a, b, out, meaning, bytes ? rates.bytes : rates.halves));
  };
  for (bool large : {true, false}) {
    add(large, false, ".f32.f16", ".f16", DType::f16, DType::f16, DType::f32, meaning::dot_f32);
    add(large, false, ".f32.bf16", ".bf16", DType::bf16, DType::bf16, DType::f32, meaning::dot_f32);
    add(large, true, ".s32.s8", ".i8", DType::i8, DType::i8, DType::i32, meaning::dot_i32);
    for (DType a : {DType::e4m3fnuz, DType::e5m2fnuz})
      for (DType b : {DType::e4m3fnuz, DType::e5m2fnuz})
        add(large, true, std::string(".f32.") + ir::dtype_name(a) + "." + ir::dtype_name(b),
            "." + byte_float(a) + "." + byte_float(b), a, b, DType::f32, meaning::dot_f32);
  }
  return atoms;
}

std::vector<MmaAtom> matrix_atoms(const MatrixRates& rates) {
  using namespace meaning;
  std::vector<Row> rows = {
      {"mfma.32x32x8.f32.f16", "llvm.amdgcn.mfma.f32.32x32x8f16", 32, 8, DType::f16, DType::f32, dot_f32,
       rates.halves},
      {"mfma.16x16x16.f32.f16", "llvm.amdgcn.mfma.f32.16x16x16f16", 16, 16, DType::f16, DType::f32, dot_f32,
       rates.halves},
      {"mfma.32x32x8.f32.bf16", "llvm.amdgcn.mfma.f32.32x32x8bf16.1k", 32, 8, DType::bf16, DType::f32,
       dot_f32, rates.halves},
      {"mfma.16x16x16.f32.bf16", "llvm.amdgcn.mfma.f32.16x16x16bf16.1k", 16, 16, DType::bf16, DType::f32,
       dot_f32, rates.halves},
      {"mfma.32x32x2.f32", "llvm.amdgcn.mfma.f32.32x32x2f32", 32, 2, DType::f32, DType::f32, fma_f32,
       rates.words},
      {"mfma.16x16x4.f32", "llvm.amdgcn.mfma.f32.16x16x4f32", 16, 4, DType::f32, DType::f32, fma_f32,
       rates.words},
      {"mfma.16x16x4.f64", "llvm.amdgcn.mfma.f64.16x16x4f64", 16, 4, DType::f64, DType::f64, fma_f64,
       rates.words},
  };
  const std::vector<Row> wide = {
      {"mfma.32x32x16.s32.s8", "llvm.amdgcn.mfma.i32.32x32x16.i8", 32, 16, DType::i8, DType::i32, dot_i32,
       rates.bytes},
      {"mfma.16x16x32.s32.s8", "llvm.amdgcn.mfma.i32.16x16x32.i8", 16, 32, DType::i8, DType::i32, dot_i32,
       rates.bytes},
  };
  const std::vector<Row> narrow = {
      {"mfma.32x32x8.s32.s8", "llvm.amdgcn.mfma.i32.32x32x8i8", 32, 8, DType::i8, DType::i32, dot_i32,
       rates.bytes},
      {"mfma.16x16x16.s32.s8", "llvm.amdgcn.mfma.i32.16x16x16i8", 16, 16, DType::i8, DType::i32, dot_i32,
       rates.bytes},
  };
  const std::vector<Row>& bytes = rates.wide_bytes ? wide : narrow;
  rows.insert(rows.end(), bytes.begin(), bytes.end());
  if (rates.wide_bytes)
    for (Row& r : fnuz_rows(rates.bytes)) rows.push_back(std::move(r));
  if (rates.reduced_words != 0)
    for (const char* shape : {"32x32x4", "16x16x8"}) {
      const bool large = shape[0] == '3';
      rows.push_back({std::string("mfma.") + shape + ".f32.xf32",
                      std::string("llvm.amdgcn.mfma.f32.") + shape + ".xf32", large ? 32 : 16, large ? 4 : 8,
                      DType::f32, DType::f32, dot_tf32, rates.reduced_words});
      rows.back().tf32 = true;
    }
  std::vector<MmaAtom> atoms;
  for (bool transposed : {false, true})
    for (const Row& r : rows) atoms.push_back(atom_of(r, transposed));
  return atoms;
}

}  // namespace tilegen::target::amd
