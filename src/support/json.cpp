// Cursors and writing. Parsing itself is in json_parse.cpp.
#include "support/json.h"

#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen {

const char* json_kind_name(JsonKind k) {
  switch (k) {
    case JsonKind::null: return "null";
    case JsonKind::boolean: return "a boolean";
    case JsonKind::integer: return "an integer";
    case JsonKind::number: return "a number";
    case JsonKind::string: return "a string";
    case JsonKind::array: return "an array";
    case JsonKind::object: return "an object";
  }
  return "a value";
}

void JsonDocument::fail(std::string path, std::string message, std::string hint) {
  if (failed()) return;
  error_ = Error(DiagCode::json_error, std::move(path), std::move(message), std::move(hint));
  error_.diagnostics[0].stage = what_;
}

const JsonNode& JsonCursor::node() const { return doc_->values().nodes[node_]; }
const std::string& JsonCursor::text(uint32_t of) const { return doc_->values().texts[of]; }

JsonKind JsonCursor::kind() const { return *this ? node().kind : JsonKind::null; }

std::string JsonCursor::shown() const {
  if (!*this) return "nothing";
  const JsonNode& n = node();
  switch (n.kind) {
    case JsonKind::boolean: return n.integer ? "true" : "false";
    case JsonKind::integer: return std::to_string(n.integer);
    case JsonKind::number: return text(n.text).substr(0, 40);
    case JsonKind::string: {
      const std::string& s = text(n.text);
      return s.size() <= 60 ? json_quoted(s) : json_quoted(std::string_view(s).substr(0, 57)) + "...";
    }
    default: return json_kind_name(n.kind);
  }
}

void JsonCursor::refuse_with(std::string message, std::string_view hint) const {
  if (doc_) doc_->fail(path_, std::move(message), std::string(hint));
}

void JsonCursor::refuse(std::string_view expected, std::string_view hint) const {
  refuse_with("expected " + std::string(expected) + ", got " + shown(), hint);
}

bool JsonCursor::is(JsonKind k, std::string_view hint) const {
  if (!*this) return false;
  if (kind() == k) return true;
  refuse(json_kind_name(k), hint);
  return false;
}

JsonCursor JsonCursor::object(std::initializer_list<std::string_view> keys) const {
  return object(std::span(keys.begin(), keys.size()));
}

JsonCursor JsonCursor::object(std::span<const std::string_view> keys) const {
  std::string known;
  for (std::string_view k : keys) known += (known.empty() ? "" : ", ") + std::string(k);
  if (!is(JsonKind::object, "an object with the keys " + known)) return {};
  for (uint32_t n = node().first; n != kNone; n = doc_->values().nodes[n].next) {
    const std::string& key = text(doc_->values().nodes[n].key);
    NearestName nearest(key);
    bool found = false;
    for (std::string_view k : keys) {
      nearest.offer(k);
      found = found || k == key;
    }
    if (found) continue;
    doc_->fail(path_ + "." + key.substr(0, 60),
               "unknown key " + json_quoted(key.substr(0, 60)) + ", expected one of " + known,
               nearest.hint("remove the key"));
    return {};
  }
  return *this;
}

uint32_t JsonCursor::member(std::string_view key) const {
  if (kind() != JsonKind::object) return kNone;
  for (uint32_t n = node().first; n != kNone; n = doc_->values().nodes[n].next)
    if (text(doc_->values().nodes[n].key) == key) return n;
  return kNone;
}

JsonCursor JsonCursor::optional(std::string_view key) const {
  uint32_t n = member(key);
  return n == kNone ? JsonCursor() : JsonCursor(doc_, n, path_ + "." + std::string(key));
}

JsonCursor JsonCursor::required(std::string_view key) const {
  if (!is(JsonKind::object, "an object")) return {};
  JsonCursor c = optional(key);
  if (!c)
    doc_->fail(path_ + "." + std::string(key),
               "expected the key \"" + std::string(key) + "\", got an object without it", "add the key");
  return c;
}

std::vector<JsonCursor> JsonCursor::array() const {
  std::vector<JsonCursor> out;
  if (!is(JsonKind::array, "put the values in [ ]")) return out;
  for (uint32_t n = node().first; n != kNone; n = doc_->values().nodes[n].next)
    out.push_back(JsonCursor(doc_, n, path_ + "[" + std::to_string(out.size()) + "]"));
  return out;
}

int64_t JsonCursor::integer(int64_t lo, int64_t hi, int64_t absent) const {
  if (!*this) return absent;
  const std::string range = "between " + std::to_string(lo) + " and " + std::to_string(hi);
  if (!is(JsonKind::integer, "an integer " + range)) return absent;
  int64_t v = node().integer;
  if (v >= lo && v <= hi) return v;
  refuse("an integer " + range, "choose a value in that range");
  return absent;
}

double JsonCursor::number(double absent) const {
  if (kind() == JsonKind::integer) return static_cast<double>(node().integer);
  return is(JsonKind::number, "a number") ? node().number : absent;
}

bool JsonCursor::boolean(bool absent) const {
  return is(JsonKind::boolean, "true or false") ? node().integer != 0 : absent;
}

std::string JsonCursor::string(std::string_view absent) const {
  return is(JsonKind::string, "put the value in double quotes") ? text(node().text)
                                                                : std::string(absent);
}

size_t JsonCursor::choice(std::span<const char* const> names, size_t absent) const {
  std::string known;
  for (const char* n : names) known += (known.empty() ? "" : ", ") + std::string(n);
  if (!*this) return absent;
  if (!is(JsonKind::string, "one of " + known)) return absent;
  const std::string& s = text(node().text);
  NearestName nearest(s);
  for (size_t i = 0; i < names.size(); i++) {
    if (s == names[i]) return i;
    nearest.offer(names[i]);
  }
  refuse("one of " + known, nearest.hint("use one of the names"));
  return absent;
}

namespace {

// Length of the well-formed UTF-8 sequence at the start of `s`; 0 when there is none.
size_t utf8_length(std::string_view s) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  unsigned char c = byte(0);
  if (c < 0x80) return 1;
  size_t n = c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
  if (n == 0 || s.size() < n) return 0;
  for (size_t i = 1; i < n; i++)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (c == 0xe0 && byte(1) < 0xa0) return 0;                    // overlong
  if (c == 0xed && byte(1) > 0x9f) return 0;                    // surrogate
  if (c == 0xf0 && byte(1) < 0x90) return 0;                    // overlong
  if (c == 0xf4 && byte(1) > 0x8f) return 0;                    // above U+10FFFF
  return n;
}

}  // namespace

std::string json_quoted(std::string_view s) {
  static const char kHex[] = "0123456789abcdef";
  std::string r = "\"";
  while (!s.empty()) {
    size_t n = utf8_length(s);
    auto c = static_cast<unsigned char>(s[0]);
    if (n == 0) r += "\xef\xbf\xbd", n = 1;
    else if (c == '"' || c == '\\') r += '\\', r += s[0];
    else if (c == '\n') r += "\\n";
    else if (c == '\t') r += "\\t";
    else if (c < 0x20 || c == 0x7f) r += std::string("\\u00") + kHex[c >> 4] + kHex[c & 15];
    else r += s.substr(0, n);
    s.remove_prefix(n);
  }
  return r + "\"";
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) text_ += ",";
  has_items_.back() = true;
  text_ += "\n" + std::string(has_items_.size() * 2, ' ');
}

void JsonWriter::close(char bracket) {
  bool items = has_items_.back();
  has_items_.pop_back();
  if (items) text_ += "\n" + std::string(has_items_.size() * 2, ' ');
  text_ += bracket;
  if (has_items_.empty()) text_ += "\n";
}

void JsonWriter::begin_object() {
  separate();
  text_ += "{";
  has_items_.push_back(false);
}
void JsonWriter::begin_array() {
  separate();
  text_ += "[";
  has_items_.push_back(false);
}
void JsonWriter::end_object() { close('}'); }
void JsonWriter::end_array() { close(']'); }

void JsonWriter::key(std::string_view name) {
  separate();
  text_ += json_quoted(name) + ": ";
  after_key_ = true;
}
void JsonWriter::value(std::string_view s) {
  separate();
  text_ += json_quoted(s);
}
void JsonWriter::value(int64_t v) {
  separate();
  text_ += std::to_string(v);
}
void JsonWriter::flag(std::string_view name, bool v) {
  key(name);
  separate();
  text_ += v ? "true" : "false";
}

}  // namespace tilegen
