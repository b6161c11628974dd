// Sides of a block of threads that wait for each other become the program in which each finds what it waits
// for, however they stand; programs that are in order already stay as they are.
#include "ir/weave_sides.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text.h"

namespace tilegen::ir {
namespace {

std::string made(const std::string& body) {
  const auto p = parse_program(
      "tl 1 program p\ndim n\ntensor X: f32[n, 64] readonly\ntensor Y: f32[192]\n"
      "kernel k grid(b: 1) threads 192 {\n  alloc ring: shared f32[3, 64]\n  alloc low: shared f32[128]\n"
      "  alloc high: shared f32[64]\n  alloc full: shared u64[3] {arrivals = 64}\n"
      "  alloc empty: shared u64[3] {arrivals = 128}\n  alloc met: shared u64[2] {participants = 192}\n"
      "  threads w, l in 6, 32 {\n" +
          body + "\n  }\n}\n",
      "t.tl", Limits{});
  return p ? print_program(*p) : p.error().diagnostics[0].message;
}
// What each statement is, in order.
std::string order_of(const std::string& body) {
  const std::string text = made(body);
  std::string order;
  const std::pair<const char*, const char*> words[] = {{"serial ", "loop "},
                                                       {"mbarrier_wait empty", "wait-empty "},
                                                       {"mbarrier_arrive full", "arrive-full "},
                                                       {"ring[k % 3, ", ""},
                                                       {"mbarrier_wait full", "wait-full "},
                                                       {"mbarrier_arrive empty", "arrive-empty "},
                                                       {"barrier_sync", "sync "},
                                                       {" low[", "low "},
                                                       {" high[", "high "},
                                                       {"barrier_arrive", "arrive "}};
  size_t line = 0;
  while (line < text.size()) {
    const size_t end = text.find('\n', line);
    const std::string one = text.substr(line, end - line);
    if (one.find("alloc") == one.npos)
      for (const auto& [word, name] : words)
        if (one.find(word) != one.npos) {
          order += name;
          break;
        }
    line = end + 1;
  }
  return order;
}

const std::string kBrings =
    "mbarrier_wait empty[k % 3], (k // 3 + 1) % 2\nring[k % 3, (w - 4) * 32 + l] = X[k, l]\n"
    "mbarrier_arrive full[k % 3]\n";
const std::string kTakes =
    "mbarrier_wait full[k % 3], k // 3 % 2\nsum += ring[k % 3, (w * 32 + l) % 64]\n"
    "mbarrier_arrive empty[k % 3]\n";
std::string looped(const std::string& body, const std::string& range = "0 .. n") {
  return "serial k in " + range + " {\n" + body + "}\n";
}

TEST(WeaveSides, TwoLoopsAreOne) {
  const std::string one =
      made("var sum = 0.0f32\n" + looped("if w >= 4 {\n" + kBrings + "} else {\n" + kTakes + "}\n"));
  EXPECT_NE(one.find("serial k in 0 .. n"), one.npos) << one;
  EXPECT_EQ(made("var sum = 0.0f32\nif w >= 4 {\n" + looped(kBrings) + "} else {\n" + looped(kTakes) + "}\n"),
            one);
  const std::string order = "loop wait-empty arrive-full wait-full arrive-empty ";
  for (const std::string sides :
       {"if w < 4 {\n" + looped(kTakes) + "} else {\n" + looped(kBrings) + "}\n",
        "if w >= 4 {\n" + looped(kBrings) + "}\nif w < 4 {\n" + looped(kTakes) + "}\n",
        "if w < 4 {\n" + looped(kTakes) + "}\nif w >= 4 {\n" + looped(kBrings) + "}\n",
        looped("if w < 4 {\n" + kTakes + "} else {\n" + kBrings + "}\n")})
    EXPECT_EQ(order_of("var sum = 0.0f32\n" + sides), order) << sides;
}

// One that begins elsewhere has its numbers in the other's.
TEST(WeaveSides, LoopsThatBeginElsewhere) {
  const std::string text =
      made("var sum = 0.0f32\nif w < 4 {\n" + looped(kTakes) + "} else {\n" +
           looped("let u = k - 2\nmbarrier_wait empty[u % 3], (u // 3 + 1) % 2\n"
                  "ring[u % 3, (w - 4) * 32 + l] = X[u, l]\nmbarrier_arrive full[u % 3]\n",
                  "2 :+ n") +
           "}\n");
  EXPECT_EQ(text.find("serial", text.find("serial") + 1), text.npos) << text;
}

TEST(WeaveSides, BothSidesMeetOnce) {
  const std::string low = "low[w * 32 + l] = X[0, l]\n", high = "high[(w - 4) * 32 + l] = X[1, l]\n";
  const std::string of_low = "Y[w * 32 + l] = high[l]\n", of_high = "Y[w * 32 + l] = low[l]\n";
  const std::string both =
      low.substr(0, 0) + "if w < 4 {\n" + low + "} else {\n" + high + "}\nbarrier_sync met[1]\n";
  const std::string split = "if w < 4 {\n" + low + "barrier_sync met[1]\n" + of_low + "} else {\n" + high +
                            "barrier_sync met[1]\n" + of_high + "}\n";
  EXPECT_EQ(order_of(split), "low high sync high low ") << made(split);
  EXPECT_EQ(order_of(both), "low high sync ");
}

TEST(WeaveSides, WhoMeetsStandsBehindWhoArrives) {
  const std::string arrives = "low[w * 32 + l] = X[0, l]\nbarrier_arrive met[0]\n",
                    meets = "barrier_sync met[0]\nhigh[(w - 4) * 32 + l] = low[l]\n";
  EXPECT_EQ(order_of("if w < 4 {\n" + arrives + "} else {\n" + meets + "}\n"), "low arrive sync low ");
  EXPECT_EQ(order_of("if w >= 4 {\n" + meets + "} else {\n" + arrives + "}\n"), "low arrive sync low ");
}

// A ring with a slot for each use is in order as it stands.
TEST(WeaveSides, WhatIsInOrderStays) {
  const std::string body = "var sum = 0.0f32\nif w >= 4 {\nserial k in 0 .. 3 {\n" + kBrings +
                           "}\n} else {\nserial k in 0 .. 3 {\n" + kTakes + "}\n}\n";
  EXPECT_EQ(order_of(body), "loop wait-empty arrive-full loop wait-full arrive-empty ");
}

// Loops of other bounds, and what touches in front of its own loop what the other side's loop does.
TEST(WeaveSides, WhatIsNotWoven) {
  const std::string apart = "loop wait-empty arrive-full loop wait-full arrive-empty ";
  EXPECT_EQ(order_of("var sum = 0.0f32\nif w >= 4 {\n" + looped(kBrings) + "} else {\n" +
                     looped(kTakes, "0 .. n - 1") + "}\n"),
            apart);
  EXPECT_EQ(order_of("var sum = 0.0f32\nif w >= 4 {\n" + looped(kBrings) + "} else {\nsum += ring[0, l]\n" +
                     looped(kTakes) + "}\n"),
            apart);
}

// Written out, however many there are.
TEST(WeaveSides, ManyTurns) {
  std::string brings, takes, order;
  for (int turn = 0; turn < 300; ++turn) {
    brings += "low[w * 32 + l] = X[0, l]\nbarrier_arrive met[0]\nbarrier_sync met[1]\n";
    takes += "barrier_sync met[0]\nhigh[(w - 4) * 32 + l] = X[1, l]\nbarrier_arrive met[1]\n";
    order += "low arrive sync high arrive sync ";
  }
  EXPECT_EQ(order_of("if w >= 4 {\n" + takes + "} else {\n" + brings + "}\n"), order);
}

}  // namespace
}  // namespace tilegen::ir
