// No allocation that fails ends the process or spoils an object: every call that finds no memory says so, and
// the same call with memory works. Each workload fails at a seeded sample of its allocations, half of it
// among the first 2,000, at one alone and at all from there on. TILEGEN_ALLOCATIONS=n takes n places, =all
// each of the first 2,000 and 200 after them; TILEGEN_SEED=n chooses others.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "../capi/scope.h"
#include "failing_malloc.h"

namespace tilegen::test {
namespace {

constexpr long kMax = 2000;

constexpr char kWholeTiles[] = "tl 1 program g\ndim m divisible 64\ndim n divisible 64\ndim k divisible 64\n";
constexpr char kAnySize[] = "tl 1 program g\ndim m\ndim n\ndim k\n";  // its best form needs rows of 16 bytes
constexpr char kGemm[] =
    "tensor A: f16[m, k] readonly\ntensor B: f16[k, n] readonly\ntensor C: f32[m, n]\n"
    "kernel gemm grid(by: ceildiv(m, 64), bx: ceildiv(n, 64)) {\n"
    "  alloc As: shared f16[64, 64]\n"
    "  alloc Bs: shared f16[64, 64]\n"
    "  alloc acc: fragment f32[64, 64]\n"
    "  fill acc, 0.0f32\n"
    "  pipelined ko in 0 .. ceildiv(k, 64) {\n"
    "    copy A[by * 64 :+ 64, ko * 64 :+ 64] -> As\n"
    "    copy B[ko * 64 :+ 64, bx * 64 :+ 64] -> Bs\n"
    "    gemm As, Bs -> acc\n"
    "  }\n"
    "  copy acc -> C[by * 64 :+ 64, bx * 64 :+ 64]\n"
    "}\n";

constexpr char kLayout[] = "threads 128 : (8,48) -> [0: d0/1%8*16 + d1/4%16*1; 1: d1/1%4*1]";

constexpr int64_t kSize = 128;
constexpr uint16_t kOne = 0x3c00;  // as f16

struct Matrices {
  std::vector<uint16_t> a = std::vector<uint16_t>(kSize * kSize, kOne), b = a;
  std::vector<float> c = std::vector<float>(kSize * kSize, -1.0f);

  std::vector<tl_arg> arguments() {
    const auto pointer = [](void* p) { return tl_arg{TL_ARG_POINTER, 0, reinterpret_cast<uintptr_t>(p)}; };
    const tl_arg size{TL_ARG_I64, 0, kSize};
    return {size, size, size, pointer(a.data()), pointer(b.data()), pointer(c.data())};
  }
  bool multiplied() const {
    return std::all_of(c.begin(), c.end(), [](float v) { return v == static_cast<float>(kSize); });
  }
};

// Does one thing with the library, giving back what it made. Whatever else than TL_OK it ends with is the
// status of a call that failed, whose error it hands out.
using Work = std::function<tl_status(tl_error**)>;

// `size` numbers above `begin` up to `end`, in order; all when they are no more.
void sample(long begin, long end, size_t size, std::vector<long>& out) {
  std::vector<long> all(static_cast<size_t>(std::max(0L, end - begin)));
  std::iota(all.begin(), all.end(), begin + 1);
  const char* seed = std::getenv("TILEGEN_SEED");
  std::mt19937_64 random(seed ? std::strtoull(seed, nullptr, 10) : 1);
  std::sample(all.begin(), all.end(), std::back_inserter(out), size, random);
}

// Which of `count` allocations fail, in order.
std::vector<long> places(long count, size_t size) {
  size_t first = (size + 1) / 2, behind = size / 2;
  if (const char* asked = std::getenv("TILEGEN_ALLOCATIONS")) {
    const bool all = std::strcmp(asked, "all") == 0;
    first = all ? kMax : (std::strtoul(asked, nullptr, 10) + 1) / 2;
    behind = all ? 200 : first;
  }
  const long border = std::min(count, kMax);
  std::vector<long> out;
  sample(0, border, count > kMax ? first : first + behind, out);
  sample(border, count, behind, out);
  return out;
}

// What a call tells of memory that it did not get; empty: as it should.
std::string complaint(tl_status status, const Failure& failure) {
  if (status == TL_OK) return failure ? "an error beside success" : "";
  if (status != TL_LIMIT_EXCEEDED)
    return std::string("ended with ") + tl_status_name(status) + ": " + tl_error_message(failure.get());
  if (!failure) return "no error object";
  if (tl_error_status(failure.get()) != status || tl_error_count(failure.get()) == 0)
    return "an error of another status";
  if (!std::strstr(tl_error_message(failure.get()), "[limit_memory]")) return tl_error_message(failure.get());
  const tl_diagnostic d = first(failure);
  return d.status == status && std::strcmp(d.code, "limit_memory") == 0 && *d.message && *d.hint
             ? ""
             : "a diagnostic that does not say so";
}

long allocations_of(const Work& work) {
  fail_allocations(Fails::never, 1);
  const tl_status status = work(nullptr);
  const long count = stop_failing();
  EXPECT_EQ(status, TL_OK);
  return count;
}

// `before` makes the objects anew for each place.
void fails_everywhere(
    const char* what, size_t samples, const Work& work, const std::function<void()>& before = [] {}) {
  tl_error* error = nullptr;
  before();
  ASSERT_EQ(work(&error), TL_OK) << what << ": " << tl_error_message(error);
  before();
  const long count = allocations_of(work);
  long refused = 0;
  for (const Fails how : {Fails::once, Fails::from_then_on})
    for (const long n : places(count, samples)) {
      before();
      fail_allocations(how, n);
      const tl_status status = work(&error);
      stop_failing();
      const Failure failure(error);
      refused += status != TL_OK;
      ASSERT_EQ(complaint(status, failure), "") << what << " without allocation " << n << " of " << count;
      ASSERT_EQ(work(&error), TL_OK) << what << " after a failed allocation " << n << ": "
                                     << tl_error_message(error);
    }
  std::printf("%s: %ld allocations, %ld failures\n", what, count, refused);
  EXPECT_TRUE(count == 0 || refused > 0) << what;
}

tl_status parse(const Context& context, const char* dims, Program* out, tl_error** error) {
  const std::string text = std::string(dims) + kGemm;
  tl_program* program = nullptr;
  const tl_status status = tl_program_parse(context.get(), text.data(), text.size(), "g.tl", &program, error);
  out->reset(program);
  return status;
}

tl_status compile(const Context& context, const Program& program, const char* target, Artifact* out,
                  tl_error** error) {
  tl_target* found = nullptr;
  tl_status status = tl_target_parse(target, &found, error);
  const Target owned(found);
  if (status != TL_OK) return status;
  tl_artifact* artifact = nullptr;
  status = tl_compile(context.get(), program.get(), found, nullptr, &artifact, error);
  out->reset(artifact);
  return status;
}

tl_status load(const Context& context, const Artifact& artifact, Kernel* out, tl_error** error) {
  tl_kernel* kernel = nullptr;
  tl_status status = tl_kernel_load(context.get(), artifact.get(), TL_DEVICE_ANY, &kernel, error);
  out->reset(kernel);
  return status == TL_OK ? tl_kernel_prepare(kernel, error) : status;
}

// On the stand-in for a device nothing is computed.
tl_status launch(const Kernel& kernel, bool computes, tl_error** error) {
  Matrices m;
  const std::vector<tl_arg> args = m.arguments();
  const tl_status status = tl_kernel_launch(kernel.get(), nullptr, args.data(), args.size(), error);
  EXPECT_TRUE(status != TL_OK || !computes || m.multiplied());
  return status;
}

// Y[i] = 2 X[i], by a function with native text.
tl_status build(const Context& context, Program* out, tl_error** error) {
  tl_builder* b = nullptr;
  tl_status status = tl_builder_create(context.get(), "doubled", &b, error);
  const Builder owned(b);
  if (status != TL_OK) return status;
  const tl_expr n = tl_dim(b, "n");
  const tl_buffer x = tl_tensor(b, "X", TL_F32, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_F32, 1, &n, nullptr, 0);
  const tl_expr v = tl_operand(b, TL_F32, "v"), meaning = tl_binary(b, TL_ADD, v, v);
  const tl_native_form forms[] = {TL_NATIVE_PTX, TL_NATIVE_LLVM_HOST};
  const char* const texts[] = {
      "add.rn.f32 $0, $1, $1;",
      "define float @twice(float %v) {\n  %r = fadd float %v, %v\n  ret float %r\n}"};
  tl_function(b, "twice", 1, &v, 1, &meaning, 2, forms, texts);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, 63)), tl_index(b, 64));
  tl_expr block{}, i{};
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 0, nullptr, &block);
  const int64_t extent = 64;
  const tl_scope loop = tl_begin_parallel(b, 1, &extent, nullptr, &i);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, tl_index(b, 64)), i);
  const tl_expr element = tl_load(b, x, 1, &at);
  tl_store(b, y, 1, &at, tl_call(b, "twice", 1, &element, 0));
  tl_end(b, loop);
  tl_end(b, kernel);
  const tl_status sticky = tl_builder_status(b);
  tl_program* program = nullptr;
  status = tl_builder_finish(b, &program, error);
  out->reset(program);
  EXPECT_TRUE(sticky == TL_OK || status == sticky);
  return status;
}

tl_status whole_life(const char* target, bool computes, tl_error** error) {
  tl_context* made = nullptr;
  tl_status status = tl_context_create(&made, error);
  const Context context(made);
  Program program;
  Artifact artifact;
  Kernel kernel;
  if (status == TL_OK) status = parse(context, kWholeTiles, &program, error);
  if (status == TL_OK) status = compile(context, program, target, &artifact, error);
  if (status == TL_OK) status = load(context, artifact, &kernel, error);
  return status == TL_OK ? launch(kernel, computes, error) : status;
}

class Without : public testing::Test {
 protected:
  void SetUp() override {
    tl_error* error = nullptr;
    ASSERT_EQ(parse(context_, kWholeTiles, &program_, &error), TL_OK) << tl_error_message(error);
  }
  void compiled(const char* target) {
    tl_error* error = nullptr;
    kernel_.reset();
    ASSERT_EQ(compile(context_, program_, target, &artifact_, &error), TL_OK) << tl_error_message(error);
    ASSERT_EQ(load(context_, artifact_, &kernel_, &error), TL_OK) << tl_error_message(error);
  }

  Context context_ = make_context();
  Program program_;
  Artifact artifact_;
  Kernel kernel_;
};

TEST_F(Without, MemoryToRead) {
  fails_everywhere("parse", 100, [&](tl_error** error) {
    Program out;
    return parse(context_, kWholeTiles, &out, error);
  });
  fails_everywhere("include", 60, [&](tl_error** error) {
    tl_parse_options how{};
    how.struct_size = sizeof how;
    how.include = [](void*, tl_included* included) {
      const char* dims = std::strchr(kWholeTiles, '\n');  // without the header
      included->text = std::strcmp(included->path, "dims") == 0 ? dims : "include \"dims\"\n";
      included->size = std::strlen(included->text);
    };
    const std::string text = std::string("tl 1 program g\ninclude \"all\"\n") + kGemm;
    tl_program* program = nullptr;
    const tl_status status =
        tl_program_parse_with(context_.get(), text.data(), text.size(), &how, &program, error);
    tl_program_release(program);
    return status;
  });
  fails_everywhere("print", 20, [&](tl_error** error) {
    tl_blob* blob = nullptr;
    const tl_status status = tl_program_print(program_.get(), &blob, error);
    const Blob owned(blob);
    return status;
  });
  fails_everywhere("emit_c", 20, [&](tl_error** error) {
    tl_blob* blob = nullptr;
    const tl_status status = tl_program_emit_c(program_.get(), &blob, error);
    const Blob owned(blob);
    return status;
  });
}

TEST_F(Without, MemoryToBuild) {
  fails_everywhere("build", 60, [&](tl_error** error) {
    Program out;
    return build(context_, &out, error);
  });
}

TEST_F(Without, MemoryForNativeText) {
  Program program;
  tl_error* failed = nullptr;
  ASSERT_EQ(build(context_, &program, &failed), TL_OK) << tl_error_message(failed);
  fails_everywhere("emit_c of native text", 20, [&](tl_error** error) {
    tl_blob* blob = nullptr;
    const tl_status status = tl_program_emit_c(program.get(), &blob, error);
    const Blob owned(blob);
    return status;
  });
  for (const char* target : {"host", "sm_90a"})
    fails_everywhere(target, 12, [&](tl_error** error) {
      Artifact out;
      return compile(context_, program, target, &out, error);
    });
}

TEST_F(Without, MemoryToCompile) {
  for (const auto& [target, samples] :
       {std::pair("host", 12), std::pair("sm_90a", 10), std::pair("sim:sm_80", 4)})
    fails_everywhere(target, static_cast<size_t>(samples), [&, target = target](tl_error** error) {
      Artifact out;
      return compile(context_, program_, target, &out, error);
    });
}

TEST_F(Without, MemoryToLoadAndLaunch) {
  for (const char* target : {"host", "sm_90a", "sim:sm_80"}) {
    compiled(target);
    if (HasFatalFailure()) return;
    const bool computes = std::strcmp(target, "sm_90a") != 0;
    fails_everywhere((std::string("load for ") + target).c_str(), 12, [&](tl_error** error) {
      Kernel out;
      const tl_status status = load(context_, artifact_, &out, error);
      return status == TL_OK ? launch(out, computes, error) : status;
    });
    fails_everywhere((std::string("launch on ") + target).c_str(), computes ? 10 : 60,
                     [&](tl_error** error) { return launch(kernel_, computes, error); });
  }
}

// What is told finds no memory either.
TEST_F(Without, MemoryToLog) {
  int heard = 0;
  const auto hear = [](void* user, tl_log_level, const char*, const char*) { ++*static_cast<int*>(user); };
  ASSERT_EQ(tl_context_set_log(context_.get(), TL_LOG_TRACE, hear, nullptr, &heard, nullptr), TL_OK);
  fails_everywhere("sm_80 with a log", 8, [&](tl_error** error) {
    Artifact out;
    return compile(context_, program_, "sm_80", &out, error);
  });
  EXPECT_GT(heard, 0);
}

// Tensors that the first version does not fit: code for others is made by the launch, which may be left, too.
TEST_F(Without, MemoryForTheOtherVersion) {
  tl_error* error = nullptr;
  ASSERT_EQ(parse(context_, kAnySize, &program_, &error), TL_OK) << tl_error_message(error);
  Matrices m;
  std::vector<tl_arg> args = m.arguments();
  for (size_t i = 0; i < 3; ++i) args[i].payload = 100;
  fails_everywhere(
      "launch of the other version", 4,
      [&](tl_error** e) { return tl_kernel_launch(kernel_.get(), nullptr, args.data(), args.size(), e); },
      [&] { compiled("sm_90a"); });
  tl_launch how{};
  how.struct_size = sizeof how;
  how.timeout_ms = 60000;
  how.context = context_.get();
  fails_everywhere(
      "launch of the other version with a limit", 4,
      [&](tl_error** e) { return tl_kernel_launch(kernel_.get(), &how, args.data(), args.size(), e); },
      [&] { compiled("sm_90a"); });
}

TEST_F(Without, MemoryToTell) {
  compiled("host");
  fails_everywhere("sections", 10, [&](tl_error** error) {
    Artifact out;
    tl_status status = compile(context_, program_, "host", &out, error);
    const char* data = nullptr;
    size_t size = 0;
    for (tl_section s = TL_SECTION_TILE_IR; s <= TL_SECTION_PTX && status == TL_OK; ++s)
      status = tl_artifact_section(out.get(), s, &data, &size, error);
    return status;
  });
  fails_everywhere("describe", 20, [&](tl_error** error) {
    tl_kernel_info info{};
    info.struct_size = sizeof info;
    return tl_kernel_describe(kernel_.get(), 0, &info, error);
  });
  fails_everywhere("interpret", 8, [&](tl_error** error) {
    Matrices m;
    const std::vector<tl_arg> args = m.arguments();
    return tl_interpret(program_.get(), args.data(), args.size(), error);
  });
  fails_everywhere("draw", 20, [&](tl_error** error) {
    tl_blob* blob = nullptr;
    const tl_status status = tl_layout_draw(kLayout, TL_PICTURE_SVG, &blob, error);
    const Blob owned(blob);
    return status;
  });
}

// The first work of a process, when all that is set up once fails: each in a child of its own.
class AtFirst : public testing::TestWithParam<const char*> {};

// 0: survived and works; anything else says where it did not.
int child(const char* target, bool computes, Fails how, long n) {
  fail_allocations(how, n);
  tl_error* error = nullptr;
  const tl_status status = whole_life(target, computes, &error);
  stop_failing();
  const Failure failure(error);
  if (const std::string bad = complaint(status, failure); !bad.empty()) {
    std::fprintf(stderr, "%s, allocation %ld: %s\n", target, n, bad.c_str());
    return 1;
  }
  const tl_status again = whole_life(target, computes, &error);
  if (again != TL_OK)
    std::fprintf(stderr, "%s after allocation %ld: %s\n", target, n, tl_error_message(error));
  return again == TL_OK ? 0 : 2;
}

int in_a_child(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(work());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_P(AtFirst, TheProcessLives) {
  const char* target = GetParam();
  const bool computes = std::strcmp(target, "sm_90a") != 0;
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_EQ(in_a_child([&] {
              const long count =
                  allocations_of([&](tl_error** error) { return whole_life(target, computes, error); });
              return write(pipe_ends[1], &count, sizeof count) == sizeof count ? 0 : 1;
            }),
            0);
  long count = 0;
  ASSERT_EQ(read(pipe_ends[0], &count, sizeof count), static_cast<ssize_t>(sizeof count));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  std::printf("%s: %ld allocations in all\n", target, count);
  for (const Fails how : {Fails::once, Fails::from_then_on})
    for (const long n : places(count, 6))
      ASSERT_EQ(in_a_child([&] { return child(target, computes, how, n); }), 0)
          << target << (how == Fails::once ? " without allocation " : " from allocation ") << n << " of "
          << count;
}

INSTANTIATE_TEST_SUITE_P(Targets, AtFirst, testing::Values("host", "sm_90a", "sim:sm_80"));

}  // namespace
}  // namespace tilegen::test
