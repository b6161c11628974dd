// Contexts, options, targets, devices, errors: what each object promises.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "programs.h"
#include "scope.h"

namespace tilegen::test {
namespace {

Program make_gemm(const Context& context) {
  const Builder b = make_builder(context, "matmul");
  build_gemm(b.get());
  Program program;
  Failure failure;
  EXPECT_EQ(finish(b, &program, &failure), TL_OK) << tl_error_message(failure.get());
  return program;
}

Target make_target(const char* name) {
  tl_target* target = nullptr;
  return tl_target_parse(name, &target, nullptr) == TL_OK ? Target(target) : nullptr;
}

tl_status compile(const Context& context, const Program& program, const Target& target,
                  const Options& options, Artifact* artifact, Failure* failure) {
  tl_artifact* made = nullptr;
  tl_error* error = nullptr;
  const tl_status status =
      tl_compile(context.get(), program.get(), target.get(), options.get(), &made, &error);
  artifact->reset(made);
  failure->reset(error);
  return status;
}

Options make_options() {
  tl_options* options = nullptr;
  EXPECT_EQ(tl_options_create(&options, nullptr), TL_OK);
  return Options(options);
}

int dropped = 0;
void count_drop(void* user) { dropped += *static_cast<int*>(user); }

TEST(Context, CallbacksAreDroppedOnce) {
  dropped = 0;
  int one = 1, ten = 10;
  {
    const Context context = make_context();
    const auto quiet = [](void*, tl_log_level, const char*, const char*) {};
    EXPECT_EQ(tl_context_set_log(context.get(), TL_LOG_INFO, quiet, count_drop, &one, nullptr), TL_OK);
    EXPECT_EQ(tl_context_set_log(context.get(), TL_LOG_INFO, quiet, count_drop, &ten, nullptr), TL_OK);
    EXPECT_EQ(dropped, 1);
    tl_context_retain(context.get());
    tl_context_release(context.get());
    EXPECT_EQ(dropped, 1);
  }
  EXPECT_EQ(dropped, 11);
}

TEST(Context, LimitsOnlyGoDown) {
  const Context context = make_context();
  for (const char* name : {"text_bytes", "expr_nodes", "expr_depth", "statements", "buffers", "nesting",
                           "rank", "tile_elements", "unroll", "diagnostics"}) {
    int64_t value = 0, now = 0;
    ASSERT_EQ(tl_context_get_limit(context.get(), name, &value, nullptr), TL_OK);
    EXPECT_GT(value, 1);
    EXPECT_EQ(tl_context_set_limit(context.get(), name, value + 1, nullptr), TL_INVALID_ARGUMENT);
    EXPECT_EQ(tl_context_set_limit(context.get(), name, 0, nullptr), TL_INVALID_ARGUMENT);
    EXPECT_EQ(tl_context_set_limit(context.get(), name, value - 1, nullptr), TL_OK);
    EXPECT_EQ(tl_context_set_limit(context.get(), name, value, nullptr), TL_INVALID_ARGUMENT);
    ASSERT_EQ(tl_context_get_limit(context.get(), name, &now, nullptr), TL_OK);
    EXPECT_EQ(now, value - 1);
  }
  EXPECT_EQ(tl_context_set_limit(context.get(), "patience", 1, nullptr), TL_INVALID_ARGUMENT);
}

TEST(Options, TableDescribesItself) {
  const Options options = make_options();
  ASSERT_GT(tl_option_count(), 5u);
  for (size_t i = 0; i < tl_option_count(); ++i) {
    tl_option_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(tl_option_describe(i, &info), TL_OK);
    EXPECT_GT(std::strlen(info.summary), 10u) << info.name;
    const bool is_bool = info.type == TL_OPTION_BOOL, is_i64 = info.type == TL_OPTION_I64;
    const tl_status right = TL_OK, wrong = TL_INVALID_ARGUMENT;
    EXPECT_EQ(tl_options_set_bool(options.get(), info.name, 1, nullptr), is_bool ? right : wrong);
    EXPECT_EQ(tl_options_set_i64(options.get(), info.name, 1, nullptr), is_i64 ? right : wrong);
    EXPECT_EQ(tl_options_set_str(options.get(), info.name, "", nullptr), !is_bool && !is_i64 ? right : wrong);
  }
  tl_error* error = nullptr;
  EXPECT_EQ(tl_options_set_bool(options.get(), "fast", 1, &error), TL_INVALID_ARGUMENT);
  const Failure failure(error);
  EXPECT_STREQ(first(failure).code, "unknown_option");
  EXPECT_NE(std::string(first(failure).hint).find("keep_ir"), std::string::npos);
}

TEST(Targets, EveryKnownNameParses) {
  ASSERT_GT(tl_target_count(), 1u);
  for (size_t i = 0; i < tl_target_count(); ++i) {
    const Target target = make_target(tl_target_name_at(i));
    ASSERT_TRUE(target) << tl_target_name_at(i);
    EXPECT_STREQ(tl_target_name(target.get()), tl_target_name_at(i));
    int64_t warp = 0;
    EXPECT_EQ(tl_target_get_i64(target.get(), "warp", &warp, nullptr), TL_OK);
    EXPECT_GE(warp, 1);
    tl_blob* json = nullptr;
    EXPECT_EQ(tl_target_to_json(target.get(), &json, nullptr), TL_OK);
    const Blob blob(json);
    EXPECT_NE(std::string(tl_blob_data(json)).find(tl_target_name_at(i)), std::string::npos);
  }
  tl_target* none = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_target_parse("sm_1", &none, &error), TL_UNKNOWN_TARGET);
  const Failure failure(error);
  EXPECT_EQ(none, nullptr);
  int64_t number = 0;
  const Target host = make_target("host");
  EXPECT_EQ(tl_target_get_i64(host.get(), "height", &number, nullptr), TL_INVALID_ARGUMENT);
}

TEST(Devices, HostIsDescribed) {
  tl_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(tl_device_describe(0, &info), TL_OK);
  EXPECT_EQ(info.kind, static_cast<tl_device_kind>(TL_DEVICE_HOST));
  EXPECT_GE(info.cores, 1u);
  EXPECT_TRUE(make_target(info.target));
}

TEST(Library, BuildInfoIsJson) {
  const std::string info = tl_build_info();
  EXPECT_EQ(info.front(), '{');
  EXPECT_EQ(info.back(), '}');
  const auto at = info.find("\"build_id\": \"");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(info.find('"', at + 13) - (at + 13), 40u) << info;  // a SHA-1
  EXPECT_EQ(tl_build_info(), tl_build_info());
}

TEST(Errors, LocationsAndCodesReachTheCaller) {
  const Context context = make_context();
  const Builder b = make_builder(context);
  tl_builder_set_location(b.get(), "model.py", 12, 3);
  tl_tensor(b.get(), "A", TL_F32, 0, nullptr, nullptr, 0);
  Failure failure;
  EXPECT_EQ(finish(b, nullptr, &failure), TL_INVALID_PROGRAM);
  EXPECT_EQ(tl_error_status(failure.get()), TL_INVALID_PROGRAM);
  const tl_diagnostic d = first(failure);
  EXPECT_STREQ(d.file, "model.py");
  EXPECT_EQ(d.line, 12u);
  EXPECT_EQ(d.column, 3u);
  EXPECT_STREQ(d.code, "rank_mismatch");
  EXPECT_STREQ(d.stage, "builder");
  EXPECT_EQ(d.severity, static_cast<tl_severity>(TL_SEVERITY_ERROR));
  EXPECT_EQ(d.consequence, 0);
  EXPECT_EQ(
      std::string(tl_error_message(failure.get())).find("model.py:12:3: error [rank_mismatch] tl_tensor: "),
      0u);
}

TEST(Parse, ErrorsNameTheFile) {
  const Context context = make_context();
  const std::string text = "tl 1 program p\nkernel k grid(b: 1) {\n  nonsense\n}\n";
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error),
            TL_PARSE_ERROR);
  const Failure failure(error);
  EXPECT_STREQ(first(failure).file, "p.tl");
  EXPECT_EQ(first(failure).line, 3u);
}

TEST(Compile, CallbacksSeeEveryStage) {
  const Context context = make_context();
  const Program program = make_gemm(context);
  std::vector<std::string> stages, messages;
  const auto dump = [](void* user, const char* stage, const char* text, size_t size) {
    EXPECT_EQ(std::strlen(text), size) << stage;
    static_cast<std::vector<std::string>*>(user)->push_back(stage);
  };
  const auto log = [](void* user, tl_log_level, const char* stage, const char* message) {
    static_cast<std::vector<std::string>*>(user)->push_back(std::string(stage) + ": " + message);
  };
  ASSERT_EQ(tl_context_set_dump(context.get(), dump, nullptr, &stages, nullptr), TL_OK);
  ASSERT_EQ(tl_context_set_log(context.get(), TL_LOG_INFO, log, nullptr, &messages, nullptr), TL_OK);
  Artifact artifact;
  Failure failure;
  ASSERT_EQ(compile(context, program, make_target("host"), nullptr, &artifact, &failure), TL_OK)
      << tl_error_message(failure.get());
  EXPECT_GE(stages.size(), 2u);
  ASSERT_EQ(messages.size(), 6u);
  const char* const expected[] = {" ms: gemm: 1 thread,", " 1 role,", " ms", " statements",
                                  "bytes of object code for 1 kernel"};
  const char* const names[] = {"plan: ", "expand: ", "accesses: ", "lower: ", "generate: "};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(messages[i].find(names[i]), 0u) << messages[i];
    EXPECT_NE(messages[i].find(expected[i]), std::string::npos) << messages[i];
  }
  EXPECT_EQ(messages[5].find("compile: matmul for host in "), 0u) << messages[4];
}

TEST(Compile, CodeHasAFormat) {
  const Context context = make_context();
  const Program program = make_gemm(context);
  Failure failure;
  const auto sections = [&](const char* target, const Options& options, std::string& code, std::string& ptx) {
    Artifact artifact;
    EXPECT_EQ(compile(context, program, make_target(target), options, &artifact, &failure), TL_OK)
        << tl_error_message(failure.get());
    for (const auto& [section, text] : {std::pair(TL_SECTION_CODE, &code), {TL_SECTION_PTX, &ptx}}) {
      const char* data = nullptr;
      size_t size = 0;
      EXPECT_EQ(tl_artifact_section(artifact.get(), static_cast<tl_section>(section), &data, &size, nullptr),
                TL_OK);
      text->assign(data, size);
      EXPECT_EQ(data[size], 0);
    }
    return std::string(tl_artifact_code_format(artifact.get()));
  };
  const Options options = make_options(), planned = make_options();
  ASSERT_EQ(tl_options_set_bool(planned.get(), "plan_only", 1, nullptr), TL_OK);
  std::string code, ptx;
  EXPECT_EQ(sections("sm_80", options, code, ptx), "ptx");
  EXPECT_NE(code.find(".target sm_80"), std::string::npos);
  EXPECT_EQ(code, ptx);
  EXPECT_EQ(sections("x86-64-v3", options, code, ptx), "object");
  EXPECT_EQ(code.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_NE(code.find("gemm"), std::string::npos) << "no symbol of the kernel";
  EXPECT_EQ(ptx, "");
  EXPECT_EQ(sections("sim:sm_80", options, code, ptx), "");
  EXPECT_EQ(code + ptx, "");
  EXPECT_EQ(sections("sm_80", planned, code, ptx), "");
  EXPECT_EQ(code + ptx, "");
  EXPECT_STREQ(tl_artifact_code_format(nullptr), "");
}

TEST(Compile, AmdCodeIsForTheHipRuntime) {
  const Context context = make_context();
  const Program program = make_gemm(context);
  Failure failure;
  for (const char* target : {"gfx942", "gfx90a"}) {
    const Options options = make_options();
    ASSERT_EQ(tl_options_set_bool(options.get(), "keep_assembly", 1, nullptr), TL_OK);
    Artifact artifact;
    ASSERT_EQ(compile(context, program, make_target(target), options, &artifact, &failure), TL_OK)
        << tl_error_message(failure.get());
    EXPECT_STREQ(tl_artifact_code_format(artifact.get()), "hsaco");
    const auto section = [&](tl_section which) {
      const char* data = nullptr;
      size_t size = 0;
      EXPECT_EQ(tl_artifact_section(artifact.get(), which, &data, &size, nullptr), TL_OK);
      return std::string(data, size);
    };
    const std::string hsaco = section(TL_SECTION_HSACO);
    EXPECT_EQ(hsaco.substr(1, 3), "ELF");
    EXPECT_EQ(hsaco, section(TL_SECTION_CODE));
    EXPECT_NE(hsaco.find("gemm.kd"), std::string::npos) << "no descriptor of the kernel";
    EXPECT_EQ(section(TL_SECTION_PTX), "");
    EXPECT_NE(section(TL_SECTION_ASSEMBLY).find(".amdhsa_kernel"), std::string::npos);
    tl_kernel* kernel = nullptr;
    tl_error* error = nullptr;
    EXPECT_EQ(tl_kernel_load(context.get(), artifact.get(), 0, &kernel, &error), TL_DRIVER);
    EXPECT_EQ(kernel, nullptr);
    EXPECT_NE(std::string(tl_error_message(error)).find(std::string("the artifact is for ") + target),
              std::string::npos)
        << tl_error_message(error);
    tl_error_release(error);
  }
}

TEST(Compile, CancelStops) {
  const Context context = make_context();
  const Program program = make_gemm(context);
  const auto yes = [](void*) -> int32_t { return 1; };
  ASSERT_EQ(tl_context_set_cancel(context.get(), yes, nullptr, nullptr, nullptr), TL_OK);
  Artifact artifact;
  Failure failure;
  EXPECT_EQ(compile(context, program, make_target("host"), nullptr, &artifact, &failure), TL_CANCELLED);
  EXPECT_FALSE(artifact);
  EXPECT_STREQ(first(failure).code, "cancelled_by_caller");
}

TEST(Compile, ScheduleGoesOutAndBackIn) {
  const Context context = make_context();
  const Program program = make_gemm(context);
  const Target host = make_target("host");
  Artifact planned, replayed;
  Failure failure;
  const Options options = make_options();
  ASSERT_EQ(tl_options_set_bool(options.get(), "plan_only", 1, nullptr), TL_OK);
  ASSERT_EQ(compile(context, program, host, options, &planned, &failure), TL_OK)
      << tl_error_message(failure.get());
  const char *json = nullptr, *again = nullptr;
  size_t size = 0, again_size = 0;
  ASSERT_EQ(tl_artifact_section(planned.get(), TL_SECTION_SCHEDULE_JSON, &json, &size, nullptr), TL_OK);
  ASSERT_EQ(tl_options_set_str(options.get(), "schedule_json", json, nullptr), TL_OK);
  ASSERT_EQ(compile(context, program, host, options, &replayed, &failure), TL_OK)
      << tl_error_message(failure.get());
  ASSERT_EQ(tl_artifact_section(replayed.get(), TL_SECTION_SCHEDULE_JSON, &again, &again_size, nullptr),
            TL_OK);
  EXPECT_GT(size, 2u);
  EXPECT_EQ(std::string(again), json);
  ASSERT_EQ(tl_options_set_str(options.get(), "schedule_json", "{", nullptr), TL_OK);
  EXPECT_EQ(compile(context, program, host, options, &replayed, &failure), TL_PARSE_ERROR);
  EXPECT_STREQ(first(failure).code, "json_error");
}

TEST(Compile, PlanForAnotherTargetIsNotLoaded) {
  const Context context = make_context();
  const Program program = make_gemm(context);
  const Options options = make_options();
  ASSERT_EQ(tl_options_set_bool(options.get(), "plan_only", 1, nullptr), TL_OK);
  Artifact artifact;
  Failure failure;
  ASSERT_EQ(compile(context, program, make_target("host"), options, &artifact, &failure), TL_OK)
      << tl_error_message(failure.get());
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_kernel_load(context.get(), artifact.get(), 0, &kernel, nullptr), TL_UNSUPPORTED);
  EXPECT_EQ(tl_kernel_load(context.get(), artifact.get(), 1, &kernel, nullptr), TL_DRIVER);
  EXPECT_EQ(kernel, nullptr);
}

TEST(Launch, StreamOnTheHostIsRefused) {
  const Context context = make_context();
  const Program program = make_gemm(context);
  Artifact artifact;
  Failure failure;
  ASSERT_EQ(compile(context, program, make_target("host"), nullptr, &artifact, &failure), TL_OK)
      << tl_error_message(failure.get());
  tl_kernel* loaded = nullptr;
  ASSERT_EQ(tl_kernel_load(context.get(), artifact.get(), 0, &loaded, nullptr), TL_OK);
  const Kernel kernel(loaded);
  tl_launch launch{};
  EXPECT_EQ(tl_kernel_launch(kernel.get(), &launch, nullptr, 0, nullptr),
            TL_INVALID_ARGUMENT);  // no struct_size
  launch.struct_size = sizeof launch;
  launch.stream = &launch;
  EXPECT_EQ(tl_kernel_launch(kernel.get(), &launch, nullptr, 0, nullptr), TL_LAUNCH_ARGUMENT);
  struct Grown {
    tl_launch known;
    uint64_t future;
  } grown{};
  grown.known.struct_size = sizeof grown;
  EXPECT_EQ(tl_kernel_launch(kernel.get(), &grown.known, nullptr, 0, nullptr), TL_LAUNCH_ARGUMENT);  // arity
  grown.future = 1;
  EXPECT_EQ(tl_kernel_launch(kernel.get(), &grown.known, nullptr, 0, nullptr), TL_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tilegen::test
