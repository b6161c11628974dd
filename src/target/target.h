// What a device can do, as plain tables. Lowering and planning select rows; nothing branches on an
// architecture number.
#pragma once

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
};

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
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10;  // host: data caches of one core, for the cost model
  std::vector<MmaAtom> mma;
  std::vector<MicroKernelAtom> micro_kernels;
  bool simulated = false;  // its thread programs are run by the simulator, on the host's memory

  bool is_host() const { return kind == Kind::host; }
};

// "host" (this machine), "x86-64-v3", "x86-64-v4", "sm_80", "sm_89", "sm_90", and the last three simulated: "sim:sm_80",
// ... Unknown names list the known ones.
Expected<Target> find_target(std::string_view name);
std::vector<std::string> target_names();

// Description for tools and bug reports.
std::string target_to_json(const Target& t);

namespace host {
Target this_machine();                  // defined where the CPU can be asked (codegen/host_cpu.cpp)
Target x86_64(std::string_view level);  // "x86-64-v3" (AVX2) or "x86-64-v4" (AVX-512)
}  // namespace host
namespace nvidia {
Target sm(int version);
}

}  // namespace tilegen::target
