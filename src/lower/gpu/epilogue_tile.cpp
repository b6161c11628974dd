// Fragments of matrix sums stored by the copy engine: pass by pass of columns every warpgroup writes the rows
// it holds to a staged tile of its own, in the engine's swizzle, and one of its threads stores the boxes. The
// engine reads the stage while the warpgroup goes on; before the stage is written again that thread waits,
// and the others meet it: in front of the store, or at an earlier one's meeting. Where threads have read the
// tensor all warpgroups meet before the first box: it may fall on what another one still reads.
#include <algorithm>

#include "analysis/epilogue_tile.h"
#include "analysis/tensor_copy.h"
#include "layout/tensor_tile.h"
#include "lower/addressing.h"
#include "lower/gpu/exchange.h"
#include "lower/gpu/registers.h"
#include "lower/gpu/tensor.h"
#include "lower/gpu/warpgroups.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kUnit = layout::kSwizzleUnit;

class StagedStore {
 public:
  StagedStore(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
              const analysis::EpilogueTile& stage, FragmentView from, const ir::TileOp& tile_op,
              thread::Block& out)
      : k_(k),
        e_(k.out.exprs),
        op_(op),
        plan_(plan),
        stage_(stage),
        from_(from),
        tile_op_(tile_op),
        out_(out) {
    pass_columns_ = plan.epilogue_columns > 0 ? plan.epilogue_columns : stage.columns;
    const ir::Buffer& tensor = k.in.program.buffer(tile_op.operands[1].buffer);
    type_ = tensor.type;
    bytes_ = ir::dtype_bytes(type_);
    unit_ = kUnit / bytes_;
    part_elements_ = stage.rows * pass_columns_;
    atom_rows_ = k.in.target.warpgroup_rows();
  }

  void run() {
    const int64_t warpgroups = stage_.warpgroups_m * stage_.warpgroups_n;
    memory_ = planned_memory(k_, plan::Storage::stage, op_.path, type_, warpgroups * part_elements_);
    if (k_.failed()) return;
    thread::Memory& m = k_.out.memories[memory_.value];
    m.alignment = k_.in.target.tensor_tile_alignment;
    const ExprId tid = e_.var(k_.out.thread_var);
    group_ = k_.simplified(e_.floordiv(tid, e_.const_int(k_.in.target.warpgroup)));
    group_m_ = k_.simplified(e_.floordiv(group_, e_.const_int(stage_.warpgroups_n)));
    group_n_ = k_.simplified(e_.floormod(group_, e_.const_int(stage_.warpgroups_n)));
    lane_ = k_.simplified(e_.floormod(tid, e_.const_int(k_.in.target.warp)));
    warp_ = k_.simplified(e_.floormod(e_.floordiv(tid, e_.const_int(k_.in.target.warp)),
                                      e_.const_int(k_.in.target.warpgroup / k_.in.target.warp)));
    place_tensor();
    // For the order of what computes the values alone: its products are awaited.
    if (plan_.computed_first.value_or(false))
      emit(thread::WarpgroupWait{k_.role.products_pending, {from_.memory}});
    for (int64_t column = 0; column < stage_.columns && !k_.failed(); column += pass_columns_) pass(column);
  }

 private:
  template <class Node>
  void emit(Node node) {
    out_.push_back(k_.out.add(std::move(node), op_.path));
  }
  // By what has been lowered.
  bool tensor_is_read() const {
    const MemoryId tensor = k_.names.globals.at(tile_op_.operands[1].buffer);
    for (size_t i = 0; i < e_.size(); ++i)
      if (const ir::ExprNode& n = e_[ExprId(i)]; n.op == ir::ExprOp::load && n.object == tensor) return true;
    return std::any_of(k_.out.stmts.begin(), k_.out.stmts.end(), [&](const thread::Stmt& s) {
      const auto* copy = std::get_if<thread::AsyncCopy>(&s.node);
      return copy && copy->src == tensor;
    });
  }
  ExprId number(int64_t v) { return e_.const_int(v); }

  void place_tensor() {
    const ir::Region& to = tile_op_.operands[1];
    dims_ = *analysis::tensor_copy_dims(k_.in.program, tile_op_, nullptr);  // seen by epilogue_tile
    map_ = tensor_map(k_, to.buffer, box_of(to, dims_, stage_.rows, stage_.inner), stage_.swizzle);
    for (size_t d = 0; d < to.offsets.size(); ++d)
      origin_.push_back(tensor_coordinate(k_.ctx, lower_expr(k_, to.offsets[d]),
                                          lower_expr(k_, k_.in.program.buffer(to.buffer).shape[d])));
  }

  void await_stores() {
    thread::Block wait = {k_.out.add(thread::BulkWait{0, true}, op_.path)};
    out_.push_back(only_first_of_warpgroup(k_, std::move(wait), op_.path));
  }

  void pass(int64_t column) {
    const bool in_turn = k_.role.stages_in_turn;
    if (!in_turn) {
      await_stores();
      warpgroup_barrier(k_, out_, op_.path);
    }
    if (stage_.transposed)
      write_transposed(column);
    else
      for (int64_t row = 0; row < stage_.rows; row += atom_rows_)
        bytes_ == 2 ? write_matrices(row, column) : write_elements(row, column);
    emit(thread::ProxyFence{});
    if (in_turn) await_stores();
    if (column == 0 && stage_.warpgroups_m * stage_.warpgroups_n > 1 && tensor_is_read())
      role_barrier(k_, out_, op_.path);
    else
      warpgroup_barrier(k_, out_, op_.path);
    thread::Block store;
    for (int64_t box = 0; box < pass_columns_ / stage_.inner; ++box) {
      thread::TensorStore s;
      s.map = map_;
      s.coordinates = coordinates(column + box * stage_.inner);
      s.src = memory_;
      s.reduction = ops::layout_rule(tile_op_).atomic;
      s.src_index =
          k_.simplified(e_.add(e_.mul(group_, part_elements_), number(box * stage_.rows * stage_.inner)));
      store.push_back(k_.out.add(std::move(s), op_.path));
    }
    store.push_back(k_.out.add(thread::BulkCommit{}, op_.path));
    out_.push_back(only_first_of_warpgroup(k_, std::move(store), op_.path));
  }

  std::vector<ExprId> coordinates(int64_t column) {
    return box_coordinates(k_, origin_, dims_, e_.mul(group_m_, stage_.rows),
                           e_.add(e_.mul(group_n_, stage_.columns), number(column)));
  }

  ExprId held_register(int64_t row, int64_t column) {
    return number(first_register(from_, dims_.tile_outer, dims_.tile_inner, row, column));
  }
  ExprId held_value(int64_t row, int64_t column, int64_t i) {
    const ExprId at = e_.add(held_register(row, column), i);
    const ir::DType type = k_.out.memory(from_.memory).type;
    return e_.cast(type_, e_.load(from_.memory, type, std::vector<ExprId>{at}));
  }

  // First element of 16-byte unit `unit` (an expression below `units`) in row `row` of the stage's box `box`.
  ExprId place(int64_t box, ExprId row, ExprId unit) { return place(number(box), row, unit); }
  ExprId place(ExprId box, ExprId row, ExprId unit) {
    const int64_t units = stage_.inner / unit_;  // of a row
    const ExprId linear = k_.simplified(e_.add(e_.mul(row, units), unit));
    const int64_t mask = stage_.swizzle / kUnit - 1;
    ExprId at = linear;
    if (mask > 0) {
      // Bits 4.. of the byte address are XORed with bits 7..: units with groups of 8 units.
      const ExprId with =
          e_.binary(ir::ExprOp::bit_and, e_.binary(ir::ExprOp::shr, linear, number(3)), number(mask));
      at = e_.binary(ir::ExprOp::bit_xor, linear, with);
    }
    const ExprId base = e_.add(e_.mul(group_, part_elements_), e_.mul(box, stage_.rows * stage_.inner));
    return e_.add(k_.simplified(base), e_.mul(at, unit_));
  }

  // 16 columns of 64 rows at a time: four 8x8 matrices a warp.
  void write_matrices(int64_t row, int64_t column) {
    const ExprId own_row = e_.add(e_.add(e_.mul(warp_, 16), e_.floormod(lane_, number(16))), row);
    const int64_t pass_begin = column;
    for (int64_t c = 0; c < pass_columns_; c += 16) {
      const int64_t left = std::min<int64_t>(16, pass_columns_ - c);
      const int matrices = left == 16 ? 4 : 2;
      const MemoryId packed = add_registers(k_, "packed", type_, int64_t{2} * matrices);
      for (int64_t i = 0; i < 2 * matrices; ++i)
        emit(thread::Store{packed, number(i), held_value(row, pass_begin + c + i / 4 * 8, i % 4), ExprId(),
                           false, ExprId()});
      const int64_t box = c / stage_.inner, within = c % stage_.inner;
      ExprId unit = number(within / unit_);
      if (matrices == 4) unit = e_.add(unit, e_.floordiv(lane_, number(16)));
      emit(thread::StoreMatrix{memory_, place(box, k_.simplified(own_row), k_.simplified(unit)), packed,
                               number(0), matrices, false});
    }
  }

  // A block of the instructions' rows, which are columns here, after the other.
  void write_transposed(int64_t column) {
    for (int64_t c = 0; c < pass_columns_; c += atom_rows_)
      for (int64_t row = 0; row < stage_.rows; row += bytes_ == 2 ? 16 : 8)
        bytes_ == 2 ? write_matrices_transposed(row, column, c) : write_elements_transposed(row, column, c);
  }

  // The element in row `row` and the warp's column `at` of the block that begins at column c of the pass.
  ExprId place_in_block(int64_t c, ExprId row, ExprId at) {
    const ExprId column = e_.add(e_.add(e_.mul(warp_, 16), at), number(c));
    const ExprId box = k_.simplified(e_.floordiv(column, number(stage_.inner))),
                 within = e_.floormod(column, number(stage_.inner)),
                 unit = k_.simplified(e_.floordiv(within, number(unit_)));
    return e_.add(place(box, k_.simplified(row), unit), k_.simplified(e_.floormod(column, number(unit_))));
  }

  // 16 rows of the warp's 16 columns: four 8x8 matrices, turned as they are stored.
  void write_matrices_transposed(int64_t row, int64_t column, int64_t c) {
    const int matrices = stage_.rows - row >= 16 ? 4 : 2;
    const MemoryId packed = add_registers(k_, "packed", type_, int64_t{2} * matrices);
    for (int64_t i = 0; i < 2 * matrices; ++i)
      emit(thread::Store{packed, number(i), held_value(row + i / 4 * 8, column + c, i % 4), ExprId(), false,
                         ExprId()});
    ExprId own_row = e_.add(e_.floormod(lane_, number(8)), number(row));
    if (matrices == 4) own_row = e_.add(own_row, e_.mul(e_.floordiv(lane_, number(16)), 8));
    const ExprId half = e_.floormod(e_.floordiv(lane_, number(8)), number(2));
    emit(thread::StoreMatrix{memory_, place_in_block(c, own_row, e_.mul(half, 8)), packed, number(0),
                             matrices, true});
  }

  // A lane holds two rows of a column, and of the column 8 further on.
  void write_elements_transposed(int64_t row, int64_t column, int64_t c) {
    for (int64_t i = 0; i < 4; ++i) {
      const ExprId at = e_.add(e_.floordiv(lane_, number(4)), number(i / 2 * 8));
      const ExprId own_row = e_.add(e_.mul(e_.floormod(lane_, number(4)), 2), number(row + i % 2));
      emit(thread::Store{memory_, place_in_block(c, own_row, at), held_value(row, column + c, i), ExprId(),
                         false, ExprId()});
    }
  }

  // Two neighbours at a time, as a lane holds them. Of 4-byte elements 16 lanes have two units of 16 bytes in
  // each of four rows, and the swizzle puts those of rows 2r and 2r + 1 into the same banks: odd rows store
  // the columns half a row of the box away first.
  void write_elements(int64_t row, int64_t column) {
    const int64_t apart =
        bytes_ == 4 && stage_.swizzle == std::ranges::max(layout::kBoxSwizzles) ? stage_.inner / 2 : 0;
    for (int64_t c = 0; c < pass_columns_; c += 8)
      for (int64_t half = 0; half < 2; ++half) write_pair(row, column, c, 8 * half, apart);
  }

  void write_pair(int64_t row, int64_t column, int64_t c, int64_t more_rows, int64_t apart) {
    const ExprId quarter = e_.floormod(lane_, number(4)), lane_row = e_.floordiv(lane_, number(4));
    const ExprId own_row = k_.simplified(e_.add(e_.add(e_.mul(warp_, 16), lane_row), row + more_rows));
    const int64_t box = c / stage_.inner, within = c % stage_.inner;
    const int64_t other = apart == 0 ? 0 : within < apart ? apart : -apart;  // columns, for odd rows
    const ExprId odd = e_.floormod(lane_row, number(2));
    // Element 2 * quarter of the 8 columns: its unit and its place in it.
    const ExprId element =
        k_.simplified(e_.add(e_.add(e_.mul(quarter, 2), within), e_.mul(odd, number(other))));
    const ExprId first = e_.add(place(box, own_row, k_.simplified(e_.floordiv(element, number(unit_)))),
                                k_.simplified(e_.floormod(element, number(unit_))));
    const VarId lane = k_.out.add_var("lane", ir::VarKind::loop);
    k_.walk.fixed_vars.insert(lane);
    const ir::DType type = k_.out.memory(from_.memory).type;
    const auto held = [&](int64_t at) {
      const ExprId reg = e_.add(e_.add(held_register(row, at), more_rows / 4), e_.var(lane));
      return e_.cast(type_, e_.load(from_.memory, type, std::vector<ExprId>{reg}));
    };
    ExprId value = held(column + c);
    if (other != 0) value = e_.select(e_.lt(number(0), odd), held(column + c + other), value);
    thread::Loop pair{lane, number(2), thread::LoopForm::vectorized, {}};
    pair.body = {k_.out.add(
        thread::Store{memory_, e_.add(first, e_.var(lane)), value, ExprId(), false, ExprId()}, op_.path)};
    emit(std::move(pair));
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const analysis::KernelOp& op_;
  const plan::OpPlan& plan_;
  const analysis::EpilogueTile& stage_;
  const FragmentView from_;
  const ir::TileOp& tile_op_;
  thread::Block& out_;
  ir::DType type_ = ir::DType::none;
  int64_t bytes_ = 2, unit_ = 8, pass_columns_ = 0, part_elements_ = 0;
  int64_t atom_rows_ = 0;  // of an instruction
  MemoryId memory_;
  ExprId group_, group_m_, group_n_, lane_, warp_;
  analysis::TensorCopyDims dims_;
  int map_ = -1;
  std::vector<ExprId> origin_;
};

}  // namespace

// To a tensor; false when the copy is another.
bool OpLowering::store_in_bulk(int dst) {
  if (dst != 1 || !k_.in.target.tensor_copy ||
      k_.in.program.buffer(tile_op_->operands[1].buffer).scope != ir::MemScope::global)
    return false;
  if (!in_thread_registers(k_, tile_op_->operands[0].buffer)) {
    store_tile(k_, op_, out_);
    return true;
  }
  const ValueId value = value_of(k_, tile_op_->operands[0].buffer);
  if (!value.valid()) return true;  // reported
  const FragmentView from = fragment_view(k_, value);
  std::string reason;
  const auto stage = analysis::epilogue_tile(k_.in.program, op_, *from.fragment, k_.in.target, &reason);
  if (!stage) {
    k_.fail(DiagCode::schedule_illegal, op_.path, "the copy engine cannot store the fragment: " + reason,
            "leave the op's engine out of the schedule to have it planned");
    return true;
  }
  if (!k_.facts) StagedStore(k_, op_, plan_, *stage, from, *tile_op_, out_).run();
  return true;
}

}  // namespace tilegen::lower
