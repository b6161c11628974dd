// Runs an artifact's HSACO on the interpreter of AMD machine code.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "code_object.h"
#include "driver/compile.h"
#include "guarded_memory.h"

namespace tilegen::differential {

// An artifact, or the fallback version of one, for any number of launches.
class HsacoRun {
 public:
  explicit HsacoRun(std::shared_ptr<const driver::Artifact> artifact);

  // `slots` as for the host, one per parameter; those of tensors hold addresses of `memory`, which holds the
  // results afterwards. Tensors begin `shift` elements after an aligned address; the seed is that of the
  // order of waves. An error text, or empty.
  std::string launch(std::span<const uint64_t> slots, std::vector<GuardedMemory>& memory, int64_t shift,
                     uint64_t seed);
  // Of the launches so far.
  uint64_t instructions() const { return instructions_; }

 private:
  std::string launch_kernels(std::span<const uint64_t> slots, std::span<const amdemu::Memory> memories,
                             const std::map<size_t, size_t>& tensors, uint64_t seed);
  std::shared_ptr<const driver::Artifact> artifact_;
  std::unique_ptr<amdemu::CodeObject> code_;
  std::unique_ptr<HsacoRun> fallback_;
  std::string failed_;
  uint64_t instructions_ = 0;
};

}  // namespace tilegen::differential
