// Records: buckets of sizes, JSON both ways, what is left alone, writers at once.
#include "tune/record.h"

#include <sys/stat.h>

#include <thread>

#include "support/diag_codes.h"
#include "tune_support.h"

namespace tilegen::tune {
namespace {

TEST(Records, BucketsAreTwoToADoubling) {
  const std::pair<int64_t, int64_t> expected[] = {{0, 0},
                                                  {1, 1},
                                                  {2, 2},
                                                  {3, 3},
                                                  {4, 4},
                                                  {5, 6},
                                                  {6, 6},
                                                  {7, 8},
                                                  {9, 12},
                                                  {13, 16},
                                                  {4096, 4096},
                                                  {4097, 6144},
                                                  {-5, 0},
                                                  {100, 128},
                                                  {96, 96},
                                                  {97, 128},
                                                  {INT64_MAX, INT64_MAX}};
  for (const auto& [size, bucket] : expected) EXPECT_EQ(size_bucket(size), bucket) << size;
  for (int64_t size = 1; size < 5000; ++size) {
    const int64_t bucket = size_bucket(size);
    EXPECT_GE(bucket, size);
    EXPECT_EQ(size_bucket(bucket), bucket);
    EXPECT_LE(2 * bucket, 3 * size + 1) << size;
  }
}

Record record_of(const ir::Program& program, int64_t m = 1000) {
  Record r;
  r.key = record_key(program, "host", "1", "", {{"m", m}});
  r.name = "rows";
  r.device = "host (a)";
  r.sizes = {{"m", m}};
  r.asked = 2;
  r.rows = {{{2, 64}, 1.5}, {{8, 16}, 2.25}};
  return r;
}

std::string refusal_of(const std::string& text, const RecordKey& key, const ir::Program& program) {
  const auto record = record_from_json(text, key, program);
  return record ? "" : record.error().diagnostics[0].message;
}

TEST(Records, ReadBackAsTheyWereWritten) {
  const ir::Program program = program_of(kRows);
  const Record r = record_of(program);
  const std::string text = record_to_json(r, program);
  // Another size of the same bucket finds it.
  const auto back = record_from_json(text, record_key(program, "host", "1", "", {{"m", 1024}}), program);
  ASSERT_TRUE(back) << back.error().to_text();
  EXPECT_EQ(record_to_json(*back, program), text);
  ASSERT_EQ(back->rows.size(), 2u);
  EXPECT_EQ(back->rows[0].values, (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(back->rows[1].microseconds, 2.25);
}

TEST(Records, OfSomethingElseAreNone) {
  const ir::Program program = program_of(kRows);
  const std::string text = record_to_json(record_of(program), program);
  const auto key = [&](const char* target, const char* library, const char* schedule, int64_t m) {
    return record_key(program, target, library, schedule, {{"m", m}});
  };
  EXPECT_NE(refusal_of(text, key("sm_80", "1", "", 1000), program).find("of target host, expected sm_80"),
            std::string::npos);
  EXPECT_NE(refusal_of(text, key("host", "2", "", 1000), program).find("of library 1"), std::string::npos);
  EXPECT_NE(refusal_of(text, key("host", "1", "{}", 1000), program).find("of schedule"), std::string::npos);
  EXPECT_NE(refusal_of(text, key("host", "1", "", 1025), program).find("sizes with m 1024, expected 1536"),
            std::string::npos);
  std::string other(kRows);
  other.replace(other.find("{1, 2, 8}"), 9, "{1, 4, 8}");
  const ir::Program changed = program_of(other);
  EXPECT_NE(refusal_of(text, record_key(changed, "host", "1", "", {{"m", 1000}}), changed).find("of program"),
            std::string::npos);
}

TEST(Records, ThatAreDamagedAreNone) {
  const ir::Program program = program_of(kRows);
  const Record r = record_of(program);
  const std::string text = record_to_json(r, program);
  for (size_t length : {size_t{0}, size_t{1}, text.size() / 2, text.size() - 3})
    EXPECT_NE(refusal_of(text.substr(0, length), r.key, program), "") << length;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string spoilt = text;
    EXPECT_NE(spoilt.find(from), std::string::npos) << from;
    spoilt.replace(spoilt.find(from), from.size(), to);
    return refusal_of(spoilt, r.key, program);
  };
  EXPECT_NE(with("\"tilegen_record\": 1", "\"tilegen_record\": 2"), "");
  EXPECT_NE(with("\"COLS\": 64", "\"COLS\": 48"), "");
  EXPECT_NE(with("\"COLS\": 64", "\"COLS\": \"64\""), "");
  EXPECT_NE(with("\"COLS\"", "\"COLZ\""), "");
  EXPECT_NE(with("\"nanoseconds\": 1500", "\"nanoseconds\": 0"), "");
  EXPECT_NE(with("\"nanoseconds\": 1500", "\"nanoseconds\": 1e400"), "");
  EXPECT_NE(with("\"asked\": 2", "\"asked\": -2"), "");
  EXPECT_NE(with("\"bucket\"", "\"buckets\""), "");
  std::string none = text.substr(0, text.find("\"configurations\"")) + "\"configurations\": []}";
  EXPECT_NE(refusal_of(none, r.key, program), "");
}

TEST(Records, AreFoundByKeyAndDeviceAndNotesTellOfTheRest) {
  const Folder folder;
  const ir::Program program = program_of(kRows);
  const std::string records = folder.path + "/records";
  std::vector<std::string> notes;
  const auto find = [&](const RecordKey& key, const std::string& device) {
    return find_record(records, key, device, program, [&](const std::string& n) { notes.push_back(n); });
  };
  Record r = record_of(program);
  EXPECT_FALSE(find(r.key, r.device));
  EXPECT_TRUE(notes.empty()) << "a folder that is not there yet is no fault";
  ASSERT_TRUE(write_record(records, r, program));
  ASSERT_TRUE(find(r.key, r.device));
  EXPECT_FALSE(find(r.key, "another"));
  EXPECT_TRUE(find(r.key, "")) << "where there is no device, that of any one";
  EXPECT_FALSE(find(record_of(program, 5000).key, r.device));
  r.device = "another";
  r.rows.resize(1);
  ASSERT_TRUE(write_record(records, r, program));
  EXPECT_EQ(find(r.key, "another")->rows.size(), 1u);
  EXPECT_EQ(find(r.key, "host (a)")->rows.size(), 2u);
  EXPECT_TRUE(notes.empty());
  std::filesystem::path path;
  for (const auto& entry : std::filesystem::directory_iterator(records))
    if (text_of(entry.path()).find("another") != std::string::npos) path = entry.path();
  std::ofstream(path) << "{";
  EXPECT_FALSE(find(r.key, "another"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find(path.string()), std::string::npos);
  EXPECT_TRUE(find(r.key, ""));
  std::ofstream(path) << std::string(2 << 20, ' ');
  notes.clear();
  EXPECT_FALSE(find(r.key, "another"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("more than"), std::string::npos);
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  notes.clear();
  EXPECT_FALSE(find(r.key, "another")) << "a pipe that nobody writes holds no one";
  EXPECT_EQ(notes.size(), 1u);
}

TEST(Records, ThatCannotBeWrittenAreAnErrorThatNamesTheFile) {
  const Folder folder;
  const ir::Program program = program_of(kRows);
  std::ofstream(folder.path + "/file") << "x";
  for (const char* at : {"/file", "/absent/records"}) {
    const Checked written = write_record(folder.path + at, record_of(program), program);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().diagnostics[0].code, DiagCode::io_failure);
    EXPECT_NE(written.error().diagnostics[0].message.find(folder.path + at), std::string::npos);
  }
}

TEST(Records, OfManyWritersAtOnceAreWhole) {
  const Folder folder;
  const ir::Program program = program_of(kRows);
  const Record r = record_of(program);
  ASSERT_TRUE(write_record(folder.path, r, program));
  std::vector<std::thread> writers;
  std::atomic<bool> done{false};
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      Record own = r;
      own.rows.resize(1 + static_cast<size_t>(w % 2));
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(write_record(folder.path, own, program));
    });
  std::thread reader([&] {
    while (!done)
      EXPECT_TRUE(find_record(folder.path, r.key, r.device, program,
                              [](const std::string& note) { ADD_FAILURE() << note; }));
  });
  for (std::thread& w : writers) w.join();
  done = true;
  reader.join();
  EXPECT_EQ(folder.files().size(), 1u) << "nothing is left beside the record";
}

}  // namespace
}  // namespace tilegen::tune
