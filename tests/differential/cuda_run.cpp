#include "cuda_run.h"

#include <algorithm>
#include <bit>

#include "launch_memory.h"
#include "launch_watch.h"
#include "runtime/device_memory.h"
#include "runtime/devices.h"
#include "runtime/kernel_version.h"

namespace tilegen::differential {

namespace {

// Place of the first CUDA device among runtime::devices(); 0 is the host.
size_t cuda_device() {
  const auto& devices = runtime::devices();
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices[i].kind == runtime::DeviceKind::cuda && !devices[i].target_name.empty()) return i;
  return 0;
}

// One tensor on the device, with a zone of marks on either side.
class DeviceTensor {
 public:
  DeviceTensor(GuardedMemory& host, size_t shift_bytes) : host_(host), begin_(kZone + shift_bytes) {
    image_.assign(begin_ + host.bytes().size() + kZone, GuardedMemory::kMark);
    std::copy(host.bytes().begin(), host.bytes().end(), image_.begin() + static_cast<std::ptrdiff_t>(begin_));
  }
  DeviceTensor(DeviceTensor&& o) noexcept
      : host_(o.host_),
        begin_(o.begin_),
        image_(std::move(o.image_)),
        memory_(std::exchange(o.memory_, nullptr)) {}
  ~DeviceTensor() {
    if (memory_) (void)runtime::free_memory(cuda_device(), memory_);
  }

  Checked upload() {
    auto memory = runtime::allocate_memory(cuda_device(), image_.size());
    if (!memory) return memory.error();
    memory_ = *memory;
    return runtime::copy_memory(cuda_device(), memory_, image_.data(), image_.size(), nullptr);
  }

  // Brings the tensor back; an error text when the zones were written.
  std::string download() {
    std::vector<std::byte> now(image_.size());
    if (Checked ok = runtime::copy_memory(cuda_device(), now.data(), memory_, now.size(), nullptr); !ok)
      return ok.error().to_text();
    const auto first = now.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto last = first + static_cast<std::ptrdiff_t>(host_.bytes().size());
    std::copy(first, last, host_.bytes().begin());
    auto marked = [](std::byte b) { return b == GuardedMemory::kMark; };
    if (!std::all_of(now.begin(), first, marked) || !std::all_of(last, now.end(), marked))
      return "memory beside a tensor was written";
    return {};
  }

  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_) + begin_; }

 private:
  static constexpr size_t kZone = 1024;
  GuardedMemory& host_;
  size_t begin_;
  std::vector<std::byte> image_;
  void* memory_ = nullptr;
};

}  // namespace

std::string describe_launch(const driver::Artifact& artifact, std::span<const uint64_t> slots) {
  const ir::Program& p = *artifact.program;
  std::string text = "program " + p.name + " for " + artifact.target.name + ",";
  for (size_t i = 0; i < p.params.size() && i < slots.size(); ++i)
    if (p.params[i].kind == ir::Param::Kind::dim)
      text +=
          " " + p.var(p.params[i].var).name + " = " + std::to_string(static_cast<int64_t>(slots[i])) + ",";
  const auto kernels = runtime::kernel_versions(artifact);
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto form = runtime::choose_version(kernels[k], p.kernels[k].name, slots);
    if (!form) continue;
    const auto grid = (*form)->grid(slots);
    text += " kernel " + (*form)->program().name + " of " + (grid ? std::to_string(grid->blocks) : "?") +
            " blocks of " + std::to_string((*form)->program().threads) + " threads,";
  }
  text.pop_back();
  return text;
}

bool has_cuda_device() { return cuda_device() != 0; }

CudaRun::CudaRun(std::shared_ptr<const driver::Artifact> artifact) : artifact_(std::move(artifact)) {
  auto loaded = runtime::load(artifact_, cuda_device());
  if (loaded)
    executable_ = std::move(*loaded);
  else
    failed_ = loaded.error().to_text();
}

std::string CudaRun::launch(std::span<const uint64_t> slots, std::vector<GuardedMemory>& memory,
                            int64_t shift) {
  if (!executable_) return failed_;
  const ir::Program& p = *artifact_->program;
  std::vector<DeviceTensor> tensors;
  std::vector<runtime::Argument> arguments;
  tensors.reserve(memory.size());
  size_t tensor = 0;
  for (size_t i = 0; i < p.params.size(); ++i) {
    if (p.is_presence(p.params[i])) continue;
    runtime::Argument a;
    if (p.params[i].kind == ir::Param::Kind::tensor) {
      const auto bytes = static_cast<size_t>(ir::dtype_bytes(p.buffer(p.params[i].buffer).type));
      GuardedMemory& host = memory[tensor++];
      if (p.is_workspace(p.params[i])) continue;
      tensors.emplace_back(host, static_cast<size_t>(shift) * bytes);
      if (Checked ok = tensors.back().upload(); !ok) return ok.error().to_text();
      a.kind = runtime::Argument::Kind::pointer;
      a.bits = p.buffer(p.params[i].buffer).optional && slots[i] == 0 ? 0 : tensors.back().address();
    } else if (const ir::DType type = p.var(p.params[i].var).type; ir::is_float(type)) {
      a.kind = runtime::Argument::Kind::floating;
      a.bits = std::bit_cast<uint64_t>(ir::float_from_bits(type, slots[i]));
    } else {
      a.kind = runtime::Argument::Kind::integer;
      a.bits = static_cast<uint64_t>(ir::is_bool(type) ? static_cast<int64_t>(slots[i] & 1)
                                                       : ir::wrap_to(type, static_cast<int64_t>(slots[i])));
    }
    arguments.push_back(a);
  }
  {
    const LaunchWatch watch(describe_launch(*artifact_, slots));
    runtime::LaunchOptions options;
    options.lines = lines_to(lines_);
    lines_.clear();
    if (Checked ok = executable_->launch(arguments, options); !ok) return ok.error().to_text();
    if (Checked ok = runtime::wait_for_stream(cuda_device(), nullptr); !ok) return ok.error().to_text();
  }
  std::string error;
  for (DeviceTensor& t : tensors)
    if (std::string e = t.download(); error.empty()) error = e;
  return error;
}

}  // namespace tilegen::differential
