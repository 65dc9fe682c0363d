# Fuzz targets: fuzz_<format> for each reader, from the entry functions that the tests use as well.
# With clang (-DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DCUTAWAY_FUZZ=ON) they are
# libFuzzer programs under AddressSanitizer and UBSan:
#
#   mkdir new && build-fuzz/fuzz_npy -max_total_time=60 new tests/fuzz/npy
#
# libFuzzer writes what it finds interesting into the first folder. Other compilers build programs
# that read the files and folders they are given, once.

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/*.cpp)
list(FILTER fuzz_sources EXCLUDE REGEX "/(libfuzzer|corpus_test)\\.cpp$")
add_library(cutaway_fuzz STATIC ${fuzz_sources})
target_include_directories(cutaway_fuzz PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(cutaway_fuzz PRIVATE cutaway cutaway_flags)

foreach(format safetensors torch npy npz csv idx idx_gz lz4 json_fields xmc_sparse packages wordnet
        tokenizer vocabulary json_lines fasta text onnx checkpoint
        cifar libsvm image named_set json_set matlab)
  add_executable(fuzz_${format} ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/libfuzzer.cpp)
  target_include_directories(fuzz_${format} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(fuzz_${format} PRIVATE cutaway_fuzz cutaway cutaway_flags)
  target_compile_definitions(fuzz_${format} PRIVATE CUTAWAY_FUZZ_ACCEPTS=accepts_${format})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_link_options(fuzz_${format} PRIVATE -fsanitize=fuzzer)
  else()
    target_compile_definitions(fuzz_${format} PRIVATE CUTAWAY_FUZZ_STANDALONE)
  endif()
endforeach()
