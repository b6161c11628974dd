// Products in pipelined loops, put together at random from what such loops hold: operands that copies bring
// whole, in parts or cast, that fragments and loops over elements write, tiles beside them of any number of
// bytes that threads read at any index, results that are stored once, in loops, and over what has been read.
// Every fourth asks for orders of blocks, clusters, registers, warps, caches, stages and engines;
// some leave early or print.
#pragma once

#include <algorithm>

#include "executors.h"

namespace tilegen::differential {

class RandomPipeline {
 public:
  explicit RandomPipeline(uint64_t seed)
      : r_(seed), asked_(seed, "asked"), asks_(asked_.chance(2) && seed % 2 == 1) {}

  std::string program() {
    m_ = r_.pick<int64_t>({64, 128, 128, 40}), n_ = r_.pick<int64_t>({32, 64, 64, 24}),
    k_ = r_.pick<int64_t>({32, 64});
    beside_ = r_.pick<int64_t>({k_, k_ / 2, 8, 24, 40, 96});
    const int64_t threads = r_.pick({128, 128, 256});
    tile("As", "f16", {m_, k_}), tile("Bs", "f16", {n_, k_}), tile("acc", "f32", {m_, n_}, "fragment");
    tile("side", "f16", {beside_});
    const std::string a = operand("As", "A", "by", m_), b = operand("Bs", "B", "bx", n_);
    std::string end = epilogue();
    const int64_t stages = r_.between(1, 4);
    const std::string product = "    gemm As, Bs -> acc {" + product_words(threads) + "}\n";
    std::string body = before_ + "  fill acc, 0.0f32\n  pipelined ko in 0 .. ceildiv(k, " + text(k_) +
                       ") stages " + text(stages);
    body += stage_words(a, b, stages);
    body += " {\n" + labels(a, "a") + labels(b, "b") + labels(product, "product") + "  }\n" + told();
    name_decisions("copy A",
                   {"engine = async_copy", "engine = tensor_copy", "engine = vector_copy", "vector = 1"},
                   body);
    name_decisions("copy acc -> ",
                   {"matrix_stores = false", "full_tile_version = false", "epilogue_columns = 16",
                    "epilogue_columns = 32", "computed_first = false", "engine = tensor_copy",
                    "engine = vector_copy", "engine = loop"},
                   end);
    body += numbers_of_blocks() + end;
    for (const char* tensor : {"A", "B", "Af", "Bf"}) name_cache(tensor, body);
    return "tl 1 program random_pipeline\ndim m <= 512\ndim n <= 512\ndim k <= 1024" +
           std::string(r_.chance(2) ? " divisible 8" : "") +
           "\ntensor A: f16[m, k] readonly\ntensor B: f16[n, k] readonly\ntensor Af: f32[m, k] "
           "readonly\ntensor Bf: f32[n, k] readonly\n"
           "tensor S: f16[4096] readonly\ntensor at: i32[64] readonly\ntensor C: f32[m, n]\n\nkernel g grid "
           "(by: ceildiv(m, " +
           text(m_) + "), bx: ceildiv(n, " + text(n_) + ")) threads " + text(threads) + kernel_words() +
           " {\n" + allocs_ + body + "}\n";
  }

 private:
  static std::string text(int64_t v) { return std::to_string(v); }
  static std::string box(const std::string& at, int64_t extent) { return at + " :+ " + text(extent); }

  void tile(const std::string& name, const std::string& type, std::vector<int64_t> shape,
            const std::string& scope = "shared") {
    allocs_ += "  alloc " + name + ": " + scope + " " + type + "[";
    for (size_t d = 0; d < shape.size(); ++d) allocs_ += (d ? ", " : "") + text(shape[d]);
    const bool asked = asks_ && scope == "shared" && shape.size() == 2 && asked_.chance(12);
    allocs_ += asked ? std::string("] {") +
                           asked_.pick({"slots = 1", "slots = 2", "swizzle = 64", "padding = 8"}) + "}\n"
                     : "]\n";
  }

  // ---- what a program asks for, of a series of its own ----

  std::string kernel_words() {
    std::string words;
    const auto ask = [&](int64_t of, std::initializer_list<const char*> list) {
      if (asks_ && asked_.chance(of)) words += (words.empty() ? "" : ", ") + std::string(asked_.pick(list));
    };
    ask(4, {"raster = lpt", "raster = row_major", "raster = column_major", "raster = grouped, group = 2",
            "raster = by_die, dies = 2"});
    ask(6, {"persistence = static", "persistence = dynamic", "persistence = none"});
    ask(4, {"cluster = 2, cluster_along = by", "cluster = 2, cluster_along = bx"});
    ask(10, {"min_blocks = 1", "dependent", "dependent = false"});
    ask(16, {"overlap = [by]", "overlap = [bx]", "role_registers = [240, 24]"});
    ask(6, {"registers = 128", "registers = 168", "registers = 255"});
    return words.empty() ? "" : " with {" + words + "}";
  }

  std::string product_words(int64_t threads) {
    std::string words = "transpose_b";
    if (asked_.chance(4)) words += asked_.pick({", policy = full_row", ", policy = full_col"});
    if (asks_ && asked_.chance(4))
      words += threads == 128 ? asked_.pick({", warps = [4, 1]", ", warps = [2, 2]"})
                              : asked_.pick({", warps = [8, 1]", ", warps = [4, 2]"});
    if (asks_ && asked_.chance(6))
      words += asked_.pick(
          {", engine = mma", ", engine = warpgroup_mma", ", steps_ahead = 1", ", steps_ahead = 2"});
    return words;
  }

  // What the loop is asked for. Its order is that of statements which have labels: one copy of each operand.
  std::string stage_words(const std::string& a, const std::string& b, int64_t stages) {
    if (!asks_ || !asked_.chance(3)) return "";
    const auto is_one = [](const std::string& s) { return std::count(s.begin(), s.end(), '\n') == 1; };
    if (is_one(a) && is_one(b) && asked_.chance(2)) {
      labelled_ = true;
      const std::string last = text(stages - 1);
      return " with {order = " + std::string(asked_.pick({"[a, b, product]", "[b, a, product]"})) +
             ", stage = [0, 0, " + last + "]}";
    }
    return std::string(" with {") +
           asked_.pick({"ping_pong = false", "ping_pong", "register_prefetch", "register_prefetch = false",
                        "drained", "drained = false", "peek", "peek = false", "alternating = false",
                        "split = 1", "split = 2"}) +
           "}";
  }
  std::string labels(const std::string& statement, const std::string& label) const {
    return labelled_ ? "    label " + label + ":" + statement.substr(3) : statement;
  }

  // Of one of the operations that begin with the words.
  void name_decisions(const std::string& words, std::initializer_list<const char*> list, std::string& body) {
    const size_t at = body.find(words);
    if (!asks_ || !asked_.chance(6) || at == std::string::npos) return;
    body.insert(body.find('\n', at), std::string(" {") + asked_.pick(list) + "}");
  }

  // Numbers of blocks and of blocks in their cluster, which tell what the order of blocks is made of.
  std::string numbers_of_blocks() {
    if (!asked_.chance(4)) return "";
    return "  parallel i, j in " + text(m_) + ", " + text(n_) + " {\n    acc[i, j] += cast(f32, " +
           asked_.pick({"cluster_rank()", "block_id() % 9", "cluster_rank() * 4 + cluster_blocks()"}) +
           ")\n  }\n";
  }

  // Blocks that leave early, and what the others tell.
  std::string told() {
    std::string lines;
    if (asked_.chance(6))
      lines += asked_.pick({"  if (by + bx) % 3 == 1 { return }\n", "  if k < 33 {\n    return\n  }\n"});
    if (asked_.chance(6)) lines += "  print \"sums\" of acc[1 :+ 2, 2 :+ 3]\n";
    return lines;
  }

  // All copies of a tensor name the same.
  void name_cache(const std::string& tensor, std::string& body) {
    if (!asks_ || !asked_.chance(3)) return;
    const std::string policy = asked_.pick({"evict_first", "evict_last", "no_allocate"});
    for (size_t at = body.find("copy " + tensor + "["); at != std::string::npos;
         at = body.find("copy " + tensor + "[", at + 1)) {
      const size_t end = body.find('\n', at);
      if (body[end - 1] == '}')
        body.insert(end - 1, ", cache = " + policy);
      else
        body.insert(end, " {cache = " + policy + "}");
    }
  }

  // The rows of a block, and columns of an iteration from `first` on.
  std::string source(const std::string& tensor, const std::string& block, int64_t all, int64_t row,
                     int64_t rows, int64_t first, int64_t columns) {
    return tensor + "[" + box(block + " * " + text(all) + " + " + text(row), rows) + ", " +
           box("ko * " + text(k_) + " + " + text(first), columns) + "]";
  }

  // What fills the tile in an iteration.
  std::string operand(const std::string& tile_name, const std::string& tensor, const std::string& block,
                      int64_t rows) {
    const std::string whole = source(tensor, block, rows, 0, rows, 0, k_);
    switch (r_.below(7)) {
      case 0:  // a copy that casts
        return "    copy " + source(tensor + "f", block, rows, 0, rows, 0, k_) + " -> " + tile_name + "\n";
      case 1: {  // two copies, one of them casting at times
        const std::string second = tensor + (r_.chance(2) ? "f" : "");
        return "    copy " + source(tensor, block, rows, 0, rows, 0, k_ / 2) + " -> " + tile_name + "[" +
               box("0", rows) + ", " + box("0", k_ / 2) + "]\n    copy " +
               source(second, block, rows, 0, rows, k_ / 2, k_ / 2) + " -> " + tile_name + "[" +
               box("0", rows) + ", " + box(text(k_ / 2), k_ / 2) + "]\n";
      }
      case 2: {  // parts of a fragment
        const std::string held = tile_name + "_held";
        tile(held, "f16", {rows, 2 * k_}, "fragment");
        before_ += "  copy " + tensor + "[" + box(block + " * " + text(rows), rows) + ", " +
                   box("0", 2 * k_) + "] -> " + held + "\n";
        return "    copy " + held + "[" + box("0", rows) + ", " + box("ko % 2 * " + text(k_), k_) + "] -> " +
               tile_name + "\n";
      }
      case 3: {  // a loop over elements of tiles that were brought
        const std::string raw = tile_name + "_raw";
        tile(raw, "f16", {rows, k_});
        return "    copy " + whole + " -> " + raw + "\n    copy S[" + box("ko * " + text(beside_), beside_) +
               "] -> side\n    parallel i, j in " + text(rows) + ", " + text(k_) + " {\n      " + tile_name +
               "[i, j] = " + value(raw, rows) + "\n    }\n";
      }
      default:
        return "    copy " + whole + " -> " + tile_name + "\n";
    }
  }

  std::string value(const std::string& raw, int64_t rows) {
    const auto column = [&] {
      return r_.pick<std::string>({"j", "j // 2", "(j + 1) % " + text(k_), "j ^ 1", text(k_ - 1) + " - j",
                                   "cast(i64, at[j]) & " + text(k_ - 1), "min(j + 3, " + text(k_ - 1) + ")"});
    };
    const std::string row = r_.pick<std::string>({"i", "i", text(rows - 1) + " - i", "i // 2 * 2"});
    const std::string first = raw + "[" + row + ", " + column() + "]", second = raw + "[i, " + column() + "]";
    const std::string scale =
        "side[" +
        r_.pick<std::string>({"j % " + text(beside_), "i % " + text(beside_), "(i + j) % " + text(beside_)}) +
        "]";
    return r_.pick<std::string>({first, first + " + " + scale, "select(j < 8, " + first + ", " + second + ")",
                                 "select(i % 2 == 0, " + first + ", " + scale + ")"});
  }

  std::string epilogue() {
    const std::string place = "[" + box("by * " + text(m_), m_) + ", " + box("bx * " + text(n_), n_) + "]",
                      store = "copy acc -> C" + place + "\n";
    const std::string add =
        "parallel i, j in " + text(m_) + ", " + text(n_) + " {\n    acc[i, j] = acc[i, j] + ";
    switch (r_.below(4)) {
      case 0:
        return "  serial z in 0 .. " + text(r_.between(0, 3)) + " {\n  " + add + "1.0f32\n  }\n  " + store +
               "  }\n";
      case 1:  // over what this block has read
        return "  " + add + "C[by * " + text(m_) + " + " + text(m_ - 1) + " - i, bx * " + text(n_) +
               " + j]\n  }\n  " + store;
      case 2:
        tile("out", "f32", {m_, n_});
        return "  copy acc -> out\n  copy out -> C" + place + "\n";
      default:
        return "  " + store;
    }
  }

  Random r_, asked_;
  bool asks_;  // for decisions of the planner: those of programs that run on sm_90a
  bool labelled_ = false;
  int64_t m_ = 64, n_ = 64, k_ = 64, beside_ = 64;
  std::string allocs_, before_;
};

// A function of the seed.
inline Case random_pipeline(uint64_t seed) {
  Case c;
  c.text = RandomPipeline(seed).program();
  Random sizes(seed, "sizes");
  c.launch.seed = seed;
  for (const char* dim : {"m", "n"})
    c.launch.dims[dim] = sizes.between(1, 20) * sizes.pick<int64_t>({8, 8, 7});
  c.launch.dims["k"] = sizes.between(0, 30) * 8;
  return c;
}

}  // namespace tilegen::differential
