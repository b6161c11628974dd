// Programs on the machine code of AMD targets, interpreted instruction by instruction, against the
// interpreter of programs: results by the contract of numerics.md, in the mode in which a missing wait is an
// error, under several orders of waves.
//   TILEGEN_LONG=1      all programs and more launches
//   TILEGEN_SHOW=1      what each program came to
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>

#include "driver/compile.h"
#include "files.h"
#include "gemm_program.h"
#include "ir/text.h"
#include "open_values.h"

namespace tilegen::differential {
namespace {

namespace fs = std::filesystem;
using Kind = Outcome::Kind;

// Seeds are orders of waves; every third launch has tensors that are aligned to elements only.
std::vector<Launch> launches(const ir::Program& p) {
  const std::vector<std::vector<int64_t>> sizes = {{37, 45, 70, 33}, {64, 64, 64, 64}, {1, 3, 2, 1}};
  std::vector<Launch> list;
  for (size_t s = 0; s < (long_run() ? sizes.size() : 1); ++s)
    for (uint64_t seed = 1; seed <= (long_run() ? 3u : 1u); ++seed) {
      Launch launch = launch_near(p, sizes[s]);
      launch.seed = s * 10 + seed;
      launch.magnitude = 4;
      launch.bound = {2e-3, 8};  // sums are exact; functions of them are not
      list.push_back(std::move(launch));
    }
  return list;
}

// Elements a run reads or writes that tells how far roundings may take a result.
constexpr int64_t kMaxSteps = 40'000'000;

// What is beyond the launch's bound the contract may leave open: an exponential of other last bits, rounded
// to 16, in a sum that cancels.
Outcome compare(Subject& subject, const Launch& launch) {
  return subject.compare(launch, [&](const LaunchMemory& memory, const std::vector<GuardedMemory>& expected,
                                     const std::vector<GuardedMemory>& got) {
    const std::string beyond = memory.compare(expected, got, launch.bound);
    if (beyond.empty()) return beyond;
    OpenValues open(subject.program(), launch, kMaxSteps);
    const std::string difference = open.differ(memory, expected, got);
    return open.judged() ? difference : beyond;
  });
}

struct Counts {
  std::map<Kind, int> kinds;
  std::string refused;
};

void run(const fs::path& file, const std::vector<std::string>& targets, Counts& counts) {
  Subject subject(text_of(file), targets);
  if (!subject.invalid().empty()) return;  // files of the parser's tests
  for (const Launch& launch : launches(subject.program())) {
    const Outcome o = compare(subject, launch);
    ++counts.kinds[o.kind];
    if (std::getenv("TILEGEN_SHOW"))
      std::cout << file.filename() << ": " << kind_name(o.kind) << " " << o.text << std::endl;
    EXPECT_FALSE(o.is_defect()) << file << " " << kind_name(o.kind) << ": " << o.text
                                << to_text({"", launch});
    if (o.kind == Kind::refused) counts.refused += file.filename().string() + ": " + o.text + "\n";
    if (o.kind != Kind::agree) break;
  }
}

TEST(AmdPrograms, OfFilesAgree) {
  Counts counts;
  size_t number = 0;
  for (const fs::path& file : program_files()) {
    // Both have the same back end: by turns where not all are run.
    const std::vector<std::string> both = {"gfx942", "gfx90a"};
    run(file, long_run() ? both : std::vector<std::string>{both[number++ % 2]}, counts);
  }
  std::cout << counts.kinds[Kind::agree] << " launches agree, " << counts.kinds[Kind::refused]
            << " programs refused\n"
            << counts.refused;
  EXPECT_GT(counts.kinds[Kind::agree], 20);
  EXPECT_LE(counts.kinds[Kind::refused] * 4, counts.kinds[Kind::agree]);
}

// What LLVM's AMDGPU back end computes wrongly where it is not kept from it (docs/hip.md).
constexpr const char* kDivisions = R"(tl 1 program divisions
dim n
scalar d: i32
scalar u: u8
tensor A: i8[n] readonly
tensor B: u8[n] readonly
tensor C: i32[n] readonly
tensor D: i64[n] readonly
tensor Q: i64[n, 12]
kernel divide grid (b: ceildiv(n, 64)) threads 64 {
  parallel i in 64 {
    if b * 64 + i < n {
      Q[b * 64 + i, 0] = cast(i64, A[b * 64 + i]) // 17
      Q[b * 64 + i, 1] = cast(i64, A[b * 64 + i]) % 17
      Q[b * 64 + i, 2] = cast(i64, B[b * 64 + i] // 7u8)
      Q[b * 64 + i, 3] = cast(i64, B[b * 64 + i] % 10u8)
      Q[b * 64 + i, 4] = cast(i64, cast(u8, cast(i32, A[b * 64 + i])) // 17u8)
      Q[b * 64 + i, 5] = cast(i64, C[b * 64 + i] // 13i32)
      Q[b * 64 + i, 6] = cast(i64, C[b * 64 + i] // d)
      Q[b * 64 + i, 7] = cast(i64, C[b * 64 + i] % d)
      Q[b * 64 + i, 8] = D[b * 64 + i] // 1000003
      Q[b * 64 + i, 9] = D[b * 64 + i] % cast(i64, d)
      Q[b * 64 + i, 10] = cast(i64, B[b * 64 + i] // u)
      Q[b * 64 + i, 11] = (D[b * 64 + i] & 9223372036854775807) // (cast(i64, u) + 3)
    }
  }
}
)";
constexpr const char* kHalves = R"(tl 1 program halves
dim n
tensor A: i64[n] readonly
tensor B: i64[n] readonly
tensor C: i64[n, 3]
kernel either grid (b: ceildiv(n, 64)) threads 64 {
  parallel i in 64 {
    if b * 64 + i < n {
      C[b * 64 + i, 0] = (A[b * 64 + i] * B[b * 64 + i]) | ((A[b * 64 + i] & 65535) ^ -77)
      C[b * 64 + i, 1] = A[b * 64 + i] | -64
      C[b * 64 + i, 2] = ((B[b * 64 + i] & 255) | -256) | A[b * 64 + i]
    }
  }
}
)";

TEST(AmdPrograms, ComputeWhatLlvmWouldGetWrong) {
  for (const char* text : {kDivisions, kHalves}) {
    Subject subject(text, {"gfx942", "gfx90a"});
    ASSERT_EQ(subject.invalid(), "");
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      Launch launch;
      launch.dims["n"] = 150;
      launch.seed = seed;
      launch.data = seed % 2 ? Data::bit_patterns : Data::integers;
      const Outcome o = subject.compare(launch);
      EXPECT_EQ(o.kind, Kind::agree) << o.text;
    }
  }
}

// What lanes exchange is added in pairs, and used alone: LLVM would add registers that nothing has written
// (docs/hip.md).
constexpr const char* kPairs = R"(tl 1 program pairs
tensor X: f16[4, 33] readonly
tensor Y: f16[4, 33]
kernel k grid (g: 1) threads 64 {
  alloc x: fragment f16[4, 33]
  copy X -> x
  scan x -> x {kind=sum, axis=1}
  copy x -> Y
}
)";

TEST(AmdPrograms, AddPairsThatLanesExchange) {
  Subject subject(kPairs, {"gfx942", "gfx90a"});
  ASSERT_EQ(subject.invalid(), "");
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Launch launch;
    launch.seed = seed;
    launch.magnitude = 1;  // sums are exact
    const Outcome o = subject.compare(launch);
    EXPECT_EQ(o.kind, Kind::agree) << o.text;
  }
}

// The last bytes of memory on chip are read as parts of a word.
TEST(AmdPrograms, ReadNothingBehindMemoryOnChip) {
  for (const std::string type : {"u8", "u16"})
    for (int elements = 29; elements < 34; ++elements) {
      const std::string n = std::to_string(elements);
      const std::string text = "tl 1 program rows\ntensor X: " + type + "[" + n +
                               ", 4] readonly\ntensor Y: " + type + "[" + n +
                               "]\nkernel k grid (g: 1) {\n  alloc x: fragment " + type + "[" + n +
                               ", 4]\n  alloc y: local " + type + "[" + n +
                               "]\n  copy X -> x\n  copy Y -> y\n"
                               "  reduce x -> y {kind=max, axis=1}\n  copy y -> Y\n}\n";
      Subject subject(text, {"gfx942", "gfx90a"});
      ASSERT_EQ(subject.invalid(), "");
      const Outcome o = subject.compare(Launch{});
      EXPECT_EQ(o.kind, Kind::agree) << o.text;
    }
}

// Where no version of a kernel takes the arguments, the fallback runs all, and nothing has run before.
TEST(AmdPrograms, FallbacksRunEachKernelOnce) {
  constexpr const char* kText = R"(tl 1 program fallback
dim d
tensor S: i16[d, d]
tensor T: u64[1, 1]
kernel counts grid (x: d) {
  alloc t: fragment u64[1, 1]
  parallel i in 1 {
    t[0, 0] = 1u64
  }
  atomic t -> T
}
kernel reads grid (x: 0, y: 0) {
  alloc t: local u64[1, 2]
  copy S[0 :+ 1, 0 :+ 2] -> t
}
)";
  Subject subject(kText, {"gfx942"});
  ASSERT_EQ(subject.invalid(), "");
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Launch launch;
    launch.dims["d"] = 1;
    launch.seed = seed;
    const Outcome o = subject.compare(launch);
    EXPECT_EQ(o.kind, Kind::agree) << o.text << ", seed " << seed;
  }
}

// Conversions of the FNUZ floats: by instructions on gfx942, four of a thread at once, and in integers.
constexpr const char* kFnuz = R"(tl 1 program fnuz
dim n divisible 4
tensor X: f32[n] readonly
tensor H: f16[n] readonly
tensor A: e4m3fnuz[n] readonly
tensor B: e5m2fnuz[n] readonly
tensor Y: e4m3fnuz[2, n]
tensor Z: e5m2fnuz[2, n]
tensor W: f32[2, n]
kernel convert grid (b: ceildiv(n, 256)) threads 64 {
  alloc x: fragment f32[256]
  alloc h: fragment f16[256]
  copy X[b * 256 :+ 256] -> x
  copy H[b * 256 :+ 256] -> h
  parallel i in 256 {
    if b * 256 + i < n {
      Y[0, b * 256 + i] = cast(e4m3fnuz, x[i])
      Z[0, b * 256 + i] = cast(e5m2fnuz, x[i])
      Y[1, b * 256 + i] = cast(e4m3fnuz, h[i])
      Z[1, b * 256 + i] = cast(e5m2fnuz, h[i])
      W[0, b * 256 + i] = cast(f32, A[b * 256 + i])
      W[1, b * 256 + i] = cast(f32, B[b * 256 + i])
    }
  }
}
)";

TEST(AmdPrograms, ConvertFnuzFloats) {
  Subject subject(kFnuz, {"gfx942", "gfx90a"});
  ASSERT_EQ(subject.invalid(), "");
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Launch launch;
    launch.dims["n"] = 8192;
    launch.seed = seed;
    launch.data = seed % 2 ? Data::bit_patterns : Data::reals;
    launch.magnitude = seed == 2 ? 300 : 1;
    launch.bound = {0, 0};
    const Outcome o = subject.compare(launch);
    EXPECT_EQ(o.kind, Kind::agree) << o.text;
  }
}

// Bit for bit, NaNs too, through tiles that views see as integers.
TEST(AmdPrograms, BitsOfFloats) {
  constexpr const char* kBits = R"(tl 1 program bits
dim n
tensor A: $t[n] readonly
tensor B: $u[n] readonly
tensor U: $u[2, n]
tensor F: $t[2, n]
kernel bits grid (b: ceildiv(n, 256)) threads 64 {
  alloc x: $s $t[256]
  view bits = reinterpret(x, $u)
  copy A[b * 256 :+ 256] -> x
  parallel i in 256 {
    let at = b * 256 + i
    if at < n {
      U[0, at] = bitcast($u, x[i])
      F[0, at] = bitcast($t, B[at])
    }
    bits[i] = bits[i] ^ 1
  }
  copy bits -> U[1 :+ 1, b * 256 :+ 256]
  copy x -> F[1 :+ 1, b * 256 :+ 256]
}
)";
  for (const auto& [t, u] : std::vector<std::pair<std::string, std::string>>{{"f16", "u16"},
                                                                             {"bf16", "i16"},
                                                                             {"f32", "u32"},
                                                                             {"f64", "u64"},
                                                                             {"e4m3fnuz", "u8"},
                                                                             {"e5m2", "i8"}})
    for (const std::string scope : {"shared", "fragment"}) {
      Subject subject(replaced(kBits, {{"t", t}, {"u", u}, {"s", scope}}), {"gfx942", "gfx90a"});
      ASSERT_EQ(subject.invalid(), "");
      Launch launch;
      launch.dims["n"] = 700;
      launch.seed = 7;
      launch.data = Data::bit_patterns;
      const Outcome o = subject.compare(launch);
      EXPECT_EQ(o.kind, Kind::agree) << t << " " << o.text;
    }
}

// Tiles that come through registers: a load is waited for where its registers are deposited, an iteration
// later, and all waves meet once an iteration. Nothing divides the instructions of the loop.
TEST(AmdPrograms, LoadsAheadAreWaitedForAtTheirUse) {
  constexpr const char* kGemm = R"(tl 1 program gemm
dim m divisible 128
dim n divisible 128
dim k divisible 32
tensor A: f16[m, k] readonly
tensor B: f16[n, k] readonly
tensor C: f32[m, n]
kernel gemm grid (by: m // 128, bx: n // 128) threads 256 {
  alloc As: shared f16[128, 32]
  alloc Bs: shared f16[128, 32]
  alloc acc: fragment f32[128, 128]
  fill acc, 0.0f32
  pipelined ko in 0 .. k // 32 stages 3 {
    copy A[by * 128 :+ 128, ko * 32 :+ 32] -> As
    copy B[bx * 128 :+ 128, ko * 32 :+ 32] -> Bs
    gemm As, Bs -> acc {transpose_b}
  }
  copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]
}
)";
  auto program = ir::parse_program(kGemm, "gemm.tl", Limits());
  ASSERT_TRUE(program);
  for (const char* name : {"gfx942", "gfx90a"}) {
    driver::CompileOptions options;
    options.keep_assembly = true;
    const auto artifact =
        driver::compile(std::make_shared<const ir::Program>(*program), *target::find_target(name), options);
    ASSERT_TRUE(artifact) << artifact.error().to_text();
    std::istringstream lines((*artifact)->assembly);
    int barriers = 0, waits = 0, products = 0;  // since a label
    int loops = 0;
    bool waited = false;  // and nothing deposited since
    std::string label;
    for (std::string line; std::getline(lines, line);) {
      const auto has = [&](const char* word) { return line.find(word) != std::string::npos; };
      if (line.starts_with(".LBB")) {
        label = line.substr(0, line.find(':'));
        barriers = waits = products = 0;
      }
      if (has("s_cbranch") && line.ends_with(label) && products > 0) {
        ++loops;
        EXPECT_EQ(barriers, 1) << name;
        EXPECT_GE(waits, 1) << name;
        EXPECT_EQ(products, 16) << name;
      }
      barriers += has("s_barrier");
      if (has("vmcnt")) waited = true, ++waits;
      // Loads take the registers of others, which may not have been deposited.
      if (has("ds_write") || has("global_load")) waited = false;
      if (!has("v_mfma")) continue;
      ++products;
      EXPECT_FALSE(waited) << name << ": loads are waited for in front of a product";
    }
    EXPECT_EQ(loops, 1) << name;
  }
}

// Waves of 64 lanes, shared memory of 64 KiB: who meets these limits is told so, with a way out.
TEST(AmdPrograms, LimitsAreNamed) {
  const auto refusal = [](const std::string& body, const std::string& threads) {
    const std::string text = "tl 1 program limits\ndim n\ntensor X: f32[n]\nkernel k grid (b: n) threads " +
                             threads + " {\n" + body + "}\n";
    Subject subject(text, {"gfx942"});
    EXPECT_EQ(subject.invalid(), "");
    const Outcome o = subject.compile();
    EXPECT_EQ(o.kind, Kind::refused) << o.text;
    return o.text;
  };
  const std::string threads = refusal("  parallel i in 96 {\n    X[b * 96 + i] = 1.0f32\n  }\n", "96");
  EXPECT_NE(threads.find("96 threads are not possible on gfx942: at most 1024, in multiples of 64"),
            std::string::npos)
      << threads;
  const std::string memory =
      refusal("  alloc t: shared f32[20000]\n  fill t, 1.0f32\n  copy t -> X[b * 20000 :+ 20000]\n", "256");
  EXPECT_NE(memory.find("gfx942 has 65536"), std::string::npos) << memory;
  EXPECT_NE(memory.find("case.tl:5:"), std::string::npos) << memory;  // where the tile is declared
}

}  // namespace
}  // namespace tilegen::differential
