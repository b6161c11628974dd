#include "command_line.h"

#include "library.h"

namespace tool {

CommandLine::CommandLine(int argc, char** argv, const std::set<std::string>& flags,
                         const std::set<std::string>& known) {
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "-" || argument.empty() || argument[0] != '-') {
      words_.push_back(argument);
      continue;
    }
    const size_t dashes = argument.compare(0, 2, "--") == 0 ? 2 : 1;
    std::string name = argument.substr(dashes), value;
    const size_t equals = name.find('=');
    const bool inline_value = equals != std::string::npos;
    if (inline_value) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (!known.empty() && !known.count(name) && !flags.count(name)) fail_usage("unknown option " + argument);
    if (flags.count(name) && inline_value) fail_usage("--" + name + " takes no value");
    if (!flags.count(name) && !inline_value) {
      if (++i == argc) fail_usage(argument + " needs a value");
      value = argv[i];
    }
    if (!values_.emplace(name, value).second) fail_usage(argument + " is given twice");
  }
}

std::optional<std::string> CommandLine::get(const std::string& name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return std::nullopt;
  return it->second;
}

std::string CommandLine::get_or(const std::string& name, const std::string& fallback) const {
  return get(name).value_or(fallback);
}

const std::string& CommandLine::file() const {
  if (words_.size() != 1)
    fail_usage("one program file is expected (- for standard input), got " + std::to_string(words_.size()));
  return words_[0];
}

}  // namespace tool
