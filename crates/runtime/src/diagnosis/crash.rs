//! Prints a message when the program crashes: the signal, the function, file and line, and the
//! memory that was accessed.
//!
//! The handler only makes calls that are allowed in handlers, and needs little stack. A copy of the
//! process reads the debug information and prints the message. The copy may block on a lock that
//! was held at the crash; a time limit then ends it, and the PE prints a shorter message itself.
//! The PE then ends by the signal, as it would without a handler. Signals that the program handles
//! are left alone, and after the message the run time of Rust handles those that it has a handler
//! for. If several PEs of a node or several threads crash, one of them prints the message and the
//! others wait for it.
#![allow(unsafe_code)]

mod copy;
pub mod memory;
mod place;
mod run_time;
mod signal;
mod touched;

use copy::CopyTask;
use core::ffi::{c_int, c_void};
use place::CrashPlace;
use rushmem_communication::links::{self, Links};
use rushmem_pe::call::Call;
use rushmem_pe::call::warning;
use rushmem_pe::process;
use rushmem_system::limits::getrlimit;
use rushmem_system::stderr::print_line;
use rushmem_transport::Pe;
use rustix::process::Resource;
use signal::{Crash, SIGNALS, action, handle};
use std::fmt;
use std::io::{Cursor, Write};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};
use touched::Touched;

/// The size of the stack of the handler, which has a stack of its own since that of the program may
/// have overflowed.
const STACK: usize = 64 << 10;

/// Maximum CPU time for reading the debug information.
const CPU_LIMIT: Duration = Duration::from_secs(5);

/// Maximum time for which reading the debug information may use no CPU time. On a machine with a
/// hundred times as many busy processes as CPUs, each gets one within a second.
const IDLE_LIMIT: Duration = Duration::from_secs(5);

/// Maximum time for reading the debug information: on a machine with a hundred times as many busy
/// processes as CPUs, ten megabytes of it take more than half a minute.
const LIMIT: Duration = Duration::from_secs(120);

/// The time for which a PE keeps its claim of a message, if PEs share no memory yet.
const CLAIM: Duration = Duration::from_secs(1);

/// The minimum value of the node's counter of crashes once the message was printed.
const PRINTED: u64 = 1 << 32;

/// The facts about the job that the handler needs, set once this PE has joined it.
struct Reporter {
    /// The first PE of the node, which has the counter of crashes.
    first: Pe,
    /// True if `SHMEM_CHECK` is set.
    has_checks: bool,
}

static REPORTER: OnceLock<Reporter> = OnceLock::new();

/// The crash that is being reported. The copy of this process reads it.
static CRASH: AtomicPtr<Crash> = AtomicPtr::new(null_mut());

/// Installs the handler in a process that a launcher has started, before `main` runs.
pub fn install_at_load() {
    if rushmem_bootstrap::node_memory().is_some() || rushmem_bootstrap::has_process_manager() {
        install();
    }
}

/// Gives the handler the facts about the job, and installs it for the signals that have none yet;
/// in Rust, also for those of the run time's handler. Has no effect in a later init.
pub(crate) fn install_handler(Links { job, area, .. }: &Links, call: Call) {
    let reporter = Reporter {
        first: area.first_of_node(),
        has_checks: job.settings.checks(),
    };
    if REPORTER.set(reporter).is_err() {
        return;
    }

    if call.is_rust() {
        run_time::replace(crashed);
    }
    install();
}

/// Installs the handler for the signals that have none, and a stack for handlers in this thread.
fn install() {
    set_stack();
    for (signal, _) in SIGNALS {
        if has_no_handler(signal) {
            handle(signal, crashed);
        }
    }
}

fn has_no_handler(signal: c_int) -> bool {
    action(signal).is_some_and(|action| action.sa_sigaction == libc::SIG_DFL)
}

/// Sets a stack for signal handlers in this thread, unless it has one.
fn set_stack() {
    let mut now = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: without a new stack, the call only writes the present one.
    let known = unsafe { libc::sigaltstack(std::ptr::null(), now.as_mut_ptr()) } == 0;
    // SAFETY: where `known`, the call has written `now`; its zeros are a valid value, too.
    if !known || unsafe { now.assume_init() }.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }

    if let Some(stack) = copy::new_stack(STACK) {
        // If this fails, crashes of overflowed stacks end the PE without a message.
        // SAFETY: the stack is a new mapping, which nothing else uses and which is never unmapped.
        unsafe { libc::sigaltstack(&raw const stack, null_mut()) };
    }
}

extern "C" fn crashed(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    static REPORTS: AtomicI32 = AtomicI32::new(0);
    let context = context.cast();
    // SAFETY: the kernel passes valid pointers.
    let crash = unsafe { Crash::of(signal, info, context) };
    let thread = rustix::thread::gettid().as_raw_nonzero().get();

    // Relaxed: it decides which thread reports, and publishes nothing.
    match REPORTS.compare_exchange(0, thread, Relaxed, Relaxed) {
        // SAFETY: `context` is from the kernel.
        Ok(_) => unsafe { report(&crash, context) },
        // Another thread reports its crash and ends the PE, which takes little more than `LIMIT`.
        Err(other) if other != thread => sleep(2 * LIMIT),
        // The report itself has crashed.
        Err(_) => {}
    }

    run_time::restore(signal);
    // A faulting instruction is executed again after the return. A signal that a process has sent
    // must be sent again.
    if signal == libc::SIGABRT || crash.code <= 0 {
        // This cannot fail: a thread may send itself any signal.
        // SAFETY: the signal is blocked until this handler returns; then it ends the PE.
        unsafe { libc::raise(signal) };
    }
}

/// Prints the message, or waits until another PE of the node has printed it, for [`LIMIT`] at most.
///
/// # Safety
/// `context` is the one that the kernel has passed to the handler.
unsafe fn report(crash: &Crash, context: *mut libc::ucontext_t) {
    let Some(reporter) = REPORTER.get() else {
        // SAFETY: the caller promises that the context is from the kernel.
        unsafe { print(crash, context) };
        return;
    };

    let area = &links::of_process().area;
    let word = area.areas().crashes();
    if area.claim(reporter.first, word) {
        // SAFETY: the caller promises that the context is from the kernel.
        unsafe { print(crash, context) };
        area.release(reporter.first, word, PRINTED);
    }

    let deadline = Instant::now() + LIMIT;
    while area.flag_of(reporter.first, word) < PRINTED && Instant::now() < deadline {
        sleep(Duration::from_millis(10));
    }
}

/// Prints the message in a copy of this process. If the copy fails, prints a shorter one here.
///
/// # Safety
/// As [`report`].
unsafe fn print(crash: &Crash, context: *mut libc::ucontext_t) {
    // Relaxed: the copy has the memory of this thread.
    CRASH.store(std::ptr::from_ref(crash).cast_mut(), Relaxed);

    let task = CopyTask {
        crash,
        context,
        handler: describe,
        cpu_limit: CPU_LIMIT,
        idle_limit: IDLE_LIMIT,
        limit: LIMIT,
    };
    // SAFETY: the caller promises that the context is from the kernel.
    if !unsafe { task.run() } {
        print_short(crash);
    }
}

/// Describes the crash and prints the message. Runs in the copy of the process.
extern "C" fn describe(signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    memory::use_new_pages();
    // SAFETY: the crash is on the stack of the handler in the process that was copied, and the copy
    // has that stack, too.
    let crash = unsafe { &*CRASH.load(Relaxed) };
    if !run_time::is_of_rust(signal) {
        // The program has handled the signal itself.
        // SAFETY: `_exit` has no preconditions.
        unsafe { libc::_exit(0) }
    }

    let message = message_of(crash);
    let pe = process::pe_for_messages();
    if REPORTER.get().is_some() {
        // `report` has claimed the message before it made this copy.
        print_line(format_args!("{pe}{message}"));
    } else if warning::claim_by_socket(crash.launcher, &message) {
        print_line(format_args!("{pe}{message}"));
        // Other PEs find the claim meanwhile.
        sleep(CLAIM);
    }

    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(0) }
}

/// Returns the message about a crash, without the number of the PE.
fn message_of(crash: &Crash) -> String {
    let name = crash.name();
    let place = CrashPlace::find();
    let checks = REPORTER.get().is_some_and(|reporter| reporter.has_checks);
    let remedy_of_place = place.remedy(checks);

    match touched::describe(crash) {
        None => format!("{name} {place}; {remedy_of_place}"),
        Some(Touched { what, remedy }) => {
            let remedy = remedy.as_deref().unwrap_or(remedy_of_place);
            format!("{name} {place}: {what}; {remedy}")
        }
    }
}

/// What can be done about a crash whose place cannot be found. If memory is limited, that is the
/// usual reason: the copy of the process finds none either.
enum ShortRemedy {
    Debugger,
    /// To raise the limit that `ulimit` sets by this letter, of which this many bytes are the
    /// value.
    Limit(char, u64),
}

impl ShortRemedy {
    fn find() -> ShortRemedy {
        let limits = [('d', Resource::Data), ('v', Resource::As)];
        limits
            .into_iter()
            .find_map(|(letter, resource)| Some((letter, getrlimit(resource).current?)))
            .map_or(ShortRemedy::Debugger, |(letter, bytes)| {
                ShortRemedy::Limit(letter, bytes)
            })
    }
}

impl fmt::Display for ShortRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShortRemedy::Debugger => f.write_str("to find the cause, run oshrun --gdb"),
            ShortRemedy::Limit(letter, bytes) => write!(
                f,
                "if memory is short, raise the limit (ulimit -{letter}, now {} KiB); else run oshrun --gdb",
                bytes >> 10
            ),
        }
    }
}

/// Prints the signal without its place, by calls that are allowed in handlers.
fn print_short(crash: &Crash) {
    // The only error of both writes is that the text does not fit: then it is cut.
    let mut message = Cursor::new([0u8; 256]);
    if let Some(pe) = process::pe() {
        let _ = write!(message, "PE {pe}: ");
    }
    let _ = writeln!(
        message,
        "{}: its place in the program cannot be found; {}",
        crash.name(),
        ShortRemedy::find()
    );

    let nbytes = message.position() as usize;
    let message = message.into_inner();
    // The result is ignored, since the PE ends anyway.
    // SAFETY: the message is a local array with at least that many bytes.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), nbytes) };
}
