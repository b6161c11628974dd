#include "command_line.h"

#include <charconv>
#include <cmath>

#include "library.h"

namespace tool {

std::optional<int64_t> parse_integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

CommandLine::CommandLine(int argc, char** argv, const std::set<std::string>& flags,
                         const std::set<std::string>& known) {
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "-" || argument.empty() || argument[0] != '-') {
      words_.push_back(argument);
      continue;
    }
    if (argument.compare(0, 2, "-I") == 0) {
      if (argument.size() == 2 && i + 1 == argc) fail_usage("-I needs a folder");
      include_folders_.push_back(argument.size() > 2 ? argument.substr(2) : argv[++i]);
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
    if (!known.empty() && !known.count(name) && !flags.count(name) && name != "param")
      fail_usage("unknown option " + argument);
    if (flags.count(name) && inline_value) fail_usage("--" + name + " takes no value");
    if (!flags.count(name) && !inline_value) {
      if (++i == argc) fail_usage(argument + " needs a value");
      value = argv[i];
    }
    if (name == "param") {
      const size_t split = value.find('=');
      auto number = split == std::string::npos ? std::nullopt : parse_integer(value.substr(split + 1));
      for (tl_dtype type = 1; !number && split != std::string::npos && *tl_dtype_name(type) != 0; ++type)
        if (value.substr(split + 1) == tl_dtype_name(type)) number = type;
      if (!number || split == 0) fail_usage("--param needs NAME=INTEGER or NAME=TYPE, got '" + value + "'");
      if (!params_.emplace(value.substr(0, split), *number).second)
        fail_usage("--param " + value.substr(0, split) + " is given twice");
      continue;
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

int64_t CommandLine::integer_or(const std::string& name, int64_t fallback, int64_t least,
                                int64_t most) const {
  const auto text = get(name);
  if (!text) return fallback;
  const auto value = parse_integer(*text);
  if (!value || *value < least || *value > most)
    fail_usage("--" + name + " needs an integer from " + std::to_string(least) + " to " +
               std::to_string(most) + ", got '" + *text + "'");
  return *value;
}

std::optional<double> CommandLine::non_negative(const std::string& name) const {
  const auto text = get(name);
  if (!text) return std::nullopt;
  const auto value = parse_number(*text);
  if (!value || !std::isfinite(*value) || *value < 0)
    fail_usage("--" + name + " needs a number that is not negative, got '" + *text + "'");
  return value;
}

const std::string& CommandLine::file() const {
  if (words_.size() != 1)
    fail_usage("one program file is expected (- for standard input), got " + std::to_string(words_.size()));
  return words_[0];
}

}  // namespace tool
