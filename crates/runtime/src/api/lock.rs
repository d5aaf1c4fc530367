//! Distributed locks (OpenSHMEM 1.6, §9.13): the queue of Mellor-Crummey and Scott, in one word per
//! PE.
//!
//! J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on shared-memory
//! multiprocessors. ACM Transactions on Computer Systems 9 (1), 1991. A lock has a word on every
//! PE, with two fields. On the home PE of the lock, one field names the last PE of the queue. The
//! other field is the PE's node in the queue: whether the PE before it has granted the lock, and
//! which PE is next. So PEs get the lock in the order in which they enter the queue, each waits for
//! its own word alone, and a lock of zero is free. `word` has the fields in C's `long` and in
//! Fortran's INTEGER.
//!
//! A PE enters the queue with a node of zero; from then on other PEs only set bits in it. If a
//! network carries out atomic operations, one that returns no old value may take effect at any time
//! before the next quiet. So a PE clears its node by an operation that returns the old value,
//! before it enters the queue. The bits that other PEs set may take effect late, so a PE waits for
//! each of them before it leaves the queue.
//!
//! Threads of one PE share its node: `sync::lock_turns` decides which of them uses it. A PE that
//! would wait for a lock of its own, or clears one that it does not hold, ends the job with an
//! error.
#![allow(unsafe_code)]

mod word;

pub use word::LockWord;

use crate::own_pe::{Caller, OwnPe};
use core::ffi::{c_int, c_long};
use rushmem_communication::access::contexts::DefaultContext;
use rushmem_communication::access::order;
use rushmem_communication::net::polls;
use rushmem_communication::observers::{self, Action, Event};
use rushmem_communication::status::WaitDescription;
use rushmem_communication::status::polled_calls;
use rushmem_communication::sync::lock_turns::{HeldLock, LockTurns, TurnResult};
use rushmem_communication::sync::long_wait::LongWait;
use rushmem_communication::sync::waits;
use rushmem_explain::status::{AwaitedObject, PolledObject};
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::SHMEM_THREAD_MULTIPLE;
use rushmem_pe::job::{Job, permission};
use rushmem_pe::memory::{address, checks, range, symmetric_location};
use rushmem_transport::Pe;
pub(crate) use word::RemoteWord;

/// A lock, as this PE uses it in a call.
struct LockHandle<T> {
    call: Call,
    pe: &'static OwnPe,
    word: *mut T,
    /// The address by which the threads of this PE know the lock, in the heap if it is in a
    /// registered buffer, where the word has two.
    address: usize,
    home: c_int,
}

impl<T: LockWord> LockHandle<T> {
    fn new(pe: &'static OwnPe, call: Call, word: *mut T) -> LockHandle<T> {
        let job = pe.job();
        permission::check(call, job);
        let range = range::symmetric(job, call, "lock", word.cast(), size_of::<T>());
        checks::require_aligned(call, "lock", word.addr(), size_of::<T>());

        if job.n_pes > T::MAX_PES {
            fail!(
                call,
                "a lock of {} bytes serves {} PEs at most, and the job has {}; use a lock of 8 bytes \
                 from C",
                size_of::<T>(),
                T::MAX_PES,
                job.n_pes
            );
        }

        // Locks in consecutive words have different home PEs, so that many locks do not load one
        // PE.
        let home = ((range.offset() / size_of::<T>()) % job.n_pes as usize) as c_int;
        LockHandle {
            call,
            pe,
            word,
            address: range.start().addr(),
            home,
        }
    }

    fn job(&self) -> &'static Job {
        self.pe.job()
    }

    /// Requests the use of this PE's node. If another thread uses the node and `wait` is set, waits
    /// for its turn; threads get their turns in the order of their calls.
    fn take_turn(&self, wait: bool) -> TurnResult {
        let are_threads = self.job().thread_level >= SHMEM_THREAD_MULTIPLE;
        let mut waiting = None;
        self.turns().take(
            self.address,
            size_of::<T>(),
            are_threads,
            wait,
            |passed, seen| {
                waiting
                    .get_or_insert_with(|| LongWait::new(self.pe.links, || self.describe(None)))
                    .sleep(passed, seen)
            },
        )
    }

    /// Returns the locks that the threads of this PE use in turn.
    fn turns(&self) -> &'static LockTurns {
        &self.pe.links.lock_turns
    }

    fn word_on(&self, pe: c_int) -> RemoteWord<T> {
        RemoteWord {
            call: self.call,
            word: self.word,
            pe,
        }
    }

    /// Returns the value by which a field names this PE.
    fn own_field(&self) -> u32 {
        self.job().me.0 + 1
    }

    fn node(&self) -> u32 {
        // SAFETY: the lock was checked to be symmetric and aligned.
        unsafe { T::node(self.word) }
    }

    /// Clears this PE's node, which may have bits from the last time in the queue. No other PE
    /// changes the node while this PE is in no queue.
    fn prepare(&self) {
        if self.node() != 0 {
            // SAFETY: the lock was checked to be symmetric and aligned.
            unsafe { T::clear_node(self.word_on(self.job().me.0 as c_int)) }
        }
    }

    /// Returns the PE behind this one in the queue; `None` if there is none, or it is not known
    /// yet.
    fn next(&self) -> Option<Pe> {
        self.named_pe(self.node() & !T::GRANTED, self.job().me)
    }

    /// Makes this PE the last one of the queue. Returns the former last PE; `None` if the queue was
    /// empty.
    fn enqueue(&self) -> Option<Pe> {
        // SAFETY: the lock was checked to be symmetric and aligned.
        let last = unsafe { T::swap_tail(self.word_on(self.home), self.own_field()) };
        self.named_pe(last, Pe(self.home as u32))
    }

    /// Replaces the field that names the last PE by `to` if it is `from`. Returns the former value.
    fn replace_last(&self, from: u32, to: u32) -> u32 {
        // SAFETY: the lock was checked to be symmetric and aligned.
        unsafe { T::compare_swap_tail(self.word_on(self.home), from, to) }
    }

    /// Takes the lock if it is free; otherwise lets the next thread use this PE's node.
    fn take_if_free(&self) -> bool {
        self.prepare();

        let last = self.replace_last(0, self.own_field());
        let is_free = self.named_pe(last, Pe(self.home as u32)).is_none();
        if is_free {
            self.report_held(true);
        } else {
            self.turns().pass(self.address);
        }
        is_free
    }

    /// Shows observers that the lock was taken or released.
    fn report_held(&self, is_taken: bool) {
        let event = Event::new(self.call, Action::LockHeld(is_taken));
        observers::report(|| {
            // In a registered buffer, all PEs show the place on the home PE.
            let addr = self.word.addr();
            let shown = address::registered_on(addr, size_of::<T>(), self.home).unwrap_or(addr);
            event.with_bytes(std::ptr::without_provenance::<T>(shown), size_of::<T>())
        });
    }

    /// Leaves the queue if this PE is the last one. Returns true if it has left.
    fn leave_if_last(&self) -> bool {
        let last = self.replace_last(self.own_field(), 0);
        if last == self.own_field() {
            return true;
        }
        if self.named_pe(last, Pe(self.home as u32)).is_none() {
            self.fail_damaged(Pe(self.home as u32));
        }
        false
    }

    /// Returns the PE that a field of the word on `pe` names, if any. Ends the job with an error if
    /// the field names this PE, or no PE of the job: no routine stores such a value.
    fn named_pe(&self, field: u32, pe: Pe) -> Option<Pe> {
        let named = field.checked_sub(1).map(Pe)?;
        if named.0 >= self.job().n_pes || named == self.job().me {
            self.fail_damaged(pe);
        }
        Some(named)
    }

    /// Ends the job with an error: the word on `pe` has a value that no routine stores.
    #[cold]
    fn fail_damaged(&self, pe: Pe) -> ! {
        fail!(
            self.call,
            "argument lock: the word of the lock at {:#x} on PE {pe} holds a value that no lock has there: it was not \
             zero before its first use, or was overwritten; set it to zero on all PEs before it is used, and change it \
             by the lock routines alone",
            self.address
        )
    }

    /// Sets bits in the node of another PE, and wakes that PE if it sleeps.
    fn add_to_node(&self, pe: Pe, bits: u32) {
        // SAFETY: the lock was checked to be symmetric and aligned.
        unsafe { T::add_to_node(self.word_on(pe.0 as c_int), bits) };
        self.pe.links.area.ring(pe);
    }

    /// Waits until `ready`, which reads this PE's node, returns true. Other PEs set bits there.
    /// `behind` is the PE before this one in the queue, if it is known.
    fn wait(&self, behind: Option<Pe>, ready: impl FnMut() -> bool) {
        let describe = || self.describe(behind);
        if self.job().map.are_atomics_by_network() {
            // The network sets the bits at any time and rings no doorbell.
            waits::until_seen(self.pe.links, describe, ready);
        } else {
            waits::until_rung(self.pe.links, &[], describe, ready);
        }
    }

    /// Describes a wait for the lock behind another PE of the queue, if that PE is known.
    fn describe(&self, behind: Option<Pe>) -> WaitDescription {
        let lock = symmetric_location::of_word(self.job(), self.word.cast(), size_of::<T>());
        WaitDescription {
            call: self.call,
            subject: AwaitedObject::Lock {
                lock,
                behind: behind.map(|pe| pe.0),
            },
        }
    }

    /// Ends the job with an error if this PE holds the lock at finalization and another PE waits
    /// for it; warns if none does.
    fn report_at_finalize(&self) {
        let call = self.call;
        let address = self.address;
        let remedy = call.words("call shmem_clear_lock first", "drop its guard first");
        match self.next() {
            None => warning!(
                each: "{call}: this PE still holds the lock {}; {remedy}",
                symmetric_location::on_all_pes(address)
            ),
            Some(next) => fail!(
                call,
                "this PE still holds the lock at {address:#x}, for which PE {next} waits; {remedy}"
            ),
        }
    }
}

/// `shmem_set_lock`: waits for the lock and takes it. PEs get the lock in the order of their calls.
///
/// # Safety
/// `lock` was zero on all PEs before its first use.
pub unsafe fn set<T: LockWord>(caller: impl Caller, lock: *mut T) {
    let (pe, call) = caller.enter();
    let _observed =
        observers::call(|| Event::new(call, Action::Lock).with_bytes(lock, size_of::<T>()));
    let lock = LockHandle::new(pe, call, lock);
    if lock.take_turn(true) != TurnResult::Yours {
        fail!(
            call,
            "argument lock: this PE holds the lock already and would wait for itself; {}",
            call.words(
                "call shmem_clear_lock before it is set again",
                "drop its guard before it is taken again"
            )
        );
    }

    lock.prepare();
    if let Some(last) = lock.enqueue() {
        // A turn counts as held from its start on, but this PE has to wait for the lock first.
        lock.turns().set_held(lock.address, false);
        lock.add_to_node(last, lock.own_field());
        lock.wait(Some(last), || lock.node() & T::GRANTED != 0);
        lock.turns().set_held(lock.address, true);
    }
    lock.report_held(true);
}

/// `shmem_test_lock`: takes the lock and returns 0 if it is free, otherwise returns 1.
///
/// # Safety
/// As [`set`].
pub unsafe fn test<T: LockWord>(caller: impl Caller, lock: *mut T) -> c_int {
    let (pe, call) = caller.enter();
    let _observed =
        observers::call(|| Event::new(call, Action::Lock).with_bytes(lock, size_of::<T>()));
    let lock = LockHandle::new(pe, call, lock);

    let is_taken = lock.take_turn(false) == TurnResult::Yours && lock.take_if_free();
    polls::count_test(is_taken);
    polled_calls::count(call, lock.word.addr(), PolledObject::Lock);
    c_int::from(!is_taken)
}

/// `shmem_clear_lock`: completes the operations on the default context and passes the lock on.
///
/// # Safety
/// As [`set`].
pub unsafe fn clear<T: LockWord>(caller: impl Caller, lock: *mut T) {
    let (pe, call) = caller.enter();
    let _observed =
        observers::call(|| Event::new(call, Action::Lock).with_bytes(lock, size_of::<T>()));
    let lock = LockHandle::new(pe, call, lock);
    if !lock.turns().set_held(lock.address, false) {
        fail!(
            call,
            "argument lock: this PE does not hold the lock; clear it where shmem_set_lock or \
             shmem_test_lock took it, and once"
        );
    }

    // Before the lock is passed on, so that the next PE sees what this one has written.
    order::complete_on(pe.links, call, DefaultContext);
    lock.report_held(false);

    if lock.next().is_some() || !lock.leave_if_last() {
        // A PE behind this one has entered the queue, but may not have stored its name here yet.
        lock.wait(None, || lock.next().is_some());
        let next = lock.next().expect("it was just waited for");
        lock.add_to_node(next, T::GRANTED);
    }
    lock.turns().pass(lock.address);
}

/// Reports the locks that this PE still holds at finalization, and forgets all locks.
pub(crate) fn finalize(pe: &'static OwnPe, call: Call) {
    let turns = &pe.links.lock_turns;
    for HeldLock { address, nbytes } in turns.held() {
        if nbytes == size_of::<c_int>() {
            let word = std::ptr::with_exposed_provenance_mut::<c_int>(address);
            LockHandle::new(pe, call, word).report_at_finalize();
        } else {
            let word = std::ptr::with_exposed_provenance_mut::<c_long>(address);
            LockHandle::new(pe, call, word).report_at_finalize();
        }
    }
    turns.forget(0..usize::MAX);
}
