#include "codegen/host_cpu.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "codegen/llvm/guarded_memory.h"
#include "codegen/llvm/llvm_setup.h"

namespace tilegen::codegen {
namespace {

int64_t cache_bytes(int name) {
  long v = sysconf(name);
  return v > 0 ? v : 0;
}

// Of the third cache that a core reaches. The C library may tell all such caches of the processor together;
// the kernel tells one.
int64_t third_cache_bytes() {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    int level = 0;
    int64_t size = 0;
    char unit = 0;
    if (!(std::ifstream(folder + "/level") >> level)) break;
    if (level == 3 && std::ifstream(folder + "/size") >> size >> unit && unit == 'K' && size > 0)
      return size << 10;
  }
  return cache_bytes(_SC_LEVEL3_CACHE_SIZE);
}

// Linux gives matrix registers to processes that ask for them (Documentation/arch/x86/xstate.rst); threads
// that run already may use them too. False where the kernel has no such call or says no.
bool ask_for_matrix_registers() {
  constexpr long kRequestState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}

HostCpu ask() {
  ensure_handlers();
  const GuardedScope calls_llvm;
  HostCpu cpu;
  cpu.name = llvm::sys::getHostCPUName().str();
  auto flags = llvm::sys::getHostCPUFeatures();
  if (flags.lookup("amx-tile") && !ask_for_matrix_registers())
    for (auto& f : flags)
      if (f.first().starts_with("amx-")) f.second = false;
  for (const auto& f : flags) cpu.features.push_back((f.second ? "+" : "-") + f.first().str());
  std::sort(cpu.features.begin(), cpu.features.end());
  auto has = [&](const char* f) { return flags.lookup(f); };
  cpu.avx2 = has("avx2");
  cpu.fma = has("fma");
  cpu.f16c = has("f16c");
  cpu.avx512f = has("avx512f");
  cpu.avx512bw = has("avx512bw");
  cpu.avx512dq = has("avx512dq");
  cpu.avx512vl = has("avx512vl");
  cpu.avx512_bf16 = has("avx512bf16");
  cpu.avx512_vnni = has("avx512vnni");
  cpu.avx_vnni = has("avxvnni");
  cpu.amx_bf16 = has("amx-tile") && has("amx-bf16");
  cpu.amx_f16 = has("amx-tile") && has("amx-fp16");
  cpu.amx_i8 = has("amx-tile") && has("amx-int8");
  cpu.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
  cpu.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
  cpu.l3_bytes = third_cache_bytes();
  return cpu;
}

}  // namespace

const HostCpu& host_cpu() {
  static const HostCpu cpu = ask();
  return cpu;
}

}  // namespace tilegen::codegen
