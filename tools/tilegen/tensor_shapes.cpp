#include "tensor_shapes.h"

#include <cctype>
#include <charconv>
#include <sstream>
#include <string_view>

namespace tool {

namespace {

// Splits "a, b + 1]..." up to the closing bracket; returns what stands after it.
std::string_view split_list(std::string_view text, std::vector<std::string>& out) {
  size_t begin = 0, i = 0;
  for (int depth = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    const bool end = text[i] == ']';
    if ((text[i] == ',' && depth == 0) || end) {
      if (i > begin) out.emplace_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
    if (end) return text.substr(i + 1);
  }
  return {};
}

class Evaluator {
 public:
  Evaluator(std::string_view text, const std::map<std::string, int64_t>& values)
      : text_(text), values_(values) {}
  bool run(int64_t* out) { return sum(out) && peek() == '\0'; }

 private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool sum(int64_t* out) {
    if (!product(out)) return false;
    for (;;) {
      int64_t right = 0;
      const bool plus = take('+');
      if (!plus && !take('-')) return true;
      if (!product(&right)) return false;
      if (plus ? __builtin_add_overflow(*out, right, out) : __builtin_sub_overflow(*out, right, out))
        return false;
    }
  }
  bool product(int64_t* out) {
    if (!leaf(out)) return false;
    for (;;) {
      int64_t right = 0;
      if (take('*')) {
        if (!leaf(&right) || __builtin_mul_overflow(*out, right, out)) return false;
      } else if (take('/')) {
        if (!take('/') || !leaf(&right) || right <= 0) return false;
        *out = *out / right - (*out % right < 0);
      } else if (take('%')) {
        if (!leaf(&right) || right <= 0) return false;
        *out = ((*out % right) + right) % right;
      } else {
        return true;
      }
    }
  }
  bool leaf(int64_t* out) {
    if (take('(')) return ++depth_ < 64 && sum(out) && take(')');
    const bool negative = take('-');
    peek();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word.empty()) return false;
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *out);
      if (error != std::errc() || end != word.data() + word.size()) return false;
    } else {
      const auto it = values_.find(word);
      if (it == values_.end()) return false;
      *out = it->second;
    }
    return !negative || !__builtin_sub_overflow(int64_t{0}, *out, out);
  }

  std::string_view text_;
  const std::map<std::string, int64_t>& values_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::map<std::string, TensorShape> tensor_shapes(const std::string& canonical_text) {
  std::map<std::string, TensorShape> out;
  std::istringstream lines(canonical_text);
  for (std::string text; std::getline(lines, text);) {
    std::istringstream words(text);
    std::string keyword, name;
    if (!(words >> keyword) || keyword != "tensor" || !std::getline(words >> std::ws, name, ':')) continue;
    while (!name.empty() && name.back() == ' ') name.pop_back();
    TensorShape& shape = out[name];
    const size_t open = text.find('[');
    if (open == std::string::npos) continue;
    std::string_view rest = split_list(std::string_view(text).substr(open + 1), shape.extents);
    if (rest.find("strides") != std::string_view::npos)
      split_list(rest.substr(rest.find('[') + 1), shape.strides);
  }
  return out;
}

bool evaluate(const std::string& expression, const std::map<std::string, int64_t>& values, int64_t* out) {
  return Evaluator(expression, values).run(out);
}

}  // namespace tool
