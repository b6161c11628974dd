// Targets by name.
#include <iterator>
#include <string_view>

#include "capi/guard.h"
#include "runtime/devices.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = target::target_names();
  return all;
}

struct NumberRow {
  std::string_view name;
  int64_t (*read)(const target::Target&);
};
constexpr NumberRow kNumbers[] = {
    {"warp", [](const target::Target& t) -> int64_t { return t.warp; }},
    {"max_threads", [](const target::Target& t) -> int64_t { return t.max_threads; }},
    {"default_threads", [](const target::Target& t) -> int64_t { return t.default_threads; }},
    {"shared_bytes", [](const target::Target& t) -> int64_t { return t.shared_bytes; }},
    {"registers_per_thread", [](const target::Target& t) -> int64_t { return t.registers_per_thread; }},
    {"vector_bytes", [](const target::Target& t) -> int64_t { return t.vector_bytes; }},
    {"async_copy", [](const target::Target& t) -> int64_t { return t.async_copy() ? 1 : 0; }},
};

Checked make_target(Expected<target::Target> found, tl_target** out_target) {
  if (!found) return found.error();
  auto made = std::make_unique<tl_target>();
  made->target = std::move(*found);
  *out_target = made.release();
  return Unit{};
}

}  // namespace

extern "C" {

size_t tl_target_count(void) {
  return shielded<size_t>(0, [] { return names().size(); });
}

const char* tl_target_name_at(size_t index) {
  return shielded<const char*>("", [&] { return index < names().size() ? names()[index].c_str() : ""; });
}

tl_status tl_target_parse(const char* name, tl_target** out_target, tl_error** out_error) {
  return guard("tl_target_parse", out_error, [&]() -> Checked {
    if (out_target) *out_target = nullptr;
    if (!name || !out_target) return null_argument(name ? "out_target" : "name");
    return make_target(runtime::find_target(name), out_target);
  });
}

tl_status tl_target_best(const tl_context* context, tl_target** out_target, tl_error** out_error) {
  return guard("tl_target_best", out_error, [&]() -> Checked {
    if (out_target) *out_target = nullptr;
    if (!context || !out_target) return null_argument(context ? "out_target" : "context");
    return make_target(runtime::best_target(), out_target);
  });
}

void tl_target_retain(tl_target* target) { retain(target); }
void tl_target_release(tl_target* target) { release(target); }

const char* tl_target_name(const tl_target* target) { return target ? target->target.name.c_str() : ""; }

tl_status tl_target_to_json(const tl_target* target, tl_blob** out_json, tl_error** out_error) {
  return guard("tl_target_to_json", out_error, [&]() -> Checked {
    if (out_json) *out_json = nullptr;
    if (!target || !out_json) return null_argument(target ? "out_json" : "target");
    auto blob = std::make_unique<tl_blob>();
    blob->bytes = target::target_to_json(target->target);
    *out_json = blob.release();
    return Unit{};
  });
}

tl_status tl_target_get_i64(const tl_target* target, const char* name, int64_t* out_value,
                            tl_error** out_error) {
  return guard("tl_target_get_i64", out_error, [&]() -> Checked {
    if (out_value) *out_value = 0;
    if (!target) return null_argument("target");
    if (!name || !out_value) return null_argument(name ? "out_value" : "name");
    std::string known;
    for (const NumberRow& row : kNumbers) {
      known += (known.empty() ? "" : ", ") + std::string(row.name);
      if (row.name != name) continue;
      *out_value = row.read(target->target);
      return Unit{};
    }
    return Error(DiagCode::unknown_option, "", "a target has no number '" + std::string(name) + "'",
                 "the numbers are " + known);
  });
}

}  // extern "C"
