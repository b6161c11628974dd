// What the plan says about the elements of a kernel's tiles, for the simulator.
#pragma once

#include "driver/compile.h"
#include "sim/element_places.h"

namespace tilegen::runtime {

// requires: a version of the artifact's kernel `kernel` (or a program with the same memories and statements),
// and slots as a launch passes them: distances within tensors depend on dims.
sim::ElementPlaces element_places(const driver::Artifact& artifact, size_t kernel,
                                  const thread::ThreadProgram& version, std::span<const uint64_t> slots);

}  // namespace tilegen::runtime
