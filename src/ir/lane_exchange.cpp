#include "ir/lane_exchange.h"

#include "ir/draft_threads.h"
#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr const char* kTexts[kLaneOps] = {"shuffle", "shuffle_xor", "shuffle_up", "shuffle_down", "any",
                                          "all",     "ballot",      "elect",      "match_any"};

class LaneStatements {
 public:
  LaneStatements(Program& p, Draft& draft, const Loop& threads, std::string_view word,
                 const SourceLocation& location, Block& block)
      : p_(p), e_(p.exprs), draft_(draft), word_(word), location_(location), block_(block) {
    p.exprs.is_const_int(threads.extents.back(), &lanes_);
    lane_ = e_.var(threads.vars.back());
  }

  int64_t lanes() const { return lanes_; }

  ExprId shuffled(LaneOp op, ExprId value, ExprId number) {
    const ExprId given = named("given", value);
    const ExprId all = e_.const_int(lanes_);
    switch (op) {
      case LaneOp::shuffle_xor:
        return taken(given, inside(e_.binary(ExprOp::bit_xor, lane_, number), number));
      case LaneOp::shuffle_up:
        return e_.select(e_.le(number, lane_),
                         taken(given, e_.floormod(e_.add(lane_, e_.sub(all, number)), all)), given);
      case LaneOp::shuffle_down:
        return e_.select(e_.lt(e_.add(lane_, number), all),
                         taken(given, e_.floormod(e_.add(lane_, number), all)), given);
      default:
        return taken(given, inside(number, number));
    }
  }

  ExprId vote(LaneOp op, ExprId condition) {
    if (op == LaneOp::all) return e_.unary(ExprOp::logical_not, vote(LaneOp::any, inverse(condition)));
    const ExprId given =
        named("given", e_.select(condition, e_.const_int(1, DType::i32), e_.const_int(0, DType::i32)));
    const ExprId said = voted(given, op == LaneOp::any ? VoteKind::any : VoteKind::ballot);
    if (op != LaneOp::elect) return said;
    // Of no lane: the width, which is none's number.
    return e_.binary(ExprOp::eq, e_.unary(ExprOp::ctz, said), e_.cast(DType::u32, lane_));
  }

  ExprId matching(ExprId value) { return voted(named("given", value), VoteKind::match); }

 private:
  ExprId inverse(ExprId condition) { return e_.unary(ExprOp::logical_not, condition); }
  // A number of the group, whatever the program computes; one that is constant has been looked at.
  ExprId inside(ExprId index, ExprId number) {
    return e_.is_const_int(number) ? index : e_.floormod(index, e_.const_int(lanes_));
  }

  ExprId named(const char* name, ExprId value) { return e_.var(assigned(name, value).first, e_.type(value)); }
  ExprId voted(ExprId given, VoteKind kind) {
    const auto [var, s] = assigned("taken", given);
    p_.vars[var.value].type = kind == VoteKind::any ? DType::boolean : DType::u32;
    draft_.exchanges[s] = {lane_, word_, kind};
    return e_.var(var, p_.var(var).type);
  }
  ExprId taken(ExprId given, ExprId lane) {
    const auto [var, s] = assigned("taken", given);
    draft_.exchanges[s] = {lane, word_, {}};
    return e_.var(var, e_.type(given));
  }
  std::pair<VarId, StmtId> assigned(const char* name, ExprId value) {
    Var v;
    v.name = name;
    v.type = e_.type(value);
    v.location = location_;
    const VarId var(p_.vars.size());
    p_.vars.push_back(std::move(v));
    draft_.temporaries[var] = false;
    const StmtId s(p_.stmts.size());
    p_.stmts.push_back({Branch{}, location_});
    block_.push_back(s);
    draft_.assignments[s] = {var, value};
    return {var, s};
  }

  Program& p_;
  ExprPool& e_;
  Draft& draft_;
  const std::string_view word_;
  const SourceLocation& location_;
  Block& block_;
  int64_t lanes_ = 1;
  ExprId lane_;
};

std::optional<Diagnostic> refusal(const Program& p, const Loop& threads, const LaneCall& call) {
  const std::string word = lane_op_text(call.op);
  int64_t lanes = 0, number = 0;
  p.exprs.is_const_int(threads.extents.back(), &lanes);
  if (!has_lanes(lanes))
    return diagnostic(
        DiagCode::bad_shape,
        word + " exchanges values in groups of " + std::to_string(lanes) +
            " lanes, which the last extent of the block of threads is; expected 2, 4, 8, 16 or " +
            std::to_string(kMaxLanes),
        "write the threads as groups of lanes: threads warp, lane in 4, 32");
  const DType type = p.exprs.type(call.value);
  if (call.op == LaneOp::match_any) {
    if (is_integer(type) && !is_packed(type)) return std::nullopt;
    const bool floating = is_float(type) && dtype_bits(type) >= 16;
    return diagnostic(DiagCode::dtype_mismatch,
                      word + " compares integers, found " + std::string(dtype_name(type)),
                      floating ? "compare its bits: bitcast(u" + std::to_string(dtype_bits(type)) + ", x)"
                      : is_bool(type) ? "use ballot"
                                      : "cast it to i32 first");
  }
  if (is_vote(call.op)) {
    if (is_bool(type)) return std::nullopt;
    return diagnostic(DiagCode::dtype_mismatch,
                      word + " takes a condition, found " + std::string(dtype_name(type)),
                      "compare it with something");
  }
  if (is_bool(type) || is_storage_only(type) || is_packed(type))
    return diagnostic(
        DiagCode::dtype_mismatch, word + " takes numbers, found " + std::string(dtype_name(type)),
        is_bool(type) ? "use any, all or ballot, or select(c, 1i32, 0i32)" : "cast it to f16 or i32 first");
  if (p.exprs.type(call.number) != DType::i64)
    return diagnostic(
        DiagCode::dtype_mismatch,
        "the lane of " + word + " has type " + dtype_name(p.exprs.type(call.number)) + ", not i64",
        "write cast(i64, ...) around it");
  if (!p.exprs.is_const_int(call.number, &number)) return std::nullopt;
  const bool moves = call.op == LaneOp::shuffle_up || call.op == LaneOp::shuffle_down;
  const int64_t most = moves ? lanes : lanes - 1;
  if (number >= 0 && number <= most) return std::nullopt;
  return diagnostic(
      DiagCode::index_out_of_bounds,
      word + " is given the number " + std::to_string(number) + ", expected 0 to " + std::to_string(most) +
          " in groups of " + std::to_string(lanes) + " lanes",
      "groups of lanes exchange values among themselves alone; go through shared memory between them");
}

}  // namespace

const char* lane_op_text(LaneOp op) { return kTexts[static_cast<size_t>(op)]; }

std::optional<LaneOp> lane_op_from_text(std::string_view text) {
  for (int op = 0; op < kLaneOps; ++op)
    if (text == kTexts[op]) return static_cast<LaneOp>(op);
  return std::nullopt;
}

std::variant<ExprId, Diagnostic> add_lane_call(Program& p, Draft& draft, const Loop& threads,
                                               const LaneCall& call, const SourceLocation& location,
                                               Block& block) {
  if (auto wrong = refusal(p, threads, call)) return std::move(*wrong);
  LaneStatements made(p, draft, threads, lane_op_text(call.op), location, block);
  if (call.op == LaneOp::match_any) return made.matching(call.value);
  return is_vote(call.op) ? made.vote(call.op, call.value) : made.shuffled(call.op, call.value, call.number);
}

}  // namespace tilegen::ir
