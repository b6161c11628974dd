// A program inferred for sm_80 with 128 threads, or for another target.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "check/check_program.h"
#include "infer/infer_layouts.h"
#include "ir/text.h"
#include "schedule/products/gemm_plan.h"

namespace tilegen::infer {

class Inferred {
 public:
  explicit Inferred(const std::string& text, const plan::KernelSchedule* given = nullptr,
                    bool conversions = true, const char* target_name = "sm_80") {
    auto p = ir::parse_program(text, "test.tl", Limits{});
    if (!p) {
      ADD_FAILURE() << p.error().to_text();
      return;
    }
    for (const Diagnostic& d : check::check_program(*p, Limits{})) ADD_FAILURE() << d.to_text();
    program_ = std::move(*p);
    auto target = target::find_target(target_name);
    ops_ = analysis::collect_kernel_ops(program_, 0);
    const int64_t threads = target->default_threads;
    for (analysis::OpId i : ops_.ops.ids()) {
      if (ops_.ops[i].form != analysis::OpForm::contraction) continue;
      auto plan = schedule::plan_gemm(program_, *program_.as<ir::TileOp>(ops_.ops[i].stmt), *target, threads,
                                      nullptr, ops_.ops[i].path, {});
      if (plan)
        gemms_.emplace(i, *plan);
      else
        ADD_FAILURE() << plan.error().to_text();
    }
    auto result = infer_layouts({program_, ops_, *target, threads, gemms_, given, conversions});
    if (result)
      result_ = std::move(*result);
    else
      error_ = result.error();
  }

  const plan::ValuePlan& value(const std::string& name) const {
    for (const plan::ValuePlan& v : result_.values)
      if (v.value == "k:" + name) return v;
    ADD_FAILURE() << "no value " << name;
    static const plan::ValuePlan none;
    return none;
  }
  const layout::Fragment& fragment(const std::string& name) const { return *value(name).fragment; }
  const plan::OpPlan& op(const std::string& path) const {
    for (const plan::OpPlan& o : result_.ops)
      if (o.op == "k/" + path) return o;
    ADD_FAILURE() << "no op " << path;
    static const plan::OpPlan none;
    return none;
  }
  const analysis::KernelOps& ops() const { return ops_; }
  const InferResult& result() const { return result_; }
  const Error& error() const { return error_; }
  const plan::GemmPlan& gemm() const { return gemms_.begin()->second; }

 private:
  ir::Program program_;
  analysis::KernelOps ops_;
  std::map<analysis::OpId, plan::GemmPlan> gemms_;
  InferResult result_;
  Error error_;
};

}  // namespace tilegen::infer
