# Which tests are long. Each test gets a label, `slow` for those listed here and `fast` for all others, and ctest's
# property COST, so that the long ones start first. Seconds of one core of a machine at rest, rounded; a test of 4
# seconds or more belongs here. `ctest -L fast` takes under a minute on 2 cores.
set(TILEGEN_TEST_SECONDS
  differential.matrix 121
  tool.memory 54
  python.ptxas 48
  differential.attention_mutants 40
  differential.simulated 37
  differential.mutants 34
  unit.lower 34
  differential.tile_layouts 33
  differential.amd_programs 29
  differential.feature_mutants 26
  differential.replay_record 25
  differential.scheduled 25
  python.first_plans 22
  differential.shared_loops 21
  differential.mutated_programs 19
  differential.random_programs 19
  differential.replay 18
  differential.regressions 16
  differential.specialised_mutants 16
  unit.codegen 15
  samples.attention_forms 14
  unit.sim 14
  differential.given_engines 12
  gpu.engines 12
  samples.attention 11
  tool.tune 11
  unit.driver 11
  python.product_programs 10
  python.model_order.configurations 9
  differential.ping_pong 8
  differential.amd_tables 7
  differential.plan_forms 7
  differential.spelling 7
  python.model_order.configurations_held_out 7
  memory.calls 6
  python.amd_loops 6
  cuda.fallback 5
  python.gradient_programs 5
  python.scan_programs 5
  unit.schedule 5
  unit.thread 5
  differential.planning 4
  hip.programs 4
  differential.schedule_mutants 4
  python.specialisations 4
  python.split_programs 4)

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
