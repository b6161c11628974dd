#include "disassembly.h"

#include <cstring>
#include <memory>
#include <stdexcept>

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

namespace tilegen::amdemu {

namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";

const llvm::Target& backend() {
  static const llvm::Target* const found = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    std::string why;
    const llvm::Target* t = llvm::TargetRegistry::lookupTarget(kTriple, why);
    if (!t) throw std::runtime_error(why);
    return t;
  }();
  return *found;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

}  // namespace

std::vector<ListedInstruction> disassemble(std::string_view code, uint64_t address, const std::string& cpu) {
  const llvm::Target& t = backend();
  const std::unique_ptr<llvm::MCRegisterInfo> registers(t.createMCRegInfo(kTriple));
  const std::unique_ptr<llvm::MCAsmInfo> assembly(
      t.createMCAsmInfo(*registers, kTriple, llvm::MCTargetOptions()));
  const std::unique_ptr<llvm::MCSubtargetInfo> subtarget(t.createMCSubtargetInfo(kTriple, cpu, ""));
  const std::unique_ptr<llvm::MCInstrInfo> instructions(t.createMCInstrInfo());
  llvm::MCContext context(llvm::Triple(kTriple), assembly.get(), registers.get(), subtarget.get());
  const std::unique_ptr<llvm::MCDisassembler> decoder(t.createMCDisassembler(*subtarget, context));
  const std::unique_ptr<llvm::MCInstPrinter> printer(
      t.createMCInstPrinter(llvm::Triple(kTriple), 0, *assembly, *instructions, *registers));
  std::vector<ListedInstruction> out;
  const auto* bytes = reinterpret_cast<const uint8_t*>(code.data());
  for (uint64_t at = 0; at + 4 <= code.size();) {
    ListedInstruction listed;
    listed.address = address + at;
    llvm::MCInst decoded;
    uint64_t size = 0;
    const auto status =
        decoder->getInstruction(decoded, size, {bytes + at, code.size() - at}, listed.address, llvm::nulls());
    if (status == llvm::MCDisassembler::Success) {
      llvm::raw_string_ostream stream(listed.text);
      printer->printInst(&decoded, listed.address, "", *subtarget, stream);
      stream.flush();
      listed.text = trimmed(listed.text);
    } else {
      size = 4;
    }
    listed.size = static_cast<uint32_t>(size);
    std::memcpy(listed.words, bytes + at, std::min<size_t>(sizeof listed.words, size));
    out.push_back(std::move(listed));
    at += size;
  }
  return out;
}

}  // namespace tilegen::amdemu
