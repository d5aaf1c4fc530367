//! A crash of the program: prints which signal ends the PE, and in which function, file and line.
//!
//! The handler makes only calls that handlers may make. A copy of the process, made by the system
//! call alone so that no handler of `fork` runs, reads the debug information and prints the
//! message; if it meets a lock that the crash has left held, the limit on its time ends it. The PE
//! then ends by the signal, as it would without a handler. Signals for which the program, or the
//! runtime of its language, has a handler are left to that one. Where several PEs of a node crash,
//! one of them prints the message, and the others wait until it has.
#![allow(unsafe_code)]

use crate::call::location;
use crate::call::warning;
use crate::job::Job;
use crate::process;
use crate::sync::flags;
use core::ffi::{c_int, c_void};
use rushmem_transport::Pe;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::thread::sleep;
use std::time::Duration;

/// The signals of a crash.
const SIGNALS: [c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// Bytes of the stack on which the handler runs, since a crash may be an overflow of the program's.
const STACK: usize = 256 << 10;

/// Seconds that reading the debug information may take.
const LIMIT: u32 = 5;

/// The value of the node's word from which on the message is printed.
const PRINTED: u64 = 1 << 32;

/// The data that the handler needs.
struct Reporter {
    /// The first PE of the node, which has the word that PEs count themselves in.
    first: Pe,
    /// True if `SHMEM_CHECK` is set.
    checks: bool,
}

static REPORTER: OnceLock<Reporter> = OnceLock::new();

/// Installs the handler for those signals that have none, and a stack for it in this thread.
pub(crate) fn install(job: &Job) {
    let first = flags::area().first_of_node(job.n_pes);
    if REPORTER.set(Reporter { first, checks: job.settings.checks() }).is_ok() {
        set_stack();
        SIGNALS.into_iter().filter(|signal| has_no_handler(*signal)).for_each(handle);
    }
}

fn has_no_handler(signal: c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action it only fills in the present one.
    let known = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) } == 0;
    // SAFETY: filled in, and zeros are a value of it, too.
    known && unsafe { now.assume_init() }.sa_sigaction == libc::SIG_DFL
}

fn handle(signal: c_int) {
    // SAFETY: zeros are a value of it: no flags, and an empty set of signals.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = crashed;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: a handler of the form that the flags promise, which makes only calls that handlers
    // may make.
    unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
}

/// Gives this thread a stack for handlers, unless it has one.
fn set_stack() {
    let mut now = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: without a new stack it only fills in the present one.
    let known = unsafe { libc::sigaltstack(std::ptr::null(), now.as_mut_ptr()) } == 0;
    // SAFETY: filled in, and zeros are a value of it, too.
    if !known || unsafe { now.assume_init() }.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory of the system's choice, which stays mapped while the thread lives.
    let memory = unsafe { libc::mmap(null_mut(), STACK, access, kind, -1, 0) };
    if memory != libc::MAP_FAILED {
        let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: STACK };
        // SAFETY: that memory, which nothing else uses.
        unsafe { libc::sigaltstack(&raw const stack, null_mut()) };
    }
}

extern "C" fn crashed(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    // Another thread that crashes meanwhile ends the PE without a message of its own.
    if let Some(reporter) = REPORTER.get().filter(|_| !REPORTED.swap(true, AcqRel)) {
        reporter.report(signal, context);
    }
    // SAFETY: the default action, as it was before.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: the kernel passes a valid one.
    let is_fault = signal != libc::SIGABRT && unsafe { (*info).si_code } > 0;
    // The instruction that faults is executed again. A signal that was sent is sent again.
    if !is_fault {
        // SAFETY: blocked until this handler returns, then it ends the PE.
        unsafe { libc::raise(signal) };
    }
}

impl Reporter {
    /// Prints the message, or waits until another PE has printed it.
    fn report(&self, signal: c_int, context: *mut c_void) {
        let (area, word) = (flags::area(), flags::area().areas().crashes());
        if area.is_first_at(self.first, word) {
            print(signal, context, self.checks);
            area.release(self.first, word, PRINTED);
        }
        for _ in 0..100 * LIMIT {
            if area.flag_of(self.first, word) >= PRINTED {
                break;
            }
            sleep(Duration::from_millis(10));
        }
    }
}

/// Makes a copy of this process print the message, and waits for its end.
fn print(signal: c_int, context: *mut c_void, checks: bool) {
    // SAFETY: as `fork`, without what the C library does besides; its end sends no signal.
    let copy = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    if copy == 0 {
        // SAFETY: the action that ends the copy at its limit.
        unsafe { libc::signal(libc::SIGALRM, libc::SIG_DFL) };
        // SAFETY: sets the limit.
        unsafe { libc::alarm(LIMIT) };
        // SAFETY: the context that the kernel has passed to the handler.
        let place = unsafe { address(context.cast()) }.and_then(location::of_crash);
        let place = place.unwrap_or_else(|| "(compile with -g to see where)".into());
        let name = rushmem_bootstrap::signal_name(signal);
        let check = if checks { "" } else { "set SHMEM_CHECK=1, or " };
        let me = process::pe_for_messages();
        // Cause: an invalid pointer, an array that is too short, a failed assertion, a block that
        // is freed twice. Remedy: the message ends with ways to find it.
        warning::print(format_args!(
            "{me}{name} {place}; to find the cause, {check}run oshrun --gdb"
        ));
        // SAFETY: ends the copy at once.
        unsafe { libc::_exit(0) }
    }
    // SAFETY: the copy, which the limit ends. Where there is none, it returns at once.
    unsafe { libc::waitpid(copy as libc::pid_t, null_mut(), libc::__WALL) };
}

/// Returns the address of the instruction that a signal has interrupted. Moves it in the context
/// behind the start of that instruction: who reads the stack takes it for an address to which a
/// call returns, and looks up the byte before it.
///
/// # Safety
/// A context that the kernel has passed to a handler, in a process that does not return to it.
unsafe fn address(context: *mut libc::ucontext_t) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by contract.
    let register = unsafe { &raw mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize] };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: by contract.
    let register = unsafe { &raw mut (*context).uc_mcontext.pc };
    // SAFETY: a register of the context, by contract.
    unsafe { *register += 1 };
    // SAFETY: as above.
    Some(unsafe { *register } as usize)
}
