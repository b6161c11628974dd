// The C API as the command line tool uses it: owning handles, and failures that end the program with the
// diagnostics.
#pragma once

#include <tilelang.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "include_files.h"

namespace tool {

// Prints "tilegen: message" on stderr and ends: with status 1 for what the library refuses, 2 for a wrong
// command line.
[[noreturn]] void fail(const std::string& message);
[[noreturn]] void fail_usage(const std::string& message);

// Ends the program with the library's diagnostics unless `status` is TL_OK. `error` is a reference because
// the call that sets it usually stands in the first argument.
void require(tl_status status, tl_error* const& error, std::string_view what);

template <auto release>
struct Releaser {
  template <class T>
  void operator()(T* p) const {
    release(p);
  }
};
template <class T, auto release>
using Handle = std::unique_ptr<T, Releaser<release>>;
using Context = Handle<tl_context, tl_context_release>;
using Target = Handle<tl_target, tl_target_release>;
using Program = Handle<tl_program, tl_program_release>;
using Options = Handle<tl_options, tl_options_destroy>;
using Artifact = Handle<tl_artifact, tl_artifact_release>;
using Kernel = Handle<tl_kernel, tl_kernel_release>;
using Blob = Handle<tl_blob, tl_blob_release>;

Context make_context();
// Of launches and interpretations whose prints the user has seen.
const tl_launch* quiet_launch();
Target find_target(const Context& context, const std::string& name);  // "" = the best of this machine
// The program of a command; "-" = standard input.
Program read_program(const Context& context, const CommandLine& line);
Program program_of(const Context& context, const std::string& text, const tl_parse_options* how = nullptr);
// How a text is read that stands in `shown`, for the time of a call.
class Reading {
 public:
  Reading(const Context& context, const CommandLine& line, const std::string& shown);
  const tl_parse_options* options() const { return &options_; }

 private:
  std::vector<const char*> names_;
  std::vector<int64_t> values_;
  const std::string shown_;
  IncludeFiles files_;
  tl_parse_options options_{};
};
Options make_options();
Artifact compile(const Context& context, const Program& program, const Target& target,
                 const Options& options);
// Its next fallback version; none after the last.
Artifact fallback_of(const Context& context, const Artifact& artifact);
std::string section(const Artifact& artifact, tl_section section);
std::string program_text(const Program& program);
std::string draw(const std::string& layout, tl_picture form);
std::vector<tl_param_info> parameters(const Program& program);

// True when the option table has a row of that name.
bool has_option(std::string_view name);

// A program or a schedule: as much of a file as the library takes of such a text.
std::string read_text(const Context& context, const std::string& path);  // "-" = standard input
size_t most_text(const Context& context);                                // bytes of a text

}  // namespace tool
