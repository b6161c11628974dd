#include "emit/emit_c.h"

#include "emit/c_functions.h"
#include "emit/c_kernels.h"

namespace tilegen::emit {
namespace {

class ProgramSource {
 public:
  explicit ProgramSource(const ir::Program& p) : p_(p), names_(p), exprs_(p, names_, source_) {}

  std::string run() {
    const std::string& name = names_.written().program;
    const std::string head = "tl_status build_" + name +
                             "(const tl_context *context, tl_program **out_program, tl_error **out_error)";
    source_.line("tl_builder *t = NULL;");
    source_.line("tl_status status = tl_builder_create(context, " + quoted(name) + ", &t, out_error);");
    source_.line("if (out_program) *out_program = NULL;");
    source_.line("if (status != TL_OK) return status;");
    compile_params();
    params();
    for (const auto& f : p_.natives) write_function(p_, *f, names_, source_);
    CKernels kernels(p_, names_, source_, exprs_);
    for (size_t k = 0; k < p_.kernels.size(); ++k) kernels.write(k);
    declare_params();
    source_.blank();
    source_.line("status = tl_builder_finish(t, out_program, out_error);");
    source_.line("tl_builder_destroy(t);");
    source_.line("return status;");
    std::string out = "/* The tile program '" + name +
                      "', built by calls of tilelang.h: what tl_program_emit_c writes. */\n";
    if (source_.includes_math()) out += "#include <math.h>\n";
    out += "#include <stddef.h>\n#include <stdint.h>\n\n#include <tilelang.h>\n\n";
    out += "/* Short for calls of the builder `t`. */\n" + source_.macros() + "\n";
    out += head + ";\n\n" + head + " {\n" + source_.text() + "}\n";
    return out;
  }

 private:
  // A name of C for what a call of the program's parameters gives, once it is known whether it is used.
  struct Declared {
    size_t place;
    ir::Param param;
    std::string call;
  };

  void compile_params() {
    if (p_.compile_params.empty()) return;
    source_.blank();
    source_.line("/* Compile-time parameters: the numbers below hold their values. */");
    for (size_t i = 0; i < p_.compile_params.size(); ++i) {
      const ir::CompileParam& param = p_.compile_params[i];
      const std::string name = quoted(names_.written().compile_params[i]);
      if (param.value != param.domain[0])
        source_.line("tl_builder_bind(t, " + name + ", " + number(param.value) + ");");
      source_.line("tl_param(t, " +
                   joined({name, exprs_.numbers(param.domain), std::to_string(param.domain.size())}) + ");");
    }
  }

  void params() {
    if (p_.params.empty()) return;
    source_.blank();
    for (const ir::Param& param : p_.params) {
      if (param.kind == ir::Param::Kind::tensor)
        tensor(param);
      else if (p_.takes_argument(param))
        variable(param);
    }
  }

  void variable(const ir::Param& param) {
    const ir::Var& v = p_.var(param.var);
    const std::string name = quoted(names_.written().vars[param.var.value]);
    const bool is_dim = param.kind == ir::Param::Kind::dim;
    declared_.push_back({source_.reserve(), param,
                         is_dim ? "tl_dim(t, " + name + ");"
                                : "tl_scalar(t, " + name + ", " + dtype_constant(v.type) + ");"});
    const ir::Var defaults;
    if (is_dim && (v.lower != defaults.lower || v.upper != defaults.upper || v.divisor != defaults.divisor))
      source_.line("tl_dim_fact(t, " +
                   joined({names_.use(param.var), number(v.lower), number(v.upper), number(v.divisor)}) +
                   ");");
  }

  void tensor(const ir::Param& param) {
    const ir::Buffer& b = p_.buffer(param.buffer);
    if (b.report != ir::Report::none) return;  // assertions and prints make it
    const std::string shape = exprs_.list(b.shape),
                      strides = b.strides.empty() ? "NULL" : exprs_.list(b.strides);
    declared_.push_back({source_.reserve(), param,
                         "tl_tensor(t, " +
                             joined({quoted(names_.written().buffers[param.buffer.value]),
                                     dtype_constant(b.type), std::to_string(b.shape.size()), shape, strides,
                                     flags({{b.read_only && !b.constant, "TL_TENSOR_READ_ONLY"},
                                            {b.constant, "TL_TENSOR_CONSTANT"},
                                            {b.workspace, "TL_TENSOR_WORKSPACE"},
                                            {b.optional, "TL_TENSOR_OPTIONAL"}})}) +
                             ");"});
    if (b.packed != ir::DType::none)
      source_.line("tl_tensor_codes(t, " + names_.use(param.buffer) + ", " + dtype_constant(b.packed) + ");");
  }

  void declare_params() {
    for (const Declared& d : declared_) {
      std::string head;
      if (d.param.kind == ir::Param::Kind::tensor) {
        if (names_.is_used(d.param.buffer))
          head = "const tl_buffer " + names_.identifier(d.param.buffer) + " = ";
      } else if (names_.is_used(d.param.var)) {
        head = "const tl_expr " + names_.identifier(d.param.var) + " = ";
      }
      source_.fill(d.place, head + d.call);
    }
  }

  const ir::Program& p_;
  CNames names_;
  CSource source_;
  CExpressions exprs_;
  std::vector<Declared> declared_;
};

}  // namespace

std::string emit_c(const ir::Program& p) { return ProgramSource(p).run(); }

}  // namespace tilegen::emit
