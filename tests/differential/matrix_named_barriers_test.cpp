// Barriers that a program names, for stated participants, and sides that stand one behind the other in the
// text and wait for each other.
#include "matrix_barriers.h"

namespace tilegen::differential {
namespace {

// One side in front of the other, both in ifs or in blocks of threads of their own.
std::string sides(const std::string& type, const std::string& allocs, const std::string& low,
                  const std::string& high, int form) {
  const std::string first = form % 2 == 0 ? low : high, second = form % 2 == 0 ? high : low,
                    of_first = form % 2 == 0 ? "w < 4" : "w >= 4",
                    of_second = form % 2 == 0 ? "w >= 4" : "w < 4";
  const std::string between = form < 2   ? "} else {"
                              : form < 4 ? "}\n    if $s {"
                                         : "}\n  }\n  threads w, l in 8, 32 {\n    if $s {";
  return replaced(
      "tl 1 program p\ndim m\ntensor X: $t[m] readonly\ntensor Y: $t[m]\n"
      "kernel k grid (g: ceildiv(m, 256)) threads 256 {\n" +
          allocs + "  threads w, l in 8, 32 {\n    if " + of_first + " {\n" + first + "    " + between +
          "\n" + second + "    }\n  }\n}\n",
      {{"t", type}, {"s", of_second}});
}
constexpr int kForms = 6;

TEST(NamedBarriers, OneSideArrivesAndTheOtherMeets) {
  for (const std::string type : {"f32", "i64", "u8", "f16"})
    for (int form = 0; form < kForms; ++form)
      expect_agree_everywhere(
          sides(type, "  alloc s: shared $t[128]\n  alloc loaded: shared u64[1] {participants = 256}\n",
                "      barrier_sync loaded\n      Y[g * 256 + w * 32 + l] = s[127 - (w * 32 + l)]\n",
                "      s[(w - 4) * 32 + l] = X[g * 256 + w * 32 + l]\n      barrier_arrive loaded\n", form),
          {256, 300});
}

TEST(NamedBarriers, BothSidesMeet) {
  for (int form = 0; form < kForms; ++form)
    expect_agree_everywhere(
        sides("f32",
              "  alloc a: shared $t[128]\n  alloc c: shared $t[128]\n"
              "  alloc met: shared u64[1] {participants = 256}\n",
              "      a[w * 32 + l] = X[g * 256 + w * 32 + l]\n      barrier_sync met\n"
              "      Y[g * 256 + w * 32 + l] = c[w * 32 + l] * 2\n",
              "      c[(w - 4) * 32 + l] = X[g * 256 + w * 32 + l]\n      barrier_sync met\n"
              "      Y[g * 256 + w * 32 + l] = a[(w - 4) * 32 + l] + 1\n",
              form),
        {256, 300});
}

// A barrier for each half: its warps meet, the other half goes on.
TEST(NamedBarriers, HalvesOfABlock) {
  for (int form = 0; form < kForms; ++form)
    expect_agree_everywhere(
        sides("i32", "  alloc s: shared $t[256]\n  alloc half: shared u64[2] {participants = 128}\n",
              "      s[w * 32 + l] = X[g * 256 + w * 32 + l]\n      barrier_sync half[0]\n"
              "      Y[g * 256 + w * 32 + l] = s[127 - (w * 32 + l)]\n",
              "      s[w * 32 + l] = X[g * 256 + w * 32 + l]\n      barrier_sync half[1]\n"
              "      Y[g * 256 + w * 32 + l] = s[383 - (w * 32 + l)]\n",
              form),
        {256, 300});
}

// Turns of two sides, each in a loop of its own: one tile goes to and fro.
TEST(NamedBarriers, TurnsOfTwoLoops) {
  for (int form = 0; form < kForms; ++form)
    for (const std::string trips : {"5", "m // 100"})
      expect_agree_everywhere(
          sides("f32",
                "  alloc s: shared $t[128]\n  alloc full: shared u64[1] {participants = 256}\n"
                "  alloc empty: shared u64[1] {participants = 256}\n",
                "      var sum = 0.0f32\n      serial k in 0 .. " + trips +
                    " {\n        barrier_arrive empty\n        barrier_sync full\n"
                    "        sum += s[127 - (w * 32 + l)]\n      }\n      Y[g * 256 + w * 32 + l] = sum\n",
                "      serial i in 0 .. " + trips +
                    " {\n        barrier_sync empty\n"
                    "        s[(w - 4) * 32 + l] = X[(i * 128 + w * 32 + l) % m]\n"
                    "        barrier_arrive full\n      }\n",
                form),
          {256, 700});
}

// Of warps of which neither side is all: what they know goes on from one barrier to the next.
TEST(NamedBarriers, OneBehindTheOther) {
  expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 32)) threads 128 {
  alloc a: shared f32[32]
  alloc b: shared f32[32]
  alloc first: shared u64[2] {participants = 64}
  alloc last: shared u64[1] {participants = 96}
  threads t in 128 {
    if warp_id() == 3 {
      barrier_sync last
      Y[g * 32 + t % 32] = a[t % 32] + b[31 - t % 32]
    }
    if warp_id() == 2 {
      barrier_sync first[1]
      b[t % 32] = a[31 - t % 32] * 3
      barrier_arrive last
    }
    if warp_id() == 1 {
      barrier_sync first[0]
      a[t % 32] += 1
      barrier_arrive first[1]
      barrier_arrive last
    }
    if warp_id() == 0 {
      a[31 - t % 32] = X[g * 32 + t % 32]
      barrier_arrive first[0]
    }
  }
}
)",
                          {32, 50});
}

// Outside of blocks of threads the threads are attributes.
TEST(NamedBarriers, OutsideOfBlocksOfThreads) {
  expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  alloc s: shared f32[128]
  alloc loaded: shared u64[2] {participants = 128}
  threads w, l in 4, 32 { if w < 2 { s[w * 32 + l] = X[g * 128 + w * 32 + l] } }
  barrier_arrive loaded[1] {threads = 64}
  barrier_sync loaded[1] {first = 64, threads = 64}
  threads w, l in 4, 32 { if w > 1 { Y[g * 128 + w * 32 + l] = s[127 - w * 32 - l] } }
  barrier_sync loaded[0]
}
)",
                          {128, 300});
}

// Rings whose sides have loops of their own: prologues and epilogues, whichever side stands first, numbers of
// uses that begin elsewhere, and conditions of the launch around each.
TEST(NamedBarriers, RingsOfTwoLoops) {
  const std::string allocs =
      "  alloc ring: shared $t[3, 128]\n  alloc full: shared u64[3] {arrivals = 128}\n"
      "  alloc empty: shared u64[3] {arrivals = 4}\n";
  const auto takes = [](const std::string& trips) {
    return "      var sum = X[g * 256 + w * 32 + l]\n      serial k in 0 .. " + trips +
           " {\n        mbarrier_wait full[k % 3], k // 3 % 2\n        sum += ring[k % 3, 127 - (w * 32 + "
           "l)]\n"
           "        if l == 0 { mbarrier_arrive empty[k % 3] }\n      }\n      Y[g * 256 + w * 32 + l] = "
           "sum\n";
  };
  const auto brings = [](const std::string& loop, const std::string& k) {
    return "      serial i in " + loop + " {\n        mbarrier_wait empty[(" + k + ") % 3], ((" + k +
           ") // 3 + 1) % 2\n        ring[(" + k + ") % 3, (w - 4) * 32 + l] = X[((" + k +
           ") * 128 + w * 32 + l) % m]\n        mbarrier_arrive full[(" + k + ") % 3]\n      }\n";
  };
  for (int form = 0; form < kForms; ++form) {
    expect_agree_everywhere(sides("f32", allocs, takes("m // 60"), brings("0 .. m // 60", "i"), form),
                            {256, 700});
    expect_agree_everywhere(sides("i64", allocs, takes("7"), brings("2 :+ 7", "i - 2"), form), {256, 300});
  }
  for (const int form : {2, 3}) {
    const auto launched = [](const std::string& side) { return "      if m > 260 {\n" + side + "      }\n"; };
    expect_agree_everywhere(
        sides("f32", allocs, launched(takes("m // 60")), launched(brings("0 .. m // 60", "i")), form),
        {256, 700});
  }
}

// A ring of three sides: what one brings two others take.
TEST(NamedBarriers, RingsOfThreeSides) {
  expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 64)) threads 96 {
  alloc ring: shared f32[2, 32]
  alloc full: shared u64[2] {arrivals = 32}
  alloc empty: shared u64[2] {arrivals = 64}
  threads w, l in 3, 32 {
    if w == 0 {
      var sum = 0.0f32
      serial k in 0 .. m // 20 {
        mbarrier_wait full[k % 2], k // 2 % 2
        sum += ring[k % 2, 31 - l]
        mbarrier_arrive empty[k % 2]
      }
      Y[g * 64 + l] = sum
    } else if w == 1 {
      serial k in 0 .. m // 20 {
        mbarrier_wait empty[k % 2], (k // 2 + 1) % 2
        ring[k % 2, l] = X[(k * 32 + g + l) % m]
        mbarrier_arrive full[k % 2]
      }
    } else {
      var most = 0.0f32
      serial k in 0 .. m // 20 {
        mbarrier_wait full[k % 2], k // 2 % 2
        most = max(most, ring[k % 2, (l + 5) % 32])
        mbarrier_arrive empty[k % 2]
      }
      Y[g * 64 + 32 + l] = most
    }
  }
}
)",
                          {64, 150});
}

// Loops in loops, and slots that are announced before they are waited for.
TEST(NamedBarriers, RingsOfNestedLoops) {
  expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 128)) threads 64 {
  alloc ring: shared f32[2, 32]
  alloc full: shared u64[2] {arrivals = 32}
  alloc empty: shared u64[2] {arrivals = 32}
  threads w, l in 2, 32 {
    if w == 1 {
      unroll q in 0 .. 2 { mbarrier_arrive empty[q] }
      serial o in 0 .. 4 {
        var s = 0.0f32
        serial k in 0 .. 6 {
          mbarrier_wait full[(o * 6 + k) % 2], (o * 6 + k) // 2 % 2
          s += ring[(o * 6 + k) % 2, 31 - l]
          mbarrier_arrive empty[(o * 6 + k) % 2]
        }
        Y[g * 128 + o * 32 + l] = s
      }
    } else {
      serial o in 0 .. 4 {
        serial k in 0 .. 6 {
          mbarrier_wait empty[(o * 6 + k) % 2], (o * 6 + k) // 2 % 2
          ring[(o * 6 + k) % 2, l] = X[(g + o * 6 + k * 32 + l) % m]
          mbarrier_arrive full[(o * 6 + k) % 2]
        }
      }
    }
  }
}
)",
                          {128, 200});
}

// Three sides hand on what they have made, each in a loop of its own.
TEST(NamedBarriers, ChainsOfThreeSides) {
  const std::string sides[] = {R"(
      serial k in 0 .. 5 {
        barrier_sync a_empty
        a[l] = X[(g * 32 + k * 7 + l) % m]
        barrier_arrive a_full
      })",
                               R"(
      serial k in 0 .. 5 {
        barrier_arrive a_empty
        barrier_sync a_full
        let v = a[31 - l] * 2
        barrier_sync c_empty
        c[l] = v
        barrier_arrive c_full
      })",
                               R"(
      var sum = 0.0f32
      serial k in 0 .. 5 {
        barrier_arrive c_empty
        barrier_sync c_full
        sum += c[l] + 1
      }
      Y[g * 32 + l] = sum)"};
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    std::string text;
    for (const int side : order)
      text += "    if w == " + std::to_string(side) + " {" + sides[side] + "\n    }\n";
    expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 32)) threads 128 {
  alloc a: shared f32[32]
  alloc c: shared f32[32]
  alloc a_full: shared u64[1] {participants = 64}
  alloc a_empty: shared u64[1] {participants = 64}
  alloc c_full: shared u64[1] {participants = 64}
  alloc c_empty: shared u64[1] {participants = 64}
  threads w, l in 4, 32 {
)" + text + "  }\n}\n",
                            {32, 50});
  }
}

// Where a kernel's product has roles, barriers of its computing threads stand at named ones.
TEST(NamedBarriers, BesideAProduct) {
  expect_agree_everywhere(R"(tl 1 program p
dim m divisible 64
tensor A: f16[128, m] readonly
tensor B: f16[m, 128] readonly
tensor C: f16[128, 128]
tensor D: f16[256]
kernel k grid (g: 1) threads 256 {
  alloc As: shared f16[128, 64]
  alloc Bs: shared f16[64, 128]
  alloc acc: fragment f32[128, 128]
  alloc s: shared f16[256]
  alloc half: shared u64[2] {participants = 128}
  fill acc, 0
  pipelined i in 0 .. m // 64 stages 3 {
    copy A[0 :+ 128, i * 64 :+ 64] -> As
    copy B[i * 64 :+ 64, 0 :+ 128] -> Bs
    gemm As, Bs -> acc
  }
  copy acc -> C[0 :+ 128, 0 :+ 128]
  threads t in 256 {
    s[t] = A[t % 128, t % 64]
    if t < 128 {
      barrier_sync half[0]
      D[t] = s[127 - t]
    } else {
      barrier_sync half[1]
      D[t] = s[383 - t]
    }
  }
}
)",
                          {64, 192});
}

}  // namespace
}  // namespace tilegen::differential
