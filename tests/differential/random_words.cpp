// The words of random programs that few statements need: while loops, updates of shared tiles, places of the
// largest, functions, views.
#include <algorithm>
#include <iterator>

#include "random_generator.h"

namespace tilegen::differential {

// Functions of i64, whose calls stand among the operators of integers; some have native text, of a function
// @f where it is LLVM IR.
void Generator::declare_functions() {
  static constexpr struct {
    std::string_view body, native;
  } kBodies[] = {
      {"x * 3 - y", ""},
      {"select(x < y, y, x) + 1", ""},
      {"(x ^ y) % 11", ""},
      {"let t = x // 3\n  return t * t - y", ""},
      {"min(x, y) - max(x, 5)", ""},
      {"let t = x + y\n  return select(t % 2 == 0, t, -t)", ""},
      {"x ^ y",
       "  asm ptx \"xor.b64 $0, $1, $2;\"\n  llvm \"define i64 @f(i64 %a, i64 %b) { %r = xor i64 %a, %b\" "
       "\"ret i64 %r }\"\n"},
      {"x * 5 + y",
       "  llvm host \"define i64 @f(i64 %a, i64 %b) { %m = mul i64 %a, 5 %r = add i64 %m, %b ret i64 %r "
       "}\"\n"},
      {"max(x, y) - 3",
       "  asm ptx \"{ .reg .b64 t; max.s64 t, $1, $2; sub.s64 $0, t, 3; }\"\n"
       "  llvm gcn \"define i64 @f(i64 %a, i64 %b) { %c = icmp sgt i64 %a, %b\"\n"
       "    \"%m = select i1 %c, i64 %a, i64 %b %r = sub i64 %m, 3 ret i64 %r }\"\n"},
  };
  for (int64_t i = r_.below(3); i > 0; --i) {
    functions_.push_back(fresh("f"));
    const auto& chosen = kBodies[static_cast<size_t>(r_.below(static_cast<int64_t>(std::size(kBodies))))];
    std::string native(chosen.native);
    if (const size_t at = native.find("@f("); at != native.npos) native.replace(at + 1, 1, functions_.back());
    declarations_ += "fn " + functions_.back() + "(x: i64, y: i64) -> i64" +
                     (native.empty() ? " {\n  " : "\n" + native + "{\n  ") +
                     (chosen.body.starts_with("let") ? "" : "return ") + std::string(chosen.body) + "\n}\n";
  }
}

std::string Generator::call(const std::string& a, const std::string& b) {
  return r_.pick(std::span<const std::string>(functions_)) + "(" + a + ", " + b + ")";
}

// A loop that counts in a tile of its own, and may end early.
void Generator::while_loop(int depth) {
  const int64_t trips = r_.between(0, 4), outer = multiplier_;
  multiplier_ *= std::max<int64_t>(trips, 1);
  if (multiplier_ > options_.budget / 8) {
    multiplier_ = outer;
    return;
  }
  const std::string counter = fresh("c");
  allocs_ += "  alloc " + counter + ": local i64[1]\n";
  line(counter + "[0] = 0");
  line("while " + counter + "[0] < " + std::to_string(trips) + " {");
  ++indent_;
  line(counter + "[0] += 1");
  std::vector<bool> before;
  for (const Tile& t : tiles_) before.push_back(t.written);
  if (r_.chance(3))
    line("if " + counter + "[0] == " + std::to_string(r_.between(1, 5)) + " { " +
         r_.pick({"break", "continue"}) + " }");
  statements(static_cast<int>(r_.between(1, 2)), depth + 1);
  for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i].written = i < before.size() && before[i];
  --indent_;
  line("}");
  multiplier_ = outer;
}

// Of an atomic operation on an element of a shared tile.
std::string Generator::order() {
  if (other_loops_ > 0 || !r_.chance(5)) return "";
  return std::string(" {order = ") + r_.pick({"relaxed", "acquire", "release", "acq_rel"}) + "}";
}

// Iterations meet in elements of a shared tile. Values are small, so that sums are exact in any order.
void Generator::update_shared() {
  Tile* to = any_tile(
      [](const Tile& t) {
        return t.scope == MemScope::shared && ir::takes_atomic(ir::AtomicKind::add, t.type) &&
               (!ir::is_float(t.type) || ir::dtype_bits(t.type) > 16);
      },
      true);
  if (!to) return;
  const int64_t points = r_.pick<int64_t>({1, 8, 16, 32, 33});
  if (!affordable(points)) return;
  const bool floating = ir::is_float(to->type);
  const std::string kind =
      floating ? r_.pick({"add", "min", "max"}) : r_.pick({"add", "min", "max", "and", "or", "xor"});
  const std::string v = fresh("v");
  line("parallel " + v + " in " + std::to_string(points) + " {");
  ++indent_;
  vars_.push_back({v, points});
  in_parallel_ = true;
  std::string element = to->name + "[";
  for (size_t d = 0; d < to->shape.size(); ++d)
    element += (d ? ", " : "") + std::string("(") + v + " * " + std::to_string(r_.between(0, 5)) + " + " +
               std::to_string(r_.between(0, 9)) + ") % " + std::to_string(to->shape[d]);
  hidden_ = {to->name};
  const std::string value = std::string("cast(") + ir::dtype_name(to->type) + ", " + index(1) + " % " +
                            std::to_string(r_.between(2, 8)) + ")";
  const bool some = r_.chance(3);
  if (some) line("if " + bool_expr(1).text + " {");
  line("atomic_" + kind + "(" + element + "], " + value + ")" + order());
  if (some) line("}");
  hidden_.clear();
  in_parallel_ = false;
  vars_.pop_back();
  --indent_;
  line("}");
  if (floating) clamp(*to);
}

// Rows in order, or their first elements; where they stood, of integers, whose order no rounding changes.
void Generator::sort_rows() {
  Tile* src = any_tile(
      [](const Tile& t) {
        return !ir::is_bool(t.type) && !ir::is_storage_only(t.type) && product(t.shape) <= 2048;
      },
      true);
  if (!src || !affordable(16 * product(src->shape))) return;
  const Tile from = *src;
  const auto axis = static_cast<size_t>(r_.below(static_cast<int64_t>(from.shape.size())));
  if (from.shape[axis] > 64) return;
  const bool first_ones = r_.chance(2), turned = r_.chance(2);
  std::vector<int64_t> shape = from.shape;
  if (first_ones) shape[axis] = r_.between(1, shape[axis]);
  Tile* to = tile_of(shape, from.type, r_.pick({MemScope::fragment, MemScope::shared}));
  if (!to) return;
  const std::string to_name = to->name;
  std::string place;
  if (!ir::is_float(from.type) && r_.chance(2)) {
    Tile* index = tile_of(shape, r_.pick({DType::i32, DType::i64}), MemScope::fragment);
    if (index && index->name != from.name && index->name != to_name) {
      place = ", " + index->name;
      index->written = true;
    }
  }
  line(std::string(first_ones ? "topk " : "sort ") + from.name + " -> " + to_name + place +
       " {axis = " + std::to_string(axis) +
       (!turned      ? "}"
        : first_ones ? ", smallest}"
                     : ", descending}"));
  for (Tile& t : tiles_) t.written = t.written || t.name == to_name;
}

// " carry c, d": tiles of the source's extents without the axis, others than those that are named.
std::string Generator::carry_of(const Tile& from, size_t axis, int count, std::vector<std::string> others) {
  std::vector<int64_t> shape = from.shape;
  if (shape.size() == 1 || r_.chance(2))
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  others.push_back(from.name);
  std::string text;
  for (int i = 0; i < count; ++i) {
    Tile* t = tile_of(shape, from.type, r_.pick({MemScope::fragment, MemScope::shared}));
    if (!t || std::find(others.begin(), others.end(), t->name) != others.end()) return "";
    ensure_written(*t);
    others.push_back(t->name);
    text += (i == 0 ? " carry " : ", ") + t->name;
  }
  return text;
}

// The group in front of all, now and then, up to the brace that its attributes stand in.
std::string Generator::first_group(DType type, bool two) {
  if (!others_.chance(2)) return " {";
  std::string text = " from " + number_text(type, others_.below(5));
  if (two) text += ", " + number_text(type, others_.below(5));
  return text + (others_.chance(2) ? " {exclusive, " : " {");
}

// Integers by a combination that depends on the order, of one or two values.
void Generator::combine_rows() {
  Tile* src =
      any_tile([](const Tile& t) { return ir::is_integer(t.type) && product(t.shape) <= 4096; }, true);
  if (!src || !affordable(8 * product(src->shape))) return;
  const Tile from = *src;
  const auto axis = static_cast<size_t>(r_.below(static_cast<int64_t>(from.shape.size())));
  const bool scans = r_.chance(2), two = r_.chance(2), flag = r_.chance(3);
  std::vector<int64_t> shape = from.shape;
  if (!scans && (shape.size() == 1 || r_.chance(2)))
    shape[axis] = 1;
  else if (!scans)
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  std::vector<std::string> to;
  for (int i = 0; i < (two ? 2 : 1); ++i) {
    Tile* t = tile_of(shape, from.type, r_.pick({MemScope::fragment, MemScope::shared}));
    if (!t || t->name == from.name || (i == 1 && t->name == to[0])) return;
    if (flag && !scans && !t->written) return;
    to.push_back(t->name);
  }
  const std::string f = fresh("f"), type = ir::dtype_name(from.type);
  declarations_ += two ? "fn " + f + "(a: " + type + ", b: " + type + ", c: " + type + ", d: " + type +
                             ") -> (" + type + ", " + type + ") {\n  return a * c, b * c + d\n}\n"
                       : "fn " + f + "(a: " + type + ", b: " + type + ") -> " + type +
                             " {\n  return select(b % 3 == 0, a, b)\n}\n";
  std::string carried;
  if (scans && r_.chance(3)) carried = carry_of(from, axis, two ? 2 : 1, to);
  line(std::string(scans ? "scan " : "reduce ") + from.name + (two ? ", " + from.name : "") + " -> " + to[0] +
       (two ? ", " + to[1] : "") + " by " + f +
       (!scans            ? " {"
        : carried.empty() ? first_group(from.type, two)
                          : carried + " {") +
       "axis = " + std::to_string(axis) +
       (!flag   ? "}"
        : scans ? ", reverse}"
                : ", accumulate}"));
  for (Tile& t : tiles_)
    for (const std::string& name : to) t.written = t.written || t.name == name;
}

// The largest or smallest along an axis, and where the first such stands.
void Generator::arg_reduce() {
  if (r_.chance(2)) return r_.chance(2) ? sort_rows() : combine_rows();
  Tile* src = any_tile([](const Tile& t) { return !ir::is_bool(t.type); }, true);
  if (!src || !affordable(4 * product(src->shape))) return;
  const Tile from = *src;
  const auto axis = static_cast<size_t>(r_.below(static_cast<int64_t>(from.shape.size())));
  std::vector<int64_t> shape = from.shape;
  if (shape.size() == 1 || r_.chance(2))
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  Tile* value = tile_of(shape, from.type, r_.pick({MemScope::fragment, MemScope::shared}));
  if (!value || value->name == from.name) return;
  const std::string value_name = value->name;
  Tile* place =
      tile_of(shape, r_.pick({DType::i32, DType::i64}), r_.pick({MemScope::fragment, MemScope::shared}));
  if (!place || place->name == from.name || place->name == value_name) return;
  line(r_.pick({"argmax ", "argmin "}) + from.name + " -> " + value_name + ", " + place->name +
       " {axis = " + std::to_string(axis) + "}");
  place->written = true;
  for (Tile& t : tiles_) t.written = t.written || t.name == value_name;
}

// One to three extents that multiply to this.
std::vector<int64_t> Generator::random_factors(int64_t elements) {
  std::vector<int64_t> shape;
  for (int64_t left = r_.below(3); left > 0; --left) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= elements && d <= 64; ++d)
      if (elements % d == 0) divisors.push_back(d);
    shape.push_back(r_.pick(std::span<const int64_t>(divisors)));
    elements /= shape.back();
  }
  shape.push_back(elements);
  return shape;
}

// Declares it.
Tile Generator::random_view(const Tile& of) {
  Tile view = of;
  view.name = fresh("w");
  std::string form;
  if (const int64_t kind = r_.below(4); kind == 0) {
    view.shape = random_factors(product(of.shape));
    for (int64_t extent : view.shape) form += (form.empty() ? "" : ", ") + std::to_string(extent);
    form = "reshape(" + of.name + ", [" + form + "])";
  } else if (kind == 2) {
    std::vector<size_t> order(of.shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    for (size_t d = order.size(); d-- > 1;)
      std::swap(order[d], order[static_cast<size_t>(r_.below(static_cast<int64_t>(d) + 1))]);
    for (size_t d = 0; d < order.size(); ++d) {
      view.shape[d] = of.shape[order[d]];
      form += (d ? ", " : "") + std::to_string(order[d]);
    }
    form = "transpose(" + of.name + ", [" + form + "])";
  } else if (kind == 1 && ir::is_integer(of.type)) {
    const auto other =
        ir::dtype_from_name((ir::dtype_kind(of.type) == ir::DTypeKind::signed_int ? "u" : "i") +
                            std::to_string(ir::dtype_bits(of.type)));
    view.type = *other;
    form = "reinterpret(" + of.name + ", " + ir::dtype_name(view.type) + ")";
  } else {
    form = of.name + part_of(view);
  }
  line("view " + view.name + " = " + form);
  return view;
}

// Elements of more bits, or of fewer; false where there are none.
bool Generator::view_of_other_width(Tile& view) {
  const int64_t bits = ir::dtype_bits(view.type), other = r_.pick<int64_t>({8, 16, 32, 64});
  const int64_t row = view.shape.empty() ? 0 : view.shape.back() * bits;
  if (!ir::is_integer(view.type) || bits == other || row == 0 || row % other != 0) return false;
  Tile wide = view;
  wide.name = fresh("w");
  wide.type = *ir::dtype_from_name(std::string(r_.pick({"u", "i"})) + std::to_string(other));
  wide.shape.back() = row / other;
  line("view " + wide.name + " = reinterpret(" + view.name + ", " + ir::dtype_name(wide.type) + ")");
  view = wide;
  return true;
}

// What an operation reads of a tile: at times a view of it, also of elements of more bits or fewer.
Tile Generator::view_as_operand(const Tile& of) {
  if (of.scope == MemScope::local || ir::is_bool(of.type) || !r_.chance(3)) return of;
  Tile view = random_view(of);
  if (r_.chance(3)) view_of_other_width(view);
  return view;
}

// Declares a view of these extents.
std::string Generator::reshaped(const Tile& of, const std::vector<int64_t>& shape) {
  const std::string name = fresh("w");
  std::string extents;
  for (int64_t extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  line("view " + name + " = reshape(" + of.name + ", [" + extents + "])");
  return name;
}

// A tile in another shape, on one side of a copy or of a loop.
void Generator::view_of_tile() {
  Tile* base = any_tile([](const Tile& t) { return t.scope != MemScope::local; }, true);
  if (!base || !affordable(3 * product(base->shape))) return;
  const Tile of = *base;
  Tile view = random_view(of);
  if (r_.chance(3)) view = random_view(view);
  if (r_.chance(2)) view_of_other_width(view);
  Tile* other = tile_of(view.shape, view.type, r_.pick({MemScope::fragment, MemScope::shared}));
  if (!other || other->name == of.name) return;
  const bool writes = r_.chance(2) && other->written;
  const std::string to = writes ? view.name : other->name, from = writes ? other->name : view.name;
  other->written = true;
  if (r_.chance(2)) return line("copy " + from + " -> " + to);
  std::string indices, extents;
  for (int64_t extent : view.shape) {
    const std::string v = fresh("v");
    indices += (indices.empty() ? "" : ", ") + v;
    extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  }
  line("parallel " + indices + " in " + extents + " { " + to + "[" + indices + "] = " + from + "[" + indices +
       "] }");
}

}  // namespace tilegen::differential
