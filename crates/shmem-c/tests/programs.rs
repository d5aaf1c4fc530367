//! Runs the programs of tests/programs, which check the standard clause by clause, in many
//! settings: numbers of PEs, transports, nodes, and observers. A failed check prints the number of
//! its point in crates/shmem-c/spec/semantics.md. The programs of the guide in C run in the same
//! settings.
//!
//! A program that one test calls with arguments is in tests/scenarios instead.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::LazyLock;

use testkit::{Job, Outcome, Test, absent, every_size, prefix, program, scenario};

/// The number of PEs of the first jobs whose PEs share memory. It is odd.
const PES: usize = 3;
/// The numbers of PEs of further such jobs: one alone, and a power of two. Another power of two, 4,
/// is in [`COUNTED`].
const OTHER_PES: [usize; 2] = [1, 8];
const ALL_OTHER_PES: [usize; 7] = [1, 2, 4, 5, 7, 8, 12];
const EMULATED: [usize; 2] = [2, 3];

const CHECKED: [usize; 2] = [1, 3];
const COUNTED: [Nodes; 4] = [
    Nodes::one(3),
    Nodes::one_for_each_pe(3),
    Nodes::one(4),
    Nodes::several("2+2", 4),
];

/// Jobs for the settings `.._at_every_size`.
const NETWORK_JOBS: [Nodes; 8] = [
    Nodes::one_for_each_pe(1),
    Nodes::one_for_each_pe(2),
    Nodes::one_for_each_pe(3),
    Nodes::one_for_each_pe(4),
    Nodes::one_for_each_pe(8),
    Nodes::one_for_each_pe(12),
    Nodes::several("2+2", 4),
    Nodes::several("1+2+3", 6),
];

/// The number of PEs of a job, and the variable that makes them share memory or not.
#[derive(Clone, Copy)]
struct Nodes {
    n: usize,
    variable: (&'static str, &'static str),
}

impl Nodes {
    /// All PEs share memory.
    const fn one(n: usize) -> Self {
        let variable = ("SHMEM_ONNODE", "on");
        Self { n, variable }
    }

    /// No PEs share memory.
    const fn one_for_each_pe(n: usize) -> Self {
        let variable = ("SHMEM_ONNODE", "off");
        Self { n, variable }
    }

    /// `nodes` has the number of PEs of each node, as in `1+2+3`. These share memory.
    const fn several(nodes: &'static str, n: usize) -> Self {
        let variable = ("SHMEM_VIRTUAL_NODES", nodes);
        Self { n, variable }
    }
}

/// A transport over which the programs are run, and the settings for it.
struct Network {
    transport: &'static str,
    /// The variable that selects the library's own transport or provider.
    variable: &'static str,
    /// The value of `variable` with which `.._at_every_size` runs each program at every size.
    usual: &'static str,
    /// A value of `variable` for shared memory, with which `.._at_every_size` runs each program at
    /// some sizes.
    inside: Option<&'static str>,
    /// Values of `variable`, each with variables that make the library's queues and buffers so
    /// small that operations must wait for space. `.._at_every_size` runs each program with these,
    /// too.
    small: &'static [(&'static str, &'static [(&'static str, &'static str)])],
    /// Values of `variable`, each with a job. `.._sample` runs a program with one of them, and
    /// neighbors in the list of programs with different ones. Their number is odd, so every fourth
    /// program, as [`NETWORKS`] says, meets all of them.
    sample: &'static [(&'static str, Nodes)],
}

const TCP: Network = Network {
    transport: "tcp",
    variable: "SHMEM_TRANSPORT",
    usual: "tcp",
    inside: None,
    small: &[],
    sample: &[
        ("tcp", Nodes::one_for_each_pe(2)),
        ("tcp", Nodes::several("1+2+3", 6)),
        ("tcp", Nodes::one_for_each_pe(3)),
        ("tcp", Nodes::several("2+2", 4)),
        ("tcp", Nodes::one_for_each_pe(8)),
    ],
};

const UCX: Network = Network {
    transport: "ucx",
    variable: "UCX_TLS",
    usual: "tcp,self",
    inside: Some("posix,self"),
    small: &[("tcp,self", UCX_SMALL_TCP), ("posix,self", UCX_SMALL_POSIX)],
    sample: &[
        ("tcp,self", Nodes::one_for_each_pe(2)),
        ("posix,self", Nodes::one_for_each_pe(3)),
        ("tcp,self", Nodes::several("1+2+3", 6)),
        ("cma,posix,self", Nodes::one_for_each_pe(4)),
        ("sysv,self", Nodes::several("2+2", 4)),
    ],
};

const UCX_SMALL_TCP: &[(&str, &str)] = &[
    ("UCX_TCP_TX_MAX_BUFS", "8"),
    ("UCX_TCP_RX_MAX_BUFS", "8"),
    ("UCX_TCP_TX_BUFS_GROW", "1"),
    ("UCX_TCP_RX_BUFS_GROW", "1"),
    ("UCX_TCP_TX_SEG_SIZE", "2k"),
    ("UCX_TCP_RX_SEG_SIZE", "2k"),
    ("UCX_TCP_SENDV_THRESH", "64"),
    ("UCX_TCP_MAX_POLL", "1"),
    ("UCX_ZCOPY_THRESH", "256"),
    ("UCX_RNDV_THRESH", "1k"),
];
const UCX_SMALL_POSIX: &[(&str, &str)] = &[
    ("UCX_POSIX_FIFO_SIZE", "16"),
    ("UCX_POSIX_SEG_SIZE", "512"),
    ("UCX_POSIX_RX_BUFS_GROW", "16"),
    ("UCX_POSIX_FIFO_MAX_POLL", "1"),
    ("UCX_ZCOPY_THRESH", "256"),
    ("UCX_RNDV_THRESH", "1k"),
];

const OFI: Network = Network {
    transport: "ofi",
    variable: "SHMEM_OFI_PROVIDER",
    usual: "tcp;ofi_rxm",
    inside: Some("shm"),
    // None, since the strict fabric has short queues.
    small: &[],
    sample: &[
        ("tcp;ofi_rxm", Nodes::one_for_each_pe(2)),
        ("tcp;ofi_rxm", Nodes::several("1+2+3", 6)),
        ("shm", Nodes::one_for_each_pe(3)),
        ("tcp;ofi_rxm", Nodes::several("2+2", 4)),
        ("shm", Nodes::several("2+2", 4)),
    ],
};

/// Profiles of the strict fabric (ci/strict-fabric), a libfabric provider for tests. They have the
/// rules of fabrics whose hardware a test machine lacks.
const STRICT: [&str; 5] = ["cxi", "efa", "opx", "psm3", "mrail"];
/// The jobs in which programs run over these profiles.
const STRICT_JOBS: [Nodes; 5] = [
    Nodes::one_for_each_pe(2),
    Nodes::several("1+2+3", 6),
    Nodes::one_for_each_pe(3),
    Nodes::several("2+2", 4),
    Nodes::one_for_each_pe(4),
];

/// The profiles that have the atomic operations that locks need.
const STRICT_WITH_AMOS: [&str; 3] = ["cxi", "opx", "psm3"];

/// Returns the directory where libfabric finds the provider.
fn strict_dir() -> String {
    let dir = strict_fabric::dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    dir.expect("the provider was built")
        .to_str()
        .expect("a plain name")
        .to_owned()
}

/// Returns the variables that select a profile of the strict fabric, which is in `dir`.
fn strict<'a>(profile: &'a str, dir: &'a str) -> [(&'static str, &'a str); 4] {
    [
        ("SHMEM_TRANSPORT", "ofi"),
        ("SHMEM_OFI_PROVIDER", "strict"),
        ("SHMEM_OFI_DOMAIN", profile),
        ("FI_PROVIDER_PATH", dir),
    ]
}

fn runs_strict(source: &str, profile: &str, Nodes { n, variable }: Nodes) {
    let dir = strict_dir();
    let environment = [&strict(profile, &dir)[..], &[variable]].concat();
    runs(source, n, &environment);
}

/// Runs a program over one profile. Neighbors in the list of programs use different ones.
fn strict_sample(source: &str) {
    let place = position(source);
    let profile = STRICT[place % STRICT.len()];
    // Each time that a profile is used again, it has another job.
    let job = place + place / STRICT.len();
    runs_strict(source, profile, STRICT_JOBS[job % STRICT_JOBS.len()]);
}

/// Runs a program over each profile, mostly with other jobs than in the sample.
fn strict_at_every_profile(source: &str) {
    let place = position(source);
    for (i, profile) in STRICT.into_iter().enumerate() {
        let job = place + i + 1;
        runs_strict(source, profile, STRICT_JOBS[job % STRICT_JOBS.len()]);
    }
}

impl Network {
    /// Returns the variables that select the network and a value of its variable.
    fn variables<'a>(&self, path: &'a str) -> [(&'static str, &'a str); 2] {
        [("SHMEM_TRANSPORT", self.transport), (self.variable, path)]
    }

    fn runs(&self, source: &str, path: &str, nodes: Nodes, others: &[(&str, &str)]) {
        let environment = [&self.variables(path)[..], &[nodes.variable], others].concat();
        runs(source, nodes.n, &environment);
    }

    fn runs_sample(&self, source: &str) {
        assert_eq!(self.sample.len() % 2, 1, "some jobs are left out");
        let (path, nodes) = self.sample[position(source) % self.sample.len()];
        self.runs(source, path, nodes, &[]);
    }

    fn runs_at_every_size(&self, source: &str) {
        for nodes in NETWORK_JOBS {
            self.runs(source, self.usual, nodes, &[]);
        }

        let three_nodes = Nodes::one_for_each_pe(3);
        let two_nodes = Nodes::several("2+2", 4);
        if let Some(inside) = self.inside {
            self.runs(source, inside, three_nodes, &[]);
            self.runs(source, inside, two_nodes, &[]);
        }
        for (path, small) in self.small {
            self.runs(source, path, three_nodes, small);
        }
        self.runs(source, self.usual, two_nodes, &[AGGREGATE]);
    }

    /// Runs sessions that batch small operations for all PEs of a node together: sessions that the
    /// programs start, and the session of `SHMEM_AGGREGATE`.
    fn sessions_over_nodes(&self) {
        for (source, nodes) in [
            ("sessions.c", Nodes::several("2+3", 5)),
            ("ordering.c", Nodes::several("2+2", 4)),
            ("threads.c", Nodes::several("1+3", 4)),
        ] {
            self.runs(source, self.usual, nodes, &[]);
            self.runs(source, self.usual, nodes, &[AGGREGATE]);
        }
    }
}

/// Puts every context into a session.
const AGGREGATE: (&str, &str) = ("SHMEM_AGGREGATE", "on");

/// A job whose PEs contend for locks that are changed by a network's atomic operations.
struct LockJob {
    n: usize,
    job: Job,
}

/// Returns jobs of the programs of contended locks of each type, with the network's atomic
/// operations.
fn lock_jobs(network: &[(&str, &str)]) -> Vec<LockJob> {
    let all_nodes = [
        Nodes::one_for_each_pe(4),
        Nodes::several("2+2", 4),
        Nodes::one_for_each_pe(2),
        Nodes::one_for_each_pe(8),
    ];
    let all = all_nodes.len();
    // Locks of other types differ in the width of the operations alone.
    let programs = [
        (program!("lock_contended.c"), 2),
        (program!("fortran_lock_contended.F90"), 1),
        (program!("fortran_lock_contended.F90", "-DLOCK_KIND=8"), 1),
    ];

    let mut jobs = Vec::new();
    for (program, few) in programs {
        let n_nodes = if every_size() { all } else { few };
        for &Nodes { n, variable } in &all_nodes[..n_nodes] {
            let job = Job::new(&program)
                .n(n)
                .envs(&[variable, ("SHMEM_AMOS", "network")])
                .envs(network);
            jobs.push(LockJob { n, job });
        }
    }
    jobs
}

/// Runs the programs of contended locks over the network's usual path and over `others`. These, and
/// any path of UCX, may be missing or be refused. Ignores the test if no path can be used.
fn locks_by(network: &Network, others: &[&str]) {
    let mut have_run = false;
    for path in [network.usual].iter().chain(others) {
        // Some versions of UCX have wrong operations or none, and say so.
        let may_be_refused = network.transport == "ucx" || *path != network.usual;

        for LockJob { n, job } in lock_jobs(&network.variables(path)) {
            let outcome = job.run();
            if may_be_refused && outcome.stderr.contains("which cannot be used here") {
                continue;
            }
            outcome.assert_ok(n);
            have_run = true;
        }
    }

    if !have_run {
        absent(format!(
            "no atomic operations over {} can be used here",
            network.transport
        ));
    }
}

fn locks_by_ucx() {
    locks_by(&UCX, &["posix,self"]);
}

fn locks_by_libfabric() {
    let others = if every_size() {
        &["shm", "tcp", "sockets"][..]
    } else {
        &["shm"]
    };
    locks_by(&OFI, others);
}

fn locks_by_strict_fabrics() {
    let dir = strict_dir();
    for profile in STRICT_WITH_AMOS {
        for LockJob { n, job } in lock_jobs(&strict(profile, &dir)) {
            job.run().assert_ok(n);
        }
    }
}

/// The atomic operations of this fabric are not atomic with respect to those of CPUs.
fn the_domain_of_shared_memory_over_a_strict_fabric() {
    Job::new(program!("shared_domain.c"))
        .n(3)
        .env("SHMEM_VIRTUAL_NODES", "1+2")
        .env("SHMEM_AMOS", "network")
        .envs(&strict("cxi", &strict_dir()))
        .run()
        .assert_ok(3);
}

/// Heaps of 64 GiB, of which the program allocates a part. Only allocated memory is registered. The
/// first profile permits at most 64 registrations, the second one registrations of at most 256 MiB.
fn large_heaps_by_strict_fabrics() {
    struct LargeHeap {
        profile: &'static str,
        /// The maximum size of a registration.
        largest: usize,
        amos: &'static str,
        /// What the program allocates, and the distance of the borders that it accesses.
        mib: usize,
        distance_mib: usize,
    }
    let heaps = [
        LargeHeap {
            profile: "few-regions",
            largest: usize::MAX,
            amos: "software",
            mib: 1024,
            distance_mib: 16,
        },
        LargeHeap {
            profile: "few-regions",
            largest: usize::MAX,
            amos: "software",
            mib: 20 << 10,
            distance_mib: 512,
        },
        LargeHeap {
            profile: "small-regions",
            largest: 256 << 20,
            amos: "software",
            mib: 192,
            distance_mib: 16,
        },
        LargeHeap {
            profile: "small-regions",
            largest: 256 << 20,
            amos: "network",
            mib: 8 << 10,
            distance_mib: 1 << 10,
        },
    ];

    let dir = strict_dir();
    for heap in heaps {
        let outcome = Job::new(scenario!("large_heap.c"))
            .n(3)
            .args([heap.mib, heap.distance_mib])
            .envs(&strict(heap.profile, &dir))
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_AMOS", heap.amos)
            .env("SHMEM_HUGE_PAGES", "off")
            .env("SHMEM_SYMMETRIC_SIZE", "64g")
            .env("SHMEM_DEBUG", 2)
            .run();
        outcome.assert_ok(3);

        // All PEs have the same blocks.
        let blocks = registered_blocks(&outcome);
        let n_blocks = blocks.len() / 3;
        assert_eq!(blocks.len(), 3 * n_blocks, "{blocks:?}");
        assert!((4..64).contains(&n_blocks), "{n_blocks} blocks");
        let are_small = blocks.iter().all(|nbytes| *nbytes <= heap.largest);
        assert!(are_small, "{blocks:?}");

        let registered = blocks.iter().sum::<usize>() / 3;
        let allocated = heap.mib << 20;
        assert!(
            registered < allocated + allocated / 4,
            "{registered} bytes of {allocated}"
        );
    }
}

/// Returns the number of bytes of each block that PEs have registered, from the lines of
/// `SHMEM_DEBUG=2`.
fn registered_blocks(outcome: &Outcome) -> Vec<usize> {
    let mut blocks = Vec::new();
    for line in outcome.stderr.lines() {
        if !line.contains("registered a block") {
            continue;
        }

        let nbytes = line
            .split([' ', ','])
            .find_map(|word| word.strip_prefix("nbytes="))
            .and_then(|nbytes| nbytes.parse().ok());
        blocks.push(nbytes.unwrap_or_else(|| panic!("{line}")));
    }
    blocks
}

/// This profile refuses two of ten attempts to connect, and posts during the others at first fail
/// with `FI_EAGAIN`.
fn connections_of_strict_fabrics() {
    let n = if every_size() { 64 } else { 12 };
    let outcome = Job::new(scenario!("all_pairs.c"))
        .n(n)
        .env("SHMEM_ONNODE", "off")
        .envs(&strict("few-connections", &strict_dir()))
        .env("SHMEM_DEBUG", 2)
        .run();
    outcome.assert_ok(n);

    let is_refused = outcome.stderr.contains("connects once more");
    assert!(is_refused, "none was refused: {outcome}");
}

/// `shmem-info --doctor` reports the limits of a fabric.
fn limits_of_strict_fabrics() {
    let dir = strict_dir();
    for (profile, limit) in [
        ("few-regions", "at most 64 registrations"),
        (
            "small-regions",
            "it refuses further blocks of more than 256 MiB",
        ),
        ("efa", " MiB of a heap in "),
    ] {
        let outcome = Job::direct(prefix().join("bin/shmem-info"))
            .arg("--doctor")
            // No sentence is broken into lines.
            .env("COLUMNS", "10000")
            .envs(&strict(profile, &dir))
            .run();
        assert_eq!(outcome.code(), 0, "{outcome}");
        assert!(outcome.stdout.contains(limit), "{limit}: {outcome}");
    }
}

/// Runs a program of the list, and checks that it finds no fault.
fn runs(source: &str, n: usize, environment: &[(&str, &str)]) {
    if GUIDE.contains(&source) {
        let program = program!(Path::new("../../examples").join(source));
        let outcome = Job::new(program).n(n).envs(environment).run();
        assert_prints_one_line(&outcome, n);
        return;
    }

    let mut job = Job::new(program!(source)).n(n).envs(environment);
    if source == "memory.c" {
        // The program allocates the whole heap, so a small one saves time.
        job = job.env("SHMEM_SYMMETRIC_SIZE", "64m");
    }
    job.run().assert_ok(n);
}

/// Checks the outcome of a program of the guide on `n` PEs.
fn assert_prints_one_line(outcome: &Outcome, n: usize) {
    assert!(outcome.status.success(), "{outcome}");

    let lines: Vec<&str> = outcome.lines().collect();
    assert_eq!(lines.len(), 1, "{outcome}");
    let is_of_n_pes = lines[0].starts_with(&format!("{n} PEs"));
    assert!(is_of_n_pes, "not one job of {n} PEs: {outcome}");
}

/// The programs of docs/c.md, in crates/shmem-c/examples. They check their results, and one PE
/// prints one line that begins with the number of PEs.
const GUIDE: [&str; 5] = [
    "heat.c",
    "histogram.c",
    "sample_sort.c",
    "work_stealing.c",
    "pipeline.c",
];

/// The sources in tests/programs, sorted by their names. The other files there are included by
/// them.
static SOURCES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let files = std::fs::read_dir(dir).expect("the programs are there");
    let mut sources: Vec<String> = files
        .map(|file| file.expect("it can be read").file_name())
        .map(|name| name.into_string().expect("a plain name"))
        .filter(|name| !name.ends_with(".h") && !name.ends_with(".inc"))
        .collect();

    assert!(sources.len() > 60, "some are missing: {sources:?}");
    sources.sort();
    sources
});

/// Programs of languages, of names and of the numbering of teams, beside those in Fortran. Their
/// operations are those of the other programs, so only `--full` runs them over all networks. With
/// `SHMEM_STATS`, many run over TCP.
const OF_INTERFACES: [&str; 14] = [
    "c11_generics.c",
    "constants.c",
    "cxx.cpp",
    "cxx_generics.cpp",
    "declared_again.c",
    "info.c",
    "max_to_all.c",
    "shmemx_names.c",
    "shmemx_split.c",
    "shmemx_split_strided.c",
    "split_2d.c",
    "splits_deep.c",
    "start_pes.c",
    "statics_cxx.cpp",
];

/// Returns true for a program whose operations are those of other programs.
fn is_of_interfaces(source: &str) -> bool {
    OF_INTERFACES.contains(&source) || source.starts_with("fortran_")
}

/// Returns the programs that run in each setting, which has a test with the name of each.
fn programs() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(String::as_str).chain(GUIDE)
}

/// Returns the position of a program in the list, by which neighbors run differently.
fn position(source: &str) -> usize {
    programs()
        .position(|program| program == source)
        .expect("a program of the list")
}

/// A way to run every program.
struct Setting {
    name: &'static str,
    run: fn(&'static str),
    /// Why it is not always used.
    ignored: Option<&'static str>,
    which: Which,
}

/// The programs that run in a setting.
#[derive(Clone, Copy)]
enum Which {
    All,
    /// Of those with operations of their own, the ones that run over the network with this index,
    /// which is less than [`NETWORKS`].
    OverNetwork(usize),
}

/// The number of networks: TCP, UCX, libfabric and the strict fabric. `--providers` runs each
/// program with operations of its own over one of them: what a provider does with each operation
/// is tested by the conformance suite, and the engine above is the same. `--full` runs each program
/// over all.
const NETWORKS: usize = 4;

impl Which {
    fn contains(self, source: &str) -> bool {
        match self {
            Self::All => true,
            Self::OverNetwork(index) => {
                !is_of_interfaces(source) && position(source) % NETWORKS == index
            }
        }
    }
}

impl Setting {
    const fn usual(name: &'static str, run: fn(&'static str)) -> Self {
        Self {
            name,
            run,
            ignored: None,
            which: Which::All,
        }
    }

    const fn ignored(name: &'static str, run: fn(&'static str), why: &'static str) -> Self {
        Self {
            name,
            run,
            ignored: Some(why),
            which: Which::All,
        }
    }

    /// Returns the setting of `--providers` for the network with this index.
    const fn over_network(index: usize, name: &'static str, run: fn(&'static str)) -> Self {
        Self {
            which: Which::OverNetwork(index),
            ..Self::ignored(name, run, PROVIDERS)
        }
    }
}

const PROVIDERS: &str = "part of `cargo xtask test --providers`";
const FULL: &str = "part of `cargo xtask test --full`";

const SETTINGS: [Setting; 13] = [
    Setting::usual("on_node", |source| runs(source, PES, &[])),
    Setting::usual("on_node_at_other_sizes", on_node_at_other_sizes),
    Setting::usual("checked", checked),
    Setting::usual("counted", counted),
    Setting::over_network(0, "tcp_sample", |source| TCP.runs_sample(source)),
    Setting::over_network(1, "ucx_sample", |source| UCX.runs_sample(source)),
    Setting::over_network(2, "ofi_sample", |source| OFI.runs_sample(source)),
    Setting::over_network(3, "strict_sample", strict_sample),
    Setting::ignored("strict_at_every_profile", strict_at_every_profile, FULL),
    Setting::ignored(
        "tcp_at_every_size",
        |source| TCP.runs_at_every_size(source),
        FULL,
    ),
    Setting::ignored(
        "ucx_at_every_size",
        |source| UCX.runs_at_every_size(source),
        FULL,
    ),
    Setting::ignored(
        "ofi_at_every_size",
        |source| OFI.runs_at_every_size(source),
        FULL,
    ),
    Setting::ignored("emulated", emulated, FULL),
];

fn on_node_at_other_sizes(source: &str) {
    let sizes = if every_size() {
        &ALL_OTHER_PES[..]
    } else {
        &OTHER_PES
    };
    for n in sizes {
        runs(source, *n, &[]);
    }
}

/// Runs a program for another processor under an emulator, which is slow.
fn emulated(source: &str) {
    for n in EMULATED {
        runs(source, n, &[]);
    }
}

/// With `SHMEM_CHECK`, correct programs behave as without it.
fn checked(source: &str) {
    for n in CHECKED {
        runs(source, n, &[("SHMEM_CHECK", "1")]);
    }
}

/// With `SHMEM_STATS`, correct programs behave as without it. A program runs over shared memory,
/// over a network or over both, and neighbors in the list of programs run differently.
fn counted(source: &str) {
    let Nodes { n, variable } = COUNTED[position(source) % COUNTED.len()];
    let environment = [("SHMEM_STATS", "1"), ("SHMEM_TRANSPORT", "tcp"), variable];
    runs(source, n, &environment);
}

/// Runs over TCP, which every machine has.
fn a_session_over_nodes() {
    TCP.runs("sessions.c", TCP.usual, Nodes::several("2+3", 5), &[]);
}

/// The grid of the standard's example: 10 PEs with xrange 3 form 4 rows, the last of which has one
/// PE, and 3 columns.
fn ten_pes_in_two_dimensions() {
    Job::new(program!("split_2d.c")).n(10).run().assert_ok(10);
}

/// At this level, the order of a PE's calls does not identify a collective, since several threads
/// may make them.
fn active_sets_at_the_highest_thread_level() {
    for (n, onnode) in [(1, "on"), (3, "on"), (4, "off")] {
        for source in ["active_sets_many.c", "broadcasts_ahead.c"] {
            Job::new(program!(source))
                .n(n)
                .arg("multiple")
                .env("SHMEM_ONNODE", onnode)
                .run()
                .assert_ok(n);
        }
    }
}

fn without_a_launcher_a_program_is_a_job_of_one_pe() {
    for source in ["teams.c", "rma.c", "barriers.c", "start_pes.c"] {
        Job::direct(program!(source)).run().assert_ok(1);
    }
}

fn every_program_on_64_pes() {
    for source in programs() {
        runs(source, 64, &[]);
    }
}

/// Returns the routines that crates/shmem-c/spec/fortran.csv marks as offered.
fn fortran_routines() -> BTreeSet<String> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/fortran.csv");
    let table = std::fs::read_to_string(table).expect("the table is in the repository");

    let mut routines = BTreeSet::new();
    for line in table.lines() {
        let columns: Vec<&str> = line.split(',').collect();
        let [name, offered, form, ..] = columns[..] else {
            panic!("columns are missing in {line}");
        };
        if offered == "yes" && form != "parameter" {
            routines.insert(name.to_owned());
        }
    }
    routines
}

/// Returns the undefined symbols of a compiled program, without their versions.
fn undefined_symbols(program: &Path) -> Vec<String> {
    let output = Command::new("nm")
        .arg("--undefined-only")
        .arg(program)
        .output()
        .expect("this test needs nm: install the package binutils");
    assert!(output.status.success(), "{output:?}");

    let listing = String::from_utf8(output.stdout).expect("names are ASCII");
    listing
        .split_whitespace()
        .filter_map(|word| word.split('@').next())
        .map(str::to_owned)
        .collect()
}

fn the_fortran_programs_call_every_routine() {
    let mut missing = fortran_routines();
    assert!(missing.len() > 150, "{missing:?}");

    let mut compiled = vec![
        scenario!("fortran_by_id.f90"),
        scenario!("fortran_exit.f90"),
    ];
    for source in programs() {
        if source.starts_with("fortran_") {
            compiled.push(program!(source));
        }
    }

    for program in compiled {
        for symbol in undefined_symbols(&program) {
            // Compilers of Fortran write names in small letters and append an underscore.
            if let Some(name) = symbol.strip_suffix('_') {
                missing.remove(&name.to_uppercase());
            }
        }
    }
    assert!(missing.is_empty(), "no program calls {missing:?}");
}

/// All PEs share one CPU. If a waiting PE did not yield it, each turn would last a time slice, and
/// the job minutes.
fn a_pe_that_polls_leaves_the_cpu_to_others() {
    let program = program!("polls.c");
    let first_cpu = "cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')";
    let run = format!("exec taskset -c $cpu {} 1000", program.display());

    Job::new("/bin/sh")
        .n(4)
        .args(["-c", &format!("{first_cpu}; {run}")])
        .run()
        .assert_ok(4);
}

fn main() -> ExitCode {
    let mut tests = Vec::new();
    for setting in SETTINGS {
        for source in programs() {
            if !setting.which.contains(source) {
                continue;
            }
            let (name, _) = source.split_once('.').expect("a source has an extension");
            let name = format!("{}::{name}", setting.name);
            let mut test = Test::new(name, move || (setting.run)(source));
            if let Some(why) = setting.ignored {
                test = test.ignored(why);
            }
            tests.push(test);
        }
    }

    tests.extend([
        Test::new("ten_pes_in_two_dimensions", ten_pes_in_two_dimensions),
        Test::new(
            "active_sets_at_the_highest_thread_level",
            active_sets_at_the_highest_thread_level,
        ),
        Test::new(
            "without_a_launcher_a_program_is_a_job_of_one_pe",
            without_a_launcher_a_program_is_a_job_of_one_pe,
        ),
        Test::new("ucx_sample::locks_by_network", locks_by_ucx).ignored(PROVIDERS),
        Test::new("ofi_sample::locks_by_network", locks_by_libfabric).ignored(PROVIDERS),
        Test::new("a_session_over_nodes", a_session_over_nodes),
        Test::new("tcp_sample::sessions_over_nodes", || {
            TCP.sessions_over_nodes()
        })
        .ignored(PROVIDERS),
        Test::new("ucx_sample::sessions_over_nodes", || {
            UCX.sessions_over_nodes()
        })
        .ignored(PROVIDERS),
        Test::new("ofi_sample::sessions_over_nodes", || {
            OFI.sessions_over_nodes()
        })
        .ignored(PROVIDERS),
        Test::new("strict_sample::locks_by_network", locks_by_strict_fabrics).ignored(PROVIDERS),
        Test::new(
            "strict_sample::shared_domain_by_network",
            the_domain_of_shared_memory_over_a_strict_fabric,
        )
        .ignored(PROVIDERS),
        Test::new("strict_sample::large_heaps", large_heaps_by_strict_fabrics).ignored(PROVIDERS),
        Test::new("strict_sample::connections", connections_of_strict_fabrics).ignored(PROVIDERS),
        Test::new("strict_sample::limits", limits_of_strict_fabrics).ignored(PROVIDERS),
        Test::new("every_program_on_64_pes", every_program_on_64_pes)
            .ignored("a minute; part of `cargo xtask test --full`"),
        Test::new(
            "the_fortran_programs_call_every_routine",
            the_fortran_programs_call_every_routine,
        ),
        Test::new(
            "a_pe_that_polls_leaves_the_cpu_to_others",
            a_pe_that_polls_leaves_the_cpu_to_others,
        ),
    ]);
    testkit::run(tests)
}
