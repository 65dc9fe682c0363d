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

add_library(cutaway ${library_sources} ${CUTAWAY_VARIANT_OBJECTS} ${CUTAWAY_EMU_SOURCES}
            ${CUTAWAY_CUDA_OBJECTS})
add_library(Cutaway::cutaway ALIAS cutaway)
target_compile_features(cutaway PUBLIC cxx_std_20)
target_compile_definitions(cutaway PRIVATE ${CUTAWAY_VARIANT_DEFINITIONS}
  CUTAWAY_VERSION="${PROJECT_VERSION}" EIGEN_DONT_PARALLELIZE EIGEN_MPL2_ONLY)
target_include_directories(cutaway PUBLIC ${CUTAWAY_INCLUDE_DIR})
target_link_libraries(cutaway PRIVATE $<BUILD_INTERFACE:cutaway_flags> OpenMP::OpenMP_CXX
  Cutaway_openblas Cutaway_minizip Cutaway_lz4 Cutaway_stb ZLIB::ZLIB fmt::fmt Eigen3::Eigen
  nlohmann_json::nlohmann_json)
if(CUTAWAY_CUDA_OBJECTS OR CUTAWAY_HAVE_CUDA)
  target_link_libraries(cutaway PRIVATE CUDA::cudart_static)
endif()
