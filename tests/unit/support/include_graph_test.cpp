// The architecture's one-way road: a folder of src/ includes only itself and folders before it in kRoad.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kRoad = {
    "support", "ir",       "emit",    "arith",   "layout", "thread",   "target",  "plan", "ops",   "builder",
    "check",   "analysis", "cost",    "infer",  "schedule", "expand",  "sync", "lower", "interp",
    "sim",     "object",   "codegen", "cache",  "driver",   "runtime", "tune", "capi"};

int place(const std::string& folder) {
  const auto at = std::find(kRoad.begin(), kRoad.end(), folder);
  return at == kRoad.end() ? -1 : static_cast<int>(at - kRoad.begin());
}

bool starts_with(const std::string& s, const std::string& prefix) {
  return s.compare(0, prefix.size(), prefix) == 0;
}

// The path an #include line names, or "".
std::string included(const std::string& line) {
  size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line[at] != '#') return "";
  at = line.find_first_not_of(" \t", at + 1);
  if (at == std::string::npos || line.compare(at, 7, "include") != 0) return "";
  const size_t open = line.find_first_of("\"<", at);
  if (open == std::string::npos) return "";
  const size_t close = line.find_first_of("\">", open + 1);
  return close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

// Why `folder` may not include `path`, or "".
std::string objection(const std::string& folder, const std::string& path) {
  if (starts_with(path, "llvm/") || starts_with(path, "llvm-c/"))
    return folder == "codegen" ? "" : "only codegen may include LLVM";
  if (starts_with(path, "spdlog/") || starts_with(path, "fmt/"))
    return folder == "support" ? "" : "only support/log.cpp may include spdlog";
  // What a schedule says is carried out: no stage behind planning asks a planner.
  if ((folder == "expand" || folder == "sync" || folder == "lower") &&
      (starts_with(path, "schedule/") || starts_with(path, "infer/")))
    return "only what plans may include planners";
  const size_t slash = path.find('/');
  if (slash == std::string::npos) return "";
  const int target = place(path.substr(0, slash));
  if (target < 0) return "";  // a system or third-party header
  return target > place(folder) ? "it comes after " + folder + " on the road" : "";
}

TEST(IncludeGraph, TheRulesThemselves) {
  EXPECT_EQ(included("#include \"ir/expr.h\""), "ir/expr.h");
  EXPECT_EQ(included("  #  include <llvm/IR/Module.h>  // why"), "llvm/IR/Module.h");
  EXPECT_EQ(included("// #include \"ir/expr.h\""), "");
  EXPECT_EQ(objection("ir", "support/id.h"), "");
  EXPECT_EQ(objection("ir", "ir/expr.h"), "");
  EXPECT_NE(objection("ir", "arith/affine.h"), "");
  EXPECT_NE(objection("lower", "llvm/IR/Module.h"), "");
  EXPECT_NE(objection("lower", "schedule/plan_kernel.h"), "");
  EXPECT_NE(objection("expand", "infer/infer_layouts.h"), "");
  EXPECT_EQ(objection("lower", "analysis/exchange.h"), "");
  EXPECT_NE(objection("capi", "llvm-c/Core.h"), "");
  EXPECT_EQ(objection("codegen", "llvm/IR/Module.h"), "");
  EXPECT_EQ(objection("ir", "sys/mman.h"), "");
  EXPECT_NE(objection("driver", "spdlog/logger.h"), "");
  EXPECT_EQ(objection("support", "spdlog/logger.h"), "");
}

TEST(IncludeGraph, EveryFileKeepsToTheRoad) {
  const fs::path root = fs::path(TILEGEN_SOURCE_DIR) / "src";
  int includes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const fs::path relative = fs::relative(entry.path(), root);
    const std::string folder = relative.begin()->string();
    EXPECT_GE(place(folder), 0) << relative << ": the folder is not on the road";
    std::ifstream in(entry.path());
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const std::string path = included(line);
      if (path.empty()) continue;
      ++includes;
      const std::string why = objection(folder, path);
      EXPECT_EQ(why, "") << relative.string() << ":" << number << " includes " << path;
    }
  }
  EXPECT_GT(includes, 50) << "the sources were not found under " << root;
}

// Code without its comment calls a function that calls back through the C library, which no exception can
// leave.
bool calls_through_libc(const std::string& line) {
  const std::string code = line.substr(0, line.find("//"));
  return code.find("call_once(") != std::string::npos || code.find("qsort(") != std::string::npos ||
         code.find("bsearch(") != std::string::npos;
}

TEST(Exceptions, PassThroughNoFrameOfTheCLibrary) {
  EXPECT_TRUE(calls_through_libc("  std::call_once(flag, [&] { work(); });"));
  EXPECT_FALSE(calls_through_libc("  once.run([&] { work(); });  // not std::call_once(flag)"));
  const fs::path root = fs::path(TILEGEN_SOURCE_DIR) / "src";
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      EXPECT_FALSE(calls_through_libc(line)) << entry.path() << ":" << number << ": see support/once.h";
    }
  }
}

}  // namespace
