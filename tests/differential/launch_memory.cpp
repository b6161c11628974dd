#include "launch_memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <regex>
#include <sstream>

#include "runtime/reports.h"

namespace tilegen::differential {

using ir::DType;

double epsilon(DType t) {
  switch (t) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f32:
      return 0x1p-23;
    case DType::e4m3:
    case DType::e4m3fnuz:
      return 0x1p-3;
    case DType::e5m2:
    case DType::e5m2fnuz:
      return 0x1p-2;
    default:
      return 0x1p-52;
  }
}

double unit_in_last_place(DType t, double x) {
  const int least = t == DType::f64                       ? -1022
                    : t == DType::f16 || t == DType::e5m2 ? -14
                    : t == DType::e4m3                    ? -6
                    : t == DType::e4m3fnuz                ? -7
                    : t == DType::e5m2fnuz                ? -15
                                                          : -126;
  const int exponent = x == 0 ? least : std::max(std::ilogb(x), least);
  return std::ldexp(epsilon(t), exponent);
}

namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 24;

std::string value_text(DType t, uint64_t bits) {
  std::ostringstream out;
  out.precision(17);
  if (ir::is_float(t))
    out << ir::float_from_bits(t, bits);
  else
    out << (ir::is_bool(t) ? std::to_string(bits)
                           : ir::integer_text(t, ir::wrap_to(t, static_cast<int64_t>(bits))));
  return out.str();
}

bool elements_agree(DType t, uint64_t a, uint64_t b, const Bound& bound) {
  if (a == b) return true;
  if (!ir::is_float(t)) return false;
  const double x = ir::float_from_bits(t, a), y = ir::float_from_bits(t, b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  if (std::isinf(x) || std::isinf(y)) return false;
  return std::fabs(x - y) <=
         bound.absolute + bound.ulps * unit_in_last_place(t, std::max(std::fabs(x), std::fabs(y)));
}

}  // namespace

std::string LaunchMemory::bind(const ir::Program& p, const Launch& launch) {
  std::string error = place(p, launch);
  if (error.empty()) fill(launch);
  return error;
}

std::string LaunchMemory::place(const ir::Program& p, const Launch& launch) {
  program_ = &p;
  runtime::DimSolver dims(p);
  for (const ir::Param& param : p.params) {
    tensor_of_.push_back(-1);
    slots_.push_back(0);
    if (param.kind == ir::Param::Kind::tensor) continue;
    const ir::Var& v = p.var(param.var);
    if (param.kind == ir::Param::Kind::scalar) {
      Random random(launch.seed, v.name);
      if (p.is_presence(param)) {
        const auto given = launch.dims.find(v.name);
        slots_.back() = given != launch.dims.end() ? given->second != 0 : !random.chance(3);
        continue;
      }
      slots_.back() = random_element(random, v.type, launch.data, launch.magnitude);
      if (auto at = launch.dims.find(v.name); at != launch.dims.end() && ir::is_integer(v.type))
        slots_.back() = static_cast<uint64_t>(at->second);
      if (ir::is_integer(v.type))
        dims.set(param.var, ir::wrap_to(v.type, static_cast<int64_t>(slots_.back())), v.name);
      continue;
    }
    auto at = launch.dims.find(v.name);
    if (at == launch.dims.end()) return "dim " + v.name + " has no value";
    if (at->second < v.lower || at->second > v.upper || at->second % v.divisor != 0)
      return "dim " + v.name + " = " + std::to_string(at->second) + " breaks its facts";
    slots_.back() = static_cast<uint64_t>(at->second);
    dims.set(param.var, at->second, v.name);
  }
  for (size_t i = 0; i < p.params.size(); ++i) {
    if (p.params[i].kind != ir::Param::Kind::tensor) continue;
    tensor_of_[i] = static_cast<int>(tensors_.size());
    if (std::string error = place_tensor(p, i, launch, dims); !error.empty()) return error;
  }
  return {};
}

std::string LaunchMemory::place_tensor(const ir::Program& p, size_t param, const Launch& launch,
                                       const runtime::DimSolver& dims) {
  const ir::Buffer& b = p.buffer(p.params[param].buffer);
  Tensor t;
  t.buffer = p.params[param].buffer;
  t.name = b.name;
  t.type = b.type;
  t.workspace = b.workspace;
  t.report = b.report != ir::Report::none;
  t.absent = b.optional && slots_[param + 1] == 0;  // its presence follows it
  for (ir::ExprId e : b.shape) t.shape.push_back(dims.evaluate(e).value_or(-1));
  for (ir::ExprId e : b.strides) t.strides.push_back(dims.evaluate(e).value_or(-1));
  t.dense = t.strides.empty();
  if (t.dense) {
    t.strides.resize(t.shape.size());
    int64_t stride = 1;
    for (size_t d = t.shape.size(); d-- > 0; stride *= std::max<int64_t>(t.shape[d], 1))
      t.strides[d] = stride;
  }
  int64_t span = 1;
  for (size_t d = 0; d < t.shape.size(); ++d) {
    if (t.shape[d] < 0 || t.strides[d] < 0 || t.shape[d] > kMaxTensorBytes || t.strides[d] > kMaxTensorBytes)
      return "extents or strides of " + t.name + " are not for this test";
    t.elements *= t.shape[d];
    span += (t.shape[d] - 1) * t.strides[d];
    if (t.elements > kMaxTensorBytes || span > kMaxTensorBytes) return t.name + " is too large";
  }
  if (t.absent) t.elements = 0;
  if (t.elements == 0) span = 0;
  t.initial.assign(static_cast<size_t>(span * ir::dtype_bytes(t.type)), GuardedMemory::kMark);
  const auto given = launch.whole.find(t.name);
  if (given != launch.whole.end() && !t.absent && static_cast<int64_t>(given->second.size()) != t.elements)
    return "another number of elements is given for " + t.name;
  tensors_.push_back(std::move(t));
  return {};
}

void LaunchMemory::fill(const Launch& launch) {
  for (Tensor& t : tensors_) {
    if (t.report) {
      std::fill(t.initial.begin(), t.initial.end(), std::byte{0});
      continue;
    }
    Random random(launch.seed, t.name);
    const auto given = launch.whole.find(t.name);
    const auto bytes = static_cast<size_t>(ir::dtype_bytes(t.type));
    for (int64_t i = 0; i < t.elements; ++i) {
      const uint64_t bits = given != launch.whole.end()
                                ? static_cast<uint64_t>(given->second[static_cast<size_t>(i)])
                                : random_element(random, t.type, launch.data, launch.magnitude);
      std::memcpy(&t.initial[static_cast<size_t>(t.offset(i)) * bytes], &bits, bytes);
    }
  }
}

void LaunchMemory::add_zeros() {
  for (Tensor& t : tensors_)
    for (int64_t i = 1; i < t.elements; i += 2) {
      const int64_t bytes = ir::dtype_bytes(t.type);
      std::memset(&t.initial[static_cast<size_t>(t.offset(i) * bytes)], 0, static_cast<size_t>(bytes));
    }
}

std::vector<GuardedMemory> LaunchMemory::fresh(bool at_end) const {
  std::vector<GuardedMemory> memory;
  for (const Tensor& t : tensors_) {
    memory.emplace_back(t.initial.size(), at_end);
    std::copy(t.initial.begin(), t.initial.end(), memory.back().bytes().begin());
  }
  return memory;
}

std::vector<uint64_t> LaunchMemory::slots(const std::vector<GuardedMemory>& memory) const {
  std::vector<uint64_t> slots = slots_;
  for (size_t i = 0; i < slots.size(); ++i)
    if (tensor_of_[i] >= 0 && !tensors_[static_cast<size_t>(tensor_of_[i])].absent)
      slots[i] = memory[static_cast<size_t>(tensor_of_[i])].slot();
  return slots;
}

std::string LaunchMemory::told(const std::vector<GuardedMemory>& memory) const {
  const runtime::Reports reports(*program_);
  if (reports.empty()) return {};
  std::vector<const std::byte*> pieces;
  for (const runtime::Reports::Piece& piece : reports.pieces())
    pieces.push_back(memory[static_cast<size_t>(tensor_of_[piece.param])].bytes().data());
  std::string lines;
  if (Checked held = reports.tell(slots(memory), pieces, lines_to(lines)); !held)
    lines += held.error().to_text();
  return lines;
}

std::string LaunchMemory::compare_told(const std::vector<GuardedMemory>& expected,
                                       const std::string& lines) const {
  const std::regex zero("-0(?=[,\n ])");
  const std::string want = std::regex_replace(told(expected), zero, "0"),
                    have = std::regex_replace(lines, zero, "0");
  return want == have ? "" : "a launch tells\n" + have + "expected\n" + want;
}

runtime::LineSink lines_to(std::string& lines) {
  return {[](const void* to, const char* line) {
            *static_cast<std::string*>(const_cast<void*>(to)) += line + std::string("\n");
          },
          &lines};
}

std::string LaunchMemory::compare(const std::vector<GuardedMemory>& expected,
                                  const std::vector<GuardedMemory>& got, const Bound& bound,
                                  const std::map<std::string, Bound>& bounds) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& t = tensors_[i];
    const auto own = bounds.find(t.name);
    const Bound& allowed = own == bounds.end() ? bound : own->second;
    if (!got[i].marks_intact()) return "memory beside tensor " + t.name + " was written";
    if (t.workspace) continue;
    const auto want = expected[i].bytes(), have = got[i].bytes();
    if (want.empty() || std::memcmp(want.data(), have.data(), want.size()) == 0) continue;
    std::vector<bool> is_element(want.size(), false);
    for (int64_t k = 0; k < t.elements; ++k) {
      const int64_t at = t.offset(k), bytes = ir::dtype_bytes(t.type);
      for (int64_t b = 0; b < bytes; ++b) is_element[static_cast<size_t>(at * bytes + b)] = true;
      const uint64_t x = t.element(want, at), y = t.element(have, at);
      if (!elements_agree(t.type, x, y, allowed))
        return t.element_name(k) + " is " + value_text(t.type, y) + ", expected " + value_text(t.type, x) +
               " (was " + value_text(t.type, t.element(t.initial, at)) + ")";
    }
    for (size_t k = 0; k < want.size(); ++k)
      if (!is_element[k] && want[k] != have[k]) return "padding inside tensor " + t.name + " was written";
  }
  return {};
}

}  // namespace tilegen::differential
