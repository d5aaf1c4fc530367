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
    let files = fs::read_dir(PROGRAMS).expect("the directory of examples");
    let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).expect("a program");
        let expected = text
            .split_once(EXPECTED)
            .and_then(|(_, rest)| rest.strip_suffix(" */\n"));
        let expected = expected.unwrap_or_else(|| panic!("{file:?} says not what it prints"));
        let program = compile(&file, Path::new(env!("CARGO_TARGET_TMPDIR")), &["--race"]);
        for settings in [("SHMEM_CHECK", "races"), ("SHMEM_ONNODE", "off")] {
            // A program that starts the other processes itself needs no launcher.
            let job = match text.contains("fork()") {
                true => Job::direct(&program),
                false => Job::new(&program).n(4),
            };
            let outcome = job.env(settings.0, settings.1).run();
            assert_eq!(outcome.code(), 0, "{file:?}: {outcome}");
            // Without shared memory each PE is a node of its own, so programs that use
            // SHMEM_TEAM_SHARED print something else.
            if settings.0 == "SHMEM_CHECK" || !text.contains("SHMEM_TEAM_SHARED") {
                assert_eq!(
                    sorted(outcome.lines()),
                    sorted(expected.lines()),
                    "{file:?}: {outcome}"
                );
            }
        }
    }
}

/// Returns the name of the routine that a line of the library's interface declares, such as
/// `char shmem_char_g (const char *, int)`.
fn routine(line: &str) -> Option<&str> {
    let (declared, _) = line.split_once(" (")?;
    let name = declared.rsplit([' ', '*']).next()?;
    (!declared.starts_with("constant ")).then_some(name)
}

#[test]
fn every_exported_routine_has_a_page() {
    let pages = prefix().join("share/man/man3");
    let interface = fs::read_to_string(INTERFACE).expect("the list of what the library exports");
    let routines: Vec<&str> = interface.lines().filter_map(routine).collect();
    assert!(routines.len() > 2000, "{routines:?}");
    let has_no_page = |name: &&str| !pages.join(format!("{name}.3")).exists();
    let without: Vec<&str> = routines.into_iter().filter(has_no_page).collect();
    assert!(without.is_empty(), "no page: {without:?}");
}
