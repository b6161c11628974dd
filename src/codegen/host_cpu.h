// What the processor this process runs on can do, as LLVM names it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilegen::codegen {

struct HostCpu {
  std::string name;                   // LLVM cpu name, e.g. "znver5"
  std::vector<std::string> features;  // LLVM feature flags with sign, sorted: "+avx2", "-amx-tile"
  bool avx2 = false, fma = false, f16c = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;
  bool avx512_bf16 = false, avx512_vnni = false, avx_vnni = false;
  bool amx_bf16 = false, amx_f16 = false, amx_i8 = false;  // matrix registers that this process may use
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;        // data caches of one core; 0 = unknown
  int vector_bits() const { return avx512f && avx512bw && avx512dq && avx512vl ? 512 : avx2 ? 256 : 128; }
};

// Asked once and kept: the answer does not change while the process runs.
const HostCpu& host_cpu();

}  // namespace tilegen::codegen
