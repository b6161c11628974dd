#include "runtime/workspace.h"

#include <cstring>

#include "runtime/dim_solver.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {

namespace {

const ir::Program g_no_reports;

}  // namespace

Workspace::Workspace(const ir::Program& program, size_t first)
    : program_(program), reports_(first == 0 ? program : g_no_reports) {
  std::vector<ir::ExprId> all;
  for (size_t i = first; i < program.params.size(); ++i) {
    if (!program.is_workspace(program.params[i])) continue;
    const ir::Buffer& b = program.buffer(program.params[i].buffer);
    tensors_.push_back({i, ir::dtype_bytes(b.type), b.shape});
    all.insert(all.end(), b.shape.begin(), b.shape.end());
  }
  extents_ = all.size();
  if (extents_ > ScalarCode::kMaxSteps) return;
  code_ = ScalarCode::compile(program.exprs, all, [&](ir::VarId v) {
    for (size_t i = 0; i < program.params.size(); ++i)
      if (program.params[i].kind != ir::Param::Kind::tensor && program.params[i].var == v)
        return static_cast<int>(i);
    return -1;
  });
}

// `many` holds what `extents` has no room for. An extent that has no value is -1.
bool Workspace::find_extents(std::span<const uint64_t> slots, std::vector<int64_t>& many,
                             std::span<int64_t>& extents) const {
  if (code_) {
    const std::span<const int64_t> values(reinterpret_cast<const int64_t*>(slots.data()), slots.size());
    extents = extents.first(extents_);
    return code_->run(values, extents);
  }
  DimSolver dims(program_);
  for (size_t i = 0; i < program_.params.size(); ++i) {
    if (program_.params[i].kind == ir::Param::Kind::tensor) continue;
    const ir::Var& v = program_.var(program_.params[i].var);
    if (!ir::is_float(v.type))
      dims.set(program_.params[i].var, ir::wrap_to(v.type, static_cast<int64_t>(slots[i])), v.name);
  }
  for (const Tensor& t : tensors_)
    for (ir::ExprId e : t.shape) many.push_back(dims.evaluate(e).value_or(-1));
  extents = many;
  return true;
}

[[gnu::cold]] Error Workspace::refusal(const Tensor& t, std::span<const int64_t> extents) const {
  const ir::Buffer& b = program_.buffer(program_.params[t.param].buffer);
  std::string shape;
  for (size_t d = 0; d < t.shape.size() && d < extents.size(); ++d)
    shape += (d == 0 ? "" : ", ") + std::to_string(extents[d]);
  return Error(DiagCode::launch_shape, b.name,
               "the shape of workspace '" + b.name + "' " +
                   (shape.empty() ? "overflows 64 bits"
                                  : "would be [" + shape + "], which no memory is allocated for"),
               "pass dimensions for which every extent is at least 0 and the bytes fit 63 bits", b.location);
}

[[gnu::hot]] Expected<int64_t> Workspace::lay_out(std::span<uint64_t> slots) const {
  int64_t few[ScalarCode::kMaxSteps];
  std::vector<int64_t> many;
  std::span<int64_t> extents(few);
  if (!find_extents(slots, many, extents)) return refusal(tensors_.front(), {});
  int64_t end = 0;
  const int64_t* next = extents.data();
  for (const Tensor& t : tensors_) {
    const std::span<const int64_t> shape(next, t.shape.size());
    next += t.shape.size();
    int64_t bytes = t.element;
    bool fits = true;
    for (int64_t extent : shape) fits = fits && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
    slots[t.param] = static_cast<uint64_t>(end);
    if (!fits || __builtin_add_overflow(end, bytes, &end) ||
        __builtin_add_overflow(end, kAlignment - 1, &end))
      return refusal(t, shape);
    end -= end % kAlignment;
  }
  return end;
}

// A workspace without elements has an address too.
void* Workspace::allocate(int64_t bytes, bool marked) {
  const auto size = static_cast<size_t>(std::max(bytes, kAlignment));
  void* memory = std::aligned_alloc(kAlignment, size);
  if (memory && marked) std::memset(memory, 0xff, size);
  return memory;
}

[[gnu::cold]] Error Workspace::no_memory(int64_t bytes) {
  return Error(DiagCode::limit_memory, "",
               "no memory for the " + std::to_string(bytes) + " bytes of the program's workspaces",
               "launch with smaller dimensions or free memory");
}

}  // namespace tilegen::runtime
