#include "runtime/arguments.h"

#include <algorithm>
#include <bit>
#include <deque>

#include "runtime/dim_solver.h"
#include "runtime/packed_arguments.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

using Kind = Argument::Kind;

const char* kind_text(Kind k) {
  switch (k) {
    case Kind::automatic:
      return "nothing (automatic)";
    case Kind::pointer:
      return "a pointer";
    case Kind::integer:
      return "an integer";
    case Kind::floating:
      return "a floating number";
    case Kind::tensor:
      return "a tensor";
  }
  return "nothing";
}

std::string extents_text(std::span<const int64_t> extents) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(extents[i]);
  return text + "]";
}

std::string because(const std::string& why) { return why.empty() ? "" : " (" + why + ")"; }

class Binder {
 public:
  Binder(const ir::Program& program, std::span<const Argument> given, const MemoryReach& device)
      : program_(program), given_(given), device_(device), solver_(program) {}

  Expected<std::vector<uint64_t>> bind();

 private:
  Checked match_parameters();
  Checked bind_dim(size_t i);
  Checked bind_scalar(size_t i);
  Checked describe_tensor(size_t i);
  void add_stride_equations(size_t i);
  Checked solve_dims();
  Error contradiction(DiagCode code, const DimSolver::Equation& bad, std::string hint) const;
  std::string left_out_with(ir::VarId dim) const;
  Checked check_facts();
  Checked bind_tensor(size_t i);
  Checked check_strides(size_t i, const std::vector<int64_t>& shape);
  Checked check_compact(size_t i, const std::vector<int64_t>& shape);

  const ir::Param& param(size_t i) const { return program_.params[i]; }
  const ir::Buffer& buffer(size_t i) const { return program_.buffer(param(i).buffer); }
  bool given(size_t i) const { return program_.takes_argument(param(i)); }
  const ir::Var& var(size_t i) const { return program_.var(param(i).var); }
  const std::string& name(size_t i) const {
    return param(i).kind == ir::Param::Kind::tensor ? buffer(i).name : var(i).name;
  }
  std::string tensor_text(size_t i) const { return "tensor '" + name(i) + "'"; }
  Error error(DiagCode code, size_t i, std::string message, std::string hint) const {
    return Error(code, name(i), std::move(message), std::move(hint));
  }
  Error wrong_kind(size_t i, const char* expected, std::string hint) const {
    return error(
        DiagCode::launch_kind, i,
        std::string("expected ") + expected + " for '" + name(i) + "', got " + kind_text(arguments_[i]->kind),
        std::move(hint));
  }

  const ir::Program& program_;
  std::span<const Argument> given_;
  MemoryReach device_;
  std::vector<const Argument*> arguments_;  // one per parameter
  DimSolver solver_;
  std::vector<DimSolver::Equation> extents_, strides_;
  std::deque<ByteDescription> bytes_;
  std::vector<uint64_t> slots_;
};

Checked Binder::match_parameters() {
  static const Argument kAutomatic;
  size_t dims = 0, all = 0;
  for (size_t i = 0; i < program_.params.size(); ++i) {
    dims += param(i).kind == ir::Param::Kind::dim;
    all += given(i);
  }
  if (given_.size() != all && given_.size() != all - dims) {
    std::string names;
    for (size_t i = 0; i < program_.params.size(); ++i)
      if (given(i)) names += (names.empty() ? "" : ", ") + name(i);
    return Error(DiagCode::launch_arity, program_.name,
                 "expected " + std::to_string(all) + " arguments (" + names + ")" +
                     (dims == 0 ? "" : ", or " + std::to_string(all - dims) + " without the dimensions") +
                     ", got " + std::to_string(given_.size()),
                 "pass one argument per parameter, in the order they were declared");
  }
  size_t next = 0;
  for (const ir::Param& p : program_.params) {
    const bool omitted =
        !program_.takes_argument(p) || (given_.size() != all && p.kind == ir::Param::Kind::dim);
    arguments_.push_back(omitted ? &kAutomatic : &given_[next++]);
  }
  return Unit{};
}

Checked Binder::bind_dim(size_t i) {
  const Argument& a = *arguments_[i];
  if (a.kind == Kind::automatic) return Unit{};
  if (a.kind != Kind::integer)
    return wrong_kind(i, "an integer",
                      "a dimension is TL_ARG_I64, or TL_ARG_AUTO to solve it from the tensors");
  solver_.set(param(i).var, static_cast<int64_t>(a.bits), "argument '" + name(i) + "'");
  return Unit{};
}

Checked Binder::bind_scalar(size_t i) {
  const Argument& a = *arguments_[i];
  const ir::DType t = var(i).type;
  if (ir::is_float(t) && a.kind != Kind::floating)
    return wrong_kind(i, "a floating number", "pass TL_ARG_F64 with the bits of a double");
  if (!ir::is_float(t) && a.kind != Kind::integer) return wrong_kind(i, "an integer", "pass TL_ARG_I64");
  if (a.type != ir::DType::none && a.type != t)
    return error(
        DiagCode::launch_dtype, i,
        "scalar '" + name(i) + "' is " + ir::dtype_name(t) + ", the argument says " + ir::dtype_name(a.type),
        "pass the program's dtype, or 0");
  if (ir::is_float(t)) {
    slots_[i] = ir::float_to_bits(t, ir::round_to(t, std::bit_cast<double>(a.bits)));
    return Unit{};
  }
  const auto value = static_cast<int64_t>(a.bits);
  if (ir::wrap_to(t, value) != value)
    return error(
        DiagCode::launch_dtype, i,
        std::to_string(value) + " is not a value of " + ir::dtype_name(t) + ", the type of '" + name(i) + "'",
        "pass a value in range, or declare the scalar wider");
  solver_.set(param(i).var, value, "argument '" + name(i) + "'");  // an extent may be made of it
  const int bits = ir::dtype_bits(t);
  slots_[i] = bits == 64 ? a.bits : a.bits & ((uint64_t{1} << bits) - 1);
  return Unit{};
}

Checked Binder::describe_tensor(size_t i) {
  const Argument& a = *arguments_[i];
  const ir::Buffer& b = buffer(i);
  if (a.kind != Kind::pointer && a.kind != Kind::tensor)
    return wrong_kind(i, "a tensor", "pass TL_ARG_TENSOR or TL_ARG_POINTER");
  const bool of_packed = b.packed != ir::DType::none && a.type == b.packed;
  if ((a.kind == Kind::tensor || a.type != ir::DType::none) && a.type != b.type && !of_packed)
    return error(
        DiagCode::launch_dtype, i,
        tensor_text(i) + " is " + kept_text(b) + ", the argument is " +
            (a.type == ir::DType::none ? "of a type the language does not have" : ir::dtype_name(a.type)),
        "convert the tensor, or build the program for that dtype");
  if (a.kind == Kind::pointer) return Unit{};
  if (!device_.reaches(a.place))
    return error(
        DiagCode::launch_device, i,
        tensor_text(i) + " lives on " + place_text(a.place) + ", the kernel runs on " + reach_text(device_),
        device_.on_host() ? "copy the tensor to host memory" : "copy the tensor to that device");
  const size_t rank = b.shape.size();
  if (a.shape.size() != rank)
    return error(DiagCode::launch_rank, i,
                 tensor_text(i) + " has " + std::to_string(rank) + " dimensions, the argument has " +
                     std::to_string(a.shape.size()) + " " + extents_text(a.shape),
                 "reshape the tensor");
  if (!a.strides.empty() && a.strides.size() != rank)
    return error(DiagCode::launch_rank, i,
                 tensor_text(i) + " has " + std::to_string(rank) + " dimensions, the argument has " +
                     std::to_string(a.strides.size()) + " strides",
                 "give one stride per dimension, or none for a compact tensor");
  if (of_packed) {
    if (Checked ok = describe_bytes(a, b, bytes_.emplace_back()); !ok) return ok;
    arguments_[i] = &bytes_.back().argument;
  }
  const Argument& described = *arguments_[i];
  for (size_t d = 0; d < rank; ++d) {
    const std::string what = "extent " + std::to_string(d) + " of " + tensor_text(i);
    if (described.shape[d] < 0)
      return error(DiagCode::launch_shape, i, what + " is " + std::to_string(described.shape[d]),
                   "an extent is at least 0; the description may be corrupt");
    extents_.push_back({b.shape[d], described.shape[d], i, what});
  }
  return Unit{};
}

// Strides are equations of their own: a leading dimension may be a dim that no extent gives.
void Binder::add_stride_equations(size_t i) {
  const Argument& a = *arguments_[i];
  const ir::Buffer& b = buffer(i);
  if (a.kind != Kind::tensor || b.strides.empty()) return;
  for (int64_t e : a.shape)
    if (e == 0) return;
  int64_t compact = 1;
  for (size_t d = b.strides.size(); d-- > 0;) {
    if (a.shape[d] != 1)
      strides_.push_back({b.strides[d], a.strides.empty() ? compact : a.strides[d], i,
                          "stride " + std::to_string(d) + " of " + tensor_text(i)});
    // wraps for a shape that is refused as too large further down
    compact = static_cast<int64_t>(static_cast<uint64_t>(compact) * static_cast<uint64_t>(a.shape[d]));
  }
}

Error Binder::contradiction(DiagCode code, const DimSolver::Equation& bad, std::string hint) const {
  const auto expected = solver_.evaluate(bad.expr);
  return error(code, bad.param,
               bad.what + " is " + std::to_string(bad.actual) +
                   (expected ? ", the program says " + std::to_string(*expected)
                             : ", which no value of its dimensions gives") +
                   because(solver_.explain(bad.expr)),
               std::move(hint));
}

// Extents come first because they name what contradicts better; a stride may give what another extent was
// waiting for.
Checked Binder::solve_dims() {
  for (size_t before = 0;; before = solver_.known_count()) {
    if (const auto bad = solver_.solve(extents_))
      return contradiction(DiagCode::launch_shape, *bad, "pass tensors whose extents agree");
    if (const auto bad = solver_.solve(strides_))
      return contradiction(DiagCode::launch_stride, *bad,
                           "copy the tensor into the layout that the program states");
    if (solver_.known_count() == before) return Unit{};
  }
}

// The optional tensor without which nothing tells the dim.
std::string Binder::left_out_with(ir::VarId dim) const {
  for (size_t i = 0; i < program_.params.size(); ++i)
    if (param(i).kind == ir::Param::Kind::tensor && arguments_[i]->kind == Kind::pointer &&
        arguments_[i]->bits == 0 && may_leave_out(program_, program_.buffer(param(i).buffer), dim))
      return ": the launch leaves out tensor '" + name(i) + "', which has it";
  return "";
}

Checked Binder::check_facts() {
  const std::vector<int64_t> greatest = ir::greatest_values(program_);
  for (size_t i = 0; i < program_.params.size(); ++i) {
    if (param(i).kind != ir::Param::Kind::dim) continue;
    if (!solver_.is_known(param(i).var))
      return error(
          DiagCode::launch_kind, i,
          "dimension '" + name(i) + "' cannot be found from the tensors given" + left_out_with(param(i).var),
          "pass it as TL_ARG_I64");
    const ir::Var& v = var(i);
    const int64_t value = solver_.value(param(i).var);
    std::string broken;
    if (value < v.lower) broken = "at least " + std::to_string(v.lower);
    if (value > v.upper) broken = "at most " + std::to_string(v.upper);
    if (broken.empty() && floor_mod(value, v.divisor) != 0)
      broken = "divisible by " + std::to_string(v.divisor);
    if (!broken.empty())
      return error(DiagCode::launch_fact, i,
                   "'" + v.name + "' is " + std::to_string(value) + " (from " + solver_.source(param(i).var) +
                       "), the program says it is " + broken,
                   "pad the tensors, or build the program without that fact");
    if (value > greatest[param(i).var.value])
      return error(DiagCode::launch_shape, i,
                   "'" + v.name + "' is " + std::to_string(value) + " (from " + solver_.source(param(i).var) +
                       "), and tensors are described by it: it may be at most " +
                       std::to_string(ir::kMaxExtent),
                   "pass smaller dimensions");
    slots_[i] = static_cast<uint64_t>(value);
  }
  return Unit{};
}

// Strides that the program states have been compared as equations; here they only have to be usable.
Checked Binder::check_strides(size_t i, const std::vector<int64_t>& shape) {
  const ir::Buffer& b = buffer(i);
  int64_t last = ir::dtype_bytes(b.type);  // of the element with the largest address, in bytes
  for (size_t d = 0; d < b.strides.size(); ++d) {
    const auto stride = solver_.evaluate(b.strides[d]);
    int64_t reach = 0;
    if (!stride || *stride < 0 || __builtin_mul_overflow(*stride, shape[d] - 1, &reach) ||
        __builtin_mul_overflow(reach, ir::dtype_bytes(b.type), &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return error(
          DiagCode::launch_stride, i,
          "stride " + std::to_string(d) + " of " + tensor_text(i) +
              (stride ? " would be " + std::to_string(*stride) : " overflows") +
              because(solver_.explain(b.strides[d])),
          "pass dimensions for which every stride is at least 0 and the tensor fits the address space");
  }
  return b.strides.empty() ? check_compact(i, shape) : Unit{};
}

Checked Binder::check_compact(size_t i, const std::vector<int64_t>& shape) {
  const Argument& a = *arguments_[i];
  if (a.kind != Kind::tensor || a.strides.empty()) return Unit{};
  int64_t compact = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && a.strides[d] != compact)
      return error(DiagCode::launch_stride, i,
                   "stride " + std::to_string(d) + " of " + tensor_text(i) + " is " +
                       std::to_string(a.strides[d]) +
                       ", the program says the tensor is compact, so it would be " + std::to_string(compact),
                   "make the tensor contiguous, or declare its strides in the program");
    compact *= shape[d];
  }
  return Unit{};
}

Checked Binder::bind_tensor(size_t i) {
  const ir::Buffer& b = buffer(i);
  const uint64_t address = arguments_[i]->bits;
  std::vector<int64_t> shape;
  int64_t bytes = ir::dtype_bytes(b.type);
  bool empty = false;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    const auto extent = solver_.evaluate(b.shape[d]);
    if (!extent || *extent < 0)
      return error(DiagCode::launch_shape, i,
                   "extent " + std::to_string(d) + " of " + tensor_text(i) +
                       (extent ? " would be " + std::to_string(*extent) : " overflows") +
                       because(solver_.explain(b.shape[d])),
                   "pass dimensions for which every extent is at least 0");
    shape.push_back(*extent);
    empty |= *extent == 0;
  }
  for (int64_t extent : shape)
    if (!empty && __builtin_mul_overflow(bytes, extent, &bytes))
      return error(DiagCode::launch_shape, i,
                   tensor_text(i) + " of " + extents_text(shape) + " overflows 64 bits",
                   "pass smaller dimensions");
  slots_[i] = address;
  if (b.optional) slots_[i + 1] = address != 0;  // its presence
  if (empty || (b.optional && address == 0)) return Unit{};
  if (Checked strides = check_strides(i, shape); !strides) return strides;
  if (address == 0) {
    if (!is_accessed(program_, param(i).buffer)) return Unit{};
    return error(
        DiagCode::launch_kind, i, "the address of " + tensor_text(i) + " is null",
        "only a tensor without elements, one that no kernel accesses, or one that the program declares "
        "optional may have a null address");
  }
  const auto element = static_cast<uint64_t>(ir::dtype_bytes(b.type));
  if (address % element != 0)
    return error(DiagCode::launch_alignment, i,
                 "the address of " + tensor_text(i) + " is not a multiple of " + std::to_string(element) +
                     " bytes, the size of " + ir::dtype_name(b.type),
                 "copy the tensor to aligned memory");
  return Unit{};
}

Expected<std::vector<uint64_t>> Binder::bind() {
  if (Checked ok = match_parameters(); !ok) return ok.error();
  slots_.resize(arguments_.size());
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (!given(i)) continue;
    Checked ok = param(i).kind == ir::Param::Kind::dim      ? bind_dim(i)
                 : param(i).kind == ir::Param::Kind::scalar ? bind_scalar(i)
                                                            : describe_tensor(i);
    if (!ok) return ok.error();
  }
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (given(i) && param(i).kind == ir::Param::Kind::tensor) add_stride_equations(i);
  if (Checked ok = solve_dims(); !ok) return ok.error();
  if (Checked ok = check_facts(); !ok) return ok.error();
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (given(i) && param(i).kind == ir::Param::Kind::tensor)
      if (Checked ok = bind_tensor(i); !ok) return ok.error();
  return std::move(slots_);
}

}  // namespace

bool is_accessed(const ir::Program& p, ir::BufferId buffer) {
  for (size_t e = 0; e < p.exprs.size(); ++e)
    if (const ir::ExprNode& n = p.exprs[ir::ExprId(e)]; n.op == ir::ExprOp::load && n.object == buffer)
      return true;
  return std::any_of(p.stmts.begin(), p.stmts.end(), [&](const ir::Stmt& s) {
    const auto* store = std::get_if<ir::Store>(&s.node);
    const auto* op = std::get_if<ir::TileOp>(&s.node);
    const auto names = [&](const ir::Region& r) { return r.buffer == buffer; };
    return (store && store->buffer == buffer) ||
           (op && std::any_of(op->operands.begin(), op->operands.end(), names));
  });
}

Expected<std::vector<uint64_t>> bind_arguments(const ir::Program& program,
                                               std::span<const Argument> arguments,
                                               const MemoryReach& device) {
  Expected<std::vector<uint64_t>> slots = Binder(program, arguments, device).bind();
  if (!slots)
    for (Diagnostic& d : slots.error().diagnostics) d.stage = "launch";
  return slots;
}

}  // namespace tilegen::runtime
