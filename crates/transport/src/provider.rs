//! How a provider is found, what it is told when it is opened, and what it gives to a process.
//!
//! What a provider can do it says in [`Caps`], and it never claims what it did not probe.
#![allow(unsafe_code)]

use crate::{Endpoint, Error, Key, Nic, Pe, Segment, Setting};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How the runtime learns of a provider: one entry in `providers::ALL`.
pub struct Provider {
    /// Name as in `SHMEM_TRANSPORT`.
    pub name: &'static str,
    /// What it asks its [`Host`] for.
    pub settings: &'static [Setting],
    /// Whether it opens shared libraries, which a statically linked program cannot.
    pub opens_libraries: bool,
    /// Whether `SHMEM_TRANSPORT=auto` may choose it where no RDMA device is behind it.
    pub without_rdma: bool,
    /// What this machine has of it, as the environment that the host tells of leaves it. Cheap and silent;
    /// it opens libraries, but no devices where [`device::active`](crate::device::active) finds none.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying what is missing.
    pub available: fn(&dyn Host) -> Result<Found, Error>,
    /// Makes the provider's transport for this process.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying what is missing.
    pub open: fn(&Open) -> Result<Box<dyn Transport>, Error>,
}

/// What a machine has of a provider. Its text is one line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Hardware is behind it that reads and writes a target's memory without the target's CPU.
    pub rdma: bool,
    /// What it is, in one line, such as `UCX 1.13.1: rc_mlx5 on mlx5_0:1`.
    pub description: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

/// What a provider is told when it is opened.
#[derive(Clone)]
pub struct Open {
    /// This PE.
    pub pe: Pe,
    /// How many PEs the job has.
    pub n_pes: u32,
    /// The job's secret, the same on all PEs and known to nobody else.
    pub secret: [u8; 32],
    /// All PEs run on this machine, so that nothing needs to be reachable from outside.
    pub one_machine: bool,
    /// PEs outnumber the usable CPUs: waiting must not spin.
    pub oversubscribed: bool,
    /// Whom to ask and to tell.
    pub host: Arc<dyn Host>,
}

/// What a provider asks of, and tells to, whoever opened it. Any thread may call, at any time while
/// the transport lives; an implementation must not call back into the transport and must not block.
pub trait Host: Send + Sync {
    /// The value of an environment variable of the provider's own.
    fn variable(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// The NIC of this machine that the PE should prefer where there are several: near it, and shared with no
    /// more PEs than need be. `None` where there is no choice, or where the user leaves it to the provider (`SHMEM_NIC=any`).
    fn nic(&self) -> Option<Nic> {
        None
    }

    /// How long another host may be silent before the job has ended (`SHMEM_HOST_LIMIT`): a transport that notices
    /// silence says so within three fifths of it, and leaves the rest to whoever ends the job.
    fn host_limit(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Operations of peers changed this PE's memory by software in this process.
    fn arrived(&self) {}

    /// A PE was lost; every verb fails from now on. Called once.
    fn lost(&self, error: &Error) {
        let _ = error;
    }

    /// This process cannot go on, not even after an error: the network uses memory that it was to let go of. Ends the process
    /// at once with this message.
    fn cannot_go_on(&self, why: &str) -> ! {
        eprintln!("{why}");
        std::process::abort()
    }
}

/// What a transport can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Its atomic operations are carried out by the target's CPU, or coherently with it, so that they
    /// compose with the on-node ones on one word.
    pub amos_compose_with_cpu: bool,
    /// It looks at what the kernel shows of the process's first thread, which must not end as long as it is open.
    pub needs_first_thread: bool,
}

/// A network as one process sees it. Dropping it ends what it does; endpoints are dropped before.
pub trait Transport: Send + Sync {
    /// What it can do.
    fn caps(&self) -> Caps;

    /// Makes a segment of this PE reachable; the key goes to every peer that connects.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `nbytes` bytes until the transport is dropped.
    ///
    /// # Errors
    /// When the network refuses the memory.
    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error>;

    /// This PE's address, to be given to the peers.
    fn address(&self) -> Vec<u8>;

    /// Learns how to reach `pe`. Does not wait for it.
    ///
    /// # Errors
    /// When there is no path to it.
    fn connect(&mut self, pe: Pe, address: &[u8], keys: &[(Segment, Key)]) -> Result<(), Error>;

    /// A new endpoint, one per context. One thread at a time uses it.
    ///
    /// # Errors
    /// When the network has no more; the caller then shares one.
    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error>;

    /// Lets the network work, for this process and for peers that use its memory; sends what any
    /// endpoint held back. Never blocks. Returns whether there was work for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    fn progress(&self) -> Result<bool, Error>;

    /// As [`progress`](Transport::progress), and when there was nothing to do sleep until there may
    /// be, but not longer than `at_most`.
    ///
    /// # Errors
    /// When a PE was lost.
    fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        let worked = self.progress()?;
        if !worked {
            std::thread::sleep(at_most);
        }
        Ok(worked)
    }

    /// The caller, who let this transport progress so far, sleeps elsewhere from now on: whatever
    /// progresses by itself takes over at once.
    fn hand_over(&self) {}
}
