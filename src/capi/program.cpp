// Programs: reading, printing, parameters, and the reference interpreter.
#include "capi/guard.h"
#include "capi/launch_arguments.h"
#include "check/check_program.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "runtime/workspace.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

Checked no_errors(const ir::Program& program, const Limits& limits, const Cancellation* cancellation) {
  Error error;
  for (Diagnostic& d : check::check_program(program, limits, cancellation))
    if (d.severity == Severity::error) error.diagnostics.push_back(std::move(d));
  if (!error.diagnostics.empty()) return error;
  return Unit{};
}

size_t given_params(const ir::Program& p) {
  size_t count = 0;
  for (const ir::Param& param : p.params) count += !p.is_workspace(param);
  return count;
}

Checked run_interpreter(const tl_program* program, const Cancellation* cancellation, const tl_arg* args,
                        size_t count) {
  if (!program) return null_argument("program");
  if (!sane_argument_array(args, count)) return absurd_argument_array(args, count, "args");
  LaunchArguments arguments(count);
  if (!convert_arguments(args, arguments)) return unconverted({args, count});
  auto slots = runtime::bind_arguments(*program->program, arguments);
  if (!slots) return slots.error();
  return runtime::Workspace(*program->program).in_host_memory(*slots, true, [&] {
    return interp::interpret(*program->program, *slots, cancellation);
  });
}

}  // namespace

extern "C" {

tl_status tl_program_parse(const tl_context* context, const char* text, size_t size, const char* file_name,
                           tl_program** out_program, tl_error** out_error) {
  return guard("tl_program_parse", out_error, [&]() -> Checked {
    if (out_program) *out_program = nullptr;
    if (!context) return null_argument("context");
    if (!text || !out_program) return null_argument(text ? "out_program" : "text");
    const CallLimits call(context);
    auto parsed = ir::parse_program({text, size}, file_name ? file_name : "", context->limits, call.get());
    if (!parsed) return parsed.error();
    if (Checked good = no_errors(*parsed, context->limits, call.get()); !good) return good;
    auto made = std::make_unique<tl_program>();
    made->program = std::make_shared<const ir::Program>(std::move(*parsed));
    *out_program = made.release();
    return Unit{};
  });
}

void tl_program_retain(tl_program* program) { retain(program); }
void tl_program_release(tl_program* program) { release(program); }

tl_status tl_program_print(const tl_program* program, tl_blob** out_text, tl_error** out_error) {
  return guard("tl_program_print", out_error, [&]() -> Checked {
    if (out_text) *out_text = nullptr;
    if (!program || !out_text) return null_argument(program ? "out_text" : "program");
    auto blob = std::make_unique<tl_blob>();
    blob->bytes = ir::print_program(*program->program);
    *out_text = blob.release();
    return Unit{};
  });
}

const char* tl_program_hash(const tl_program* program) {
  if (!program) return "";
  return shielded<const char*>("", [&] {
    program->hashed.run([&] { program->hash = ir::program_hash(*program->program); });
    return program->hash.c_str();
  });
}

const char* tl_program_name(const tl_program* program) {
  return program ? program->program->name.c_str() : "";
}

size_t tl_program_param_count(const tl_program* program) {
  return program ? given_params(*program->program) : 0;
}

tl_status tl_program_param(const tl_program* program, size_t index, tl_param_info* out_info) {
  return guard("tl_program_param", nullptr, [&]() -> Checked {
    if (!program || !out_info) return null_argument(program ? "out_info" : "program");
    const ir::Program& p = *program->program;
    if (index >= given_params(p))
      return Error(DiagCode::bad_enum, "", "there is no parameter " + std::to_string(index),
                   "count them with tl_program_param_count");
    size_t at = 0;
    for (size_t before = 0; p.is_workspace(p.params[at]) || before++ < index;) ++at;
    const ir::Param& param = p.params[at];
    tl_param_info info{};
    if (param.kind == ir::Param::Kind::tensor) {
      const ir::Buffer& b = p.buffer(param.buffer);
      info.kind = TL_PARAM_TENSOR;
      info.dtype = static_cast<tl_dtype>(b.type);
      info.rank = static_cast<uint32_t>(b.shape.size());
      info.read_only = b.read_only ? 1 : 0;
      info.name = b.name.c_str();
    } else {
      const ir::Var& v = p.var(param.var);
      info.kind = param.kind == ir::Param::Kind::dim ? TL_PARAM_DIM : TL_PARAM_SCALAR;
      info.dtype = static_cast<tl_dtype>(v.type);
      info.name = v.name.c_str();
    }
    return fill_struct(out_info, info);
  });
}

tl_status tl_interpret(const tl_program* program, const tl_arg* args, size_t count, tl_error** out_error) {
  return guard("tl_interpret", out_error, [&] { return run_interpreter(program, nullptr, args, count); });
}

tl_status tl_interpret_launch(const tl_program* program, const tl_launch* launch, const tl_arg* args,
                              size_t count, tl_error** out_error) {
  return guard("tl_interpret_launch", out_error, [&]() -> Checked {
    if (!launch) return run_interpreter(program, nullptr, args, count);
    auto how = read_launch(launch);
    if (!how) return how.error();
    const CallLimits call(how->context, how->timeout_ms);
    return run_interpreter(program, call.get(), args, count);
  });
}

}  // extern "C"
