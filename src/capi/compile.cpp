// Compiling, and what an artifact shows.
#include "capi/compile_program.h"
#include "capi/guard.h"
#include "codegen/native_text.h"
#include "cost/report.h"
#include "driver/artifact_cost.h"
#include "driver/fallback_version.h"
#include "driver/specialisations.h"
#include "ir/text.h"
#include "plan/schedule.h"
#include "support/diag_codes.h"
#include "thread/thread_program.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

std::string words_of(const driver::Artifact& artifact, Clock::time_point start) {
  return artifact.program->name + " for " + artifact.target.name + time_since(start);
}

std::string section_text(const driver::Artifact& a, tl_section section) {
  switch (section) {
    case TL_SECTION_TILE_IR:
      return ir::print_program(*a.program);
    case TL_SECTION_SCHEDULE_TEXT:
      return plan::schedule_to_text(a.schedule) +
             (a.target.has_block_threads()
                  ? "\n" + cost::estimate_summary(driver::estimate(a), *a.program, a.target, a.sizes)
                  : "");
    case TL_SECTION_SCHEDULE_JSON:
      return plan::schedule_to_json(a.schedule);
    case TL_SECTION_THREAD_PROGRAM: {
      std::string text;
      for (const thread::ThreadProgram& k : a.kernels) text += thread::print_thread_program(k);
      return text;
    }
    case TL_SECTION_LLVM_IR:
      return a.llvm_ir;
    case TL_SECTION_LLVM_IR_OPTIMISED:
      return a.llvm_ir_optimised;
    case TL_SECTION_ASSEMBLY:
      return a.assembly;
    case TL_SECTION_PTX:
      return a.target.code == target::CodeFormat::ptx ? a.code : "";
    case TL_SECTION_HSACO:
      return a.target.code == target::CodeFormat::hsaco ? a.code : "";
    case TL_SECTION_CODE:
      return a.code;
    case TL_SECTION_NATIVE_TEXT:
      return a.code.empty() ? "" : codegen::native_text_list(a.program->natives, a.target.code);
    case TL_SECTION_COST:
      return a.target.has_block_threads()
                 ? cost::estimate_to_text(driver::estimate(a), *a.program, a.target, a.sizes)
                 : "";
    case TL_SECTION_COST_JSON:
      return a.target.has_block_threads()
                 ? cost::estimate_to_json(driver::estimate(a), *a.program, a.target, a.sizes)
                 : "";
  }
  return {};
}

const std::vector<cost::Cliff>& warnings_of(const tl_artifact& a) {
  a.warned.run([&] { a.warnings = driver::cliffs(*a.artifact); });
  return a.warnings;
}

void hand_out(std::shared_ptr<const driver::Artifact> compiled, tl_artifact** out) {
  auto made = std::make_unique<tl_artifact>();
  made->artifact = std::move(compiled);
  *out = made.release();
}

}  // namespace

extern "C" {

tl_status tl_compile(const tl_context* context, const tl_program* program, const tl_target* target,
                     const tl_options* options, tl_artifact** out_artifact, tl_error** out_error) {
  return guard("tl_compile", out_error, [&]() -> Checked {
    if (out_artifact) *out_artifact = nullptr;
    if (!context || !program) return null_argument(context ? "program" : "context");
    if (!target || !out_artifact) return null_argument(target ? "out_artifact" : "target");
    const auto start = Clock::now();
    const OptionValues values = options ? options->values : OptionValues();
    const CallLimits call(context, values.timeout_ms);
    const auto gate = std::make_shared<CallbackGate>();
    auto converted = compile_options(*context, *program->program, values, gate);
    if (!converted) return converted.error();
    const std::shared_ptr<Log> log = converted->log;
    auto compiled = compile_program(*context, *program, *target, values, *std::move(converted), call, *gate);
    if (!compiled) {
      // That of a compilation that was left is closed.
      say(log_of(*context), LogLevel::error, "compile", [&] { return compiled.error().to_text(); });
      return compiled.error();
    }
    say(log, LogLevel::info, "compile", [&] { return words_of(**compiled, start); });
    hand_out(std::move(*compiled), out_artifact);
    return Unit{};
  });
}

tl_status tl_artifact_fallback(const tl_context* context, const tl_artifact* artifact,
                               tl_artifact** out_fallback, tl_error** out_error) {
  return guard("tl_artifact_fallback", out_error, [&]() -> Checked {
    if (out_fallback) *out_fallback = nullptr;
    if (!artifact || !out_fallback) return null_argument(artifact ? "out_fallback" : "artifact");
    if (!artifact->artifact->fallback) return Unit{};
    const CallLimits call(context);
    auto compiled = artifact->artifact->fallback->get(call.get(), context ? log_of(*context) : nullptr);
    if (!compiled) return compiled.error();
    hand_out(std::move(*compiled), out_fallback);
    return Unit{};
  });
}

size_t tl_artifact_specialisation_count(const tl_artifact* artifact) {
  return artifact && artifact->artifact->specialised ? artifact->artifact->specialised->artifacts.size() : 0;
}

tl_status tl_artifact_specialisation(const tl_artifact* artifact, size_t index, tl_blob** out_sizes,
                                     tl_artifact** out_artifact, tl_error** out_error) {
  return guard("tl_artifact_specialisation", out_error, [&]() -> Checked {
    if (out_sizes) *out_sizes = nullptr;
    if (out_artifact) *out_artifact = nullptr;
    if (!artifact) return null_argument("artifact");
    const driver::Specialisations* all = artifact->artifact->specialised.get();
    if (!all || index >= all->artifacts.size())
      return Error(DiagCode::bad_enum, "", "there is no specialisation " + std::to_string(index),
                   "count them with tl_artifact_specialisation_count");
    std::unique_ptr<tl_blob> sizes;
    if (out_sizes) {
      sizes = std::make_unique<tl_blob>();
      sizes->bytes = all->sizes_text(index);
    }
    if (out_artifact) hand_out(all->artifacts[index], out_artifact);
    if (out_sizes) *out_sizes = sizes.release();
    return Unit{};
  });
}

void tl_artifact_retain(tl_artifact* artifact) { retain(artifact); }
void tl_artifact_release(tl_artifact* artifact) { release(artifact); }

const char* tl_artifact_code_format(const tl_artifact* artifact) {
  const bool made = artifact && !artifact->artifact->code.empty();
  return made ? target::code_format_name(artifact->artifact->target.code) : "";
}

tl_status tl_artifact_section(const tl_artifact* artifact, tl_section section, const char** out_data,
                              size_t* out_size, tl_error** out_error) {
  return guard("tl_artifact_section", out_error, [&]() -> Checked {
    if (out_data) *out_data = "";
    if (out_size) *out_size = 0;
    if (!artifact) return null_argument("artifact");
    if (!out_data || !out_size) return null_argument(out_data ? "out_size" : "out_data");
    if (section < TL_SECTION_TILE_IR || section >= tl_artifact::kSections)
      return Error(DiagCode::bad_enum, "", "there is no section " + std::to_string(section),
                   "use a tl_section");
    artifact->made[section].run(
        [&] { artifact->text[section] = section_text(*artifact->artifact, section); });
    *out_data = artifact->text[section].c_str();
    *out_size = artifact->text[section].size();
    return Unit{};
  });
}

size_t tl_artifact_warning_count(const tl_artifact* artifact) {
  return shielded<size_t>(0, [&]() -> size_t { return artifact ? warnings_of(*artifact).size() : 0; });
}

tl_status tl_artifact_warning(const tl_artifact* artifact, size_t index, tl_diagnostic* out_diagnostic,
                              double* out_factor) {
  return guard("tl_artifact_warning", nullptr, [&]() -> Checked {
    if (out_factor) *out_factor = 0;
    if (!artifact || !out_diagnostic) return null_argument("an argument");
    const std::vector<cost::Cliff>& all = warnings_of(*artifact);
    if (index >= all.size())
      return Error(DiagCode::bad_enum, "", "there is no warning " + std::to_string(index),
                   "count them with tl_artifact_warning_count");
    if (out_factor) *out_factor = all[index].factor;
    return fill_struct(out_diagnostic, diagnostic_value(all[index].diagnostic), kFirstDiagnostic);
  });
}

size_t tl_artifact_stage_count(const tl_artifact* artifact) {
  return artifact ? artifact->artifact->times.size() : 0;
}

tl_status tl_artifact_stage(const tl_artifact* artifact, size_t index, const char** out_name,
                            double* out_ms) {
  return guard("tl_artifact_stage", nullptr, [&]() -> Checked {
    if (!artifact || !out_name || !out_ms) return null_argument("an argument");
    if (index >= artifact->artifact->times.size())
      return Error(DiagCode::bad_enum, "", "there is no stage " + std::to_string(index),
                   "count them with tl_artifact_stage_count");
    *out_name = artifact->artifact->times[index].stage.c_str();
    *out_ms = artifact->artifact->times[index].ms;
    return Unit{};
  });
}

}  // extern "C"
