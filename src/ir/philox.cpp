#include "ir/philox.h"

namespace tilegen::ir {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t even = uint64_t{kPhiloxMultipliers[0]} * counter[0];
    const uint64_t odd = uint64_t{kPhiloxMultipliers[1]} * counter[2];
    counter = {static_cast<uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(odd),
               static_cast<uint32_t>(even >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(even)};
    key = {key[0] + kPhiloxKeySteps[0], key[1] + kPhiloxKeySteps[1]};
  }
  return counter;
}

uint32_t philox_word(uint64_t seed, uint64_t offset, uint64_t lane) {
  const auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  const auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  const uint64_t block = lane / 4;
  return philox4x32({low(offset), high(offset), low(block), high(block)}, {low(seed), high(seed)})[lane % 4];
}

}  // namespace tilegen::ir
