// Compares the diagnostics of a failing call with tests/error/<code>.<case>.golden.
#pragma once

#include <string>

#include "scope.h"

namespace tilegen::test {

// `name` is "<code>.<case>"; the first diagnostic must have that code, a message and a hint.
void expect_golden(const std::string& name, const Failure& failure);

}  // namespace tilegen::test
