// Content hashes that stay the same across processes, machines and versions: cache keys and program identity.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilegen {

// SHA-256 (FIPS 180-4), fed in pieces.
class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  void update(std::string_view bytes);
  Digest finish();  // the object is spent

 private:
  void compress(const uint8_t* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t length_ = 0;  // bytes fed so far; the last length_ % 64 of them are pending
};

std::string sha256_hex(std::string_view bytes);   // 64 lower-case hex digits
std::string stable_hash(std::string_view bytes);  // 128 bits: the first 32 digits of sha256_hex

}  // namespace tilegen
