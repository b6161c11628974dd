// Contexts: callbacks and limits.
#include <iterator>
#include <string_view>

#include "capi/guard.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

struct LimitRow {
  std::string_view name;
  int64_t Limits::*field;
};
constexpr LimitRow kLimits[] = {{"text_bytes", &Limits::text_bytes},
                                {"expr_nodes", &Limits::expr_nodes},
                                {"expr_depth", &Limits::expr_depth},
                                {"statements", &Limits::statements},
                                {"buffers", &Limits::buffers},
                                {"nesting", &Limits::nesting},
                                {"rank", &Limits::rank},
                                {"tile_elements", &Limits::tile_elements},
                                {"unroll", &Limits::unroll},
                                {"diagnostics", &Limits::diagnostics},
                                {"domain_values", &Limits::domain_values}};
static_assert(sizeof(Limits) == std::size(kLimits) * sizeof(int64_t), "a limit has no row");

Expected<int64_t Limits::*> find_limit(const char* name) {
  if (!name) return null_argument("name");
  std::string known;
  for (const LimitRow& row : kLimits) {
    if (row.name == name) return row.field;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return Error(DiagCode::unknown_option, "", "there is no limit '" + std::string(name) + "'",
               "the limits are " + known);
}

}  // namespace

extern "C" {

tl_status tl_context_create(tl_context** out_context, tl_error** out_error) {
  return guard("tl_context_create", out_error, [&]() -> Checked {
    if (!out_context) return null_argument("out_context");
    *out_context = nullptr;
    *out_context = new tl_context;
    return Unit{};
  });
}

void tl_context_retain(tl_context* context) { retain(context); }
void tl_context_release(tl_context* context) { release(context); }

tl_status tl_context_set_log(tl_context* context, tl_log_level level, tl_log_fn fn, tl_drop_fn drop,
                             void* user, tl_error** out_error) {
  return guard("tl_context_set_log", out_error, [&]() -> Checked {
    if (!context) return null_argument("context");
    if (level > TL_LOG_TRACE)
      return Error(DiagCode::bad_enum, "", "there is no log level " + std::to_string(level),
                   "use a TL_LOG_* level");
    context->log_to.set(fn, drop, user);
    context->log_level = level;
    return Unit{};
  });
}

tl_status tl_context_set_dump(tl_context* context, tl_dump_fn fn, tl_drop_fn drop, void* user,
                              tl_error** out_error) {
  return guard("tl_context_set_dump", out_error, [&]() -> Checked {
    if (!context) return null_argument("context");
    context->dump_to.set(fn, drop, user);
    return Unit{};
  });
}

tl_status tl_context_set_print(tl_context* context, tl_print_fn fn, tl_drop_fn drop, void* user,
                               tl_error** out_error) {
  return guard("tl_context_set_print", out_error, [&]() -> Checked {
    if (!context) return null_argument("context");
    context->print_to.set(fn, drop, user);
    return Unit{};
  });
}

tl_status tl_context_set_cancel(tl_context* context, tl_cancel_fn fn, tl_drop_fn drop, void* user,
                                tl_error** out_error) {
  return guard("tl_context_set_cancel", out_error, [&]() -> Checked {
    if (!context) return null_argument("context");
    context->ask_cancel.set(fn, drop, user);
    return Unit{};
  });
}

tl_status tl_context_set_timeout(tl_context* context, int64_t timeout_ms, tl_error** out_error) {
  return guard("tl_context_set_timeout", out_error, [&]() -> Checked {
    if (!context) return null_argument("context");
    if (timeout_ms < 0)
      return Error(DiagCode::unknown_option, "", "the timeout is " + std::to_string(timeout_ms) + " ms",
                   "give 0 for none, or the milliseconds that a call may take");
    context->timeout_ms = timeout_ms;
    return Unit{};
  });
}

tl_status tl_context_set_limit(tl_context* context, const char* name, int64_t value, tl_error** out_error) {
  return guard("tl_context_set_limit", out_error, [&]() -> Checked {
    if (!context) return null_argument("context");
    auto field = find_limit(name);
    if (!field) return field.error();
    int64_t& limit = context->limits.**field;
    if (value < 1 || value > limit)
      return Error(DiagCode::unknown_option, "",
                   "the limit '" + std::string(name) + "' is " + std::to_string(limit) +
                       " and cannot become " + std::to_string(value),
                   "limits can only be lowered, to 1 or more");
    limit = value;
    return Unit{};
  });
}

tl_status tl_context_get_limit(const tl_context* context, const char* name, int64_t* out_value,
                               tl_error** out_error) {
  return guard("tl_context_get_limit", out_error, [&]() -> Checked {
    if (out_value) *out_value = 0;
    if (!context || !out_value) return null_argument(context ? "out_value" : "context");
    auto field = find_limit(name);
    if (!field) return field.error();
    *out_value = context->limits.**field;
    return Unit{};
  });
}

}  // extern "C"
