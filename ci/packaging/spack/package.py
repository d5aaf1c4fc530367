# A recipe for Spack 1.0 or newer: put it into a repository as packages/rushmem/package.py. The archive
# of the sources is made by `cargo xtask dist --only source`; put it into a mirror, or unpack it, and
# name its directory with `spack dev-build` or `spack develop --path`.
from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Rushmem(Package):
    """OpenSHMEM 1.6 runtime: library, compiler wrappers and launcher."""

    license("MIT OR Apache-2.0")
    version("0.1.0")

    provides("shmem@1.6")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    # Opened at run time, if they are there.
    variant("ucx", default=True, description="Use UCX")
    variant("libfabric", default=True, description="Use libfabric")
    depends_on("ucx@1.10:+thread_multiple", when="+ucx", type="run")
    depends_on("libfabric@1.11:", when="+libfabric", type="run")
    depends_on("hwloc@2:", type="run")

    def url_for_version(self, version):
        return f"file:///rushmem-{version}-source.tar.gz"

    def install(self, spec, prefix):
        # The sources of all dependencies are in the archive.
        which("cargo")("xtask", "install", "--prefix", prefix)

    def setup_run_environment(self, env):
        # The dynamic linker finds what is opened at run time.
        for name in ("ucx", "libfabric", "hwloc"):
            if name in self.spec:
                env.prepend_path("LD_LIBRARY_PATH", self.spec[name].prefix.lib)
