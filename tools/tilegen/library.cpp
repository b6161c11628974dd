#include "library.h"

#include <cstdio>
#include <cstdlib>

#include "files.h"

namespace tool {

void fail(const std::string& message) {
  std::fprintf(stderr, "tilegen: %s\n", message.c_str());
  std::exit(1);
}

void fail_usage(const std::string& message) {
  std::fprintf(stderr, "tilegen: %s\n`tilegen help` lists commands and options\n", message.c_str());
  std::exit(2);
}

void require(tl_status status, tl_error* const& error, std::string_view what) {
  if (status == TL_OK) return;
  std::string message(what);
  message += " failed (";
  message += tl_status_name(status);
  message += ")\n";
  message += tl_error_message(error);
  tl_error_release(error);
  while (!message.empty() && message.back() == '\n') message.pop_back();
  fail(message);
}

Context make_context() {
  tl_context* context = nullptr;
  tl_error* error = nullptr;
  require(tl_context_create(&context, &error), error, "making a context");
  return Context(context);
}

const tl_launch* quiet_launch() {
  static const Context context = [] {
    Context made = make_context();
    tl_context_set_print(made.get(), [](void*, const char*) {}, nullptr, nullptr, nullptr);
    return made;
  }();
  static const tl_launch launch = [] {
    tl_launch l{};
    l.struct_size = sizeof l;
    l.context = context.get();
    return l;
  }();
  return &launch;
}

Target find_target(const Context& context, const std::string& name) {
  tl_target* target = nullptr;
  tl_error* error = nullptr;
  if (name.empty())
    require(tl_target_best(context.get(), &target, &error), error, "looking for a device");
  else
    require(tl_target_parse(name.c_str(), &target, &error), error, "choosing the target");
  return Target(target);
}

Program read_program(const Context& context, const CommandLine& line) {
  const std::string& path = line.file();
  const Reading how(context, line, path == "-" ? "standard input" : path);
  return program_of(context, read_text(context, path), how.options());
}

Reading::Reading(const Context& context, const CommandLine& line, const std::string& shown)
    : shown_(shown), files_(line.include_folders(), shown, most_text(context)) {
  for (const auto& [name, value] : line.params()) {
    names_.push_back(name.c_str());
    values_.push_back(value);
  }
  options_.struct_size = sizeof options_;
  options_.param_count = static_cast<uint32_t>(names_.size());
  options_.param_names = names_.data();
  options_.param_values = values_.data();
  options_.file_name = shown_.c_str();
  options_.include = IncludeFiles::find;
  options_.include_user = &files_;
}

Program program_of(const Context& context, const std::string& text, const tl_parse_options* how) {
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  require(tl_program_parse_with(context.get(), text.data(), text.size(), how, &program, &error), error,
          "reading the program");
  return Program(program);
}

Options make_options() {
  tl_options* options = nullptr;
  tl_error* error = nullptr;
  require(tl_options_create(&options, &error), error, "making options");
  return Options(options);
}

Artifact compile(const Context& context, const Program& program, const Target& target,
                 const Options& options) {
  tl_artifact* artifact = nullptr;
  tl_error* error = nullptr;
  require(tl_compile(context.get(), program.get(), target.get(), options.get(), &artifact, &error), error,
          "compiling");
  return Artifact(artifact);
}

Artifact fallback_of(const Context& context, const Artifact& artifact) {
  tl_artifact* fallback = nullptr;
  tl_error* error = nullptr;
  require(tl_artifact_fallback(context.get(), artifact.get(), &fallback, &error), error,
          "compiling a fallback version");
  return Artifact(fallback);
}

std::string section(const Artifact& artifact, tl_section section) {
  const char* data = nullptr;
  size_t size = 0;
  tl_error* error = nullptr;
  require(tl_artifact_section(artifact.get(), section, &data, &size, &error), error, "reading the artifact");
  return std::string(data, size);
}

std::string program_text(const Program& program) {
  tl_blob* blob = nullptr;
  tl_error* error = nullptr;
  require(tl_program_print(program.get(), &blob, &error), error, "printing the program");
  const Blob owner(blob);
  return std::string(tl_blob_data(blob), tl_blob_size(blob));
}

std::string draw(const std::string& layout, tl_picture form) {
  tl_blob* blob = nullptr;
  tl_error* error = nullptr;
  require(tl_layout_draw(layout.c_str(), form, &blob, &error), error, "drawing a layout");
  const Blob owner(blob);
  return std::string(tl_blob_data(blob), tl_blob_size(blob));
}

std::vector<tl_param_info> parameters(const Program& program) {
  std::vector<tl_param_info> out(tl_program_param_count(program.get()));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].struct_size = sizeof out[i];
    require(tl_program_param(program.get(), i, &out[i]), nullptr, "reading the parameters");
  }
  return out;
}

bool has_option(std::string_view name) {
  for (size_t i = 0; i < tl_option_count(); ++i) {
    tl_option_info info{};
    info.struct_size = sizeof info;
    if (tl_option_describe(i, &info) == TL_OK && name == info.name) return true;
  }
  return false;
}

size_t most_text(const Context& context) {
  int64_t most = 0;
  tl_error* error = nullptr;
  require(tl_context_get_limit(context.get(), "text_bytes", &most, &error), error, "asking for a limit");
  return static_cast<size_t>(most);
}

std::string read_text(const Context& context, const std::string& path) {
  return read_file(path, most_text(context));
}

}  // namespace tool
