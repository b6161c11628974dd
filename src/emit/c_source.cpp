#include "emit/c_source.h"

#include <climits>

namespace tilegen::emit {
namespace {

constexpr size_t kColumns = 110;
constexpr int kSpaces = 2;
constexpr int kContinued = 2;  // indents of what goes on with a line

// Where a line of at most `room` columns may end: a space outside of strings, in as few parentheses as any in
// the second half of the room; npos where there is none.
size_t break_of(std::string_view text, size_t room) {
  size_t best = std::string_view::npos;
  int depth = 0, least = INT_MAX;
  bool in_string = false;
  for (size_t i = 0; i < text.size() && (i <= room || best == std::string_view::npos); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '(' || c == '{') ++depth;
    if (c == ')' || c == '}') --depth;
    if (c != ' ' || (depth > least && best > room / 2)) continue;
    best = i;
    least = depth;
  }
  return best;
}

void write_wrapped(std::string& out, std::string_view text, size_t indent) {
  size_t spaces = indent;
  while (spaces + text.size() > kColumns) {
    const size_t end = break_of(text, kColumns - spaces);
    if (end == std::string_view::npos) break;
    out.append(spaces, ' ').append(text.substr(0, end)) += '\n';
    text.remove_prefix(end + 1);
    spaces = indent + static_cast<size_t>(kContinued * kSpaces);
  }
  out.append(spaces, ' ').append(text) += '\n';
}

}  // namespace

size_t CSource::reserve() {
  lines_.push_back({{}, indent_, false});
  return lines_.size() - 1;
}

void CSource::fill(size_t place, std::string_view text) {
  lines_[place].text = text;
  lines_[place].kept = true;
}

void CSource::continuation(std::string_view text) {
  line(text);
  lines_.back().indent += kContinued;
}

void CSource::open(std::string_view comment) {
  line(comment.empty() ? std::string("{") : "{ /* " + std::string(comment) + " */");
  ++indent_;
}

void CSource::close() {
  --indent_;
  line("}");
}

std::string CSource::macro(std::string_view name, std::string_view parameters, std::string_view body) {
  macros_.try_emplace(std::string(name), std::string(parameters) + " " + std::string(body));
  return std::string(name);
}

std::string CSource::macros() const {
  std::string out;
  for (const auto& [name, rest] : macros_) out += "#define " + name + rest + "\n";
  return out;
}

std::string CSource::text() const {
  std::string out;
  for (const Line& l : lines_)
    if (l.kept && l.text.empty())
      out += '\n';
    else if (l.kept)
      write_wrapped(out, l.text, static_cast<size_t>(l.indent * kSpaces));
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?') {  // two question marks could begin a trigraph
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f) {
      for (int shift : {6, 3, 0})
        out += shift == 6 ? "\\" : "", out += static_cast<char>('0' + (byte >> shift & 7));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(int64_t value) {
  if (value == INT64_MAX) return "INT64_MAX";
  if (value == INT64_MIN) return "INT64_MIN";
  const std::string digits = std::to_string(value);
  return value > INT32_MAX || value < -INT32_MAX ? "INT64_C(" + digits + ")" : digits;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) out.append(out.empty() ? std::string_view() : between).append(part);
  return out;
}

}  // namespace tilegen::emit
