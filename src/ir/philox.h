// Random words by counter: Philox 4x32 of 10 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as
// easy as 1, 2, 3; SC 2011), whose words follow from a key and a counter alone.
#pragma once

#include <array>
#include <cstdint>

namespace tilegen::ir {

constexpr int kPhiloxRounds = 10;
constexpr uint32_t kPhiloxMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kPhiloxKeySteps[2] = {0x9E3779B9, 0xBB67AE85};

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// philox(seed, offset, lane) of expressions: word lane % 4 of the block whose key is the seed and whose
// counter is the offset, in its lower half, and lane / 4; the lower 32 bits of each come first.
uint32_t philox_word(uint64_t seed, uint64_t offset, uint64_t lane);

}  // namespace tilegen::ir
