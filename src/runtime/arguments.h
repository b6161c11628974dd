// Launch arguments -> parameter slots: solves the program's dims from tensors, checks everything the program
// states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/program.h"
#include "runtime/memory_place.h"
#include "support/diagnostic.h"

namespace tilegen::runtime {

// One argument, converted from tl_arg by capi/. Shapes and strides belong to the caller; they and the place
// mean something for described tensors only, and are not set elsewhere.
struct Argument {
  enum class Kind : uint8_t {
    automatic,  // a dim to be solved from tensor arguments
    pointer,  // a tensor given by its base address; its shape is what the dims say, its strides the program's
    integer,  // dim or integer scalar
    floating,  // floating scalar
    tensor     // described tensor (DLPack): address, dtype, shape, strides, device
  } kind = Kind::automatic;
  uint64_t bits = 0;  // pointer, integer, or a double's bits
  ir::DType type =
      ir::DType::none;           // tensor; elsewhere none, or what the caller believes, to have it checked
  std::span<const int64_t> shape;    // tensor
  std::span<const int64_t> strides;  // tensor, in elements; empty = compact
  MemoryPlace place;                 // tensor
};

// Some statement of a kernel names the tensor: its address may then not be null.
bool is_accessed(const ir::Program& p, ir::BufferId buffer);

// Slots in Program::params order, of workspaces 0. `arguments` are in that order too: one per parameter that
// is no workspace, or one per such tensor and scalar with every dim automatic. Refuses with a launch_*
// diagnostic that names the parameter, what was expected and what was got. Dims given more than once must
// agree; an unsolved dim is an error; facts are checked; an empty tensor, or one that no statement names, may
// have a null address. Strides of dimensions of extent 1 and of empty tensors mean nothing and are not looked
// at. A scalar's slot holds its bits in the low bytes, zero above. Complete, and slow: argument_plan.h is
// what a launch asks first.
Expected<std::vector<uint64_t>> bind_arguments(const ir::Program& program,
                                               std::span<const Argument> arguments,
                                               const MemoryReach& device = {});

}  // namespace tilegen::runtime
