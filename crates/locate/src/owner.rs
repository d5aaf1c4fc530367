//! The one rule for whose function a frame is.
//!
//! The file decides where it can: all code of librushmem.so and librushmem-race.so is the
//! library's, also that of the Rust crates in it. The library may also be a part of the program: in
//! Rust, and in a static program. There the names of functions decide, and the directories in which
//! they were compiled, since debug information may have short names of functions.

use crate::frame::{Frame, Line, Owner};
use crate::names;
use std::path::Path;

/// The start of the file names of the library.
const LIBRARY: &str = "librushmem";
/// The starts of the file names of the C library and its dynamic linker.
const C_LIBRARY: [&str; 4] = ["libc.so", "libc-", "libpthread", "ld-linux"];
/// The functions in which the C library calls `main` or the function of a thread, in a static
/// program.
const OUTERMOST: [&str; 2] = ["start_thread", "__libc_start_call_main"];

/// The starts of the names of exported routines.
const ROUTINES: [&str; 10] = [
    "shmem",
    "shmalloc",
    "shfree",
    "shrealloc",
    "shp",
    "start_pes",
    "_my_pe",
    "_num_pes",
    "my_pe_",
    "num_pes_",
];
/// The starts of names in the crates of Rushmem.
const OF_LIBRARY: [&str; 2] = ["rushmem", "shmem::"];
/// The starts of the names in the standard libraries of Rust and C++.
const OF_LANGUAGE: [&str; 10] = [
    "std::",
    "core::",
    "alloc::",
    "_ZSt",
    "_ZNSt",
    "_ZNKSt",
    "_ZN9__gnu_cxx",
    "_ZNK9__gnu_cxx",
    "_ZNKRSt",
    "_ZNOSt",
];
/// The headers whose inline C++ functions call the C routines.
const HEADERS: [&str; 2] = ["shmem.h", "shmemx.h"];
/// The directory of the sources of Rust's own libraries.
const RUST_SOURCES: &str = "/rustc/";
/// The directories into which cargo downloads packages.
const DOWNLOADED: [&str; 2] = ["/registry/src/", "/git/checkouts/"];
/// The directory of this crate when it was compiled. Those of the other crates are beside it.
const THIS_CRATE: &str = env!("CARGO_MANIFEST_DIR");

impl Frame {
    /// Returns the name of the routine of C or Fortran that the frame of the library is, if it is
    /// one.
    pub fn routine(&self) -> Option<&str> {
        let symbol = self.symbol.as_deref().filter(|name| is_routine(name))?;
        Some(symbol.strip_prefix('p').unwrap_or(symbol))
    }
}

/// Returns whose function a frame is, which is in the file `file`, by the names and the line of the
/// frame.
pub(crate) fn of_frame(file: &Path, frame: &Frame) -> Owner {
    if is_library(file) {
        return Owner::Library;
    }
    if is_c_library(file) {
        return Owner::System;
    }

    let names: Vec<&str> = [&frame.symbol, &frame.name]
        .into_iter()
        .filter_map(|name| name.as_deref())
        .collect();
    if names.iter().any(|name| is_library_name(name)) {
        return Owner::Library;
    }
    if names.iter().any(|name| has_start(name, &OF_LANGUAGE)) {
        return Owner::Language;
    }
    if names.iter().any(|name| OUTERMOST.contains(name)) {
        return Owner::System;
    }

    match &frame.line {
        Some(line) => of_line(line),
        None if frame.name.is_none() => Owner::Unknown,
        None => Owner::Program,
    }
}

/// Returns true if a function of this name in the program is the library's. Of the routines, only
/// the profiling names are: a tool may define the others, to observe the calls.
fn is_library_name(name: &str) -> bool {
    has_start(name, &OF_LIBRARY) || name.starts_with('p') && is_routine(name)
}

/// Returns true if a name is that of an exported routine of the library, or its profiling name.
pub(crate) fn is_routine(name: &str) -> bool {
    let name = name.strip_prefix('p').unwrap_or(name);
    ROUTINES.iter().any(|start| name.starts_with(start))
}

/// Returns true if all code of a file is the library's.
pub(crate) fn is_library(file: &Path) -> bool {
    has_file_name(file, &[LIBRARY])
}

/// Returns true if all code of a file is the C library's.
pub(crate) fn is_c_library(file: &Path) -> bool {
    has_file_name(file, &C_LIBRARY)
}

fn has_file_name(file: &Path, starts: &[&str]) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    starts.iter().any(|start| name.starts_with(start))
}

fn of_line(line: &Line) -> Owner {
    let path = Path::new(&line.file);
    let name = path.file_name().unwrap_or_default();
    if HEADERS.iter().any(|header| name == *header) || line.file.starts_with(RUST_SOURCES) {
        return Owner::Language;
    }
    if is_our_source(path, Path::new(THIS_CRATE)) {
        return Owner::Library;
    }
    // A relative path to a file that does not exist is of the C library.
    let is_elsewhere = path.is_relative() && !path.exists();
    if is_elsewhere || DOWNLOADED.iter().any(|dir| line.file.contains(dir)) {
        return Owner::System;
    }
    Owner::Program
}

/// Returns true if a file is a source of a crate of Rushmem: one beside the directory of
/// `this_crate`, or beside the directory around that, as in our repository. Cargo downloads
/// packages into directories beside those of other projects, so the name of the directory counts
/// there.
fn is_our_source(path: &Path, this_crate: &Path) -> bool {
    let is_package = |dir: &Path| {
        dir.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("rushmem"))
    };
    let Some(around) = this_crate.parent() else {
        return false;
    };

    // This crate was downloaded.
    if is_package(this_crate) {
        let Ok(beside) = path.strip_prefix(around) else {
            return false;
        };
        return beside
            .iter()
            .next()
            .is_some_and(|dir| is_package(Path::new(dir)));
    }

    let Some(root) = around.parent() else {
        return false;
    };
    let Ok(inside) = path.strip_prefix(root) else {
        return false;
    };
    let mut dirs = inside.iter();
    let is_of_crates = dirs
        .next()
        .is_some_and(|dir| dir == "crates" || dir == "sys");
    // Tests and examples are programs.
    is_of_crates && dirs.any(|dir| dir == "src")
}

fn has_start(name: &str, starts: &[&str]) -> bool {
    let of_rust = names::of_rust(name);
    let name = of_rust.as_deref().unwrap_or(name);
    let name = name
        .trim_start_matches(['<', '&', '['])
        .trim_start_matches("dyn ");
    starts.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(file: &str, name: &str, line: Option<&str>) -> Owner {
        let frame = Frame {
            name: Some(name.to_owned()),
            symbol: None,
            line: line.map(|file| Line {
                file: file.to_owned(),
                number: 1,
            }),
            owner: Owner::Unknown,
        };
        of_frame(Path::new(file), &frame)
    }

    #[test]
    fn names_and_lines_decide_in_a_program() {
        let in_program = |name, line| owner("/data/user/program", name, line);
        let line = Some("/data/user/program.rs");

        assert_eq!(in_program("work", line), Owner::Program);
        assert_eq!(in_program("work", None), Owner::Program);
        assert_eq!(in_program("shmem_of_a_tool", line), Owner::Program);
        assert_eq!(in_program("pshmem_long_put", None), Owner::Library);

        for name in [
            "_ZN5shmem3rma3put17h0123456789abcdefE",
            "<shmem::rma::Put as core::ops::Fn>::call",
        ] {
            assert_eq!(in_program(name, line), Owner::Library, "{name}");
        }

        let vector = "_ZNSt6vectorIiSaIiEE2atEm";

        assert_eq!(in_program(vector, line), Owner::Language);
        let header = Some("/opt/rushmem/include/shmem.h");
        assert_eq!(in_program("shmem_put", header), Owner::Language);
        let core = Some("/rustc/0123/library/core/src/ops/function.rs");
        assert_eq!(in_program("call_once", core), Owner::Language);
        assert_eq!(
            in_program("memcpy", Some("./string/absent.c")),
            Owner::System
        );

        let package = Some("/data/user/.cargo/registry/src/index-1/ndarray-0.16/src/lib.rs");
        assert_eq!(in_program("sum", package), Owner::System);
    }

    #[test]
    fn the_file_decides_where_it_can() {
        let line = Some("/data/user/.cargo/registry/src/index-1/rustix-1.1/src/reg.rs");
        let library = "/opt/rushmem/lib/librushmem.so.1";
        assert_eq!(owner(library, "is_in_range<u8>", line), Owner::Library);
        assert_eq!(owner("/usr/lib/libc.so.6", "abort", None), Owner::System);
    }

    #[test]
    fn our_sources_are_beside_this_crate() {
        let is_ours = |path: &str, this: &str| is_our_source(Path::new(path), Path::new(this));
        let here = "/a/crates/locate";
        assert!(is_ours("/a/crates/runtime/src/call.rs", here));
        assert!(is_ours("/a/sys/ucx-sys/src/lib.rs", here));
        assert!(!is_ours("/a/crates/shmem/examples/ring.rs", here));
        assert!(!is_ours("/b/src/main.rs", here));
        let downloaded = "/c/registry/src/i/rushmem-locate-0.1.0";
        assert!(is_ours(
            "/c/registry/src/i/rushmem-heap-0.1.0/src/lib.rs",
            downloaded
        ));
        assert!(!is_ours(
            "/c/registry/src/i/rustix-1.1.0/src/lib.rs",
            downloaded
        ));
    }
}
