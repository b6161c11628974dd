// Where the memory of a tensor lies, and which device reaches it. Codes are DLPack's (DLDeviceType).
#pragma once

#include <cstdint>
#include <string>

namespace tilegen::runtime {

struct MemoryPlace {
  enum Type : int32_t { cpu = 1, cuda = 2, cuda_host = 3, rocm = 10, rocm_host = 11, cuda_managed = 13 };
  int32_t type = cpu;
  int32_t id = 0;
};

// The device that a kernel runs on, as far as its memory is concerned.
struct MemoryReach {
  MemoryPlace::Type device = MemoryPlace::cpu;  // cpu: the host; cuda; rocm
  int32_t ordinal = 0;

  bool on_host() const { return device == MemoryPlace::cpu; }
  bool reaches(const MemoryPlace& place) const {
    const bool pinned_for_cuda =
        place.type == MemoryPlace::cuda_host || place.type == MemoryPlace::cuda_managed;
    if (on_host())
      return place.type == MemoryPlace::cpu || place.type == MemoryPlace::rocm_host || pinned_for_cuda;
    if (place.type == device) return place.id == ordinal;
    return device == MemoryPlace::cuda ? pinned_for_cuda : place.type == MemoryPlace::rocm_host;
  }
};

std::string place_text(const MemoryPlace& place);   // "cuda:1", "hip:0", "the host", "device type 7:0"
std::string reach_text(const MemoryReach& device);  // "the host", "cuda:0", "hip:0"

}  // namespace tilegen::runtime
