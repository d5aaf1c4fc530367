//! The programs that tasks call: finds those that are missing, and installs them by a package
//! manager.
//!
//! A [`Need`] is data. A list of what will be installed is printed first. If this process may not
//! install, the error has the command.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::process;

/// A program, and the packages that contain it.
#[derive(Debug)]
pub struct Need {
    /// The name of the program, which is searched on PATH.
    pub program: &'static str,
    /// The purpose of the program, as the end of a sentence of which it is the subject.
    pub purpose: &'static str,
    /// For each of [`MANAGERS`], the packages, separated by spaces.
    packages: [&'static str; MANAGERS.len()],
}

const fn need(
    program: &'static str,
    purpose: &'static str,
    packages: [&'static str; MANAGERS.len()],
) -> Need {
    Need {
        program,
        purpose,
        packages,
    }
}

/// The C compiler by its customary name; `OSHCC_CC` may name another.
pub const C_COMPILER: Need = need("cc", "compiles C programs", ["gcc libc6-dev", "gcc", "gcc"]);
/// The C++ compiler by its customary name.
pub const CXX_COMPILER: Need = need(
    "c++",
    "compiles C++ programs",
    ["g++", "gcc-c++", "gcc-c++"],
);
/// GCC's Fortran compiler.
pub const FORTRAN_COMPILER: Need = need(
    "gfortran",
    "compiles Fortran programs",
    ["gfortran", "gcc-gfortran", "gcc-fortran"],
);
/// GNU binutils, with `ld`, `ar` and `objcopy`.
pub const BINUTILS: Need = need(
    "objcopy",
    "makes the static library",
    ["binutils", "binutils", "binutils"],
);
/// valgrind, with its tool callgrind.
pub const VALGRIND: Need = need(
    "valgrind",
    "counts instructions",
    ["valgrind", "valgrind", "valgrind"],
);
/// The tracer of system calls.
pub const STRACE: Need = need(
    "strace",
    "has system calls fail",
    ["strace", "strace", "strace"],
);
/// The C compiler of LLVM.
pub const CLANG: Need = need(
    "clang",
    "compiles C programs as gcc does not",
    ["clang", "clang", "clang"],
);
/// The debugger that `oshrun --gdb` and hang reports start.
pub const GDB: Need = need(
    "gdb",
    "runs a test program under a debugger",
    ["gdb", "gdb", "gdb"],
);
/// Open MPI's OpenSHMEM.
pub const OPEN_MPI: Need = need(
    "oshcc",
    "is the OpenSHMEM that benches compare with (Open MPI)",
    [
        "openmpi-bin libopenmpi-dev",
        "openmpi-devel",
        "openmpi-devel",
    ],
);
/// hwloc, which is opened at run time; the package of its programs brings the library.
pub const HWLOC: Need = need(
    "hwloc-info",
    "comes with hwloc, which says where cores, memory and NICs are",
    ["hwloc-nox", "hwloc", "hwloc"],
);
/// UCX, which is opened at run time; the package of its programs brings the library.
pub const UCX: Need = need(
    "ucx_info",
    "comes with UCX, one of the networks",
    ["ucx-utils", "ucx", "ucx-tools"],
);
/// MPICH's launcher.
pub const HYDRA: Need = need(
    "mpiexec.hydra",
    "starts test programs over PMI (MPICH)",
    [
        "mpich libmpich-dev",
        "mpich mpich-devel",
        "mpich mpich-devel",
    ],
);
/// Open MPI's launcher.
pub const MPIRUN: Need = need(
    "mpirun.openmpi",
    "starts test programs over PMIx (Open MPI)",
    [
        "openmpi-bin libopenmpi-dev libpmix2",
        "openmpi-devel",
        "openmpi-devel",
    ],
);
/// pkg-config, or a program that replaces it.
pub const PKG_CONFIG: Need = need(
    "pkg-config",
    "says how to compile for a library",
    ["pkg-config", "pkgconf-pkg-config", "pkg-config"],
);
/// CMake, with a `make` to build by.
pub const CMAKE: Need = need(
    "cmake",
    "builds a project that finds the library as CMake does",
    ["cmake make", "cmake make", "cmake make"],
);
/// Meson, with ninja.
pub const MESON: Need = need(
    "meson",
    "builds a project that finds the library as Meson does",
    ["meson", "meson", "meson"],
);
/// Automake and Autoconf, with a `make`.
pub const AUTOMAKE: Need = need(
    "automake",
    "comes with autoconf, by which a project finds the library",
    [
        "autoconf automake make",
        "autoconf automake make",
        "autoconf automake make",
    ],
);
/// A formatter of man pages.
pub const MANDOC: Need = need("mandoc", "reads man pages", ["mandoc", "mandoc", "mandoc"]);
/// Python's test runner.
pub const PYTEST: Need = need(
    "pytest",
    "runs PEs as tests in Python",
    ["python3-pytest", "python3-pytest", "python3-pytest"],
);
/// NumPy, which brings this program.
pub const NUMPY: Need = need(
    "f2py",
    "comes with NumPy, whose arrays Python programs share",
    [
        "python3-numpy",
        "python3-numpy python3-numpy-f2py",
        "python3-numpy",
    ],
);
/// A container engine, with a container runtime.
pub const PODMAN: Need = need(
    "podman",
    "runs PEs in containers",
    ["podman runc", "podman", "podman"],
);
/// Slurm: its daemons, its launcher, and munge, by which they authenticate each other.
pub const SLURM: Need = need(
    "slurmctld",
    "is the Slurm that tests run privately",
    [
        "slurmctld slurmd slurm-client munge",
        "slurm slurm-slurmctld slurm-slurmd munge",
        "slurm slurm-node munge",
    ],
);
/// OpenSSH's client.
pub const SSH: Need = need(
    "ssh",
    "starts PEs on other hosts",
    ["openssh-client", "openssh-clients", "openssh-clients"],
);
/// libfabric, which is opened at run time.
pub const LIBFABRIC: Need = need(
    "fi_info",
    "comes with libfabric, over which programs are tested",
    ["libfabric-bin libfabric1", "libfabric", "libfabric"],
);
/// An emulator of whole machines.
pub const QEMU: Need = need(
    "qemu-system-x86_64",
    "runs the guests that have verbs",
    ["qemu-system-x86", "qemu-system-x86", "qemu-x86"],
);
/// A shell and its tools in one program without libraries.
pub const BUSYBOX: Need = need(
    "busybox",
    "starts the guests, linked statically,",
    ["busybox-static", "busybox", "busybox-static"],
);
/// The programs for modules of the kernel.
pub const KMOD: Need = need(
    "depmod",
    "finds the modules of the guests' kernel",
    ["kmod", "kmod", "kmod"],
);
/// The archiver for the format of the kernel's initial file system.
pub const CPIO: Need = need(
    "cpio",
    "packs what the guests start from",
    ["cpio", "cpio", "cpio"],
);
/// The library of verbs, with its providers, one of which is for the NIC in software.
pub const IBVERBS: Need = need(
    "ibv_devinfo",
    "comes with the library of verbs",
    [
        "ibverbs-utils ibverbs-providers librdmacm1",
        "libibverbs-utils libibverbs librdmacm",
        "libibverbs-utils libibverbs1 librdmacm1",
    ],
);
/// iproute2, which also has `rdma`.
pub const IPROUTE: Need = need(
    "ip",
    "makes the networks and NICs of tests",
    ["iproute2", "iproute", "iproute2"],
);

/// What the virtual machines of `cargo xtask verbs` need.
pub const OF_VERBS: &[&Need] = &[
    &QEMU,
    &BUSYBOX,
    &KMOD,
    &CPIO,
    &IBVERBS,
    &IPROUTE,
    &C_COMPILER,
    &UCX,
    &LIBFABRIC,
];

/// The time limit of a call of the package manager, which may retry for long if it reaches no
/// server.
const LIMIT: Duration = Duration::from_secs(600);

struct PackageManager {
    program: &'static str,
    refresh: &'static [&'static str],
    install: &'static [&'static str],
}

/// The package managers of Debian, of Fedora and RHEL, and of SUSE, and of the distributions
/// derived from these.
const MANAGERS: [PackageManager; 3] = [
    PackageManager {
        program: "apt-get",
        refresh: &["update", "-q", "-o", "Acquire::http::Timeout=20"],
        install: &["install", "-q", "-y", "--no-install-recommends"],
    },
    PackageManager {
        program: "dnf",
        refresh: &[],
        install: &["install", "-q", "-y"],
    },
    PackageManager {
        program: "zypper",
        refresh: &[],
        install: &["--non-interactive", "install", "--no-recommends"],
    },
];

/// Installs the packages of those `needs` that are missing, after printing a list. Fails if it may
/// not install, or a program is still missing afterwards.
pub fn ensure(needs: &[&Need]) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }

    let here = MANAGERS
        .iter()
        .position(|manager| process::on_path(manager.program).is_some());
    let Some(which) = here else {
        bail!(
            "{}; none of apt-get, dnf and zypper is here to install it: install it by hand and run this again",
            described(&missing)
        );
    };
    let manager = &MANAGERS[which];
    let packages = packages(&missing, which);

    if !is_root() {
        let mut install = Command::new(manager.program);
        install.args(manager.install).args(&packages);
        bail!(
            "{}; it can be installed only as root: {}",
            described(&missing),
            process::shown(&install)
        );
    }

    println!("Missing programs:");
    for need in &missing {
        println!("  {:<20}{}", need.program, need.purpose);
    }
    println!(
        "{} installs the packages {}",
        manager.program,
        packages.join(" ")
    );

    if !manager.refresh.is_empty() {
        process::run(process::limited(LIMIT, manager.program).args(manager.refresh))?;
    }
    if manager.install(&packages).is_err() {
        // Some distributions lack some packages, so each program's packages are tried alone. What
        // is still missing is found below.
        for need in &missing {
            let _ = manager.install(&self::packages(&[*need], which));
        }
    }

    let still = self::missing(needs);
    if !still.is_empty() {
        bail!(
            "{}, and {} does not bring it",
            described(&still),
            manager.program
        );
    }
    Ok(())
}

impl PackageManager {
    fn install(&self, packages: &[&str]) -> Result<()> {
        let mut install = process::limited(LIMIT, self.program);
        install
            .args(self.install)
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive");
        process::run(&mut install)
    }
}

/// Returns the packages of these programs, each once, for the manager with this index.
fn packages(needs: &[&Need], manager: usize) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for need in needs {
        for package in need.packages[manager].split(' ') {
            if !packages.contains(&package) {
                packages.push(package);
            }
        }
    }
    packages
}

/// Fails if there is no C compiler. Installs nothing.
pub fn c_compiler() -> Result<()> {
    let named = std::env::var("OSHCC_CC").unwrap_or_default();
    let compiler = if named.is_empty() { "cc" } else { &named };
    // The variable may name a path with spaces, or a program and its options.
    let first = compiler.split_whitespace().next().unwrap_or(compiler);
    if process::on_path(compiler).is_some() || process::on_path(first).is_some() {
        return Ok(());
    }
    bail!(
        "no C compiler: `{compiler}` was not found; install one (for example the package gcc) or name one in OSHCC_CC"
    )
}

/// Returns true if this process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns those of `needs` that are not here.
pub fn missing<'a>(needs: &[&'a Need]) -> Vec<&'a Need> {
    needs
        .iter()
        .copied()
        .filter(|need| process::on_path(need.program).is_none())
        .collect()
}

fn described(missing: &[&Need]) -> String {
    let each: Vec<String> = missing
        .iter()
        .map(|need| format!("`{}`, which {},", need.program, need.purpose))
        .collect();
    let verb = if missing.len() == 1 { "is" } else { "are" };
    format!("{} {verb} missing", each.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Need = need("no-such-program-anywhere", "does nothing", [""; 3]);

    #[test]
    fn what_is_here_needs_no_package_manager() {
        let shell = Need {
            program: "sh",
            ..ABSENT
        };
        ensure(&[&shell]).unwrap();
    }

    #[test]
    fn a_package_of_two_programs_is_named_once() {
        assert_eq!(
            packages(&[&CMAKE, &AUTOMAKE], 0),
            ["cmake", "make", "autoconf", "automake"]
        );
    }

    #[test]
    fn what_is_missing_is_named_with_its_purpose() {
        assert_eq!(
            described(&missing(&[&ABSENT])),
            "`no-such-program-anywhere`, which does nothing, is missing"
        );
    }
}
