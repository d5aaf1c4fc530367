//! Names the PE before the message of a panic, and ends the job if a panic drops what other PEs need.

use rushmem_runtime::setup;
use std::panic;
use std::sync::Once;
use std::thread;

/// From now on, prints the number of this PE before the message of each panic, which the hook that
/// is set now prints. Has no effect the second time: a PE keeps its number.
pub(crate) fn name_pe(pe: i32) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            eprintln!("PE {pe}: a panic:");
            print(panic);
        }));
    });
}

/// The exit status of a Rust program that panicked.
const PANICKED: i32 = 101;

/// Ends the job if the calling thread panics: the PE will not take part in the collective calls for
/// which the others wait.
pub(crate) fn end_if_panicking() {
    if thread::panicking() {
        setup::global_exit(call!("panic"), PANICKED);
    }
}
