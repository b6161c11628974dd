// What a device can do, as plain tables. Lowering and planning select rows; nothing branches on an
// architecture number.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "layout/fragment.h"
#include "support/diagnostic.h"
#include "target/mma_meaning.h"

namespace tilegen::target {

enum class Kind : uint8_t { host, nvidia };

// One matrix instruction of a warp: D[m x n] = A[m x k] * B[k x n] + C, with the (lane, register) layout of
// each operand (PTX ISA, "Matrix Fragments for mma"). B is laid out as the k x n matrix.
struct MmaAtom {
  std::string name;
  int m = 0, n = 0, k = 0;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  layout::Fragment a_layout, b_layout, c_layout;  // over the lanes of one warp
  int cycles = 0;                                 // issue cycles per warp, for the cost model
  MmaMeaning meaning;                             // what it computes on the gathered matrices
  bool tf32 = false;                              // for products that ask for it: f32 operands are rounded
};

// A family of matrix instructions of a warpgroup (4 warps): D[64 x n] = A[64 x k] * B[k x n] + D,
// asynchronous; B in shared memory, A there or in registers (PTX ISA, "wgmma.mma_async").
struct WarpgroupAtom {
  std::string name;  // "wgmma.k16.f32.f16.f16"
  int k = 0;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  std::vector<int> widths;  // legal n, ascending
  bool mn_major = false;    // operands in shared memory may have k as the slow dimension
  int cycles_per_8 = 0;     // issue cycles of the tensor pipe per 8 columns, for the cost model
  MmaMeaning meaning;
};
// One of them: "wgmma.m64n256k16.f32.f16.f16".
struct WarpgroupInstruction {
  const WarpgroupAtom* atom = nullptr;
  int n = 0;
};
std::string warpgroup_instruction_name(const WarpgroupAtom& atom, int n);
// Accumulator [64 x n] and A operand [64 x k] (of `bytes` bytes an element) in registers, over the 128
// threads of a warpgroup.
layout::Fragment warpgroup_accumulator(int n);
layout::Fragment warpgroup_operand(int k, int bytes);

// A family of register-tiled micro-kernels of one host vector unit: C[mr x nr] += A[mr x K] * B[K x nr], nr a
// multiple of `lanes`. `pack` consecutive k share one accumulation step.
struct MicroKernelAtom {
  std::string name;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  int lanes = 1;       // elements of C in one vector register
  int registers = 16;  // vector registers
  int pack = 1;
  int macs_per_cycle = 1;
};

struct Target {
  std::string name;  // "sm_80", "sim:sm_80", "host", "x86-64-v3", "x86-64-v4"
  Kind kind = Kind::host;
  int warp = 1;  // lanes of a warp; 1 on the host
  int default_threads = 1;
  int max_threads = 1;           // of one block
  int64_t shared_bytes = 0;      // per block
  int64_t registers_per_multiprocessor = 0, threads_per_multiprocessor = 0;  // GPUs
  int multiprocessors = 1;       // of the generation's usual part, for the cost model
  int registers_per_thread = 0;  // 32-bit registers; 0 = local memory is addressable (host)
  int vector_bytes = 16;         // widest plain memory access of a thread
  bool async_copy = false;       // global -> shared without registers
  int64_t streaming_bytes =
      0;            // host: results of at least this size bypass the caches when nothing reads them again
  std::string cpu;  // LLVM cpu name
  std::vector<std::string> features;                  // LLVM feature flags
  // data caches of one core, for the cost model; GPUs: l2 of the device
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10;
  std::vector<MmaAtom> mma;
  std::vector<WarpgroupAtom> warpgroup_mma;
  bool dependent_launch = false;  // kernels that wait for the ones before them by themselves
  bool store_matrix = false;  // 8x8 matrices from registers to shared memory (stmatrix)
  bool tensor_copy = false;  // a copy engine that moves boxes of tensors (TMA), and transaction barriers
  // With a copy engine, for the cost model: bytes of the second cache's lines that a multiprocessor gets in a
  // cycle when all want some, and at most; cycles that a kernel of clusters takes longer to begin and to end;
  // multiprocessors that a cluster's blocks are chosen from.
  double line_bytes_per_cycle = 0, most_line_bytes_per_cycle = 0, cluster_cycles = 0;
  int cluster_multiprocessors = 1;
  std::vector<MicroKernelAtom> micro_kernels;
  bool simulated = false;  // its thread programs are run by the simulator, on the host's memory

  bool is_host() const { return kind == Kind::host; }
};

// "host" (this machine), "x86-64-v3", "x86-64-v4", "sm_80", "sm_89", "sm_90", "sm_90a", and the last four
// simulated: "sim:sm_80", ... Unknown names list the known ones.
Expected<Target> find_target(std::string_view name);
std::vector<std::string> target_names();

std::optional<WarpgroupInstruction> find_warpgroup_atom(const Target& t, std::string_view name);

// Description for tools and bug reports.
std::string target_to_json(const Target& t);

namespace host {
Target this_machine();                  // defined where the CPU can be asked (codegen/host_cpu.cpp)
Target x86_64(std::string_view level);  // "x86-64-v3" (AVX2) or "x86-64-v4" (AVX-512)
}  // namespace host
namespace nvidia {
// `architecture_specific`: with what only this generation has, as "sm_90a" says.
Target sm(int version, bool architecture_specific = false);
std::vector<WarpgroupAtom> warpgroup_atoms();
}

}  // namespace tilegen::target
