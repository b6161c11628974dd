#include "schedule/accesses/access_plan.h"

#include <algorithm>
#include <tuple>

#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::OpId;
using plan::Engine;

namespace {

// Copies of a body whose loops need not be unrolled, and operations of a version that stands beside another:
// some thousand lines of PTX. The compiler in the driver takes time in proportion to it, and more.
constexpr int64_t kMaxCopies = 64, kMaxVersionOperations = 8192;

// What parts must save, of a thread's operations and of an element's: branches keep elements from being
// computed side by side. Measured on an H200, masks of half a tile: weights of 17 operations (chunk scan of
// Mamba-2) take 0.83 of the kernel's time with parts, of 11 (retention) 1.02 to 1.08, of 8 (attention
// backward) 1.00.
constexpr double kMostKnown = 0.75;
constexpr int64_t kLeastSaved = 7;
// Instructions of all forms of the parts, which a kernel fetches beside its other code. Measured on an H200:
// causal attention with a cap (3072) takes 1.046 of its time without parts, attention backward (2240) 0.995.
constexpr int64_t kMaxFormInstructions = 2560;

class AccessPlanner {
 public:
  AccessPlanner(const KernelOp& op, const plan::OpAccessFacts& facts, Assumptions allowed,
                const plan::OpPlan* given, bool must_hold, plan::OpPlan& plan, std::vector<plan::Note>& notes)
      : op_(op),
        facts_(facts),
        allowed_(allowed),
        given_(given),
        must_hold_(must_hold),
        plan_(plan),
        notes_(notes) {}

  Checked run() {
    vector();
    full_tile_version();
    unmasked_version();
    mask_parts();
    unroll();
    return std::move(checked_);
  }

 private:
  bool by_copies() const { return plan_.engine == Engine::async_copy && facts_.async_seen; }

  void vector() {
    const int64_t asked = plan_.vector;
    if (given_ && given_->vector > 0) {
      const int64_t v = plan_.vector = given_->vector;
      const bool aligned = by_copies() ? facts_.async.count(v) > 0 : !facts_.misaligned.count(v);
      const bool moved = by_copies() || v == 1 || facts_.wide.empty() || facts_.wide.count(v) || !aligned;
      if (aligned && moved) return;
      if (refused("vector", std::to_string(v),
                  aligned ? "no thread has so many elements beside each other"
                          : "an access is not known to be aligned to so many elements"))
        return;
    }
    if (by_copies()) {
      if (!facts_.async.empty()) {
        plan_.vector = *facts_.async.rbegin();
        return;
      }
      if (given_ && given_->engine == Engine::async_copy &&
          refused("engine", "'async_copy'",
                  "an access is not known to be aligned to the 4, 8 or 16 bytes of such a copy"))
        return;
      const bool loop = op_.accesses.front().operand < 0;
      plan_.engine = loop ? Engine::loop : Engine::vector_copy;
      note("no asynchronous copies: an access is not known to be aligned to the 4, 8 or 16 bytes of one");
    }
    int64_t widest = 1;
    for (int64_t width : facts_.wide)
      if (!facts_.misaligned.count(width)) widest = std::max(widest, width);
    if (facts_.wide.empty() && facts_.misaligned.empty()) return;  // no access is a vector
    plan_.vector = widest;
    if (widest < asked && facts_.misaligned.count(asked))
      note((widest == 1 ? "no vectors" : "vectors of " + std::to_string(widest) + " elements") + ", not of " +
           std::to_string(asked) + ": an access is not known to be aligned to more");
  }

  void full_tile_version() {
    const auto edge = facts_.edge_operations.find(std::max<int64_t>(plan_.vector, 1));
    const bool copies = by_copies() && facts_.async_interior.count(plan_.vector) > 0;
    const bool walks = !by_copies() && edge != facts_.edge_operations.end();
    if (given_ && given_->full_tile_version) {
      const bool holds = !*given_->full_tile_version || copies || walks;
      if (holds) plan_.full_tile_version = given_->full_tile_version;
      if (holds || refused("full_tile_version", "true", "no block does without predicates on its vectors"))
        return;
    }
    plan_.full_tile_version.reset();
    if (copies || (walks && fits(edge->second, "no form of its own for blocks inside the tensors")))
      plan_.full_tile_version = true;
    // Vectors with predicates of their own lanes are none.
    if (walks && !plan_.full_tile_version && !(given_ && given_->vector > 0)) plan_.vector = 1;
  }

  void unmasked_version() {
    if (given_ && given_->unmasked_version) {
      const bool holds = !*given_->unmasked_version || facts_.masked;
      if (holds) plan_.unmasked_version = given_->unmasked_version;
      if (holds ||
          refused("unmasked_version", "true", "no condition on indices is the same for a whole block"))
        return;
    }
    plan_.unmasked_version.reset();
    if (facts_.masked &&
        fits(facts_.unmasked_operations, "no form of its own for blocks that the mask leaves alone"))
      plan_.unmasked_version = true;
  }

  void mask_parts() {
    const auto& found = facts_.mask_parts;
    if (given_ && given_->mask_parts > 0) {
      const int64_t parts = given_->mask_parts;
      const bool holds = parts == 1 || (found && found->parts == parts);
      if (holds) plan_.mask_parts = parts;
      if (holds || refused("mask_parts", std::to_string(parts),
                           found ? "a thread's points fall into " + std::to_string(found->parts) + " parts"
                                 : "no condition on indices is the same for the lanes of a warp"))
        return;
    }
    const bool pays = found &&
                      static_cast<double>(found->known) <= kMostKnown * static_cast<double>(found->open) &&
                      found->open - found->known >= kLeastSaved * found->elements;
    const bool small = found && found->instructions <= kMaxFormInstructions;
    if (pays && !small)
      note("points are not taken in parts, of which warps know the mask: all forms of them would take " +
           std::to_string(found->instructions) + " instructions, more than " +
           std::to_string(kMaxFormInstructions));
    plan_.mask_parts = pays && small ? found->parts : 0;
  }

  void unroll() {
    if (given_ && given_->unroll > 0) {
      plan_.unroll = given_->unroll;
      return;
    }
    plan_.unroll = 0;
    const auto copies = [&](int64_t width) {
      const auto it = facts_.copies.find(width);
      return it == facts_.copies.end() ? 0 : it->second;
    };
    // A version that relies on nothing is for few launches: small code.
    if (facts_.in_memory && allowed_ == Assumptions::none && !by_copies()) {
      plan_.unroll = 1;
      return;
    }
    const int64_t width = facts_.wide.count(plan_.vector) || by_copies() ? plan_.vector : 1;
    const bool edge_walk = !by_copies() && plan_.full_tile_version.value_or(false);
    if (copies(width) > kMaxCopies || (edge_walk && copies(1) > kMaxCopies)) plan_.unroll = kMaxCopies;
  }

  bool fits(int64_t operations, const char* what) {
    if (operations <= kMaxVersionOperations) return true;
    note(std::string(what) + ": it would take " + std::to_string(operations) +
         " operations of a thread, more than " + std::to_string(kMaxVersionOperations));
    return false;
  }
  void note(std::string text) {
    plan::Note n{op_.path, std::move(text)};
    if (std::find(notes_.begin(), notes_.end(), n) == notes_.end()) notes_.push_back(std::move(n));
  }
  // False where the version takes what can hold.
  bool refused(const std::string& field, const std::string& given, const std::string& why) {
    if (must_hold_ && checked_)
      checked_ = Error(DiagCode::schedule_illegal, op_.path,
                       "the schedule gives `" + field + "` " + given + ", but " + why,
                       "leave `" + field + "` out to have it planned", op_.location);
    return must_hold_;
  }

  const KernelOp& op_;
  const plan::OpAccessFacts& facts_;
  const Assumptions allowed_;
  const plan::OpPlan* given_;
  const bool must_hold_;
  plan::OpPlan& plan_;
  std::vector<plan::Note>& notes_;
  Checked checked_ = Unit{};
};

}  // namespace

Checked plan_accesses(const analysis::KernelOps& ops, const plan::AccessFacts& facts, Assumptions allowed,
                      const plan::KernelSchedule* given, bool must_hold, plan::KernelSchedule& s,
                      bool& expansion_changed) {
  expansion_changed = false;
  for (OpId i : ops.ops.ids()) {
    plan::OpPlan& plan = s.ops[i.index()];
    const auto own = facts.find(plan.op);
    const plan::OpAccessFacts nothing;
    const auto expanded = [&] {
      return std::tuple(plan.engine, plan.full_tile_version, plan.unmasked_version);
    };
    const auto before = expanded();
    const plan::OpPlan* of_op = given ? plan::find_op(*given, plan.op) : nullptr;
    if (Checked ok = AccessPlanner(ops.ops[i], own == facts.end() ? nothing : own->second, allowed, of_op,
                                   must_hold, plan, s.notes)
                         .run();
        !ok)
      return ok;
    expansion_changed |= expanded() != before;
  }
  return Unit{};
}

plan::KernelSchedule without_assumptions(plan::KernelSchedule s) {
  s.assumptions.emplace();
  for (plan::OpPlan& op : s.ops) {
    op.full_tile_version.reset();
    op.unmasked_version.reset();
    op.unroll = 0;
  }
  return s;
}

}  // namespace tilegen::schedule
