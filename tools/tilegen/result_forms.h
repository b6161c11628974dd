// The forms a compilation can be shown or written in.
#pragma once

#include <string>
#include <string_view>

#include "command_line.h"
#include "library.h"

namespace tool {

struct ResultForm {
  const char* name;  // as in --what
  tl_section section;
  const char* option;           // compile option that asks for it, or nullptr
  const char* stage = nullptr;  // of the compiler, whose result it is; no section then
};

// An unknown name ends the program, listing the names.
const ResultForm& result_form(std::string_view name);

// What --schedule names, for the option schedule_json.
std::string read_schedule(const Context& context, const std::string& path);

// --sizes and --schedule.
Options options_of(const Context& context, const CommandLine& line);

// --target, those options and what `form` needs (nullptr: machine code only); `plan_only` stops after
// planning where the library offers it, so that targets without a code generator can be shown.
Artifact compile_file(const Context& context, const Program& program, const CommandLine& line,
                      const ResultForm* form, bool plan_only);

}  // namespace tool
