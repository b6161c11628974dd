// One op while it is lowered: what ops ask of lowering (ops::LowerSink), and the forms it gives them.
#pragma once

#include "lower/lowering_context.h"
#include "ops/layout_rule.h"
#include "ops/lower_sink.h"

namespace tilegen::lower {

class OpLowering final : public ops::LowerSink {
 public:
  OpLowering(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan, thread::Block& out)
      : k_(k), op_(op), plan_(plan), out_(out), tile_op_(k.in.program.as<ir::TileOp>(op.stmt)) {}

  void parallel_loop();  // element form that is no tile op

  ir::ExprPool& exprs() override { return k_.out.exprs; }
  ir::DType type(int operand) const override;
  ExprId load(int operand, std::span<const ExprId> point) override;
  ExprId value() override;
  void for_each_point(int operand, const PointValue& value) override;
  void update_each_point(int operand, ir::AtomicKind kind, const PointValue& value) override;
  void reduce(int src, int dst, ir::ReduceKind kind, int axis, bool accumulate) override;
  void scan(int src, int dst, const ops::Scan& scan) override;
  void contract(int a, int b, int c, bool clear) override;

 private:
  std::vector<ExprId> element_at(int operand, std::span<const ExprId> point) const;
  std::vector<int64_t> iteration_extents() const;
  // The nest around `emit`, or where facts or a version's condition are looked for, these.
  void emit_nest(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit);
  // buffer[indices] = value where `condition` holds and the point is no padding.
  void store_element(const Nest& nest, ir::BufferId buffer, std::span<const ExprId> indices, ExprId value,
                     ExprId condition, thread::Block& body);
  ExprId interior_condition();
  // The condition's value per vector lane, computed before the stores it guards may change what it reads.
  ExprId frozen_condition(const Nest& nest, ExprId condition, ExprId around, thread::Block& body);
  bool reads_what_is_written(ExprId condition) const;
  void contract_micro_kernel(int a, int b, int c, bool clear);
  void contract_loops(int a, int b, int c, bool clear);

  // gpu/element.cpp
  void emit_thread_nest(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit);
  void store_matrices(int operand);  // gpu/store_matrix.cpp
  void store_from_thread(const Nest& nest, ir::BufferId buffer, std::span<const ExprId> indices, ExprId value,
                         ExprId condition, thread::Block& body);
  bool reads_written(ExprId value);
  bool may_mask() const;
  bool moves_registers_alone() const;
  void check_holders(const layout::Fragment& iteration);
  // The op's fragment operand is a part of a buffer that is spread over threads.
  bool walks_part();
  int part_of_fragment() const;
  ExprId begin_fetch(const ir::Store& s, std::span<const ExprId> indices, const Nest& nest, ExprId condition,
                     thread::Block& body);
  void emit_part(int operand, const PointValue& value);

  // gpu/reduce.cpp
  void reduce_in_block(int src, int dst, ir::ReduceKind kind, int axis, bool accumulate);

  void scan_in_block(int src, int dst, const ops::Scan& scan);  // gpu/scan.cpp

  // gpu/gemm.cpp, gpu/async.cpp
  void contract_warp_mma(int a, int b, int c, bool clear);
  void contract_warpgroup(int a, int b, int c, bool clear);  // gpu/warpgroup.cpp
  bool store_in_bulk(int dst);                               // gpu/epilogue_tile.cpp
  bool has_iteration();  // the schedule says which thread does what; else an error
  // Elements of a tensor that an op moves, as they are, to a tile.
  struct Moved {
    ir::BufferId from, to;
    std::function<std::vector<ExprId>(const Nest& nest, bool of_source)> element;
    ExprId guard;  // of the program, bool; none: all are moved
  };
  Moved moved(int dst) const;  // of a copy
  Moved moved(const ir::Loop& loop, const ir::Store& store) const;
  std::vector<ExprId> point_fetched(const layout::Layout& tile, const std::vector<ExprId>& place,
                                    std::vector<ExprId> point);
  void async_copy_points(const Moved& m);
  // False: the facts of the walk in their place are not needed.
  bool find_async_facts(const Moved& m);
  // gpu/register_copy.cpp
  FragmentView loaded() const;
  void load_or_deposit(int operand, const PointValue& value);
  void load_and_deposit(int operand, const PointValue& value);
  void deposit_across(int operand, const PointValue& value);
  std::optional<thread::Block> async_copies(const Moved& m, int64_t width, bool& edges, ExprId* interior);

  LoweringContext& k_;
  const analysis::KernelOp& op_;
  const plan::OpPlan& plan_;
  thread::Block& out_;
  const ir::TileOp* tile_op_;
  std::optional<ir::AtomicKind> atomic_;  // of the stores being emitted
  ir::AtomicOrder order_ = ir::AtomicOrder::relaxed;
  // Of an atomic one: what it expects, and where its old value goes.
  struct Fetch {
    ExprId expected;
    MemoryId old;
    ExprId index;
  } fetch_;
  ExprId no_padding_;            // loads of the point being emitted need it; invalid: nothing beyond bounds
  std::set<MemoryId> written_;   // GPU: by one thread of several that walk the point, so far
  std::set<ValueId> some_hold_;  // GPU: values whose elements more threads compute than hold
};

}  // namespace tilegen::lower
