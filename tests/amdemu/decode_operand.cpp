#include "decode_operand.h"

#include <cctype>
#include <cstdlib>

namespace tilegen::amdemu {

namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool parse_number(const std::string& text, Operand& o) {
  const bool negative = text.starts_with('-');
  const std::string digits = text.substr(negative);
  if (digits.empty() || !digit(digits[0])) return false;
  o.kind = OperandKind::immediate;
  if (digits.starts_with("0x")) {
    const auto v = static_cast<int64_t>(std::strtoull(digits.c_str(), nullptr, 16));
    o.value = negative ? -v : v;
    o.is_literal = true;
  } else if (digits.find_first_of(".e") != std::string::npos) {
    o.is_float = true;
    o.real = std::strtod(text.c_str(), nullptr);
  } else {
    o.value = std::strtoll(text.c_str(), nullptr, 10);
    o.is_literal = o.value < -16 || o.value > 64;
  }
  return true;
}

struct NamedOperand {
  const char* name;
  OperandKind kind;
  int first, registers;
  uint64_t value;
};
constexpr uint64_t kAll = 0xffffffff;
constexpr NamedOperand kNamed[] = {
    {"vcc", OperandKind::scalar, kVcc, 2, 0},
    {"vcc_lo", OperandKind::scalar, kVcc, 1, 0},
    {"vcc_hi", OperandKind::scalar, kVcc + 1, 1, 0},
    {"exec", OperandKind::scalar, kExec, 2, 0},
    {"exec_lo", OperandKind::scalar, kExec, 1, 0},
    {"exec_hi", OperandKind::scalar, kExec + 1, 1, 0},
    {"m0", OperandKind::scalar, kM0, 1, 0},
    {"flat_scratch", OperandKind::scalar, 102, 2, 0},
    {"flat_scratch_lo", OperandKind::scalar, 102, 1, 0},
    {"flat_scratch_hi", OperandKind::scalar, 103, 1, 0},
    {"xnack_mask", OperandKind::scalar, 104, 2, 0},
    {"xnack_mask_lo", OperandKind::scalar, 104, 1, 0},
    {"xnack_mask_hi", OperandKind::scalar, 105, 1, 0},
    {"off", OperandKind::off, 0, 1, 0},
    {"scc", OperandKind::scc, 0, 1, 0},
    {"src_scc", OperandKind::scc, 0, 1, 0},
    {"src_vccz", OperandKind::vccz, 0, 1, 0},
    {"src_execz", OperandKind::execz, 0, 1, 0},
    {"src_shared_base", OperandKind::aperture, 0, 1, uint64_t{kSharedAperture} << 32},
    {"src_shared_limit", OperandKind::aperture, 0, 1, uint64_t{kSharedAperture} << 32 | kAll},
    {"src_private_base", OperandKind::aperture, 0, 1, uint64_t{kPrivateAperture} << 32},
    {"src_private_limit", OperandKind::aperture, 0, 1, uint64_t{kPrivateAperture} << 32 | kAll},
};

// "v3", "s[4:7]", "a[0]", "ttmp5"
bool parse_register(const std::string& text, Operand& o) {
  for (const NamedOperand& n : kNamed)
    if (text == n.name) {
      o.kind = n.kind;
      o.first = static_cast<uint16_t>(n.first);
      o.registers = static_cast<uint8_t>(n.registers);
      o.value = static_cast<int64_t>(n.value);
      return true;
    }
  const bool trap = text.starts_with("ttmp");
  const char file = text.empty() ? ' ' : text[0];
  if (!trap && file != 'v' && file != 'a' && file != 's') return false;
  const std::string numbers = text.substr(trap ? 4 : 1);
  if (numbers.empty() || (numbers[0] != '[' && !digit(numbers[0]))) return false;
  if (numbers[0] != '[' && numbers.find_first_not_of("0123456789") != std::string::npos) return false;
  const std::vector<int> found = numbers_in(numbers);
  if (found.empty()) return false;
  o.kind = !trap && file != 's' ? OperandKind::vector : OperandKind::scalar;
  o.first = static_cast<uint16_t>(found[0] + (trap ? 108 : file == 'a' ? 256 : 0));
  o.registers = static_cast<uint8_t>(found.back() - found[0] + 1);
  return true;
}

// "name(text)" -> text
bool inside(std::string& text, const std::string& open, const char* close) {
  if (!text.starts_with(open) || !text.ends_with(close) || text.size() <= open.size()) return false;
  text = text.substr(open.size(), text.size() - open.size() - 1);
  return true;
}

int selection_of(const std::string& text) {
  constexpr const char* kNames[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
  for (int i = 0; i < 7; ++i)
    if (text == kNames[i]) return i;
  return -1;
}

// The lane that lane `l` takes its source from, -1: none.
int source_lane(const std::string& control, const std::vector<int>& a, int l) {
  const int row = l & ~15, column = l & 15, n = a.empty() ? 0 : a[0];
  if (control == "quad_perm") return (l & ~3) | a[static_cast<size_t>(l & 3)];
  if (control == "row_shl") return column + n < 16 ? l + n : -1;
  if (control == "row_shr") return column - n >= 0 ? l - n : -1;
  if (control == "row_ror") return row | ((column - n) & 15);
  if (control == "wave_shl") return l + 1 < kLanes ? l + 1 : -1;
  if (control == "wave_shr") return l - 1;
  if (control == "wave_rol") return (l + 1) & 63;
  if (control == "wave_ror") return (l - 1) & 63;
  if (control == "row_mirror") return row | (15 - column);
  if (control == "row_half_mirror") return (l & ~7) | (7 - (l & 7));
  if (control == "row_bcast") return n == 15 ? (l >= 16 ? row - 1 : -1) : (l >= 32 ? 31 : -1);
  return row | n;  // row_newbcast
}

bool parse_dpp(const std::string& control, const std::vector<int>& numbers, Instruction& in) {
  constexpr const char* kControls[] = {
      "quad_perm", "row_shl",  "row_shr",      "row_ror", "row_bcast", "wave_shl",   "wave_shr",
      "wave_rol",  "wave_ror", "row_newbcast", "",        "",          "row_mirror", "row_half_mirror"};
  bool known = false;
  for (const char* c : kControls) known |= control == c;
  if (!known || control.empty()) return false;
  in.dpp = true;
  for (int l = 0; l < kLanes; ++l) in.lane_source[l] = static_cast<int8_t>(source_lane(control, numbers, l));
  return true;
}

uint8_t bits_of(const std::vector<int>& flags) {
  uint8_t bits = 0;
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) bits |= static_cast<uint8_t>(1u << i);
  return bits;
}

bool parse_flag(const std::string& t, Instruction& in) {
  struct Flag {
    const char* name;
    bool Instruction::*flag;
  };
  constexpr Flag kFlags[] = {
      {"sc0", &Instruction::sc0},     {"sc1", &Instruction::sc1}, {"nt", &Instruction::nt},
      {"glc", &Instruction::glc},     {"lds", &Instruction::lds}, {"offen", &Instruction::offen},
      {"idxen", &Instruction::idxen}, {"gds", &Instruction::gds}, {"clamp", &Instruction::clamp}};
  for (const Flag& f : kFlags)
    if (t == f.name) return in.*f.flag = true;
  return t == "slc" || t == "scc" || t == "dlc";
}

// "vmcnt(0)", "hwreg(HW_REG_MODE, 4, 2)", "gpr_idx(SRC0)"
bool parse_call(const std::string& t, Instruction& in) {
  constexpr const char* kCounters[] = {"vmcnt(", "expcnt(", "lgkmcnt("};
  for (int i = 0; i < 3; ++i)
    if (t.starts_with(kCounters[i])) {
      in.wait[i] = numbers_in(t)[0];
      return true;
    }
  if (t.starts_with("hwreg(")) {
    const std::string name = t.substr(6, t.find_first_of(",)") - 6);
    in.hardware_register = name == "HW_REG_MODE"     ? 1
                           : name == "HW_REG_STATUS" ? 2
                           : digit(name[0])          ? std::atoi(name.c_str())
                                                     : 99;
    const size_t comma = t.find(',');
    if (comma == std::string::npos) return true;
    const std::vector<int> field = numbers_in(t.substr(comma));
    if (!field.empty()) in.hardware_first = field[0];
    if (field.size() > 1) in.hardware_bits = field[1];
    return true;
  }
  if (t.starts_with("gpr_idx(")) {
    in.index_operands = 0;
    constexpr const char* kOperands[] = {"SRC0", "SRC1", "SRC2", "DST"};
    for (int i = 0; i < 4; ++i)
      if (t.find(kOperands[i]) != std::string::npos) in.index_operands |= 1 << i;
    return true;
  }
  return t.starts_with("sendmsg(");
}

bool parse_number_field(const std::string& key, const std::string& text, Instruction& in) {
  const auto number = static_cast<int>(std::strtoll(text.c_str(), nullptr, 0));
  if (key == "offset")
    in.offset = text.starts_with("swizzle(") ? static_cast<int>(in.encoding & 0xffff) : number;
  else if (key == "offset0")
    in.off0 = number;
  else if (key == "offset1")
    in.off1 = number;
  else if (key == "mul")
    in.omod = static_cast<float>(number);
  else if (key == "div")
    in.omod = 1.f / static_cast<float>(number);
  else if (key == "row_mask")
    in.row_mask = static_cast<uint8_t>(number);
  else if (key == "bank_mask")
    in.bank_mask = static_cast<uint8_t>(number);
  else if (key == "bound_ctrl")
    in.bound_ctrl = true;
  else if (key == "cbsz")
    in.cbsz = number;
  else if (key == "abid")
    in.abid = number;
  else if (key == "blgp")
    in.blgp = number;
  else
    return false;
  return true;
}

bool parse_selection(const std::string& key, const std::string& text, Instruction& in) {
  const auto selection = static_cast<uint8_t>(selection_of(text));
  if (key == "dst_sel")
    in.dst_select = selection;
  else if (key == "dst_unused")
    in.dst_unused = text == "UNUSED_PAD" ? 0 : text == "UNUSED_SEXT" ? 1 : 2;
  else if (key == "src0_sel")
    in.src_select[0] = selection;
  else if (key == "src1_sel")
    in.src_select[1] = selection;
  else
    return false;
  return in.sdwa = true;
}

bool parse_field(const std::string& key, const std::string& text, Instruction& in) {
  const std::vector<int> numbers = numbers_in(text);
  if (key == "op_sel") {
    in.has_op_sel = true;
    in.op_sel |= bits_of(numbers);
    in.off0 = static_cast<int>(numbers.size());
  } else if (key == "op_sel_hi") {
    in.has_op_sel_hi = true;
    in.op_sel_hi = bits_of(numbers);
  } else if (key == "neg_lo" || key == "neg") {
    in.neg_lo |= bits_of(numbers);
  } else if (key == "neg_hi") {
    in.neg_hi |= bits_of(numbers);
  } else {
    return parse_dpp(key, numbers, in) || parse_number_field(key, text, in) || parse_selection(key, text, in);
  }
  return true;
}

}  // namespace

std::vector<int> numbers_in(const std::string& text) {
  std::vector<int> found;
  for (const char* p = text.c_str(); *p;) {
    if (!digit(*p)) {
      ++p;
      continue;
    }
    char* end = nullptr;
    found.push_back(static_cast<int>(std::strtol(p, &end, 0)));
    p = end;
  }
  return found;
}

bool parse_operand(std::string text, Operand& o) {
  if (parse_number(text, o)) return true;
  if (text.starts_with('-')) {
    o.neg = true;
    text = text.substr(1);
  }
  if (inside(text, "neg(", ")")) o.neg = true;
  if (inside(text, "|", "|")) o.abs = true;
  if (inside(text, "abs(", ")")) o.abs = true;
  if (inside(text, "sext(", ")")) o.sign_extend = true;
  return parse_number(text, o) || parse_register(text, o);
}

bool parse_modifier(const std::string& text, Instruction& in) {
  if (parse_flag(text, in) || parse_dpp(text, {}, in) || parse_call(text, in)) return true;
  const size_t colon = text.find(':');
  return colon != std::string::npos && parse_field(text.substr(0, colon), text.substr(colon + 1), in);
}

}  // namespace tilegen::amdemu
