// What a launch costs on the CPU over the raw driver call, and how long a program takes to become PTX.
//   gpu_launch [results.json]
//
// The raw call runs the same kernel with the same arguments from a module of its own. Both queue batches of launches on
// one stream, in turn; the time of a batch without the wait for its end, over its launches, is one sample.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "../tests/differential/launch_watch.h"
#include "gemm_program.h"
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

// The driver's functions that the raw side needs.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*alloc)(uint64_t*, size_t) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_wait)(void*) = nullptr;
  int (*load)(void**, const void*, unsigned, void*, void*) = nullptr;
  int (*function)(void**, void*, const char*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) = nullptr;

  bool open() {
    void* lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) return false;
    auto find = [&](auto& fn, const char* name) {
      fn = reinterpret_cast<std::remove_reference_t<decltype(fn)>>(dlsym(lib, name));
      return fn != nullptr;
    };
    return find(init, "cuInit") && find(retain, "cuDevicePrimaryCtxRetain") && find(set_current, "cuCtxSetCurrent") &&
           find(alloc, "cuMemAlloc_v2") && find(stream_create, "cuStreamCreate") &&
           find(stream_wait, "cuStreamSynchronize") && find(load, "cuModuleLoadDataEx") &&
           find(function, "cuModuleGetFunction") && find(launch, "cuLaunchKernel");
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

constexpr int64_t kElements = 1024, kTile = 1024;

// Z = X + Y over n elements: three tensors and one dimension.
void build_add(tl_builder* b) {
  static const char* const names[1] = {"i"};
  const int64_t tile[1] = {kTile};
  const tl_expr n = tl_dim(b, "n");
  const tl_buffer x = tl_tensor(b, "X", TL_F32, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_F32, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer z = tl_tensor(b, "Z", TL_F32, 1, &n, nullptr, 0);
  tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kTile - 1)), tl_index(b, kTile));
  tl_expr block, i;
  const tl_scope kernel = tl_begin_kernel(b, "add", 1, &grid, 128, nullptr, &block);
  const tl_scope loop = tl_begin_parallel(b, 1, tile, names, &i);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, tl_index(b, kTile)), i);
  tl_store(b, z, 1, &at, tl_binary(b, TL_ADD, tl_load(b, x, 1, &at), tl_load(b, y, 1, &at)));
  tl_end(b, loop);
  tl_end(b, kernel);
}

// Seconds of one launch, over batches that fit the driver's queue.
double seconds_per_launch(const Driver& driver, void* stream, const std::function<void()>& launch) {
  constexpr int kBatch = 400;
  const tilegen::differential::LaunchWatch watch("program add, kernel add of 1 blocks of 128 threads, 400 launches");
  require(driver.stream_wait(stream), "cuStreamSynchronize");
  const double start = bench::now();
  for (int i = 0; i < kBatch; ++i) launch();
  const double end = bench::now();
  require(driver.stream_wait(stream), "cuStreamSynchronize");
  return (end - start) / kBatch;
}

// The compilation alone, in a warm process; the whole and each stage.
bench::Json measure_compile(const tool::Context& context) {
  bench::Json out;
  const gemm_spec spec = {TL_F16, 0, TL_F32, TL_F16, 0, 1, 1};
  for (int round = 0; round < 12; ++round) {
    const double start = bench::now();
    const bench::Subject subject(context, "gemm", [&](tl_builder* b) { gemm_build(b, &spec); }, "cuda", gpu_ordinal());
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
  return out;
}

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

bench::Json measure_launch(const tool::Context& context, const Driver& driver) {
  void *cuda_context = nullptr, *stream = nullptr, *module = nullptr, *function = nullptr;
  require(driver.init(0), "cuInit");
  require(driver.retain(&cuda_context, 0), "cuDevicePrimaryCtxRetain");
  require(driver.set_current(cuda_context), "cuCtxSetCurrent");
  require(driver.stream_create(&stream, 1), "cuStreamCreate");
  uint64_t data[3] = {};
  for (uint64_t& address : data) require(driver.alloc(&address, kElements * sizeof(float)), "cuMemAlloc");

  bench::Subject pointers(context, "add", build_add, "cuda", gpu_ordinal());
  bench::Subject tensors(context, "add", build_add, "cuda", gpu_ordinal());
  int64_t extent = kElements, stride = 1;
  DlTensor dl[3];
  std::vector<tl_arg> by_pointer = {bench::integer(kElements)}, by_tensor;
  for (int i = 0; i < 3; ++i) {
    void* address = reinterpret_cast<void*>(data[i]);
    dl[i] = {address, {kDlCuda, 0}, 1, {kDlFloat, 32, 1}, &extent, &stride, 0};
    by_pointer.push_back(bench::pointer(0, address));
    by_tensor.push_back({TL_ARG_TENSOR, 0, reinterpret_cast<uint64_t>(&dl[i])});
  }
  pointers.set_arguments(by_pointer);
  tensors.set_arguments(by_tensor);
  tl_launch how{};
  how.struct_size = sizeof how;
  how.stream = stream;
  pointers.launch(&how);
  tensors.launch(&how);

  const std::string ptx = tool::section(pointers.artifact(), TL_SECTION_PTX);
  require(driver.load(&module, ptx.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
  require(driver.function(&function, module, "add"), "cuModuleGetFunction");
  uint64_t n = kElements;
  void* params[4] = {&n, &data[0], &data[1], &data[2]};
  auto raw = [&] {
    require(driver.launch(function, 1, 1, 1, 128, 1, 1, 0, stream, params, nullptr), "cuLaunchKernel");
  };

  std::vector<double> samples[3];
  for (int round = 0; round < 60; ++round) {
    samples[0].push_back(seconds_per_launch(driver, stream, raw) * 1e6);
    samples[1].push_back(seconds_per_launch(driver, stream, [&] { pointers.launch(&how); }) * 1e6);
    samples[2].push_back(seconds_per_launch(driver, stream, [&] { tensors.launch(&how); }) * 1e6);
  }
  bench::Json out;
  const char* const names[3] = {"raw_us", "pointers_us", "dlpack_us"};
  for (int i = 0; i < 3; ++i) {
    out[names[i]]["median"] = median(samples[i]);
    out[names[i]]["samples"] = samples[i];
    std::printf("  %-12s %7.3f us a launch, %+.3f over the raw call\n", names[i], median(samples[i]),
                median(samples[i]) - median(samples[0]));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  Driver driver;
  if (!driver.open()) {
    std::puts("gpu_launch: no CUDA driver on this machine");
    return 77;
  }
  const tool::Context context = tool::make_context();
  bench::Json results;
  results["launch"] = measure_launch(context, driver);
  results["compile"] = measure_compile(context);
  std::printf("  program to loaded kernel object %.1f ms;", median(results["compile"]["total_ms"]));
  for (const auto& [stage, ms] : results["compile"]["stages_ms"].items())
    std::printf(" %s %.1f", stage.c_str(), median(ms));
  std::puts("");
  if (argc > 1) bench::write_results(argv[1], results);
  return 0;
}
