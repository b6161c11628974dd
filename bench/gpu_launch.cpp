// What a launch costs on the CPU over the raw driver call, and how long a program takes to become PTX.
//   gpu_launch [results.json]
//   gpu_launch --only ROW COUNT     launches one row's arguments COUNT times, for a profiler
//
// The raw call runs the kernel of `add` with the same arguments from a module of its own, as a dependent
// launch where its code waits for the kernel before; the plain one never is. All queue batches of launches on
// one stream, in turn; the time of a batch without the wait for its end, over its launches, is one sample.
// The driver is the machine's, or what TILEGEN_CUDA_DRIVER names: on idle_driver.cpp the differences are the
// library's own time.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../tests/differential/launch_watch.h"
#include "launch_programs.h"
#include "library.h"
#include "measure.h"
#include "subject.h"

namespace {

// The part of DLPack's header that describes a tensor.
struct DlDevice {
  int32_t type, id;
};
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
constexpr int32_t kDlCuda = 2;
constexpr uint8_t kDlFloat = 2;

// The driver's functions that the raw side needs, and those whose own cost is listed.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*alloc)(uint64_t*, size_t) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_wait)(void*) = nullptr;
  int (*load)(void**, const void*, unsigned, void*, void*) = nullptr;
  int (*function)(void**, void*, const char*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = nullptr;
  int (*launch_with)(const void*, void*, void**, void**) = nullptr;
  int (*current)(void**) = nullptr;
  int (*context_id)(void*, unsigned long long*) = nullptr;
  int (*stream_id)(void*, unsigned long long*) = nullptr;
  int (*capturing)(void*, int*) = nullptr;
  int (*tensor_map)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                    const uint32_t*, int, int, int, int) = nullptr;

  bool open() {
    const char* path = std::getenv("TILEGEN_CUDA_DRIVER");
    void* lib = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW);
    if (!lib) return false;
    auto find = [&](auto& fn, const char* name) {
      fn = reinterpret_cast<std::remove_reference_t<decltype(fn)>>(dlsym(lib, name));
      return fn != nullptr;
    };
    find(context_id, "cuCtxGetId"), find(stream_id, "cuStreamGetId");
    find(launch_with, "cuLaunchKernelEx");
    find(capturing, "cuStreamIsCapturing"), find(tensor_map, "cuTensorMapEncodeTiled");
    return find(init, "cuInit") && find(retain, "cuDevicePrimaryCtxRetain") &&
           find(set_current, "cuCtxSetCurrent") && find(alloc, "cuMemAlloc_v2") &&
           find(stream_create, "cuStreamCreate") && find(stream_wait, "cuStreamSynchronize") &&
           find(load, "cuModuleLoadDataEx") && find(function, "cuModuleGetFunction") &&
           find(launch, "cuLaunchKernel") && find(current, "cuCtxGetCurrent");
  }
};

void require(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", what, result);
  std::exit(1);
}

// Place of the first GPU in the library's list of devices.
size_t gpu_ordinal() {
  for (size_t i = 0; i < tl_device_count(); ++i) {
    tl_device_info info{};
    info.struct_size = sizeof info;
    if (tl_device_describe(i, &info) == TL_OK && info.kind == TL_DEVICE_CUDA) return i;
  }
  return 0;
}

// Arguments of a kernel, one list after the other in turn.
struct Row {
  const char* name;
  const bench::Subject* subject;
  std::vector<std::vector<tl_arg>> sets;
};

class Machine {
 public:
  Machine(const tool::Context& context, const Driver& driver)
      : driver_(driver),
        add_(context, "add", bench::build_add, "cuda", gpu_ordinal()),
        gemm_(context, "gemm", bench::build_gemm, "cuda", gpu_ordinal()),
        attention_(context, "attention", bench::build_attention, "cuda", gpu_ordinal()) {
    require(driver.init(0), "cuInit");
    require(driver.retain(&context_, 0), "cuDevicePrimaryCtxRetain");
    require(driver.set_current(context_), "cuCtxSetCurrent");
    require(driver.stream_create(&stream_, 1), "cuStreamCreate");
    for (uint64_t& address : memory_) require(driver.alloc(&address, kBytes), "cuMemAlloc");
    how_.struct_size = sizeof how_;
    how_.stream = stream_;
    add_rows();
    load_raw();
  }

  const std::vector<Row>& rows() const { return rows_; }
  const bench::Subject& gemm() const { return gemm_; }

  void launch(const Row& row, size_t turn) const {
    const std::vector<tl_arg>& args = row.sets[turn % row.sets.size()];
    tl_error* error = nullptr;
    const tl_status status =
        tl_kernel_launch(row.subject->kernel().get(), &how_, args.data(), args.size(), &error);
    if (status != TL_OK) tool::require(status, error, "launching");
  }

  void launch_plain(void** parameters, void** extra) {
    require(driver_.launch(function_, 1, 1, 1, 128, 1, 1, 0, stream_, parameters, extra), "cuLaunchKernel");
  }
  void launch_raw(void** parameters, void** extra) {
    if (!dependent_) return launch_plain(parameters, extra);
    static constexpr Attribute kDependent = {6, {}, {1}};
    const Config config = {{1, 1, 1}, {128, 1, 1}, 0, stream_, &kDependent, 1};
    require(driver_.launch_with(&config, function_, parameters, extra), "cuLaunchKernelEx");
  }
  void launch_raw() { launch_raw(parameters_, nullptr); }
  // The parameters as one buffer, which is how the library passes them.
  void launch_raw_buffer() {
    size_t bytes = sizeof values_;
    void* extra[] = {reinterpret_cast<void*>(1), values_, reinterpret_cast<void*>(2), &bytes, nullptr};
    launch_raw(nullptr, extra);
  }
  void launch_plain() { launch_plain(parameters_, nullptr); }

  // Seconds of one launch, over batches that fit the driver's queue.
  template <class Launch>
  double seconds(const char* name, Launch&& launch) const {
    constexpr size_t kBatch = 400;
    const tilegen::differential::LaunchWatch watch(std::string(name) + ", 400 launches");
    require(driver_.stream_wait(stream_), "cuStreamSynchronize");
    const double start = bench::now();
    for (size_t i = 0; i < kBatch; ++i) launch(i);
    const double end = bench::now();
    require(driver_.stream_wait(stream_), "cuStreamSynchronize");
    return (end - start) / kBatch;
  }

  bench::Json driver_calls() const;

 private:
  // CUlaunchAttribute and CUlaunchConfig.
  struct Attribute {
    int id;
    char padding[4];
    unsigned value[16];
  };
  struct Config {
    unsigned grid[3], block[3], shared_bytes;
    void* stream;
    const Attribute* attributes;
    unsigned count;
  };
  static constexpr size_t kBytes = size_t{1} << 20, kTensors = 4, kOtherPlaces = 64, kStep = 512;
  static constexpr int64_t kElements = 1024;

  tl_arg at(size_t tensor, size_t place = 0) const {
    return bench::pointer(0, reinterpret_cast<void*>(memory_[tensor] + place * kStep));
  }

  void add_rows() {
    using bench::integer;
    std::vector<tl_arg> described;
    for (size_t i = 0; i < 3; ++i) {
      tensors_[i] = {
          reinterpret_cast<void*>(memory_[i]), {kDlCuda, 0}, 1, {kDlFloat, 32, 1}, &extent_, &stride_, 0};
      described.push_back({TL_ARG_TENSOR, 0, reinterpret_cast<uint64_t>(&tensors_[i])});
    }
    rows_.push_back({"add_pointers", &add_, {{integer(kElements), at(0), at(1), at(2)}}});
    rows_.push_back({"add_dlpack", &add_, {described}});
    const auto product = [&](size_t places) {
      std::vector<std::vector<tl_arg>> sets;
      for (size_t p = 0; p < places; ++p)
        sets.push_back({integer(128), integer(256), integer(64), at(0, p), at(1, p), at(2, p)});
      return sets;
    };
    rows_.push_back({"gemm_same", &gemm_, product(1)});
    rows_.push_back({"gemm_4_places", &gemm_, product(4)});
    rows_.push_back({"gemm_64_places", &gemm_, product(kOtherPlaces)});
    rows_.push_back({"attention",
                     &attention_,
                     {{integer(1), integer(2), integer(256), integer(256), bench::real(0.125), at(0), at(1),
                       at(2), at(3)}}});
  }

  void load_raw() {
    void* module = nullptr;
    const std::string ptx = tool::section(add_.artifact(), TL_SECTION_PTX);
    require(driver_.load(&module, ptx.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
    require(driver_.function(&function_, module, "add"), "cuModuleGetFunction");
    dependent_ = driver_.launch_with && ptx.find("griddepcontrol.wait") != std::string::npos;
    values_[0] = kElements;
    for (size_t i = 0; i < 3; ++i) values_[i + 1] = memory_[i];
    for (size_t i = 0; i < 4; ++i) parameters_[i] = &values_[i];
  }

  const Driver& driver_;
  bench::Subject add_, gemm_, attention_;
  void *context_ = nullptr, *stream_ = nullptr, *function_ = nullptr;
  uint64_t memory_[kTensors] = {}, values_[4] = {};
  void* parameters_[4] = {};
  bool dependent_ = false;
  int64_t extent_ = kElements, stride_ = 1;
  DlTensor tensors_[3];
  tl_launch how_{};
  std::vector<Row> rows_;
};

// Nanoseconds of each call of the driver that a launch may make besides launching.
bench::Json Machine::driver_calls() const {
  bench::Json out;
  const auto time = [&](const char* name, bool there, const std::function<void()>& call) {
    if (!there) return;
    constexpr int kCalls = 20000;
    std::vector<double> samples;
    for (int round = 0; round < 9; ++round) {
      const double start = bench::now();
      for (int i = 0; i < kCalls; ++i) call();
      samples.push_back((bench::now() - start) / kCalls * 1e9);
    }
    std::nth_element(samples.begin(), samples.begin() + 4, samples.end());
    out[name] = samples[4];
    std::printf("  %-28s %7.1f ns\n", name, samples[4]);
  };
  void* current = nullptr;
  unsigned long long id = 0;
  int status = 0;
  time("an empty call", true, [] {});
  time("cuCtxGetCurrent", true, [&] { driver_.current(&current); });
  time("cuCtxGetId of a context", driver_.context_id, [&] { driver_.context_id(context_, &id); });
  time("cuCtxGetId of the current one", driver_.context_id, [&] { driver_.context_id(nullptr, &id); });
  time("cuStreamGetId", driver_.stream_id, [&] { driver_.stream_id(stream_, &id); });
  time("cuStreamIsCapturing", driver_.capturing, [&] { driver_.capturing(stream_, &status); });
  alignas(64) char map[128];
  const uint64_t extents[2] = {256, 256}, strides[1] = {512};
  const uint32_t box[2] = {64, 128}, dense[2] = {1, 1};
  time("cuTensorMapEncodeTiled", driver_.tensor_map, [&] {
    driver_.tensor_map(map, 6, 2, reinterpret_cast<void*>(memory_[0]), extents, strides, box, dense, 0, 3, 2,
                       0);
  });
  return out;
}

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

bench::Json measure_launch(Machine& machine) {
  std::vector<const char*> names = {"raw", "raw_buffer", "raw_plain"};
  for (const Row& row : machine.rows()) {
    names.push_back(row.name);
    for (size_t i = 0; i < row.sets.size(); ++i) machine.launch(row, i);
  }
  std::vector<std::vector<double>> samples(names.size());
  for (int round = 0; round < 60; ++round) {
    samples[0].push_back(machine.seconds("raw", [&](size_t) { machine.launch_raw(); }) * 1e6);
    samples[1].push_back(machine.seconds("raw_buffer", [&](size_t) { machine.launch_raw_buffer(); }) * 1e6);
    samples[2].push_back(machine.seconds("raw_plain", [&](size_t) { machine.launch_plain(); }) * 1e6);
    for (size_t r = 0; r < machine.rows().size(); ++r) {
      const Row& row = machine.rows()[r];
      samples[r + 3].push_back(machine.seconds(row.name, [&](size_t i) { machine.launch(row, i); }) * 1e6);
    }
  }
  bench::Json out;
  for (size_t i = 0; i < names.size(); ++i) {
    out[std::string(names[i]) + "_us"]["median"] = median(samples[i]);
    out[std::string(names[i]) + "_us"]["samples"] = samples[i];
    std::printf("  %-15s %7.3f us a launch, %+.3f over the raw call\n", names[i], median(samples[i]),
                median(samples[i]) - median(samples[0]));
  }
  return out;
}

// The compilation alone, in a warm process; the whole and each stage.
bench::Json measure_compile(const tool::Context& context) {
  bench::Json out;
  for (int round = 0; round < 12; ++round) {
    const double start = bench::now();
    const bench::Subject subject(context, "gemm", bench::build_gemm, "cuda", gpu_ordinal());
    const double ms = (bench::now() - start) * 1e3;
    if (round < 2) continue;  // the process warms up
    out["total_ms"].push_back(ms);
    for (size_t s = 0; s < tl_artifact_stage_count(subject.artifact().get()); ++s) {
      const char* name = nullptr;
      double stage_ms = 0;
      tl_artifact_stage(subject.artifact().get(), s, &name, &stage_ms);
      out["stages_ms"][name].push_back(stage_ms);
    }
  }
  std::printf("  program to loaded kernel object %.1f ms;", median(out["total_ms"]));
  for (const auto& [stage, ms] : out["stages_ms"].items()) std::printf(" %s %.1f", stage.c_str(), median(ms));
  std::puts("");
  return out;
}

int launch_only(const Machine& machine, std::string_view name, size_t count) {
  for (const Row& row : machine.rows()) {
    if (name != row.name) continue;
    for (size_t i = 0; i < count; ++i) machine.launch(row, i);
    return 0;
  }
  std::fprintf(stderr, "gpu_launch: no row '%.*s'; there are", static_cast<int>(name.size()), name.data());
  for (const Row& row : machine.rows()) std::fprintf(stderr, " %s", row.name);
  std::fputs("\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Driver driver;
  if (!driver.open()) {
    std::puts("gpu_launch: no CUDA driver on this machine");
    return 77;
  }
  const tool::Context context = tool::make_context();
  Machine machine(context, driver);
  if (argc == 4 && std::string_view(argv[1]) == "--only")
    return launch_only(machine, argv[2], std::strtoull(argv[3], nullptr, 10));
  bench::Json results;
  results["launch"] = measure_launch(machine);
  results["driver_calls_ns"] = machine.driver_calls();
  results["compile"] = measure_compile(context);
  if (argc > 1) bench::write_results(argv[1], results);
  return 0;
}
