// Versions of a vectorized loop's body, chosen at run time:
//  - all lanes take part (the usual case): no masks, whole vectors;
//  - and every streaming store is aligned: the stores bypass the caches;
//  - otherwise: masked.
#include "codegen/llvm/host_emitter.h"

namespace tilegen::codegen {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using llvm::Value;

void HostEmitter::emit_versions(const thread::Block& body) {
  Value* all = all_lanes_condition(body);  // fills assumed_
  if (!all) return emit_streaming_versions(body);
  std::unordered_set<ExprId> assumed = std::move(assumed_);
  assumed_.clear();
  emit_either(
      all,
      [&] {
        assumed_ = std::move(assumed);
        emit_streaming_versions(body);
        assumed_.clear();
      },
      [&] { emit_body(body); });
}

void HostEmitter::emit_streaming_versions(const thread::Block& body) {
  Value* aligned = streaming_condition(body);
  if (!aligned) return emit_body(body);
  streamed_ = true;
  emit_either(
      aligned,
      [&] {
        streaming_now_ = true;
        emit_body(body);
        streaming_now_ = false;
      },
      [&] { emit_body(body); });
}

ExprId HostEmitter::needed(ExprId predicate) const {
  if (!predicate.valid() || exprs_.is_true(predicate) || assumed_.contains(predicate)) return ExprId();
  return predicate;
}

// Whether all predicates that can be judged as a whole hold; null when there is none of that kind.
Value* HostEmitter::all_lanes_condition(const thread::Block& body) {
  std::vector<ExprId> predicates;
  std::unordered_set<ExprId> seen;
  for (thread::StmtId id : body) {
    auto* s = std::get_if<thread::Store>(&program_.stmts[id.value].node);
    if (!s) continue;
    if (s->predicate.valid()) predicates.push_back(s->predicate);
    for (ExprId e : {s->index, s->value, s->predicate})
      if (e.valid()) collect_predicates(e, predicates, seen);
  }
  assumed_.clear();
  Value* all = nullptr;
  int outer = statement_level_;
  statement_level_ = open_scope(false);
  for (ExprId p : predicates) {
    if (assumed_.contains(p) || exprs_.is_true(p)) continue;
    Value* holds = holds_for_all_lanes(p);
    if (!holds) continue;
    all = all ? b_.CreateAnd(all, holds) : holds;
    assumed_.insert(p);
  }
  close_scope();
  statement_level_ = outer;
  return all;
}

void HostEmitter::collect_predicates(ExprId e, std::vector<ExprId>& predicates,
                                       std::unordered_set<ExprId>& seen) {
  if (!seen.insert(e).second) return;
  const ExprNode& n = exprs_[e];
  if (n.op == ExprOp::load) {
    std::span<const ExprId> indices = exprs_.indices(e);
    if (indices.size() > 1) predicates.push_back(indices[1]);
    for (ExprId i : indices) collect_predicates(i, predicates, seen);
    return;
  }
  const int arity = ir::expr_arity(n.op);
  if (arity > 0) collect_predicates(n.a, predicates, seen);
  if (arity > 1) collect_predicates(n.b, predicates, seen);
  if (arity > 2) collect_predicates(n.c, predicates, seen);
}

// A difference of affine forms is largest at one end of the lanes; that lane speaks for all. Predicates that
// read memory are not judged: the read might itself need guarding.
Value* HostEmitter::holds_for_all_lanes(ExprId predicate) {
  const ExprNode& n = exprs_[predicate];
  if (n.op == ExprOp::logical_and) {
    Value* a = holds_for_all_lanes(n.a);
    Value* b = a ? holds_for_all_lanes(n.b) : nullptr;
    return b ? b_.CreateAnd(a, b) : nullptr;
  }
  std::unordered_set<ExprId> seen;
  if (reads_memory(predicate, seen)) return nullptr;
  if (lanes_.form(predicate).uniform()) return lane_zero(predicate);
  if ((n.op != ExprOp::lt && n.op != ExprOp::le) || exprs_.type(n.a) != ir::DType::i64) return nullptr;
  LaneForm a = lanes_.form(n.a), b = lanes_.form(n.b);
  if (!a.affine || !b.affine || !lanes_.exact(n.a) || !lanes_.exact(n.b)) return nullptr;
  int64_t lane = a.stride > b.stride ? width_ - 1 : 0;
  auto at_lane = [&](ExprId e, int64_t stride) {
    return b_.CreateAdd(lane_zero(e),
                        b_.getInt64(static_cast<uint64_t>(lane) * static_cast<uint64_t>(stride)));
  };
  Value* x = at_lane(n.a, a.stride);
  Value* y = at_lane(n.b, b.stride);
  return n.op == ExprOp::lt ? b_.CreateICmpSLT(x, y) : b_.CreateICmpSLE(x, y);
}

bool HostEmitter::reads_memory(ExprId e, std::unordered_set<ExprId>& seen) const {
  if (!seen.insert(e).second) return false;
  const ExprNode& n = exprs_[e];
  if (n.op == ExprOp::load) return true;
  const int arity = ir::expr_arity(n.op);
  return (arity > 0 && reads_memory(n.a, seen)) || (arity > 1 && reads_memory(n.b, seen)) ||
         (arity > 2 && reads_memory(n.c, seen));
}

bool HostEmitter::may_stream(const thread::Store& s) {
  if (!s.streaming || needed(s.predicate).valid()) return false;
  LaneForm form = lanes_.form(s.index);
  int64_t bytes = width_ * ir::dtype_bytes(program_.memory(s.memory).type);
  return form.affine && form.stride == 1 && bytes % (features_.vector_bits / 8) == 0;
}

// True at run time when every streaming store of the body is wanted and meets the alignment that bypassing
// the caches asks for.
Value* HostEmitter::streaming_condition(const thread::Block& body) {
  Value* bits = nullptr;
  Value* wanted = nullptr;
  for (thread::StmtId id : body) {
    auto* s = std::get_if<thread::Store>(&program_.stmts[id.value].node);
    if (!s || !may_stream(*s)) continue;
    int outer = statement_level_;
    statement_level_ = open_scope(false);
    if (s->streaming_if.valid()) {
      Value* here = value(s->streaming_if);
      wanted = wanted ? b_.CreateAnd(wanted, here) : here;
    }
    Value* address = b_.CreatePtrToInt(place(s->memory, s->index).pointer, b_.getInt64Ty());
    close_scope();
    statement_level_ = outer;
    bits = bits ? b_.CreateOr(bits, address) : address;
  }
  if (!bits) return nullptr;
  uint64_t low = static_cast<uint64_t>(features_.vector_bits / 8 - 1);
  Value* aligned = b_.CreateICmpEQ(b_.CreateAnd(bits, low), b_.getInt64(0));
  return wanted ? b_.CreateAnd(wanted, aligned) : aligned;
}

}  // namespace tilegen::codegen
