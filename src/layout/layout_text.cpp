// The text form of layouts and fragments. One grammar, printed and read back exactly:
//   layout   = "(" [ n { "," n } ] ")" "->" "[" part { ";" part } "]" [ "swizzle(" b "," b "," b ")" ] [ "@"
//   bytes ] part     = output ":" terms | "r" ":" replica-terms terms    = "0" | term { "+" term } term = "d"
//   dim "/" weight "%" extent "*" stride replica terms name the output they add to:  "o" output "/" weight
//   "%" extent "*" stride fragment = "threads" n ":" layout
#include "layout/fragment.h"
#include "support/diag_codes.h"

namespace tilegen::layout {

namespace {

void append_digit(std::string& text, bool& first, char letter, int number, const Digit& d) {
  if (!first) text += " + ";
  first = false;
  text += letter + std::to_string(number) + "/" + std::to_string(d.weight) + "%" + std::to_string(d.extent) +
          "*" + std::to_string(d.stride);
}

// A cursor over the text; blanks are skipped before every token. After the first failure everything fails.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool failed() const { return !error_.empty(); }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }

  bool try_token(std::string_view token) {
    skip();
    if (failed() || text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!try_token(token)) fail("expected '" + std::string(token) + "'");
  }
  int64_t number() {
    skip();
    if (failed()) return 0;
    size_t end = at_;
    int64_t value = 0;
    for (; end < text_.size() && text_[end] >= '0' && text_[end] <= '9'; ++end)
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[end] - '0'}, &value)) {
        fail("number too large");
        return 0;
      }
    if (end == at_) fail("expected a number");
    at_ = end;
    return value;
  }
  int small_number() {
    int64_t value = number();
    if (value > 1 << 20) fail("number too large");
    return failed() ? 0 : static_cast<int>(value);
  }
  void fail(std::string what) {
    if (failed()) return;
    error_ = std::move(what) + " at column " + std::to_string(at_ + 1);
  }
  Error error(const char* what) const {
    return Error(DiagCode::syntax_error, what, error_ + " in '" + std::string(text_.substr(0, 200)) + "'",
                 "the form is \"(128,32) -> [0: d0/1%128*32 + d1/1%32*1] swizzle(3,4,3)@2\"");
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
  std::string error_;
};

Digit read_digit(Reader& in, bool replica, int output) {
  Digit d;
  in.expect(replica ? "o" : "d");
  const int named = in.small_number();
  d.dim = replica ? kReplica : named;
  d.output = replica ? named : output;
  in.expect("/");
  d.weight = in.number();
  in.expect("%");
  d.extent = in.number();
  in.expect("*");
  d.stride = in.number();
  return d;
}

void read_terms(Reader& in, bool replica, int output, std::vector<Digit>& digits) {
  if (!replica && in.try_token("0")) return;
  do digits.push_back(read_digit(in, replica, output));
  while (!in.failed() && in.try_token("+"));
}

Expected<Layout> read_layout(Reader& in) {
  std::vector<int64_t> shape;
  std::vector<Digit> digits;
  int outputs = 0;
  in.expect("(");
  if (!in.try_token(")")) {
    do shape.push_back(in.number());
    while (!in.failed() && in.try_token(","));
    in.expect(")");
  }
  in.expect("->");
  in.expect("[");
  do {
    const bool replica = in.try_token("r");
    if (!replica && in.small_number() != outputs) in.fail("outputs are numbered in order");
    in.expect(":");
    read_terms(in, replica, outputs, digits);
    if (replica) break;
    ++outputs;
  } while (!in.failed() && in.try_token(";"));
  in.expect("]");
  Swizzle s;
  if (in.try_token("swizzle")) {
    in.expect("(");
    s.bits = in.small_number();
    in.expect(",");
    s.base = in.small_number();
    in.expect(",");
    s.shift = in.small_number();
    in.expect(")");
  }
  const int element_bytes = in.try_token("@") ? in.small_number() : 1;
  if (!in.at_end()) in.fail("expected the end");
  if (in.failed()) return in.error("layout");
  return Layout::make(std::move(shape), std::move(digits), outputs, s, element_bytes);
}

}  // namespace

std::string Layout::to_text() const {
  std::string text = "(";
  for (size_t k = 0; k < shape_.size(); ++k) text += (k ? "," : "") + std::to_string(shape_[k]);
  text += ") -> [";
  for (int o = 0; o < outputs_; ++o) {
    text += (o ? "; " : "") + std::to_string(o) + ": ";
    bool first = true;
    for (const Digit& d : digits_)
      if (d.output == o && d.dim != kReplica) append_digit(text, first, 'd', d.dim, d);
    if (first) text += "0";
  }
  bool first = true;
  for (const Digit& d : digits_) {
    if (d.dim != kReplica) continue;
    if (first) text += "; r: ";
    append_digit(text, first, 'o', d.output, d);
  }
  text += "]";
  if (!swizzle_.none())
    text += " swizzle(" + std::to_string(swizzle_.bits) + "," + std::to_string(swizzle_.base) + "," +
            std::to_string(swizzle_.shift) + ")";
  if (element_bytes_ != 1 || !swizzle_.none())
    text += std::string(swizzle_.none() ? " " : "") + "@" + std::to_string(element_bytes_);
  return text;
}

Expected<Layout> Layout::from_text(std::string_view text) {
  Reader in(text);
  return read_layout(in);
}

std::string Fragment::to_text() const {
  return "threads " + std::to_string(threads_) + " : " + map_.to_text();
}

Expected<Fragment> Fragment::from_text(std::string_view text) {
  Reader in(text);
  in.expect("threads");
  const int64_t threads = in.number();
  in.expect(":");
  if (in.failed()) return in.error("fragment");
  Expected<Layout> map = read_layout(in);
  if (!map) return std::move(map.error());
  return make(std::move(*map), threads);
}

}  // namespace tilegen::layout
