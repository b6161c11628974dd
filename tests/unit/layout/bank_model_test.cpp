#include "layout/bank_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "layout/layout.h"

namespace tilegen::layout {
namespace {

constexpr BankModel kBanks = {32, 4};

std::vector<int64_t> strided(int64_t lanes, int64_t stride) {
  std::vector<int64_t> a;
  for (int64_t l = 0; l < lanes; ++l) a.push_back(l * stride);
  return a;
}

TEST(BankModel, WordAccesses) {
  EXPECT_EQ(wavefronts(strided(32, 4), 4, kBanks), 1);
  EXPECT_EQ(wavefronts(strided(32, 8), 4, kBanks), 2);
  EXPECT_EQ(wavefronts(strided(32, 128), 4, kBanks), 32);
  EXPECT_EQ(wavefronts(strided(32, 132), 4, kBanks), 1);
  EXPECT_EQ(wavefronts(strided(32, 0), 4, kBanks), 1);  // broadcast
  EXPECT_EQ(bank_conflicts(strided(32, 128), 4, kBanks), 31);
  EXPECT_EQ(bank_conflicts(strided(32, 4), 4, kBanks), 0);
  EXPECT_EQ(wavefronts(strided(32, 2), 2, kBanks), 1);  // two lanes share each word
  EXPECT_EQ(wavefronts(strided(32, 64), 2, kBanks), 16);
  EXPECT_EQ(wavefronts({}, 4, kBanks), 0);
}

TEST(BankModel, WideAccessesAreServedInParts) {
  EXPECT_EQ(wavefronts(strided(32, 8), 8, kBanks), 2);
  EXPECT_EQ(bank_conflicts(strided(32, 8), 8, kBanks), 0);
  EXPECT_EQ(wavefronts(strided(32, 16), 16, kBanks), 4);
  EXPECT_EQ(bank_conflicts(strided(32, 16), 16, kBanks), 0);
  EXPECT_EQ(wavefronts(strided(32, 128), 16, kBanks), 32);  // the classic column of 16-byte rows
  EXPECT_EQ(bank_conflicts(strided(32, 128), 16, kBanks), 28);
  EXPECT_EQ(bank_conflicts(strided(32, 144), 16, kBanks), 0);
  EXPECT_EQ(wavefronts(strided(64, 4), 4, BankModel{64, 4}), 1);
}

// An ldmatrix phase reads eight rows at one column of 16 bytes: the 128-byte swizzle removes all conflicts.
TEST(BankModel, SwizzleRemovesConflictsOfMatrixRows) {
  const std::vector<int64_t> shape{64, 64};
  const Layout plain = Layout::row_major(shape);
  const Layout swizzled = *plain.with_swizzle({3, 4, 3}, 2);
  for (int64_t column = 0; column < 64; column += 8) {
    std::vector<int64_t> a, b;
    for (int64_t row = 0; row < 32; ++row) {
      a.push_back(plain.offset(std::vector<int64_t>{row, column}) * 2);
      b.push_back(swizzled.offset(std::vector<int64_t>{row, column}) * 2);
    }
    EXPECT_EQ(bank_conflicts(a, 16, kBanks), 28);
    EXPECT_EQ(bank_conflicts(b, 16, kBanks), 0);
  }
}

// Phase by phase, word by word.
std::pair<int64_t, int64_t> counted(const std::vector<int64_t>& addresses, int bytes, const BankModel& m) {
  const size_t lanes =
      static_cast<size_t>(std::max(1, m.banks * m.bank_bytes / std::max(bytes, m.bank_bytes)));
  int64_t taken = 0, least = 0;
  for (size_t first = 0; first < addresses.size(); first += lanes) {
    std::set<int64_t> words, touched;
    for (size_t lane = first; lane < std::min(first + lanes, addresses.size()); ++lane)
      for (int64_t byte = addresses[lane]; byte < addresses[lane] + bytes; ++byte) {
        touched.insert(byte);
        words.insert(byte / m.bank_bytes);
      }
    std::map<int64_t, int64_t> of_bank;
    int64_t most = 0;
    for (int64_t word : words) most = std::max(most, ++of_bank[word % m.banks]);
    taken += most;
    least += (static_cast<int64_t>(touched.size()) + m.row_bytes() - 1) / m.row_bytes();
  }
  return {taken, least};
}

TEST(BankModel, CountsTheWordsOfEachBankOnce) {
  std::mt19937 random(7);
  for (const BankModel& m : {BankModel{32, 4}, BankModel{64, 4}, BankModel{24, 6}})
    for (int round = 0; round < 400; ++round) {
      const int bytes = 1 << random() % 5;
      const auto reach = static_cast<int64_t>(32 << random() % 20);
      std::vector<int64_t> addresses(random() % 100);
      for (int64_t& a : addresses) a = static_cast<int64_t>(random()) % reach * (random() % 2 ? 1 : bytes);
      const auto [taken, least] = counted(addresses, bytes, m);
      ASSERT_EQ(wavefronts(addresses, bytes, m), taken);
      ASSERT_EQ(least_wavefronts(addresses, bytes, m), least);
      ASSERT_EQ(bank_conflicts(addresses, bytes, m), taken - least);
    }
}

}  // namespace
}  // namespace tilegen::layout
