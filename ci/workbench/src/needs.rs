//! Programs that tasks call: whether they are here, and how a package manager brings those that are
//! not.
//!
//! A [`Need`] is data. Nothing is installed without saying so first; where nothing can be
//! installed, the error says what to type.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::process;

/// A program, and the packages that bring it.
#[derive(Debug)]
pub struct Need {
    /// The program that is looked for on PATH.
    pub program: &'static str,
    /// What it is needed for.
    pub purpose: &'static str,
    /// Packages of Debian and its kin.
    pub apt: &'static [&'static str],
    /// Packages of Fedora, RHEL and their kin.
    pub dnf: &'static [&'static str],
    /// Packages of SUSE.
    pub zypper: &'static [&'static str],
}

/// The C compiler by its customary name; `OSHCC_CC` may name another.
pub const C_COMPILER: Need = Need {
    program: "cc",
    purpose: "compiles C programs",
    apt: &["gcc", "libc6-dev"],
    dnf: &["gcc"],
    zypper: &["gcc"],
};

/// The C++ compiler by its customary name.
pub const CXX_COMPILER: Need = Need {
    program: "c++",
    purpose: "compiles C++ programs",
    apt: &["g++"],
    dnf: &["gcc-c++"],
    zypper: &["gcc-c++"],
};

/// GCC's Fortran compiler.
pub const FORTRAN_COMPILER: Need = Need {
    program: "gfortran",
    purpose: "compiles Fortran programs",
    apt: &["gfortran"],
    dnf: &["gcc-gfortran"],
    zypper: &["gcc-fortran"],
};

/// GNU binutils, with `ld`, `ar` and `objcopy`.
pub const BINUTILS: Need = Need {
    program: "objcopy",
    purpose: "makes the static library",
    apt: &["binutils"],
    dnf: &["binutils"],
    zypper: &["binutils"],
};

/// valgrind, with its tool callgrind.
pub const VALGRIND: Need = Need {
    program: "valgrind",
    purpose: "counts instructions",
    apt: &["valgrind"],
    dnf: &["valgrind"],
    zypper: &["valgrind"],
};

/// strace.
pub const STRACE: Need = Need {
    program: "strace",
    purpose: "has system calls fail",
    apt: &["strace"],
    dnf: &["strace"],
    zypper: &["strace"],
};

/// The C compiler of LLVM.
pub const CLANG: Need = Need {
    program: "clang",
    purpose: "compiles C programs as gcc does not",
    apt: &["clang"],
    dnf: &["clang"],
    zypper: &["clang"],
};

/// The GNU debugger.
pub const GDB: Need = Need {
    program: "gdb",
    purpose: "runs a test program under a debugger",
    apt: &["gdb"],
    dnf: &["gdb"],
    zypper: &["gdb"],
};

/// Open MPI's OpenSHMEM.
pub const OPEN_MPI: Need = Need {
    program: "oshcc",
    purpose: "is the OpenSHMEM that benches compare with (Open MPI)",
    apt: &["openmpi-bin", "libopenmpi-dev"],
    dnf: &["openmpi-devel"],
    zypper: &["openmpi-devel"],
};

/// hwloc is opened at run time; its programs bring the library, and show that it is here.
pub const HWLOC: Need = Need {
    program: "hwloc-info",
    purpose: "comes with hwloc, which says where cores, memory and NICs are",
    apt: &["hwloc-nox"],
    dnf: &["hwloc"],
    zypper: &["hwloc"],
};

/// UCX is opened at run time; its utilities bring the library, and show that it is here.
pub const UCX: Need = Need {
    program: "ucx_info",
    purpose: "comes with UCX, one of the networks",
    apt: &["ucx-utils"],
    dnf: &["ucx"],
    zypper: &["ucx-tools"],
};

/// MPICH's launcher.
pub const HYDRA: Need = Need {
    program: "mpiexec.hydra",
    purpose: "starts test programs over PMI (MPICH)",
    apt: &["mpich", "libmpich-dev"],
    dnf: &["mpich", "mpich-devel"],
    zypper: &["mpich", "mpich-devel"],
};

/// Open MPI's launcher.
pub const MPIRUN: Need = Need {
    program: "mpirun.openmpi",
    purpose: "starts test programs over PMIx (Open MPI)",
    apt: &["openmpi-bin", "libopenmpi-dev", "libpmix2"],
    dnf: &["openmpi-devel"],
    zypper: &["openmpi-devel"],
};

/// pkg-config, or what stands for it.
pub const PKG_CONFIG: Need = Need {
    program: "pkg-config",
    purpose: "says how to compile for a library",
    apt: &["pkg-config"],
    dnf: &["pkgconf-pkg-config"],
    zypper: &["pkg-config"],
};

/// CMake, with a `make` to build by.
pub const CMAKE: Need = Need {
    program: "cmake",
    purpose: "builds a project that finds the library as CMake does",
    apt: &["cmake", "make"],
    dnf: &["cmake", "make"],
    zypper: &["cmake", "make"],
};

/// automake and autoconf, with a `make` to build by.
pub const AUTOMAKE: Need = Need {
    program: "automake",
    purpose: "comes with autoconf, by which a project finds the library",
    apt: &["autoconf", "automake", "make"],
    dnf: &["autoconf", "automake", "make"],
    zypper: &["autoconf", "automake", "make"],
};

/// A formatter of man pages.
pub const MANDOC: Need = Need {
    program: "mandoc",
    purpose: "reads man pages",
    apt: &["mandoc"],
    dnf: &["mandoc"],
    zypper: &["mandoc"],
};

/// Slurm: its daemons, its launcher, and munge, by which they know each other.
pub const SLURM: Need = Need {
    program: "slurmctld",
    purpose: "is the Slurm that tests run privately",
    apt: &["slurmctld", "slurmd", "slurm-client", "munge"],
    dnf: &["slurm", "slurm-slurmctld", "slurm-slurmd", "munge"],
    zypper: &["slurm", "slurm-node", "munge"],
};

/// OpenSSH's client.
pub const SSH: Need = Need {
    program: "ssh",
    purpose: "starts PEs on other hosts",
    apt: &["openssh-client"],
    dnf: &["openssh-clients"],
    zypper: &["openssh-clients"],
};

/// libfabric is opened at run time; its program shows that it is here.
pub const LIBFABRIC: Need = Need {
    program: "fi_info",
    purpose: "comes with libfabric, over which programs are tested",
    apt: &["libfabric-bin", "libfabric1"],
    dnf: &["libfabric"],
    zypper: &["libfabric"],
};

/// An emulator of whole machines.
pub const QEMU: Need = Need {
    program: "qemu-system-x86_64",
    purpose: "runs the guests that have verbs",
    apt: &["qemu-system-x86"],
    dnf: &["qemu-system-x86"],
    zypper: &["qemu-x86"],
};

/// A shell and its tools in one program that needs no libraries.
pub const BUSYBOX: Need = Need {
    program: "busybox",
    purpose: "starts the guests, linked statically,",
    apt: &["busybox-static"],
    dnf: &["busybox"],
    zypper: &["busybox-static"],
};

/// The programs for modules of the kernel.
pub const KMOD: Need = Need {
    program: "depmod",
    purpose: "finds the modules of the guests' kernel",
    apt: &["kmod"],
    dnf: &["kmod"],
    zypper: &["kmod"],
};

/// The archiver whose format a kernel starts from.
pub const CPIO: Need = Need {
    program: "cpio",
    purpose: "packs what the guests start from",
    apt: &["cpio"],
    dnf: &["cpio"],
    zypper: &["cpio"],
};

/// With it come the providers, one of which speaks to the NIC made of software.
pub const IBVERBS: Need = Need {
    program: "ibv_devinfo",
    purpose: "comes with the library of verbs",
    apt: &["ibverbs-utils", "ibverbs-providers", "librdmacm1"],
    dnf: &["libibverbs-utils", "libibverbs", "librdmacm"],
    zypper: &["libibverbs-utils", "libibverbs1", "librdmacm1"],
};

/// iproute2, with its program `rdma`.
pub const IPROUTE: Need = Need {
    program: "rdma",
    purpose: "makes a NIC that speaks verbs",
    apt: &["iproute2"],
    dnf: &["iproute"],
    zypper: &["iproute2"],
};

/// How long packages may take to be installed. A package manager that reaches no server may try for
/// as long.
const LIMIT: Duration = Duration::from_secs(600);

struct PackageManager {
    program: &'static str,
    refresh: &'static [&'static str],
    install: &'static [&'static str],
    packages: fn(&Need) -> &'static [&'static str],
}

const MANAGERS: &[PackageManager] = &[
    PackageManager {
        program: "apt-get",
        refresh: &["update", "-q", "-o", "Acquire::http::Timeout=20"],
        install: &["install", "-q", "-y", "--no-install-recommends"],
        packages: |need| need.apt,
    },
    PackageManager {
        program: "dnf",
        refresh: &[],
        install: &["install", "-q", "-y"],
        packages: |need| need.dnf,
    },
    PackageManager {
        program: "zypper",
        refresh: &[],
        install: &["--non-interactive", "install", "--no-recommends"],
        packages: |need| need.zypper,
    },
];

/// Installs what is missing of `needs`, saying what; an error where it may not or cannot.
pub fn ensure(needs: &[&Need]) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let Some(manager) = MANAGERS.iter().find(|manager| process::on_path(manager.program).is_some())
    else {
        bail!(
            "{}; none of apt-get, dnf and zypper is here to install it: install it by hand and run this again",
            described(&missing)
        );
    };
    let packages: Vec<&str> =
        missing.iter().flat_map(|need| (manager.packages)(need)).copied().collect();
    if !is_root() {
        let mut install = Command::new(manager.program);
        install.args(manager.install).args(&packages);
        bail!(
            "{}; it can be installed only as root: {}",
            described(&missing),
            process::shown(&install)
        );
    }
    println!("{}: installing {}", described(&missing), packages.join(", "));
    if !manager.refresh.is_empty() {
        process::run(process::limited(LIMIT, manager.program).args(manager.refresh))?;
    }
    let mut install = process::limited(LIMIT, manager.program);
    install.args(manager.install).args(&packages).env("DEBIAN_FRONTEND", "noninteractive");
    process::run(&mut install)?;
    match self::missing(needs).as_slice() {
        [] => Ok(()),
        still => bail!(
            "{}, although {} installed {}",
            described(still),
            manager.program,
            packages.join(", ")
        ),
    }
}

/// The error of a task that needs a C compiler and has none, or nothing. It installs nothing.
pub fn c_compiler() -> Result<()> {
    let named = std::env::var("OSHCC_CC").unwrap_or_default();
    let compiler = if named.is_empty() { "cc" } else { &named };
    let first = compiler.split_whitespace().next().unwrap_or(compiler);
    if process::on_path(compiler).or_else(|| process::on_path(first)).is_some() {
        return Ok(());
    }
    bail!(
        "no C compiler: `{compiler}` was not found; install one (for example the package gcc) or name one in OSHCC_CC"
    )
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    process::capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn missing<'a>(needs: &[&'a Need]) -> Vec<&'a Need> {
    needs.iter().copied().filter(|need| process::on_path(need.program).is_none()).collect()
}

fn described(missing: &[&Need]) -> String {
    let each: Vec<String> =
        missing.iter().map(|need| format!("`{}`, which {},", need.program, need.purpose)).collect();
    let verb = if missing.len() == 1 { "is" } else { "are" };
    format!("{} {verb} missing", each.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Need = Need {
        program: "no-such-program-anywhere",
        purpose: "does nothing",
        apt: &[],
        dnf: &[],
        zypper: &[],
    };

    #[test]
    fn what_is_here_needs_no_package_manager() {
        let shell = Need { program: "sh", ..ABSENT };
        ensure(&[&shell]).unwrap();
    }

    #[test]
    fn what_is_missing_is_named_with_its_purpose() {
        assert_eq!(
            described(&missing(&[&ABSENT])),
            "`no-such-program-anywhere`, which does nothing, is missing"
        );
    }
}
