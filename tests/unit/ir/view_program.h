// Kernels with views, and what they become.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"

namespace tilegen::ir {

// A program with a kernel of any statements; `last` is the line of the allocation in front of them.
struct ViewProgram {
  std::string head, last;

  // The statements, printed; else the first error.
  std::string made(const std::string& body) const {
    const auto p = parse_program(head + body + "\n}\n", "t.tl", Limits());
    if (!p) return p.error().diagnostics[0].to_text();
    const std::string text = print_program(*p);
    const size_t at = text.find(last);
    return at == std::string::npos ? text : text.substr(at + last.size());
  }
  void expect_same(const std::string& with, const std::string& without) const {
    EXPECT_EQ(made(with), made(without)) << with;
    EXPECT_EQ(made(with).find("error"), std::string::npos) << made(with);
  }
  void expect_error(const std::string& body, const std::string& words) const {
    EXPECT_NE(made(body).find(words), std::string::npos) << body << "\n" << made(body);
  }
};

}  // namespace tilegen::ir
