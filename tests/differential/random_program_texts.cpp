// Writes random programs as text: FOLDER FIRST COUNT; with a fourth argument, `edited`, programs that are
// edited at random.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "mutated_case.h"
#include "random_program.h"

int main(int argc, char** argv) {
  using namespace tilegen::differential;
  const bool edited = argc == 5 && std::string(argv[4]) == "edited";
  if (argc != 4 && !edited) return std::cerr << "random_program_texts FOLDER FIRST COUNT [edited]\n", 2;
  const uint64_t first = std::strtoull(argv[2], nullptr, 10), count = std::strtoull(argv[3], nullptr, 10);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::ofstream out(std::string(argv[1]) + (edited ? "/edited_" : "/random_") + std::to_string(seed) +
                      ".tl");
    out << (edited ? mutated_case(seed).text : random_mix(seed).text);
    if (!out.flush()) return std::cerr << "cannot write to " << argv[1] << "\n", 1;
  }
  return 0;
}
