// Memory, and what is on its way to and from it: the queues that s_waitcnt counts.
#include "machine.h"

namespace tilegen::amdemu {

uint8_t* Machine::memory_at(uint64_t a, uint32_t n, bool wr, const char* what) {
  uint64_t k = a >> 32, off = a & 0xffffffffull;
  if (k >= regions.size() || !regions[k])
    fail("%s of %u bytes at unmapped address 0x%llx", what, n, (unsigned long long)a);
  Region& r = *regions[k];
  // A word is read, and swapped, whole where its last bytes lie behind the buffer.
  const bool whole_word = !wr || std::strcmp(what, "atomic") == 0;
  uint64_t lim = whole_word ? (r.size + 3) & ~3ull : r.size;
  if (off + n > lim)
    fail("%s of %u bytes at 0x%llx: offset %lld outside buffer '%s' of %llu bytes", what, n,
         (unsigned long long)a, off > 0x80000000ull ? (long long)(int32_t)off : (long long)off,
         r.name.c_str(), (unsigned long long)r.size);
  if (wr && !r.writable)
    fail("%s to read-only buffer '%s' offset %llu", what, r.name.c_str(), (unsigned long long)off);
  return r.bytes.data() + off;
}
Pending* Machine::new_pending() {
  if (!pool.empty()) {
    Pending* p = pool.back();
    pool.pop_back();
    *p = Pending();
    return p;
  }
  owned.push_back(std::make_unique<Pending>());
  return owned.back().get();
}

uint8_t* lds_at(Wave& w, const Instruction& in, uint64_t a, uint32_t n, bool wr) {
  Block& g = *w.block;
  if (a + n > g.lds.size())
    fail("LDS %s of %u bytes at 0x%llx outside %zu bytes: %s", wr ? "write" : "read", n,
         (unsigned long long)a, g.lds.size(), in.text.c_str());
  if (n > 1 && (a & ((n > 4 ? 4 : n) - 1))) w.machine->misaligned++;
  if (w.machine->report_unwritten) {
    if (wr)
      memset(&g.lds_written[a], 1, n);
    else
      for (uint32_t i = 0; i < n; i++)
        if (!g.lds_written[a + i]) {
          warn(w, in, "uninitialised LDS read at offset " + std::to_string(a + i) + ": " + in.text);
          break;
        }
  }
  return g.lds.data() + a;
}
void mark_written(Wave& w, int r, int n, uint64_t m) {
  if (w.machine->report_unwritten)
    for (int i = 0; i < n; i++) w.written[r + i] |= m;
}
namespace {

void finish(Wave& w, Pending* p) {
  if (!p->done) run_pending(w, *p);
  w.outstanding--;
  if (p->first_register >= 0) {
    if (p->scalar)
      for (int i = 0; i < p->registers; i++) w.scalars_outstanding[p->first_register + i]--;
    else
      for (int i = 0; i < p->registers; i++)
        w.vectors_outstanding[p->instruction->is_lds][p->first_register + i]--;
  }
  w.machine->pool.push_back(p);
}
void pop_vector(Wave& w) {
  Pending* p = w.vector_queue.front();
  w.vector_queue.pop_front();
  p->in_vector_queue = false;
  if (!p->in_lds_queue) finish(w, p);
}
void pop_lds(Wave& w, size_t i) {
  Pending* p = w.lds_queue[i];
  w.lds_queue.erase(w.lds_queue.begin() + i);
  p->in_lds_queue = false;
  if (!p->in_vector_queue) finish(w, p);
}

}  // namespace

void wait_for(Wave& w, int vm, int lg) {
  if (vm >= 0)
    while ((int)w.vector_queue.size() > vm) pop_vector(w);
  if (lg >= 0 && (int)w.lds_queue.size() > lg) {
    if (lg == 0)
      while (!w.lds_queue.empty()) pop_lds(w, 0);
    else {
      // adversarial: SMEM / flat (out of order) count as finished first, so only the DS surplus is known to
      // be done
      int ooo = 0;
      for (auto* p : w.lds_queue)
        if (p->scalar || !p->instruction->is_lds) ooo++;
      int n = (int)w.lds_queue.size() - lg - ooo;
      if (ooo == 0) n = (int)w.lds_queue.size() - lg;
      for (size_t i = 0; n > 0 && i < w.lds_queue.size();) {
        if (w.lds_queue[i]->instruction->is_lds) {
          pop_lds(w, i);
          n--;
        } else
          i++;
      }
    }
  }
}
void wait_for_all(Wave& w) { wait_for(w, 0, 0); }
// Waves of a block share a cache that takes their accesses in order (LLVM "User Guide for AMDGPU Backend",
// "Memory Model"): what the others have issued to memory comes before this. When it is waited for is theirs.
void take_turns(Wave& w) {
  for (const std::unique_ptr<Wave>& other : w.block->waves) {
    if (other.get() == &w) continue;
    for (Pending* p : other->vector_queue) {
      if (p->done || p->instruction->memory.lds || p->kind == PendingKind::scratch) continue;
      run_pending(*other, *p);
      p->done = true;
    }
  }
}

void issue(Wave& w, Pending* p) {
  if (!w.machine->lazy) {
    run_pending(w, *p);
    w.machine->pool.push_back(p);
    return;
  }
  w.outstanding++;
  if (p->first_register >= 0) {
    if (p->scalar)
      for (int i = 0; i < p->registers; i++) w.scalars_outstanding[p->first_register + i]++;
    else
      for (int i = 0; i < p->registers; i++)
        w.vectors_outstanding[p->instruction->is_lds][p->first_register + i]++;
  }
  if (p->in_vector_queue) {
    take_turns(w);
    if (w.vector_queue.size() >= 62) pop_vector(w);
    w.vector_queue.push_back(p);
  }
  if (p->in_lds_queue) {
    if (w.lds_queue.size() >= 15) {
      bool any = false;
      for (size_t i = 0; i < w.lds_queue.size(); i++)
        if (w.lds_queue[i]->instruction->is_lds) {
          pop_lds(w, i);
          any = true;
          break;
        }
      if (!any) pop_lds(w, 0);
    }
    w.lds_queue.push_back(p);
  }
}
void check_outstanding(Wave& w, const Instruction& in) {
  for (int i = 0; i < in.operand_count; i++) {
    const Operand& o = in.operands[i];
    if (o.kind == OperandKind::vector) {
      bool ld =
          i == 0 &&
          ((in.is_memory && in.memory.kind == 0 && !in.memory.lds) ||
           (in.is_lds && (in.memory.kind != 1)));  // a load result in the same queue comes back in order
      for (int k = 0; k < o.registers; k++) {
        int r = o.first + k;
        bool vm = w.vectors_outstanding[0][r], lg = w.vectors_outstanding[1][r];
        if (ld && !(in.is_memory && in.memory.space == 1)) {
          if (in.is_lds)
            lg = false;
          else
            vm = false;
        }
        if (vm || lg)
          fail("register %c%d used while a %s result for it is outstanding (missing s_waitcnt) at 0x%llx: %s",
               r < 256 ? 'v' : 'a', r & 255, vm ? "vmem" : "lds", (unsigned long long)in.address,
               in.text.c_str());
      }
    } else if (o.kind == OperandKind::scalar)
      for (int k = 0; k < o.registers; k++)
        if (o.first + k < 128 && w.scalars_outstanding[o.first + k])
          fail(
              "register s%d used while a scalar load for it is outstanding (missing s_waitcnt) at 0x%llx: %s",
              o.first + k, (unsigned long long)in.address, in.text.c_str());
  }
}

}  // namespace tilegen::amdemu
