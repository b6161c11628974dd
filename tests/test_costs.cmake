# Which tests are long. Each test gets a label, `slow` for those listed here and `fast` for all others, and ctest's
# property COST, so that the long ones start first. Seconds of one processor, rounded, of a machine that built beside
# them; at rest they are fewer. A test of 4 seconds or more belongs here. `ctest -L fast` takes under a minute on 2
# cores.
set(TILEGEN_TEST_SECONDS
  differential.matrix 140
  python.ptxas 57
  differential.amd_programs 51
  differential.simulated 48
  unit.codegen 40
  differential.mutants 39
  differential.tile_layouts 38
  unit.lower 38
  tool.memory 36
  differential.scheduled 33
  unit.sim 28
  differential.regressions 24
  samples.attention_forms 24
  differential.attention_mutants 23
  differential.shared_loops 23
  differential.feature_mutants 22
  differential.random_programs 22
  differential.specialised_mutants 22
  differential.amd_tables 21
  python.newcomers 15
  differential.constructs 14
  python.emit_c 8
  differential.mutated_programs 21
  differential.replay_record 21
  gpu.engines 21
  samples.attention 19
  tool.tune 19
  unit.driver 19
  differential.given_engines 18
  differential.replay 18
  python.first_plans 18
  python.product_programs 18
  python.model_order.configurations 16
  differential.amd_products 16
  differential.ping_pong 14
  differential.plan_forms 12
  differential.spelling 12
  python.model_order.configurations_held_out 12
  python.model_order.configurations_rows 4
  python.model_order.configurations_sums 5
  python.model_order.configurations_unseen 12
  gpu.random_programs 11
  memory.calls 10
  python.amd_loops 10
  python.amd_compile_time 6
  cuda.fallback 9
  python.gradient_programs 9
  python.scan_programs 9
  unit.schedule 9
  unit.thread 9
  differential.amd_random 8
  differential.planning 7
  differential.schedule_mutants 7
  hip.programs 7
  python.split_programs 7
  python.specialisations 4)

# For the tests of the folder that calls it, at its end: cmake_language(DEFER CALL label_tests).
function(label_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test ${tests})
    list(FIND TILEGEN_TEST_SECONDS ${test} at)
    get_test_property(${test} LABELS labels)
    if(NOT labels)
      set(labels "")
    endif()
    if(at LESS 0)
      list(APPEND labels fast)
      set(seconds 1)
    else()
      list(APPEND labels slow)
      math(EXPR at "${at} + 1")
      list(GET TILEGEN_TEST_SECONDS ${at} seconds)
    endif()
    set_tests_properties(${test} PROPERTIES LABELS "${labels}" COST ${seconds})
  endforeach()
endfunction()
