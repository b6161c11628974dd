// Accesses of random programs that few programs have: what an element was before an atomic operation, packed
// elements, workspaces, and assertions, all of which hold.
#include <algorithm>

#include "random_generator.h"

namespace tilegen::differential {

namespace {

bool takes_old_value(const Tile& t) {
  return t.scope == MemScope::shared && ir::is_integer(t.type) && ir::dtype_bits(t.type) >= 16;
}

}  // namespace

// An iteration for each point, whose variables are in scope until end_points().
std::vector<std::string> Generator::begin_points(const std::vector<int64_t>& extents) {
  std::vector<std::string> points;
  std::string vars, ranges;
  for (const int64_t extent : extents) {
    points.push_back(fresh("v"));
    vars += (vars.empty() ? "" : ", ") + points.back();
    ranges += (ranges.empty() ? "" : ", ") + std::to_string(extent);
    vars_.push_back({points.back(), extent});
  }
  line("parallel " + vars + " in " + ranges + " {");
  ++indent_;
  in_parallel_ = true;
  return points;
}

void Generator::end_points(size_t outer_vars) {
  --indent_;
  line("}");
  in_parallel_ = false;
  hidden_.clear();
  vars_.resize(outer_vars);
}

// One operation, which gives the old value.
std::string Generator::fetch(DType t, const std::string& element) {
  const auto small = [&] {
    return std::string("cast(") + ir::dtype_name(t) + ", " + index(1) + " % " +
           std::to_string(r_.between(2, 9)) + ")";
  };
  if (r_.chance(4))
    return "atomic_compare_exchange(" + element + ", " + small() + ", " + small() + ")" + order();
  return "atomic_" + std::string(r_.pick({"add", "min", "max", "and", "or", "xor", "exchange"})) + "(" +
         element + ", " + expr(t, 1).text + ")" + order();
}

// Each iteration has an element of its own, so that old values are the same in any order; or iterations that
// meet get places, of which each is taken once.
void Generator::old_values() {
  if (r_.chance(3)) return taken_places();
  Tile* to = any_tile(takes_old_value, true);
  if (!to) {
    to = tile_of({random_tile_extent(), random_tile_extent()},
                 r_.pick({DType::i32, DType::i64, DType::u32, DType::u64, DType::i16, DType::u16, DType::i8,
                          DType::u8}),
                 MemScope::shared);
    if (to) ensure_written(*to);
  }
  if (!to || !affordable(6 * product(to->shape))) return;
  const Tile met = *to;
  Tile* other = tile_of(met.shape, met.type, r_.pick({MemScope::shared, MemScope::fragment}));
  if (!other || other->name == met.name) return;
  const std::string result = other->name;
  const bool some = r_.chance(3);
  if (some) ensure_written(*other);
  const size_t outer_vars = vars_.size();
  const std::vector<std::string> points = begin_points(met.shape);
  hidden_ = {met.name, result};
  std::string element = met.name + "[", place = result + "[";
  for (size_t d = 0; d < points.size(); ++d) {
    const std::string n = std::to_string(met.shape[d]), comma = d ? ", " : "", &v = points[d];
    element +=
        comma + r_.pick<std::string>({v, v, std::to_string(met.shape[d] - 1) + " - " + v,
                                      "(" + v + " + " + std::to_string(r_.between(1, 5)) + ") % " + n});
    place += comma + v;
  }
  element += "]", place += "]";
  if (some) {
    line("if " + bool_expr(1).text + " {");
    ++indent_;
  }
  if (r_.chance(2)) {
    line(place + " = " + fetch(met.type, element));
  } else {
    const std::string old = fresh("s");
    line("let " + old + " = " + fetch(met.type, element));
    if (r_.chance(3)) line(fetch(met.type, element));  // the same iteration again
    line(place + " = " + old + r_.pick({" + ", " ^ ", " - "}) + expr(met.type, 1).text);
  }
  if (some) {
    --indent_;
    line("}");
  }
  end_points(outer_vars);
  for (Tile& t : tiles_) t.written = t.written || t.name == result;
}

// A histogram whose counts give places: in any order, but each once.
void Generator::taken_places() {
  const int64_t bins = r_.between(1, 6), points = r_.pick<int64_t>({8, 31, 32, 100});
  if (!affordable(6 * points)) return;
  const DType type = r_.pick({DType::i32, DType::u32, DType::i64});
  Tile* counts = tile_of({bins}, type, MemScope::shared);
  if (!counts) return;
  const std::string next = counts->name;
  Tile* list = tile_of({bins, points}, DType::i32, MemScope::shared);
  if (!list || list->name == next) return;
  const std::string hits = list->name, old = fresh("s"), bin = fresh("s");
  line("fill " + next + ", " + number_text(type, 0));
  line("fill " + hits + ", 0i32");
  const size_t outer_vars = vars_.size();
  hidden_ = {next, hits};
  begin_points({points});
  const bool some = r_.chance(3);
  if (some) line("if " + bool_expr(1).text + " {");
  line("let " + bin + " = " + index_within(bins));
  line("let " + old + " = atomic_add(" + next + "[" + bin + "], " + number_text(type, 1) + ")");
  line("atomic_" + std::string(r_.pick({"add", "xor"})) + "(" + hits + "[" + bin + ", cast(i64, " + old +
       ")], 1i32)");
  if (some) line("}");
  end_points(outer_vars);
  for (Tile& t : tiles_) t.written = t.written || t.name == next || t.name == hits;
}

// A condition that holds for any values, which the check cannot tell of all of them.
void Generator::assertion() {
  const std::string text = ", \"" + fresh("holds_") + "\"";
  const int64_t n = r_.between(2, 9);
  const std::string e = in_parallel_ ? expr(DType::i64, 1).text : index(2);
  switch (r_.below(4)) {
    case 0:
      return line("assert (" + e + ") % " + std::to_string(n) + " < " + std::to_string(n) + text);
    case 1:
      return line("assert ((" + e + ") & " + std::to_string(n) + ") <= " + std::to_string(n) + text);
    case 2:
      return line("assert min(" + e + ", 5) <= 5" + text);
    default:
      return line("assert (" + e + ") < 7 or (" + e + ") >= 7" + text);
  }
}

namespace {

constexpr DType kPacked[] = {DType::i4, DType::u4, DType::i2, DType::u2, DType::e2m1, DType::e8m0};

}  // namespace

// A packed element as a small whole number of the type. A scale is read by its code.
std::string Generator::unpacked(DType packed, const std::string& element, DType to) {
  const std::string cast = std::string("cast(") + ir::dtype_name(to) + ", ";
  if (packed == DType::e8m0) return cast + "bitcast(u8, " + element + ") % 7u8)";
  if (packed == DType::e2m1) return cast + "cast(f32, " + element + ") * 2.0f32)";
  if (r_.chance(4) && (packed == DType::i4 || packed == DType::u4))
    return cast + "bitcast(" + (packed == DType::i4 ? "u4, " : "i4, ") + element + "))";
  return cast + element + ")";
}

// A tensor of packed elements, directly or by a tile, as numbers; or numbers as packed elements.
void Generator::packed_elements() {
  const DType type = r_.pick(std::span<const DType>(kPacked));
  const int64_t rows = r_.between(1, 9), columns = r_.pick<int64_t>({4, 8, 16, 32, 64});
  if (!affordable(4 * rows * columns)) return;
  const DType number = r_.pick({DType::f32, DType::f16, DType::i32, DType::i8, DType::i64});
  Tile* tile = tile_of({rows, columns}, number, r_.pick({MemScope::fragment, MemScope::shared}));
  if (!tile) return;
  const std::string name = tile->name, packed_name = ir::dtype_name(type);
  const size_t outer_vars = vars_.size();
  if (tile->written && r_.chance(2)) {  // packed, and stored
    const std::string o = fresh("q");
    std::string shape, place;
    for (const GridVar& g : grid_) shape += g.extent.text + ", ", place += g.name + ", ";
    declarations_ += "tensor " + o + ": " + packed_name + "[" + shape + std::to_string(rows) + ", " +
                     std::to_string(columns) + "]\n";
    const std::string through = r_.chance(2) ? fresh("q") : "";
    if (!through.empty())
      allocs_ += "  alloc " + through + ": " + r_.pick({"shared ", "fragment "}) + packed_name + "[" +
                 std::to_string(rows) + ", " + std::to_string(columns) + "]\n";
    const auto v = begin_points({rows, columns});
    const std::string at = v[0] + ", " + v[1];
    // Now and then some elements of bytes only, of which the others stay.
    const bool parts = through.empty() && r_.chance(3);
    if (parts) line("if (" + v[1] + " + " + v[0] + ") % 3 != 1 {");
    line((through.empty() ? o + "[" + place + at : through + "[" + at) + "] = cast(" + packed_name + ", " +
         name + "[" + at + "])");
    if (parts) line("}");
    end_points(outer_vars);
    if (through.empty()) return;
    std::string box;
    for (const GridVar& g : grid_) box += g.name + " :+ 1, ";
    return line("copy " + through + " -> " + o + "[" + box + "0 :+ " + std::to_string(rows) + ", 0 :+ " +
                std::to_string(columns) + "]");
  }
  const std::string q = fresh("q"), row = offset(rows), column = offset(1);
  const int64_t height = r_.between(1, 20), width = r_.pick<int64_t>({4, 8, 24, 64});
  declarations_ += "tensor " + q + ": " + packed_name + "[" + std::to_string(height) + ", " +
                   std::to_string(width) + "] readonly\n";
  const bool bytes = r_.chance(2);
  const std::string source = q + "[" + row + " :+ " + std::to_string(rows) + ", " +
                             (bytes ? "(" + column + ") * 4" : column) + " :+ " + std::to_string(columns) +
                             "]";
  std::string element;
  std::string through;
  if (!r_.chance(3)) {
    through = fresh("q");
    allocs_ += "  alloc " + through + ": " + r_.pick({"shared ", "fragment "}) + packed_name + "[" +
               std::to_string(rows) + ", " + std::to_string(columns) + "]\n";
    line("copy " + source + " -> " + through);
  }
  hidden_ = {name};
  const auto v = begin_points({rows, columns});
  if (through.empty())
    element = q + "[" + index(1) + ", " + index(1) + "]";
  else
    element = through + "[" + v[0] + ", " +
              r_.pick<std::string>({v[1], v[1], v[1] + " ^ 1", std::to_string(columns - 1) + " - " + v[1]}) +
              "]";
  line(name + "[" + v[0] + ", " + v[1] + "] = " + unpacked(type, element, number));
  end_points(outer_vars);
  for (Tile& t : tiles_) t.written = t.written || t.name == name;
}

// What the kernel leaves for later ones, in memory of the launch: every element of it is written.
void Generator::leave_in_workspace(const Tile& t) {
  RandomTensor w;
  w.name = fresh("w");
  w.type = t.type;
  std::string region, shape;
  for (const GridVar& g : grid_) {
    w.shape.push_back(g.extent);
    region += g.name + " :+ 1, ";
  }
  for (const int64_t extent : t.shape) {
    w.shape.push_back({std::to_string(extent), extent});
    region += "0 :+ " + std::to_string(extent) + ", ";
  }
  for (const Extent& e : w.shape) shape += (shape.empty() ? "" : ", ") + e.text;
  region.resize(region.size() - 2);
  w.readable = false;
  w.workspace = true;
  w.grid_of.assign(w.shape.size(), -1);
  w.innermost = w.shape.size() - 1;
  declarations_ += "tensor " + w.name + ": " + ir::dtype_name(w.type) + "[" + shape + "] workspace\n";
  line("copy " + t.name + " -> " + w.name + "[" + region + "]");
  tensors_.push_back(std::move(w));
}

}  // namespace tilegen::differential
