#include "subject.h"

#include <cstring>

namespace bench {

Subject::Subject(const tool::Context& context, const char* name, const Build& build, const char* target,
                 size_t device) {
  tl_builder* builder = nullptr;
  tl_program* program = nullptr;
  tl_kernel* kernel = nullptr;
  tl_error* error = nullptr;
  tool::require(tl_builder_create(context.get(), name, &builder, &error), error, "making a builder");
  build(builder);
  const tl_status status = tl_builder_finish(builder, &program, &error);
  tl_builder_destroy(builder);
  tool::require(status, error, "building the program");
  const tool::Program owner(program);
  artifact_ = tool::compile(context, owner, tool::find_target(context, target), tool::make_options());
  tool::require(tl_kernel_load(context.get(), artifact_.get(), device, &kernel, &error), error, "loading");
  kernel_.reset(kernel);
}

void Subject::launch(const tl_launch* how) const {
  tl_error* error = nullptr;
  tool::require(tl_kernel_launch(kernel_.get(), how, arguments_.data(), arguments_.size(), &error), error,
                "launching");
}

tl_arg pointer(tl_dtype dtype, const void* data) {
  return {TL_ARG_POINTER, dtype, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(data))};
}

tl_arg integer(int64_t value) { return {TL_ARG_I64, 0, static_cast<uint64_t>(value)}; }

tl_arg real(double value) {
  tl_arg arg{TL_ARG_F64, 0, 0};
  std::memcpy(&arg.payload, &value, sizeof value);
  return arg;
}

}  // namespace bench
