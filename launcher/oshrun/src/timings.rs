//! The table of `--timings`: when each phase of a job completed, in seconds since the start of
//! oshrun.

use std::time::{Duration, Instant};

/// The phases so far.
#[derive(Debug)]
pub struct Timings {
    since: Instant,
    marks: Vec<(String, Duration)>,
    n_pes: u32,
    started: u32,
    inits: u32,
    exchanges: u32,
    exited: u32,
}

impl Timings {
    /// Starts the clock.
    pub fn new() -> Timings {
        let (since, marks) = (Instant::now(), Vec::new());
        Timings { since, marks, n_pes: 0, started: 0, inits: 0, exchanges: 0, exited: 0 }
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

    /// The same for a phase that may not be complete.
    pub fn mark_some(&mut self, phase: Option<String>) {
        self.marks.extend(phase.map(|phase| (phase, self.since.elapsed())));
    }

    /// Records the start of a PE.
    pub fn started(&mut self) {
        self.started += 1;
        self.mark_first_and_last(self.started, "PE started");
    }

    /// Records how many PEs have entered initialization.
    pub fn initialized(&mut self, inits: u32) {
        if inits > self.inits {
            self.inits = inits;
            self.mark_first_and_last(inits, "shmem_init entered");
        }
    }

    /// Records the completion of an exchange among all PEs.
    pub fn exchanged(&mut self) {
        self.exchanges += 1;
        self.mark(&format!("exchange {} complete", self.exchanges));
    }

    /// Records the end of a PE.
    pub fn exited(&mut self) {
        self.exited += 1;
        self.mark_first_and_last(self.exited, "PE ended");
    }

    fn mark_first_and_last(&mut self, count: u32, what: &str) {
        if count == 1 {
            self.mark(&format!("first {what}"));
        }
        if count == self.n_pes {
            self.mark(&format!("last {what}"));
        }
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
        (0..3).for_each(|_| timings.started());
        [1, 1, 3].into_iter().for_each(|inits| timings.initialized(inits));
        timings.exchanged();
        timings.exited();
        let table = timings.table();
        let phases: Vec<&str> =
            table.lines().map(|line| line.split(" s  ").nth(1).expect("a phase")).collect();
        assert_eq!(
            phases,
            [
                "hosts and program found",
                "first PE started",
                "last PE started",
                "first shmem_init entered",
                "last shmem_init entered",
                "exchange 1 complete",
                "first PE ended",
            ]
        );
    }
}
