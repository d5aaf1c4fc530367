//! The programs of tests/programs, each on 1 to 12 PEs: what the standard says, clause by clause.
//! A check prints the number of its point in ci/spec/semantics.md.

use std::collections::BTreeSet;
use std::path::Path;

use testkit::{Job, program};

const PES: [usize; 8] = [1, 2, 3, 4, 5, 7, 8, 12];

/// Programs that other tests run, and the headers.
const ELSEWHERE: [&str; 12] = [
    "check.h",
    "core.c",
    "death.c",
    "endless.c",
    "heap_size.c",
    "lingers.c",
    "members.h",
    "misuse.c",
    "operators.h",
    "seed_003.c.in",
    "soak.c",
    "types.h",
];

/// Jobs whose PEs share no memory, or only some of it: the tier `--providers`.
const OFF_NODE: [usize; 6] = [1, 2, 3, 4, 8, 12];
const VIRTUAL_NODES: [(&str, usize); 2] = [("2+2", 4), ("1+2+3", 6)];

/// Jobs over libfabric: its provider, who shares memory, and how many PEs. Each program runs with two of
/// them, one with each as its first.
const OFI: [(&str, (&str, &str), usize); 6] = [
    ("tcp;ofi_rxm", ("SHMEM_ONNODE", "off"), 2),
    ("sockets", ("SHMEM_ONNODE", "off"), 3),
    ("shm", ("SHMEM_ONNODE", "off"), 4),
    ("tcp;ofi_rxm", ("SHMEM_VIRTUAL_NODES", "1+2+3"), 6),
    ("udp;ofi_rxd", ("SHMEM_ONNODE", "off"), 2),
    ("tcp;ofi_rxm", ("SHMEM_VIRTUAL_NODES", "2+2"), 4),
];

fn runs_over_ofi(source: &str) {
    let place = HERE.iter().position(|here| *here == source).expect("a program of the list");
    for (provider, nodes, n) in [OFI[place % OFI.len()], OFI[(place + 1) % OFI.len()]] {
        let ofi = [("SHMEM_TRANSPORT", "ofi"), ("SHMEM_OFI_PROVIDER", provider), nodes];
        runs(source, n, &ofi);
    }
}

fn runs(source: &str, n: usize, environment: &[(&str, &str)]) {
    let mut job = Job::new(program!(source)).n(n);
    for (name, value) in environment {
        job = job.env(name, value);
    }
    if source == "memory.c" {
        // It takes all memory there is: a small heap is as good as a large one.
        job = job.env("SHMEM_SYMMETRIC_SIZE", "64m");
    }
    job.run().assert_ok(n);
}

/// For each program a test named like it, on one node, on none, over libfabric, and on virtual nodes.
macro_rules! programs {
    ($($name:ident $source:literal)*) => {
        const HERE: &[&str] = &[$($source),*];

        mod on_node {
            $(
                #[test]
                fn $name() {
                    super::PES.iter().for_each(|&n| super::runs($source, n, &[]));
                }
            )*
        }

        mod off_node {
            $(
                #[test]
                #[ignore = "part of `cargo xtask test --providers`"]
                fn $name() {
                    let off = [("SHMEM_ONNODE", "off")];
                    super::OFF_NODE.iter().for_each(|&n| super::runs($source, n, &off));
                }
            )*
        }

        mod ofi {
            $(
                #[test]
                #[ignore = "part of `cargo xtask test --providers`"]
                fn $name() {
                    super::runs_over_ofi($source);
                }
            )*
        }

        mod virtual_nodes {
            $(
                #[test]
                #[ignore = "part of `cargo xtask test --providers`"]
                fn $name() {
                    for (nodes, n) in super::VIRTUAL_NODES {
                        super::runs($source, n, &[("SHMEM_VIRTUAL_NODES", nodes)]);
                    }
                }
            )*
        }
    };
}

programs! {
    active_sets "active_sets.c"
    amo "amo.c"
    barriers "barriers.c"
    c11_generics "c11_generics.c"
    collectives_team "collectives_team.c"
    constants "constants.c"
    contexts "contexts.c"
    cxx "cxx.cpp"
    info "info.c"
    init_finalize "init_finalize.c"
    litmus "litmus.c"
    lock "lock.c"
    max_to_all "max_to_all.c"
    memory "memory.c"
    ordering "ordering.c"
    paths "paths.c"
    progress "progress.c"
    reductions "reductions.c"
    rma "rma.c"
    scan "scan.c"
    signal "signal.c"
    split_2d "split_2d.c"
    start_pes "start_pes.c"
    strided "strided.c"
    teams "teams.c"
    teams_many "teams_many.c"
    threads "threads.c"
    wait "wait.c"
    wait_sets "wait_sets.c"
}

/// The grid of the standard's page: 10 PEs with xrange 3 make 4 + 3 teams, the last of the first kind with one PE.
#[test]
fn ten_pes_in_two_dimensions() {
    Job::new(program!("split_2d.c")).n(10).run().assert_ok(10);
}

#[test]
fn without_a_launcher_a_program_is_a_job_of_one_pe() {
    for source in ["teams.c", "rma.c", "barriers.c", "start_pes.c"] {
        Job::direct(program!(source)).run().assert_ok(1);
    }
}

#[test]
#[ignore = "a minute; part of `cargo xtask test --full`"]
fn every_program_on_64_pes() {
    for source in HERE {
        runs(source, 64, &[]);
    }
}

#[test]
fn no_program_is_forgotten() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let present: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("the programs are there")
        .map(|entry| {
            entry.expect("it can be read").file_name().into_string().expect("a plain name")
        })
        .collect();
    let run: BTreeSet<String> = HERE.iter().chain(&ELSEWHERE).map(|s| (*s).to_owned()).collect();
    assert_eq!(present, run);
}
