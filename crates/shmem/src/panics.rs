//! Names the PE before the message of a panic.

use std::panic;
use std::sync::Once;

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
