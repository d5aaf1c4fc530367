//! The call that a message speaks of, and how a call ends the job.
//!
//! An error of the user or of the machine is one sentence with the PE, the call, the argument and the
//! cure. There is no way back from it: functions of the standard have no way to fail softly.

use crate::job;
use std::fmt;
use std::time::Duration;

/// The name of a function as the user called it, such as `shmem_long_put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(pub &'static str);

impl Call {
    /// End the job with status 1 and one message: PE, call, `why`.
    #[cold]
    #[inline(never)]
    pub fn fail(self, why: fmt::Arguments<'_>) -> ! {
        let pe = job::pe_for_messages();
        job::aborter().abort(1, &format!("PE {pe}: {}: {why}", self.0));
        wait_for_the_end(1)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The launcher was told to end the job; let it, and leave by ourselves when it does not.
pub(crate) fn wait_for_the_end(status: i32) -> ! {
    if job::is_launched() {
        std::thread::sleep(Duration::from_secs(5));
    }
    // SAFETY: ends the process at once; no destructor may run in the middle of a failed call.
    unsafe { libc::_exit(status) }
}

/// End the job from any function that has a `Call` at hand: `fail!(call, "argument pe is {pe}")`.
macro_rules! fail {
    ($call:expr, $($why:tt)*) => {
        $call.fail(format_args!($($why)*))
    };
}
pub(crate) use fail;
