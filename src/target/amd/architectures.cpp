// AMD targets, one row each. Limits from the instruction set documents of CDNA 2 and CDNA 3 ("Wavefront
// programming model", "LDS", "Vector registers") and LLVM's "User Guide for AMDGPU Backend"; figures of the
// usual part from its data sheet. A compute unit is what the cost model calls a multiprocessor.
#include "target/amd/amd.h"
#include "target/multiply_adds.h"
#include "target/registry.h"

namespace tilegen::target::amd {

namespace {

struct Architecture {
  std::string_view name;  // LLVM's cpu, too
  int compute_units = 0, dies = 1;
  int64_t l2_mib = 0;  // of one die, whose compute units share it
  // Clock and bandwidth of device memory by the data sheet; of L2 128 bytes a channel and cycle.
  double clock_mhz = 0, memory_gb_per_s = 0, l2_bytes_per_cycle = 0;
  MatrixRates matrix;  // from the peak rates of the data sheet
  bool fnuz = false;   // converts 8-bit floats
  // global_load_lds: loads to shared memory, from any address; else from a buffer.
  bool lds_loads = false;
};

constexpr Architecture kArchitectures[] = {
    // MI300X: eight dies of 38 compute units and 16 channels of L2
    {.name = "gfx942",
     .compute_units = 304,
     .dies = 8,
     .l2_mib = 4,
     .clock_mhz = 2100,
     .memory_gb_per_s = 5300,
     .l2_bytes_per_cycle = 53,
     .matrix =
         {.halves = 256, .bytes = 512, .words = 32, .reduced_words = 128, .wide_bytes = true, .sparse = true},
     .fnuz = true,
     .lds_loads = true},
    // one of the two dies of an MI250X, which are devices of their own, with 32 channels
    {.name = "gfx90a",
     .compute_units = 110,
     .l2_mib = 8,
     .clock_mhz = 1700,
     .memory_gb_per_s = 1638,
     .l2_bytes_per_cycle = 37,
     .matrix = {.halves = 128, .bytes = 128, .words = 32}},
};

// v_dot: where no matrix instruction takes a tile.
std::vector<DotProduct> dot_products() {
  using ir::DType;
  return {{"dot2.f32.f16", DType::f16, DType::f16, DType::f32, meaning::dot_f32, "llvm.amdgcn.fdot2"},
          {"dot4.s32.s8", DType::i8, DType::i8, DType::i32, meaning::dot_i32, "llvm.amdgcn.sdot4"},
          {"dot4.s32.u8", DType::u8, DType::u8, DType::i32, meaning::dot_i32, "llvm.amdgcn.udot4"}};
}

Target make(const Architecture& a) {
  Target t;
  t.code = CodeFormat::hsaco;
  t.cpu = a.name;
  t.fnuz_conversions = a.fnuz;
  t.warp = kWave;
  t.warpgroup = kWave;  // no instruction takes more
  t.max_threads = 1024;
  t.default_threads = 256;
  // 512 registers a lane of each of the four units, half of them accumulation registers, which plain code
  // does not reach; given out by eight.
  t.registers_per_multiprocessor = 4 * 512 * kWave;
  t.registers_per_thread = 256;
  t.max_role_registers = 512;
  t.register_unit = t.least_registers = 8;
  t.shared_bytes = 64 << 10;
  t.banks = {32, 4};
  t.vector_bytes = 16;
  t.buffer_bytes = kBufferBytes;
  t.register_copies = true;  // memory counters: a load is waited for at its first use
  // A word of each lane, those of a wave beside each other from M0 on.
  t.async_copy_bytes = {4};
  t.buffer_async_copies = !a.lds_loads;
  t.copies_in_lane_order = true;
  t.line_bytes = 128;
  t.fetch_bytes = 32;  // the least that L2 asks of memory
  t.threads_per_multiprocessor = 4 * 8 * kWave;
  t.blocks_per_multiprocessor = 32;  // those of several waves are fewer by their waves alone
  t.multiprocessors = a.compute_units;
  t.dies = a.dies;
  t.l2_bytes = a.l2_mib << 20;
  t.l1_bytes = 32 << 10;
  // Four units of 16 lanes; transcendental functions at a quarter of the rate.
  t.plain_lanes = 64, t.special_lanes = 16, t.convert_lanes = 64;
  t.schedulers = 4;
  t.shared_bytes_per_cycle = 128;
  t.clock_mhz = a.clock_mhz;
  t.memory_bytes_per_cycle = a.memory_gb_per_s * 1e3 / a.clock_mhz;
  t.l2_bytes_per_cycle = a.l2_bytes_per_cycle;
  // Estimates: no such device was measured.
  t.memory_latency = 800, t.shared_latency = 64, t.meeting_latency = 40, t.launch_cycles = 10000;
  t.mma = matrix_atoms(a.matrix);
  if (a.matrix.sparse) t.sparse_mma = sparse_matrix_atoms(a.matrix);
  // A wave on the 16 lanes of a unit.
  const LaneGrid grid = {.rows = 8, .columns = 8, .cycles = 4};
  for (MmaAtom& atom : dot_atoms(grid, dot_products())) t.mma.push_back(std::move(atom));
  for (MmaAtom& atom : multiply_add_atoms(grid)) t.mma.push_back(std::move(atom));
  return t;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Architecture& a : kArchitectures) all.push_back(a.name);
  return all;
}

std::optional<Target> find(std::string_view name) {
  for (const Architecture& a : kArchitectures)
    if (a.name == name) return make(a);
  return std::nullopt;
}

}  // namespace

const Vendor kVendor = {"amd", names, find, /*simulated=*/true};

}  // namespace tilegen::target::amd
