#%Module1.0
# A module file for Environment Modules: put it where modules are, as rushmem/0.1.0, and name the
# directory into which the archive of the release was unpacked.
set prefix /opt/rushmem/0.1.0

proc ModulesHelp { } {
    puts stderr "OpenSHMEM 1.6: oshcc, oshcxx and oshfort compile programs, oshrun starts them."
}
module-whatis "OpenSHMEM 1.6 runtime"
conflict rushmem

prepend-path PATH $prefix/bin
# Without this variable, man finds the pages through PATH.
if { [info exists ::env(MANPATH)] } {
    prepend-path MANPATH $prefix/share/man
}
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CMAKE_PREFIX_PATH $prefix
setenv RUSHMEM_ROOT $prefix
# Where UCX, libfabric, hwloc or PMIx are modules, too, load them here, so that they are found:
# module load ucx
