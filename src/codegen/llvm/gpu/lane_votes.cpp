#include "codegen/llvm/gpu/lane_votes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <vector>

#include <llvm/IR/InstIterator.h>

namespace tilegen::codegen {
namespace {

using llvm::Instruction;
using llvm::Value;

constexpr int kDepth = 24;           // of what is computed of a thread's number
constexpr size_t kLeaves = 16;       // values that one may be
constexpr uint64_t kThreads = 1024;  // of a block, where none are stated

// A value for each thread of a block.
using OfThreads = std::vector<uint64_t>;

class Votes {
 public:
  Votes(llvm::Function& f, const LaneInstructions& machine) : machine_(machine) {
    for (Instruction& i : llvm::instructions(f)) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      if (call && call->getIntrinsicID() == machine.thread) look_at_range(*call);
      if (call && machine.move(*call)) has_moves_ = true;
      if (i.getOpcode() == Instruction::Or && i.getType()->isIntegerTy(32)) ors_.push_back(&i);
    }
  }

  bool run() {
    if (!has_moves_) return false;
    // From the last one: the ors that a vote was made of are then used by nothing.
    for (auto it = ors_.rbegin(); it != ors_.rend(); ++it) {
      Value* vote = is_half_unused(**it) ? nullptr : vote_of(**it);
      if (vote) (*it)->replaceAllUsesWith(vote);
      if (vote || is_half_unused(**it)) erase(*it);
    }
    return !made_.empty();
  }

 private:
  void look_at_range(const Instruction& thread) {
    if (const llvm::MDNode* range = thread.getMetadata(llvm::LLVMContext::MD_range))
      threads_ = llvm::mdconst::extract<llvm::ConstantInt>(range->getOperand(1))->getZExtValue();
  }

  // x | (x of the lane of the own number ^ flip): the move, and x.
  struct Half {
    llvm::IntrinsicInst* move = nullptr;
    Value* own = nullptr;
    uint64_t flip = 0;
  };
  std::optional<Half> half_of(const Value* v) {
    const auto* either = llvm::dyn_cast<llvm::BinaryOperator>(v);
    if (!either || either->getOpcode() != Instruction::Or) return std::nullopt;
    for (const unsigned own : {0u, 1u}) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(either->getOperand(1 - own));
      if (!call) continue;
      const auto move = machine_.move(*call);
      if (!move || move->bits != either->getOperand(own)) continue;
      if (const auto flip = flip_of(*move)) return Half{call, move->bits, *flip};
    }
    return std::nullopt;
  }

  // The same for all threads.
  std::optional<uint64_t> flip_of(const LaneMove& move) {
    const OfThreads* lanes = computed(move.lane, kDepth);
    if (!lanes) return std::nullopt;
    const uint64_t mask = machine_.warp - 1;
    std::optional<uint64_t> flip;
    for (uint64_t t = 0; t < threads_; ++t) {
      const uint64_t lane = (*lanes)[t] >> move.scale;
      const uint64_t here = (move.flips ? lane : lane ^ t) & mask;
      if (flip.value_or(here) != here) return std::nullopt;
      flip = here;
    }
    return flip;
  }

  // The value of the or, where it is one.
  Value* vote_of(Instruction& root) {
    Value* own = &root;
    llvm::IntrinsicInst* first = nullptr;
    uint64_t flips = 0, lanes = 1;
    while (const auto half = half_of(own)) {
      if (!std::has_single_bit(half->flip) || (flips & half->flip) != 0) return nullptr;
      flips |= half->flip;
      lanes *= 2;
      own = half->own;
      first = half->move;
    }
    if (!first || flips != lanes - 1) return nullptr;
    const OfThreads* bits = bits_of(own);
    if (!bits) return nullptr;
    bool alike = true, places = true;
    for (uint64_t t = 0; t < threads_; ++t) {
      alike = alike && (*bits)[t] == bits->front();
      places = places && (*bits)[t] == uint64_t{1} << (t % lanes);
    }
    if (!alike && !places) return nullptr;
    Value*& made = made_[{first, lanes}];
    if (made) return made;
    llvm::IRBuilder<> b(first);
    Value* chosen = b.CreateICmpNE(own, b.getInt32(0));
    if (alike && lanes == machine_.warp)
      return made = b.CreateSelect(machine_.any(b, chosen), b.getInt32(static_cast<uint32_t>(bits->front())),
                                   b.getInt32(0));
    Value* thread = b.CreateIntrinsic(machine_.thread, {}, {});
    Value* word = word_of_group(b, machine_.ballot(b, chosen), thread, machine_.warp, lanes);
    if (places) return made = word;
    return made = b.CreateSelect(b.CreateICmpNE(word, b.getInt32(0)),
                                 b.getInt32(static_cast<uint32_t>(bits->front())), b.getInt32(0));
  }

  // What the value is for each thread where it is not 0; none are 0.
  const OfThreads* bits_of(Value* v) {
    std::set<Value*> seen;
    std::vector<Value*> todo{v};
    const OfThreads* bits = nullptr;
    while (!todo.empty()) {
      Value* next = todo.back();
      todo.pop_back();
      if (!seen.insert(next).second) continue;
      if (seen.size() > kLeaves) return nullptr;
      if (const auto* zero = llvm::dyn_cast<llvm::Constant>(next); zero && zero->isNullValue()) continue;
      if (auto* select = llvm::dyn_cast<llvm::SelectInst>(next)) {
        todo.insert(todo.end(), {select->getTrueValue(), select->getFalseValue()});
      } else if (auto* phi = llvm::dyn_cast<llvm::PHINode>(next)) {
        todo.insert(todo.end(), phi->incoming_values().begin(), phi->incoming_values().end());
      } else {
        const OfThreads* here = computed(next, kDepth);
        if (!here || (bits && *bits != *here)) return nullptr;
        bits = here;
      }
    }
    const bool some = bits && std::find(bits->begin(), bits->end(), 0) == bits->end();
    return some ? bits : nullptr;
  }

  // Of the thread's number and constants alone; nothing where there is more in it.
  const OfThreads* computed(const Value* v, int depth) {
    const auto known = computed_.find(v);
    if (known != computed_.end()) return known->second ? &*known->second : nullptr;
    std::optional<OfThreads> made = depth > 0 ? compute(v, depth) : std::nullopt;
    const auto& kept = computed_[v] = std::move(made);
    return kept ? &*kept : nullptr;
  }

  std::optional<OfThreads> compute(const Value* v, int depth) {
    if (!v->getType()->isIntegerTy() || v->getType()->getIntegerBitWidth() > 64) return std::nullopt;
    const unsigned bits = v->getType()->getIntegerBitWidth();
    const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    OfThreads of(threads_);
    if (const auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) {
      std::fill(of.begin(), of.end(), c->getZExtValue());
      return of;
    }
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v)) {
      if (call->getIntrinsicID() != machine_.thread) return std::nullopt;
      for (uint64_t t = 0; t < threads_; ++t) of[t] = t;
      return of;
    }
    const auto* i = llvm::dyn_cast<Instruction>(v);
    if (!i) return std::nullopt;
    if (llvm::isa<llvm::ZExtInst>(i) || llvm::isa<llvm::TruncInst>(i)) {
      const OfThreads* from = computed(i->getOperand(0), depth - 1);
      if (!from) return std::nullopt;
      for (uint64_t t = 0; t < threads_; ++t) of[t] = (*from)[t] & all;
      return of;
    }
    if (!llvm::isa<llvm::BinaryOperator>(i)) return std::nullopt;
    const OfThreads* x = computed(i->getOperand(0), depth - 1);
    const OfThreads* y = x ? computed(i->getOperand(1), depth - 1) : nullptr;
    if (!y) return std::nullopt;
    for (uint64_t t = 0; t < threads_; ++t) {
      const auto result = binary(i->getOpcode(), (*x)[t], (*y)[t], bits);
      if (!result) return std::nullopt;
      of[t] = *result & all;
    }
    return of;
  }

  static std::optional<uint64_t> binary(unsigned op, uint64_t x, uint64_t y, unsigned bits) {
    switch (op) {
      case Instruction::Add:
        return x + y;
      case Instruction::Sub:
        return x - y;
      case Instruction::Mul:
        return x * y;
      case Instruction::And:
        return x & y;
      case Instruction::Or:
        return x | y;
      case Instruction::Xor:
        return x ^ y;
      case Instruction::Shl:
        return y < bits ? std::optional(x << y) : std::nullopt;
      case Instruction::LShr:
        return y < bits ? std::optional(x >> y) : std::nullopt;
      case Instruction::UDiv:
        return y != 0 ? std::optional(x / y) : std::nullopt;
      case Instruction::URem:
        return y != 0 ? std::optional(x % y) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  bool is_half_unused(const Instruction& either) { return either.use_empty() && half_of(&either); }

  // With the move that was there for it alone.
  void erase(Instruction* either) {
    auto* move = half_of(either)->move;
    either->eraseFromParent();
    if (move->use_empty()) move->eraseFromParent();
  }

  const LaneInstructions& machine_;
  uint64_t threads_ = kThreads;
  bool has_moves_ = false;
  std::vector<Instruction*> ors_;
  std::map<const Value*, std::optional<OfThreads>> computed_;
  std::map<std::pair<const Instruction*, uint64_t>, Value*> made_;  // by the first move and the lanes
};

}  // namespace

llvm::Value* word_of_group(llvm::IRBuilderBase& b, llvm::Value* ballot, llvm::Value* thread, unsigned warp,
                           uint64_t lanes) {
  if (warp == 64) {
    Value* high = b.CreateICmpNE(b.CreateAnd(thread, 32), b.getInt32(0));
    ballot = b.CreateSelect(high, b.CreateTrunc(b.CreateLShr(ballot, 32), b.getInt32Ty()),
                            b.CreateTrunc(ballot, b.getInt32Ty()));
  }
  if (lanes == 32) return ballot;
  Value* first = b.CreateAnd(thread, 31 & ~(lanes - 1));
  return b.CreateAnd(b.CreateLShr(ballot, first), (uint64_t{1} << lanes) - 1);
}

bool select_votes(llvm::Function& f, const LaneInstructions& machine) { return Votes(f, machine).run(); }

}  // namespace tilegen::codegen
