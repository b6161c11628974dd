// What the fuzz targets share. A target takes any bytes and aborts when the library breaks a promise.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "driver/compile.h"
#include "fuzz_entry.h"
#include "ir/program.h"
#include "support/diagnostic.h"

namespace tilegen::fuzz {

// Ends the process, as a sanitizer does, and says why.
void require(bool promise, const std::string& what);
// A diagnostic may be anything but an internal error.
void require_stated(const Error& error);

// Small enough that no input takes long.
Limits small_limits();
// Compiles, with verification, for "host", "sim:sm_90a" or another target, for at most a second or so.
Expected<std::shared_ptr<const driver::Artifact>> compile_briefly(
    std::shared_ptr<const ir::Program> program, const char* target,
    std::optional<plan::Schedule> schedule = {});

}  // namespace tilegen::fuzz
