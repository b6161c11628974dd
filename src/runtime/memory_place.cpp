#include "runtime/memory_place.h"

namespace tilegen::runtime {

std::string place_text(const MemoryPlace& place) {
  switch (place.type) {
    case MemoryPlace::cpu:
      return "the host";
    case MemoryPlace::cuda:
      return "cuda:" + std::to_string(place.id);
    case MemoryPlace::cuda_host:
      return "the host (pinned for CUDA)";
    case MemoryPlace::cuda_managed:
      return "managed CUDA memory";
    case MemoryPlace::rocm:
      return "hip:" + std::to_string(place.id);
    case MemoryPlace::rocm_host:
      return "the host (pinned for ROCm)";
  }
  return "device type " + std::to_string(place.type) + ":" + std::to_string(place.id);
}

std::string reach_text(const MemoryReach& device) { return place_text({device.device, device.ordinal}); }

}  // namespace tilegen::runtime
