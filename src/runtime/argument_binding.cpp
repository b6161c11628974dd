// One launch bound by the plan of its program. All of it stands in one file, so that it becomes one function.
#include <bit>

#include "runtime/argument_plan.h"
#include "support/checked.h"

namespace tilegen::runtime {

using ir::DType;
using Kind = Argument::Kind;

// One launch: the values found so far. The functions stand in the class so that they become one.
class ArgumentPlan::Binding {
 public:
  Binding(const ArgumentPlan& plan, std::span<const Argument> arguments, uint64_t* slots)
      : plan_(plan), arguments_(arguments), slots_(slots) {}

  bool bind(const MemoryReach& device) {
    if (!place(device) || (described_ && !solve())) return false;
    bool ordinary = plan_.ordinary_;
    return check_facts(&ordinary) && (ordinary ? check_ordinary() : evaluate_code() && check_tensors());
  }

 private:
  bool place(const MemoryReach& device) {
    const size_t all = plan_.params_.size(), most = all - plan_.implied_, given = arguments_.size();
    const bool omitted = given != most;
    if (omitted && given != most - plan_.dims_.size()) return false;
    const Argument* next = arguments_.data();
    const Argument** of_tensor = of_tensor_;
    const Tensor* tensor = plan_.tensors_.data();
    for (size_t i = 0; i < all; ++i) {
      const Param& p = plan_.params_[i];
      if (p.kind == ir::Param::Kind::dim) {
        values_[i] = 0;
        if (omitted) continue;
        const Argument& a = *next++;
        if (a.kind == Kind::integer)
          set(i, static_cast<int64_t>(a.bits));
        else if (a.kind != Kind::automatic)
          return false;
      } else if (p.presence) {
        values_[i] = 0;  // no extent is made of it
      } else if (p.kind == ir::Param::Kind::scalar) {
        const Argument& a = *next++;
        values_[i] = 0;
        if (!scalar_slot(p.type, a, slots_ + i)) return false;
        if (a.kind == Kind::integer) set(i, static_cast<int64_t>(a.bits));
      } else if (p.workspace) {
        slots_[i] = 0;
      } else {
        *of_tensor++ = next;
        if (!place_tensor(*tensor++, *next++, device)) return false;
      }
    }
    return true;
  }

  bool place_tensor(const Tensor& t, const Argument& a, const MemoryReach& device) {
    if (a.kind == Kind::pointer) return a.type == t.type || a.type == DType::none;
    described_ = true;
    return a.kind == Kind::tensor && a.type == t.type && device.reaches(a.place) &&
           a.shape.size() == t.rank && (a.strides.empty() || a.strides.size() == t.rank);
  }

  // A dim met for the first time is solved, any other statement is compared.
  bool match(const Extent& e, int64_t actual) {
    if (e.root >= 0) return true;  // compared once all dims are known
    if (e.dim < 0) return actual == e.offset;
    const auto i = static_cast<size_t>(e.dim);
    int64_t rest = 0;
    if (__builtin_sub_overflow(actual, e.offset, &rest)) return false;
    if (known(i)) {
      int64_t expected = 0;
      return !__builtin_mul_overflow(values_[i], e.scale, &expected) && expected == rest;
    }
    if (e.scale != 1) {
      if (floor_mod(rest, e.scale) != 0) return false;
      rest = floor_div(rest, e.scale);
    }
    set(i, rest);
    return rest >= 0;
  }

  bool solve() {
    for (size_t n = 0; n < plan_.tensors_.size(); ++n) {
      const Tensor& t = plan_.tensors_[n];
      const Argument& a = *of_tensor_[n];
      if (a.kind != Kind::tensor) continue;
      for (size_t d = 0; d < t.rank; ++d)
        if (a.shape[d] < 0 || !match(plan_.extents_[t.extents + d], a.shape[d])) return false;
    }
    return !plan_.any_strided_ || solve_strides();
  }

  bool solve_strides() {
    for (size_t n = 0; n < plan_.tensors_.size(); ++n) {
      const Tensor& t = plan_.tensors_[n];
      const Argument& a = *of_tensor_[n];
      if (a.kind != Kind::tensor || !t.strided) continue;
      bool empty = false;
      for (size_t d = 0; d < t.rank; ++d) empty |= a.shape[d] == 0;
      if (empty) continue;
      int64_t compact = 1;
      for (size_t d = t.rank; d-- > 0;) {
        const int64_t stride = a.strides.empty() ? compact : a.strides[d];
        if (a.shape[d] != 1 && !match(plan_.extents_[t.strides + d], stride)) return false;
        if (__builtin_mul_overflow(compact, a.shape[d], &compact)) return false;
      }
    }
    return true;
  }

  // `ordinary` is cleared where a dim's value is not.
  bool check_facts(bool* ordinary) {
    for (const Dim& d : plan_.dims_) {
      const int64_t v = values_[d.param];
      if (!known(d.param) || v < d.lower || v > d.upper || !d.divides(static_cast<uint64_t>(v))) return false;
      *ordinary &= v >= d.first_ordinary && v <= d.last_ordinary;
      slots_[d.param] = static_cast<uint64_t>(v);
    }
    return true;
  }

  void place_address(const Tensor& t, uint64_t address) {
    slots_[t.param] = address;
    if (t.optional) slots_[t.param + 1] = address != 0;
  }

  // The extents of described tensors were compared by solve, and nothing is empty or too large.
  bool check_ordinary() {
    for (size_t n = 0; n < plan_.tensors_.size(); ++n) {
      const Tensor& t = plan_.tensors_[n];
      const Argument& a = *of_tensor_[n];
      place_address(t, a.bits);
      if (!t.takes(a.bits) || (a.kind == Kind::tensor && !a.strides.empty() && !compact(a))) return false;
    }
    return true;
  }

  static bool compact(const Argument& a) {
    int64_t expected = 1;
    for (size_t d = a.shape.size(); d-- > 0;) {
      if (a.shape[d] != 1 && a.strides[d] != expected) return false;
      expected *= a.shape[d];  // fits: the tensor's bytes do
    }
    return true;
  }

  bool evaluate_code() { return !plan_.code_ || plan_.code_->run({values_, plan_.params_.size()}, roots_); }

  bool value(const Extent& e, int64_t* out) const {
    if (e.root >= 0) return *out = roots_[e.root], true;
    if (e.dim < 0) return *out = e.offset, true;
    return !__builtin_mul_overflow(values_[e.dim], e.scale, out) &&
           !__builtin_add_overflow(*out, e.offset, out);
  }

  bool check_tensors() {
    for (size_t n = 0; n < plan_.tensors_.size(); ++n)
      if (!check_tensor(plan_.tensors_[n], *of_tensor_[n])) return false;
    return true;
  }

  bool check_tensor(const Tensor& t, const Argument& a) {
    int64_t shape[kMaxRank];
    const bool described = a.kind == Kind::tensor;
    bool empty = false, large = false;
    int64_t bytes = t.element;
    for (size_t d = 0; d < t.rank; ++d) {
      int64_t& extent = shape[d];
      if (!value(plan_.extents_[t.extents + d], &extent) || extent < 0) return false;
      if (described && extent != a.shape[d]) return false;
      empty |= extent == 0;
      large |= __builtin_mul_overflow(bytes, extent, &bytes);
    }
    place_address(t, a.bits);
    if (empty) return true;
    if (large || !t.takes(a.bits)) return false;
    if (a.bits == 0 && t.optional) return true;
    return (!t.strided && (!described || a.strides.empty())) || check_strides(t, a, shape);
  }

  bool check_strides(const Tensor& t, const Argument& a, const int64_t* shape) {
    const bool given = a.kind == Kind::tensor && !a.strides.empty();
    int64_t compact = 1, last = t.element;
    for (size_t d = t.rank; d-- > 0;) {
      if (t.strided) {
        int64_t stride = 0, reach = 0;
        if (!value(plan_.extents_[t.strides + d], &stride) || stride < 0) return false;
        if (__builtin_mul_overflow(stride, shape[d] - 1, &reach) ||
            __builtin_mul_overflow(reach, t.element, &reach) || __builtin_add_overflow(last, reach, &last))
          return false;
        const int64_t actual = given ? a.strides[d] : compact;
        if (a.kind == Kind::tensor && shape[d] != 1 && actual != stride) return false;
      } else if (given && shape[d] != 1 && a.strides[d] != compact) {
        return false;
      }
      compact *= shape[d];  // fits: the tensor's bytes do
    }
    return true;
  }

  bool known(size_t i) const { return (known_ >> i & 1) != 0; }
  void set(size_t i, int64_t v) {
    values_[i] = v;
    known_ |= uint64_t{1} << i;
  }

  const ArgumentPlan& plan_;
  std::span<const Argument> arguments_;
  uint64_t* slots_;
  const Argument* of_tensor_[kMaxParams];  // by tensor
  int64_t values_[kMaxParams];             // of dims and integer scalars
  uint64_t known_ = 0;
  bool described_ = false;  // some tensor is
  int64_t roots_[kMaxRoots];
};

bool ArgumentPlan::scalar_slot(DType t, const Argument& a, uint64_t* slot) {
  if (a.type != DType::none && a.type != t) return false;
  if (ir::is_float(t)) {
    if (a.kind != Kind::floating) return false;
    const auto d = std::bit_cast<double>(a.bits);
    if (t == DType::f32 && d == d) {  // the usual one, in one instruction
      *slot = std::bit_cast<uint32_t>(static_cast<float>(d));
      return true;
    }
    *slot = ir::float_to_bits(t, ir::round_to(t, d));
    return true;
  }
  const auto v = static_cast<int64_t>(a.bits);
  if (a.kind != Kind::integer || ir::wrap_to(t, v) != v) return false;
  const int bits = ir::dtype_bits(t);
  *slot = bits == 64 ? a.bits : a.bits & ((uint64_t{1} << bits) - 1);
  return true;
}

// An ordinary launch without descriptions: nothing is to be solved, and each argument stands for itself.
inline bool ArgumentPlan::bind_values(std::span<const Argument> arguments, uint64_t* slots) const {
  if (!ordinary_ || implied_ > 0 || arguments.size() != params_.size()) return false;
  const Dim* dim = dims_.data();
  const Tensor* tensor = tensors_.data();
  const Param* param = params_.data();
  for (const Argument& a : arguments) {
    const Param& p = *param++;
    if (p.kind == ir::Param::Kind::tensor) {
      const Tensor& t = *tensor++;
      if (a.kind != Kind::pointer || (a.type != t.type && a.type != DType::none) || !t.takes(a.bits))
        return false;
      *slots++ = a.bits;
    } else if (p.kind == ir::Param::Kind::dim) {
      const Dim& d = *dim++;
      const auto v = static_cast<int64_t>(a.bits);
      if (a.kind != Kind::integer || v < d.first_ordinary || v > d.last_ordinary || !d.divides(a.bits))
        return false;
      *slots++ = a.bits;
    } else if (!scalar_slot(p.type, a, slots++)) {
      return false;
    }
  }
  return true;
}

[[gnu::hot]] bool ArgumentPlan::bind(std::span<const Argument> arguments, const MemoryReach& device,
                                     std::span<uint64_t> slots) const {
  if (slots.size() < params_.size()) return false;
  return bind_values(arguments, slots.data()) ||
         (usable_ && Binding(*this, arguments, slots.data()).bind(device));
}

}  // namespace tilegen::runtime
