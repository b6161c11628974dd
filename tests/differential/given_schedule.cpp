#include "given_schedule.h"

#include <algorithm>

#include "analysis/kernel_ops.h"
#include "analysis/run_ahead.h"
#include "attention_program.h"
#include "check/check_program.h"
#include "files.h"
#include "interp/interpreter.h"
#include "runtime/host/host_runtime.h"
#include "runtime/sim/sim_executable.h"
#include "support/diag_codes.h"

namespace tilegen::differential {

Scheduled::Scheduled(std::string name, const std::string& text) : name_(std::move(name)) {
  auto parsed = ir::parse_program(text, name_, Limits{});
  if (!parsed || !check::check_program(*parsed, Limits{}).empty()) return;
  auto program = std::make_shared<const ir::Program>(std::move(*parsed));
  launch_ = launch_near(*program, {77, 45, 40, 33});
  launch_.magnitude = 4;
  launch_.bound = {2e-3, 8};  // sums are exact; functions of them are not
  if (memory_.bind(*program, launch_).empty()) program_ = std::move(program);
}

const plan::Schedule* Scheduled::schedule(const std::string& target) {
  const auto [it, first] = planned_.try_emplace(target);
  if (first)
    if (auto artifact = compile(target, std::nullopt, true)) it->second.schedule = (*artifact)->schedule;
  return it->second.schedule ? &*it->second.schedule : nullptr;
}

const JsonTree* Scheduled::planned(const std::string& target) {
  const plan::Schedule* s = schedule(target);
  if (!s) return nullptr;
  std::optional<JsonTree>& json = planned_[target].json;
  if (!json) json = JsonTreeReader(plan::schedule_to_json(*s)).read();
  return &*json;
}

Expected<std::shared_ptr<const driver::Artifact>> Scheduled::compile(const std::string& target,
                                                                     std::optional<plan::Schedule> given,
                                                                     bool plan_only) const {
  driver::CompileOptions options;
  options.schedule = std::move(given);
  options.plan_only = plan_only;
  options.verify = true;
  return driver::compile(program_, *target::find_target(target), options);
}

bool Scheduled::writes(const std::string& op, const std::vector<std::string>& values) const {
  for (size_t kernel = 0; kernel < program_->kernels.size(); ++kernel) {
    const analysis::KernelOps ops = analysis::collect_kernel_ops(*program_, static_cast<int>(kernel));
    for (const analysis::KernelOp& o : ops.ops)
      for (const analysis::OpAccess& a : o.accesses)
        if (o.path == op && a.write && a.value.valid() &&
            std::count(values.begin(), values.end(), ops.values[a.value].name) > 0)
          return true;
  }
  return false;
}

bool Scheduled::loads_tile(const std::string& op) const {
  for (size_t kernel = 0; kernel < program_->kernels.size(); ++kernel)
    for (const analysis::KernelOp& o : analysis::collect_kernel_ops(*program_, static_cast<int>(kernel)).ops)
      if (o.path == op && analysis::is_tile_load(*program_, o)) return true;
  return false;
}

std::string Scheduled::run(const driver::Artifact& artifact, uint64_t seed) {
  if (expected_.empty()) {
    expected_ = memory_.fresh(true);
    if (Checked ran = interp::interpret(*program_, memory_.slots(expected_)); !ran)
      return "the interpreter: " + ran.error().to_text();
  }
  std::vector<GuardedMemory> got = memory_.fresh(true);
  if (artifact.target.simulated) {
    sim::SimOptions options;
    options.order = static_cast<sim::WarpOrder>(seed % 3);
    options.async_latest = seed / 3 % 2 == 0;
    options.seed = seed;
    options.workers = 1;
    auto results = runtime::simulate_artifact(artifact, memory_.slots(got), options);
    if (!results) return results.error().to_text();
    if (Checked clean = runtime::findings_error(*results); !clean) return clean.error().to_text();
  } else if (Checked ran = runtime::run_host(artifact, memory_.slots(got), 1); !ran) {
    return ran.error().to_text();
  }
  return memory_.compare(expected_, got, launch_.bound);
}

std::vector<Scheduled>& scheduled_programs() {
  static std::vector<Scheduled> list;
  if (!list.empty()) return list;
  const auto add = [&](std::string name, const std::string& text) {
    if (Scheduled s(std::move(name), text); s) list.push_back(std::move(s));
  };
  for (const auto& file : program_files()) add(file.filename().string(), text_of(file));
  for (int64_t rows : {64, 128}) {
    Attention a;
    a.rows = rows;
    a.threads = static_cast<int>(2 * rows);
    a.right = 0;
    a.row_sums = rows == 64;
    add("attention of " + std::to_string(rows), attention_text(a));
  }
  return list;
}

bool is_refusal(const Error& e) {
  constexpr DiagCode kCodes[] = {DiagCode::json_error,         DiagCode::schedule_illegal,
                                 DiagCode::schedule_mismatch,  DiagCode::limit_memory,
                                 DiagCode::limit_unroll,       DiagCode::target_unsupported,
                                 DiagCode::conversion_refused, DiagCode::no_atom};
  const Diagnostic& d = e.diagnostics[0];
  return std::find(std::begin(kCodes), std::end(kCodes), d.code) != std::end(kCodes) && !d.hint.empty() &&
         !d.message.empty();
}

}  // namespace tilegen::differential
