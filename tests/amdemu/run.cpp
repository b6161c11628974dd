// A launch: blocks in their order, waves of a block side by side.
#include <algorithm>

#include "machine.h"

namespace tilegen::amdemu {

namespace {

constexpr uint64_t kSlice = 4096;  // instructions of a wave at most before another one runs

uint32_t next_random(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<uint32_t>(state >> 16);
}

uint32_t threads_of(const LaunchState& l) { return l.block[0] * l.block[1] * l.block[2]; }
uint32_t waves_of(const LaunchState& l) { return (threads_of(l) + kLanes - 1) / kLanes; }

// Registers that hold something else in each launch, but for the ones that the launch sets.
void poison(Wave& w, uint64_t& random) {
  static const std::vector<uint32_t> quiet_nans = [] {
    std::vector<uint32_t> all(size_t{kVectors} * kLanes);
    uint64_t state = 88172645463325252ull;
    for (uint32_t& r : all) r = 0x7fc00000u | (next_random(state) & 0x3fffffu);
    return all;
  }();
  w.vector_file = quiet_nans;
  w.vectors = w.vector_file.data();
  for (uint32_t& s : w.scalars) s = 0xdead0000u | (next_random(random) & 0xffff);
  w.scalars[kM0] = 0x5a5a;
}

// "Initial Kernel Execution State": user SGPRs in the order of their flags, then the block's indices.
void set_scalars(Wave& w, const LaunchState& l, const Block& block) {
  const uint32_t properties = l.descriptor.properties, rsrc2 = l.descriptor.rsrc2;
  int s = 0;
  const auto pair = [&](uint32_t bit, uint64_t value) {
    if (!(properties >> bit & 1)) return;
    w.set_pair(s, value);
    s += 2;
  };
  if (properties & 1) {  // the resource of scratch
    const uint32_t words[] = {0, kScratchMark | 0x80000000u, ~0u, 0x00800000u};
    std::copy(std::begin(words), std::end(words), w.scalars);
    s = 4;
  }
  pair(1, l.packet);
  pair(2, 0);  // queue
  pair(3, l.arguments);
  pair(4, 1);  // dispatch number
  pair(5, 0);  // flat scratch
  if (properties >> 6 & 1) w.scalars[s++] = l.scratch;
  const uint32_t preloaded = l.descriptor.preload & 127, first = l.descriptor.preload >> 7 & 511;
  for (uint32_t i = 0; i < preloaded; ++i)
    std::memcpy(&w.scalars[s++], w.machine->memory_at(l.arguments + 4 * (first + i), 4, false, "a preload"),
                4);
  const auto user = static_cast<int>(rsrc2 >> 1 & 31);
  if (s > user) fail("%d user SGPRs are enabled and %d counted", s, user);
  s = user;
  for (int d = 0; d < 3; ++d)
    if (rsrc2 >> (7 + d) & 1) w.scalars[s++] = block.id[d];
  if (rsrc2 >> 10 & 1) w.scalars[s++] = waves_of(l);
  if ((rsrc2 & 1) && w.machine->gfx90a) w.scalars[s++] = 0;
}

void begin_wave(Machine& machine, const LaunchState& l, Block& block, uint32_t number, uint64_t& random) {
  Wave& w = *block.waves[number];
  w = Wave();
  w.machine = &machine;
  w.block = &block;
  w.id = static_cast<int>(number);
  w.written.assign(kVectors + 4, 0);
  poison(w, random);
  w.scratch_bytes = l.scratch;
  w.scratch.assign(size_t{l.scratch} * kLanes, 0xff);
  const uint32_t rsrc1 = l.descriptor.rsrc1;
  w.mode = (rsrc1 >> 12 & 0xff) | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9 | (rsrc1 >> 26 & 1) << 23;
  if (w.mode & 15) fail("the descriptor's rounding mode is not modelled");
  set_scalars(w, l, block);
  const uint32_t lanes = std::min<uint32_t>(kLanes, threads_of(l) - number * kLanes);
  w.set_pair(kExec, lanes == kLanes ? ~uint64_t{0} : (uint64_t{1} << lanes) - 1);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint32_t t = number * kLanes + lane;
    w.vectors[lane] =
        (t % l.block[0]) | (t / l.block[0] % l.block[1]) << 10 | (t / (l.block[0] * l.block[1])) << 20;
  }
  w.written[0] = w.exec();
  jump(w, l.entry);
}

std::unique_ptr<Block> begin_block(Machine& machine, const LaunchState& l, uint64_t number,
                                   uint64_t& random) {
  auto block = std::make_unique<Block>();
  block->id[0] = static_cast<uint32_t>(number % l.grid[0]);
  block->id[1] = static_cast<uint32_t>(number / l.grid[0] % l.grid[1]);
  block->id[2] = static_cast<uint32_t>(number / (uint64_t{l.grid[0]} * l.grid[1]));
  block->lds.assign(l.lds, 0xff);
  block->lds_written.assign(machine.report_unwritten ? l.lds : 0, 0);
  for (uint32_t i = 0; i < waves_of(l); ++i) {
    block->waves.push_back(std::make_unique<Wave>());
    begin_wave(machine, l, *block, i, random);
  }
  return block;
}

void run_wave(Wave& w, uint64_t most) {
  Machine& machine = *w.machine;
  w.yield = false;
  uint64_t done = 0;
  while (done < most && !w.done && !w.at_barrier && !w.yield) {
    if (w.next < 0 || static_cast<size_t>(w.next) >= machine.code.size()) fail("the code has ended");
    const Instruction& in = machine.code[static_cast<size_t>(w.next)];
    ++w.next, ++done;
    w.address = in.address;
    ++machine.profile[in.mnemonic];
    if (w.outstanding && machine.strict) check_outstanding(w, in);
    in.run(w, in);
  }
  machine.executed += done;
  if (machine.executed > machine.most_instructions)
    fail("more than %llu instructions", static_cast<unsigned long long>(machine.most_instructions));
}

// A slice of each wave that can run; true: the block has ended.
bool step_block(const LaunchState& l, Block& block, uint64_t& random) {
  const size_t waves = block.waves.size(), first = l.seed ? next_random(random) % waves : 0;
  bool ran = false;
  for (size_t i = 0; i < waves; ++i) {
    Wave& w = *block.waves[(first + i) % waves];
    if (w.done || w.at_barrier) continue;
    ran = true;
    try {
      run_wave(w, l.seed ? 1 + next_random(random) % kSlice : kSlice);
    } catch (const Fault& fault) {
      fail("%s\n  in block (%u, %u, %u), wave %d, at 0x%llx", fault.what(), block.id[0], block.id[1],
           block.id[2], w.id, static_cast<unsigned long long>(w.address));
    }
  }
  if (ran) return false;
  bool alive = false;  // all that live have met
  for (const std::unique_ptr<Wave>& w : block.waves) {
    alive |= !w->done;
    w->at_barrier = false;
  }
  return !alive;
}

}  // namespace

void jump(Wave& w, uint64_t address) {
  const Machine& machine = *w.machine;
  const uint64_t word = (address - machine.code_base) / 4;
  if (address < machine.code_base || word >= machine.instruction_at.size() ||
      machine.instruction_at[word] < 0)
    fail("a jump to 0x%llx, which is no instruction", static_cast<unsigned long long>(address));
  w.next = machine.instruction_at[word];
}

void launch(Machine& machine, const LaunchState& l) {
  if (threads_of(l) == 0 || threads_of(l) > 1024) fail("a block of %u threads", threads_of(l));
  uint64_t random = l.seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
  const uint64_t total = uint64_t{l.grid[0]} * l.grid[1] * l.grid[2];
  uint64_t next = 0;
  std::vector<std::unique_ptr<Block>> resident;
  while (next < total || !resident.empty()) {
    while (resident.size() < std::max<uint32_t>(l.concurrent, 1) && next < total)
      resident.push_back(begin_block(machine, l, next++, random));
    std::erase_if(resident, [&](const std::unique_ptr<Block>& b) { return step_block(l, *b, random); });
  }
}

void warn(Wave& w, const Instruction& in, const std::string& what) {
  const std::string key = std::to_string(in.address) + ":" + what.substr(0, 20);
  if (w.machine->warned[key]++ == 0 && w.machine->warnings.size() < 200)
    w.machine->warnings.push_back(what + " [wave " + std::to_string(w.id) + "]");
}

void unwritten_read(Wave& w, const Instruction& in, int reg, uint64_t) {
  warn(w, in,
       std::string("unwritten ") + (reg < 256 ? "v" : "a") + std::to_string(reg & 255) + " read: " + in.text);
}

}  // namespace tilegen::amdemu
