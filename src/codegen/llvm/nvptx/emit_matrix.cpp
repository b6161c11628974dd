// Matrix instructions of a warp: ldmatrix, stmatrix, mma.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/nvptx/ptx_emitter.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

void PtxEmitter::emit_node(const LoadMatrix& load) {
  using namespace llvm::Intrinsic;
  static constexpr ID kIds[2][3] = {
      {nvvm_ldmatrix_sync_aligned_m8n8_x1_b16, nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
       nvvm_ldmatrix_sync_aligned_m8n8_x4_b16},
      {nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16, nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16,
       nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16}};
  const int size = load.matrices == 1 ? 0 : load.matrices == 2 ? 1 : 2;
  Value* from = pointer(b_, place(load.src, load.src_index));
  auto word = first_word(load.dst, load.dst_index);
  if (!word) return;
  Value* v = convergent(b_.CreateIntrinsic(kIds[load.transpose][size], {from->getType()}, {from}));
  for (int i = 0; i < load.matrices; ++i)
    registers_.set_register(load.dst, *word + i,
                            load.matrices > 1 ? b_.CreateExtractValue(v, static_cast<unsigned>(i)) : v);
}

void PtxEmitter::emit_node(const StoreMatrix& store) {
  if (!target_.store_matrix) return refuse(target_.name + " has no stmatrix");
  Place to = place(store.dst, store.dst_index);
  auto word = first_word(store.src, store.src_index);
  if (!word) return;
  std::string text = "stmatrix.sync.aligned.m8n8.x" + std::to_string(store.matrices);
  text += store.transpose ? ".trans.shared.b16 [$0+$1], {" : ".shared.b16 [$0+$1], {";
  std::string constraints = "r,n";
  Values operands = address(b_, to);
  for (int i = 0; i < store.matrices; ++i) {
    text += (i ? ", $" : "$") + std::to_string(2 + i);
    constraints += ",r";
    operands.push_back(packing_.bits(registers_.get_register(store.src, *word + i)));
  }
  convergent(ptx_.instruction(b_.getVoidTy(), text + "};", constraints + ",~{memory}", operands));
}

namespace {

llvm::Type* type_of(llvm::IRBuilder<>& b, MatrixWord w) {
  switch (w) {
    case MatrixWord::half2:
      return llvm::FixedVectorType::get(b.getHalfTy(), 2);
    case MatrixWord::f32:
      return b.getFloatTy();
    case MatrixWord::f64:
      return b.getDoubleTy();
    default:
      return b.getInt32Ty();
  }
}

Value* operand_of(llvm::IRBuilder<>& b, MatrixWord w, Value* v) {
  if (w == MatrixWord::tf32) return b.CreateIntrinsic(llvm::Intrinsic::nvvm_f2tf32_rna, {}, {v});
  return b.CreateBitCast(v, type_of(b, w));
}

char constraint_of(MatrixWord w) { return w == MatrixWord::f32 ? 'f' : w == MatrixWord::f64 ? 'd' : 'r'; }

// "mnemonic {d...}, {a...}, {b...}, {c...};" with one constraint for each register.
std::pair<std::string, std::string> assembly_of(std::string text, const MatrixOperands& row) {
  std::string constraints;
  int next = 0;
  auto list = [&](int count, const char* prefix, MatrixWord w) {
    text += next ? ", {" : " {";
    for (int i = 0; i < count; ++i, ++next) {
      text += (i ? ", $" : "$") + std::to_string(next);
      constraints += (next ? "," : "") + std::string(prefix) + constraint_of(w);
    }
    text += "}";
  };
  list(row.c, "=", row.c_word);
  list(row.a, "", row.a_word);
  list(row.b, "", row.a_word);
  list(row.c, "", row.c_word);
  if (row.places) {  // and the sparsity selector
    text += ", $" + std::to_string(next) + ", 0x0";
    constraints += ",r";
  }
  return {text + ";", constraints};
}

llvm::Function* declaration(llvm::Module& module, std::string_view name) {
  llvm::StringRef text(name.data(), name.size());
  llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(text);
  return id == llvm::Intrinsic::not_intrinsic ? nullptr : llvm::Intrinsic::getDeclaration(&module, id);
}

}  // namespace

void PtxEmitter::emit_byte_dots(const WarpMma& mma) {
  auto sign = [&](MemoryId m) { return program_.memory(m).type == ir::DType::u8 ? ".u32" : ".s32"; };
  const std::string text = std::string("dp4a") + sign(mma.a) + sign(mma.b) + " $0, $1, $2, $3;";
  emit_dots(mma, [&](Value* a, Value* b, Value* c) {
    llvm::CallInst* sum = ptx_.instruction(b_.getInt32Ty(), text, "=r,r,r,r", {a, b, c});
    sum->setDoesNotAccessMemory();
    return sum;
  });
}

PtxEmitter::Values PtxEmitter::mma_operands(const MatrixOperands& row, const WarpMma& mma) {
  Values operands;
  auto add = [&](MemoryId m, ir::ExprId index, int elements, int registers, MatrixWord w) {
    if (elements != registers * word_elements(program_.memory(m).type))
      return refuse("atom '" + mma.atom + "' takes " + std::to_string(registers) + " registers, '" +
                    program_.memory(m).name + "' gives " + std::to_string(elements) + " elements");
    auto word = first_word(m, index);
    for (int i = 0; word && i < registers; ++i)
      operands.push_back(operand_of(b_, w, registers_.get_register(m, *word + i)));
  };
  add(mma.a, mma.a_index, mma.a_registers, row.a, row.a_word);
  add(mma.b, mma.b_index, mma.b_registers, row.b, row.a_word);
  add(mma.c, mma.c_index, mma.c_registers, row.c, row.c_word);
  if (row.places != mma.places.valid())
    refuse("atom '" + mma.atom + (row.places ? "' takes a register of places" : "' takes no places"));
  else if (row.places)
    add(mma.places, mma.places_index, 1, 1, MatrixWord::i32);
  return operands;
}

void PtxEmitter::emit_node(const WarpMma& mma) {
  const target::MmaAtom* atom = target::find_mma_atom(target_, mma.atom);
  if (!atom) return refuse("no instruction for matrix atom '" + mma.atom + "'");
  if (atom->unit == target::MmaUnit::multiply_add) return emit_fma(mma);
  if (atom->unit == target::MmaUnit::dot) return emit_byte_dots(mma);
  const MatrixOperands row = matrix_operands(*atom);
  Values operands = mma_operands(row, mma);
  if (refused()) return;
  llvm::CallInst* call = nullptr;
  if (atom->given) {
    const std::string constraints = assembly_of("", row).second;
    std::vector<llvm::Type*> results(static_cast<size_t>(row.c), type_of(b_, row.c_word));
    call = ptx_.instruction(llvm::StructType::get(context_, results),
                            "// " + atom->name + "\n" + atom->instruction, constraints, operands);
    call->setDoesNotAccessMemory();
  } else if (llvm::Function* f = declaration(module_, atom->instruction)) {
    call = b_.CreateCall(f, operands);
  } else {
    if (atom->instruction.empty() || atom->instruction.starts_with("llvm."))
      return refuse("LLVM has no instruction for matrix atom '" + mma.atom + "'");
    auto [text, constraints] = assembly_of(atom->instruction, row);
    std::vector<llvm::Type*> results(static_cast<size_t>(row.c), type_of(b_, row.c_word));
    call = ptx_.instruction(llvm::StructType::get(context_, results), text, constraints, operands);
    call->setDoesNotAccessMemory();
  }
  convergent(call);
  auto word = first_word(mma.c, mma.c_index);
  for (int i = 0; word && i < row.c; ++i)
    registers_.set_register(mma.c, *word + i, b_.CreateExtractValue(call, static_cast<unsigned>(i)));
}

}  // namespace tilegen::codegen
