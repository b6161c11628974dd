// The copy engine: boxes of tensors to and from shared memory.
#include "codegen/llvm/nvptx/gpu_emitter.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

// "{$n, $m}", the coordinates as operands after those there are.
std::string GpuEmitter::coordinates(const std::vector<ir::ExprId>& at, std::string& constraints,
                                    Values& operands) {
  std::string text;
  for (ir::ExprId e : at) {
    text += (text.empty() ? "{$" : ", $") + std::to_string(operands.size());
    constraints += ",r";
    operands.push_back(resized(value(e), 32, e));
  }
  return text + "}";
}

void GpuEmitter::emit_node(const TensorLoad& load) {
  Values operands = address(b_, place(load.dst, load.dst_index));
  for (Value* v : address(b_, barrier_place(load.barriers, load.barrier_index))) operands.push_back(v);
  operands.push_back(maps_[static_cast<size_t>(load.map)]);
  std::string constraints = "r,n,r,n,l";
  const std::string at = coordinates(load.coordinates, constraints, operands);
  std::string form = "d.shared::cluster.global.mbarrier::complete_tx::bytes", blocks;
  if (load.multicast != 0) {
    form += ".multicast::cluster";
    blocks = ", $" + std::to_string(operands.size());
    constraints += ",h";
    operands.push_back(b_.getInt16(static_cast<uint16_t>(load.multicast)));
  }
  ptx_.effect(b_.getVoidTy(),
              "cp.async.bulk.tensor." + std::to_string(load.coordinates.size()) + form + " [$0+$1], [$4, " +
                  at + "], [$2+$3]" + blocks + ";",
              constraints + ",~{memory}", operands);
}

void GpuEmitter::emit_node(const TensorStore& store) {
  Values operands = address(b_, place(store.src, store.src_index));
  operands.push_back(maps_[static_cast<size_t>(store.map)]);
  std::string constraints = "r,n,l";
  const std::string at = coordinates(store.coordinates, constraints, operands);
  ptx_.effect(b_.getVoidTy(),
              "cp.async.bulk.tensor." + std::to_string(store.coordinates.size()) +
                  "d.global.shared::cta.bulk_group [$2, " + at + "], [$0+$1];",
              constraints + ",~{memory}", operands);
}

void GpuEmitter::emit_node(const BulkCommit&) { ptx_.effect("cp.async.bulk.commit_group;"); }

void GpuEmitter::emit_node(const BulkWait& wait) {
  ptx_.effect((wait.read ? "cp.async.bulk.wait_group.read " : "cp.async.bulk.wait_group ") +
              std::to_string(wait.pending) + ";");
}

// Not the aligned form: lanes that one thread ran ahead of may come by apart.
void GpuEmitter::emit_node(const ClusterBarrier&) {
  ptx_.effect("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;");
}

void GpuEmitter::emit_node(const ProxyFence&) { ptx_.effect("fence.proxy.async.shared::cta;"); }

}  // namespace tilegen::codegen
