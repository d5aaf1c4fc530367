//! Runs the programs of tests/programs, which check the standard clause by clause, in many
//! settings: numbers of PEs, transports, nodes, and observers. A failed check prints the number of
//! its point in crates/shmem-c/spec/semantics.md. The programs of the guide in C run in the same
//! settings.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::LazyLock;

use testkit::{Job, Outcome, Test, absent, compile, every_size, prefix, program, scenario};

const PES: [usize; 4] = [1, 3, 4, 8];
const ALL_PES: [usize; 8] = [1, 2, 3, 4, 5, 7, 8, 12];
const EMULATED: [usize; 2] = [2, 3];

const CHECKED: [usize; 2] = [1, 3];
const COUNTED: [Nodes; 4] = [
    (("SHMEM_ONNODE", "on"), 3),
    (("SHMEM_ONNODE", "off"), 3),
    (("SHMEM_ONNODE", "on"), 4),
    (("SHMEM_VIRTUAL_NODES", "2+2"), 4),
];

/// The numbers of PEs of jobs whose PEs share no memory, for the settings `.._at_every_size`.
const OFF_NODE: [usize; 6] = [1, 2, 3, 4, 8, 12];
/// Jobs in which only some PEs share memory, for these settings: the nodes, and the number of PEs.
const VIRTUAL_NODES: [(&str, usize); 2] = [("2+2", 4), ("1+2+3", 6)];

/// The nodes of a job: a variable and its value, and the number of PEs.
type Nodes = ((&'static str, &'static str), usize);

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
    /// Values of `variable`, each with a job. `.._sample` runs each program with one of them, and
    /// neighbors in the list of programs with different ones.
    sample: &'static [(&'static str, Nodes)],
}

const TCP: Network = Network {
    transport: "tcp",
    variable: "SHMEM_TRANSPORT",
    usual: "tcp",
    inside: None,
    small: &[],
    sample: &[
        ("tcp", (("SHMEM_ONNODE", "off"), 2)),
        ("tcp", (("SHMEM_VIRTUAL_NODES", "1+2+3"), 6)),
        ("tcp", (("SHMEM_ONNODE", "off"), 3)),
        ("tcp", (("SHMEM_VIRTUAL_NODES", "2+2"), 4)),
        ("tcp", (("SHMEM_ONNODE", "off"), 8)),
    ],
};

const UCX: Network = Network {
    transport: "ucx",
    variable: "UCX_TLS",
    usual: "tcp,self",
    inside: Some("posix,self"),
    small: &[("tcp,self", UCX_SMALL_TCP), ("posix,self", UCX_SMALL_POSIX)],
    sample: &[
        ("tcp,self", (("SHMEM_ONNODE", "off"), 2)),
        ("posix,self", (("SHMEM_ONNODE", "off"), 3)),
        ("tcp,self", (("SHMEM_VIRTUAL_NODES", "1+2+3"), 6)),
        ("cma,posix,self", (("SHMEM_ONNODE", "off"), 4)),
        ("sysv,self", (("SHMEM_VIRTUAL_NODES", "2+2"), 4)),
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
        ("tcp;ofi_rxm", (("SHMEM_ONNODE", "off"), 2)),
        ("tcp;ofi_rxm", (("SHMEM_VIRTUAL_NODES", "1+2+3"), 6)),
        ("shm", (("SHMEM_ONNODE", "off"), 3)),
        ("tcp;ofi_rxm", (("SHMEM_ONNODE", "off"), 3)),
        ("tcp;ofi_rxm", (("SHMEM_VIRTUAL_NODES", "2+2"), 4)),
        ("shm", (("SHMEM_VIRTUAL_NODES", "2+2"), 4)),
    ],
};

/// Profiles of the strict fabric (ci/strict-fabric), a libfabric provider for tests. They have the
/// rules of fabrics whose hardware a test machine lacks.
const STRICT: [&str; 5] = ["cxi", "efa", "opx", "psm3", "mrail"];
/// The jobs in which programs run over these profiles.
const STRICT_JOBS: [Nodes; 5] = [
    (("SHMEM_ONNODE", "off"), 2),
    (("SHMEM_VIRTUAL_NODES", "1+2+3"), 6),
    (("SHMEM_ONNODE", "off"), 3),
    (("SHMEM_VIRTUAL_NODES", "2+2"), 4),
    (("SHMEM_ONNODE", "off"), 4),
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

fn runs_strict(source: &str, profile: &str, (nodes, n): Nodes) {
    let dir = strict_dir();
    let environment = [
        ("SHMEM_TRANSPORT", "ofi"),
        ("SHMEM_OFI_PROVIDER", "strict"),
        ("SHMEM_OFI_DOMAIN", profile),
        ("FI_PROVIDER_PATH", &dir),
        nodes,
    ];
    runs(source, n, &environment);
}

/// Runs a program over one profile; neighbors in the list of programs use different ones.
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
        runs_strict(
            source,
            profile,
            STRICT_JOBS[(place + i + 1) % STRICT_JOBS.len()],
        );
    }
}

impl Network {
    fn runs(&self, source: &str, path: &str, (nodes, n): Nodes, others: &[(&str, &str)]) {
        let network = [
            ("SHMEM_TRANSPORT", self.transport),
            (self.variable, path),
            nodes,
        ];
        runs(source, n, &[&network, others].concat());
    }

    fn runs_sample(&self, source: &str) {
        let place = position(source);
        let (path, nodes) = self.sample[place % self.sample.len()];
        self.runs(source, path, nodes, &[]);
    }

    fn runs_at_every_size(&self, source: &str) {
        let off_node = OFF_NODE.map(|n| (("SHMEM_ONNODE", "off"), n));
        let virtual_nodes = VIRTUAL_NODES.map(|(nodes, n)| (("SHMEM_VIRTUAL_NODES", nodes), n));
        for nodes in off_node.into_iter().chain(virtual_nodes) {
            self.runs(source, self.usual, nodes, &[]);
        }
        let some = [
            (("SHMEM_ONNODE", "off"), 3),
            (("SHMEM_VIRTUAL_NODES", "2+2"), 4),
        ];
        if let Some(inside) = self.inside {
            some.iter()
                .for_each(|&nodes| self.runs(source, inside, nodes, &[]));
        }
        for (path, small) in self.small {
            self.runs(source, path, some[0], small);
        }
        self.runs(source, self.usual, some[1], &[AGGREGATE]);
    }

    /// Runs sessions that batch small operations for all PEs of a node together: sessions that the
    /// programs start, and the session of `SHMEM_AGGREGATE`.
    fn sessions_over_nodes(&self) {
        for (source, nodes) in [
            ("sessions.c", (("SHMEM_VIRTUAL_NODES", "2+3"), 5)),
            ("ordering.c", (("SHMEM_VIRTUAL_NODES", "2+2"), 4)),
            ("threads.c", (("SHMEM_VIRTUAL_NODES", "1+3"), 4)),
        ] {
            self.runs(source, self.usual, nodes, &[]);
            self.runs(source, self.usual, nodes, &[AGGREGATE]);
        }
    }
}

/// Puts every context into a session.
const AGGREGATE: (&str, &str) = ("SHMEM_AGGREGATE", "on");

/// Jobs whose PEs contend for locks that are changed by a network's atomic operations.
const LOCK_JOBS: [Nodes; 4] = [
    (("SHMEM_ONNODE", "off"), 2),
    (("SHMEM_ONNODE", "off"), 4),
    (("SHMEM_ONNODE", "off"), 8),
    (("SHMEM_VIRTUAL_NODES", "2+2"), 4),
];

/// Runs the programs of contended locks of each type in the jobs `LOCK_JOBS`, with the network's
/// atomic operations. Calls `judge` with each outcome and its number of PEs.
fn locks_by_network(network: &[(&str, &str)], judge: impl Fn(&Outcome, usize)) {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs"));
    let fortran = dir.join("fortran_lock_contended.F90");
    let programs = [
        program!("lock_contended.c"),
        program!("fortran_lock_contended.F90"),
        compile(
            &fortran,
            Path::new(env!("CARGO_TARGET_TMPDIR")),
            &["-DLOCK_KIND=8"],
        ),
    ];
    for program in programs {
        for ((name, value), n) in LOCK_JOBS {
            let job = Job::new(&program)
                .n(n)
                .env(name, value)
                .env("SHMEM_AMOS", "network");
            let job = network
                .iter()
                .fold(job, |job, (name, value)| job.env(name, value));
            judge(&job.run(), n);
        }
    }
}

/// Runs the programs of contended locks over the network's usual path and over `others`. These, and
/// any path of UCX, may be missing or be refused. Ignores the test if no path can be used.
fn locks_by(network: &Network, others: &[&str]) {
    let have_run = Cell::new(false);
    for path in [network.usual].iter().chain(others) {
        let variables = [
            ("SHMEM_TRANSPORT", network.transport),
            (network.variable, path),
        ];
        locks_by_network(&variables, |outcome, n| {
            // Some versions of UCX have wrong operations or none, and say so.
            let may_be_refused = network.transport == "ucx" || *path != network.usual;
            let is_refused = outcome.stderr.contains("which cannot be used here");
            if !(may_be_refused && is_refused) {
                outcome.assert_ok(n);
                have_run.set(true);
            }
        });
    }
    if !have_run.get() {
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
    locks_by(&OFI, &["tcp", "sockets", "shm"]);
}

fn locks_by_strict_fabrics() {
    let dir = strict_dir();
    for profile in STRICT_WITH_AMOS {
        let variables = [
            ("SHMEM_TRANSPORT", "ofi"),
            ("SHMEM_OFI_PROVIDER", "strict"),
            ("SHMEM_OFI_DOMAIN", profile),
            ("FI_PROVIDER_PATH", &dir),
        ];
        locks_by_network(&variables, |outcome, n| outcome.assert_ok(n));
    }
}

/// The atomic operations of this fabric are not atomic with respect to those of CPUs.
fn the_domain_of_shared_memory_over_a_strict_fabric() {
    let job = Job::new(program!("shared_domain.c")).n(3);
    let job = job
        .env("SHMEM_VIRTUAL_NODES", "1+2")
        .env("SHMEM_AMOS", "network");
    let job = job
        .env("SHMEM_TRANSPORT", "ofi")
        .env("SHMEM_OFI_PROVIDER", "strict");
    let job = job
        .env("SHMEM_OFI_DOMAIN", "cxi")
        .env("FI_PROVIDER_PATH", strict_dir());
    job.run().assert_ok(3);
}

/// Heaps of 64 GiB, of which the program allocates a part. Only allocated memory is registered. The
/// first profile permits at most 64 registrations, the second one registrations of at most 256 MiB.
fn large_heaps_by_strict_fabrics() {
    let dir = strict_dir();
    for (profile, amos, mib, distance) in [
        ("few-regions", "software", 1024, 16),
        ("few-regions", "software", 20 << 10, 512),
        ("small-regions", "software", 192, 16),
        ("small-regions", "network", 8 << 10, 1 << 10),
    ] {
        let job = Job::new(scenario!("large_heap.c"))
            .n(3)
            .arg(mib)
            .arg(distance);
        let job = job
            .env("SHMEM_TRANSPORT", "ofi")
            .env("SHMEM_OFI_PROVIDER", "strict");
        let job = job
            .env("SHMEM_OFI_DOMAIN", profile)
            .env("FI_PROVIDER_PATH", &dir);
        let job = job.env("SHMEM_ONNODE", "off").env("SHMEM_AMOS", amos);
        let job = job
            .env("SHMEM_HUGE_PAGES", "off")
            .env("SHMEM_SYMMETRIC_SIZE", "64g");
        let outcome = job.env("SHMEM_DEBUG", 2).run();
        outcome.assert_ok(3);
        let blocks = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("registered a block"));
        let nbytes = blocks.map(|line| {
            let word = line
                .split([' ', ','])
                .find_map(|word| word.strip_prefix("nbytes="));
            word.and_then(|word| word.parse().ok())
                .unwrap_or_else(|| panic!("{line}"))
        });
        let nbytes: Vec<usize> = nbytes.collect();
        let (n_blocks, registered) = (nbytes.len() / 3, nbytes.iter().sum::<usize>() / 3);
        let allocated = mib << 20;
        assert!(
            nbytes.len() == 3 * n_blocks && (4..64).contains(&n_blocks),
            "{n_blocks} blocks"
        );
        assert!(
            registered < allocated + allocated / 4,
            "{registered} bytes of {allocated}"
        );
        let largest = if profile == "small-regions" {
            256 << 20
        } else {
            1 << 40
        };
        assert!(nbytes.iter().all(|nbytes| *nbytes <= largest), "{nbytes:?}");
    }
}

/// This profile refuses two of ten attempts to connect, and posts during the others at first fail
/// with `FI_EAGAIN`.
fn connections_of_strict_fabrics() {
    let n = if every_size() { 64 } else { 12 };
    let job = Job::new(scenario!("all_pairs.c"))
        .n(n)
        .env("SHMEM_ONNODE", "off");
    let job = job
        .env("SHMEM_TRANSPORT", "ofi")
        .env("SHMEM_OFI_PROVIDER", "strict");
    let job = job
        .env("SHMEM_OFI_DOMAIN", "few-connections")
        .env("FI_PROVIDER_PATH", strict_dir());
    let outcome = job.env("SHMEM_DEBUG", 2).run();
    outcome.assert_ok(n);
    assert!(
        outcome.stderr.contains("connects once more"),
        "none was refused: {outcome}"
    );
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
        let doctor = Job::direct(prefix().join("bin/shmem-info"))
            .arg("--doctor")
            .env("COLUMNS", "10000");
        let doctor = doctor
            .env("SHMEM_TRANSPORT", "ofi")
            .env("SHMEM_OFI_PROVIDER", "strict");
        let outcome = doctor
            .env("SHMEM_OFI_DOMAIN", profile)
            .env("FI_PROVIDER_PATH", &dir)
            .run();
        assert_eq!(outcome.code(), 0, "{outcome}");
        assert!(outcome.stdout.contains(limit), "{limit}: {outcome}");
    }
}

fn runs(source: &str, n: usize, environment: &[(&str, &str)]) {
    let of_guide = GUIDE.contains(&source);
    let program = if of_guide {
        program!(Path::new("../../examples").join(source))
    } else {
        program!(source)
    };
    let mut job = Job::new(program).n(n);
    for (name, value) in environment {
        job = job.env(name, value);
    }
    if of_guide {
        let outcome = job.run();
        let lines: Vec<&str> = outcome.lines().collect();
        assert!(outcome.status.success(), "{outcome}");
        assert!(
            matches!(lines[..], [line] if line.starts_with(&format!("{n} PEs"))),
            "not one job of {n} PEs: {outcome}"
        );
        return;
    }
    if source == "memory.c" {
        // The program allocates the whole heap, so a small one saves time.
        job = job.env("SHMEM_SYMMETRIC_SIZE", "64m");
    }
    job.run().assert_ok(n);
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

/// A way to run every program, and the reason if it is not always used.
type Setting = (&'static str, fn(&'static str), Option<&'static str>);

const PROVIDERS: &str = "part of `cargo xtask test --providers`";
const FULL: &str = "part of `cargo xtask test --full`";

const SETTINGS: [Setting; 12] = [
    ("on_node", on_node, None),
    ("checked", checked, None),
    ("counted", counted, None),
    (
        "tcp_sample",
        |source| TCP.runs_sample(source),
        Some(PROVIDERS),
    ),
    (
        "ucx_sample",
        |source| UCX.runs_sample(source),
        Some(PROVIDERS),
    ),
    (
        "ofi_sample",
        |source| OFI.runs_sample(source),
        Some(PROVIDERS),
    ),
    ("strict_sample", strict_sample, Some(PROVIDERS)),
    (
        "strict_at_every_profile",
        strict_at_every_profile,
        Some(FULL),
    ),
    (
        "tcp_at_every_size",
        |source| TCP.runs_at_every_size(source),
        Some(FULL),
    ),
    (
        "ucx_at_every_size",
        |source| UCX.runs_at_every_size(source),
        Some(FULL),
    ),
    (
        "ofi_at_every_size",
        |source| OFI.runs_at_every_size(source),
        Some(FULL),
    ),
    ("emulated", emulated, Some(FULL)),
];

fn on_node(source: &str) {
    let sizes = if every_size() { &ALL_PES[..] } else { &PES };
    sizes.iter().for_each(|&n| runs(source, n, &[]));
}

/// Runs a program for another processor under an emulator, which is slow.
fn emulated(source: &str) {
    EMULATED.iter().for_each(|&n| runs(source, n, &[]));
}

/// With `SHMEM_CHECK`, correct programs behave as without it.
fn checked(source: &str) {
    CHECKED
        .iter()
        .for_each(|&n| runs(source, n, &[("SHMEM_CHECK", "1")]));
}

/// With `SHMEM_STATS`, correct programs behave as without it. A program runs over shared memory,
/// over a network or over both, and neighbors in the list of programs run differently.
fn counted(source: &str) {
    let place = position(source);
    let (nodes, n) = COUNTED[place % COUNTED.len()];
    runs(
        source,
        n,
        &[("SHMEM_STATS", "1"), ("SHMEM_TRANSPORT", "tcp"), nodes],
    );
}

/// Runs over TCP, which every machine has.
fn a_session_over_nodes() {
    TCP.runs(
        "sessions.c",
        TCP.usual,
        (("SHMEM_VIRTUAL_NODES", "2+3"), 5),
        &[],
    );
}

/// The grid of the standard's example: 10 PEs with xrange 3 form 4 rows, the last of which has one
/// PE, and 3 columns.
fn ten_pes_in_two_dimensions() {
    Job::new(program!("split_2d.c")).n(10).run().assert_ok(10);
}

/// At this level, the order of a PE's calls does not identify a collective, since several threads
/// may make them.
fn active_sets_at_the_highest_thread_level() {
    for (n, nodes) in [(1, "on"), (3, "on"), (4, "off")] {
        for source in ["active_sets_many.c", "broadcasts_ahead.c"] {
            let job = Job::new(program!(source)).n(n).arg("multiple");
            job.env("SHMEM_ONNODE", nodes).run().assert_ok(n);
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
    let table =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/fortran.csv"))
            .expect("the table is in the repository");
    let offered = table.lines().filter_map(|line| {
        let [name, offered, form] = line
            .splitn(4, ',')
            .take(3)
            .collect::<Vec<_>>()
            .try_into()
            .expect("columns");
        (offered == "yes" && form != "parameter").then(|| name.to_owned())
    });
    offered.collect()
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
    let names = listing
        .split_whitespace()
        .filter_map(|word| word.split('@').next());
    names.map(str::to_owned).collect()
}

fn the_fortran_programs_call_every_routine() {
    let mut missing = fortran_routines();
    assert!(missing.len() > 150, "{missing:?}");
    let in_every_setting = programs().filter(|source| source.starts_with("fortran_"));
    let in_scenarios = [
        scenario!("fortran_by_id.f90"),
        scenario!("fortran_exit.f90"),
    ];

    let compiled = in_every_setting.map(|source| program!(source));
    for program in compiled.chain(in_scenarios) {
        for symbol in undefined_symbols(&program) {
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
    let first = "cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')";
    let command = format!("{first}; exec taskset -c $cpu {} 1000", program.display());
    Job::new("/bin/sh")
        .n(4)
        .arg("-c")
        .arg(command)
        .run()
        .assert_ok(4);
}

fn main() -> ExitCode {
    let mut tests = Vec::new();
    for (setting, body, ignored) in SETTINGS {
        tests.extend(programs().map(|source| {
            let (name, _) = source.split_once('.').expect("a source has an extension");
            let test = Test::new(format!("{setting}::{name}"), move || body(source));
            ignored.into_iter().fold(test, Test::ignored)
        }));
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
