// Tokens of the .tl text form, made one at a time so that memory stays independent of the text's length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilegen::ir::text {

enum class TokenKind : uint8_t { end, name, number, symbol, string, bad };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;    // the whole token; of a bad one, its first byte
  std::string_view body;    // number: the part before the suffix; string: what stands between the marks
  std::string_view suffix;  // number: letters and digits glued after it
  bool fractional = false;  // number: has a point or an exponent
  bool hex = false;         // number: 0x...; body is the digits after 0x
  int base = 10;            // number: 2 of 0b..., 16 of 0x...
  bool first_on_line = false;
  uint32_t line = 1;
  uint32_t column = 1;

  std::string digits() const;  // number: body without the _ that part it

  bool is(std::string_view symbol_or_word) const {
    return (kind == TokenKind::symbol || kind == TokenKind::name) && text == symbol_or_word;
  }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();

 private:
  void skip_blanks();
  void read_number(Token& t);
  void read_digits(bool (*is_one)(char));
  size_t end_of_string(size_t at) const;
  char peek(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }

  std::string_view text_;
  size_t pos_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
  uint32_t last_token_line_ = 0;
};

// "'word'", "number 12", "end of text", "byte 0xff": how a message names what stands in the text. Long tokens
// are cut.
std::string describe(const Token& t);

}  // namespace tilegen::ir::text
