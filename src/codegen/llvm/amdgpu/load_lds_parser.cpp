#include "codegen/llvm/amdgpu/load_lds_parser.h"

#include <string>

#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCParser/MCParsedAsmOperand.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/TargetRegistry.h>

namespace tilegen::codegen {

namespace {

using llvm::AsmToken;
using llvm::MCOperand;
using llvm::SMLoc;

// LLVM's numbers stand in headers that are not installed; the names do not change.
unsigned opcode_of(const llvm::MCInstrInfo& all, llvm::StringRef name) {
  for (unsigned i = 0; i < all.getNumOpcodes(); ++i)
    if (all.getName(i) == name) return i;
  return 0;
}

//   s_nop 0
//   global_load_lds_dword v[4:5], off
//   buffer_load_dword v4, s[0:3], 0 offen lds
class LoadLdsParser final : public llvm::MCTargetAsmParser {
 public:
  LoadLdsParser(const llvm::MCSubtargetInfo& machine, llvm::MCAsmParser&, const llvm::MCInstrInfo& all,
                const llvm::MCTargetOptions& options)
      : MCTargetAsmParser(options, machine, all) {}

  bool parseRegister(llvm::MCRegister&, SMLoc&, SMLoc&) override { return true; }
  llvm::ParseStatus tryParseRegister(llvm::MCRegister&, SMLoc&, SMLoc&) override {
    return llvm::ParseStatus::NoMatch;
  }
  void convertToMapAndConstraints(unsigned, const llvm::OperandVector&) override {}

  bool ParseInstruction(llvm::ParseInstructionInfo&, llvm::StringRef name, SMLoc at,
                        llvm::OperandVector&) override {
    instruction_.clear();
    if (name == "s_nop") {
      static const unsigned opcode = opcode_of(MII, "S_NOP_vi");
      int64_t cycles = 0;
      if (getParser().parseIntToken(cycles, "a number is expected")) return true;
      instruction_.setOpcode(opcode);
      instruction_.addOperand(MCOperand::createImm(cycles));
    } else if (name == "buffer_load_dword") {
      static const unsigned opcode = opcode_of(MII, "BUFFER_LOAD_DWORD_LDS_OFFEN_gfx90a");
      unsigned offset = 0, buffer = 0;
      int64_t more = 0;
      if (parse_one(offset) || parse_word(AsmToken::Comma) || parse_several(buffer) ||
          parse_word(AsmToken::Comma) || getParser().parseIntToken(more, "a number is expected") ||
          parse_word(AsmToken::Identifier) || parse_word(AsmToken::Identifier))
        return true;
      instruction_.setOpcode(opcode);
      instruction_.addOperand(MCOperand::createReg(offset));
      instruction_.addOperand(MCOperand::createReg(buffer));
      instruction_.addOperand(MCOperand::createImm(more));
      instruction_.addOperand(MCOperand::createImm(0));  // offset
      instruction_.addOperand(MCOperand::createImm(0));  // how it is cached
    } else if (name == "global_load_lds_dword") {
      static const unsigned opcode = opcode_of(MII, "GLOBAL_LOAD_LDS_DWORD_gfx940");
      unsigned address = 0;
      if (parse_several(address) || parse_word(AsmToken::Comma) || parse_word(AsmToken::Identifier))
        return true;
      instruction_.setOpcode(opcode);
      instruction_.addOperand(MCOperand::createReg(address));
      instruction_.addOperand(MCOperand::createImm(0));  // offset
      instruction_.addOperand(MCOperand::createImm(0));  // how it is cached
    } else {
      return Error(at, "no instruction of tilegen's kernels");
    }
    return getParser().parseEOL();
  }

  bool MatchAndEmitInstruction(SMLoc at, unsigned&, llvm::OperandVector&, llvm::MCStreamer& out, uint64_t&,
                               bool) override {
    if (instruction_.getOpcode() == 0) return Error(at, "LLVM has no such instruction");
    instruction_.setLoc(at);
    out.emitInstruction(instruction_, getSTI());
    return false;
  }

 private:
  bool parse_word(AsmToken::TokenKind kind) { return getParser().parseToken(kind, "not as expected"); }
  bool find(const std::string& name, unsigned& reg) {
    const llvm::MCRegisterInfo& all = *getContext().getRegisterInfo();
    for (reg = all.getNumRegs() - 1; reg > 0; --reg)
      if (name == all.getName(reg)) return false;
    return true;
  }
  // v4
  bool parse_one(unsigned& reg) {
    llvm::StringRef word;
    return getParser().parseIdentifier(word) || find("VGPR" + word.drop_front().str(), reg);
  }
  // v[n:m] or s[n:m]
  bool parse_several(unsigned& reg) {
    llvm::StringRef kind;
    int64_t first = 0, last = 0;
    if (getParser().parseIdentifier(kind) || parse_word(AsmToken::LBrac) ||
        getParser().parseIntToken(first, "a number is expected") || parse_word(AsmToken::Colon) ||
        getParser().parseIntToken(last, "a number is expected") || parse_word(AsmToken::RBrac))
      return true;
    std::string name;
    for (int64_t n = first; n <= last; ++n)
      name += (n > first ? "_" : "") + kind.upper() + "GPR" + std::to_string(n);
    return find(name, reg);
  }

  llvm::MCInst instruction_;
};

}  // namespace

void register_load_lds_parser() {
  std::string unknown;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget("amdgcn-amd-amdhsa", unknown);
  if (target)  // tables of targets are LLVM's, and are filled by such calls
    llvm::RegisterMCAsmParser<LoadLdsParser> registered(*const_cast<llvm::Target*>(target));
}

}  // namespace tilegen::codegen
