// Arguments behind the command word: `--name value`, `-o value`, flags, and plain words.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tool {

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

  // The one plain word of a command that takes a file.
  const std::string& file() const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::string> values_;  // without the dashes
};

}  // namespace tool
