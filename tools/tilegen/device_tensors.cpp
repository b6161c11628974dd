#include "device_tensors.h"

namespace tool {

namespace {

size_t bytes_of(const Tensor& tensor) { return tensor.storage.size() * sizeof tensor.storage[0]; }

}  // namespace

size_t device_for(const std::string& target) {
  const bool cuda = target.rfind("sm_", 0) == 0, hip = target.rfind("gfx", 0) == 0;
  if (!cuda && !hip) return 0;
  for (size_t i = 0; i < tl_device_count(); ++i) {
    tl_device_info info{};
    info.struct_size = sizeof info;
    if (tl_device_describe(i, &info) != TL_OK) continue;
    if (cuda ? info.kind == TL_DEVICE_CUDA : info.kind == TL_DEVICE_HIP && target == info.target) return i;
  }
  // Says why there is none.
  tl_target* none = nullptr;
  tl_error* error = nullptr;
  const std::string kind = cuda ? "CUDA" : "HIP";
  require(tl_target_parse(cuda ? "cuda" : "hip", &none, &error), error, "looking for a " + kind + " device");
  fail("there is no " + kind + " device for " + target);
}

DeviceTensors::DeviceTensors(size_t device, RunArguments& host)
    : device_(device), host_(host), memory_(host.tensors.size()) {
  tl_error* error = nullptr;
  for (size_t i = 0; i < memory_.size(); ++i)
    require(tl_device_allocate(device_, bytes_of(host_.tensors[i]), &memory_[i], &error), error,
            "allocating tensor " + host_.tensors[i].name);
  send();
}

DeviceTensors::~DeviceTensors() {
  for (void* memory : memory_) tl_device_free(device_, memory, nullptr);
}

std::vector<tl_arg> DeviceTensors::launch_arguments() {
  std::vector<tl_arg> args = host_.launch_arguments();
  size_t tensor = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (host_.parameters[i].kind == TL_PARAM_TENSOR) {
      const void* memory = host_.tensors[tensor].absent ? nullptr : memory_[tensor];
      args[i].payload = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(memory));
      ++tensor;
    }
  return args;
}

void DeviceTensors::wait() {
  tl_error* error = nullptr;
  require(tl_device_wait(device_, nullptr, &error), error, "running");
}

void DeviceTensors::send() {
  tl_error* error = nullptr;
  for (size_t i = 0; i < memory_.size(); ++i)
    require(tl_device_copy(device_, memory_[i], host_.tensors[i].storage.data(), bytes_of(host_.tensors[i]),
                           nullptr, &error),
            error, "copying tensor " + host_.tensors[i].name + " to the device");
}

void DeviceTensors::fetch() {
  tl_error* error = nullptr;
  for (size_t i = 0; i < memory_.size(); ++i)
    if (!host_.tensors[i].read_only)
      require(tl_device_copy(device_, host_.tensors[i].storage.data(), memory_[i], bytes_of(host_.tensors[i]),
                             nullptr, &error),
              error, "copying tensor " + host_.tensors[i].name + " from the device");
}

}  // namespace tool
