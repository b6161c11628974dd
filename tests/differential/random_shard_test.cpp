// A shard of random programs of all kinds, judged one after the other and told line by line: the process that
// runs many shards (scripts/random_programs.py) knows which program hung, died or took the device with it.
//   TILEGEN_SHARD=FOLDER   where a program lies while it runs, and stays when it fails
//   TILEGEN_SEED=n TILEGEN_COUNT=m   the programs; after one that fails the process has nothing more to say
//   TILEGEN_SHRINK=1       a program that fails is made small
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "random_program.h"
#include "shrink.h"

namespace tilegen::differential {
namespace {

const char* data_name(Data data) {
  switch (data) {
    case Data::integers_specials:
      return "specials";
    case Data::reals:
      return "reals";
    case Data::bit_patterns:
      return "bits";
    default:
      return "integers";
  }
}

// A program of the regressions' form (files.h), which states its launch.
std::string as_file(const Case& c) {
  std::string text = "; launch";
  for (const auto& [name, value] : c.launch.dims) text += " " + name + "=" + std::to_string(value);
  return text + " seed=" + std::to_string(c.launch.seed) + " data=" + data_name(c.launch.data) + "\n" +
         c.text;
}

std::string as_comment(const std::string& text) {
  std::string lines = "; ";
  for (const char c : text) lines += c == '\n' ? std::string("\n; ") : std::string(1, c);
  return lines + "\n";
}

bool write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  return static_cast<bool>(out.flush());
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST(RandomPrograms, Shard) {
  const char* folder = std::getenv("TILEGEN_SHARD");
  if (!folder) GTEST_SKIP() << "TILEGEN_SHARD names no folder";
  const char *seed_text = std::getenv("TILEGEN_SEED"), *count_text = std::getenv("TILEGEN_COUNT");
  const uint64_t first = seed_text ? std::strtoull(seed_text, nullptr, 10) : 1;
  const uint64_t count = count_text ? std::strtoull(count_text, nullptr, 10) : 1;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Case c = random_mix(seed);
    const std::filesystem::path file =
        std::filesystem::path(folder) / ("random_" + std::to_string(seed) + ".tl");
    ASSERT_TRUE(write(file, as_file(c))) << "cannot write " << file;
    std::cout << "program " << seed << " begins" << std::endl;
    const Outcome o = compare_executors(c);
    if (o.is_defect()) {
      Case small = c;
      if (std::getenv("TILEGEN_SHRINK"))
        small = shrink(
            c, [&](const Case& x) { return way_of_failing(compare_executors(x)) == way_of_failing(o); }, 600);
      const std::string why = std::string(kind_name(o.kind)) + ": " + o.text;
      ASSERT_TRUE(write(file, as_file(small) + as_comment(why)));
      std::cout << "program " << seed << " " << kind_name(o.kind) << " " << first_line(o.text) << std::endl;
      // A device that a kernel has broken says the same of all that follows.
      FAIL() << why;
    }
    std::filesystem::remove(file);
    std::cout << "program " << seed << " " << kind_name(o.kind) << " " << first_line(o.text) << std::endl;
  }
}

}  // namespace
}  // namespace tilegen::differential
