#include "random_program.h"

#include <algorithm>

#include "random_generator.h"
#include "random_pipeline.h"

namespace tilegen::differential {

namespace {

constexpr size_t kMaxTiles = 12;

std::string list_text(const std::vector<int64_t>& list) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + std::to_string(list[i]);
  return text;
}

}  // namespace

// Constants of the program, whose names stand for their values in extents and indices.
void Generator::declare_params() {
  for (int64_t i = r_.below(3); i > 0; --i) {
    const std::string name = fresh("p");
    const int64_t value = r_.pick<int64_t>({2, 3, 8, 16, 32}), other = value + r_.between(1, 9);
    const std::string domain = " in {" + std::to_string(other) + ", " + std::to_string(value) + "}";
    const bool first = r_.chance(2);
    params_.emplace_back(name, first ? other : value);
    declarations_ += "param " + name + (first ? "" : " = " + std::to_string(value)) + domain + "\n";
  }
}

// A constant, mostly by a name where one has its value.
std::string Generator::constant_text(int64_t value) {
  for (const auto& [name, v] : params_)
    if (!r_.chance(3)) {
      if (v == value) return name;
      if (v * 2 == value) return name + " * 2";
      if (v + 1 == value) return name + " + 1";
    }
  return std::to_string(value);
}

void Generator::declare_dims() {
  const int64_t count = r_.between(0, 3);
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = fresh("d");
    const int64_t v = r_.pick<int64_t>({0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 40, 64, 65});
    dims_.push_back(name);
    dim_values_[name] = v;
    std::string facts;
    if (r_.chance(5)) facts += " >= " + std::to_string(r_.between(0, v));
    if (r_.chance(5)) facts += " <= " + std::to_string(v + r_.between(0, 100));
    if (r_.chance(4))
      for (int64_t f : {16, 8, 5, 3})
        if (v % f == 0) {
          facts += " divisible " + std::to_string(f);
          break;
        }
    declarations_ += "dim " + name + facts + "\n";
  }
  for (int64_t i = r_.below(4); i > 0; --i) {
    const std::string name = fresh("s");
    const DType type = random_type();
    scalars_.emplace_back(name, type);
    declarations_ += "scalar " + name + ": " + ir::dtype_name(type) + "\n";
  }
}

Extent Generator::random_extent() {
  if (dims_.empty() || r_.chance(3)) {
    const int64_t n = r_.pick<int64_t>({1, 2, 3, 8, 15, 16, 17, 33, 64});
    return {constant_text(n), n};
  }
  const std::string d = r_.pick(std::span<const std::string>(dims_));
  const int64_t v = dim_values_[d];
  switch (r_.below(6)) {
    case 0:
      return {d + " + 1", v + 1};
    case 1:
      return {d + " * 2", v * 2};
    case 2:
      return {"ceildiv(" + d + ", 4)", (v + 3) / 4};
    default:
      return {d, v};
  }
}

std::string Generator::declare_tensor(RandomTensor t, bool read_only) {
  std::string shape, strides;
  int64_t pitch = 1;
  // Now and then padded rows, or the first dimension innermost.
  const bool strided = r_.chance(4), transposed = r_.chance(2);
  std::vector<std::string> stride(t.shape.size());
  for (size_t i = 0; i < t.shape.size(); ++i) {
    const size_t d = transposed ? i : t.shape.size() - 1 - i;
    stride[d] = std::to_string(pitch);
    pitch *= std::max<int64_t>(t.shape[d].value, 1);
    if (r_.chance(2)) pitch += r_.between(1, 5);
  }
  for (size_t d = 0; d < t.shape.size(); ++d) {
    shape += (d ? ", " : "") + t.shape[d].text;
    strides += (d ? ", " : "") + stride[d];
  }
  declarations_ += "tensor " + t.name + ": " + ir::dtype_name(t.type) + "[" + shape + "]" +
                   (strided ? " strides [" + strides + "]" : "") +
                   (!read_only                 ? ""
                    : tensors_.size() % 4 == 1 ? " constant"
                                               : " readonly") +
                   "\n";
  t.innermost = strided && transposed ? 0 : t.shape.size() - 1;
  tensors_.push_back(std::move(t));
  return tensors_.back().name;
}

void Generator::declare_inputs() {
  const int64_t count = r_.between(1, 3);
  for (int64_t i = 0; i < count; ++i) {
    RandomTensor t;
    t.name = fresh("x");
    t.type = random_type();
    for (int64_t rank = r_.pick<int64_t>({1, 2, 2, 2, 3}); rank > 0; --rank)
      t.shape.push_back(random_extent());
    declare_tensor(std::move(t), !r_.chance(4));
  }
}

void Generator::grid() {
  grid_.clear();
  vars_.clear();
  multiplier_ = 1;
  for (int64_t i = r_.pick<int64_t>({1, 1, 2, 2, 3}); i > 0; --i) {
    GridVar g;
    g.name = fresh("g");
    g.tile = random_tile_extent();
    if (!dims_.empty() && r_.chance(2)) {
      g.dim = r_.pick(std::span<const std::string>(dims_));
      g.dim_value = dim_values_[g.dim];
      g.extent = {"ceildiv(" + g.dim + ", " + std::to_string(g.tile) + ")",
                  (g.dim_value + g.tile - 1) / g.tile};
    } else {
      const int64_t n = r_.between(1, 3);
      g.extent = {std::to_string(n), n};
    }
    if (multiplier_ * std::max<int64_t>(g.extent.value, 1) > 24) g.extent = {"2", 2}, g.dim.clear();
    multiplier_ *= std::max<int64_t>(g.extent.value, 1);
    vars_.push_back({g.name, g.dim.empty() ? g.extent.value : 0});
    grid_.push_back(std::move(g));
  }
}

// A tensor that every block writes its own part of: each grid variable walks one dimension.
void Generator::make_output(DType type, bool extra_dimension) {
  RandomTensor o;
  o.name = fresh("o");
  o.type = type;
  o.readable = false;
  for (size_t i = 0; i < grid_.size(); ++i) {
    const GridVar& g = grid_[i];
    const int64_t n = g.extent.value * g.tile;
    if (!g.dim.empty())
      o.shape.push_back({g.dim, g.dim_value});
    else
      o.shape.push_back({std::to_string(n), n});
    if (g.dim.empty() && r_.chance(3) && n > 1) o.shape.back() = {std::to_string(n - 1), n - 1};
    o.grid_of.push_back(static_cast<int>(i));
  }
  if (extra_dimension) {
    const int64_t n = random_tile_extent();
    const auto at = r_.between(0, static_cast<int64_t>(o.shape.size()));
    o.shape.insert(o.shape.begin() + at, {std::to_string(n), n});
    o.grid_of.insert(o.grid_of.begin() + at, -1);
  }
  declare_tensor(std::move(o), false);
}

// A tile of exactly this shape, type and scope: one that is there, or a new one; null when there are enough.
Tile* Generator::tile_of(std::vector<int64_t> shape, DType type, MemScope scope) {
  for (Tile& t : tiles_)
    if (t.shape == shape && t.type == type && t.scope == scope && !r_.chance(3)) return &t;
  int64_t elements = 1;
  for (int64_t e : shape) elements *= e;
  if (tiles_.size() >= kMaxTiles || elements > 4096) return nullptr;
  const std::string name = fresh("t");
  std::string extents;
  for (const int64_t e : shape) extents += (extents.empty() ? "" : ", ") + constant_text(e);
  allocs_ += "  alloc " + name + ": " + ir::scope_name(scope) + " " + ir::dtype_name(type) + "[" + extents +
             "]" + tile_annotation(scope, type, shape) + "\n";
  tiles_.push_back({name, scope, type, std::move(shape), false});
  return &tiles_.back();
}

Tile* Generator::any_tile(bool (*fits)(const Tile&), bool needs_written) {
  std::vector<Tile*> list;
  for (Tile& t : tiles_)
    if (fits(t) && (t.written || !needs_written)) list.push_back(&t);
  return list.empty() ? nullptr : list[static_cast<size_t>(r_.below(static_cast<int64_t>(list.size())))];
}

void Generator::ensure_written(Tile& t) {
  if (t.written) return;
  int64_t elements = 1;
  for (int64_t e : t.shape) elements *= e;
  spent_ += elements * multiplier_;
  for (const RandomTensor& x : tensors_) {
    if (!x.readable || x.type != t.type || x.shape.size() != t.shape.size() || r_.chance(4)) continue;
    std::string region;
    for (size_t d = 0; d < t.shape.size(); ++d)
      region += (d ? ", " : "") + offset(t.shape[d]) + " :+ " + std::to_string(t.shape[d]);
    line("copy " + x.name + "[" + region + "] -> " + t.name);
    t.written = true;
    return;
  }
  // Different elements, so that mixing them up shows.
  if (t.scope == MemScope::local) {
    line("fill " + t.name + ", " + number_text(t.type, r_.between(0, 5)));
  } else {
    std::string vars, sum;
    for (size_t d = 0; d < t.shape.size(); ++d) {
      const std::string v = fresh("v");
      vars += (d ? ", " : "") + v;
      sum += (d ? " + " : "") + v + " * " + std::to_string(r_.between(1, 5));
    }
    line("parallel " + vars + " in " + list_text(t.shape) + " {");
    line("  " + t.name + "[" + vars + "] = cast(" + ir::dtype_name(t.type) + ", (" + sum + ") % " +
         std::to_string(r_.between(2, 8)) + ")");
    line("}");
  }
  t.written = true;
}

// Tiles go to tensors of their own, so that what went wrong does not stay unseen. Not always all of them:
// tiles that nothing reads any more are what some optimisations look for.
void Generator::observe_tiles() {
  const bool all = r_.chance(2);
  for (const Tile& t : tiles_) {
    if (!t.written || (!all && r_.chance(2))) continue;
    // A block that has returned has left nothing there.
    if (r_.chance(8) && body_.find("return\n") == std::string::npos) {
      leave_in_workspace(t);
      continue;
    }
    RandomTensor o;
    o.name = fresh("o");
    o.type = t.type;
    std::string region;
    for (const GridVar& g : grid_) {
      o.shape.push_back(g.extent);
      region += g.name + " :+ 1, ";
    }
    for (size_t d = 0; d < t.shape.size(); ++d) {
      o.shape.push_back({std::to_string(t.shape[d]), t.shape[d]});
      region += (d ? ", 0 :+ " : "0 :+ ") + std::to_string(t.shape[d]);
    }
    o.readable = false;
    if (r_.chance(4) && ir::takes_atomic(ir::AtomicKind::add, t.type)) {
      // One place for all blocks, of which sums are exact.
      double blocks = 1;
      for (const GridVar& g : grid_) blocks *= static_cast<double>(g.extent.value);
      const bool adds = blocks * tile_cap(t.type) <= exact_limit(t.type);
      o.shape.erase(o.shape.begin(), o.shape.begin() + static_cast<long>(grid_.size()));
      o.grid_of.assign(o.shape.size(), -1);
      const std::string kind = ir::is_float(t.type) ? r_.pick({adds ? "add" : "min", "min", "max"})
                                                    : r_.pick({"add", "min", "max", "and", "or", "xor"});
      line("atomic " + t.name + " -> " + declare_tensor(std::move(o), false) + " {kind=" + kind + "}");
      continue;
    }
    o.grid_of.assign(o.shape.size(), -1);
    const bool exchanges = ir::takes_atomic(ir::AtomicKind::exchange, t.type) && r_.chance(4);
    const std::string to = declare_tensor(std::move(o), false) + "[" + region + "]";
    if (exchanges &&
        r_.chance(2)) {  // what was there comes to the tile, and is combined with what is there now
      line("atomic " + t.name + " -> " + to + ", " + t.name + " {kind = exchange}");
      line("atomic " + t.name + " -> " + to + " {kind = max}");
      continue;
    }
    line((exchanges ? "atomic " : "copy ") + t.name + " -> " + to + (exchanges ? " {kind = exchange}" : ""));
  }
}

void Generator::kernel(int index) {
  grid();
  tiles_.clear();
  tiles_.reserve(kMaxTiles + 8);  // pointers to tiles stay good while a statement is made
  allocs_.clear();
  body_.clear();
  states_threads_ = r_.chance(2);
  const int64_t outputs = r_.between(1, 2);
  for (int64_t i = 0; i < outputs; ++i) make_output(random_type(), r_.chance(3));
  statements(static_cast<int>(r_.between(2, options_.max_statements)), 0);
  observe_tiles();
  annotate_caches();
  std::string header = "kernel k" + std::to_string(index) + " grid (";
  for (size_t i = 0; i < grid_.size(); ++i)
    header += (i ? ", " : "") + grid_[i].name + ": " + grid_[i].extent.text;
  if (body_.empty()) {
    const RandomTensor& o = tensors_.back();
    std::vector<std::string> points(o.shape.size(), "0");
    line(own_region(o, {}, true, points) + " = " + number_text(o.type, 1));
  }
  kernels_ += "\n" + header + ")" + (states_threads_ ? " threads 128" : "") + kernel_annotation() + " {\n" +
              allocs_ + body_ + "}\n";
  for (RandomTensor& t : tensors_) t.readable = true;
}

Case Generator::run(uint64_t seed) {
  asserts_ = r_.chance(10);
  annotates_ = r_.chance(6);
  begin_reports(seed);
  begin_optionals(seed);
  begin_calls(seed);
  begin_orders(seed);
  begin_boxes(seed);
  begin_meetings(seed);
  begin_narrow_products(seed);
  declare_params();
  declare_dims();
  declare_inputs();
  declare_functions();
  for (int i = static_cast<int>(r_.pick<int64_t>({1, 1, 1, 2, 3})), k = 0; k < i; ++k) kernel(k);
  ordered_kernels();
  Case c;
  c.text = "tl 1 program p" + std::to_string(seed) + "\n" + declarations_ + kernels_;
  c.launch.dims = dim_values_;
  c.launch.seed = seed;
  c.launch.bounds = bounds_;
  c.launch.data = seed % 3 == 0 ? Data::integers_specials : Data::integers;
  return c;
}

Case random_case(uint64_t seed, const RandomProgramOptions& options) {
  return Generator(seed * 0x9e3779b97f4a7c15u + 1, options).run(seed);
}

Case random_mix(uint64_t seed) {
  if (seed % 8 == 3) return random_pipeline(seed);
  if (seed % 8 == 7) return random_integers(seed);
  RandomProgramOptions for_gpus;
  for_gpus.for_gpu = true;
  for_gpus.budget = 40000;
  return random_case(seed, seed % 2 == 0 ? for_gpus : RandomProgramOptions());
}

}  // namespace tilegen::differential
