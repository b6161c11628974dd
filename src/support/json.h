// Bounded reading and plain writing of JSON.
//
// JsonDocument::parse refuses (json_error, limit_bytes) text that is too long, too deep, has too many values,
// is malformed or repeats a key. What it accepts is read through JsonCursors. A cursor knows its path
// ("$.kernels[0].op"); the first misuse of a value (wrong type, out of range, unknown or missing key) becomes
// the document's error, later ones are dropped, and every read after it still answers with a harmless
// default, so that reading code needs no check per field:
//
//   JsonCursor k = doc.root().object({"name", "threads"});
//   std::string name = k.required("name").string();
//   int64_t threads = k.optional("threads").integer(1, 1024, 128);
//   if (doc.failed()) return doc.error();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"
#include "support/limits.h"

namespace tilegen {

enum class JsonKind : uint8_t { null, boolean, integer, number, string, array, object };
const char* json_kind_name(JsonKind k);  // with article: "an integer"

// A value of a document, in a list of them.
struct JsonNode {
  static constexpr uint32_t kNone = 0xffffffffu;
  JsonKind kind = JsonKind::null;
  uint32_t key = 0;        // into the texts, of an object's member
  uint32_t text = 0;       // into the texts: a string, or a number's spelling
  uint32_t first = kNone;  // child
  uint32_t next = kNone;   // sibling
  int64_t integer = 0;
  double number = 0;
};

// The values of a document, the outermost first.
struct JsonValues {
  std::vector<JsonNode> nodes;
  std::vector<std::string> texts;
};

class JsonDocument;

// Refers to its document, which must stay where it is. A cursor of nothing (an absent optional key, a read
// after an error) is false and gives defaults.
class JsonCursor {
 public:
  JsonCursor() = default;
  // At a node of the document.
  JsonCursor(JsonDocument* doc, uint32_t node, std::string path)
      : doc_(doc), node_(node), path_(std::move(path)) {}
  explicit operator bool() const { return node_ != kNone; }
  JsonKind kind() const;
  const std::string& path() const { return path_; }

  // Checks that this is an object with no keys but the given ones; returns itself, or nothing.
  JsonCursor object(std::initializer_list<std::string_view> keys) const;
  JsonCursor object(std::span<const std::string_view> keys) const;
  JsonCursor required(std::string_view key) const;  // a member of an object
  JsonCursor optional(std::string_view key) const;
  std::vector<JsonCursor> array() const;            // elements

  int64_t integer(int64_t lo, int64_t hi, int64_t absent = 0) const;
  double number(double absent = 0) const;
  bool boolean(bool absent = false) const;
  std::string string(std::string_view absent = {}) const;
  // Index of the string among `names`.
  size_t choice(std::span<const char* const> names, size_t absent = 0) const;

  // Reports this value: "expected <expected>, got <value>", or a message of the caller's own.
  void refuse(std::string_view expected, std::string_view hint) const;
  void refuse_with(std::string message, std::string_view hint) const;
  std::string shown() const;  // the value as a message shows it, shortened

 private:
  static constexpr uint32_t kNone = JsonNode::kNone;
  uint32_t member(std::string_view key) const;
  bool is(JsonKind k, std::string_view hint) const;
  const JsonNode& node() const;
  const std::string& text(uint32_t of) const;

  JsonDocument* doc_ = nullptr;
  uint32_t node_ = kNone;
  std::string path_;
};

class JsonDocument {
 public:
  static constexpr int kMaxDepth = 32;
  static constexpr size_t kMaxValues = 1 << 20;

  // `what` names the text in messages, e.g. "schedule".
  static Expected<std::unique_ptr<JsonDocument>> parse(std::string_view text, std::string_view what,
                                                       const Limits& limits);
  JsonDocument(std::string_view what, JsonValues values) : what_(what), values_(std::move(values)) {}
  const JsonValues& values() const { return values_; }
  JsonCursor root() { return JsonCursor(this, 0, "$"); }

  bool failed() const { return !error_.diagnostics.empty(); }
  const Error& error() const { return error_; }
  // The first failure counts.
  void fail(std::string path, std::string message, std::string hint);

 private:
  std::string what_;
  JsonValues values_;
  Error error_;
};

// Writes indented JSON, one member or element per line, keys in the order given. Bytes that are no UTF-8
// become U+FFFD.
class JsonWriter {
 public:
  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  void key(std::string_view name);
  void value(std::string_view s);
  void value(int64_t v);
  void member(std::string_view name, std::string_view s) { key(name), value(s); }
  void member(std::string_view name, int64_t v) { key(name), value(v); }
  void flag(std::string_view name, bool v);

  const std::string& text() const { return text_; }

 private:
  void separate();
  void close(char bracket);
  std::string text_;
  std::vector<bool> has_items_;
  bool after_key_ = false;
};

// `s` as a JSON string literal with its quotes.
std::string json_quoted(std::string_view s);

}  // namespace tilegen
