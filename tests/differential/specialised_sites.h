// Mechanical defects of a program with roles: one statement, barrier or wait changed at a time, wherever
// there is one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::differential {

struct SpecialisedDefect {
  std::string kind, where;
  std::function<void(thread::ThreadProgram&)> spoil;
};

// In program order, each kind at each place where it changes something of the text.
std::vector<SpecialisedDefect> specialised_defects(const thread::ThreadProgram& p);

}  // namespace tilegen::differential
