// The malloc of this process, which can be told to fail for the library under test. Allocations of the test
// itself, of its frame and of the stand-in for the CUDA driver always succeed and are not counted.
#pragma once

namespace tilegen::test {

enum class Fails { never, once, from_then_on };

// Counts from 1: allocation `first`, or all from it on, have no memory. Of all threads of the process.
void fail_allocations(Fails how, long first);
// Back to memory for all; what was counted since the last call.
long stop_failing();

}  // namespace tilegen::test
