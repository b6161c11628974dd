#include "runtime/gpu/loaded_module.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>

#include "codegen/native_text.h"
#include "runtime/gpu/launch_parameters.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::gpu {
namespace {

constexpr size_t kLogBytes = size_t{1} << 16;
constexpr int64_t kSharedWithoutAsking = 48 << 10;
constexpr int64_t kSharedGranule = 1 << 10;
constexpr int64_t kMaxSpread = 4;          // blocks of a multiprocessor that are told apart
constexpr int64_t kSpreadFrom = 16 << 10;  // bytes of a block with tiles; others are over soon

std::string text_of(const std::vector<char>& log) {
  std::string text(log.data(), strnlen(log.data(), log.size()));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// ", which is native text of 'f'" of a message that names a line of such text.
std::string blamed(const driver::Artifact& artifact, const std::string& words) {
  constexpr std::string_view kLine = "line ";
  const size_t at = words.find(kLine);
  size_t line = 0;
  if (artifact.program->natives.empty() || at == words.npos ||
      std::from_chars(words.data() + at + kLine.size(), words.data() + words.size(), line).ec != std::errc())
    return {};
  const std::string name = codegen::native_function_at(artifact.code, line);
  return name.empty() ? "" : ", which is native text of the function '" + name + "'";
}

void* as_option(uintptr_t value) { return reinterpret_cast<void*>(value); }

}  // namespace

Expected<std::unique_ptr<LoadedModule>> LoadedModule::load(const Driver& driver, ContextState& state,
                                                           const driver::Artifact& artifact) {
  std::unique_ptr<LoadedModule> module(new LoadedModule(driver, state));
  if (Checked ok = module->compile(artifact); !ok) return ok.error();
  for (const thread::ThreadProgram& kernel : artifact.kernels)
    if (Checked ok = module->find(kernel); !ok) return ok.error();
  const ir::Program& program = artifact.launch_program();
  if (std::any_of(program.buffers.begin(), program.buffers.end(),
                  [](const ir::Buffer& b) { return b.workspace; })) {
    Result result = kSuccess;
    module->pool_ = driver.workspace_pools().of(*state.device, result);
    if (!module->pool_)
      return call_failed(driver, &state, result,
                         "making a pool for the workspaces of '" + program.name + "'");
  }
  return module;
}

Checked LoadedModule::compile(const driver::Artifact& artifact) {
  std::vector<char> info(kLogBytes), errors(kLogBytes);
  JitOption names[] = {kJitInfoLogBuffer, kJitInfoLogBufferSize, kJitErrorLogBuffer, kJitErrorLogBufferSize,
                       kJitLogVerbose};
  void* values[] = {info.data(), as_option(kLogBytes - 1), errors.data(), as_option(kLogBytes - 1),
                    as_option(1)};
  const auto options = static_cast<unsigned>(driver_.names().compiles ? std::size(names) : 0);
  const auto start = std::chrono::steady_clock::now();
  const Result result = driver_.api().module_load(&module_, artifact.code.data(), options,
                                                  options ? names : nullptr, options ? values : nullptr);
  load_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  log_ = text_of(info);
  if (result == kSuccess) return Unit{};
  module_ = nullptr;
  const std::string words = text_of(errors);
  Error error = call_failed(driver_, &state_, result,
                            "loading the code for " + artifact.target.name + " on " + state_.device->text(),
                            artifact.program->kernels.front().name);
  if (!words.empty())
    error.diagnostics.front().message += "; the driver's compiler says: " + words + blamed(artifact, words);
  return error;
}

Checked LoadedModule::find(const thread::ThreadProgram& kernel) {
  LoadedFunction f;
  f.name = driver_.contexts().intern(kernel.name);
  f.most_blocks = most_blocks(*state_.device, kernel);
  f.dynamic_shared = static_cast<uint32_t>(driver_.names().dynamic_shared ? kernel.arena_bytes : 0);
  const Entries& api = driver_.api();
  Result result = api.module_function(&f.function, module_, kernel.name.c_str());
  const std::pair<FunctionAttribute, int*> numbers[] = {{kFunctionRegisters, &f.registers},
                                                        {kFunctionLocalBytes, &f.local_bytes},
                                                        {kFunctionSharedBytes, &f.static_shared},
                                                        {kFunctionMaxThreads, &f.max_threads}};
  for (const auto& [attribute, number] : numbers)
    if (result == kSuccess) result = api.function_attribute(number, attribute, f.function);
  if (result != kSuccess)
    return call_failed(driver_, &state_, result, "looking up kernel '" + kernel.name + "'", kernel.name);
  if (Checked ok = allow(kernel, f); !ok) return ok;
  if (f.dynamic_shared > 0 && f.static_shared + int64_t{f.dynamic_shared} > kSharedWithoutAsking) {
    result = api.function_set(f.function, kFunctionMaxDynamicShared, static_cast<int>(f.dynamic_shared));
    if (result != kSuccess)
      return call_failed(driver_, &state_, result,
                         "asking for " + std::to_string(f.dynamic_shared) + " bytes of shared memory",
                         kernel.name);
  }
  if (kernel.launched_var.valid() || kernel.cluster > 1)
    if (Checked ok = kernel.cluster > 1 ? count_clusters(kernel, f) : count_resident(kernel, f); !ok)
      return ok;
  spread(kernel, f);
  if (kernel.dynamic_tiles && !counters_) {
    counters_ = TileCounters::make(driver_, result);
    if (!counters_)
      return call_failed(driver_, &state_, result,
                         "allocating what the blocks of '" + kernel.name + "' take their tiles from",
                         kernel.name);
  }
  if (kernel.dynamic_tiles) f.counters = counters_.get();
  functions_.push_back(f);
  return Unit{};
}

Checked LoadedModule::count_resident(const thread::ThreadProgram& kernel, LoadedFunction& f) const {
  int blocks = 0;
  const Result result =
      driver_.api().occupancy(&blocks, f.function, static_cast<int>(kernel.threads), f.dynamic_shared);
  if (result != kSuccess)
    return call_failed(driver_, &state_, result, "asking for the occupancy of '" + kernel.name + "'",
                       kernel.name);
  f.resident_blocks =
      std::clamp<int64_t>(int64_t{blocks} * state_.device->multiprocessors, 1, thread::kMaxResidentBlocks);
  return Unit{};
}

// Clusters do not straddle groups of multiprocessors, which are not all of one size: the driver knows how
// many fit.
Checked LoadedModule::count_clusters(const thread::ThreadProgram& kernel, LoadedFunction& f) const {
  const Names& names = driver_.names();
  const std::string what = std::to_string(kernel.cluster) + " blocks with " +
                           std::to_string(kernel.arena_bytes) + " bytes of shared memory each";
  constexpr char kHint[] = "give a schedule with a `cluster` of 1 block";
  const Entries& api = driver_.api();
  if (!api.launch_with || !api.clusters)
    return Error(DiagCode::driver_absent, kernel.name,
                 std::string("the ") + names.library + " supports " + names.interface + " " +
                     driver_.version_text() + ", which knows no clusters of blocks",
                 std::string("update ") + names.driver + ", or " + kHint);
  if (kernel.cluster > kPortableCluster)
    if (const Result result = api.function_set(f.function, kFunctionLargeClusters, 1); result != kSuccess)
      return call_failed(driver_, &state_, result,
                         "asking for clusters of " + std::to_string(kernel.cluster) + " blocks", kernel.name);
  int clusters = 0;
  const Result result = clusters_at_once(kernel, f, f.dynamic_shared, clusters);
  if (result != kSuccess)
    return call_failed(driver_, &state_, result,
                       "asking how many clusters of '" + kernel.name + "' are resident", kernel.name);
  if (clusters < 1)
    return Error(DiagCode::launch_limit, kernel.name, state_.device->text() + " runs no cluster of " + what,
                 kHint);
  const int64_t most = thread::kMaxResidentBlocks / kernel.cluster;
  f.resident_blocks = std::min<int64_t>(clusters, most) * kernel.cluster;
  return Unit{};
}

Result LoadedModule::clusters_at_once(const thread::ThreadProgram& kernel, const LoadedFunction& f,
                                      uint32_t shared, int& clusters) const {
  LaunchAttribute cluster;
  cluster.value[0] = static_cast<uint32_t>(kernel.cluster);
  LaunchConfig config;
  config.grid[0] = static_cast<uint32_t>(kernel.cluster);
  config.block[0] = static_cast<uint32_t>(kernel.threads);
  config.shared_bytes = shared;
  config.attributes = &cluster;
  config.attribute_count = 1;
  return driver_.api().clusters(&clusters, f.function, &config);
}

// Blocks of a dependent launch begin while those of the kernel before still run, where there is room: several
// on one multiprocessor, none on another, and the launch takes as long as the fullest. Where the grid has no
// more than n blocks for each, blocks ask for more than the (n + 1)-th part of its shared memory.
void LoadedModule::spread(const thread::ThreadProgram& kernel, LoadedFunction& f) const {
  const Device& device = *state_.device;
  if (!kernel.dependent || !driver_.api().launch_with || f.dynamic_shared < kSpreadFrom) return;
  for (int64_t n = 1; n <= kMaxSpread; ++n) {
    const int64_t share =
                      device.shared_per_multiprocessor / (n + 1) - device.reserved_shared - f.static_shared,
                  bytes = (share / kSharedGranule + 1) * kSharedGranule;
    if (bytes <= f.dynamic_shared) return;
    if (f.static_shared + bytes > device.shared_bytes) continue;
    const auto asked = static_cast<uint32_t>(bytes);
    if (f.few_blocks.empty() && driver_.api().function_set(f.function, kFunctionMaxDynamicShared,
                                                           static_cast<int>(asked)) != kSuccess)
      return;
    int64_t blocks = n * device.multiprocessors;
    if (kernel.cluster > 1) {
      int clusters = 0;
      if (clusters_at_once(kernel, f, asked, clusters) != kSuccess) return;
      blocks = clusters * kernel.cluster;
    }
    f.few_blocks.push_back({blocks, asked});
  }
}

// The driver would refuse these launches too, without saying which number is too large.
Checked LoadedModule::allow(const thread::ThreadProgram& kernel, const LoadedFunction& f) const {
  const Device& device = *state_.device;
  const std::string best = std::string("compile for '") + driver_.names().prefix + "'";
  if (kernel.machine.warp != device.warp)
    return Error(DiagCode::launch_limit, kernel.name,
                 "the code is for warps of " + std::to_string(kernel.machine.warp) + " lanes, those of " +
                     device.text() + " have " + std::to_string(device.warp),
                 best);
  const int64_t shared = int64_t{f.static_shared} + f.dynamic_shared;
  if (shared > device.shared_bytes)
    return Error(DiagCode::limit_memory, kernel.name,
                 "a block needs " + std::to_string(shared) + " bytes of shared memory, " + device.text() +
                     " has " + std::to_string(device.shared_bytes),
                 "use smaller tiles or fewer stages, or " + best);
  if (kernel.threads > f.max_threads)
    return Error(DiagCode::launch_limit, kernel.name,
                 "a block has " + std::to_string(kernel.threads) + " threads, with " +
                     std::to_string(f.registers) + " registers each " + device.text() + " can run " +
                     std::to_string(f.max_threads),
                 "use fewer threads or smaller tiles");
  if (const size_t bytes = parameter_bytes(kernel); bytes > kMaxParameterBytes)
    return Error(DiagCode::launch_limit, kernel.name,
                 std::to_string(kernel.params.size()) + " parameters" +
                     (kernel.tensor_maps.empty()
                          ? ""
                          : " and " + std::to_string(kernel.tensor_maps.size()) + " tensor maps") +
                     " are more than the " + std::to_string(kMaxParameterBytes) +
                     " bytes that a launch can pass",
                 "split the program");
  return Unit{};
}

LoadedModule::~LoadedModule() {
  // The modules and the memory of a context go with it.
  const bool alive = module_ && driver_.alive(state_);
  std::optional<ContextScope> scope;
  if (alive) scope.emplace(driver_, state_);
  if (!alive || scope->result() != kSuccess) {
    if (counters_) counters_->abandon();
    return;
  }
  counters_.reset();
  driver_.api().module_unload(module_);
}

}  // namespace tilegen::runtime::gpu
