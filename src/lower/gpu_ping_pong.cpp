// Turns of the computing warpgroups with the matrix units, in a ring: warpgroup w waits at barrier first + w
// before the first product of an iteration and, behind its last, arrives at that of the next warpgroup. A
// barrier counts both: the warpgroup that waits and the one that arrives.
//
// The last warpgroup gives warpgroup 0 its first turn when the kernel begins; since all have as many turns as
// each other, it is warpgroup 0's again behind every loop, and behind every tile of a persistent block. At
// the kernel's end warpgroup 0 takes it, and no barrier is left with arrivals.
//
// Nobody waits for all warpgroups between the two ends of a turn: the others may be waiting for theirs.
// Planning sees to it (schedule/ping_pong_plan.h).
#include "lower/kernel_lowering.h"
#include "schedule/ping_pong_plan.h"

namespace tilegen::lower {

namespace {

thread::Barrier turn_of(int64_t warpgroup, bool arrive_only) {
  return {schedule::kFirstTurnBarrier + static_cast<int>(warpgroup), 2 * kWarpgroup, arrive_only};
}

}  // namespace

bool KernelLowering::takes_turns() const {
  return std::any_of(schedule_.loops.begin(), schedule_.loops.end(),
                     [](const plan::LoopPlan& l) { return l.ping_pong.value_or(false); });
}

void KernelLowering::wait_for_turn(thread::Block& out, const std::string& origin) {
  for_each_warpgroup([&](int64_t w) { return thread::Block{out_.add(turn_of(w, false), origin)}; }, out,
                     origin);
}

void KernelLowering::pass_turn(thread::Block& out, const std::string& origin) {
  const int64_t warpgroups = *schedule_.threads / kWarpgroup;
  for_each_warpgroup(
      [&](int64_t w) { return thread::Block{out_.add(turn_of((w + 1) % warpgroups, true), origin)}; }, out,
      origin);
}

void KernelLowering::give_first_turn(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId last =
      e.le(e.const_int((*schedule_.threads / kWarpgroup - 1) * kWarpgroup), e.var(out_.thread_var));
  out.push_back(out_.add(thread::Branch{last, {out_.add(turn_of(0, true), kernel_.name)}, {}}, kernel_.name));
}

void KernelLowering::take_back_turn(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId first = e.lt(e.var(out_.thread_var), e.const_int(kWarpgroup));
  out.push_back(
      out_.add(thread::Branch{first, {out_.add(turn_of(0, false), kernel_.name)}, {}}, kernel_.name));
}

}  // namespace tilegen::lower
