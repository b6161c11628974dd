// Lines of a C source that is being written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tilegen::emit {

class CSource {
 public:
  void line(std::string_view text) { fill(reserve(), text); }
  // A line that goes on with the one above it.
  void continuation(std::string_view text);
  void blank() { lines_.emplace_back(); }
  // A line that is filled later, or left out.
  size_t reserve();
  void fill(size_t place, std::string_view text);

  void open(std::string_view comment = {});
  void close();

  // A macro of the source, which is defined where it was used; gives its name.
  std::string macro(std::string_view name, std::string_view parameters, std::string_view body);
  std::string macros() const;
  void include_math() { math_ = true; }
  bool includes_math() const { return math_; }

  std::string text() const;

 private:
  struct Line {
    std::string text;
    int indent = 0;
    bool kept = true;
  };
  std::vector<Line> lines_;
  int indent_ = 1;
  std::map<std::string, std::string, std::less<>> macros_;
  bool math_ = false;
};

std::string quoted(std::string_view text);
std::string number(int64_t value);
std::string upper(std::string_view text);
// "a, b"
std::string joined(const std::vector<std::string>& parts, std::string_view between = ", ");

}  // namespace tilegen::emit
