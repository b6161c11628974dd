// JSON as a tree that a test may change: what schedules are mutated as.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/json.h"

namespace tilegen::differential {

struct JsonTree {
  JsonKind kind = JsonKind::null;
  std::string text;  // of strings, and how a number is spelled
  bool truth = false;
  std::vector<std::pair<std::string, JsonTree>> items;  // members; elements have no key

  static JsonTree string(std::string s) { return {JsonKind::string, std::move(s), false, {}}; }
  static JsonTree number(std::string s) { return {JsonKind::integer, std::move(s), false, {}}; }
  static JsonTree boolean(bool b) { return {JsonKind::boolean, "", b, {}}; }
  static JsonTree array(std::vector<std::string> strings) {
    JsonTree t{JsonKind::array, "", false, {}};
    for (std::string& s : strings) t.items.emplace_back("", string(std::move(s)));
    return t;
  }
  const JsonTree* find(std::string_view key) const {
    for (const auto& [name, item] : items)
      if (name == key) return &item;
    return nullptr;
  }
  std::string string_at(std::string_view key) const {
    const JsonTree* t = find(key);
    return t ? t->text : "";
  }

  std::string print() const {
    switch (kind) {
      case JsonKind::null:
        return "null";
      case JsonKind::boolean:
        return truth ? "true" : "false";
      case JsonKind::integer:
      case JsonKind::number:
        return text;
      case JsonKind::string:
        return json_quoted(text);
      case JsonKind::array:
      case JsonKind::object:
        break;
    }
    std::string out;
    for (const auto& [name, item] : items)
      out += (out.empty() ? "" : ", ") + (kind == JsonKind::object ? json_quoted(name) + ": " : "") +
             item.print();
    return kind == JsonKind::object ? "{" + out + "}" : "[" + out + "]";
  }
};

// Of what JsonWriter writes.
class JsonTreeReader {
 public:
  explicit JsonTreeReader(std::string_view text) : text_(text) {}
  JsonTree read() {
    skip();
    const char c = text_[at_];
    if (c == '{' || c == '[') return read_items(c);
    if (c == '"') return JsonTree::string(read_string());
    std::string word;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-' || text_[at_] == '.'))
      word += text_[at_++];
    if (word == "true" || word == "false") return JsonTree::boolean(word == "true");
    return JsonTree::number(word);
  }

 private:
  void skip() {
    while (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == ',' || text_[at_] == ':')
      ++at_;
  }
  JsonTree read_items(char open) {
    JsonTree t{open == '{' ? JsonKind::object : JsonKind::array, "", false, {}};
    for (++at_, skip(); text_[at_] != '}' && text_[at_] != ']'; skip()) {
      std::string key = open == '{' ? read_string() : "";
      JsonTree item = read();
      t.items.emplace_back(std::move(key), std::move(item));
    }
    ++at_;
    return t;
  }
  std::string read_string() {
    std::string s;
    for (++at_; text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
      s += text_[at_];
    }
    ++at_;
    return s;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tilegen::differential
