// Operands of warpgroup products that lie along m or n, and that the instructions read along k only: all
// warps copy the tile, transposed, to memory of the product's own.
//
// Bytes: two transposed matrix loads give a lane four k of two neighbouring rows, since the rows of a load
// may be any; a byte permutation parts them, and a matrix store writes rows of 16 k. Words of 4 bytes: 4 x 4
// of them in a thread's registers.
#include "lower/gpu/operand_transpose.h"

#include <algorithm>
#include <utility>

#include "analysis/gemm_shape.h"
#include "analysis/warpgroup_operand.h"
#include "ir/op_kinds.h"
#include "lower/addressing.h"
#include "lower/gpu/exchange.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

namespace {

class OperandTranspose {
 public:
  OperandTranspose(LoweringContext& k, const std::string& path, int index, ValueId value,
                   const analysis::MatrixDims& dims, const TransposedOperand& to, thread::Block& out)
      : k_(k),
        e_(k.out.exprs),
        path_(path),
        index_(index),
        value_(value),
        dims_(dims),
        to_(to),
        from_(k.names.values[value]),
        lies_(*k.in.schedule.values[value.index()].memory),
        out_(out) {}

  void run() {
    const ir::DType type = k_.out.memory(from_).type;
    block_ = analysis::transposed_block(ir::dtype_bytes(type));
    const ExprId tid = e_.var(k_.out.thread_var);
    const int64_t lanes = k_.in.target.warp;
    lane_ = k_.simplified(e_.floormod(tid, number(lanes)));
    const ExprId warp = k_.simplified(e_.floordiv(tid, number(lanes)));
    const int64_t warps = *k_.in.schedule.threads / lanes, along = to_.copy->rows / block_.rows;
    const int64_t blocks = along * (to_.copy->k / block_.k), whole = blocks / warps;
    const auto transpose = [&](int64_t begin, int64_t end) {
      std::vector<Place> places;
      for (int64_t t = begin; t < end; ++t) {
        const ExprId number_of = k_.simplified(e_.add(warp, number(t * warps)));
        places.push_back({k_.simplified(e_.mul(e_.floormod(number_of, number(along)), number(block_.rows))),
                          k_.simplified(e_.mul(e_.floordiv(number_of, number(along)), number(block_.k)))});
      }
      ir::dtype_bytes(type) == 1 ? transpose_bytes(places) : transpose_words(places, type);
    };
    for (int64_t begin = 0; begin < whole; begin += kTogether)
      transpose(begin, std::min(begin + kTogether, whole));
    if (blocks % warps == 0) return;
    // What is left is for the first warps.
    thread::Block all = std::exchange(out_, {});
    transpose(whole, whole + 1);
    const ExprId first = e_.lt(tid, number(lanes * (blocks - whole * warps)));
    all.push_back(k_.out.add(thread::Branch{first, std::exchange(out_, {}), {}}, path_));
    out_ = std::move(all);
  }

 private:
  static constexpr int64_t kTogether = 2;   // blocks whose loads are issued before the stores of the first
  static constexpr int64_t kElements = 16;  // elements of a block in a thread
  struct Place {
    ExprId row, k;  // of the block's first element
  };

  template <class Node>
  void emit(Node node) {
    out_.push_back(k_.out.add(std::move(node), path_));
  }
  ExprId number(int64_t v) { return e_.const_int(v); }
  std::vector<ExprId> at(const analysis::MatrixDims& dims, ExprId row, ExprId k) {
    return index_ == 0 ? dims.at(row, k, number(0)) : dims.at(k, row, number(0));
  }
  ExprId element(ExprId row, ExprId k) {
    const std::vector<ExprId> index = at(dims_, k_.simplified(row), k_.simplified(k));
    return in_slot(k_, value_, swizzled(k_, lies_, layout_index(k_, lies_, 0, index)));
  }
  ExprId copied_element(ExprId row, ExprId k) {
    const layout::Layout& l = to_.copy->layout;
    const std::vector<ExprId> index = at(to_.copy->dims, k_.simplified(row), k_.simplified(k));
    return e_.add(to_.begin, swizzled(k_, l, layout_index(k_, l, 0, index)));
  }

  void transpose_bytes(const std::vector<Place>& places) {
    const auto held = kElements * static_cast<int64_t>(places.size());
    const MemoryId lying = add_registers(k_, "lying", ir::DType::u8, held),
                   transposed = add_registers(k_, "transposed", ir::DType::u8, held);
    const ExprId matrix = k_.simplified(e_.floordiv(lane_, number(8))),
                 r = k_.simplified(e_.floormod(lane_, number(8)));
    const ExprId odd = e_.floormod(matrix, number(2)), upper = e_.floordiv(matrix, number(2));
    // Lane l receives of matrix 2b the k 4 * (l % 4) and the next, of matrix 2b + 1 the two after, of two
    // rows.
    const ExprId k_of_row =
        e_.add(e_.add(e_.mul(e_.floordiv(r, number(2)), 4), e_.floormod(r, number(2))), e_.mul(odd, 2));
    for (size_t p = 0; p < places.size(); ++p)
      emit(thread::LoadMatrix{
          lying, number(first(p)), from_,
          element(e_.add(places[p].row, e_.mul(upper, 16)), e_.add(places[p].k, k_of_row)), 4, true});
    for (size_t p = 0; p < places.size(); ++p)
      for (int64_t word = 0; word < 4; ++word)
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t source = first(p) + (word / 2 * 2 + k / 2) * 4 + k % 2 * 2 + word % 2;
          emit(thread::Store{transposed, number(first(p) + word * 4 + k),
                             e_.load(lying, ir::DType::u8, std::vector<ExprId>{number(source)}), ExprId(),
                             false, ExprId()});
        }
    const ExprId row = e_.add(e_.add(e_.mul(upper, 16), e_.mul(r, 2)), odd);
    for (size_t p = 0; p < places.size(); ++p)
      emit(thread::StoreMatrix{to_.memory, copied_element(e_.add(places[p].row, row), places[p].k),
                               transposed, number(first(p)), 4, false});
  }

  // Eight lanes read rows of four and two k, so that neither reads nor writes of all eight fall into few
  // banks.
  void transpose_words(const std::vector<Place>& places, ir::DType type) {
    const MemoryId words = add_registers(k_, "words", type, kElements * static_cast<int64_t>(places.size()));
    const ExprId row = e_.mul(e_.floormod(lane_, number(4)), 4);
    const ExprId of_eight = e_.floormod(e_.floordiv(lane_, number(4)), number(2));
    const ExprId k = e_.mul(e_.add(of_eight, e_.mul(e_.floordiv(lane_, number(8)), 2)), 4);
    const auto load = [&](MemoryId from, ExprId index) {
      return e_.load(from, type, std::vector<ExprId>{index});
    };
    for (size_t p = 0; p < places.size(); ++p)
      for (int64_t i = 0; i < 4; ++i) {
        const ExprId from = element(e_.add(places[p].row, row), e_.add(e_.add(places[p].k, k), i));
        wide([&](ExprId lane) {
          return thread::Store{
              words,   e_.add(lane, first(p) + i * 4), load(from_, e_.add(from, lane)), ExprId(), false,
              ExprId()};
        });
      }
    for (size_t p = 0; p < places.size(); ++p)
      for (int64_t j = 0; j < 4; ++j) {
        const ExprId to = copied_element(e_.add(e_.add(places[p].row, row), j), e_.add(places[p].k, k));
        wide([&](ExprId lane) {
          return thread::Store{
              to_.memory, e_.add(to, lane), load(words, e_.add(e_.mul(lane, 4), first(p) + j)), ExprId(),
              false,      ExprId()};
        });
      }
  }

  template <class Make>
  void wide(Make&& make) {
    const VarId lane = k_.out.add_var("lane", ir::VarKind::loop);
    k_.walk.fixed_vars.insert(lane);
    thread::Loop loop{lane, number(4), thread::LoopForm::vectorized, {}};
    loop.body = {k_.out.add(make(e_.var(lane)), path_)};
    emit(std::move(loop));
  }

  static int64_t first(size_t place) { return kElements * static_cast<int64_t>(place); }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const std::string& path_;
  const int index_;
  const ValueId value_;
  const analysis::MatrixDims dims_;
  const TransposedOperand& to_;
  const MemoryId from_;
  const layout::Layout& lies_;
  thread::Block& out_;
  analysis::TransposeTile block_;
  ExprId lane_;
};

}  // namespace

TransposedOperand transpose_operand(LoweringContext& k, const analysis::KernelOp& op,
                                    const ir::TileOp& tile_op, int index, const target::WarpgroupAtom& atom,
                                    int64_t part, thread::Block& out) {
  TransposedOperand transposed;
  const ir::Region& r = tile_op.operands[static_cast<size_t>(index)];
  const ValueId value = value_of(k, r.buffer);
  if (!value.valid() || !k.in.schedule.values[value.index()].memory) return transposed;
  const analysis::MatrixDims dims = analysis::matrix_dims(
      k.in.program, r, tile_op.flag(index == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b));
  if (!analysis::needs_k_major_copy(atom, dims, index)) return transposed;
  const ir::DType type = k.in.program.buffer(r.buffer).type;
  transposed.copy = analysis::k_major_copy(dims, index, ir::dtype_bytes(type), part);
  if (!transposed.copy) {
    k.fail(DiagCode::schedule_illegal, op.path,
           "'" + k.in.program.buffer(r.buffer).name + "' cannot be transposed for " + atom.name,
           "leave the op's engine out of the schedule to have it planned");
    return transposed;
  }
  const int64_t elements = transposed.copy->layout.output_extent(0);
  const std::pair key(op.stmt, index);
  auto found = k.forms.transposed.find(key);
  if (found == k.forms.transposed.end()) {
    const auto storage = index == 0 ? plan::Storage::operand_a : plan::Storage::operand_b;
    found = k.forms.transposed.emplace(key, planned_memory(k, storage, op.path, type, 2 * elements)).first;
    if (k.failed()) return transposed;
    thread::Memory& m = k.out.memories[found->second.value];
    m.alignment = k.in.target.tensor_tile_alignment;
    m.slots = 2;
  }
  transposed.memory = found->second;
  ir::ExprPool& e = k.out.exprs;
  const ExprId uses = k.role.iteration_counts.valid() ? k.role.iteration_counts : e.const_int(0);
  transposed.begin = k.simplified(e.mul(e.floormod(uses, e.const_int(2)), e.const_int(elements)));
  OperandTranspose(k, op.path, index, value, dims, transposed, out).run();
  return transposed;
}

}  // namespace tilegen::lower
