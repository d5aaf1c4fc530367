//! The jobs of the guests. A new program or network is added to the lists at the top.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use task_support::workspace::Workspace;

pub struct GuestJob {
    pub name: String,
    pub command: String,
    pub limit: Duration,
    /// True if its PEs are in two guests.
    pub pair: bool,
    /// True if it measures: such a job runs only on request, and its output is printed.
    pub measures: bool,
}

/// The names of programs, and their sources.
pub const PROGRAMS: [(&str, &str); 9] = [
    ("split_2d", "crates/shmem-c/tests/programs/split_2d.c"),
    ("max_to_all", "crates/shmem-c/examples/max_to_all.c"),
    ("split_3d", "crates/shmem-c/examples/split_3d.c"),
    (
        "team_split_strided",
        "crates/shmem-c/examples/team_split_strided.c",
    ),
    ("rma", "crates/shmem-c/tests/programs/rma.c"),
    ("amo", "crates/shmem-c/tests/programs/amo.c"),
    ("ordering", "crates/shmem-c/tests/programs/ordering.c"),
    ("signal", "crates/shmem-c/tests/programs/signal.c"),
    (
        "collectives_team",
        "crates/shmem-c/tests/programs/collectives_team.c",
    ),
];

/// The programs that also run with other versions of the libraries, across two guests, and over
/// datagrams.
const FEW: [&str; 5] = ["split_2d", "max_to_all", "rma", "amo", "signal"];

/// Cases of the suite that do not run in guests. Far offsets need more memory than a guest has,
/// since registered memory is resident. The case about unused peers compares memory, but UCX's
/// buffers over verbs vary by 80 MB from one opening to the next; it runs over networks that need
/// no NIC.
const NOT_HERE: &str = "--skip far_offsets --skip unused_peers";

/// Cases of the suite, by a part of their names, that run only in one guest: across two, a round
/// trip of a word takes 5 to 20 milliseconds.
const NOT_ACROSS: [&str; 9] = [
    "sizes",
    "data_before_flag",
    "later_put_stays",
    "compare_swap_lock",
    "quiet",
    "passive_origin",
    "threads",
    "back_pressure",
    "tiny_",
];

/// The variables by which the suite and programs reach the NIC over each network.
struct VerbsNetwork {
    name: &'static str,
    transport: &'static str,
    /// The beginning of the names of its cases; `None` if only the programs of [`FEW`] run, in one
    /// guest.
    suite: Option<&'static str>,
    environment: &'static str,
}

/// Reliable connections of UCX. The NIC is not named, to test that a job on one machine, which
/// restricts its sockets to loopback, still uses the NIC.
const UCX: VerbsNetwork = VerbsNetwork {
    name: "ucx",
    transport: "ucx",
    suite: Some("verbs::"),
    environment: "UCX_TLS=rc_verbs,ud_verbs:aux,self UCX_UD_VERBS_ETH_DGID_CHECK=n",
};

/// Datagrams of UCX, over which software carries out all operations but messages. UCX's `dc` is not
/// tested, since only NICs of Mellanox have it.
const UD: VerbsNetwork = VerbsNetwork {
    name: "ud",
    transport: "ucx",
    suite: None,
    environment: "UCX_TLS=ud_verbs,self UCX_UD_VERBS_ETH_DGID_CHECK=n",
};

/// libfabric. For the number of peers that libfabric expects by default, the completion queue would
/// be longer than this NIC can make, so the number is lower here.
const OFI: VerbsNetwork = VerbsNetwork {
    name: "ofi",
    transport: "ofi",
    suite: Some("verbs_rxm::"),
    environment: "FI_UNIVERSE_SIZE=16 RUSHMEM_PROVIDERS=all SHMEM_OFI_PROVIDER='verbs;ofi_rxm'",
};

/// The time limits of a suite and of a program. Interpreted processors are slow, and slower on a
/// busy machine.
const OF_SUITE: Duration = Duration::from_secs(1800);
const OF_PROGRAM: Duration = Duration::from_secs(480);
const SLOWDOWN: &str = "RUSHMEM_TEST_SLOWDOWN=10";

/// The paths of the guests' programs, which are the same on this machine and in the guests.
pub struct GuestPaths {
    pub prefix: PathBuf,
    pub programs: PathBuf,
    ucx: PathBuf,
    ofi: PathBuf,
}

impl GuestPaths {
    pub fn new(workspace: &Workspace, ucx: PathBuf, ofi: PathBuf) -> GuestPaths {
        let dir = workspace.target.join("verbs");
        GuestPaths {
            prefix: dir.join("prefix"),
            programs: dir.join("programs"),
            ucx,
            ofi,
        }
    }
}

/// A version of the networks' libraries, the variables that select it, and the networks with which
/// it is tested.
pub struct Libraries {
    name: String,
    environment: String,
    has: fn(&VerbsNetwork) -> bool,
}

impl Libraries {
    /// Returns the system's libraries, and those in the directories that RUSHMEM_UCX_DIR and
    /// RUSHMEM_OFI_DIR name.
    pub fn all() -> Result<Vec<Libraries>> {
        let system = Libraries {
            name: "system".into(),
            environment: String::new(),
            has: |_| true,
        };
        let mut all = vec![system];

        let dirs = std::env::var_os("RUSHMEM_UCX_DIR").unwrap_or_default();
        for dir in std::env::split_paths(&dirs) {
            // A UCX that was built without verbs cannot be tested here.
            if !dir.join("ucx/libuct_ib.so.0").is_file() {
                continue;
            }
            let dir = plain(&dir)?;
            all.push(Libraries {
                name: format!("directory{}", all.len()),
                environment: format!("LD_LIBRARY_PATH={dir} UCX_MODULE_DIR={dir}/ucx "),
                has: |network| network.transport == UCX.transport && network.suite.is_some(),
            });
        }

        if let Some(dir) = std::env::var_os("RUSHMEM_OFI_DIR") {
            let dir = plain(Path::new(&dir))?;
            all.push(Libraries {
                name: "directory".into(),
                environment: format!("LD_LIBRARY_PATH={dir} FI_PROVIDER_PATH={dir}/libfabric "),
                has: |network| network.transport == OFI.transport,
            });
        }
        Ok(all)
    }
}

impl Libraries {
    /// Returns true for the libraries of the system, which no variable selects.
    fn is_system(&self) -> bool {
        self.environment.is_empty()
    }
}

/// Returns the text of a path. Fails if a shell would not take it as it is.
fn plain(path: &Path) -> Result<String> {
    let text = path.to_string_lossy().into_owned();
    if text.contains(|c: char| c.is_whitespace() || "'\"$&;()<>|".contains(c)) {
        bail!("a directory of libraries with plain characters is needed, not {text}");
    }
    Ok(text)
}

/// Returns all jobs: first the programs and then the suites of each version and network, and last
/// the jobs that measure.
pub fn all(paths: &GuestPaths, libraries: &[Libraries]) -> Vec<GuestJob> {
    let mut jobs = vec![auto(paths)];
    for library in libraries {
        for network in [&UCX, &UD, &OFI] {
            if (library.has)(network) {
                jobs.extend(programs(paths, network, library));
                jobs.extend(verified(paths, network, library));
                jobs.extend(suites(paths, network, library));
            }
        }
    }

    let environment = format!("{SLOWDOWN} RUSHMEM_CONFORMANCE_PES=2 {}", UCX.environment);
    jobs.push(suite(
        "one-ucx-network-amos-suite",
        &paths.ucx,
        &environment,
        &format!("verbs_network:: {NOT_HERE}"),
    ));

    for (network, amos) in [
        (&UCX, "software"),
        (&UCX, "network"),
        (&UD, "software"),
        (&OFI, "software"),
    ] {
        jobs.push(measuring(paths, network, amos));
    }
    jobs
}

/// Returns a job that measures the latency of an atomic operation that the targets' CPUs
/// (`software`) or the network carry out.
fn measuring(paths: &GuestPaths, network: &VerbsNetwork, amos: &str) -> GuestJob {
    let bin = paths.prefix.join("bin");
    let bin = bin.display();
    let environment = format!(
        "{} SHMEM_TRANSPORT={} SHMEM_AMOS={amos}",
        network.environment, network.transport
    );
    let command = |target: &str| {
        format!(
            "env {environment} SHMEM_SYMMETRIC_SIZE=16m SHMEM_ONNODE=off {bin}/oshrun -n 2 {bin}/shmem-perf \
             --operations fetch_add --measures latency --target {target} --time 10"
        )
    };
    GuestJob {
        name: format!("measure-{}-{amos}-amo", network.name),
        command: format!("{} && {}", command("waits"), command("computes")),
        limit: OF_PROGRAM,
        pair: false,
        measures: true,
    }
}

/// Returns a job that leaves the choice of the network to the library, which must choose TCP and
/// log that the NIC is no RDMA device, since it is one in software.
fn auto(paths: &GuestPaths) -> GuestJob {
    let prefix = paths.prefix.display();
    let programs = paths.programs.display();
    let environment =
        "SHMEM_TRANSPORT=auto SHMEM_DEBUG=2 SHMEM_SYMMETRIC_SIZE=16m SHMEM_ONNODE=off";
    let counted =
        "/transport (ucx|ofi): .*; not chosen: no PE has an RDMA device|transport tcp: .*; chosen/";
    GuestJob {
        name: "one-auto".into(),
        command: format!(
            "set -o pipefail; env {environment} {prefix}/bin/oshrun -n 2 {programs}/split_2d 2>&1 | \
             awk '{{ print }} {counted} {{ n++ }} END {{ exit n != 3 }}'"
        ),
        limit: OF_PROGRAM,
        pair: false,
        measures: false,
    }
}

/// Returns the jobs of the programs over a network: each in one guest, and a few of them also
/// across two.
fn programs(paths: &GuestPaths, network: &VerbsNetwork, library: &Libraries) -> Vec<GuestJob> {
    let prefix = paths.prefix.display();
    let programs = paths.programs.display();
    let environment = format!(
        "{}{} SHMEM_TRANSPORT={} SHMEM_SYMMETRIC_SIZE=16m",
        library.environment, network.environment, network.transport
    );

    let mut jobs = Vec::new();
    for (name, _) in PROGRAMS {
        let is_few = FEW.contains(&name);
        let has_all = library.is_system() && network.suite.is_some();
        if !is_few && !has_all {
            continue;
        }

        let n = if name == "split_3d" { 4 } else { 2 };
        jobs.push(GuestJob {
            name: format!("one-{}-{}-{name}", network.name, library.name),
            command: format!(
                "env {environment} SHMEM_ONNODE=off {prefix}/bin/oshrun -n {n} {programs}/{name}"
            ),
            limit: OF_PROGRAM,
            pair: false,
            measures: false,
        });

        if is_few && network.suite.is_some() {
            let start = "mpiexec.hydra -launcher ssh -launcher-exec /mnt/out/elsewhere.sh -localhost 10.9.0.1";
            jobs.push(GuestJob {
                name: format!("pair-{}-{}-{name}", network.name, library.name),
                command: format!("env {environment} {start} -hosts 10.9.0.1,10.9.0.2 -n 2 -ppn 1 {programs}/{name}"),
                limit: OF_PROGRAM,
                pair: true,
                measures: false,
            });
        }
    }
    jobs
}

/// Returns the job of shmem-verify over the network, with the system's libraries.
fn verified(paths: &GuestPaths, network: &VerbsNetwork, library: &Libraries) -> Option<GuestJob> {
    if !library.is_system() || network.suite.is_none() {
        return None;
    }
    let bin = paths.prefix.join("bin");
    let limit = OF_SUITE.as_secs();
    Some(GuestJob {
        name: format!("one-{}-verify", network.name),
        command: format!(
            "env {} SHMEM_TRANSPORT={} SHMEM_SYMMETRIC_SIZE=48m SHMEM_ONNODE=off {bin}/oshrun -n 2 \
             {bin}/shmem-verify --quick --limit {limit}",
            network.environment,
            network.transport,
            bin = bin.display()
        ),
        limit: OF_SUITE,
        pair: false,
        measures: false,
    })
}

/// Returns the jobs of the suite, if it runs over the network.
fn suites(paths: &GuestPaths, network: &VerbsNetwork, library: &Libraries) -> Vec<GuestJob> {
    let Some(cases) = network.suite else {
        return Vec::new();
    };
    let program = if network.transport == UCX.transport {
        &paths.ucx
    } else {
        &paths.ofi
    };
    let environment = format!("{}{SLOWDOWN} {}", library.environment, network.environment);
    let name = |place: &str| format!("{place}-{}-{}-suite", network.name, library.name);

    // Other versions of the libraries run the suite with at most 2 PEs, and only in one guest.
    let pes = if library.is_system() { 3 } else { 2 };
    let one = suite(
        &name("one"),
        program,
        &format!("{environment} RUSHMEM_CONFORMANCE_PES={pes}"),
        &format!("{cases} {NOT_HERE}"),
    );
    if !library.is_system() {
        return vec![one];
    }

    let skipped = NOT_ACROSS.map(|case| format!(" --skip {case}")).concat();
    let across = "RUSHMEM_CONFORMANCE_PES=2 RUSHMEM_CONFORMANCE_ELSEWHERE=/mnt/out/elsewhere.sh";
    let pair = GuestJob {
        pair: true,
        ..suite(
            &name("pair"),
            program,
            &format!("{environment} {across}"),
            &format!("{cases} {NOT_HERE}{skipped}"),
        )
    };
    vec![one, pair]
}

fn suite(name: &str, program: &Path, environment: &str, cases: &str) -> GuestJob {
    GuestJob {
        name: name.to_owned(),
        command: format!(
            "env {environment} {} {cases} --test-threads=1 --nocapture",
            program.display()
        ),
        limit: OF_SUITE,
        pair: false,
        measures: false,
    }
}
