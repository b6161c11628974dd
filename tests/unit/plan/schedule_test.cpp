// Schedules as JSON: round trips, every refusal, hostile input.
#include "plan/schedule.h"

#include <random>

#include "full_schedule.h"
#include "support/diag_codes.h"

namespace tilegen::plan {
namespace {

Expected<Schedule> read(std::string_view json) { return schedule_from_json(json, Limits{}); }

TEST(ScheduleJson, RoundTripsEveryField) {
  Schedule s = full_schedule();
  std::string json = schedule_to_json(s);
  auto back = read(json);
  ASSERT_TRUE(back) << back.error().to_text() << "\n" << json;
  EXPECT_EQ(*back, s);
  EXPECT_EQ(schedule_to_json(*back), json);
  auto empty = read(schedule_to_json(Schedule{}));
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty, Schedule{});
  auto bare = read("{}");
  ASSERT_TRUE(bare);
  EXPECT_EQ(*bare, Schedule{});
}

TEST(ScheduleJson, RoundTripsEveryEnumerator) {
  for (Engine e : {Engine::loop, Engine::vector_copy, Engine::async_copy, Engine::mma, Engine::micro_kernel,
                   Engine::lane_reduce, Engine::tensor_copy, Engine::warpgroup_mma, Engine::register_copy})
    for (Origin o : {Origin::strict, Origin::common, Origin::free, Origin::given}) {
      Schedule s;
      s.kernels.resize(1);
      s.kernels[0].kernel = "k";
      s.kernels[0].ops = {{.op = "k/copy#0", .engine = e}};
      s.kernels[0].values = {{.value = "k:A", .origin = o}};
      auto back = read(schedule_to_json(s));
      ASSERT_TRUE(back) << back.error().to_text();
      EXPECT_EQ(*back, s);
    }
  for (int kind = 0; kind < 4; kind++) {
    Schedule s = full_schedule();
    s.kernels[0].conversions[0].kind = static_cast<layout::ConversionKind>(kind);
    auto back = read(schedule_to_json(s));
    ASSERT_TRUE(back) << back.error().to_text();
    EXPECT_EQ(*back, s);
  }
}

TEST(ScheduleJson, LeavesUnsetFieldsToThePlanner) {
  auto s = read(R"({"kernels": [{"kernel": "k", "ops": [{"op": "k/copy#0"}], "values": [{"value": "k:B"}],
    "loops": [{"loop": "k/kk"}], "conversions": [{"value": "k:B", "producer": "a", "consumer": "b"}],
    "cluster": {}, "raster": {}, "launch": {}, "persistence": {}}]})");
  ASSERT_TRUE(s) << s.error().to_text();
  const KernelSchedule* k = s->find("k");
  ASSERT_NE(k, nullptr);
  EXPECT_FALSE(k->threads);
  EXPECT_FALSE(k->launch);
  EXPECT_FALSE(k->persistence);
  EXPECT_FALSE(k->raster);
  EXPECT_FALSE(k->roles);
  EXPECT_FALSE(k->cluster);
  ASSERT_NE(find_op(*k, "k/copy#0"), nullptr);
  EXPECT_EQ(*find_op(*k, "k/copy#0"), OpPlan{.op = "k/copy#0"});
  EXPECT_EQ(find_value(*k, "k:B")->slots, 0);
  EXPECT_EQ(find_loop(*k, "k/kk")->num_stages, 0);
  EXPECT_EQ(k->conversions[0].kind, layout::ConversionKind::none);
  EXPECT_EQ(find_op(*k, "k/copy#1"), nullptr);
  EXPECT_EQ(find_value(*k, "k:A"), nullptr);
  EXPECT_EQ(find_loop(*k, "k/ko"), nullptr);
  EXPECT_EQ(s->find("other"), nullptr);
}

std::string in_kernel(const std::string& members) {
  return R"({"kernels": [{"kernel": "k", )" + members + "}]}";
}
std::string in_op(const std::string& members) {
  return in_kernel(R"("ops": [{"op": "o", )" + members + "}]");
}
std::string in_value(const std::string& members) {
  return in_kernel(R"("values": [{"value": "v")" + members + "}]");
}

TEST(ScheduleJson, RefusalsNamePathExpectedGotAndWayOut) {
  const std::string good_fragment = R"("threads 1 : (4) -> [0: 0; 1: d0/1%4*1]")";
  const std::pair<std::string, const char*> cases[] = {
      {"[]",
       "$: expected an object, got an array (an object with the keys version, target, program_hash, "
       "kernels)"},
      {R"({"version": 2})",
       "$.version: expected an integer between 1 and 1, got 2 (choose a value in that range)"},
      {R"({"target": 80})", "$.target: expected a string, got 80 (put the value in double quotes)"},
      {R"({"kernel": []})",
       "$.kernel: unknown key \"kernel\", expected one of version, target, program_hash, kernels "
       "(did you mean 'kernels'?)"},
      {R"({"kernels": [{}]})",
       "$.kernels[0].kernel: expected the key \"kernel\", got an object without it (add the key)"},
      {R"({"kernels": [{"kernel": ""}]})",
       "$.kernels[0].kernel: expected a name, got \"\" (names are paths as the schedule's text shows them)"},
      {R"({"kernels": [{"kernel": "k"}, {"kernel": "k"}]})",
       "$.kernels[1].kernel: \"k\" is listed twice (merge the two entries)"},
      {in_kernel(R"("threads": 0)"),
       "$.kernels[0].threads: expected an integer between 1 and 2147483648, got 0 (choose a value in that "
       "range)"},
      {in_kernel(R"("raster": {"order": "diagonal"})"),
       "$.kernels[0].raster.order: expected one of row_major, column_major, grouped, by_die, lpt, "
       "got \"diagonal\" (use one of the names)"},
      {in_kernel(R"("ops": {})"),
       "$.kernels[0].ops: expected an array, got an object (put the values in [ ])"},
      {in_op(R"("atom": "")"),
       "$.kernels[0].ops[0].atom: expected a name, got \"\" (leave it out to have it planned)"},
      {in_op(R"("engine": "mmma")"),
       "$.kernels[0].ops[0].engine: expected one of loop, vector_copy, async_copy, mma, "
       "micro_kernel, lane_reduce, tensor_copy, warpgroup_mma, register_copy, got \"mmma\" (did you mean "
       "'mma'?)"},
      {in_op(R"("engine": "mma", "vector": 18446744073709551616)"),
       "$.kernels[0].ops[0].vector: expected an integer, got 18446744073709551616 (an integer between 1 and "
       "1024)"},
      {in_op(R"("engine": "mma", "streaming": 1)"),
       "$.kernels[0].ops[0].streaming: expected a boolean, got 1 (true or false)"},
      {in_op(R"("engine": "mma", "engine": "mma")"),
       "$.kernels[0].ops[0].engine: the key \"engine\" is given twice (keep one of them)"},
      {in_kernel(R"("ops": [{"op": "o", "engine": "mma"}, {"op": "o", "engine": "loop"}])"),
       "$.kernels[0].ops[1].op: \"o\" is listed twice (merge the two entries)"},
      {in_op(R"("engine": "loop", "iteration": 3)"),
       "$.kernels[0].ops[0].iteration: expected a fragment in text form, got 3 (copy the form that "
       "schedule_to_json writes)"},
      {in_value(R"(, "slots": -1)"),
       "$.kernels[0].values[0].slots: expected an integer between 1 and 1024, got -1 (choose a value in that "
       "range)"},
      {in_value(R"(, "origin": "mine")"),
       "$.kernels[0].values[0].origin: expected one of strict, common, free, given, got \"mine\" (use one of "
       "the names)"},
      {in_value(R"(, "memory": "(4) -> [0: d0/1%4*1]", "fragment": )" + good_fragment),
       "$.kernels[0].values[0]: a value has either a \"fragment\" (registers) or a \"memory\" layout, got "
       "both (keep the "
       "one that fits the buffer's scope)"},
      {in_kernel(R"("loops": [{"loop": "k/ko", "stages": [{"op": "o"}]}])"),
       "$.kernels[0].loops[0].stages[0].stage: expected the key \"stage\", got an object without it (add the "
       "key)"},
      {in_kernel(
           R"("loops": [{"loop": "k/ko", "stages": [{"op": "o", "stage": 0}, {"op": "o", "stage": 1}]}])"),
       "$.kernels[0].loops[0].stages[1].op: \"o\" is listed twice (merge the two entries)"},
      {in_kernel(R"("conversions": [{"value": "v", "producer": "a", "consumer": "b", "kind": "shufle"}])"),
       "$.kernels[0].conversions[0].kind: expected one of register_permute, shuffle, shared_bounce, got "
       "\"shufle\" (did you mean 'shuffle'?)"},
      {in_kernel(R"("conversions": [{"value": "v", "producer": "a", "from": )" + good_fragment + "}]"),
       "$.kernels[0].conversions[0].consumer: expected the key \"consumer\", got an object without it (add "
       "the key)"},
      {in_op(R"("engine": "tensor_copy", "epilogue_columns": -8)"),
       "$.kernels[0].ops[0].epilogue_columns: expected an integer between 1 and 2147483648, got -8 (choose a "
       "value in that range)"},
      {in_kernel(R"("roles": [{"name": "consumer", "registers": 257}])"),
       "$.kernels[0].roles[0].registers: expected an integer between 0 and 256, got 257 (choose a "
       "value in that range)"},
      {in_kernel(R"("persistence": {"persistent": 1})"),
       "$.kernels[0].persistence.persistent: expected a boolean, got 1 (true or false)"},
      {in_kernel(R"("cluster": {"blocks": 0, "along": "by"})"),
       "$.kernels[0].cluster.blocks: expected an integer between 1 and 1024, got 0 (choose a value in that "
       "range)"},
      {in_kernel(R"("pipelines": [{"name": "c", "loop": "k/ko"}])"),
       "$.kernels[0].pipelines[0].values: expected the key \"values\", got an object without it (add the "
       "key)"},
      {in_kernel(R"("pipelines": [{"name": "c", "loop": "k/ko", "values": ["k:A", "k:A"]}])"),
       "$.kernels[0].pipelines[0].values[1]: \"k:A\" is listed twice (merge the two entries)"},
      {in_kernel(R"("memory": [{"storage": "value", "owner": "v", "offset": 1.5, "bytes": 1}])"),
       "$.kernels[0].memory[0].offset: expected an integer, got 1.5 (an integer between 0 and "
       "9223372036854775807)"},
      {in_kernel(R"("notes": [{"path": "p"}])"),
       "$.kernels[0].notes[0].text: expected the key \"text\", got an object without it (add the key)"},
      {in_kernel(R"("notes": [7])"),
       "$.kernels[0].notes[0]: expected an object, got 7 (an object with the keys path, text)"},
  };
  for (const auto& [json, expected] : cases) {
    auto s = read(json);
    ASSERT_FALSE(s) << json;
    EXPECT_EQ(s.error().to_text(), std::string("error [json_error] ") + expected) << json;
  }
  std::string deep = "{\"target\": " + std::string(40, '[') + std::string(40, ']') + "}";
  EXPECT_NE(read(deep).error().to_text().find("nested deeper than 32 levels"), std::string::npos);
  Limits tight;
  tight.text_bytes = 10;
  EXPECT_EQ(schedule_from_json(R"({"target": "host"})", tight).error().diagnostics[0].code,
            DiagCode::limit_bytes);
}

TEST(ScheduleJson, EarlierWordsAreRefusedWithThoseOfToday) {
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {in_op(R"("joined_behind": "k/ko")"), "joined_behind", "deferred_to"},
      {in_op(R"("unless_one": "k:f")"), "unless_one", "skip_if_identity"},
      {in_op(R"("pass_columns": 64)"), "pass_columns", "epilogue_columns"},
      {in_kernel(R"("persistence": {"skips_idle": true})"), "skips_idle", "skip_empty_tiles"},
      {in_kernel(R"("persistence": {"persistent": true, "order": "claimed"})"), "claimed", "dynamic"},
      {in_kernel(R"("raster": {"order": "longest_first"})"), "longest_first", "lpt"},
      {in_kernel(R"("raster": {"rising": true})"), "rising", "increasing"},
      {in_kernel(R"("raster": {"group_trips": 4})"), "group_trips", "group_iterations"},
      {in_kernel(R"("channels": [])"), "channels", "pipelines"},
      {in_kernel(R"("roles": {"producer_threads": 128})"), "producer_threads", "warps"},
  };
  for (const auto& [json, earlier, today] : cases) {
    auto s = read(json);
    ASSERT_FALSE(s) << json;
    const std::string text = s.error().to_text();
    EXPECT_NE(text.find('"' + earlier + "\" is called \"" + today + '"'), std::string::npos) << text;
    EXPECT_EQ(s.error().diagnostics.size(), 1u) << text;
  }
}

TEST(ScheduleJson, PassesOnWhatTheLayoutReaderRefuses) {
  auto s = read(in_value(R"(, "memory": "(4) => [0: d0]")"));
  ASSERT_FALSE(s);
  const Diagnostic& d = s.error().diagnostics[0];
  EXPECT_EQ(d.op, "$.kernels[0].values[0].memory");
  EXPECT_EQ(d.code, DiagCode::json_error);
  EXPECT_EQ(d.message.find("expected a layout in text form, got \"(4) => [0: d0]\": "), 0u) << d.message;
  EXPECT_FALSE(d.hint.empty());
}

// Mutated text never crashes: it is accepted, and then survives a round trip and printing, or refused with a
// message.
TEST(ScheduleJson, SurvivesMutations) {
  const std::string base = schedule_to_json(full_schedule());
  std::mt19937_64 random(2024);
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "\"",
                                "null",
                                "true",
                                "-1",
                                "0",
                                "1e400",
                                "99999999999999999999",
                                "\"op\"",
                                "\"kernel\": \"x\",",
                                "%",
                                "*",
                                "d0",
                                "(",
                                ")",
                                "\\u0000",
                                "\\",
                                "\xff",
                                "3"};
  int accepted = 0, refused = 0;
  for (int i = 0; i < 2500; i++) {
    std::string text = base;
    for (size_t edits = 1 + below(3); edits > 0 && !text.empty(); edits--) {
      size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text.erase(at, 1 + below(8));
          break;
        case 1:
          text.insert(at, pieces[below(std::size(pieces))]);
          break;
        case 2:
          text[at] = static_cast<char>(random());
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), below(200)));
          break;
        default:  // a digit becomes another, so that layouts and numbers change but the grammar does not
          at = text.find_first_of("0123456789", at);
          if (at != std::string::npos) text[at] = static_cast<char>('0' + below(10));
      }
    }
    auto s = read(text);
    if (!s) {
      refused++;
      ASSERT_FALSE(s.error().diagnostics.empty());
      ASSERT_FALSE(s.error().diagnostics[0].message.empty()) << text;
      ASSERT_FALSE(s.error().diagnostics[0].hint.empty()) << s.error().to_text();
      continue;
    }
    accepted++;
    ASSERT_FALSE(schedule_to_text(*s).empty());
    auto again = read(schedule_to_json(*s));
    ASSERT_TRUE(again) << again.error().to_text() << "\n" << text;
    ASSERT_EQ(*again, *s) << text;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tilegen::plan
