// .tl text: what parses prints as text that parses to the same program, as does the text laid out anew, and
// what passes the checks compiles or is refused by name.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "../differential/program_mutation.h"
#include "check/check_program.h"
#include "fuzz_target.h"
#include "ir/text.h"
#include "ir/text_format.h"

using namespace tilegen;

namespace {

ir::Program parsed_again(const std::string& text, const Limits& limits) {
  auto again = ir::parse_program(text, "again.tl", limits);
  fuzz::require(bool(again), "printed text does not parse:\n" + text);
  return std::move(*again);
}

// One target an input, so that an input costs one compilation.
const char* target_of(std::string_view text) {
  static const char* const kTargets[] = {"sim:sm_90a", "sim:sm_80", "sim:sm_90a", "host"};
  return kTargets[std::hash<std::string_view>()(text) % 4];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Limits limits = fuzz::small_limits();
  auto parsed = ir::parse_program(text, "fuzz.tl", limits);
  if (!parsed) {
    fuzz::require_stated(parsed.error());
    return 0;
  }
  const std::string printed = ir::print_program(*parsed);
  fuzz::require(ir::print_program(parsed_again(printed, Limits())) == printed,
                "not printed as it was read:\n" + printed);
  fuzz::require(ir::format_text(printed) == printed, "not printed as it is laid out:\n" + printed);
  const std::string laid_out = ir::format_text(text);
  fuzz::require(ir::format_text(laid_out) == laid_out, "laid out twice it changes:\n" + laid_out);
  fuzz::require(ir::print_program(parsed_again(laid_out, Limits())) == printed,
                "laid out it is another program:\n" + laid_out);
  if (!check::check_program(*parsed, limits).empty()) return 0;
  (void)fuzz::compile_briefly(std::make_shared<const ir::Program>(std::move(*parsed)), target_of(text));
  return 0;
}

// Half of the inputs are edits that leave a program, as tests/differential makes them.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  differential::Random random(seed);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string mutant =
      differential::mutated_program(text, random, 1 + static_cast<int>(random.below(2)));
  if (mutant.size() > max_size || mutant == text) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, mutant.data(), mutant.size());
  return mutant.size();
}
