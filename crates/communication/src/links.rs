//! What one PE communicates with: its job, the internal areas that it reaches, its mailboxes, the
//! numbers of its messages, and its status. A PE is a value; the one of this process is found by
//! [`of_process`], for the exported calls, for handlers and for the transport, which calls back.

use crate::access::endpoints::Endpoints;
use crate::net::flags::FlagArea;
use crate::net::network::Network;
use crate::status::content::StatusContent;
use crate::sync::lock_turns::LockTurns;
use crate::sync::mailbox::state::Mailboxes;
use crate::sync::team_signals::counts::PairCounts;
use crate::sync::word_tasks::registry::Registry;
use rushmem_pe::call::Call;
use rushmem_pe::job::{self, Job};
use rushmem_pe::memory::areas::RECEIVE_BUFFER_SETS;
use rushmem_system::thread::spawn_service;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::{fmt, io};

/// The links of a PE to the others of its job.
pub struct Links {
    /// The job, as this PE sees it.
    pub job: Job,
    /// The internal areas, as this PE reaches them.
    pub area: FlagArea,
    /// The network.
    pub network: &'static Network,
    /// The endpoints of the network.
    pub endpoints: &'static Endpoints,
    /// The mailboxes of this PE.
    pub(crate) mailboxes: Mailboxes,
    /// The numbers of messages between this PE and each other one.
    pub(crate) pairs: Box<[PairCounts]>,
    /// For each set of receive buffers, the number of collectives among all PEs that have used it.
    pub(crate) collectives_of_job: [AtomicUsize; RECEIVE_BUFFER_SETS],
    /// The locks that threads of this PE use.
    pub lock_turns: LockTurns,
    /// The tasks that wait for words of this PE.
    pub(crate) word_tasks: Registry,
    /// The status of this PE.
    pub(crate) status: Mutex<StatusContent>,
    /// One for each thread of the library that uses this PE, and one of the PE. A test ends a PE
    /// when it has the only one.
    pub threads: Arc<()>,
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the links of PE {}", self.job.me)
    }
}

impl Links {
    /// Returns the links of a PE that has communicated with no other one yet.
    pub fn new(job: Job, area: FlagArea, network: &'static Network) -> Links {
        let pairs = (0..job.n_pes).map(|_| PairCounts::default()).collect();
        Links {
            job,
            network,
            endpoints: area.endpoints(),
            area,
            mailboxes: Mailboxes::default(),
            pairs,
            collectives_of_job: [const { AtomicUsize::new(0) }; RECEIVE_BUFFER_SETS],
            lock_turns: LockTurns::new(),
            word_tasks: Registry::default(),
            status: Mutex::new(StatusContent::new()),
            threads: Arc::default(),
        }
    }

    /// Closes the network, after all PEs have completed their operations.
    pub fn close_network(&self) {
        self.network.refuse_calls();
        self.endpoints.clear();
        self.network.drop_transport();
    }

    /// Starts a thread of the library that uses this PE.
    ///
    /// # Errors
    /// When the kernel refuses a thread.
    pub fn spawn_service(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let counted = Arc::clone(&self.threads);
        spawn_service(name, move || {
            body();
            drop(counted);
        })
    }

    /// Returns true if every change that a peer makes to this PE's memory rings the doorbell: a
    /// network is open that does so, and no other PE is on the node.
    pub(crate) fn rings_always(&self) -> bool {
        self.network.is_open() && self.network.wakes_waits() && self.job.is_alone_on_node
    }
}

static LINKS: OnceLock<&'static Links> = OnceLock::new();

/// Sets the links of the PE of this process, in the first init.
pub fn set(links: &'static Links) {
    // This cannot fail: only the first init joins the job.
    let _ = LINKS.set(links);
    job::set(&links.job);
}

/// Returns the links of the PE of this process, which exist from the first init on.
#[inline]
pub fn of_process() -> &'static Links {
    known().expect("the first init sets them before it communicates")
}

/// Returns the links of the PE of this process once the first init has set them.
#[inline]
pub fn known() -> Option<&'static Links> {
    LINKS.get().copied()
}

/// Returns the links of the PE of this process. Ends the job with an error if the library is not
/// initialized.
#[inline]
pub fn require(call: Call) -> &'static Links {
    job::require(call);
    of_process()
}
