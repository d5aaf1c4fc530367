//! Installs what cargo has built as a prefix, a directory that can be moved.
//!
//! This file defines the contents of the prefix; the module `files` moves them there. The tasks
//! `install` and `dist`, the tests and the benchmarks install by it.
#![forbid(unsafe_code)]

mod files;
pub mod libraries;
mod man_pages;
pub mod manual;
mod toolchain;
mod verify;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use task_support::process;
use task_support::workspace::Workspace;

use files::Prefix;

pub use files::{MANIFEST, copy_file, copy_tree};
pub use toolchain::Toolchain;

/// The package that makes librushmem.so and librushmem.a.
pub const LIBRARY: &str = "librushmem";
/// The file that cargo makes of it.
const LIBRARY_FILE: &str = "librushmem.a";
/// The package that makes librushmem-race.so, and the file that cargo makes of it.
const DETECTOR: &str = "librushmem-race";
const DETECTOR_FILE: &str = "librushmem_race_detector.so";
/// The launcher, which is copied from the build, as is the next one; each has the name of its
/// package.
const LAUNCHER: &str = "oshrun";
/// The program that describes the installation.
const INFO: &str = "shmem-info";
/// The program that measures any OpenSHMEM library. One part is in C, and each library's own oshcc
/// compiles it; the other part is a static library in Rust.
const PERF: &str = "shmem-perf";
/// The directory of both parts in the prefix: `shmem-perf build` makes the program for other
/// libraries of them.
const PERF_PARTS: &str = "share/rushmem/shmem-perf";
const PERF_SOURCES: &str = "benches/shmem-perf/c";
/// The function of the Rust part that the C part calls.
const PERF_MAIN: &str = "shmem_perf_main";
/// The examples in C, with files by which make and CMake build them.
const EXAMPLES: &str = "crates/shmem-c/examples";
/// The names under which the one script of the compiler wrappers is installed.
const WRAPPERS: [&str; 3] = ["oshcc", "oshcxx", "oshfort"];
/// Other names of the wrapper for C++: the one in the standard's annex, and a customary one.
const OTHER_NAMES: [(&str, &str); 2] = [("oshc++", "oshcxx"), ("oshCC", "oshcxx")];

/// Names of the library in other implementations, which build systems of programs look for: Cray's
/// and the oldest one's, Sandia's, Open MPI's.
const OTHER_LIBRARIES: [&str; 3] = ["libsma", "libshmem", "liboshmem"];

const WRAPPER: &str = "crates/shmem-c/wrappers/oshcc";
/// The templates of the files for build systems and `man`, with placeholders such as `@VERSION@`.
const PACKAGES: &str = "crates/shmem-c/packages";

/// Names of LLVM's Fortran compiler.
const FLANG: [&str; 3] = ["flang", "flang-new", "flang-new-19"];

/// The specs file for `oshcc --race`, which makes GCC report loads and stores to the race detector.
const SPECS: &str = "race.specs";

/// The name of the prefix for tests, in the build directory.
pub const TEST_PREFIX: &str = "test-prefix";

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the packages that are installed.
pub fn packages() -> impl Iterator<Item = &'static str> {
    [LIBRARY, DETECTOR, PERF, LAUNCHER, INFO].into_iter()
}

/// The files that cargo has built for an installation, as a release or for tests.
pub struct Release(Vec<PathBuf>);

impl Release {
    /// Builds all packages that are installed, by the arguments `command` of cargo.
    pub fn build(workspace: &Workspace, command: &[&str]) -> Result<Self> {
        Self::build_packages(workspace, command, &packages().collect::<Vec<_>>())
    }

    /// Builds some packages by one call of cargo, which compiles their common dependencies once.
    pub fn build_packages(
        workspace: &Workspace,
        command: &[&str],
        packages: &[&str],
    ) -> Result<Self> {
        let packages: Vec<&str> = packages
            .iter()
            .flat_map(|package| ["-p", package])
            .collect();
        Ok(Self(workspace.build(&[command, &packages].concat())?))
    }

    /// Returns the path of a built file.
    pub fn file(&self, name: &str) -> Result<&Path> {
        let found = self
            .0
            .iter()
            .find(|path| path.file_name().is_some_and(|file| file == name));
        found
            .map(PathBuf::as_path)
            .with_context(|| format!("the release build made no {name}"))
    }
}

/// Builds the release and installs it under `prefix`, in place of an earlier installation.
pub fn into(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let release = Release::build(workspace, &["build", "--release"])?;
    install_release(workspace, &release, prefix, &Toolchain::of_system())
}

/// Installs a build for tests under `prefix`. It is not as fast as a release, but takes less time
/// to build, since it has no optimization across crates.
pub fn quickly_into(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let release = Release::build(workspace, &["build", "--profile", "quick"])?;
    install_release(workspace, &release, prefix, &Toolchain::of_system())
}

/// Installs the library, the compiler wrappers and the launcher alone under `prefix`: what compiles
/// and runs programs. They are not optimized, so they are built in a third of the time, and their
/// dependencies are those that this program and the tests were built with.
pub fn core_into(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let release = Release::build_packages(workspace, &["build"], &[LIBRARY, LAUNCHER])?;
    let tools = Toolchain::of_system();
    let prefix = Prefix::new(prefix)?;
    install_core(workspace, &release, &prefix, &tools)?;
    prefix.finish()
}

/// Installs files that were built, with these tools.
pub fn install_release(
    workspace: &Workspace,
    release: &Release,
    prefix: &Path,
    tools: &Toolchain,
) -> Result<()> {
    let prefix = Prefix::new(prefix)?;
    install_core(workspace, release, &prefix, tools)?;
    install_program(release, &prefix, INFO, tools)?;
    install_detector(workspace, release, &prefix, tools)?;
    compile_fortran_module(&prefix)?;
    install_perf(workspace, release, &prefix, tools)?;
    verify::install(workspace, &prefix, tools)?;
    strip(&prefix, &format!("bin/{}", verify::NAME), tools)?;
    write_build_files(workspace, &prefix)?;
    write_documents(workspace, &prefix, tools)?;
    prefix.copy_tree(&workspace.root.join(EXAMPLES), "share/rushmem/examples")?;
    prefix.finish()
}

/// Installs the compiler wrappers, the launcher, the library and its headers.
fn install_core(
    workspace: &Workspace,
    release: &Release,
    prefix: &Prefix,
    tools: &Toolchain,
) -> Result<()> {
    // Links first: where file names do not distinguish case, oshcc then replaces oshCC.
    for (name, wrapper) in OTHER_NAMES {
        prefix.link(wrapper, &format!("bin/{name}"))?;
    }
    for name in WRAPPERS {
        prefix.copy_file(&workspace.root.join(WRAPPER), &format!("bin/{name}"))?;
    }
    install_program(release, prefix, LAUNCHER, tools)?;

    let built = release.file(LIBRARY_FILE)?;
    let library = prefix.add("lib/librushmem.so.1")?;
    libraries::link(built, &library, &tools.compiler)?;
    strip(prefix, "lib/librushmem.so.1", tools)?;
    prefix.link("librushmem.so.1", "lib/librushmem.so")?;
    let archive = prefix.add("lib/librushmem.a")?;
    libraries::pack(built, &archive, tools)?;
    for name in OTHER_LIBRARIES {
        prefix.link("librushmem.so.1", &format!("lib/{name}.so"))?;
        prefix.link("librushmem.a", &format!("lib/{name}.a"))?;
    }

    for (name, text) in spec::headers()? {
        prefix.write(&format!("include/{name}"), &text)?;
    }
    Ok(())
}

/// Installs a program that cargo built.
fn install_program(
    release: &Release,
    prefix: &Prefix,
    name: &str,
    tools: &Toolchain,
) -> Result<()> {
    prefix.copy_file(release.file(name)?, &format!("bin/{name}"))?;
    strip(prefix, &format!("bin/{name}"), tools)
}

/// Installs the race detector, and the file by which the compiler reports accesses to it.
fn install_detector(
    workspace: &Workspace,
    release: &Release,
    prefix: &Prefix,
    tools: &Toolchain,
) -> Result<()> {
    prefix.copy_file(release.file(DETECTOR_FILE)?, "lib/librushmem-race.so.1")?;
    strip(prefix, "lib/librushmem-race.so.1", tools)?;
    prefix.link("librushmem-race.so.1", "lib/librushmem-race.so")?;
    prefix.copy_file(
        &workspace.root.join(PACKAGES).join(SPECS),
        &format!("share/rushmem/{SPECS}"),
    )
}

/// Installs shmem-perf and its parts, of which it can be built for other libraries.
fn install_perf(
    workspace: &Workspace,
    release: &Release,
    prefix: &Prefix,
    tools: &Toolchain,
) -> Result<()> {
    prefix.copy_tree(&workspace.root.join(PERF_SOURCES), PERF_PARTS)?;
    let archive = prefix.add(&format!("{PERF_PARTS}/{}", perf_parts::ARCHIVE))?;
    libraries::join(
        release.file(perf_parts::ARCHIVE)?,
        &archive,
        &[PERF_MAIN.to_owned()],
        &[],
        tools,
    )?;
    build_perf(prefix, tools)
}

/// Strips a program or a library of the prefix. If `tools` keep debug information, moves it to a
/// file in the directory `.debug` beside the program, where gdb and valgrind look for it. This
/// information is larger than all other files, and messages do not need it: they name lines of the
/// user's program.
fn strip(prefix: &Prefix, name: &str, tools: &Toolchain) -> Result<()> {
    let file = prefix.path(name);
    // objcopy writes another file, so that a running program keeps the one that it has mapped.
    let new = file.with_extension("stripped");
    let mut strip = tools.binutil("objcopy");
    strip.arg("--strip-unneeded");
    if tools.keeps_debug_information {
        let (dir, own) = name.rsplit_once('/').unwrap_or((".", name));
        let debug = prefix.add(&format!("{dir}/.debug/{own}.debug"))?;
        let mut copy = tools.binutil("objcopy");
        copy.args(["--only-keep-debug", "--compress-debug-sections"]);
        process::run(copy.arg(&file).arg(&debug))?;
        let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
        link.push(&debug);
        strip.arg(link);
    }
    process::run(strip.arg(&file).arg(&new))?;
    Ok(std::fs::rename(&new, &file)?)
}

/// Compiles the Fortran module with gfortran and flang, if they are installed. Other compilers have
/// other formats of modules.
fn compile_fortran_module(prefix: &Prefix) -> Result<()> {
    let is_here = |name: &&str| process::on_path(name).is_some();
    for (names, dir) in [
        (&["gfortran"][..], "include"),
        (&FLANG[..], "include/flang"),
    ] {
        let Some(compiler) = names.iter().find(|name| is_here(name)) else {
            continue;
        };
        prefix.make_dir(dir)?;
        let within = prefix.path(dir);
        let mut command = Command::new(compiler);
        let source = if dir == "include" {
            "shmem.f90"
        } else {
            "../shmem.f90"
        };
        command
            .args(["-w", "-fsyntax-only", source])
            .current_dir(&within);
        // Old versions of flang cannot compile the module, so a failure is ignored.
        process::succeeds(&mut command);
    }
    Ok(())
}

/// Builds shmem-perf from its parts, as a program that finds the library relative to itself, so
/// that the prefix can be moved. The wrapper would write the path of the prefix into the program.
fn build_perf(prefix: &Prefix, tools: &Toolchain) -> Result<()> {
    let program = prefix.add(&format!("bin/{PERF}"))?;
    let (oshcc, parts) = (prefix.path("bin/oshcc"), prefix.path(PERF_PARTS));
    let new = parts.join(PERF);
    let by_wrapper = perf_parts::command(&oshcc, &parts, &new).map_err(anyhow::Error::msg)?;
    let mut command = tools.compiling(by_wrapper.get_args());
    command
        .arg("-I")
        .arg(prefix.path("include"))
        .arg("-L")
        .arg(prefix.path("lib"));
    process::run(command.args(["-fPIE", "-pie", "-Wl,-rpath,$ORIGIN/../lib", "-lrushmem"]))?;
    std::fs::rename(&new, &program)
        .with_context(|| format!("could not place {}", program.display()))?;
    strip(prefix, &format!("bin/{PERF}"), tools)
}

/// Writes the files of pkg-config and CMake.
fn write_build_files(workspace: &Workspace, prefix: &Prefix) -> Result<()> {
    for (template, dir) in [
        ("rushmem.pc", "lib/pkgconfig"),
        ("RushmemConfig.cmake", "lib/cmake/Rushmem"),
        ("RushmemConfigVersion.cmake", "lib/cmake/Rushmem"),
    ] {
        let text = read(workspace, template)?.replace("@VERSION@", VERSION);
        prefix.write(&format!("{dir}/{template}"), &text)?;
    }
    Ok(())
}

/// Writes man pages and completions.
fn write_documents(workspace: &Workspace, prefix: &Prefix, tools: &Toolchain) -> Result<()> {
    for name in [LAUNCHER, INFO, PERF] {
        man_pages::write_generated(prefix, name, tools)?;
    }
    let [wrapper, others @ ..] = WRAPPERS;
    for (name, section) in [(wrapper, 1), (verify::NAME, 1), ("rushmem", 7)] {
        let page = format!("{name}.{section}");
        let template = read(workspace, &page)?;
        man_pages::write(
            prefix,
            &format!("share/man/man{section}/{page}"),
            &template,
            tools,
        )?;
    }
    for name in others.into_iter().chain(OTHER_NAMES.map(|(name, _)| name)) {
        prefix.link(&format!("{wrapper}.1"), &format!("share/man/man1/{name}.1"))?;
    }
    for page in manual::pages() {
        let file = |name: &str| format!("share/man/man3/{name}.3");
        man_pages::write(prefix, &file(&page.name), &page.text, tools)?;
        for routine in page.routines {
            prefix.link(&format!("{}.3", page.name), &file(&routine))?;
        }
    }
    Ok(())
}

/// Reads a template of [`PACKAGES`].
fn read(workspace: &Workspace, template: &str) -> Result<String> {
    let path = workspace.root.join(PACKAGES).join(template);
    std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))
}
