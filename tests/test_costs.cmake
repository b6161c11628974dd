# Which tests are long. Each test gets a label, `slow` for those listed here and `fast` for all others, and ctest's
# property COST, so that the long ones start first. Seconds of one core of a machine at rest, rounded; a test of 4
# seconds or more belongs here. `ctest -L fast` takes under a minute on 2 cores.
set(TILEGEN_TEST_SECONDS
  differential.matrix 240
  differential.simulated 200
  differential.feature_mutants 190
  unit.lower 130
  differential.attention_mutants 120
  differential.given_engines 130
  unit.codegen 75
  differential.mutants 60
  tool.memory 50
  unit.sim 32
  differential.planning 32
  differential.random_programs 30
  differential.amd_programs 18
  differential.amd_tables 12
  hip.programs 4
  python.ptxas 30
  differential.tile_layouts 80
  differential.scheduled 20
  differential.specialised_mutants 18
  python.first_plans 20
  differential.ping_pong 14
  gpu.engines 14
  samples.attention_forms 14
  differential.code_size 13
  differential.mutated_programs 13
  differential.plan_forms 13
  unit.driver 13
  tool.tune 10
  capi.tests 12
  differential.schedule_mutants 8
  samples.attention 10
  python.product_programs 10
  differential.regressions 9
  differential.mutation 6
  unit.ir 6
  unit.layout 6
  python.model_order.configurations 7
  python.model_order.configurations_held_out 5
  cuda.fallback 5
  python.versions 5
  python.gradient_programs 5
  python.scan_programs 4
  python.split_programs 5
  unit.arith 5
  differential.masks 4
  memory.calls 4)

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
