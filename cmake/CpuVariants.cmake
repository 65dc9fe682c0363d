# The kernels (core/cpu) are compiled once per CPU variant, each time into the namespace that
# CUTAWAY_VARIANT names; core picks the best variant of the machine at run time.

set(default_variants scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(default_variants scalar avx2 avx512)
endif()
set(CUTAWAY_VARIANTS "${default_variants}" CACHE STRING "CPU variants: scalar, avx2, avx512")

set(flags_scalar "")
set(flags_avx2 -mavx2 -mfma -mf16c)
set(flags_avx512 ${flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd
    -mprefer-vector-width=512)

file(GLOB_RECURSE kernel_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/core/cpu/*.cpp)

# One rounding per operation where results must be the same bits on every device.
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/core/cpu/random.cpp)
  set_source_files_properties(core/cpu/random.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
endif()

set(CUTAWAY_VARIANT_OBJECTS "")
set(CUTAWAY_VARIANT_DEFINITIONS "")
foreach(variant IN LISTS CUTAWAY_VARIANTS)
  if(NOT DEFINED flags_${variant})
    message(FATAL_ERROR "CUTAWAY_VARIANTS: '${variant}' is none of scalar, avx2, avx512")
  endif()
  string(TOUPPER ${variant} upper)
  list(APPEND CUTAWAY_VARIANT_DEFINITIONS CUTAWAY_HAVE_${upper}=1)
  if(kernel_sources)
    add_library(cutaway_cpu_${variant} OBJECT ${kernel_sources})
    set_target_properties(cutaway_cpu_${variant} PROPERTIES UNITY_BUILD OFF)
    target_compile_definitions(cutaway_cpu_${variant} PRIVATE CUTAWAY_VARIANT=${variant})
    target_compile_options(cutaway_cpu_${variant} PRIVATE ${flags_${variant}}
      $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-trapping-math)
    target_include_directories(cutaway_cpu_${variant} PRIVATE ${CUTAWAY_INCLUDE_DIR})
    target_link_libraries(cutaway_cpu_${variant}
      PRIVATE cutaway_flags OpenMP::OpenMP_CXX Cutaway_openblas fmt::fmt)
    list(APPEND CUTAWAY_VARIANT_OBJECTS $<TARGET_OBJECTS:cutaway_cpu_${variant}>)
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/objects_${variant}.txt
         CONTENT "$<JOIN:$<TARGET_OBJECTS:cutaway_cpu_${variant}>,\n>\n")
  endif()
endforeach()
