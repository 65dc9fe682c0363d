# The library: every source of the layers below tools/, found by glob.

set(library_sources "")
foreach(layer core cuda autograd nn datasets models)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${layer}/*.cpp)
  list(APPEND library_sources ${found})
endforeach()
list(FILTER library_sources EXCLUDE REGEX "/core/cpu/")
# Either the CUDA device or what stands in for it (cmake/Cuda.cmake).
if(CUTAWAY_HAVE_CUDA)
  list(FILTER library_sources EXCLUDE REGEX "/cuda/stub/")
  list(FILTER library_sources EXCLUDE REGEX "${CUTAWAY_CUDA_LEFT_OUT}")
else()
  list(FILTER library_sources EXCLUDE REGEX "/cuda/runtime/")
  set_source_files_properties(cuda/stub/backend.cpp PROPERTIES COMPILE_DEFINITIONS
    "CUTAWAY_CUDA_MISSING=\"${CUTAWAY_CUDA_MISSING}\"")
endif()

# The sources are compiled once, for both kinds of library.
add_library(cutaway_objects OBJECT ${library_sources} ${CUTAWAY_EMU_SOURCES})
set(CUTAWAY_LIBRARIES OpenMP::OpenMP_CXX Cutaway_openblas Cutaway_minizip Cutaway_lz4
    Cutaway_utf8proc Cutaway_pcre2 ZLIB::ZLIB fmt::fmt)
target_compile_features(cutaway_objects PUBLIC cxx_std_20)
target_compile_definitions(cutaway_objects PRIVATE ${CUTAWAY_VARIANT_DEFINITIONS}
  CUTAWAY_VERSION="${PROJECT_VERSION}" EIGEN_DONT_PARALLELIZE EIGEN_MPL2_ONLY)
set_source_files_properties(datasets/mat_child.cpp PROPERTIES COMPILE_DEFINITIONS
  "CUTAWAY_MATIO=\"${CUTAWAY_MATIO_NAME}\"")
target_include_directories(cutaway_objects SYSTEM PRIVATE ${CUTAWAY_MATIO_INCLUDE})
target_include_directories(cutaway_objects PUBLIC ${CUTAWAY_INCLUDE_DIR})
target_link_libraries(cutaway_objects PRIVATE cutaway_flags ${CUTAWAY_LIBRARIES} Cutaway_stb
  Eigen3::Eigen nlohmann_json::nlohmann_json)
if(CUTAWAY_CUDA_OBJECTS OR CUTAWAY_HAVE_CUDA)
  list(APPEND CUTAWAY_LIBRARIES CUDA::cudart_static)
  target_link_libraries(cutaway_objects PRIVATE CUDA::cudart_static)
endif()

# cutaway_library(TARGET KIND): a library of all objects.
function(cutaway_library target kind)
  add_library(${target} ${kind} $<TARGET_OBJECTS:cutaway_objects> ${CUTAWAY_VARIANT_OBJECTS}
              ${CUTAWAY_CUDA_OBJECTS})
  add_library(Cutaway::${target} ALIAS ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME cutaway LINKER_LANGUAGE CXX
                        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CUTAWAY_INCLUDE_DIR}>
                             $<INSTALL_INTERFACE:include>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:cutaway_flags> ${CUTAWAY_LIBRARIES})
endfunction()
cutaway_library(cutaway STATIC)
if(NOT CUTAWAY_SANITIZE)
  cutaway_library(cutaway_shared SHARED)
  # Only our own names are visible, none of the libraries inside; of the others no table is kept.
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(cutaway_shared PRIVATE -Wl,-s,--version-script=${exports})
  # The op records and kernel tables are full of addresses: packed, their list is a tenth as long.
  include(CheckLinkerFlag)
  check_linker_flag(CXX -Wl,-z,pack-relative-relocs CUTAWAY_PACKS_RELOCATIONS)
  if(CUTAWAY_PACKS_RELOCATIONS)
    target_link_options(cutaway_shared PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
  set_target_properties(cutaway_shared PROPERTIES LINK_DEPENDS ${exports})
endif()
