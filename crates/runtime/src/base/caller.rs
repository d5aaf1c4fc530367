//! Which thread calls, and whether the thread level allows that. Both are looked at only with
//! `SHMEM_CHECK`.

use crate::base::call::{Call, fail};
use crate::base::constants::SHMEM_THREAD_FUNNELED;
use crate::base::job::Job;
use crate::base::location;
use crate::base::process;
use crate::base::thread::{self, Caller};
use crate::base::warning::warning;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Warn of something undefined but harmless here, once for each call.
pub(crate) fn warn_once(call: Call, job: &Job, why: &'static str) {
    static WARNED: Mutex<BTreeSet<(&str, &str)>> = Mutex::new(BTreeSet::new());
    if process::lock(&WARNED).insert((call.0, why)) {
        warning!("PE {}: {call}: {why}{}", job.me(), location::clause());
    }
}

/// The thread that initialized the library.
static MAIN: Mutex<Option<Caller>> = Mutex::new(None);

/// Record that the calling thread has initialized the library.
pub(crate) fn initialized_here() {
    *process::lock(&MAIN) = Some(thread::current());
}

/// Warn if the thread level does not allow the calling thread to call.
pub(crate) fn check(call: Call, job: &Job) {
    if job.settings.check && job.thread_level <= SHMEM_THREAD_FUNNELED && !is_main() {
        let why = match job.thread_level {
            SHMEM_THREAD_FUNNELED => {
                "called by another thread than the one that initialized the library, but the thread level \
                 is SHMEM_THREAD_FUNNELED: this works here as long as no two threads are in the library at \
                 once; ask shmem_init_thread for SHMEM_THREAD_SERIALIZED or SHMEM_THREAD_MULTIPLE"
            }
            _ => {
                "called by another thread than the one that initialized the library, but the thread level \
                 is SHMEM_THREAD_SINGLE: this works here as long as no two threads are in the library at \
                 once; ask shmem_init_thread for SHMEM_THREAD_SERIALIZED or SHMEM_THREAD_MULTIPLE"
            }
        };
        warn_once(call, job, why);
    }
}

/// Ends the job with an error if another thread finalizes than the one that initialized.
pub(crate) fn check_finalizer(call: Call, job: &Job) {
    if job.settings.check && !is_main() {
        fail!(
            call,
            "called by another thread than the one that initialized the library, which must finalize it"
        );
    }
}

fn is_main() -> bool {
    process::lock(&MAIN).is_none_or(|main| main == thread::current())
}
