// Named barriers whose participants do not come by as stated, and loops of two sides that are not one.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "golden.h"

namespace tilegen::test {
namespace {

Failure failure_of(const std::string& text) {
  const Context context = make_context();
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_NE(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error), TL_OK);
  tl_program_release(program);
  return Failure(error);
}

std::string line_of(const std::map<std::string, std::string>& lines, const std::string& name,
                    const std::string& text) {
  const auto other = lines.find(name);
  return (other == lines.end() ? text : other->second) + "\n";
}

// Warps 4 to 7 load what warps 0 to 3 take; lines may be left out or be others.
std::string loaded_text(const std::map<std::string, std::string>& lines) {
  const auto line = [&](const char* name, const char* text) { return line_of(lines, name, text); };
  return "tl 1 program p\ndim n\ntensor X: f32[n] readonly\ntensor Y: f32[128]\n"
         "kernel k grid(b: 1) threads 256 {\n  alloc s: shared f32[128]\n" +
         line("loaded", "  alloc loaded: shared u64[1] {participants = 256}") + line("head", "") +
         "  threads w, l in 8, 32 {\n    if w >= 4 {\n" +
         line("load", "      s[(w - 4) * 32 + l] = X[(w - 4) * 32 + l]") +
         line("arrive", "      barrier_arrive loaded") + "    } else {\n" +
         line("sync", "      barrier_sync loaded") +
         line("take", "      Y[w * 32 + l] = s[127 - (w * 32 + l)]") + "    }\n  }\n}\n";
}

TEST(NamedBarriers, HaveTheirParticipants) {
  const auto refused = [&](const std::string& name, const std::map<std::string, std::string>& lines) {
    expect_golden(name, failure_of(loaded_text(lines)));
  };
  refused("bad_attribute.participants_of_a_part_of_a_warp",
          {{"loaded", "  alloc loaded: shared u64[1] {participants = 100}"}});
  refused("bad_attribute.too_many_named_barriers",
          {{"head", "  alloc more: shared u64[15] {participants = 64}"}});
  refused("bad_attribute.arrivals_and_participants",
          {{"loaded", "  alloc loaded: shared u64[1] {arrivals = 256, participants = 256}"}});
  refused("bad_attribute.named_barrier_of_floats",
          {{"loaded", "  alloc loaded: shared f32[1] {participants = 256}"}});
  refused("bad_attribute.meeting_at_data", {{"sync", "      barrier_sync s"}});
  refused("bad_attribute.wait_at_a_named_barrier", {{"sync", "      mbarrier_wait loaded, 0"}});
  refused("bad_attribute.computed_named_barrier",
          {{"loaded", "  alloc loaded: shared u64[2] {participants = 256}"},
           {"arrive", "      serial i in 0 .. n { barrier_arrive loaded[i % 2] }"}});
  refused("bad_shape.several_named_barriers",
          {{"loaded", "  alloc loaded: shared u64[2] {participants = 256}"}});
  refused("misplaced_statement.more_participants_than_come",
          {{"loaded", "  alloc loaded: shared u64[1] {participants = 512}"}});
  refused("misplaced_statement.fewer_participants_than_come",
          {{"loaded", "  alloc loaded: shared u64[1] {participants = 128}"}});
  refused("misplaced_statement.meeting_that_nobody_comes_to", {{"arrive", ""}});
  refused("misplaced_statement.participants_that_nobody_meets", {{"sync", ""}});
  refused("misplaced_statement.arrives_twice",
          {{"arrive", "      barrier_arrive loaded\n      barrier_arrive loaded"}});
  refused("misplaced_statement.meeting_of_a_lane", {{"sync", "      if l == 0 { barrier_sync loaded }"}});
  refused("misplaced_statement.meeting_by_data", {{"sync", "      if X[w] > 0 { barrier_sync loaded }"}});
  // Of launches with n <= 50 nobody arrives.
  refused("misplaced_statement.meeting_of_other_launches",
          {{"arrive", "      if n > 50 { barrier_arrive loaded }"}});
  refused("scope_not_allowed.named_barrier_read", {{"take", "      Y[w * 32 + l] = cast(f32, loaded[0])"}});
}

// Each side has a loop of its own.
std::string ring_text(const std::map<std::string, std::string>& lines) {
  const auto line = [&](const char* name, const char* text) { return line_of(lines, name, text); };
  return "tl 1 program p\ndim n\ntensor X: f32[n, 64] readonly\ntensor Y: f32[128]\n"
         "kernel k grid(b: 1) threads 192 {\n  alloc ring: shared f32[3, 64]\n"
         "  alloc full: shared u64[3] {arrivals = 64}\n  alloc empty: shared u64[3] {arrivals = 128}\n"
         "  threads w, l in 6, 32 {\n    var sum = 0.0f32\n    if w >= 4 {\n" +
         line("first", "") + line("brings", "      serial k in 0 .. n {") +
         "        mbarrier_wait empty[k % 3], (k // 3 + 1) % 2\n"
         "        ring[k % 3, (w - 4) * 32 + l] = X[k, (w - 4) * 32 + l]\n"
         "        mbarrier_arrive full[k % 3]\n      }\n    } else {\n" +
         line("before", "") + line("takes", "      serial k in 0 .. n {") +
         line("wait", "        mbarrier_wait full[k % 3], k // 3 % 2") +
         "        sum += ring[k % 3, (w * 32 + l) % 64]\n        mbarrier_arrive empty[k % 3]\n      }\n"
         "      Y[w * 32 + l] = sum\n    }\n  }\n}\n";
}

TEST(NamedBarriers, LoopsOfTwoSides) {
  const auto refused = [&](const std::string& name, const std::map<std::string, std::string>& lines) {
    expect_golden(name, failure_of(ring_text(lines)));
  };
  refused("misplaced_statement.loops_of_other_bounds", {{"takes", "      serial k in 0 .. n + 1 {"}});
  refused("misplaced_statement.loop_that_a_condition_ends",
          {{"takes", "      serial k in 0 .. n while n > 3 {"}});
  refused("misplaced_statement.loops_that_wait_for_other_phases",
          {{"wait", "        mbarrier_wait full[k % 3], (k // 3 + 1) % 2"}});
  // What stands in front of the second loop reads what the first one writes.
  refused("misplaced_statement.read_in_front_of_the_other_loop",
          {{"before", "      sum += ring[0, (w * 32 + l) % 64]"}});
}

}  // namespace
}  // namespace tilegen::test
