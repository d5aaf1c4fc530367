//! Ends a process in which only threads of the library are left.
//!
//! A process ends when its last thread ends. A program may end its first thread with `pthread_exit`
//! and go on in others. When these have ended, too, threads of the library, or of a library that it
//! uses, must not keep the process alive. Therefore the threads that start during an init are
//! recorded. When the thread that has called init ends, another thread waits until only recorded
//! threads are left, and then exits as the C library does after the last thread.
#![allow(unsafe_code)]

use core::ffi::c_void;
use rushmem_communication::net::network;
use rushmem_pe::process;
use rushmem_system::lock::lock;
use rushmem_system::signals::{OF_FAULTS, without_signals};
use std::fs::{read_dir, read_to_string};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// The recorded threads of the library, some of which may have ended.
static LIBRARY_THREADS: Mutex<Vec<OsThread>> = Mutex::new(Vec::new());

/// The time between two checks for remaining threads of the program. It delays the end of the
/// process, and each check reads files of all threads.
const INTERVAL: Duration = Duration::from_millis(100);

/// The signals that no thread can block: SIGKILL (9), SIGSTOP (19) and the two that the C library
/// keeps for itself (32 and 33). Signal `n` is bit `n - 1`.
const NEVER_BLOCKED: u64 = 1 << 8 | 1 << 18 | 1 << 31 | 1 << 32;

/// A thread of this process. The start time distinguishes it from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OsThread {
    number: u32,
    started: u64,
}

/// Calls a function that may start threads of the library, and records them. They are recognized by
/// blocking all signals but those of faults, which threads that the program starts at the same time
/// do not.
pub(crate) fn record_threads<T>(act: impl FnOnce() -> T) -> T {
    let before = numbers();
    let result = act();

    for number in numbers() {
        let has_started = !before.contains(&number);
        if has_started
            && blocks_signals(number)
            && let Some(found) = inspect(number)
        {
            lock(&LIBRARY_THREADS).push(found.thread);
        }
    }
    watch_the_end();
    result
}

/// Arranges that [`initializer_ends`] is called when this thread ends, but not at exit.
fn watch_the_end() {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the key is valid for a write; the function exists until the process ends, since
        // the library is never unloaded.
        let status = unsafe { libc::pthread_key_create(&raw mut key, Some(initializer_ends)) };
        if status == 0 { Some(key) } else { None }
    });

    // Without a key, a process whose first thread has ended lives until it is ended from outside.
    if let Some(key) = *key {
        // The result is ignored: a thread whose value is not set, for lack of memory, ends as it
        // would without a key.
        // SAFETY: `key` is valid. The value only must not be null; it is never dereferenced.
        unsafe { libc::pthread_setspecific(key, (&raw const LIBRARY_THREADS).cast()) };
    }
}

/// Has the process exit once only threads of the library are left. The C library calls this when a
/// thread that has called an init ends.
///
/// # Safety
/// Only the C library calls it, at the end of a thread.
unsafe extern "C" fn initializer_ends(_: *mut c_void) {
    static HAS_WAITER: AtomicBool = AtomicBool::new(false);
    if !process::is_this_process() || lock(&LIBRARY_THREADS).is_empty() {
        return;
    }

    // This is the first thread. While a transport needs it, it waits here itself, at the longest
    // until the last finalize. Another thread that waits does not replace it.
    if own_number() == std::process::id() {
        exit_after_the_last(|| network::of_process().needs_first_thread());
    }

    // One thread that waits is enough, whichever initializer ends first. Relaxed, since the flag
    // publishes nothing.
    if HAS_WAITER.swap(true, Ordering::Relaxed) {
        return;
    }

    // The handle is dropped, since nothing joins the thread. If no thread can be started, the
    // process lives until it is ended from outside.
    let waiter = std::thread::Builder::new().name("rushmem-end".to_owned());
    let _ = without_signals(|| waiter.spawn(wait_for_the_last));
}

/// The body of the thread that waits until all threads of the program have ended.
fn wait_for_the_last() {
    // The first thread must not count this one as a thread of the program.
    if let Some(own) = inspect(own_number()) {
        lock(&LIBRARY_THREADS).push(own.thread);
    }
    exit_after_the_last(|| true);
}

/// Ends the process once all threads of the program except this one have ended. Returns when
/// `waits` returns false.
fn exit_after_the_last(waits: impl Fn() -> bool) {
    let own = own_number();
    while waits() {
        // The list of the kernel may miss a thread that starts while another one ends, so it is
        // read twice.
        if has_only_library_threads(own) && has_only_library_threads(own) {
            std::process::exit(0);
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Returns true if the first thread of the process is this one or has ended, and all other threads
/// are recorded ones. The kernel lists the first thread even after its end.
fn has_only_library_threads(own: u32) -> bool {
    let first = std::process::id();
    if first != own && inspect(first).is_none_or(|found| found.state != 'Z') {
        return false;
    }

    let recorded = lock(&LIBRARY_THREADS).clone();
    for number in numbers() {
        if number == first || number == own {
            continue;
        }
        // A thread that has ended since the list was read counts as one of the program: the next
        // list is without it.
        let Some(found) = inspect(number) else {
            return false;
        };
        if !recorded.contains(&found.thread) {
            return false;
        }
    }
    true
}

/// Returns the number of the calling thread, as the kernel numbers threads.
fn own_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Returns the numbers of all threads of this process.
fn numbers() -> Vec<u32> {
    let threads = read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
        .collect()
}

/// A thread as the kernel shows it.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    thread: OsThread,
    /// The letter of its state: `Z` for one that has ended.
    state: char,
}

/// Returns a thread of this process; `None` if it has ended, unless it is the first one.
fn inspect(number: u32) -> Option<Found> {
    let stat = read_to_string(format!("/proc/self/task/{number}/stat")).ok()?;
    parse_stat(number, &stat)
}

/// Parses the text of the file `stat` of a thread (proc_pid_stat(5)). Returns `None` if it lacks a
/// field.
fn parse_stat(number: u32, stat: &str) -> Option<Found> {
    // The name of the thread, in parentheses, may contain any characters, also parentheses. No
    // later field contains one.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();

    // Field 3, and field 22, which is 19 fields later.
    let state = fields.next()?.chars().next()?;
    let started = fields.nth(18)?.parse().ok()?;

    let thread = OsThread { number, started };
    Some(Found { thread, state })
}

/// Returns true if a thread blocks all signals but those of faults, as threads of the library do.
fn blocks_signals(number: u32) -> bool {
    // A thread without a status has ended meanwhile.
    let status = read_to_string(format!("/proc/self/task/{number}/status")).unwrap_or_default();
    let Some(mask) = status.lines().find_map(|line| line.strip_prefix("SigBlk:")) else {
        return false;
    };
    let Ok(blocked) = u64::from_str_radix(mask.trim(), 16) else {
        return false;
    };

    let mut may_be_unblocked = NEVER_BLOCKED;
    for signal in OF_FAULTS {
        may_be_unblocked |= 1 << (signal - 1);
    }
    blocked | may_be_unblocked == u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_name_may_hold_anything() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let stat = format!("77 (a) Z (b) Z {rest}\n");
        let thread = OsThread {
            number: 77,
            started: 4711,
        };
        let expected = Found { thread, state: 'Z' };
        assert_eq!(parse_stat(77, &stat), Some(expected));
        assert_eq!(parse_stat(77, "77 (a) Z 1 2"), None);
    }

    #[test]
    fn only_threads_that_take_no_signal_are_recorded() {
        let mut program = None;
        let mut library = None;
        record_threads(|| {
            program = Some(WaitingThread::start());
            library = Some(without_signals(WaitingThread::start));
        });
        let program = program.expect("it was started");
        let library = library.expect("it was started");

        let recorded: Vec<u32> = lock(&LIBRARY_THREADS)
            .iter()
            .map(|thread| thread.number)
            .collect();
        assert!(recorded.contains(&library.number));
        assert!(!recorded.contains(&program.number));

        let own = own_number();
        assert!(!has_only_library_threads(own), "the first thread is there");
    }

    /// A thread that waits until this value is dropped.
    struct WaitingThread {
        number: u32,
        _end: mpsc::Sender<()>,
    }

    impl WaitingThread {
        fn start() -> WaitingThread {
            let (end, awaited_end) = mpsc::channel::<()>();
            let (sender, receiver) = mpsc::channel();
            std::thread::spawn(move || {
                sender.send(own_number()).expect("the test waits for it");
                // It fails when the sender is dropped, which is what it waits for.
                let _ = awaited_end.recv();
            });
            WaitingThread {
                number: receiver.recv().expect("the thread sends its number"),
                _end: end,
            }
        }
    }
}
