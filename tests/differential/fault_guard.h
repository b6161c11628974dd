// Turns a crash of the code under test into a value, so that a test can print and shrink what caused it.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tilegen::differential {

// Runs `work` on this thread. A memory fault, an arithmetic trap or an abort raised on this thread ends it
// and gives the signal's name; what `work` held is lost. Other threads' faults kill the process as ever.
std::optional<std::string> crash_of(const std::function<void()>& work);

}  // namespace tilegen::differential
