// Loads and stores. In a vectorized loop the form of the index decides: the same element for all lanes,
// consecutive elements (forwards or backwards), a constant distance, or anything (gather, scatter).
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/atomics.h"
#include "codegen/llvm/host_emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using thread::Memory;
using thread::MemoryId;

namespace {

// f16 moves as i16 where masks are involved, so that no target splits the access lane by lane.
llvm::Type* moved_type(llvm::LLVMContext& c, ir::DType t) {
  return t == ir::DType::f16 ? llvm::Type::getInt16Ty(c) : storage_type(c, t);
}

Value* reversed(Builder& b, Value* v) {
  std::vector<int> order(lane_count(v));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(order.size() - 1 - i);
  return order.size() > 1 ? b.CreateShuffleVector(v, order) : v;
}

// LLVM 19 folds a shift of the index into the scale of a gather's addresses, though their product may
// overflow to nothing. An index that may be that large does not arrive as a shift: it is 0 where the lane is
// not wanted.
Value* wanted_index(Builder& b, Value* index, Value* mask, bool small) {
  return small || !mask ? index : b.CreateSelect(mask, index, llvm::Constant::getNullValue(index->getType()));
}

llvm::Type* lanes_of(llvm::Type* t, int64_t lanes) {
  return lanes > 1 ? llvm::FixedVectorType::get(t, static_cast<unsigned>(lanes)) : t;
}

}  // namespace

Value* HostEmitter::element_pointer(MemoryId memory, Value* index) {
  return b_.CreateGEP(storage_type(context_, program_.memory(memory).type), bases_[memory.value], index);
}

llvm::Align HostEmitter::alignment(MemoryId memory, ir::ExprId index) {
  const Memory& m = program_.memory(memory);
  uint64_t element = static_cast<uint64_t>(ir::dtype_bytes(m.type));
  uint64_t base = std::max<uint64_t>(m.alignment > 0 ? static_cast<uint64_t>(m.alignment) : 0, element);
  if (m.in_registers) base = 64;
  base = std::min<uint64_t>(base & (0 - base), 64);
  uint64_t step = static_cast<uint64_t>(lanes_.divisor(index)) * element;
  return llvm::Align(step == 0 ? base : std::min(base, step & (0 - step)));
}

HostEmitter::Place HostEmitter::place(MemoryId memory, ir::ExprId index) {
  return {element_pointer(memory, lane_zero(index)), alignment(memory, index)};
}

void HostEmitter::tag(llvm::Instruction* access, MemoryId memory) {
  if (auto* s = scope_of_[memory.value]) access->setMetadata(llvm::LLVMContext::MD_alias_scope, s);
  if (auto* n = disjoint_from_[memory.value]) access->setMetadata(llvm::LLVMContext::MD_noalias, n);
}

Value* HostEmitter::load_contiguous(const Place& p, MemoryId memory, int64_t lanes, Value* mask) {
  ir::DType t = program_.memory(memory).type;
  llvm::Type* type = lanes_of(storage_type(context_, t), lanes);
  if (!mask) {
    auto* load = b_.CreateAlignedLoad(type, p.pointer, p.align);
    tag(load, memory);
    return load;
  }
  llvm::Type* moved = lanes_of(moved_type(context_, t), lanes);
  auto* load = b_.CreateMaskedLoad(moved, p.pointer, p.align, mask, llvm::Constant::getNullValue(moved));
  tag(load, memory);
  return b_.CreateBitCast(load, type);
}

void HostEmitter::store_contiguous(const Place& p, MemoryId memory, Value* storage, Value* mask,
                                   bool nontemporal) {
  if (!mask) {
    auto* store = b_.CreateAlignedStore(storage, p.pointer, p.align);
    tag(store, memory);
    if (nontemporal) {
      auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
      store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context_, {one}));
    }
    return;
  }
  llvm::Type* moved = shaped_like(storage, moved_type(context_, program_.memory(memory).type));
  tag(b_.CreateMaskedStore(b_.CreateBitCast(storage, moved), p.pointer, p.align, mask), memory);
}

// One element, or 0 where the condition is false; a one-lane masked load keeps the block whole until code
// generation.
Value* HostEmitter::load_scalar(const Place& p, MemoryId memory, Value* condition) {
  llvm::Type* type = storage_type(context_, program_.memory(memory).type);
  if (!condition) {
    auto* load = b_.CreateAlignedLoad(type, p.pointer, p.align);
    tag(load, memory);
    return load;
  }
  auto* one = llvm::FixedVectorType::get(type, 1);
  Value* mask = b_.CreateInsertElement(llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt1Ty(), 1)),
                                       condition, uint64_t{0});
  auto* load = b_.CreateMaskedLoad(one, p.pointer, p.align, mask, llvm::Constant::getNullValue(one));
  tag(load, memory);
  return b_.CreateExtractElement(load, uint64_t{0});
}

void HostEmitter::store_scalar(const Place& p, MemoryId memory, Value* storage, Value* condition) {
  if (!condition) {
    tag(b_.CreateAlignedStore(storage, p.pointer, p.align), memory);
    return;
  }
  auto one = [&](Value* v) {
    auto* type = llvm::FixedVectorType::get(v->getType(), 1);
    return b_.CreateInsertElement(llvm::PoisonValue::get(type), v, uint64_t{0});
  };
  tag(b_.CreateMaskedStore(one(storage), p.pointer, p.align, one(condition)), memory);
}

HostEmitter::Emitted HostEmitter::emit_load(ir::ExprId e) {
  const ir::ExprNode& n = exprs_[e];
  std::span<const ir::ExprId> indices = exprs_.indices(e);
  ir::ExprId index = indices[0];
  ir::ExprId predicate = indices.size() > 1 ? needed(indices[1]) : ir::ExprId();
  LaneForm form = lanes_.form(index);
  bool uniform_predicate = !predicate.valid() || lanes_.form(predicate).uniform();
  bool scalar = !lane_var_.valid() || lane_zero_mode_ || (form.uniform() && uniform_predicate);
  Value* v = nullptr;
  if (scalar) {
    Value* condition = predicate.valid() ? lane_zero(predicate) : nullptr;
    v = load_scalar(place(n.object, index), n.object, condition);
  } else {
    Value* mask = predicate.valid() ? emit_mask(predicate) : nullptr;
    if (form.uniform()) {
      v = load_scalar(place(n.object, index), n.object, b_.CreateOrReduce(mask));
      Value* wide = splat(v, width_);
      v = b_.CreateSelect(mask, wide, llvm::Constant::getNullValue(wide->getType()));
    } else if (form.affine && form.stride == 1) {
      v = load_contiguous(place(n.object, index), n.object, width_, mask);
    } else if (form.affine && form.stride == -1) {
      Place p = place(n.object, index);
      p.pointer = b_.CreateConstGEP1_64(storage_type(context_, n.type), p.pointer, 1 - width_);
      p.align = llvm::Align(static_cast<uint64_t>(ir::dtype_bytes(n.type)));
      v = reversed(b_, load_contiguous(p, n.object, width_, mask ? reversed(b_, mask) : nullptr));
    } else {
      v = gather(n.object, index, mask);
    }
  }
  return {from_storage(b_, n.type, v), statement_level_};
}

// A constant distance without a mask is loaded lane by lane from one base, which is what hardware gathers do
// inside and needs no vector of addresses.
Value* HostEmitter::gather(MemoryId memory, ir::ExprId index, Value* mask) {
  ir::DType t = program_.memory(memory).type;
  llvm::Type* element = storage_type(context_, t);
  LaneForm form = lanes_.form(index);
  if (form.affine && !mask) {
    Value* base = element_pointer(memory, lane_zero(index));
    Value* v = llvm::PoisonValue::get(lanes_of(element, width_));
    for (int64_t i = 0; i < width_; ++i) {
      Value* p = b_.CreateConstGEP1_64(element, base, static_cast<uint64_t>(i * form.stride));
      auto* load = b_.CreateAlignedLoad(element, p, llvm::Align(static_cast<uint64_t>(ir::dtype_bytes(t))));
      tag(load, memory);
      v = b_.CreateInsertElement(v, load, static_cast<uint64_t>(i));
    }
    return v;
  }
  Value* at = wanted_index(b_, splat(index_vector(index), width_), mask, lanes_.exact(index));
  Value* pointers = b_.CreateGEP(element, bases_[memory.value], at);
  llvm::Type* type = lanes_of(element, width_);
  if (!mask) mask = llvm::Constant::getAllOnesValue(lanes_of(b_.getInt1Ty(), width_));
  auto* load = b_.CreateMaskedGather(type, pointers, llvm::Align(static_cast<uint64_t>(ir::dtype_bytes(t))),
                                     mask, llvm::Constant::getNullValue(type));
  tag(load, memory);
  return load;
}

void HostEmitter::scatter(MemoryId memory, ir::ExprId index, Value* storage, Value* mask) {
  ir::DType t = program_.memory(memory).type;
  llvm::Type* element = storage_type(context_, t);
  llvm::Align align(static_cast<uint64_t>(ir::dtype_bytes(t)));
  LaneForm form = lanes_.form(index);
  if (form.affine && !mask) {
    Value* base = element_pointer(memory, lane_zero(index));
    for (int64_t i = form.stride == 0 ? width_ - 1 : 0; i < width_; ++i) {
      Value* p = b_.CreateConstGEP1_64(element, base, static_cast<uint64_t>(i * form.stride));
      tag(b_.CreateAlignedStore(b_.CreateExtractElement(storage, static_cast<uint64_t>(i)), p, align),
          memory);
    }
    return;
  }
  Value* at = wanted_index(b_, splat(index_vector(index), width_), mask, lanes_.exact(index));
  Value* pointers = b_.CreateGEP(element, bases_[memory.value], at);
  if (!mask) mask = llvm::Constant::getAllOnesValue(lanes_of(b_.getInt1Ty(), width_));
  tag(b_.CreateMaskedScatter(storage, pointers, align, mask), memory);
}

// Lane by lane: lanes may mean the same element.
void HostEmitter::emit_atomic_store(const thread::Store& s) {
  const ir::DType type = program_.memory(s.memory).type;
  const bool guarded = needed(s.predicate).valid();
  if (!lane_var_.valid()) {
    Value* condition = guarded ? value(s.predicate) : nullptr;
    if (*s.atomic == ir::AtomicKind::append)
      return emit_append(b_, features_, bases_[s.memory.value], value(s.index), value(s.value), condition);
    const AtomicParts parts{condition, s.expected.valid() ? value(s.expected) : nullptr,
                            s.old.valid() ? place(s.old, s.old_index).pointer : nullptr, s.order};
    return emit_atomic(b_, ops_, features_, *s.atomic, type, place(s.memory, s.index).pointer, value(s.value),
                       parts);
  }
  Value* mask = guarded ? emit_mask(s.predicate) : nullptr;
  Value* held = splat(value(s.value), width_);
  if (*s.atomic == ir::AtomicKind::append) {
    Value* index = splat(index_vector(s.index), width_);
    for (int64_t i = 0; i < width_; ++i) {
      auto lane = [&](Value* v) {
        return v ? b_.CreateExtractElement(v, static_cast<uint64_t>(i)) : nullptr;
      };
      emit_append(b_, features_, bases_[s.memory.value], lane(index), lane(held), lane(mask));
    }
    return;
  }
  Value* at = wanted_index(b_, splat(index_vector(s.index), width_), mask, lanes_.exact(s.index));
  Value* pointers = b_.CreateGEP(storage_type(context_, type), bases_[s.memory.value], at);
  for (int64_t i = 0; i < width_; ++i) {
    auto lane = [&](Value* v) { return v ? b_.CreateExtractElement(v, static_cast<uint64_t>(i)) : nullptr; };
    emit_atomic(b_, ops_, features_, *s.atomic, type, lane(pointers), lane(held),
                {lane(mask), nullptr, nullptr, s.order});
  }
}

void HostEmitter::emit_store(const thread::Store& s) {
  if (s.atomic) return emit_atomic_store(s);
  const Memory& m = program_.memory(s.memory);
  bool guarded = needed(s.predicate).valid();
  if (!lane_var_.valid()) {
    Value* condition = guarded ? value(s.predicate) : nullptr;
    Value* v = to_storage(b_, m.type, value(s.value));
    return store_scalar(place(s.memory, s.index), s.memory, v, condition);
  }
  LaneForm form = lanes_.form(s.index);
  bool uniform =
      form.uniform() && lanes_.form(s.value).uniform() && (!guarded || lanes_.form(s.predicate).uniform());
  if (uniform) {
    Value* condition = guarded ? lane_zero(s.predicate) : nullptr;
    Value* v = to_storage(b_, m.type, value(s.value));
    return store_scalar(place(s.memory, s.index), s.memory, v, condition);
  }
  Value* mask = guarded ? emit_mask(s.predicate) : nullptr;
  Value* v = splat(to_storage(b_, m.type, value(s.value)), width_);
  if (form.affine && form.stride == 1) {
    Place p = place(s.memory, s.index);
    bool nontemporal = streaming_now_ && may_stream(s);
    if (nontemporal) p.align = llvm::Align(static_cast<uint64_t>(features_.vector_bits / 8));
    return store_contiguous(p, s.memory, v, mask, nontemporal);
  }
  if (form.affine && form.stride == -1) {
    Place p = place(s.memory, s.index);
    p.pointer =
        b_.CreateConstGEP1_64(storage_type(context_, m.type), p.pointer, static_cast<uint64_t>(1 - width_));
    p.align = llvm::Align(static_cast<uint64_t>(ir::dtype_bytes(m.type)));
    return store_contiguous(p, s.memory, reversed(b_, v), mask ? reversed(b_, mask) : nullptr, false);
  }
  scatter(s.memory, s.index, v, mask);
}

}  // namespace tilegen::codegen
