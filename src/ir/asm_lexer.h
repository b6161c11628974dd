// Words of the text of instructions (ir/native_asm.h, ir/matrix_asm.h).
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace tilegen::ir::assembly {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_word(char c) { return is_letter(c) || is_digit(c); }

struct AsmToken {
  enum class Kind : uint8_t { end, word, number, operand, symbol } kind = Kind::end;
  std::string_view text;
  size_t operand = 0;
  bool is(std::string_view s) const { return kind != Kind::end && text == s; }
};

// Words hold the points of their modifiers: "add.rn.f32", ".reg".
class AsmLexer {
 public:
  AsmLexer(std::string_view text, bool lines) : text_(text), lines_(lines) {}

  AsmToken next() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || (text_[pos_] == '\n' && !lines_))) ++pos_;
    AsmToken t;
    if (pos_ >= text_.size()) return t;
    const size_t start = pos_;
    const char c = text_[pos_];
    const char after = pos_ + 1 < text_.size() ? text_[pos_ + 1] : '\0';
    if (is_letter(c) || (c == '.' && is_letter(after))) {
      t.kind = AsmToken::Kind::word;
      for (++pos_; pos_ < text_.size() && (is_word(text_[pos_]) || text_[pos_] == '.');) ++pos_;
    } else if (is_digit(c)) {
      t.kind = AsmToken::Kind::number;
      while (pos_ < text_.size() && (is_word(text_[pos_]) || text_[pos_] == '.')) ++pos_;
    } else if (c == '$' && is_digit(after)) {
      t.kind = AsmToken::Kind::operand;
      for (++pos_; pos_ < text_.size() && is_digit(text_[pos_]);) ++pos_;
      const auto [end, bad] = std::from_chars(text_.data() + start + 1, text_.data() + pos_, t.operand);
      if (bad != std::errc()) t.operand = SIZE_MAX;
    } else {
      t.kind = AsmToken::Kind::symbol;
      ++pos_;
    }
    t.text = text_.substr(start, pos_ - start);
    return t;
  }

 private:
  std::string_view text_;
  size_t pos_ = 0;
  bool lines_;  // a '\n' is a token
};

}  // namespace tilegen::ir::assembly
