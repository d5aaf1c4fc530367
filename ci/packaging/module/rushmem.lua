-- A module file for Lmod: put it where modules are, as rushmem/0.1.0.lua, and name the directory into
-- which the archive of the release was unpacked.
local prefix = "/opt/rushmem/0.1.0"

help([[OpenSHMEM 1.6: oshcc, oshcxx and oshfort compile programs, oshrun starts them.]])
whatis("Name: Rushmem")
whatis("Description: OpenSHMEM 1.6 runtime")
family("openshmem")

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
-- The empty entry stands for the pages of the system.
append_path("MANPATH", "", ":")
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
setenv("RUSHMEM_ROOT", prefix)
-- Where UCX, libfabric, hwloc or PMIx are modules, too, load them here, so that they are found:
-- depends_on("ucx")
