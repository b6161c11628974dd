// .tl text: what parses prints as text that parses to the same program, as does the text laid out anew, and
// what passes the checks compiles or is refused by name. Behind the program stand texts that it may include:
//   ;; part NAME
#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "../differential/program_mutation.h"
#include "check/check_program.h"
#include "fuzz_target.h"
#include "ir/text.h"
#include "ir/text_format.h"

using namespace tilegen;

namespace {

constexpr std::string_view kPart = "\n;; part ";

class Parts {
 public:
  explicit Parts(std::string_view input) : program_(input.substr(0, input.find(kPart))) {
    for (size_t at = input.find(kPart); at != input.npos;) {
      const size_t next = input.find(kPart, at + kPart.size());
      const std::string_view part = input.substr(at + kPart.size(), next - at - kPart.size());
      const size_t end = part.find('\n');
      if (end != part.npos) parts_.emplace(part.substr(0, end), part.substr(end + 1));
      at = next;
    }
  }
  std::string program() const { return std::string(program_); }
  ir::IncludeText include() const {
    return [this](const ir::IncludeRequest& asked) {
      const auto found = parts_.find(asked.path);
      if (found == parts_.end()) return ir::IncludedText{"", std::nullopt, "no such part"};
      return ir::IncludedText{"", std::string(found->second), ""};
    };
  }

 private:
  std::string_view program_;
  std::map<std::string_view, std::string_view> parts_;
};

ir::Program parsed_again(const std::string& text, const Limits& limits, const ir::IncludeText& include = {}) {
  auto again = ir::parse_program(text, "again.tl", limits, nullptr, {}, include);
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
  const Parts parts({reinterpret_cast<const char*>(data), size});
  const std::string text = parts.program();
  const Limits limits = fuzz::small_limits();
  auto parsed = ir::parse_program(text, "fuzz.tl", limits, nullptr, {}, parts.include());
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
  fuzz::require(ir::print_program(parsed_again(laid_out, Limits(), parts.include())) == printed,
                "laid out it is another program:\n" + laid_out);
  if (!check::check_program(*parsed, limits).empty()) return 0;
  (void)fuzz::compile_briefly(std::make_shared<const ir::Program>(std::move(*parsed)), target_of(text));
  return 0;
}

// The input with one more line that includes a text, some line of it where there is no part.
std::string including(std::string text, differential::Random& random) {
  const std::string name = random.pick<std::string>({"rows", "sums", "rows.tl", ""});
  const size_t line = text.find('\n', random.below(text.size() + 1));
  text.insert(line == text.npos ? 0 : line + 1, "include \"" + name + "\"\n");
  if (random.below(4) == 0) text += std::string(kPart) + name + text.substr(random.below(text.size() + 1));
  return text;
}

// Half of the inputs are edits that leave a program, as tests/differential makes them; some have includes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  differential::Random random(seed);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string mutant = random.below(8) == 0 ? including(text, random)
                                                  : differential::mutated_program(
                                                        text, random, 1 + static_cast<int>(random.below(2)));
  if (mutant.size() > max_size || mutant == text) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, mutant.data(), mutant.size());
  return mutant.size();
}
