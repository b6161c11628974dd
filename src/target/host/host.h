// Host targets: what a CPU can do, from a short description of its vector units.
#pragma once

#include "target/target.h"

namespace tilegen::target::host {

// What the tables below need to know of a CPU. Filled by codegen/ for this machine, by name for generic
// levels.
struct CpuFacts {
  std::string cpu;                    // LLVM's name
  std::vector<std::string> features;  // LLVM's "+avx2" flags
  bool avx512 = false;                // f, bw, dq, vl
  bool avx512_bf16 = false;
  bool avx512_vnni = false;
  bool avx_vnni = false;
  bool amx_bf16 = false, amx_f16 = false, amx_i8 = false;  // and the system lets this process use the tiles
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 8 << 20;
};

Target from_facts(std::string name, const CpuFacts& facts);

// Defined where the CPU can be asked (codegen/host_target.cpp).
CpuFacts this_machine();

}  // namespace tilegen::target::host
