// A code object of gfx942 or gfx90a (HSACO), launched on an interpreter of its instructions: what the code
// computes, with nothing said of time. docs/hip.md says what the interpreter covers and assumes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilegen::amdemu {

// Memory that a kernel may reach, at an address of the interpreter's own: an access outside its bytes ends
// the launch. It is copied in, and copied back after the launch.
struct Memory {
  std::string name;
  std::span<std::byte> bytes;
  bool writable = true;
};

// A slot of 8 bytes of the kernel's arguments: bits, or the address `bits` bytes into a memory.
struct Argument {
  uint64_t bits = 0;
  int memory = -1;
};

struct LaunchOptions {
  std::array<uint32_t, 3> grid{1, 1, 1};   // blocks
  std::array<uint32_t, 3> block{1, 1, 1};  // threads
  // Loads, stores and operations on LDS take effect at the wait that covers them, and a register with a
  // result outstanding may not be touched.
  bool strict = true;
  bool report_unwritten = false;  // warn of reads of registers and LDS that were never written
  uint64_t seed = 0;              // of the order of waves and their slices of time; 0: in turn
  uint32_t concurrent = 1;        // blocks that are resident together
  uint64_t most_instructions = uint64_t{1} << 34;  // of all waves
};

struct LaunchResult {
  std::string error;          // "": the launch ended well
  uint64_t instructions = 0;  // of waves
  std::vector<std::string> warnings;
  std::map<std::string, uint64_t> profile;  // instructions by mnemonic
};

// "Kernel Descriptor" and "Code Object Metadata" of LLVM's guide.
struct KernelFacts {
  uint64_t entry = 0;
  uint32_t lds_bytes = 0, scratch_bytes = 0, argument_bytes = 0;
  uint32_t vgprs = 0;         // that the descriptor grants, accumulation registers among them
  uint32_t first_agpr = 0;    // accumulation registers begin there
  uint32_t most_threads = 0;  // of a block
  uint64_t code_bytes = 0;
  struct Field {
    std::string kind;  // "by_value", "global_buffer", "hidden_block_count_x"
    uint32_t offset = 0, size = 0;
  };
  std::vector<Field> arguments;
};

class CodeObject {
 public:
  // Throws std::runtime_error where the bytes are no code object that it knows.
  explicit CodeObject(std::string_view bytes);
  ~CodeObject();
  CodeObject(const CodeObject&) = delete;
  CodeObject& operator=(const CodeObject&) = delete;

  const std::string& cpu() const { return cpu_; }
  const std::map<std::string, KernelFacts>& kernels() const { return kernels_; }
  // Instructions that a launch would stop at.
  std::vector<std::string> unknown() const;
  std::string listing() const;  // a line each

  LaunchResult launch(const std::string& kernel, std::span<const Memory> memories,
                      std::span<const Argument> arguments, const LaunchOptions& options);

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
  std::string cpu_;
  std::map<std::string, KernelFacts> kernels_;
};

}  // namespace tilegen::amdemu
