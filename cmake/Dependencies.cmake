# Every third-party library, found on the system and nowhere else. The apt name stands beside each,
# so that a missing one says what to install; tools/apt-packages.txt is the list ./dev installs.

# Finds a CMake package, or stops with the name of the apt package that brings it.
macro(hopwise_find_package apt_name package)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} not found: apt-get install ${apt_name} (or ./dev bootstrap)")
  endif()
endmacro()

# Finds a pkg-config module as PkgConfig::<prefix>, or stops with the name of the apt package.
macro(hopwise_find_pkg apt_name prefix module)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${module} not found: apt-get install ${apt_name} (or ./dev bootstrap)")
  endif()
endmacro()

hopwise_find_package(pkg-config PkgConfig)
hopwise_find_package(libc6-dev Threads)

# The tests' Python is the one ./dev bootstrap fills from tools/requirements.txt, if it is there.
if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
hopwise_find_package(python3 Python3 3.11 COMPONENTS Interpreter)

hopwise_find_package(libfmt-dev fmt 9)
hopwise_find_package(libsimdjson-dev simdjson 3)
hopwise_find_package(nlohmann-json3-dev nlohmann_json 3.11)
hopwise_find_package(libcli11-dev CLI11 2.1)
hopwise_find_package(libexpected-dev tl-expected 1.0)
hopwise_find_package(libboost1.81-dev Boost 1.81)
hopwise_find_pkg(libre2-dev RE2 re2)
hopwise_find_pkg(libyaml-dev YAML yaml-0.1)
hopwise_find_pkg(libcurl4-openssl-dev CURL libcurl)
hopwise_find_pkg(libssl-dev CRYPTO libcrypto)
hopwise_find_pkg(libmicrohttpd-dev MICROHTTPD libmicrohttpd)
hopwise_find_pkg(libgnutls28-dev GNUTLS gnutls)
hopwise_find_pkg(prometheus-cpp-dev PROMETHEUS prometheus-cpp-core)

hopwise_find_package("libgtest-dev libgmock-dev" GTest 1.12)
hopwise_find_package(librapidcheck-dev rapidcheck)
hopwise_find_package(libbenchmark-dev benchmark 1.7)
