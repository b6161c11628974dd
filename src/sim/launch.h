// A launch as all blocks see it: memories, tensor maps and the numbers given.
#pragma once

#include <vector>

#include "sim/bytecode.h"
#include "sim/global_history.h"
#include "sim/simulator.h"
#include "sim/tensor_engine.h"
#include "sim/tile_order.h"

namespace tilegen::sim {

// A memory of the program as a launch sees it.
struct MemoryView {
  thread::Space space = thread::Space::global;
  ir::DType type = ir::DType::none;
  int element = 1;  // bytes
  bool in_registers = false;
  int64_t elements = 0;
  int64_t arena_offset = 0;
  uint32_t first_register = 0;
  uint64_t address = 0;        // global
  int64_t begin = 0, end = 0;  // global: bytes relative to the address
  bool watched = false;        // global: some parameter that the kernel writes overlaps it
};

// What all blocks share.
struct Launch {
  const Bytecode* code = nullptr;
  const SimOptions* options = nullptr;
  std::vector<MemoryView> memories;
  std::vector<Cell> uniform;  // with dims and scalars
  std::vector<int64_t> grid;
  std::vector<TensorMapView> tensor_maps;
  std::vector<std::vector<int>> swizzles;  // of the tensor loads to each memory
  std::vector<bool> product_inputs;        // memories that products only read
  int64_t launched = 1;                    // blocks
  TileOrder* tile_order = nullptr;         // of programs whose blocks fetch tiles
  GlobalHistory* global = nullptr;
  int granule = 4;            // of the shared history
  bool counts_loads = false;  // to registers (sim/loads_under_way.h)
};

// Sums of one access, by access number.
struct AccessSum {
  int64_t requests = 0, bytes = 0, transactions = 0, least = 0, ahead = -1;
};

}  // namespace tilegen::sim
