// The codes of diagnostics, the rows of diagnostics.def.
#pragma once

#include "support/diagnostic.h"

namespace tilegen {

enum class DiagCode : uint16_t {
#define TILEGEN_DIAGNOSTIC(name, status, summary) name,
#include "support/diagnostics.def"
#undef TILEGEN_DIAGNOSTIC
};

}  // namespace tilegen
