// Programs under given schedules: compiled for a target, run, and compared with the interpreter.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "json_tree.h"
#include "launch_memory.h"

namespace tilegen::differential {

// A program, a launch of it and what is in memory after that; its schedule for each target.
class Scheduled {
 public:
  Scheduled(std::string name, const std::string& text);
  explicit operator bool() const { return program_ != nullptr; }
  const std::string& name() const { return name_; }

  // Nothing where the target does not serve the program.
  const plan::Schedule* schedule(const std::string& target);
  const JsonTree* planned(const std::string& target);
  Expected<std::shared_ptr<const driver::Artifact>> compile(const std::string& target,
                                                            std::optional<plan::Schedule> given,
                                                            bool plan_only) const;
  // The operation of that path writes one of the values.
  bool writes(const std::string& op, const std::vector<std::string>& values) const;
  // It fills a shared tile from a tensor.
  bool loads_tile(const std::string& op) const;
  // Empty, or what is wrong with the results.
  std::string run(const driver::Artifact& artifact, uint64_t seed);

 private:
  std::string name_;
  Launch launch_;
  LaunchMemory memory_;
  std::vector<GuardedMemory> expected_;
  std::shared_ptr<const ir::Program> program_;
  struct Planned {
    std::optional<plan::Schedule> schedule;
    std::optional<JsonTree> json;
  };
  std::map<std::string, Planned> planned_;
};

// All programs of tests/files, and attention; what one test had planned or interpreted serves the next.
std::vector<Scheduled>& scheduled_programs();

// What a schedule may be refused as; the refusal has a way out.
bool is_refusal(const Error& e);

}  // namespace tilegen::differential
