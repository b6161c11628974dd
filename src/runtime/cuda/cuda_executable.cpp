#include "runtime/cuda/cuda_executable.h"

#include <algorithm>
#include <optional>

#include "runtime/cuda/contexts.h"
#include "runtime/cuda/loaded_module.h"
#include "runtime/cuda/tensor_maps.h"
#include "runtime/kernel_form.h"

namespace tilegen::runtime::cuda {
namespace {

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(const Driver& driver, std::shared_ptr<const driver::Artifact> artifact, int ordinal)
      : Executable(std::move(artifact), MemoryReach{true, ordinal}),
        driver_(driver),
        device_(driver.devices()[static_cast<size_t>(ordinal)]),
        forms_(kernel_forms(this->artifact())),
        has_maps_(std::any_of(forms_.begin(), forms_.end(), [](const std::vector<KernelForm>& forms) {
          return std::any_of(forms.begin(), forms.end(), [](const KernelForm& f) { return !f.program().tensor_maps.empty(); });
        })) {}
  ~CudaExecutable() override;

  Checked prepare() override;
  Expected<std::vector<FormInfo>> info() const override;
  size_t form_count() const override {
    const CudaExecutable* other = unguarded_ready_.load(std::memory_order_acquire);
    return artifact().kernels.size() + (other ? other->form_count() : 0);
  }
  std::string load_log() const override {
    const LoadedModule* first = first_.load(std::memory_order_acquire);
    return first ? first->log() : "";
  }
  double load_ms() const override {
    const LoadedModule* first = first_.load(std::memory_order_acquire);
    return first ? first->load_ms() : 0;
  }

 protected:
  Checked run(std::span<const uint64_t> slots, const LaunchOptions& options) const override;

 private:
  // What a launch does while `current` is current: which module it takes, and whether its context must be made
  // current first.
  struct Route {
    CuContext current = nullptr;
    uint64_t id = 0;
    bool push = false;
    const LoadedModule* module = nullptr;
    const Route* next = nullptr;
  };
  struct Launch {
    const KernelForm* form = nullptr;
    const thread::ThreadProgram* program = nullptr;
    const LoadedFunction* function = nullptr;
    unsigned grid[3] = {1, 1, 1};
    bool empty = false;
    const void* parameters = nullptr;
    ParameterBlock block;  // where they may be
  };

  const Route* find(CuContext current, uint64_t id) const {
    for (const Route* r = routes_.load(std::memory_order_acquire); r; r = r->next)
      if (r->current == current && r->id == id) return r;
    return nullptr;
  }
  const Route* known_route() const;
  Expected<const Route*> route(const std::optional<CuStream>& stream) const;
  Expected<const Route*> make_route(CuContext current, uint64_t id) const;
  Expected<const LoadedModule*> module_in(ContextState& state, bool push) const;
  Checked not_capturing(CuStream stream) const;
  bool choose(size_t kernel, std::span<const uint64_t> slots, Launch& out) const;
  bool choose_all(std::span<const uint64_t> slots, Launch& out) const;
  bool guards_hold(std::span<const uint64_t> slots) const;
  bool plan(size_t kernel, std::span<const uint64_t> slots, const LoadedModule& module, Launch& out) const;
  Error no_launch(size_t kernel, std::span<const uint64_t> slots, const Launch& launch) const;
  Checked run_elsewhere(std::span<const uint64_t> slots, const LaunchOptions& options) const;
  Expected<const CudaExecutable*> unguarded() const;
  Checked launch_all(const LoadedModule& module, std::span<const uint64_t> slots, CuStream stream, Launch& launch) const;
  CuResult launch_one(std::span<const uint64_t> slots, CuStream stream, const Launch& launch) const;
  CuResult launch_claiming(const Launch& launch, CuStream stream) const;
  CuResult call(const Launch& launch, CuStream stream, void** pointers, void** extra) const;
  int estimated_blocks(const thread::ThreadProgram& program) const;

  const Driver& driver_;
  const Device& device_;
  std::vector<std::vector<KernelForm>> forms_;
  const bool has_maps_;  // the driver makes them in a context only
  mutable std::mutex mutex_;  // of growing what stands below
  mutable std::vector<std::unique_ptr<LoadedModule>> modules_;
  mutable std::atomic<const Route*> routes_{nullptr};
  mutable std::atomic<const LoadedModule*> first_{nullptr};
  mutable std::unique_ptr<CudaExecutable> unguarded_;  // for arguments that no form here takes
  mutable std::atomic<const CudaExecutable*> unguarded_ready_{nullptr};
};

CudaExecutable::~CudaExecutable() {
  for (const Route* r = routes_.load(); r;) delete std::exchange(r, r->next);
}

// The way of a launch behind the first; none before it, and where the driver fails.
inline const CudaExecutable::Route* CudaExecutable::known_route() const {
  CuContext current = nullptr;
  if (driver_.api().context_current(&current) != kCuSuccess) return nullptr;
  return find(current, driver_.contexts().id_of(current));
}

// `stream` is the one to launch on, where this is for a launch.
Expected<const CudaExecutable::Route*> CudaExecutable::route(const std::optional<CuStream>& stream) const {
  CuContext current = nullptr;
  if (const CuResult result = driver_.api().context_current(&current); result != kCuSuccess)
    return call_failed(driver_, nullptr, result, "asking for the current context");
  const uint64_t id = driver_.contexts().id_of(current);
  if (const Route* known = find(current, id)) return known;
  std::lock_guard lock(mutex_);
  if (const Route* known = find(current, id)) return known;
  if (stream)
    if (Checked ok = not_capturing(*stream); !ok) return ok.error();
  return make_route(current, id);
}

// A load inside a capture would fail, or worse, spoil the capture.
Checked CudaExecutable::not_capturing(CuStream stream) const {
  if (!driver_.api().stream_capturing) return Unit{};
  int status = 0;
  const CuResult result = driver_.api().stream_capturing(stream, &status);
  const bool refused = result >= kCuStreamCaptureUnsupported && result <= kCuStreamCaptureWrongThread;
  if (!refused && (result != kCuSuccess || status == 0)) return Unit{};
  return Error(DiagCode::driver_failure, artifact().program->kernels.front().name,
               "the stream is being captured and the kernel is not loaded in this context yet",
               "call tl_kernel_prepare before the capture begins");
}

Expected<const CudaExecutable::Route*> CudaExecutable::make_route(CuContext current, uint64_t id) const {
  auto state = driver_.contexts().choose(current, device_);
  if (!state) return state.error();
  auto made = std::make_unique<Route>();
  made->current = current;
  made->id = id;
  made->push = (*state)->context != current;
  auto module = module_in(**state, made->push);
  if (!module) return module.error();
  made->module = *module;
  made->next = routes_.load(std::memory_order_relaxed);
  routes_.store(made.get(), std::memory_order_release);
  return made.release();
}

Expected<const LoadedModule*> CudaExecutable::module_in(ContextState& state, bool push) const {
  for (const auto& m : modules_)
    if (&m->state() == &state) return m.get();
  if (state.broken.load() != kCuSuccess)
    return context_broken(driver_, state, "loading '" + artifact().program->name + "'");
  std::optional<ContextScope> scope;
  if (push) {
    scope.emplace(driver_, state.context);
    if (scope->result() != kCuSuccess)
      return call_failed(driver_, &state, scope->result(), "switching to " + device_.text());
  }
  auto loaded = LoadedModule::load(driver_, state, artifact());
  if (!loaded) return loaded.error();
  modules_.push_back(std::move(*loaded));
  const LoadedModule* none = nullptr;
  first_.compare_exchange_strong(none, modules_.back().get());
  return modules_.back().get();
}

Checked CudaExecutable::prepare() {
  auto ready = route(std::nullopt);
  if (!ready) return ready.error();
  const ContextState& state = (*ready)->module->state();
  if (state.broken.load() != kCuSuccess)
    return context_broken(driver_, state, "preparing '" + artifact().program->name + "'");
  return Unit{};
}

// The first form whose guards hold and whose tensor maps the driver makes, with its parameters.
inline bool CudaExecutable::choose(size_t kernel, std::span<const uint64_t> slots, Launch& out) const {
  for (const KernelForm& form : forms_[kernel]) {
    if (!form.guards_hold(slots)) continue;
    out.form = &form;
    out.program = &form.program();
    out.parameters =
        form.only_slots() ? slots.data() : make_parameters(driver_, form, slots, out.block);
    if (out.parameters) return true;
  }
  out.form = nullptr;
  return false;
}

// Whether every kernel has a form for the arguments; the first one's is chosen then.
inline bool CudaExecutable::choose_all(std::span<const uint64_t> slots, Launch& out) const {
  for (size_t k = forms_.size(); k-- > 0;)
    if (!choose(k, slots, out)) return false;
  return true;
}

// Whether every kernel has a form whose guards hold: all that can be told without a context.
bool CudaExecutable::guards_hold(std::span<const uint64_t> slots) const {
  return std::all_of(forms_.begin(), forms_.end(), [&](const std::vector<KernelForm>& forms) {
    return std::any_of(forms.begin(), forms.end(), [&](const KernelForm& f) { return f.guards_hold(slots); });
  });
}

// Grid and function of the form chosen. False: no_launch says why.
inline bool CudaExecutable::plan(size_t kernel, std::span<const uint64_t> slots, const LoadedModule& module,
                                 Launch& out) const {
  Grid grid;
  if (!out.form->find_grid(slots, grid)) {
    const auto found = out.form->grid(slots);
    if (!found) return false;
    grid = *found;
  }
  out.function = &module.functions()[artifact().forms[kernel].first + static_cast<size_t>(out.form - forms_[kernel].data())];
  out.empty = grid.blocks == 0;
  if (out.empty) return true;
  const bool persistent = out.program->launched_var.valid();
  const size_t rank = out.program->grid.size();
  for (size_t d = 0; d < 3; ++d) {  // x is the last extent
    const int64_t extent = d < rank ? grid.extents[rank - 1 - d] : 1;
    if (extent > (persistent ? thread::kMostPersistentPoints : device_.max_grid[d])) return false;
    out.grid[d] = static_cast<unsigned>(persistent && d < rank ? std::min(extent, out.function->resident_blocks) : extent);
  }
  return true;
}

[[gnu::cold]] Error CudaExecutable::no_launch(size_t kernel, std::span<const uint64_t> slots,
                                              const Launch& launch) const {
  const std::string& name = artifact().program->kernels[kernel].name;
  if (!launch.form) return no_form(forms_[kernel], name);
  auto grid = launch.form->grid(slots);
  if (!grid) return grid.error();
  size_t d = 0;  // the first that is too large
  const size_t rank = launch.program->grid.size();
  const auto most = [&] { return launch.program->launched_var.valid() ? thread::kMostPersistentPoints : device_.max_grid[d]; };
  while (d + 1 < rank && grid->extents[rank - 1 - d] <= most()) ++d;
  return Error(DiagCode::launch_limit, name,
               "the grid has " + std::to_string(grid->extents[rank - 1 - d]) + " blocks along " + "xyz"[d] + ", " +
                   device_.text() + " launches at most " + std::to_string(most()),
               "launch with smaller dimensions, or use larger tiles");
}

// The driver's call of a launch, with what the program asks for.
inline CuResult CudaExecutable::call(const Launch& launch, CuStream stream, void** pointers, void** extra) const {
  const thread::ThreadProgram& program = *launch.program;
  const auto threads = static_cast<uint32_t>(program.threads), shared = static_cast<uint32_t>(program.arena_bytes);
  CuLaunchAttribute attributes[2];
  uint32_t count = 0;
  if (program.cluster > 1) attributes[count++].value[0] = static_cast<uint32_t>(program.cluster);
  if (program.dependent && driver_.api().launch_with) attributes[count++] = {kLaunchDependent, 0, {1}};
  if (count == 0)
    return driver_.api().launch(launch.function->function, launch.grid[0], launch.grid[1], launch.grid[2], threads, 1, 1, shared,
                                stream, pointers, extra);
  const CuLaunchConfig config = {{launch.grid[0], launch.grid[1], launch.grid[2]}, {threads, 1, 1}, shared, stream, attributes, count};
  return driver_.api().launch_with(&config, launch.function->function, pointers, extra);
}

CuResult CudaExecutable::launch_claiming(const Launch& launch, CuStream stream) const {
  CuPointer counter = 0;
  if (const CuResult result = launch.function->counters->of_launch(stream, counter); result != kCuSuccess) return result;
  const thread::ThreadProgram& program = *launch.program;
  void* pointers[kMostParameters];
  *point_to_parameters(program, launch.parameters, pointers) = &counter;
  return call(launch, stream, pointers, nullptr);
}

inline CuResult CudaExecutable::launch_one(std::span<const uint64_t> slots, CuStream stream, const Launch& launch) const {
  if (launch.program->claims) return launch_claiming(launch, stream);
  size_t bytes = slots.size_bytes();
  void* extra[] = {kLaunchParamBuffer, const_cast<uint64_t*>(slots.data()), kLaunchParamBufferSize, &bytes, kLaunchParamEnd};
  void* pointers[kMostParameters];
  const bool more = launch.parameters != slots.data();
  if (more) point_to_parameters(*launch.program, launch.parameters, pointers);
  return call(launch, stream, more ? pointers : nullptr, more ? nullptr : extra);
}

// `launch`: with the form of the first kernel.
inline Checked CudaExecutable::launch_all(const LoadedModule& module, std::span<const uint64_t> slots, CuStream stream,
                                          Launch& launch) const {
  ContextState& state = module.state();
  if (forms_.size() > 1) {  // what does not fit launches nothing
    for (size_t k = 0; k < forms_.size(); ++k)
      if (!choose(k, slots, launch) || !plan(k, slots, module, launch)) return no_launch(k, slots, launch);
    choose(0, slots, launch);
  }
  for (size_t k = 0; k < forms_.size(); ++k) {
    if ((k > 0 && !choose(k, slots, launch)) || !plan(k, slots, module, launch)) return no_launch(k, slots, launch);
    if (launch.empty) continue;
    if (const CuResult result = launch_one(slots, stream, launch); result != kCuSuccess)
      return call_failed(driver_, &state, result,
                         "launching '" + launch.program->name + "' on " + device_.text(), launch.program->name);
    state.last_kernel.store(launch.function->name, std::memory_order_relaxed);
  }
  return Unit{};
}

Expected<const CudaExecutable*> CudaExecutable::unguarded() const {
  if (const CudaExecutable* ready = unguarded_ready_.load(std::memory_order_acquire)) return ready;
  auto code = artifact().unguarded->get();
  if (!code) return code.error();
  std::lock_guard lock(mutex_);
  if (!unguarded_) unguarded_ = std::make_unique<CudaExecutable>(driver_, *code, device_.ordinal);
  unguarded_ready_.store(unguarded_.get(), std::memory_order_release);
  return unguarded_.get();
}

// Where no form of some kernel takes the arguments.
[[gnu::cold]] Checked CudaExecutable::run_elsewhere(std::span<const uint64_t> slots, const LaunchOptions& options) const {
  if (artifact().unguarded) {
    auto other = unguarded();
    if (!other) return other.error();
    return (*other)->run(slots, options);
  }
  const auto refuses = [&](const std::vector<KernelForm>& forms) {
    return std::none_of(forms.begin(), forms.end(), [&](const KernelForm& f) { return f.guards_hold(slots); });
  };
  const auto makes_maps = [](const std::vector<KernelForm>& forms) { return !forms.front().program().tensor_maps.empty(); };
  auto kernel = std::find_if(forms_.begin(), forms_.end(), refuses);
  if (kernel == forms_.end()) kernel = std::find_if(forms_.begin(), forms_.end(), makes_maps);
  return no_launch(static_cast<size_t>(kernel - forms_.begin()), slots, Launch());
}

[[gnu::hot]] Checked CudaExecutable::run(std::span<const uint64_t> slots, const LaunchOptions& options) const {
  Launch launch;
  if (has_maps_ ? !guards_hold(slots) : !choose_all(slots, launch)) return run_elsewhere(slots, options);
  const auto stream = static_cast<CuStream>(options.stream);
  const Route* way = known_route();
  if (!way) {
    auto found = route(stream);
    if (!found) return found.error();
    way = *found;
  }
  const ContextState& state = way->module->state();
  if (state.broken.load(std::memory_order_relaxed) != kCuSuccess)
    return context_broken(driver_, state, "launching '" + artifact().program->name + "'");
  if (!way->push) {
    if (has_maps_ && !choose_all(slots, launch)) return run_elsewhere(slots, options);
    return launch_all(*way->module, slots, stream, launch);
  }
  {
    ContextScope scope(driver_, state.context);
    if (scope.result() != kCuSuccess)
      return call_failed(driver_, &way->module->state(), scope.result(), "switching to " + device_.text());
    if (!has_maps_ || choose_all(slots, launch)) return launch_all(*way->module, slots, stream, launch);
  }
  return run_elsewhere(slots, options);
}

// From the device's limits alone: registers are not known before the code is loaded.
int CudaExecutable::estimated_blocks(const thread::ThreadProgram& program) const {
  const int64_t threads = std::max<int64_t>(32, (program.threads + 31) / 32 * 32);
  const int64_t shared = program.arena_bytes + device_.reserved_shared;
  int64_t blocks = std::min<int64_t>(device_.blocks_per_multiprocessor,
                                     device_.threads_per_multiprocessor / threads);
  if (shared > 0) blocks = std::min<int64_t>(blocks, device_.shared_per_multiprocessor / shared);
  return static_cast<int>(blocks);
}

Expected<std::vector<FormInfo>> CudaExecutable::info() const {
  const LoadedModule* module = first_.load(std::memory_order_acquire);
  if (module && !driver_.contexts().alive(module->state())) module = nullptr;  // the tables are left
  std::optional<ContextScope> scope;
  if (module) {
    scope.emplace(driver_, module->state().context);
    if (scope->result() != kCuSuccess)
      return call_failed(driver_, &module->state(), scope->result(), "switching to " + device_.text());
  }
  std::vector<FormInfo> rows;
  for (size_t k = 0; k < forms_.size(); ++k)
    for (size_t v = 0; v < forms_[k].size(); ++v) {
      FormInfo row;
      row.kernel = k;
      row.variant = v;
      row.program = &forms_[k][v].program();
      row.guards = forms_[k][v].guards_text();
      row.dynamic_shared_bytes = row.program->arena_bytes;
      row.blocks_per_multiprocessor = estimated_blocks(*row.program);
      if (module) {
        const LoadedFunction& f = module->functions()[artifact().forms[k].first + v];
        row.measured = true;
        row.registers = f.registers;
        row.local_bytes = f.local_bytes;
        row.static_shared_bytes = f.static_shared;
        row.max_threads = f.max_threads;
        const CuResult result = driver_.api().occupancy(
            &row.blocks_per_multiprocessor, f.function, static_cast<int>(row.program->threads),
            static_cast<size_t>(row.program->arena_bytes));
        if (result != kCuSuccess)
          return call_failed(driver_, &module->state(), result, "asking for the occupancy of '" + row.program->name + "'",
                             row.program->name);
      }
      rows.push_back(std::move(row));
    }
  if (const CudaExecutable* other = unguarded_ready_.load(std::memory_order_acquire)) {
    scope.reset();
    auto more = other->info();
    if (!more) return more.error();
    for (FormInfo& row : *more) {
      row.variant = forms_[row.kernel].size();
      rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const FormInfo& a, const FormInfo& b) { return a.kernel < b.kernel; });
  }
  return rows;
}

}  // namespace

Expected<std::unique_ptr<Executable>> load_on_cuda(const Driver& driver,
                                                   std::shared_ptr<const driver::Artifact> artifact,
                                                   int ordinal) {
  if (artifact->ptx.empty())
    return Error(DiagCode::target_unsupported, "", "the artifact has a schedule and no code",
                 "compile without the option 'plan_only'");
  for (const thread::ThreadProgram& kernel : artifact->kernels)
    if (!kernel.tensor_maps.empty() && !driver.api().tensor_map)
      return Error(DiagCode::driver_absent, kernel.name,
                   "code for " + artifact->target.name +
                       " needs the driver's function cuTensorMapEncodeTiled; this one supports CUDA " +
                       driver.version_text() + " and lacks it",
                   "update NVIDIA's driver, or compile for 'sm_90'");
  return std::unique_ptr<Executable>(new CudaExecutable(driver, std::move(artifact), ordinal));
}

Expected<std::unique_ptr<Executable>> load_on_cuda(std::shared_ptr<const driver::Artifact> artifact,
                                                   int ordinal) {
  auto driver = machine_driver();
  if (!driver) return driver.error();
  return load_on_cuda(**driver, std::move(artifact), ordinal);
}

}  // namespace tilegen::runtime::cuda
