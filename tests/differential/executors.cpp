#include "executors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "amx_emulator.h"
#include "check/check_program.h"
#include "codegen/host_cpu.h"
#include "fault_guard.h"
#include "hsaco_run.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "launch_memory.h"
#include "runtime/host/host_runtime.h"
#include "runtime/sim/sim_executable.h"
#include "sim/simulator.h"
#include "support/diag_codes.h"

namespace tilegen::differential {

using ir::DType;
using Kind = Outcome::Kind;

namespace {

// What a GPU's planning and lowering may refuse of a legal program, with a way out.
bool is_gpu_limit(DiagCode code) {
  return code == DiagCode::target_unsupported || code == DiagCode::no_atom || code == DiagCode::limit_unroll;
}

// Bytes of the kernel's tiles if each had memory of its own, as often as a loop asks for slots.
int64_t bytes_of_tiles(const ir::Program& p, int kernel) {
  int64_t bytes = 0, slots = 1;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].scope == ir::MemScope::global || p.buffers[b].kernel != kernel) continue;
    int64_t elements = 1;
    for (int64_t extent : p.tile_shape(ir::BufferId(b))) elements *= extent;
    bytes += elements * ir::dtype_bytes(p.buffers[b].type);
  }
  for (const ir::Stmt& s : p.stmts)
    if (const auto* loop = std::get_if<ir::Loop>(&s.node)) slots = std::max(slots, loop->num_stages);
  return bytes * slots;
}

// Some kernel asks for what devices of the target do not have: whole waves, or memory on chip.
bool is_beyond(const target::Target& t, const ir::Program& p, DiagCode why) {
  bool whole = true, fits = true;
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    whole = whole && p.kernels[k].threads % t.warp == 0;
    // Threads exchange elements beside the tiles.
    fits = fits && bytes_of_tiles(p, static_cast<int>(k)) < t.shared_bytes;
  }
  return (why == DiagCode::target_unsupported && !whole) || (why == DiagCode::limit_memory && !fits);
}

// Some annotation of it may ask for what cannot be had.
bool is_annotated(const ir::Program& p) {
  const auto has = [](const auto& entry) { return !entry.annotations.empty(); };
  return std::any_of(p.kernels.begin(), p.kernels.end(), has) ||
         std::any_of(p.buffers.begin(), p.buffers.end(), has) ||
         std::any_of(p.stmts.begin(), p.stmts.end(), has);
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

std::string way_of_failing(const Outcome& o) {
  std::string way = kind_name(o.kind);
  const size_t code = o.text.find("error [");
  if (o.kind != Kind::rejected || code == std::string::npos) return way;
  way += o.text.substr(code, o.text.find(']', code) - code);
  for (size_t k = 0; k < sim::finding_kind_count(); ++k) {
    const std::string name = std::string(": ") + sim::finding_name(static_cast<sim::FindingKind>(k)) + ": ";
    if (o.text.find(name) != std::string::npos) way += name;
  }
  // Blocks that write one element are the program's fault.
  return way + (o.text.find("nothing orders two blocks") != std::string::npos ? "blocks" : "");
}

const std::vector<std::string>& executable_targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = {"host"};
    const codegen::HostCpu& cpu = codegen::host_cpu();
    // Its matrix registers are carried out by software, its vectors are not.
    constexpr std::string_view kMatrixRegisters = "x86-64-v4-amx";
    const bool can_emulate = cpu.avx512_bf16 && cpu.avx512_vnni;
    if (const char* asked = std::getenv("TILEGEN_TARGETS")) {
      std::istringstream in(asked);
      for (std::string name; std::getline(in, name, ',');)
        if (name != "host" && (name != kMatrixRegisters || can_emulate)) list.push_back(name);
    } else if (cpu.avx2 && cpu.fma && cpu.f16c) {
      list.push_back("x86-64-v3");
    }
    return list;
  }();
  return names;
}

namespace {

bool has_whole_warps(std::string_view text, const std::string& target) {
  const auto t = target::find_target(target);
  constexpr std::string_view kThreads = " threads ";
  for (size_t at = text.find(kThreads); t && at != std::string_view::npos; at = text.find(kThreads, at)) {
    at += kThreads.size();
    const int64_t threads = std::atoll(std::string(text.substr(at, 8)).c_str());
    if (threads % t->warp != 0) return false;
  }
  return true;
}

// Those of kSimulators that serve the text, each as often as it weighs.
std::vector<std::string> turns_of(std::string_view text) {
  std::vector<std::string> turns;
  for (const SimulatorTurn& s : kSimulators)
    if (has_whole_warps(text, s.name)) turns.insert(turns.end(), s.weight, s.name);
  return turns;
}

}  // namespace

std::string simulator_in_turn(uint64_t number, std::string_view text) {
  const std::vector<std::string> turns = turns_of(text);
  return turns.empty() ? kSimulators[0].name : turns[number % turns.size()];
}

const std::vector<std::string>& targets_with_simulators() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = executable_targets();
    if (!std::getenv("TILEGEN_TARGETS"))
      for (const SimulatorTurn& s : kSimulators) list.emplace_back(s.name);
    return list;
  }();
  return names;
}

std::vector<std::string> covering(std::vector<std::string> targets, std::string_view text) {
  if (long_run()) return targets;
  if (const char* asked = std::getenv("TILEGEN_TARGETS")) {
    // The host's code is compared where no device's is asked for.
    const bool host = ("," + std::string(asked) + ",").find(",host,") != std::string::npos;
    if (!host && targets.size() > 1) std::erase(targets, "host");
    return targets;
  }
  const auto is_compiled = [](const std::string& name) { return name.rfind("sim:", 0) != 0; };
  const auto compiled = static_cast<uint64_t>(std::count_if(targets.begin(), targets.end(), is_compiled));
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same on every machine
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  const auto takes_turns = [](const std::string& name) {
    return std::any_of(std::begin(kSimulators), std::end(kSimulators),
                       [&](const SimulatorTurn& s) { return s.name == name; });
  };
  std::vector<std::string> turns = turns_of(text);
  std::erase_if(turns, [&](const std::string& name) {
    return std::find(targets.begin(), targets.end(), name) == targets.end();
  });
  const std::string turn = turns.empty() ? "" : turns[(hash >> 16) % turns.size()];
  uint64_t number = 0;
  std::erase_if(targets, [&](const std::string& name) {
    if (is_compiled(name)) return compiled > 1 && number++ != (hash >> 32) % compiled;
    return !turn.empty() && takes_turns(name) && name != turn;
  });
  return targets;
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
  if (Checked clean = runtime::findings_error(*results); !clean)
    return {Kind::rejected, clean.error().to_text()};
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

void Subject::compile_for(const std::string& name) {
  driver::CompileOptions options;
  options.verify = true;
  options.schedule = given_;
  options.form = form_;
  // Another plan may serve, but the planner has a defect.
  std::optional<Error> defect;
  options.rejected = [&](const Error& why) {
    if (why.diagnostics[0].code == DiagCode::internal_error && !defect) defect = why;
  };
  Executable e;
  e.target = name;
  const auto crash = crash_of([&] {
    auto target = target::find_target(name);
    if (!target) {
      e.failed = {Kind::rejected, target.error().to_text()};
      return;
    }
    auto artifact = driver::compile(program_, *target, options);
    if (defect) {
      e.failed = {Kind::rejected, name + ": " + defect->to_text()};
      return;
    }
    if (!artifact) {
      const DiagCode code = artifact.error().diagnostics[0].code;
      const bool refused = code == DiagCode::limit_memory ||
                           (target->has_block_threads() && is_gpu_limit(code)) ||
                           ((code == DiagCode::schedule_illegal || code == DiagCode::schedule_mismatch ||
                             code == DiagCode::conversion_refused) &&
                            is_annotated(*program_));
      e.failed = {refused ? Kind::refused : Kind::rejected, name + ": " + artifact.error().to_text()};
      e.failed.may_refuse = refused && (target->simulated || (target->code == target::CodeFormat::hsaco &&
                                                              is_beyond(*target, *program_, code)));
      return;
    }
    e.artifact = *artifact;
    if (target->code == target::CodeFormat::ptx && !target->simulated)
      e.cuda = std::make_shared<CudaRun>(e.artifact);
    if (target->code == target::CodeFormat::hsaco && !target->simulated)
      e.hsaco = std::make_shared<HsacoRun>(e.artifact);
  });
  if (crash) e.failed = {Kind::crashed, name + ": compiling ends in " + *crash};
  executables_.push_back(std::move(e));
}

Outcome Subject::compile() {
  if (!invalid_.empty()) return {Kind::invalid, invalid_};
  if (executables_.empty())
    for (const std::string& name : targets_) compile_for(name);
  Outcome outcome;
  for (const Executable& e : executables_)
    if (e.failed.kind > outcome.kind ||
        (e.failed.kind == outcome.kind && !outcome.is_fine() < !e.failed.is_fine()))
      outcome = e.failed;
  return outcome;
}

Outcome Subject::run(Executable& e, const LaunchMemory& memory, std::vector<GuardedMemory>& got,
                     const Launch& launch) {
  if (e.cuda) {
    // Every third launch on addresses that are aligned to elements only.
    const std::string error = e.cuda->launch(memory.slots(got), got, launch.seed % 3 == 0);
    return error.empty() ? Outcome() : Outcome{Kind::rejected, e.target + ": " + error};
  }
  if (e.hsaco) {
    const std::string error = e.hsaco->launch(memory.slots(got), got, launch.seed % 3 == 0, launch.seed);
    return error.empty() ? Outcome() : Outcome{Kind::rejected, e.target + ": " + error};
  }
  if (e.artifact->target.simulated) {
    Outcome outcome = simulate(*e.artifact, memory.slots(got), launch.seed);
    if (outcome.kind != Kind::agree) outcome.text = e.target + ": " + outcome.text;
    return outcome;
  }
  const std::vector<std::string>& features = e.artifact->target.features;
  if (std::find(features.begin(), features.end(), "+amx-tile") != features.end()) amxemu::emulate_amx();
  if (Checked ran = runtime::run_host(*e.artifact, memory.slots(got), launch.max_threads); !ran)
    return {Kind::rejected, e.target + ": " + ran.error().to_text()};
  return {};
}

Outcome Subject::compare(const Launch& launch) {
  return compare(launch, [&](const LaunchMemory& memory, const std::vector<GuardedMemory>& expected,
                             const std::vector<GuardedMemory>& got) {
    return memory.compare(expected, got, launch.bound, launch.bounds);
  });
}

// A target's refusal does not end the comparison: the others are run.
Outcome Subject::compare(const Launch& launch, const Differ& differ) {
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
  if (outcome = compile(); outcome.is_defect()) return outcome;
  for (Executable& e : executables_) {
    if (e.failed.kind != Kind::agree) continue;
    std::vector<GuardedMemory> got = memory.fresh(at_end);
    Outcome ran;
    if (launch.max_threads != 1)
      ran = run(e, memory, got, launch);
    else if (const auto fault = crash_of([&] { ran = run(e, memory, got, launch); }))
      return {Kind::crashed, e.target + ": the kernel ends in " + *fault};
    if (ran.is_defect()) return ran;
    std::string d = differ(memory, expected, got);
    if (d.empty()) d = memory.compare_told(expected, e.cuda ? e.cuda->lines() : memory.told(got));
    if (!d.empty()) return {Kind::differ, e.target + ": " + d};
  }
  return outcome;
}

Outcome compare_executors(const Case& c) { return Subject(c.text, c.targets).compare(c.launch); }

}  // namespace tilegen::differential
