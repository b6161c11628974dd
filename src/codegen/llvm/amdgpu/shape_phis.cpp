// Before: a = phi [0, in], [x, loop]; b = phi [0, in], [y, loop]; v = <a, b>; w = mfma v; x = w[0]; y = w[1]
// After:  v = phi [<0, 0>, in], [w, loop]; w = mfma v
#include "codegen/llvm/amdgpu/shape_phis.h"

#include <utility>
#include <vector>

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/Local.h>

namespace tilegen::codegen {

namespace {

using llvm::FixedVectorType;
using llvm::PHINode;
using llvm::Value;
using Values = std::vector<Value*>;

unsigned width(const Value* vector) {
  return llvm::cast<FixedVectorType>(vector->getType())->getNumElements();
}

// An element of a vector, or a value that is known to be one: then `vector` is null.
struct Element {
  Value* value = nullptr;
  Value* vector = nullptr;
  unsigned index = 0;
};

// Through what puts vectors together and takes parts of them.
Element element(Value* vector, unsigned index) {
  for (;;) {
    if (auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(vector)) {
      auto* at = llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
      if (!at) break;
      if (at->getValue() == index) return {insert->getOperand(1)};
      vector = insert->getOperand(0);
    } else if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(vector)) {
      const int from = shuffle->getMaskValue(index);
      if (from < 0) return {llvm::PoisonValue::get(shuffle->getType()->getElementType())};
      const unsigned first = width(shuffle->getOperand(0));
      const bool second = static_cast<unsigned>(from) >= first;
      vector = shuffle->getOperand(second);
      index = static_cast<unsigned>(from) - (second ? first : 0);
    } else {
      break;
    }
  }
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(vector))
    if (llvm::Constant* known = constant->getAggregateElement(index)) return {known};
  return {nullptr, vector, index};
}

// Of which vector a scalar is an element, as far as is known.
Element origin(Value* scalar) {
  while (auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(scalar)) {
    auto* at = llvm::dyn_cast<llvm::ConstantInt>(extract->getIndexOperand());
    Value* vector = extract->getVectorOperand();
    if (!at || !llvm::isa<FixedVectorType>(vector->getType()) || at->getValue().uge(width(vector))) break;
    const Element e = element(vector, static_cast<unsigned>(at->getZExtValue()));
    if (!e.value) return e;
    scalar = e.value;
  }
  return {scalar};
}

Element part(Value* vector, unsigned index) {
  const Element e = element(vector, index);
  return e.value ? origin(e.value) : e;
}

// The vector of which these are all the elements, in order; null: there is none.
Value* whole(const Values& scalars) {
  Value* vector = origin(scalars[0]).vector;
  if (!vector || width(vector) != scalars.size()) return nullptr;
  for (unsigned i = 0; i < scalars.size(); ++i) {
    const Element e = origin(scalars[i]);
    if (e.vector != vector || e.index != i) return nullptr;
  }
  return vector;
}

Value* put_together(llvm::IRBuilder<>& b, const Values& scalars) {
  if (Value* vector = whole(scalars)) return vector;
  auto* type = FixedVectorType::get(scalars[0]->getType(), static_cast<unsigned>(scalars.size()));
  Value* all = llvm::PoisonValue::get(type);
  for (size_t i = 0; i < scalars.size(); ++i) all = b.CreateInsertElement(all, scalars[i], uint64_t{i});
  return all;
}

// What comes from each block, one value from a block that comes twice.
template <class Make>
void fill(PHINode* phi, const PHINode* like, const Make& make) {
  llvm::DenseMap<llvm::BasicBlock*, Value*> made;
  for (llvm::BasicBlock* before : like->blocks()) {
    Value*& value = made[before];
    if (!value) value = make(before);
    phi->addIncoming(value, before);
  }
}

void split(PHINode* phi) {
  llvm::BasicBlock* block = phi->getParent();
  llvm::IRBuilder<> b(phi);
  llvm::Type* type = phi->getType()->getScalarType();
  Values parts;
  for (unsigned i = 0; i < width(phi); ++i) {
    PHINode* part = b.CreatePHI(type, phi->getNumIncomingValues());
    fill(part, phi, [&](llvm::BasicBlock* before) -> Value* {
      const Element e = element(phi->getIncomingValueForBlock(before), i);
      if (e.value) return e.value;
      return llvm::IRBuilder<>(before->getTerminator()).CreateExtractElement(e.vector, uint64_t{e.index});
    });
    parts.push_back(part);
  }
  b.SetInsertPoint(block, block->getFirstInsertionPt());
  phi->replaceAllUsesWith(put_together(b, parts));
  phi->eraseFromParent();
}

using Phis = std::vector<PHINode*>;

void join(const Phis& phis) {
  llvm::BasicBlock* block = phis[0]->getParent();
  llvm::IRBuilder<> b(block, block->begin());
  auto* type = FixedVectorType::get(phis[0]->getType(), static_cast<unsigned>(phis.size()));
  PHINode* joined = b.CreatePHI(type, phis[0]->getNumIncomingValues());
  fill(joined, phis[0], [&](llvm::BasicBlock* before) {
    Values scalars;
    for (PHINode* p : phis) scalars.push_back(p->getIncomingValueForBlock(before));
    llvm::IRBuilder<> at_end(before->getTerminator());
    return put_together(at_end, scalars);
  });
  b.SetInsertPoint(block, block->getFirstInsertionPt());
  for (size_t i = 0; i < phis.size(); ++i) {
    phis[i]->replaceAllUsesWith(b.CreateExtractElement(joined, uint64_t{i}));
    phis[i]->eraseFromParent();
  }
}

bool is_loaded(const Value* v) {
  const auto* i = llvm::dyn_cast<llvm::Instruction>(v);
  return i && i->mayReadFromMemory();
}

// Of one block. Phis that are joined make elements of what others bring.
bool join_in(llvm::BasicBlock& block) {
  using Way = std::pair<llvm::BasicBlock*, Value*>;
  llvm::MapVector<Way, Phis> groups;
  for (PHINode& phi : block.phis()) {
    if (phi.getType()->isVectorTy()) continue;
    for (llvm::BasicBlock* before : phi.blocks()) {
      const Element e = origin(phi.getIncomingValueForBlock(before));
      if (!e.vector || is_loaded(e.vector)) continue;
      Phis& members = groups[{before, e.vector}];
      members.resize(width(e.vector));
      if (!members[e.index]) members[e.index] = &phi;
    }
  }
  llvm::SmallPtrSet<PHINode*, 32> joined;
  for (auto& [way, members] : groups) {
    const auto absent = [&](PHINode* p) { return !p || joined.contains(p); };
    if (members.size() < 2 || llvm::any_of(members, absent)) continue;
    joined.insert(members.begin(), members.end());
    join(members);
  }
  return !joined.empty();
}

// Vectors of another's elements, each in its place.
void fold_vectors(llvm::Function& f) {
  for (llvm::Instruction& i : llvm::instructions(f)) {
    if (!llvm::isa<llvm::InsertElementInst, llvm::ShuffleVectorInst>(i)) continue;
    if (!llvm::isa<FixedVectorType>(i.getType())) continue;
    Value* vector = part(&i, 0).vector;
    if (!vector || vector == &i || vector->getType() != i.getType()) continue;
    bool same = true;
    for (unsigned n = 0; same && n < width(&i); ++n) {
      const Element e = part(&i, n);
      same = e.vector == vector && e.index == n;
    }
    if (same) i.replaceAllUsesWith(vector);
  }
}

void delete_dead(llvm::Function& f) {
  for (llvm::BasicBlock& block : llvm::reverse(f))
    for (llvm::Instruction& i : llvm::make_early_inc_range(llvm::reverse(block)))
      if (llvm::isInstructionTriviallyDead(&i)) i.eraseFromParent();
}

constexpr unsigned kRegisterBits = 32;

void shape(llvm::Function& f) {
  Phis vectors;
  for (llvm::BasicBlock& block : f)
    for (PHINode& phi : block.phis())
      if (auto* type = llvm::dyn_cast<FixedVectorType>(phi.getType()))
        if (type->getPrimitiveSizeInBits().getFixedValue() > kRegisterBits) vectors.push_back(&phi);
  for (PHINode* phi : vectors) split(phi);
  bool joined = false;
  for (bool more = true; more; joined |= more) {
    more = false;
    for (llvm::BasicBlock& block : f) more |= join_in(block);
  }
  if (vectors.empty() && !joined) return;
  fold_vectors(f);
  delete_dead(f);
}

}  // namespace

void shape_phis(llvm::Module& module) {
  for (llvm::Function& f : module)
    if (!f.isDeclaration()) shape(f);
}

}  // namespace tilegen::codegen
