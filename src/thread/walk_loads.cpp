#include "thread/walk_loads.h"

#include <map>

namespace tilegen::thread {

using ir::ExprId;

WalkLoads::WalkLoads(const ThreadProgram& p, const std::vector<bool>& handed_over) : p_(p) {
  find_handed(handed_over);
  find_registers();
  find_tensors();
}

void WalkLoads::find_handed(const std::vector<bool>& handed_over) {
  std::set<MemoryId> engines;
  for (const Stmt& s : p_.stmts) {
    if (const auto* store = std::get_if<Store>(&s.node)) handed_.insert(store->memory);
    if (const auto* load = std::get_if<TensorLoad>(&s.node)) engines.insert(load->dst);
    if (const auto* box = std::get_if<TensorStore>(&s.node)) engines.insert(box->src);
    if (const auto* product = std::get_if<WarpgroupMma>(&s.node)) engines.insert({product->a, product->b});
  }
  std::erase_if(handed_, [&](MemoryId m) {
    const Memory& memory = p_.memory(m);
    return memory.space != Space::shared || !handed_over[m.value] || !ir::is_integer(memory.type) ||
           engines.count(m) > 0;
  });
}

// What the first lane has of a number that was handed over.
bool WalkLoads::takes_handed(const Shuffle& shuffle) const {
  int64_t lane = -1;
  const ir::ExprNode& n = p_.exprs[shuffle.value];
  return shuffle.mode == Shuffle::Mode::indexed && p_.exprs.is_const_int(shuffle.lane, &lane) && lane == 0 &&
         n.op == ir::ExprOp::load && handed_.count(n.object) > 0;
}

// Registers that hold indices of the block, or count: loops' bounds, slots and phases are told by them.
void WalkLoads::find_registers() {
  std::set<uint32_t> unknown;
  std::map<std::pair<MemoryId, int64_t>, int> sets;
  for (const Stmt& s : p_.stmts) {
    if (const auto* load = std::get_if<LoadMatrix>(&s.node)) unknown.insert(load->dst.value);
    if (const auto* load = std::get_if<ClusterLoad>(&s.node)) unknown.insert(load->dst.value);
    if (const auto* vote = std::get_if<Vote>(&s.node)) unknown.insert(vote->dst.value);
    int64_t element = 0;
    if (const auto* shuffle = std::get_if<Shuffle>(&s.node)) {
      if (takes_handed(*shuffle) && p_.exprs.is_const_int(shuffle->dst_index, &element))
        sets[{shuffle->dst, element}] += 2;
      else
        unknown.insert(shuffle->dst.value);
    }
    if (const auto* fetch = std::get_if<FetchTile>(&s.node)) {
      if (p_.exprs.is_const_int(fetch->dst_index, &element))
        sets[{fetch->dst, element}] += 2;
      else
        unknown.insert(fetch->dst.value);
    }
    if (const auto* test = std::get_if<TransactionTest>(&s.node)) unknown.insert(test->dst.value);
    if (const auto* reduce = std::get_if<LaneReduce>(&s.node)) unknown.insert(reduce->dst.value);
    const auto* store = std::get_if<Store>(&s.node);
    if (!store || !p_.memory(store->memory).in_registers) continue;
    const ir::DType type = p_.memory(store->memory).type;
    const bool counts = type == ir::DType::i64 || type == ir::DType::i32;
    if (!counts || store->predicate.valid() || !p_.exprs.is_const_int(store->index, &element)) {
      unknown.insert(store->memory.value);
    } else if (const std::pair at(store->memory, element); ++sets[at] == 1) {
      numbers_.named.emplace(at, store->value);
    }
  }
  std::erase_if(numbers_.named, [&](const auto& r) { return unknown.count(r.first.first.value) > 0; });
  for (const auto& [at, count] : sets)
    if (count > 1 && unknown.count(at.first.value) == 0 && (numbers_.named.erase(at), true))
      numbers_.changing.emplace(at, ir::VarId(p_.vars.size() + numbers_.changing.size()));
}

void WalkLoads::find_tensors() {
  std::set<MemoryId> written;
  for (const Stmt& s : p_.stmts) {
    if (const auto* store = std::get_if<Store>(&s.node)) written.insert(store->memory);
    if (const auto* store = std::get_if<TensorStore>(&s.node))
      written.insert(p_.tensor_maps[static_cast<size_t>(store->map)].tensor);
  }
  for (size_t m = 0; m < p_.memories.size(); ++m) {
    const Memory& memory = p_.memories[m];
    if (memory.space == Space::global && !written.count(MemoryId(m))) numbers_.data.insert(MemoryId(m));
  }
  tensors_ = numbers_.data;
  numbers_.data.insert(handed_.begin(), handed_.end());
  places_ = numbers_;
  std::erase_if(places_.data, [&](ir::ObjectId m) { return ir::is_float(p_.memory(m).type); });
}

std::optional<ir::VarId> WalkLoads::changing(const StmtNode& node) const {
  const auto* store = std::get_if<Store>(&node);
  const auto* fetch = std::get_if<FetchTile>(&node);
  const auto* shuffle = std::get_if<Shuffle>(&node);
  const ExprId index = store     ? store->index
                       : fetch   ? fetch->dst_index
                       : shuffle ? shuffle->dst_index
                                 : ExprId();
  int64_t element = 0;
  if (!index.valid() || !p_.exprs.is_const_int(index, &element)) return std::nullopt;
  const auto it = numbers_.changing.find({store   ? store->memory
                                          : fetch ? fetch->dst
                                                  : shuffle->dst,
                                          element});
  return it == numbers_.changing.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace tilegen::thread
