// Code of one program made several times, each for a part of the sizes that launches may have.
//
// ensures: every one is right for all sizes; which of them a launch takes is a matter of speed alone.
#pragma once

#include <span>

#include "driver/compile.h"

namespace tilegen::driver {

// The sizes of a dim or of an integer scalar, in steps.
struct SizeAxis {
  std::string name;
  size_t param = 0;           // of the program, in launch order
  std::vector<int64_t> upto;  // the largest size of each step, ascending; what is larger belongs to the last
};

struct Specialisations {
  std::vector<SizeAxis> axes;
  std::vector<uint8_t> choice;  // by the step on each axis, the last axis fastest: index in `artifacts`
  std::vector<std::shared_ptr<const Artifact>> artifacts;

  // For a launch with these slots, one per parameter.
  size_t choose(std::span<const uint64_t> slots) const;
  // "m up to 16", "m 17 .. 64 or above 1024": the sizes of which artifact `index` is chosen.
  std::string sizes_text(size_t index) const;
};

// Steps of an axis that are chosen alike become one.
void merge_steps(std::vector<SizeAxis>& axes, std::vector<uint8_t>& choice);

// An artifact of all: what it shows is that of the largest sizes, and its times are those of all together.
// Refuses: artifacts whose launches take different arguments, since a launch checks them before it chooses.
Expected<std::shared_ptr<const Artifact>> join(Specialisations specialisations);

}  // namespace tilegen::driver
