// The fake CUDA driver: modules and their functions.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "fake_state.h"

using namespace fake;

#ifndef FAKE_CUDA_INCOMPLETE
namespace {

// Names and parameters of the `.entry` declarations of a PTX text.
std::map<std::string, Entry> entries_of(const std::string& ptx) {
  std::map<std::string, Entry> found;
  for (size_t at = ptx.find(".entry"); at != std::string::npos; at = ptx.find(".entry", at + 1)) {
    size_t begin = at + 6;
    while (begin < ptx.size() && std::isspace(static_cast<unsigned char>(ptx[begin]))) ++begin;
    size_t end = begin;
    while (end < ptx.size() && (std::isalnum(static_cast<unsigned char>(ptx[end])) || ptx[end] == '_')) ++end;
    Entry& parameters = found[ptx.substr(begin, end - begin)];
    parameters.waits =
        ptx.substr(end, ptx.find(".entry", end) - end).find("griddepcontrol.wait") != std::string::npos;
    const size_t open = ptx.find_first_of("({", end);
    if (open == std::string::npos || ptx[open] == '{') continue;
    const size_t close = ptx.find(')', open);
    for (size_t p = ptx.find(".param", open); p < close; p = ptx.find(".param", p + 1)) {
      const size_t comma = std::min(ptx.find(',', p), close);
      const bool map = ptx.substr(p, comma - p).find("[128]") != std::string::npos;
      ++(map ? parameters.maps : parameters.maps > 0 ? parameters.behind : parameters.slots);
    }
  }
  return found;
}

}  // namespace

FAKE_API int cuModuleLoadDataEx(void** module, const void* image, unsigned count, const int* names,
                                void** values) {
  State& s = state();
  std::unique_lock<std::mutex> lock(s.mutex);
  const int failed = enter(s, index_of(__func__));
  const std::string text(static_cast<const char*>(image));
  bool verbose = false;
  std::array<char*, 2> buffer{};
  std::array<size_t, 2> size{};
  for (unsigned i = 0; i < count; ++i) {
    if (names[i] == 3) buffer[0] = static_cast<char*>(values[i]);
    if (names[i] == 4) size[0] = reinterpret_cast<uintptr_t>(values[i]);
    if (names[i] == 5) buffer[1] = static_cast<char*>(values[i]);
    if (names[i] == 6) size[1] = reinterpret_cast<uintptr_t>(values[i]);
    if (names[i] == 12) verbose = values[i] != nullptr;
  }
  const std::string* logs[] = {&s.info_log, &s.error_log};
  for (size_t i = 0; i < 2; ++i)
    if (buffer[i] && (i == 1 || verbose))
      std::strncpy(buffer[i], logs[i]->c_str(), std::min(size[i], logs[i]->size() + 1));
  if (failed) return failed;
  if (!has_context(s)) return kInvalidContext;
  if (text.find(".version") == std::string::npos) return kInvalidImage;
  if (s.load_ms > 0) {
    lock.unlock();
    usleep(static_cast<useconds_t>(s.load_ms) * 1000);
    lock.lock();
  }
  auto* made = new Module;
  made->context = current();
  made->entries = entries_of(text);
  s.modules.insert(made);
  *module = made;
  return kSuccess;
}
#endif
FAKE_API int cuModuleUnload(void* module) {
  ENTER();
  auto* m = static_cast<Module*>(module);
  if (!s.modules.count(m) || current() != m->context) return kInvalidContext;
  s.modules.erase(m);
  delete m;
  return kSuccess;
}
FAKE_API int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER();
  auto* m = static_cast<Module*>(module);
  const auto entry = m->entries.find(name);
  if (entry == m->entries.end()) return kNotFound;
  auto& object = m->functions[name];
  if (!object) {
    object = std::make_unique<FunctionObject>();
    std::strncpy(object->name, name, sizeof object->name - 1);
    object->name[sizeof object->name - 1] = 0;
    object->parameters = entry->second;
    object->module = m;
  }
  *function = object.get();
  return kSuccess;
}
FAKE_API int cuFuncGetAttribute(int* value, int attribute, void*) {
  ENTER();
  switch (attribute) {
    case 0:
      return *value = s.max_threads, kSuccess;
    case 1:
      return *value = s.static_shared, kSuccess;
    case 3:
      return *value = s.local_bytes, kSuccess;
    case 4:
      return *value = s.registers, kSuccess;
  }
  return kInvalidValue;
}
FAKE_API int cuFuncSetAttribute(void* function, int attribute, int value) {
  ENTER();
  if (attribute == 14) {
    static_cast<FunctionObject*>(function)->large_clusters = value != 0;
    return kSuccess;
  }
  if (attribute != 8 || value > (227 << 10)) return kInvalidValue;
  static_cast<FunctionObject*>(function)->dynamic_shared = value;
  s.shared_allowed = std::max(s.shared_allowed, value);
  return kSuccess;
}
FAKE_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, size_t) {
  ENTER();
  *blocks = 2048 / std::max(threads, 1) / 2;
  return kSuccess;
}
