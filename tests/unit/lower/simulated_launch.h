// Launches on the simulator: a program lowered for a GPU target, run on random arguments, against the
// interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "../schedule/complete_plan.h"
#include "interp/interpreter.h"
#include "interp/storage.h"
#include "ir/program.h"
#include "schedule/plan_program.h"
#include "sim/simulator.h"
#include "thread/sync_verify.h"

namespace tilegen::lower::test {

inline int64_t launch_value(const ir::ExprPool& e, ir::ExprId id, const std::map<ir::VarId, int64_t>& vars) {
  const ir::ExprNode& n = e[id];
  if (n.op == ir::ExprOp::const_int) return n.imm;
  if (n.op == ir::ExprOp::var) return vars.at(n.var());
  if (n.op == ir::ExprOp::select) return launch_value(e, launch_value(e, n.a, vars) != 0 ? n.b : n.c, vars);
  const ir::ScalarValue a{ir::DType::i64, launch_value(e, n.a, vars), 0};
  if (ir::expr_arity(n.op) == 1) return ir::eval_unary(n.op, n.type, a).i;
  return ir::eval_binary(n.op, n.type, a, {ir::DType::i64, launch_value(e, n.b, vars), 0}).i;
}

// Floating elements: multiples of 1 / per_unit, `steps` of them to either side of 0. Few bits, so that
// sums are exact enough to compare.
struct Elements {
  int steps = 16, per_unit = 16;
};

// Slots and tensors of a launch; `dims`: dims and scalars in parameter order.
struct LaunchArguments {
  std::vector<uint64_t> slots;
  std::vector<std::vector<std::byte>> tensors;  // by parameter; empty for others
  std::vector<sim::TensorExtent> extents;

  LaunchArguments(const ir::Program& p, const std::vector<int64_t>& dims, uint32_t seed, Elements floats = {})
      : floats_(floats) {
    std::mt19937 random(seed);
    std::map<ir::VarId, int64_t> vars;
    size_t next = 0;
    for (const ir::Param& param : p.params)
      if (param.kind != ir::Param::Kind::tensor) vars[param.var] = dims.at(next++);
    for (const ir::Param& param : p.params) {
      tensors.emplace_back();
      extents.emplace_back();
      if (param.kind != ir::Param::Kind::tensor) {
        const int64_t v = vars[param.var];
        slots.push_back(interp::value_to_bits({p.var(param.var).type, v, static_cast<double>(v)}));
        continue;
      }
      const ir::Buffer& b = p.buffer(param.buffer);
      int64_t elements = 1;
      if (b.strides.empty())
        for (ir::ExprId extent : b.shape) elements *= launch_value(p.exprs, extent, vars);
      else
        for (size_t d = 0; d < b.shape.size(); ++d)
          elements +=
              (launch_value(p.exprs, b.shape[d], vars) - 1) * launch_value(p.exprs, b.strides[d], vars);
      fill(b.type, elements, random);
      slots.push_back(std::bit_cast<uint64_t>(tensors.back().data()));
      extents.back() = {0, static_cast<int64_t>(tensors.back().size())};
    }
  }

 private:
  void fill(ir::DType type, int64_t elements, std::mt19937& random) {
    const size_t bytes = static_cast<size_t>(ir::dtype_bytes(type));
    tensors.back().resize(static_cast<size_t>(elements) * bytes);
    for (int64_t i = 0; i < elements; ++i) {
      ir::ScalarValue v{
          type, static_cast<int64_t>(random() % 17) - 8,
          (static_cast<double>(random() % (2 * static_cast<uint32_t>(floats_.steps) + 1)) - floats_.steps) /
              floats_.per_unit};
      if (ir::is_bool(type)) v.i &= 1;
      if (type == ir::DType::u8) v.i += 8;
      const uint64_t bits = interp::value_to_bits(v);
      std::memcpy(&tensors.back()[static_cast<size_t>(i) * bytes], &bits, bytes);
    }
  }

  const Elements floats_;
};

inline double tolerance(ir::DType t) {
  switch (t) {
    case ir::DType::f16:
      return 4e-3;
    case ir::DType::bf16:
      return 3e-2;
    case ir::DType::f32:
      return 2e-5;
    case ir::DType::f64:
      return 1e-12;
    default:
      return 0;
  }
}

inline void expect_equal(const ir::Program& p, const LaunchArguments& got, const LaunchArguments& want) {
  for (size_t i = 0; i < p.params.size(); ++i) {
    if (p.params[i].kind != ir::Param::Kind::tensor) continue;
    const ir::Buffer& b = p.buffer(p.params[i].buffer);
    const size_t bytes = static_cast<size_t>(ir::dtype_bytes(b.type));
    int wrong = 0;
    for (size_t e = 0; e * bytes < want.tensors[i].size() && wrong < 3; ++e) {
      uint64_t x = 0, y = 0;
      std::memcpy(&x, &got.tensors[i][e * bytes], bytes);
      std::memcpy(&y, &want.tensors[i][e * bytes], bytes);
      const ir::ScalarValue g = interp::value_from_bits(b.type, x), w = interp::value_from_bits(b.type, y);
      const bool same = ir::is_float(b.type)
                            ? (std::isnan(g.f) && std::isnan(w.f)) || g.f == w.f ||
                                  std::abs(g.f - w.f) <= tolerance(b.type) * std::max(1.0, std::abs(w.f))
                            : g.i == w.i;
      if (same) continue;
      ++wrong;
      ADD_FAILURE() << b.name << "[" << e << "] is "
                    << (ir::is_float(b.type) ? g.f : static_cast<double>(g.i)) << ", expected "
                    << (ir::is_float(b.type) ? w.f : static_cast<double>(w.i));
    }
  }
}

// A program lowered in one form and verified, for any number of launches.
class Simulated {
 public:
  Simulated(const ir::Program& p, const target::Target& target, const plan::Schedule& schedule,
            bool assume_aligned)
      : p_(p), target_(target) {
    for (size_t k = 0; k < p.kernels.size(); ++k) {
      auto lowered = schedule::lowered_as_planned(
          p, static_cast<int>(k), schedule.kernels[k], target,
          assume_aligned ? schedule::Assumptions::all : schedule::Assumptions::none);
      if (!lowered) {
        ADD_FAILURE() << lowered.error().to_text();
        kernels_.clear();
        return;
      }
      for (const std::string& broken : thread::verify_thread_program(*lowered)) ADD_FAILURE() << broken;
      for (const std::string& hazard : thread::verify_synchronization(*lowered)) ADD_FAILURE() << hazard;
      kernels_.push_back(std::move(*lowered));
    }
  }

  // One launch of all kernels; false when a form's guards do not hold for it.
  bool run(const std::vector<int64_t>& dims, sim::Counters* counters = nullptr, Elements floats = {}) const {
    if (kernels_.empty()) return true;  // told already
    LaunchArguments got(p_, dims, 7, floats), want(p_, dims, 7, floats);
    for (const thread::ThreadProgram& kernel : kernels_) {
      if (!sim::guards_hold(kernel, got.slots)) return false;
      sim::SimOptions options;
      options.workers = 1;
      options.order = sim::WarpOrder::random;
      auto result = sim::simulate(kernel, target_, got.slots, got.extents, options);
      if (!result) {
        ADD_FAILURE() << result.error().to_text();
        return true;
      }
      for (const sim::Finding& f : result->findings) ADD_FAILURE() << f.to_text();
      if (counters) *counters = result->counters;
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << thread::print_thread_program(kernel);
        return true;
      }
    }
    const Checked outcome = interp::interpret(p_, want.slots);
    EXPECT_TRUE(outcome) << outcome.error().to_text();
    expect_equal(p_, got, want);
    return true;
  }

 private:
  const ir::Program& p_;
  const target::Target target_;
  std::vector<thread::ThreadProgram> kernels_;
};

inline bool run_simulated(const ir::Program& p, const target::Target& target, const plan::Schedule& schedule,
                          const std::vector<int64_t>& dims, bool assume_aligned,
                          sim::Counters* counters = nullptr, Elements floats = {}) {
  return Simulated(p, target, schedule, assume_aligned).run(dims, counters, floats);
}

}  // namespace tilegen::lower::test
