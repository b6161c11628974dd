// Loads and stores of global and shared memory, and of registers.
//
// What an access under a predicate does not reach is not touched. How, the vendor's emitter says; plain ones
// are LLVM's, which may share and hoist them.
#include <algorithm>

#include "codegen/llvm/atomics.h"
#include "codegen/llvm/gpu/gpu_emitter.h"
#include "codegen/llvm/types.h"
#include "target/atomic_sums.h"

namespace tilegen::codegen {

using ir::ExprId;
using llvm::Value;
using thread::Memory;
using thread::MemoryId;
using thread::Space;

namespace {

bool left_to_hardware(const thread::Guard& g, ExprId condition, ExprId index) {
  for (size_t i = 0; i < g.bounds.size(); i += 2)
    if (g.bounds[i] == condition && g.bounds[i + 1] == index) return true;
  return false;
}

bool sums_narrow(const thread::ThreadProgram& p, const thread::Store& s, const target::Target& t) {
  return target::find_atomic_sum(p, s, t, 2) != nullptr;
}

}  // namespace

// `count` elements from `at` on, held.
GpuEmitter::Values GpuEmitter::load_wide(MemoryId memory, const Place& at, int64_t count,
                                         const Condition& condition, LoadKind kind, int64_t most_bytes) {
  const Memory& m = program_.memory(memory);
  if (condition.never)
    return Values(static_cast<size_t>(count), llvm::Constant::getNullValue(held_type(context_, m.type)));
  const int64_t size = ir::dtype_bytes(m.type), bytes = count * size,
                part = std::min(part_bytes(bytes), most_bytes);
  Values held;
  for (int64_t done = 0; done < bytes; done += part) {
    Place here = at.after(done);
    here.bounded = condition.bounded;
    Values words = load_words(here, m, part, condition.value, kind);
    for (Value* v : packing_.elements(m.type, words, part / size)) held.push_back(v);
  }
  return held;
}

void GpuEmitter::store_wide(const thread::Store& s, const Place& at, const Values& held,
                            const Condition& condition) {
  if (condition.never) return;
  const Memory& m = program_.memory(s.memory);
  if (s.atomic) return combine_wide(s, at, held, condition);
  const int64_t size = ir::dtype_bytes(m.type), bytes = static_cast<int64_t>(held.size()) * size;
  const int64_t part = part_bytes(bytes), per_part = part / size;
  Value* streams = s.streaming && s.streaming_if.valid() ? value(s.streaming_if) : nullptr;
  for (int64_t i = 0; i < static_cast<int64_t>(held.size()); i += per_part) {
    Values words = packing_.words(m.type, {held.data() + i, static_cast<size_t>(per_part)});
    Place here = at.after(i * size);
    here.bounded = condition.bounded;
    if (!streams) {
      put_words(
          {here, s.memory, part, std::move(words), condition.value, s.streaming && m.space == Space::global});
      continue;
    }
    Value* plain = b_.CreateNot(streams);
    store_words(here, m, part, words, condition.value ? b_.CreateAnd(condition.value, streams) : streams,
                true);
    store_words(here, m, part, words, condition.value ? b_.CreateAnd(condition.value, plain) : plain, false);
  }
}

void GpuEmitter::combine_wide(const thread::Store& s, const Place& at, const Values& held,
                              const Condition& condition) {
  const ir::DType type = program_.memory(s.memory).type;
  const AtomicParts parts{condition.value, nullptr, nullptr, s.order, sums_narrow(program_, s, target_)};
  const int64_t size = ir::dtype_bytes(type);
  const auto element = [&](size_t i) {
    return pointer(b_, {at.pointer, at.offset + static_cast<int64_t>(i) * size});
  };
  const target::AtomicSum* wide =
      target::find_atomic_sum(program_, s, target_, part_bytes(static_cast<int64_t>(held.size()) * size));
  const size_t step = wide && !wide->alone ? static_cast<size_t>(wide->bytes / size) : 1;
  for (size_t i = 0; i < held.size(); i += step) {
    if (step > 1)
      emit_wide_add(b_, features_, wide->form, element(i), packing_.words(type, {held.data() + i, step}),
                    parts);
    else
      emit_atomic(b_, ops_, features_, *s.atomic, type, element(i), held[i], parts);
  }
}

Value* GpuEmitter::load_element(MemoryId memory, ExprId index, const Condition& condition) {
  const Memory& m = program_.memory(memory);
  if (condition.never) return llvm::Constant::getNullValue(held_type(context_, m.type));
  if (!registers_.owns(memory)) {
    if (Value* known = condition.value || condition.bounded ? nullptr : element_of_word(memory, index))
      return known;
    // LLVM leaves out of a condition what a branch around has asked, and its code generator takes text out of
    // loops past branches.
    const bool asked = condition.value && sides_in_loops_ > 0;
    const bool stands = m.read_only && !asked && !facts_.depends_on(index, program_.thread_var);
    return load_wide(memory, place(memory, index), 1, condition,
                     stands ? LoadKind::standing : LoadKind::plain)[0];
  }
  auto at = constant_index(index);
  if (!at) return llvm::Constant::getNullValue(held_type(context_, m.type));
  if (*at < 0 || *at >= m.elements) {
    refuse("index " + std::to_string(*at) + " is outside register memory '" + m.name + "'");
    return llvm::Constant::getNullValue(held_type(context_, m.type));
  }
  Value* v = registers_.get(memory, *at);
  return condition.value ? b_.CreateSelect(condition.value, v, llvm::Constant::getNullValue(v->getType()))
                         : v;
}

void GpuEmitter::store_element(const thread::Store& s, ExprId index, Value* held,
                               const Condition& condition) {
  if (condition.never) return;
  const Memory& m = program_.memory(s.memory);
  if (s.atomic == ir::AtomicKind::append)
    return emit_append(b_, features_, bases_[s.memory.value], resized(value(index), 64, index), held,
                       condition.value);
  if (!registers_.owns(s.memory)) return store_wide(s, place(s.memory, index), {held}, condition);
  auto at = constant_index(index);
  if (!at) return;
  if (*at < 0 || *at >= m.elements)
    return refuse("index " + std::to_string(*at) + " is outside register memory '" + m.name + "'");
  if (condition.value) held = b_.CreateSelect(condition.value, held, registers_.get(s.memory, *at));
  registers_.set(s.memory, *at, held);
}

GpuEmitter::Condition GpuEmitter::store_condition(const thread::Store& s) {
  return s.atomic ? condition(s.predicate) : condition(s.predicate, s.memory, s.index);
}

GpuEmitter::Condition GpuEmitter::condition(ExprId predicate, MemoryId of, ExprId index) {
  const int param = program_.memory(of).param;
  const auto guard = std::find_if(program_.guards.begin(), program_.guards.end(),
                                  [&](const thread::Guard& g) { return g.param == param; });
  if (!predicate.valid() || guard == program_.guards.end()) return condition(predicate);
  Condition all;
  std::vector<ExprId> open = {predicate};
  while (!open.empty()) {
    const ExprId part = open.back();
    open.pop_back();
    const ir::ExprNode n = exprs_[part];
    if (left_to_hardware(*guard, part, index)) {
      all.bounded = true;
    } else if (n.op == ir::ExprOp::logical_and) {
      open.insert(open.end(), {n.b, n.a});
    } else {
      const Condition c = condition(part);
      all.never |= c.never;
      all.level = std::max(all.level, c.level);
      if (c.value) all.value = all.value ? b_.CreateAnd(all.value, c.value) : c.value;
    }
  }
  return all.bounded ? all : condition(predicate);
}

GpuEmitter::Condition GpuEmitter::condition(ExprId predicate) {
  if (!predicate.valid()) return {};
  Emitted e = emit_expr(facts_.simplified(predicate));
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(e.value);
  if (!known) return {e.value, false, e.level};
  return {nullptr, known->isZero(), e.level};
}

// Of a load that is the same for all threads and as long as the kernel runs: what its index and its predicate
// read from registers, and the innermost scope of their variables. None: another load.
std::optional<GpuEmitter::Standing> GpuEmitter::standing(ExprId load) {
  const ir::ExprNode n = exprs_[load];
  if (!program_.memory(n.object).read_only || registers_.owns(n.object) || lane_var_.valid() ||
      facts_.depends_on(load, program_.thread_var))
    return std::nullopt;
  Standing s;
  std::vector<ExprId> todo(exprs_.indices(load).begin(), exprs_.indices(load).end());
  std::set<ExprId> seen;
  while (!todo.empty()) {
    const ExprId e = todo.back();
    todo.pop_back();
    if (!e.valid() || !seen.insert(e).second) continue;
    const ir::ExprNode node = exprs_[e];
    if (node.op == ir::ExprOp::var) s.level = std::max(s.level, bound_[node.var().value].level);
    if (node.op == ir::ExprOp::native_call) return std::nullopt;
    if (node.op == ir::ExprOp::load) {
      const ExprId index = exprs_.indices(e)[0];
      const auto at = registers_.owns(node.object) ? constant_index(index) : std::nullopt;
      const Memory& m = program_.memory(node.object);
      if (registers_.owns(node.object) && (!at || *at < 0 || *at >= m.elements)) return std::nullopt;
      if (at)
        s.registers.push_back(registers_.get(node.object, *at));
      else if (!m.read_only)
        return std::nullopt;
      for (ExprId inner : exprs_.indices(e)) todo.push_back(inner);
    }
    for (ExprId operand : {node.a, node.b, node.c}) todo.push_back(operand);
  }
  return s;
}

// What stands is loaded once, as long as registers that tell where are as they were: a branch would wait
// again for what the branch around it has asked.
GpuEmitter::Emitted GpuEmitter::emit_load(ExprId e) {
  const std::optional<Standing> stands = standing(e);
  if (!stands) return emit_own_load(e);
  const uint64_t key = uint64_t{1} << 32 | e.value;
  const auto before = standing_registers_.find(e);
  if (const auto known = memo_.find(key);
      known != memo_.end() && before != standing_registers_.end() && before->second == stands->registers)
    return {known->second.value, statement_level_};
  const Emitted loaded = emit_own_load(e);
  if (!memo_.count(key)) {
    remember(key, {loaded.value, stands->level});
    standing_registers_[e] = stands->registers;
  }
  return loaded;
}

GpuEmitter::Emitted GpuEmitter::emit_own_load(ExprId e) {
  if (const auto early = early_loads_.find(e); early != early_loads_.end())
    return {early->second, statement_level_};
  const ir::ExprNode n = exprs_[e];
  const ExprId index = exprs_.indices(e)[0];
  const ExprId predicate = exprs_.indices(e).size() > 1 ? exprs_.indices(e)[1] : ExprId();
  if (lane_var_.valid() && !registers_.owns(n.object) && facts_.depends_on(index, lane_var_) &&
      uniform(predicate)) {
    const Bound& lane = bound_[lane_var_.value];
    auto position = static_cast<size_t>(llvm::cast<llvm::ConstantInt>(lane.value)->getZExtValue());
    auto known = wide_loads_.find(e);
    if (known != wide_loads_.end()) return {known->second[position], lane.level};
    if (auto at = contiguous(n.object, index, predicate)) {
      Values all = load_wide(n.object, *at, width_, condition(predicate, n.object, index));
      return {wide_loads_.emplace(e, std::move(all)).first->second[position], lane.level};
    }
    if (const auto near = near_elements(n.object, index)) {
      const Values some = load_wide(n.object, near->at, near->count, condition(predicate, n.object, index),
                                    LoadKind::plain, near->access_bytes);
      Values all;
      for (size_t element : near->of_lane) all.push_back(some[element]);
      return {wide_loads_.emplace(e, std::move(all)).first->second[position], lane.level};
    }
  }
  Condition c = condition(predicate, n.object, index);
  Value* v = load_element(n.object, index, c);
  return {v, std::max({statement_level_, emit_expr(index).level, c.level})};
}

void GpuEmitter::emit_node(const thread::Store& s) {
  lane_var_.valid() ? emit_vector_store(s) : emit_plain_store(s);
}

void GpuEmitter::emit_plain_store(const thread::Store& s) {
  Condition c = store_condition(s);
  if (c.never) return;
  Value* held = held_value(s.value);
  if (!s.old.valid() && !s.expected.valid()) return store_element(s, s.index, held, c);
  const AtomicParts parts{c.value, s.expected.valid() ? held_value(s.expected) : nullptr,
                          s.old.valid() ? pointer(b_, place(s.old, s.old_index)) : nullptr, s.order,
                          sums_narrow(program_, s, target_)};
  emit_atomic(b_, ops_, features_, *s.atomic, program_.memory(s.memory).type,
              pointer(b_, place(s.memory, s.index)), held, parts);
}

// All lanes are computed before the first is stored.
void GpuEmitter::emit_vector_store(const thread::Store& s) {
  auto each_lane = [&](auto work) {
    for (int64_t i = 0; i < width_ && !refused(); ++i) {
      open_scope(false);
      bind(lane_var_, b_.getInt64(static_cast<uint64_t>(i)));
      work(static_cast<size_t>(i));
      close_scope();
    }
  };
  Values held;
  each_lane([&](size_t) { held.push_back(held_value(s.value)); });
  if (refused()) return;
  if (!registers_.owns(s.memory) && uniform(s.predicate))
    if (auto at = contiguous(s.memory, s.index, s.predicate))
      return store_wide(s, *at, held, store_condition(s));
  each_lane([&](size_t i) { store_element(s, s.index, held[i], store_condition(s)); });
}

}  // namespace tilegen::codegen
