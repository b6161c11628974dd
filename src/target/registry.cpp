#include "target/registry.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "support/diag_codes.h"

namespace tilegen::target {

namespace {

constexpr const Vendor* kVendors[] = {&host::kVendor, &nvidia::kVendor, &amd::kVendor};
constexpr std::string_view kSimulated = "sim:";

constexpr const char* kFormatNames[] = {"object", "ptx", "hsaco"};
static_assert(std::size(kFormatNames) == kCodeFormats);

}  // namespace

const char* code_format_name(CodeFormat format) { return kFormatNames[static_cast<size_t>(format)]; }

std::string_view simulated_name(std::string_view name) {
  return name.starts_with(kSimulated) ? name.substr(kSimulated.size()) : name;
}

std::vector<std::string> target_names() {
  std::vector<std::string> all;
  for (const Vendor* v : kVendors)
    for (std::string_view name : v->names()) all.emplace_back(name);
  for (const Vendor* v : kVendors)
    if (v->simulated)
      for (std::string_view name : v->names()) all.push_back(std::string(kSimulated) + std::string(name));
  return all;
}

Expected<Target> find_target(std::string_view name) {
  const std::string_view device = simulated_name(name);
  const bool simulated = device.size() != name.size();
  for (const Vendor* v : kVendors) {
    if (simulated && !v->simulated) continue;
    std::optional<Target> t = v->find(device);
    if (!t) continue;
    t->name = std::string(name);
    t->vendor = v->name;
    t->simulated = simulated;
    return std::move(*t);
  }
  std::string known;
  for (const std::string& n : target_names()) known += (known.empty() ? "" : ", ") + n;
  return Error(DiagCode::no_such_target, std::string(name), "no target is called '" + std::string(name) + "'",
               "known targets: " + known);
}

const MmaAtom* find_mma_atom(const Target& t, std::string_view name) {
  for (const std::vector<MmaAtom>* atoms : {&t.mma, &t.sparse_mma}) {
    const auto found =
        std::find_if(atoms->begin(), atoms->end(), [&](const MmaAtom& a) { return a.name == name; });
    if (found != atoms->end()) return &*found;
  }
  return nullptr;
}

std::vector<RoleRegisters> role_registers(const Target& t, int64_t computing_threads, int64_t producers) {
  return t.role_registers ? t.role_registers(t, computing_threads, producers) : std::vector<RoleRegisters>();
}

int64_t most_consumer_registers(const Target& t, int64_t computing_threads) {
  int64_t most = 0;
  for (const RoleRegisters& r : role_registers(t, computing_threads)) most = std::max(most, r.at_most);
  return most;
}

std::string target_to_json(const Target& t) {
  nlohmann::ordered_json j;
  j["name"] = t.name;
  j["kind"] = t.vendor;
  j["code"] = code_format_name(t.code);
  j["warp"] = t.warp;
  j["max_threads"] = t.max_threads;
  j["shared_bytes"] = t.shared_bytes;
  j["multiprocessors"] = t.multiprocessors;
  j["registers_per_thread"] = t.registers_per_thread;
  j["vector_bytes"] = t.vector_bytes;
  j["async_copy"] = t.async_copy();
  j["store_matrix"] = t.store_matrix;
  j["tensor_copy"] = t.tensor_copy;
  j["cpu"] = t.cpu;
  j["features"] = t.features;
  for (const MmaAtom& a : t.mma) j["atoms"].push_back(a.name);
  for (const MmaAtom& a : t.sparse_mma) j["atoms"].push_back(a.name);
  for (const WarpgroupAtom& a : t.warpgroup_mma) j["atoms"].push_back(a.name);
  for (const WarpgroupAtom& a : t.sparse_warpgroup_mma) j["atoms"].push_back(a.name);
  for (const MicroKernelAtom& a : t.micro_kernels) j["atoms"].push_back(a.name);
  return j.dump(2);
}

}  // namespace tilegen::target
