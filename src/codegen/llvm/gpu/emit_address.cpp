// Addresses: the linear form of an index as a sum, what depends on outer scopes first, so that each loop adds
// only its own part and constants become the offset of the instruction.
#include <algorithm>
#include <map>
#include <set>

#include "codegen/llvm/gpu/address_sums.h"
#include "codegen/llvm/gpu/gpu_emitter.h"
#include "support/checked.h"

namespace tilegen::codegen {

using arith::Affine;
using arith::Interval;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using llvm::Value;
using thread::MemoryId;
using thread::Space;

namespace {

constexpr Interval kI32{INT32_MIN, INT32_MAX};

int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// What stands in a register of indices is what is stored there: a block's, of the points of its grid.
Interval stored_range(const thread::ThreadProgram& p, IndexFacts& facts, MemoryId memory) {
  std::optional<Interval> range;
  for (const thread::Stmt& s : p.stmts) {
    const auto* shuffle = std::get_if<thread::Shuffle>(&s.node);
    if (shuffle && shuffle->dst == memory) return Interval::whole();
    const auto* vote = std::get_if<thread::Vote>(&s.node);
    if (vote && vote->dst == memory) return Interval::whole();
    const auto* store = std::get_if<thread::Store>(&s.node);
    if (!store || store->memory != memory) continue;
    const Interval stored = facts.range(store->value);
    range = range ? Interval{std::min(range->lo, stored.lo), std::max(range->hi, stored.hi)} : stored;
  }
  return range.value_or(Interval::whole());
}

// Of an index, in bytes, wherever it is computed.
Interval reach(const thread::ThreadProgram& p, IndexFacts& facts, const Affine& index, int64_t scale) {
  Interval sum = Interval::point(index.constant);
  for (const auto& [atom, coefficient] : index.terms) {
    const ExprNode n = facts.pool()[atom];
    const bool of_registers =
        n.op == ExprOp::load && n.type == ir::DType::i64 && p.memory(n.object).space == Space::local;
    const Interval range = of_registers ? stored_range(p, facts, n.object) : facts.range(atom);
    sum = arith::interval_add(sum, arith::interval_scale(range, coefficient));
  }
  return arith::interval_scale(sum, scale);
}

// Where the predicate holds the bytes up to the element have 32 bits, and modulo 2^32 is exact.
bool bounded(const thread::ThreadProgram& p, MemoryId tensor) {
  return std::any_of(p.guards.begin(), p.guards.end(), [&](const thread::Guard& g) {
    const thread::Param& param = p.params[static_cast<size_t>(g.param)];
    return g.most_bytes > 0 && param.kind == thread::Param::Kind::tensor && param.memory == tensor;
  });
}

// Whether no part of the sum is negative, nor any sum that it may become: where LLVM moves a constant out of
// a term what is left has no less than 0. Of anything but sums and products of what is not negative, and
// what keeps constants inside, this is not known.
bool goes_up(const thread::ThreadProgram& p, IndexFacts& facts, const Affine& index) {
  std::vector<ExprId> open;
  for (const auto& [atom, coefficient] : index.terms) {
    if (coefficient < 0) return false;
    open.push_back(atom);
  }
  std::set<ExprId> seen;
  const auto leaf = [](const ExprNode& n) { return ir::expr_class(n.op) == ir::ExprClass::leaf; };
  while (!open.empty()) {
    const ExprId e = open.back();
    open.pop_back();
    if (!e.valid() || !seen.insert(e).second) continue;
    const ExprNode n = facts.pool()[e];
    if (n.op == ExprOp::load && n.type == ir::DType::i64 && p.memory(n.object).space == Space::local) {
      if (stored_range(p, facts, n.object).lo < 0) return false;
      for (const thread::Stmt& s : p.stmts)
        if (const auto* store = std::get_if<thread::Store>(&s.node); store && store->memory == n.object)
          open.push_back(store->value);
      continue;
    }
    if (facts.range(e).lo < 0) return false;
    if (leaf(n)) continue;
    int64_t divisor = 0;
    switch (n.op) {
      case ExprOp::cast:
        if (!leaf(facts.pool()[n.a])) return false;  // narrow sums come round
        break;
      case ExprOp::floormod:
        if (!facts.pool().is_const_int(n.b, &divisor) || (divisor & (divisor - 1)) != 0) return false;
        break;
      case ExprOp::add:
      case ExprOp::mul:
      case ExprOp::floordiv:
      case ExprOp::min:
      case ExprOp::max:
      case ExprOp::bit_and:
      case ExprOp::bit_or:
      case ExprOp::bit_xor:
      case ExprOp::shl:
      case ExprOp::shr:
        break;
      case ExprOp::select:
        open.insert(open.end(), {n.b, n.c});
        continue;
      default:
        return false;
    }
    open.insert(open.end(), {n.a, n.b, n.c});
  }
  return true;
}

bool by_level(int a, int b) { return a < b; }

}  // namespace

std::optional<int64_t> GpuEmitter::constant_index(ExprId e) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(value(e))) return c->getSExtValue();
  refuse("an index into registers is not a constant");
  return std::nullopt;
}

// Products with a dim at one level share the multiplication: (128*by + ty) * n.
void GpuEmitter::add_dim_products(const std::vector<std::pair<ExprId, Summand>>& products,
                                  std::vector<Summand>& out) {
  std::map<std::pair<ExprId, int>, std::vector<Summand>> groups;
  for (const auto& [dim, part] : products) groups[{dim, part.level}].push_back(part);
  for (const auto& [key, parts] : groups) {
    Summand factor = sum_level(b_, parts);
    Emitted dim = emit_expr(key.first);
    Summand s;
    s.level = std::max(key.second, dim.level);
    s.range = arith::interval_mul(factor.range, facts_.range(key.first));
    s.value = b_.CreateMul(with_bits(b_, factor.value, 64, factor.range.lo >= 0),
                           resized(dim.value, 64, key.first));
    out.push_back(s);
  }
}

// The terms of `index` times `scale`; constants among their values are summed up in the last one.
std::vector<Summand> GpuEmitter::summands(const Affine& index, int64_t scale) {
  std::vector<Summand> out;
  std::vector<std::pair<ExprId, Summand>> products;
  Summand rest;
  int64_t constant = times(index.constant, scale);
  for (const auto& [atom, coefficient] : index.terms) {
    const ExprNode n = exprs_[atom];
    ExprId factor = atom, dim;
    if (n.op == ExprOp::mul && n.type == ir::DType::i64) {
      if (facts_.is_dim(n.b))
        factor = n.a, dim = n.b;
      else if (facts_.is_dim(n.a))
        factor = n.b, dim = n.a;
    }
    Emitted v = emit_expr(factor);
    Summand s{v.value, times(coefficient, scale), v.level, facts_.range(factor)};
    auto* known = llvm::dyn_cast<llvm::ConstantInt>(v.value);
    if (known && (known->isZero() || !dim.valid())) {
      constant = plus(times(known->getSExtValue(), s.scale), constant);
      continue;
    }
    if (known) s.range = Interval::point(known->getSExtValue());
    if (dim.valid())
      products.push_back({dim, s});
    else
      out.push_back(s);
  }
  add_dim_products(products, out);
  std::stable_sort(out.begin(), out.end(),
                   [](const Summand& a, const Summand& b) { return by_level(a.level, b.level); });
  out.push_back({b_.getInt64(static_cast<uint64_t>(constant)), 1, 0, Interval::point(constant)});
  return out;
}

// Offsets are small; what they are summed from may wrap on the way.
Place GpuEmitter::shared_place(const Affine& index, int64_t scale, int64_t first) {
  std::vector<Summand> parts = summands(index, scale);
  Place at{shared_, first + llvm::cast<llvm::ConstantInt>(parts.back().value)->getSExtValue()};
  parts.pop_back();
  if (Value* sum = sum_narrow(b_, parts)) at.pointer = b_.CreateGEP(b_.getInt8Ty(), shared_, sum);
  return at;
}

Place GpuEmitter::place(MemoryId memory, const Affine& index) {
  const thread::Memory& m = program_.memory(memory);
  if (m.space == Space::shared) return shared_place(index, ir::dtype_bytes(m.type), m.arena_offset);
  const int64_t size = ir::dtype_bytes(m.type);
  std::vector<Summand> parts = summands(index, size);
  Place at;
  at.offset = llvm::cast<llvm::ConstantInt>(parts.back().value)->getSExtValue();
  parts.pop_back();
  at.pointer = bases_[memory.value];
  Interval whole = range_of_sum(parts);
  const bool reached =
      features_.amdgpu && (bounded(program_, memory) || reach(program_, facts_, index, size).within(kI32));
  Value* sum = whole.within(kI32) || reached ? sum_narrow(b_, parts) : nullptr;
  if (reached) {
    at.base = at.pointer;
    at.within = sum ? sum : b_.getInt32(0);
    at.upward = goes_up(program_, facts_, index);
  }
  if (whole.within(kI32)) {
    if (sum) at.pointer = b_.CreateGEP(b_.getInt8Ty(), at.pointer, with_bits(b_, sum, 64, whole.lo >= 0));
    return at;
  }
  for (size_t i = 0; i < parts.size();) {
    std::vector<Summand> level;
    for (int of = parts[i].level; i < parts.size() && parts[i].level == of; ++i) level.push_back(parts[i]);
    Summand s = sum_level(b_, level);
    at.pointer = b_.CreateGEP(b_.getInt8Ty(), at.pointer, with_bits(b_, s.value, 64, s.range.lo >= 0));
  }
  return at;
}

Place GpuEmitter::place(MemoryId memory, ExprId index) {
  const Affine form = facts_.affine(index);  // a copy: emitting asks for further ones
  return place(memory, form);
}

bool GpuEmitter::uniform(ExprId e) {
  return !e.valid() || !lane_var_.valid() || !facts_.depends_on(e, lane_var_) ||
         !facts_.depends_on(facts_.simplified(e), lane_var_);
}

bool GpuEmitter::aligned(const thread::Memory& m, const Affine& form, int64_t bytes) {
  return m.alignment % bytes == 0 && facts_.divisor(form) * ir::dtype_bytes(m.type) % bytes == 0;
}

std::optional<Place> GpuEmitter::contiguous(MemoryId memory, ExprId index, ExprId predicate) {
  Affine form = facts_.affine(index);
  bool found = false;
  for (auto it = form.terms.begin(); it != form.terms.end();) {
    const ExprNode n = exprs_[it->first];
    if (n.op == ExprOp::var && n.var() == lane_var_ && it->second == 1) {
      found = true;
      it = form.terms.erase(it);
      continue;
    }
    if (facts_.depends_on(it->first, lane_var_)) return std::nullopt;
    ++it;
  }
  if (!found) return std::nullopt;
  const thread::Memory& m = program_.memory(memory);
  const bool is_seen_to = !predicate.valid() || !facts_.depends_on(predicate, lane_var_);
  if (!is_seen_to && !aligned(m, form, part_bytes(width_ * ir::dtype_bytes(m.type)))) return std::nullopt;
  return place(memory, form);
}

std::optional<GpuEmitter::NearElements> GpuEmitter::near_elements(MemoryId memory, ExprId index) {
  const thread::Memory& m = program_.memory(memory);
  Affine form = facts_.affine(index);
  std::vector<int64_t> offsets(static_cast<size_t>(width_), 0);
  for (auto it = form.terms.begin(); it != form.terms.end();) {
    const auto [atom, coefficient] = *it;
    if (!facts_.depends_on(atom, lane_var_)) {
      ++it;
      continue;
    }
    for (int64_t lane = 0; lane < width_; ++lane) {
      const auto value = facts_.value_where(
          atom, [&](ir::VarId v) { return v == lane_var_ ? std::optional(lane) : std::nullopt; });
      if (!value) return std::nullopt;
      offsets[static_cast<size_t>(lane)] += times(*value, coefficient);
    }
    it = form.terms.erase(it);
  }
  const auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
  const int64_t first = *least, size = ir::dtype_bytes(m.type);
  if (*most >= plus(first, 2 * width_)) return std::nullopt;
  NearElements near;
  near.count = *most - first + 1;
  form.constant = plus(form.constant, first);
  const int64_t bytes = near.count * size;
  near.access_bytes = part_bytes(bytes);
  while (near.access_bytes > size && !aligned(m, form, near.access_bytes)) near.access_bytes /= 2;
  // Several accesses of one element are one in any case.
  const std::set<int64_t> distinct(offsets.begin(), offsets.end());
  const int64_t accesses = bytes / near.access_bytes, others = static_cast<int64_t>(distinct.size());
  if (accesses > others || (accesses == others && others == width_)) return std::nullopt;
  near.at = place(memory, form);
  for (int64_t offset : offsets) near.of_lane.push_back(static_cast<size_t>(offset - first));
  return near;
}

}  // namespace tilegen::codegen
