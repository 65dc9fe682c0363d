# The C++ pieces of the pages that are programs: docs/tutorial/*.md and docs/from-pytorch.md become
# one source, generated/pages.cpp, which test_docs runs and compares with the output that the pages
# show. Each page is one function; its ```cpp pieces follow each other in it, a piece marked
# ```cpp declarations stands in front of it, and a piece with a main of its own is called. Lines
# keep their numbers, so that messages of the compiler point into the page.

file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/docs/tutorial/*.md
     ${CMAKE_CURRENT_SOURCE_DIR}/docs/from-pytorch.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages})

set(all_includes "")
set(all_pages "")
set(all_names "")
set(page_number 0)
foreach(page IN LISTS pages)
  math(EXPR page_number "${page_number} + 1")
  file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${page})
  file(READ ${page} rest)
  set(line 1)
  set(piece_number 0)
  set(declarations "")
  set(body "")
  while(TRUE)
    string(FIND "${rest}" "```" at)
    if(at EQUAL -1)
      break()
    endif()
    # The line of the fence, the text up to the closing one, and what follows.
    string(SUBSTRING "${rest}" 0 ${at} before)
    string(REGEX REPLACE "[^\n]" "" newlines "${before}")
    string(LENGTH "${newlines}" count)
    math(EXPR line "${line} + ${count}")
    math(EXPR at "${at} + 3")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(FIND "${rest}" "\n" end_of_line)
    string(SUBSTRING "${rest}" 0 ${end_of_line} fence)
    string(SUBSTRING "${rest}" ${end_of_line} -1 rest)
    string(FIND "${rest}" "\n```" end)
    if(end EQUAL -1)
      message(FATAL_ERROR "${name}:${line}: a piece of code has no end")
    endif()
    math(EXPR code_end "${end} + 1")
    string(SUBSTRING "${rest}" 1 ${end} code)
    math(EXPR after "${end} + 4")
    string(SUBSTRING "${rest}" ${after} -1 rest)
    math(EXPR code_line "${line} + 1")
    string(REGEX REPLACE "[^\n]" "" newlines "${code}")
    string(LENGTH "${newlines}" count)
    math(EXPR line "${line} + ${count} + 1")
    if(NOT fence MATCHES "^cpp")
      continue()
    endif()

    math(EXPR piece_number "${piece_number} + 1")
    string(REGEX MATCHALL "#include [<\"][^\n]*" includes "${code}")
    foreach(include IN LISTS includes)
      string(FIND "${all_includes}" "${include}\n" known)
      if(known EQUAL -1)
        string(APPEND all_includes "${include}\n")
      endif()
    endforeach()
    string(REGEX REPLACE "#include [<\"][^\n]*" "" code "${code}")
    set(code "#line ${code_line} \"${name}\"\n${code}")
    if(code MATCHES "\nint main\\(\\) {")
      string(REPLACE "\nint main() {" "\nvoid run() {" code "${code}")
      string(APPEND declarations "namespace program_${piece_number} {\n${code}\n}\n")
      string(APPEND body "program_${piece_number}::run();\n")
    elseif(fence MATCHES "declarations")
      string(APPEND declarations "${code}\n")
    else()
      string(APPEND body "${code}\n")
    endif()
    string(APPEND body "pages::end_of_piece();\n")
  endwhile()
  string(APPEND all_pages
         "namespace page_${page_number} {\n${declarations}void run() {\n${body}}\n}\n\n")
  string(APPEND all_names "    {\"${name}\", page_${page_number}::run},\n")
endforeach()

set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/pages.cpp)
file(WRITE ${generated}.new
"// The programs of the pages in docs/. Written by cmake/Pages.cmake.
${all_includes}#include <tests/docs/pages.h>

using namespace cutaway;

namespace {

${all_pages}}

#line 1 \"generated/pages.cpp\"
namespace pages {
const std::vector<Program>& programs() {
  static const std::vector<Program> list = {
${all_names}  };
  return list;
}
}
")
configure_file(${generated}.new ${generated} COPYONLY)
target_sources(test_docs PRIVATE ${generated})
