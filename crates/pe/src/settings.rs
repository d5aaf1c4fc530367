//! The settings of the runtime in one table: names, defaults, meanings, and how a value is parsed.
//! The struct, its parser, `SHMEM_INFO`, `shmem-info` and docs/settings.md come from it.
//!
//! A new setting is a row of `settings!`: a field with its type, the name, the default, the
//! meaning, a parser, and the text that names the allowed values; then `cargo xtask codegen` writes
//! docs/settings.md. A setting of a provider is a `Setting` in the table of its `settings.rs`, with
//! a check of its value, which is made on one node, too; the provider asks its `Host` for the value
//! and parses it. A deprecated name is also in `OLD_NAMES` of `crates/bootstrap/src/config.rs`. A
//! setting that must be equal on all PEs is also a field of `StartupRecord`
//! (`crates/runtime/src/start/record.rs`).
//!
//! [`Settings::read`] reads the environment only through the function that it is given.

pub mod names;

use rushmem_bootstrap::unlaunched::{self, MeetingLimits};
use rushmem_bootstrap::{Protocol, config, env, time_limit};
use rushmem_collectives::choice::{
    Algorithm, AllGatherAlgorithm, AllReduceAlgorithm, AllToAllAlgorithm, BroadcastAlgorithm,
    ScanAlgorithm, SyncAlgorithm, Table,
};
use rushmem_heap::huge_pages::PageSize;
use rushmem_system::devices::NicName;
use rushmem_system::log::Filter;
use rushmem_system::setting::Setting;
use rushmem_system::setting::{Invalid, ValueSource, environment, is_blank, set_default};
use rushmem_transport::{Amos, Provider};
use std::fmt;
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

/// Makes the rows, the struct and its parser. A row has the field and its type, the name of the
/// variable, its deprecated names, the default, the meaning, the parser, and the text that names
/// the allowed values. The parser takes the value that is set, or the default, or `None` if there
/// is neither.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $name:expr, $old:expr, $default:expr;
        $meaning:literal; $parse:expr, $expected:expr;
    )*) => {
        /// The values of all settings: those of the environment, of configuration files, or
        /// defaults.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        /// The rows, in the order of `SHMEM_INFO`.
        pub const ALL: &[Setting] = &[$(Setting {
            name: $name,
            old_names: $old,
            default: $default,
            meaning: $meaning,
            // `Settings::read` parses these.
            check: Setting::ANY,
        }),*];

        impl Settings {
            /// Reads the environment through `lookup`.
            ///
            /// # Errors
            /// When a variable has a value that it may not have.
            pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Settings, Invalid> {
                let find = |name: &str| ALL.iter().find(|row| row.name == name)?.find(&lookup);
                Ok(Settings {
                    $($field: {
                        let parse: fn(Option<&str>) -> Option<$type> = $parse;
                        let found = find($name);
                        let value = found.as_ref().map(|found| found.value.as_str()).or($default);
                        match parse(value) {
                            Some(value) => value,
                            None => {
                                let name = found.as_ref().map_or($name, |found| found.name);
                                let value = found.map_or(String::new(), |found| found.value);
                                return Err(Invalid { name, value, expected: $expected });
                            }
                        }
                    },)*
                })
            }
        }
    };
}

settings! {
    /// True if the version is printed.
    version: bool = "SHMEM_VERSION", &["SMA_VERSION"], None;
        "any value: print the version of the library at start-up"; is_set, "anything";
    /// True if the settings are printed.
    info: bool = "SHMEM_INFO", &["SMA_INFO"], None;
        "any value: print the settings with their values at start-up"; is_set, "anything";
    /// The events that the library prints; `None` for none.
    debug: Option<Filter> = "SHMEM_DEBUG", &["SMA_DEBUG"], None;
        "what the library does, on standard error: 1 or info: how PEs reach each other, and why heaps differ, if they do (lines of PE 0); \
         2, debug or any other word: also what it finds and chooses, and each connection; 3 or trace: also what it does often; \
         or levels of single modules, such as transport=debug,runtime::start=trace (share/doc/rushmem/rust-reference.md)";
        |value| value.map(Filter::parse).map_or(Some(None), |filter| filter.map(Some)), Filter::EXPECTED;
    /// The only file that is read with values of other settings; `None` for the default ones.
    config: Option<String> = config::FILE, &[], None;
        "the only file that is read with values of settings (share/doc/rushmem/configuration.md), which must be there; /dev/null: none; by default \
         etc/rushmem.conf where Rushmem is installed, /etc/rushmem.conf, and rushmem.conf in $XDG_CONFIG_HOME or ~/.config";
        |value| Some(value.map(str::to_owned)), "the name of a file";
    /// The checks that cost time.
    check: Checks = "SHMEM_CHECK", &[], Some("0");
        "1: also make checks that cost time: that all PEs of a team or an active set are in the same collective with the same \
         arguments, that arrays of a collective do not overlap, that the rules of private contexts and thread levels are \
         followed, and that no access goes beyond a block of the symmetric heap; races: also look for accesses that nothing orders \
         (share/doc/rushmem/races.md); 0: do not; it must be the same on all PEs";
        |value| Checks::parse(value?), "0, 1 or races";
    /// The file to which found races are appended; `None` for no file.
    races_json: Option<String> = "SHMEM_RACES_JSON", &[], None;
        "a file to which each race that SHMEM_CHECK=races finds is appended as a line of JSON";
        |value| Some(value.map(str::to_owned)), "the name of a file";
    /// The file that lists races that are not reported; `None` if all are reported.
    races_suppressions: Option<String> = "SHMEM_RACES_SUPPRESSIONS", &[], None;
        "a file whose lines function:NAME and object:NAME say which races SHMEM_CHECK=races does not report: those with an access in \
         this function, or to this variable";
        |value| Some(value.map(str::to_owned)), "the name of a file";
    /// The exit status of a PE that would end with 0 although a race was found.
    races_status: u8 = "SHMEM_RACES_STATUS", &[], Some("66");
        "the exit status of PEs that would end with 0 although SHMEM_CHECK=races has found a race";
        |value| value?.parse().ok(), "a number from 0 to 255";
    /// Whether operations are counted, and where the counters are printed.
    statistics: Statistics = "SHMEM_STATS", &[], Some("0");
        "1: count operations, bytes and the time in calls that wait, and print at the last finalize, to standard error of PE 0, a \
         table with the minimum, the median and the maximum of all PEs; json:FILE: write the counters of every PE, by context \
         and by target, to this file instead; 0: do not count; it must be set on all PEs or on none";
        |value| Statistics::parse(value?), "0, 1, or json: and the name of a file";
    /// The directory for the trace; `None` for no trace.
    trace: Option<String> = "SHMEM_TRACE", &[], None;
        "a directory, made if it is absent, into which each PE records its calls and accesses, and PE 0, at the last finalize, the trace of the job as \
         trace.json, which Perfetto opens; what a PE has recorded survives it: shmem-info trace makes the trace of a job that \
         has died; it must be set on all PEs or on none";
        |value| Some(value.map(str::to_owned)), "the name of a directory";
    /// Bytes of the trace of a PE.
    trace_size: u64 = "SHMEM_TRACE_SIZE", &[], Some("8MiB");
        "bytes of the trace of each PE with SHMEM_TRACE, 64 for each call or access; later records replace the oldest ones";
        |value| size(value?).filter(|&nbytes| nbytes <= 1 << 40), "a number of bytes of at most 1t, such as 8m";
    /// Bytes of the symmetric heap.
    symmetric_size: u64 = "SHMEM_SYMMETRIC_SIZE", &["SMA_SYMMETRIC_SIZE"], Some("512MiB");
        "bytes of the symmetric heap of each PE, a floating-point number that one of the suffixes k, m, g, t may follow; memory \
         is taken when it is first touched";
        |value| size(value?), "a non-negative number of bytes, such as 512m, 1.5G or 65536";
    /// The pages of symmetric memory.
    huge_pages: HugePages = "SHMEM_HUGE_PAGES", &[], Some("auto");
        "huge pages for symmetric memory, the same on all PEs: auto (for blocks of 64 MiB and more, if the kernel has them at once), \
         on (for every block of 2 MiB and more, and static data, also if the kernel must make room), off, or 2m or 1g (the heap \
         consists of pages of this size that the administrator has reserved)";
        |value| match value? {
            "auto" => Some(HugePages::Auto),
            "on" => Some(HugePages::On),
            "off" => Some(HugePages::Off),
            "2m" => Some(HugePages::Reserved(PageSize::Mib2)),
            "1g" => Some(HugePages::Reserved(PageSize::Gib1)),
            _ => None,
        }, "auto, on, off, 2m or 1g";
    /// True if PEs of a node map each other's memory.
    onnode: bool = "SHMEM_ONNODE", &[], Some("on");
        "on: PEs of one machine reach each other's memory directly; off: they use a transport; it must be the same on all PEs";
        |value| on_or_off(value?), "on or off";
    /// The division of one machine into nodes.
    virtual_nodes: VirtualNodes = "SHMEM_VIRTUAL_NODES", &[], None;
        "split one machine into nodes that share no memory with each other: the number of nodes, or the PEs of each, such as \
         1+2+3; by default it is one node; it must be the same on all PEs";
        |value| value.map_or(Some(VirtualNodes::No), VirtualNodes::parse),
        "a number of nodes, or the PEs of each node such as 1+2+3";
    /// True if every context is in a session of small operations.
    aggregate: bool = "SHMEM_AGGREGATE", &[], Some("off");
        "on: every context is in a session with SHMEM_CTX_SESSION_BATCH (shmem_ctx_session_start), so that small operations over \
         a network travel in large messages, one to each node; off: only while the program says so";
        |value| on_or_off(value?), "on or off";
    /// The name of the transport; `None` for the best one that is available.
    transport: Option<String> = "SHMEM_TRANSPORT", &[], Some("auto");
        "the transport between PEs that share no memory: auto, tcp, ucx or ofi";
        |value| Some(value.filter(|value| *value != "auto").map(str::to_owned)), "auto, tcp, ucx or ofi";
    /// The executor of atomic operations in jobs on several nodes; `None` for the network if its
    /// hardware does, otherwise software.
    amos: Option<Amos> = "SHMEM_AMOS", &["SHMEM_UCX_AMOS", "SHMEM_OFI_AMOS"], Some("auto");
        "who carries out atomic operations of jobs on several nodes, the same on all PEs: software (the target's CPU), network, or \
         auto (the network if its hardware does, otherwise software); the older names have the values software and network";
        |value| match value? {
            "auto" => Some(None),
            name => Amos::named(name).map(Some),
        }, "auto, software or network";
    /// The NIC that this PE should prefer.
    nic: NicPreference = rushmem_topology::NIC_VARIABLE, &[], None;
        "the NIC that a PE should prefer, such as mlx5_0:1 or cxi0,hsn0; any leaves the choice to the library of the network; by \
         default the nearest NIC, such that all NICs of a machine serve the same number of PEs";
        |value| match value {
            None => Some(NicPreference::Nearest),
            Some("any") => Some(NicPreference::Any),
            Some(value) => NicName::parse(value).map(NicPreference::Named),
        }, "a NIC such as mlx5_0:1 or cxi0,hsn0 (its name, port and interface), or any";
    /// The protocol by which this PE joins the job.
    bootstrap: Protocol = env::BOOTSTRAP, &[], Some("auto");
        "how to join a job that another launcher started: auto, pmi1, pmi2 or pmix";
        |value| Protocol::parse(value?), Protocol::EXPECTED;
    /// The meeting point of a job that processes form without a launcher: a host and a port, or a
    /// unique id. `None` if no variable gives it.
    job: Option<String> = env::JOB, &[], None;
        "form a job without a launcher: the host and a free port of the process with rank 0, such as node1:5000, the same for all \
         processes, or a unique id that one of them has made";
        |value| Some(value.map(str::to_owned)), "a host and a port, or a unique id";
    /// The rank of this process in a job without a launcher; `None` for that of a scheduler.
    rank: Option<String> = env::RANK, &[], None;
        "with SHMEM_JOB, the rank of this process; by default the one that torchrun (RANK), Flux (FLUX_TASK_RANK), Slurm \
         (SLURM_PROCID) or an Indexed Job of Kubernetes (JOB_COMPLETION_INDEX) has set";
        |value| Some(value.map(str::to_owned)), "a number";
    /// The number of processes of a job without a launcher; `None` if it is not set, so that the
    /// variable of a scheduler gives it.
    size: Option<String> = env::SIZE, &[], None;
        "with SHMEM_JOB, the number of processes; by default the one that torchrun (WORLD_SIZE), Flux (FLUX_JOB_SIZE) or Slurm \
         (SLURM_STEP_NUM_TASKS) has set";
        |value| Some(value.map(str::to_owned)), "a number";
    /// The secret of a job without a launcher, or `@` and the file that holds it; `None` for no
    /// secret.
    job_secret: Option<String> = env::JOB_SECRET, &[], None;
        "with a host and a port in SHMEM_JOB, a text that only the processes of the job know, or @ and the name of a file that \
         holds it";
        |value| Some(value.map(str::to_owned)), "a text, or @ and the name of a file";
    /// The time for which the PEs of a job without a launcher wait for each other at the start.
    join_limit: Duration = unlaunched::LIMIT_VARIABLE, &[], Some(unlaunched::LIMIT_DEFAULT);
        "how long the PEs of a job without a launcher (SHMEM_JOB, or a unique id) wait for those that have not come";
        |value| time_limit::parse(value?), time_limit::EXPECTED;
    /// The time that another host may be silent before the job ends everywhere.
    host_limit: Duration = env::HOST_LIMIT, &[], Some(time_limit::DEFAULT_HOST_LIMIT);
        "how long another host may be silent before the job has ended everywhere";
        |value| time_limit::parse(value?), time_limit::EXPECTED;
    /// The time that a call may wait before the first PE of its node explains why; `None` for no
    /// explanation.
    watchdog: Option<Duration> = "SHMEM_WATCHDOG", &[], Some("off");
        "how long a call may wait, such as 30s or 5m, before the first PE of the machine prints on standard error which PEs of \
         the machine wait for which others; off: it does not";
        |value| match value? {
            "off" => Some(None),
            limit => time_limit::parse(limit).map(Some),
        }, "off, or a time above 0 such as 30s or 5m";
    /// The algorithm of a sync; `None` leaves the choice to the table of algorithms.
    sync_algorithm: Option<SyncAlgorithm> = "SHMEM_SYNC_ALGORITHM", &[], Some("auto");
        "the algorithm of barriers and syncs where it can be used, the same on all PEs: auto, dissemination, binomial, \
         central or two_level";
        |value| forced(value?), "auto, dissemination, binomial, central or two_level";
    /// The algorithm of a broadcast; `None` leaves the choice to the table of algorithms.
    broadcast_algorithm: Option<BroadcastAlgorithm> = "SHMEM_BROADCAST_ALGORITHM", &[], Some("auto");
        "the algorithm of broadcasts where it can be used, the same on all PEs: auto, binomial or scatter_all_gather";
        |value| forced(value?), "auto, binomial or scatter_all_gather";
    /// The algorithm of a reduction; `None` leaves the choice to the table of algorithms.
    reduce_algorithm: Option<AllReduceAlgorithm> = "SHMEM_REDUCE_ALGORITHM", &[], Some("auto");
        "the algorithm of reductions where it can be used, the same on all PEs: auto, recursive_doubling, rabenseifner, \
         ring, direct, central or two_level";
        |value| forced(value?), "auto, recursive_doubling, rabenseifner, ring, direct, central or two_level";
    /// The algorithm of a collect; `None` leaves the choice to the table of algorithms.
    collect_algorithm: Option<AllGatherAlgorithm> = "SHMEM_COLLECT_ALGORITHM", &[], Some("auto");
        "the algorithm of collect and fcollect where it can be used, the same on all PEs: auto, lines, pairwise, bruck, recursive_doubling, ring, neighbor_exchange or central";
        |value| forced(value?), "auto, lines, pairwise, bruck, recursive_doubling, ring, neighbor_exchange or central";
    /// The algorithm of an alltoall; `None` leaves the choice to the table of algorithms.
    alltoall_algorithm: Option<AllToAllAlgorithm> = "SHMEM_ALLTOALL_ALGORITHM", &[], Some("auto");
        "the algorithm of alltoall and alltoalls, and of the offsets of alltoallv, where it can be used, the same on all PEs: auto, lines, pairwise, bruck or central";
        |value| forced(value?), "auto, lines, pairwise, bruck or central";
    /// The algorithm of a scan; `None` leaves the choice to the table of algorithms.
    scan_algorithm: Option<ScanAlgorithm> = "SHMEM_SCAN_ALGORITHM", &[], Some("auto");
        "the algorithm of scans where it can be used, the same on all PEs: auto, recursive_doubling, direct or central";
        |value| forced(value?), "auto, recursive_doubling, direct or central";
    /// The file with rows of the table by which algorithms of collectives are chosen; `None` for
    /// the built-in rows alone.
    coll_tuning: Option<String> = "SHMEM_COLL_TUNING", &[], None;
        "a file that says which algorithm collectives use where, with the same rows on all PEs; what it leaves open is as \
         built in";
        |value| Some(value.map(str::to_owned)), "the name of a file";
}

impl Settings {
    /// Returns the time limits for PEs that meet without a launcher: `SHMEM_JOIN_LIMIT` and
    /// `SHMEM_HOST_LIMIT`.
    pub fn meeting_limits(&self) -> MeetingLimits {
        MeetingLimits {
            join: self.join_limit,
            silence: self.host_limit,
        }
    }

    /// Returns true if arguments and calls are checked.
    pub fn checks(&self) -> bool {
        self.check != Checks::No
    }

    /// Appends rows to `table` for the algorithms that the settings force.
    pub fn force(&self, table: &mut Table) {
        table.force(self.sync_algorithm);
        table.force(self.broadcast_algorithm);
        table.force(self.reduce_algorithm);
        table.force(self.collect_algorithm);
        table.force(self.alltoall_algorithm);
        table.force(self.scan_algorithm);
    }
}

/// Parses the name of an algorithm; `auto` is `Some(None)`.
fn forced<A: Algorithm>(value: &str) -> Option<Option<A>> {
    if value == "auto" {
        Some(None)
    } else {
        A::named(value).map(Some)
    }
}

/// Puts the settings in the files of the site and the user into the environment of this process,
/// unless `oshrun` or a parent of this process has done so. Returns a text for each file or line
/// that does not count, with the reason. A later call does nothing and returns none. `prefix`
/// returns the directory where Rushmem is installed.
pub fn apply_files(prefix: impl Fn() -> Option<PathBuf>) -> Vec<String> {
    static IS_DONE: Once = Once::new();
    let mut mistakes = Vec::new();
    IS_DONE.call_once(|| {
        let defaults = config::defaults(environment, prefix().as_deref());
        mistakes = defaults.mistakes;

        // The last variable only lists the files and lines of the other ones.
        if defaults.variables.len() > 1 {
            for (name, value) in &defaults.variables {
                set_default(name, value);
            }
        }
    });
    mistakes
}

/// Reads the settings of this process. Also checks those of these providers, whether or not the job
/// will use one: a mistake is to be found on a workstation, before the job runs on a cluster.
///
/// # Errors
/// If a variable has a value that it may not have.
pub fn of_this_process(providers: &[Provider]) -> Result<Settings, String> {
    for row in providers.iter().flat_map(|provider| provider.settings) {
        // An empty value counts as not set.
        if let Some(found) = row.find(environment)
            && !is_blank(&found.value)
        {
            (row.check)(&found.value)?;
        }
    }
    read_for(providers, environment)
}

/// Returns a sentence if a setting has a value in this process that it may not have.
pub fn mistake(row: &Setting, providers: &[Provider]) -> Option<String> {
    let found = row.find(environment)?;
    if !is_blank(&found.value)
        && let Err(sentence) = (row.check)(&found.value)
    {
        return Some(sentence);
    }
    read_for(providers, |name| {
        (name == found.name).then(|| found.value.clone())
    })
    .err()
}

/// Reads the settings through `lookup`. Checks that the transport is one of these providers, unless
/// there are none.
fn read_for(
    providers: &[Provider],
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Settings, String> {
    let settings = Settings::read(lookup).map_err(|invalid| invalid.to_string())?;

    let names: Vec<&str> = providers.iter().map(|provider| provider.name).collect();
    if let Some(requested) = settings.transport.as_deref()
        && !names.is_empty()
        && !names.contains(&requested)
    {
        return Err(format!(
            "SHMEM_TRANSPORT is {requested}, but this build has: auto, {}",
            names.join(", ")
        ));
    }
    Ok(settings)
}

/// Returns the end of a message: the file and the line of each setting that it names and that a
/// file has set.
pub fn places_in(message: &str) -> String {
    config::places_in(message, environment)
}

/// Returns the file and the line that have set a variable, if any have.
fn file_and_line_of(name: &str) -> Option<String> {
    let mut values = config::in_environment(environment).into_iter();
    values.find(|one| one.name == name).map(|one| one.place)
}

/// Returns the value of a setting of the runtime or of a provider in this process, and its origin;
/// `None` if it is not set and has no default value. A secret is replaced by a text.
pub fn current(row: &Setting) -> Option<(String, ValueSource)> {
    let by_oshrun = environment(env::SET_BY_OSHRUN).unwrap_or_default();
    let (value, source) = row.now(
        |name| Some(unlaunched::without_secret(name, environment(name)?)),
        &by_oshrun,
    )?;

    // `apply_files` has put the values from files into the environment.
    if let ValueSource::Environment(name) = source
        && let Some(place) = file_and_line_of(name)
    {
        return Some((value, ValueSource::File(name, place)));
    }
    Some((value, source))
}

/// Returns the value of a setting and its origin as text, or `not set`.
pub fn state(row: &Setting) -> String {
    current(row).map_or("not set".to_owned(), |(value, source)| source.of(&value))
}

/// Returns lines for users that name the rank and the number of processes, and the variable that
/// gives each: one of Rushmem or of a scheduler. A value that no variable gives has no line.
pub fn place_in_job() -> Vec<String> {
    let given = unlaunched::given(&environment);

    let mut lines = Vec::new();
    for (what, variable) in [("rank", given.rank), ("number of processes", given.size)] {
        let Some(variable) = variable else {
            continue;
        };

        let mut line = format!("{what} {} from {}", variable.value, variable.name);
        if let Some(scheduler) = variable.scheduler {
            line += &format!(", as {scheduler} sets it");
        }
        lines.push(line);
    }
    lines
}

fn on_or_off(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a parser of the table may fail")]
fn is_set(value: Option<&str>) -> Option<bool> {
    Some(value.is_some())
}

/// The checks that cost time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// No such checks.
    No,
    /// Checks of arguments and calls.
    Calls,
    /// The same checks, and a search for races.
    Races,
}

impl Checks {
    fn parse(text: &str) -> Option<Checks> {
        [Checks::No, Checks::Calls, Checks::Races]
            .into_iter()
            .find(|one| one.to_string() == text)
    }
}

/// Prints the value of the setting.
impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Checks::No => "0",
            Checks::Calls => "1",
            Checks::Races => "races",
        })
    }
}

/// The pages that symmetric memory should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// Huge pages for large blocks.
    Auto,
    /// Huge pages wherever possible.
    On,
    /// Small pages.
    Off,
    /// Huge pages of this size, which the administrator has reserved.
    Reserved(PageSize),
}

impl HugePages {
    /// Returns the size of reserved pages that the heap may use; `None` for [`HugePages::Off`].
    pub fn page_size(self) -> Option<PageSize> {
        match self {
            HugePages::Off => None,
            HugePages::Auto | HugePages::On => Some(PageSize::Mib2),
            HugePages::Reserved(size) => Some(size),
        }
    }
}

/// Prints the value of the setting.
impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HugePages::Auto => "auto",
            HugePages::On => "on",
            HugePages::Off => "off",
            HugePages::Reserved(PageSize::Mib2) => "2m",
            HugePages::Reserved(PageSize::Gib1) => "1g",
        })
    }
}

/// The NIC that a PE should prefer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NicPreference {
    /// The nearest NIC, if the machine has several.
    Nearest,
    /// No preference: the network's library chooses.
    Any,
    /// The NIC of this name.
    Named(NicName),
}

/// The output of the counters of the PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// Nothing is counted.
    No,
    /// A table on standard error of PE 0.
    Table,
    /// The JSON file of this name.
    Json(String),
}

impl Statistics {
    fn parse(text: &str) -> Option<Statistics> {
        match text {
            "0" => Some(Statistics::No),
            "1" => Some(Statistics::Table),
            _ => text
                .strip_prefix("json:")
                .filter(|file| !file.is_empty())
                .map(|file| Statistics::Json(file.to_owned())),
        }
    }
}

/// The division of one machine into nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualNodes {
    /// The machine is one node.
    No,
    /// This number of nodes, whose numbers of PEs differ by at most one.
    Blocks(u32),
    /// A node of each of these numbers of PEs.
    Sizes(Vec<u32>),
}

impl VirtualNodes {
    /// Returns the number of PEs of each node; `None` if `n_pes` PEs cannot be divided so.
    pub fn sizes(&self, n_pes: u32) -> Option<Vec<u32>> {
        match self {
            VirtualNodes::No => Some(vec![n_pes]),
            VirtualNodes::Blocks(n_nodes) => {
                let least = n_pes / n_nodes;
                if least == 0 {
                    return None;
                }

                // The first nodes have one of the remaining PEs each.
                let remaining = n_pes % n_nodes;
                let sizes = (0..*n_nodes).map(|node| least + u32::from(node < remaining));
                Some(sizes.collect())
            }
            VirtualNodes::Sizes(sizes) => {
                let sum: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
                if sum == u64::from(n_pes) {
                    Some(sizes.clone())
                } else {
                    None
                }
            }
        }
    }

    fn parse(text: &str) -> Option<VirtualNodes> {
        let positive = |text: &str| text.parse().ok().filter(|&number: &u32| number > 0);
        if text.contains('+') {
            text.split('+')
                .map(positive)
                .collect::<Option<_>>()
                .map(VirtualNodes::Sizes)
        } else {
            positive(text).map(VirtualNodes::Blocks)
        }
    }
}

/// Prints the value of the setting.
impl fmt::Display for VirtualNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VirtualNodes::No => f.write_str("not set"),
            VirtualNodes::Blocks(n_nodes) => write!(f, "{n_nodes}"),
            VirtualNodes::Sizes(sizes) => {
                let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
                f.write_str(&sizes.join("+"))
            }
        }
    }
}

/// Parses a size in bytes as the standard defines it (OpenSHMEM 1.6, §8): a finite floating-point
/// value that is not negative, in any form that `strtod` accepts, then an optional suffix. Ignores
/// the text behind the suffix. Rounds up to whole bytes. Returns `None` for any other text.
///
/// A product that is a whole number of bytes is exact up to 2^53 bytes.
fn size(text: &str) -> Option<u64> {
    let (value, rest) = leading_number(text.trim_start())?;
    let shift = match rest.bytes().next() {
        None => 0,
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        Some(b't' | b'T') => 40,
        Some(_) => return None,
    };
    let nbytes = value * (1_u64 << shift) as f64;

    // No infinity and no NaN either.
    if (0.0..2_f64.powi(64)).contains(&nbytes) {
        Some(nbytes.ceil() as u64)
    } else {
        None
    }
}

/// Returns the number with which a text starts, if it does, and the text behind it.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let hexadecimal = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"));
    if let Some(found) = hexadecimal.and_then(hexadecimal_number) {
        return Some(found);
    }

    // The longest start of the text that is a number.
    for end in (1..=text.len()).rev() {
        if let Some((number, rest)) = text.split_at_checked(end)
            && let Ok(number) = number.parse()
        {
            return Some((number, rest));
        }
    }
    None
}

/// Returns the hexadecimal number with which a text starts, such as `1.8p20`, and the text behind
/// it; `None` if there is no digit before or behind the point, or more than 64 bits of digits. The
/// prefix `0x` is already removed.
fn hexadecimal_number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
    let (whole, mut rest) = text.split_at(digits(text));
    let mut fraction = "";
    if let Some(behind) = rest.strip_prefix('.') {
        (fraction, rest) = behind.split_at(digits(behind));
    }

    let mut value = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()? as f64;
    value *= 16_f64.powi(-(fraction.len() as i32));

    if let Some(behind) = rest.strip_prefix(['p', 'P']) {
        let sign = usize::from(behind.starts_with(['+', '-']));
        let n_digits = behind[sign..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        let (exponent, behind) = behind.split_at(sign + n_digits);
        if let Ok(exponent) = exponent.parse() {
            return Some((value * 2_f64.powi(exponent), behind));
        }
    }
    Some((value, rest))
}

#[cfg(test)]
mod tests;
