// Branches, waits, barriers, the registers of the machine's mode.
#include "scalar_operands.h"

namespace tilegen::amdemu {

namespace {

constexpr int kModeRegister = 1;
constexpr uint32_t kRounding = 15;  // of MODE: all but nearest even is not modelled

void branch(Wave& w, const Instruction& in) {
  jump(w, in.address + 4 + static_cast<uint64_t>(4 * int64_t{static_cast<int16_t>(in.operands[0].value)}));
}

template <class F>
void branch_if(const char* name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    if (F{}(w)) branch(w, in);
  });
}

uint32_t field_mask(const Instruction& in) {
  return in.hardware_bits >= 32 ? ~0u : (1u << in.hardware_bits) - 1;
}

void set_register(Wave& w, const Instruction& in) {
  if (in.hardware_register != kModeRegister)
    fail("s_setreg of a register other than MODE: %s", in.text.c_str());
  const uint32_t mask = field_mask(in), value = scalar_operand<uint32_t>(w, in, 0);
  w.mode = (w.mode & ~(mask << in.hardware_first)) | (value & mask) << in.hardware_first;
  if (w.mode & kRounding) fail("rounding mode %u is not modelled", w.mode & kRounding);
}

void add_jumps() {
  add_operation("s_getpc_b64",
                [](Wave& w, const Instruction& in) { set_scalar<uint64_t>(w, in, in.address + in.size); });
  add_operation("s_setpc_b64",
                [](Wave& w, const Instruction& in) { jump(w, scalar_operand<uint64_t>(w, in, 0)); });
  add_operation("s_swappc_b64", [](Wave& w, const Instruction& in) {
    const auto to = scalar_operand<uint64_t>(w, in, 1);
    set_scalar<uint64_t>(w, in, in.address + in.size);
    jump(w, to);
  });
  add_operation("s_call_b64", [](Wave& w, const Instruction& in) {
    set_scalar<uint64_t>(w, in, in.address + 4);
    jump(w, in.address + 4 + static_cast<uint64_t>(4 * int64_t{static_cast<int16_t>(in.operands[1].value)}));
  });
  add_operation("s_branch", branch);
  branch_if("s_cbranch_scc0", [](Wave& w) { return !w.scc; });
  branch_if("s_cbranch_scc1", [](Wave& w) { return w.scc; });
  branch_if("s_cbranch_vccz", [](Wave& w) { return w.vcc() == 0; });
  branch_if("s_cbranch_vccnz", [](Wave& w) { return w.vcc() != 0; });
  branch_if("s_cbranch_execz", [](Wave& w) { return w.exec() == 0; });
  branch_if("s_cbranch_execnz", [](Wave& w) { return w.exec() != 0; });
}

void add_register_indexing() {
  add_operation("s_set_gpr_idx_on", [](Wave& w, const Instruction& in) {
    const auto operands = static_cast<uint32_t>(in.index_operands);
    w.scalars[kM0] =
        (w.scalars[kM0] & ~0xf0ffu) | (scalar_operand<uint32_t>(w, in, 0) & 0xff) | (operands & 15) << 12;
    w.index_mode = operands;
    w.indexing = true;
  });
  add_operation("s_set_gpr_idx_off", [](Wave& w, const Instruction&) { w.indexing = false; });
  add_operation("s_set_gpr_idx_mode", [](Wave& w, const Instruction& in) {
    w.index_mode = static_cast<uint32_t>(in.index_operands);
  });
  add_operation("s_set_gpr_idx_idx", [](Wave& w, const Instruction& in) {
    w.scalars[kM0] = (w.scalars[kM0] & ~0xffu) | (scalar_operand<uint32_t>(w, in, 0) & 0xff);
  });
}

}  // namespace

void add_scalar_control() {
  add_jumps();
  add_register_indexing();
  add_operation("s_endpgm", [](Wave& w, const Instruction&) {
    wait_for_all(w);
    w.done = true;
  });
  add_operation("s_barrier", [](Wave& w, const Instruction&) { w.at_barrier = true; });
  add_operation("s_sleep", [](Wave& w, const Instruction&) { w.yield = true; });
  add_operation("s_waitcnt", [](Wave& w, const Instruction& in) {
    if (in.operand_count) fail("s_waitcnt of a number: %s", in.text.c_str());
    wait_for(w, in.wait[0], in.wait[2]);
  });
  for (const char* name : {"s_nop", "s_setprio", "s_inst_prefetch", "s_icache_inv", "s_ttracedata",
                           "s_code_end", "s_sethalt", "s_decperflevel", "s_incperflevel", "s_sendmsg"})
    add_operation(name, [](Wave&, const Instruction&) {});
  add_operation("s_trap", [](Wave&, const Instruction&) { fail("s_trap reached"); });
  add_operation("s_getreg_b32", [](Wave& w, const Instruction& in) {
    const uint32_t v = in.hardware_register == kModeRegister ? w.mode : 0;
    set_scalar(w, in, v >> in.hardware_first & field_mask(in));
  });
  add_operation("s_setreg_b32", set_register);
  add_operation("s_setreg_imm32_b32", set_register);
  for (const char* name : {"s_memtime", "s_memrealtime"})
    add_operation(name, [](Wave& w, const Instruction& in) { set_scalar(w, in, w.machine->clock += 16); });
}

}  // namespace tilegen::amdemu
