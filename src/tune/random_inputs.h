// Launch arguments of random data, several sets of them on a device.
//
// requires: configurations of one program, which have the same parameters.
// ensures: sets whose tensors together are twice the last cache, so that what a launch reads is not there
// from the one before (one set where memory has no room for more). Numbers are never all zero, which costs
// less power and so less time: floats are from -1 to 1, i8 from -8 to 7, other integers from 0 to 15, the
// same in every process.
// refuses: sizes that are not given where the configurations' facts allow different ones; tensors without a
// size, or beyond the memory of the device.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cost/sizes.h"
#include "runtime/arguments.h"
#include "target/target.h"

namespace tilegen::tune {

class RandomInputs {
 public:
  using Programs = std::span<const std::shared_ptr<const ir::Program>>;

  static constexpr size_t kMaxSets = 64;
  static constexpr double kScalar = 0.5;        // of floating scalars
  static constexpr int64_t kIntegerScalar = 1;  // of integer ones that `sizes` does not name

  // `device`: of runtime::devices().
  static Expected<std::unique_ptr<RandomInputs>> make(Programs programs, const target::Target& target,
                                                      const cost::Sizes& sizes, size_t device);

  size_t sets() const { return sets_.size(); }
  // One for each parameter of program `number` of `programs`.
  std::span<const runtime::Argument> arguments(size_t number, size_t set);

 private:
  struct Memory {
    Memory(size_t of_device, void* at) : device(of_device), address(at) {}
    Memory(Memory&& other) noexcept;
    ~Memory();
    size_t device;
    void* address;
  };

  Checked fill(size_t tensor, void* memory) const;
  Checked allocate(size_t device, size_t sets);

  size_t device_ = 0;
  std::vector<ir::DType> types_;                           // of the tensors, in the order of parameters
  std::vector<int64_t> bytes_;                             // of the tensors
  std::vector<std::vector<Memory>> sets_;                  // a piece for each tensor
  std::vector<std::vector<runtime::Argument>> arguments_;  // of each program, with tensors of no address
};

}  // namespace tilegen::tune
