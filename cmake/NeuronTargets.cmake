# The three kinds of target in the tree. Settings and warnings are INTERFACE targets, linked privately by our code only.
# neuron_library(NAME [HOT] [PRECOMPILED group] source...), neuron_program(NAME source...): HOT is for what computes (neuron_hot).
function(neuron_library name)
  cmake_parse_arguments(arg "HOT" "PRECOMPILED" "" ${ARGN})
  add_library(neuron_${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  add_library(neuron::${name} ALIAS neuron_${name})
  target_include_directories(neuron_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  neuron_shipped_settings(neuron_${name})
endfunction()

function(neuron_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  neuron_shipped_settings(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# For the two above, with what they parsed.
macro(neuron_shipped_settings target)
  target_link_libraries(${target} PRIVATE neuron_settings neuron_shipped)
  if(arg_HOT)
    target_link_libraries(${target} PRIVATE neuron_hot)
    neuron_use_precompiled(${target} hot)
  elseif(arg_PRECOMPILED)
    neuron_use_precompiled(${target} ${arg_PRECOMPILED})
  else()
    neuron_use_precompiled(${target} shipped)
  endif()
endmacro()

# Test programs of what has threads: `thread_tests` builds them, `ctest -L threads` runs them, under ThreadSanitizer too.
add_custom_target(thread_tests)

# neuron_test_helpers(NAME source... LINK target...): a library of what several test programs use, compiled once.
function(neuron_test_helpers name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LINK} neuron_test_paths GTest::gmock neuron_settings neuron_tests)
  neuron_use_precompiled(${name} test)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# neuron_test(NAME [OPTIMISED] [THREADS] [LONG] source... LINK target...): one GoogleTest program, one ctest entry per test case (a
# process each costs 10 s of all tests).
# OPTIMISED is for a test whose own code computes for seconds; others are built without (neuron_tests). THREADS: it has threads
# and does without gRPC, which a test of its own asserts (CONTRIBUTING.md says why). LONG: ctest starts them before others.
function(neuron_test name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(arg "OPTIMISED;THREADS;LONG" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LINK} neuron_test_paths GTest::gmock GTest::gtest_main neuron_settings)
  if(arg_OPTIMISED)
    target_link_libraries(${name} PRIVATE neuron_hot)
  else()
    target_link_libraries(${name} PRIVATE neuron_tests)
    neuron_use_precompiled(${name} test)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  set(label)
  set(cost)
  if(arg_LONG)
    set(cost COST 5)
  endif()
  if(arg_THREADS)
    set(label LABELS threads)
    add_dependencies(thread_tests ${name})
    add_test(NAME package.without_grpc.${name}
             COMMAND sh -c "test -x \"$1\" && ! ${CMAKE_NM} \"$1\" | grep -q ' grpc_init$'" sh $<TARGET_FILE:${name}>)
    set_tests_properties(package.without_grpc.${name} PROPERTIES LABELS threads)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 60 ${label} ${cost})
endfunction()
