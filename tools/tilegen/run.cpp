#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "command_line.h"
#include "commands.h"
#include "device_tensors.h"
#include "library.h"
#include "result_comparison.h"
#include "result_forms.h"
#include "run_arguments.h"

namespace tool {

namespace {

void launch(const Kernel& kernel, const std::vector<tl_arg>& args, const tl_launch* how = nullptr) {
  tl_error* error = nullptr;
  require(tl_kernel_launch(kernel.get(), how, args.data(), args.size(), &error), error, "launching");
}

// One launch gives the results; further ones the time. On a GPU as many launches stand between two looks at
// the clock as fill a fifth of a millisecond, since looking waits for the device.
double launch_and_time(const Kernel& kernel, size_t device, RunArguments& arguments, int repeats) {
  DeviceTensors tensors(device, arguments);
  const std::vector<tl_arg> args = tensors.launch_arguments();
  launch(kernel, args);
  tensors.fetch();
  std::vector<double> times;
  int batch = 1;
  const auto begin = std::chrono::steady_clock::now();
  do {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < batch; ++i) launch(kernel, args, quiet_launch());
    tensors.wait();
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (device != 0 && ms < 0.2 && batch < 1000) {
      batch *= 2;
      continue;
    }
    times.push_back(ms / batch);
  } while (static_cast<int>(times.size()) < repeats &&
           std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(500));
  if (times.empty()) fail("no launch could be timed");
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// What the device says of the code.
void print_forms(const Kernel& kernel) {
  for (size_t i = 0; i < tl_kernel_form_count(kernel.get()); ++i) {
    tl_kernel_info info{};
    info.struct_size = sizeof info;
    tl_error* error = nullptr;
    require(tl_kernel_describe(kernel.get(), i, &info, &error), error, "describing the kernel");
    if (i == 0) std::printf("loaded     in %.1f ms, compiled in %.1f ms\n", info.load_ms, info.compile_ms);
    const std::string scalars = info.scalar_registers == 0
                                    ? ""
                                    : " (" + std::to_string(info.accumulation_registers) + " accumulate), " +
                                          std::to_string(info.scalar_registers) + " scalar";
    std::printf(
        "form       %s: %u threads, %d registers%s, %lld bytes local, %lld bytes shared, %d blocks at "
        "once%s%s\n",
        info.name, info.threads, info.registers, scalars.c_str(), static_cast<long long>(info.local_bytes),
        static_cast<long long>(info.static_shared_bytes + info.dynamic_shared_bytes),
        info.blocks_per_multiprocessor, *info.guards ? "; needs " : "", info.guards);
  }
}

// Every option must be one of the command or name a parameter of the program.
void check_names(const CommandLine& line, const std::vector<tl_param_info>& parameters) {
  static const std::set<std::string> kOwn = {"target",    "schedule", "seed",     "repeats",
                                             "tolerance", "save",     "no-check", "forms"};
  std::string names;
  for (const tl_param_info& p : parameters) names += (names.empty() ? "" : ", ") + std::string(p.name);
  for (const auto& [name, value] : line.values()) {
    const bool parameter =
        std::any_of(parameters.begin(), parameters.end(), [&](const auto& p) { return name == p.name; });
    if (!parameter && !kOwn.count(name))
      fail_usage("--" + name + " is neither an option nor a parameter (" + names + ")");
  }
}

}  // namespace

int run_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {"no-check", "forms"}, {});
  const Context context = make_context();
  const Program program = read_program(context, line);
  check_names(line, parameters(program));
  const auto repeats = static_cast<int>(line.integer_or("repeats", 20, 1, std::numeric_limits<int>::max()));
  const std::optional<double> tolerance = tolerance_of(line);
  RunArguments arguments = make_arguments(program, line);
  RunArguments expected = arguments;

  const Target target = find_target(context, line.get_or("target", ""));
  const size_t device = device_for(tl_target_name(target.get()));
  const Artifact artifact = compile_file(context, program, line, nullptr, false);
  tl_kernel* loaded = nullptr;
  tl_error* error = nullptr;
  require(tl_kernel_load(context.get(), artifact.get(), device, &loaded, &error), error, "loading");
  const Kernel kernel(loaded);
  const double ms = launch_and_time(kernel, device, arguments, repeats);
  std::printf(device == 0 ? "time       %.3f ms\n" : "time       %.4f ms\n", ms);
  if (line.has("forms")) print_forms(kernel);

  bool right = true;
  if (!line.has("no-check")) {
    const std::vector<tl_arg> args = expected.launch_arguments();
    require(tl_interpret_launch(program.get(), quiet_launch(), args.data(), args.size(), &error), error,
            "interpreting");
    for (size_t i = 0; i < expected.tensors.size(); ++i)
      if (!expected.tensors[i].read_only)
        right = report_difference(expected.tensors[i], arguments.tensors[i], tolerance) && right;
  }
  if (const auto folder = line.get("save"))
    for (const Tensor& tensor : arguments.tensors)
      if (!tensor.read_only) save_tensor(tensor, *folder + "/" + tensor.name + ".npy");
  return right ? 0 : 1;
}

}  // namespace tool
