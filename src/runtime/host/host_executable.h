// A host artifact, ready to launch on the thread pool.
#pragma once

#include "runtime/executable.h"

namespace tilegen::runtime {

// Refuses: device_absent for code this machine's processor cannot run, target_unsupported for an artifact
// that stopped after planning.
Expected<std::unique_ptr<Executable>> load_on_host(std::shared_ptr<const driver::Artifact> artifact);

}  // namespace tilegen::runtime
