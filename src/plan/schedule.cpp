#include "plan/schedule.h"

namespace tilegen::plan {

const char* origin_name(Origin o) {
  switch (o) {
    case Origin::strict:
      return "strict";
    case Origin::common:
      return "common";
    case Origin::free:
      return "free";
    case Origin::given:
      return "given";
  }
  return "unknown";
}

const char* engine_name(Engine e) {
  switch (e) {
    case Engine::loop:
      return "loop";
    case Engine::vector_copy:
      return "vector_copy";
    case Engine::async_copy:
      return "async_copy";
    case Engine::mma:
      return "mma";
    case Engine::micro_kernel:
      return "micro_kernel";
    case Engine::lane_reduce:
      return "lane_reduce";
    case Engine::tensor_copy:
      return "tensor_copy";
    case Engine::warpgroup_mma:
      return "warpgroup_mma";
    case Engine::register_copy:
      return "register_copy";
  }
  return "unknown";
}

const KernelSchedule* Schedule::find(std::string_view kernel) const {
  for (const KernelSchedule& k : kernels)
    if (k.kernel == kernel) return &k;
  return nullptr;
}

const OpPlan* find_op(const KernelSchedule& k, std::string_view path) {
  for (const OpPlan& o : k.ops)
    if (o.op == path) return &o;
  return nullptr;
}

const ValuePlan* find_value(const KernelSchedule& k, std::string_view value) {
  for (const ValuePlan& v : k.values)
    if (v.value == value) return &v;
  return nullptr;
}

const LoopPlan* find_loop(const KernelSchedule& k, std::string_view path) {
  for (const LoopPlan& l : k.loops)
    if (l.loop == path) return &l;
  return nullptr;
}

const PipelinePlan* find_pipeline(const KernelSchedule& k, std::string_view name) {
  for (const PipelinePlan& c : k.pipelines)
    if (c.name == name) return &c;
  return nullptr;
}

const MemoryPlan* find_memory(const KernelSchedule& k, Storage storage, std::string_view owner,
                              std::string_view value) {
  for (const MemoryPlan& m : k.memory)
    if (m.storage == storage && m.owner == owner && m.value == value) return &m;
  return nullptr;
}

const char* storage_name(Storage s) {
  switch (s) {
    case Storage::value:
      return "value";
    case Storage::copy:
      return "copy";
    case Storage::scratch:
      return "scratch";
    case Storage::stage:
      return "stage";
    case Storage::operand_a:
      return "operand_a";
    case Storage::operand_b:
      return "operand_b";
    case Storage::barriers:
      return "barriers";
    case Storage::tile_scheduler:
      return "tile_scheduler";
    case Storage::parts:
      return "parts";
  }
  return "";
}

}  // namespace tilegen::plan
