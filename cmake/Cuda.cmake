# The CUDA kernels (cuda/kernels/<family>.cuh): every family is compiled by the host compiler for
# the emulator, and by nvcc for the GPU when there is one. Which families there are is read from
# cuda/kernels/families.h.

set(CUTAWAY_CUDA AUTO CACHE STRING "The CUDA device: AUTO (with a CUDA compiler), ON, OFF")
set_property(CACHE CUTAWAY_CUDA PROPERTY STRINGS AUTO ON OFF)
set(default_architectures 80 90)
if(DEFINED ENV{CI})
  set(default_architectures 80)
endif()
set(CUTAWAY_CUDA_ARCHITECTURES "${default_architectures}" CACHE STRING
    "GPU architectures to compile for, e.g. 80;90")

set(family_list ${CMAKE_CURRENT_SOURCE_DIR}/cuda/kernels/families.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${family_list})
file(READ ${family_list} text)
string(REGEX MATCHALL "\n *X\\([a-z0-9_]+\\)" family_lines "${text}")
set(CUTAWAY_CUDA_FAMILIES "")
foreach(line IN LISTS family_lines)
  string(REGEX REPLACE "\n *X\\(([a-z0-9_]+)\\)" "\\1" family "${line}")
  list(APPEND CUTAWAY_CUDA_FAMILIES ${family})
endforeach()

# Two lines that compile a family for one target; written only when they change.
function(cutaway_kernel_wrapper family target suffix result)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/generated/cuda/${family}_${target}.${suffix})
  set(text "#define CUTAWAY_TARGET ${target}\n#include <cutaway/cuda/kernels/${family}.cuh>\n")
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(${result} ${file} PARENT_SCOPE)
endfunction()

set(CUTAWAY_EMU_SOURCES "")
foreach(family IN LISTS CUTAWAY_CUDA_FAMILIES)
  cutaway_kernel_wrapper(${family} emu cpp file)
  list(APPEND CUTAWAY_EMU_SOURCES ${file})
endforeach()
# One rounding per operation where results must be the same bits on every device.
if("random" IN_LIST CUTAWAY_CUDA_FAMILIES)
  set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/generated/cuda/random_emu.cpp
                              PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
endif()

# The emulator itself is optimised even where nothing else is: kernels spend their time in it.
if(CUTAWAY_SANITIZE)
  file(GLOB emulator_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/emu/*.cpp)
  set_source_files_properties(${emulator_sources} PROPERTIES COMPILE_OPTIONS -O1)
endif()

set(CUTAWAY_CUDA_MISSING "")
if(CUTAWAY_CUDA STREQUAL "OFF")
  set(CUTAWAY_CUDA_MISSING "this build was configured with CUTAWAY_CUDA=OFF")
elseif(CUTAWAY_SANITIZE)
  set(CUTAWAY_CUDA_MISSING "builds with sanitizers leave the CUDA part out")
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CUTAWAY_CUDA_MISSING "there was no CUDA compiler when this was built")
  endif()
endif()
if(CUTAWAY_CUDA STREQUAL "ON" AND CUTAWAY_CUDA_MISSING)
  message(FATAL_ERROR "CUTAWAY_CUDA=ON, but ${CUTAWAY_CUDA_MISSING}. Install the CUDA toolkit 12 "
                      "or newer and put its nvcc on PATH, or set CUDACXX=/path/to/nvcc.")
endif()

file(GLOB_RECURSE runtime_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/runtime/*.cpp)
set(CUTAWAY_CUDA_OBJECTS "")
set(CUTAWAY_HAVE_CUDA OFF)
if(NOT CUTAWAY_CUDA_MISSING)
  set(CMAKE_CUDA_ARCHITECTURES ${CUTAWAY_CUDA_ARCHITECTURES})
  if(CUTAWAY_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${CUTAWAY_CCACHE})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know that of nvcc
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit REQUIRED)
  set(cuda_sources "")
  foreach(family IN LISTS CUTAWAY_CUDA_FAMILIES)
    cutaway_kernel_wrapper(${family} gpu cu file)
    list(APPEND cuda_sources ${file})
    if(family STREQUAL "random")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -fmad=false)
    endif()
  endforeach()
  if(cuda_sources)
    add_library(cutaway_cuda_kernels OBJECT ${cuda_sources})
    # 186: templates compare unsigned numbers with 0 where the type happens to be unsigned.
    target_compile_options(cutaway_cuda_kernels PRIVATE
      --expt-relaxed-constexpr --extended-lambda -lineinfo --Werror=all-warnings -diag-suppress=186
      -Xcompiler=-Wall,-Wno-unknown-pragmas,-fno-math-errno)
    target_include_directories(cutaway_cuda_kernels PRIVATE ${CUTAWAY_INCLUDE_DIR})
    target_link_libraries(cutaway_cuda_kernels PRIVATE CUDA::cudart_static)
    list(APPEND CUTAWAY_CUDA_OBJECTS $<TARGET_OBJECTS:cutaway_cuda_kernels>)
  endif()
  if(runtime_sources)
    set(CUTAWAY_HAVE_CUDA ON)
    set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/cuda/runtime/library.cpp PROPERTIES
      COMPILE_DEFINITIONS "CUTAWAY_CUDA_LIBRARY_DIR=\"${CUDAToolkit_LIBRARY_DIR}\"")
    # cuDNN is not part of the toolkit; without its headers the own kernels convolve and attend.
    find_path(CUTAWAY_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(CUTAWAY_CUDNN_INCLUDE)
      set(CUTAWAY_CUDA_LEFT_OUT "/cuda/runtime/dnn_none\\.cpp")
      foreach(file dnn lib_conv attention_graph lib_attention)
        set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/cuda/runtime/${file}.cpp PROPERTIES
          INCLUDE_DIRECTORIES ${CUTAWAY_CUDNN_INCLUDE})
      endforeach()
    else()
      set(CUTAWAY_CUDA_LEFT_OUT
          "/cuda/runtime/(dnn|lib_conv|attention_graph|lib_attention)\\.cpp")
    endif()
  else()
    set(CUTAWAY_CUDA_MISSING "the kernels were compiled, but the CUDA device was not built")
  endif()
endif()
