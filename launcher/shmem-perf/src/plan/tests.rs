//! Tests of the plan, with a table of a few operations.

use clap::Parser;

use super::*;

fn table() -> Vec<Operation> {
    let operation = |name: &str, kind, least, most| {
        let mut made = Operation::named(name, kind, least, most);
        made.overlaps = name == "put_nbi";
        made.blocks_by_member = name == "fcollect";
        made
    };
    vec![
        operation("put", OperationKind::Alone, 1, 0),
        operation("put_nbi", OperationKind::Alone, 1, 0),
        operation("get", OperationKind::Alone, 1, 0),
        operation("get_nbi", OperationKind::Alone, 1, 0),
        operation("iput", OperationKind::Alone, 8, 0),
        operation("p", OperationKind::Alone, 8, 8),
        operation("p round trip", OperationKind::RoundTrip, 8, 8),
        operation("put_fence_p round trip", OperationKind::RoundTrip, 1, 0),
        operation("put_signal round trip", OperationKind::RoundTrip, 1, 0),
        operation("store", OperationKind::Plain, 8, 8),
        operation("memcpy to peer", OperationKind::Plain, 1, 0),
        operation("cache line round trip", OperationKind::PlainRoundTrip, 8, 8),
        operation("barrier_all", OperationKind::Collective, 0, 0),
        operation("fcollect", OperationKind::Collective, 8, 0),
    ]
}

fn options(words: &[&str]) -> PerfOptions {
    PerfOptions::try_parse_from([&["shmem-perf"], words].concat()).expect("flags")
}

fn facts(n_pes: u32, shares_memory: bool) -> JobFacts {
    JobFacts {
        n_pes,
        shares_memory,
        shares_host: true,
        networks: [false; 2],
    }
}

/// Measures and names, in their order.
fn planned(words: &[&str], facts: JobFacts) -> Vec<(Measure, String)> {
    let groups = plan(&options(words), &table(), facts).expect("a plan");
    let subjects = groups.into_iter().flat_map(|group| group.subjects);
    subjects
        .map(|subject| (subject.measure, subject.name))
        .collect()
}

fn has(planned: &[(Measure, String)], measure: Measure, name: &str) -> bool {
    planned
        .iter()
        .any(|(found, operation)| *found == measure && operation == name)
}

#[test]
fn without_flags_it_is_what_most_programs_use() {
    let found = planned(&[], facts(2, true));
    for (measure, name) in [
        (Measure::Latency, "put"),
        (Measure::Latency, "put_signal round trip"),
        (Measure::Latency, "memcpy to peer"),
        (Measure::Latency, "cache line round trip"),
        (Measure::Bandwidth, "put_nbi"),
        (Measure::BidirectionalBandwidth, "put_nbi"),
        (Measure::MessageRate, "p"),
        (Measure::Overlap, "put_nbi"),
        (Measure::Collective, "barrier_all"),
        (Measure::Event, "init"),
    ] {
        assert!(
            has(&found, measure, name),
            "{measure:?} of {name}: {found:?}"
        );
    }
    assert!(!has(&found, Measure::Latency, "iput"));
    // A substitute is measured only where the routine is missing.
    assert!(!has(&found, Measure::Latency, "put_fence_p round trip"));
}

#[test]
fn floors_are_those_of_the_path_and_of_the_sizes() {
    let found = planned(&[], facts(2, false));
    assert!(has(&found, Measure::Latency, "socket round trip"));
    assert!(!has(&found, Measure::Latency, "store"));

    let found = planned(&["--operations", "p"], facts(2, true));
    assert!(has(&found, Measure::Latency, "store"));
    assert!(!has(&found, Measure::Latency, "memcpy to peer"));

    // A store says nothing of a round trip.
    for operation in ["put_signal", "p round trip"] {
        let found = planned(&["--operations", operation], facts(2, true));
        assert!(
            has(&found, Measure::Latency, "cache line round trip"),
            "{operation}"
        );
        assert!(!has(&found, Measure::Latency, "store"), "{operation}");
    }

    let alone = planned(&[], facts(1, true));
    assert!(!has(&alone, Measure::Latency, "cache line round trip"));
}

#[test]
fn floors_of_networks_are_those_that_are_wanted() {
    let with_networks = |networks| JobFacts {
        networks,
        ..facts(2, false)
    };

    for (networks, names) in [
        ([true, false], ["ucp_put", "ucp_get"]),
        ([false, true], ["fi_write", "fi_read"]),
    ] {
        let found = planned(&[], with_networks(networks));
        for measure in [Measure::Latency, Measure::Bandwidth] {
            assert!(
                names.iter().all(|name| has(&found, measure, name)),
                "{found:?}"
            );
        }
        assert!(!has(&found, Measure::MessageRate, names[0]), "{found:?}");
    }

    let found = planned(&["--operations", "p"], with_networks([true, true]));
    assert!(has(&found, Measure::Latency, "ucp_put"), "{found:?}");
    assert!(
        !has(&found, Measure::Latency, "ucp_get"),
        "a read bounds no write: {found:?}"
    );

    let found = planned(&[], with_networks([false, false]));
    assert!(!has(&found, Measure::Latency, "fi_write"), "{found:?}");
}

#[test]
fn each_operation_can_be_named() {
    for name in table()
        .iter()
        .filter(|operation| !is_floor(operation))
        .map(|found| &found.name)
    {
        let options = options(&["--operations", name]);
        assert_eq!(options.operations, [name.as_str()], "a comma divides names");
        let found = plan(&options, &table(), facts(2, false)).expect("a plan");
        let subjects = found.iter().flat_map(|group| &group.subjects);
        assert!(
            subjects.into_iter().any(|subject| subject.name == *name),
            "{name}"
        );
    }
}

#[test]
fn a_name_also_stands_for_its_round_trip() {
    let found = planned(&["--operations", "put_signal"], facts(2, true));
    assert!(has(&found, Measure::Latency, "put_signal round trip"));
    assert!(!has(&found, Measure::Latency, "put"));
}

#[test]
fn sizes_are_those_that_an_operation_can_have() {
    let words = [
        "--operations",
        "put,iput,fcollect",
        "--max-bytes",
        "64",
        "--growth",
        "2",
    ];
    let words = [
        &words[..],
        &["--min-bytes", "2", "--measures", "latency,collective"],
    ]
    .concat();
    let groups = plan(&options(&words), &table(), facts(4, false)).expect("a plan");
    let sizes = |name: &str| {
        let mut subjects = groups.iter().flat_map(|group| &group.subjects);
        subjects
            .find(|subject| subject.name == name)
            .expect("a subject")
            .sizes
            .clone()
    };
    assert_eq!(sizes("put"), [2, 4, 8, 16, 32, 64]);
    assert_eq!(sizes("iput"), [8, 16, 32, 64]);
    // Four blocks fit.
    assert_eq!(sizes("fcollect"), [8, 16]);
}

#[test]
fn blocks_are_needed_for_what_is_requested() {
    let needs = |words: &[&str]| needs_blocks(&options(words), &table());
    assert!(needs(&[]) && needs(&["--operations", "all"]));
    assert!(!needs(&["--operations", "put,barrier_all"]) && !needs(&["--measures", "rate"]));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused =
        |words: &[&str]| plan(&options(words), &table(), facts(2, true)).expect_err("none");
    assert!(refused(&["--operations", "teleport"]).contains("there is no such operation"));
    let nothing = refused(&["--operations", "p", "--measures", "overlap"]);
    assert!(nothing.contains("nothing is left"), "{nothing}");
}

#[test]
fn each_team_has_a_curve_of_its_own() {
    let words = [
        "--operations",
        "fcollect,barrier_all",
        "--team-sizes",
        "2,3",
    ];
    let groups = plan(&options(&words), &table(), facts(4, true)).expect("a plan");
    let subjects = groups.iter().flat_map(|group| &group.subjects);
    let teams: Vec<(&str, Option<u32>)> = subjects
        .map(|subject| (subject.name.as_str(), subject.shape.team_size))
        .collect();
    assert_eq!(
        teams,
        [
            ("barrier_all", Some(4)),
            ("fcollect", Some(2)),
            ("fcollect", Some(3))
        ]
    );
}

#[test]
fn a_pe_is_in_one_pair_at_most() {
    for which in [Pairs::One, Pairs::Neighbors, Pairs::Random, Pairs::All] {
        for n in 2..20 {
            let flags = PerfOptions {
                pairs: which,
                seed: 7,
                ..options(&[])
            };
            let pairs = pairs(&flags, n);
            let pes: BTreeSet<u32> = pairs.iter().flat_map(|pair| [pair.from, pair.to]).collect();
            assert_eq!(pes.len(), 2 * pairs.len(), "{which:?} of {n}");
            assert!(pes.iter().all(|&pe| pe < n));

            let n_pairs = if which == Pairs::One { 1 } else { n / 2 };
            assert_eq!(pairs.len() as u32, n_pairs, "{which:?} of {n}");
        }
    }
}

#[test]
fn one_pe_is_its_own_peer() {
    let all = options(&["--pairs", "all"]);
    assert_eq!(pairs(&all, 1), [Pair { from: 0, to: 0 }]);
}

#[test]
fn the_pair_that_is_named_measures() {
    let named = options(&["--pair", "3,0"]);
    assert_eq!(pairs(&named, 4), [Pair { from: 3, to: 0 }]);
}
