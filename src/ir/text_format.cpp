#include "ir/text_format.h"

#include <algorithm>
#include <vector>

#include "ir/text_grammar.h"
#include "ir/text_lexer.h"
#include "ir/tile_op.h"

namespace tilegen::ir {
namespace {

using text::Token;
using text::TokenKind;

constexpr size_t kIndent = 2, kContinued = 4;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Reserved words behind which an operand begins.
bool takes_operand(const Token& t) {
  return t.kind == TokenKind::name &&
         is_one_of(t.text, {"if", "while", "in", "and", "or", "return", "switch", "case", "assert"});
}
// No name that is indexed or called.
bool is_keyword(const Token& t) { return takes_operand(t) || t.is("grid") || t.is("strides"); }

bool is_infix(const Token& t) {
  return is_one_of(t.text, {"+",  "-",  "*",  "/",   "//",  "%",  "<",  "<=", ">",   ">=", "==",  "!=",
                            "&",  "|",  "^",  "<<",  ">>",  "=",  "+=", "-=", "*=",  "/=", "//=", "%=",
                            "&=", "|=", "^=", "<<=", ">>=", "->", "..", ":+", "and", "or"}) &&
         t.kind != TokenKind::string;
}

// What the parser takes before an operator that has one operand.
bool ends_operand(const Token& t) {
  if (t.kind == TokenKind::number || t.kind == TokenKind::string) return true;
  if (t.kind == TokenKind::name) return !takes_operand(t);
  return t.is(")") || t.is("]");
}

struct Line {
  size_t depth = 0;  // spaces in front
  std::string code, comment;
  bool blank_before = false;
};

class Formatter {
 public:
  explicit Formatter(std::string_view text) : text_(text), lexer_(text) {}

  std::string run() {
    size_t end = 0;  // of the token before
    for (;;) {
      const Token t = lexer_.next();
      const size_t begin =
          t.kind == TokenKind::end ? text_.size() : static_cast<size_t>(t.text.data() - text_.data());
      gap(text_.substr(end, begin - end));
      if (t.kind == TokenKind::end) break;
      token(t);
      end = begin + t.text.size();
    }
    return joined();
  }

 private:
  // White space and comments in front of a token.
  void gap(std::string_view between) {
    int breaks = 0;
    for (size_t at = 0; at < between.size(); ++at) {
      if (between[at] == '\n') {
        ++breaks;
        open_ = false;
      } else if (between[at] == ';') {
        const size_t stop = std::min(between.find('\n', at), between.size());
        comment(between.substr(at, stop - at), breaks);
        breaks = 0;
        at = stop - 1;
      }
    }
    blank_ = breaks > 1;
  }

  void comment(std::string_view words, int breaks) {
    while (!words.empty() && is_one_of(words.substr(words.size() - 1), {" ", "\t", "\r"}))
      words.remove_suffix(1);
    if (open_ && !lines_.empty()) {
      lines_.back().comment = words;
      return;
    }
    lines_.push_back(
        {kIndent * braces_ + (is_continued(Token()) ? kContinued : 0), "", std::string(words), breaks > 1});
  }

  void token(const Token& t) {
    const bool closes = t.is("}") && !lists_.empty();
    const bool list = closes && lists_.back();
    if (closes && !list && braces_ > 0) --braces_;
    if (!open_) {
      const bool joins = is_continued(t) && !(closes && !list);
      lines_.push_back({kIndent * braces_ + (joins ? kContinued : 0), std::string(t.text), "", blank_});
      open_ = true;
    } else {
      std::string& code = lines_.back().code;
      if (has_space(last_, t)) code += ' ';
      code += t.text;
    }
    if (closes) lists_.pop_back();
    note(t);
  }

  // Brackets are open, or an operator waits for its other operand.
  bool is_continued(const Token& t) const {
    if (brackets_ > 0 || (!lists_.empty() && lists_.back())) return true;
    if (last_.kind == TokenKind::end) return false;
    if (is_infix(last_) || last_.is(",") || last_.is(":")) return true;
    if (t.kind == TokenKind::string || (braces_ == 0 && is_one_of(t.text, {"asm", "llvm", "cycles"})))
      return true;
    return t.kind != TokenKind::end && is_infix(t) && !t.is("-");
  }

  void note(const Token& t) {
    if (t.is("(") || t.is("[")) ++brackets_;
    if ((t.is(")") || t.is("]")) && brackets_ > 0) --brackets_;
    if (t.kind == TokenKind::name) {
      const bool is_name = last_.is("kernel") || last_.is("program");
      if (!is_name && (op_from_text(t.text) || atomic_from_text(t.text) ||
                       is_one_of(t.text, {"argmax", "argmin", "sort", "topk", "compress", "param", "alloc"})))
        list_next_ = true;
      if (is_one_of(t.text, {"kernel", "fn", "atom", "if", "else", "while", "switch", "case", "serial",
                             "unroll", "vectorized", "pipelined", "parallel", "threads"}))
        list_next_ = false;
      if (t.is("with") && ends_operand(last_) && text::Lexer(lexer_).next().is("{")) list_next_ = true;
    }
    if (t.is("{")) {
      lists_.push_back(list_next_);
      if (!list_next_) ++braces_;
      list_next_ = false;
    }
    chosen_ = is_chosen_result(last_, t);
    unary_ = t.is("-") && !ends_operand(last_);
    of_number_ = t.is(":") && (last_.is("inf") || last_.is("nan") || last_.hex);
    last_ = t;
  }

  // The number in f:1(x); the lexer stands behind it.
  bool is_chosen_result(const Token& a, const Token& b) const {
    return a.is(":") && b.kind == TokenKind::number && text::Lexer(lexer_).next().is("(");
  }

  bool has_space(const Token& a, const Token& b) const {
    if (chosen_ || is_chosen_result(a, b)) return false;
    if (a.is("(") || a.is("[") || b.is(")") || b.is("]") || b.is(",")) return false;
    if (unary_) return false;  // of the minus in front
    const bool list = !lists_.empty() && lists_.back();
    if (list && (a.is("{") || b.is("}") || a.is("=") || b.is("="))) return false;
    const bool layout = a.is("at") && brackets_ > 0 && braces_ == 0;  // of an atom's operand
    if (b.is("(")) return a.kind != TokenKind::name || is_keyword(a) || layout;
    if (b.is("[")) return a.kind != TokenKind::name || is_keyword(a);
    if (b.is(":")) return false;
    // The type of a number: inf:f32, 0x7e01:f16.
    if (a.is(":")) return !of_number_;
    return true;
  }

  std::string joined() {
    align_comments();
    std::string out;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Line& l = lines_[i];
      const bool opens = i > 0 && lines_[i - 1].code.ends_with('{'), closes = l.code.starts_with('}');
      if (l.blank_before && i > 0 && !opens && !closes) out += '\n';
      std::string row = std::string(l.depth, ' ') + l.code;
      if (!l.comment.empty() && !l.code.empty()) row.resize(std::max(row.size(), column_[i]), ' ');
      out += row + l.comment + '\n';
    }
    return out;
  }

  // Of comments behind code, in lines that follow each other.
  void align_comments() {
    column_.assign(lines_.size(), 0);
    const auto beside = [&](size_t i) { return !lines_[i].comment.empty() && !lines_[i].code.empty(); };
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (!beside(i)) continue;
      size_t end = i, most = 0;
      while (end < lines_.size() && beside(end) && (end == i || !lines_[end].blank_before)) {
        most = std::max(most, lines_[end].depth + lines_[end].code.size() + 2);
        ++end;
      }
      for (; i < end; ++i) column_[i] = most;
      --i;
    }
  }

  const std::string_view text_;
  text::Lexer lexer_;
  std::vector<Line> lines_;
  std::vector<size_t> column_;
  std::vector<bool> lists_;  // of open braces: holds attributes or values, not statements
  size_t braces_ = 0;        // of statements
  size_t brackets_ = 0;
  Token last_;
  bool list_next_ = false, unary_ = false, of_number_ = false, chosen_ = false;
  bool open_ = false;   // the last line goes on
  bool blank_ = false;  // a blank line stands in front of the next token
};

}  // namespace

std::string format_text(std::string_view text) { return Formatter(text).run(); }

}  // namespace tilegen::ir
