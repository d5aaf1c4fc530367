//! The environment variables that this provider reads, those of UCX that it sets, its limits of
//! polling and sleeping, and its other limits, which tests reduce.

use rushmem_system::descriptors::{PerEndpoint, PerPeer};
use rushmem_system::setting::{self, Setting};
use rushmem_system::thread_sanitizer::ThreadSanitizer;
use rushmem_transport::engine::message::MAX_IN_FLIGHT;
use rushmem_transport::progress::backoff::{UNSIGNALED_SLEEP, WaitLimits};
use rushmem_transport::{Error, Host};
use std::ffi::CStr;
use std::sync::OnceLock;
use std::time::Duration;
use ucx_sys::Ucp;

/// The variable that names UCX's transports.
pub(crate) const TLS: &str = "SHMEM_UCX_TLS";

/// The variable that sets the number of workers.
pub(crate) const WORKERS: &str = "SHMEM_UCX_WORKERS";

/// The settings that a user can change.
pub(crate) const ALL: &[Setting] = &[
    Setting {
        name: TLS,
        old_names: &[],
        default: None,
        meaning: "the transports that UCX may use, unless UCX_TLS says so; by default all but those of shared memory",
        check: Setting::ANY,
    },
    Setting {
        name: WORKERS,
        old_names: &[],
        default: Some("32"),
        meaning: "the largest number of UCX workers by which the contexts of a PE and the library issue; further contexts share them",
        check: |value| setting::positive(WORKERS, value).map(drop),
    },
];

/// UCX's variable that restricts the ports of its sockets, from UCX 1.12 on.
pub(crate) const PORT_RANGE: &str = "UCX_TCP_PORT_RANGE";

/// File descriptors for each peer. Two workers of this PE are connected to the peer's service, two
/// of the peer's to the service of this PE, and two connections go from that service back to them.
pub(crate) const DESCRIPTORS: PerPeer = PerPeer(6);
/// File descriptors of a worker over sockets: its own, and a connection in each direction for each
/// peer.
pub(crate) const OF_WORKER: PerEndpoint = PerEndpoint {
    own: 6,
    per_peer: 2,
};
/// The limit of file descriptors below which the transport does not open, since UCX would crash. It
/// suffices for a small job.
pub(crate) const MIN_DESCRIPTORS: u64 = 128;

/// Returns the message that this PE has no descriptor left.
pub(crate) fn no_descriptors() -> String {
    format!(
        "{}, or set {WORKERS} lower, so that contexts share workers",
        DESCRIPTORS.exhausted_message()
    )
}

/// Maximum number of bytes of a batch: with its headers it fits one segment of UCX.
pub(crate) const BATCH_NBYTES: usize = 4096;
/// Maximum number of bytes of a batch in a session, for which throughput matters and latency does
/// not.
pub(crate) const SESSION_BATCH_NBYTES: usize = 32 << 10;

/// Every event that may end a wait also ends its sleep. Threads that poll more than 10 times within
/// the shortest sleep of the service thread, or a quarter as often in longer ones, count as
/// waiting; others compute and rarely call the library. While threads sleep, calls request no flush
/// by the service thread, since most calls leave operations unfinished.
pub(crate) const LIMITS: WaitLimits = WaitLimits {
    sleep: UNSIGNALED_SLEEP,
    often: Duration::from_micros(20),
    often_oversubscribed: Duration::from_millis(1),
    min_polls: 11,
    max_unpolled: u32::MAX,
    flushes_beside_sleepers: false,
    wakes_service: false,
};

/// Limits of a transport.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Maximum number of transfers and unanswered requests that a worker has in flight, and of its
    /// unacknowledged requests to one PE.
    pub max_in_flight: usize,
    /// Maximum number of workers; further contexts share them.
    pub max_workers: usize,
    /// The time for which UCX may still use memory of callers after a loss. If it does so for
    /// longer, the process ends.
    pub abandon_limit: Duration,
    /// The time for which refused attempts to connect to a PE are repeated.
    pub connect_limit: Duration,
    /// The heap is registered in blocks even if registration does not lock it, for tests.
    pub heap_in_blocks: bool,
    /// Longest sleep of a thread that waits for a word that peers change.
    pub max_sleep: Duration,
}

impl Tuning {
    /// Returns the default limits, changed by the settings of the user and the limit of the host.
    pub(crate) fn of(host: &dyn Host) -> Result<Tuning, Error> {
        let usual = Tuning::default();
        let max_workers = match host.variable(WORKERS) {
            Some(value) => setting::positive(WORKERS, &value).map_err(Error::Unavailable)?,
            None => usual.max_workers,
        };
        // Three fifths: the rest is for ending the job, as for the loss of a silent PE.
        let connect_limit = host.host_limit() * 3 / 5;
        Ok(Tuning {
            max_workers,
            connect_limit,
            ..usual
        })
    }

    /// Returns the maximum number of unacknowledged requests of a worker to one PE.
    pub(crate) fn window(&self) -> u32 {
        u32::try_from(self.max_in_flight).map_or(MAX_IN_FLIGHT, |most| most.min(MAX_IN_FLIGHT))
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            max_in_flight: 1024,
            max_workers: 32,
            abandon_limit: Duration::from_secs(10),
            connect_limit: Duration::from_secs(6),
            heap_in_blocks: false,
            max_sleep: UNSIGNALED_SLEEP,
        }
    }
}

impl Tuning {
    /// Returns limits so small that operations soon have to wait for room, for tests.
    pub fn tiny() -> Tuning {
        Tuning {
            max_in_flight: 2,
            max_workers: 2,
            heap_in_blocks: true,
            ..Tuning::default()
        }
    }
}

/// Defaults for UCX's own variables that the user has not set, as `NAME=value`.
///
/// When it is opened, UCX would install handlers of signals, which belong to the program: of
/// SIGHUP, which would then switch UCX's log on instead of ending the process, and of crashes, for
/// which it would print a backtrace.
const DEFAULTS: [&CStr; 2] = [c"UCX_DEBUG_SIGNO=0", c"UCX_HANDLE_ERRORS=none"];

/// Defaults under ThreadSanitizer, which UCX's hooks of the functions that map memory would crash.
const UNDER_THREAD_SANITIZER: [&CStr; 1] = [c"UCX_MEM_EVENTS=n"];

/// Returns UCX, which the first call opens. UCX reads these defaults when it is loaded.
pub(crate) fn library() -> Result<&'static Ucp, String> {
    static LIBRARY: OnceLock<Result<&'static Ucp, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        setting::set_defaults(&DEFAULTS);
        if ThreadSanitizer::find().is_some() {
            setting::set_defaults(&UNDER_THREAD_SANITIZER);
        }
        ucx_sys::open()
    });
    library.clone()
}
