// What an op's lowering is written against; implemented by lower/.
#pragma once

#include "ir/program.h"

namespace tilegen::ops {

class LowerSink {
 public:
  virtual ~LowerSink() = default;
};

}  // namespace tilegen::ops
