//! Build systems find the installed prefix after it was moved to a path with a space: autoconf,
//! CMake, Meson and pkg-config.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{is_here, moved, needs, runs, shell, succeed, temporary};
use testkit::Job;

/// Small projects like those of users.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/prefix");

/// Runs on two PEs under the moved oshrun.
fn run(program: &Path) {
    let outcome = Job::new(program)
        .launcher(moved().join("bin/oshrun"))
        .n(2)
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert_eq!(outcome.stdout.trim(), "2 PEs", "{outcome}");
}

/// Returns a path of the moved prefix without spaces, as autoconf needs.
fn without_space(dir: &Path) -> PathBuf {
    let link = dir.join("prefix");
    symlink(moved(), &link).unwrap();
    link
}

/// Makes the configure script of the fixture in `dir`.
fn make_configure(dir: &Path) {
    let source = dir.join("project");
    fs::create_dir(&source).unwrap();
    for name in ["configure.ac", "Makefile.in"] {
        fs::copy(
            Path::new(FIXTURES).join("autoconf").join(name),
            source.join(name),
        )
        .unwrap();
    }
    fs::copy(Path::new(FIXTURES).join("pes.c"), dir.join("pes.c")).unwrap();
    succeed(shell("autoreconf -i").current_dir(&source));
}

fn pkg_config_finds_the_moved_library() {
    needs("pkg-config");
    let dir = temporary("pkg-config");
    let ask = |question: &str| {
        let mut command = shell(&format!("pkg-config {question} rushmem"));
        succeed(command.env("PKG_CONFIG_PATH", moved().join("lib/pkgconfig")))
    };
    assert_eq!(ask("--modversion").trim(), env!("CARGO_PKG_VERSION"));
    let oshrun = ask("--variable=oshrun").trim().replace("\\ ", " ");
    assert!(Path::new(&oshrun).exists(), "{oshrun}");
    for (name, flags, options) in [("shared", "", ""), ("static", "-static", "--static")] {
        let words = ask(&format!("{options} --cflags --libs"));
        // The words are for a shell, which removes the backslashes before the spaces.
        let compile = format!("cc {flags} -o {name} {FIXTURES}/pes.c {words}");
        succeed(shell(&compile).current_dir(&dir));
        run(&dir.join(name));
    }
}

fn what_is_installed_is_stripped() {
    let sections = |file: &str| succeed(runs("readelf").args(["-SW"]).arg(moved().join(file)));
    for (dir, name) in [
        ("bin", "oshrun"),
        ("bin", "shmem-info"),
        ("bin", "shmem-perf"),
        ("bin", "shmem-verify"),
        ("lib", "librushmem.so.1"),
        ("lib", "librushmem-race.so.1"),
    ] {
        let own = sections(&format!("{dir}/{name}"));
        assert!(
            !own.contains(".debug_info") && !own.contains(".symtab"),
            "{own}"
        );
    }
}

fn cmake_finds_the_moved_library() {
    needs("cmake");
    let dir = temporary("cmake");
    let fortran = is_here("gfortran");
    let with_fortran = format!("-DWITH_FORTRAN={}", if fortran { "ON" } else { "OFF" });
    let build = dir.join("build");
    let mut cmake = runs("cmake");
    cmake
        .arg("-S")
        .arg(Path::new(FIXTURES).join("cmake"))
        .arg("-B")
        .arg(&build);
    // CMake looks beside the directories of PATH, so a user who has oshcc needs no option for it.
    let path = format!(
        "{}:{}",
        moved().join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    succeed(cmake.arg(with_fortran).env("PATH", path));
    succeed(runs("cmake").arg("--build").arg(&build));
    for program in ["in_c", "in_cxx", "static_c"] {
        run(&build.join(program));
    }
    if fortran {
        run(&build.join("in_fortran"));
        run(&build.join("static_fortran"));
    }
    succeed(runs("ctest").current_dir(&build));
}

/// As on systems where `/lib` is a link to `/usr/lib`, with Rushmem installed in `/usr`.
fn cmake_finds_the_library_by_way_of_a_link() {
    needs("cmake");
    let root = temporary("merged");
    symlink(moved(), root.join("usr")).unwrap();
    symlink("usr/lib", root.join("lib")).unwrap();
    let mut cmake = runs("cmake");
    cmake
        .arg("-S")
        .arg(Path::new(FIXTURES).join("cmake"))
        .arg("-B")
        .arg(root.join("build"));
    succeed(
        cmake
            .arg("-DWITH_FORTRAN=OFF")
            .env("CMAKE_PREFIX_PATH", &root),
    );
}

fn cmake_knows_which_versions_will_do() {
    needs("cmake");
    let dir = temporary("versions");
    let script = dir.join("ask.cmake");
    let version = moved().join("lib/cmake/Rushmem/RushmemConfigVersion.cmake");
    let text = format!(
        "include(\"{}\")\nmessage(\"${{PACKAGE_VERSION_COMPATIBLE}}\")\n",
        version.display()
    );
    fs::write(&script, text).unwrap();
    let will_do = |version: &str| {
        let mut cmake = runs("cmake");
        cmake
            .arg(format!("-DPACKAGE_FIND_VERSION={version}"))
            .arg("-P")
            .arg(&script);
        let output = cmake.output().unwrap();
        String::from_utf8(output.stderr).unwrap().trim() == "TRUE"
    };
    let this = env!("CARGO_PKG_VERSION");
    let (series, _) = this.rsplit_once('.').unwrap();
    for version in [this, series] {
        assert!(will_do(version), "{version}");
    }
    for version in [
        "99.0",
        "0.0.1",
        &format!("{series}.999"),
        &format!("{series}1"),
    ] {
        assert!(!will_do(version), "{version}");
    }
}

fn a_configure_script_takes_the_wrapper_as_the_compiler() {
    needs("automake");
    needs("pkg-config");
    let dir = temporary("autoconf-wrapper");
    make_configure(&dir);
    let prefix = without_space(&dir);
    let build = format!(
        "PATH={}/bin:$PATH && project/configure --srcdir=project CC=oshcc && make",
        prefix.display()
    );
    succeed(shell(&build).current_dir(&dir));
    run(&dir.join("pes"));
}

fn a_configure_script_finds_the_library_by_pkg_config() {
    needs("automake");
    needs("pkg-config");
    let dir = temporary("autoconf-pkg-config");
    make_configure(&dir);
    let prefix = without_space(&dir);
    let build = format!(
        "project/configure --srcdir=project --with-rushmem PKG_CONFIG_PATH={}/lib/pkgconfig && make",
        prefix.display()
    );
    succeed(shell(&build).current_dir(&dir));
    run(&dir.join("pes"));
}

fn a_meson_project_finds_the_library_by_pkg_config() {
    needs("meson");
    needs("pkg-config");
    let dir = temporary("meson");
    fs::copy(
        Path::new(FIXTURES).join("meson/meson.build"),
        dir.join("meson.build"),
    )
    .unwrap();
    fs::copy(Path::new(FIXTURES).join("pes.c"), dir.join("pes.c")).unwrap();
    let described = without_space(&dir).join("lib/pkgconfig");
    let mut build = shell("meson setup build && meson test -C build");
    succeed(build.current_dir(&dir).env("PKG_CONFIG_PATH", described));
    run(&dir.join("build/pes"));
}

/// Compiles with the wrapper by each of its names.
fn every_name_of_the_wrappers_compiles() {
    let dir = temporary("names");
    let mut sources = vec![
        ("oshcc", "pes.c"),
        ("oshcxx", "pes.cpp"),
        ("oshc++", "pes.cpp"),
        ("oshCC", "pes.cpp"),
    ];
    if is_here("gfortran") {
        sources.push(("oshfort", "pes.f90"));
    }
    for (wrapper, source) in sources {
        let program = dir.join(format!("by-{wrapper}"));
        let mut command = runs(moved().join("bin").join(wrapper));
        succeed(
            command
                .arg(Path::new(FIXTURES).join(source))
                .arg("-o")
                .arg(&program),
        );
        run(&program);
    }
}

fn the_manifest_lists_every_file() {
    let prefix = testkit::prefix();
    let text = fs::read_to_string(prefix.join("share/rushmem/manifest")).unwrap();
    let mut missing = Vec::new();
    let mut dirs = vec![prefix.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                dirs.push(path.clone());
            }
            if !text.lines().any(|line| prefix.join(line) == path) {
                missing.push(path);
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(
        text.lines().all(|line| prefix.join(line).exists()),
        "{text}"
    );
}

testkit::module_tests! {
    pkg_config_finds_the_moved_library,
    what_is_installed_is_stripped,
    cmake_finds_the_moved_library,
    cmake_finds_the_library_by_way_of_a_link,
    cmake_knows_which_versions_will_do,
    a_configure_script_takes_the_wrapper_as_the_compiler,
    a_configure_script_finds_the_library_by_pkg_config,
    a_meson_project_finds_the_library_by_pkg_config,
    every_name_of_the_wrappers_compiles,
    the_manifest_lists_every_file,
}
