# tools/*.cpp make the command; all but main.cpp are a library of their own, so that tests and
# benchmarks can call them. tools/bench/*.cpp make the benchmarks.

file(GLOB tool_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/*.cpp)
list(FILTER tool_sources EXCLUDE REGEX "/tools/main\\.cpp$")
if(tool_sources)
  add_library(cutaway_tools STATIC ${tool_sources})
  target_compile_definitions(cutaway_tools PRIVATE CUTAWAY_VERSION="${PROJECT_VERSION}")
  target_include_directories(cutaway_tools PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
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

file(GLOB bench_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/bench/*.cpp)
if(bench_sources AND benchmark_FOUND AND NOT CUTAWAY_SANITIZE)
  add_executable(cutaway_bench ${bench_sources})
  target_link_libraries(cutaway_bench PRIVATE cutaway_tools cutaway_flags fmt::fmt
    benchmark::benchmark_main)
endif()
