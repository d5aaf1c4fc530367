//! The watchdog of a machine (`SHMEM_WATCHDOG`): a thread of the machine's first PE that reads the
//! statuses of the machine's PEs. If a wait has lasted too long, it explains on standard error
//! which PEs wait and why. It explains the next long wait only after that one has ended. Another
//! such thread explains whenever the program requests it.
//!
//! Such a thread reads only shared memory and /proc, so it needs neither the network nor the help
//! of a PE that hangs. Hence it knows nothing of the PEs of other machines and concludes nothing
//! about them.

use rushmem_bootstrap::NodeMap;
use rushmem_communication::status::machine::{self, Statuses};
use rushmem_explain::collect::PAUSE;
use rushmem_explain::explain;
use rushmem_pe::job::{self, Job};
use rushmem_system::host::host_name;
use rushmem_system::stderr::print_line;
use rushmem_system::thread::spawn_service;
use std::io;
use std::time::Duration;

/// The time between two reads of the statuses. It delays a report, whose limit is in seconds, by as
/// much at most.
const PERIOD: Duration = Duration::from_secs(1);

/// Starts the watchdog, if it is wanted and this PE is the first of its machine.
pub(crate) fn start(job: &'static Job) {
    let membership = job.membership();
    let Some(limit) = job.settings.watchdog.filter(|_| membership.local_id() == 0) else {
        return;
    };
    let machines = membership.nodes().clone();
    // The handle is dropped, since nothing joins the thread. Without a thread there is no watchdog,
    // but the job can run.
    let _ = spawn_service("rushmem-watchdog", move || run(&machines, limit));
}

fn run(machines: &NodeMap, limit: Duration) {
    let Some(Statuses { collector, pes }) = machine::statuses() else {
        return;
    };

    let mut explained = None;
    loop {
        std::thread::sleep(PERIOD);
        let waits = collector.long_waits(pes, limit);
        if explained.is_some_and(|explained| waits.contains(&explained)) {
            continue;
        }

        // A report is about all long waits. It counts as current until the oldest of them ends.
        explained = waits.into_iter().min_by_key(|wait| wait.since);
        if explained.is_some() {
            let snapshots = collector.snapshots(pes, Some(PAUSE));
            let explanation = explain(machines.n_pes(), &snapshots);
            print(limit, machines.n_nodes(), &explanation);
        }
    }
}

/// Prints on standard error what the PEs of this machine do and which waits for which, in a thread
/// of its own, whenever `wait_for_request` returns true, until it returns false. Called after the
/// first init.
///
/// # Errors
/// When the kernel refuses a thread.
pub fn explain_on_request(
    mut wait_for_request: impl FnMut() -> bool + Send + 'static,
) -> io::Result<()> {
    let Some(job) = job::known() else {
        return Ok(());
    };
    let n_pes = job.membership().nodes().n_pes();

    spawn_service("rushmem-explain", move || {
        while wait_for_request() {
            let Some(Statuses { collector, pes }) = machine::statuses() else {
                return;
            };
            let snapshots = collector.snapshots(pes, Some(PAUSE));
            print_line(explain(n_pes, &snapshots));
        }
    })?;
    Ok(())
}

fn print(limit: Duration, n_nodes: u32, explanation: &str) {
    let others = match n_nodes {
        1 => String::new(),
        _ => format!(
            "; this is the part of {}, and other hosts print theirs if a call waits there",
            host_name()
        ),
    };
    print_line(format_args!(
        "SHMEM_WATCHDOG: a call has waited for more than {} s{others}\n{explanation}",
        limit.as_secs_f64()
    ));
}
