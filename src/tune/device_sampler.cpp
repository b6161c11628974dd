#include "tune/device_sampler.h"

#include <algorithm>
#include <chrono>

#include "runtime/device_memory.h"
#include "runtime/devices.h"
#include "support/diag_codes.h"
#include "tune/workers.h"

namespace tilegen::tune {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

Expected<std::unique_ptr<DeviceSampler>> DeviceSampler::make(RandomInputs::Programs programs,
                                                             const target::Target& target,
                                                             const driver::CompileOptions& options) {
  if (target.simulated)
    return Error(DiagCode::target_unsupported, target.name,
                 "the simulator has no clock, so nothing can be measured for target '" + target.name + "'",
                 "take the option 'tune' = 'model', or a target that a device of this machine runs");
  const auto device = runtime::find_device(target, runtime::kAnyDevice);
  if (!device) return device.error();
  auto made = std::make_unique<DeviceSampler>();
  made->device_ = static_cast<size_t>(*device - runtime::devices().data());
  made->cancellation_ = options.cancellation;
  auto inputs = RandomInputs::make(programs, target, options.sizes, made->device_);
  if (!inputs) return inputs.error();
  made->inputs_ = std::move(*inputs);

  driver::CompileOptions compiling = options;
  compiling.plan_only = false;
  compiling.dump = nullptr;  // of one compilation each
  compiling.log = nullptr;
  made->entries_.resize(programs.size());
  on_workers(programs.size(), 0, [&](size_t i) {
    if (stop_requested(options.cancellation)) return;
    auto artifact = driver::compile(programs[i], target, compiling);
    artifact ? void(made->entries_[i].artifact = std::move(*artifact))
             : void(made->entries_[i].refused = artifact.error());
  });
  if (options.cancellation && options.cancellation->requested())
    return options.cancellation->error("", "while configurations were compiled to be measured");
  return made;
}

// Launches of the host end when the limit is over. `watched` costs a launch a look at the clock now and then.
Checked DeviceSampler::launch(const Entry& entry, size_t number, bool watched) {
  const auto arguments = inputs_->arguments(number, next_set_);
  next_set_ = (next_set_ + 1) % inputs_->sets();
  if (!watched) return entry.executable->launch(arguments, {});
  const Cancellation limit([this] { return cancellation_ && cancellation_->requested(); },
                           Cancellation::deadline_in(kLaunchLimitMs));
  runtime::LaunchOptions options;
  options.cancellation = &limit;
  Checked done = entry.executable->launch(arguments, options);
  if (done || done.error().status() != StatusCode::cancelled) return done;
  if (cancellation_ && cancellation_->requested())
    return cancellation_->error("", "while configurations were measured");
  return Error(DiagCode::launch_limit, entry.artifact->program->name,
               "a launch did not end within " + std::to_string(kLaunchLimitMs / 1000) + " seconds",
               "measure smaller sizes, or leave this configuration out");
}

Checked DeviceSampler::finish() { return runtime::wait_for_stream(device_, nullptr); }

Expected<double> DeviceSampler::launch_and_time(const Entry& entry, size_t number, int64_t batch,
                                                bool watched) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < batch; ++i)
    if (Checked ok = launch(entry, number, watched); !ok) return ok.error();
  if (Checked ok = finish(); !ok) return ok.error();
  return ms_since(start) / static_cast<double>(batch);
}

// Loads, warms up, and finds how many launches make a sample.
Checked DeviceSampler::prepare(Entry& entry, size_t number) {
  auto loaded = runtime::load(entry.artifact, device_);
  if (!loaded) return loaded.error();
  entry.executable = std::move(*loaded);
  if (Checked ok = entry.executable->prepare(); !ok) return ok;
  double ms = 0;
  for (int i = 0; i < 2; ++i) {  // the first launch may compile a fallback version
    auto took = launch_and_time(entry, number, 1, true);
    if (!took) return took.error();
    ms = *took;
  }
  entry.long_running = ms > 100;
  entry.batch = std::clamp<int64_t>(static_cast<int64_t>(kSampleMs / std::max(ms, 1e-4)) + 1, 1, 10000);
  return Unit{};
}

Expected<double> DeviceSampler::sample(size_t number) {
  Entry& entry = entries_[number];
  if (entry.refused) return *entry.refused;
  if (entry.batch == 0)
    if (Checked ok = prepare(entry, number); !ok) return ok.error();
  auto ms = launch_and_time(entry, number, entry.batch, entry.long_running);
  if (!ms) return ms.error();
  return std::max(1000 * *ms, 1e-3);
}

}  // namespace tilegen::tune
