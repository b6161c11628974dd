#include "ops/index_digits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "support/checked.h"

namespace tilegen::ops {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

int64_t IndexTerm::at(std::span<const int64_t> point) const {
  int64_t value = point[static_cast<size_t>(dim)] / divisor;
  if (modulus > 0) value %= modulus;
  if (mirrored) value = modulus - 1 - value;
  if (turn != 0) value = (value + turn) % modulus;
  return value * weight;
}

namespace {

constexpr size_t kMaxDigits = 64;
constexpr int kMaxNodes = 256;             // of an index; shared ones count each time
constexpr int64_t kMaxWeight = 1LL << 40;  // sums of digits stay far from overflow

// weight * (point[dim] // divisor % extent, its values mirrored and turned)
struct Piece {
  int dim = 0;
  int64_t divisor = 1, extent = 1, weight = 1;
  bool mirrored = false;
  int64_t turn = 0;

  int64_t most() const { return weight * (extent - 1); }
};

// constant + sum of pieces, whose weights are positive
struct Sum {
  int64_t constant = 0;
  std::vector<Piece> pieces;

  int64_t most() const {
    int64_t sum = constant;
    for (const Piece& p : pieces) sum += p.most();
    return sum;
  }
};

bool power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

bool in_bounds(const Sum& s) {
  return s.pieces.size() <= kMaxDigits && std::abs(s.constant) <= kMaxWeight &&
         std::all_of(s.pieces.begin(), s.pieces.end(),
                     [](const Piece& p) { return p.weight <= kMaxWeight && p.most() <= kMaxWeight; });
}

// The lowest `count` values' digit and the rest; nothing where they are no digits of it.
bool split(const Piece& p, int64_t count, Piece& low, Piece& high) {
  if (p.turn != 0 || p.extent % count != 0) return false;
  low = high = p;
  low.extent = count;
  high.extent /= count, high.divisor *= count, high.weight *= count;
  return true;
}

// -s: a mirrored digit is the greatest one minus the digit.
std::optional<Sum> negated(Sum s) {
  s.constant = -s.most();
  for (Piece& p : s.pieces) {
    if (p.turn != 0) return std::nullopt;
    p.mirrored = !p.mirrored;
  }
  return s;
}

std::optional<Sum> scaled(Sum s, int64_t factor) {
  if (factor < 0) {
    auto negative = negated(std::move(s));
    if (!negative || factor == INT64_MIN) return std::nullopt;
    return scaled(std::move(*negative), -factor);
  }
  if (factor > kMaxWeight) return std::nullopt;
  if (factor == 0) return Sum{};
  const auto constant = checked_mul(s.constant, factor);
  if (!constant) return std::nullopt;
  s.constant = *constant;
  for (Piece& p : s.pieces) {
    const auto weight = checked_mul(p.weight, factor);
    if (!weight) return std::nullopt;
    p.weight = *weight;
  }
  return s;
}

// Pieces of one dimension that continue each other become one.
void join(Sum& s) {
  std::vector<Piece>& list = s.pieces;
  std::sort(list.begin(), list.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.dim, a.divisor, a.weight) < std::tie(b.dim, b.divisor, b.weight);
  });
  std::vector<Piece> joined;
  for (const Piece& p : list) {
    if (p.extent == 1) continue;
    if (!joined.empty()) {
      Piece& last = joined.back();
      if (last.dim == p.dim && last.turn == 0 && p.turn == 0 && last.mirrored == p.mirrored &&
          last.divisor * last.extent == p.divisor && last.weight * last.extent == p.weight) {
        last.extent *= p.extent;
        continue;
      }
    }
    joined.push_back(p);
  }
  list = std::move(joined);
}

// Equal digits of a dimension are added up, as `j - j % 2` takes one away.
std::optional<Sum> collected(Sum s) {
  Sum out{s.constant, {}};
  std::map<int, std::set<int64_t>> cuts;
  std::vector<Piece> plain;  // of weights below 0 where they were mirrored
  for (Piece p : s.pieces) {
    if (p.turn != 0) {
      out.pieces.push_back(p);
      continue;
    }
    if (p.mirrored) {
      out.constant += p.most();
      p.mirrored = false;
      p.weight = -p.weight;
    }
    plain.push_back(p);
    cuts[p.dim].insert({p.divisor, p.divisor * p.extent});
  }
  std::map<std::tuple<int, int64_t, int64_t>, int64_t> weights;  // by dim, divisor, extent
  for (const Piece& p : plain) {
    int64_t from = p.divisor;
    for (int64_t cut : cuts[p.dim]) {
      if (cut <= from) continue;
      if (cut > p.divisor * p.extent) break;
      if (cut % from != 0 || p.divisor * p.extent % cut != 0) return std::nullopt;
      weights[{p.dim, from, cut / from}] += p.weight * (from / p.divisor);
      from = cut;
    }
  }
  for (const auto& [digit, weight] : weights) {
    const auto& [dim, divisor, extent] = digit;
    if (weight == 0) continue;
    out.pieces.push_back({dim, divisor, extent, std::abs(weight), weight < 0, 0});
    if (weight < 0) out.constant += weight * (extent - 1);
  }
  join(out);
  return out;
}

std::optional<Sum> added(Sum a, const Sum& b) {
  a.constant += b.constant;
  a.pieces.insert(a.pieces.end(), b.pieces.begin(), b.pieces.end());
  return collected(std::move(a));
}

// s = high * by + low, without a carry between them; `low` may reach beyond `by` where it says so.
struct Division {
  Sum high, low;
  bool carries(int64_t by) const { return low.most() >= by; }
};

std::optional<Division> divided(const Sum& s, int64_t by) {
  Division d;
  d.high.constant = floor_div(s.constant, by);
  d.low.constant = s.constant - d.high.constant * by;
  for (Piece p : s.pieces) {
    if (p.weight < by && p.weight * p.extent > by) {
      Piece low, high;
      if (by % p.weight != 0 || !split(p, by / p.weight, low, high)) {
        d.low.pieces.push_back(p);  // carries
        continue;
      }
      d.low.pieces.push_back(low);
      p = high;
    }
    if (p.weight < by) {
      d.low.pieces.push_back(p);
      continue;
    }
    if (p.weight % by != 0) return std::nullopt;
    p.weight /= by;
    d.high.pieces.push_back(p);
  }
  return d;
}

// (s + constant) % by where one digit fills what lies above the constant's divisors: its values are turned.
std::optional<Sum> turned(Sum s, int64_t by) {
  const auto top = std::max_element(s.pieces.begin(), s.pieces.end(),
                                    [](const Piece& a, const Piece& b) { return a.weight < b.weight; });
  if (top == s.pieces.end() || top->weight * top->extent != by || s.constant % top->weight != 0)
    return std::nullopt;
  Piece p = *top;
  s.pieces.erase(top);
  if (s.most() - s.constant >= p.weight) return std::nullopt;
  const int64_t steps = s.constant / p.weight % p.extent;
  s.constant = 0;
  // What the constant leaves alone keeps its values.
  if (const int64_t kept = std::gcd(steps, p.extent); kept > 1) {
    Piece low, high;
    if (split(p, kept, low, high)) {
      s.pieces.push_back(low);
      high.turn = steps / kept;
      p = high;
    } else {
      p.turn = (p.turn + steps) % p.extent;
    }
  } else {
    p.turn = (p.turn + steps) % p.extent;
  }
  if (p.extent == 2 && p.turn == 1) p.turn = 0, p.mirrored = !p.mirrored;
  s.pieces.push_back(p);
  join(s);
  return s;
}

std::optional<Sum> quotient(const Sum& s, int64_t by) {
  const auto d = by > 0 ? divided(s, by) : std::nullopt;
  if (!d || d->carries(by)) return std::nullopt;
  Sum high = d->high;
  join(high);
  return high;
}

std::optional<Sum> remainder(const Sum& s, int64_t by) {
  const auto d = by > 0 ? divided(s, by) : std::nullopt;
  if (!d) return std::nullopt;
  Sum low = d->low;
  if (d->carries(by)) return turned(std::move(low), by);
  join(low);
  return low;
}

// Its digits one bit each, which no other and no bit of the constant meets; ascending.
std::optional<Sum> bits_of(const Sum& s) {
  if (s.constant < 0) return std::nullopt;
  Sum out{s.constant, {}};
  int64_t taken = s.constant;
  for (const Piece& p : s.pieces) {
    if (!power_of_two(p.weight) || !power_of_two(p.extent) || p.turn != 0) return std::nullopt;
    for (int64_t bit = 1; bit < p.extent; bit *= 2) {
      if ((taken & p.weight * bit) != 0) return std::nullopt;
      taken |= p.weight * bit;
      out.pieces.push_back({p.dim, p.divisor * bit, 2, p.weight * bit, p.mirrored, 0});
    }
  }
  return out;
}

// What stands at a bit: 0, 1, or a digit of one bit.
struct Bit {
  int64_t constant = 0;
  std::optional<Piece> digit;
};

Bit bit_at(const Sum& bits, int64_t weight) {
  for (const Piece& p : bits.pieces)
    if (p.weight == weight) return {0, p};
  return {(bits.constant & weight) != 0 ? 1 : 0, std::nullopt};
}

// Nothing for two digits, unless they are one or each other's opposite.
std::optional<Bit> combined(ExprOp op, Bit a, Bit b) {
  if (!a.digit) std::swap(a, b);
  if (a.digit && b.digit) {
    if (a.digit->dim != b.digit->dim || a.digit->divisor != b.digit->divisor) return std::nullopt;
    const bool same = a.digit->mirrored == b.digit->mirrored;
    if (op == ExprOp::bit_xor) return Bit{same ? 0 : 1, std::nullopt};
    return same ? a : Bit{op == ExprOp::bit_or ? 1 : 0, std::nullopt};
  }
  if (!a.digit) {
    const int64_t x = a.constant, y = b.constant;
    return Bit{op == ExprOp::bit_and ? x & y : op == ExprOp::bit_or ? x | y : x ^ y, std::nullopt};
  }
  if (b.constant == (op == ExprOp::bit_and ? 1 : 0)) return a;
  if (op != ExprOp::bit_xor) return b;
  a.digit->mirrored = !a.digit->mirrored;
  return a;
}

std::optional<Sum> bit_by_bit(ExprOp op, const Sum& a, const Sum& b) {
  if (op == ExprOp::bit_and && b.pieces.empty() && power_of_two(b.constant + 1))
    return remainder(a, b.constant + 1);
  const auto x = bits_of(a), y = bits_of(b);
  if (!x || !y) return std::nullopt;
  Sum out;
  for (int64_t weight = 1; weight <= std::max(a.most(), b.most()); weight *= 2) {
    const auto bit = combined(op, bit_at(*x, weight), bit_at(*y, weight));
    if (!bit) return std::nullopt;
    out.constant += bit->constant * weight;
    if (bit->digit) out.pieces.push_back(*bit->digit);
  }
  return collected(std::move(out));
}

class DigitReader {
 public:
  DigitReader(const ir::Program& p, std::span<const ir::VarId> vars, std::span<const int64_t> extents)
      : p_(p), vars_(vars), extents_(extents) {}

  std::optional<Sum> read(ExprId id) {
    if (++nodes_ > kMaxNodes) return std::nullopt;
    const ExprNode n = p_.exprs[id];
    auto sum = value(n);
    if (!sum || !in_bounds(*sum) || !holds(n.type, *sum)) return std::nullopt;
    return sum;
  }

 private:
  // Arithmetic of the type wraps beyond.
  static bool holds(ir::DType type, const Sum& s) {
    if (type == ir::DType::i64) return true;
    if (!ir::is_integer(type)) return false;
    const bool is_signed = ir::dtype_kind(type) == ir::DTypeKind::signed_int;
    const int bits = ir::dtype_bits(type) - (is_signed ? 1 : 0);
    const int64_t most = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
    return s.constant >= (is_signed ? -most - 1 : 0) && s.most() <= most;
  }

  std::optional<Sum> value(const ExprNode& n) {
    switch (n.op) {
      case ExprOp::const_int:
        return Sum{n.imm, {}};
      case ExprOp::var: {
        const auto it = std::find(vars_.begin(), vars_.end(), n.var());
        if (it == vars_.end()) return std::nullopt;
        const auto dim = static_cast<int>(it - vars_.begin());
        const int64_t extent = extents_[static_cast<size_t>(dim)];
        if (extent < 1) return std::nullopt;
        return extent > 1 ? Sum{0, {{dim, 1, extent, 1, false, 0}}} : Sum{};
      }
      case ExprOp::cast:
        return read(n.a);
      case ExprOp::neg:
      case ExprOp::bit_not: {
        auto a = read(n.a);
        auto negative = a ? negated(std::move(*a)) : std::nullopt;
        if (negative && n.op == ExprOp::bit_not) --negative->constant;
        return negative;
      }
      default:
        return ir::expr_arity(n.op) == 2 ? binary(n) : std::nullopt;
    }
  }

  std::optional<Sum> binary(const ExprNode& n) {
    switch (n.op) {
      case ExprOp::add:
      case ExprOp::sub:
      case ExprOp::mul:
      case ExprOp::floordiv:
      case ExprOp::floormod:
      case ExprOp::shl:
      case ExprOp::shr:
      case ExprOp::bit_and:
      case ExprOp::bit_or:
      case ExprOp::bit_xor:
        break;
      default:
        return std::nullopt;
    }
    auto a = read(n.a), b = a ? read(n.b) : std::nullopt;
    if (!b) return std::nullopt;
    if (n.op == ExprOp::add) return added(std::move(*a), *b);
    if (n.op == ExprOp::sub) {
      const auto negative = negated(std::move(*b));
      return negative ? added(std::move(*a), *negative) : std::nullopt;
    }
    const bool of_bits = n.op == ExprOp::bit_and || n.op == ExprOp::bit_or || n.op == ExprOp::bit_xor;
    if ((of_bits || n.op == ExprOp::mul) && a->pieces.empty()) std::swap(a, b);
    if (of_bits) return bit_by_bit(n.op, *a, *b);
    return b->pieces.empty() ? by_constant(n, *a, b->constant) : std::nullopt;
  }

  static std::optional<Sum> by_constant(const ExprNode& n, const Sum& a, int64_t b) {
    const bool shifts = b >= 0 && b < std::min(ir::dtype_bits(n.type), 62);
    switch (n.op) {
      case ExprOp::mul:
        return scaled(a, b);
      case ExprOp::floordiv:
        return quotient(a, b);
      case ExprOp::floormod:
        return remainder(a, b);
      case ExprOp::shl:
        return shifts ? scaled(a, int64_t{1} << b) : std::nullopt;
      case ExprOp::shr:
        return shifts ? quotient(a, int64_t{1} << b) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  const ir::Program& p_;
  std::span<const ir::VarId> vars_;
  std::span<const int64_t> extents_;
  int nodes_ = 0;
};

}  // namespace

std::optional<IndexDigits> index_digits(const ir::Program& p, ExprId index, std::span<const ir::VarId> vars,
                                        std::span<const int64_t> extents) {
  auto sum = DigitReader(p, vars, extents).read(index);
  if (!sum || sum->constant < 0) return std::nullopt;
  IndexDigits out{sum->constant, {}};
  std::sort(sum->pieces.begin(), sum->pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.weight, a.dim, a.divisor) < std::tie(b.weight, b.dim, b.divisor);
  });
  for (const Piece& q : sum->pieces) {
    const bool top = q.divisor * q.extent == extents[static_cast<size_t>(q.dim)];
    const bool permuted = q.mirrored || q.turn != 0;
    out.terms.push_back({q.dim, q.divisor, top && !permuted ? 0 : q.extent, q.weight, q.mirrored, q.turn});
  }
  return out;
}

}  // namespace tilegen::ops
