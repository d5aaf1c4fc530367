//! Starts a job again when a host is lost or cannot start its PEs (`--retries`), on the hosts that
//! are left and on spare ones.
//!
//! A try is a job of its own, with its own daemons, guards and mark. It begins when nothing of the
//! one before is left on any host.

use crate::args::Options;
use crate::failure::{StartFailure, complain};
use crate::hosts;
use crate::job::{self, Surroundings, TryEnd};
use crate::timings::Timings;

/// Runs a job and returns the exit status of its last try.
pub async fn run(options: &Options) -> Result<i32, StartFailure> {
    let mut timings = Timings::new();
    let mut pool = hosts::find(&options.hosts, options.n_pes)?;
    let mut hosts = pool.distribute()?;
    let mut surroundings = Surroundings::default();
    let n_tries = options.retries.saturating_add(1);
    let mut number = 1;
    loop {
        let (status, lost) =
            match job::run(options, hosts, number, timings, &mut surroundings).await? {
                TryEnd::Final(status) => return Ok(status),
                TryEnd::HostsLost { status, hosts } => (status, hosts),
            };
        let spares = pool.replace(&lost).join(", ");
        let lost = lost.into_iter().collect::<Vec<_>>().join(", ");
        hosts = match pool.distribute() {
            Ok(hosts) => hosts,
            Err(StartFailure { sentence, .. }) => {
                // Cause: the hosts that are left do not suffice. Remedy: name spare ones with
                // `--spare`.
                complain(&format!("oshrun: cannot start again without {lost}: {sentence}"));
                return Ok(status);
            }
        };
        number += 1;
        let how = match spares.as_str() {
            "" => format!("without {lost}"),
            spares => format!("with {spares} instead of {lost}"),
        };
        let input = match surroundings.input.is_used_up() {
            true => "; PE 0 gets only the rest of the input",
            false => "",
        };
        complain(&format!("oshrun: starting again {how}: try {number} of {n_tries}{input}"));
        timings = Timings::new();
    }
}
