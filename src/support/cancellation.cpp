#include "support/cancellation.h"

#include "support/diag_codes.h"

namespace tilegen {
namespace {

constexpr int64_t kCentury = int64_t{100} * 366 * 24 * 3600 * 1000;  // ms
constexpr Cancellation::Clock::rep kInterval =
    std::chrono::duration_cast<Cancellation::Clock::duration>(std::chrono::milliseconds(1)).count();

}  // namespace

Cancellation::Clock::time_point Cancellation::deadline_in(int64_t ms) {
  return ms > 0 && ms < kCentury ? Clock::now() + std::chrono::milliseconds(ms) : kNever;
}

bool Cancellation::requested() const {
  if (reason_.load(std::memory_order_relaxed) != Reason::none) return true;
  Reason reason = Reason::none;
  if (ask_) {
    const std::unique_lock lock(asking_, std::try_to_lock);
    if (lock && ask_()) reason = Reason::asked;
  }
  if (reason == Reason::none && deadline_ != kNever && Clock::now() >= deadline_) reason = Reason::late;
  if (reason == Reason::none) return false;
  Reason none = Reason::none;  // the first reason stands
  reason_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
  return true;
}

bool Cancellation::requested_lately() const {
  if (reason_.load(std::memory_order_relaxed) != Reason::none) return true;
  if (!ask_ && deadline_ == kNever) return false;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (now - asked_at_.load(std::memory_order_relaxed) < kInterval) return false;
  asked_at_.store(now, std::memory_order_relaxed);
  return requested();
}

Error Cancellation::error(std::string op, std::string_view where) const {
  const std::string place = where.empty() ? "" : " " + std::string(where);
  if (reason_.load(std::memory_order_relaxed) == Reason::late)
    return Error(DiagCode::cancelled_by_caller, std::move(op),
                 "the time that the call was given ran out" + place, "give it more time, or less to do");
  return Error(DiagCode::cancelled_by_caller, std::move(op), "the cancel callback asked to stop" + place,
               "call again to have the result");
}

}  // namespace tilegen
