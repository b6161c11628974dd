// A form of attention lowered for sm_90a, and launches of its thread program, as it is or spoilt, on the
// simulator.
#pragma once

#include <set>

#include "../unit/sim/gpu_program.h"
#include "attention_program.h"
#include "launch_memory.h"
#include "runtime/kernel_version.h"
#include "runtime/sim/element_places.h"

namespace tilegen::differential {

class AttentionKernel {
 public:
  explicit AttentionKernel(const Attention& a, std::optional<plan::Schedule> given = std::nullopt) {
    auto parsed = ir::parse_program(attention_text(a), "attention.tl", Limits{});
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().to_text());
    program_ = std::make_shared<const ir::Program>(std::move(*parsed));
    driver::CompileOptions options;
    options.schedule = std::move(given);
    options.verify = true;
    auto artifact = driver::compile(program_, *target::find_target("sim:sm_90a"), options);
    EXPECT_TRUE(artifact) << (artifact ? "" : artifact.error().to_text());
    artifact_ = *artifact;
  }
  // The form that tensor copies make.
  const thread::ThreadProgram& best() const { return artifact_->kernels[0]; }

  struct Run {
    std::set<std::string> findings;
    std::vector<std::vector<std::byte>> bytes;  // of each tensor
    sim::Counters counters;
  };
  // `judge_elements`: whether each is taken for the one that the plan says.
  Run run(const thread::ThreadProgram& p, const Launch& launch, sim::SimOptions options,
          bool judge_elements = false) const {
    LaunchMemory memory;
    EXPECT_EQ(memory.bind(*program_, launch), "");
    const std::vector<GuardedMemory> tensors = memory.fresh(false);
    const auto slots = memory.slots(tensors);
    EXPECT_TRUE(runtime::KernelVersion(p).fits(slots));
    std::vector<sim::TensorExtent> extents;
    for (int t : memory.tensor_of())
      extents.push_back(
          {0, t < 0 ? 0 : static_cast<int64_t>(memory.tensors()[static_cast<size_t>(t)].initial.size())});
    if (options.max_statements == 0) options.max_statements = 400'000;
    sim::ElementPlaces places;
    if (judge_elements) {
      places = runtime::element_places(*artifact_, 0, p, slots);
      options.places = &places;
    }
    const auto result = sim::simulate(p, artifact_->target, slots, extents, options);
    Run r;
    if (!result) r.findings.insert("refused: " + result.error().to_text());
    if (result) {
      for (const sim::Finding& f : result->findings) r.findings.insert(sim::finding_name(f.kind));
      r.counters = result->counters;
    }
    for (const GuardedMemory& t : tensors) r.bytes.emplace_back(t.bytes().begin(), t.bytes().end());
    return r;
  }

 private:
  std::shared_ptr<const ir::Program> program_;
  std::shared_ptr<const driver::Artifact> artifact_;
};

inline Launch attention_launch(int64_t queries, int64_t keys, int64_t heads = 1) {
  Launch l;
  l.dims = {{"batch", 1}, {"heads", heads}, {"queries", queries}, {"keys", keys}};
  l.data = Data::reals;
  l.magnitude = 2;
  return l;
}

}  // namespace tilegen::differential
