// What an op's layout rule is written against; implemented by infer/.
#pragma once

#include <string>

#include "ir/program.h"
#include "layout/fragment.h"
#include "target/target.h"

namespace tilegen::ops {

class LayoutRuleSink {
 public:
  virtual ~LayoutRuleSink() = default;
};

}  // namespace tilegen::ops
