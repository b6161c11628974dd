#include "ir/bitcode_words.h"

#include <array>

namespace tilegen::ir {
namespace {

constexpr std::array<const char*, 13> kIntegerOps = {"add", "sub",  "mul",  "udiv", "sdiv", "urem", "srem",
                                                     "shl", "lshr", "ashr", "and",  "or",   "xor"};
constexpr std::array<const char*, 7> kRealOps = {"fadd", "fsub", "fmul", nullptr, "fdiv", nullptr, "frem"};
constexpr std::array<const char*, 12> kCasts = {"trunc",  "zext",    "sext",  "fptoui", "fptosi", "uitofp",
                                                "sitofp", "fptrunc", "fpext", nullptr,  nullptr,  "bitcast"};
constexpr std::array<const char*, 16> kRealCompares = {"false", "oeq", "ogt", "oge", "olt", "ole",
                                                       "one",   "ord", "uno", "ueq", "ugt", "uge",
                                                       "ult",   "ule", "une", "true"};
constexpr std::array<const char*, 10> kCompares = {"eq",  "ne",  "ugt", "uge", "ult",
                                                   "ule", "sgt", "sge", "slt", "sle"};
constexpr uint64_t kFirstIntegerCompare = 32;

}  // namespace

const char* bitcode_operator(uint64_t op, bool real) {
  if (real) return op < kRealOps.size() ? kRealOps[op] : nullptr;
  return op < kIntegerOps.size() ? kIntegerOps[op] : nullptr;
}

const char* bitcode_conversion(uint64_t op) { return op < kCasts.size() ? kCasts[op] : nullptr; }

const char* bitcode_comparison(uint64_t how, bool real) {
  if (real) return how < kRealCompares.size() ? kRealCompares[how] : nullptr;
  const uint64_t at = how - kFirstIntegerCompare;
  return at < kCompares.size() ? kCompares[at] : nullptr;
}

const char* memory_instruction(uint64_t c) {
  switch (c) {
    case 4:
    case 30:
    case 43:
      return "getelementptr";
    case 19:
      return "alloca";
    case 20:
    case 41:
      return "load";
    case 24:
    case 42:
    case 44:
    case 45:
      return "store";
    case 36:
      return "fence";
    case 37:
    case 38:
    case 46:
    case 59:
      return "an atomic operation";
    default:
      return nullptr;
  }
}

// Bit 0 is "fast" of older writers.
std::string fast_flags(uint64_t flags) {
  if (flags & 1 || (flags & 0xfe) == 0xfe) return "fast ";
  constexpr std::array<const char*, 8> kFlags = {"",      "nnan ",     "ninf ", "nsz ",
                                                 "arcp ", "contract ", "afn ",  "reassoc "};
  std::string words;
  for (size_t i = 1; i < kFlags.size(); ++i)
    if (flags >> i & 1) words += kFlags[i];
  return words;
}

std::string integer_flags(uint64_t op, uint64_t flags) {
  const bool wraps = op <= 2 || op == 7, exact = op == 3 || op == 4 || op == 8 || op == 9;
  if (exact) return flags & 1 ? "exact " : "";
  return wraps ? std::string(flags & 1 ? "nuw " : "") + (flags & 2 ? "nsw " : "") : "";
}

}  // namespace tilegen::ir
