// The fake HIP runtime: launches and streams.
#include <algorithm>
#include <cstring>

#include "fake_state.h"

using namespace fake;

namespace fake {
namespace {

// The arguments that the code object's metadata names, of which `hidden_*` ones come from the runtime.
size_t explicit_arguments(const tilegen::amdemu::KernelFacts& facts) {
  return static_cast<size_t>(std::count_if(facts.arguments.begin(), facts.arguments.end(),
                                           [](const auto& a) { return a.kind.rfind("hidden_", 0) != 0; }));
}

const std::pair<const uint64_t, Allocation>* allocation_at(const State& s, uint64_t address) {
  auto at = s.memory.upper_bound(address);
  if (at == s.memory.begin()) return nullptr;
  --at;
  return address <= at->first + at->second.bytes ? &*at : nullptr;
}

}  // namespace

int run(State& s, const Node& node) {
  if (!s.fault.empty()) return kIllegalAddress;
  if (s.run_nothing) return kSuccess;
  std::vector<tilegen::amdemu::Memory> memories;
  std::vector<tilegen::amdemu::Argument> arguments;
  std::map<uint64_t, int> known;  // memories by address
  const tilegen::amdemu::KernelFacts& facts = node.function->module->code->kernels().at(node.function->name);
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const uint64_t bits = node.arguments[i];
    const auto* piece = facts.arguments[i].kind == "global_buffer" ? allocation_at(s, bits) : nullptr;
    if (!piece || piece->second.device != node.launch.device) {
      arguments.push_back({bits});
      continue;
    }
    const auto [at, added] = known.emplace(piece->first, static_cast<int>(memories.size()));
    if (added)
      memories.push_back({"memory " + std::to_string(memories.size()),
                          {reinterpret_cast<std::byte*>(piece->first), piece->second.bytes},
                          true});
    arguments.push_back({bits - piece->first, at->second});
  }
  tilegen::amdemu::LaunchOptions options;
  std::copy(node.launch.grid, node.launch.grid + 3, options.grid.begin());
  std::copy(node.launch.block, node.launch.block + 3, options.block.begin());
  options.seed = s.launches.size();
  s.fault = node.function->module->code->launch(node.function->name, memories, arguments, options).error;
  return kSuccess;  // a launch that fails shows in a later call
}

}  // namespace fake

FAKE_API int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared_bytes, void* stream,
                                   void** parameters, void** extra) {
  return call("hipModuleLaunchKernel", InCapture::yes, [&](State& s) -> int {
    auto* f = static_cast<FunctionObject*>(function);
    if (!s.modules.count(f->module)) return kInvalidHandle;
    if (f->module->device != current_device()) return kInvalidDevice;
    if (!s.fault.empty()) return kIllegalAddress;
    const tilegen::amdemu::KernelFacts& facts = f->module->code->kernels().at(f->name);
    if (gx == 0 || gy == 0 || gz == 0) return kInvalidValue;
    if (bx * by * bz == 0 || bx * by * bz > facts.most_threads) return kInvalidConfiguration;
    if (uint64_t{gx} * bx > 0xffffffffu) return kInvalidConfiguration;
    if (gy > 65536 || gz > 65536 || facts.lds_bytes + shared_bytes > 64u << 10) return kInvalidValue;
    if (!parameters == !extra) return kInvalidValue;
    Node node;
    node.function = f;
    node.arguments.resize(explicit_arguments(facts));
    if (extra) {
      // in this order, and ended by 3
      const auto mark = [&](size_t i) { return reinterpret_cast<uintptr_t>(extra[i]); };
      if (mark(0) != 1 || mark(2) != 2 || mark(4) != 3) return kInvalidValue;
      if (*static_cast<size_t*>(extra[3]) != 8 * node.arguments.size()) return kInvalidValue;
      std::memcpy(node.arguments.data(), extra[1], 8 * node.arguments.size());
    } else {
      for (size_t i = 0; i < node.arguments.size(); ++i)
        std::memcpy(&node.arguments[i], parameters[i], facts.arguments[i].size);
    }
    FakeHipLaunch& l = node.launch;
    std::strncpy(l.name, f->name.c_str(), sizeof l.name - 1);
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    std::copy(grid, grid + 3, l.grid);
    std::copy(block, block + 3, l.block);
    l.shared_bytes = shared_bytes;
    l.stream = stream;
    l.device = current_device();
    l.pooled = pooled(s, stream);
    l.parameters = node.arguments.size();
    std::copy_n(node.arguments.begin(), std::min<size_t>(l.parameters, 16), l.values);
    s.launches.push_back(l);
    if (s.capturing && stream == s.captured) return s.capturing->nodes.push_back(node), kSuccess;
    return run(s, node);
  });
}
FAKE_API int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  return call("hipStreamCreateWithFlags", InCapture::no, [&](State& s) {
    if (flags > 1) return kInvalidValue;
    s.streams.push_back(std::make_unique<char>());
    *stream = s.streams.back().get();
    return kSuccess;
  });
}
FAKE_API int hipStreamDestroy(void*) {
  return call("hipStreamDestroy", InCapture::no, [](State&) { return kSuccess; });
}
FAKE_API int hipThreadExchangeStreamCaptureMode(int* mode) {
  return call("hipThreadExchangeStreamCaptureMode", InCapture::yes, [&](State&) {
    std::swap(*mode, capture_mode());
    return kSuccess;
  });
}
FAKE_API int hipStreamIsCapturing(void* stream, int* status) {
  return call("hipStreamIsCapturing", InCapture::yes, [&](State& s) {
    if (s.capturing && !stream && s.captured) return kCaptureImplicit;
    *status = s.capturing && stream == s.captured ? 1 : 0;
    return kSuccess;
  });
}
FAKE_API int hipStreamSynchronize(void*) {
  return call("hipStreamSynchronize", InCapture::no,
              [](State& s) { return s.fault.empty() ? kSuccess : kIllegalAddress; });
}
