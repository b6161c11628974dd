// Owners for the C objects, for the C++ tests of the interface.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tilelang.h"

namespace tilegen::test {

template <class T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* object) const { Release(object); }
};
using Context = std::unique_ptr<tl_context, Releaser<tl_context, tl_context_release>>;
using Failure = std::unique_ptr<tl_error, Releaser<tl_error, tl_error_release>>;
using Blob = std::unique_ptr<tl_blob, Releaser<tl_blob, tl_blob_release>>;
using Options = std::unique_ptr<tl_options, Releaser<tl_options, tl_options_destroy>>;
using Target = std::unique_ptr<tl_target, Releaser<tl_target, tl_target_release>>;
using Builder = std::unique_ptr<tl_builder, Releaser<tl_builder, tl_builder_destroy>>;
using Program = std::unique_ptr<tl_program, Releaser<tl_program, tl_program_release>>;
using Artifact = std::unique_ptr<tl_artifact, Releaser<tl_artifact, tl_artifact_release>>;
using Kernel = std::unique_ptr<tl_kernel, Releaser<tl_kernel, tl_kernel_release>>;

inline Context make_context() {
  tl_context* context = nullptr;
  return tl_context_create(&context, nullptr) == TL_OK ? Context(context) : nullptr;
}
inline Builder make_builder(const Context& context, const char* name = "p") {
  tl_builder* builder = nullptr;
  return tl_builder_create(context.get(), name, &builder, nullptr) == TL_OK ? Builder(builder) : nullptr;
}
// Status of finish and, where asked for, the error.
inline tl_status finish(const Builder& builder, Program* program = nullptr, Failure* failure = nullptr) {
  tl_program* made = nullptr;
  tl_error* error = nullptr;
  const tl_status status = tl_builder_finish(builder.get(), &made, &error);
  Program owned(made);
  Failure owned_error(error);
  if (program) *program = std::move(owned);
  if (failure) *failure = std::move(owned_error);
  return status;
}
// The program; with `mistake` what is wrong with it, empty where nothing is.
inline Program made_by(const Builder& builder, std::string* mistake = nullptr) {
  Program program;
  Failure failure;
  const tl_status status = finish(builder, &program, &failure);
  if (mistake)
    *mistake = failure ? tl_error_message(failure.get()) : "";
  else
    EXPECT_EQ(status, TL_OK) << tl_error_message(failure.get());
  return program;
}
inline Program parsed(const Context& context, const std::string& text) {
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), nullptr, &program, &error), TL_OK)
      << tl_error_message(error);
  tl_error_release(error);
  return Program(program);
}
inline tl_diagnostic first(const Failure& failure, size_t index = 0) {
  tl_diagnostic d{};
  d.struct_size = sizeof d;
  tl_error_diagnostic(failure.get(), index, &d);
  return d;
}

}  // namespace tilegen::test
