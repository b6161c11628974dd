// Integers of shared memory. Bytes and halves of words that neighbouring lanes read: each lane takes its own
// out of words that they all read, 16 bytes at a time where these lie beside each other. A load for each
// would be as many instructions as elements. Words: what the loops being written out read several times is
// loaded once, from a place whose constant stands apart, so that loads beside each other become one.
#include <algorithm>
#include <numeric>

#include "codegen/llvm/gpu/address_sums.h"
#include "codegen/llvm/gpu/gpu_emitter.h"
#include "support/checked.h"

namespace tilegen::codegen {

using arith::Affine;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using llvm::Value;
using thread::MemoryId;

namespace {

constexpr int64_t kWord = 4, kWide = 16;  // bytes

}  // namespace

// An integer that the loops being written out make a number.
std::optional<int64_t> GpuEmitter::known_value(ExprId e) {
  return facts_.value_where(e, [&](ir::VarId v) -> std::optional<int64_t> {
    const auto* c = llvm::dyn_cast_if_present<llvm::ConstantInt>(bound_[v.value].value);
    return c ? std::optional(c->getSExtValue()) : std::nullopt;
  });
}

bool GpuEmitter::stands_unrolled(ExprId e) {
  return std::ranges::none_of(unrolled_, [&](ir::VarId v) { return facts_.depends_on(e, v); });
}

// (c + byte) ^ y, where y is a multiple of more than c's lower digits and the byte is:
// (c's upper digits ^ y) + the rest.
bool GpuEmitter::add_mixed(ExprId mixed, WordPlace& place) {
  const ExprNode mix = exprs_[mixed];
  for (const auto& [x, y] : {std::pair(mix.a, mix.b), std::pair(mix.b, mix.a)}) {
    const Affine form = facts_.affine(x), other = facts_.affine(y);
    const int64_t divisor = facts_.divisor(other), unit = divisor & -divisor;
    WordPlace inner{.each = place.each};
    if (unit < place.each || !stands_unrolled(y) || !add_terms(form, inner)) continue;
    const int64_t low = floor_mod(inner.constant, unit), high = inner.constant - low;
    if (!inner.key.empty() || (place.part && inner.part) || low + place.each > unit) continue;
    if (inner.part) place.part = inner.part, place.part_of = inner.part_of;
    place.constant += low;
    Emitted v = emit_expr(y);
    if (high != 0) v.value = b_.CreateXor(v.value, llvm::ConstantInt::getSigned(v.value->getType(), high));
    place.terms.push_back({v.value, 1, v.level, facts_.range(mixed)});
    place.key.insert(place.key.end(), {-1 - static_cast<int64_t>(y.value), high});
    place.divisor = std::gcd(place.divisor, std::gcd(unit, high));
    return true;
  }
  return false;
}

// False: lanes do not read one word together, or not in a way that is known.
bool GpuEmitter::add_terms(const Affine& form, WordPlace& place) {
  place.constant += form.constant;
  for (const auto& [atom, coefficient] : form.terms) {
    if (const auto known = known_value(atom)) {
      place.constant += *known * coefficient;
      continue;
    }
    if (exprs_[atom].op == ExprOp::bit_xor && coefficient == 1) {
      if (!add_mixed(atom, place)) return false;
      continue;
    }
    if (!stands_unrolled(atom)) return false;
    Affine one;
    one.terms.emplace(atom, coefficient);
    const int64_t divisor = facts_.divisor(one);
    const arith::Interval range = facts_.range(atom);
    const Emitted v = emit_expr(atom);
    if (divisor % place.each != 0) {
      if (place.part || coefficient != 1 || range.lo < 0 || range.hi >= place.each) return false;
      place.part = resized(v.value, 32, atom), place.part_of = atom;
      continue;
    }
    place.terms.push_back({v.value, coefficient, v.level, range});
    place.key.insert(place.key.end(), {static_cast<int64_t>(atom.value), coefficient});
    place.divisor = std::gcd(place.divisor, divisor);
  }
  return true;
}

Value* GpuEmitter::element_of_word(MemoryId memory, ExprId index) {
  const thread::Memory& m = program_.memory(memory);
  if (!words_stand_ || m.space != thread::Space::shared || lane_var_.valid() || !ir::is_integer(m.type) ||
      ir::dtype_bytes(m.type) > kWord)
    return nullptr;
  const int64_t size = ir::dtype_bytes(m.type);
  WordPlace at{.each = kWord / size};
  if (!add_terms(facts_.affine(index), at) || (at.each > 1 && !at.part)) return nullptr;
  const int64_t wide = at.part && at.divisor % (kWide / size) == 0 ? kWide : kWord;
  const int64_t constant = at.constant * size, first = floor_mod(constant, wide);
  if (m.alignment % wide != 0 || m.elements * size % wide != 0 || first % kWord != 0) return nullptr;
  at.key.insert(at.key.end(), {int64_t{memory.value}, int64_t{at.part_of.value}, constant - first});
  auto known = words_.find(at.key);
  if (known == words_.end()) {
    Place place{shared_, m.arena_offset + constant - first};
    for (Summand& term : at.terms) term.scale *= size;
    if (Value* sum = sum_narrow(b_, at.terms)) place.pointer = b_.CreateGEP(b_.getInt8Ty(), shared_, sum);
    Values words = load_words(place, m, wide, nullptr, LoadKind::plain);
    if (Value* byte = at.part) {
      byte = b_.CreateAnd(byte, static_cast<uint64_t>(at.each - 1));  // known to later stages, too
      if (size > 1) byte = b_.CreateShl(byte, 1);
      for (Value*& word : words) word = b_.CreateLShr(word, b_.CreateShl(byte, 3));
    }
    known = words_.emplace(at.key, std::move(words)).first;
  }
  Value* own = known->second[static_cast<size_t>(first / kWord)];  // the lane's part is its lowest
  return packing_.from_element_bits(
      m.type, b_.CreateTrunc(own, b_.getIntNTy(static_cast<unsigned>(ir::dtype_bits(m.type)))));
}

}  // namespace tilegen::codegen
