//! The table of `--timings`: when each phase of a job was complete, in seconds since the start of
//! oshrun. Its length depends neither on the number of PEs nor on that of hosts.

use std::time::{Duration, Instant};

/// A phase that each PE passes.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// It is started.
    Started,
    /// It enters `shmem_init`.
    Initialized,
    /// Its process ends.
    Ended,
}

impl Phase {
    fn what(self) -> &'static str {
        match self {
            Phase::Started => "PE started",
            Phase::Initialized => "shmem_init entered",
            Phase::Ended => "PE ended",
        }
    }
}

/// The phases so far.
#[derive(Debug)]
pub struct Timings {
    since: Instant,
    marks: Vec<(String, Duration)>,
    n_pes: u32,
    /// The number of PEs that have passed each phase.
    counts: [u32; 3],
    n_exchanges: u32,
}

impl Timings {
    /// Starts the clock.
    pub fn new() -> Timings {
        let (since, marks) = (Instant::now(), Vec::new());
        Timings { since, marks, n_pes: 0, counts: [0; 3], n_exchanges: 0 }
    }

    /// Sets the number of PEs.
    pub fn planned(&mut self, n_pes: u32) {
        self.n_pes = n_pes;
        self.mark("hosts and program found");
    }

    /// Records the completion of a phase.
    pub fn mark(&mut self, phase: &str) {
        self.marks.push((phase.to_string(), self.since.elapsed()));
    }

    /// Records that a PE of this host passes a phase: the first and the last one count.
    pub fn passed(&mut self, phase: Phase, host: &str) {
        let count = &mut self.counts[phase as usize];
        *count += 1;
        let (is_first, is_last) = (*count == 1, *count == self.n_pes);
        if is_first {
            self.mark(&format!("first {}", phase.what()));
        }
        if is_last {
            self.mark(&format!("last {}, on host {host}", phase.what()));
        }
    }

    /// Records the completion of an exchange among all PEs: the first and the last one count.
    pub fn exchanged(&mut self) {
        self.n_exchanges += 1;
        if self.n_exchanges > 2 {
            let before = format!("exchange {} complete", self.n_exchanges - 1);
            self.marks.retain(|(phase, _)| *phase != before);
        }
        self.mark(&format!("exchange {} complete", self.n_exchanges));
    }

    /// Formats the table.
    pub fn table(&self) -> String {
        let line = |(phase, at): &(String, Duration)| {
            format!("oshrun: {:>9.3} s  {phase}", at.as_secs_f64())
        };
        self.marks.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_count() {
        let mut timings = Timings::new();
        timings.planned(3);
        ["a", "b", "a"].iter().for_each(|host| timings.passed(Phase::Started, host));
        ["b", "a"].iter().for_each(|host| timings.passed(Phase::Initialized, host));
        (0..3).for_each(|_| timings.exchanged());
        timings.passed(Phase::Ended, "a");
        let table = timings.table();
        let phases: Vec<&str> =
            table.lines().map(|line| line.split(" s  ").nth(1).expect("a phase")).collect();
        assert_eq!(
            phases,
            [
                "hosts and program found",
                "first PE started",
                "last PE started, on host a",
                "first shmem_init entered",
                "exchange 1 complete",
                "exchange 3 complete",
                "first PE ended",
            ]
        );
    }
}
