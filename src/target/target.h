// What a device can do, as plain tables. Lowering and planning select rows; nothing branches on an
// architecture number.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "layout/bank_model.h"
#include "layout/fragment.h"
#include "support/diagnostic.h"
#include "target/mma_semantics.h"
#include "thread/machine.h"

namespace tilegen::ir {
struct NativeFunction;
}

namespace tilegen::target {

// The form of code that a device's loader takes. Each has a back end (codegen/backend.h) and a loader
// (runtime/executable.cpp).
enum class CodeFormat : uint8_t { object, ptx, hsaco };
inline constexpr size_t kCodeFormats = 3;
const char* code_format_name(CodeFormat format);  // "object", "ptx", "hsaco"

// What a matrix atom's products run on: a matrix unit, or the lanes' own multiply-adds and dot products of
// registers of four bytes.
enum class MmaUnit : uint8_t { matrix, multiply_add, dot };

// One matrix instruction of a warp: D[m x n] = A[m x k] * B[k x n] + C, with the (lane, register) layout of
// each operand (PTX ISA, "Matrix Fragments for mma"). B is laid out as the k x n matrix.
struct MmaAtom {
  std::string name;
  int m = 0, n = 0, k = 0;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  layout::Fragment a_layout, b_layout, c_layout;  // over the lanes of one warp
  int cycles = 0;                                 // issue cycles per warp, for the cost model
  MmaSemantics meaning;                           // what it computes on the gathered matrices
  MmaUnit unit = MmaUnit::matrix;
  // Of a matrix unit and dot products: LLVM's intrinsic ("llvm. ..."), or the vendor's instruction where LLVM
  // has none.
  std::string instruction;
  bool tf32 = false;    // for products that ask for it: f32 operands are rounded
  int isa_version = 0;  // least that has it, as Target::isa_version; 0: the target's
  // An iteration may begin with it on the sum that the one before ended with, where a warp has no other sum.
  // Not so: the vendor's assembler leaves out the wait, and the last product is lost.
  bool waits_around_loops = true;
  // The instruction computes the transposed product: it takes B's registers for A's and the other way round,
  // which is possible where both lie alike, and C has its rows where it would have its columns.
  bool transposed = false;
  // A program's own (target/given_atoms.h), which products that name it take and no others; null: the
  // target's.
  std::shared_ptr<const ir::NativeFunction> given = nullptr;
  // Of an instruction whose A holds two values of each four neighbours along k, m x k / 2 (PTX ISA, "Sparse
  // matrix storage"): where lanes have the places of a row's groups, m x k / 4, four bits each, the first
  // lowest in a register of 32. Of lanes that have the same the first is read.
  std::optional<layout::Fragment> places = std::nullopt;

  bool sparse() const { return places.has_value(); }
  int a_k() const { return sparse() ? k / 2 : k; }
};

// A family of matrix instructions of a warpgroup: D[m x n] = A[m x k] * B[k x n] + D, asynchronous; B in
// shared memory, A there or in registers (PTX ISA, "wgmma.mma_async").
struct WarpgroupAtom {
  std::string name;  // "wgmma.k16.f32.f16.f16"
  int m = 0, k = 0;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  std::vector<int> widths;  // legal n, ascending
  bool mn_major = false;    // operands in shared memory may have k as the slow dimension
  int cycles_per_8 = 0;     // issue cycles of the tensor pipe per 8 columns, for the cost model
  MmaSemantics meaning;
  // Where the warpgroup's threads have an accumulator [m x n], and A [m x k], in registers.
  layout::Fragment (*accumulator_layout)(const WarpgroupAtom&, int n) = nullptr;
  layout::Fragment (*a_layout)(const WarpgroupAtom&) = nullptr;
  int isa_version = 0;  // least that has it, as Target::isa_version
  // As MmaAtom::places, over the threads of the warpgroup.
  std::optional<layout::Fragment> places = std::nullopt;

  bool sparse() const { return places.has_value(); }
  int a_k() const { return sparse() ? k / 2 : k; }
  layout::Fragment accumulator(int columns) const { return accumulator_layout(*this, columns); }
  layout::Fragment a_operand() const { return a_layout(*this); }
};
// One of them: "wgmma.m64n256k16.f32.f16.f16".
struct WarpgroupInstruction {
  const WarpgroupAtom* atom = nullptr;
  int n = 0;
};
std::string warpgroup_instruction_name(const WarpgroupAtom& atom, int n);

// A family of register-tiled micro-kernels of one host vector unit: C[mr x nr] += A[mr x K] * B[K x nr], nr a
// multiple of `lanes`. `pack` consecutive k share one accumulation step.
struct MicroKernelAtom {
  std::string name;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  int lanes = 1;       // elements of C in one vector register
  int registers = 16;  // vector registers
  int pack = 1;
  int macs_per_cycle = 1;
  // Of matrix registers (Intel AMX): at most so many rows, and so many elements of k in a row of A; 0: the
  // registers are vectors.
  int tile_rows = 0, tile_k = 0;
};

// How the registers of a multiprocessor can be shared between the computing threads of a block and producers,
// whose warps only issue copies.
struct RoleRegisters {
  int64_t producer_threads = 0;  // of each producer
  // Of a thread; 0: as launched, which is `at_most` for every thread.
  int64_t producer = 0, consumer = 0;
  int64_t at_most = 0;  // what a computing thread can have
};

struct Target : thread::Machine {
  std::string name;         // "sm_80", "sim:sm_80", "host", "x86-64-v3", "gfx942"
  std::string_view vendor;  // "host", "nvidia", "amd"
  bool simulated = false;   // its thread programs are run by the simulator, on the host's memory

  // Code generation and the devices that run it.
  CodeFormat code = CodeFormat::object;
  std::string cpu;                    // LLVM cpu name
  std::vector<std::string> features;  // LLVM feature flags
  // Least version of the vendor's instruction set that serves, and that has conversions of 8-bit floats (0:
  // none has); PTX: times 10.
  int isa_version = 0, fp8_isa_version = 0;
  bool fnuz_conversions = false;  // of e4m3fnuz and e5m2fnuz, by instructions
  // Devices: of this capability (CUDA: 10 * major + minor) or a later one; of this one alone.
  int capability = 0;
  bool one_capability = false;

  // Blocks and memories.
  int default_threads = 1;
  int max_threads = 1;                // of one block
  int64_t shared_bytes = 0;           // per block
  int64_t reserved_shared_bytes = 0;  // of a block, that the system keeps beside them
  layout::BankModel banks;            // of shared memory
  int64_t threads_per_multiprocessor = 0;
  int64_t blocks_per_multiprocessor = 0;  // that it keeps account of
  int multiprocessors = 1;                // of the generation's usual part, for the cost model
  int dies = 1;                           // parts with an L2 each, to which a launch's blocks go in turn
  int vector_bytes = 16;                  // widest plain memory access of a thread
  int64_t line_bytes = 0;                 // of the device memory's caches
  int64_t fetch_bytes = 0;                // of a line that are fetched at least; for the cost model
  // Results of at least this size bypass the caches when nothing reads them again; 0: none do.
  int64_t streaming_bytes = 0;
  // data caches of one core, for the cost model; GPUs: l2 of the device
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10;

  // Arithmetic.
  std::vector<MmaAtom> mma;
  std::vector<MmaAtom> sparse_mma;  // MmaAtom::sparse
  std::vector<WarpgroupAtom> warpgroup_mma;
  std::vector<WarpgroupAtom> sparse_warpgroup_mma;  // WarpgroupAtom::sparse
  std::vector<MicroKernelAtom> micro_kernels;
  // Lanes of a multiprocessor for plain arithmetic, for exponentials, roots and quotients, and for
  // conversions between integers and floats; bytes of shared memory that it reads in a cycle. For the cost
  // model.
  double plain_lanes = 0, special_lanes = 0, convert_lanes = 0, shared_bytes_per_cycle = 0;
  // Of a multiprocessor: instructions it issues in a cycle. For the cost model, as the rest of these.
  double schedulers = 1;
  // Under load; bytes of device memory in a cycle, of the whole device; bytes of L2 that a
  // multiprocessor gets in one when all want some.
  double clock_mhz = 0, memory_bytes_per_cycle = 0, l2_bytes_per_cycle = 0;
  // Of the whole device: bytes outside of tensors that copy engines fill with zeros in a cycle; 0: no engine.
  double filled_bytes_per_cycle = 0;
  // Cycles until a load of device memory, or of shared memory, is there; until threads of a block have met;
  // that a launch takes beyond its blocks; of the machine from the launch of a block to that of the next.
  double memory_latency = 0, shared_latency = 0, meeting_latency = 0, launch_cycles = 0, block_cycles = 0;
  bool measured_latencies = false;  // fitted to times of such devices; else estimates
  int least_registers = 1;          // of a thread, that the vendor's assembler takes

  // Data movement and launches.
  std::vector<int> async_copy_bytes;  // global -> shared without registers: what one may move; empty: none
  bool buffer_async_copies = false;   // these reach tensors of buffer_bytes alone
  // The hardware bounds accesses to a tensor of at most so many bytes: one that is not to be made is beyond
  // the bound, without a branch or another address. 0: it bounds none.
  int64_t buffer_bytes = 0;
  // Loads of threads go on while these do other things: tiles are loaded to registers ahead. Where there are
  // asynchronous copies, too, a kernel's tiles come all in the one way or all in the other.
  bool register_copies = false;
  bool store_matrix = false;  // 8x8 matrices from registers to shared memory (stmatrix)
  bool tensor_copy = false;   // a copy engine that moves boxes of tensors (TMA), and transaction barriers
  int64_t transaction_barrier_bytes = 0;
  int64_t tensor_tile_alignment = 0;  // bytes: whole repeats of any swizzle of the copy engine
  // With a copy engine, for the cost model: bytes of the second cache's lines that a multiprocessor gets in a
  // cycle when all want some, and at most; cycles that a kernel of clusters takes longer to begin and to end;
  // multiprocessors that a cluster's blocks are chosen from.
  double line_bytes_per_cycle = 0, most_line_bytes_per_cycle = 0, cluster_cycles = 0;
  int cluster_multiprocessors = 1;
  bool dependent_launch = false;  // kernels that wait for the ones before them by themselves
  // The ways to share registers between roles, preferred first; null: none.
  std::vector<RoleRegisters> (*role_registers)(const Target&, int64_t computing_threads,
                                               int64_t producers) = nullptr;

  // Threads share a block's work, and values lie in their registers by layouts. Without: one thread does all.
  bool has_block_threads() const { return max_threads > 1; }
  // What a thread holds is memory, which any index reaches; else registers, which constants name.
  bool addressable_registers() const { return registers_per_thread == 0; }
  bool async_copy() const { return !async_copy_bytes.empty(); }
  // Tiles of pipelined loops can come while their threads do other things.
  bool loads_ahead() const { return async_copy() || register_copies; }
  // Of a warpgroup; all of a target's instructions have as many rows.
  int64_t warpgroup_warps() const { return warpgroup / warp; }
  int64_t warpgroup_rows() const { return warpgroup_mma.empty() ? 1 : warpgroup_mma.front().m; }
};

// A target by its name in the tables of vendors (target/registry.h); "sim:" + name where the simulator runs
// it. Unknown names list the known ones.
Expected<Target> find_target(std::string_view name);
std::vector<std::string> target_names();
// Without "sim:": a simulated target is planned for as the one it simulates.
std::string_view simulated_name(std::string_view name);

std::optional<WarpgroupInstruction> find_warpgroup_atom(const Target& t, std::string_view name);
const MmaAtom* find_mma_atom(const Target& t, std::string_view name);  // null: none

// Empty where the block has no room for more threads.
std::vector<RoleRegisters> role_registers(const Target& t, int64_t computing_threads, int64_t producers = 1);
// What a computing thread can have at most beside one producer.
int64_t most_consumer_registers(const Target& t, int64_t computing_threads);

// Description for tools and bug reports.
std::string target_to_json(const Target& t);

}  // namespace tilegen::target
