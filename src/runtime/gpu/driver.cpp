#include "runtime/gpu/driver.h"

#include <dlfcn.h>

#include <cerrno>
#include <new>

#include "runtime/gpu/contexts.h"
#include "runtime/gpu/workspace_pools.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::gpu {

Driver::Driver(const Names& names) : names_(names), contexts_(std::make_unique<ContextTable>()) {}
Driver::~Driver() = default;

std::string Driver::version_text() const {
  return std::to_string(version_ / 1000) + "." + std::to_string(version_ % 1000 / 10);
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (api_.error_name(result, &name) != kSuccess || !name)
    return std::string(names_.interface) + " error " + std::to_string(result);
  if (api_.error_string(result, &text) != kSuccess || !text) return name;
  return std::string(name) + " (" + text + ")";
}

std::string Driver::hint_for(Result result) const {
  if (std::string own = own_hint(result); !own.empty()) return own;
  const std::string tool = std::string("`") + names_.tool + "`";
  switch (result) {
    case kOutOfMemory:
      return "free device memory; see " + tool + " for who holds it";
    case kInvalidContext:
    case kInvalidHandle:
      return "use a stream of the context that is current, on the device the kernel was loaded for";
    case kLaunchOutOfResources:
      return "use fewer threads or smaller tiles";
    case kNoBinaryForGpu:
    case kInvalidImage:
      return std::string("compile for the target '") + names_.prefix + "', which is this machine's device";
  }
  if (result >= kStreamCaptureUnsupported && result <= kStreamCaptureWrongThread)
    return "call tl_kernel_prepare before the capture begins, and nothing but launches inside";
  return "see " + tool + " and the " + names_.library + "'s documentation of this error";
}

bool Driver::encode(const thread::ThreadProgram&, size_t, const TensorShape&, TensorMap*) const {
  return false;
}

Result Driver::ask(const Device& device, std::initializer_list<AttributeRow> rows) const {
  for (const AttributeRow& row : rows)
    if (const Result result = api_.device_attribute(row.value, row.attribute, device.handle);
        result != kSuccess)
      return result;
  return kSuccess;
}

Error Driver::not_described(const Device& device, Result result) const {
  return Error(DiagCode::driver_failure, device.label(),
               "asking for the device's properties failed: " + describe(result),
               std::string("see whether `") + names_.tool + "` lists it");
}

Checked Driver::find_devices() {
  Result result = api_.init(0);
  int count = 0;
  if (result == kSuccess) result = api_.device_count(&count);
  if (result == kNoDevice || (result == kSuccess && count == 0))
    return Error(DiagCode::device_absent, names_.prefix,
                 std::string("the ") + names_.library + " finds no " + names_.interface + " device",
                 start_hint(kNoDevice));
  if (result != kSuccess)
    return Error(DiagCode::driver_failure, names_.prefix,
                 std::string("starting the ") + names_.library + " failed: " + describe(result),
                 start_hint(result));
  devices_.resize(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    Device& device = devices_[static_cast<size_t>(i)];
    device.prefix = names_.prefix;
    device.ordinal = i;
    char name[256] = "";
    result = api_.device_get(&device.handle, i);
    if (result == kSuccess) result = api_.device_name(name, sizeof name - 1, device.handle);
    if (result == kSuccess) result = api_.device_memory(&device.memory_bytes, device.handle);
    device.name = name;
    if (result != kSuccess) return not_described(device, result);
    if (Checked ok = describe_device(device); !ok) return ok;
  }
  pools_ = std::make_unique<WorkspacePools>(*this);
  return Unit{};
}

Error Driver::not_there(const std::string& why, const char* hint) const {
  return Error(DiagCode::driver_absent, names_.prefix, why, hint);
}

Expected<void*> open_library(const char* path, const Names& names, const char* hint) {
  errno = 0;
  if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
  // says nothing about the driver, and is not to be remembered
  if (errno == ENOMEM) throw std::bad_alloc();
  const char* why = dlerror();
  return Error(DiagCode::driver_absent, names.prefix,
               std::string("the ") + names.interface + " " + names.library +
                   " cannot be loaded: " + (why ? why : path),
               hint);
}

}  // namespace tilegen::runtime::gpu
