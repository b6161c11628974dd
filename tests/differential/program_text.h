// The text of a program as lines and tokens, for edits that need not know what they mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilegen::differential {

struct Token {
  enum class Kind : uint8_t { name, number, sign } kind = Kind::sign;
  size_t line = 0, begin = 0, length = 0;  // within the line
  std::string text;
};

class ProgramText {
 public:
  // `text` as ir::print_program writes it: a statement a line, its body between a "{" that ends the line and
  // the line of its "}".
  explicit ProgramText(const std::string& text);
  std::string text() const;

  std::vector<std::string>& lines() { return lines_; }
  const std::vector<std::string>& lines() const { return lines_; }
  std::vector<Token> tokens() const;
  void replace(const Token& t, const std::string& with) { lines_[t.line].replace(t.begin, t.length, with); }

  // Lines of statements, allocations left out: their first ones. The last line of the statement that begins
  // at `line`.
  std::vector<size_t> statements() const;
  size_t end_of(size_t line) const;
  // Lines that begin with a word.
  std::vector<size_t> lines_of(std::string_view word) const;

  static std::string_view first_word(std::string_view line);
  static std::string_view indent_of(std::string_view line);

 private:
  std::vector<std::string> lines_;
};

// The type that a literal ends in, "f32" of "1.5f32"; empty for those of i64.
std::string_view literal_type(std::string_view number);

}  // namespace tilegen::differential
