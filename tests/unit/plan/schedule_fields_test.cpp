// The rows of the fields: every member has one, and the documentation has their tables.
#include "plan/schedule_fields.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace tilegen::plan {
namespace {

// A member without a row would be lost on the way through JSON: what lies between the members that rows
// name is padding.
template <class E>
void expect_all_members() {
  std::set<std::string> keys;
  const E entry{};
  std::map<size_t, size_t> ends;  // by where a member begins
  for_each_field<E>([&](const auto& f) {
    const auto begin = static_cast<size_t>(reinterpret_cast<const char*>(&(entry.*f.at)) -
                                           reinterpret_cast<const char*>(&entry));
    EXPECT_TRUE(ends.emplace(begin, begin + sizeof(entry.*f.at)).second) << f.key << " is a row before";
    EXPECT_TRUE(keys.insert(f.key).second) << f.key << " twice";
  });
  ends[sizeof(E)] = sizeof(E);
  size_t at = 0;
  for (const auto& [begin, end] : ends) {
    EXPECT_LT(begin - at, alignof(E)) << "a member at " << at << " has no row";
    at = end;
  }
}

TEST(ScheduleFields, EveryMemberHasARow) {
  expect_all_members<OpPlan>();
  expect_all_members<ValuePlan>();
  expect_all_members<LoopPlan>();
  expect_all_members<ConversionPlan>();
  expect_all_members<RasterPlan>();
  expect_all_members<RolePlan>();
  expect_all_members<PersistencePlan>();
  expect_all_members<ClusterPlan>();
  expect_all_members<LaunchPlan>();
  expect_all_members<PipelinePlan>();
  expect_all_members<MemoryPlan>();
  expect_all_members<Note>();
}

// TILEGEN_BLESS=1 writes them.
TEST(ScheduleFields, TablesOfTheDocumentation) {
  const std::string path = std::string(TILEGEN_SOURCE_DIR) + "/docs/schedule.md";
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  const std::string page = text.str(), begin = "<!-- fields -->\n", end = "<!-- end of fields -->\n";
  const size_t from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string tables = "\n" + schedule_field_tables();
  if (std::getenv("TILEGEN_BLESS"))
    std::ofstream(path) << page.substr(0, from + begin.size()) << tables << page.substr(to);
  else
    EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), tables);
}

}  // namespace
}  // namespace tilegen::plan
