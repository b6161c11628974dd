// Names of targets. "host" is filled by whoever knows this machine's CPU (codegen/ sets it at start-up of a
// compile), since only code generation may ask LLVM.
#include <nlohmann/json.hpp>

#include "target/target.h"

namespace tilegen::target {

std::vector<std::string> target_names() {
  return {"host", "x86-64-v3", "x86-64-v4", "sm_80", "sm_89", "sm_90", "sm_90a",
          "sim:sm_80", "sim:sm_89", "sim:sm_90", "sim:sm_90a"};
}

Expected<Target> find_target(std::string_view name) {
  if (name == "host") return host::this_machine();
  if (name == "x86-64-v3" || name == "x86-64-v4") return host::x86_64(name);
  if (name == "sm_80") return nvidia::sm(80);
  if (name == "sm_89") return nvidia::sm(89);
  if (name == "sm_90") return nvidia::sm(90);
  if (name == "sm_90a") return nvidia::sm(90, true);
  constexpr std::string_view kSimulated = "sim:sm_";
  if (name.substr(0, kSimulated.size()) == kSimulated)
    if (auto device = find_target(name.substr(4)); device) {
      device->name = std::string(name);
      device->simulated = true;
      return device;
    }
  std::string known;
  for (const std::string& n : target_names()) known += (known.empty() ? "" : ", ") + n;
  return Error(DiagCode::no_such_target, std::string(name), "no target is called '" + std::string(name) + "'",
               "known targets: " + known);
}

std::string target_to_json(const Target& t) {
  nlohmann::ordered_json j;
  j["name"] = t.name;
  j["kind"] = t.is_host() ? "host" : "nvidia";
  j["warp"] = t.warp;
  j["max_threads"] = t.max_threads;
  j["shared_bytes"] = t.shared_bytes;
  j["multiprocessors"] = t.multiprocessors;
  j["registers_per_thread"] = t.registers_per_thread;
  j["vector_bytes"] = t.vector_bytes;
  j["async_copy"] = t.async_copy;
  j["store_matrix"] = t.store_matrix;
  j["tensor_copy"] = t.tensor_copy;
  j["cpu"] = t.cpu;
  j["features"] = t.features;
  for (const MmaAtom& a : t.mma) j["atoms"].push_back(a.name);
  for (const WarpgroupAtom& a : t.warpgroup_mma) j["atoms"].push_back(a.name);
  for (const MicroKernelAtom& a : t.micro_kernels) j["atoms"].push_back(a.name);
  return j.dump(2);
}

}  // namespace tilegen::target
