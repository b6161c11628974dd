// Text of an instruction -> what the interpreter runs.
#include <algorithm>
#include <cstdarg>

#include "decode_operand.h"

namespace tilegen::amdemu {

namespace {

struct Token {
  std::string text;
  bool after_comma = false;
};

// Split at blanks and commas outside of brackets.
std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  std::string token;
  int depth = 0;
  bool comma = false;
  const auto close = [&] {
    if (token.empty()) return;
    tokens.push_back({token, comma});
    token.clear();
    comma = false;
  };
  for (char c : text) {
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth == 0 && (c == ' ' || c == '\t' || c == ',')) {
      close();
      comma |= c == ',';
    } else {
      token += c;
    }
  }
  close();
  return tokens;
}

std::string without_encoding(std::string mnemonic) {
  for (const char* suffix : {"_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"})
    if (mnemonic.ends_with(suffix)) return mnemonic.substr(0, mnemonic.size() - std::strlen(suffix));
  return mnemonic;
}

uint32_t number_of(Machine& machine, const std::string& mnemonic) {
  const auto [it, fresh] =
      machine.mnemonic_numbers.emplace(mnemonic, static_cast<uint32_t>(machine.mnemonics.size()));
  if (fresh) machine.mnemonics.push_back(mnemonic);
  return it->second;
}

// Instructions whose result of 16 bits keeps the other half of the register.
bool keeps_other_half(const std::string& base) {
  constexpr const char* kNames[] = {
      "v_mad_f16",   "v_fma_f16",   "v_mad_u16",  "v_mad_i16",  "v_div_fixup_f16", "v_mac_f16",  "v_fmac_f16",
      "v_madmk_f16", "v_madak_f16", "v_add_i16",  "v_sub_i16",  "v_min3_f16",      "v_max3_f16", "v_med3_f16",
      "v_min3_i16",  "v_max3_i16",  "v_med3_i16", "v_min3_u16", "v_max3_u16",      "v_med3_u16"};
  return std::find(std::begin(kNames), std::end(kNames), base) != std::end(kNames);
}

// Of two operands op_sel is printed as [a, result], of three as [a, b, result]; the result's bit is 8.
bool settle_op_sel(const std::string& base, Instruction& in) {
  for (const char* packed : {"v_pk_", "v_dot", "v_cvt_sr_", "v_mfma", "v_smfmac"})
    if (base.starts_with(packed)) return true;
  if (base.find("_mix") != std::string::npos) return true;
  const int sources = in.operand_count - 1;
  if (in.off0 == sources + 1) {
    const bool result = in.op_sel >> sources & 1;
    in.op_sel &= static_cast<uint8_t>((1u << sources) - 1);
    if (result) in.op_sel |= 8;
  } else if (in.off0 > sources + 1) {
    return false;
  }
  in.source_modified |= (in.op_sel & 7) != 0;
  in.result_modified |= (in.op_sel & 8) != 0;
  return true;
}

}  // namespace

void fail(const char* format, ...) {
  char text[1500];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw Fault(text);
}

std::unordered_map<std::string, Handler>& operations() {
  static std::unordered_map<std::string, Handler> all;
  return all;
}

void unknown_instruction(Wave&, const Instruction& in) {
  fail("the interpreter does not know: %s", in.text.empty() ? "(no instruction)" : in.text.c_str());
}

void parse_instruction(Machine& machine, const std::string& text, Instruction& in) {
  in.text = text;
  in.run = unknown_instruction;
  const std::vector<Token> tokens = tokens_of(text);
  if (tokens.empty()) return;
  in.mnemonic = number_of(machine, tokens[0].text);
  for (size_t i = 1; i < tokens.size(); ++i) {
    Operand o;
    const bool operand = (i == 1 || tokens[i].after_comma) && in.operand_count < 7;
    if (operand && parse_operand(tokens[i].text, o))
      in.operands[in.operand_count++] = o;
    else if (!parse_modifier(tokens[i].text, in))
      return;
  }
  const std::string base = without_encoding(tokens[0].text);
  for (int i = 0; i < in.operand_count; ++i)
    in.source_modified |= in.operands[i].neg || in.operands[i].abs || in.operands[i].sign_extend;
  in.source_modified |= in.dpp || in.sdwa;
  in.result_modified = in.sdwa && in.dst_select != 6;
  if (in.has_op_sel && !settle_op_sel(base, in)) return;
  if (keeps_other_half(base)) in.preserve = in.result_modified = true;
  if (const auto found = operations().find(base); found != operations().end())
    in.run = found->second;
  else if (!bind_memory(in, base) && !bind_matrix(in, base))
    in.run = unknown_instruction;
}

void load_code(Machine& machine, const std::vector<ListedInstruction>& listed) {
  machine.code.clear();
  if (listed.empty()) return;
  machine.code_base = listed.front().address;
  const uint64_t end = listed.back().address + listed.back().size;
  machine.instruction_at.assign((end - machine.code_base) / 4 + 1, -1);
  for (const ListedInstruction& l : listed) {
    Instruction in;
    in.address = l.address;
    in.size = l.size;
    in.encoding = l.words[0], in.encoding_high = l.words[1];
    parse_instruction(machine, l.text, in);
    machine.instruction_at[(l.address - machine.code_base) / 4] = static_cast<int>(machine.code.size());
    machine.code.push_back(std::move(in));
  }
}

}  // namespace tilegen::amdemu
