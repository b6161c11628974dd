// Runs check_program over the body of a kernel and gives the diagnostics as text, one per line.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::check {

constexpr const char* kDeclarations =
    "tl 1 program t dim N tensor A: f16[N, 64] tensor R: f32[64] readonly tensor C: f32[64, 64]\n"
    "kernel k grid(x: 4) {\n"
    " alloc As: shared f16[64, 64] alloc Bs: shared f16[64, 64] alloc Cf: fragment f32[64, 64]\n"
    " alloc V: fragment f32[64] alloc S: shared f32[64] alloc L: local i64[4] alloc P: shared bool[64]\n"
    " alloc U: shared u8[64, 2] alloc W: fragment u8[64] alloc Q: fragment bool[1]\n";

inline ir::Program parsed(const std::string& text) {
  auto program = ir::parse_program(text, "t.tl", Limits());
  EXPECT_TRUE(program) << program.error().to_text();
  return program ? std::move(*program) : ir::Program();
}

inline std::string diagnose(const ir::Program& program, const Limits& limits = {}) {
  std::string text;
  for (const Diagnostic& d : check_program(program, limits)) text += (text.empty() ? "" : "\n") + d.to_text();
  return text;
}

// `body` is what follows the declarations of a kernel, its closing brace included.
inline std::string diagnose(const std::string& body) {
  return diagnose(parsed(kDeclarations + (" " + body)));
}

}  // namespace tilegen::check
