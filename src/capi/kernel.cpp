// Kernels loaded on a device.
#include <algorithm>

#include "capi/context_log.h"
#include "capi/guard.h"
#include "capi/launch_arguments.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

runtime::LaunchOptions launch_options(const tl_launch& launch) {
  return {.max_threads = static_cast<int>(std::min<uint32_t>(launch.max_threads, 1u << 16)),
          .stream = launch.stream};
}

// A launch with limits, or of a caller with another version of the struct.
[[gnu::cold]] Checked launch_with(const tl_kernel& kernel, const tl_launch* launch,
                                  std::span<const runtime::Argument> args) {
  auto how = read_launch(launch);
  if (!how) return how.error();
  const CallLimits call(how->context, how->timeout_ms);
  runtime::LaunchOptions options = launch_options(*how);
  options.cancellation = call.get();
  if (how->context) {
    options.log_of = [](const void* context) { return log_of(*static_cast<const tl_context*>(context)); };
    options.listener = how->context;
    options.lines = lines_of(how->context);
  }
  return kernel.executable->launch(args, options);
}

inline Checked run(const tl_kernel& kernel, const tl_launch* launch,
                   std::span<const runtime::Argument> args) {
  if (!launch) return kernel.executable->launch(args, {});
  if (launch->struct_size != sizeof(tl_launch) || launch->timeout_ms != 0 || launch->context)
    return launch_with(kernel, launch, args);
  return kernel.executable->launch(args, launch_options(*launch));
}

// The stages of a compilation; those with a dot are parts of others.
double compile_ms(const driver::Artifact& artifact) {
  double sum = 0;
  for (const driver::StageTime& t : artifact.times)
    if (t.stage.find('.') == std::string::npos) sum += t.ms;
  return sum;
}

// A copy of `text` that lives as long as the kernel; equal texts share one.
const char* keep(const tl_kernel& kernel, std::string text) {
  std::lock_guard lock(kernel.describing);
  for (const std::string& kept : kernel.descriptions)
    if (kept == text) return kept.c_str();
  kernel.descriptions.push_back(std::move(text));
  return kernel.descriptions.back().c_str();
}

}  // namespace

extern "C" {

tl_status tl_kernel_load(const tl_context* context, const tl_artifact* artifact, size_t ordinal,
                         tl_kernel** out_kernel, tl_error** out_error) {
  return guard("tl_kernel_load", out_error, [&]() -> Checked {
    if (out_kernel) *out_kernel = nullptr;
    if (!context) return null_argument("context");
    if (!artifact || !out_kernel) return null_argument(artifact ? "out_kernel" : "artifact");
    auto loaded = runtime::load(artifact->artifact, ordinal);
    if (!loaded) return loaded.error();
    auto made = std::make_unique<tl_kernel>();
    made->executable = std::move(*loaded);
    *out_kernel = made.release();
    return Unit{};
  });
}

void tl_kernel_retain(tl_kernel* kernel) { retain(kernel); }
void tl_kernel_release(tl_kernel* kernel) { release(kernel); }

tl_status tl_kernel_prepare(const tl_kernel* kernel, tl_error** out_error) {
  return guard("tl_kernel_prepare", out_error, [&]() -> Checked {
    if (!kernel) return null_argument("kernel");
    return kernel->executable->prepare();
  });
}

size_t tl_kernel_form_count(const tl_kernel* kernel) {
  return kernel ? kernel->executable->version_count() : 0;
}

tl_status tl_kernel_describe(const tl_kernel* kernel, size_t index, tl_kernel_info* out_info,
                             tl_error** out_error) {
  return guard("tl_kernel_describe", out_error, [&]() -> Checked {
    if (!kernel || !out_info) return null_argument(kernel ? "out_info" : "kernel");
    auto rows = kernel->executable->info();
    if (!rows) return rows.error();
    if (index >= rows->size())
      return Error(DiagCode::bad_enum, "", "there is no version " + std::to_string(index),
                   "count them with tl_kernel_form_count");
    const runtime::VersionInfo& row = (*rows)[index];
    tl_kernel_info info{};
    info.kernel = static_cast<uint32_t>(row.kernel);
    info.variant = static_cast<uint32_t>(row.variant);
    info.threads = static_cast<uint32_t>(row.program->threads);
    info.name = row.program->name.c_str();
    info.guards = keep(*kernel, row.guards);
    info.measured = row.measured ? 1 : 0;
    info.registers = row.registers;
    info.accumulation_registers = row.accumulation_registers;
    info.scalar_registers = row.scalar_registers;
    info.max_threads = row.max_threads;
    info.blocks_per_multiprocessor = row.blocks_per_multiprocessor;
    info.local_bytes = row.local_bytes;
    info.static_shared_bytes = row.static_shared_bytes;
    info.dynamic_shared_bytes = row.dynamic_shared_bytes;
    info.log = keep(*kernel, kernel->executable->load_log());
    info.compile_ms = compile_ms(kernel->executable->artifact());
    info.load_ms = kernel->executable->load_ms();
    return fill_struct(out_info, info, offsetof(tl_kernel_info, accumulation_registers));
  });
}

tl_status tl_kernel_launch(const tl_kernel* kernel, const tl_launch* launch, const tl_arg* args, size_t count,
                           tl_error** out_error) {
  return guard("tl_kernel_launch", out_error, [&]() -> Checked {
    if (!kernel) return null_argument("kernel");
    if (!sane_argument_array(args, count)) return absurd_argument_array(args, count, "args");
    LaunchArguments arguments(count);
    if (!convert_arguments(args, arguments)) return unconverted({args, count});
    return run(*kernel, launch, arguments);
  });
}

tl_status tl_kernel_launch_dlpack(const tl_kernel* kernel, const tl_launch* launch,
                                  const struct DLTensor* const* tensors, size_t count, tl_error** out_error) {
  return guard("tl_kernel_launch_dlpack", out_error, [&]() -> Checked {
    if (!kernel) return null_argument("kernel");
    if (!sane_argument_array(tensors, count)) return absurd_argument_array(tensors, count, "tensors");
    LaunchArguments arguments(count);
    if (!convert_tensors(tensors, arguments)) return unconverted({tensors, count});
    return run(*kernel, launch, arguments);
  });
}

}  // extern "C"
