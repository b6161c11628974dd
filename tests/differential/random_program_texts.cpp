// Writes random programs as text: FOLDER FIRST COUNT.
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "random_program.h"

int main(int argc, char** argv) {
  using namespace tilegen::differential;
  if (argc != 4) return std::cerr << "random_program_texts FOLDER FIRST COUNT\n", 2;
  const uint64_t first = std::strtoull(argv[2], nullptr, 10), count = std::strtoull(argv[3], nullptr, 10);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Case made = random_mix(seed);
    std::ofstream out(std::string(argv[1]) + "/random_" + std::to_string(seed) + ".tl");
    out << made.text;
    if (!out.flush()) return std::cerr << "cannot write to " << argv[1] << "\n", 1;
  }
  return 0;
}
