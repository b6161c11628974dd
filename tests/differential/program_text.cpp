#include "program_text.h"

#include <array>
#include <cctype>
#include <sstream>

namespace tilegen::differential {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "0", "1.5f32", "1e-05f32", "0x7e01:f16"; of "0 .. 4" the digits only.
size_t number_length(std::string_view s) {
  const auto letter = [&](size_t i) { return i < s.size() ? s[i] : '\0'; };
  size_t n = 1;
  for (;; ++n) {
    const char c = letter(n);
    const bool exponent = (c == '-' || c == '+') && letter(n - 1) == 'e' && s.substr(0, 2) != "0x";
    const bool point = c == '.' && letter(n + 1) != '.';
    const bool type = c == ':' && s.substr(0, 2) == "0x";
    if (!is_word(c) && !exponent && !point && !type) return n;
  }
}

size_t sign_length(std::string_view s) {
  for (std::string_view sign : {":+", "..", "->", "//", "<=", ">=", "==", "!=", "<<", ">>"})
    if (s.substr(0, 2) == sign) return 2;
  return 1;
}

}  // namespace

ProgramText::ProgramText(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines_.push_back(line);
}

std::string ProgramText::text() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

std::vector<Token> ProgramText::tokens() const {
  std::vector<Token> list;
  for (size_t l = 1; l < lines_.size(); ++l) {  // after the header
    const std::string_view line = lines_[l];
    for (size_t i = 0; i < line.size();) {
      const std::string_view rest = line.substr(i);
      if (rest[0] == ';') break;
      size_t length = 1;
      if (rest[0] == ' ') {
        ++i;
        continue;
      }
      Token t{Token::Kind::sign, l, i, 0, ""};
      if (std::isdigit(static_cast<unsigned char>(rest[0])) != 0) {
        t.kind = Token::Kind::number;
        length = number_length(rest);
      } else if (is_word(rest[0])) {
        t.kind = Token::Kind::name;
        while (length < rest.size() && is_word(rest[length])) ++length;
      } else {
        length = sign_length(rest);
      }
      t.length = length;
      t.text = rest.substr(0, length);
      list.push_back(std::move(t));
      i += length;
    }
  }
  return list;
}

std::string_view ProgramText::first_word(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  size_t end = begin;
  while (end < line.size() && is_word(line[end])) ++end;
  return line.substr(begin, end - begin);
}

std::string_view ProgramText::indent_of(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  return line.substr(0, begin == std::string_view::npos ? line.size() : begin);
}

std::vector<size_t> ProgramText::statements() const {
  std::vector<size_t> list;
  for (size_t l = 1; l < lines_.size(); ++l) {
    const std::string_view word = first_word(lines_[l]);
    if (lines_[l].rfind("  ", 0) == 0 && !word.empty() && word != "alloc") list.push_back(l);
  }
  return list;
}

std::vector<size_t> ProgramText::lines_of(std::string_view word) const {
  std::vector<size_t> list;
  for (size_t l = 1; l < lines_.size(); ++l)
    if (first_word(lines_[l]) == word) list.push_back(l);
  return list;
}

// The "}" that ends a body stands under the statement; "} else {" does not end it.
size_t ProgramText::end_of(size_t line) const {
  const std::string& first = lines_[line];
  if (first.empty() || first.back() != '{') return line;
  const std::string close = std::string(indent_of(first)) + "}";
  for (size_t l = line + 1; l < lines_.size(); ++l)
    if (lines_[l] == close) return l;
  return line;
}

std::string_view literal_type(std::string_view number) {
  static constexpr std::string_view kTypes[] = {"bf16",     "f16",      "f32", "f64", "i8",  "u8",   "i32",
                                                "i64",      "i16",      "u16", "u32", "u64", "e4m3", "e5m2",
                                                "e4m3fnuz", "e5m2fnuz", "i4",  "u4",  "i2",  "u2"};
  for (std::string_view t : kTypes)
    if (number.size() > t.size() && number.substr(number.size() - t.size()) == t)
      return number.substr(number.size() - t.size());
  return {};
}

}  // namespace tilegen::differential
