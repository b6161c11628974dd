#include "support/diagnostic.h"

#include <iterator>

#include "support/diag_codes.h"
#include "support/included_place.h"

namespace tilegen {
namespace {

struct DiagRow {
  const char* name;
  StatusCode status;
  const char* summary;
};

constexpr DiagRow kRows[] = {
#define TILEGEN_DIAGNOSTIC(name, status, summary) {#name, StatusCode::status, summary},
#include "support/diagnostics.def"
#undef TILEGEN_DIAGNOSTIC
};

// A code outside the table can only come from a defect, so it reads as one.
const DiagRow& row(DiagCode code) {
  const auto index = static_cast<size_t>(code);
  return index < std::size(kRows) ? kRows[index] : kRows[static_cast<size_t>(DiagCode::internal_error)];
}

const char* severity_name(Severity s) {
  switch (s) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      break;
  }
  return "error";
}

}  // namespace

const char* diag_name(DiagCode code) { return row(code).name; }
const char* diag_summary(DiagCode code) { return row(code).summary; }
StatusCode diag_status(DiagCode code) { return row(code).status; }
size_t diag_count() { return std::size(kRows); }

std::string Diagnostic::to_text() const {
  std::string text;
  if (location.known()) text += place_text(location) + ": ";
  text += std::string(severity_name(severity)) + " [" + diag_name(code) + "] ";
  if (!op.empty()) text += op + ": ";
  text += message;
  if (!hint.empty()) text += " (" + hint + ")";
  if (const std::string_view at = included_at(location); !at.empty())
    text += ", included at " + std::string(at);
  return text;
}

Error::Error(DiagCode code, std::string op, std::string message, std::string hint, SourceLocation loc) {
  Diagnostic d;
  d.code = code;
  d.op = std::move(op);
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.location = std::move(loc);
  diagnostics.push_back(std::move(d));
}

StatusCode Error::status() const {
  for (const Diagnostic& d : diagnostics)
    if (d.severity == Severity::error) return diag_status(d.code);
  return StatusCode::internal;
}

std::string Error::to_text() const {
  std::string text;
  for (const Diagnostic& d : diagnostics) {
    if (!text.empty()) text += "\n";
    text += d.to_text();
  }
  return text;
}

}  // namespace tilegen
