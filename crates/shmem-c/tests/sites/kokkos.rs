//! A program that shares views of Kokkos, from docs/c.md. The test is ignored without Kokkos as
//! Debian has it.

use std::path::{Path, PathBuf};

use testkit::pages::blocks;
use testkit::{Job, absent, compile_text};

/// The directory of the headers in the package `libtrilinos-kokkos-dev`.
const INCLUDE: &str = "/usr/include/trilinos";

/// Compiles the program of the page. Ignores the test if there is no Kokkos.
fn program() -> PathBuf {
    if !Path::new(INCLUDE).join("Kokkos_Core.hpp").exists() {
        absent("the package libtrilinos-kokkos-dev is not installed");
    }

    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/c.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let mut programs = blocks(&page, "cpp");
    programs.retain(|block| block.contains("<Kokkos_Core.hpp>"));
    let [text] = &programs[..] else {
        panic!("{} programs with Kokkos", programs.len())
    };

    let tmpdir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let flags = [
        "-isystem",
        INCLUDE,
        "-Wl,--no-as-needed",
        "-ltrilinos_kokkoscore",
    ];
    compile_text("kokkos.cpp", text, tmpdir, &flags)
}

/// Runs the program on a node, over a network and checked. Its result shows that each halo has
/// reached the views.
fn views_are_symmetric() {
    let program = program();
    for (variable, value) in [
        ("SHMEM_ONNODE", "on"),
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_CHECK", "1"),
    ] {
        let outcome = Job::new(&program).n(4).env(variable, value).run();
        assert!(outcome.status.success(), "{outcome}");
        let printed: Vec<&str> = outcome.lines().collect();
        assert_eq!(printed, ["4 PEs: the heat is 6000"], "{outcome}");
    }
}

testkit::module_tests! {
    views_are_symmetric,
}
