// Shapes of a program's tensor parameters for given dimensions, read from its canonical text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tool {

struct TensorShape {
  std::vector<std::string> extents, strides;  // expressions of the text; strides empty = compact
};

// By tensor name.
std::map<std::string, TensorShape> tensor_shapes(const std::string& canonical_text);

// Value of an expression over integers, names, + - * // % and parentheses; false when it uses anything else
// or a name that `values` does not have.
bool evaluate(const std::string& expression, const std::map<std::string, int64_t>& values, int64_t* out);

}  // namespace tool
