// Which context of CUDA is current, and which one work goes to.
#include "runtime/gpu/contexts.h"

#include "runtime/cuda/driver.h"

namespace tilegen::runtime::cuda {

using gpu::ContextState;
using gpu::Current;
using gpu::Device;
using gpu::Result;

uint64_t Driver::id_of(CuContext context) const {
  unsigned long long id = 0;
  if (context && cuda_.context_id) cuda_.context_id(context, &id);
  return id;
}

[[gnu::hot]] Result Driver::current(Current& out) const {
  const Result result = cuda_.context_current(&out.handle);
  out.id = id_of(out.handle);
  return result;
}

int Driver::current_device() const {
  CuContext context = nullptr;
  gpu::DeviceHandle handle = -1;
  if (cuda_.context_current(&context) != gpu::kSuccess || !context) return -1;
  if (cuda_.context_device(&handle) != gpu::kSuccess) return -1;
  for (const Device& d : devices())
    if (d.handle == handle) return d.ordinal;
  return -1;
}

Expected<ContextState*> Driver::choose(const Current& current, const Device& device) const {
  if (current.handle) {
    gpu::DeviceHandle handle = -1;
    const Result result = cuda_.context_device(&handle);
    if (result != gpu::kSuccess)
      return call_failed(*this, nullptr, result, "asking for the device of the current context");
    if (handle == device.handle) return &contexts().state_of(current, device);
  }
  return primary(device);
}

// The caller may have had it current before.
Expected<ContextState*> Driver::primary(const Device& device) const {
  std::lock_guard lock(mutex_);
  ContextState*& known = primaries_[static_cast<size_t>(device.ordinal)];
  if (known) return known;
  CuContext context = nullptr;
  const Result result = cuda_.primary_retain(&context, device.handle);
  if (result != gpu::kSuccess)
    return call_failed(*this, nullptr, result, "making a context on " + device.text());
  known = &contexts().state_of({context, id_of(context)}, device);
  known->primary = true;
  return known;
}

bool Driver::alive(const ContextState& state) const {
  return state.primary || (state.context.id != 0 && id_of(state.context.handle) == state.context.id);
}

Result Driver::enter(const ContextState& state, Current&) const {
  return cuda_.context_push(state.context.handle);
}

void Driver::leave(const Current&) const {
  CuContext popped = nullptr;
  cuda_.context_pop(&popped);
}

Result Driver::copy(gpu::Pointer to, gpu::Pointer from, size_t bytes, gpu::Stream stream) const {
  return cuda_.memory_copy(to, from, bytes, stream);
}

}  // namespace tilegen::runtime::cuda
