#include "golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tilegen::test {

void expect_golden(const std::string& name, const Failure& failure) {
  SCOPED_TRACE(name);
  ASSERT_TRUE(failure) << "the call did not fail";
  const tl_diagnostic d = first(failure);
  EXPECT_EQ(name.substr(0, name.find('.')), d.code);
  EXPECT_EQ(d.status, tl_error_status(failure.get()));
  EXPECT_STRNE(d.message, "");
  EXPECT_STRNE(d.hint, "") << "no way out is offered";
  EXPECT_STRNE(d.op, "");
  EXPECT_STRNE(d.stage, "");
  const std::string actual = std::string(tl_error_message(failure.get())) + "\n";
  const std::string path = std::string(TILEGEN_GOLDEN_DIR) + "/" + name + ".golden";
  if (const char* bless = std::getenv("TILEGEN_BLESS"); bless && std::string(bless) == "1") {
    std::ofstream(path) << actual;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing; run with TILEGEN_BLESS=1 and read what it writes";
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(actual, expected.str());
}

}  // namespace tilegen::test
