#include "support/id_vector.h"

#include <gtest/gtest.h>

#include <string>

namespace tilegen {
namespace {

using ThisId = Id<struct ThisTag>;
using OtherId = Id<struct OtherTag>;

template <class Array, class Index>
concept Indexable = requires(Array a, Index i) {
  a[i];
};

static_assert(Indexable<IdVector<ThisId, int>, ThisId> && Indexable<IdSpan<ThisId, const int>, ThisId>);
static_assert(!Indexable<IdVector<ThisId, int>, OtherId> && !Indexable<IdSpan<ThisId, const int>, OtherId>);
static_assert(!Indexable<IdVector<ThisId, int>, int> && !Indexable<IdVector<ThisId, int>, size_t>);

TEST(IdVector, ElementsHaveTheIdsTheyWereAddedWith) {
  IdVector<ThisId, std::string> v;
  EXPECT_TRUE(v.empty());
  const ThisId a = v.push_back("a"), b = v.push_back("b");
  EXPECT_EQ(v[a] + v[b], "ab");
  EXPECT_EQ(v.id_of(v.back()), b);
  std::string text;
  for (ThisId id : v.ids()) text += std::to_string(id.value) + v[id];
  EXPECT_EQ(text, "0a1b");
}

TEST(IdVector, OfTruthValuesIsWrittenToById) {
  IdVector<ThisId, bool> v(3, false);
  v[ThisId(1)] = true;
  EXPECT_EQ(v.list(), (std::vector<bool>{false, true, false}));
}

TEST(IdSpan, SeesListsThatAreParallel) {
  const std::vector<int> list = {3, 4};
  const IdVector<ThisId, int> own(2, 5);
  const auto sum = [](IdSpan<ThisId, const int> s) {
    int sum = 0;
    for (ThisId id : s.ids()) sum += s[id];
    return sum;
  };
  EXPECT_EQ(sum(list), 7);
  EXPECT_EQ(sum(own), 10);
}

}  // namespace
}  // namespace tilegen
