// The fake HIP runtime: modules and their functions.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "fake_state.h"

using namespace fake;

#ifndef FAKE_HIP_INCOMPLETE
namespace {

// An image has no length of its own: it ends with the last of its segments and section headers.
std::string_view whole(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof header);
  uint64_t end = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes + header.e_phoff + i * sizeof segment, sizeof segment);
    end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  return {bytes, end};
}

}  // namespace

FAKE_API int hipModuleLoadDataEx(void** module, const void* image, unsigned options, int*, void**) {
  return call("hipModuleLoadDataEx", InCapture::no, [&](State& s) {
    if (options != 0) return kInvalidValue;  // it knows none
    if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return kInvalidImage;
    auto made = std::make_unique<Module>();
    try {
      made->code = std::make_unique<tilegen::amdemu::CodeObject>(whole(image));
    } catch (const std::runtime_error&) {
      return kInvalidImage;
    }
    made->device = current_device();
    const std::string& architecture = s.architecture[static_cast<size_t>(made->device)];
    if (made->code->cpu() != architecture.substr(0, architecture.find(':'))) return kNoBinaryForGpu;
    s.modules.insert(made.get());
    *module = made.release();
    return kSuccess;
  });
}
#endif
FAKE_API int hipModuleUnload(void* module) {
  return call("hipModuleUnload", InCapture::no, [&](State& s) {
    auto* m = static_cast<Module*>(module);
    if (!s.modules.erase(m)) return kInvalidHandle;
    delete m;
    return kSuccess;
  });
}
FAKE_API int hipModuleGetFunction(void** function, void* module, const char* name) {
  return call("hipModuleGetFunction", InCapture::no, [&](State& s) {
    auto* m = static_cast<Module*>(module);
    if (!s.modules.count(m)) return kInvalidHandle;
    if (!m->code->kernels().count(name)) return kNotFound;
    FunctionObject& object = m->functions[name];
    object.name = name;
    object.module = m;
    *function = &object;
    return kSuccess;
  });
}
FAKE_API int hipFuncGetAttribute(int* value, int attribute, void* function) {
  return call("hipFuncGetAttribute", InCapture::yes, [&](State&) {
    const auto* f = static_cast<const FunctionObject*>(function);
    const tilegen::amdemu::KernelFacts& facts = f->module->code->kernels().at(f->name);
    const uint32_t values[] = {facts.most_threads, facts.lds_bytes, 0, facts.scratch_bytes, facts.vgprs};
    if (attribute < 0 || attribute > 4) return kInvalidValue;
    *value = static_cast<int>(values[attribute]);
    return kSuccess;
  });
}
// By the registers of the four units of a compute unit, its waves and its LDS.
FAKE_API int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                                size_t dynamic_shared) {
  return call("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", InCapture::yes, [&](State&) {
    const auto* f = static_cast<const FunctionObject*>(function);
    const tilegen::amdemu::KernelFacts& facts = f->module->code->kernels().at(f->name);
    const int waves = (threads + 63) / 64;
    *blocks = std::min(32, 4 * std::min(8, 512 / std::max(1, static_cast<int>(facts.vgprs)))) / waves;
    if (const size_t shared = facts.lds_bytes + dynamic_shared)
      *blocks = std::min(*blocks, static_cast<int>((64u << 10) / shared));
    return kSuccess;
  });
}
