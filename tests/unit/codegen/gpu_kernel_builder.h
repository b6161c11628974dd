// Thread programs of GPU blocks by hand, compiled to PTX and, where the machine has it, through ptxas.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "codegen/gpu_code.h"
#include "kernel_builder.h"

namespace tilegen::codegen::test {

struct GpuBuilder : KernelBuilder {
  ir::VarId thread;

  explicit GpuBuilder(int64_t threads, std::string name = "kernel") : KernelBuilder(std::move(name)) {
    p.machine = *target::find_target("sm_90a");
    p.threads = threads;
    thread = p.thread_var = p.add_var("tid", ir::VarKind::thread);
  }
  ExprId tid() { return var(thread); }
  ExprId block() { return var(p.block_vars[0]); }
  void align(MemoryId m, int64_t bytes) { p.memories[m.value].alignment = bytes; }
  MemoryId shared(std::string name, DType t, int64_t elements, int64_t slots = 1) {
    MemoryId m = arena(std::move(name), t, elements);
    thread::Memory& memory = p.memories[m.value];
    memory.space = thread::Space::shared;
    p.arena_bytes = (memory.arena_offset + 1023) / 1024 * 1024;
    memory.arena_offset = p.arena_bytes;
    memory.alignment = 1024;
    memory.slots = slots;
    p.arena_bytes += elements * ir::dtype_bytes(t);
    return m;
  }
  template <class Node>
  thread::StmtId add(Node node, std::string origin = "main/op#0") {
    return p.add(std::move(node), std::move(origin));
  }
};

// An architecture by its number or its name.
struct Architecture {
  std::string name;
  Architecture(int sm) : name("sm_" + std::to_string(sm)) {}
  Architecture(const char* text) : name(text) {}
};

inline target::Target gpu(const Architecture& sm) { return *target::find_target(sm.name); }

inline PtxResult compile_gpu(const std::vector<thread::ThreadProgram>& all, const Architecture& sm = 80,
                             bool keep_ir = false) {
  GpuCodegenOptions options;
  options.keep_ir = keep_ir;
  for (const thread::ThreadProgram& p : all) {
    for (const std::string& broken : thread::verify_thread_program(p)) ADD_FAILURE() << broken;
    if (all.size() > 1) options.symbols.push_back(p.name + "_" + std::to_string(options.symbols.size()));
  }
  auto r = compile_ptx(all, gpu(sm), options);
  if (r) return *r;
  ADD_FAILURE() << r.error().to_text();
  return {};
}
inline PtxResult compile_gpu(const thread::ThreadProgram& p, const Architecture& sm = 80,
                             bool keep_ir = false) {
  return compile_gpu(std::vector{p}, sm, keep_ir);
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "no '" << (part) << "' in\n" << (text)
#define EXPECT_LACKS(text, part) \
  EXPECT_EQ((text).find(part), std::string::npos) << "'" << (part) << "' in\n" << (text)

// What ptxas -v says; empty where there is no ptxas.
struct Assembled {
  bool ran = false, ok = false;
  std::string log;
  int registers = 0;
};

inline Assembled assemble(const std::string& ptx, const Architecture& sm) {
  Assembled a;
  if (std::system("command -v ptxas > /dev/null 2>&1") != 0) return a;
  a.ran = true;
  char folder[] = "/tmp/tilegen_ptx_XXXXXX";
  if (!mkdtemp(folder)) return a;
  const std::string base = std::string(folder) + "/k";
  std::ofstream(base + ".ptx") << ptx;
  a.ok = std::system(
             ("ptxas -v -arch=" + sm.name + " " + base + ".ptx -o " + base + ".cubin > " + base + ".log 2>&1")
                 .c_str()) == 0;
  std::stringstream log;
  log << std::ifstream(base + ".log").rdbuf();
  a.log = log.str();
  size_t used = a.log.find("Used ");
  if (used != std::string::npos) a.registers = std::atoi(a.log.c_str() + used + 5);
  for (const char* end : {".ptx", ".cubin", ".log"}) unlink((base + end).c_str());
  rmdir(folder);
  return a;
}

// Assembles all kernels, each without spills, local memory or findings, and without the words of PTX that
// they shall lack; false where there is no ptxas.
inline bool expect_assembles(const std::vector<thread::ThreadProgram>& all,
                             std::initializer_list<const char*> lacked = {},
                             std::initializer_list<Architecture> versions = {80, 89, 90}) {
  const std::string clean = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
  for (const Architecture& sm : versions) {
    PtxResult r = compile_gpu(all, sm);
    for (const char* word : lacked) EXPECT_LACKS(r.ptx, word);
    Assembled a = assemble(r.ptx, sm);
    if (!a.ran) return false;
    EXPECT_TRUE(a.ok) << a.log << "\n" << r.ptx;
    EXPECT_EQ(a.log.find("C75"), std::string::npos) << a.log;
    EXPECT_EQ(count_of(a.log, clean), all.size()) << a.log << "\n" << r.ptx;
    EXPECT_GT(a.registers, 0) << a.log;
  }
  return true;
}
inline bool expect_assembles(const thread::ThreadProgram& p) { return expect_assembles(std::vector{p}); }

#define ASSEMBLES_OR_SKIP(...) \
  if (!expect_assembles(__VA_ARGS__)) GTEST_SKIP() << "no ptxas on this machine: the PTX was not assembled"

}  // namespace tilegen::codegen::test
