// Which values of register scopes are held in shared memory instead.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "infer/infer_layouts.h"

namespace tilegen::infer {

// Values of register scopes that are held in shared memory instead, and why.
struct InMemory {
  std::map<ValueId, std::string> values;
  // Those that must stay in registers: an op works on a copy in memory.
  std::map<std::pair<OpId, ValueId>, std::string> accesses;
  bool empty() const { return values.empty() && accesses.empty(); }
};
// What the given schedule places there.
InMemory given_in_memory(const InferInput& in);

// Values that are spread over the threads' registers.
class RegisterValues {
 public:
  RegisterValues(const analysis::KernelOps& ops, const InMemory& in_memory)
      : ops_(ops), in_memory_(in_memory) {}

  bool has(ValueId v) const {
    if (!v.valid() || in_memory_.values.count(v)) return false;
    const ir::MemScope s = ops_.values[v].scope;
    return s == ir::MemScope::fragment || s == ir::MemScope::local;
  }
  // The op works on registers of the value.
  bool has(const analysis::KernelOp& op, ValueId v) const {
    return has(v) && !in_memory_.accesses.count({ops_.id_of(op), v});
  }

 private:
  const analysis::KernelOps& ops_;
  const InMemory& in_memory_;
};

}  // namespace tilegen::infer
