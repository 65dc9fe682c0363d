# Flags of every target. -ffast-math is never used: NaN, infinity and the order of sums matter.

add_library(cutaway_flags INTERFACE)
target_compile_options(cutaway_flags INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -fno-math-errno)
if(CUTAWAY_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(cutaway_flags INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -g1)
  target_link_options(cutaway_flags INTERFACE -fsanitize=address,undefined)
endif()
if(CUTAWAY_SANITIZE)
  target_compile_options(cutaway_flags INTERFACE
    -fsanitize=${CUTAWAY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(cutaway_flags INTERFACE -fsanitize=${CUTAWAY_SANITIZE})
endif()

# Small structs (shapes, kernel arguments) are cleared and copied by plain stores: what g++ takes by
# default for them, "rep stos", costs about 10 ns each time, which tensor creation cannot afford.
include(CheckCXXCompilerFlag)
set(small_struct_flags -mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign
                       -mmemcpy-strategy=unrolled_loop:512:noalign,libcall:-1:noalign)
check_cxx_compiler_flag("${small_struct_flags}" CUTAWAY_HAVE_STRATEGY_FLAGS)
if(CUTAWAY_HAVE_STRATEGY_FLAGS)
  target_compile_options(cutaway_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:${small_struct_flags}>")
endif()
