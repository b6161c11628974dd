// Memory instructions, issued: which lanes, addresses and data.
#include <algorithm>

#include "vector_operands.h"

namespace tilegen::amdemu {

namespace {

void take_data(Wave& w, const Instruction& in, const Operand& o, Pending* p, int at, int n) {
  if (o.kind != OperandKind::vector) fail("memory data operand: %s", in.text.c_str());
  if (w.machine->report_unwritten)
    for (int i = 0; i < n; i++) {
      uint64_t u = ~w.written[o.first + i] & p->lanes;
      if (u) unwritten_read(w, in, o.first + i, u);
    }
  for (int i = 0; i < n; i++) memcpy(p->data[at + i], w.vectors + (o.first + i) * 64, 256);
}
const uint32_t* address_registers(Wave& w, const Instruction& in, const Operand& o, int n) {
  if (o.kind != OperandKind::vector) fail("memory address operand: %s", in.text.c_str());
  if (w.machine->report_unwritten)
    for (int i = 0; i < n; i++) {
      uint64_t u = ~w.written[o.first + i] & w.exec();
      if (u) unwritten_read(w, in, o.first + i, u);
    }
  return w.vectors + o.first * 64;
}

// The registers of an instruction of vector memory.
struct VectorOperands {
  const Operand *address = nullptr, *scalar = nullptr, *resource = nullptr, *data = nullptr;
};

VectorOperands buffer_operands(const Instruction& in, Pending* p, bool returns) {
  const MemoryForm& f = in.memory;
  VectorOperands o;
  int i = f.lds ? 0 : 1;
  if (!f.lds) o.data = &in.operands[0];
  o.address = &in.operands[i++];
  o.resource = &in.operands[i++];
  o.scalar = &in.operands[i++];
  if (in.operand_count != i) fail("buffer operands: %s", in.text.c_str());
  if ((f.kind == 0 && !f.lds) || returns) p->first_register = in.operands[0].first;
  return o;
}

VectorOperands flat_operands(const Instruction& in, Pending* p, bool returns) {
  const MemoryForm& f = in.memory;
  const bool result = (f.kind == 0 && !f.lds) || returns, data = f.kind != 0, scalar = f.space != 1;
  const int wanted = result + 1 + data + scalar;
  if (in.operand_count != wanted)
    fail("%d operands of memory instead of %d: %s", in.operand_count, wanted, in.text.c_str());
  VectorOperands o;
  int i = 0;
  if (result) p->first_register = in.operands[i++].first;
  o.address = &in.operands[i++];
  if (data) o.data = &in.operands[i++];
  if (scalar) o.scalar = &in.operands[i++];
  return o;
}

int data_words(const MemoryForm& f) {
  if (f.kind == 2) return (f.operation == kCompareSwap ? 2 : 1) * (f.wide ? 2 : 1);
  return f.size < 4 ? 1 : f.words;
}

void flat_addresses(Wave& w, const Instruction& in, const VectorOperands& o, Pending* p) {
  const auto offset = static_cast<uint64_t>(in.offset);
  if (o.scalar && o.scalar->kind == OperandKind::scalar) {
    const uint32_t* a = address_registers(w, in, *o.address, 1);
    for (int l = 0; l < kLanes; ++l) p->addresses[l] = w.pair(o.scalar->first) + offset + a[l];
    return;
  }
  const uint32_t* a = address_registers(w, in, *o.address, 2);
  for (int l = 0; l < kLanes; ++l)
    p->addresses[l] = (a[l] | static_cast<uint64_t>(a[kLanes + l]) << 32) + offset;
}

void scratch_addresses(Wave& w, const Instruction& in, const VectorOperands& o, Pending* p) {
  auto base = static_cast<uint64_t>(in.offset);
  if (o.scalar->kind == OperandKind::scalar) base += w.scalars[o.scalar->first];
  if (o.scalar->kind == OperandKind::immediate) base += static_cast<uint64_t>(o.scalar->value);
  const bool vector = o.address->kind == OperandKind::vector;
  const uint32_t* a = vector ? address_registers(w, in, *o.address, 1) : nullptr;
  for (int l = 0; l < kLanes; ++l) p->addresses[l] = (base + (a ? a[l] : 0)) & 0xffffffff;
}

// "Buffer resource descriptor", and the range that it checks.
struct BufferResource {
  uint64_t base = 0;
  uint32_t stride = 0, records = 0;
  bool swizzled = false, add_lane = false, scratch = false;
};

BufferResource resource_at(const Wave& w, int first) {
  const uint32_t* word = w.scalars + first;
  BufferResource r;
  r.base = word[0] | static_cast<uint64_t>(word[1] & 0xffff) << 32;
  r.stride = word[1] >> 16 & 0x3fff;
  r.records = word[2];
  r.swizzled = word[1] >> 31;
  r.add_lane = word[3] >> 23 & 1;
  r.scratch = r.base >> 32 == kScratchMark;
  return r;
}

uint64_t bytes_inside(const BufferResource& r, const Instruction& in, uint64_t index, uint64_t offset,
                      uint64_t linear, uint64_t bytes) {
  if (r.stride) {
    const bool indexed = in.idxen || r.add_lane;
    const bool beyond = indexed ? index >= r.records : offset >= uint64_t{r.records} * r.stride;
    return beyond ? 0 : bytes;
  }
  const uint64_t inside = linear >= r.records ? 0 : std::min<uint64_t>(bytes, r.records - linear);
  if (inside == bytes) return inside;
  return in.memory.size < 4 ? 0 : inside & ~uint64_t{3};
}

void buffer_addresses(Wave& w, const Instruction& in, const VectorOperands& o, Pending* p) {
  const MemoryForm& f = in.memory;
  const BufferResource r = resource_at(w, o.resource->first);
  const auto scalar = static_cast<uint32_t>(scalar_value<U32>(w, in, *o.scalar));
  const uint32_t* index = in.idxen ? address_registers(w, in, *o.address, 1) : nullptr;
  const uint32_t* offset =
      in.offen ? address_registers(w, in, *o.address, in.idxen ? 2 : 1) + (in.idxen ? kLanes : 0) : nullptr;
  const uint64_t bytes = f.kind == 2 ? (f.wide ? 8 : 4) : f.size < 4 ? f.size : 4u * f.words;
  p->bounded = !r.scratch;
  if (r.scratch) p->kind = PendingKind::scratch;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t own = static_cast<uint64_t>(in.offset) + (offset ? offset[l] : 0);
    if (r.scratch) {
      p->addresses[l] = (own + scalar) & 0xffffffff;
      continue;
    }
    if (r.swizzled) fail("swizzled buffer resource: %s", in.text.c_str());
    const uint64_t record = (index ? index[l] : 0) + (r.add_lane ? static_cast<uint64_t>(l) : 0);
    const uint64_t linear = own + record * r.stride + scalar;
    p->bytes_in_bounds[l] = static_cast<uint8_t>(bytes_inside(r, in, record, own, linear, bytes));
    p->addresses[l] = r.base + linear;
  }
}

}  // namespace

void issue_vector_memory(Wave& w, const Instruction& in) {
  Pending* p = w.machine->new_pending();
  const MemoryForm& f = in.memory;
  p->instruction = &in;
  p->lanes = w.exec();
  p->in_vector_queue = true;
  p->in_lds_queue = f.space == 1;
  p->m0 = (w.scalars[kM0] & 0xffff) + static_cast<uint32_t>(in.offset);
  const bool returns = f.kind == 2 && (in.sc0 || in.glc);
  const VectorOperands o = f.space == 2 ? buffer_operands(in, p, returns) : flat_operands(in, p, returns);
  if (p->first_register >= 0) p->registers = f.kind == 2 ? (f.wide ? 2 : 1) : data_words(f);
  if (o.data && f.kind != 0) take_data(w, in, *o.data, p, 0, data_words(f));
  if (f.space == 2)
    buffer_addresses(w, in, o, p);
  else if (f.space == 3)
    scratch_addresses(w, in, o, p);
  else
    flat_addresses(w, in, o, p);
  issue(w, p);
}

void issue_lds(Wave& w, const Instruction& in) {
  Pending* p = w.machine->new_pending();
  const MemoryForm& md = in.memory;
  p->instruction = &in;
  p->kind = PendingKind::memory;
  p->scalar = p->bounded = p->in_vector_queue = false;
  p->in_lds_queue = true;
  p->lanes = w.exec();
  p->first_register = -1;
  p->registers = 0;
  if (in.gds) fail("GDS: %s", in.text.c_str());
  int i = 0;
  if (md.kind == 0 || md.ret) {
    p->first_register = in.operands[i++].first;
    p->registers = md.kind == 2 ? (md.wide ? 2 : 1) : md.size < 4 ? 1 : md.words * (md.two_addresses ? 2 : 1);
  }
  const uint32_t* a = address_registers(w, in, in.operands[i++], 1);
  for (int l = 0; l < 64; l++) p->addresses[l] = a[l];
  if (md.kind == 1) {
    int n = md.size < 4 ? 1 : md.words;
    take_data(w, in, in.operands[i], p, 0, n);
    if (md.two_addresses) take_data(w, in, in.operands[i + 1], p, n, n);
  } else if (md.kind == 2) {
    int n = md.wide ? 2 : 1;
    if (i >= in.operand_count) fail("ds operands: %s", in.text.c_str());
    take_data(w, in, in.operands[i], p, 0, n);
    if (md.operation == kCompareSwap || md.operation == kMaskedOr)
      take_data(w, in, in.operands[i + 1], p, n, n);
  }
  issue(w, p);
}
void issue_lane_exchange(Wave& w, const Instruction& in, LaneExchange kind) {
  Pending* p = w.machine->new_pending();
  p->instruction = &in;
  p->kind = PendingKind::lanes;
  p->scalar = p->bounded = p->in_vector_queue = false;
  p->in_lds_queue = true;
  p->lanes = w.exec();
  p->first_register = in.operands[0].first;
  p->registers = 1;
  uint64_t ex = w.exec();
  uint32_t out[64];
  const uint32_t* a = address_registers(w, in, in.operands[1], 1);
  if (kind == LaneExchange::swizzle) {
    uint32_t off = in.encoding & 0xffff;
    for (int l = 0; l < 64; l++) {
      int s;
      if (off & 0x8000)
        s = (l & ~3) | (off >> (2 * (l & 3)) & 3);
      else {
        int andm = off & 31, orm = off >> 5 & 31, xorm = off >> 10 & 31;
        s = (l & 32) | ((((l & 31) & andm) | orm) ^ xorm);
      }
      out[l] = ex >> s & 1 ? a[s] : 0;
    }
  } else if (kind == LaneExchange::backward) {
    const uint32_t* d = address_registers(w, in, in.operands[2], 1);
    for (int l = 0; l < 64; l++) {
      int s = ((a[l] + (uint32_t)in.offset) >> 2) & 63;
      out[l] = ex >> s & 1 ? d[s] : 0;
    }
  } else {
    const uint32_t* d = address_registers(w, in, in.operands[2], 1);
    memset(out, 0, sizeof out);
    for (uint64_t k = ex; k; k &= k - 1) {
      int l = __builtin_ctzll(k);
      out[((a[l] + (uint32_t)in.offset) >> 2) & 63] = d[l];
    }
  }
  memcpy(p->data[0], out, 256);
  issue(w, p);
}
void issue_scalar_load(Wave& w, const Instruction& in) {
  Pending* p = w.machine->new_pending();
  p->instruction = &in;
  p->kind = PendingKind::memory;
  p->scalar = true;
  p->bounded = in.memory.space == 2;
  p->in_vector_queue = false;
  p->in_lds_queue = true;
  p->lanes = 1;
  p->first_register = in.operands[0].first;
  p->registers = in.memory.words;
  int64_t off = in.offset;
  const Operand& o = in.operands[2];
  if (in.operand_count > 2) {
    if (o.kind == OperandKind::immediate)
      off += o.value;
    else if (o.kind == OperandKind::scalar)
      off += w.scalars[o.first];
    else if (o.kind != OperandKind::off)
      fail("s_load offset: %s", in.text.c_str());
  }
  if (p->bounded) {
    uint32_t nr = w.scalars[in.operands[1].first + 2],
             st = w.scalars[in.operands[1].first + 1] >> 16 & 0x3fff;
    uint64_t sz = st ? (uint64_t)nr * st : nr;
    p->addresses[0] =
        (w.scalars[in.operands[1].first] | (uint64_t)(w.scalars[in.operands[1].first + 1] & 0xffff) << 32) +
        (off & ~3ll);
    uint64_t o2 = off & ~3ll;
    p->data[0][0] = o2 >= sz ? 0 : (uint32_t)std::min<uint64_t>(sz - o2, 64);
  } else
    p->addresses[0] = (w.pair(in.operands[1].first) + off) & ~3ull;
  issue(w, p);
}

}  // namespace tilegen::amdemu
