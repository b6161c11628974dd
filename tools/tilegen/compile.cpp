#include <cstdio>

#include "command_line.h"
#include "commands.h"
#include "cost_chart.h"
#include "files.h"
#include "library.h"
#include "result_forms.h"

namespace tool {

namespace {

// "BM 64, BN 128" of a program whose parameters have their values.
std::string values_text(const Program& program) {
  std::string text;
  for (size_t i = 0; i < tl_program_compile_param_count(program.get()); ++i) {
    tl_compile_param_info info{};
    info.struct_size = sizeof info;
    require(tl_program_compile_param(program.get(), i, &info), nullptr, "reading the parameters");
    text += (text.empty() ? "" : ", ") + std::string(info.name) + " " + std::to_string(info.value);
  }
  return text;
}

// Which code launches of which sizes take.
void print_specialisations(const Context& context, const Artifact& artifact, std::FILE* report) {
  for (size_t i = 0; i < tl_artifact_specialisation_count(artifact.get()); ++i) {
    tl_blob* sizes = nullptr;
    tl_artifact* part = nullptr;
    tl_error* error = nullptr;
    require(tl_artifact_specialisation(artifact.get(), i, &sizes, &part, &error), error, "reading the parts");
    const Artifact held(part);
    const Blob shown(sizes);
    const std::string text = section(held, TL_SECTION_TILE_IR);
    const std::string values = values_text(program_of(context, text));
    std::fprintf(report, "  %s%s%s\n", tl_blob_data(shown.get()), values.empty() ? "" : ": ", values.c_str());
  }
}

}  // namespace

int compile_command(int argc, char** argv) {
  const CommandLine line(
      argc, argv, {},
      {"target", "schedule", "sizes", "tune", "records", "specialisations", "schedule-out", "emit", "o"});
  if (line.has("emit") && !line.has("o")) fail_usage("--emit needs -o (`tilegen show` prints)");
  const Context context = make_context();
  const Program program = read_program(context, line);
  const ResultForm* form = line.has("o") ? &result_form(line.get_or("emit", "asm")) : nullptr;
  const Artifact artifact = compile_file(context, program, line, form, false);
  if (const auto path = line.get("schedule-out"))
    write_file(*path, section(artifact, TL_SECTION_SCHEDULE_JSON));
  if (form) {
    const std::string text = section(artifact, form->section);
    if (text.empty()) fail(std::string("for this target there is no form '") + form->name + "'");
    write_file(*line.get("o"), text);
  }

  std::FILE* report = line.get_or("o", "") == "-" ? stderr : stdout;
  double total = 0;
  std::fprintf(report, "program %s, hash %s\n", tl_program_name(program.get()),
               tl_program_hash(program.get()));
  for (size_t i = 0; i < tl_artifact_stage_count(artifact.get()); ++i) {
    const char* name = nullptr;
    double ms = 0;
    require(tl_artifact_stage(artifact.get(), i, &name, &ms), nullptr, "reading the stage times");
    std::fprintf(report, "%10.2f ms  %s\n", ms, name);
    total += ms;
  }
  std::fprintf(report, "%10.2f ms  in all\n", total);
  print_specialisations(context, artifact, report);
  print_warnings(artifact, report);
  return 0;
}

}  // namespace tool
