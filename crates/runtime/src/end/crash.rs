//! A crash of the program: prints which signal ends the PE, in which function, file and line, and
//! which memory it has touched.
//!
//! The handler makes only calls that handlers may make, and needs little stack. A copy of the
//! process reads the debug information and prints the message; if it meets a lock that the crash
//! has left held, the limit on its time ends it, and the PE prints what it knows itself. The PE
//! then ends by the signal, as it would without a handler. Signals for which the program, or the
//! runtime of its language, has a handler are left to that one. Where several PEs of a node crash,
//! one of them prints the message, and the others wait until it has; so do other threads.
#![allow(unsafe_code)]

mod copy;
pub mod memory;
mod signal;
mod touched;

use crate::call::crash_place::CrashPlace;
use crate::call::warning;
use crate::job::Job;
use crate::net::flags;
use crate::process;
use copy::CopyTask;
use core::ffi::{c_int, c_void};
use rushmem_transport::Pe;
use signal::{Crash, SIGNALS, handle};
use std::io::{Cursor, Write};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicI32, AtomicPtr,
    Ordering::{AcqRel, Acquire, Release},
};
use std::thread::sleep;
use std::time::Duration;
use touched::Touched;

/// Bytes of the stack on which the handler runs, since a crash may be an overflow of the program's.
const STACK: usize = 64 << 10;

/// Seconds that reading the debug information may take.
const LIMIT: u32 = 5;

/// The time for which other PEs find the claim of a message where PEs share no memory yet.
const CLAIM: Duration = Duration::from_secs(1);

/// The value of the node's word from which on the message is printed.
const PRINTED: u64 = 1 << 32;

/// The data that the handler needs once the job is known.
struct Reporter {
    /// The first PE of the node, which has the word that PEs count themselves in.
    first: Pe,
    /// True if `SHMEM_CHECK` is set.
    checks: bool,
}

static REPORTER: OnceLock<Reporter> = OnceLock::new();

/// The crash that is reported, for the copy of this process.
static CRASH: AtomicPtr<Crash> = AtomicPtr::new(null_mut());

/// Installs the handler in a process that a launcher has started, before `main`.
pub fn install_at_load() {
    if rushmem_bootstrap::node_memory().is_some() || rushmem_bootstrap::is_managed() {
        install();
    }
}

/// Installs the handler, unless it is there, and reports for this job.
pub(crate) fn install_for(job: &Job) {
    let first = flags::area().first_of_node(job.n_pes);
    if REPORTER.set(Reporter { first, checks: job.settings.checks() }).is_ok() {
        install();
    }
}

/// Installs the handler for those signals that have none, and a stack for it in this thread.
fn install() {
    set_stack();
    let signals = SIGNALS.into_iter().map(|(signal, _)| signal);
    signals.filter(|signal| has_no_handler(*signal)).for_each(|signal| handle(signal, crashed));
}

fn has_no_handler(signal: c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action it only fills in the present one.
    let known = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) } == 0;
    // SAFETY: filled in, and zeros are a value of it, too.
    known && unsafe { now.assume_init() }.sa_sigaction == libc::SIG_DFL
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
    if let Some(stack) = copy::new_stack(STACK) {
        // SAFETY: memory that nothing else uses.
        unsafe { libc::sigaltstack(&raw const stack, null_mut()) };
    }
}

extern "C" fn crashed(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    static REPORTS: AtomicI32 = AtomicI32::new(0);
    let context = context.cast();
    // SAFETY: the kernel passes valid ones.
    let crash = unsafe { Crash::of(signal, info, context) };
    // SAFETY: names the calling thread.
    let thread = unsafe { libc::gettid() };
    match REPORTS.compare_exchange(0, thread, AcqRel, Acquire) {
        // SAFETY: the context that the kernel has passed.
        Ok(_) => unsafe { report(&crash, context) },
        // The other thread ends the PE.
        Err(other) if other != thread => sleep(Duration::from_secs(2 * u64::from(LIMIT))),
        // The report has crashed.
        Err(_) => {}
    }
    // SAFETY: the default action, as it was before.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // The instruction that faults is executed again. A signal that was sent is sent again.
    if signal == libc::SIGABRT || crash.code <= 0 {
        // SAFETY: blocked until this handler returns, then it ends the PE.
        unsafe { libc::raise(signal) };
    }
}

/// Prints the message, or waits until another PE has printed it.
///
/// # Safety
/// The context that the kernel has passed to the handler.
unsafe fn report(crash: &Crash, context: *mut libc::ucontext_t) {
    CRASH.store(std::ptr::from_ref(crash).cast_mut(), Release);
    let print = || {
        let task = CopyTask { crash, context, handler: describe, limit: LIMIT };
        // SAFETY: by contract.
        if !unsafe { task.run() } {
            print_short(crash);
        }
    };
    let Some(reporter) = REPORTER.get() else { return print() };
    let (area, word) = (flags::area(), flags::area().areas().crashes());
    if area.is_first_at(reporter.first, word) {
        print();
        area.release(reporter.first, word, PRINTED);
    }
    for _ in 0..100 * LIMIT {
        if area.flag_of(reporter.first, word) >= PRINTED {
            break;
        }
        sleep(Duration::from_millis(10));
    }
}

/// Prints the message, in the copy.
extern "C" fn describe(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    memory::leave_the_heap();
    // SAFETY: the context that the kernel has passed, in a process that ends here.
    let frame = unsafe { copy::name_of_frame(context.cast()) };
    // SAFETY: it is on the stack of the handler that this process is a copy of, which stays mapped.
    let crash = unsafe { &*CRASH.load(Acquire) };
    let place = CrashPlace::find(frame);
    let checks = REPORTER.get().is_some_and(|reporter| reporter.checks);
    let what = match touched::describe(crash) {
        Some(Touched { what, remedy: Some(remedy) }) => format!(": {what}; {remedy}"),
        Some(Touched { what, remedy: None }) => format!(": {what}; {}", place.remedy(checks)),
        None => format!("; {}", place.remedy(checks)),
    };
    let message = format!("{} {place}{what}", crash.name());
    let is_first =
        REPORTER.get().is_some() || warning::is_first_of_launcher(crash.launcher, &message);
    if is_first {
        warning::print(format_args!("{}{message}", process::pe_for_messages()));
        if REPORTER.get().is_none() {
            // Other PEs find the claim meanwhile.
            sleep(CLAIM);
        }
    }
    // SAFETY: ends the copy at once.
    unsafe { libc::_exit(0) }
}

/// Prints the signal without its place, by calls that a handler may make.
fn print_short(crash: &Crash) {
    let mut message = Cursor::new([0u8; 256]);
    if let Some(pe) = process::pe() {
        let _ = write!(message, "PE {pe}: ");
    }
    // Text that does not fit is left out.
    let _ = writeln!(
        message,
        "{}: its place in the program cannot be found; to find the cause, run oshrun --gdb",
        crash.name()
    );
    let (nbytes, message) = (message.position() as usize, message.into_inner());
    // SAFETY: as many bytes of a local.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), nbytes) };
}
