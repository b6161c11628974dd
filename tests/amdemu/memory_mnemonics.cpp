// Memory instructions by their names.
#include <cstdlib>

#include "machine.h"

namespace tilegen::amdemu {

namespace {

bool load_form(const std::string& s, MemoryForm& d) {
  static const struct {
    const char* name;
    uint8_t size, words;
    bool sign_extend;
    uint8_t d16;
  } kForms[] = {{"ubyte", 1, 1, 0, 0},        {"sbyte", 1, 1, 1, 0},       {"ushort", 2, 1, 0, 0},
                {"sshort", 2, 1, 1, 0},       {"dword", 4, 1, 0, 0},       {"dwordx2", 4, 2, 0, 0},
                {"dwordx3", 4, 3, 0, 0},      {"dwordx4", 4, 4, 0, 0},     {"ubyte_d16", 1, 1, 0, 1},
                {"ubyte_d16_hi", 1, 1, 0, 2}, {"sbyte_d16", 1, 1, 1, 1},   {"sbyte_d16_hi", 1, 1, 1, 2},
                {"short_d16", 2, 1, 0, 1},    {"short_d16_hi", 2, 1, 0, 2}};
  for (auto& t : kForms)
    if (s == t.name) {
      d.size = t.size;
      d.words = t.words;
      d.sign_extend = t.sign_extend;
      d.d16 = t.d16;
      return true;
    }
  return false;
}
bool store_form(const std::string& s, MemoryForm& d) {
  static const struct {
    const char* name;
    uint8_t size, words, d16;
  } kForms[] = {{"byte", 1, 1, 0},  {"byte_d16_hi", 1, 1, 2}, {"short", 2, 1, 0},   {"short_d16_hi", 2, 1, 2},
                {"dword", 4, 1, 0}, {"dwordx2", 4, 2, 0},     {"dwordx3", 4, 3, 0}, {"dwordx4", 4, 4, 0}};
  for (auto& t : kForms)
    if (s == t.name) {
      d.size = t.size;
      d.words = t.words;
      d.d16 = t.d16;
      return true;
    }
  return false;
}
bool atomic_form(std::string s, MemoryForm& d) {
  static const std::map<std::string, int> T = {{"swap", kSwap},
                                               {"cmpswap", kCompareSwap},
                                               {"add", kAdd},
                                               {"sub", kSub},
                                               {"smin", kSignedMin},
                                               {"umin", kUnsignedMin},
                                               {"smax", kSignedMax},
                                               {"umax", kUnsignedMax},
                                               {"and", kAnd},
                                               {"or", kOr},
                                               {"xor", kXor},
                                               {"inc", kIncrement},
                                               {"dec", kDecrement},
                                               {"add_f32", kAddF32},
                                               {"pk_add_f16", kAddHalves},
                                               {"pk_add_bf16", kAddBf16},
                                               {"add_f64", kAddF64},
                                               {"min_f64", kMinF64},
                                               {"max_f64", kMaxF64}};
  if (s.size() > 3 && s.substr(s.size() - 3) == "_x2") {
    d.wide = true;
    s = s.substr(0, s.size() - 3);
  }
  auto it = T.find(s);
  if (it == T.end()) return false;
  d.operation = it->second;
  if (d.operation >= kAddF64 && d.operation <= kMaxF64) d.wide = true;
  return true;
}

const struct {
  const char* name;
  uint8_t kind, size, words;
  bool sign_extend;
  uint8_t d16;
  bool two_addresses, stride_64;
} kLdsForms[] = {{"read_b32", 0, 4, 1, 0, 0, 0, 0},        {"read_b64", 0, 4, 2, 0, 0, 0, 0},
                 {"read_b96", 0, 4, 3, 0, 0, 0, 0},        {"read_b128", 0, 4, 4, 0, 0, 0, 0},
                 {"read_u8", 0, 1, 1, 0, 0, 0, 0},         {"read_i8", 0, 1, 1, 1, 0, 0, 0},
                 {"read_u16", 0, 2, 1, 0, 0, 0, 0},        {"read_i16", 0, 2, 1, 1, 0, 0, 0},
                 {"read_u8_d16", 0, 1, 1, 0, 1, 0, 0},     {"read_u8_d16_hi", 0, 1, 1, 0, 2, 0, 0},
                 {"read_i8_d16", 0, 1, 1, 1, 1, 0, 0},     {"read_i8_d16_hi", 0, 1, 1, 1, 2, 0, 0},
                 {"read_u16_d16", 0, 2, 1, 0, 1, 0, 0},    {"read_u16_d16_hi", 0, 2, 1, 0, 2, 0, 0},
                 {"read2_b32", 0, 4, 1, 0, 0, 1, 0},       {"read2st64_b32", 0, 4, 1, 0, 0, 1, 1},
                 {"read2_b64", 0, 4, 2, 0, 0, 1, 0},       {"read2st64_b64", 0, 4, 2, 0, 0, 1, 1},
                 {"write_b32", 1, 4, 1, 0, 0, 0, 0},       {"write_b64", 1, 4, 2, 0, 0, 0, 0},
                 {"write_b96", 1, 4, 3, 0, 0, 0, 0},       {"write_b128", 1, 4, 4, 0, 0, 0, 0},
                 {"write_b8", 1, 1, 1, 0, 0, 0, 0},        {"write_b16", 1, 2, 1, 0, 0, 0, 0},
                 {"write_b8_d16_hi", 1, 1, 1, 0, 2, 0, 0}, {"write_b16_d16_hi", 1, 2, 1, 0, 2, 0, 0},
                 {"write2_b32", 1, 4, 1, 0, 0, 1, 0},      {"write2st64_b32", 1, 4, 1, 0, 0, 1, 1},
                 {"write2_b64", 1, 4, 2, 0, 0, 1, 0},      {"write2st64_b64", 1, 4, 2, 0, 0, 1, 1}};

const std::map<std::string, int> kLdsAtomics = {{"add_u32", kAdd},
                                                {"sub_u32", kSub},
                                                {"rsub_u32", kReverseSub},
                                                {"inc_u32", kIncrement},
                                                {"dec_u32", kDecrement},
                                                {"min_i32", kSignedMin},
                                                {"max_i32", kSignedMax},
                                                {"min_u32", kUnsignedMin},
                                                {"max_u32", kUnsignedMax},
                                                {"and_b32", kAnd},
                                                {"or_b32", kOr},
                                                {"xor_b32", kXor},
                                                {"mskor_b32", kMaskedOr},
                                                {"cmpst_b32", kCompareSwap},
                                                {"wrxchg_b32", kSwap},
                                                {"add_f32", kAddF32},
                                                {"min_f32", kMinF32},
                                                {"max_f32", kMaxF32},
                                                {"pk_add_f16", kAddHalves},
                                                {"pk_add_bf16", kAddBf16},
                                                {"add_u64", kAdd},
                                                {"sub_u64", kSub},
                                                {"rsub_u64", kReverseSub},
                                                {"inc_u64", kIncrement},
                                                {"dec_u64", kDecrement},
                                                {"min_i64", kSignedMin},
                                                {"max_i64", kSignedMax},
                                                {"min_u64", kUnsignedMin},
                                                {"max_u64", kUnsignedMax},
                                                {"and_b64", kAnd},
                                                {"or_b64", kOr},
                                                {"xor_b64", kXor},
                                                {"cmpst_b64", kCompareSwap},
                                                {"wrxchg_b64", kSwap},
                                                {"add_f64", kAddF64},
                                                {"min_f64", kMinF64},
                                                {"max_f64", kMaxF64}};

bool bind_lds(Instruction& in, const std::string& m) {
  MemoryForm& d = in.memory;
  std::string s = m.substr(3);
  if (s == "nop") {
    in.run = [](Wave&, const Instruction&) {};
    return true;
  }
  in.is_lds = true;
  if (s == "bpermute_b32") {
    in.run = [](Wave& w, const Instruction& i) { issue_lane_exchange(w, i, LaneExchange::backward); };
    return true;
  }
  if (s == "permute_b32") {
    in.run = [](Wave& w, const Instruction& i) { issue_lane_exchange(w, i, LaneExchange::forward); };
    return true;
  }
  if (s == "swizzle_b32") {
    in.run = [](Wave& w, const Instruction& i) { issue_lane_exchange(w, i, LaneExchange::swizzle); };
    return true;
  }
  in.run = issue_lds;
  for (auto& t : kLdsForms)
    if (s == t.name) {
      d.kind = t.kind;
      d.size = t.size;
      d.words = t.words;
      d.sign_extend = t.sign_extend;
      d.d16 = t.d16;
      d.two_addresses = t.two_addresses;
      d.stride_64 = t.stride_64;
      return true;
    }

  size_t p = s.find("_rtn");
  std::string b = s;
  if (p != std::string::npos) {
    b = s.substr(0, p) + s.substr(p + 4);
    d.ret = true;
  }
  auto it = kLdsAtomics.find(b);
  if (it == kLdsAtomics.end()) return false;
  d.kind = 2;
  d.operation = it->second;
  d.wide = b.size() > 2 && b.substr(b.size() - 2) == "64";
  return true;
}
}  // namespace

bool bind_memory(Instruction& in, const std::string& m) {
  MemoryForm& d = in.memory;
  auto pre = [&](const char* p) { return m.compare(0, strlen(p), p) == 0; };
  if (pre("ds_")) return bind_lds(in, m);
  if (pre("s_load_dword") || pre("s_buffer_load_dword")) {
    size_t p = m.find("dword") + 5;
    d.words = p < m.size() ? atoi(m.c_str() + p + 1) : 1;
    d.space = pre("s_buffer") ? 2 : 0;
    in.is_scalar_load = true;
    in.run = issue_scalar_load;
    return true;
  }
  if (pre("buffer_wb") || pre("buffer_inv") || pre("s_dcache")) {
    in.run = [](Wave&, const Instruction&) {};
    return true;
  }
  size_t off;
  if (pre("global_"))
    d.space = 0, off = 7;
  else if (pre("flat_"))
    d.space = 1, off = 5;
  else if (pre("buffer_"))
    d.space = 2, off = 7;
  else if (pre("scratch_"))
    d.space = 3, off = 8;
  else
    return false;
  std::string s = m.substr(off);
  in.is_memory = true;
  in.run = issue_vector_memory;
  d.lds = in.lds;
  if (!s.compare(0, 9, "load_lds_")) {
    d.lds = true;
    d.kind = 0;
    return load_form(s.substr(9), d);
  }
  if (!s.compare(0, 5, "load_")) {
    d.kind = 0;
    return load_form(s.substr(5), d);
  }
  if (!s.compare(0, 6, "store_")) {
    d.kind = 1;
    return store_form(s.substr(6), d);
  }
  if (!s.compare(0, 7, "atomic_")) {
    d.kind = 2;
    return atomic_form(s.substr(7), d);
  }
  return false;
}

}  // namespace tilegen::amdemu
