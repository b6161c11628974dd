#include "driver/compile.h"

#include <algorithm>
#include <set>
#include <span>

#include "codegen/backend.h"
#include "codegen/native_text.h"
#include "driver/artifact_cost.h"
#include "driver/fallback_version.h"
#include "driver/own_workspaces.h"
#include "driver/settle_plan.h"
#include "driver/stages.h"
#include "ir/annotations.h"
#include "ir/copy_groups.h"
#include "ir/library_functions.h"
#include "ir/text.h"
#include "ops/op.h"
#include "schedule/annotations.h"
#include "schedule/form/canonical_form.h"
#include "schedule/form/decode_sparse.h"
#include "support/diag_codes.h"
#include "target/given_atoms.h"

namespace tilegen::driver {

namespace {

// A name for version `number` of `kernel` that no kernel of the program has.
std::string version_name(const ir::Program& program, const std::string& kernel, size_t number) {
  std::string name = kernel + "__v" + std::to_string(number);
  const auto taken = [&](const ir::Kernel& k) { return k.name == name; };
  while (std::any_of(program.kernels.begin(), program.kernels.end(), taken)) name += '_';
  return name;
}

// Whether a launch may refuse the version: the code relies on more than the program promises.
bool relies_on_arguments(const thread::ThreadProgram& version) {
  return !version.guards.empty() || !version.tensor_maps.empty();
}

// The level below `level` that gives another plan than this one. The decisions tell, not the code made of
// them: what is known under a guard may leave none of a tensor copy.
AssumptionLevel level_below(AssumptionLevel level, const ir::Program& program,
                            const plan::Schedule& schedule) {
  std::set<std::string> copies;
  for (const plan::KernelSchedule& kernel : schedule.kernels)
    for (const plan::OpPlan& op : kernel.ops)
      if (op.engine == plan::Engine::tensor_copy) copies.insert(op.op);
  if (copies.empty()) return AssumptionLevel::none;
  bool stores = false;
  const std::vector<std::string> paths = ir::statement_paths(program);
  for (size_t s = 0; s < paths.size(); ++s)
    if (const auto* copy = program.as<ir::TileOp>(ir::StmtId(s));
        copy && ops::is_transfer(*copy) && copies.count(paths[s]))
      stores |= program.buffer(copy->operands[1].buffer).scope == ir::MemScope::global;
  if (stores && level < AssumptionLevel::tensor_loads) return AssumptionLevel::tensor_loads;
  if (level < AssumptionLevel::tensor_loads_alone) return AssumptionLevel::tensor_loads_alone;
  return level < AssumptionLevel::aligned ? AssumptionLevel::aligned : AssumptionLevel::none;
}

struct Lowered {
  plan::Schedule schedule;  // of the first versions
  std::optional<double> estimate;
  std::vector<thread::ThreadProgram> kernels;
  std::vector<SplitProgram> splits;  // of `kernels`: SettledPlan::splits
  std::vector<plan::KernelSchedule> decisions;
  std::vector<VersionRange> versions;
  bool guarded = false;  // the last version of some kernel relies on more than the program promises
  AssumptionLevel below = AssumptionLevel::none;  // where it does: the level that relies on less
};

// Some of the program's own copies (copy_async) are of no whole words, and the plan has threads move them.
bool moves_copies_by_threads(const ir::Program& program, const plan::Schedule& schedule) {
  const std::vector<std::string> paths = ir::statement_paths(program);
  for (size_t s = 0; s < paths.size(); ++s)
    if (ir::is_asynchronous(program.stmts[s]))
      for (const plan::KernelSchedule& kernel : schedule.kernels)
        for (const plan::OpPlan& op : kernel.ops)
          if (op.op.rfind(paths[s] + "/", 0) == 0 || op.op == paths[s])
            if (op.engine != plan::Engine::async_copy) return true;
  return false;
}

// The version that relies on nothing may not know that the program's own copies are of whole words. It is
// then the one of a machine that has no such copies: with groups and arrivals that wait for copies what
// threads store would be ordered by nothing.
Expected<SettledPlan> settle_version(const ir::Program& program, const target::Target& target,
                                     const CompileOptions& options, AssumptionLevel level,
                                     const plan::Schedule* planned, Stages& stages) {
  auto settled = settle_plan(program, target, options, level, planned, stages);
  const auto copies = [&](const ir::Kernel& k) { return !ir::first_copy_word(program, k).empty(); };
  if (level != AssumptionLevel::none || !target.async_copy() ||
      std::none_of(program.kernels.begin(), program.kernels.end(), copies) ||
      (settled && !moves_copies_by_threads(program, settled->schedule)))
    return settled;
  target::Target plain = target;
  plain.async_copy_bytes.clear();
  auto other = settle_plan(program, plain, options, level, nullptr, stages);
  if (!other) return other;
  for (size_t k = 0; k < program.kernels.size(); ++k)
    if (copies(program.kernels[k]))
      other->schedule.kernels[k].notes.push_back(
          {program.kernels[k].name,
           "no asynchronous copies in this version, which relies on nothing that the program does not "
           "promise: "
           "what copy_async copies is not known to be whole words of 4 bytes"});
  return other;
}

// One version of each kernel for a device, where FallbackVersion has the others; all at once for the
// simulator.
Expected<Lowered> make_versions(const ir::Program& program, const target::Target& target,
                                const CompileOptions& options, Stages& stages) {
  std::vector<std::vector<thread::ThreadProgram>> by_kernel(program.kernels.size());
  std::vector<std::vector<plan::KernelSchedule>> decisions(program.kernels.size());
  std::vector<std::vector<SplitProgram>> splits(program.kernels.size());
  Lowered out;
  std::shared_ptr<const plan::Schedule> above = options.planned;
  for (AssumptionLevel level = options.level;; level = out.below) {
    auto settled = settle_version(program, target, options, level, above.get(), stages);
    if (!settled) return settled.error();
    if (out.schedule.kernels.empty()) out.schedule = settled->schedule;
    out.estimate = settled->estimate;
    if (options.plan_only) return out;
    out.guarded = false;
    out.below = level_below(level, program, settled->schedule);
    for (size_t k = 0; k < settled->kernels.size(); ++k) {
      std::vector<thread::ThreadProgram>& list = by_kernel[k];
      if (!list.empty() && !relies_on_arguments(list.back())) continue;
      thread::ThreadProgram& version = settled->kernels[k];
      if (!list.empty()) version.name = version_name(program, version.name, list.size());
      out.guarded |= relies_on_arguments(version);
      list.push_back(std::move(version));
      splits[k].push_back(settled->splits[k]);
      if (target.simulated) decisions[k].push_back(settled->schedule.kernels[k]);
    }
    above = std::make_shared<const plan::Schedule>(std::move(settled->schedule));
    if (!out.guarded || !target.simulated || level == AssumptionLevel::none) break;
  }
  for (std::vector<plan::KernelSchedule>& list : decisions)
    for (plan::KernelSchedule& s : list) out.decisions.push_back(std::move(s));
  for (const std::vector<SplitProgram>& list : splits)
    out.splits.insert(out.splits.end(), list.begin(), list.end());
  for (std::vector<thread::ThreadProgram>& list : by_kernel) {
    out.versions.push_back({out.kernels.size(), list.size()});
    for (thread::ThreadProgram& version : list) out.kernels.push_back(std::move(version));
  }
  return out;
}

// Each to its kernel, whose name the path begins with.
void add_notes(const std::vector<plan::Note>& notes, plan::Schedule& s) {
  for (const plan::Note& n : notes)
    for (plan::KernelSchedule& k : s.kernels)
      if (n.path.substr(0, n.path.find_first_of("/:")) == k.kernel) k.notes.push_back(n);
}

// What the caller does not want, or the target cannot take.
std::optional<Error> refuse_native_text(const ir::Program& program, const target::Target& target,
                                        const CompileOptions& options) {
  const auto given = std::find_if(program.natives.begin(), program.natives.end(),
                                  [](const auto& f) { return !ir::is_library_function(*f); });
  if (!options.native_text && given != program.natives.end()) {
    const ir::NativeFunction& first = **given;
    return Error(DiagCode::native_text_off, first.name,
                 std::string(first.atom ? "the atom '" : "the function '") + first.name +
                     "' has native text (" + first.forms() + "), and the option native_text is false",
                 std::string("compile with native_text true where the program is trusted, or take ") +
                     (first.atom ? "the atom out: products are the target's own instructions then"
                                 : "the text out: the function's meaning is compiled then"),
                 first.location);
  }
  if (target.simulated || options.plan_only) return std::nullopt;
  return codegen::check_native_text(program.natives, target);
}

std::string words_of(const codegen::Code& code, const target::Target& target, size_t kernels) {
  return std::to_string(code.bytes.size()) + " bytes of " + target::code_format_name(target.code) +
         " code for " + std::to_string(kernels) + (kernels == 1 ? " kernel" : " kernels");
}

// Parts of stages, and what the schedule has to say.
void report_details(const Artifact& artifact, const std::shared_ptr<Log>& log) {
  if (!log || !log->wants(LogLevel::debug)) return;
  for (const StageTime& t : artifact.times)
    if (t.stage.find('.') != t.stage.npos)
      log->say(LogLevel::debug, t.stage.c_str(), [&] { return Stages::in_ms(t.ms); });
  for (const plan::KernelSchedule& k : artifact.schedule.kernels)
    for (const plan::Note& n : k.notes)
      log->say(LogLevel::debug, "plan", [&] { return n.path + ": " + n.text; });
}

}  // namespace

Expected<std::shared_ptr<const Artifact>> compile(std::shared_ptr<const ir::Program> program,
                                                  const target::Target& given_target,
                                                  const CompileOptions& options) {
  auto artifact = std::make_shared<Artifact>();
  artifact->program = program;
  Stages stages(options, artifact->times);
  stages.dump("program", [&] { return ir::print_program(*program); });

  // To copy the tables takes as long as a part of an estimate.
  const bool own_target = !options.estimate_only || !program->natives.empty() ||
                          std::any_of(given_target.mma.begin(), given_target.mma.end(),
                                      [](const target::MmaAtom& row) { return row.given != nullptr; });
  if (own_target) {
    auto with_atoms = target::with_given_atoms(given_target, program->natives);
    if (!with_atoms) return with_atoms.error();
    artifact->target = std::move(*with_atoms);
  }
  const target::Target& target = own_target ? artifact->target : given_target;
  if (auto refused = refuse_native_text(*program, target, options)) return *refused;

  // plan: engines, atoms, layouts, stages, memory; lower: thread programs; verify: again with less where a
  //   check says no. All of them see one form of what may be written in several.
  const plan::Schedule* given = options.schedule ? &*options.schedule : nullptr;
  const std::optional<ir::Program> canonical = schedule::canonical_form(*program, target, given);
  const ir::Program& form = canonical ? *canonical : *program;
  // What the program decides is planned as what the caller gives.
  auto annotated = schedule::AnnotatedSchedule::make(*program, form, target, options.schedule);
  if (!annotated) return annotated.error();
  CompileOptions asked = options;
  asked.schedule = annotated->schedule;
  auto versions = make_versions(form, target, asked, stages);
  if (!versions) return annotated->with_place(versions.error());
  artifact->schedule = std::move(versions->schedule);
  artifact->estimate = versions->estimate;
  add_notes(annotated->notes, artifact->schedule);
  add_notes(schedule::decoding_notes(*program, target, given), artifact->schedule);
  artifact->sizes = options.sizes;
  if (options.log && options.log->wants(LogLevel::warning) && !options.fallback)
    for (const cost::Cliff& c : cliffs(*artifact))
      options.log->say(LogLevel::warning, "cost", [&] { return c.diagnostic.to_text(); });
  if (options.plan_only || target.simulated) report_details(*artifact, options.log);
  if (options.plan_only) return std::shared_ptr<const Artifact>(artifact);
  artifact->launched = with_own_workspaces(*program, versions->splits, versions->kernels);
  artifact->kernels = std::move(versions->kernels);
  artifact->versions = std::move(versions->versions);
  artifact->decisions = std::move(versions->decisions);
  if (versions->guarded && !target.simulated) {
    CompileOptions below = options;
    below.fallback = true;
    below.level = versions->below;
    // What was planned for the copy engine does not hold without it; the rest does.
    below.planned = below.level == AssumptionLevel::none
                        ? std::make_shared<const plan::Schedule>(artifact->schedule)
                        : nullptr;
    artifact->fallback = std::make_shared<FallbackVersion>(program, target, std::move(below));
  }

  artifact->simulation = options.simulation;
  // the thread programs are what runs
  if (target.simulated) return std::shared_ptr<const Artifact>(artifact);

  // generate: code in the form that the target's loader takes
  codegen::CodeOptions how;
  how.keep_ir = options.keep_ir || static_cast<bool>(options.dump);
  how.keep_assembly = options.keep_assembly;
  how.cancellation = options.cancellation;
  auto code = stages.run(
      "generate", [&] { return codegen::backend_of(target).compile(artifact->kernels, target, how); },
      [&](const Expected<codegen::Code>& made) { return words_of(*made, target, artifact->kernels.size()); });
  if (!code) return code.error();
  artifact->code = std::move(code->bytes);
  artifact->host_code = std::move(code->in_process);
  artifact->times.push_back({"generate.emit", code->emit_ms});
  artifact->times.push_back({"generate.optimise", code->optimise_ms});
  artifact->times.push_back({"generate.codegen", code->codegen_ms});
  stages.dump("llvm", [&] { return code->llvm_ir; });
  stages.dump("llvm-opt", [&] { return code->llvm_ir_optimised; });
  if (!artifact->host_code)
    stages.dump(target::code_format_name(target.code), [&] { return artifact->code; });
  artifact->llvm_ir = std::move(code->llvm_ir);
  artifact->llvm_ir_optimised = std::move(code->llvm_ir_optimised);
  artifact->assembly = std::move(code->assembly);
  report_details(*artifact, options.log);
  return std::shared_ptr<const Artifact>(artifact);
}

}  // namespace tilegen::driver
