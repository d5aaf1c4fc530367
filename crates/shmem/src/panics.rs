//! The panics of wrong arguments, the message of each panic in a job, and the end of the job if a
//! panic drops what other PEs need.

use rushmem_runtime::{Call, claim_message, setup};
use rushmem_system::lock::lock;
use rushmem_system::stderr::print_line;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;

/// Panics at the program's call, whose functions have `#[track_caller]`, with a message that names
/// the call and says what is wrong.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn panic_at_caller(call: Call, why: fmt::Arguments<'_>) -> ! {
    panic!("{call}: {why}")
}

/// Panics because of a wrong argument: `mistake!(call, "argument pe is {pe}")`.
macro_rules! mistake {
    ($call:expr, $($why:tt)*) => {
        $crate::panics::panic_at_caller($call, format_args!($($why)*))
    };
}
pub(crate) use mistake;

/// The exit status of a Rust program that panicked.
const PANICKED: i32 = 101;
/// The time that a PE gives another PE of its node to print the same message and to end the job.
const OTHER_PRINTS: Duration = Duration::from_secs(1);

type Hook = dyn Fn(&PanicHookInfo<'_>) + Sync + Send;

thread_local! {
    /// The message of the last panic of this thread, if another PE of the node has printed it.
    static PRINTED_ELSEWHERE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on, names this PE before the message of each panic. If several PEs of a node panic with
/// the same message at the same place, the first one prints it. A hook of the program that is set
/// now is called on each PE. Has no effect the second time: a PE keeps its number.
pub(crate) fn name_pe(pe: i32) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        let is_of_program = is_of_program(&*hook);
        panic::set_hook(Box::new(move |panic| {
            let message = message(panic);
            if !is_of_program && !claim(&message) {
                PRINTED_ELSEWHERE.set(Some(format!("PE {pe}: a panic: {message}")));
                return;
            }

            PRINTED_ELSEWHERE.set(None);
            print_line(format_args!("PE {pe}: a panic:"));
            hook(panic);
        }));
    });
}

/// Returns true if a hook that was just taken is not the one of the standard library, which prints.
fn is_of_program(hook: &Hook) -> bool {
    // To take a hook sets the one of the standard library. Both are then calls of the same function
    // without a state, so their addresses and tables of functions are equal. Should they ever
    // differ, each PE prints its message.
    let of_library = panic::take_hook();
    !std::ptr::eq(&raw const *hook, &raw const *of_library)
}

fn message(panic: &PanicHookInfo<'_>) -> String {
    // `payload_as_str` is newer than the oldest compiler that is supported.
    let payload = panic.payload();
    let why = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value");
    match panic.location() {
        Some(place) => format!("{why} (at {place})"),
        None => why.to_owned(),
    }
}

/// Returns true if this PE is the one of its node that prints a message. The node remembers who is
/// first, but not that it is this PE, which may panic several times.
fn claim(message: &str) -> bool {
    static CLAIMED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut claimed = lock(&CLAIMED);
    let is_first = claimed.contains(message) || claim_message(message);
    if is_first {
        claimed.insert(message.to_owned());
    }
    is_first
}

/// Ends the job if the calling thread panics: the PE will not take part in the collective calls for
/// which the others wait.
pub(crate) fn end_if_panicking() {
    if !thread::panicking() {
        return;
    }
    if let Some(message) = PRINTED_ELSEWHERE.take() {
        thread::sleep(OTHER_PRINTS);
        // The other PE has not ended the job: it printed the message of a panic that it caught.
        print_line(message);
    }
    setup::global_exit(call!("panic"), PANICKED);
}

/// Ends the job when it is dropped by a panic of the program's closure, since the other PEs wait
/// until it returns.
pub(crate) struct EndIfPanicking;

impl Drop for EndIfPanicking {
    fn drop(&mut self) {
        end_if_panicking();
    }
}
