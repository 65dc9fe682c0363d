# tools/*.cpp and tools/bench/*.cpp make the command; all but main.cpp are a library of their own,
# so that tests and benchmarks can call them. tools/bench/overhead.cpp is a program for Google
# Benchmark.

file(GLOB tool_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/tools/bench/*.cpp)
list(FILTER tool_sources EXCLUDE REGEX "/tools/(main|bench/overhead)\\.cpp$")

# The peer script is part of the command, which runs from any folder.
set(peer_script ${CMAKE_CURRENT_SOURCE_DIR}/tools/bench/peer_torch.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${peer_script})
file(READ ${peer_script} peer_text)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/generated/tools/peer_torch_script.h.new
"#pragma once
// tools/bench/peer_torch.py as text. Written by cmake/Tools.cmake.
inline constexpr char kPeerTorchScript[] = R\"peer(${peer_text})peer\";
")
configure_file(${CMAKE_CURRENT_BINARY_DIR}/generated/tools/peer_torch_script.h.new
               ${CMAKE_CURRENT_BINARY_DIR}/generated/tools/peer_torch_script.h COPYONLY)

if(tool_sources)
  add_library(cutaway_tools STATIC ${tool_sources})
  target_compile_definitions(cutaway_tools PRIVATE CUTAWAY_VERSION="${PROJECT_VERSION}")
  target_include_directories(cutaway_tools PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}
    PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated/tools)
  target_link_libraries(cutaway_tools PUBLIC cutaway
    PRIVATE cutaway_flags Cutaway_stb fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11)
else()
  add_library(cutaway_tools INTERFACE)
  target_link_libraries(cutaway_tools INTERFACE cutaway)
endif()

if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/tools/main.cpp)
  add_executable(cutaway_command tools/main.cpp)
  set_target_properties(cutaway_command PROPERTIES OUTPUT_NAME cutaway
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  target_compile_definitions(cutaway_command PRIVATE CUTAWAY_VERSION="${PROJECT_VERSION}")
  target_link_libraries(cutaway_command PRIVATE cutaway_tools cutaway_flags fmt::fmt
    nlohmann_json::nlohmann_json CLI11::CLI11)
endif()

if(benchmark_FOUND AND NOT CUTAWAY_SANITIZE)
  add_executable(cutaway_bench tools/bench/overhead.cpp)
  target_link_libraries(cutaway_bench PRIVATE cutaway_tools cutaway_flags fmt::fmt
    benchmark::benchmark_main)
endif()
