#include <cstdio>
#include <limits>

#include "command_line.h"
#include "commands.h"
#include "cost_chart.h"
#include "files.h"
#include "layout_listing.h"
#include "library.h"
#include "result_forms.h"

namespace tool {
namespace {

// The last result of a stage: plans whose code was rejected come before the one that is taken.
struct StageResult {
  const char* stage;
  std::string text;

  static void take(void* user, const char* stage, const char* text, size_t size) {
    auto& result = *static_cast<StageResult*>(user);
    if (std::string_view(stage) == result.stage) result.text.assign(text, size);
  }
};

void watch(const Context& context, StageResult& result) {
  tl_error* error = nullptr;
  require(tl_context_set_dump(context.get(), StageResult::take, nullptr, &result, &error), error,
          "asking for the stages' results");
}

}  // namespace

int show_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {}, {"target", "schedule", "sizes", "what", "svg", "fallback"});
  const ResultForm& form = result_form(line.get_or("what", "schedule"));
  const bool pictures = std::string("pictures") == form.name,
             layouts = pictures || std::string("layouts") == form.name;
  const std::optional<std::string> folder = line.get("svg");
  const bool cost = form.section == TL_SECTION_COST;
  if (folder && !layouts && !cost) fail_usage("--svg goes with --what layouts, pictures or cost");
  StageResult result{form.stage, ""};
  const Context context = make_context();
  if (form.stage) watch(context, result);
  const Program program = read_program(context, line);
  if (form.section == TL_SECTION_TILE_IR) {  // needs no target
    write_file("-", program_text(program));
    return 0;
  }
  const int64_t fallback = line.integer_or("fallback", 0, 0, std::numeric_limits<int>::max());
  const bool planned =
      fallback == 0 &&
      (form.section == TL_SECTION_SCHEDULE_TEXT || form.section == TL_SECTION_SCHEDULE_JSON ||
       form.section == TL_SECTION_COST || form.section == TL_SECTION_COST_JSON);
  Artifact artifact = compile_file(context, program, line, &form, planned);
  for (int64_t i = 0; i < fallback; ++i) {
    artifact = fallback_of(context, artifact);
    if (!artifact) fail("there is no fallback version " + std::to_string(i + 1));
  }
  const std::string text = form.stage ? result.text : section(artifact, form.section);
  if (text.empty()) fail(std::string("for this target there is no form '") + form.name + "'");
  write_file("-", layouts ? list_layouts(text, pictures) : text);
  if (cost) print_warnings(artifact, stdout);
  if (folder)
    std::printf("%d pictures in %s\n",
                cost ? write_cost_charts(section(artifact, TL_SECTION_COST_JSON), *folder)
                     : write_pictures(text, *folder),
                folder->c_str());
  return 0;
}

}  // namespace tool
