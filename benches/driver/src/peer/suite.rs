//! What is compared: the programs, the environment in which they run, the rows and their aims.

use super::table::{Aim, Row, Unit};

/// A comparison: the table that it prints and what fills it.
pub struct Suite {
    /// What `--suite` calls it.
    pub name: &'static str,
    /// Programs of benches/ that it needs.
    pub sources: &'static [&'static str],
    /// Those of them that print the values of rows, and on how many PEs.
    pub programs: &'static [(&'static str, usize)],
    /// Jobs of shmem-perf.
    pub measured: &'static [Measured],
    pub launches: &'static [Launch],
    /// By how many percent a second PE prolongs the one time that a source prints: the row, the source.
    pub costs: &'static [(&'static str, &'static str)],
    /// The interface that must carry what shmem-perf moves.
    pub carrier: Option<&'static str>,
    /// Set for both contenders; each ignores what is meant for the other.
    pub environment: &'static [(&'static str, &'static str)],
    pub rows: &'static [Row],
    /// What the rows call bare, as the table's heading has it.
    pub bare: &'static str,
}

/// All there are; the first is the usual one.
pub const ALL: [&Suite; 6] = [&ON_NODE, &TCP, &UCX, &START, &COLLECTIVES, &COLLECTIVES_TCP];

/// The suite of a name.
pub fn named(name: &str) -> Option<&'static Suite> {
    ALL.into_iter().find(|suite| suite.name == name)
}

/// A job of shmem-perf, each of whose figures is a value of a row; `figures` says how they are called.
pub struct Measured {
    /// What its record is called, in the page, too.
    pub title: &'static str,
    pub pes: usize,
    pub words: &'static [&'static str],
}

/// A launch that is timed from outside.
pub struct Launch {
    /// The row.
    pub row: &'static str,
    /// A source or any program's path.
    pub program: &'static str,
    pub pes: usize,
    /// How often it is run at most, however many runs there are.
    pub most: usize,
}

/// PEs that share their memory.
pub const ON_NODE: Suite = Suite {
    name: "on-node",
    sources: &["peer", "empty", "empty_large", "large", "locks"],
    programs: &[("peer", 2), ("large", 2), ("locks", 2), ("locks", 8)],
    measured: &[],
    launches: &[
        launch("launch_empty", "empty", 2),
        launch("launch_large", "empty_large", 2),
        launch("launch_true", "/bin/true", 2),
    ],
    costs: &[],
    carrier: None,
    environment: &[],
    rows: &[
        row("put8", "put of 8 bytes", "bare_put8", &[Aim::OfTheirs(0.3)]),
        row("put8_private", "put of 8 bytes, private context", "bare_put8", &[]),
        row("p8", "p of a long", "bare_put8", &[Aim::OfTheirs(0.3)]),
        row("p8_static", "p to a static long", "bare_put8", &[Aim::OfTheirs(0.1)]),
        row("put8_nbi", "nbi put of 8 bytes", "bare_put8", &[Aim::OfTheirs(0.3)]),
        row("get8", "get of 8 bytes", "bare_get8", &[Aim::OfTheirs(0.2)]),
        row("g8", "g of a long", "bare_get8", &[Aim::OfTheirs(0.2)]),
        row("fetch_add", "fetch_add on a long", "bare_fetch_add", &[Aim::OfTheirs(0.4)]),
        row("inc", "inc on a long", "bare_fetch_add", &[Aim::OfTheirs(0.4)]),
        row("put_large", "put + quiet of 1 MiB", "bare_put_large", &[Aim::OfTheirs(1.1)]),
        row("get_large", "get of 1 MiB", "bare_get_large", &[Aim::OfTheirs(1.1)]),
        row(
            "pingpong",
            "flag ping-pong, round trip",
            "bare_pingpong",
            &[Aim::OfTheirs(1.1), Aim::OfBare(1.1)],
        ),
        row("lock_alone", "lock that nobody else wants", "bare_fetch_add", &[]),
        alone("lock_2", "lock from PE to PE, 2 want it", Unit::Time, &[]),
        alone("lock_8", "lock from PE to PE, 8 want it", Unit::Time, &[]),
        alone("launch_empty", "oshrun -n 2 of an empty program", Unit::Time, &[Aim::OfTheirs(0.1)]),
        alone("launch_large", "the same with 4 GiB of .bss", Unit::Time, &[]),
        alone("fork_unused", "fork with 4 GiB of .bss", Unit::Time, &[]),
        alone("fork_used", "the same, 64 MiB of it in use", Unit::Time, &[]),
        alone("launch_true", "oshrun -n 2 /bin/true", Unit::Time, &[]),
    ],
    bare: "bare loop",
};

/// PEs that have nothing but TCP over the loopback interface.
pub const TCP: Suite = Suite {
    name: "tcp",
    sources: &["compute"],
    programs: &[],
    measured: &[
        Measured {
            title: "transfers",
            pes: 2,
            words: &[
                "--operations",
                "put,get,p",
                "--measures",
                "latency,bandwidth",
                "--sizes",
                "8,1m",
                "--bind",
                "--time",
                "2",
            ],
        },
        Measured {
            title: "rates",
            pes: 2,
            words: &[
                "--operations",
                "put_nbi",
                "--measures",
                "rate",
                "--sizes",
                "8",
                "--window",
                "4096",
                "--bind",
                "--time",
                "0.5",
            ],
        },
    ],
    launches: &[],
    costs: &[("compute_cost", "compute")],
    carrier: Some("lo"),
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "tcp"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
    ],
    rows: &[
        row(
            "latency put 8 2",
            "put + quiet of 8 bytes",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(0.7)],
        ),
        row(
            "latency get 8 2",
            "get of 8 bytes",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(0.9)],
        ),
        row(
            "latency p round trip 8 2",
            "flag ping-pong, round trip",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "rate put_nbi 8 2",
            "nbi puts of 8 bytes, rate",
            Unit::Rate("M/s"),
            &[Aim::OfTheirs(10.0)],
        ),
        row(
            "latency put 1048576 2",
            "put + quiet of 1 MiB",
            "time in a stream of socket 1048576 2",
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "compute_cost",
            "what an idle peer costs a PE that computes",
            Unit::Percent,
            &[Aim::Below(2.0)],
        ),
        alone("latency socket round trip 8 2", "plain socket, round trip", Unit::Time, &[]),
        alone("bandwidth socket 1048576 2", "plain socket, 1 MiB blocks", Unit::Rate("GB/s"), &[]),
    ],
    bare: "plain socket",
};

/// The same by UCX's TCP on both sides.
pub const UCX: Suite = Suite {
    name: "ucx",
    costs: &[],
    sources: &[],
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "ucx"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
    ],
    rows: &[
        row(
            "latency put 8 2",
            "put + quiet of 8 bytes",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(1.15)],
        ),
        row(
            "latency get 8 2",
            "get of 8 bytes",
            "latency socket round trip 8 2",
            &[Aim::OfTheirs(1.15)],
        ),
        row(
            "latency p round trip 8 2",
            "flag ping-pong, round trip",
            "latency socket round trip 8 2",
            &[],
        ),
        alone(
            "rate put_nbi 8 2",
            "nbi puts of 8 bytes, rate",
            Unit::Rate("M/s"),
            &[Aim::OfTheirs(2.0)],
        ),
        row(
            "latency put 1048576 2",
            "put + quiet of 1 MiB",
            "time in a stream of socket 1048576 2",
            &[Aim::OfTheirs(1.05)],
        ),
        alone("latency socket round trip 8 2", "plain socket, round trip", Unit::Time, &[]),
        alone("bandwidth socket 1048576 2", "plain socket, 1 MiB blocks", Unit::Rate("GB/s"), &[]),
    ],
    ..TCP
};

/// Jobs from their start to their end: init, a barrier, finalize.
pub const START: Suite = Suite {
    name: "start",
    sources: &["start"],
    programs: &[],
    measured: &[],
    launches: &[
        launch("start_2", "start", 2),
        launch("start_16", "start", 16),
        Launch { most: 5, ..launch("start_64", "start", 64) },
        Launch { most: 2, ..launch("start_256", "start", 256) },
    ],
    costs: &[],
    carrier: None,
    environment: &[],
    rows: &[
        alone("start_2", "2 PEs", Unit::Time, &[Aim::OfTheirs(0.6)]),
        alone("start_16", "16 PEs", Unit::Time, &[Aim::OfTheirs(0.2)]),
        alone("start_64", "64 PEs", Unit::Time, &[Aim::OfTheirs(0.15)]),
        alone("start_256", "256 PEs", Unit::Time, &[Aim::OfTheirs(0.05)]),
    ],
    bare: "bare",
};

/// Collectives of PEs that share their memory, on as many processors and on fewer.
pub const COLLECTIVES: Suite = Suite {
    name: "collectives",
    sources: &["bare_reduction"],
    programs: &[("bare_reduction", 2), ("bare_reduction", 8), ("bare_reduction", 16)],
    measured: &[
        on_active_sets("2 PEs", 2),
        on_active_sets("8 PEs", 8),
        on_active_sets("16 PEs", 16),
    ],
    launches: &[],
    costs: &[],
    carrier: None,
    environment: &[],
    rows: &[
        alone(
            "collective barrier_all 0 2",
            "barrier_all, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.4)],
        ),
        alone(
            "collective max_to_all 8 2",
            "max_to_all of a long, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "collective max_to_all 8192 2",
            "max_to_all of 8 KiB, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.3)],
        ),
        row(
            "collective max_to_all 1048576 2",
            "max_to_all of 1 MiB, 2 PEs",
            "bare_max_large_2",
            &[Aim::OfTheirs(0.4), Aim::OfBare(1.3)],
        ),
        alone(
            "collective broadcast64 and barrier_all 8 2",
            "broadcast of 8 bytes and a barrier, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.5)],
        ),
        alone(
            "collective fcollect64 and barrier_all 8 2",
            "fcollect of 8 bytes and a barrier, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "collective barrier_all 0 8",
            "barrier_all, 8 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "collective max_to_all 8 8",
            "max_to_all of a long, 8 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.6)],
        ),
        alone(
            "collective max_to_all 8192 8",
            "max_to_all of 8 KiB, 8 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.3)],
        ),
        row(
            "collective max_to_all 1048576 8",
            "max_to_all of 1 MiB, 8 PEs",
            "bare_max_large_8",
            &[Aim::OfTheirs(0.3), Aim::OfBare(1.3)],
        ),
        alone(
            "collective barrier_all 0 16",
            "barrier_all, 16 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.5)],
        ),
        alone(
            "collective max_to_all 8 16",
            "max_to_all of a long, 16 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.5)],
        ),
        alone(
            "collective max_to_all 8192 16",
            "max_to_all of 8 KiB, 16 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.3)],
        ),
        row(
            "collective max_to_all 1048576 16",
            "max_to_all of 1 MiB, 16 PEs",
            "bare_max_large_16",
            &[Aim::OfTheirs(0.3), Aim::OfBare(1.3)],
        ),
    ],
    bare: "bare copies",
};

/// The same where the PEs have nothing but TCP over the loopback interface. Open MPI's go through MPI.
pub const COLLECTIVES_TCP: Suite = Suite {
    name: "collectives-tcp",
    programs: &[("bare_reduction", 2), ("bare_reduction", 4)],
    measured: &[on_active_sets("2 PEs", 2), on_active_sets("4 PEs", 4)],
    carrier: None,
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "tcp"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
        ("OMPI_MCA_pml", "ob1"),
        ("OMPI_MCA_btl", "tcp,self"),
        ("OMPI_MCA_btl_tcp_if_include", "lo"),
    ],
    rows: &[
        alone(
            "collective barrier_all 0 2",
            "barrier_all, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.7)],
        ),
        alone(
            "collective max_to_all 8 2",
            "max_to_all of a long, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.8)],
        ),
        alone(
            "collective max_to_all 8192 2",
            "max_to_all of 8 KiB, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.8)],
        ),
        row(
            "collective max_to_all 1048576 2",
            "max_to_all of 1 MiB, 2 PEs",
            "bare_max_large_2",
            &[Aim::OfTheirs(0.7), Aim::OfBare(1.2)],
        ),
        alone(
            "collective broadcast64 and barrier_all 8 2",
            "broadcast of 8 bytes and a barrier, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.8)],
        ),
        alone(
            "collective fcollect64 and barrier_all 8 2",
            "fcollect of 8 bytes and a barrier, 2 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.8)],
        ),
        alone(
            "collective barrier_all 0 4",
            "barrier_all, 4 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.7)],
        ),
        alone(
            "collective max_to_all 8 4",
            "max_to_all of a long, 4 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.7)],
        ),
        alone(
            "collective max_to_all 8192 4",
            "max_to_all of 8 KiB, 4 PEs",
            Unit::Time,
            &[Aim::OfTheirs(0.7)],
        ),
        row(
            "collective max_to_all 1048576 4",
            "max_to_all of 1 MiB, 4 PEs",
            "bare_max_large_4",
            &[Aim::OfTheirs(0.7), Aim::OfBare(1.2)],
        ),
    ],
    bare: "bare sockets",
    ..COLLECTIVES
};

/// Collectives on active sets, which every library has.
const fn on_active_sets(title: &'static str, pes: usize) -> Measured {
    let words = &[
        "--operations",
        "barrier_all,max_to_all,broadcast64,fcollect64",
        "--measures",
        "collective",
        "--sizes",
        "8,8k,1m",
        "--bind",
        "--time",
        "1",
    ];
    Measured { title, pes, words }
}

const fn launch(row: &'static str, program: &'static str, pes: usize) -> Launch {
    Launch { row, program, pes, most: usize::MAX }
}

/// A time beside which the same program measures a bare one.
const fn row(
    name: &'static str,
    title: &'static str,
    bare: &'static str,
    aims: &'static [Aim],
) -> Row {
    Row { name, title, unit: Unit::Time, bare: Some(bare), aims }
}

/// A row that has no bare one.
const fn alone(name: &'static str, title: &'static str, unit: Unit, aims: &'static [Aim]) -> Row {
    Row { name, title, unit, bare: None, aims }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_that_is_launched_is_built() {
        for suite in ALL {
            let launched = suite.launches.iter().map(|launch| launch.program);
            let programs = suite.programs.iter().map(|(program, _)| *program);
            let costs = suite.costs.iter().map(|(_, program)| *program);
            for program in launched.chain(costs).chain(programs) {
                assert!(
                    program.starts_with('/') || suite.sources.contains(&program),
                    "{program} is not among {:?}",
                    suite.sources
                );
            }
        }
    }

    #[test]
    fn rows_of_shmem_perf_are_of_a_job() {
        for suite in ALL {
            let jobs: Vec<String> = suite.measured.iter().map(|job| job.pes.to_string()).collect();
            for row in suite.rows.iter().filter(|row| row.name.contains(' ')) {
                let pes = row.name.rsplit(' ').next().expect("a word");
                assert!(jobs.iter().any(|job| job == pes), "{}: no job has so many PEs", row.name);
            }
            assert_eq!(jobs.is_empty(), suite.rows.iter().all(|row| !row.name.contains(' ')));
        }
    }

    #[test]
    fn launches_and_costs_have_rows() {
        for suite in ALL {
            let launched = suite.launches.iter().map(|launch| launch.row);
            for name in launched.chain(suite.costs.iter().map(|(row, _)| *row)) {
                assert!(suite.rows.iter().any(|row| row.name == name), "{name} has no row");
            }
        }
    }
}
