// Which layouts a dimension of which is cut into shares of every thread's registers, and which register of
// the whole each register of a share is.
#include "analysis/sum_shares.h"

#include <gtest/gtest.h>

namespace tilegen::analysis {
namespace {

using layout::Fragment;

Fragment fragment(const std::string& text) {
  auto f = Fragment::from_text(text);
  EXPECT_TRUE(f) << f.error().to_text();
  return *f;
}

// Every element of every share is held by the thread that holds it in the whole, in the register that the cut
// says.
void expect_cut(const Fragment& whole, int dim, int64_t parts) {
  SCOPED_TRACE(whole.to_text() + " along " + std::to_string(dim) + " in " + std::to_string(parts));
  const auto cut = cut_fragment(whole, dim, parts);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->own.registers() * parts, whole.registers());
  const std::vector<int64_t>& shape = cut->own.shape();
  ASSERT_EQ(shape[static_cast<size_t>(dim)] * parts, whole.shape()[static_cast<size_t>(dim)]);
  for (int64_t r = 0; r < parts; ++r)
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j) {
        std::vector<int64_t> own = {i, j}, at = own;
        at[static_cast<size_t>(dim)] += r * shape[static_cast<size_t>(dim)];
        ASSERT_EQ(cut->own.holders(own), whole.holders(at));
        const int64_t q = cut->own.register_of(own);
        ASSERT_EQ(q / cut->run * cut->step + r * cut->run + q % cut->run, whole.register_of(at));
      }
}

// Two rows 8 apart and pairs of columns of a lane, 16 columns of 8: accumulators of wgmma.
const std::string kLanes = "d0/1%8*4 + d0/16%4*32 + d1/2%4*1; 1: d0/8%2*2 + d1/1%2*1 + ";

TEST(SumShares, OfTheSlowestRegisters) {
  const Fragment wide = fragment("threads 128 : (64,128) -> [0: " + kLanes + "d1/8%16*4]");
  for (int64_t parts : {2, 4, 8, 16}) expect_cut(wide, 1, parts);
  EXPECT_FALSE(cut_fragment(wide, 1, 32));
  EXPECT_FALSE(cut_fragment(wide, 0, 2)) << "rows are other threads'";
}

// Registers of other dimensions stand above those that are cut, or below.
TEST(SumShares, OfRegistersBetweenOthers) {
  const Fragment tall = fragment("threads 128 : (128,128) -> [0: " + kLanes + "d1/8%16*4 + d0/64%2*64]");
  for (int64_t parts : {2, 8}) expect_cut(tall, 1, parts);
  expect_cut(tall, 0, 2);
}

TEST(SumShares, NotWhereColumnsAreThreads) {
  EXPECT_FALSE(cut_fragment(fragment("threads 256 : (64,128) -> [0: " + kLanes.substr(0, kLanes.find(';')) +
                                     " + d1/64%2*128; 1: d0/8%2*2 + d1/1%2*1 + d1/8%8*4]"),
                            1, 2));
}

}  // namespace
}  // namespace tilegen::analysis
