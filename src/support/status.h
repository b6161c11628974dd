// Status codes of the public API, grouped in ranges of a thousand. The rows live in status.def so that the
// C header, the names and the tests come from one place.
#pragma once

#include <cstdint>

namespace tilegen {

enum class StatusCode : int32_t {
#define TILEGEN_STATUS(name, value, text) name = value,
#include "support/status.def"
#undef TILEGEN_STATUS
};

// Stable lower-case name of a status ("ok", "invalid_argument", ...); "unknown" for a value of no row.
const char* status_name(StatusCode code);

}  // namespace tilegen
