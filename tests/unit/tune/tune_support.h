// Programs with compile-time parameters, and what tuning asks for, for the tests of tuning.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "../schedule/plan_support.h"
#include "check/check_program.h"
#include "ir/text.h"
#include "tune/measured_tuning.h"

namespace tilegen::tune {

// A copy by rows: every configuration of a host runs.
constexpr char kRows[] =
    "tl 1 program rows\nparam ROWS in {1, 2, 8}\nparam COLS in {16, 64}\ndim m\n"
    "tensor X: f32[m, 64] readonly\ntensor Y: f32[m, 64]\n"
    "kernel k grid (b: ceildiv(m, ROWS), c: 64 // COLS) {\n  alloc x: shared f32[ROWS, COLS]\n"
    "  copy X[b * ROWS :+ ROWS, c * COLS :+ COLS] -> x\n"
    "  copy x -> Y[b * ROWS :+ ROWS, c * COLS :+ COLS]\n}\n";

inline Bind bind_of(const std::string& text) {
  return [text](const std::vector<ir::ParamBinding>& values) -> Expected<std::shared_ptr<const ir::Program>> {
    auto program = ir::parse_program(text, "", Limits{}, nullptr, values);
    if (!program) return program.error();
    for (Diagnostic& d : check::check_program(*program, Limits{}, nullptr))
      if (d.severity == Severity::error) {
        Error error;
        error.diagnostics.push_back(std::move(d));
        return error;
      }
    return std::make_shared<const ir::Program>(std::move(*program));
  };
}

inline ir::Program program_of(const std::string& text) { return *ir::parse_program(text, "", Limits{}); }

// A folder of a test's own, removed with what is in it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tilegen_tune_XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(path)) all.push_back(entry.path());
    return all;
  }
  std::string path;
};

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tilegen::tune
