//! Core files stay small: they contain neither the memory of peers nor memory that was never
//! touched. They contain registered buffers.

use std::fs;

use testkit::{Job, Outcome, scenario};

/// The maximum size: the allocation of PE 0 of scenarios/core.c, of which it touches half, and room
/// for the library's own memory.
const ROOM: u64 = (32 << 20) + (64 << 20);

/// PE 0 of 4 with heaps of 1 GiB touches a part of its own and of its peers' memory, then aborts.
#[test]
fn a_core_file_holds_only_what_was_used() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let outcome = Job::new(scenario!("core.c"))
        .n(4)
        .env("SHMEM_SYMMETRIC_SIZE", "1g")
        .wrap(["sh", "-c", "ulimit -c unlimited && exec \"$@\"", "sh"])
        .dir(dir.path())
        .run();
    outcome.assert_crashes(
        "PE 0: SIGABRT in abort, called by main (",
        &["PE 0", "SIGABRT"],
    );

    let mapped = printed(&outcome, "shared ");
    assert!(
        mapped >= 4 << 30,
        "the heaps are not mapped as a whole\n{outcome}"
    );
    let dumpable = printed(&outcome, "dumpable ");
    assert!(
        dumpable <= ROOM,
        "too much shared memory would be dumped\n{outcome}"
    );

    assert_eq!(printed(&outcome, "registered "), 1 << 20, "{outcome}");

    // If the kernel writes core files into the working directory, the file itself is checked as
    // well.
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with(['|', '/']) {
        println!("left out: core files go to {}", pattern.trim());
        return;
    }

    let mut sizes = Vec::new();
    for entry in fs::read_dir(dir.path()).expect("it is ours").flatten() {
        if entry.file_name().to_string_lossy().starts_with("core") {
            sizes.push(entry.metadata().expect("it is there").len());
        }
    }
    assert!(
        !sizes.is_empty(),
        "no core file was written, although the pattern is {pattern}"
    );
    // A core file also has what the process has beside shared memory.
    let most = ROOM + (64 << 20);
    assert!(
        sizes.iter().all(|size| *size <= most),
        "core files of {sizes:?} bytes"
    );
}

/// Returns the number that PE 0 has printed after these words.
fn printed(outcome: &Outcome, words: &str) -> u64 {
    let number = outcome.lines().find_map(|line| line.strip_prefix(words));
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("PE 0 did not say: {words}\n{outcome}"))
}
