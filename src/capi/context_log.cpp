#include "capi/context_log.h"

namespace tilegen::capi {
namespace {

constexpr bool same(int level, LogLevel here) { return level == static_cast<int>(here); }
static_assert(same(TL_LOG_OFF, LogLevel::off) && same(TL_LOG_ERROR, LogLevel::error) &&
                  same(TL_LOG_WARNING, LogLevel::warning) && same(TL_LOG_INFO, LogLevel::info) &&
                  same(TL_LOG_DEBUG, LogLevel::debug) && same(TL_LOG_TRACE, LogLevel::trace),
              "levels are handed over as numbers");

}  // namespace

std::shared_ptr<Log> log_of(const tl_context& context) {
  Log::Listener listener;
  if (context.log_to)
    listener = [&context](LogLevel level, const char* stage, const char* message) {
      context.log_to(static_cast<tl_log_level>(level), stage, message);
    };
  return Log::make(static_cast<LogLevel>(context.log_level), std::move(listener));
}

runtime::LineSink lines_of(const tl_context* context) {
  if (!context || !context->print_to) return {};
  return {[](const void* to, const char* line) { static_cast<const tl_context*>(to)->print_to(line); },
          context};
}

}  // namespace tilegen::capi
