// Errors and blobs: what the caller reads after a call.
#include "capi/guard.h"
#include "support/diag_codes.h"
#include "support/included_place.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace tilegen::capi {
namespace {

constexpr char kFreeMemory[] = "free memory and try again";
constexpr char kKeptText[] = "error [limit_memory] the process is out of memory (free memory and try again)";

tl_severity severity_value(Severity s) {
  switch (s) {
    case Severity::note:
      return TL_SEVERITY_NOTE;
    case Severity::warning:
      return TL_SEVERITY_WARNING;
    case Severity::error:
      break;
  }
  return TL_SEVERITY_ERROR;
}

tl_status hand_out(Error error, tl_error** out_error) {
  const auto status = static_cast<tl_status>(error.status());
  if (out_error) {
    auto made = std::make_unique<tl_error>();
    made->text = error.to_text();
    made->error = std::move(error);
    *out_error = made.release();
  }
  return status;
}

// What a call reports that finds no memory for an error object. It refers to nothing, is never freed, and its
// words are constants.
union Kept {
  constexpr Kept() : error() {}
  ~Kept() {}
  tl_error error;
};
constinit Kept g_out_of_memory;

bool is_kept(const tl_error* error) { return error == &g_out_of_memory.error; }

tl_status publish_kept(tl_error** out_error) noexcept {
  if (out_error) {
    retain(&g_out_of_memory.error);
    *out_error = &g_out_of_memory.error;
  }
  return TL_LIMIT_EXCEEDED;
}

tl_diagnostic kept_diagnostic() {
  tl_diagnostic value{};
  value.severity = TL_SEVERITY_ERROR;
  value.status = TL_LIMIT_EXCEEDED;
  value.code = diag_name(DiagCode::limit_memory);
  value.message = kOutOfMemory;
  value.hint = kFreeMemory;
  value.op = value.file = value.included_at = "";
  value.stage = "api";
  return value;
}

}  // namespace

tl_status publish(const char* call, Error error, tl_error** out_error) noexcept {
  try {
    for (Diagnostic& d : error.diagnostics) {
      if (d.op.empty()) d.op = call;
      if (d.stage.empty()) d.stage = "api";
    }
    return hand_out(std::move(error), out_error);
  } catch (...) {
    return publish_kept(out_error);
  }
}

tl_status publish_out_of_memory(const char* call, const char* what, tl_error** out_error) noexcept {
  try {
    return publish(call, Error(DiagCode::limit_memory, call, what, kFreeMemory), out_error);
  } catch (...) {
    return publish_kept(out_error);
  }
}

tl_status publish_defect(const char* call, const char* what, tl_error** out_error) noexcept {
  try {
    return publish(call, Error(DiagCode::internal_error, call, what, "please report it with the program"),
                   out_error);
  } catch (...) {
    return publish_kept(out_error);
  }
}

tl_diagnostic diagnostic_value(const Diagnostic& d) {
  tl_diagnostic value{};
  value.severity = severity_value(d.severity);
  value.status = static_cast<tl_status>(diag_status(d.code));
  value.consequence = d.consequence ? 1 : 0;
  value.line = d.location.line;
  value.column = d.location.column;
  value.code = diag_name(d.code);
  value.message = d.message.c_str();
  value.hint = d.hint.c_str();
  value.op = d.op.c_str();
  value.stage = d.stage.c_str();
  value.file = d.location.file.c_str();  // it ends where the name does
  value.included_at = included_at(d.location).data();
  if (!value.included_at) value.included_at = "";
  return value;
}

Error null_argument(std::string_view what) {
  return Error(DiagCode::null_argument, "", std::string(what) + " is NULL", "pass a valid pointer");
}

}  // namespace tilegen::capi

extern "C" {

void tl_error_retain(tl_error* error) { retain(error); }
void tl_error_release(tl_error* error) { release(error); }

tl_status tl_error_status(const tl_error* error) {
  if (is_kept(error)) return TL_LIMIT_EXCEEDED;
  return error ? static_cast<tl_status>(error->error.status()) : TL_OK;
}
const char* tl_error_message(const tl_error* error) {
  if (is_kept(error)) return kKeptText;
  return error ? error->text.c_str() : "";
}
size_t tl_error_count(const tl_error* error) {
  if (is_kept(error)) return 1;
  return error ? error->error.diagnostics.size() : 0;
}

tl_status tl_error_diagnostic(const tl_error* error, size_t index, tl_diagnostic* out_diagnostic) {
  return guard("tl_error_diagnostic", nullptr, [&]() -> Checked {
    if (!error || !out_diagnostic) return null_argument("an argument");
    if (is_kept(error) && index == 0) return fill_struct(out_diagnostic, kept_diagnostic(), kFirstDiagnostic);
    if (index >= error->error.diagnostics.size())
      return Error(DiagCode::bad_enum, "", "there is no diagnostic " + std::to_string(index),
                   "count them with tl_error_count");
    return fill_struct(out_diagnostic, diagnostic_value(error->error.diagnostics[index]), kFirstDiagnostic);
  });
}

void tl_blob_retain(tl_blob* blob) { retain(blob); }
void tl_blob_release(tl_blob* blob) { release(blob); }
const char* tl_blob_data(const tl_blob* blob) { return blob ? blob->bytes.c_str() : ""; }
size_t tl_blob_size(const tl_blob* blob) { return blob ? blob->bytes.size() : 0; }

}  // extern "C"
