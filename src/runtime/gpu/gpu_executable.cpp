#include "runtime/gpu/gpu_executable.h"

#include <algorithm>
#include <optional>

#include "driver/fallback_version.h"
#include "runtime/gpu/kernel_launch.h"
#include "runtime/gpu/routes.h"
#include "runtime/gpu/version_rows.h"
#include "runtime/gpu/workspace_pools.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::gpu {
namespace {

class GpuExecutable final : public Executable {
 public:
  GpuExecutable(const Driver& driver, std::shared_ptr<const driver::Artifact> artifact, int ordinal)
      : Executable(std::move(artifact), driver.reach(ordinal)),
        driver_(driver),
        device_(driver.devices()[static_cast<size_t>(ordinal)]),
        versions_(kernel_versions(this->artifact())),
        has_maps_(std::any_of(versions_.begin(), versions_.end(),
                              [](const std::vector<KernelVersion>& versions) {
                                return std::any_of(
                                    versions.begin(), versions.end(),
                                    [](const KernelVersion& f) { return !f.program().tensor_maps.empty(); });
                              })),
        routes_(driver, device_, this->artifact()) {
    for (const driver::VersionRange& range : this->artifact().versions)
      first_versions_.push_back(range.first);
  }

  Checked prepare() override;
  Expected<std::vector<VersionInfo>> info() const override;
  size_t version_count() const override {
    const GpuExecutable* other = fallback_ready_.load(std::memory_order_acquire);
    return artifact().kernels.size() + (other ? other->version_count() : 0);
  }
  std::string load_log() const override { return routes_.first() ? routes_.first()->log() : ""; }
  double load_ms() const override { return routes_.first() ? routes_.first()->load_ms() : 0; }

 protected:
  Checked run(std::span<const uint64_t> slots, const LaunchOptions& options) const override;
  Checked run_in_workspace(std::span<uint64_t> slots, const LaunchOptions& options) const override;

 private:
  using Route = Routes::Route;

  bool choose(size_t kernel, std::span<const uint64_t> slots, KernelLaunch& out) const;
  bool choose_all(std::span<const uint64_t> slots, KernelLaunch& out) const;
  bool guards_hold(std::span<const uint64_t> slots) const;
  bool plan(size_t kernel, std::span<const uint64_t> slots, const LoadedModule& module,
            KernelLaunch& out) const;
  Error no_launch(size_t kernel, std::span<const uint64_t> slots, const KernelVersion* version) const;
  Checked run_on(const Route& way, std::span<const uint64_t> slots, const LaunchOptions& options,
                 KernelLaunch& launch) const;
  bool is_captured(Stream stream) const;
  Error not_queued(const Route& way, const KernelLaunch& launch, Result result) const;
  Checked run_prepared(const Route* way, std::span<const uint64_t> slots, const LaunchOptions& options) const;
  Checked run_elsewhere(std::span<const uint64_t> slots, const LaunchOptions& options) const;
  Expected<const Route*> load(Stream stream, const Cancellation* cancellation) const;
  Expected<GpuExecutable*> fallback(const LaunchOptions& options) const;

  const Driver& driver_;
  const Device& device_;
  std::vector<std::vector<KernelVersion>> versions_;
  std::vector<size_t> first_versions_;  // of each kernel, among a module's functions
  const bool has_maps_;                 // the driver makes them in a context only
  mutable Routes routes_;
  mutable std::mutex mutex_;                         // of making what stands below
  mutable std::unique_ptr<GpuExecutable> fallback_;  // for arguments that no version here takes
  mutable std::atomic<GpuExecutable*> fallback_ready_{nullptr};
};

Checked GpuExecutable::prepare() {
  auto ready = routes_.find(std::nullopt);
  if (!ready) return ready.error();
  const ContextState& state = *(*ready)->state;
  if (state.broken.load() != kSuccess)
    return context_broken(driver_, state, "preparing '" + artifact().program->name + "'");
  if (!artifact().fallback || !artifact().fallback->made()) return Unit{};
  auto other = fallback({});
  return other ? (*other)->prepare() : other.error();
}

// The first version whose guards hold and whose tensor maps the driver makes, with its parameters.
inline bool GpuExecutable::choose(size_t kernel, std::span<const uint64_t> slots, KernelLaunch& out) const {
  for (const KernelVersion& version : versions_[kernel]) {
    if (!version.guards_hold(slots)) continue;
    out.version = &version;
    out.parameters = version.traits().only_slots ? slots.data() : make_parameters(driver_, version, slots);
    if (out.parameters) return true;
  }
  out.version = nullptr;
  return false;
}

// Whether every kernel has a version for the arguments; the first one's is chosen then.
inline bool GpuExecutable::choose_all(std::span<const uint64_t> slots, KernelLaunch& out) const {
  for (size_t k = first_versions_.size(); k-- > 0;)
    if (!choose(k, slots, out)) return false;
  return true;
}

// Whether every kernel has a version whose guards hold: all that can be told without a context.
bool GpuExecutable::guards_hold(std::span<const uint64_t> slots) const {
  return std::all_of(versions_.begin(), versions_.end(), [&](const std::vector<KernelVersion>& versions) {
    return std::any_of(versions.begin(), versions.end(),
                       [&](const KernelVersion& f) { return f.guards_hold(slots); });
  });
}

// Function and blocks of the version chosen. False: no_launch says why.
inline bool GpuExecutable::plan(size_t kernel, std::span<const uint64_t> slots, const LoadedModule& module,
                                KernelLaunch& out) const {
  out.function = &module.functions()[first_versions_[kernel] +
                                     static_cast<size_t>(out.version - versions_[kernel].data())];
  return find_blocks(slots, out);
}

[[gnu::cold]] Error GpuExecutable::no_launch(size_t kernel, std::span<const uint64_t> slots,
                                             const KernelVersion* version) const {
  return version ? launch_refusal(device_, slots, *version)
                 : no_version(versions_[kernel], artifact().program->kernels[kernel].name);
}

// In the context that is current. `launch`: with the version of the first kernel.
inline Checked GpuExecutable::run_on(const Route& way, std::span<const uint64_t> slots,
                                     const LaunchOptions& options, KernelLaunch& launch) const {
  const size_t kernels = first_versions_.size();
  if (kernels > 1) {  // what does not fit launches nothing
    for (size_t k = 0; k < kernels; ++k)
      if (!choose(k, slots, launch) || !plan(k, slots, *way.module, launch))
        return no_launch(k, slots, launch.version);
    choose(0, slots, launch);
  }
  for (size_t k = 0; k < kernels; ++k) {
    if ((k > 0 && !choose(k, slots, launch)) || !plan(k, slots, *way.module, launch))
      return no_launch(k, slots, launch.version);
    if (launch.empty) continue;
    const Result result = queue(driver_, slots, static_cast<Stream>(options.stream), launch);
    if (result != kSuccess) return not_queued(way, launch, result);
    way.state->last_kernel.store(launch.function->name, std::memory_order_relaxed);
  }
  return Unit{};
}

[[gnu::cold]] Error GpuExecutable::not_queued(const Route& way, const KernelLaunch& launch,
                                              Result result) const {
  const std::string& name = launch.version->program().name;
  return call_failed(driver_, way.state, result, "launching '" + name + "' on " + device_.text(), name);
}

// The driver's compiler cannot be interrupted: who was to stop meanwhile launches nothing, and the next
// launch finds the code loaded.
[[gnu::cold]] Expected<const GpuExecutable::Route*> GpuExecutable::load(
    Stream stream, const Cancellation* cancellation) const {
  const auto stopped = [&] { return cancellation && cancellation->requested(); };
  const std::string& name = artifact().program->name;
  if (stopped()) return cancellation->error(name, "before the code of '" + name + "' was loaded");
  auto found = routes_.find(stream);
  if (found && stopped()) return cancellation->error(name, "while the code of '" + name + "' was loaded");
  return found;
}

Expected<GpuExecutable*> GpuExecutable::fallback(const LaunchOptions& options) const {
  if (GpuExecutable* ready = fallback_ready_.load(std::memory_order_acquire)) return ready;
  auto code = artifact().fallback->get(options.cancellation,
                                       options.log_of ? options.log_of(options.listener) : nullptr);
  if (!code) return code.error();
  std::lock_guard lock(mutex_);
  if (!fallback_) fallback_ = std::make_unique<GpuExecutable>(driver_, *code, device_.ordinal);
  fallback_ready_.store(fallback_.get(), std::memory_order_release);
  return fallback_.get();
}

// Where no version of some kernel takes the arguments.
[[gnu::cold]] Checked GpuExecutable::run_elsewhere(std::span<const uint64_t> slots,
                                                   const LaunchOptions& options) const {
  if (artifact().fallback) {
    auto other = fallback(options);
    if (!other) return other.error();
    return run_of(**other, slots, options);
  }
  const auto refuses = [&](const std::vector<KernelVersion>& versions) {
    return std::none_of(versions.begin(), versions.end(),
                        [&](const KernelVersion& f) { return f.guards_hold(slots); });
  };
  const auto makes_maps = [](const std::vector<KernelVersion>& versions) {
    return !versions.front().program().tensor_maps.empty();
  };
  auto kernel = std::find_if(versions_.begin(), versions_.end(), refuses);
  if (kernel == versions_.end()) kernel = std::find_if(versions_.begin(), versions_.end(), makes_maps);
  return no_launch(static_cast<size_t>(kernel - versions_.begin()), slots, nullptr);
}

// Where the context is not ready: nothing loaded in it yet, another one to be made current, or broken.
[[gnu::cold]] Checked GpuExecutable::run_prepared(const Route* way, std::span<const uint64_t> slots,
                                                  const LaunchOptions& options) const {
  if (!way) {
    auto found = load(static_cast<Stream>(options.stream), options.cancellation);
    if (!found) return found.error();
    way = *found;
  }
  if (way->state->broken.load(std::memory_order_relaxed) != kSuccess)
    return context_broken(driver_, *way->state, "launching '" + artifact().program->name + "'");
  std::optional<ContextScope> scope;
  if (way->push) {
    scope.emplace(driver_, *way->state);
    if (scope->result() != kSuccess)
      return call_failed(driver_, way->state, scope->result(), "switching to " + device_.text());
  }
  KernelLaunch launch;
  if (choose_all(slots, launch)) return run_on(*way, slots, options, launch);
  scope.reset();
  return run_elsewhere(slots, options);
}

[[gnu::hot]] Checked GpuExecutable::run(std::span<const uint64_t> slots, const LaunchOptions& options) const {
  const Route* way = routes_.known();
  const bool ready = way && !way->push && way->state->broken.load(std::memory_order_relaxed) == kSuccess;
  KernelLaunch launch;
  if (ready || !has_maps_ ? !choose_all(slots, launch) : !guards_hold(slots))
    return run_elsewhere(slots, options);
  return ready ? run_on(*way, slots, options, launch) : run_prepared(way, slots, options);
}

// The default stream is never captured.
bool GpuExecutable::is_captured(Stream stream) const {
  int capturing = 0;
  const auto asks = driver_.api().stream_capturing;
  return stream && asks && (asks(stream, &capturing) != kSuccess || capturing != 0);
}

// The memory is the launch's own from the stream's point of view: allocated after what is in it and free
// after the kernels, for the next launch to have. A capture makes both nodes of its graph.
Checked GpuExecutable::run_in_workspace(std::span<uint64_t> slots, const LaunchOptions& options) const {
  const auto bytes = workspace().lay_out(slots);
  if (!bytes) return bytes.error();
  const auto stream = static_cast<Stream>(options.stream);
  const Route* way = routes_.known();
  if (!way) {
    auto found = load(stream, options.cancellation);
    if (!found) return found.error();
    way = *found;
  }
  if (way->state->broken.load(std::memory_order_relaxed) != kSuccess)
    return context_broken(driver_, *way->state, "launching '" + artifact().program->name + "'");
  const auto in_context = [&](const char* doing, const auto& call) -> Checked {
    std::optional<ContextScope> scope;
    if (way->push) scope.emplace(driver_, *way->state);
    const bool there = !scope || scope->result() == kSuccess;
    if (const Result result = there ? call() : scope->result(); result != kSuccess)
      return call_failed(
          driver_, way->state, result,
          doing + std::to_string(*bytes) + " bytes for the workspaces of '" + artifact().program->name + "'");
    return Unit{};
  };
  Pointer memory = 0;
  Checked done = in_context("allocating ", [&] {
    return driver_.api().pool_allocate(&memory, static_cast<size_t>(std::max(*bytes, Workspace::kAlignment)),
                                       way->module->pool(), stream);
  });
  if (!done) return done;
  workspace().place(memory, slots);
  const bool tells = !workspace().reports().empty() && !is_captured(stream);
  for (const Reports::Piece& piece : workspace().reports().pieces())
    if (done)
      done = in_context("clearing reports in the ", [&] {
        return driver_.api().memory_set(static_cast<Pointer>(slots[piece.param]), 0, piece.bytes, stream);
      });
  if (done) done = run(slots, options);
  std::vector<std::vector<std::byte>> heard;
  for (const Reports::Piece& piece : workspace().reports().pieces())
    if (done && tells)
      done = in_context("reading reports in the ", [&] {
        auto& to = heard.emplace_back(piece.bytes);
        return driver_.copy(reinterpret_cast<uintptr_t>(to.data()), static_cast<Pointer>(slots[piece.param]),
                            piece.bytes, stream);
      });
  if (done && tells)
    done = in_context("waiting for reports in the ", [&] { return driver_.api().stream_wait(stream); });
  const Checked freed = in_context("freeing ", [&] { return driver_.api().pool_free(memory, stream); });
  if (!done) return done;
  if (!freed || !tells) return freed;
  std::vector<const std::byte*> pieces;
  for (const auto& piece : heard) pieces.push_back(piece.data());
  return workspace().reports().tell(slots, pieces, options.lines);
}

Expected<std::vector<VersionInfo>> GpuExecutable::info() const {
  auto rows = version_rows(driver_, device_, artifact(), versions_, routes_.first());
  const GpuExecutable* other = fallback_ready_.load(std::memory_order_acquire);
  if (!rows || !other) return rows;
  auto more = other->info();
  if (!more) return more.error();
  for (VersionInfo& row : *more) {
    row.variant = versions_[row.kernel].size();
    rows->push_back(std::move(row));
  }
  std::stable_sort(rows->begin(), rows->end(),
                   [](const VersionInfo& a, const VersionInfo& b) { return a.kernel < b.kernel; });
  return rows;
}

}  // namespace

Expected<std::unique_ptr<Executable>> load_on_gpu(const Driver& driver,
                                                  std::shared_ptr<const driver::Artifact> artifact,
                                                  int ordinal) {
  if (artifact->code.empty())
    return Error(DiagCode::target_unsupported, "", "the artifact has a schedule and no code",
                 "compile without the option 'plan_only'");
  if (Checked ok = driver.takes(*artifact); !ok) return ok.error();
  const Names& names = driver.names();
  const Device& device = driver.devices()[static_cast<size_t>(ordinal)];
  for (const ir::Buffer& b : artifact->launch_program().buffers)
    if (b.workspace && !WorkspacePools::known_to(driver, device))
      return Error(DiagCode::driver_absent, b.name,
                   std::string("workspaces need the ") + names.library + "'s function " +
                       names.pool_function + "; this one supports " + names.interface + " " +
                       driver.version_text() + " and lacks it",
                   std::string("update ") + names.driver +
                       (!artifact->launched
                            ? ", or have '" + b.name + "' passed as a tensor"
                            : ", or give the kernels that blocks share a loop of a `split` of 1 part"));
  return std::unique_ptr<Executable>(new GpuExecutable(driver, std::move(artifact), ordinal));
}

}  // namespace tilegen::runtime::gpu
