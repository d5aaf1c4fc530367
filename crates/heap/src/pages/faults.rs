//! Lets stores to pages wait by faults, where the kernel refuses `userfaultfd`: the pages are made
//! read-only, and the handler of the fault yields and returns, so that the store is tried again,
//! until the pages have been replaced by writable ones.
//!
//! A thread may have faulted before the pages were replaced and call the handler after that, so the
//! handler stays installed, and also returns if the kernel can write to the address now. Any other
//! fault goes to the handler that was installed before.
#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::mm::{MprotectFlags, mprotect};
use std::ops::Range;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The pages that are read-only. They change under the lock of [`ReadOnly`].
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// The action that was installed before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// The last fault, and how often it was tried again: one that is not a store would be forever.
static LAST: AtomicUsize = AtomicUsize::new(0);
static TRIED: AtomicUsize = AtomicUsize::new(0);
const MOST: usize = 1_000_000;

/// `SEGV_ACCERR`: the page is mapped, but not for this kind of access.
const NOT_PERMITTED: libc::c_int = 2;

/// Pages that are read-only, one range at a time.
pub(super) struct ReadOnly {
    pages: Range<usize>,
    _alone: MutexGuard<'static, ()>,
}

impl ReadOnly {
    /// Makes pages read-only.
    ///
    /// # Errors
    /// When the program has replaced the handler of faults, or the kernel refuses.
    pub(super) fn make(pages: &Range<usize>) -> Result<ReadOnly, Errno> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        install()?;

        // Before the first store can fault.
        START.store(pages.start, SeqCst);
        END.store(pages.end, SeqCst);
        protect(pages, MprotectFlags::READ)?;
        Ok(ReadOnly {
            pages: pages.clone(),
            _alone: alone,
        })
    }

    /// Lets the stores go on, after the pages were replaced by writable ones if `are_replaced`.
    pub(super) fn end(self, are_replaced: bool) {
        if !are_replaced {
            // If the kernel refuses what it has allowed before, the stores fault without end, and
            // the handler gives up.
            let _ = protect(&self.pages, MprotectFlags::READ | MprotectFlags::WRITE);
        }
        END.store(0, SeqCst);
    }
}

fn protect(pages: &Range<usize>, flags: MprotectFlags) -> Result<(), Errno> {
    let start = with_exposed_provenance_mut(pages.start);
    // SAFETY: pages of the program, whose stores wait while they are read-only.
    unsafe { mprotect(start, pages.len(), flags) }
}

/// Installs the handler, unless it is installed.
fn install() -> Result<(), Errno> {
    let mut action = current();
    if action.sa_sigaction == handler as *const () as usize {
        return Ok(());
    }
    if BEFORE.get().is_some() {
        // The program has installed another one since.
        return Err(Errno::PERM);
    }
    BEFORE.get_or_init(|| action);

    // With the mask and the stack of the handler before, which it may call.
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = action.sa_flags & libc::SA_NODEFER | libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: a valid action, whose handler exists as long as the process.
    unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, null_mut()) };
    Ok(())
}

fn current() -> libc::sigaction {
    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action, the call only writes the present one.
    unsafe { libc::sigaction(libc::SIGSEGV, null(), &raw mut action) };
    action
}

extern "C" fn handler(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure.
    let fault = unsafe { *info };
    let code = fault.si_code;
    // SAFETY: the signal is one of a fault, which has an address.
    let address = unsafe { fault.si_addr() }.addr();

    let times = if LAST.swap(address, SeqCst) == address {
        TRIED.fetch_add(1, SeqCst)
    } else {
        TRIED.store(0, SeqCst);
        0
    };
    let waits = address >= START.load(SeqCst) && address < END.load(SeqCst);
    if code == NOT_PERMITTED && times < MOST && (waits || is_writable(address)) {
        // SAFETY: it has no preconditions.
        unsafe { libc::sched_yield() };
        return;
    }
    pass_on(signal, info, context);
}

/// Returns true if this process can write to an address: adds 0 to the word there.
fn is_writable(address: usize) -> bool {
    let add_nothing = libc::FUTEX_OP(libc::FUTEX_OP_ADD, 0, libc::FUTEX_OP_CMP_EQ, 0);
    let none = AtomicU32::new(0);
    let word = with_exposed_provenance_mut::<u32>(address & !3);
    let operation = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel checks the address, and an addition of 0 changes nothing.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            none.as_ptr(),
            operation,
            0,
            0usize,
            word,
            add_nothing,
        )
    };
    woken >= 0
}

/// Passes a fault on to the handler that was installed before.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(before) = BEFORE.get() else { return };
    if before.sa_sigaction == libc::SIG_DFL || before.sa_sigaction == libc::SIG_IGN {
        // The fault repeats without a handler.
        // SAFETY: an action that was installed.
        unsafe { libc::sigaction(signal, before, null_mut()) };
        return;
    }

    let function = std::ptr::with_exposed_provenance::<()>(before.sa_sigaction);
    if before.sa_flags & libc::SA_SIGINFO == 0 {
        // SAFETY: an action without the flag has a function of this type.
        let handle: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(function) };
        return handle(signal);
    }
    // SAFETY: an action with the flag has a function of this type.
    let handle: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
        unsafe { std::mem::transmute(function) };
    handle(signal, info, context);
}
