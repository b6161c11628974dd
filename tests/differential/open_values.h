// Which results the contract of docs/numerics.md leaves open, found by running a program with other
// roundings.
#pragma once

#include <string>
#include <vector>

#include "executors.h"
#include "launch_memory.h"
#include "sanitized_run.h"

namespace tilegen::differential {

// Compares results with what sanitized runs of one launch come to: exactly where they all agree with the
// interpreter, else within a few times what they are apart. A result whose class (finite, infinite, NaN) or
// whose being defined hangs on rounding is not compared.
class OpenValues {
 public:
  OpenValues(const ir::Program& p, const Launch& launch, int64_t max_steps = SanitizedOptions().max_steps)
      : p_(p), launch_(launch), max_steps_(max_steps) {}

  // First difference, or empty.
  std::string differ(const LaunchMemory& memory, const std::vector<GuardedMemory>& expected,
                     const std::vector<GuardedMemory>& got);

  // Sanitized runs tell something: results are defined, and found within their steps.
  bool judged() const { return !all_open_; }

 private:
  struct Range {
    double low = 0, high = 0;
    bool open = false;
  };
  void run(const LaunchMemory& memory, const std::vector<GuardedMemory>& expected, int runs);
  void widen(const Tensor& t, std::vector<Range>& ranges, std::span<const std::byte> bytes);
  std::string differ_in(const Tensor& t, const std::vector<Range>& ranges,
                        std::span<const std::byte> expected, std::span<const std::byte> got) const;

  const ir::Program& p_;
  const Launch& launch_;
  const int64_t max_steps_;
  std::vector<std::vector<Range>> ranges_;  // by tensor and element
  int runs_ = 0;
  bool all_open_ = false;
};

}  // namespace tilegen::differential
