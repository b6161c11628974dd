#include "hsaco_run.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "driver/fallback_version.h"
#include "runtime/kernel_version.h"

namespace tilegen::differential {

namespace {

// Blocks that a persistent kernel is launched with.
constexpr int64_t kResidentBlocks = 3;

uint32_t extent(int64_t v) { return static_cast<uint32_t>(v); }

}  // namespace

HsacoRun::HsacoRun(std::shared_ptr<const driver::Artifact> artifact) : artifact_(std::move(artifact)) {
  try {
    code_ = std::make_unique<amdemu::CodeObject>(artifact_->code);
    for (const std::string& text : code_->unknown())
      failed_ += "the interpreter does not know " + text + "\n";
  } catch (const std::exception& e) {
    failed_ = e.what();
  }
}

// Tensors lie behind `shift` elements of marks, which must be there afterwards.
std::string HsacoRun::launch(std::span<const uint64_t> slots, std::vector<GuardedMemory>& memory,
                             int64_t shift, uint64_t seed) {
  if (!failed_.empty()) return failed_;
  const ir::Program& p = *artifact_->program;
  std::vector<uint64_t> placed(slots.begin(), slots.end());
  std::vector<std::vector<std::byte>> images;
  std::vector<amdemu::Memory> memories;
  std::map<size_t, size_t> tensors;  // by parameter
  images.reserve(memory.size());
  for (size_t i = 0; i < p.params.size(); ++i) {
    if (p.params[i].kind != ir::Param::Kind::tensor) continue;
    const ir::Buffer& buffer = p.buffer(p.params[i].buffer);
    GuardedMemory& host = memory[images.size()];
    const bool absent = buffer.optional && slots[i] == 0;
    placed[i] = absent ? 0 : static_cast<uint64_t>(shift * ir::dtype_bytes(buffer.type));
    std::vector<std::byte> image(placed[i] + host.bytes().size(), GuardedMemory::kMark);
    std::copy(host.bytes().begin(), host.bytes().end(), image.begin() + static_cast<ptrdiff_t>(placed[i]));
    if (!absent) tensors[i] = images.size();
    images.push_back(std::move(image));
    memories.push_back({buffer.name, images.back(), true});
  }
  const std::string error = launch_kernels(placed, memories, tensors, seed);
  for (const auto& [param, t] : tensors) {
    const auto first = images[t].begin() + static_cast<ptrdiff_t>(placed[param]);
    std::copy(first, images[t].end(), memory[t].bytes().begin());
    if (error.empty() &&
        std::any_of(images[t].begin(), first, [](std::byte b) { return b != GuardedMemory::kMark; }))
      return "memory in front of a tensor was written";
  }
  return error;
}

std::string HsacoRun::launch_kernels(std::span<const uint64_t> slots,
                                     std::span<const amdemu::Memory> memories,
                                     const std::map<size_t, size_t>& tensors, uint64_t seed) {
  const ir::Program& p = *artifact_->program;
  const auto kernels = runtime::kernel_versions(*artifact_);
  // All of them first: where one has none nothing may have run before the fallback does.
  std::vector<const runtime::KernelVersion*> versions;
  for (size_t k = 0; k < kernels.size(); ++k) {
    auto version = runtime::choose_version(kernels[k], p.kernels[k].name, slots);
    if (!version) {
      if (!artifact_->fallback) return version.error().to_text();
      if (!fallback_) {
        auto made = artifact_->fallback->get();
        if (!made) return made.error().to_text();
        fallback_ = std::make_unique<HsacoRun>(*made);
      }
      if (!fallback_->failed_.empty()) return fallback_->failed_;
      return fallback_->launch_kernels(slots, memories, tensors, seed);
    }
    versions.push_back(*version);
  }
  for (const runtime::KernelVersion* version : versions) {
    const thread::ThreadProgram& program = version->program();
    auto grid = version->grid(slots);
    if (!grid) return grid.error().to_text();
    if (grid->blocks == 0) continue;
    std::vector<amdemu::Argument> arguments;
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto tensor = tensors.find(i);
      arguments.push_back({slots[i], tensor == tensors.end() ? -1 : static_cast<int>(tensor->second)});
    }
    std::vector<uint64_t> divisors(2 * program.divisors.size());
    if (!divisors.empty()) version->divisors(slots, divisors);
    for (uint64_t d : divisors) arguments.push_back({d});
    amdemu::LaunchOptions options;
    const size_t rank = program.grid.size();
    for (size_t d = 0; d < rank; ++d) options.grid[d] = extent(grid->extents[rank - 1 - d]);
    if (version->traits().persistent) options.grid = {extent(std::min(grid->blocks, kResidentBlocks)), 1, 1};
    options.block[0] = extent(program.threads);
    options.seed = seed;
    const amdemu::LaunchResult result = code_->launch(program.name, memories, arguments, options);
    instructions_ += result.instructions;
    if (!result.error.empty()) return "kernel " + program.name + ": " + result.error;
  }
  return {};
}

}  // namespace tilegen::differential
