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
pub const ALL: [&Suite; 7] = [&ON_NODE, &TCP, &UCX, &OFI, &START, &COLLECTIVES, &COLLECTIVES_TCP];

/// The suite of a name.
pub fn named(name: &str) -> Option<&'static Suite> {
    ALL.into_iter().find(|suite| suite.name == name)
}

/// A job of shmem-perf, each of whose figures is a value of a row; `figures` says how they are called.
pub struct Measured {
    /// What its record is called, in the page, too.
    pub title: &'static str,
    pub pes: usize,
    pub operations: &'static str,
    /// Its other flags.
    pub words: &'static str,
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

/// PEs that share their memory. How long a fork takes is the system's matter, and shmem-perf's static variables are small.
pub const ON_NODE: Suite = Suite {
    name: "on-node",
    sources: &["large"],
    programs: &[("large", 2)],
    measured: &[
        Measured {
            title: "operations",
            pes: 2,
            operations: "put,get,g,fetch_add,p round trip,lock",
            words: "--measures latency,collective --sizes 8,1m --time 2",
        },
        Measured {
            title: "streams",
            pes: 2,
            operations: "put,put_nbi,p,inc",
            words: "--measures rate --sizes 8 --window 4096 --time 1",
        },
        Measured {
            title: "a private context",
            pes: 2,
            operations: "put",
            words: "--measures rate --sizes 8 --window 4096 --contexts 1 --time 0.5",
        },
        Measured {
            title: "a static variable",
            pes: 2,
            operations: "p",
            words: "--measures rate --window 4096 --memory static --time 0.5",
        },
        Measured {
            title: "a lock",
            pes: 8,
            operations: "lock in turn",
            words: "--measures collective --time 0.5",
        },
    ],
    launches: &[],
    costs: &[],
    carrier: None,
    environment: &[],
    rows: &[
        row("time in a stream of put 8 2", "put of 8 bytes", PUT_BY_MEMCPY, &[Aim::OfTheirs(0.3)]),
        row(
            "time in a stream of put by contexts 8 2",
            "put of 8 bytes, private context",
            PUT_BY_MEMCPY,
            &[],
        ),
        row("time in a stream of p 8 2", "p of a long", PUT_BY_MEMCPY, &[Aim::OfTheirs(0.3)]),
        row(
            "time in a stream of p to static 8 2",
            "p to a static long",
            PUT_BY_MEMCPY,
            &[Aim::OfTheirs(0.1)],
        ),
        row(
            "time in a stream of put_nbi 8 2",
            "nbi put of 8 bytes",
            PUT_BY_MEMCPY,
            &[Aim::OfTheirs(0.3)],
        ),
        row("latency get 8 2", "get of 8 bytes", GET_BY_MEMCPY, &[Aim::OfTheirs(0.2)]),
        row("latency g 8 2", "g of a long", GET_BY_MEMCPY, &[Aim::OfTheirs(0.2)]),
        row("latency fetch_add 8 2", "fetch_add on a long", ADD_BY_CPU, &[Aim::OfTheirs(0.4)]),
        row("time in a stream of inc 8 2", "inc on a long", ADD_BY_CPU, &[Aim::OfTheirs(0.4)]),
        row(
            "latency put 1048576 2",
            "put + quiet of 1 MiB",
            "latency memcpy to peer 1048576 2",
            &[Aim::OfTheirs(1.1)],
        ),
        row(
            "latency get 1048576 2",
            "get of 1 MiB",
            "latency memcpy from peer 1048576 2",
            &[Aim::OfTheirs(1.1)],
        ),
        row(
            "latency p round trip 8 2",
            "flag ping-pong, round trip",
            "latency cache line round trip 8 2",
            &[Aim::OfTheirs(1.1), Aim::OfBare(1.1)],
        ),
        row("latency lock 0 2", "lock that nobody else wants", ADD_BY_CPU, &[]),
        alone("collective lock in turn 0 2", "lock, each of 2 PEs has it once", Unit::Time, &[]),
        alone("collective lock in turn 0 8", "lock, each of 8 PEs has it once", Unit::Time, &[]),
        alone("fork_unused", "fork with 4 GiB of .bss", Unit::Time, &[]),
        alone("fork_used", "the same, 64 MiB of it in use", Unit::Time, &[]),
    ],
    bare: "bare loop",
};

const PUT_BY_MEMCPY: &str = "latency memcpy to peer 8 2";
const GET_BY_MEMCPY: &str = "latency memcpy from peer 8 2";
const ADD_BY_CPU: &str = "latency CPU fetch_add 8 2";

/// PEs that have nothing but TCP over the loopback interface.
pub const TCP: Suite = Suite {
    name: "tcp",
    sources: &["compute"],
    programs: &[],
    measured: &[
        Measured {
            title: "transfers",
            pes: 2,
            operations: "put,get,p",
            words: "--measures latency,bandwidth --sizes 8,1m --time 2",
        },
        Measured {
            title: "rates",
            pes: 2,
            operations: "put_nbi",
            words: "--measures rate --sizes 8 --window 4096 --time 0.5",
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

/// By libfabric, beside what the same provider takes by itself. The other library has its TCP.
pub const OFI: Suite = Suite {
    name: "ofi",
    sources: &[],
    measured: &[
        Measured {
            title: "transfers",
            pes: 2,
            operations: "put,get,fetch_add",
            words: "--measures latency --sizes 8,1m --time 2",
        },
        Measured {
            title: "streams",
            pes: 2,
            operations: "put_nbi",
            words: "--measures bandwidth --sizes 8 --window 4096 --time 1",
        },
    ],
    costs: &[],
    carrier: None,
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "ofi"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
    ],
    rows: &[
        row(
            "latency put 8 2",
            "put + quiet of 8 bytes",
            "latency fi_write 8 2",
            &[Aim::OfBare(1.15)],
        ),
        row(
            "time in a stream of put_nbi 8 2",
            "put_nbi of 8 bytes, in a stream",
            "time in a stream of fi_write 8 2",
            &[Aim::OfBare(1.43)],
        ),
        row("latency get 8 2", "get of 8 bytes", "latency fi_read 8 2", &[Aim::OfBare(1.15)]),
        row(
            "latency put 1048576 2",
            "put + quiet of 1 MiB",
            "latency fi_write 1048576 2",
            &[Aim::OfBare(1.05)],
        ),
        row(
            "latency get 1048576 2",
            "get of 1 MiB",
            "latency fi_read 1048576 2",
            &[Aim::OfBare(1.05)],
        ),
        row("latency fetch_add 8 2", "fetch_add, beside a read", "latency fi_read 8 2", &[]),
    ],
    bare: "libfabric",
    ..TCP
};

/// Jobs from their start to their end: init, a barrier, finalize. No program can see that of itself.
pub const START: Suite = Suite {
    name: "start",
    sources: &["start", "start_large"],
    programs: &[],
    measured: &[],
    launches: &[
        launch("start_2", "start", 2),
        launch("start_16", "start", 16),
        Launch { most: 5, ..launch("start_64", "start", 64) },
        Launch { most: 2, ..launch("start_256", "start", 256) },
        launch("start_large", "start_large", 2),
        launch("launch_true", "/bin/true", 2),
    ],
    costs: &[],
    carrier: None,
    environment: &[],
    rows: &[
        alone("start_2", "2 PEs", Unit::Time, &[Aim::OfTheirs(0.1)]),
        alone("start_16", "16 PEs", Unit::Time, &[Aim::OfTheirs(0.2)]),
        alone("start_64", "64 PEs", Unit::Time, &[Aim::OfTheirs(0.15)]),
        alone("start_256", "256 PEs", Unit::Time, &[Aim::OfTheirs(0.05)]),
        alone("start_large", "2 PEs with 4 GiB of .bss", Unit::Time, &[]),
        alone("launch_true", "oshrun -n 2 /bin/true", Unit::Time, &[]),
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
    Measured {
        title,
        pes,
        operations: "barrier_all,max_to_all,broadcast64,fcollect64",
        words: "--measures collective --sizes 8,8k,1m --time 1",
    }
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
