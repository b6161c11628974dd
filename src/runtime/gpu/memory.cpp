#include "runtime/gpu/memory.h"

#include <optional>

#include "runtime/gpu/contexts.h"

namespace tilegen::runtime::gpu {
namespace {

Pointer address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// Runs `body`, which gives a Result, in the context for `device`.
template <class Body>
Checked in_context(const Driver& driver, const Device& device, const std::string& what, Body&& body) {
  Current current;
  Result result = driver.current(current);
  if (result != kSuccess) return call_failed(driver, nullptr, result, what);
  auto state = driver.choose(current, device);
  if (!state) return state.error();
  if ((*state)->broken.load() != kSuccess) return context_broken(driver, **state, what);
  std::optional<ContextScope> scope;
  if ((*state)->context != current) {
    scope.emplace(driver, **state);
    if (scope->result() != kSuccess) return call_failed(driver, *state, scope->result(), what);
  }
  result = body();
  if (result != kSuccess) return call_failed(driver, *state, result, what);
  return Unit{};
}

}  // namespace

Expected<void*> allocate(const Driver& driver, const Device& device, size_t bytes) {
  if (bytes == 0) return nullptr;
  Pointer memory = 0;
  const std::string what = "allocating " + std::to_string(bytes) + " bytes on " + device.text();
  Checked ok = in_context(driver, device, what, [&] { return driver.api().memory_allocate(&memory, bytes); });
  if (!ok) return ok.error();
  return reinterpret_cast<void*>(static_cast<uintptr_t>(memory));
}

Checked free(const Driver& driver, const Device& device, void* memory) {
  if (!memory) return Unit{};
  return in_context(driver, device, "freeing memory of " + device.text(),
                    [&] { return driver.api().memory_free(address(memory)); });
}

Checked copy(const Driver& driver, const Device& device, void* to, const void* from, size_t bytes,
             void* stream) {
  if (bytes == 0) return Unit{};
  const std::string what = "copying " + std::to_string(bytes) + " bytes on " + device.text();
  return in_context(driver, device, what, [&] {
    const auto order = static_cast<Stream>(stream);
    const Result result = driver.copy(address(to), address(from), bytes, order);
    return result == kSuccess ? driver.api().stream_wait(order) : result;
  });
}

Checked wait(const Driver& driver, const Device& device, void* stream) {
  return in_context(driver, device, "waiting for the work on " + device.text(),
                    [&] { return driver.api().stream_wait(static_cast<Stream>(stream)); });
}

}  // namespace tilegen::runtime::gpu
