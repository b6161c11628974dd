// One relocatable object of LLVM's AMDGPU code generator -> the shared object that the HSA loader takes
// (LLVM "User Guide for AMDGPU Backend", "Code Object"; ELF gABI, "Dynamic Linking").
//
// requires: bytes of an ELF64 object for amdgcn-amd-amdhsa, which stands alone.
// ensures: a shared object of three segments: what is read only (the note with the kernels' metadata, the
// dynamic symbols, kernel descriptors and constants), the code, the dynamic section. Exported are the symbols
// that the object exports: of each kernel its code and its descriptor `<kernel>.kd`. No relocation is left to
// the loader. The bytes depend on the object alone.
// why here: a linker of LLVM in this process would take over signals and may end the process.
// refuses (backend_failure): what is no such object, an undefined symbol, data that is written to, a
// relocation that only the loader could do.
#pragma once

#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tilegen::object {

Expected<std::string> link_hsaco(std::string_view object);

}  // namespace tilegen::object
