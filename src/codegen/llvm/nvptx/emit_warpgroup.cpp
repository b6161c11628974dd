// Matrix products of a warpgroup.
//
// All k steps of a statement are one piece of assembly, with the fence before and the commit after where
// they are the statement's neighbours: nothing comes between them, and the accumulators are named to LLVM
// once. They are tied operands: the register that goes in comes out. The low half of a descriptor is an
// operand, the high half a constant.
#include "codegen/llvm/nvptx/ptx_emitter.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

// The assembly of one statement while it is put together. Operands are the results, then `operands`.
struct PtxEmitter::WarpgroupCode {
  target::WarpgroupInstruction instruction;
  int results = 0;
  bool a_in_registers = false, overwrites = false;
  // Operand numbers; accumulate 0: always, or never if it overwrites.
  size_t a = 0, b = 0, places = 0, accumulate = 0;
  bool a_moves = false, b_moves = false;  // the loop around moves the operand on
  std::string constraints;
  Values operands;

  size_t add(std::string constraint, Value* v) {
    constraints += (constraints.empty() ? "" : ",") + std::move(constraint);
    operands.push_back(v);
    return static_cast<size_t>(results) + operands.size() - 1;
  }
};

namespace {

constexpr int64_t kUnit = 16;    // bytes, of everything in a descriptor
constexpr int kSourceWords = 4;  // registers of A of one step

std::string operand_list(size_t first, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i) text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

// Bits 32 .. 63 of a descriptor: the distance of groups of 8 rows, the swizzle.
uint32_t high_descriptor(const MatrixForm& form) {
  const uint32_t swizzle = form.swizzle == 128 ? 1 : form.swizzle == 64 ? 2 : form.swizzle == 32 ? 3 : 0;
  return static_cast<uint32_t>(form.stride_bytes / kUnit) | swizzle << 30;
}

std::string number(int64_t v) { return std::to_string(v); }

}  // namespace

// Bits 0 .. 31 of a descriptor: the address, the distance along a row's direction. What does not depend on
// the loop comes first, and the rest is added in units: addresses of shared memory have no more units than
// the field holds.
Value* PtxEmitter::low_descriptor(MemoryId memory, ir::ExprId index, const MatrixForm& form) {
  const Memory& m = program_.memory(memory);
  const arith::Affine at = facts_.affine(index);  // a copy: emitting asks for further ones
  std::vector<Summand> parts = summands(at, ir::dtype_bytes(m.type));
  const int64_t constant = m.arena_offset + llvm::cast<llvm::ConstantInt>(parts.back().value)->getSExtValue();
  parts.pop_back();
  const bool in_units =
      constant % kUnit == 0 &&
      std::all_of(parts.begin(), parts.end(), [](const Summand& s) { return s.scale % kUnit == 0; });
  if (!in_units) parts.clear();
  Value* address = b_.CreatePtrToInt(
      in_units ? pointer(b_, {shared_, constant}) : pointer(b_, place(memory, at)), b_.getInt32Ty());
  Value* low = b_.CreateAnd(b_.CreateLShr(address, b_.getInt32(4)), b_.getInt32(0x3fff));
  const bool ignored = form.k_major && form.swizzle != 0;
  const int64_t leading = ignored ? 1 : form.leading_bytes / kUnit;
  low = b_.CreateOr(low, b_.getInt32(static_cast<uint32_t>(leading) << 16));
  for (Summand& s : parts) s.scale /= kUnit;
  Value* more = sum_narrow(b_, parts);
  return more ? b_.CreateAdd(low, more) : low;
}

bool PtxEmitter::fits(const WarpgroupMma& mma, const target::WarpgroupInstruction& instruction) {
  const target::WarpgroupAtom& atom = *instruction.atom;
  const bool a_in_registers = registers_.owns(mma.a);
  auto of = [&](const char* what) { return std::string(what) + " of '" + mma.atom + "'"; };
  if (!registers_.owns(mma.c)) return refuse(of("the accumulator") + " is not in registers"), false;
  if (atom.sparse() != mma.sparse() || (mma.sparse() && !registers_.owns(mma.places)))
    return refuse(of("the places") + (atom.sparse() ? " are not in registers" : " are none")), false;
  if (mma.a_steps.empty() || mma.a_steps.size() != mma.b_steps.size())
    return refuse(of("the steps") + " differ in number between A and B"), false;
  if (!atom.mn_major && (!mma.b_form.k_major || (!a_in_registers && !mma.a_form.k_major)))
    return refuse(of("the operands in shared memory") + " must have k as the fast dimension"), false;
  for (size_t s = 0; s < mma.a_steps.size(); ++s) {
    const int64_t a = mma.a_steps[s] * ir::dtype_bytes(atom.a), b = mma.b_steps[s] * ir::dtype_bytes(atom.b);
    if (a % (a_in_registers ? 4 * kSourceWords : kUnit) != 0 || b % kUnit != 0)
      return refuse(of("a step") + " is no multiple of 16 bytes"), false;
  }
  return true;
}

// Results and, unless the statement always overwrites, the registers they start from.
void PtxEmitter::add_accumulators(WarpgroupCode& code, const WarpgroupMma& mma) {
  auto first = first_word(mma.c, mma.c_index);
  if (!first) return;
  const ir::DType type = program_.memory(mma.c).type;
  code.results = code.instruction.n * ir::dtype_bytes(type) / 8;
  // Results are written before the last A, or its places, are read.
  const bool early = (code.a_in_registers || mma.sparse()) && type != ir::DType::f32;
  const std::string result = type == ir::DType::f32 ? "=f" : early ? "=&r" : "=r";
  for (int i = 0; i < code.results; ++i) code.constraints += (i ? "," : "") + result;
  if (code.overwrites) return;
  for (int i = 0; i < code.results; ++i) code.add(number(i), registers_.get_register(mma.c, *first + i));
}

// The sums so far are known to be zero.
bool PtxEmitter::starts_at_zero(const WarpgroupCode& code, const WarpgroupMma& mma) {
  const auto first = first_word(mma.c, mma.c_index);
  const int64_t words = code.instruction.n * ir::dtype_bytes(program_.memory(mma.c).type) / 8;
  for (int64_t i = 0; first && i < words; ++i) {
    const auto* known = llvm::dyn_cast<llvm::Constant>(registers_.get_register(mma.c, *first + i));
    if (!known || !known->isNullValue()) return false;
  }
  return first.has_value();
}

// The words of A in registers; the number of the first operand.
size_t PtxEmitter::add_words(WarpgroupCode& code, const WarpgroupMma& mma) {
  size_t begin = 0;
  const auto first = first_word(mma.a, mma.a_index);
  for (size_t s = 0; first && s < mma.a_steps.size(); ++s) {
    const int64_t word = *first + mma.a_steps[s] / word_elements(program_.memory(mma.a).type);
    for (int i = 0; i < kSourceWords; ++i) {
      const size_t at = code.add("r", packing_.bits(registers_.get_register(mma.a, word + i)));
      if (s == 0 && i == 0) begin = at;
    }
  }
  return begin;
}

// The words of places; the number of the first operand.
size_t PtxEmitter::add_places(WarpgroupCode& code, const WarpgroupMma& mma) {
  size_t begin = 0;
  const auto first = first_word(mma.places, mma.places_index);
  for (size_t s = 0; first && s < mma.a_steps.size(); ++s) {
    const size_t at = code.add("r", registers_.get_register(mma.places, *first + static_cast<int64_t>(s)));
    if (s == 0) begin = at;
  }
  return begin;
}

// What the product reads from registers beside its accumulators.
void PtxEmitter::add_inputs(WarpgroupCode& code, const WarpgroupMma& mma) {
  if (registers_.owns(mma.a)) add_words(code, mma);
  if (mma.sparse()) add_places(code, mma);
}

void PtxEmitter::add_sources(WarpgroupCode& code, const WarpgroupMma& mma) {
  if (code.a_in_registers) {
    code.a = add_words(code, mma);
  } else {
    code.a = code.add("r", low_descriptor(mma.a, mma.a_index, mma.a_form));
  }
  auto moves = [&](ir::ExprId index) {
    return !loops_.empty() && facts_.depends_on(index, loops_.back().var);
  };
  code.a_moves = !code.a_in_registers && moves(mma.a_index);
  code.b_moves = moves(mma.b_index);
  code.b = code.add("r", low_descriptor(mma.b, mma.b_index, mma.b_form));
  if (mma.sparse()) code.places = add_places(code, mma);
}

std::string PtxEmitter::products(const WarpgroupCode& code, const WarpgroupMma& mma) {
  const target::WarpgroupAtom& atom = *code.instruction.atom;
  const std::string name = std::string("wgmma.mma_async.") + (atom.sparse() ? "sp." : "") + "sync.aligned." +
                           mma.atom.substr(mma.atom.find(".m64") + 1) + " ";
  const std::string results = operand_list(0, static_cast<size_t>(code.results));
  std::string flags = ir::is_float(atom.c) ? ", 1, 1" : "";
  if (atom.mn_major && !code.a_in_registers) flags += mma.a_form.k_major ? ", 0" : ", 1";
  if (atom.mn_major) flags += mma.b_form.k_major ? ", 0" : ", 1";
  const ProductFolding& f = folding_[statement_];
  std::string text =
      "{\n.reg .pred always, first;\n.reg .b32 low, high_a, high_b;\n.reg .b64 a, b, first_a, first_b;\n";
  if (f.fence_first) text += "wgmma.fence.sync.aligned;\n";
  text += "setp.ne.b32 always, 1, 0;\n";
  if (code.overwrites) text += "setp.ne.b32 first, 0, 0;\n";
  if (!code.a_in_registers) text += "mov.b32 high_a, " + number(high_descriptor(mma.a_form)) + ";\n";
  text += "mov.b32 high_b, " + number(high_descriptor(mma.b_form)) + ";\n";
  // The halves of a descriptor are neighbouring registers. ptxas makes the first step's where the loop makes
  // its low half, and adds to both in one instruction; a low half that is kept over the loop it would copy
  // for that.
  auto first = [&](const std::string& to, size_t operand) {
    text += "mov.b64 first_" + to + ", {$" + std::to_string(operand) + ", high_" + to + "};\n";
  };
  if (code.a_moves) first("a", code.a);
  if (code.b_moves) first("b", code.b);
  auto descriptor = [&](const std::string& to, size_t operand, bool moves, int64_t bytes) {
    const std::string units = number(bytes / kUnit);
    text += moves ? "add.u64 " + to + ", first_" + to + ", " + units + ";\n"
                  : "add.u32 low, $" + std::to_string(operand) + ", " + units + ";\nmov.b64 " + to +
                        ", {low, high_" + to + "};\n";
  };
  for (size_t s = 0; s < mma.a_steps.size(); ++s) {
    if (!code.a_in_registers) descriptor("a", code.a, code.a_moves, mma.a_steps[s] * ir::dtype_bytes(atom.a));
    descriptor("b", code.b, code.b_moves, mma.b_steps[s] * ir::dtype_bytes(atom.b));
    const std::string a = code.a_in_registers ? operand_list(code.a + s * kSourceWords, kSourceWords) : "a";
    const std::string scale = s > 0                 ? "always"
                              : code.overwrites     ? "first"
                              : code.accumulate > 0 ? "$" + std::to_string(code.accumulate)
                                                    : "always";
    const std::string places = atom.sparse() ? "$" + std::to_string(code.places + s) + ", 0, " : "";
    text += name + results + ", " + a + ", b, " + places + scale + flags + ";\n";
  }
  if (f.commit_last) text += "wgmma.commit_group.sync.aligned;\n";
  return text + "}";
}

void PtxEmitter::emit_node(const WarpgroupMma& mma) {
  auto instruction = target::find_warpgroup_atom(target_, mma.atom);
  if (!instruction) return refuse("no instruction for matrix atom '" + mma.atom + "' of a warpgroup");
  if (!fits(mma, *instruction)) return;
  WarpgroupCode code;
  code.instruction = *instruction;
  code.a_in_registers = registers_.owns(mma.a);
  Value* accumulate = mma.accumulate.valid() ? value(mma.accumulate) : nullptr;
  if (auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(accumulate)) {
    code.overwrites = known->isZero();
    accumulate = nullptr;
  }
  // Zeros would be moved to the registers between the group's products.
  if (!accumulate && starts_at_zero(code, mma)) code.overwrites = true;
  add_accumulators(code, mma);
  add_sources(code, mma);
  if (accumulate) code.accumulate = code.add("b", accumulate);
  // The fence is for all instructions of the group: what they read from registers is there before it.
  for (const WarpgroupMma* next : folding_[statement_].after_fence) add_inputs(code, *next);
  if (refused()) return;
  const bool floats = program_.memory(mma.c).type == ir::DType::f32;
  std::vector<llvm::Type*> types(static_cast<size_t>(code.results),
                                 floats ? b_.getFloatTy() : b_.getInt32Ty());
  llvm::CallInst* call = ptx_.effect(llvm::StructType::get(context_, types), products(code, mma),
                                     code.constraints + ",~{memory}", code.operands);
  auto first = first_word(mma.c, mma.c_index);
  for (int i = 0; first && i < code.results; ++i)
    registers_.set_register(mma.c, *first + i, b_.CreateExtractValue(call, static_cast<unsigned>(i)));
}

void PtxEmitter::emit_node(const WarpgroupFence&) { ptx_.effect("wgmma.fence.sync.aligned;"); }

void PtxEmitter::emit_node(const WarpgroupCommit&) { ptx_.effect("wgmma.commit_group.sync.aligned;"); }

// The registers pass through the wait, so that no use of theirs can be moved before it.
void PtxEmitter::emit_node(const WarpgroupWait& wait) {
  // ptxas moves the wait as far up as registers allow, before the work that should hide it. It moves
  // nothing across a look at a transaction barrier, and a wait for arithmetic neither.
  if (wait.after_work && !program_.barriers.empty())
    ptx_.effect(b_.getVoidTy(),
                "{\n.reg .pred over;\nmbarrier.test_wait.parity.shared::cta.b64 over, [$0+$1], 0;\n}",
                "r,n,~{memory}",
                {shared_, b_.getInt32(static_cast<uint32_t>(program_.barriers.front().arena_offset))});
  const std::string text = "wgmma.wait_group.sync.aligned " + number(wait.pending) + ";";
  RegisterFile::Memories memories;
  for (MemoryId m : wait.registers)
    if (registers_.owns(m)) memories.insert(m.value);
  RegisterFile::Values before = registers_.values(memories);
  if (before.empty()) return ptx_.effect(text);
  for (Value*& v : before)
    if (v->getType()->isVectorTy()) v = packing_.bits(v);
  std::string constraints;
  std::vector<llvm::Type*> types;
  for (Value* v : before) {
    llvm::Type* t = v->getType();
    constraints += t->isFloatTy()                  ? "=f,"
                   : t->isDoubleTy()               ? "=d,"
                   : t->getIntegerBitWidth() == 64 ? "=l,"
                                                   : "=r,";
    types.push_back(t);
  }
  for (size_t i = 0; i < before.size(); ++i) constraints += std::to_string(i) + ",";
  llvm::Type* result = types.size() == 1 ? types[0] : llvm::StructType::get(context_, types);
  llvm::CallInst* call = ptx_.effect(result, text, constraints + "~{memory}", before);
  RegisterFile::Values after;
  for (size_t i = 0; i < before.size(); ++i)
    after.push_back(before.size() == 1 ? call : b_.CreateExtractValue(call, static_cast<unsigned>(i)));
  registers_.assign(memories, after);
}

}  // namespace tilegen::codegen
