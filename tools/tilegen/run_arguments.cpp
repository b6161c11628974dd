#include "run_arguments.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "element.h"
#include "files.h"
#include "npy.h"
#include "tensor_shapes.h"

namespace tool {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 36;

int64_t to_integer(const std::string& name, const std::string& text) {
  const auto value = parse_integer(text);
  if (!value) fail_usage("parameter " + name + " needs an integer, got '" + text + "'");
  return *value;
}

// --bias null: the launch goes without an optional tensor.
bool is_absent(const tl_param_info& parameter, const CommandLine& line) {
  return parameter.optional != 0 && line.get(parameter.name) == "null";
}

bool is_npy(const std::string& text) {
  return text.size() > 4 && text.compare(text.size() - 4, 4, ".npy") == 0;
}

// "128x64"
std::vector<int64_t> to_shape(const std::string& name, const std::string& text) {
  std::vector<int64_t> shape;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    shape.push_back(to_integer(name, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return shape;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t extent : shape) out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out.empty() ? "scalar" : out;
}

// Shapes that the command line gives (of files and of 128x64); files stay open as arrays.
struct Given {
  std::map<std::string, npy_array> files;
  std::map<std::string, std::vector<int64_t>> shapes;
  ~Given() {
    for (auto& [name, array] : files) npy_free(&array);
  }
};

void read_given(const std::vector<tl_param_info>& parameters, const CommandLine& line, Given& given) {
  for (const tl_param_info& parameter : parameters) {
    const auto text = line.get(parameter.name);
    if (parameter.kind != TL_PARAM_TENSOR || !text || is_absent(parameter, line)) continue;
    std::vector<int64_t>& shape = given.shapes[parameter.name];
    if (!is_npy(*text)) {
      shape = to_shape(parameter.name, *text);
      continue;
    }
    npy_array& array = given.files[parameter.name];
    char message[NPY_MESSAGE_SIZE];
    if (!npy_read(text->c_str(), &array, message)) fail_file(message);
    if (array.dtype != parameter.dtype)
      fail_usage(*text + " has " + tl_dtype_name(array.dtype) + " elements, but " + parameter.name + " is " +
                 tl_dtype_name(parameter.dtype));
    shape.assign(array.shape, array.shape + array.rank);
  }
}

// The one value of a dimension that makes the expression this extent; nothing where several do (n // 64).
std::optional<int64_t> solve(const std::string& expression, const std::string& dim,
                             std::map<std::string, int64_t> known, int64_t extent) {
  constexpr int64_t kMost = int64_t{1} << 48;
  if (expression.find('%') != std::string::npos) return std::nullopt;  // all others grow or fall
  const auto at = [&](int64_t value) {
    int64_t result = 0;
    known[dim] = value;
    return evaluate(expression, known, &result) ? std::optional(result) : std::nullopt;
  };
  const auto first = at(0), second = at(1);
  if (!first || !second) return std::nullopt;
  int64_t low = 0, high = kMost;  // the least value that reaches the extent; what overflows is beyond it
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (const auto value = at(middle); value && *value < extent)
      low = middle + 1;
    else
      high = middle;
  }
  return at(low) == extent && at(low + 1) != extent ? std::optional(low) : std::nullopt;
}

// By the extents of tensors whose shapes are given, one after the other, as a solved one may stand in others.
void solve_dims(const std::vector<tl_param_info>& parameters,
                const std::map<std::string, TensorShape>& declared, const Given& given,
                std::map<std::string, int64_t>& dims) {
  for (bool found = true; found;) {
    found = false;
    for (const tl_param_info& parameter : parameters)
      for (const auto& [name, shape] : given.shapes) {
        const auto it = declared.find(name);
        if (parameter.kind != TL_PARAM_DIM || it == declared.end()) continue;
        for (size_t d = 0; d < std::min(it->second.extents.size(), shape.size()); ++d) {
          if (dims.count(parameter.name)) continue;
          const auto value = solve(it->second.extents[d], parameter.name, dims, shape[d]);
          if (value) dims[parameter.name] = *value, found = true;
        }
      }
  }
}

// Dimensions named on the command line, or told by the extents of a tensor whose shape is given.
std::map<std::string, int64_t> find_dims(const std::vector<tl_param_info>& parameters,
                                         const CommandLine& line,
                                         const std::map<std::string, TensorShape>& declared,
                                         const Given& given) {
  std::map<std::string, int64_t> dims;
  for (const tl_param_info& parameter : parameters) {
    if (parameter.kind != TL_PARAM_DIM) continue;
    if (const auto text = line.get(parameter.name)) {
      dims[parameter.name] = to_integer(parameter.name, *text);
      continue;
    }
    for (const auto& [name, shape] : given.shapes) {
      const auto it = declared.find(name);
      for (size_t d = 0; it != declared.end() && d < it->second.extents.size() && d < shape.size(); ++d)
        if (it->second.extents[d] == parameter.name) dims[parameter.name] = shape[d];
    }
  }
  solve_dims(parameters, declared, given, dims);
  for (const tl_param_info& parameter : parameters)
    if (parameter.kind == TL_PARAM_DIM && !dims.count(parameter.name))
      fail_usage(std::string("dimension ") + parameter.name + " is not known; give --" + parameter.name +
                 " N, or a tensor that has it");
  return dims;
}

std::vector<int64_t> evaluate_all(const std::vector<std::string>& expressions, const std::string& tensor,
                                  const std::map<std::string, int64_t>& dims) {
  std::vector<int64_t> out;
  for (const std::string& expression : expressions) {
    out.push_back(0);
    if (!evaluate(expression, dims, &out.back()) || out.back() < 0)
      fail_usage("the extent or stride `" + expression + "` of " + tensor +
                 " is no usable number for these dimensions");
  }
  return out;
}

void allocate(Tensor& tensor) {
  int64_t last = 0;  // position of the last element
  bool empty = false;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    int64_t reach = 0;
    if (tensor.shape[d] == 0) empty = true;
    if (__builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last) ||
        last >= kMaxBytes / static_cast<int64_t>(element_bytes(tensor.dtype)))
      fail_usage("tensor " + tensor.name + " of " + shape_text(tensor.shape) + " is too large");
  }
  const size_t bytes = empty ? 0 : (static_cast<size_t>(last) + 1) * element_bytes(tensor.dtype);
  tensor.storage.assign(bytes / 8 + 8, 0);
}

Tensor make_tensor(const tl_param_info& parameter, const TensorShape& declared, const Given& given,
                   const std::map<std::string, int64_t>& dims, uint64_t seed) {
  Tensor tensor;
  tensor.name = parameter.name;
  tensor.dtype = parameter.dtype;
  tensor.read_only = parameter.read_only != 0;
  tensor.shape = evaluate_all(declared.extents, tensor.name, dims);
  tensor.strides = evaluate_all(declared.strides, tensor.name, dims);
  const auto shape = given.shapes.find(tensor.name);
  if (shape != given.shapes.end() && shape->second != tensor.shape)
    fail_usage("tensor " + tensor.name + " is given as " + shape_text(shape->second) + " but must be " +
               shape_text(tensor.shape) + " for these dimensions");
  if (tensor.strides.empty()) {
    tensor.strides.assign(tensor.shape.size(), 1);
    for (size_t d = tensor.shape.size(); d-- > 1;)
      if (__builtin_mul_overflow(tensor.strides[d], tensor.shape[d], &tensor.strides[d - 1]))
        fail_usage("tensor " + tensor.name + " of " + shape_text(tensor.shape) + " is too large");
  }
  allocate(tensor);
  const auto file = given.files.find(tensor.name);
  std::vector<uint64_t> random;
  const void* source = file == given.files.end() ? nullptr : file->second.data;
  if (!source) {
    random.resize(static_cast<size_t>(tensor.elements()) * element_bytes(tensor.dtype) / 8 + 1);
    element_random(tensor.dtype, random.data(), static_cast<size_t>(tensor.elements()), seed);
    source = random.data();
  }
  const size_t size = element_bytes(tensor.dtype);
  for (int64_t i = 0; i < tensor.elements(); ++i)
    std::memcpy(reinterpret_cast<char*>(tensor.storage.data()) + tensor.position(i) * size,
                static_cast<const char*>(source) + static_cast<size_t>(i) * size, size);
  return tensor;
}

tl_arg scalar_argument(const tl_param_info& parameter, const std::string& text) {
  tl_arg arg{TL_ARG_I64, parameter.dtype, 0};
  if (element_is_float(parameter.dtype)) {
    const auto value = parse_number(text);
    if (!value) fail_usage(std::string("scalar ") + parameter.name + " needs a number, got '" + text + "'");
    arg.kind = TL_ARG_F64;
    std::memcpy(&arg.payload, &*value, sizeof *value);
  } else {
    arg.payload = static_cast<uint64_t>(to_integer(parameter.name, text));
  }
  return arg;
}

}  // namespace

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

size_t Tensor::position(int64_t index) const {
  int64_t position = 0;
  for (size_t d = shape.size(); d-- > 0; index /= shape[d]) position += index % shape[d] * strides[d];
  return static_cast<size_t>(position);
}

std::vector<tl_arg> RunArguments::launch_arguments() {
  std::vector<tl_arg> args;
  size_t tensor = 0;
  for (const tl_param_info& parameter : parameters) {
    switch (parameter.kind) {
      case TL_PARAM_DIM:
        args.push_back({TL_ARG_I64, 0, static_cast<uint64_t>(dims.at(parameter.name))});
        break;
      case TL_PARAM_SCALAR:
        args.push_back(scalars.at(parameter.name));
        break;
      default:
        args.push_back({TL_ARG_POINTER, parameter.dtype,
                        static_cast<uint64_t>(reinterpret_cast<uintptr_t>(
                            tensors[tensor].absent ? nullptr : tensors[tensor].storage.data()))});
        ++tensor;
    }
  }
  return args;
}

int64_t seed_of(const CommandLine& line) {
  return line.integer_or("seed", 1, 0, std::numeric_limits<int64_t>::max());
}

RunArguments make_arguments(const Program& program, const CommandLine& line) {
  auto seed = static_cast<uint64_t>(seed_of(line));
  RunArguments out;
  out.parameters = parameters(program);
  const std::map<std::string, TensorShape> declared = tensor_shapes(program_text(program));
  Given given;
  read_given(out.parameters, line, given);
  out.dims = find_dims(out.parameters, line, declared, given);
  for (const tl_param_info& parameter : out.parameters) {
    if (parameter.kind == TL_PARAM_SCALAR) {
      const auto text = line.get(parameter.name);
      if (!text)
        fail_usage(std::string("scalar ") + parameter.name + " has no value; give --" + parameter.name +
                   " X");
      out.scalars[parameter.name] = scalar_argument(parameter, *text);
    }
    if (parameter.kind == TL_PARAM_TENSOR) {
      out.tensors.push_back(make_tensor(parameter, declared.at(parameter.name), given, out.dims, ++seed));
      out.tensors.back().absent = is_absent(parameter, line);
    }
  }
  return out;
}

void save_tensor(const Tensor& tensor, const std::string& path) {
  npy_array array{};
  if (!npy_make(&array, tensor.dtype, static_cast<int>(tensor.shape.size()), tensor.shape.data()))
    fail_file(path + ": no memory, or too many dimensions for a .npy file");
  const size_t size = element_bytes(tensor.dtype);
  for (int64_t i = 0; i < tensor.elements(); ++i)
    std::memcpy(static_cast<char*>(array.data) + static_cast<size_t>(i) * size,
                reinterpret_cast<const char*>(tensor.storage.data()) + tensor.position(i) * size, size);
  char message[NPY_MESSAGE_SIZE];
  const bool written = npy_write(path.c_str(), &array, message) != 0;
  npy_free(&array);
  if (!written) fail_file(message);
}

}  // namespace tool
