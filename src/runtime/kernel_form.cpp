#include "runtime/kernel_form.h"

#include "support/checked.h"

namespace tilegen::runtime {

KernelForm::KernelForm(const thread::ThreadProgram& program) : program_(&program) {
  for (const thread::Guard& g : program.guards)
    guards_.push_back({static_cast<size_t>(g.param), static_cast<uint64_t>(g.divisor)});
  grid_code_ = ScalarCode::compile(program.exprs, program.grid, [&](ir::VarId v) {
    for (size_t i = 0; i < program.params.size(); ++i)
      if (program.params[i].kind != thread::Param::Kind::tensor && program.params[i].var == v)
        return static_cast<int>(i);
    return -1;
  });
}

std::string KernelForm::guards_text() const {
  std::string text;
  for (const Guard& g : guards_)
    text += (text.empty() ? "" : ", ") + program_->params[g.slot].name + " % " + std::to_string(g.divisor) +
            " == 0";
  return text;
}

Expected<Grid> KernelForm::grid(std::span<const uint64_t> slots) const {
  if (!grid_code_) return evaluate_grid(*program_, slots);
  Grid grid;
  const std::span<const int64_t> values(reinterpret_cast<const int64_t*>(slots.data()), slots.size());
  grid_code_->run(values, grid.extents);  // wraps like every executor
  grid.blocks = 1;
  bool empty = false, overflow = false;
  for (size_t i = 0; i < grid_code_->roots(); ++i) {
    empty |= grid.extents[i] <= 0;
    overflow |= __builtin_mul_overflow(grid.blocks, grid.extents[i], &grid.blocks);
  }
  if (empty) grid.blocks = 0;
  if (overflow && !empty)
    return Error(DiagCode::overflow, program_->name, "the number of blocks does not fit 64 bits",
                 "launch with smaller dimensions");
  return grid;
}

std::vector<std::vector<KernelForm>> kernel_forms(const driver::Artifact& artifact) {
  std::vector<std::vector<KernelForm>> all;
  for (const driver::FormRange& range : artifact.forms) {
    all.emplace_back();
    for (size_t i = 0; i < range.count; ++i) all.back().emplace_back(artifact.kernels[range.first + i]);
  }
  return all;
}

Expected<const KernelForm*> choose_form(const std::vector<KernelForm>& forms, const std::string& kernel,
                                        std::span<const uint64_t> slots) {
  for (const KernelForm& form : forms)
    if (form.fits(slots)) return &form;
  return Error(DiagCode::launch_alignment, kernel,
               "kernel '" + kernel + "' relies on " + forms.back().guards_text() +
                   " (addresses in bytes), which the arguments do not fulfil",
               "pass aligned tensors and dimensions of these multiples");
}

}  // namespace tilegen::runtime
