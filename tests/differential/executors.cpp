#include "executors.h"

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "check/check_program.h"
#include "codegen/host_cpu.h"
#include "fault_guard.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "launch_memory.h"
#include "runtime/host/host_runtime.h"
#include "runtime/sim/sim_executable.h"

namespace tilegen::differential {

using ir::DType;
using Kind = Outcome::Kind;

namespace {

// What a GPU's planning and lowering may refuse of a legal program, with a way out.
bool is_gpu_limit(DiagCode code) {
  return code == DiagCode::target_unsupported || code == DiagCode::no_atom || code == DiagCode::limit_unroll;
}

}  // namespace

Bound Bound::of_sum(DType type, int64_t terms, double largest) {
  const double n = static_cast<double>(terms);
  return {2 * n * epsilon(type) * n * largest, 1};
}

std::string to_text(const Case& c) {
  std::string text = c.text + "; launched with";
  for (const auto& [name, value] : c.launch.dims) text += " " + name + "=" + std::to_string(value);
  for (const auto& [name, elements] : c.launch.whole) {
    text += " " + name + "=";
    for (int64_t v : elements) text += std::to_string(v) + ",";
  }
  return text + " seed=" + std::to_string(c.launch.seed) +
         " data=" + std::to_string(static_cast<int>(c.launch.data)) + "\n";
}

const char* kind_name(Kind k) {
  switch (k) {
    case Kind::agree:
      return "agree";
    case Kind::invalid:
      return "invalid";
    case Kind::refused:
      return "refused";
    case Kind::differ:
      return "differ";
    case Kind::rejected:
      return "rejected";
    case Kind::crashed:
      return "crashed";
  }
  return "?";
}

const std::vector<std::string>& executable_targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = {"host"};
    const codegen::HostCpu& cpu = codegen::host_cpu();
    if (const char* asked = std::getenv("TILEGEN_TARGETS")) {
      std::istringstream in(asked);
      for (std::string name; std::getline(in, name, ',');)
        if (name != "host") list.push_back(name);
    } else if (cpu.avx2 && cpu.fma && cpu.f16c) {
      list.push_back("x86-64-v3");
    }
    return list;
  }();
  return names;
}

const std::vector<std::string>& targets_with_simulator() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = executable_targets();
    if (!std::getenv("TILEGEN_TARGETS")) list.push_back("sim:sm_80");
    return list;
  }();
  return names;
}

bool long_run() {
  const char* value = std::getenv("TILEGEN_LONG");
  return value && std::string(value) == "1";
}

namespace {

// Each seed is another order of warps and another time at which async copies land.
Outcome simulate(const driver::Artifact& artifact, const std::vector<uint64_t>& slots, uint64_t seed) {
  sim::SimOptions options;
  options.order = static_cast<sim::WarpOrder>(seed % 3);
  options.async_latest = seed / 3 % 2 == 0;
  options.seed = seed;
  options.workers = 1;
  auto results = runtime::simulate_artifact(artifact, slots, options);
  if (!results) return {Kind::rejected, results.error().to_text()};
  if (Checked clean = runtime::findings_error(*results); !clean) return {Kind::rejected, clean.error().to_text()};
  return {};
}

}  // namespace

Subject::Subject(std::string text, std::vector<std::string> targets)
    : text_(std::move(text)), targets_(targets.empty() ? executable_targets() : std::move(targets)) {
  const Limits limits;
  auto parsed = ir::parse_program(text_, "case.tl", limits);
  if (!parsed) {
    invalid_ = parsed.error().to_text();
    return;
  }
  for (const Diagnostic& d : check::check_program(*parsed, limits)) invalid_ += d.to_text() + "\n";
  program_ = std::make_shared<const ir::Program>(std::move(*parsed));
}

void Subject::compile() {
  compiled_ = true;
  driver::CompileOptions options;
  options.verify = true;
  options.schedule = given_;
  for (const std::string& name : targets_) {
    Executable e;
    e.target = name;
    const auto crash = crash_of([&] {
      auto target = target::find_target(name);
      if (!target) {
        e.failed = {Kind::rejected, target.error().to_text()};
        return;
      }
      auto artifact = driver::compile(program_, *target, options);
      if (!artifact) {
        const DiagCode code = artifact.error().diagnostics[0].code;
        const bool refused = code == DiagCode::limit_memory || (!target->is_host() && is_gpu_limit(code));
        e.failed = {refused ? Kind::refused : Kind::rejected, name + ": " + artifact.error().to_text()};
        return;
      }
      e.artifact = *artifact;
      if (target->kind == target::Kind::nvidia && !target->simulated) e.cuda = std::make_shared<CudaRun>(e.artifact);
    });
    if (crash) e.failed = {Kind::crashed, name + ": compiling ends in " + *crash};
    executables_.push_back(std::move(e));
  }
}

Outcome Subject::compare(const Launch& launch) {
  if (!invalid_.empty()) return {Kind::invalid, invalid_};
  LaunchMemory memory;
  if (std::string error = memory.bind(*program_, launch); !error.empty()) return {Kind::invalid, error};
  const bool at_end = launch.seed % 2 == 0;
  const std::vector<GuardedMemory> expected = memory.fresh(at_end);
  Outcome outcome;
  const auto crash = crash_of([&] {
    if (Checked ran = interp::interpret(*program_, memory.slots(expected)); !ran)
      outcome = {Kind::invalid, ran.error().to_text()};
  });
  if (crash) return {Kind::crashed, "the interpreter ends in " + *crash};
  if (outcome.kind != Kind::agree) return outcome;
  if (!compiled_) compile();
  for (const Executable& e : executables_) {
    if (e.failed.kind != Kind::agree) return e.failed;
    std::vector<GuardedMemory> got = memory.fresh(at_end);
    const auto run = [&] {
      if (e.cuda) {
        // Every third launch on addresses that are aligned to elements only.
        const std::string error = e.cuda->launch(memory.slots(got), got, launch.seed % 3 == 0);
        if (!error.empty()) outcome = {Kind::rejected, e.target + ": " + error};
        return;
      }
      if (e.artifact->target.simulated) {
        outcome = simulate(*e.artifact, memory.slots(got), launch.seed);
        if (outcome.kind != Kind::agree) outcome.text = e.target + ": " + outcome.text;
        return;
      }
      if (Checked ran = runtime::run_host(*e.artifact, memory.slots(got), launch.max_threads); !ran)
        outcome = {Kind::rejected, e.target + ": " + ran.error().to_text()};
    };
    if (launch.max_threads != 1)
      run();
    else if (const auto fault = crash_of(run))
      return {Kind::crashed, e.target + ": the kernel ends in " + *fault};
    if (outcome.kind != Kind::agree) return outcome;
    if (std::string d = memory.compare(expected, got, launch.bound); !d.empty())
      return {Kind::differ, e.target + ": " + d};
  }
  return outcome;
}

Outcome compare_executors(const Case& c) { return Subject(c.text, c.targets).compare(c.launch); }

}  // namespace tilegen::differential
