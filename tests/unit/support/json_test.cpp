// Bounded JSON: what is refused and how it is told, cursors, writing.
#include "support/json.h"

#include <gtest/gtest.h>

namespace tilegen {
namespace {

std::string refusal(std::string_view text, const Limits& limits = {}) {
  auto doc = JsonDocument::parse(text, "test", limits);
  return doc ? "accepted" : doc.error().to_text();
}

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(Json, RefusesWhatOtherReadersLetPass) {
  EXPECT_EQ(refusal(nested(32)), "accepted");
  EXPECT_NE(refusal(nested(33)).find("nested deeper than 32"), std::string::npos);
  EXPECT_NE(refusal(std::string(100000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal(std::string(100000, '{')).find("malformed"), std::string::npos);
  EXPECT_EQ(refusal(R"({"a": {"b": 1, "b": 2}})"),
            "error [json_error] $.a.b: the key \"b\" is given twice (keep one of them)");
  EXPECT_EQ(refusal(R"([0, {"x": [1, {"k": 1, "k": 2}]}])"),
            "error [json_error] $[1].x[1].k: the key \"k\" is given twice (keep one of them)");
  EXPECT_NE(refusal("1e999").find("out of range"), std::string::npos);
  EXPECT_NE(refusal("NaN").find("malformed"), std::string::npos);
  Limits tight;
  tight.text_bytes = 4;
  EXPECT_EQ(refusal("[1,2]", tight),
            "error [limit_bytes] test: expected at most 4 bytes of JSON, got 5 (shorten the text or raise "
            "the limit)");
  std::string many = "[0";
  for (int i = 0; i < (1 << 20); i++) many += ",0";
  EXPECT_NE(refusal(many + "]").find("more than 1048576 values"), std::string::npos);
}

TEST(Json, MalformedTextIsLocated) {
  EXPECT_EQ(refusal("{\n  \"a\": 1,\n}"),
            "error [json_error] $.a: malformed JSON at line 3, column 1 near \"}\" (write standard JSON: "
            "double quotes, no "
            "comments, no trailing commas)");
  EXPECT_NE(refusal("").find("ends too early"), std::string::npos);
  EXPECT_NE(refusal("[1, 2").find("ends too early"), std::string::npos);
  EXPECT_NE(refusal("[1] 2").find("malformed JSON at line 1, column 5"), std::string::npos);
  EXPECT_NE(refusal("// no").find("malformed"), std::string::npos);
  EXPECT_NE(refusal("\"\xff\"").find("malformed"), std::string::npos);
  EXPECT_NE(refusal("'a'").find("malformed"), std::string::npos);
}

class Cursor : public ::testing::Test {
 protected:
  JsonCursor root(std::string_view text) {
    auto parsed = JsonDocument::parse(text, "test", Limits{});
    EXPECT_TRUE(parsed) << parsed.error().to_text();
    if (!parsed) return {};
    doc = std::move(*parsed);
    return doc->root();
  }
  std::string error() const { return doc->failed() ? doc->error().to_text() : "none"; }
  std::unique_ptr<JsonDocument> doc;
};

TEST_F(Cursor, ReadsEveryKind) {
  JsonCursor r =
      root(R"({"i": -9223372036854775808, "n": 2.5, "b": true, "s": "a\u00e9\n", "z": null, "l": [1, [2]]})");
  EXPECT_EQ(r.required("i").integer(INT64_MIN, 0), INT64_MIN);
  EXPECT_EQ(r.required("n").number(), 2.5);
  EXPECT_EQ(r.required("i").number(), -9223372036854775808.0);
  EXPECT_TRUE(r.required("b").boolean());
  EXPECT_EQ(r.required("s").string(), "a\xc3\xa9\n");
  EXPECT_EQ(r.required("z").kind(), JsonKind::null);
  std::vector<JsonCursor> list = r.required("l").array();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].array()[0].path(), "$.l[1][0]");
  EXPECT_EQ(list[1].array()[0].integer(0, 9), 2);
  EXPECT_EQ(r.optional("absent").integer(0, 9, 7), 7);
  EXPECT_EQ(r.optional("absent").string("d"), "d");
  EXPECT_EQ(error(), "none");
}

TEST_F(Cursor, NamesThePathOfWhatIsWrong) {
  struct Case {
    const char* text;
    void (*read)(JsonCursor);
    const char* error;
  };
  static const char* const kNames[] = {"row", "column"};
  const Case cases[] = {
      {R"({"a": "x"})", [](JsonCursor c) { c.required("a").integer(0, 9); },
       "error [json_error] $.a: expected an integer, got \"x\" (an integer between 0 and 9)"},
      {R"({"a": 300})", [](JsonCursor c) { c.required("a").integer(0, 255); },
       "error [json_error] $.a: expected an integer between 0 and 255, got 300 (choose a value in that "
       "range)"},
      {R"({"a": 18446744073709551616})", [](JsonCursor c) { c.required("a").integer(0, 9); },
       "error [json_error] $.a: expected an integer, got 18446744073709551616 (an integer between 0 and 9)"},
      {R"({"a": 9223372036854775808})", [](JsonCursor c) { c.required("a").integer(0, 9); },
       "error [json_error] $.a: expected an integer, got 9223372036854775808 (an integer between 0 and 9)"},
      {R"({"a": 1.0})", [](JsonCursor c) { c.required("a").integer(0, 9); },
       "error [json_error] $.a: expected an integer, got 1.0 (an integer between 0 and 9)"},
      {R"({"a": [1, {"b": 1}]})", [](JsonCursor c) { c.required("a").array()[1].required("b").boolean(); },
       "error [json_error] $.a[1].b: expected a boolean, got 1 (true or false)"},
      {R"({"a": null})", [](JsonCursor c) { c.required("a").string(); },
       "error [json_error] $.a: expected a string, got null (put the value in double quotes)"},
      {R"({"a": {}})", [](JsonCursor c) { c.required("a").array(); },
       "error [json_error] $.a: expected an array, got an object (put the values in [ ])"},
      {R"({})", [](JsonCursor c) { c.required("a"); },
       "error [json_error] $.a: expected the key \"a\", got an object without it (add the key)"},
      {R"([])",
       [](JsonCursor c) {
         c.object({"a", "b"});
       },
       "error [json_error] $: expected an object, got an array (an object with the keys a, b)"},
      {R"({"vectr": 1})",
       [](JsonCursor c) {
         c.object({"value", "vector"});
       },
       "error [json_error] $.vectr: unknown key \"vectr\", expected one of value, vector (did you mean "
       "'vector'?)"},
      {R"({"a": "colum"})", [](JsonCursor c) { c.required("a").choice(kNames); },
       "error [json_error] $.a: expected one of row, column, got \"colum\" (did you mean 'column'?)"},
      {R"({"a": "x\u0001y"})", [](JsonCursor c) { c.required("a").choice(kNames); },
       "error [json_error] $.a: expected one of row, column, got \"x\\u0001y\" (use one of the names)"},
  };
  for (const Case& c : cases) {
    c.read(root(c.text));
    EXPECT_EQ(error(), c.error) << c.text;
  }
}

TEST_F(Cursor, KeepsTheFirstErrorAndGoesOn) {
  JsonCursor r = root(R"({"a": "x", "b": "y"})");
  EXPECT_EQ(r.required("a").integer(0, 9, 5), 5);
  EXPECT_FALSE(r.required("b").boolean());
  EXPECT_TRUE(r.required("missing").array().empty());
  EXPECT_EQ(r.required("missing").required("deeper").string("d"), "d");
  EXPECT_EQ(error(), "error [json_error] $.a: expected an integer, got \"x\" (an integer between 0 and 9)");
  EXPECT_EQ(doc->error().status(), StatusCode::parse_error);
}

TEST(Json, WriterAndReaderAgree) {
  const std::string hostile =
      std::string("quote\" back\\ nl\n tab\t nul") + '\0' + "\x1f del\x7f \xc3\xa9 \xf0\x9f\x98\x80";
  JsonWriter w;
  w.begin_object();
  w.member("s", hostile);
  w.member("i", INT64_MIN);
  w.flag("b", true);
  w.key("empty");
  w.begin_array();
  w.end_array();
  w.key("list");
  w.begin_array();
  w.value(1);
  w.value("two");
  w.begin_object();
  w.end_object();
  w.end_array();
  w.end_object();
  auto doc = JsonDocument::parse(w.text(), "test", Limits{});
  ASSERT_TRUE(doc) << doc.error().to_text() << w.text();
  JsonCursor r = (*doc)->root();
  EXPECT_EQ(r.required("s").string(), hostile);
  EXPECT_EQ(r.required("i").integer(INT64_MIN, INT64_MAX), INT64_MIN);
  EXPECT_TRUE(r.required("b").boolean());
  EXPECT_TRUE(r.required("empty").array().empty());
  EXPECT_EQ(r.required("list").array()[1].string(), "two");
  EXPECT_FALSE((*doc)->failed());
}

TEST(Json, WriterIsIndentedAndRepairsBytes) {
  JsonWriter w;
  w.begin_object();
  w.key("a");
  w.begin_array();
  w.value(1);
  w.value(2);
  w.end_array();
  w.member("b", "\xff\xc0\xaf\xed\xa0\x80 ok \xe2\x82");
  w.end_object();
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(w.text(), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": \"" + bad + bad + bad + bad + bad + bad +
                          " ok " + bad + bad + "\"\n}\n");
}

}  // namespace
}  // namespace tilegen
