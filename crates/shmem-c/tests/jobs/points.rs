//! The table of where each point of crates/shmem-c/spec/semantics.md is checked, or why it is not.
//! A comment says which part of a point has no test. The table is compared with that list and with
//! the files that it names, so that a point without a check is found.

use std::path::Path;

use Where::{In, Not};

#[derive(Debug, Clone, Copy)]
enum Where {
    /// A file of this directory that carries the number, as an argument of CHECK or in the words
    /// "point N".
    In(&'static str),
    /// Nowhere, for this reason.
    Not(&'static str),
}

const POINTS: [(u32, Where); 86] = [
    (1, In("programs/teams.c")),
    (2, In("programs/teams.c")),
    (3, In("programs/teams.c")),
    (4, In("programs/teams.c")),
    (5, In("programs/split_2d.c")),
    (6, In("programs/teams_many.c")),
    (7, In("programs/split_2d.c")),
    (8, In("programs/split_2d.c")),
    (9, In("programs/teams.c")),
    (10, In("programs/teams.c")),
    (11, In("programs/teams.c")),
    (12, In("programs/members.h")),
    (13, In("scenarios/growth.c")),
    (14, In("programs/teams.c")),
    // The standard requires nothing of a collective on a destroyed team. Here it ends the job.
    (15, In("jobs/misuse.rs")),
    // Not that `team_sync` completes no put: on one node a put is complete when it returns.
    (16, In("programs/ordering.c")),
    (17, In("programs/teams.c")),
    (18, In("programs/teams.c")),
    (19, In("programs/threads.c")),
    (20, In("programs/contexts.c")),
    (21, In("programs/contexts.c")),
    // Not that NOSTORE leaves stores in any order: to order them is allowed.
    (22, In("programs/threads.c")),
    (23, In("programs/contexts.c")),
    (24, In("programs/ordering.c")),
    (25, In("programs/contexts.c")),
    // Data, order and completion are tested in sessions, which change neither.
    (26, In("programs/contexts.c")),
    // Not that words land in any order: the standard promises nothing, so no result is an error.
    (27, In("programs/rma.c")),
    // Not that puts are unordered without a fence, for the same reason.
    (28, In("programs/rma.c")),
    (29, In("programs/strided.c")),
    (30, In("programs/strided.c")),
    (31, In("programs/rma.c")),
    (
        32,
        Not(
            "Overlapping arrays are undefined behavior of the caller; the only allowed overlap is point 58",
        ),
    ),
    // The null pointer for a global of a shared object is tested with one of the C library.
    (33, In("programs/info.c")),
    (34, In("programs/info.c")),
    // Not operations of mixed types at the same time: undefined behavior of the caller.
    (35, In("programs/amo.c")),
    // Not that a non-fetching AMO may return early, which does not happen on one node.
    (36, In("programs/amo.c")),
    (37, In("programs/amo.c")),
    (38, In("programs/amo.c")),
    // Not that a fence leaves other contexts and gets alone: to order more is no error.
    (39, In("programs/ordering.c")),
    (40, In("programs/litmus.c")),
    (41, In("programs/ordering.c")),
    // Not that `sync_all` completes no put, as of point 16.
    (42, In("programs/barriers.c")),
    (43, In("programs/progress.c")),
    // Not that a signal says nothing of earlier puts: no result would be an error.
    (44, In("programs/signal.c")),
    // Not other signal operations and plain stores at the same time, as of point 35.
    (45, In("programs/signal.c")),
    (46, In("programs/signal.c")),
    (47, In("programs/wait_sets.c")),
    (48, In("programs/wait_sets.c")),
    (49, In("programs/wait_sets.c")),
    (50, In("programs/wait.c")),
    (51, In("programs/wait_sets.c")),
    (52, In("programs/wait.c")),
    (53, In("programs/collectives_team.c")),
    // Not that a PE returns while others are inside, which need not happen, but what follows.
    (54, In("programs/collectives_team.c")),
    (55, In("programs/active_sets.c")),
    (56, In("programs/collectives_team.c")),
    (57, In("programs/collectives_team.c")),
    (58, In("programs/reductions.c")),
    (59, In("programs/reductions.c")),
    (60, In("programs/active_sets.c")),
    (61, In("programs/scan.c")),
    (62, In("programs/active_sets.c")),
    (63, In("programs/active_sets.c")),
    (64, In("programs/c11_generics.c")),
    (65, In("programs/memory.c")),
    (66, In("programs/memory.c")),
    (67, In("programs/memory.c")),
    (68, In("programs/memory.c")),
    (69, In("jobs/environment.rs")),
    // A second `shmem_set_lock` of the holder is undefined. Here it ends the job.
    (70, In("programs/lock.c")),
    (71, In("programs/lock.c")),
    (72, In("programs/init_finalize.c")),
    (73, In("programs/init_finalize.c")),
    // Not what `start_pes` does with its argument, which it ignores.
    (74, In("programs/start_pes.c")),
    (75, In("jobs/misuse.rs")),
    (76, In("scenarios/levels.c")),
    // For waits, locks and collectives, which can block, but not for every pair of them.
    (77, In("programs/threads.c")),
    (78, In("jobs/death.rs")),
    (79, In("programs/info.c")),
    (80, In("programs/info.c")),
    (81, In("programs/info.c")),
    (82, In("programs/c11_generics.c")),
    (83, In("scenarios/mpi.c")),
    (84, In("sites/scale.rs")),
    (85, In("programs/shmemx_split_strided.c")),
    (86, In("programs/max_to_all.c")),
];

#[test]
fn every_point_of_the_list_has_a_place() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/semantics.md");
    let list = std::fs::read_to_string(list).expect("the list is in the repository");

    let numbers: Vec<u32> = list
        .lines()
        .filter_map(|line| {
            let (number, _) = line.split_once(". ")?;
            number.parse().ok()
        })
        .collect();
    assert_eq!(numbers, POINTS.map(|(number, _)| number));
}

#[test]
fn every_place_carries_its_number() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (number, place) in POINTS {
        match place {
            In(file) => {
                let text = std::fs::read_to_string(dir.join(file)).expect("the file is there");
                let is_carried = carries(&text, number);
                assert!(is_carried, "{file} has no check of point {number}");
            }
            Not(reason) => assert!(!reason.is_empty()),
        }
    }
}

/// Returns true if a text has the number of a point, in one of the ways in which programs and tests
/// give it.
fn carries(text: &str, number: u32) -> bool {
    let joined = text.replace("\\\n", " ");
    let words: Vec<&str> = joined.split_whitespace().collect();
    let text = words.join(" ");

    // An argument before a format string or the size of an element: `CHECK(a == b, 12, "x")`.
    let argument = format!("{number},");
    let is_argument = words.windows(2).any(|pair| {
        let starts_text = pair[1].starts_with(['"', '#']) || pair[1].starts_with("SIZE");
        pair[0].rsplit('(').next() == Some(argument.as_str()) && starts_text
    });

    // One of the two numbers of a conditional expression: `in_place ? 58 : 61,`.
    let is_choice =
        text.contains(&format!("? {number} :")) || text.contains(&format!(": {number},"));

    // In words, such as "Point 7:", but not at the begin of another number.
    let lowercase = text.to_lowercase();
    let in_words = format!("point {number}");
    let mut after = lowercase.split(&in_words).skip(1);
    let is_in_words = after.any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));

    is_argument || is_choice || is_in_words
}

#[test]
fn a_number_is_found_where_it_is_one() {
    assert!(carries("CHECK(a == b, 12, \"x\")", 12));
    assert!(carries("CHECK(a == b, 12,   \\\n   #N \"x\")", 12));
    assert!(carries("CHECK(a, in_place ? 58 : 61, text)", 58));
    assert!(carries("CHECK(a, in_place ? 58 : 61, text)", 61));
    assert!(carries("/* Point 7: */", 7));
    assert!(!carries("/* Point 77: */", 7));
    assert!(!carries("put(a, 12, b)", 12));
}
