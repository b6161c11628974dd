#include <cstdio>

#include "command_line.h"
#include "commands.h"
#include "cost_chart.h"
#include "files.h"
#include "library.h"
#include "result_forms.h"

namespace tool {

int compile_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {}, {"target", "schedule", "sizes", "schedule-out", "emit", "o"});
  if (line.has("emit") && !line.has("o")) fail_usage("--emit needs -o (`tilegen show` prints)");
  const Context context = make_context();
  const Program program = read_program(context, line.file(), line.params());
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
  print_warnings(artifact, report);
  return 0;
}

}  // namespace tool
