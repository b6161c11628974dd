// Facts of the library itself: version, names of statuses and dtypes.
#include <string>

#include "capi/build_id.h"
#include "capi/guard.h"
#include "codegen/host_code.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

constexpr bool same(StatusCode code, tl_status status) { return static_cast<tl_status>(code) == status; }
static_assert(same(StatusCode::ok, TL_OK) && same(StatusCode::invalid_argument, TL_INVALID_ARGUMENT) &&
              same(StatusCode::invalid_handle, TL_INVALID_HANDLE) &&
              same(StatusCode::launch_argument, TL_LAUNCH_ARGUMENT) &&
              same(StatusCode::invalid_program, TL_INVALID_PROGRAM) &&
              same(StatusCode::parse_error, TL_PARSE_ERROR) &&
              same(StatusCode::invalid_schedule, TL_INVALID_SCHEDULE) &&
              same(StatusCode::unsupported, TL_UNSUPPORTED) &&
              same(StatusCode::unknown_target, TL_UNKNOWN_TARGET) &&
              same(StatusCode::limit_exceeded, TL_LIMIT_EXCEEDED) &&
              same(StatusCode::assertion, TL_ASSERTION) && same(StatusCode::cancelled, TL_CANCELLED) &&
              same(StatusCode::backend, TL_BACKEND) && same(StatusCode::driver, TL_DRIVER) &&
              same(StatusCode::io, TL_IO) && same(StatusCode::internal, TL_INTERNAL));

constexpr bool same(ir::DType type, tl_dtype dtype) { return static_cast<tl_dtype>(type) == dtype; }
static_assert(same(ir::DType::f16, TL_F16) && same(ir::DType::bf16, TL_BF16) &&
              same(ir::DType::f32, TL_F32) && same(ir::DType::f64, TL_F64) && same(ir::DType::i8, TL_I8) &&
              same(ir::DType::u8, TL_U8) && same(ir::DType::i32, TL_I32) && same(ir::DType::i64, TL_I64) &&
              same(ir::DType::boolean, TL_BOOL) && same(ir::DType::e4m3, TL_E4M3) &&
              same(ir::DType::e5m2, TL_E5M2) && same(ir::DType::e4m3fnuz, TL_E4M3FNUZ) &&
              same(ir::DType::e5m2fnuz, TL_E5M2FNUZ) && same(ir::DType::i16, TL_I16) &&
              same(ir::DType::u16, TL_U16) && same(ir::DType::u32, TL_U32) && same(ir::DType::u64, TL_U64) &&
              same(ir::DType::i4, TL_I4) && same(ir::DType::u4, TL_U4) && same(ir::DType::i2, TL_I2) &&
              same(ir::DType::u2, TL_U2) && same(ir::DType::e2m1, TL_E2M1) && same(ir::DType::e8m0, TL_E8M0));

static_assert(sizeof(tl_arg) == 16 && offsetof(tl_arg, dtype) == 4 && offsetof(tl_arg, payload) == 8);
static_assert(sizeof(tl_launch) == 32 && offsetof(tl_launch, stream) == 8 &&
              offsetof(tl_launch, timeout_ms) == 16 && offsetof(tl_launch, context) == 24);
static_assert(sizeof(tl_diagnostic) == 80 && offsetof(tl_diagnostic, code) == 24 &&
              offsetof(tl_diagnostic, file) == 64 && offsetof(tl_diagnostic, included_at) == 72);
static_assert(sizeof(tl_included) == 64 && offsetof(tl_included, path) == 8 &&
              offsetof(tl_included, name) == 32 && offsetof(tl_included, refusal) == 56);
static_assert(sizeof(tl_parse_options) == 48 && offsetof(tl_parse_options, file_name) == 24 &&
              offsetof(tl_parse_options, include) == 32);
static_assert(sizeof(tl_option_info) == 40 && offsetof(tl_option_info, name) == 8);
static_assert(sizeof(tl_param_info) == 40 && offsetof(tl_param_info, name) == 24 &&
              offsetof(tl_param_info, optional) == 32);
static_assert(sizeof(tl_device_info) == 56 && offsetof(tl_device_info, name) == 16 &&
              offsetof(tl_device_info, memory_bytes) == 40);
static_assert(sizeof(tl_kernel_info) == 104 && offsetof(tl_kernel_info, name) == 16 &&
              offsetof(tl_kernel_info, local_bytes) == 48 && offsetof(tl_kernel_info, load_ms) == 88 &&
              offsetof(tl_kernel_info, accumulation_registers) == 96);
static_assert(TL_API_VERSION == TL_VERSION_MAJOR * 10000 + TL_VERSION_MINOR * 100 + TL_VERSION_PATCH);

std::string make_build_info() {
  std::string text =
      "{\"version\": \"" TILEGEN_VERSION "\", \"commit\": \"" TILEGEN_COMMIT "\", \"build_id\": \"" +
      build_id() + "\", \"backend\": \"" + codegen::backend_description() + "\", \"targets\": [";
  bool first = true;
  for (const std::string& name : target::target_names()) {
    text += (first ? "\"" : ", \"") + name + "\"";
    first = false;
  }
  return text + "]}";
}

}  // namespace

extern "C" {

uint32_t tilelang_api_version(void) { return TL_API_VERSION; }

const char* tl_build_info(void) {
  return shielded<const char*>("{}", [] {
    static const std::string text = make_build_info();
    return text.c_str();
  });
}

const char* tl_status_name(tl_status status) { return status_name(static_cast<StatusCode>(status)); }

const char* tl_dtype_name(tl_dtype dtype) {
  return ir::dtype_valid(dtype) ? ir::dtype_name(static_cast<ir::DType>(dtype)) : "";
}

uint32_t tl_dtype_bits(tl_dtype dtype) {
  return ir::dtype_valid(dtype) ? static_cast<uint32_t>(ir::dtype_bits(static_cast<ir::DType>(dtype))) : 0;
}

}  // extern "C"
