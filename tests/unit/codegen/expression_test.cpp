// Every operator of expr_ops.def with an exact contract, over every type, scalar and vectorised, against ir's
// one evaluation step; casts between all types; and the same on bool.
#include "kernel_builder.h"
#include "rounded_functions.h"

namespace tilegen::codegen::test {
namespace {

using thread::LoopForm;

constexpr int kCount = 512;
constexpr DType kTypes[] = {DType::f16,  DType::bf16,     DType::f32,      DType::f64,     DType::i8,
                            DType::u8,   DType::i32,      DType::i64,      DType::boolean, DType::e4m3,
                            DType::e5m2, DType::e4m3fnuz, DType::e5m2fnuz, DType::i16,     DType::u16,
                            DType::u32,  DType::u64};
constexpr ExprOp kOps[] = {
#define TILEGEN_EXPR_OP(name, arity, cls, text) ExprOp::name,
#include "ir/expr_ops.def"
#undef TILEGEN_EXPR_OP
};

bool exact(ExprOp op) { return !is_rounded_function(op); }

bool takes(ExprOp op, DType t) {
  if (ir::is_storage_only(t)) return op == ExprOp::select;
  switch (ir::expr_class(op)) {
    case ir::ExprClass::arith:
      return !ir::is_bool(t);
    case ir::ExprClass::integer:
      return ir::is_integer(t);
    case ir::ExprClass::compare:
      return true;
    case ir::ExprClass::logic:
      return ir::is_bool(t);
    case ir::ExprClass::math:
    case ir::ExprClass::test:
      return ir::is_float(t);
    case ir::ExprClass::select:
      return true;
    default:
      return false;
  }
}

// out_k[i] = value_k(x[i], y[i], z[i]) for several expressions in one kernel; lanes of 16 or one by one.
class ExpressionRun {
 public:
  ExpressionRun(DType in, LoopForm form, const target::Target& target)
      : in_(in), form_(form), target_(target) {
    x_ = kb_.tensor("x", in), y_ = kb_.tensor("y", in), z_ = kb_.tensor("z", DType::boolean);
    v_ = kb_.loop_var("v"), lane_ = kb_.loop_var("lane");
    at_ = kb_.p.exprs.add(kb_.p.exprs.mul(kb_.var(v_), 16), kb_.var(lane_));
  }
  ir::ExprPool& exprs() { return kb_.p.exprs; }
  ExprId x() { return kb_.load(x_, at_); }
  ExprId y() { return kb_.load(y_, at_); }
  ExprId z() { return kb_.load(z_, at_); }

  using Expect = std::function<ir::ScalarValue(ir::ScalarValue, ir::ScalarValue, ir::ScalarValue)>;
  void add(std::string name, ExprId value, Expect expect) {
    DType t = exprs().type(value);
    MemoryId out = kb_.tensor("out" + std::to_string(outs_.size()), t);
    body_.push_back(kb_.store(out, at_, value));
    outs_.push_back({std::move(name), t, std::move(expect)});
  }

  void run() {
    auto lanes = kb_.loop(form_, lane_, kb_.i(16), body_);
    kb_.p.body = {kb_.loop(LoopForm::serial, v_, kb_.i(kCount / 16), {lanes})};
    Compiled code(kb_.p, target_);
    ASSERT_TRUE(code);
    Elements x(in_, kCount), y(in_, kCount), z(DType::boolean, kCount);
    std::mt19937_64 random(11);
    for (size_t i = 0; i < kCount; ++i) {
      x.set(i, random_value(in_, random)), y.set(i, random_value(in_, random));
      z.set(i, random_value(DType::boolean, random));
    }
    std::vector<Elements> got;
    std::vector<uint64_t> slots{x.slot(), y.slot(), z.slot()};
    for (const Out& o : outs_) got.emplace_back(o.type, kCount);
    for (Elements& g : got) slots.push_back(g.slot());
    code.run(slots);
    for (size_t k = 0; k < outs_.size(); ++k)
      for (size_t i = 0; i < kCount; ++i) {
        ir::ScalarValue want = outs_[k].expect(x.get(i), y.get(i), z.get(i)), have = got[k].get(i);
        ASSERT_TRUE(same(have, want))
            << outs_[k].name << " of " << x.get(i).i << "/" << x.get(i).f << " and " << y.get(i).i << "/"
            << y.get(i).f << " got " << have.i << "/" << have.f << " want " << want.i << "/" << want.f;
        if (ir::is_bool(outs_[k].type)) {
          ASSERT_LE(got[k].bits(i), 1u);
        }
      }
  }

 private:
  struct Out {
    std::string name;
    DType type;
    Expect expect;
  };
  KernelBuilder kb_;
  DType in_;
  LoopForm form_;
  target::Target target_;
  MemoryId x_, y_, z_;
  ir::VarId v_, lane_;
  ExprId at_;
  thread::Block body_;
  std::vector<Out> outs_;
};

void each_setting(const std::function<void(DType, LoopForm, const target::Target&)>& f) {
  for (const auto& target : runnable_targets())
    for (LoopForm form : {LoopForm::serial, LoopForm::vectorized})
      for (DType t : kTypes) {
        SCOPED_TRACE(std::string(ir::dtype_name(t)) + " " + target.name +
                     (form == LoopForm::serial ? " scalar" : " vector"));
        f(t, form, target);
      }
}

TEST(Expression, EveryOperator) {
  each_setting([](DType t, LoopForm form, const target::Target& target) {
    ExpressionRun run(t, form, target);
    for (ExprOp op : kOps) {
      if (!takes(op, t) || !exact(op)) continue;
      auto& e = run.exprs();
      if (op == ExprOp::select)
        run.add("select", e.select(run.z(), run.x(), run.y()),
                [](auto x, auto y, auto z) { return z.i ? x : y; });
      else if (ir::expr_arity(op) == 1)
        run.add(ir::expr_text(op), e.unary(op, run.x()),
                [=](auto x, auto, auto) { return ir::eval_unary(op, ir::result_type(op, t), x); });
      else if (ir::expr_arity(op) == 3)
        run.add(ir::expr_text(op), e.ternary(op, run.x(), run.y(), e.binary(ExprOp::min, run.y(), run.x())),
                [=](auto x, auto y, auto) {
                  return ir::eval_ternary(op, t, x, y, ir::eval_binary(ExprOp::min, t, y, x));
                });
      else {
        const DType r = ir::result_type(op, t);
        run.add(ir::expr_text(op), e.binary(op, run.x(), run.y()),
                [=](auto x, auto y, auto) { return ir::eval_binary(op, r, x, y); });
      }
    }
    run.run();
  });
}

TEST(Expression, EveryCast) {
  each_setting([](DType t, LoopForm form, const target::Target& target) {
    ExpressionRun run(t, form, target);
    for (DType to : kTypes)
      if (to != t)
        run.add(std::string("cast to ") + ir::dtype_name(to), run.exprs().cast(to, run.x()),
                [=](auto x, auto, auto) { return ir::eval_cast(to, x); });
    run.run();
  });
}

TEST(Expression, EveryBitcast) {
  each_setting([](DType t, LoopForm form, const target::Target& target) {
    ExpressionRun run(t, form, target);
    for (DType to : kTypes)
      if (ir::same_bits(to, t)) {
        run.add(std::string("bits as ") + ir::dtype_name(to), run.exprs().bitcast(to, run.x()),
                [=](auto x, auto, auto) { return ir::eval_bitcast(to, x); });
        const auto chosen = run.exprs().select(run.z(), run.x(), run.y());
        if (ir::is_integer(to))  // and back, through a select, which no rule sees through
          run.add(std::string("chosen bits as ") + ir::dtype_name(to),
                  run.exprs().bitcast(t, run.exprs().binary(ExprOp::bit_xor, run.exprs().bitcast(to, chosen),
                                                            run.exprs().const_int(1, to))),
                  [=](auto x, auto y, auto z) {
                    ir::ScalarValue bits = ir::eval_bitcast(to, z.i ? x : y);
                    bits.i ^= 1;
                    return ir::eval_bitcast(t, bits);
                  });
      }
    run.run();
  });
}

TEST(Expression, DivisionByConstants) {
  each_setting([](DType t, LoopForm form, const target::Target& target) {
    if (!ir::is_integer(t)) return;
    ExpressionRun run(t, form, target);
    for (int64_t d : {1, 2, 3, 7, 8, 10, 64, 0, -1, -2, -3, -128}) {
      if (ir::wrap_to(t, d) != d) continue;
      for (ExprOp op : {ExprOp::floordiv, ExprOp::floormod})
        run.add(std::string(ir::expr_text(op)) + " by " + std::to_string(d),
                run.exprs().binary(op, run.x(), run.exprs().const_int(d, t)), [=](auto x, auto, auto) {
                  return ir::eval_binary(op, t, x, {t, d, 0});
                });
    }
    run.run();
  });
}

// A value used by several statements and on both sides of a branch is computed where each use can see it.
TEST(Expression, SharedAcrossStatements) {
  KernelBuilder kb;
  MemoryId out = kb.tensor("out", DType::i64);
  ExprId n = kb.scalar("n", DType::i64, true);
  auto& e = kb.p.exprs;
  ExprId shared = e.mul(e.add(n, 3), e.add(n, 5));
  auto branch = kb.p.add(
      thread::Branch{e.lt(n, kb.i(10)), {kb.store(out, kb.i(0), shared)}, {kb.store(out, kb.i(1), shared)}},
      "");
  kb.p.body = {branch, kb.store(out, kb.i(2), shared)};
  Compiled code(kb.p, this_machine());
  ASSERT_TRUE(code);
  for (int64_t n2 : {4, 20}) {
    std::vector<int64_t> got(3, -1);
    code.run({slot(got.data()), static_cast<uint64_t>(n2)});
    int64_t want = (n2 + 3) * (n2 + 5);
    EXPECT_EQ(got, (std::vector<int64_t>{n2 < 10 ? want : -1, n2 < 10 ? -1 : want, want}));
  }
}

// A load is made anew by each statement: what the first one wrote must be seen by the second.
TEST(Expression, LoadsSeeEarlierStores) {
  KernelBuilder kb;
  MemoryId a = kb.tensor("a", DType::i32), b = kb.tensor("b", DType::i32);
  auto& e = kb.p.exprs;
  ExprId next = e.add(kb.load(a, kb.i(0)), e.const_int(1, DType::i32));
  kb.p.body = {kb.store(b, kb.i(0), next), kb.store(b, kb.i(0), next)};
  Compiled code(kb.p, this_machine());
  ASSERT_TRUE(code);
  int32_t x = 5;
  code.run({slot(&x), slot(&x)});  // two parameters, one place
  EXPECT_EQ(x, 7);
}

TEST(Expression, ScalarParametersOfEveryType) {
  for (DType t : kTypes) {
    SCOPED_TRACE(ir::dtype_name(t));
    KernelBuilder kb;
    MemoryId out = kb.tensor("out", t);
    kb.p.body = {kb.store(out, kb.i(1), kb.scalar("s", t))};
    Compiled code(kb.p, this_machine());
    ASSERT_TRUE(code);
    Elements got(t, 3);
    ir::ScalarValue v{t, ir::is_float(t) ? 0 : 1, ir::is_float(t) ? -1.5 : 0};
    Elements s(t, 1);
    s.set(0, v);
    code.run({got.slot(), s.bits(0)});
    EXPECT_TRUE(same(got.get(1), v));
  }
}

}  // namespace
}  // namespace tilegen::codegen::test
