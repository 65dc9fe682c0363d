# Finds the libraries of the system. Every miss names the Debian package and what installs them all.

find_program(CUTAWAY_CCACHE ccache)
if(CUTAWAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache needs to be told before it serves files that use precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CUTAWAY_CCACHE})
endif()

function(cutaway_missing what package)
  message(FATAL_ERROR "${what} was not found. On Debian it is in the package ${package}; "
                      "`make deps` installs everything that is needed.")
endfunction()

find_package(OpenMP COMPONENTS CXX QUIET)
if(NOT OpenMP_CXX_FOUND)
  cutaway_missing("OpenMP" "g++")
endif()

find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  cutaway_missing("zlib" "zlib1g-dev")
endif()

foreach(entry "fmt:libfmt-dev" "nlohmann_json:nlohmann-json3-dev" "CLI11:libcli11-dev"
              "Eigen3:libeigen3-dev")
  string(REPLACE ":" ";" entry ${entry})
  list(GET entry 0 name)
  list(GET entry 1 package)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND)
    cutaway_missing(${name} ${package})
  endif()
endforeach()

# The OpenMP build of OpenBLAS, by path: other BLAS packages may own the name cblas.h.
find_path(CUTAWAY_OPENBLAS_INCLUDE cblas.h
          PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas-openmp openblas)
find_library(CUTAWAY_OPENBLAS_LIBRARY openblas
             PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp openblas-openmp)
if(NOT CUTAWAY_OPENBLAS_INCLUDE OR NOT CUTAWAY_OPENBLAS_LIBRARY)
  cutaway_missing("OpenBLAS (OpenMP build)" "libopenblas-openmp-dev")
endif()
add_library(Cutaway_openblas INTERFACE)
target_include_directories(Cutaway_openblas SYSTEM INTERFACE ${CUTAWAY_OPENBLAS_INCLUDE})
target_link_libraries(Cutaway_openblas INTERFACE ${CUTAWAY_OPENBLAS_LIBRARY})

# A library without a CMake package: target Cutaway_<name> from a header and a library file.
function(cutaway_find_library name header library package)
  string(TOUPPER ${name} upper)
  find_path(CUTAWAY_${upper}_INCLUDE ${header})
  find_library(CUTAWAY_${upper}_LIBRARY ${library})
  if(NOT CUTAWAY_${upper}_INCLUDE OR NOT CUTAWAY_${upper}_LIBRARY)
    cutaway_missing("${name}" "${package}")
  endif()
  add_library(Cutaway_${name} INTERFACE)
  target_include_directories(Cutaway_${name} SYSTEM INTERFACE ${CUTAWAY_${upper}_INCLUDE})
  target_link_libraries(Cutaway_${name} INTERFACE ${CUTAWAY_${upper}_LIBRARY})
endfunction()
cutaway_find_library(minizip minizip/unzip.h minizip libminizip-dev)
cutaway_find_library(lz4 lz4frame.h lz4 liblz4-dev)
cutaway_find_library(utf8proc utf8proc.h utf8proc libutf8proc-dev)
cutaway_find_library(pcre2 pcre2.h pcre2-8 libpcre2-dev)

# libmatio is loaded when a MATLAB file is first read (datasets/mat_child.h), not linked.
cutaway_find_library(matio matio.h matio libmatio-dev)
file(REAL_PATH ${CUTAWAY_MATIO_LIBRARY} CUTAWAY_MATIO_NAME)
get_filename_component(CUTAWAY_MATIO_NAME ${CUTAWAY_MATIO_NAME} NAME)
string(REGEX MATCH "^libmatio\\.so\\.[0-9]+" CUTAWAY_MATIO_NAME ${CUTAWAY_MATIO_NAME})

find_path(CUTAWAY_STB_INCLUDE stb_image.h PATH_SUFFIXES stb)
if(NOT CUTAWAY_STB_INCLUDE)
  cutaway_missing("stb_image.h" "libstb-dev")
endif()
add_library(Cutaway_stb INTERFACE)
target_include_directories(Cutaway_stb SYSTEM INTERFACE ${CUTAWAY_STB_INCLUDE})

if(CUTAWAY_BUILD_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    cutaway_missing("GoogleTest" "libgtest-dev")
  endif()
endif()
find_package(benchmark QUIET)
