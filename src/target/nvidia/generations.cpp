// NVIDIA targets, one row each: limits from the CUDA C++ Programming Guide, "Compute Capabilities" (table
// "Technical Specifications per Compute Capability"), PTX versions from the PTX ISA, "Release History", atoms
// from its "Matrix Fragments for mma" and "Asynchronous Warpgroup Level Matrix Instructions".
#include "layout/tensor_tile.h"
#include "target/nvidia/nvidia.h"
#include "target/operand_matrices.h"
#include "target/registry.h"

namespace tilegen::target::nvidia {

namespace {

struct Generation {
  std::string_view name;  // LLVM's cpu, too
  int capability = 0;
  bool one_capability = false;  // "a": what only this generation has
  int ptx = 0, fp8_ptx = 0;     // least PTX version times 10
  int64_t shared_kib = 0;       // of a block
  int multiprocessors = 0;      // of the usual part
  int64_t threads_per_multiprocessor = 0, blocks_per_multiprocessor = 32, l2_mib = 0;
  // Clock under load and bandwidth of device memory of the usual part, by its data sheet (sm_90, sm_90a:
  // bench/results/limits.json). L2: NVIDIA A100 white paper (5120 bytes a cycle), the same of a
  // multiprocessor for others; sm_90, sm_90a: fitted to bench/results/configurations.json.
  double clock_mhz = 0, memory_gb_per_s = 0, l2_bytes_per_cycle = 47;
  double plain_lanes = 128;
  bool f64_waits_around_loops = true;  // MmaAtom::waits_around_loops, of f64
  bool fp8_mma = false, store_matrix = false, dependent_launch = false;
  std::vector<WarpgroupAtom> (*warpgroup_mma)() = nullptr;
  bool tensor_copy = false;
  // Measured, see Target.
  double filled_bytes_per_cycle = 0;  // bench/gpu/outside.py
  double line_bytes_per_cycle = 0, most_line_bytes_per_cycle = 0, cluster_cycles = 0;
  int cluster_multiprocessors = 1;
};

constexpr Generation kGenerations[] = {
    {.name = "sm_80",
     .capability = 80,
     .ptx = 70,
     .shared_kib = 163,
     .multiprocessors = 108,
     .threads_per_multiprocessor = 2048,
     .l2_mib = 40,
     .clock_mhz = 1410,
     .memory_gb_per_s = 1555,
     .plain_lanes = 64},
    {.name = "sm_86",
     .capability = 86,
     .ptx = 71,
     .shared_kib = 99,
     .multiprocessors = 84,
     .threads_per_multiprocessor = 1536,
     .blocks_per_multiprocessor = 16,
     .l2_mib = 6,
     .clock_mhz = 1695,
     .memory_gb_per_s = 936},
    {.name = "sm_87",
     .capability = 87,
     .ptx = 74,
     .shared_kib = 163,
     .multiprocessors = 16,
     .threads_per_multiprocessor = 1536,
     .blocks_per_multiprocessor = 16,
     .l2_mib = 4,
     .clock_mhz = 1300,
     .memory_gb_per_s = 204},
    {.name = "sm_89",
     .capability = 89,
     .ptx = 78,
     .fp8_ptx = 81,
     .shared_kib = 99,
     .multiprocessors = 128,
     .threads_per_multiprocessor = 1536,
     .blocks_per_multiprocessor = 24,
     .l2_mib = 72,
     .clock_mhz = 2520,
     .memory_gb_per_s = 1008,
     .fp8_mma = true},
    {.name = "sm_90",
     .capability = 90,
     .ptx = 78,
     .fp8_ptx = 78,
     .shared_kib = 227,
     .multiprocessors = 132,
     .threads_per_multiprocessor = 2048,
     .l2_mib = 50,
     .clock_mhz = 1755,
     .memory_gb_per_s = 4600,
     .l2_bytes_per_cycle = 100,
     .f64_waits_around_loops = false,  // ptxas 13.0
     .fp8_mma = true,
     .store_matrix = true,
     .dependent_launch = true},
    {.name = "sm_90a",
     .capability = 90,
     .one_capability = true,
     .ptx = 80,
     .fp8_ptx = 80,
     .shared_kib = 227,
     .multiprocessors = 132,
     .threads_per_multiprocessor = 2048,
     .l2_mib = 50,
     .clock_mhz = 1755,
     .memory_gb_per_s = 4600,
     .l2_bytes_per_cycle = 100,
     .f64_waits_around_loops = false,  // ptxas 13.0
     .fp8_mma = true,
     .store_matrix = true,
     .dependent_launch = true,
     .warpgroup_mma = warpgroup_atoms,
     .tensor_copy = true,
     // on an H200
     .filled_bytes_per_cycle = 1700,
     .line_bytes_per_cycle = 70,
     .most_line_bytes_per_cycle = 85,
     .cluster_cycles = 2200,
     .cluster_multiprocessors = 18},
};

// What is the same in all generations.
Target common() {
  Target t;
  t.code = CodeFormat::ptx;
  // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", "SIMT Architecture".
  t.warp = kWarp;
  t.max_threads = 1024;
  t.default_threads = 128;
  t.registers_per_multiprocessor = 64 * 1024;
  t.registers_per_thread = 255;
  t.reserved_shared_bytes = 1024;
  t.banks = {32, 4};
  t.line_bytes = 128;
  t.fetch_bytes = 32;
  t.max_cluster = 16;  // of more than 8 blocks: sm_90, where the kernel says so ("Thread Block Clusters")
  // CUDA C++ Programming Guide, "Arithmetic Instructions": results in a cycle.
  t.special_lanes = 16, t.convert_lanes = 64;
  t.shared_bytes_per_cycle = 128;
  t.schedulers = 4;
  // Memory and launch: fitted to bench/results/configurations.json (H200); the others estimates.
  t.memory_latency = 810, t.shared_latency = 30, t.meeting_latency = 40, t.launch_cycles = 3200;
  t.measured_latencies = true;
  // Softmax of 32768 rows, a block each, takes 40 us on an H200 with 32, 64 or 128 threads.
  t.block_cycles = 2.12;
  t.least_registers = 32;
  // PTX ISA: "barrier", "setmaxnreg", "cp.async", "ld", "mbarrier".
  t.warpgroup = kWarpgroup;
  t.named_barriers = 16;
  t.register_unit = 8;
  t.min_role_registers = 24, t.max_role_registers = 256;
  t.async_copy_bytes = {4, 8, 16};
  t.vector_bytes = 16;
  t.transaction_barrier_bytes = 8;
  t.tensor_tile_alignment = layout::kSwizzleRepeat;
  t.role_registers = role_registers;
  return t;
}

Target make(const Generation& g) {
  Target t = common();
  t.cpu = g.name;
  t.capability = g.capability, t.one_capability = g.one_capability;
  t.isa_version = g.ptx, t.fp8_isa_version = g.fp8_ptx;
  t.shared_bytes = g.shared_kib << 10;
  t.multiprocessors = g.multiprocessors;
  t.threads_per_multiprocessor = g.threads_per_multiprocessor;
  t.blocks_per_multiprocessor = g.blocks_per_multiprocessor;
  t.l2_bytes = g.l2_mib << 20;
  t.plain_lanes = g.plain_lanes;
  t.clock_mhz = g.clock_mhz;
  t.memory_bytes_per_cycle = g.memory_gb_per_s * 1e3 / g.clock_mhz;
  t.l2_bytes_per_cycle = g.l2_bytes_per_cycle;
  t.filled_bytes_per_cycle = g.filled_bytes_per_cycle;
  t.mma = warp_atoms(g.fp8_mma);
  t.sparse_mma = sparse_warp_atoms(g.fp8_mma);
  for (MmaAtom& atom : t.mma)
    if (atom.c == ir::DType::f64 && !is_multiply_add(atom))
      atom.waits_around_loops = g.f64_waits_around_loops;
  if (g.warpgroup_mma) {
    t.warpgroup_mma = g.warpgroup_mma();
    t.sparse_warpgroup_mma = sparse_warpgroup_atoms();
  }
  t.store_matrix = g.store_matrix;
  t.dependent_launch = g.dependent_launch;
  t.tensor_copy = g.tensor_copy;
  t.line_bytes_per_cycle = g.line_bytes_per_cycle;
  t.most_line_bytes_per_cycle = g.most_line_bytes_per_cycle;
  t.cluster_cycles = g.cluster_cycles;
  t.cluster_multiprocessors = g.cluster_multiprocessors;
  return t;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Generation& g : kGenerations) all.push_back(g.name);
  return all;
}

std::optional<Target> find(std::string_view name) {
  for (const Generation& g : kGenerations)
    if (g.name == name) return make(g);
  return std::nullopt;
}

}  // namespace

const Vendor kVendor = {"nvidia", names, find, /*simulated=*/true};

}  // namespace tilegen::target::nvidia
