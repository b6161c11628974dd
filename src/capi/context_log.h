// What a context's log function hears.
#pragma once

#include <memory>

#include "capi/objects.h"
#include "runtime/reports.h"
#include "support/log.h"

namespace tilegen::capi {

// Of one call; null where nobody listens. The context must live until the call ends, which closes the log
// where it leaves work after.
std::shared_ptr<Log> log_of(const tl_context& context);

// Where what programs print goes; the standard output for null and where nobody listens.
runtime::LineSink lines_of(const tl_context* context);

}  // namespace tilegen::capi
