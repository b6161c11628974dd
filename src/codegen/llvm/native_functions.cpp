#include "codegen/llvm/native_functions.h"

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "codegen/llvm/compile_steps.h"
#include "codegen/llvm/guarded_memory.h"
#include "codegen/llvm/machine_code.h"
#include "codegen/llvm/types.h"
#include "codegen/native_text.h"
#include "ir/matrix_atom.h"
#include "ir/native_asm.h"
#include "support/diag_codes.h"

namespace tilegen::codegen {
namespace {

bool is_half(ir::DType t) { return t == ir::DType::f16 || t == ir::DType::bf16; }

// The class of registers that holds the type.
const char* register_class(bool nvptx, ir::DType t) {
  if (!nvptx) return "v";
  if (t == ir::DType::f32) return "f";
  if (t == ir::DType::f64) return "d";
  return ir::dtype_bits(t) == 16 ? "h" : ir::dtype_bits(t) == 64 ? "l" : "r";
}

// What LLVM keeps apart by idle cycles it does not know inside of a text, nor that a text is of vector
// instructions. Sections "Required User-Inserted Wait States" of the manuals of CDNA 2 and CDNA 3.
constexpr const char* kAfterProducts = "s_nop 15\ns_nop 3\n";  // a product's result is read: 19
constexpr const char* kBefore = "s_nop 0\n";                   // a transcendental function's: 1
constexpr const char* kBehind = "\ns_nop 1";       // a result is read by another lane, or by a product: 2
constexpr const char* kBehindCarry = "\ns_nop 3";  // vcc is read by v_div_fmas: 4

bool waits_behind(llvm::StringRef instruction) {
  for (const char* name : {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"})
    if (instruction.starts_with(name)) return true;
  return instruction.contains("op_sel") || instruction.contains("dst_sel");  // parts of a register
}

std::string with_waits(const ir::NativeAsm& code, bool after_products) {
  std::string text = after_products ? kAfterProducts : kBefore;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(code.text).split(lines, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += '\n';
    if (i > 0 && lines[i].starts_with("v_div_fmas"))
      text += "s_nop 3\n";
    else if (i > 0 && waits_behind(lines[i - 1]))
      text += "s_nop 0\n";
    text += lines[i];
  }
  return text + (code.carry ? kBehindCarry : kBehind);
}

constexpr const char* kPrefix = "fn.";
constexpr size_t kMaxInstructions = 4096;

// As the text has them: 16-bit floats are no f32 there.
llvm::Type* text_type(llvm::LLVMContext& c, ir::DType t) {
  if (t == ir::DType::bf16) return llvm::Type::getBFloatTy(c);
  return t == ir::DType::f16 ? llvm::Type::getHalfTy(c) : held_type(c, t);
}

std::string type_text(const llvm::Type* t) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  t->print(stream);
  return text;
}

llvm::FunctionType* signature(llvm::LLVMContext& c, const ir::NativeFunction& f) {
  std::vector<llvm::Type*> results, parameters;
  for (size_t i = 0; i < f.results.size(); ++i) results.push_back(text_type(c, f.result_type(i)));
  for (const ir::Var& v : f.parameters) parameters.push_back(text_type(c, v.type));
  llvm::Type* result = results.size() == 1 ? results[0] : llvm::StructType::get(c, results);
  return llvm::FunctionType::get(result, parameters, false);
}

// Words of intrinsics that read no memory and are still no functions of their operands.
bool tells_of_the_thread(llvm::StringRef name) {
  for (const char* word :
       {"sreg",      "workitem", "workgroup",   "mbcnt", "lane", "ptr",      "clock",
        "memtime",   "getreg",   "dispatch",    "shfl",  "vote", "ballot",   "wave",
        "warp",      "dpp",      "swizzle",     "icmp",  "fcmp", "isspacep", "groupstaticsize",
        "live.mask", "softwqm",  "set.inactive"})
    if (name.contains(word)) return true;
  return false;
}

bool is_taken(const llvm::Function& intrinsic, const llvm::Triple& machine) {
  const llvm::StringRef name = intrinsic.getName();
  const bool nvidia = name.starts_with("llvm.nvvm."), amd = name.starts_with("llvm.amdgcn.");
  const bool x86 = name.starts_with("llvm.x86.");
  if (!intrinsic.isIntrinsic() || !intrinsic.doesNotAccessMemory() || intrinsic.isConvergent()) return false;
  if (llvm::Function::isTargetIntrinsic(intrinsic.getIntrinsicID())) {
    if (!(nvidia && machine.isNVPTX()) && !(amd && machine.isAMDGPU()) && !(x86 && machine.isX86()))
      return false;
    return !tells_of_the_thread(name);
  }
  for (const llvm::Type* t : intrinsic.getFunctionType()->params())
    if (t->isPtrOrPtrVectorTy() || t->isMetadataTy()) return false;
  return true;
}

// What is wrong with an instruction.
std::optional<std::string> refused(const llvm::Instruction& i, const llvm::Triple& machine) {
  if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) {
    if (!llvm::isa<llvm::CallInst>(call)) return std::string("a call that may be left early");
    if (call->isInlineAsm()) return std::string("inline assembly");
    const llvm::Function* callee = call->getCalledFunction();
    if (!callee) return std::string("a call of what is no function of the text");
    if (call->hasOperandBundles()) return std::string("operand bundles");
    if (callee->isDeclaration() && !is_taken(*callee, machine))
      return "a call of @" + callee->getName().str() +
             ", which is no function of the text and none of LLVM's that computes of its operands alone";
    return std::nullopt;
  }
  if (llvm::isa<llvm::AllocaInst>(i) || i.mayReadOrWriteMemory())
    return std::string("memory: ") + i.getOpcodeName();
  if (i.isEHPad() || i.isSpecialTerminator() || llvm::isa<llvm::IndirectBrInst>(i))
    return std::string("control flow that is none of branches");
  return std::nullopt;
}

// Functions call each other in no circle.
bool is_recursive(const llvm::Module& m) {
  std::map<const llvm::Function*, int> state;  // 1: being walked, 2: done
  std::vector<std::pair<const llvm::Function*, bool>> todo;
  for (const llvm::Function& f : m) todo.push_back({&f, false});
  while (!todo.empty()) {
    const auto [f, done] = todo.back();
    todo.pop_back();
    if (done) {
      state[f] = 2;
      continue;
    }
    if (state[f] == 2) continue;
    if (state[f] == 1) return true;
    state[f] = 1;
    todo.push_back({f, true});
    for (const llvm::Instruction& i : llvm::instructions(*f))
      if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&i))
        if (const llvm::Function* callee = call->getCalledFunction()) {
          if (state[callee] == 1) return true;
          if (state[callee] == 0) todo.push_back({callee, false});
        }
  }
  return false;
}

std::optional<std::string> judge(const llvm::Module& m, const ir::NativeFunction& f,
                                 const llvm::Triple& machine) {
  if (!m.global_empty()) return "it has the global @" + m.global_begin()->getName().str();
  if (!m.alias_empty() || !m.ifunc_empty()) return std::string("it has aliases");
  if (!m.getModuleInlineAsm().empty()) return std::string("it has inline assembly");
  size_t instructions = 0;
  for (const llvm::Function& g : m) {
    const std::string name = "@" + g.getName().str();
    if (g.hasPersonalityFn() || g.hasGC() || g.hasPrefixData() || g.hasPrologueData() || g.hasSection() ||
        g.hasComdat() || g.isVarArg())
      return name + " has more than parameters, a result and code";
    if (g.isDeclaration() && !is_taken(g, machine))
      return name +
             " is declared, not defined, and none of LLVM's functions that compute of their operands "
             "alone";
    for (const llvm::Instruction& i : llvm::instructions(g)) {
      ++instructions;
      if (auto why = refused(i, machine)) return name + " has " + *why;
    }
  }
  if (instructions > kMaxInstructions)
    return "it has " + std::to_string(instructions) + " instructions; at most " +
           std::to_string(kMaxInstructions) + " are taken";
  if (is_recursive(m)) return std::string("its functions call themselves");
  const llvm::Function* own = m.getFunction(f.name);
  if (!own || own->isDeclaration()) return "it defines no function @" + f.name;
  const llvm::FunctionType* want = signature(m.getContext(), f);
  if (own->getFunctionType() != want)
    return "@" + f.name + " is " + type_text(own->getFunctionType()) + ", expected " + type_text(want);
  return std::nullopt;
}

// The text as a module whose functions are internal, but for the first; null: `why` says what is wrong.
std::unique_ptr<llvm::Module> read(llvm::Module& into, const ir::NativeFunction& f,
                                   const ir::NativeText& text, std::string& why) {
  llvm::SMDiagnostic wrong;
  std::unique_ptr<llvm::Module> m = llvm::parseAssemblyString(text.text, wrong, into.getContext());
  if (!m) {
    why = "line " + std::to_string(wrong.getLineNo()) + ", column " +
          std::to_string(wrong.getColumnNo() + 1) + ": " + wrong.getMessage().str();
    return nullptr;
  }
  llvm::raw_string_ostream stream(why);
  if (llvm::verifyModule(*m, &stream)) return nullptr;
  why.clear();
  m->setTargetTriple(into.getTargetTriple());
  m->setDataLayout(into.getDataLayout());
  if (auto refusal = judge(*m, f, llvm::Triple(into.getTargetTriple()))) {
    why = *refusal;
    return nullptr;
  }
  llvm::StripDebugInfo(*m);
  while (!m->named_metadata_empty()) m->eraseNamedMetadata(&*m->named_metadata_begin());
  for (llvm::Function& g : *m) {
    if (g.isDeclaration()) continue;
    g.setAttributes({});
    g.setCallingConv(llvm::CallingConv::C);
    for (llvm::Use& use : g.uses())
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(use.getUser())) {
        call->setCallingConv(llvm::CallingConv::C);
        call->setTailCallKind(llvm::CallInst::TCK_None);
      }
    g.setVisibility(llvm::GlobalValue::DefaultVisibility);
    g.setLinkage(g.getName() == f.name ? llvm::GlobalValue::ExternalLinkage
                                       : llvm::GlobalValue::InternalLinkage);
    g.setName(kPrefix + f.name + (g.getName() == f.name ? "" : "." + g.getName().str()));
  }
  return m;
}

}  // namespace

llvm::CallInst* call_instructions(llvm::IRBuilder<>& b, const ir::NativeFunction& f,
                                  const ir::NativeText& text, const std::vector<llvm::Value*>& args,
                                  bool after_products, bool unused) {
  const bool nvptx = text.form == ir::NativeForm::ptx;
  const ir::NativeAsm code =
      ir::read_native_asm(text.form, text.text, f.results.size(), f.parameters.size()).code;
  std::vector<llvm::Type*> results, parameters;
  std::string constraints;
  const auto constrain = [&](const std::string& what) {
    constraints += (constraints.empty() ? "" : ",") + what;
  };
  // Several instructions write results while they still read parameters.
  const char* write = code.instructions > 1 ? "=&" : "=";
  for (size_t i = 0; i < f.results.size(); ++i) {
    const ir::DType t = f.result_type(i);
    results.push_back(is_half(t) ? b.getInt16Ty() : held_type(b.getContext(), t));
    constrain(std::string(write) + register_class(nvptx, t));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    parameters.push_back(args[i]->getType());
    constrain(register_class(nvptx, f.parameters[i].type));
  }
  if (code.carry) constrain("~{vcc}");
  llvm::Type* result = results.size() == 1 ? results[0] : llvm::StructType::get(b.getContext(), results);
  auto* type = llvm::FunctionType::get(result, parameters, false);
  // A comment names the function where an assembler's message shows the line.
  const std::string named =
      (nvptx ? "// " + f.name + "\n" + code.text : "; " + f.name + "\n" + with_waits(code, after_products));
  llvm::CallInst* call = b.CreateCall(llvm::InlineAsm::get(type, named, constraints, unused), args);
  if (!unused) call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  return call;
}

llvm::Type* matrix_words(llvm::IRBuilder<>& b, int64_t words) {
  if (words == 1) return b.getInt32Ty();
  return llvm::FixedVectorType::get(b.getInt32Ty(), static_cast<unsigned>(words));
}

// LLVM does not know that the text is a product: whatever stands around it waits as behind the longest.
llvm::CallInst* call_matrix_instruction(llvm::IRBuilder<>& b, const ir::NativeFunction& atom, llvm::Value* a,
                                        llvm::Value* with, llvm::Value* c, bool unused) {
  auto* type = llvm::FunctionType::get(c->getType(), {a->getType(), with->getType(), c->getType()}, false);
  const std::string text = "; " + atom.name + "\n" + kAfterProducts + atom.texts.front().text + "\n" +
                           std::string(kAfterProducts, std::strlen(kAfterProducts) - 1);
  // The sum is in the place of C, and in no register of A or B.
  llvm::CallInst* call = b.CreateCall(llvm::InlineAsm::get(type, text, "=&v,v,v,0", unused), {a, with, c});
  if (!unused) call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  call->setConvergent();
  return call;
}

llvm::Function* native_function(llvm::Module& into, const ir::NativeFunction& f, const ir::NativeText& text,
                                std::string& why) {
  const std::string symbol = kPrefix + f.name;
  if (llvm::Function* known = into.getFunction(symbol)) return known;
  std::unique_ptr<llvm::Module> m = read(into, f, text, why);
  if (!m) return nullptr;
  if (llvm::Linker::linkModules(into, std::move(m))) {
    why = "LLVM cannot link it";
    return nullptr;
  }
  llvm::Function* own = into.getFunction(symbol);
  own->setLinkage(llvm::GlobalValue::InternalLinkage);
  return own;
}

// Functions call each other in no circle, so this ends.
void inline_native_functions(llvm::Module& m) {
  std::vector<llvm::Function*> natives;
  for (llvm::Function& f : m)
    if (!f.isDeclaration() && f.getName().starts_with(kPrefix)) natives.push_back(&f);
  if (natives.empty()) return;
  for (bool any = true; any;) {
    any = false;
    for (llvm::Function* f : natives) {
      std::vector<llvm::CallInst*> calls;
      for (llvm::Use& use : f->uses())
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(use.getUser())) calls.push_back(call);
      for (llvm::CallInst* call : calls) {
        llvm::InlineFunctionInfo info;
        any |= llvm::InlineFunction(*call, info).isSuccess();
      }
    }
  }
  for (llvm::Function* f : natives)
    if (f->use_empty()) f->eraseFromParent();
}

namespace {

// Everything of LLVM that one check owns, in order of construction.
struct Check {
  std::string errors;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
  MachineCodeEmitter object;
};

// What the assembler of AMD targets says of a text, in a kernel that does nothing else; empty: nothing.
std::string assembler_message(Check& c, const ir::NativeFunction& f, const ir::NativeText& text,
                              const target::Target& target) {
  auto machine = make_machine("amdgcn-amd-amdhsa", target.cpu, target.features);
  if (!machine) return machine.error().to_text();
  c.machine = std::move(*machine);
  c.module->setDataLayout(c.machine->createDataLayout());
  llvm::IRBuilder<> b(c.context);
  std::vector<llvm::Type*> types;
  if (f.atom) {
    const ir::MatrixAtom& atom = *f.atom;
    const int64_t elements[] = {atom.m * atom.k, atom.k * atom.n, atom.m * atom.n};
    for (size_t i = 0; i < 3; ++i)
      types.push_back(matrix_words(
          b, elements[i] / ir::matrix_lanes(text.form) * ir::dtype_bytes(f.parameters[i].type) / 4));
  }
  for (const ir::Var& v : f.atom ? std::span<const ir::Var>() : std::span<const ir::Var>(f.parameters))
    types.push_back(is_half(v.type) ? b.getInt16Ty() : held_type(c.context, v.type));
  auto* kernel = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                        llvm::GlobalValue::ExternalLinkage, "k", *c.module);
  kernel->setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
  b.SetInsertPoint(llvm::BasicBlock::Create(c.context, "", kernel));
  std::vector<llvm::Value*> args;
  for (llvm::Argument& a : kernel->args()) args.push_back(&a);
  if (f.atom)
    call_matrix_instruction(b, f, args[0], args[1], args[2], /*unused=*/true);
  else
    call_instructions(b, f, text, args, /*after_products=*/false, /*unused=*/true);
  b.CreateRetVoid();
  if (!c.object.run(*c.machine, *c.module, llvm::CodeGenFileType::ObjectFile))
    return "the target writes no objects";
  // "<inline asm>:2:1: what is wrong", then the line, then a mark below it.
  std::vector<std::string> lines(1);
  for (const char letter : c.errors)
    if (letter == '\n')
      lines.emplace_back();
    else
      lines.back() += letter;
  const size_t place = lines[0].find(": ");
  if (lines.size() < 2 || place == lines[0].npos) return c.errors;
  return lines[0].substr(place + 2) + ": " + lines[1];
}

std::string message_of(Check& c, const ir::NativeFunction& f, const ir::NativeText& text,
                       const target::Target& target) {
  const char* triple = target.code == target::CodeFormat::ptx     ? "nvptx64-nvidia-cuda"
                       : target.code == target::CodeFormat::hsaco ? "amdgcn-amd-amdhsa"
                                                                  : "x86_64-unknown-linux-gnu";
  collect_diagnostics(c.context, c.errors);
  c.module = std::make_unique<llvm::Module>("tilegen", c.context);
  c.module->setTargetTriple(triple);
  if (text.form == ir::NativeForm::gcn) return assembler_message(c, f, text, target);
  std::string why;
  if (!native_function(*c.module, f, text, why) && why.empty()) why = c.errors;
  return why;
}

}  // namespace

std::optional<Error> check_native_text(Natives natives, const target::Target& target) {
  for (const auto& f : natives) {
    const ir::NativeText* text = native_text(*f, target.code);
    if (!text || text->form == ir::NativeForm::ptx) continue;
    ensure_backend();
    const GuardedScope calls_llvm;
    std::string why;
    const auto failure = run_compile(std::make_unique<Check>(), {}, [&](Check& c) -> std::optional<Error> {
      why = message_of(c, *f, *text, target);
      return std::nullopt;
    });
    if (failure) return *failure;
    if (why.empty()) continue;
    const char* way_out =
        f->atom
            ? "write a matrix instruction that the target has, or leave the atom out of the program for it"
        : ir::is_asm(text->form)
            ? "write instructions that the target has, or leave the text out: the meaning is "
              "compiled then"
            : "give a function that computes of its arguments alone, or leave the text out: "
              "the meaning is compiled then";
    return Error(DiagCode::bad_native_text, f->name,
                 std::string(ir::native_form_row(text->form).words) + " of '" + f->name + "' for " +
                     target.name + ": " + why,
                 way_out, f->location);
  }
  return std::nullopt;
}

}  // namespace tilegen::codegen
