//! The endpoints: each context that has issued an operation over the network has one, and the
//! library has one of its own.
//!
//! One thread at a time uses an endpoint. Every use takes the lock of its entry, with one
//! exception: below `SHMEM_THREAD_MULTIPLE` no two threads of the program are in the library at
//! once, and threads of the library use only the library's endpoint, except for a quiet at an exit
//! while the thread that exits waits for it. So there the endpoint of a context is used without the
//! lock ([`Endpoints::used`]).
//!
//! An entry and its lock exist for the life of the process. So a thread that issues an operation on
//! a destroyed context or a closed network finds no endpoint, and ends the job with a message.
//! Contexts never share an entry: a transport with too few resources shares them behind its
//! endpoints.
#![allow(unsafe_code)]

use crate::access::contexts::{MAX_CONTEXTS, contexts};
use crate::net::network::{self, LIBRARY_CALL};
use rushmem_pe::call::{Call, CallName, call, thread};
use rushmem_pe::job;
use rushmem_pe::job::handle::ContextHandle;
use rushmem_system::lock::lock;
use rushmem_transport::{Endpoint, Error, Pe};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// The endpoints of the PE of this process.
static ENDPOINTS: Endpoints = Endpoints::new();

/// Returns the endpoints of the PE of this process.
#[inline(always)]
pub fn endpoints() -> &'static Endpoints {
    &ENDPOINTS
}

/// The endpoints of a PE. Before the first one, all bytes are zero, so that the entries take no
/// room in the library's file.
pub struct Endpoints {
    /// The entries of the contexts by index, the first that of the default context. Pages of unused
    /// entries are never touched.
    of_contexts: [Entry; MAX_CONTEXTS + 1],
    of_library: Entry,
    /// The largest index of a context that has had an endpoint. Relaxed: a thread that visits all
    /// endpoints has synchronized with the threads whose operations it is to complete.
    last: AtomicUsize,
    /// The last call that used the endpoint of a context or completed all operations, for the
    /// status of a PE that waits in an operation. It is valid only where no two threads are in the
    /// library at once: otherwise the calls of threads could not be distinguished, and all would
    /// write to one cache line. Relaxed: it points to a static value.
    call: AtomicPtr<CallName>,
}

/// The entry of a context, in a cache line of its own.
#[repr(align(64))]
struct Entry {
    /// The handle of the context that has the endpoint, or 0, the handle of no context. A handle is
    /// stored with release order after `endpoint`, and compared with acquire order before its use.
    context: AtomicUsize,
    lock: Mutex<()>,
    /// The endpoint, which the only thread of the program in the library uses, or a thread that has
    /// the lock; `None` if no context has the entry.
    endpoint: UnsafeCell<Option<Box<dyn Endpoint>>>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Entry>() == 64, "more than a cache line");

// SAFETY: the endpoint is `Send`, and one thread at a time uses it: see the head of this file.
unsafe impl Sync for Entry {}

/// The use of an endpoint by one thread, until it is dropped.
pub struct UsedEndpoint<'a> {
    endpoint: &'a mut (dyn Endpoint + 'static),
    /// `None` if no other thread can use the endpoint. Dropped last.
    _guard: Option<MutexGuard<'a, ()>>,
}

impl Deref for UsedEndpoint<'_> {
    type Target = dyn Endpoint;

    #[inline(always)]
    fn deref(&self) -> &(dyn Endpoint + 'static) {
        self.endpoint
    }
}

impl DerefMut for UsedEndpoint<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut (dyn Endpoint + 'static) {
        self.endpoint
    }
}

impl Endpoints {
    /// Returns the table of a PE that has created no endpoint yet.
    const fn new() -> Endpoints {
        Endpoints {
            of_contexts: [const { Entry::new() }; MAX_CONTEXTS + 1],
            of_library: Entry::new(),
            last: AtomicUsize::new(0),
            call: AtomicPtr::new(null_mut()),
        }
    }

    /// Returns the table of a further PE of this process, for tests. Its drop visits no entry,
    /// since that would touch all pages; the endpoints were dropped when the network was closed.
    pub fn boxed() -> Box<ManuallyDrop<Endpoints>> {
        // Not made on the stack, which may have too little room.
        let layout = Layout::new::<ManuallyDrop<Endpoints>>();
        // SAFETY: the size is not 0.
        let zeros = unsafe { alloc_zeroed(layout) }.cast::<ManuallyDrop<Endpoints>>();
        if zeros.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the memory has the layout of the table and was just allocated. Zeros are the
        // table before the first endpoint.
        unsafe { Box::from_raw(zeros) }
    }

    /// Returns the endpoint of a context, which it creates at the first use. Ends the job with an
    /// error if there is no such context, or no network.
    #[inline(always)]
    pub fn of_context(&self, call: Call, ctx: ContextHandle) -> UsedEndpoint<'_> {
        match self.used(call, ctx) {
            Some(endpoint) => endpoint,
            None => self.create(call, ctx),
        }
    }

    /// Returns the endpoint of a context; `None` if it has none: nothing was issued on it yet, or
    /// the context or the network does not exist any more.
    #[inline(always)]
    pub fn used(&self, call: Call, ctx: ContextHandle) -> Option<UsedEndpoint<'_>> {
        debug_assert_ne!(ctx, ContextHandle::INVALID, "callers refuse it");
        let entry = self.of_contexts.get(ctx.index())?;
        if !entry.is_of(ctx) {
            return None;
        }

        if thread::are_at_once() {
            return entry.locked();
        }

        self.set_call(call);
        // SAFETY: no other thread of the program is in the library, and threads of the library do
        // not use the endpoint of a context.
        unsafe { entry.used(None) }
    }

    /// Creates the endpoint of a context, unless another thread was faster, and returns it. Ends
    /// the job with an error if there is no such context, or no network.
    #[cold]
    #[inline(never)]
    fn create(&self, call: Call, ctx: ContextHandle) -> UsedEndpoint<'_> {
        contexts().require_for_network(call, ctx);
        let created = self.add(ctx, || new_endpoint(call));
        network::or_fail(call, created);
        let created = self.used(call, ctx);
        created.unwrap_or_else(|| network::refuse(call))
    }

    /// Gives a context the endpoint that `endpoint` creates, unless it has one.
    fn add(
        &self,
        ctx: ContextHandle,
        endpoint: impl FnOnce() -> Result<Box<dyn Endpoint>, Error>,
    ) -> Result<(), Error> {
        let entry = &self.of_contexts[ctx.index()];
        let _guard = lock(&entry.lock);
        if entry.is_of(ctx) {
            return Ok(());
        }

        let endpoint = endpoint()?;
        // Before the endpoint is used, so that a thread which visits all endpoints finds it.
        self.last.fetch_max(ctx.index(), Relaxed);
        // SAFETY: this thread has the lock, and nothing else uses the endpoint of an entry that is
        // of no context.
        unsafe { *entry.endpoint.get() = Some(endpoint) };
        // Last: a thread that sees the handle uses the endpoint without the lock.
        entry.context.store(ctx.0, Ordering::Release);
        Ok(())
    }

    /// Drops the endpoint of a context whose operations are complete.
    pub fn remove(&self, ctx: ContextHandle) {
        if let Some(entry) = self.of_contexts.get(ctx.index())
            && entry.is_of(ctx)
        {
            drop(entry.take());
        }
    }

    /// Returns the endpoint of the library. Ends the job with an error if the network is closed.
    pub(crate) fn of_library(&self) -> UsedEndpoint<'_> {
        let endpoint = self.of_library.locked();
        endpoint.unwrap_or_else(|| network::refuse(LIBRARY_CALL))
    }

    /// Sets the endpoint of the library.
    pub fn set_of_library(&self, endpoint: Box<dyn Endpoint>) {
        let entry = &self.of_library;
        let _guard = lock(&entry.lock);
        // SAFETY: this thread has the lock, without which no thread uses the endpoint of the
        // library.
        unsafe { *entry.endpoint.get() = Some(endpoint) };
    }

    /// Completes all operations on all endpoints, those on the library's own flags included.
    /// Afterwards this PE waits for no reply of a peer, so the peers may exit.
    pub fn complete(&self, call: Call) {
        self.set_call(call);
        for entry in self.all() {
            let quiet = entry.locked().map(|mut endpoint| endpoint.quiet());
            // An error is reported after the lock is released, so that other threads can report
            // theirs.
            network::or_fail(call, quiet.unwrap_or(Ok(())));
        }
    }

    /// Waits until the sources of the puts on all endpoints may be reused.
    pub fn free_sources(&self, call: Call) {
        self.set_call(call);
        for entry in self.all() {
            let freed = entry
                .locked()
                .map(|mut endpoint| endpoint.free_sources(None));
            network::or_fail(call, freed.unwrap_or(Ok(())));
        }
    }

    /// Returns, for each PE with operations that are not known to be complete, their number on the
    /// endpoint that has most of them. Begins to complete them, but waits for no PE. Returns `None`
    /// if an endpoint has failed, or if other threads may issue operations meanwhile.
    pub(crate) fn in_flight(&self) -> Option<BTreeMap<Pe, u64>> {
        if thread::are_at_once() || thread::request_call().is_some() {
            return None;
        }

        let mut most = BTreeMap::new();
        for entry in self.all() {
            let Some(mut endpoint) = entry.locked() else {
                continue;
            };
            // An error is left to the next verb, which reports it.
            for (pe, n) in endpoint.in_flight().ok()? {
                // Endpoints may share a counter of the provider, so the numbers are not added.
                let known = most.entry(pe).or_insert(0);
                *known = n.max(*known);
            }
        }
        Some(most)
    }

    /// Drops all endpoints, whose operations are complete.
    pub(crate) fn clear(&self) {
        self.all().for_each(|entry| drop(entry.take()));
    }

    /// Returns the entries that may have an endpoint, the library's last.
    fn all(&self) -> impl Iterator<Item = &Entry> {
        let of_contexts = &self.of_contexts[..=self.last.load(Relaxed)];
        of_contexts.iter().chain([&self.of_library])
    }

    /// Records the call that is about to use the network: one store.
    #[inline(always)]
    pub fn set_call(&self, call: Call) {
        self.call.store(from_ref(call.0).cast_mut(), Relaxed);
    }

    /// Returns the call that uses the network, for a thread that waits in it.
    pub(crate) fn current_call(&self) -> Call {
        if let Some(call) = thread::request_call() {
            return call;
        }
        // SAFETY: the pointer is null or made of a `&'static CallName` in `set_call`.
        let call = unsafe { self.call.load(Relaxed).cast_const().as_ref() };
        match call {
            Some(call) if !thread::are_at_once() => Call(call),
            _ => call!("an operation over the network"),
        }
    }
}

/// Creates an endpoint for a context; with `SHMEM_AGGREGATE` also begins a session on it. Ends the
/// job with an error if there is no transport.
///
/// # Errors
/// If the transport has no more endpoints.
fn new_endpoint(call: Call) -> Result<Box<dyn Endpoint>, Error> {
    let mut endpoint = network::of_process().new_endpoint(call)?;
    if job::require(call).settings.aggregate {
        endpoint.session(true)?;
    }
    Ok(endpoint)
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            context: AtomicUsize::new(0),
            lock: Mutex::new(()),
            endpoint: UnsafeCell::new(None),
        }
    }

    /// Returns true if it has the endpoint of this context.
    #[inline(always)]
    fn is_of(&self, ctx: ContextHandle) -> bool {
        self.context.load(Ordering::Acquire) == ctx.0
    }

    /// Returns the endpoint of this entry.
    ///
    /// # Safety
    /// `guard` is the guard of this entry's lock, or no other thread uses the endpoint meanwhile.
    #[inline(always)]
    unsafe fn used<'a>(&'a self, guard: Option<MutexGuard<'a, ()>>) -> Option<UsedEndpoint<'a>> {
        // SAFETY: the caller has the lock of the entry or is its only user, so no other thread has
        // a reference to the endpoint. The guard, which the result owns, excludes others as long.
        let endpoint = unsafe { &mut *self.endpoint.get() }.as_deref_mut()?;
        Some(UsedEndpoint {
            endpoint,
            _guard: guard,
        })
    }

    /// Takes the lock of this entry and returns its endpoint; `None` if no context has it.
    #[inline(never)]
    fn locked(&self) -> Option<UsedEndpoint<'_>> {
        let guard = lock(&self.lock);
        // SAFETY: the guard is that of this entry.
        unsafe { self.used(Some(guard)) }
    }

    /// Takes the endpoint from its context; `None` if there is none. Dropping the endpoint
    /// completes its operations, which may take long, so the caller drops it after the lock is
    /// released.
    fn take(&self) -> Option<Box<dyn Endpoint>> {
        let _guard = lock(&self.lock);
        // Release: a thread that finds no endpoint at the exit sees that the job has ended, which
        // its message says.
        self.context.store(0, Ordering::Release);
        // SAFETY: the lock excludes threads that take it. Where a thread of the program uses the
        // endpoint without the lock, it is the only one in the library, so it is this thread.
        unsafe { &mut *self.endpoint.get() }.take()
    }
}

#[cfg(test)]
mod tests;
