// Parameters of a program: dimensions, scalars, tensors.
#include <string>

#include "builder/builder.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

bool Builder::before_kernels(std::string_view call) {
  if (program_.kernels.empty()) return true;
  fail(DiagCode::misplaced_statement, call, "parameters are declared before the first kernel",
       "move the call before tl_begin_kernel");
  return false;
}

bool Builder::room_for_buffer(std::string_view call) {
  if (static_cast<int64_t>(program_.buffers.size()) < limits_.buffers) return true;
  fail(DiagCode::limit_nodes, call,
       "the program has more than " + std::to_string(limits_.buffers) + " buffers",
       "use tiles again, or split the program");
  return false;
}

bool Builder::check_rank(std::string_view call, std::string_view what, size_t rank) {
  if (rank == 0) {
    fail(DiagCode::rank_mismatch, call, std::string(what) + " has no dimensions", "give it at least one");
    return false;
  }
  if (static_cast<int64_t>(rank) <= limits_.rank) return true;
  fail(DiagCode::limit_nesting, call,
       std::string(what) + " has " + std::to_string(rank) + " dimensions, the most is " +
           std::to_string(limits_.rank),
       "fold dimensions together");
  return false;
}

ir::VarId Builder::dim(std::string_view name) {
  constexpr std::string_view kCall = "tl_dim";
  if (!ready(kCall) || !before_kernels(kCall)) return {};
  const ir::VarId v = add_var(kCall, name, ir::VarKind::dim, ir::DType::i64);
  if (v) program_.params.push_back({ir::Param::Kind::dim, v, {}});
  return v;
}

void Builder::dim_fact(ir::VarId dim, int64_t lower, int64_t upper, int64_t divisor) {
  constexpr std::string_view kCall = "tl_dim_fact";
  if (!ready(kCall)) return;
  if (dim.value >= program_.vars.size() || program_.var(dim).kind != ir::VarKind::dim)
    return fail(DiagCode::stale_handle, kCall, "the expression is not a dimension",
                "pass what tl_dim returned");
  ir::Var& v = program_.vars[dim.value];
  if (lower < 0 || upper < lower)
    return fail(DiagCode::bad_attribute, kCall,
                "no value of '" + v.name + "' is >= " + std::to_string(lower) +
                    " and <= " + std::to_string(upper) + " and >= 0",
                "give 0 <= lower <= upper");
  if (divisor < 1)
    return fail(DiagCode::bad_attribute, kCall,
                "'" + v.name + "' cannot be divisible by " + std::to_string(divisor), "give a divisor >= 1");
  v.lower = lower;
  v.upper = upper;
  v.divisor = divisor;
}

ir::VarId Builder::scalar(std::string_view name, ir::DType type) {
  constexpr std::string_view kCall = "tl_scalar";
  if (!ready(kCall) || !before_kernels(kCall) || !check_dtype(kCall, type)) return {};
  const ir::VarId v = add_var(kCall, name, ir::VarKind::scalar, type);
  if (v) program_.params.push_back({ir::Param::Kind::scalar, v, {}});
  return v;
}

ir::BufferId Builder::tensor(std::string_view name, ir::DType type, std::span<const ir::ExprId> shape,
                             std::span<const ir::ExprId> strides, TensorUse use) {
  constexpr std::string_view kCall = "tl_tensor";
  if (!ready(kCall) || !before_kernels(kCall) || !check_dtype(kCall, type) || !room_for_buffer(kCall))
    return {};
  const std::string what = "tensor '" + std::string(name) + "'";
  if (!check_rank(kCall, what, shape.size())) return {};
  if (!strides.empty() && strides.size() != shape.size()) {
    fail(DiagCode::rank_mismatch, kCall,
         what + " has " + std::to_string(shape.size()) + " extents and " + std::to_string(strides.size()) +
             " strides",
         "give one stride per extent, or none for a compact tensor");
    return {};
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::string which = what + " extent " + std::to_string(i);
    if (!check_index(kCall, which, shape[i]) || !check_leaves(kCall, which, shape[i])) return {};
    int64_t extent = 0;
    if (program_.exprs.is_const_int(shape[i], &extent) && extent < 0) {
      fail(DiagCode::bad_shape, kCall, which + " is " + std::to_string(extent),
           "give an extent of at least 0");
      return {};
    }
  }
  for (size_t i = 0; i < strides.size(); ++i) {
    const std::string which = what + " stride " + std::to_string(i);
    if (!check_index(kCall, which, strides[i]) || !check_leaves(kCall, which, strides[i])) return {};
    int64_t stride = 0;
    if (program_.exprs.is_const_int(strides[i], &stride) && stride < 0) {
      fail(DiagCode::bad_shape, kCall, which + " is " + std::to_string(stride),
           "negative strides are not supported; reverse the index instead");
      return {};
    }
  }
  if (!declare(kCall, name, "tensor")) return {};
  ir::Buffer b;
  b.name = name;
  b.type = type;
  b.shape.assign(shape.begin(), shape.end());
  b.strides.assign(strides.begin(), strides.end());
  b.read_only = use.read_only || use.constant;
  b.constant = use.constant;
  b.workspace = use.workspace;
  b.optional = use.optional;
  b.location = location_;
  program_.buffers.push_back(std::move(b));
  const ir::BufferId id(program_.buffers.size() - 1);
  program_.params.push_back({ir::Param::Kind::tensor, {}, id});
  if (use.optional) ir::add_presence(program_, id);
  return id;
}

ir::ExprId Builder::present(ir::BufferId tensor) {
  constexpr std::string_view kCall = "tl_present";
  if (!ready(kCall) || !check_buffer(kCall, "the tensor", tensor)) return {};
  const ir::VarId v = program_.presence(tensor);
  if (v.valid()) return program_.exprs.var(v, ir::DType::boolean);
  fail(DiagCode::misplaced_statement, kCall,
       buffer_text(tensor) + " is there in every launch, expected an optional tensor",
       "declare it with TL_TENSOR_OPTIONAL, or leave the question out");
  return {};
}

void Builder::tensor_codes(ir::BufferId tensor, ir::DType packed) {
  constexpr std::string_view kCall = "tl_tensor_codes";
  if (!ready(kCall) || !before_kernels(kCall) || !check_buffer(kCall, "the tensor", tensor) ||
      !check_dtype(kCall, packed))
    return;
  ir::Buffer& b = program_.buffers[tensor.value];
  if (!ir::is_packed(packed) || b.type != ir::DType::u8)
    return fail(DiagCode::dtype_mismatch, kCall,
                "elements of " + buffer_text(tensor) + " are " + ir::dtype_name(b.type) + " and hold no " +
                    ir::dtype_name(packed),
                "elements of TL_U8 hold the packed types: i4, u4, i2, u2, e2m1 and e8m0");
  b.packed = packed;
}

}  // namespace tilegen::builder
