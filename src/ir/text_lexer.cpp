#include "ir/text_lexer.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tilegen::ir::text {
namespace {

constexpr std::array<std::string_view, 21> kLongSymbols = {
    "//=", "<<=", ">>=", ":+", "->", "..", "//", "<=", ">=", "==", "!=",
    "<<",  ">>",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^="};  // those of three characters first
constexpr std::string_view kOneCharSymbols = "()[]{},:=+-*/%<>&|^";

// Locale-independent, and defined for every byte.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool is_bit(char c) { return c == '0' || c == '1'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

void Lexer::skip_blanks() {
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == '\n') {
      ++line_;
      line_start_ = ++pos_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++pos_;
    } else if (c == ';') {
      pos_ = std::min(text_.find('\n', pos_), text_.size());
    } else {
      return;
    }
  }
}

// Behind the quotation mark that ends the string begun at `at`; `at` where it does not end on its line, or
// has other characters than the printable ones of ASCII.
size_t Lexer::end_of_string(size_t at) const {
  for (size_t i = at + 1; i < text_.size() && text_[i] >= ' ' && text_[i] <= '~'; ++i)
    if (text_[i] == '"') return i + 1;
  return at;
}

std::string Token::digits() const {
  std::string all(body);
  std::erase(all, '_');
  return all;
}

// Behind digits, which _ may part: 1_000, 0x_ff.
void Lexer::read_digits(bool (*is_one)(char)) {
  for (;;) {
    size_t parted = 0;
    while (peek(parted) == '_') ++parted;
    if (!is_one(peek(parted))) return;
    pos_ += parted + 1;
  }
}

void Lexer::read_number(Token& t) {
  size_t start = pos_;
  if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
    t.hex = true;
    t.base = 16;
    start = pos_ += 2;
    read_digits(is_hex_digit);
  } else if (peek() == '0' && (peek(1) == 'b' || peek(1) == 'B')) {
    t.base = 2;
    start = pos_ += 2;
    read_digits(is_bit);
  } else {
    read_digits(is_digit);
    if (peek() == '.' && is_digit(peek(1))) {  // `0..n` is a range, not a number with a point
      t.fractional = true;
      ++pos_;
      read_digits(is_digit);
    }
    if (peek() == 'e' || peek() == 'E') {
      size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if (is_digit(peek(1 + sign))) {
        t.fractional = true;
        pos_ += 1 + sign;
        read_digits(is_digit);
      }
    }
  }
  t.body = text_.substr(start, pos_ - start);
  size_t suffix = pos_;
  while (is_word(peek())) ++pos_;
  t.suffix = text_.substr(suffix, pos_ - suffix);
}

Token Lexer::next() {
  skip_blanks();
  Token t;
  t.line = line_;
  t.column = static_cast<uint32_t>(pos_ - line_start_ + 1);
  t.first_on_line = line_ != last_token_line_;
  last_token_line_ = line_;
  if (pos_ >= text_.size()) return t;
  size_t start = pos_;
  char c = text_[pos_];
  if (is_letter(c)) {
    t.kind = TokenKind::name;
    while (is_word(peek())) ++pos_;
  } else if (is_digit(c)) {
    t.kind = TokenKind::number;
    read_number(t);
  } else if (const size_t end = c == '"' ? end_of_string(pos_) : pos_; end != pos_) {
    t.kind = TokenKind::string;
    t.body = text_.substr(start + 1, end - start - 2);
    pos_ = end;
  } else if (const auto symbol = std::find_if(
                 kLongSymbols.begin(), kLongSymbols.end(),
                 [&](std::string_view s) { return s[0] == c && text_.substr(pos_).starts_with(s); });
             symbol != kLongSymbols.end()) {
    t.kind = TokenKind::symbol;
    pos_ += symbol->size();
  } else {
    t.kind = kOneCharSymbols.find(c) != std::string_view::npos ? TokenKind::symbol : TokenKind::bad;
    ++pos_;
  }
  t.text = text_.substr(start, pos_ - start);
  return t;
}

std::string describe(const Token& t) {
  constexpr size_t kShown = 40;
  std::string shown(t.text.substr(0, kShown));
  if (t.text.size() > kShown) shown += "...";
  switch (t.kind) {
    case TokenKind::end:
      return "end of text";
    case TokenKind::number:
      return "number " + shown;
    case TokenKind::string:
      return "text " + shown;
    case TokenKind::bad:
      if (t.text[0] < ' ' || t.text[0] > '~') {
        char hex[16];
        std::snprintf(hex, sizeof hex, "byte 0x%02x", static_cast<unsigned char>(t.text[0]));
        return hex;
      }
      return "'" + shown + "'";
    case TokenKind::name:
    case TokenKind::symbol:
      return "'" + shown + "'";
  }
  return shown;
}

}  // namespace tilegen::ir::text
