//! The program of docs/c.md whose views of Kokkos are symmetric memory. The test is ignored if
//! Debian's package of Kokkos is not installed.

use std::path::{Path, PathBuf};

use testkit::pages::block;
use testkit::{Job, absent, compile_text};

const PAGE: &str = include_str!("../../../../docs/c.md");

/// The directory of the headers in the package `libtrilinos-kokkos-dev`.
const INCLUDE: &str = "/usr/include/trilinos";

/// Compiles the program of the page. Ignores the test if there is no Kokkos.
fn program() -> PathBuf {
    if !Path::new(INCLUDE).join("Kokkos_Core.hpp").exists() {
        absent("the package libtrilinos-kokkos-dev is not installed");
    }

    let text = block(PAGE, "cpp", "<Kokkos_Core.hpp>");
    let tmpdir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let flags = [
        "-isystem",
        INCLUDE,
        "-Wl,--no-as-needed",
        "-ltrilinos_kokkoscore",
    ];
    compile_text("kokkos.cpp", &text, tmpdir, &flags)
}

/// Runs the program on a node, over a network and checked. It prints another number if a halo is
/// lost.
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
