#include "sim/expr_compiler.h"

#include <algorithm>
#include <bit>

namespace tilegen::sim {

using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

ExprCompiler::ExprCompiler(const thread::ThreadProgram& program, Bytecode& out)
    : p_(program), out_(out), facts_(program.exprs.size()), places_(2 * program.exprs.size()) {
  out_.program = &program;
  out_.lanes = program.machine.warp;
  out_.first_thread = uniform_slot();
  out_.variables.assign(p_.vars.size(), kNothing);
  for (size_t v = 0; v < p_.vars.size(); ++v)
    if (ir::VarId(v) != p_.thread_var) out_.variables[v] = uniform_slot();
  out_.thread_value = out_.kept++;
  add_loop_segment();
}

uint32_t ExprCompiler::add_segment() {
  out_.segments.emplace_back();
  placed_.emplace_back();
  lasting_.emplace_back();
  return static_cast<uint32_t>(out_.segments.size() - 1);
}

void ExprCompiler::begin_statement(uint32_t stmt, uint32_t segment) {
  stmt_ = stmt;
  segment_ = segment;
}

void ExprCompiler::begin_lanes(ir::VarId var, uint32_t lane_segment, int64_t extent) {
  lane_var_ = var;
  lane_segment_ = lane_segment;
  lane_extent_ = extent;
}

uint32_t ExprCompiler::add_access(thread::MemoryId memory, const char* action, bool write, int64_t width) {
  out_.accesses.push_back({memory, stmt_, action, write, width});
  return static_cast<uint32_t>(out_.accesses.size() - 1);
}

bool ExprCompiler::is_multiple_of_warp(ExprId id) const {
  int64_t v = 0;
  return p_.exprs.is_const_int(id, &v) && v > 0 && v % out_.lanes == 0;
}

const ExprCompiler::NodeFacts& ExprCompiler::facts(ExprId id) {
  if (!facts_[id.value].known) {
    NodeFacts f;
    find_facts(id, f);
    f.known = true;
    facts_[id.value] = std::move(f);
  }
  return facts_[id.value];
}

void ExprCompiler::find_facts(ExprId id, NodeFacts& f) {
  const ExprNode& n = p_.exprs[id];
  f.uniform = true;
  if (n.op == ExprOp::var) {
    f.vars = {n.var()};
    f.warp_aligned = n.var() == p_.thread_var;
    f.uniform = !f.warp_aligned;
    return;
  }
  const auto join = [&](ExprId operand) {
    const NodeFacts& o = facts(operand);
    f.loads |= o.loads;
    f.uniform &= o.uniform;
    f.vars.insert(f.vars.end(), o.vars.begin(), o.vars.end());
  };
  for (ExprId operand : {n.a, n.b, n.c})
    if (operand.valid()) join(operand);
  if (n.op == ExprOp::load) {
    for (ExprId index : p_.exprs.indices(id)) join(index);
    f.loads = true;
    f.uniform = false;
  }
  std::sort(f.vars.begin(), f.vars.end());
  f.vars.erase(std::unique(f.vars.begin(), f.vars.end()), f.vars.end());
  if ((n.op == ExprOp::floordiv || n.op == ExprOp::floormod) && is_multiple_of_warp(n.b) &&
      facts(n.a).warp_aligned) {
    f.uniform = n.op == ExprOp::floordiv;
    f.warp_aligned = n.op == ExprOp::floormod;
  }
}

bool ExprCompiler::depends_on_lanes(ExprId id) const {
  const auto& vars = const_cast<ExprCompiler*>(this)->facts(id).vars;
  return lane_var_.valid() && std::binary_search(vars.begin(), vars.end(), lane_var_);
}

bool ExprCompiler::runs_along_lanes(ExprId id) const {
  const ExprNode& n = p_.exprs[id];
  if (n.op == ExprOp::var) return n.var() == lane_var_;
  const bool a = n.a.valid() && depends_on_lanes(n.a), b = n.b.valid() && depends_on_lanes(n.b);
  if (n.op == ExprOp::add && a != b) return runs_along_lanes(a ? n.a : n.b);
  return n.op == ExprOp::sub && a && !b && runs_along_lanes(n.a);
}

// The outermost place where all variables of the expression are known.
uint32_t ExprCompiler::segment_of(const NodeFacts& f) const {
  if (lane_var_.valid() && std::binary_search(f.vars.begin(), f.vars.end(), lane_var_)) return lane_segment_;
  if (f.loads) return segment_;
  for (size_t level = loops_.size(); level-- > 0;)
    if (std::binary_search(f.vars.begin(), f.vars.end(), loops_[level].var)) return loops_[level].segment;
  return 0;
}

void ExprCompiler::note_use(uint32_t value, uint32_t segment) {
  // Values of the same statement are numbered with it; others must outlive the segment that computes them.
  if (placed_[segment].count(value) == 0 && !places_[value]) places_[value] = {Ref::Space::kept, out_.kept++};
}

void ExprCompiler::append(uint32_t segment, uint32_t value, Instr instr) {
  instr.dst.at = value;
  out_.segments[segment].push_back(instr);
  placed_[segment].insert(value);
  Ref& place = places_[value];
  if (place.space == Ref::Space::temporary) place = {};  // of an earlier statement
  if (instr.uniform && !place) place = {Ref::Space::uniform, uniform_slot()};
}

// Literals and variables have their place from the start.
uint32_t ExprCompiler::leaf(ExprId id, const ExprNode& n) {
  Ref& place = places_[id.value];
  if (place) return id.value;
  if (n.op == ExprOp::var) {
    if (n.var() == p_.thread_var)
      place = {Ref::Space::kept, out_.thread_value};
    else
      place = {Ref::Space::uniform, out_.variables[n.var().value]};
    return id.value;
  }
  place = {Ref::Space::uniform, uniform_slot()};
  Cell& cell = out_.uniform[place.at];
  if (n.op == ExprOp::const_float)
    cell.f = n.float_value();
  else
    cell.i = n.imm;
  return id.value;
}

uint32_t ExprCompiler::value(ExprId id, uint32_t user) {
  const ExprNode& n = p_.exprs[id];
  if (n.op == ExprOp::const_int || n.op == ExprOp::const_float || n.op == ExprOp::var) return leaf(id, n);
  const NodeFacts& f = facts(id);
  const uint32_t segment = segment_of(f);
  if (placed_[segment].count(id.value) == 0) {
    Instr instr = instruction(id, n);
    const bool first_lane = f.uniform && n.op == ExprOp::floordiv && facts(n.a).warp_aligned;
    const auto operand = [&](ExprId e) {
      const uint32_t v = first_lane && e == n.a ? first_lane_value(e, segment) : value(e, segment);
      note_use(v, segment);
      return Ref{Ref::Space::none, v};
    };
    instr.a.at = instr.b.at = instr.c.at = kNothing;
    if (n.op == ExprOp::load) {
      const auto indices = p_.exprs.indices(id);
      instr.a = operand(indices[0]);
      if (indices.size() > 1) instr.b = operand(indices[1]);
      const bool wide = lane_var_.valid() && runs_along_lanes(indices[0]) &&
                        (indices.size() < 2 || !depends_on_lanes(indices[1]));
      instr.access = add_access(n.object, "load", false, wide ? lane_extent_ : 1);
    } else {
      instr.a = operand(n.a);
      if (n.b.valid()) instr.b = operand(n.b);
      if (n.c.valid()) instr.c = operand(n.c);
    }
    instr.uniform = f.uniform;
    append(segment, id.value, instr);
  }
  note_use(id.value, user);
  return id.value;
}

// The value that a warp-aligned expression has in lane 0.
uint32_t ExprCompiler::first_lane_value(ExprId id, uint32_t user) {
  const ExprNode& n = p_.exprs[id];
  const auto number = static_cast<uint32_t>(p_.exprs.size() + id.value);
  if (n.op == ExprOp::var) {
    places_[number] = {Ref::Space::uniform, out_.first_thread};
    return number;
  }
  const uint32_t segment = segment_of(facts(id));
  if (placed_[segment].count(number) == 0) {
    Instr instr = instruction(id, n);
    instr.a = {Ref::Space::none, first_lane_value(n.a, segment)};
    instr.b = {Ref::Space::none, value(n.b, segment)};
    instr.c.at = kNothing;
    instr.uniform = true;
    append(segment, number, instr);
  }
  note_use(number, user);
  return number;
}

namespace {

// Codes with a loop of their own, by operator; kNone: the general form.
Code integer_code(ExprOp op) {
  switch (op) {
    case ExprOp::add:
      return Code::add_i;
    case ExprOp::sub:
      return Code::sub_i;
    case ExprOp::mul:
      return Code::mul_i;
    case ExprOp::floordiv:
      return Code::div_i;
    case ExprOp::floormod:
      return Code::mod_i;
    case ExprOp::min:
      return Code::min_i;
    case ExprOp::max:
      return Code::max_i;
    case ExprOp::lt:
      return Code::lt_i;
    case ExprOp::le:
      return Code::le_i;
    case ExprOp::eq:
      return Code::eq_i;
    case ExprOp::ne:
      return Code::ne_i;
    case ExprOp::bit_and:
    case ExprOp::logical_and:
      return Code::and_i;
    case ExprOp::bit_or:
    case ExprOp::logical_or:
      return Code::or_i;
    case ExprOp::bit_xor:
      return Code::xor_i;
    case ExprOp::logical_not:
      return Code::not_b;
    case ExprOp::shl:
      return Code::shl_i;
    case ExprOp::shr:
      return Code::shr_i;
    case ExprOp::select:
      return Code::select;
    default:
      return Code::general;
  }
}

Code float_code(ExprOp op) {
  switch (op) {
    case ExprOp::add:
      return Code::add_f;
    case ExprOp::sub:
      return Code::sub_f;
    case ExprOp::mul:
      return Code::mul_f;
    case ExprOp::div:
      return Code::div_f;
    case ExprOp::lt:
      return Code::lt_f;
    case ExprOp::le:
      return Code::le_f;
    case ExprOp::eq:
      return Code::eq_f;
    case ExprOp::ne:
      return Code::ne_f;
    case ExprOp::select:
      return Code::select;
    default:
      return Code::general;
  }
}

// What the codes of signed numbers do wrong on the bits of a u64.
bool tells_the_sign(Code code) {
  return code == Code::div_i || code == Code::mod_i || code == Code::min_i || code == Code::max_i ||
         code == Code::lt_i || code == Code::le_i || code == Code::shr_i;
}

Code cast_code(DType from, DType to) {
  if (ir::is_float(to)) return ir::is_float(from) ? Code::round : Code::general;
  return ir::is_float(from) || ir::is_bool(to) ? Code::general : Code::wrap;
}

}  // namespace

Instr ExprCompiler::instruction(ExprId id, const ExprNode& n) {
  Instr instr;
  instr.op = n.op;
  instr.type = n.type;
  if (n.op == ExprOp::load) {
    instr.code = Code::load;
    return instr;
  }
  instr.operand = p_.exprs.type(n.op == ExprOp::select ? n.b : n.a);
  instr.code = n.op == ExprOp::cast          ? cast_code(instr.operand, n.type)
               : ir::is_float(instr.operand) ? float_code(n.op)
                                             : integer_code(n.op);
  if (ir::is_u64(instr.operand) && tells_the_sign(instr.code)) instr.code = Code::general;
  int64_t divisor = 0;
  const bool divides = instr.code == Code::div_i || instr.code == Code::mod_i;
  if (divides && p_.exprs.is_const_int(n.b, &divisor) && divisor > 0 &&
      std::has_single_bit(static_cast<uint64_t>(divisor))) {
    const bool quotient = instr.code == Code::div_i;
    instr.code = quotient ? Code::div_pow2 : Code::mod_pow2;
    instr.imm = quotient ? std::countr_zero(static_cast<uint64_t>(divisor)) : divisor - 1;
  }
  (void)id;
  return instr;
}

Ref ExprCompiler::use(ExprId id) {
  if (!id.valid()) return {Ref::Space::none, kNothing};
  const uint32_t user = depends_on_lanes(id) ? lane_segment_ : segment_;
  const uint32_t v = value(id, user);
  lasting_[user].push_back(v);
  return {Ref::Space::none, v};
}

// Temporaries are reused after their last use; what a step reads stays.
uint32_t ExprCompiler::number_segment(uint32_t segment, uint32_t used) {
  Segment& code = out_.segments[segment];
  std::unordered_map<uint32_t, size_t> last;
  for (size_t i = 0; i < code.size(); ++i)
    for (const Ref& r : {code[i].a, code[i].b, code[i].c})
      if (r.at != kNothing) last[r.at] = i;
  for (uint32_t v : lasting_[segment]) last[v] = code.size();
  std::vector<uint32_t> free;
  for (size_t i = 0; i < code.size(); ++i) {
    Instr& instr = code[i];
    Ref& place = places_[instr.dst.at];
    if (!place || place.space == Ref::Space::temporary) {
      if (free.empty()) free.push_back(used++);
      place = {Ref::Space::temporary, free.back()};
      free.pop_back();
    }
    instr.dst = place;
    for (Ref* r : {&instr.a, &instr.b, &instr.c}) {
      const uint32_t v = r->at;
      *r = resolved(*r);
      if (r->space != Ref::Space::temporary || last[v] != i) continue;
      free.push_back(r->at);
      last[v] = code.size();  // an operand that stands twice is freed once
    }
  }
  out_.temporaries = std::max(out_.temporaries, used);
  return used;
}

void ExprCompiler::end_statement(std::span<Ref* const> operands) {
  // What the statement computes once is read after what it computes per lane.
  const uint32_t used = number_segment(segment_, 0);
  if (lane_var_.valid()) number_segment(lane_segment_, used);
  for (Ref* r : operands) *r = resolved(*r);
  lane_var_ = {};
}

void ExprCompiler::finish() {
  for (uint32_t s : lasting_segments_) number_segment(s, 0);
}

}  // namespace tilegen::sim
