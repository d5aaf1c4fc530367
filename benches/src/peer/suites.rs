//! The suites of `--suite`: the programs and jobs of a comparison, and the environment in which
//! they run.

/// The programs of a comparison.
pub struct Suite {
    /// The name for `--suite`.
    pub name: &'static str,
    /// Programs of benches/ that print `NAME NANOSECONDS` on each line, and their numbers of PEs.
    pub programs: &'static [(&'static str, usize)],
    pub kernels: &'static [Kernel],
    /// Jobs of shmem-perf.
    pub measured: &'static [Measured],
    pub launches: &'static [Launch],
    /// The network interface through which the data of the jobs of shmem-perf must go.
    pub carrier: Option<&'static str>,
    /// Variables that are set for all libraries; each ignores those of the others.
    pub environment: &'static [(&'static str, &'static str)],
}

/// A program of benches/kernels, which prints the time of its main loop and verifies its result.
pub struct Kernel {
    pub name: &'static str,
    /// The numbers of PEs with which it runs.
    pub pes: &'static [usize],
    /// The number by which its work is divided; a kernel that takes no argument has 1.
    pub divisor: usize,
}

/// A job of shmem-perf.
pub struct Measured {
    /// The title of its record on the page.
    pub title: &'static str,
    pub pes: usize,
    pub operations: &'static str,
    /// More options of shmem-perf.
    pub options: &'static str,
}

/// A job that is timed from the start of its launcher to the end.
pub struct Launch {
    /// A source of benches/, or the path of any program.
    pub program: &'static str,
    pub pes: usize,
    /// The maximum number of times that it is run, however many runs there are.
    pub most: usize,
}

/// All suites; the first one is the default.
pub const ALL: [&Suite; 9] = [
    &ON_NODE,
    &TCP,
    &UCX,
    &OFI,
    &START,
    &COLLECTIVES,
    &COLLECTIVES_TCP,
    &KERNELS,
    &KERNELS_TCP,
];

const EMPTY: Suite = Suite {
    name: "",
    programs: &[],
    kernels: &[],
    measured: &[],
    launches: &[],
    carrier: None,
    environment: &[],
};

/// Operations of PEs that share memory. `large` times forks, and `updates` random updates and first
/// touches of memory; these need more static data and a larger heap than shmem-perf has.
const ON_NODE: Suite = Suite {
    name: "on-node",
    programs: &[("large", 2), ("updates", 2)],
    measured: &[
        Measured {
            title: "operations",
            pes: 2,
            operations: "put,get,g,fetch_add,p round trip,lock",
            options: "--measures latency,collective --sizes 8,1m --time 2",
        },
        Measured {
            title: "streams",
            pes: 2,
            operations: "put,put_nbi,p,inc",
            options: "--measures rate,bandwidth --sizes 8 --window 4096 --time 1.5",
        },
        Measured {
            title: "a private context",
            pes: 2,
            operations: "put",
            options: "--measures bandwidth --sizes 8 --window 4096 --contexts 1 --time 0.5",
        },
        Measured {
            title: "a static variable",
            pes: 2,
            operations: "p",
            options: "--measures rate --window 4096 --memory static --time 0.5",
        },
        Measured {
            title: "a lock",
            pes: 8,
            operations: "lock in turn",
            options: "--measures collective --time 0.5",
        },
    ],
    ..EMPTY
};

/// Transfers of PEs that are connected only by TCP over the loopback interface. `compute` with 1 PE
/// and with 2 shows how much an idle peer slows down a PE that computes. If the sysctl
/// net.ipv4.tcp_congestion_control is `bbr`, rows of 1 MiB show the pacing of the kernel: use
/// `reno`.
const TCP: Suite = Suite {
    name: "tcp",
    programs: &[("compute", 1), ("compute", 2)],
    measured: &[
        Measured {
            title: "transfers",
            pes: 2,
            operations: "put,get,p",
            options: "--measures latency,bandwidth --sizes 8,1m --time 2",
        },
        Measured {
            title: "rates",
            pes: 2,
            operations: "put_nbi",
            options: "--measures rate --sizes 8 --window 4096 --time 0.5",
        },
    ],
    carrier: Some("lo"),
    environment: &over("tcp"),
    ..EMPTY
};

/// The same transfers by UCX over TCP, with both libraries.
const UCX: Suite = Suite {
    name: "ucx",
    programs: &[],
    environment: &over("ucx"),
    ..TCP
};

/// Transfers over libfabric, with its own operations as floors. The other library uses UCX over
/// TCP.
const OFI: Suite = Suite {
    name: "ofi",
    measured: &[
        Measured {
            title: "transfers",
            pes: 2,
            operations: "put,get,fetch_add",
            options: "--measures latency --sizes 8,1m --time 2",
        },
        Measured {
            title: "streams",
            pes: 2,
            operations: "put_nbi",
            options: "--measures bandwidth --sizes 8 --window 4096 --time 1",
        },
    ],
    environment: &over("ofi"),
    ..EMPTY
};

/// Returns the environment in which PEs do not use shared memory: ours uses `transport`, and Open
/// MPI uses UCX over TCP on the loopback interface.
const fn over(transport: &'static str) -> [(&'static str, &'static str); 4] {
    [
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", transport),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
    ]
}

/// Jobs from their start to their end: init, a barrier, finalize, also with large static variables;
/// and a program that does nothing.
const START: Suite = Suite {
    name: "start",
    launches: &[
        launch("start", 2),
        launch("start", 16),
        Launch {
            most: 5,
            ..launch("start", 64)
        },
        Launch {
            most: 2,
            ..launch("start", 256)
        },
        launch("start_large", 2),
        launch("/bin/true", 2),
    ],
    ..EMPTY
};

/// Returns a launch that is part of each run.
const fn launch(program: &'static str, pes: usize) -> Launch {
    Launch {
        program,
        pes,
        most: usize::MAX,
    }
}

/// Collectives of PEs that share their memory. On a small machine, the larger jobs have more PEs
/// than processors.
const COLLECTIVES: Suite = Suite {
    name: "collectives",
    programs: &[
        ("bare_collectives", 2),
        ("bare_collectives", 8),
        ("bare_collectives", 16),
    ],
    measured: &[
        on_active_sets("2 PEs", 2),
        on_active_sets("8 PEs", 8),
        on_active_sets("16 PEs", 16),
    ],
    ..EMPTY
};

/// Collectives of PEs that are connected only by TCP over the loopback interface. Open MPI's use
/// its MPI.
const COLLECTIVES_TCP: Suite = Suite {
    name: "collectives-tcp",
    programs: &[("bare_collectives", 2), ("bare_collectives", 4)],
    measured: &[on_active_sets("2 PEs", 2), on_active_sets("4 PEs", 4)],
    environment: &[
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_TRANSPORT", "tcp"),
        ("UCX_TLS", "tcp,self"),
        ("UCX_NET_DEVICES", "lo"),
        ("OMPI_MCA_pml", "ob1"),
        ("OMPI_MCA_btl", "tcp,self"),
        ("OMPI_MCA_btl_tcp_if_include", "lo"),
    ],
    ..EMPTY
};

/// Returns a job of collectives that every library has: `barrier_all`, and some on active sets.
const fn on_active_sets(title: &'static str, pes: usize) -> Measured {
    Measured {
        title,
        pes,
        operations: "barrier_all,max_to_all,broadcast64,fcollect64",
        options: "--measures collective --sizes 8,8k,1m --time 1",
    }
}

/// Kernels of PEs that share memory. On a small machine, the larger jobs have more PEs than
/// processors.
const KERNELS: Suite = Suite {
    name: "kernels",
    kernels: &[
        kernel("integer_sort", &[2, 8], 1),
        kernel("random_updates", &[2, 8], 1),
        kernel("stencil", &[2, 8], 1),
        kernel("transpose", &[2, 8], 1),
        kernel("breadth_first_search", &[2, 8], 1),
        kernel("work_queue", &[2, 8], 1),
        kernel("tiny_accesses", &[2, 8], 8),
    ],
    ..EMPTY
};

/// Kernels of PEs that are connected only by TCP over the loopback interface.
const KERNELS_TCP: Suite = Suite {
    name: "kernels-tcp",
    kernels: &[
        kernel("integer_sort", &[2, 4], 1),
        kernel("random_updates", &[2, 4], 64),
        kernel("stencil", &[2, 4], 1),
        kernel("transpose", &[2, 4], 1),
        kernel("breadth_first_search", &[2, 4], 64),
        kernel("work_queue", &[2, 4], 1),
        kernel("tiny_accesses", &[2, 4], 1024),
    ],
    environment: COLLECTIVES_TCP.environment,
    ..EMPTY
};

const fn kernel(name: &'static str, pes: &'static [usize], divisor: usize) -> Kernel {
    Kernel { name, pes, divisor }
}
