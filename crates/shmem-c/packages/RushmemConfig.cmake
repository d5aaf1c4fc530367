# find_package(Rushmem) defines
#   Rushmem::Rushmem   the library, for C, C++ and Fortran
#   Rushmem::Static    the static library; programs that link with it are entirely static
#   Rushmem_OSHRUN     the launcher: ${Rushmem_OSHRUN} -n 4 program
# The prefix is derived from the real path of this file, so that the installation can be moved, and also be found through
# a link such as that from /lib to /usr/lib.
get_filename_component(_rushmem_prefix "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_rushmem_prefix "${_rushmem_prefix}/../../.." ABSOLUTE)

set(Rushmem_OSHRUN "${_rushmem_prefix}/bin/oshrun")

if(NOT TARGET Rushmem::Rushmem)
  add_library(Rushmem::Rushmem SHARED IMPORTED)
  set_target_properties(Rushmem::Rushmem PROPERTIES
    IMPORTED_LOCATION "${_rushmem_prefix}/lib/librushmem.so.1"
    IMPORTED_SONAME "librushmem.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_rushmem_prefix}/include")
endif()

if(NOT TARGET Rushmem::Static)
  add_library(Rushmem::Static STATIC IMPORTED)
  # The options about _Fork let the library notice forks in a static program; in a dynamic program they would keep it from
  # noticing them, hence -static. gfortran's library calls these functions once there are threads, but refers to them weakly.
  set(_rushmem_threads)
  foreach(_rushmem_name mutex_init mutex_destroy cond_init cond_destroy cond_wait cond_broadcast)
    list(APPEND _rushmem_threads "LINKER:--undefined=pthread_${_rushmem_name}")
  endforeach()
  set_target_properties(Rushmem::Static PROPERTIES
    IMPORTED_LOCATION "${_rushmem_prefix}/lib/librushmem.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_rushmem_prefix}/include"
    INTERFACE_LINK_LIBRARIES "rt;pthread;m;dl"
    INTERFACE_LINK_OPTIONS
      "-static;LINKER:--wrap=_Fork;LINKER:--undefined=_Fork;$<$<LINK_LANGUAGE:Fortran>:${_rushmem_threads}>")
  unset(_rushmem_threads)
  unset(_rushmem_name)
endif()

unset(_rushmem_prefix)
