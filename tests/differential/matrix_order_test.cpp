// Ordered atomic operations: what blocks leave for each other in one launch, by a counter, by flags and by a
// ticket; and the race that the simulators find where an order is missing.
#include "matrix.h"

namespace tilegen::differential {
namespace {

std::vector<Launch> rows(std::initializer_list<int64_t> list) {
  std::vector<Launch> launches;
  for (int64_t n : list) {
    Launch l;
    l.dims = {{"n", n}};
    l.seed = static_cast<uint64_t>(n);
    launches.push_back(l);
  }
  return launches;
}

// The last block adds up what all blocks have left, as tiles and as elements.
const char* const kLastBlock = R"(tl 1 program last
dim n
tensor X: $type[n, 48] readonly
tensor Part: $type[ceildiv(n, 16), 48] workspace
tensor Count: $counter[2] workspace
tensor Y: $type[48]

kernel begin grid (b: 1) {
  parallel i in 2 { Count[i] = 0 }
}
kernel k grid (b: ceildiv(n, 16)) threads $threads {
  alloc x: $scope $type[16, 48]
  alloc s: fragment $type[48]
  alloc before: shared $counter[1]
  copy X[b * 16 :+ 16, 0 :+ 48] -> x
  reduce x -> s {axis = 0}
  copy s -> Part[b :+ 1, 0 :+ 48]
  parallel i in 1 { before[i] = atomic_add(Count[1], 1)$order }
  if before[0] == cast($counter, ceildiv(n, 16)) - 1 {
    fill s, 0
    serial r in 0 .. ceildiv(n, 16) {
      parallel j in 48 { s[j] += Part[r, j] }
    }
    copy s -> Y[0 :+ 48]
  }
}
)";

std::string last_block(const std::string& order, const std::string& scope = "shared",
                       const std::string& counter = "i32", const std::string& threads = "64") {
  return replaced(
      kLastBlock,
      {{"type", "i32"}, {"order", order}, {"scope", scope}, {"counter", counter}, {"threads", threads}});
}

TEST(Orders, TheLastBlockAddsUp) {
  for (const std::string scope : {"shared", "fragment"})
    for (const std::string counter : {"i32", "u64"})
      for (const std::string threads : {"64", "128"}) {
        expect_agree(last_block(" {order = acq_rel}", scope, counter, threads), rows({1, 16, 70, 160}));
        if (HasFailure()) return;
      }
}

// Each block waits for the one before, takes the sum up to it, and hands its own on.
TEST(Orders, SumsAlongBlocks) {
  expect_agree(R"(tl 1 program chain
dim n
tensor X: i32[n] readonly
tensor Carry: i32[ceildiv(n, 64)] workspace
tensor Flag: i32[ceildiv(n, 64)] workspace
tensor Y: i32[n]

kernel begin grid (b: ceildiv(n, 64)) {
  parallel i in 1 { Flag[b] = 0 }
  parallel i in 1 { Carry[b] = 0 }
}
kernel k grid (b: ceildiv(n, 64)) threads 64 {
  alloc x: fragment i32[64]
  alloc sum: fragment i32[1]
  alloc base: shared i32[1]
  alloc ready: shared i32[1]
  copy X[b * 64 :+ 64] -> x
  reduce x -> sum {axis = 0}
  fill base, 0
  if b > 0 {
    fill ready, 0
    while ready[0] == 0 {
      parallel i in 1 { ready[i] = atomic_or(Flag[b - 1], 0) {order = acquire} }
    }
    parallel i in 1 { base[i] = Carry[b - 1] }
  }
  parallel i in 1 { Carry[b] = base[i] + sum[i] }
  parallel i in 1 { atomic_exchange(Flag[b], 1) {order = release} }
  cumsum x -> x {axis = 0}
  parallel i in 64 { x[i] += base[0] }
  copy x -> Y[b * 64 :+ 64]
}
)",
               rows({1, 64, 200, 515}));
}

// Iterations of one loop: the one that comes last finds what all others have left, though only atomic
// operations touch it.
TEST(Orders, IterationsOfABlock) {
  for (const std::string type : {"i32", "u8", "i64"})
    for (const std::string threads : {"32", "128"}) {
      expect_agree(replaced(R"(tl 1 program iterations
dim n
tensor X: $type[n, 32] readonly
tensor Y: $type[n]
tensor Z: $type[n]

kernel k grid (b: n) threads $threads {
  alloc data: shared $type[32]
  alloc count: shared i32[2]
  alloc total: shared $type[2]
  fill data, 0
  fill count, 0
  fill total, 0
  parallel i in 32 {
    atomic_exchange(data[(i * 5) % 32], X[b, i])
    let ticket = atomic_add(count[0], 1) {order = acq_rel}
    if ticket == 31 {
      unroll j in 0 .. 32 {
        let found = atomic_or(data[j], 0$type)
        atomic_add(total[0], found)
      }
    }
  }
  parallel i in 32 {
    atomic_xor(total[1], data[i]) {order = release}
    atomic_add(total[1], 0$type) {order = acquire}
  }
  parallel i in 1 { Z[b] = total[1] }
  parallel i in 1 { Y[b] = total[0] }
}
)",
                            {{"type", type}, {"threads", threads}}),
                   rows({1, 7}));
      if (HasFailure()) return;
    }
}

// A release orders what the block did before, not only what its own thread did.
TEST(Orders, WithoutOrdersThereAreRaces) {
  for (const std::string order : {"", " {order = release}", " {order = acquire}"}) {
    Subject subject(last_block(order), {"sim:sm_80"});
    Launch launch = rows({70})[0];
    if (take_case) return;
    const Outcome o = subject.compare(launch);
    EXPECT_FALSE(o.is_fine()) << order;
    EXPECT_NE(o.text.find("race"), std::string::npos) << order << ": " << o.text;
  }
}

}  // namespace
}  // namespace tilegen::differential
