#include "lower/gpu/sparse_places.h"

#include "ir/compress.h"
#include "lower/addressing.h"
#include "lower/gpu/gemm_state.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

namespace {

enum : size_t { kPlaces = 3 };  // of the op's operands
constexpr int64_t kGroup = ir::kSparseGroup;

}  // namespace

ValueId SparsePlaces::words_of(LoweringContext& k, const ir::TileOp& op) {
  const ir::BufferId buffer = op.operands[kPlaces].buffer;
  const ValueId value = value_of(k, buffer);
  if (!value.valid() || k.in.schedule.values[value.index()].memory) return value;
  k.fail(DiagCode::schedule_illegal, k.at.op->path,
         "the schedule has '" + k.in.program.buffer(buffer).name + "' in registers, and lanes read its words",
         "leave the value out to have it in shared memory");
  return ValueId();
}

SparsePlaces::SparsePlaces(LoweringContext& k, const ir::TileOp& op, const layout::Fragment& places,
                           ValueId words, ExprId first_row, ExprId lane)
    : k_(k),
      e_(k.out.exprs),
      places_(places),
      value_(words),
      memory_(k.names.values[value_]),
      type_(k.in.program.buffer(op.operands[kPlaces].buffer).type),
      word_bits_(ir::dtype_bits(type_)),
      addresses_(addresses(op, first_row, lane)) {
  const RegisterPlaces at = register_places(places_);
  for (size_t r = 0; r < at.first.size(); ++r) {
    const bool goes_on = !runs_.empty() && runs_.back().row == at.first[r] &&
                         runs_.back().group + runs_.back().groups == at.second[r];
    if (goes_on)
      ++runs_.back().groups;
    else
      runs_.push_back({at.first[r], at.second[r], static_cast<int64_t>(r), 1});
  }
  mean_current_slot();
}

OperandAddresses SparsePlaces::addresses(const ir::TileOp& op, ExprId first_row, ExprId lane) {
  const ir::Region& r = op.operands[kPlaces];
  OperandAddresses::Place place;
  place.layout = &*k_.in.schedule.values[value_.index()].memory;
  place.dims = analysis::matrix_dims(k_.in.program, r, false);
  place.row0 = k_.simplified(lower_expr(k_, r.offsets[static_cast<size_t>(place.dims.row)]));
  place.k0 = k_.simplified(lower_expr(k_, r.offsets[static_cast<size_t>(place.dims.col)]));
  place.rows = r.extents[static_cast<size_t>(place.dims.row)];
  ExprId at[2] = {first_row, e_.const_int(0)};  // row, group
  for (const layout::Digit& d : places_.map().digits()) {
    if (d.output != layout::kThread || d.dim == layout::kReplica) continue;
    const ExprId digit = e_.floormod(e_.floordiv(lane, e_.const_int(d.stride)), e_.const_int(d.extent));
    at[d.dim] = e_.add(at[d.dim], e_.mul(digit, d.weight));
  }
  const ExprId bits = e_.mul(at[1], kGroup);
  in_word_ = e_.cast(ir::DType::u32, k_.simplified(e_.floormod(bits, e_.const_int(word_bits_))));
  return {k_, place, k_.simplified(at[0]), k_.simplified(e_.floordiv(bits, e_.const_int(word_bits_)))};
}

void SparsePlaces::mean_current_slot() { slot_ = in_slot(k_, value_, e_.const_int(0)); }

// A row has a bit for each element: four of a group of four.
ExprId SparsePlaces::bits_of(const Run& run, int64_t row, int64_t k) {
  const auto number = [&](int64_t v) { return e_.const_int(v, ir::DType::u32); };
  const int64_t first = k + run.group * kGroup, bits = run.groups * kGroup;
  ExprId all;
  for (int64_t bit = 0; bit < bits; bit += word_bits_) {
    const ExprId index = e_.add(addresses_.at(row + run.row, (first + bit) / word_bits_), slot_);
    ExprId word = e_.load(memory_, type_, std::vector<ExprId>{index});
    if (type_ != ir::DType::u32) word = e_.cast(ir::DType::u32, word);
    if (bits < word_bits_) {
      ExprId in_front = in_word_;  // and of steps before that are in the word, too
      if (first % word_bits_ != 0)
        in_front = e_.binary(ir::ExprOp::add, in_front, number(first % word_bits_));
      word = e_.binary(ir::ExprOp::shr, word, in_front);
      word = e_.binary(ir::ExprOp::bit_and, word, number((int64_t{1} << bits) - 1));
    }
    if (const int64_t to = run.first * kGroup + bit; to > 0)
      word = e_.binary(ir::ExprOp::shl, word, number(to));
    all = all.valid() ? e_.binary(ir::ExprOp::bit_or, all, word) : word;
  }
  return all;
}

ExprId SparsePlaces::word(int64_t row, int64_t k) {
  using enum ir::ExprOp;
  const auto number = [&](int64_t v) { return e_.const_int(v, ir::DType::u32); };
  ExprId word;
  for (const Run& run : runs_) {
    const ExprId bits = bits_of(run, row, k);
    word = word.valid() ? e_.binary(bit_or, word, bits) : bits;
  }
  constexpr int64_t kLowest = 0x11111111;  // bit of each group
  const ExprId differ = e_.binary(bit_xor, word, e_.binary(shr, word, number(ir::kSparsePlaceBits)));
  const ExprId any = e_.binary(bit_or, differ, e_.binary(shr, differ, number(1)));
  const ExprId equal = e_.binary(bit_xor, e_.binary(bit_and, any, number(kLowest)), number(kLowest));
  return e_.binary(bit_xor, word, e_.binary(shl, equal, number(ir::kSparsePlaceBits)));
}

}  // namespace tilegen::lower
