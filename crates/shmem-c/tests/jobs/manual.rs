//! Every routine has a man page, and the examples of the pages print what their last comments say,
//! and have no race.

use std::fs;
use std::path::Path;

use testkit::{Job, compile, prefix};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/spec/examples");
const INTERFACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/spec/abi-1.txt");
const EXPECTED: &str = "/* Prints on 4 PEs, in any order:\n";

fn sorted<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut lines: Vec<&str> = lines.map(str::trim).collect();
    lines.sort_unstable();
    lines
}

#[test]
#[ignore = "part of `cargo xtask test --providers`"]
fn examples_print_what_they_say() {
    let mut n_examples = 0;
    for file in fs::read_dir(PROGRAMS).expect("the directory of examples") {
        example_prints_what_it_says(&file.expect("a file").path());
        n_examples += 1;
    }
    assert!(n_examples > 0);
}

fn example_prints_what_it_says(file: &Path) {
    let text = fs::read_to_string(file).expect("a program");
    let expected = text
        .split_once(EXPECTED)
        .and_then(|(_, rest)| rest.strip_suffix(" */\n"))
        .unwrap_or_else(|| panic!("{file:?} says not what it prints"));

    let program = compile(file, Path::new(env!("CARGO_TARGET_TMPDIR")), &["--race"]);
    // A program that starts the other processes itself needs no launcher.
    let job = if text.contains("fork()") {
        Job::direct(&program)
    } else {
        Job::new(&program).n(4)
    };

    let on_node = job.clone().env("SHMEM_CHECK", "races").run();
    assert_eq!(on_node.code(), 0, "{file:?}: {on_node}");
    let expected = sorted(expected.lines());
    assert_eq!(sorted(on_node.lines()), expected, "{file:?}: {on_node}");

    let off_node = job.env("SHMEM_ONNODE", "off").run();
    assert_eq!(off_node.code(), 0, "{file:?}: {off_node}");
    // Without shared memory each PE is a node of its own, so programs that use SHMEM_TEAM_SHARED
    // print something else.
    if !text.contains("SHMEM_TEAM_SHARED") {
        assert_eq!(sorted(off_node.lines()), expected, "{file:?}: {off_node}");
    }
}

/// Returns the name of the routine that a line of the library's interface declares, such as
/// `char shmem_char_g (const char *, int)`.
fn routine(line: &str) -> Option<&str> {
    let (declared, _) = line.split_once(" (")?;
    if declared.starts_with("constant ") {
        return None;
    }
    declared.rsplit([' ', '*']).next()
}

#[test]
fn every_exported_routine_has_a_page() {
    let interface = fs::read_to_string(INTERFACE).expect("the list of what the library exports");
    let mut routines: Vec<&str> = interface.lines().filter_map(routine).collect();
    // The lines have the form that `routine` expects.
    assert!(routines.len() > 2000, "{routines:?}");

    let pages = prefix().join("share/man/man3");
    routines.retain(|name| !pages.join(format!("{name}.3")).exists());
    assert!(routines.is_empty(), "no page: {routines:?}");
}
