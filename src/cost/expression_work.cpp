#include "cost/expression_work.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "ir/group_vote.h"

namespace tilegen::cost {

namespace {

// Instructions of one element, by the lanes that they take.
struct Price {
  double plain = 0, convert = 0, special = 0;
  double issued() const { return plain + convert + special; }
};

// Of two fields of bits that become 16-bit floats: bytes brought together, bits put below a power of two, and
// a multiply-add.
constexpr Price kFieldPrice{.plain = 1.5};

// Sums, differences, products and choices of halves are done on pairs (codegen/llvm/gpu/packing.h).
bool is_on_pairs(const ir::ExprNode& n) {
  using ir::ExprOp;
  return n.type == ir::DType::f16 && (n.op == ExprOp::add || n.op == ExprOp::sub || n.op == ExprOp::mul ||
                                      n.op == ExprOp::min || n.op == ExprOp::max);
}

// For f32; narrower types are computed in it. exp as it is emitted, the others estimates.
Price price_of(const ir::ExprPool& e, const ir::ExprNode& n) {
  using ir::ExprOp;
  switch (n.op) {
    case ExprOp::cast: {
      const ir::DType from = e.type(n.a);
      if (ir::is_float(from) && ir::is_float(n.type))  // two at once
        return from == n.type ? Price{} : Price{.convert = 0.5};
      return ir::is_float(from) != ir::is_float(n.type) ? Price{.convert = 1} : Price{.plain = 1};
    }
    case ExprOp::bitcast:  // 16-bit floats are held as f32
      return {.convert = ir::dtype_bits(n.type) == 16 ? 0.5 : 0};
    case ExprOp::exp2:
    case ExprOp::exp:
      return {.plain = n.op == ExprOp::exp ? 8.0 : 1.0, .special = 1};
    case ExprOp::log2:
    case ExprOp::log:
    case ExprOp::rsqrt:
      return {.plain = 3, .special = 1};
    case ExprOp::sqrt:
    case ExprOp::div:
    case ExprOp::tanh:
      return {.plain = 15, .special = 1};
    case ExprOp::sigmoid:
      return {.plain = 8, .special = 2};
    case ExprOp::erf:
      return {.plain = 20, .special = 1};
    case ExprOp::exp10:
    case ExprOp::expm1:
    case ExprOp::log1p:
    case ExprOp::cbrt:
    case ExprOp::asin:
    case ExprOp::acos:
      return {.plain = 30, .special = 1};
    case ExprOp::atan:
    case ExprOp::atan2:
    case ExprOp::erfc:
      return {.plain = 45, .special = 1};
    case ExprOp::sin:
    case ExprOp::cos:
    case ExprOp::tan:
      return {.plain = 70, .convert = 2};
    case ExprOp::pow:
      return {.plain = 110, .special = 2};
    case ExprOp::fmod:
      return {.plain = 150, .special = 1};
    case ExprOp::floordiv:
    case ExprOp::floormod:
      return {.plain = 8};
    default:
      return {.plain = is_on_pairs(n) ? 0.5 : 1};
  }
}

// Bits of the unsigned field of an integer that an expression is, numbers that are added aside: what the code
// generator for NVIDIA puts below a power of two instead of converting it. None: another expression.
std::optional<int> field_bits(const ir::ExprPool& e, ir::ExprId id) {
  const ir::ExprNode& n = e[id];
  if (!ir::is_integer(n.type)) return std::nullopt;
  int64_t number = 0;
  switch (n.op) {
    case ir::ExprOp::load:
      return ir::dtype_bits(n.type);
    case ir::ExprOp::cast: {
      const std::optional<int> bits = field_bits(e, n.a);
      return bits ? std::min(*bits, ir::dtype_bits(n.type)) : bits;
    }
    case ir::ExprOp::bit_and: {
      if (!e.is_const_int(n.b, &number) || number < 0 || (number & (number + 1)) != 0) return std::nullopt;
      const std::optional<int> bits = field_bits(e, n.a);
      return bits ? std::min(*bits, std::popcount(static_cast<uint64_t>(number))) : bits;
    }
    case ir::ExprOp::shr:
      return field_bits(e, n.a);
    case ir::ExprOp::add:
    case ir::ExprOp::sub:
      return e.is_const_int(n.b, &number) ? field_bits(e, n.a) : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool is_converted_field(const ir::ExprPool& e, const ir::ExprNode& n) {
  if (n.op != ir::ExprOp::cast || (n.type != ir::DType::f16 && n.type != ir::DType::bf16)) return false;
  const std::optional<int> bits = field_bits(e, n.a);
  return bits && *bits <= (n.type == ir::DType::f16 ? 10 : 7);
}

class BodyWalk {
 public:
  BodyWalk(const ir::Program& p, const ir::Loop& loop, const target::Target& t,
           const std::function<void(const BodyNode&)>& visit)
      : e_(p.exprs), loop_(loop), fields_(t.code == target::CodeFormat::ptx), visit_(visit) {}

  struct Node {
    bool element = false;
    uint32_t along = 0;
  };

  // `fused`: as of BodyNode.
  Node walk(ir::ExprId id, bool fused = false) {
    if (!id.valid()) return {};
    if (const auto known = seen_.find(id); known != seen_.end()) return known->second;
    const ir::ExprNode& n = e_[id];
    Node node;
    if (n.op == ir::ExprOp::var)
      for (size_t d = 0; d < loop_.vars.size(); ++d)
        if (loop_.vars[d] == n.var()) node.along |= uint32_t{1} << d;
    if (n.op == ir::ExprOp::load) {
      node.element = true;
      for (ir::ExprId index : e_.indices(id)) node.along |= walk(index).along;
    }
    if (const auto vote = is_word(n) ? ir::find_group_vote(e_, id) : std::nullopt) {  // one instruction
      for (ir::ExprId index : e_.indices(vote->first)) node.along |= walk(index).along;
      node.element = true;
      visit_({n, true, node.along | uint32_t{1} << (loop_.vars.size() - 1), false, false, false});
      seen_.emplace(id, node);
      return node;
    }
    // Halves are rounded between a product and a sum.
    bool takes_one = (n.op == ir::ExprOp::add || n.op == ir::ExprOp::sub) && ir::is_float(n.type) &&
                     n.type != ir::DType::f16;
    const bool field = fields_ && is_converted_field(e_, n), of_field = fused && ir::is_integer(n.type);
    for (ir::ExprId operand : {n.a, n.b, n.c}) {
      const bool product =
          takes_one && operand.valid() && e_[operand].op == ir::ExprOp::mul && !seen_.count(operand);
      if (product) takes_one = false;
      const bool taken = product || ((field || of_field) && operand == n.a);
      const Node below = walk(operand, taken);
      node.element = node.element || below.element;
      node.along |= below.along;
    }
    const bool mask = n.op == ir::ExprOp::select && !walk(n.a).element;
    visit_({n, node.element, node.along, fused, mask, field});
    seen_.emplace(id, node);
    return node;
  }

 private:
  static bool is_word(const ir::ExprNode& n) { return n.op == ir::ExprOp::bit_or || n.op == ir::ExprOp::ne; }

  const ir::ExprPool& e_;
  const ir::Loop& loop_;
  const bool fields_;  // of bits become 16-bit floats, two at a time (codegen/llvm/gpu/bit_fields.h)
  const std::function<void(const BodyNode&)>& visit_;
  std::map<ir::ExprId, Node> seen_;
};

// Of one thread's points, those at which something differs.
double points_of(uint32_t along, const layout::Fragment* iteration, const std::vector<double>& extents,
                 int64_t threads) {
  double points = 1;
  if (iteration) {
    for (const layout::Digit& d : iteration->map().digits())
      if (d.output == layout::kRegister && d.dim >= 0 && (along >> d.dim & 1) != 0)
        points *= static_cast<double>(d.extent);
    return points;
  }
  for (size_t d = 0; d < extents.size(); ++d)
    if ((along >> d & 1) != 0) points *= extents[d];
  return std::max(1.0, points / static_cast<double>(threads));
}

}  // namespace

double instructions_of(const ir::ExprPool& e, const ir::ExprNode& n) { return price_of(e, n).issued(); }

void for_each_body_node(const ir::Program& p, const ir::Loop& loop, const target::Target& t,
                        const std::function<void(const BodyNode&)>& visit) {
  BodyWalk walk(p, loop, t, visit);
  ir::for_each_statement(p, loop.body, [&](ir::StmtId id, int) {
    if (const auto* store = p.as<ir::Store>(id)) {
      walk.walk(store->value);
      if (store->expected.valid()) walk.walk(store->expected);
    }
    if (const auto* branch = p.as<ir::Branch>(id)) walk.walk(branch->condition);
  });
}

std::vector<double> loop_extents(const ir::Program& p, const ir::Loop& loop) {
  std::vector<double> extents;
  for (ir::ExprId e : loop.extents) {
    int64_t extent = 1;
    p.exprs.is_const_int(e, &extent);
    extents.push_back(static_cast<double>(extent));
  }
  return extents;
}

Work loop_work(const ir::Program& p, const ir::Loop& loop, const layout::Fragment* iteration, int64_t threads,
               bool unmasked, const target::Target& t) {
  const std::vector<double> extents = loop_extents(p, loop);
  Price all;  // of one thread
  for_each_body_node(p, loop, t, [&](const BodyNode& n) {
    if (n.node.op == ir::ExprOp::load || n.fused) return;
    // Of what reads no element only conditions are computed at points, at half a price: many are a row's.
    if (n.element ? unmasked && n.mask : unmasked || n.node.type != ir::DType::boolean) return;
    const Price one = n.field ? kFieldPrice : price_of(p.exprs, n.node);
    const double points = points_of(n.along, iteration, extents, threads) * (n.element ? 1 : 0.5);
    all.plain += one.plain * points;
    all.convert += one.convert * points;
    all.special += one.special * points;
  });
  const double lanes = static_cast<double>(threads);
  Work w;
  w[Pipe::issue] = all.issued() * lanes / t.warp / t.schedulers;
  w[Pipe::plain] = all.plain * lanes / t.plain_lanes;
  w[Pipe::convert] = all.convert * lanes / t.convert_lanes;
  w[Pipe::special] = all.special * lanes / t.special_lanes;
  w.latency = 20;  // of a chain of a few dependent instructions
  return w;
}

}  // namespace tilegen::cost
