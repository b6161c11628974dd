// The copy engine: boxes of tensors to and from shared memory.
#include "codegen/llvm/nvptx/ptx_emitter.h"
#include "codegen/llvm/nvptx/word_access.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

// "{$n, $m}", the coordinates as operands after those there are.
std::string PtxEmitter::coordinates(const std::vector<ir::ExprId>& at, std::string& constraints,
                                    Values& operands) {
  std::string text;
  for (ir::ExprId e : at) {
    text += (text.empty() ? "{$" : ", $") + std::to_string(operands.size());
    constraints += ",r";
    operands.push_back(resized(value(e), 32, e));
  }
  return text + "}";
}

// The last operand of a copy that tells the second cache what to keep, and its word at the end of `form`. The
// engine passes the nearest cache by.
std::string PtxEmitter::tell_caches(int map, Caching Memory::*which, std::string& form,
                                    std::string& constraints, Values& operands) {
  const Memory& tensor = program_.memory(program_.tensor_maps[static_cast<size_t>(map)].tensor);
  Value* policy = cache_policy(b_, tensor.*which);
  if (!policy) return "";
  form += ".L2::cache_hint";
  constraints += ",l";
  operands.push_back(policy);
  return ", $" + std::to_string(operands.size() - 1);
}

void PtxEmitter::emit_node(const TensorLoad& load) {
  if (load.announces) {
    const TensorMap& map = program_.tensor_maps[static_cast<size_t>(load.map)];
    int64_t bytes = ir::dtype_bytes(program_.memory(map.tensor).type);
    for (int64_t extent : map.box) bytes *= extent;
    Values to = address(b_, barrier_place(load.barriers, load.barrier_index));
    to.push_back(b_.getInt32(static_cast<uint32_t>(bytes)));
    ptx_.effect(b_.getVoidTy(), "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0+$1], $2;",
                "r,n,n,~{memory}", to);
  }
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
  const std::string hint = tell_caches(load.map, &Memory::loads, form, constraints, operands);
  ptx_.effect(b_.getVoidTy(),
              "cp.async.bulk.tensor." + std::to_string(load.coordinates.size()) + form + " [$0+$1], [$4, " +
                  at + "], [$2+$3]" + blocks + hint + ";",
              constraints + ",~{memory}", operands);
}

static std::string reduction_text(ir::AtomicKind kind) {
  return std::string(ir::atomic_text(kind).substr(std::string_view("atomic_").size()));
}

void PtxEmitter::emit_node(const TensorStore& store) {
  Values operands = address(b_, place(store.src, store.src_index));
  operands.push_back(maps_[static_cast<size_t>(store.map)]);
  std::string constraints = "r,n,l";
  const std::string at = coordinates(store.coordinates, constraints, operands);
  const std::string form = std::to_string(store.coordinates.size()) + "d.global.shared::cta.";
  std::string group = "bulk_group";
  const std::string hint = tell_caches(store.map, &Memory::stores, group, constraints, operands);
  ptx_.effect(
      b_.getVoidTy(),
      (store.reduction ? "cp.reduce.async.bulk.tensor." + form + reduction_text(*store.reduction) + ".tile."
                       : "cp.async.bulk.tensor." + form) +
          group + " [$2, " + at + "], [$0+$1]" + hint + ";",
      constraints + ",~{memory}", operands);
}

void PtxEmitter::emit_node(const BulkCommit&) { ptx_.effect("cp.async.bulk.commit_group;"); }

void PtxEmitter::emit_node(const BulkWait& wait) {
  ptx_.effect((wait.read ? "cp.async.bulk.wait_group.read " : "cp.async.bulk.wait_group ") +
              std::to_string(wait.pending) + ";");
}

// Not the aligned form: lanes that one thread ran ahead of may come by apart.
void PtxEmitter::emit_node(const ClusterBarrier&) {
  ptx_.effect("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;");
}

void PtxEmitter::emit_node(const GridDependencyWait&) { ptx_.effect("griddepcontrol.wait;"); }

void PtxEmitter::emit_node(const ClusterLoad& load) {
  auto first = constant_index(load.dst_index);
  if (!first) return;
  const bool floats = ir::is_float(program_.memory(load.dst).type);
  llvm::Type* element = floats ? b_.getFloatTy() : static_cast<llvm::Type*>(b_.getInt32Ty());
  std::string list, constraints;
  for (int i = 0; i < load.elements; ++i) {
    list += (i ? ", $" : "$") + std::to_string(i);
    constraints += floats ? "=f," : "=r,";
  }
  const auto operand = [&](int i) { return "$" + std::to_string(load.elements + i); };
  const std::string vector = load.elements == 1 ? "" : ".v" + std::to_string(load.elements);
  const std::string registers = load.elements == 1 ? list : "{" + list + "}";
  Values operands = address(b_, place(load.src, load.src_index));
  operands.push_back(resized(value(load.block), 32, load.block));
  llvm::Type* result =
      load.elements == 1 ? element
                         : llvm::StructType::get(context_, std::vector<llvm::Type*>(
                                                               static_cast<size_t>(load.elements), element));
  Value* got =
      ptx_.instruction(result,
                       "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, " + operand(0) + ", " +
                           operand(2) + ";\nld.shared::cluster" + vector + (floats ? ".f32 " : ".b32 ") +
                           registers + ", [there+" + operand(1) + "];\n}",
                       constraints + "r,n,r,~{memory}", operands);
  for (int i = 0; i < load.elements; ++i)
    registers_.set(load.dst, *first + i,
                   load.elements == 1 ? got : b_.CreateExtractValue(got, static_cast<unsigned>(i)));
}

void PtxEmitter::emit_node(const ProxyFence&) { ptx_.effect("fence.proxy.async.shared::cta;"); }

}  // namespace tilegen::codegen
