#include "ir/compress.h"

#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

// How magnitudes are compared: bits of floats, whose order is that of values; integers as they are.
DType magnitude_type(DType t) {
  if (is_float(t)) return dtype_bits(t) == 64 ? DType::u64 : DType::u32;
  return DType::i32;
}

bool is_compressed(DType t) {
  return is_float(t) ? dtype_bits(t) >= 8 && t != DType::e8m0 : t == DType::i8 || t == DType::u8;
}

class Compressor {
 public:
  Compressor(Program& p, const Compression& what, const SourceLocation& location, Block& block)
      : p_(p),
        e_(p.exprs),
        what_(what),
        type_(p.buffer(what.src.buffer).type),
        word_(p.buffer(what.meta.buffer).type),
        loops_(p, location, block) {}

  std::optional<Diagnostic> check(const Limits& limits) const;

  void run() {
    Extents groups = what_.src.extents;
    groups.back() /= kSparseGroup;
    const BufferId places = loops_.tile("places", MemScope::shared, DType::u8, groups);
    keep_values(places, groups);
    write_words(places);
  }

 private:
  ExprId number(int64_t v, DType t) { return e_.const_int(v, t); }
  static Exprs with_last(Exprs point, ExprId last) {
    point.back() = last;
    return point;
  }
  ExprId magnitude(ExprId element);
  ExprId places_of(const Exprs& magnitudes);
  void keep_values(BufferId places, const Extents& groups);
  void write_words(BufferId places);

  Program& p_;
  ExprPool& e_;
  const Compression& what_;
  const DType type_, word_;
  PointLoops loops_;
};

ExprId Compressor::magnitude(ExprId element) {
  const DType t = magnitude_type(type_);
  if (t == DType::i32) return e_.unary(ExprOp::abs, e_.cast(DType::i32, element));
  const bool wide = t == DType::u64;
  const DType number_type = wide ? DType::f64 : DType::f32;
  const ExprId value = type_ == number_type ? element : e_.cast(number_type, element);
  // All NaNs are one: conversions keep their bits on some targets only.
  constexpr int64_t kWideMagnitude = INT64_MAX, kWideInfinity = 0x7ff0000000000000;
  constexpr int64_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  const ExprId bits =
      e_.binary(ExprOp::bit_and, e_.bitcast(t, value), number(wide ? kWideMagnitude : kMagnitude, t));
  return e_.binary(ExprOp::min, bits, number((wide ? kWideInfinity : kInfinity) + 1, t));
}

// Four bits: of four in a total order, by magnitude and place, the two greatest.
ExprId Compressor::places_of(const Exprs& magnitudes) {
  const auto in_front = [&](size_t a, size_t b) {
    return e_.binary(a < b ? ExprOp::le : ExprOp::lt, magnitudes[b], magnitudes[a]);
  };
  const auto kept = [&](size_t a) {
    Exprs c;
    for (size_t b = 0; b < magnitudes.size(); ++b)
      if (b != a) c.push_back(in_front(a, b));
    return e_.binary(ExprOp::logical_or, e_.binary(ExprOp::logical_and, c[0], c[1]),
                     e_.binary(ExprOp::logical_and, c[2], e_.binary(ExprOp::logical_or, c[0], c[1])));
  };
  const auto place = [&](int64_t v) { return number(v, DType::i32); };
  const ExprId first = e_.select(kept(0), place(0), e_.select(kept(1), place(1), place(2)));
  const ExprId second =
      e_.select(kept(3), place(3 << kSparsePlaceBits),
                e_.select(kept(2), place(2 << kSparsePlaceBits), place(1 << kSparsePlaceBits)));
  return e_.binary(ExprOp::bit_or, first, second);
}

void Compressor::keep_values(BufferId places, const Extents& groups) {
  Tiles magnitudes;
  for (int64_t i = 0; i < kSparseGroup; ++i)
    magnitudes.push_back(loops_.tile("magnitude", MemScope::fragment, magnitude_type(type_), groups));
  const BufferId own = loops_.tile("own_places", MemScope::fragment, DType::i32, groups);
  const Exprs point = loops_.begin(groups);
  const ExprId group = point.back();
  Exprs elements;
  for (int64_t i = 0; i < kSparseGroup; ++i) {
    const Exprs at = with_last(point, e_.add(e_.mul(group, kSparseGroup), i));
    elements.push_back(loops_.load(what_.src.buffer, element_of(e_, what_.src, at)));
    loops_.store(magnitudes[static_cast<size_t>(i)], point, magnitude(elements.back()));
  }
  loops_.store(own, point, places_of(loops_.load(magnitudes, point)));
  for (int64_t v = 0; v < kSparseKept; ++v) {
    const ExprId shifted =
        e_.binary(ExprOp::shr, loops_.load(own, point), number(v * kSparsePlaceBits, DType::i32));
    const ExprId place = e_.binary(ExprOp::bit_and, shifted, number(kSparseGroup - 1, DType::i32));
    const auto is = [&](int64_t i) { return e_.binary(ExprOp::eq, place, number(i, DType::i32)); };
    // The first is one of 0, 1, 2, the second of 1, 2, 3.
    const auto at = [&](int64_t i) { return elements[static_cast<size_t>(v + i)]; };
    const ExprId value = e_.select(is(v), at(0), e_.select(is(v + 1), at(1), at(2)));
    const Exprs to = with_last(point, e_.add(e_.mul(group, kSparseKept), v));
    loops_.store(what_.values.buffer, element_of(e_, what_.values, to), value);
  }
  // Last: planning makes a loop of its own of it, which shares no element with the others.
  loops_.store(places, point, e_.cast(DType::u8, loops_.load(own, point)));
}

void Compressor::write_words(BufferId places) {
  const Exprs point = loops_.begin(what_.meta.extents);
  const int64_t groups = dtype_bits(word_) / kSparseGroup;
  ExprId word;
  for (int64_t g = 0; g < groups; ++g) {
    const Exprs at = with_last(point, e_.add(e_.mul(point.back(), groups), g));
    ExprId part = loops_.load(places, at);
    if (word_ != DType::u8) part = e_.cast(word_, part);
    if (g > 0) part = e_.binary(ExprOp::shl, part, number(g * kSparseGroup, word_));
    word = g == 0 ? part : e_.binary(ExprOp::bit_or, word, part);
  }
  loops_.store(what_.meta.buffer, element_of(e_, what_.meta, point), word);
}

std::optional<Diagnostic> Compressor::check(const Limits& limits) const {
  const std::string from = "compress of " + region_text(p_, what_.src);
  for (const Region* r : {&what_.src, &what_.values, &what_.meta})
    if (p_.buffer(r->buffer).scope == MemScope::global)
      return diagnostic(DiagCode::scope_not_allowed, region_text(p_, *r) + ": expected an on-chip buffer",
                        "compress tiles and copy from or to global memory");
  if (what_.values.buffer == what_.src.buffer || what_.meta.buffer == what_.src.buffer ||
      what_.meta.buffer == what_.values.buffer)
    return diagnostic(DiagCode::parallel_race, from + ": two of its three tiles are one",
                      "use a tile of its own for each");
  if (!is_compressed(type_))
    return diagnostic(DiagCode::dtype_mismatch, from + ": there is no sparse product of " + dtype_name(type_),
                      "compress floats of 8 bits or more, i8 or u8");
  if (p_.buffer(what_.values.buffer).type != type_)
    return diagnostic(DiagCode::dtype_mismatch,
                      from + ", which is " + dtype_name(type_) + ", into " +
                          p_.buffer(what_.values.buffer).name + ", which is " +
                          dtype_name(p_.buffer(what_.values.buffer).type),
                      "use one type");
  if (!is_sparse_word(word_))
    return diagnostic(DiagCode::dtype_mismatch,
                      "the places that compress tells are words of u8, u16 or u32, " +
                          p_.buffer(what_.meta.buffer).name + " is " + dtype_name(word_),
                      "use a tile of u16");
  if (what_.src.extents.empty())
    return diagnostic(DiagCode::rank_mismatch, from + ": a single element, expected rows of groups of four",
                      "compress a tile with an axis");
  const int64_t bits = dtype_bits(word_), k = what_.src.extents.back();
  if (k % bits != 0)
    return diagnostic(DiagCode::bad_shape,
                      from + ": " + std::to_string(k) + " elements in a row, no multiple of the " +
                          std::to_string(bits) + " that a word of " + dtype_name(word_) + " tells of",
                      "use smaller words, or a row filled with zeros");
  Extents values = what_.src.extents, words = values;
  values.back() = k / kSparseGroup * kSparseKept;
  words.back() = k / bits;
  for (const auto& [r, wanted] : {std::pair(&what_.values, &values), std::pair(&what_.meta, &words)})
    if (r->extents != *wanted)
      return diagnostic(DiagCode::shape_mismatch, region_text(p_, *r) + " does not fit " + from,
                        "it has the extents " + extents_text(*wanted));
  return refuse_beyond_limits(p_, {.statements = 12, .buffers = 6, .nodes = 512}, limits, from);
}

}  // namespace

std::optional<Diagnostic> add_compression(Program& p, const Compression& what, const SourceLocation& location,
                                          Block& block, const Limits& limits) {
  Compressor compressor(p, what, location, block);
  if (auto error = compressor.check(limits)) return error;
  compressor.run();
  return std::nullopt;
}

}  // namespace tilegen::ir
