// Programs: reading, printing, parameters, and the reference interpreter.
#include <algorithm>
#include <span>

#include "capi/bound_program.h"
#include "capi/context_log.h"
#include "capi/guard.h"
#include "capi/launch_arguments.h"
#include "emit/emit_c.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "ir/text_format.h"
#include "runtime/workspace.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

// How a text is read.
struct Reading {
  std::string file;
  std::vector<ir::ParamBinding> bindings = {};
  tl_include_fn include = nullptr;
  void* include_user = nullptr;
};

// Reads, checks and hands out a program; one with compile-time parameters keeps its texts.
Checked read_program(const tl_context* context, std::string_view text, const Reading& how,
                     tl_program** out_program) {
  const CallLimits call(context);
  ProgramSource source{{}, how.file, {}};
  auto program = checked_program(context->limits, text, how.file, how.bindings, call.get(),
                                 texts_of(how.include, how.include_user, source.included));
  if (!program) return program.error();
  std::shared_ptr<const ProgramSource> kept;
  if (!(*program)->compile_params.empty()) {
    source.text = text;
    kept = std::make_shared<const ProgramSource>(std::move(source));
  }
  hand_out_program(std::move(*program), std::move(kept), out_program);
  return Unit{};
}

Expected<std::vector<ir::ParamBinding>> read_bindings(const tl_context* context, const char* const* names,
                                                      const int64_t* values, size_t count) {
  if (count > static_cast<size_t>(context->limits.buffers))
    return Error(DiagCode::limit_nodes, "",
                 std::to_string(count) + " parameters are bound, more than a program may have",
                 "bind each parameter once");
  if (count > 0 && (!names || !values)) return null_argument(names ? "values" : "names");
  std::vector<ir::ParamBinding> bindings;
  for (size_t i = 0; i < count; ++i) {
    if (!names[i]) return null_argument("names[" + std::to_string(i) + "]");
    bindings.push_back({names[i], values[i]});
  }
  return bindings;
}

Expected<Reading> read_parse_options(const tl_context* context, const tl_parse_options* options) {
  if (!options) return Reading{};
  const auto given = read_struct(options);
  if (!given) return given.error();
  auto bindings = read_bindings(context, given->param_names, given->param_values, given->param_count);
  if (!bindings) return bindings.error();
  return Reading{given->file_name ? given->file_name : "", std::move(*bindings), given->include,
                 given->include_user};
}

// The text laid out, once it is known to be one of a program, or a part that programs include.
Checked format_text(const tl_context* context, std::string_view text, const Reading& how,
                    tl_blob** out_text) {
  const CallLimits call(context);
  std::vector<ir::IncludedText> given;
  const ir::IncludeText include = texts_of(how.include, how.include_user, given);
  if (ir::is_part(text)) {
    if (Checked part = ir::check_part(text, how.file, context->limits, call.get(), how.bindings, include);
        !part)
      return part;
  } else {
    const auto program = checked_program(context->limits, text, how.file, how.bindings, call.get(), include);
    if (!program) return program.error();
  }
  auto blob = std::make_unique<tl_blob>();
  blob->bytes = ir::format_text(text);
  *out_text = blob.release();
  return Unit{};
}

// Parameters that are not bound keep the program's values.
Checked bind_program(const tl_context* context, const tl_program* program,
                     std::vector<ir::ParamBinding> bindings, tl_program** out_program) {
  const ir::Program& p = *program->program;
  if (Checked has = has_text_to_bind(*program); !has) return has;
  for (const ir::CompileParam& param : p.compile_params) {
    const bool given = std::any_of(bindings.begin(), bindings.end(),
                                   [&](const ir::ParamBinding& b) { return b.name == param.name; });
    if (!given) bindings.push_back({param.name, param.value});
  }
  const CallLimits call(context);
  const auto read_again = [&](const ProgramSource& source) {
    return checked_program(context->limits, source.text, source.file, bindings, call.get(), source.again());
  };
  // Without parameters every binding is wrong, as reading the canonical text says.
  auto bound = read_again(program->source ? *program->source : ProgramSource{ir::print_program(p), "", {}});
  if (!bound) return bound.error();
  hand_out_program(std::move(*bound), program->source, out_program);
  return Unit{};
}

size_t given_params(const ir::Program& p) {
  size_t count = 0;
  for (const ir::Param& param : p.params) count += p.takes_argument(param);
  return count;
}

Checked run_interpreter(const tl_program* program, const Cancellation* cancellation,
                        const tl_context* context, const tl_arg* args, size_t count) {
  if (!program) return null_argument("program");
  if (!sane_argument_array(args, count)) return absurd_argument_array(args, count, "args");
  LaunchArguments arguments(count);
  if (!convert_arguments(args, arguments)) return unconverted({args, count});
  auto slots = runtime::bind_arguments(*program->program, arguments);
  if (!slots) return slots.error();
  return runtime::Workspace(*program->program)
      .in_host_memory(
          *slots, true, [&] { return interp::interpret(*program->program, *slots, cancellation); },
          lines_of(context));
}

}  // namespace

extern "C" {

tl_status tl_program_parse(const tl_context* context, const char* text, size_t size, const char* file_name,
                           tl_program** out_program, tl_error** out_error) {
  return guard("tl_program_parse", out_error, [&]() -> Checked {
    if (out_program) *out_program = nullptr;
    if (!context) return null_argument("context");
    if (!text || !out_program) return null_argument(text ? "out_program" : "text");
    return read_program(context, {text, size}, {file_name ? file_name : ""}, out_program);
  });
}

tl_status tl_program_parse_bound(const tl_context* context, const char* text, size_t size,
                                 const char* file_name, const char* const* names, const int64_t* values,
                                 size_t count, tl_program** out_program, tl_error** out_error) {
  return guard("tl_program_parse_bound", out_error, [&]() -> Checked {
    if (out_program) *out_program = nullptr;
    if (!context) return null_argument("context");
    if (!text || !out_program) return null_argument(text ? "out_program" : "text");
    auto bindings = read_bindings(context, names, values, count);
    if (!bindings) return bindings.error();
    return read_program(context, {text, size}, {file_name ? file_name : "", std::move(*bindings)},
                        out_program);
  });
}

tl_status tl_program_parse_with(const tl_context* context, const char* text, size_t size,
                                const tl_parse_options* options, tl_program** out_program,
                                tl_error** out_error) {
  return guard("tl_program_parse_with", out_error, [&]() -> Checked {
    if (out_program) *out_program = nullptr;
    if (!context) return null_argument("context");
    if (!text || !out_program) return null_argument(text ? "out_program" : "text");
    const auto how = read_parse_options(context, options);
    if (!how) return how.error();
    return read_program(context, {text, size}, *how, out_program);
  });
}

tl_status tl_program_bind(const tl_context* context, const tl_program* program, const char* const* names,
                          const int64_t* values, size_t count, tl_program** out_program,
                          tl_error** out_error) {
  return guard("tl_program_bind", out_error, [&]() -> Checked {
    if (out_program) *out_program = nullptr;
    if (!context) return null_argument("context");
    if (!program || !out_program) return null_argument(program ? "out_program" : "program");
    auto bindings = read_bindings(context, names, values, count);
    if (!bindings) return bindings.error();
    return bind_program(context, program, std::move(*bindings), out_program);
  });
}

size_t tl_program_compile_param_count(const tl_program* program) {
  return program ? program->program->compile_params.size() : 0;
}

tl_status tl_program_compile_param(const tl_program* program, size_t index, tl_compile_param_info* out_info) {
  return guard("tl_program_compile_param", nullptr, [&]() -> Checked {
    if (!program || !out_info) return null_argument(program ? "out_info" : "program");
    const auto& params = program->program->compile_params;
    if (index >= params.size())
      return Error(DiagCode::bad_enum, "", "there is no compile-time parameter " + std::to_string(index),
                   "count them with tl_program_compile_param_count");
    tl_compile_param_info info{};
    info.domain_size = static_cast<uint32_t>(params[index].domain.size());
    info.name = params[index].name.c_str();
    info.domain = params[index].domain.data();
    info.value = params[index].value;
    return fill_struct(out_info, info);
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

tl_status tl_program_emit_c(const tl_program* program, tl_blob** out_source, tl_error** out_error) {
  return guard("tl_program_emit_c", out_error, [&]() -> Checked {
    if (out_source) *out_source = nullptr;
    if (!program || !out_source) return null_argument(program ? "out_source" : "program");
    auto blob = std::make_unique<tl_blob>();
    blob->bytes = emit::emit_c(*program->program);
    *out_source = blob.release();
    return Unit{};
  });
}

tl_status tl_text_format(const tl_context* context, const char* text, size_t size, const char* file_name,
                         tl_blob** out_text, tl_error** out_error) {
  return guard("tl_text_format", out_error, [&]() -> Checked {
    if (out_text) *out_text = nullptr;
    if (!context) return null_argument("context");
    if (!text || !out_text) return null_argument(text ? "out_text" : "text");
    return format_text(context, {text, size}, {file_name ? file_name : ""}, out_text);
  });
}

tl_status tl_text_format_with(const tl_context* context, const char* text, size_t size,
                              const tl_parse_options* options, tl_blob** out_text, tl_error** out_error) {
  return guard("tl_text_format_with", out_error, [&]() -> Checked {
    if (out_text) *out_text = nullptr;
    if (!context) return null_argument("context");
    if (!text || !out_text) return null_argument(text ? "out_text" : "text");
    const auto how = read_parse_options(context, options);
    if (!how) return how.error();
    return format_text(context, {text, size}, *how, out_text);
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
    for (size_t before = 0; !p.takes_argument(p.params[at]) || before++ < index;) ++at;
    const ir::Param& param = p.params[at];
    tl_param_info info{};
    if (param.kind == ir::Param::Kind::tensor) {
      const ir::Buffer& b = p.buffer(param.buffer);
      info.kind = TL_PARAM_TENSOR;
      info.dtype = static_cast<tl_dtype>(b.type);
      info.codes = static_cast<tl_dtype>(b.packed);  // none is 0
      info.rank = static_cast<uint32_t>(b.shape.size());
      info.read_only = b.read_only ? 1 : 0;
      info.optional = b.optional ? 1 : 0;
      info.constant = b.constant ? 1 : 0;
      info.name = b.name.c_str();
    } else {
      const ir::Var& v = p.var(param.var);
      info.kind = param.kind == ir::Param::Kind::dim ? TL_PARAM_DIM : TL_PARAM_SCALAR;
      info.dtype = static_cast<tl_dtype>(v.type);
      info.name = v.name.c_str();
    }
    return fill_struct(out_info, info, offsetof(tl_param_info, optional));
  });
}

tl_status tl_interpret(const tl_program* program, const tl_arg* args, size_t count, tl_error** out_error) {
  return guard("tl_interpret", out_error,
               [&] { return run_interpreter(program, nullptr, nullptr, args, count); });
}

tl_status tl_interpret_launch(const tl_program* program, const tl_launch* launch, const tl_arg* args,
                              size_t count, tl_error** out_error) {
  return guard("tl_interpret_launch", out_error, [&]() -> Checked {
    if (!launch) return run_interpreter(program, nullptr, nullptr, args, count);
    auto how = read_launch(launch);
    if (!how) return how.error();
    const CallLimits call(how->context, how->timeout_ms);
    return run_interpreter(program, call.get(), how->context, args, count);
  });
}

}  // extern "C"
