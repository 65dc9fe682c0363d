# Tests: one executable test_<folder> per folder of tests/, and one ctest entry per GoogleTest
# suite. The suites are read from the executable when ctest starts (cmake/RegisterSuites.cmake), so
# configuring and building run no tests but the one on op records below, and a thousand cases
# are not a thousand processes. Suites named ...Slow carry the label slow, all others fast.

set(CUTAWAY_TEST_PREFIX "")
set(sanitized false)
if(CUTAWAY_SANITIZE)
  set(CUTAWAY_TEST_PREFIX "sanitized.")
  set(sanitized true)
endif()

file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/generated/tests/paths.h.new
"#pragma once
// Where a test finds files of the source tree and the command. Written by cmake/Tests.cmake.
inline constexpr char kSourceDir[] = \"${CMAKE_CURRENT_SOURCE_DIR}\";
inline constexpr char kCommand[] = \"${CMAKE_CURRENT_BINARY_DIR}/cutaway\";
// Whether this build looks for faults of the memory: slower by far, beside one that does not.
inline constexpr bool kSanitized = ${sanitized};
")
configure_file(${CMAKE_CURRENT_BINARY_DIR}/generated/tests/paths.h.new
               ${CMAKE_CURRENT_BINARY_DIR}/generated/tests/paths.h COPYONLY)

# GoogleTest is most of the compile time of a test: precompiled once, shared by all programs. Test
# code itself is compiled without optimisation; what it tests is the library as it is shipped.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/generated/test_precompiled.cpp.new "// Owns the header.\n")
configure_file(${CMAKE_CURRENT_BINARY_DIR}/generated/test_precompiled.cpp.new
               ${CMAKE_CURRENT_BINARY_DIR}/generated/test_precompiled.cpp COPYONLY)
add_library(cutaway_test_precompiled OBJECT
            ${CMAKE_CURRENT_BINARY_DIR}/generated/test_precompiled.cpp)
target_precompile_headers(cutaway_test_precompiled
                           PRIVATE <gtest/gtest.h> <cmath> <string> <vector>)

function(cutaway_test_flags target)
  # The same kind of code in object library and programs: one precompiled header fits both.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated
                             ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE cutaway cutaway_flags GTest::gtest_main
    OpenMP::OpenMP_CXX fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB)
  if(TARGET cutaway_tools)
    target_link_libraries(${target} PRIVATE cutaway_tools)
  endif()
endfunction()
cutaway_test_flags(cutaway_test_precompiled)

# The reader of the reference files in tests/golden, for all test programs.
add_library(cutaway_test_golden STATIC EXCLUDE_FROM_ALL
            ${CMAKE_CURRENT_SOURCE_DIR}/tests/golden/golden.cpp)
target_include_directories(cutaway_test_golden PRIVATE
  ${CMAKE_CURRENT_BINARY_DIR}/generated ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(cutaway_test_golden PRIVATE cutaway_flags nlohmann_json::nlohmann_json)

function(cutaway_add_test_program folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/tests/(golden/golden|fuzz/libfuzzer)\\.cpp$")
  if(NOT sources)
    return()
  endif()
  set(target test_${folder})
  add_executable(${target} ${sources})
  cutaway_test_flags(${target})
  target_link_libraries(${target} PRIVATE cutaway_test_golden)
  if(folder MATCHES "^(tools|docs)$" AND TARGET cutaway_command)
    add_dependencies(${target} cutaway_command)  # these tests start it
  endif()
  target_precompile_headers(${target} REUSE_FROM cutaway_test_precompiled)
  set(script ${CMAKE_CURRENT_BINARY_DIR}/generated/tests/${folder}.cmake)
  file(WRITE ${script}
"set(prefix \"${CUTAWAY_TEST_PREFIX}${folder}\")
set(program \"${CMAKE_CURRENT_BINARY_DIR}/${target}\")
set(directory \"${CMAKE_CURRENT_SOURCE_DIR}\")
set(sanitized \"${CUTAWAY_SANITIZE}\")
include(\"${CMAKE_CURRENT_SOURCE_DIR}/cmake/RegisterSuites.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE
     ${CMAKE_CURRENT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR}/tests/*)
foreach(entry IN LISTS entries)
  if(entry STREQUAL "gpu" AND NOT CUTAWAY_HAVE_CUDA)
    continue()
  endif()
  if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/tests/${entry} AND NOT entry STREQUAL "consumer")
    cutaway_add_test_program(${entry})
  endif()
endforeach()

include(Pages)

# An op record without samples would have no tests: it fails the build of the tests.
if(NOT CMAKE_CROSSCOMPILING)
  add_custom_command(TARGET test_ops POST_BUILD VERBATIM
    COMMAND test_ops --gtest_brief=1 --gtest_filter=Records.all_have_samples)
endif()

if(NOT CUTAWAY_SANITIZE)
  find_program(CUTAWAY_PYTHON python3)
  if(CUTAWAY_PYTHON)
    add_test(NAME style COMMAND ${CUTAWAY_PYTHON} tools/check_style.py
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    add_test(NAME fuzz_corpus COMMAND ${CUTAWAY_PYTHON} tests/fuzz/make_corpus.py --check
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    add_test(NAME headers COMMAND ${CUTAWAY_PYTHON} tools/check_headers.py
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    add_test(NAME header_rules COMMAND ${CUTAWAY_PYTHON} tests/tools/test_check_headers.py
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    add_test(NAME style_rules COMMAND ${CUTAWAY_PYTHON} tests/tools/test_check_style.py
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  foreach(variant IN LISTS CUTAWAY_VARIANTS)
    if(TARGET cutaway_cpu_${variant} AND NOT variant STREQUAL "scalar" AND CUTAWAY_PYTHON)
      add_test(NAME variant_symbols.${variant}
               COMMAND ${CUTAWAY_PYTHON} tools/check_variant_symbols.py ${variant}
                       ${CMAKE_CURRENT_BINARY_DIR}/generated/objects_${variant}.txt
               WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    endif()
  endforeach()
  # All CPU variants together; code for GPUs comes on top of that.
  set(largest_library 30000000)
  if(CUTAWAY_HAVE_CUDA)
    set(largest_library 0)
  endif()
  add_test(NAME consumer
           COMMAND tests/consumer/check.sh ${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_CXX_COMPILER}
                   ${largest_library}
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  add_test(NAME samples COMMAND sha256sum --check --quiet SHA256SUMS
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/datasets/samples)
  # One run over this build and the sanitized one beside it, with one summary (`make test`).
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/all/CTestTestfile.cmake
"subdirs(\"${CMAKE_CURRENT_BINARY_DIR}\")
subdirs(\"${CMAKE_CURRENT_BINARY_DIR}/asan\")
")
endif()
