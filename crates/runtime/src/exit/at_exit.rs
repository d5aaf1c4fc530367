//! The finalize that the library makes itself when the process exits: after `start_pes`, and for
//! handles of Rust that were dropped. An init that follows makes it, too.
//!
//! So a program may return from `main` early because of an error. A PE that exits with another
//! status than 0 waits until the others have reached their exit or finalize, for [`grace`] at most,
//! since they may wait for it in a collective. If they have not, this PE has failed, which ends the
//! job.

use super::leave;
use core::ffi::{c_int, c_void};
use rushmem_communication::links::{self, Links};
use rushmem_communication::net::flags::FlagArea;
use rushmem_pe::call::Call;
use rushmem_pe::job::{Job, permission};
use rushmem_pe::memory::areas::CounterPair;
use rushmem_pe::process;
use rushmem_system::lock::lock;
use rushmem_transport::Pe;
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two reads of the number of PEs that have reached their exit: nothing wakes this
/// PE when the number grows.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Clone, Copy)]
struct DueFinalize {
    call: Call,
    finalize: fn(Call),
}

/// The ends of this PE, each of which PE 0 counts once.
struct Ends {
    due: Vec<DueFinalize>,
    /// True if a finalize has become due, while none was, since this PE was last counted.
    is_uncounted: bool,
    /// The number of times that this PE was counted.
    counted: u64,
}

static ENDS: Mutex<Ends> = Mutex::new(Ends {
    due: Vec::new(),
    is_uncounted: false,
    counted: 0,
});

/// Calls `finalize`, which finalizes the library by `call`, when the process exits, or when
/// [`finalize_due`] is called before. An exit with another status than 0 does not finalize the
/// library if other PEs go on.
pub fn finalize_at_exit(call: Call, finalize: fn(Call)) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| leave::register(at_exit));

    let mut ends = lock(&ENDS);
    if ends.due.is_empty() {
        ends.is_uncounted = true;
    }
    ends.due.push(DueFinalize { call, finalize });
}

/// Makes the finalizes that are due, as a part of the calling thread's next init or of its exit.
pub fn finalize_due() {
    // The lock is released before the calls: a finalize counts this PE, and may forget the others.
    let due = std::mem::take(&mut lock(&ENDS).due);
    if due.is_empty() {
        return;
    }

    // Another thread may have initialized the library.
    permission::record_initializer();
    for DueFinalize { call, finalize } in due {
        finalize(call);
    }
}

/// Forgets the finalizes that are due, since the program has finalized the library itself.
pub(crate) fn forget_due() {
    lock(&ENDS).due.clear();
}

/// Finalizes the library if a finalize is due. With a status other than 0, does so only if all PEs
/// reach their end within a grace period, and otherwise ends the job. Does nothing in a child of
/// the PE, or if an exit ends the job.
extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    let is_due = !lock(&ENDS).due.is_empty();
    if !is_due || process::inits() == 0 || !process::is_this_process() || leave::is_exiting() {
        return;
    }
    let Some(links) = links::known() else { return };

    count_end(&links.area);

    // The part of the status that a launcher sees.
    let status = status & 0xff;
    if status == 0 || await_all_ends(links) {
        finalize_due();
    } else {
        end_job(&links.job, status);
    }
}

/// Counts this PE on PE 0 as one that has reached finalize or its exit, if a finalize has become
/// due since this PE was last counted.
pub(crate) fn count_end(area: &FlagArea) {
    let mut ends = lock(&ENDS);
    if !std::mem::take(&mut ends.is_uncounted) {
        return;
    }
    ends.counted += 1;
    drop(ends);

    area.count(Pe(0), area.areas().exits());
}

/// Returns the time that a PE which exits with another status than 0 waits for the others: 1.5 s by
/// default, since the failure of a PE must end the job within 2 s.
fn grace(job: &Job) -> Duration {
    job.settings.host_limit * 3 / 20
}

/// Ends the job with the exit status of this PE, which has failed.
fn end_job(job: &Job, status: c_int) {
    let me = job.me.0;
    let message = format!(
        "PE {me}: exited with status {status} while other PEs go on; a PE that has not failed must exit with \
         status 0 or finalize the library before"
    );

    // Before the abort, so that the library's other exit handlers synchronize nothing.
    leave::begin_exit();
    process::flush_output();
    if let Some(aborter) = process::aborter() {
        aborter.abort(status, &message);
    }
}

/// Returns true if every PE reaches its exit or finalize within [`grace`].
fn await_all_ends(links: &'static Links) -> bool {
    let Links { job, area, .. } = links;
    let _waits = leave::show_exit(links);

    // Each PE is counted once for each end. Every earlier end was a barrier, so all were counted.
    let all = u64::from(job.n_pes) * lock(&ENDS).counted;

    let deadline = Instant::now() + grace(job);
    while ends_of_all(area) < all {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(PAUSE);
    }
    true
}

/// Returns the number of ends that PE 0 has counted, of all PEs.
fn ends_of_all(area: &FlagArea) -> u64 {
    let CounterPair { by_cpu, by_network } = area.areas().exits();
    let mut ends = 0;
    for counter in [by_cpu, by_network] {
        let words = area.words_of(std::iter::once(Pe(0)), counter);
        ends += words.iter().sum::<u64>();
    }
    ends
}
