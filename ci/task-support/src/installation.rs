//! Installs what cargo has built as a prefix, a directory that can be moved.
//!
//! This file defines the contents of the prefix; the module `files` moves them there. The tasks
//! `install` and `dist`, the tests and the benchmarks install by it.
//!
//! docs/installing.md lists the files.

mod files;
pub mod libraries;
mod man_pages;
pub mod manual;
mod toolchain;
mod verify;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};

use files::Prefix;

pub use files::{MANIFEST, copy_file, copy_tree};
pub use toolchain::Toolchain;

/// The package that makes librushmem.so and librushmem.a.
pub const LIBRARY: &str = "librushmem";
/// The file that cargo makes of it.
const LIBRARY_FILE: &str = "librushmem.a";
/// The package that makes librushmem-race.so.
const DETECTOR: &str = "librushmem-race";
/// The file that cargo makes of it.
const DETECTOR_FILE: &str = "librushmem_race_detector.so";
/// The launcher: the package, and the program that cargo makes of it.
const LAUNCHER: &str = "oshrun";
/// The program that describes the installation: the package, and what cargo makes of it.
const INFO: &str = "shmem-info";
/// The program that measures any OpenSHMEM library. One part is in C, and each library's own oshcc
/// compiles it; the other part is a static library in Rust.
const PERF: &str = "shmem-perf";
/// The directory of both parts in the prefix: `shmem-perf build` makes the program for other
/// libraries of them.
const PERF_PARTS: &str = "share/rushmem/shmem-perf";
const PERF_SOURCES: &str = "launcher/shmem-perf/c";
/// The file among the sources with the arguments by which any library's oshcc builds the program.
const PERF_ARGUMENTS: &str = "arguments";
/// The file that cargo makes of the Rust part.
const PERF_ARCHIVE: &str = "libshmem_perf.a";
/// The function of the Rust part that the C part calls.
const PERF_MAIN: &str = "shmem_perf_main";
/// The pages for users, which messages and man pages name.
const PAGES: &str = "docs";
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

/// The source of [`SANITIZER_OBJECT`].
const SANITIZER_SOURCE: &str = "thread_sanitizer.c";
/// The object file that `oshcc -fsanitize=thread` links into programs.
const SANITIZER_OBJECT: &str = "lib/rushmem-thread-sanitizer.o";

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
        let mut arguments = command.to_vec();
        for package in packages {
            arguments.extend(["-p", package]);
        }
        Ok(Self(workspace.build(&arguments)?))
    }

    /// Returns the path of a built file.
    pub fn file(&self, name: &str) -> Result<&Path> {
        for path in &self.0 {
            if path.file_name().is_some_and(|file| file == name) {
                return Ok(path);
            }
        }
        bail!("the release build made no {name}")
    }
}

/// Builds the release and installs it under `prefix`, in place of an earlier installation.
pub fn into(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let release = Release::build(workspace, &["build", "--release"])?;
    install_release(workspace, &release, prefix, &Toolchain::of_system())
}

/// Installs a build for tests under `prefix`: of the profile of the tests, which are built of the
/// same crates.
pub fn quickly_into(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let release = Release::build(workspace, &["build"])?;
    install_release(workspace, &release, prefix, &Toolchain::for_tests())
}

/// Installs what compiles, runs and examines programs under `prefix`, of the profile of the tests:
/// what the first tests run. They run neither shmem-verify, whose programs in C take the longest to
/// compile, nor the pages.
pub fn first_into(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let installer = Installer {
        workspace,
        release: &Release::build(workspace, &["build"])?,
        prefix: Prefix::new(prefix)?,
        tools: &Toolchain::for_tests(),
    };

    installer.install_core()?;
    installer.install_program(INFO)?;
    installer.install_detector()?;
    installer.compile_fortran_module()?;
    installer.install_perf()?;
    installer.prefix.finish()
}

/// Installs the library, the compiler wrappers and the launcher alone under `prefix`: what compiles
/// and runs programs. They are not optimized, so they are built in a third of the time, and their
/// dependencies are those that this program and the tests were built with.
pub fn core_into(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let installer = Installer {
        workspace,
        release: &Release::build_packages(workspace, &["build"], &[LIBRARY, LAUNCHER])?,
        prefix: Prefix::new(prefix)?,
        tools: &Toolchain::of_system(),
    };

    installer.install_core()?;
    installer.prefix.finish()
}

/// Installs files that were built, with these tools.
pub fn install_release(
    workspace: &Workspace,
    release: &Release,
    prefix: &Path,
    tools: &Toolchain,
) -> Result<()> {
    let installer = Installer {
        workspace,
        release,
        prefix: Prefix::new(prefix)?,
        tools,
    };

    installer.install_core()?;
    installer.install_program(INFO)?;
    installer.install_detector()?;
    installer.compile_fortran_module()?;
    installer.install_perf()?;
    installer.install_verify()?;
    installer.write_build_files()?;
    installer.write_documents()?;
    installer.copy_examples()?;
    installer.prefix.finish()
}

/// Puts built files and files of the workspace into a prefix.
struct Installer<'a> {
    workspace: &'a Workspace,
    release: &'a Release,
    prefix: Prefix,
    tools: &'a Toolchain,
}

impl Installer<'_> {
    /// Installs the compiler wrappers with what they link, the launcher, the library and its
    /// headers.
    fn install_core(&self) -> Result<()> {
        let prefix = &self.prefix;

        // Links first: where file names do not distinguish case, oshcc then replaces oshCC.
        for (name, wrapper) in OTHER_NAMES {
            prefix.link(wrapper, &format!("bin/{name}"))?;
        }
        for name in WRAPPERS {
            prefix.copy_file(&self.workspace.root.join(WRAPPER), &format!("bin/{name}"))?;
        }
        self.install_program(LAUNCHER)?;

        let built = self.release.file(LIBRARY_FILE)?;
        let library = prefix.add("lib/librushmem.so.1")?;
        libraries::link(built, &library, &self.tools.compiler)?;
        self.strip("lib/librushmem.so.1")?;
        prefix.link("librushmem.so.1", "lib/librushmem.so")?;

        let archive = prefix.add("lib/librushmem.a")?;
        libraries::pack(built, &archive, self.tools)?;

        let object = prefix.add(SANITIZER_OBJECT)?;
        let source = self.workspace.root.join(PACKAGES).join(SANITIZER_SOURCE);
        let mut compile = self.tools.compiler();
        process::run(
            compile
                .args(["-O2", "-fPIC", "-c"])
                .arg(source)
                .arg("-o")
                .arg(object),
        )?;

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
    fn install_program(&self, name: &str) -> Result<()> {
        let installed = format!("bin/{name}");
        self.prefix
            .copy_file(self.release.file(name)?, &installed)?;
        self.strip(&installed)
    }

    /// Installs the race detector, and the file of options with which the compiler makes programs
    /// report their accesses to it.
    fn install_detector(&self) -> Result<()> {
        let built = self.release.file(DETECTOR_FILE)?;
        self.prefix.copy_file(built, "lib/librushmem-race.so.1")?;
        self.strip("lib/librushmem-race.so.1")?;
        self.prefix
            .link("librushmem-race.so.1", "lib/librushmem-race.so")?;

        let specs = self.workspace.root.join(PACKAGES).join(SPECS);
        self.prefix
            .copy_file(&specs, &format!("share/rushmem/{SPECS}"))
    }

    /// Compiles the Fortran module with gfortran and flang, if they are installed. Other compilers
    /// have other formats of modules.
    fn compile_fortran_module(&self) -> Result<()> {
        self.compile_fortran_module_with(&["gfortran"], "include", "shmem.f90")?;
        self.compile_fortran_module_with(&FLANG, "include/flang", "../shmem.f90")
    }

    /// Compiles the Fortran module with the first of these compilers that is installed, if any, in
    /// the directory `dir`, where the source has the path `source`.
    fn compile_fortran_module_with(
        &self,
        compilers: &[&str],
        dir: &str,
        source: &str,
    ) -> Result<()> {
        let mut here = compilers.iter();
        let Some(compiler) = here.find(|name| process::on_path(name).is_some()) else {
            return Ok(());
        };

        self.prefix.make_dir(dir)?;
        let mut command = Command::new(compiler);
        command
            .args(["-w", "-fsyntax-only", source])
            .current_dir(self.prefix.path(dir));
        // Old versions of flang cannot compile the module, so a failure is ignored.
        process::succeeds(&mut command);
        Ok(())
    }

    /// Installs the parts of shmem-perf, of which it can be built for other libraries, and builds
    /// it of them. It finds the library relative to itself, so that the prefix can be moved. The
    /// wrapper would write the path of the prefix into the program.
    fn install_perf(&self) -> Result<()> {
        let prefix = &self.prefix;

        prefix.copy_tree(&self.workspace.root.join(PERF_SOURCES), PERF_PARTS)?;
        let archive = prefix.add(&format!("{PERF_PARTS}/{PERF_ARCHIVE}"))?;
        libraries::join(
            self.release.file(PERF_ARCHIVE)?,
            &archive,
            &[PERF_MAIN.to_owned()],
            &[],
            self.tools,
        )?;

        let parts = prefix.path(PERF_PARTS);
        let mut command = self.perf_compiler(&parts)?;
        let new = parts.join(PERF);
        command.arg("-o").arg(&new);
        command.arg("-I").arg(prefix.path("include"));
        command.arg("-L").arg(prefix.path("lib"));
        command.args(["-fPIE", "-pie", "-Wl,-rpath,$ORIGIN/../lib", "-lrushmem"]);
        process::run(&mut command)?;

        let installed = format!("bin/{PERF}");
        let program = prefix.add(&installed)?;
        std::fs::rename(&new, &program)
            .with_context(|| format!("could not place {}", program.display()))?;
        self.strip(&installed)
    }

    /// Returns the compiler with the arguments by which any library's oshcc builds shmem-perf of
    /// its `parts`.
    fn perf_compiler(&self, parts: &Path) -> Result<Command> {
        let arguments = self.read(PERF_SOURCES, PERF_ARGUMENTS)?;
        let mut compiler = self.tools.compiler();
        for argument in arguments.split_whitespace() {
            if argument.ends_with(".c") || argument == PERF_ARCHIVE {
                compiler.arg(parts.join(argument));
            } else {
                compiler.arg(argument);
            }
        }
        Ok(compiler)
    }

    fn install_verify(&self) -> Result<()> {
        verify::install(self.workspace, &self.prefix, self.tools)?;
        self.strip(&format!("bin/{}", verify::NAME))
    }

    /// Strips a program or a library of the prefix. If the tools keep debug information, moves it
    /// to a file in the directory `.debug` beside the program, where gdb and valgrind look for it.
    /// This information is larger than all other files, and messages do not need it: they name
    /// lines of the user's program.
    fn strip(&self, name: &str) -> Result<()> {
        let file = self.prefix.path(name);
        // objcopy writes another file, so that a running program keeps the one that it has mapped.
        let new = file.with_extension("stripped");
        let mut strip = self.tools.binutil("objcopy");
        strip.arg("--strip-unneeded");

        if self.tools.keeps_debug_information {
            let (dir, own) = name.rsplit_once('/').unwrap_or((".", name));
            let debug = self.prefix.add(&format!("{dir}/.debug/{own}.debug"))?;
            let mut copy = self.tools.binutil("objcopy");
            copy.args(["--only-keep-debug", "--compress-debug-sections"]);
            process::run(copy.arg(&file).arg(&debug))?;

            let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
            link.push(&debug);
            strip.arg(link);
        }

        process::run(strip.arg(&file).arg(&new))?;
        Ok(std::fs::rename(&new, &file)?)
    }

    /// Writes the files of pkg-config and CMake.
    fn write_build_files(&self) -> Result<()> {
        for (template, dir) in [
            ("rushmem.pc", "lib/pkgconfig"),
            ("RushmemConfig.cmake", "lib/cmake/Rushmem"),
            ("RushmemConfigVersion.cmake", "lib/cmake/Rushmem"),
        ] {
            let text = self.read(PACKAGES, template)?.replace("@VERSION@", VERSION);
            self.prefix.write(&format!("{dir}/{template}"), &text)?;
        }
        Ok(())
    }

    /// Copies the pages, and writes man pages and completions.
    fn write_documents(&self) -> Result<()> {
        let pages = self.workspace.root.join(PAGES);
        self.prefix.copy_tree(&pages, "share/doc/rushmem")?;

        for name in [LAUNCHER, INFO, PERF] {
            man_pages::write_generated(&self.prefix, name, self.tools)?;
        }

        let [wrapper, others @ ..] = WRAPPERS;
        for (dir, name, section) in [
            (PACKAGES, wrapper, 1),
            (verify::SOURCES, verify::NAME, 1),
            (PACKAGES, "rushmem", 7),
        ] {
            let page = format!("{name}.{section}");
            self.write_man_page(section, &page, &self.read(dir, &page)?)?;
        }
        for name in others.into_iter().chain(OTHER_NAMES.map(|(name, _)| name)) {
            let link = format!("share/man/man1/{name}.1");
            self.prefix.link(&format!("{wrapper}.1"), &link)?;
        }

        for page in manual::pages() {
            let file = format!("{}.3", page.name);
            self.write_man_page(3, &file, &page.text)?;
            for routine in page.routines {
                let link = format!("share/man/man3/{routine}.3");
                self.prefix.link(&file, &link)?;
            }
        }
        Ok(())
    }

    fn write_man_page(&self, section: u32, file: &str, text: &str) -> Result<()> {
        let path = format!("share/man/man{section}/{file}");
        man_pages::write(&self.prefix, &path, text, self.tools)
    }

    fn copy_examples(&self) -> Result<()> {
        let examples = self.workspace.root.join(EXAMPLES);
        self.prefix.copy_tree(&examples, "share/rushmem/examples")
    }

    /// Reads the file `name` of a directory of the repository, such as a template.
    fn read(&self, dir: &str, name: &str) -> Result<String> {
        let path = self.workspace.root.join(dir).join(name);
        std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_information_is_put_beside_a_program() {
        let dir = tempfile::tempdir().expect("a directory");
        let workspace = Workspace {
            root: PathBuf::new(),
            target: PathBuf::new(),
            packages: Vec::new(),
        };
        let installer = Installer {
            workspace: &workspace,
            release: &Release(Vec::new()),
            prefix: Prefix::new(dir.path()).expect("a prefix"),
            tools: &Toolchain::of_system(),
        };
        let source = dir.path().join("program.c");
        std::fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
        let program = installer.prefix.add("bin/program").expect("a place");
        process::run(
            Command::new("cc")
                .arg("-g")
                .arg(source)
                .arg("-o")
                .arg(program),
        )
        .expect("it compiles");

        installer.strip("bin/program").expect("binutils");

        let sections = |name: &str| {
            let file = installer.prefix.path(name);
            process::capture(Command::new("readelf").arg("-SW").arg(file)).expect("binutils")
        };
        let own = sections("bin/program");
        assert!(own.contains(".gnu_debuglink"), "{own}");
        assert!(!own.contains(".debug_info"), "{own}");
        let beside = sections("bin/.debug/program.debug");
        assert!(beside.contains(".debug_info"), "{beside}");
    }
}
