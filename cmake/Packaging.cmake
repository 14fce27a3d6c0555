# The .debs that ./dev package makes. docs/how-to/install.md says why they are cut so.
if(NOT TARGET hopwise)
  return()
endif()

# What no attack may overwrite; lld does the first half unasked.
target_link_options(hopwise PRIVATE LINKER:-z,relro,-z,now)

set(deb_sources ${PROJECT_SOURCE_DIR}/deploy/deb)
set(deb_made ${PROJECT_BINARY_DIR}/deb)

# deb_gzip(<file> <made>): in the same bytes each time.
function(deb_gzip file made)
  get_filename_component(folder ${made} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND gzip -9nc INPUT_FILE ${file} OUTPUT_FILE ${made}
                  COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()

configure_file(${deb_sources}/changelog.in ${deb_made}/changelog @ONLY)
deb_gzip(${deb_made}/changelog ${deb_made}/changelog.gz)

# deb_component(<component>): what every package has.
function(deb_component component)
  set(package hopwise-${component})
  install(FILES ${deb_sources}/copyright ${deb_made}/changelog.gz
    DESTINATION share/doc/${package} COMPONENT ${component})
endfunction()

# deb_daemon(<component>): a package of the unit and the configuration of `hopwise <component>`.
function(deb_daemon component)
  deb_component(${component})
  set(unit hopwise-${component}.service)
  set(control ${deb_made}/${component})
  foreach(script postinst prerm postrm)
    configure_file(${deb_sources}/${script}.in ${control}/${script} @ONLY)
  endforeach()
  set(kept /etc/default/hopwise-${component} /etc/hopwise/volcano-${component}.conf)
  list(JOIN kept "\n" kept)
  file(WRITE ${control}/conffiles "${kept}\n")
  install(FILES ${deb_sources}/${unit} DESTINATION /lib/systemd/system COMPONENT ${component})
  install(FILES ${deb_sources}/volcano-${component}.conf DESTINATION /etc/hopwise
    COMPONENT ${component})
  install(FILES ${deb_sources}/hopwise-${component}.default DESTINATION /etc/default
    RENAME hopwise-${component} COMPONENT ${component})
endfunction()

deb_component(cli)
install(TARGETS hopwise RUNTIME DESTINATION bin COMPONENT cli)
install(FILES README.md DESTINATION share/doc/hopwise-cli COMPONENT cli)
install(DIRECTORY docs DESTINATION share/doc/hopwise-cli COMPONENT cli
  FILES_MATCHING PATTERN "*.md")
# What the program says of itself, asked when it is packed: never out of date.
install(CODE "
  foreach(shell bash zsh fish)
    execute_process(COMMAND \"$<TARGET_FILE:hopwise>\" completion \${shell}
                    OUTPUT_FILE \"${deb_made}/completion.\${shell}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  execute_process(COMMAND \"$<TARGET_FILE:hopwise>\" man COMMAND gzip -9n
                  OUTPUT_FILE \"${deb_made}/hopwise.1.gz\" COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT cli)
install(FILES ${deb_made}/hopwise.1.gz DESTINATION share/man/man1 COMPONENT cli)
install(FILES ${deb_made}/completion.bash DESTINATION share/bash-completion/completions
  RENAME hopwise COMPONENT cli)
install(FILES ${deb_made}/completion.zsh DESTINATION share/zsh/vendor-completions
  RENAME _hopwise COMPONENT cli)
install(FILES ${deb_made}/completion.fish DESTINATION share/fish/vendor_completions.d
  RENAME hopwise.fish COMPONENT cli)
deb_daemon(scheduler)
deb_daemon(controller)

# Packing needs the program only, not the tests and benchmarks of the build.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL cli scheduler controller)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_NAME hopwise)
set(CPACK_PACKAGE_VENDOR "The Hopwise authors")
set(CPACK_PACKAGE_CONTACT "The Hopwise authors <maintainers@hopwise.invalid>")
# It would stand above the synopsis of every package.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/package)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE hopwise)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_CLI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CLI_PACKAGE_RECOMMENDS ca-certificates)
# The one package of old.
set(CPACK_DEBIAN_CLI_PACKAGE_CONFLICTS hopwise)
set(CPACK_DEBIAN_CLI_PACKAGE_REPLACES hopwise)
set(CPACK_DEBIAN_CLI_DESCRIPTION "topology-aware gang scheduler for Kubernetes
Places whole jobs so that their traffic takes the shortest path through the
network, or says in plain words why a job waits. It reads the objects and the
configuration of Volcano.
.
This package has the program with all its commands: it schedules manifests or
a dump of a cluster offline, draws and checks the topology, and is what the
services of hopwise-scheduler and hopwise-controller run.")
foreach(component scheduler controller)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "hopwise-cli (= ${PROJECT_VERSION})")
  set(control ${deb_made}/${component})
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA
    ${control}/postinst ${control}/prerm ${control}/postrm ${control}/conffiles)
endforeach()
set(CPACK_DEBIAN_SCHEDULER_DESCRIPTION "gang scheduler for Kubernetes - service of the scheduler
Runs hopwise scheduler beside a Kubernetes cluster, on a machine of its own or
on one of the control plane. It starts once /etc/hopwise/scheduler.kubeconfig
is there.")
set(CPACK_DEBIAN_CONTROLLER_DESCRIPTION "gang scheduler for Kubernetes - service of the controller
Runs hopwise controller, which makes the pods of jobs, the groups of other
workloads, and the topology that the scheduler goes by: of node labels, or of
what UFM tells. It starts once /etc/hopwise/controller.kubeconfig is there.")
include(CPack)
