// Parts of NVIDIA's table of targets.
#pragma once

#include "target/target.h"

namespace tilegen::target::nvidia {

// CUDA C++ Programming Guide, "SIMT Architecture"; PTX ISA, "wgmma": four warps.
constexpr int kWarp = 32, kWarpgroup = 4 * kWarp;

// mma.sync, and what stands in where it has no form for the types; `fp8`: with products of 8-bit floats.
std::vector<MmaAtom> warp_atoms(bool fp8);
std::vector<MmaAtom> sparse_warp_atoms(bool fp8);  // mma.sp
// wgmma.mma_async, of sm_90a.
std::vector<WarpgroupAtom> warpgroup_atoms();
std::vector<WarpgroupAtom> sparse_warpgroup_atoms();  // wgmma.mma_async.sp
// The ways, preferred first: one warp beside the computing threads, or a warpgroup that gives registers away.
std::vector<RoleRegisters> role_registers(const Target& t, int64_t computing_threads, int64_t producers);

}  // namespace tilegen::target::nvidia
