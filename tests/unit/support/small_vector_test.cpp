// Short lists and what a walk has seen, below and beyond what lies in the object, and answers by id.
#include "support/small_vector.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "support/memo_table.h"
#include "support/small_set.h"

namespace tilegen {
namespace {

using List = SmallVector<int, 3>;
using Key = Id<struct KeyTag>;

List counted(int n) {
  List l;
  for (int i = 0; i < n; ++i) l.push_back(i);
  return l;
}
std::vector<int> values(const List& l) { return {l.begin(), l.end()}; }

TEST(SmallVector, HoldsFewAndMany) {
  for (int n = 0; n < 20; ++n) {
    const List l = counted(n);
    ASSERT_EQ(l.size(), static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) EXPECT_EQ(l[static_cast<size_t>(i)], i);
    EXPECT_EQ(l.empty(), n == 0);
    EXPECT_EQ(l, counted(n));
    EXPECT_FALSE(l == counted(n + 1));
  }
}

TEST(SmallVector, CopiesAndMovesBetweenFewAndMany) {
  for (int from : {0, 2, 3, 4, 9})
    for (int to : {0, 2, 3, 4, 9}) {
      const List source = counted(from);
      List copy = counted(to);
      copy = source;
      EXPECT_EQ(values(copy), values(source));
      List moved = counted(to);
      moved = std::move(copy);
      EXPECT_EQ(values(moved), values(source));
      EXPECT_TRUE(copy.empty());
      copy.push_back(7);
      EXPECT_EQ(values(copy), std::vector<int>{7});
      EXPECT_EQ(values(List(source)), values(source));
      EXPECT_EQ(values(List(std::move(moved))), values(source));
    }
  List self = counted(5);
  const List& same = self;
  self = same;
  EXPECT_EQ(values(self), values(counted(5)));
}

TEST(SmallVector, GrowsAfterItWasEmptied) {
  List l = counted(9);
  l.clear();
  l.push_back(1);
  l.push_back(2);
  l.pop_back();
  EXPECT_EQ(values(l), std::vector<int>{1});
  EXPECT_EQ(l.back(), 1);
}

TEST(SmallSet, KnowsWhatItHasSeen) {
  SmallSet<int, 4> seen;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 20; ++i) EXPECT_EQ(seen.insert(i * 5), round == 0) << i;
}

TEST(MemoTable, AnswersAsAMapUntilItForgets) {
  MemoTable<Key, int> table;
  for (int age = 0; age < 3; ++age) {
    std::map<uint32_t, int> expected;
    for (uint32_t i = 0; i < 300; ++i) {
      const uint32_t key = (i * 2654435761u) % 97;
      table.insert(Key(size_t{key}), static_cast<int>(i));
      expected[key] = static_cast<int>(i);
    }
    for (uint32_t key = 0; key < 120; ++key) {
      const int* found = table.find(Key(size_t{key}));
      ASSERT_EQ(found != nullptr, expected.count(key) > 0) << key;
      if (found) {
        EXPECT_EQ(*found, expected[key]);
      }
    }
    table.forget();
    for (uint32_t key = 0; key < 120; ++key) EXPECT_EQ(table.find(Key(size_t{key})), nullptr);
  }
}

}  // namespace
}  // namespace tilegen
