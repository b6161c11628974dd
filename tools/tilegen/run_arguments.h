// Parameters of a run: values from the command line, tensors from .npy files or at random.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "command_line.h"
#include "library.h"

namespace tool {

struct Tensor {
  std::string name;
  tl_dtype dtype = 0;
  bool read_only = false;
  bool absent = false;  // optional, and given as null
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;   // in elements
  std::vector<uint64_t> storage;  // elements of all strides
  int64_t elements() const;
  // Position of element `index` of the C order.
  size_t position(int64_t index) const;
};

struct RunArguments {
  std::vector<tl_param_info> parameters;
  std::map<std::string, int64_t> dims;
  std::map<std::string, tl_arg> scalars;
  std::vector<Tensor> tensors;  // in parameter order

  // Launch arguments on these tensors; valid while the tensors stay where they are.
  std::vector<tl_arg> launch_arguments();
};

// Ends the program with a message when a parameter cannot be had from the command line.
RunArguments make_arguments(const Program& program, const CommandLine& line);

int64_t seed_of(const CommandLine& line);  // --seed, of random data

void save_tensor(const Tensor& tensor, const std::string& path);

}  // namespace tool
