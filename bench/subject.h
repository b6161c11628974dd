// A tile program compiled for a target, ready to be timed.
#pragma once

#include <functional>
#include <vector>

#include "library.h"

namespace bench {

class Subject {
 public:
  using Build = std::function<void(tl_builder*)>;
  Subject(const tool::Context& context, const char* name, const Build& build, const char* target = "host",
          size_t device = 0);

  void set_arguments(std::vector<tl_arg> arguments) { arguments_ = std::move(arguments); }
  void launch(const tl_launch* how = nullptr) const;
  const tool::Artifact& artifact() const { return artifact_; }
  const tool::Kernel& kernel() const { return kernel_; }

 private:
  tool::Artifact artifact_;
  tool::Kernel kernel_;
  std::vector<tl_arg> arguments_;
};

tl_arg pointer(tl_dtype dtype, const void* data);
tl_arg integer(int64_t value);
tl_arg real(double value);

}  // namespace bench
