// Programs of tests/files and of the planning tests, and small forms of them that the interpreter runs in no
// time: as they are planned and as they are run.
#pragma once

#include <functional>

#include "../unit/schedule/plan_support.h"
#include "files.h"
#include "interp/interpreter.h"
#include "launch_memory.h"

namespace tilegen::differential {

inline constexpr int64_t kScale = 8;
inline constexpr const char* kFlagship = "tests/unit/schedule/flagship";

inline uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

// Constants of `kScale` and more by it: tiles and what counts them. A scheduled program knows operations and
// values by their place in the program only.
inline std::string scaled(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    std::string word = text.substr(i, std::max<size_t>(end - i, 1));
    if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos && word.size() < 7 &&
        (i == 0 || text[i - 1] != '.')) {
      const int64_t n = std::stoll(word);
      if (n >= 2 * kScale && n % kScale == 0) word = std::to_string(n / kScale);
    }
    out += word;
    i += std::max<size_t>(end - i, 1);
  }
  return out;
}

// A program as it is planned, and as it is run.
struct PlannedProgram {
  std::string path;
  std::shared_ptr<const ir::Program> planned, run;
};

inline std::shared_ptr<const ir::Program> parsed(const std::string& text) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  if (!p || !check::check_program(*p, Limits{}).empty()) return nullptr;
  return std::make_shared<const ir::Program>(std::move(*p));
}

inline PlannedProgram subject_of(const std::string& path) {
  PlannedProgram s;
  s.path = path;
  const std::string text = schedule::read_file(path);
  s.planned = s.run = parsed(text);
  if (!s.planned || std::getenv("TILEGEN_LONG")) return s;
  const auto small = parsed(scaled(text));
  if (small && small->stmts.size() == s.planned->stmts.size() &&
      small->buffers.size() == s.planned->buffers.size())
    s.run = small;
  return s;
}

inline std::vector<std::string> all_programs() {
  std::vector<std::string> list;
  for (const std::string folder : {"tests/files", kFlagship})
    for (const auto& path : programs_in(schedule::source_path(folder))) list.push_back(path.string());
  const char* filter = std::getenv("TILEGEN_FILTER");
  std::erase_if(list, [&](const std::string& p) { return filter && p.find(filter) == std::string::npos; });
  return list;
}

// Arguments of a launch, and the interpreter's results.
struct Expectation {
  LaunchMemory memory;
  std::vector<GuardedMemory> results;

  bool make(const ir::Program& p, const Launch& launch) {
    if (!memory.bind(p, launch).empty()) return false;
    results = memory.fresh(true);
    return static_cast<bool>(interp::interpret(p, memory.slots(results)));
  }

  // What another way to compute them does to the results; empty: nothing.
  std::string difference(const std::function<Checked(const std::vector<uint64_t>& slots)>& compute) const {
    const std::vector<GuardedMemory> got = memory.fresh(true);
    if (Checked ran = compute(memory.slots(got)); !ran) return ran.error().to_text();
    for (size_t i = 0; i < got.size(); ++i)
      if (!memory.tensors()[i].workspace && !got[i].bytes().empty() &&
          std::memcmp(got[i].bytes().data(), results[i].bytes().data(), got[i].bytes().size()) != 0) {
        const std::string where = memory.compare(results, got, Bound::exact());
        return where.empty() ? "bits of tensor " + memory.tensors()[i].name + " differ" : where;
      }
    return {};
  }
};

// Dims that give loops and grids from nothing to several times what pipelines hold.
inline Launch launch_of(const ir::Program& p, uint64_t seed) {
  static const std::vector<std::vector<int64_t>> kSizes = {
      {33, 20, 40}, {17, 30, 0}, {1, 2, 3}, {20, 36, 9}, {3, 50, 16}, {40, 5, 70}, {60, 70, 20}};
  Random random(seed, "sizes");
  std::vector<int64_t> sizes =
      seed < kSizes.size() ? kSizes[seed]
                           : std::vector<int64_t>{random.below(50), random.below(50), random.below(90)};
  if (std::getenv("TILEGEN_LONG"))
    for (int64_t& size : sizes) size = size * kScale - random.below(kScale);
  Launch launch;
  launch.seed = seed + 1;
  if (seed % 2 == 1) launch.data = Data::reals, launch.magnitude = 1;  // no exponential of them is infinite
  size_t next = 0;
  for (const ir::Var& v : p.vars) {
    if (v.kind != ir::VarKind::dim) continue;
    const bool few = v.name == "b" || v.name == "batch" || v.name == "heads" || v.name == "parts";
    launch.dims[v.name] = allowed(v, few ? 1 + random.below(2) : sizes[next++ % sizes.size()]);
  }
  for (const char* ends : {"query_ends", "key_ends"}) {
    int64_t end = 0;
    for (int64_t b = 0; b <= launch.dims["batch"]; ++b, end += random.below(8 * kScale))
      launch.whole[ends].push_back(end);
  }
  return launch;
}

}  // namespace tilegen::differential
