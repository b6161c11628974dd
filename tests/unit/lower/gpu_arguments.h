// Programs of files run on the simulator with random arguments, against the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "check/check_program.h"
#include "ir/text.h"
#include "simulated_launch.h"

namespace tilegen::lower {

inline ir::Program load_program(const std::string& file) {
  const auto path = std::filesystem::path(TILEGEN_SOURCE_DIR) / "tests/files" / file;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream s;
  s << in.rdbuf();
  auto program = ir::parse_program(s.str(), file, Limits{});
  EXPECT_TRUE(program) << program.error().to_text();
  if (!program) return {};
  for (const Diagnostic& d : check::check_program(*program, Limits{})) ADD_FAILURE() << d.to_text();
  return std::move(*program);
}

// One launch of the kernels in one form, where its guards hold; elements of more bits than products take.
inline void run_lowered(const ir::Program& p, const target::Target& target, const plan::Schedule& schedule,
                        const std::vector<int64_t>& dims, bool assume_aligned, bool* ran) {
  *ran = test::run_simulated(p, target, schedule, dims, assume_aligned, nullptr, {128, 64});
}

}  // namespace tilegen::lower
