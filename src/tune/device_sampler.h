// Programs compiled and loaded on the device of this process that runs their target's code, to be timed.
//
// ensures: a sample is the time of one launch, of as many behind each other as take kSampleMs, each on other
// memory than the one before (random_inputs.h).
// refuses: device_absent; target_unsupported for simulated targets, whose time says nothing; a program's own
// refusals when it is sampled: what compiling, loading and launching say, and launch_limit where a launch of
// the host does not end. A kernel of a GPU that does not end, or breaks its context, is not survived here.
#pragma once

#include <memory>
#include <vector>

#include "driver/compile.h"
#include "runtime/executable.h"
#include "tune/random_inputs.h"

namespace tilegen::tune {

class DeviceSampler {
 public:
  static constexpr double kSampleMs = 4;
  static constexpr int64_t kLaunchLimitMs = 10000;

  // Compiles all, on several threads. `options` but for `cancellation` are a compilation's; what that points
  // to, and the programs, must outlive this.
  static Expected<std::unique_ptr<DeviceSampler>> make(RandomInputs::Programs programs,
                                                       const target::Target& target,
                                                       const driver::CompileOptions& options);

  // Microseconds of one launch of program `number`.
  Expected<double> sample(size_t number);

 private:
  struct Entry {
    std::shared_ptr<const driver::Artifact> artifact;
    std::unique_ptr<runtime::Executable> executable;
    std::optional<Error> refused;
    int64_t batch = 0;  // launches in a sample; 0: not launched yet
    bool long_running = false;
  };

  Checked prepare(Entry& entry, size_t number);
  Checked launch(const Entry& entry, size_t number, bool watched);
  Checked finish();  // waits for the device
  Expected<double> launch_and_time(const Entry& entry, size_t number, int64_t batch, bool watched);

  size_t device_ = 0;
  size_t next_set_ = 0;
  const Cancellation* cancellation_ = nullptr;
  std::unique_ptr<RandomInputs> inputs_;
  std::vector<Entry> entries_;
};

}  // namespace tilegen::tune
