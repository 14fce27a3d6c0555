# How a module, a program and their tests are declared. See HACKING.md, "A new module".

# Flags for our own code only; imported targets are SYSTEM, so their headers do not warn. What gcc
# 12 says of freed pointers is wrong of std::vector; the sanitizers look after them.
add_library(hopwise_build_flags INTERFACE)
target_compile_options(hopwise_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Wimplicit-fallthrough -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-free-nonheap-object>
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# hopwise_add_module(
#   NAME <x>             the folder's name under src/
#   [HEADERS a.h ...]    every header; each must compile alone
#   [SOURCES a.cc ...]   none makes a header-only module
#   [DEPS base ...]      modules it may include, visible to its users
#   [LIBS fmt::fmt ...]  third-party targets, visible to its users
#   [TESTS a_test.cc ...] unit tests (and headers only they use)
#   [TEST_DEPS sim ...] [TEST_LIBS ...]   further needs of the tests alone
#   [FUZZERS a_fuzz.cc ...]               one libFuzzer program each
#   [HOT])                               its tests compute: optimized even where the build is not
#
# Makes the static library hopwise_<x>, alias hopwise::<x>; the ctest <x>_test (label unit); and the
# ctest <x>_link_test (label link), which links the whole library with nothing but what is declared.
function(hopwise_add_module)
  set(many HEADERS SOURCES DEPS LIBS TESTS TEST_DEPS TEST_LIBS FUZZERS)
  cmake_parse_arguments(PARSE_ARGV 0 arg HOT NAME "${many}")
  if(NOT arg_NAME OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hopwise_add_module: NAME is missing or not understood: "
      "${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(dep IN LISTS arg_DEPS)
    if(NOT TARGET hopwise_${dep})
      message(FATAL_ERROR "Module ${arg_NAME} needs '${dep}', which is no module built before it. "
        "To build a part only: -DHOPWISE_MODULES=\"base;...\"")
    endif()
  endforeach()

  set(library hopwise_${arg_NAME})
  set(scope PUBLIC)
  if(arg_SOURCES)
    add_library(${library} STATIC ${arg_SOURCES})
    target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:hopwise_build_flags>)
  else()
    add_library(${library} INTERFACE)
    set(scope INTERFACE)
  endif()
  if(arg_HOT)
    target_compile_options(${library} PRIVATE $<$<CONFIG:Debug>:-O1>)
  endif()
  add_library(hopwise::${arg_NAME} ALIAS ${library})
  target_include_directories(${library} ${scope} ${PROJECT_SOURCE_DIR}/src)
  # A header whose source includes it first is proven to compile alone by that; the others are
  # compiled by themselves.
  set(lone ${arg_HEADERS})
  foreach(source IN LISTS arg_SOURCES)
    string(REGEX REPLACE "\\.cc$" ".h" header ${source})
    list(REMOVE_ITEM lone ${header})
  endforeach()
  set(paired ${arg_HEADERS})
  list(REMOVE_ITEM paired ${lone})
  target_sources(${library} ${scope}
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${paired}
    FILE_SET lone TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${lone})
  set_target_properties(${library} PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY lone)
  list(TRANSFORM arg_DEPS PREPEND hopwise::)
  target_link_libraries(${library} ${scope} ${arg_DEPS} ${arg_LIBS})

  if(HOPWISE_UNIT_TESTS)
    hopwise_add_link_test(${arg_NAME})
  endif()
  if(HOPWISE_UNIT_TESTS AND arg_TESTS)
    hopwise_add_test(NAME ${arg_NAME}_test SOURCES ${arg_TESTS}
      DEPS ${arg_NAME} ${arg_TEST_DEPS} LIBS ${arg_TEST_LIBS})
  endif()
  foreach(fuzzer IN LISTS arg_FUZZERS)
    hopwise_add_fuzzer(${fuzzer} ${arg_NAME})
  endforeach()

  set_property(DIRECTORY APPEND PROPERTY HOPWISE_LISTED ${arg_TESTS})
  cmake_language(DEFER CALL hopwise_check_all_listed)
endfunction()

# hopwise_add_test(NAME t SOURCES a_test.cc ... [DEPS sim ...] [LIBS ...] [LABELS unit]
#   [TIMEOUT 600]): one gtest program, one ctest entry. Its output folder is <build>/test.
function(hopwise_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "SOURCES;DEPS;LIBS;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  list(TRANSFORM arg_DEPS PREPEND hopwise::)
  target_link_libraries(${arg_NAME} PRIVATE hopwise_build_flags ${arg_DEPS} ${arg_LIBS}
    GTest::gtest_main GTest::gmock rapidcheck rapidcheck_gtest)
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  set_target_properties(${arg_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

# hopwise_add_program(NAME p SOURCES main.cc ... [DEPS cli ...] [LIBS ...]): a program of ours, with
# our warnings. It lands in <build>/bin, or in <build>/bench and <build>/test for those folders.
function(hopwise_add_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;DEPS;LIBS")
  add_executable(${arg_NAME} ${arg_SOURCES})
  list(TRANSFORM arg_DEPS PREPEND hopwise::)
  target_link_libraries(${arg_NAME} PRIVATE hopwise_build_flags ${arg_DEPS} ${arg_LIBS})
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/src)
endfunction()

# Links every object of the module, used or not: a symbol that no declared dependency defines is an
# error here, however the programs happen to be linked.
function(hopwise_add_link_test name)
  set(target ${name}_link_test)
  set(main ${CMAKE_CURRENT_BINARY_DIR}/${target}.cc)
  file(CONFIGURE OUTPUT ${main} CONTENT "int main() { return 0; }\n")
  add_executable(${target} ${main})
  get_target_property(type hopwise_${name} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_link_libraries(${target} PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,hopwise_${name}>)
  else()
    target_link_libraries(${target} PRIVATE hopwise_${name})
  endif()
  target_link_libraries(${target} PRIVATE hopwise_build_flags)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES TIMEOUT 60 LABELS link)
endfunction()

# Outside the fuzz preset a fuzzer is only compiled, so that it cannot rot.
function(hopwise_add_fuzzer source module)
  get_filename_component(name ${source} NAME_WE)
  if(HOPWISE_FUZZ)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  else()
    add_library(${name} OBJECT ${source})
  endif()
  target_link_libraries(${name} PRIVATE hopwise_build_flags hopwise::${module})
endfunction()

# Runs when a module's folder has been read: each *.cc and *.h there must belong to some target.
function(hopwise_check_all_listed)
  get_property(listed DIRECTORY PROPERTY HOPWISE_LISTED)
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    foreach(property SOURCES INTERFACE_SOURCES HEADER_SET HEADER_SET_lone)
      get_target_property(files ${target} ${property})
      if(files)
        list(APPEND listed ${files})
      endif()
    endforeach()
  endforeach()
  list(TRANSFORM listed REPLACE "^${CMAKE_CURRENT_SOURCE_DIR}/" "")
  file(GLOB_RECURSE present CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cc *.h)
  foreach(file IN LISTS present)
    if(NOT file IN_LIST listed)
      message(${HOPWISE_UNLISTED}
        "${CMAKE_CURRENT_SOURCE_DIR}/${file} is in no list of its CMakeLists.txt")
    endif()
  endforeach()
endfunction()

# hopwise_add_pytest(NAME <x> TIMEOUT <s> [FILES a.py ...] [LABELS ...] [ENVIRONMENT A=b ...])
#
# Makes the ctest <x> of the pytest files of this folder (all, when none is named). It runs alone: a
# control plane wants the whole machine.
function(hopwise_add_pytest)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "FILES;LABELS;ENVIRONMENT")
  # pytest and the official Python client are in .venv only.
  set(python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  if(NOT EXISTS ${python})
    set(python ${Python3_EXECUTABLE})
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${python} -m pytest -q -p no:cacheprovider ${arg_FILES}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
    RUN_SERIAL TRUE ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()
