// Transaction barriers whose phases, or what they order, are not what the program says.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "golden.h"

namespace tilegen::test {
namespace {

// Of the parser, or with a target of its compilation.
Failure failure_of(const std::string& text, const char* target_name = nullptr) {
  const Context context = make_context();
  tl_program* program = nullptr;
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_error* error = nullptr;
  const tl_status parsed =
      tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error);
  if (target_name) {
    EXPECT_EQ(parsed, TL_OK);
    EXPECT_EQ(tl_target_parse(target_name, &target, nullptr), TL_OK);
    EXPECT_NE(tl_compile(context.get(), program, target, nullptr, &artifact, &error), TL_OK);
  }
  tl_program_release(program), tl_target_release(target), tl_artifact_release(artifact);
  return Failure(error);
}

// Warps 4 and 5 bring what warps 0 to 3 take, through a ring of three slots; lines may be left out or be
// others.
std::string ring_text(const std::map<std::string, std::string>& lines, const std::string& head = "") {
  const auto line = [&](const std::string& name, const std::string& text) {
    const auto other = lines.find(name);
    return (other == lines.end() ? text : other->second) + "\n";
  };
  return "tl 1 program p\ndim n <= 100\ntensor X: f32[n, 64] readonly\ntensor Y: f32[128]\n"
         "kernel k grid(b: 1) threads 192 {\n  alloc ring: shared f32[3, 64]\n" +
         line("full", "  alloc full: shared u64[3] {arrivals = 64}") +
         line("empty", "  alloc empty: shared u64[3] {arrivals = 128}") + head +
         "  threads w, l in 6, 32 {\n    var sum = 0.0f32\n" + "    serial k in 0 .. n {\n" +
         "      if w >= 4 {\n" + line("wait empty", "        mbarrier_wait empty[k % 3], (k // 3 + 1) % 2") +
         line("bring", "        ring[k % 3, (w - 4) * 32 + l] = X[k, (w - 4) * 32 + l]") +
         line("arrive full", "        mbarrier_arrive full[k % 3]") + "      }\n      if w < 4 {\n" +
         line("wait full", "        mbarrier_wait full[k % 3], k // 3 % 2") +
         line("take", "        sum += ring[k % 3, (w * 32 + l) % 64]") +
         line("arrive empty", "        mbarrier_arrive empty[k % 3]") +
         "      }\n    }\n    if w < 4 { Y[w * 32 + l] = sum }\n  }\n}\n";
}

TEST(TransactionBarriers, AreProvenOrRefused) {
  const auto refused = [&](const std::string& name, const std::map<std::string, std::string>& lines,
                           const std::string& head = "") {
    expect_golden(name, failure_of(ring_text(lines, head)));
  };
  refused("misplaced_statement.no_wait_for_empty", {{"wait empty", ""}});
  refused("misplaced_statement.no_arrival_at_full", {{"arrive full", ""}});
  refused("misplaced_statement.no_wait_for_full", {{"wait full", ""}});
  refused("misplaced_statement.no_arrival_at_empty", {{"arrive empty", ""}});
  refused("misplaced_statement.parity_of_a_phase_to_come",
          {{"wait full", "        mbarrier_wait full[k % 3], (k // 3 + 1) % 2"}});
  refused("misplaced_statement.too_many_arrivals", {{"full", "  alloc full: shared u64[3] {arrivals = 32}"}});
  refused("misplaced_statement.too_few_arrivals", {{"full", "  alloc full: shared u64[3] {arrivals = 96}"}});
  refused("misplaced_statement.phase_begun",
          {{"full", "  alloc full: shared u64[3] {arrivals = 128}"},
           {"wait full", "        mbarrier_wait full[k % 3], (k // 3 + 1) % 2"}});
  // One lane of each of two warps arrives, where 64 threads are counted.
  refused("misplaced_statement.arrival_of_a_lane",
          {{"arrive full", "        if l == 0 { mbarrier_arrive full[k % 3] }"}});
  refused("misplaced_statement.arrival_of_two_lanes",
          {{"arrive full", "        if l < 2 { mbarrier_arrive full[k % 3] }"}});
  refused("misplaced_statement.arrival_of_a_lane_with_copies",
          {{"arrive full", "        if l == 0 { mbarrier_arrive full[k % 3] {copies} }"}});
  refused("misplaced_statement.wait_of_a_lane",
          {{"wait full", "        if l == 0 { mbarrier_wait full[k % 3], k // 3 % 2 }"}});
  refused("bad_attribute.elected_lane_with_copies", {},
          "  mbarrier_arrive full[0] {threads = 64, copies, elected}\n");
  refused("misplaced_statement.arrival_of_data",
          {{"arrive full", "        if X[0, w] > 0 { mbarrier_arrive full[k % 3] }"}});
  refused("misplaced_statement.barrier_of_a_thread",
          {{"arrive full", "        mbarrier_arrive full[w % 3]"}});
  refused("misplaced_statement.barrier_in_pipeline", {},
          "  pipelined i in 0 .. 4 {\n    mbarrier_arrive full[0] {threads = 64}\n  }\n");
  refused("bad_attribute.barrier_of_data", {{"arrive full", "        mbarrier_arrive full[n % 3]"}});
  refused("bad_attribute.threads_of_a_barrier",
          {{"arrive full", "        mbarrier_arrive full[k % 3] {threads = 64}"}});
  refused("bad_attribute.part_of_a_warp", {}, "  mbarrier_arrive full[0] {first = 16, threads = 32}\n");
  refused("bad_attribute.no_barrier", {{"full", "  alloc full: shared u64[3]"}});
  refused("bad_attribute.barriers_of_floats", {{"full", "  alloc full: shared f32[3] {arrivals = 64}"}});
  refused("bad_shape.several_barriers", {{"arrive full", "        mbarrier_arrive full"}});
  refused("dtype_mismatch.parity", {{"wait full", "        mbarrier_wait full[k % 3], k // 3 % 2 == 1"}});
  refused("index_out_of_bounds.parity", {{"wait full", "        mbarrier_wait full[k % 3], k // 3 % 2 + 2"}});
  refused("scope_not_allowed.barrier_read",
          {{"take", "        sum += ring[k % 3, (w * 32 + l) % 64] + cast(f32, full[0])"}});
  refused("scope_not_allowed.barrier_copied", {}, "  fill full, 0\n");
  // Boxes that warps copy together.
  const auto box = [&](const std::string& name, const std::string& line) {
    refused(name, {{"bring", "        " + line}});
  };
  box("shape_mismatch.box_of_other_ranges", "copy_bulk X[k :+ 2, 0 :+ 32] -> ring[k % 3, 0 :+ 32]");
  box("shape_mismatch.box_of_a_column", "copy_bulk X[k :+ 3, 0] -> ring[0 :+ 3, 0]");
  box("scope_not_allowed.box_to_a_tensor", "copy_bulk X[k, 0 :+ 64] -> Y[0 :+ 64]");
  box("misplaced_statement.box_of_a_lane", "if l == 0 { copy_bulk X[k, 0 :+ 64] -> ring[k % 3, 0 :+ 64] }");
  box("misplaced_statement.box_of_a_thread", "copy_bulk X[k + w, 0 :+ 64] -> ring[k % 3, 0 :+ 64]");
  refused("misplaced_statement.box_outside_of_threads", {},
          "  copy_bulk X[0, 0 :+ 64] -> ring[0, 0 :+ 64]\n");
  refused("misplaced_statement.box_without_copies",
          {{"bring", "        copy_bulk X[k, 0 :+ 64] -> ring[k % 3, 0 :+ 64]"}});
  // Waits and arrivals match, and do not order what is read.
  const auto unordered = [&](const std::map<std::string, std::string>& lines) {
    return failure_of(ring_text(lines), "sm_80");
  };
  expect_golden(
      "misplaced_statement.taken_behind_the_arrival",
      unordered({{"take", ""},
                 {"arrive empty",
                  "        mbarrier_arrive empty[k % 3]\n        sum += ring[k % 3, (w * 32 + l) % 64]"}}));
  expect_golden(
      "misplaced_statement.brought_behind_the_arrival",
      unordered({{"bring", ""},
                 {"arrive full",
                  "        mbarrier_arrive full[k % 3]\n        ring[k % 3, (w - 4) * 32 + l] = X[k, l]"}}));
  // Before the lane arrives another lane may not have brought its element.
  expect_golden("misplaced_statement.brought_behind_a_lane",
                unordered({{"full", "  alloc full: shared u64[3] {arrivals = 2}"},
                           {"bring", ""},
                           {"arrive full",
                            "        if l == 0 { mbarrier_arrive full[k % 3] }\n"
                            "        ring[k % 3, (w - 4) * 32 + l] = X[k, l]"}}));
  // Of launches with n <= 50 nobody arrives, or nobody waits.
  refused("misplaced_statement.arrival_of_other_launches",
          {{"arrive full", "        if n > 50 { mbarrier_arrive full[k % 3] }"}});
  refused("misplaced_statement.taken_without_a_wait",
          {{"wait full", "        if n > 50 { mbarrier_wait full[k % 3], k // 3 % 2 }"}});
  // The copy is behind the arrival that is waited for.
  for (const char* target : {"sm_80", "sm_90a"})
    expect_golden("misplaced_statement.box_behind_the_arrival",
                  failure_of(ring_text({{"bring", ""},
                                        {"arrive full",
                                         "        mbarrier_arrive full[k % 3] {copies}\n"
                                         "        copy_bulk X[k, 0 :+ 64] -> ring[k % 3, 0 :+ 64]"}}),
                             target));
  expect_golden("misplaced_statement.fewer_slots_than_barriers",
                unordered({{"bring", "        ring[k % 2, (w - 4) * 32 + l] = X[k, l]"},
                           {"take", "        sum += ring[k % 2, (w * 32 + l) % 64]"}}));
}

}  // namespace
}  // namespace tilegen::test
