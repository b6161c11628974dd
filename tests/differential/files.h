// The programs of tests/files and launches for them.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "executors.h"
#include "ir/text.h"
#include "launch_sizes.h"

namespace tilegen::differential {

// A folder of programs, "files" or "regressions": below what TILEGEN_TEST_DATA names, beside this program as
// a package has it, or in the source tree.
inline std::filesystem::path test_data(const std::string& folder) {
  namespace fs = std::filesystem;
  if (const char* data = std::getenv("TILEGEN_TEST_DATA")) return fs::path(data) / folder;
  std::error_code none;
  const fs::path packaged =
      fs::read_symlink("/proc/self/exe", none).parent_path().parent_path() / "tests" / folder;
  if (fs::is_directory(packaged, none)) return packaged;
  const fs::path tests = fs::path(TILEGEN_SOURCE_DIR) / "tests";
  return folder == "files" ? tests / folder : tests / "differential" / folder;
}

inline std::string bytes_of(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Without the texts that programs include.
inline std::vector<std::filesystem::path> programs_in(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<fs::path> list;
  std::error_code missing;
  for (const auto& entry : fs::recursive_directory_iterator(folder, missing))
    if (entry.path().extension() == ".tl" && !ir::is_part(bytes_of(entry.path())))
      list.push_back(entry.path());
  std::sort(list.begin(), list.end());
  return list;
}

inline std::vector<std::filesystem::path> program_files() { return programs_in(test_data("files")); }

// Of a program that includes other files, its canonical text, which has them.
inline std::string text_of(const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  const std::string text = bytes_of(file);
  if (text.find("\ninclude \"") == std::string::npos) return text;
  const auto include = [](const ir::IncludeRequest& asked) {
    const fs::path found = (fs::path(asked.includer).parent_path() / asked.path).lexically_normal();
    if (!fs::exists(found)) return ir::IncludedText{"", std::nullopt, "no file " + found.string()};
    return ir::IncludedText{found.string(), bytes_of(found), ""};
  };
  const auto program = ir::parse_program(text, file.string(), Limits{}, nullptr, {}, include);
  if (!program) throw std::runtime_error(program.error().to_text());
  return ir::print_program(*program);
}

inline Data data_of(const std::string& name) {
  return name == "specials" ? Data::integers_specials
         : name == "reals"  ? Data::reals
         : name == "bits"   ? Data::bit_patterns
                            : Data::integers;
}

// Launches that a program's comments state:
//   ; launch n=8 m=3 seed=2 data=specials
// data is integers, specials, reals or bits; floats are compared exactly unless "ulps=k" is given.
inline std::vector<Launch> stated_launches(const std::string& text) {
  std::vector<Launch> list;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("; launch", 0) != 0) continue;
    Launch launch;
    std::istringstream words(line.substr(8));
    for (std::string word; words >> word;) {
      const size_t eq = word.find('=');
      const std::string name = word.substr(0, eq), value = word.substr(eq + 1);
      if (name == "seed")
        launch.seed = std::stoull(value);
      else if (name == "data")
        launch.data = data_of(value);
      else if (name == "ulps")
        launch.bound = Bound::of_ulps(std::stod(value));
      else
        launch.dims[name] = std::stoll(value);
    }
    list.push_back(std::move(launch));
  }
  return list;
}

}  // namespace tilegen::differential
