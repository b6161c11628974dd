// An artifact with code for several ranges of sizes: a launch is checked once and run by the one that its
// sizes choose.
#pragma once

#include "runtime/executable.h"

namespace tilegen::runtime {

// requires: an artifact with specialisations, and these loaded, in order, on one device.
std::unique_ptr<Executable> join_loaded(std::shared_ptr<const driver::Artifact> artifact,
                                        std::vector<std::unique_ptr<Executable>> loaded);

}  // namespace tilegen::runtime
