//! The job, as this process knows it once the library is initialized.
//!
//! The first init creates it, and it lives as long as the process, since the library can be
//! finalized and initialized again. Accesses on the fast path do not use it. Higher layers own the
//! state that they keep for a job.
#![allow(unsafe_code)]

pub mod handle;
pub mod members;
pub mod mpi;
pub mod permission;

use crate::call::{Call, fail};
use crate::memory::address::AddressMap;
use crate::memory::images::Images;
use crate::process::{inits, is_child};
use crate::settings::Settings;
use core::ffi::c_int;
use rushmem_bootstrap::{Membership, NodeMap};
use rushmem_collectives::choice::Table;
use rushmem_heap::{Allocator, NodeMemory};
use rushmem_system::lock::lock;
use rushmem_transport::{Pe, Segment};
use std::ptr::from_ref;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The job, as one PE sees it.
pub struct Job {
    /// This PE.
    pub me: Pe,
    /// The number of PEs.
    pub n_pes: u32,
    /// The nodes: the groups of PEs that share memory.
    pub nodes: NodeMap,
    /// True if some PE of the job shares its heap with others, but not its static data.
    pub has_statics_apart: bool,
    /// True if some memory of a PE is not mapped on another one, so that the job has a transport.
    pub needs_transport: bool,
    /// True if no other PE shares memory with this one.
    pub is_alone_on_node: bool,
    /// How this PE finds the copies of its symmetric bytes on the PEs of its node.
    pub map: &'static AddressMap,
    /// The images of the heap and of the static data.
    pub images: [&'static Images; 2],
    /// The symmetric memory of the PEs of this machine.
    pub memory: &'static NodeMemory,
    /// The allocator of the heap, while the library is initialized.
    pub allocator: Mutex<Option<Allocator>>,
    /// The number of CPUs for each PE of this machine; 0 if PEs outnumber the usable CPUs.
    pub cpus_per_pe: u32,
    /// True if the PEs of this machine outnumber the CPUs that they may use.
    pub is_oversubscribed: bool,
    /// True if PEs outnumber the usable CPUs on some machine of the job. It is equal on all PEs, so
    /// the choice of algorithms may depend on it.
    pub is_oversubscribed_somewhere: bool,
    /// True if the symmetric heap has the same address on all PEs.
    pub has_equal_heap_addresses: bool,
    /// True if all PEs run the same build of the program, so that its constants are equal.
    pub has_equal_constants: bool,
    /// The thread level that the library provides.
    pub thread_level: c_int,
    /// True if several threads of some PE may be in the library at once. It is equal on all PEs.
    pub has_threads_somewhere: bool,
    /// The settings of this PE.
    pub settings: Settings,
    /// The table by which algorithms of collectives are chosen.
    pub algorithms: CurrentTable,
    /// A secret that only the PEs of this job know.
    pub secret: [u8; 32],
    /// True if all PEs reach each other over loopback.
    pub is_on_one_stack: bool,
    /// The membership of this PE, by which it reaches its launcher.
    pub membership: Mutex<Membership>,
}

impl Job {
    /// Returns the images of the heap or of the static data.
    pub(crate) fn images(&self, segment: Segment) -> &'static Images {
        self.images[usize::from(segment == Segment::Static)]
    }

    /// Locks the allocator, which exists while the library is initialized.
    pub fn allocator(&self) -> MutexGuard<'_, Option<Allocator>> {
        lock(&self.allocator)
    }

    /// Locks the membership.
    pub fn membership(&self) -> MutexGuard<'_, Membership> {
        lock(&self.membership)
    }
}

/// The job of the PE of this process, for the exported calls and for handlers.
static JOB: OnceLock<&'static Job> = OnceLock::new();

/// Returns the job. Ends it with an error if the library is not initialized.
#[inline]
pub fn require(call: Call) -> &'static Job {
    match JOB.get() {
        Some(job) if inits() > 0 => job,
        _ => not_initialized(call),
    }
}

/// Ends the job with an error: the library is not initialized.
#[cold]
pub fn not_initialized(call: Call) -> ! {
    match JOB.get() {
        _ if is_child() => refuse_child(call),
        None => fail!(call, "called before shmem_init; call shmem_init first"),
        Some(_) => fail!(
            call,
            "called after the last shmem_finalize; call shmem_finalize last"
        ),
    }
}

/// Returns the job, also in a child process, for calls that only query the number of this PE or of
/// all PEs. Ends the job with an error before the first init and after the last finalize.
#[inline]
pub fn require_or_inherited(call: Call) -> &'static Job {
    match JOB.get() {
        Some(job) if inits() > 0 => job,
        _ => inherited(call),
    }
}

#[cold]
fn inherited(call: Call) -> &'static Job {
    match JOB.get() {
        Some(job) if is_child() => job,
        _ => not_initialized(call),
    }
}

/// Ends a child process that has called the library; the job goes on.
#[cold]
pub fn refuse_child(call: Call) -> ! {
    fail!(
        call,
        "only the process that called {} may call the library, not a process that it forked",
        call.words("shmem_init", "shmem::init")
    )
}

/// Returns the job. Ends it with an error if it has no world PE `pe`. The message calls the number
/// by `argument`, the name that it has in the call.
pub fn require_pe(call: Call, argument: &str, pe: c_int) -> &'static Job {
    let job = require(call);
    if pe < 0 || pe as u32 >= job.n_pes {
        let pe = call.written(pe);
        let last = job.n_pes - 1;
        fail!(
            call,
            "argument {argument}: PE {pe}, but PEs are numbered 0 to {last}"
        );
    }
    job
}

/// Returns the job once the first init has joined it, also after the last finalize.
#[inline]
pub fn known() -> Option<&'static Job> {
    JOB.get().copied()
}

/// Sets the job of the PE of this process, in the first init.
pub fn set(job: &'static Job) {
    // This cannot fail: only the first init joins the job.
    let _ = JOB.set(job);
}

/// The table by which algorithms of collectives are chosen. Every collective reads it, so it has a
/// pointer instead of a lock. Only a program that measures algorithms replaces it. Release and
/// acquire order of the pointer make the contents of a table visible to the thread that reads it.
#[derive(Debug)]
pub struct CurrentTable(AtomicPtr<Table>);

impl CurrentTable {
    /// Begins with this table.
    pub fn new(table: &'static Table) -> CurrentTable {
        CurrentTable(AtomicPtr::new(from_ref(table).cast_mut()))
    }

    /// Returns the table that applies now.
    #[inline]
    pub fn table(&self) -> &'static Table {
        // SAFETY: the pointer is made of a `&'static Table`, in `new` or `replace`.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Sets another table and returns the former one.
    pub fn replace(&self, table: &'static Table) -> &'static Table {
        let former = self.table();
        self.0.store(from_ref(table).cast_mut(), Ordering::Release);
        former
    }
}
