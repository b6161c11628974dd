// Diagnostics: what the user is told. Each code is a row of diagnostics.def and has a golden test.
// Message order: what is wrong, with the user's names and shapes; why; `hint` is the way out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/status.h"

namespace tilegen {

struct SourceLocation {
  std::string file;  // empty: unknown
  uint32_t line = 0;
  uint32_t column = 0;
  bool known() const { return line != 0; }
  bool operator==(const SourceLocation&) const = default;
};

enum class Severity : uint8_t { note, warning, error };

// The codes are in diag_codes.h: what names none is not compiled anew for a new one.
enum class DiagCode : uint16_t;

const char* diag_name(DiagCode code);     // "shape_mismatch"
const char* diag_summary(DiagCode code);  // one line for the reference docs
StatusCode diag_status(DiagCode code);    // status a call returns when this is its first error
size_t diag_count();

struct Diagnostic {
  DiagCode code{};  // internal_error
  Severity severity = Severity::error;
  std::string op;       // path or name of the user's operation, e.g. "main/ko/copy#0" or "tl_gemm"
  std::string message;  // expected and got, in the user's words
  std::string hint;     // a way out; never empty for errors a user can cause
  SourceLocation location;
  std::string stage;         // compiler stage or API area that noticed
  bool consequence = false;  // follows from an earlier error of the same object

  // "file:line:col: error [shape_mismatch] main/ko/copy#0: message (hint)"
  std::string to_text() const;
};

// One or more diagnostics, the first being the cause.
struct Error {
  std::vector<Diagnostic> diagnostics;

  Error() = default;
  explicit Error(Diagnostic d) { diagnostics.push_back(std::move(d)); }
  Error(DiagCode code, std::string op, std::string message, std::string hint = {}, SourceLocation loc = {});

  StatusCode status() const;
  std::string to_text() const;
};

// A value or the error that prevented it. Internal code never throws for user input.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::move(value)) {}
  Expected(Error error) : state_(std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Checked = Expected<Unit>;  // success carries nothing

}  // namespace tilegen
