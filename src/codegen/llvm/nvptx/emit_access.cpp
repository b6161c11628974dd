// Loads and stores of global and shared memory, and of registers.
//
// A predicated access is one inline instruction under a predicate register: what it does not reach is not
// touched, and the code stays in one block. Others are LLVM's, which may share and hoist them.
#include <llvm/IR/InlineAsm.h>

#include "codegen/llvm/nvptx/gpu_emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using ir::ExprId;
using llvm::Value;
using thread::Memory;
using thread::MemoryId;
using thread::Space;

namespace {

const char* space_prefix(Space s) { return s == Space::shared ? "shared" : "global"; }

// The registers of one access: `count` of `bits` each.
struct Shape {
  int count = 1;
  unsigned bits = 32;
};

Shape shape_of(int64_t bytes, ir::DType t) {
  const int64_t word = word_bytes(t);
  if (bytes < word) return {1, static_cast<unsigned>(8 * bytes)};
  return {static_cast<int>(bytes / word), static_cast<unsigned>(8 * word)};
}

// "{$first, ...}" or "$first"
std::string register_list(int first, int count) {
  std::string text = count > 1 ? "{" : "";
  for (int i = 0; i < count; ++i) text += (i ? ", $" : "$") + std::to_string(first + i);
  return count > 1 ? text + "}" : text;
}

std::string type_suffix(const Shape& s) {
  return (s.count > 1 ? ".v" + std::to_string(s.count) : "") + ".b" + std::to_string(s.bits);
}

// 8-bit values live in 16-bit registers.
char register_class(const Shape& s) { return s.bits <= 16 ? 'h' : s.bits == 32 ? 'r' : 'l'; }
unsigned register_bits(const Shape& s) { return std::max(s.bits, 16u); }

}  // namespace

llvm::CallInst* GpuEmitter::assembly(llvm::Type* result, const llvm::Twine& text,
                                     const llvm::Twine& constraints, llvm::ArrayRef<Value*> operands) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  bool reads_only = !result->isVoidTy();
  auto* code = llvm::InlineAsm::get(type, text.str(), constraints.str(), /*hasSideEffects=*/!reads_only);
  llvm::CallInst* call = b_.CreateCall(type, code, operands);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  if (reads_only) {
    call->addFnAttr(llvm::Attribute::WillReturn);
    call->setOnlyReadsMemory();
  }
  return call;
}

llvm::CallInst* GpuEmitter::effect(llvm::Type* result, const llvm::Twine& text,
                                   const llvm::Twine& constraints, llvm::ArrayRef<Value*> operands) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  auto* code = llvm::InlineAsm::get(type, text.str(), constraints.str(), /*hasSideEffects=*/true);
  llvm::CallInst* call = b_.CreateCall(type, code, operands);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  return convergent(call);
}

// At most 16 bytes, as words or one smaller register.
GpuEmitter::Values GpuEmitter::load_words(const Place& at, const Memory& m, int64_t bytes, Value* condition) {
  const Shape s = shape_of(bytes, m.type);
  Values words;
  if (!condition) {
    llvm::Type* type = b_.getIntNTy(s.bits);
    if (s.count > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(s.count));
    Value* v = b_.CreateAlignedLoad(type, pointer(at), llvm::Align(static_cast<uint64_t>(bytes)));
    for (int i = 0; i < s.count; ++i)
      words.push_back(s.count > 1 ? b_.CreateExtractElement(v, static_cast<uint64_t>(i)) : v);
    return words;
  }
  std::string text = "{ ", constraints;
  for (int i = 0; i < s.count; ++i) {
    text += "mov.b" + std::to_string(register_bits(s)) + " $" + std::to_string(i) + ", 0; ";
    constraints += std::string("=&") + register_class(s) + ",";
  }
  auto operand = [&](int i) { return "$" + std::to_string(s.count + i); };
  text += "@" + operand(2) + " ld." + space_prefix(m.space) + type_suffix(s) + " " +
          register_list(0, s.count) + ", [" + operand(0) + "+" + operand(1) + "]; }";
  constraints += m.space == Space::shared ? "r,n,b,~{memory}" : "l,n,b,~{memory}";
  llvm::Type* word = b_.getIntNTy(register_bits(s));
  llvm::Type* type = word;
  if (s.count > 1)
    type = llvm::StructType::get(context_, std::vector<llvm::Type*>(static_cast<size_t>(s.count), word));
  Values operands = address(at);
  operands.push_back(condition);
  Value* v = assembly(type, text, constraints, operands);
  for (int i = 0; i < s.count; ++i)
    words.push_back(s.count > 1 ? b_.CreateExtractValue(v, static_cast<unsigned>(i)) : v);
  if (s.bits < 16) words[0] = b_.CreateTrunc(words[0], b_.getIntNTy(s.bits));
  return words;
}

void GpuEmitter::store_words(const Place& at, const Memory& m, int64_t bytes, Values words, Value* condition,
                             bool streaming) {
  const Shape s = shape_of(bytes, m.type);
  if (!condition && !streaming) {
    Value* v = words[0];
    if (s.count > 1) {
      v = llvm::PoisonValue::get(
          llvm::FixedVectorType::get(b_.getIntNTy(s.bits), static_cast<unsigned>(s.count)));
      for (int i = 0; i < s.count; ++i)
        v = b_.CreateInsertElement(v, words[static_cast<size_t>(i)], static_cast<uint64_t>(i));
    }
    b_.CreateAlignedStore(v, pointer(at), llvm::Align(static_cast<uint64_t>(bytes)));
    return;
  }
  if (s.bits < 16) words[0] = b_.CreateZExt(words[0], b_.getInt16Ty());
  std::string text, constraints = m.space == Space::shared ? "r,n" : "l,n";
  for (int i = 0; i < s.count; ++i) constraints += std::string(",") + register_class(s);
  if (condition) {
    text = "@$" + std::to_string(2 + s.count) + " ";
    constraints += ",b";
  }
  text += std::string("st.") + space_prefix(m.space) + (streaming ? ".cs" : "") + type_suffix(s) +
          " [$0+$1], " + register_list(2, s.count) + ";";
  Values operands = address(at);
  operands.insert(operands.end(), words.begin(), words.end());
  if (condition) operands.push_back(condition);
  assembly(b_.getVoidTy(), text, constraints + ",~{memory}", operands);
}

namespace {

// Bytes of one access: the largest power of two, up to 16, that divides all of it.
int64_t part_bytes(int64_t bytes) { return std::min<int64_t>(bytes & -bytes, 16); }

}  // namespace

// `count` elements from `at` on, held.
GpuEmitter::Values GpuEmitter::load_wide(MemoryId memory, const Place& at, int64_t count,
                                         const Condition& condition) {
  const Memory& m = program_.memory(memory);
  if (condition.never)
    return Values(static_cast<size_t>(count), llvm::Constant::getNullValue(held_type(context_, m.type)));
  const int64_t size = ir::dtype_bytes(m.type), bytes = count * size, part = part_bytes(bytes);
  Values held;
  for (int64_t done = 0; done < bytes; done += part) {
    Values words = load_words({at.pointer, at.offset + done}, m, part, condition.value);
    for (Value* v : packing_.elements(m.type, words, part / size)) held.push_back(v);
  }
  return held;
}

void GpuEmitter::store_wide(const thread::Store& s, const Place& at, const Values& held,
                            const Condition& condition) {
  if (condition.never) return;
  const Memory& m = program_.memory(s.memory);
  const int64_t size = ir::dtype_bytes(m.type), bytes = static_cast<int64_t>(held.size()) * size;
  const int64_t part = part_bytes(bytes), per_part = part / size;
  Value* streams = s.streaming && s.streaming_if.valid() ? value(s.streaming_if) : nullptr;
  for (int64_t i = 0; i < static_cast<int64_t>(held.size()); i += per_part) {
    Values words = packing_.words(m.type, {held.data() + i, static_cast<size_t>(per_part)});
    const Place here{at.pointer, at.offset + i * size};
    if (!streams) {
      store_words(here, m, part, words, condition.value, s.streaming && m.space == Space::global);
      continue;
    }
    Value* plain = b_.CreateNot(streams);
    store_words(here, m, part, words, condition.value ? b_.CreateAnd(condition.value, streams) : streams,
                true);
    store_words(here, m, part, words, condition.value ? b_.CreateAnd(condition.value, plain) : plain, false);
  }
}

Value* GpuEmitter::load_element(MemoryId memory, ExprId index, const Condition& condition) {
  const Memory& m = program_.memory(memory);
  if (condition.never) return llvm::Constant::getNullValue(held_type(context_, m.type));
  if (!registers_.owns(memory)) return load_wide(memory, place(memory, index), 1, condition)[0];
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
  if (!registers_.owns(s.memory)) return store_wide(s, place(s.memory, index), {held}, condition);
  auto at = constant_index(index);
  if (!at) return;
  if (*at < 0 || *at >= m.elements)
    return refuse("index " + std::to_string(*at) + " is outside register memory '" + m.name + "'");
  if (condition.value) held = b_.CreateSelect(condition.value, held, registers_.get(s.memory, *at));
  registers_.set(s.memory, *at, held);
}

GpuEmitter::Condition GpuEmitter::condition(ExprId predicate) {
  if (!predicate.valid()) return {};
  Emitted e = emit_expr(facts_.simplified(predicate));
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(e.value);
  if (!known) return {e.value, false, e.level};
  return {nullptr, known->isZero(), e.level};
}

GpuEmitter::Emitted GpuEmitter::emit_load(ExprId e) {
  const ir::ExprNode n = exprs_[e];
  const ExprId index = exprs_.indices(e)[0];
  const ExprId predicate = exprs_.indices(e).size() > 1 ? exprs_.indices(e)[1] : ExprId();
  if (lane_var_.valid() && !registers_.owns(n.object) && facts_.depends_on(index, lane_var_) &&
      uniform(predicate)) {
    const Bound& lane = bound_[lane_var_.value];
    auto position = static_cast<size_t>(llvm::cast<llvm::ConstantInt>(lane.value)->getZExtValue());
    auto known = wide_loads_.find(e);
    if (known != wide_loads_.end()) return {known->second[position], lane.level};
    if (auto at = contiguous(n.object, index)) {
      Values all = load_wide(n.object, *at, width_, condition(predicate));
      return {wide_loads_.emplace(e, std::move(all)).first->second[position], lane.level};
    }
  }
  Condition c = condition(predicate);
  Value* v = load_element(n.object, index, c);
  return {v, std::max({statement_level_, emit_expr(index).level, c.level})};
}

void GpuEmitter::emit_node(const thread::Store& s) {
  lane_var_.valid() ? emit_vector_store(s) : emit_plain_store(s);
}

void GpuEmitter::emit_plain_store(const thread::Store& s) {
  Condition c = condition(s.predicate);
  if (c.never) return;
  store_element(s, s.index, held_value(s.value), c);
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
    if (auto at = contiguous(s.memory, s.index)) return store_wide(s, *at, held, condition(s.predicate));
  each_lane([&](size_t i) { store_element(s, s.index, held[i], condition(s.predicate)); });
}

}  // namespace tilegen::codegen
