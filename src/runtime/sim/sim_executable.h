// An artifact of a simulated target ("sim:sm_80"): launches run its thread programs on host memory and fail
// with what the simulator finds.
#pragma once

#include "runtime/executable.h"
#include "sim/simulator.h"

namespace tilegen::runtime {

// Runs the kernels of an artifact in order, each in the first version whose guards hold, on slots as
// bind_arguments makes them. One result per kernel of the program; a kernel with findings is the last that
// runs. Needs no code.
Expected<std::vector<sim::SimResult>> simulate_artifact(const driver::Artifact& artifact,
                                                        std::span<const uint64_t> slots,
                                                        const sim::SimOptions& options);

// What the findings say, as the error of the launch; none: success.
Checked findings_error(const std::vector<sim::SimResult>& results);

// Refuses: target_unsupported for an artifact that stopped after planning.
Expected<std::unique_ptr<Executable>> load_in_simulator(std::shared_ptr<const driver::Artifact> artifact);

}  // namespace tilegen::runtime
