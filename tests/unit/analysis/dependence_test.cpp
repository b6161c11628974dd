// Dependences of random programs against those that running them shows: every pair of accesses to one
// element.
#include "analysis/dependence.h"

#include <random>
#include <set>

#include "observed_dependences.h"

namespace tilegen::analysis {
namespace {

// Loops around copies, fills and element-wise work over two rows of shared memory, a tensor and two scalars.
class Generator {
 public:
  // `affine`: places are sums of numbers and loop variables, and whatever stands in a loop always runs.
  Generator(uint32_t seed, bool affine) : random_(seed), affine_(affine) {}

  std::string program() {
    std::string text =
        "tl 1 program p\ndim n <= 100\ntensor T: i64[n]\ntensor W: i64[n, 8]\nkernel k grid (b: 1) {\n"
        "alloc s: shared i64[64]\nalloc t: shared i64[16, 16]\nalloc u: local i64[2]\n";
    text += statements(2, 0) + loop(0) + statements(2, 0);
    return text + "}\n";
  }

 private:
  int64_t pick(int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(random_);
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  std::string loop(int depth) {
    const std::string name = "i" + std::to_string(depth);
    std::string from = std::to_string(pick(0, 2)), count = std::to_string(pick(1, 5));
    if (!affine_ && chance(30)) count = chance(50) ? "n" : std::to_string(pick(0, 1));
    if (!affine_ && chance(20)) from = "u[0] & 1";
    vars_.push_back(name);
    std::string text =
        "serial " + name + " in " + from + " :+ " + count + " {\n" + statements(3, depth + 1) + "}\n";
    vars_.pop_back();
    return text;
  }

  std::string statements(int64_t most, int depth) {
    std::string text;
    for (int64_t i = pick(1, most); i > 0; --i) text += statement(depth);
    return text;
  }

  std::string statement(int depth) {
    if (!affine_ && depth < 3 && chance(20)) return loop(depth);
    if (!affine_ && depth < 3 && chance(15))
      return "if " + index() + " < " + std::to_string(pick(0, 6)) + " {\n" + statements(2, depth + 1) +
             (chance(50) ? "} else {\n" + statements(2, depth + 1) : "") + "}\n";
    if (!affine_ && chance(15)) return "u[" + std::to_string(pick(0, 1)) + "] = " + index() + "\n";
    const int64_t extent = pick(1, 4);
    if (chance(40)) return "copy " + region(extent) + " -> " + region(extent) + "\n";
    if (chance(40)) return "fill " + region(extent) + ", " + (affine_ ? "1" : index()) + "\n";
    vars_.push_back("j");
    std::string text = "parallel j in " + std::to_string(extent) + " {\n";
    if (!affine_ && chance(30)) text += "if j < 2 {\n" + element() + " = " + element() + " + 1\n}\n";
    text += element() + " = " + element() + " + " + element() + "\n}\n";
    vars_.pop_back();
    return text;
  }

  std::string element() {
    switch (pick(0, 3)) {
      case 0:
        return "T[" + index() + "]";
      case 1:
        return "t[" + index() + ", " + index(!affine_) + "]";
      default:
        return "s[" + index() + "]";
    }
  }
  std::string region(int64_t extent) {
    const std::string size = " :+ " + std::to_string(extent);
    switch (pick(0, 4)) {
      case 0:
        return "T[" + index() + size + "]";
      case 1:
        return "t[" + index() + " :+ 1, " + index() + size + "]";
      case 2:
        return "t[" + index() + size + ", " + index() + " :+ 1]";
      default:
        return "s[" + index() + size + "]";
    }
  }

  std::string index(bool points = true) {
    if (!affine_ && chance(10))
      return chance(50) ? "(u[0] & 3)" : "(s[" + std::to_string(pick(0, 5)) + "] & 7)";
    std::string text = std::to_string(pick(0, 9));
    for (const std::string& v : vars_) {
      if (!chance(60) || (v == "j" && !points)) continue;
      const int64_t factor = affine_ && v == "j" ? 1 : pick(1, 3);
      text += (chance(85) ? " + " : " - ") + v + " * " + std::to_string(factor);
    }
    if (!affine_ && chance(5)) text = "(" + text + ") // 2";
    return text;
  }

  std::mt19937 random_;
  const bool affine_;
  std::vector<std::string> vars_;
};

std::string text_of(const KernelOps& ops, const Key& key, int64_t distance) {
  const auto& [from, to, kind, place] = key;
  const char* const kinds[] = {"flow", "anti", "output"};
  return std::string(kinds[static_cast<int>(kind)]) + " " + ops.ops[from].path + " -> " + ops.ops[to].path +
         " of " + (place.value ? ops.values[place.value].name : std::string("a tensor")) + " at " +
         std::to_string(distance);
}

struct Counts {
  int edges = 0, exact = 0, inexact_values = 0;
};

void compare(const KernelOps& ops, const DependenceGraph& graph, const Distances& found, bool ran,
             Counts& counts) {
  std::map<Key, Dependence> edges;
  for (const Dependence& d : graph.edges()) {
    const Key key{d.from, d.to, d.kind, d.place};
    edges.emplace(key, d);
    ++counts.edges;
    counts.exact += d.exact;
    counts.inexact_values += d.place.value.valid() && !d.exact;
    const auto at = found.find(key);
    if (!d.exact || !ran) continue;
    EXPECT_TRUE(at != found.end() && at->second == d.distance)
        << "not met: " << text_of(ops, key, d.distance);
  }
  for (const auto& [key, distance] : found) {
    const auto at = edges.find(key);
    EXPECT_TRUE(at != edges.end() && at->second.distance <= distance)
        << "missed: " << text_of(ops, key, distance);
  }
}

void judge(const std::string& text, Counts& counts) {
  SCOPED_TRACE(text);
  const auto p = ir::parse_program(text, "test.tl", Limits{});
  ASSERT_TRUE(p) << p.error().to_text();
  const KernelOps ops = collect_kernel_ops(*p, 0);
  const Run run(*p, ops);
  Counts unused;
  const Distances whole = run.distances({});
  compare(ops, DependenceGraph(*p, ops, p->kernels[0], Granularity::element), whole, true, unused);
  compare(ops, DependenceGraph(*p, ops, p->kernels[0], Granularity::value), whole, true, unused);
  ir::for_each_statement(*p, p->kernels[0].body, [&](ir::StmtId s, int) {
    const auto* loop = p->as<ir::Loop>(s);
    if (!loop || loop->kind == ir::LoopKind::parallel) return;
    const Distances found = run.distances(s);
    compare(ops, DependenceGraph(*p, ops, *loop, Granularity::element), found, run.ran(s), counts);
    compare(ops, DependenceGraph(*p, ops, *loop, Granularity::value), found, run.ran(s), unused);
  });
}

TEST(Dependence, OfAffineAccessesIsExact) {
  Counts counts;
  for (uint32_t seed = 0; seed < 600 && !HasFailure(); ++seed) judge(Generator(seed, true).program(), counts);
  EXPECT_EQ(counts.inexact_values, 0);
  EXPECT_GT(counts.exact, 500);
}

TEST(Dependence, IsNeverMissed) {
  Counts counts;
  for (uint32_t seed = 0; seed < 1500 && !HasFailure(); ++seed)
    judge(Generator(seed, false).program(), counts);
  EXPECT_GT(counts.exact, counts.edges / 50) << counts.edges;
}

// "flow copy#0 -> gemm#1 of s at 0; ..." of the first loop.
std::string edges_of(const std::string& body, Granularity granularity = Granularity::element) {
  const auto p = ir::parse_program(
      "tl 1 program p\ndim n <= 100\ntensor X: f16[n, 64] readonly\ntensor Y: f32[64, 64]\n"
      "kernel k grid (b: 1) {\nalloc s: shared f16[64, 64]\nalloc r: shared f16[64, 64]\n"
      "alloc acc: fragment f32[64, 64]\nfill r, 1.0f16\nfill acc, 0.0f32\n" +
          body + "copy acc -> Y\n}\n",
      "test.tl", Limits{});
  if (!p) return p.error().to_text();
  const KernelOps ops = collect_kernel_ops(*p, 0);
  std::string text;
  for (ir::StmtId s : p->kernels[0].body)
    if (const auto* loop = p->as<ir::Loop>(s))
      for (const Dependence& d : DependenceGraph(*p, ops, *loop, granularity).edges())
        text += (text.empty() ? "" : "; ") + text_of(ops, {d.from, d.to, d.kind, d.place}, d.distance) +
                (d.exact ? "" : " or more");
  for (const std::string name : {"k/i/", "k:"})
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;) text.erase(at, name.size());
  return text;
}

TEST(Dependence, OfAProductInALoop) {
  EXPECT_EQ(edges_of("serial i in 0 .. 4 {\n copy X[i * 64 :+ 64, 0 :+ 64] -> s\n gemm s, r -> acc\n}\n"),
            "output copy#0 -> copy#0 of s at 1; flow copy#0 -> gemm#0 of s at 0; "
            "anti gemm#0 -> copy#0 of s at 1; flow gemm#0 -> gemm#0 of acc at 1; "
            "anti gemm#0 -> gemm#0 of acc at 1; output gemm#0 -> gemm#0 of acc at 1");
}

TEST(Dependence, PartsOfATileAreApartByElement) {
  const std::string body =
      "serial i in 0 .. 4 {\n copy X[i :+ 16, 0 :+ 64] -> s[i * 16 :+ 16, 0 :+ 64]\n"
      " copy s[0 :+ 16, 0 :+ 64] -> r[i * 16 :+ 16, 0 :+ 64]\n}\n";
  EXPECT_EQ(edges_of(body), "flow copy#0 -> copy#1 of s at 0");
  EXPECT_EQ(edges_of(body, Granularity::value),
            "output copy#0 -> copy#0 of s at 1 or more; flow copy#0 -> copy#1 of s at 0 or more; "
            "anti copy#1 -> copy#0 of s at 1 or more; output copy#1 -> copy#1 of r at 1 or more");
}

TEST(Dependence, WindowsOverARowMeetWhileTheyOverlap) {
  EXPECT_EQ(edges_of("serial i in 0 .. 4 {\n copy r[i * 8 :+ 8, 0 :+ 64] -> s[i * 8 + 20 :+ 8, 0 :+ 64]\n"
                     " copy s[i * 8 :+ 8, 0 :+ 64] -> Y[i :+ 8, 0 :+ 64]\n}\n"),
            "flow copy#0 -> copy#1 of s at 2; output copy#1 -> copy#1 of a tensor at 1 or more");
}

TEST(Dependence, SidesOfABranchMeetInOtherIterationsOnly) {
  EXPECT_EQ(edges_of("serial i in 0 .. 4 {\n if i < 2 {\n fill s, 0.0f16\n } else {\n copy s -> r\n }\n}\n"),
            "output if#0/fill#0 -> if#0/fill#0 of s at 1 or more; "
            "flow if#0/fill#0 -> if#0.else/copy#0 of s at 1 or more; "
            "anti if#0.else/copy#0 -> if#0/fill#0 of s at 1 or more; "
            "output if#0.else/copy#0 -> if#0.else/copy#0 of r at 1 or more");
}

}  // namespace
}  // namespace tilegen::analysis
