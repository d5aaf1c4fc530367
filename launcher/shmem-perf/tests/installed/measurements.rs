//! Tests of what the installed `shmem-perf` measures in jobs, and of what it prints and writes.
//!
//! No test depends on how fast anything is.

use std::fs;

use shmem_perf::record::{Ended, Measure};
use testkit::Job;

use crate::support::{file, find, has, program, record, short};

fn two_pes_measure_what_one_wants_to_know() {
    let (record, outcome) = record("two.json", short(2, &["--growth", "64"]));
    assert_eq!(record.job.pes.len(), 2);
    has(
        &record,
        Measure::Latency,
        &["put", "get", "p", "g", "fetch_add", "put_signal round trip"],
    );
    has(
        &record,
        Measure::Latency,
        &["store", "memcpy to peer", "cache line round trip"],
    );
    has(&record, Measure::Bandwidth, &["put_nbi", "get_nbi"]);
    has(&record, Measure::BidirectionalBandwidth, &["put_nbi"]);
    has(&record, Measure::MessageRate, &["put", "p"]);
    has(&record, Measure::Overlap, &["put_nbi"]);
    let collectives = [
        "barrier_all",
        "sum_reduce",
        "broadcast",
        "fcollect",
        "alltoall",
    ];
    has(&record, Measure::Collective, &collectives);
    has(&record, Measure::Event, &["init"]);
    assert!(record.clock.overhead_ns > 0.0);
    let latency = find(&record, Measure::Latency, "put").expect("it is there");
    let sizes: Vec<u64> = latency.points.iter().map(|point| point.nbytes).collect();
    assert_eq!(sizes, [8, 512, 32768, 2097152]);
    for heading in [
        "Latency by size",
        "Message rate",
        "Collectives by size",
        "which are subtracted",
    ] {
        assert!(outcome.stdout.contains(heading), "{heading}\n{outcome}");
    }
    assert_eq!(
        record.library.path(),
        "shared memory: all PEs are on one node"
    );
    let printed = &outcome.stdout;
    let transport = "\ntransport: shared memory: all PEs";
    assert!(printed.contains(transport), "{outcome}");

    let (_, answers) = outcome
        .stdout
        .split_once("what is possible here")
        .expect("answers");
    for part in ["memcpy to peer", "Likely reasons", "share memory"] {
        assert!(answers.contains(part), "{part}\n{outcome}");
    }
    // There is no terminal, so there is no bar.
    assert!(outcome.stderr.is_empty(), "{outcome}");
    assert!(!outcome.stdout.contains('\r'), "{outcome}");
}

fn one_pe_measures_with_itself_and_says_so() {
    let job = short(1, &["--operations", "put,put_signal,sum_reduce"]);
    let job = job.args(["--max-bytes", "64"]);
    let (record, outcome) = record("one.json", job);
    has(&record, Measure::Latency, &["put", "put_signal round trip"]);
    assert!(outcome.stdout.contains("measures with itself"), "{outcome}");
}

fn four_pes_measure_in_pairs_over_tcp() {
    let job = short(4, &["--operations", "put,p,add,barrier_all,fcollect"])
        .args(["--max-bytes", "64", "--pairs", "all"])
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp");
    let (record, _) = record("pairs.json", job);
    has(
        &record,
        Measure::Latency,
        &["put", "p round trip", "socket round trip"],
    );
    has(&record, Measure::BidirectionalBandwidth, &["put"]);
    let put = find(&record, Measure::MessageRate, "put").expect("it is there");
    assert_eq!(put.shape.pairs, "all");
    assert_eq!(put.shape.n_pes, 4);
}

fn a_target_can_compute_meanwhile() {
    let job = short(4, &["--operations", "fetch_add"])
        .args(["--measures", "latency,bidirectional"])
        .args(["--target", "computes", "--pairs", "all"])
        .env("SHMEM_VIRTUAL_NODES", "2")
        .env("SHMEM_TRANSPORT", "tcp");
    let (record, outcome) = record("computes.json", job);
    let series = find(&record, Measure::Latency, "fetch_add").expect("it is there");
    assert!(series.shape.target_computes, "{outcome}");
}

fn a_record_says_how_to_do_it_again() {
    let words = ["--operations", "p", "--measures", "latency", "--bind"];
    let job = short(2, &words)
        .env("SHMEM_VIRTUAL_NODES", "2")
        .env("SHMEM_HOST_LIMIT", "20");
    let (record, _) = record("again.json", job);

    for (name, value, origin) in [
        ("SHMEM_VIRTUAL_NODES", "2", "environment"),
        ("SHMEM_HOST_LIMIT", "20", "environment"),
        ("SHMEM_ONNODE", "on", "default"),
    ] {
        let mut settings = record.settings.iter();
        let setting = settings.find(|setting| setting.name == name);
        let setting = setting.unwrap_or_else(|| panic!("{name} in {:?}", record.settings));
        assert_eq!(setting.value, value, "{name}");
        assert_eq!(setting.origin, origin, "{name}");
    }

    // The library reports the transport, since no setting names it.
    let transport = record
        .library
        .transport
        .as_deref()
        .expect("PEs that share no memory have one");
    assert!(["tcp", "ucx", "ofi"].contains(&transport), "{transport}");
    let mut below = record.library.below.iter();
    assert!(below.any(|found| found.starts_with("tcp: ")), "{record:?}");

    let [launcher, rest @ ..] = record.launcher.as_slice() else {
        panic!("no launcher")
    };
    assert!(launcher.ends_with("oshrun"), "{launcher}");
    assert!(rest.contains(&"-n".to_owned()), "{rest:?}");

    let nodes: Vec<Option<u32>> = record.job.pes.iter().map(|pe| pe.node).collect();
    assert_eq!(nodes, [Some(0), Some(1)], "virtual nodes share no memory");
    let host = &record.job.hosts[0];
    if host.n_cpus >= 2 {
        let [first, second] = record.job.pes.as_slice() else {
            panic!("two PEs")
        };
        for pe in [first, second] {
            let is_one_cpu = pe.cpus.parse::<u32>().is_ok();
            assert!(is_one_cpu, "{:?}", record.job);
        }
        assert_ne!(first.cpus, second.cpus, "{:?}", record.job);
    }
    assert!(!host.numa_nodes.is_empty(), "{host:?}");
}

fn every_operation_can_be_measured() {
    let job = short(3, &["--operations", "all"])
        .args(["--max-bytes", "16", "--growth", "2"])
        .args(["--pairs", "neighbors", "--team-sizes", "1,2,3"]);
    let (record, _) = record("all.json", job);
    has(
        &record,
        Measure::Latency,
        &["iget", "fetch_xor", "lock", "fetch_add_nbi"],
    );
    for size in [1, 2, 3] {
        let has_team = record.series.iter().any(|series| {
            series.operation == "sum_reduce" && series.shape.team_size == Some(size)
        });
        assert!(has_team, "a team of {size}");
    }
}

fn collectives_on_active_sets_have_the_sizes_that_are_listed() {
    let operations = "max_to_all,broadcast64,fcollect64,barrier_all";
    let job = short(3, &["--operations", operations]);
    let job = job.args(["--measures", "collective", "--sizes", "8,8k"]);
    let (record, _) = record("sets.json", job);
    for operation in [
        "max_to_all",
        "broadcast64 and barrier_all",
        "fcollect64 and barrier_all",
    ] {
        let series = find(&record, Measure::Collective, operation).expect(operation);
        let sizes: Vec<u64> = series.points.iter().map(|point| point.nbytes).collect();
        let fits: &[u64] = if operation.starts_with("fcollect") {
            &[8]
        } else {
            &[8, 8192]
        };
        assert_eq!(sizes, fits, "{operation}");
    }
    has(&record, Measure::Collective, &["barrier_all"]);
}

fn threads_contexts_and_static_data_can_be_measured() {
    for words in [
        &["--threads", "2", "--contexts", "3"][..],
        &["--threads", "3", "--contexts", "2"],
        &["--contexts", "2", "--memory", "static"],
        &["--pairs", "random", "--seed", "5", "--window", "4"],
        &["--target", "computes"],
    ] {
        let job = short(2, words)
            .args(["--operations", "put_nbi,fetch_add,iput"])
            .args(["--max-bytes", "64"]);
        let (record, _) = record("threads.json", job);
        has(&record, Measure::MessageRate, &["put_nbi", "fetch_add"]);
    }
}

fn the_thread_level_is_recorded() {
    for (flags, expected) in [
        (&[][..], "single"),
        (&["--thread-multiple"], "multiple"),
        (&["--threads=2"], "multiple"),
    ] {
        let job = short(2, flags)
            .args(["--operations", "put_nbi,max_reduce"])
            .args(["--sizes", "8"]);
        let (record, _) = record("level.json", job);
        has(&record, Measure::Collective, &["max_reduce"]);
        assert_eq!(record.library.thread_level.as_deref(), Some(expected));
    }
}

fn a_matrix_has_each_pe_with_each_other_one() {
    // With a limit of 60 s, since on a busy machine a short time may be over before the last pair.
    let job = Job::new(program()).n(4).args(["--matrix", "--time", "60"]);
    let (record, outcome) = record("matrix.json", job);
    assert!(record.series.is_empty());
    let measures: Vec<Measure> = record
        .matrices
        .iter()
        .map(|matrix| matrix.measure)
        .collect();
    assert_eq!(measures, [Measure::Latency, Measure::Bandwidth]);
    for matrix in &record.matrices {
        for (from, row) in matrix.values.iter().enumerate() {
            let own: Vec<bool> = row.iter().map(Option::is_none).collect();
            let expected: Vec<bool> = (0..4).map(|to| to == from).collect();
            assert_eq!(own, expected, "{matrix:?}");
        }
    }
    assert!(outcome.stdout.contains("from \\ to"), "{outcome}");
}

fn a_table_of_values_has_a_line_for_each_point() {
    let file = file("values.csv");
    let outcome = short(2, &["--operations", "put", "--measures", "latency"])
        .args(["--max-bytes", "512", "-o"])
        .arg(file.display())
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");

    let text = fs::read_to_string(file).expect("a file");
    let mut lines = text.lines();
    let head = lines.next().expect("a head");
    let n_columns = head.split(',').count();
    assert!(head.ends_with(",unit"), "{text}");

    let mut n_puts = 0;
    for line in lines {
        assert_eq!(line.split(',').count(), n_columns, "{text}");
        assert!(line.ends_with(",ns"), "{text}");
        if line.starts_with("latency,put,false") {
            n_puts += 1;
        }
    }
    assert_eq!(n_puts, 4, "{text}");
}

fn moved_data_is_checked() {
    for (operations, sizes, options) in [
        ("all", "8,24", ["--pairs", "neighbors"]),
        ("put,get,p,add,iput,fetch_xor", "8,24", ["--threads", "2"]),
        ("put,iget,fetch_or", "24", ["--memory", "static"]),
    ] {
        let job = short(3, &["--validate", "--operations", operations])
            .args(["--sizes", sizes])
            .args(options);
        let (record, outcome) = record("validated.json", job);
        assert!(record.validated, "{outcome}");
        assert!(outcome.stdout.contains("was checked"), "{outcome}");
    }
}

fn what_is_repeated_and_kept_can_be_chosen() {
    let samples = file("samples.csv");
    let job = short(2, &["--operations", "put,barrier_all,fcollect"])
        .args(["--measures", "latency,collective", "--sizes", "8k"])
        .args(["--warm-up", "10", "--iterations", "40"])
        .args(["--off-cache", "4m", "--samples"])
        .arg(samples.display())
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp");
    let (record, _) = record("counted.json", job);

    let text = fs::read_to_string(samples).expect("a file of values");
    for (measure, name) in [
        (Measure::Latency, "put"),
        (Measure::Collective, "barrier_all"),
    ] {
        let summary = &find(&record, measure, name).expect(name).points[0].summary;
        assert_eq!(summary.n, 40, "{name}");
        assert_eq!(summary.ended, Ended::Counted, "{name}");

        let mut n_values = 0;
        let mut least = f64::MAX;
        for line in text.lines() {
            if line.split(',').nth(1) == Some(name) {
                let (_, value) = line.rsplit_once(',').expect("a value");
                least = least.min(value.parse().expect("a number"));
                n_values += 1;
            }
        }
        assert_eq!(n_values, 40, "{name}");
        assert_eq!(least, summary.min, "{name}");
    }

    for series in &record.series {
        if series.measure == Measure::Collective {
            let members = series.points[0].by_pe.expect("each PE's mean");
            let growing = [0.0, members.min, members.mean, members.max];
            assert!(growing.is_sorted() && members.min > 0.0, "{series:?}");
        }
    }
}

testkit::module_tests!(
    two_pes_measure_what_one_wants_to_know,
    one_pe_measures_with_itself_and_says_so,
    four_pes_measure_in_pairs_over_tcp,
    a_target_can_compute_meanwhile,
    a_record_says_how_to_do_it_again,
    every_operation_can_be_measured,
    collectives_on_active_sets_have_the_sizes_that_are_listed,
    threads_contexts_and_static_data_can_be_measured,
    the_thread_level_is_recorded,
    a_matrix_has_each_pe_with_each_other_one,
    a_table_of_values_has_a_line_for_each_point,
    moved_data_is_checked,
    what_is_repeated_and_kept_can_be_chosen,
);
