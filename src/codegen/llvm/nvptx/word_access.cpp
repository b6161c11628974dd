#include "codegen/llvm/nvptx/word_access.h"

#include <string>

#include "codegen/llvm/gpu/packing.h"
#include "codegen/llvm/nvptx/assembly.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using thread::Memory;
using thread::Space;

namespace {

const char* space_prefix(Space s) { return s == Space::shared ? "shared" : "global"; }

// The registers of one access: `count` of `bits` each.
struct Shape {
  int count = 1;
  unsigned bits = 32;
};

Shape shape_of(int64_t bytes, ir::DType t) {
  const int64_t word = word_bytes(t);
  if (bytes < word) return {1, static_cast<unsigned>(8 * bytes)};
  return {static_cast<int>(bytes / word), static_cast<unsigned>(8 * word)};
}

// "{$first, ...}" or "$first"
std::string register_list(int first, int count) {
  std::string text = count > 1 ? "{" : "";
  for (int i = 0; i < count; ++i) text += (i ? ", $" : "$") + std::to_string(first + i);
  return count > 1 ? text + "}" : text;
}

std::string type_suffix(const Shape& s) {
  return (s.count > 1 ? ".v" + std::to_string(s.count) : "") + ".b" + std::to_string(s.bits);
}

// 8-bit values live in 16-bit registers.
char register_class(const Shape& s) { return s.bits <= 16 ? 'h' : s.bits == 32 ? 'r' : 'l'; }
unsigned register_bits(const Shape& s) { return std::max(s.bits, 16u); }

// What an access says to the caches, in front of its type.
std::string cache_words(thread::Caching caching) {
  if (caching == thread::Caching::usual) return "";
  return caching == thread::Caching::no_allocate ? ".L1::no_allocate" : ".L2::cache_hint";
}

}  // namespace

Value* cache_policy(llvm::IRBuilder<>& b, thread::Caching caching) {
  if (caching != thread::Caching::evict_first && caching != thread::Caching::evict_last) return nullptr;
  const char* name = caching == thread::Caching::evict_first ? "evict_first" : "evict_last";
  llvm::CallInst* policy = Assembly(b).instruction(
      b.getInt64Ty(), std::string("createpolicy.fractional.L2::") + name + ".b64 $0, 1.0;", "=l", {});
  policy->setDoesNotAccessMemory();
  return policy;
}

std::vector<Value*> ptx_load_words(llvm::IRBuilder<>& b, const Place& at, const Memory& m, int64_t bytes,
                                   Value* condition, LoadKind kind) {
  const Shape s = shape_of(bytes, m.type);
  std::vector<Value*> words;
  const bool tells = m.space == Space::global && m.loads != thread::Caching::usual;
  if (!condition && !tells) {
    llvm::Type* type = b.getIntNTy(s.bits);
    if (s.count > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(s.count));
    Value* v = b.CreateAlignedLoad(type, pointer(b, at), llvm::Align(static_cast<uint64_t>(bytes)));
    for (int i = 0; i < s.count; ++i)
      words.push_back(s.count > 1 ? b.CreateExtractElement(v, static_cast<uint64_t>(i)) : v);
    return words;
  }
  std::string text = "{ ", constraints;
  for (int i = 0; i < s.count; ++i) {
    if (condition) text += "mov.b" + std::to_string(register_bits(s)) + " $" + std::to_string(i) + ", 0; ";
    constraints += std::string("=&") + register_class(s) + ",";
  }
  auto operand = [&](int i) { return "$" + std::to_string(s.count + i); };
  Value* policy = tells ? cache_policy(b, m.loads) : nullptr;
  if (condition) text += "@" + operand(2) + " ";
  text += std::string("ld.") + space_prefix(m.space) + (tells ? cache_words(m.loads) : "") + type_suffix(s) +
          " " + register_list(0, s.count) + ", [" + operand(0) + "+" + operand(1) + "]" +
          (policy ? ", " + operand(condition ? 3 : 2) : "") + "; }";
  constraints += m.space == Space::shared ? "r,n" : "l,n";
  if (condition) constraints += ",b";
  if (policy) constraints += ",l";
  if (kind == LoadKind::plain) constraints += ",~{memory}";
  llvm::Type* word = b.getIntNTy(register_bits(s));
  llvm::Type* type = word;
  if (s.count > 1)
    type =
        llvm::StructType::get(b.getContext(), std::vector<llvm::Type*>(static_cast<size_t>(s.count), word));
  std::vector<Value*> operands = address(b, at);
  if (condition) operands.push_back(condition);
  if (policy) operands.push_back(policy);
  llvm::CallInst* v = kind == LoadKind::early ? Assembly(b).effect(type, text, constraints, operands)
                                              : Assembly(b).instruction(type, text, constraints, operands);
  if (kind == LoadKind::standing) v->setDoesNotAccessMemory();
  for (int i = 0; i < s.count; ++i)
    words.push_back(s.count > 1 ? b.CreateExtractValue(v, static_cast<unsigned>(i)) : v);
  if (s.bits < 16) words[0] = b.CreateTrunc(words[0], b.getIntNTy(s.bits));
  return words;
}

void ptx_store_words(llvm::IRBuilder<>& b, const Place& at, const Memory& m, int64_t bytes,
                     std::vector<Value*> words, Value* condition, bool streaming) {
  const Shape s = shape_of(bytes, m.type);
  const bool tells = m.space == Space::global && m.stores != thread::Caching::usual;
  if (!condition && !streaming && !tells) {
    Value* v = words[0];
    if (s.count > 1) {
      v = llvm::PoisonValue::get(
          llvm::FixedVectorType::get(b.getIntNTy(s.bits), static_cast<unsigned>(s.count)));
      for (int i = 0; i < s.count; ++i)
        v = b.CreateInsertElement(v, words[static_cast<size_t>(i)], static_cast<uint64_t>(i));
    }
    b.CreateAlignedStore(v, pointer(b, at), llvm::Align(static_cast<uint64_t>(bytes)));
    return;
  }
  if (s.bits < 16) words[0] = b.CreateZExt(words[0], b.getInt16Ty());
  std::string text, constraints = m.space == Space::shared ? "r,n" : "l,n";
  for (int i = 0; i < s.count; ++i) constraints += std::string(",") + register_class(s);
  if (condition) {
    text = "@$" + std::to_string(2 + s.count) + " ";
    constraints += ",b";
  }
  Value* policy = tells ? cache_policy(b, m.stores) : nullptr;
  const std::string words_of_caches = tells ? cache_words(m.stores) : streaming ? ".cs" : "";
  text += std::string("st.") + space_prefix(m.space) + words_of_caches + type_suffix(s) + " [$0+$1], " +
          register_list(2, s.count) +
          (policy ? ", $" + std::to_string(2 + s.count + (condition ? 1 : 0)) : "") + ";";
  if (policy) constraints += ",l";
  std::vector<Value*> operands = address(b, at);
  operands.insert(operands.end(), words.begin(), words.end());
  if (condition) operands.push_back(condition);
  if (policy) operands.push_back(policy);
  Assembly(b).instruction(b.getVoidTy(), text, constraints + ",~{memory}", operands);
}

}  // namespace tilegen::codegen
