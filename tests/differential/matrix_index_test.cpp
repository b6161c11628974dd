// Fragments read and written at computed places: whichever thread, lane or memory brings an element, it is
// the one that the index names.
#include "matrix.h"

namespace tilegen::differential {
namespace {

struct Row {
  const char* index;              // of x in rows i and columns j
  int64_t rows = 32, width = 64;  // of x
  int64_t i = 32, j = 64;         // of the loop
};

const Row kReads[] = {
    // packed: several points read one element, or one of several
    {"i, j // 2", 32, 32},
    {"i, (j - j % 2) // 2", 32, 32},
    {"i, j >> 1", 32, 32},
    {"i, j // 8 * 4 + j % 4", 32, 32},
    {"i, (j // 2) % 16", 32, 16},
    {"i, j // 16", 32, 4},
    {"i, j % 16", 32, 16},
    {"i, j & 31", 32, 32},
    {"i // 2, j", 16, 64},
    {"i % 16, j", 16, 64},
    {"i // 4 % 4, j // 2", 4, 32},
    {"i, 2 * j", 32, 128},
    {"i, 2 * j + 1", 32, 128},
    {"i, j * 8 + 5", 32, 128, 32, 16},
    {"i, j + 64", 32, 128},
    {"i, (j // 4) * 8 + 4 + j % 4", 32, 128},
    {"2 * i + 1, j", 64, 64},
    {"i, 3", 32, 8},
    {"5, j", 8, 64},
    // other orders
    {"i, j ^ 1"},
    {"i, j ^ 32"},
    {"i, j ^ 21"},
    {"i, 63 - j"},
    {"i, j // 4 * 4 + 3 - j % 4"},
    {"31 - i, j"},
    {"i ^ 1, j"},
    {"i ^ 8, j ^ 2"},
    {"i, (j + 1) % 64"},
    {"i, (j + 32) % 64"},
    {"i, (j + 16) % 64"},
    {"i, (j + 63) % 64"},
    {"i, (j + 62) & 63"},
    {"(i + 1) % 32, j"},
    {"i, j // 8 * 8 + (j + 3) % 8"},
    {"i, j % 8 * 8 + j // 8"},
    {"j % 32, i * 2 + j // 32"},
    {"i % 2 * 16 + i // 2, j"},
    {"i, (j ^ 32) // 2", 32, 32},
    {"i, (63 - j) // 2", 32, 32},
    // not by digits
    {"i, j * j % 64"},
    {"i, min(j + 1, 63)"},
    {"i, (i + j) % 64"},
    {"i, j // 3", 32, 22},
    {"i, j ^ (j >> 1)"},
};

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::u8, DType::i64, DType::i32, DType::f64};

// By the number of the case: the types of x and the rest, threads, and who moves the tiles.
void expect_agree(const Row& row, int at, const char* body) {
  const DType type = kTypes[at % std::size(kTypes)];
  differential::expect_agree(replaced(R"(tl 1 program p
tensor X: $type[$x] readonly
tensor Z: $type[$y] readonly
tensor Y: $type[$y]
tensor U: $type[$x]
kernel k grid (g: 1) threads $threads {
  alloc x: fragment $type[$x]
  alloc y: fragment $type[$y]
$body}
)",
                                      {{"body", body},
                                       {"index", row.index},
                                       {"type", ir::dtype_name(type)},
                                       {"x", shape_text({row.rows, row.width})},
                                       {"y", shape_text({row.i, row.j})},
                                       {"loop", shape_text({row.i, row.j})},
                                       {"threads", std::to_string(32 << at % 4)}}),
                             seeds({1, 2}));
}

TEST(Indices, FragmentsReadAtComputedPlaces) {
  int at = 0;
  for (const Row& row : kReads)
    for (int threads = 0; threads < 4; ++threads) {
      ++at;
      if (!long_run() && at % 4 != at / 4 % 4) continue;
      expect_agree(row, at, R"(  copy X -> x
  parallel i, j in $loop { y[i, j] = x[$index] }
  copy y -> Y
)");
      if (HasFailure()) return;
    }
}

// Beside its own element, where both fragments have layouts of their own, and from a tile.
TEST(Indices, BesideTheOwnElement) {
  int at = 0;
  for (const Row& row : kReads)
    for (const char* body : {R"(  copy X -> x
  copy Z -> y
  parallel i, j in $loop { y[i, j] = y[i, j] + x[$index] }
  copy y -> Y
  copy x -> U
)",
                             R"(  copy X -> x
  parallel i, j in $loop { Y[i, j] = x[$index] + Z[i, j] }
)",
                             R"(  alloc s: shared $type[$x]
  copy X -> s
  parallel i, j in $x { x[i, j] = s[i, j] + s[i, 0] }
  parallel i, j in $loop {
    if j % 3 != 0 { y[i, j] = x[$index] } else { y[i, j] = Z[i, j] }
  }
  copy y -> Y
)"}) {
      ++at;
      if (!long_run() && at % 3 != at / 3 % 3) continue;
      expect_agree(row, at, body);
      if (HasFailure()) return;
    }
}

// Each element once, or some of them.
TEST(Indices, FragmentsWrittenAtComputedPlaces) {
  int at = 0;
  for (const Row& row : kReads) {
    const std::string index = row.index;
    const bool once = row.rows * row.width >= row.i * row.j && index.find("min") == std::string::npos &&
                      index.find("j * j") == std::string::npos;
    ++at;
    if (!once) continue;
    expect_agree(row, at, R"(  copy X -> x
  copy Z -> y
  parallel i, j in $loop { x[$index] = y[i, j] }
  copy x -> U
)");
    if (HasFailure()) return;
  }
}

// Both nibbles of a byte; both halves of a row; neighbours turned against each other.
TEST(Indices, SeveralPlacesOfOneFragment) {
  const char* const bodies[] = {
      R"(  copy X -> x
  parallel i, j in 32, 64 {
    y[i, 2 * j] = x[i, j]
    y[i, 2 * j + 1] = x[i, j] + x[i, j ^ 1]
  }
  copy y -> Y
)",
      R"(  copy Z -> y
  parallel i, j in 32, 64 { x[i, j] = y[i, j] - y[i, j + 64] }
  copy x -> U
)",
      R"(  copy X -> x
  parallel i, j in 32, 128 { y[i, j] = x[i, j // 2] + x[i, j % 64] + x[i, (j + 1) % 64] }
  copy y -> Y
)",
      R"(  copy Z -> y
  parallel i, j in 32, 128 {
    let other = y[i, (j + 64) % 128]
    if j < 100 { Y[i, j] = other + y[i, j ^ 2] }
  }
)"};
  int at = 0;
  for (const char* body : bodies)
    for (int threads = 0; threads < 4; ++threads) {
      ++at;
      expect_agree({"i, j", 32, 64, 32, 128}, at, body);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace tilegen::differential
