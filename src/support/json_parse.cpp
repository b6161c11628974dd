// Parsing through nlohmann's event interface, which neither recurses nor throws: its own document type
// overflows the stack when it copies or destroys deep values, keeps the last of repeated keys and turns 2^64
// into a double. Events let us stop at the first value too many.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "support/diag_codes.h"
#include "support/json.h"

namespace tilegen {

namespace {

struct JsonBuilder {
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  struct Open {
    uint32_t node;
    uint32_t last_child = JsonNode::kNone;
    size_t count = 0;
    uint32_t key = 0;
    std::unordered_set<std::string> keys;
  };

  struct Failure {
    std::string path, message, hint;
  };

  std::string_view text;
  JsonValues values;
  std::vector<Open> open;
  std::optional<Failure> failure;  // the first

  bool fail(std::string message, std::string hint) {
    if (!failure) failure = Failure{path(), std::move(message), std::move(hint)};
    return false;
  }

  // Of the value being added.
  std::string path() const {
    std::string p = "$";
    for (const Open& o : open) {
      size_t index = &o == &open.back() ? o.count : o.count - 1;  // outer ones already count the open child
      if (values.nodes[o.node].kind == JsonKind::array) p += "[" + std::to_string(index) + "]";
      else if (!o.keys.empty()) p += "." + values.texts[o.key].substr(0, 60);
    }
    return p;
  }

  uint32_t keep(std::string s) {
    values.texts.push_back(std::move(s));
    return static_cast<uint32_t>(values.texts.size() - 1);
  }

  bool add(JsonNode n) {
    if (values.nodes.size() >= JsonDocument::kMaxValues)
      return fail("more than " + std::to_string(JsonDocument::kMaxValues) + " values", "split the text");
    auto id = static_cast<uint32_t>(values.nodes.size());
    if (!open.empty()) {
      Open& o = open.back();
      n.key = o.key;
      if (o.last_child == JsonNode::kNone) values.nodes[o.node].first = id;
      else values.nodes[o.last_child].next = id;
      o.last_child = id;
      o.count++;
    }
    values.nodes.push_back(n);
    return true;
  }

  bool begin(JsonKind k) {
    if (open.size() >= static_cast<size_t>(JsonDocument::kMaxDepth))
      return fail("nested deeper than " + std::to_string(JsonDocument::kMaxDepth) + " levels",
                  "flatten the value");
    if (!add({.kind = k})) return false;
    open.push_back({.node = static_cast<uint32_t>(values.nodes.size() - 1)});
    return true;
  }
  bool end() {
    open.pop_back();
    return true;
  }

  bool null() { return add({.kind = JsonKind::null}); }
  bool boolean(bool v) { return add({.kind = JsonKind::boolean, .integer = v}); }
  bool number_integer(number_integer_t v) { return add({.kind = JsonKind::integer, .integer = v}); }
  bool number_unsigned(number_unsigned_t v) {
    if (v <= static_cast<number_unsigned_t>(INT64_MAX)) return number_integer(static_cast<int64_t>(v));
    return number_float(static_cast<double>(v), std::to_string(v));
  }
  bool number_float(number_float_t v, const string_t& spelling) {
    return add({.kind = JsonKind::number, .text = keep(spelling), .number = v});
  }
  bool string(string_t& v) { return add({.kind = JsonKind::string, .text = keep(std::move(v))}); }
  bool binary(binary_t&) { return fail("binary data", "use text"); }
  bool start_object(size_t) { return begin(JsonKind::object); }
  bool end_object() { return end(); }
  bool start_array(size_t) { return begin(JsonKind::array); }
  bool end_array() { return end(); }
  bool key(string_t& name) {
    Open& o = open.back();
    bool fresh = o.keys.insert(name).second;
    o.key = keep(std::move(name));
    return fresh || fail("the key " + json_quoted(values.texts[o.key].substr(0, 60)) + " is given twice",
                         "keep one of them");
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& e) {
    size_t end = std::min(position == 0 ? 0 : position - 1, text.size());
    size_t line =
        1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(end), '\n'));
    size_t start = text.substr(0, end).rfind('\n');
    size_t column = end - (start == std::string_view::npos ? 0 : start + 1) + 1;
    std::string where = "line " + std::to_string(line) + ", column " + std::to_string(column);
    bool too_large = std::string_view(e.what()).find("out_of_range") != std::string_view::npos;
    if (too_large) return fail("a number at " + where + " is out of range", "use a finite 64-bit value");
    if (end >= text.size())
      return fail("the text ends too early, at " + where, "close every bracket and string");
    std::string_view at = text.substr(end, 20);
    return fail("malformed JSON at " + where + " near " + json_quoted(at.substr(0, at.find('\n'))),
                "write standard JSON: double quotes, no comments, no trailing commas");
  }
};

}  // namespace

Expected<std::unique_ptr<JsonDocument>> JsonDocument::parse(std::string_view text, std::string_view what,
                                                            const Limits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.text_bytes)
    return Error(DiagCode::limit_bytes, std::string(what),
                 "expected at most " + std::to_string(limits.text_bytes) + " bytes of JSON, got " +
                     std::to_string(text.size()),
                 "shorten the text or raise the limit");
  JsonBuilder builder{.text = text};
  builder.values.texts.emplace_back();
  const bool ok = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  auto doc = std::make_unique<JsonDocument>(what, std::move(builder.values));
  if (builder.failure)
    doc->fail(std::move(builder.failure->path), std::move(builder.failure->message),
              std::move(builder.failure->hint));
  else if (!ok)
    doc->fail("$", "malformed JSON", "write standard JSON");
  if (doc->failed()) return doc->error();
  return doc;
}

}  // namespace tilegen
