// The tensors of a run in the memory of the device that runs it.
#pragma once

#include "run_arguments.h"

namespace tool {

// Number of the device that code for `target` runs on: the first CUDA device for an sm_* target, the first
// HIP device of that architecture for a gfx* target, else the host.
size_t device_for(const std::string& target);

class DeviceTensors {
 public:
  // Copies every tensor to the device; `host` must outlive this.
  DeviceTensors(size_t device, RunArguments& host);
  ~DeviceTensors();
  DeviceTensors(const DeviceTensors&) = delete;
  DeviceTensors& operator=(const DeviceTensors&) = delete;

  std::vector<tl_arg> launch_arguments();
  void wait();         // for the launches so far
  void fetch();        // into the host's tensors
  void send();         // the host's tensors once more

 private:
  size_t device_;
  RunArguments& host_;
  std::vector<void*> memory_;  // by tensor
};

}  // namespace tool
