// Instructions of Intel AMX on processors that have none: where one traps it is carried out here and the
// program goes on behind it. By Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2:
// LDTILECFG, TILERELEASE, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS, TDPFP16PS, TDPB{SS,SU,US,UU}D. Any
// other illegal instruction ends the process as before.
#pragma once

#include <cstdint>

namespace tilegen::amxemu {

// Once in a process; nothing where the processor has the instructions. False on other processors than x86-64.
bool emulate_amx();

// For handlers of SIGILL that come before: carries out the instruction at which a context (ucontext_t)
// stands. False where it is none of these, or emulate_amx was not called.
bool emulate_instruction(void* context);

// Instructions carried out by this thread so far.
int64_t emulated_instructions();

}  // namespace tilegen::amxemu
