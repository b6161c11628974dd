// Rows stored as columns of words: joined in registers, they lie as single stores would leave them.
#include "kernel_builder.h"
#include "thread/interleaved.h"

namespace tilegen::codegen::test {
namespace {

// tile[lane / unit * apart + row * unit + lane % unit] = in[row * pitch + lane], then out = tile.
void check(DType type, int rows, int lanes, int apart, const target::Target& target) {
  SCOPED_TRACE(std::string(ir::dtype_name(type)) + " " + std::to_string(rows) + " rows of " +
               std::to_string(lanes) + ", " + target.name);
  const int unit = 32 / ir::dtype_bits(type), pitch = lanes + 3, elements = lanes / unit * apart;
  KernelBuilder kb;
  ir::ExprPool& e = kb.p.exprs;
  const MemoryId in = kb.tensor("in", type), out = kb.tensor("out", type),
                 tile = kb.arena("tile", type, elements);
  const ir::VarId row = kb.loop_var("row"), lane = kb.loop_var("lane"), at = kb.loop_var("at");
  const ExprId word = e.floordiv(kb.var(lane), kb.i(unit)), within = e.floormod(kb.var(lane), kb.i(unit));
  const ExprId index = unit == 1 ? e.add(e.mul(kb.var(lane), apart), kb.var(row))
                                 : e.add(e.add(e.mul(word, apart), e.mul(kb.var(row), unit)), within);
  const ExprId value = kb.load(in, e.add(e.mul(kb.var(row), pitch), kb.var(lane)));
  const thread::StmtId copy =
      kb.loop(thread::LoopForm::unrolled, row, kb.i(rows),
              {kb.loop(thread::LoopForm::vectorized, lane, kb.i(lanes), {kb.store(tile, index, value)})});
  const thread::StmtId back = kb.loop(thread::LoopForm::serial, at, kb.i(elements),
                                      {kb.store(out, kb.var(at), kb.load(tile, kb.var(at)))});
  kb.p.body = {copy, back};
  ASSERT_TRUE(thread::transposed_rows(kb.p, std::get<thread::Loop>(kb.p.stmts[copy.value].node)));
  Compiled code(kb.p, target);
  ASSERT_TRUE(code);
  Elements source(type, static_cast<size_t>(rows * pitch)), result(type, static_cast<size_t>(elements));
  for (size_t x = 0; x < static_cast<size_t>(rows * pitch); ++x)
    source.set(x, {type, static_cast<int64_t>(x * 37 % 121), static_cast<double>(x % 113)});
  code.run({source.slot(), result.slot()});
  for (int r = 0; r < rows; ++r)
    for (int l = 0; l < lanes; ++l) {
      const auto got = result.get(static_cast<size_t>(l / unit * apart + r * unit + l % unit)),
                 want = source.get(static_cast<size_t>(r * pitch + l));
      ASSERT_EQ(got.f, want.f) << "row " << r << " lane " << l;
      ASSERT_EQ(got.i, want.i) << "row " << r << " lane " << l;
    }
}

TEST(TransposedRows, WordsOfEveryElementSize) {
  for (const auto& t : runnable_targets())
    for (int rows : {4, 8, 16})
      for (int pieces : {1, 2}) {
        const int words = rows * pieces;
        check(DType::f32, rows, words, rows + 5, t);
        check(DType::i32, rows, words, rows, t);
        check(DType::bf16, rows, 2 * words, 2 * rows + 2, t);
        if (4 * words <= thread::kMaxTransposedLanes) check(DType::i8, rows, 4 * words, 4 * rows + 4, t);
      }
}

TEST(TransposedRows, OthersAreNone) {
  KernelBuilder kb;
  ir::ExprPool& e = kb.p.exprs;
  const MemoryId in = kb.tensor("in", DType::bf16), tile = kb.arena("tile", DType::bf16, 4096);
  const ir::VarId row = kb.loop_var("row"), lane = kb.loop_var("lane");
  const ExprId value = kb.load(in, e.add(e.mul(kb.var(row), 32), kb.var(lane)));
  const auto found = [&](int rows, int lanes, int64_t apart, int64_t row_apart, int64_t unit) {
    const ExprId word = e.floordiv(kb.var(lane), kb.i(unit)), within = e.floormod(kb.var(lane), kb.i(unit));
    const ExprId index = e.add(e.add(e.mul(word, apart), e.mul(kb.var(row), row_apart)), within);
    const thread::StmtId s =
        kb.loop(thread::LoopForm::unrolled, row, kb.i(rows),
                {kb.loop(thread::LoopForm::vectorized, lane, kb.i(lanes), {kb.store(tile, index, value)})});
    return thread::transposed_rows(kb.p, std::get<thread::Loop>(kb.p.stmts[s.value].node)).has_value();
  };
  EXPECT_TRUE(found(8, 16, 16, 2, 2));
  EXPECT_FALSE(found(6, 16, 16, 2, 2)) << "six rows";
  EXPECT_FALSE(found(8, 24, 16, 2, 2)) << "no whole squares";
  EXPECT_FALSE(found(8, 16, 14, 2, 2)) << "columns overlap";
  EXPECT_FALSE(found(8, 16, 16, 4, 2)) << "rows apart";
  EXPECT_FALSE(found(8, 16, 32, 2, 4)) << "words of another size";
}

}  // namespace
}  // namespace tilegen::codegen::test
