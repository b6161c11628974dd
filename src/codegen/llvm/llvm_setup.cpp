#include "codegen/llvm/llvm_setup.h"

#include <new>

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/host_code.h"
#include "codegen/llvm/guarded_memory.h"
#include "support/diag_codes.h"

namespace tilegen::codegen {
namespace {

// Thrown by the fatal error handler through LLVM's frames; caught in run_guarded only.
struct FatalError {
  std::string message;
};

[[noreturn]] void on_fatal_error(void*, const char* reason, bool) {
  throw FatalError{reason ? reason : "unknown fatal error"};
}

// Called where LLVM itself asks for memory, and it was built to end the process there.
[[noreturn]] void on_bad_alloc(void*, const char*, bool) { throw std::bad_alloc(); }

void collect(const llvm::DiagnosticInfo* info, void* sink) {
  if (info->getSeverity() != llvm::DS_Error) return;
  std::string& errors = *static_cast<std::string*>(sink);
  llvm::raw_string_ostream stream(errors);
  llvm::DiagnosticPrinterRawOStream printer(stream);
  if (!errors.empty()) stream << "; ";
  info->print(printer);
}

std::string joined(const std::vector<std::string>& features) {
  std::string out;
  for (const std::string& f : features) {
    if (f.empty()) continue;
    if (!out.empty()) out += ',';
    if (f[0] != '+' && f[0] != '-') out += '+';
    out += f;
  }
  return out;
}

// LLVM prints a warning to stderr for names it does not know and goes on; we refuse before.
std::optional<std::string> unknown_cpu_or_feature(const llvm::Target& t, const char* triple,
                                                  const std::string& cpu,
                                                  const std::vector<std::string>& features) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(t.createMCSubtargetInfo(triple, "", ""));
  if (!info->isCPUStringValid(cpu)) return "LLVM knows no cpu '" + cpu + "'";
  for (const std::string& f : features) {
    if (f.empty()) continue;
    llvm::StringRef name = f[0] == '+' || f[0] == '-' ? llvm::StringRef(f).drop_front() : llvm::StringRef(f);
    bool known = false;
    for (const llvm::SubtargetFeatureKV& kv : info->getAllProcessorFeatures()) known |= name == kv.Key;
    if (!known) return "LLVM knows no cpu feature '" + f + "'";
  }
  return std::nullopt;
}

// What LLVM takes from its command line only.
void set_option(llvm::StringRef name, llvm::StringRef value) {
  if (llvm::cl::Option* o = llvm::cl::getRegisteredOptions().lookup(name)) o->addOccurrence(0, name, value);
}

}  // namespace

void ensure_handlers() {
  [[maybe_unused]] static const bool done = [] {
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::install_bad_alloc_error_handler(on_bad_alloc);
    return true;
  }();
}

// All of it is shared by later compiles, so none of it may be left half done.
void ensure_backend() {
  ensure_handlers();
  const GuardedScope calls_llvm;
  const ReserveScope whole;
  [[maybe_unused]] static const bool done = [] {
#define TILEGEN_BACKEND(name)         \
  LLVMInitialize##name##TargetInfo(); \
  LLVMInitialize##name##Target();     \
  LLVMInitialize##name##TargetMC();   \
  LLVMInitialize##name##AsmPrinter();
    TILEGEN_BACKEND(X86)
    TILEGEN_BACKEND(NVPTX)
    TILEGEN_BACKEND(AMDGPU)
#undef TILEGEN_BACKEND
    LLVMInitializeAMDGPUAsmParser();
    // Addresses of shared memory in 32 bits.
    set_option("nvptx-short-ptr", "true");
    // Sums of matrix instructions stay together (amdgpu/shape_phis.h).
    set_option("amdgpu-codegenprepare-break-large-phis", "false");
    // The code generator moves out of loops once more what it made itself. For accesses of one place that a
    // register could stand for it would compare all with each other; the optimiser has done that.
    set_option("licm-mssa-max-acc-promotion", "0");
    return true;
  }();
}

std::optional<std::string> run_guarded(const std::function<void()>& work) {
  const GuardedScope calls_llvm;
  try {
    work();
    return std::nullopt;
  } catch (const FatalError& e) {
    return e.message;
  }
}

void collect_diagnostics(llvm::LLVMContext& context, std::string& errors) {
  context.setDiagnosticHandlerCallBack(collect, &errors);
}

MachineFeatures host_features(const llvm::TargetMachine& machine) {
  const llvm::MCSubtargetInfo& sub = *machine.getMCSubtargetInfo();
  auto has = [&](const char* f) { return sub.checkFeatures(std::string("+") + f); };
  MachineFeatures f;
  f.fma = has("fma");
  f.f16c = has("f16c");
  f.avx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  f.avx512_bf16 = f.avx512 && has("avx512bf16");
  f.avx512_vnni = f.avx512 && has("avx512vnni");
  f.avx_vnni = has("avxvnni");
  f.amx_bf16 = has("amx-tile") && has("amx-bf16");
  f.amx_f16 = has("amx-tile") && has("amx-fp16");
  f.amx_i8 = has("amx-tile") && has("amx-int8");
  f.vector_bits = f.avx512 ? 512 : has("avx2") ? 256 : 128;
  return f;
}

Expected<std::unique_ptr<llvm::TargetMachine>> make_machine(const char* triple, const std::string& cpu,
                                                            const std::vector<std::string>& features,
                                                            std::optional<llvm::CodeModel::Model> code_model,
                                                            bool in_process) {
  ensure_backend();
  const GuardedScope calls_llvm;
  std::string why;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(triple, why);
  if (!t) return backend_error({}, why);
  if (auto bad = unknown_cpu_or_feature(*t, triple, cpu, features)) return backend_error({}, *bad);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  options.EnableMachineFunctionSplitter = false;
  std::unique_ptr<llvm::TargetMachine> machine(
      t->createTargetMachine(triple, cpu, joined(features), options, llvm::Reloc::PIC_, code_model,
                             llvm::CodeGenOptLevel::Default, in_process));
  if (!machine) return backend_error({}, "no code generator for cpu '" + cpu + "'");
  return machine;
}

Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const target::Target& target) {
  return make_machine("x86_64-unknown-linux-gnu", target.cpu.empty() ? "x86-64-v3" : target.cpu,
                      target.features, llvm::CodeModel::Small, /*in_process=*/true);
}

Error backend_error(const std::string& kernel, std::string message) {
  return Error(DiagCode::backend_failure, kernel, std::move(message),
               "compile with keep_ir to see the code handed to LLVM, and report it with the program text");
}

std::string backend_description() {
  ensure_backend();
  const GuardedScope calls_llvm;
  std::string out = "LLVM " LLVM_VERSION_STRING "; targets";
  for (const llvm::Target& t : llvm::TargetRegistry::targets()) {
    const llvm::StringRef name = t.getName();
    if (name == "x86-64") out += " X86";
    if (name == "nvptx64") out += " NVPTX";
    if (name == "amdgcn") out += " AMDGPU";
  }
  return out;
}

}  // namespace tilegen::codegen
