#include "layout/bank_model.h"

#include <gtest/gtest.h>

#include <algorithm>
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

}  // namespace
}  // namespace tilegen::layout
