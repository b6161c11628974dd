// Products of random programs, alone and in pipelined loops.
#include <algorithm>
#include <numeric>

#include "random_generator.h"

namespace tilegen::differential {

namespace {
struct GemmTypes {
  DType a, b, c;
};
constexpr GemmTypes kGemmTypes[] = {
    {DType::f16, DType::f16, DType::f16},   {DType::f16, DType::f16, DType::f32},
    {DType::bf16, DType::bf16, DType::f32}, {DType::f32, DType::f32, DType::f32},
    {DType::f64, DType::f64, DType::f64},   {DType::i8, DType::i8, DType::i32},
    {DType::i8, DType::u8, DType::i32},     {DType::u8, DType::i8, DType::i32},
    {DType::u8, DType::u8, DType::i32},
};

// Instructions of the program's own, for products of these types: in PTX, and of waves of 64 lanes.
struct AtomRow {
  DType a, b, c;
  std::string_view shapes[3], layouts[3], text;
};
constexpr std::string_view kSum16 = "(i, j) -> (i % 8 * 4 + j // 2) * 4 + i // 8 * 2 + j % 2";
constexpr std::string_view kSum8 = "(i, j) -> (i * 4 + j // 2) * 2 + j % 2";
constexpr AtomRow kAtoms[] = {
    {DType::f16,
     DType::f16,
     DType::f32,
     {"[16, 8]", "[8, 8]", "[16, 8]"},
     {"(i, k) -> (i % 8 * 4 + k // 2) * 4 + i // 8 * 2 + k % 2", "(k, j) -> (j * 4 + k // 2) * 2 + k % 2",
      kSum16},
     "ptx \"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, \"\n"
     "    \"{$7, $8, $9, $10};\""},
    {DType::f16,
     DType::f16,
     DType::f32,
     {"[16, 16]", "[16, 16]", "[16, 16]"},
     {"(i, k) -> (i + k // 4 * 16) * 4 + k % 4", "(k, j) -> (j + k // 4 * 16) * 4 + k % 4",
      "(i, j) -> (j + i // 4 * 16) * 4 + i % 4"},
     "gcn \"v_mfma_f32_16x16x16f16 $0, $1, $2, $3\""},
    {DType::i8,
     DType::u8,
     DType::i32,
     {"[8, 16]", "[16, 8]", "[8, 8]"},
     {"(i, k) -> (i * 4 + k // 4) * 4 + k % 4", "(k, j) -> (j * 4 + k // 4) * 4 + k % 4", kSum8},
     "ptx \"mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {$0, $1}, {$2}, {$3}, {$4, $5};\""},
    {DType::f64,
     DType::f64,
     DType::f64,
     {"[8, 4]", "[4, 8]", "[8, 8]"},
     {"(i, k) -> i * 4 + k", "(k, j) -> j * 4 + k", kSum8},
     "ptx \"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$0, $1}, {$2}, {$3}, {$4, $5};\""},
};
}  // namespace

// The name of an atom for products of these types, which is declared; empty where there is none.
std::string Generator::declare_atom(DType a, DType b, DType c) {
  std::vector<const AtomRow*> fitting;
  for (const AtomRow& row : kAtoms)
    if (row.a == a && row.b == b && row.c == c) fitting.push_back(&row);
  if (fitting.empty()) return {};
  const AtomRow& row = *fitting[static_cast<size_t>(r_.below(static_cast<int64_t>(fitting.size())))];
  const std::string name = fresh("a");
  declarations_ += "atom " + name + "(";
  const DType types[] = {a, b, c};
  for (size_t i = 0; i < 3; ++i)
    declarations_ += std::string(i > 0 ? ",\n    " : "") + "abc"[i] + ": " + ir::dtype_name(types[i]) +
                     std::string(row.shapes[i]) + " at " + std::string(row.layouts[i]);
  declarations_ +=
      ")\n  " + std::string(others_.chance(3) ? "cycles 16 asm " : "asm ") + std::string(row.text) + "\n";
  return name;
}

std::array<int64_t, 3> Generator::gemm_extents(int64_t max_k) {
  if (options_.for_gpu)
    return {r_.pick<int64_t>({32, 64}), r_.pick<int64_t>({16, 32, 64}),
            max_k < 32 ? 16 : r_.pick<int64_t>({32, 64})};
  if (r_.chance(3)) {  // square: a result is often the next one's operand
    const int64_t e = r_.pick<int64_t>({4, 8, 12, 16, 24});
    return {e, e, e};
  }
  return {random_tile_extent(), random_tile_extent(), std::min(random_tile_extent(), max_k)};
}

void Generator::gemm() {
  const GemmTypes types = r_.pick(std::span<const GemmTypes>(kGemmTypes));
  const auto [m, n, k] = gemm_extents(types.c == DType::f16 ? 31 : 64);
  if (!affordable(m * n * k / 4)) return;
  const bool ta = r_.chance(2), tb = r_.chance(2), clear = r_.chance(3);
  const auto scope = [&] { return r_.chance(2) ? MemScope::fragment : MemScope::shared; };
  const std::vector<int64_t> shapes[] = {
      ta ? std::vector{k, m} : std::vector{m, k}, tb ? std::vector{n, k} : std::vector{k, n}, {m, n}};
  const DType dtypes[] = {types.a, types.b, types.c};
  std::string names[3];
  bool reshapes[3] = {}, renames[3] = {};  // what the product sees of the tile
  for (int i = 0; i < 3; ++i) {
    reshapes[i] = r_.chance(8), renames[i] = i < 2 && ir::is_integer(dtypes[i]) && r_.chance(4);
    const DType other = dtypes[i] == DType::i8 ? DType::u8 : DType::i8;
    Tile* t = tile_of(reshapes[i] ? std::vector{product(shapes[i])} : shapes[i],
                      renames[i] ? other : dtypes[i], i == 2 ? MemScope::fragment : scope());
    if (!t) return;
    names[i] = t->name;
    for (int j = 0; j < i; ++j)
      if (names[j] == names[i] && i == 2) return;
  }
  const auto find = [&](const std::string& name) -> Tile& {
    return *std::find_if(tiles_.begin(), tiles_.end(), [&](const Tile& t) { return t.name == name; });
  };
  for (int i = 0; i < 3; ++i)
    if (i < 2 || !clear) ensure_written(find(names[i]));
  std::string seen[3];
  for (int i = 0; i < 3; ++i) {
    seen[i] = reshapes[i] ? reshaped(find(names[i]), shapes[i]) : names[i];
    if (!renames[i]) continue;
    const std::string view = fresh("w");
    line("view " + view + " = reinterpret(" + seen[i] + ", " + ir::dtype_name(dtypes[i]) + ")");
    seen[i] = view;
  }
  std::string attrs;
  const auto add = [&](const std::string& a) { attrs += (attrs.empty() ? " {" : ", ") + a; };
  if (ta) add("transpose_a");
  if (tb) add("transpose_b");
  if (clear) add("clear");
  if (types.a == DType::f32 && others_.chance(2)) add("tf32");  // whole numbers of at most 11 bits
  if (r_.chance(4)) add(others_.pick({"policy=full_row", "policy=full_col", "policy=square"}));
  if (options_.for_gpu && r_.chance(2))
    if (const std::string atom = declare_atom(types.a, types.b, types.c); !atom.empty()) add("atom=" + atom);
  line("gemm " + seen[0] + ", " + seen[1] + " -> " + seen[2] + attrs + (attrs.empty() ? "" : "}"));
  find(names[2]).written = true;
  if (ir::is_float(types.c)) clamp(find(names[2]));
}

// A tile is pruned, and multiplied by its values and places.
void Generator::sparse_gemm() {
  const GemmTypes types = r_.pick(std::span<const GemmTypes>(kGemmTypes));
  auto [m, n, k] = gemm_extents(64);
  if (!options_.for_gpu) k = r_.pick<int64_t>({8, 16, 24, 32});
  const DType word = r_.pick({DType::u8, DType::u16, DType::u32});
  const int64_t bits = ir::dtype_bits(word);
  if (k % bits != 0 || types.c == DType::f16 || !affordable(m * n * k / 4 + 8 * m * k)) return;
  const bool tb = r_.chance(2), clear = r_.chance(3);
  const auto scope = [&] { return r_.chance(2) ? MemScope::fragment : MemScope::shared; };
  struct Wanted {
    std::vector<int64_t> shape;
    DType type;
    MemScope scope;
  };
  const Wanted wanted[] = {{{m, k}, types.a, scope()},
                           {{m, k / 2}, types.a, scope()},
                           {{m, k / bits}, word, scope()},
                           {tb ? std::vector{n, k} : std::vector{k, n}, types.b, scope()},
                           {{m, n}, types.c, MemScope::fragment}};
  std::vector<std::string> names;
  for (const Wanted& w : wanted) {
    Tile* t = tile_of(w.shape, w.type, w.scope);
    if (!t || std::find(names.begin(), names.end(), t->name) != names.end()) return;
    names.push_back(t->name);
  }
  const auto find = [&](const std::string& name) -> Tile& {
    return *std::find_if(tiles_.begin(), tiles_.end(), [&](const Tile& t) { return t.name == name; });
  };
  enum : size_t { kSource, kValues, kPlaces, kB, kC };
  for (size_t i : {kSource, kB, kC})
    if (i != kC || !clear) ensure_written(find(names[i]));
  line("compress " + names[kSource] + " -> " + names[kValues] + ", " + names[kPlaces]);
  std::string values = names[kValues];
  const bool ta = others_.chance(3);
  if (ta) {  // the same, k first
    values = fresh("t");
    const std::string rows = std::to_string(m), columns = std::to_string(k / 2), i = fresh("v"),
                      j = fresh("v");
    allocs_ +=
        "  alloc " + values + ": shared " + ir::dtype_name(types.a) + "[" + columns + ", " + rows + "]\n";
    line("parallel " + i + ", " + j + " in " + rows + ", " + columns + " { " + values + "[" + j + ", " + i +
         "] = " + names[kValues] + "[" + i + ", " + j + "] }");
  }
  line("gemm_sparse " + values + ", " + names[kB] + ", " + names[kPlaces] + " -> " + names[kC] +
       " {transpose_a = " + (ta ? "true" : "false") + ", transpose_b = " + (tb ? "true" : "false") +
       ", clear = " + (clear ? "true" : "false") +
       (r_.chance(4) ? others_.pick({", policy = full_row}", ", policy = full_col}"}) : "}"));
  for (size_t i : {kValues, kPlaces, kC}) find(names[i]).written = true;
  if (ir::is_float(types.c)) clamp(find(names[kC]));
}

// The loop every product over a long k is written as.
void Generator::gemm_loop() {
  const GemmTypes types = kGemmTypes[r_.between(1, 8)];
  const auto [m, n, k] = gemm_extents(64);
  const int64_t trips = r_.between(0, 4);
  if (k * trips > 200 || !affordable((m + n) * k * trips + m * n * k * trips / 4)) return;
  std::vector<const RandomTensor*> sources;
  for (const RandomTensor& t : tensors_)
    if (t.readable && t.shape.size() == 2) sources.push_back(&t);
  if (sources.empty()) return;
  const auto source = [&](DType to) -> const RandomTensor* {
    const RandomTensor* t = sources[static_cast<size_t>(r_.below(static_cast<int64_t>(sources.size())))];
    return converts(t->type, to) ? t : nullptr;
  };
  const RandomTensor *x = source(types.a), *y = source(types.b);
  if (!x || !y || tiles_.size() > 10) return;
  const bool tb = r_.chance(2);
  const std::string a = fresh("t"), b = fresh("t"), c = fresh("t"), v = fresh("v");
  tiles_.push_back({a, MemScope::shared, types.a, {m, k}, false});
  tiles_.push_back({b, MemScope::shared, types.b, tb ? std::vector{n, k} : std::vector{k, n}, false});
  tiles_.push_back({c, MemScope::fragment, types.c, {m, n}, false});
  for (const std::string* name : {&a, &b, &c}) {
    const Tile& t =
        *std::find_if(tiles_.begin(), tiles_.end(), [&](const Tile& x) { return x.name == *name; });
    allocs_ += "  alloc " + t.name + ": " + ir::scope_name(t.scope) + " " + ir::dtype_name(t.type) + "[" +
               std::to_string(t.shape[0]) + ", " + std::to_string(t.shape[1]) + "]\n";
  }
  const std::string ks = std::to_string(k), step = v + " * " + ks + " :+ " + ks;
  const std::string rows = offset(m) + " :+ " + std::to_string(m),
                    cols = offset(n) + " :+ " + std::to_string(n);
  line("fill " + c + ", " + number_text(types.c, 0));
  line("pipelined " + v + " in 0 .. " + std::to_string(trips) +
       (r_.chance(2) ? " stages " + std::to_string(r_.between(1, 4)) : "") + " {");
  ++indent_;
  line("copy " + x->name + "[" + rows + ", " + step + "] -> " + a);
  line("copy " + y->name + "[" + (tb ? cols + ", " + step : step + ", " + cols) + "] -> " + b);
  const std::string atom =
      options_.for_gpu && r_.chance(2) ? declare_atom(types.a, types.b, types.c) : std::string();
  line("gemm " + a + ", " + b + " -> " + c +
       (atom.empty() ? tb ? " {transpose_b}" : "" : " {atom = " + atom + (tb ? ", transpose_b}" : "}")));
  --indent_;
  line("}");
  tiles_.back().written = true;
  if (ir::is_float(types.c)) clamp(tiles_.back());
}

}  // namespace tilegen::differential
