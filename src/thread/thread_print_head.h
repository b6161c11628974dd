// What stands in front of a thread program's statements in its text: launch, parameters, guards, memories,
// barriers, divisors, tensor maps.
#pragma once

#include <string>

#include "thread/thread_program.h"

namespace tilegen::thread {

std::string head_text(const ThreadProgram& p);

}  // namespace tilegen::thread
