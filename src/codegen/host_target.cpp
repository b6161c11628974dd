// This machine's CPU as LLVM sees it. Defined here because only code generation may ask LLVM.
#include "codegen/host_cpu.h"
#include "target/host/host.h"

namespace tilegen::target::host {

CpuFacts this_machine() {
  const codegen::HostCpu& cpu = codegen::host_cpu();
  CpuFacts facts;
  facts.cpu = cpu.name;
  facts.features = cpu.features;
  facts.avx512 = cpu.vector_bits() == 512;
  facts.avx512_bf16 = facts.avx512 && cpu.avx512_bf16;
  facts.avx512_vnni = facts.avx512 && cpu.avx512_vnni;
  facts.avx_vnni = cpu.avx_vnni;
  facts.amx_bf16 = facts.avx512 && cpu.amx_bf16;
  facts.amx_f16 = facts.avx512 && cpu.amx_f16;
  facts.amx_i8 = facts.avx512 && cpu.amx_i8;
  if (cpu.l1_bytes > 0) facts.l1_bytes = cpu.l1_bytes;
  if (cpu.l2_bytes > 0) facts.l2_bytes = cpu.l2_bytes;
  if (cpu.l3_bytes > 0) facts.l3_bytes = cpu.l3_bytes;
  return facts;
}

}  // namespace tilegen::target::host
