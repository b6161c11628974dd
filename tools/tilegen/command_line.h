// Arguments after the command word: `--name value`, `-o value`, flags, and plain words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tool {

// The number that is all of a text. A sign + and spaces are none of it; numbers may be inf and nan.
std::optional<int64_t> parse_integer(const std::string& text);
std::optional<double> parse_number(const std::string& text);

class CommandLine {
 public:
  // Names in `flags` take no value; every other name takes one. With a non-empty `known`, other names are an
  // error.
  CommandLine(int argc, char** argv, const std::set<std::string>& flags, const std::set<std::string>& known);

  const std::vector<std::string>& words() const { return words_; }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::optional<std::string> get(const std::string& name) const;
  std::string get_or(const std::string& name, const std::string& fallback) const;
  const std::map<std::string, std::string>& values() const { return values_; }

  // A whole number from `least` to `most`, or a finite number that is not negative; what is neither ends the
  // program.
  int64_t integer_or(const std::string& name, int64_t fallback, int64_t least, int64_t most) const;
  std::optional<double> non_negative(const std::string& name) const;

  // The values of --param NAME=VALUE, which may be given for several names.
  const std::map<std::string, int64_t>& params() const { return params_; }

  // The folders of -I, in their order.
  const std::vector<std::string>& include_folders() const { return include_folders_; }

  // The one plain word of a command that takes a file.
  const std::string& file() const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::string> values_;  // without the dashes
  std::map<std::string, int64_t> params_;
  std::vector<std::string> include_folders_;
};

}  // namespace tool
