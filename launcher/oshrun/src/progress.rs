//! The progress of a job, as oshrun prints it: a line on the terminal while PEs start, and the
//! table of `--timings`.

use std::time::Duration;

use rushmem_bootstrap::NodeMap;
use tokio::time::{Instant, sleep_until};

/// Delay before the line appears, and interval between updates.
const INTERVAL: Duration = Duration::from_millis(250);

/// A line on the terminal that shows how many PEs have started, and for which host the others wait.
///
/// Appears only if stderr is a terminal that can erase a line, and the start takes longer than
/// [`INTERVAL`]. Disappears when all PEs have started.
#[derive(Debug)]
pub struct ProgressLine {
    /// The nodes of the job, one for each of `hosts`.
    nodes: NodeMap,
    hosts: Vec<HostStart>,
    /// When the line was shown or erased last; at first, when it was created.
    shown: Instant,
    is_visible: bool,
    is_terminal: bool,
}

/// How far the start has come on one host.
#[derive(Debug)]
struct HostStart {
    name: String,
    n_pes: u32,
    /// True if the daemon of the host has started.
    greeted: bool,
    started: u32,
}

impl ProgressLine {
    /// Creates the line before anything has started. `names` are the names of the hosts.
    pub fn new(nodes: NodeMap, names: &[String]) -> ProgressLine {
        let mut hosts = Vec::new();
        for (node, name) in (0..).zip(names) {
            hosts.push(HostStart {
                name: name.clone(),
                n_pes: nodes.size(node),
                greeted: false,
                started: 0,
            });
        }

        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let is_terminal = rustix::termios::isatty(rustix::stdio::stderr()) && !is_dumb;
        ProgressLine {
            nodes,
            hosts,
            shown: Instant::now(),
            is_visible: false,
            is_terminal,
        }
    }

    fn host_of(&mut self, pe: u32) -> &mut HostStart {
        &mut self.hosts[self.nodes.node_of(pe) as usize]
    }

    /// Records that the daemon has started whose first PE is `pe`.
    pub fn record_daemon(&mut self, pe: u32) {
        self.host_of(pe).greeted = true;
    }

    /// Records the start of a PE.
    pub fn record_start(&mut self, pe: u32) {
        self.host_of(pe).started += 1;
        if self.n_started() == self.nodes.n_pes() {
            self.clear();
        }
    }

    fn n_started(&self) -> u32 {
        self.hosts.iter().map(|host| host.started).sum()
    }

    /// Waits until the line should be shown or updated; forever if there is nothing to show. Cancel
    /// safe.
    pub async fn until_due(&self) {
        if self.is_terminal && self.n_started() < self.nodes.n_pes() {
            sleep_until(self.shown + INTERVAL).await;
        } else {
            std::future::pending().await
        }
    }

    /// Shows the line.
    pub fn update(&mut self) {
        let text = self.text();
        self.show(&format!("\r\x1b[Koshrun: {text}"));
        self.is_visible = true;
    }

    /// Returns the text: how many PEs have started, and the host that is farthest behind, if any.
    fn text(&self) -> String {
        let counts = format!(
            "{} of {} PEs have started",
            self.n_started(),
            self.nodes.n_pes()
        );
        let incomplete = self.hosts.iter().filter(|host| host.started < host.n_pes);
        // Of hosts on which no PE has started, one whose daemon has not answered is farther behind.
        let behind = incomplete.min_by_key(|host| (host.started, host.greeted));
        let Some(host) = behind else {
            return counts;
        };

        let name = &host.name;
        // The PEs of the own host start without a daemon.
        if !host.greeted && host.started == 0 {
            format!("{counts}; host {name} has not answered yet")
        } else {
            let HostStart { started, n_pes, .. } = host;
            format!("{counts}; host {name} has started {started} of {n_pes} PEs")
        }
    }

    /// Erases the line before other output.
    pub fn clear(&mut self) {
        if self.is_visible {
            self.show("\r\x1b[K");
            self.is_visible = false;
        }
    }

    fn show(&mut self, text: &str) {
        self.shown = Instant::now();
        // This fails if the terminal is closed.
        let _ = rushmem_system::stderr::print(text);
    }
}

/// A phase of a PE.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// The process of the PE has been started.
    Started,
    /// The PE has entered `shmem_init`.
    Initialized,
    /// The process of the PE has ended.
    Ended,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Started => "PE started",
            Phase::Initialized => "shmem_init entered",
            Phase::Ended => "PE ended",
        }
    }
}

/// The times at which phases of the job were complete, since the start of oshrun. The number of
/// entries depends neither on the number of PEs nor on that of hosts.
#[derive(Debug)]
pub struct Timings {
    since: std::time::Instant,
    marks: Vec<Mark>,
    n_pes: u32,
    /// The number of PEs that have completed each [`Phase`].
    counts: [u32; 3],
    n_exchanges: u32,
}

/// An entry of the table.
#[derive(Debug)]
struct Mark {
    phase: String,
    /// The time since the start of oshrun.
    elapsed: Duration,
}

impl Timings {
    /// Creates an empty table; times are relative to this call.
    pub fn new() -> Timings {
        Timings {
            since: std::time::Instant::now(),
            marks: Vec::new(),
            n_pes: 0,
            counts: [0; 3],
            n_exchanges: 0,
        }
    }

    /// Records that the job is planned, with this number of PEs.
    pub fn record_plan(&mut self, n_pes: u32) {
        self.n_pes = n_pes;
        self.mark("hosts and program found");
    }

    /// Adds an entry with the present time.
    pub fn mark(&mut self, phase: &str) {
        self.marks.push(Mark {
            phase: phase.to_string(),
            elapsed: self.since.elapsed(),
        });
    }

    /// Records that a PE on `host` has completed a phase. Only the first and the last PE get an
    /// entry.
    pub fn record_phase(&mut self, phase: Phase, host: &str) {
        self.counts[phase as usize] += 1;
        let count = self.counts[phase as usize];
        if count == 1 {
            self.mark(&format!("first {}", phase.name()));
        }
        if count == self.n_pes {
            self.mark(&format!("last {}, on host {host}", phase.name()));
        }
    }

    /// Records that an exchange among all PEs is complete. Only the first and the last exchange
    /// keep their entries.
    pub fn record_exchange(&mut self) {
        self.n_exchanges += 1;
        if self.n_exchanges > 2 {
            let before = format!("exchange {} complete", self.n_exchanges - 1);
            self.marks.retain(|mark| mark.phase != before);
        }
        self.mark(&format!("exchange {} complete", self.n_exchanges));
    }

    /// Formats the table.
    pub fn table(&self) -> String {
        let mut lines = Vec::new();
        for Mark { phase, elapsed } in &self.marks {
            lines.push(format!("oshrun: {:>9.3} s  {phase}", elapsed.as_secs_f64()));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_that_is_farthest_behind_is_named() {
        let nodes = NodeMap::from_runs([(0, 1), (1, 2)]).expect("no empty node");
        let mut line = ProgressLine::new(nodes, &["a".to_owned(), "b".to_owned()]);
        line.record_start(0);
        assert_eq!(
            line.text(),
            "1 of 3 PEs have started; host b has not answered yet"
        );
        line.record_daemon(1);
        assert_eq!(
            line.text(),
            "1 of 3 PEs have started; host b has started 0 of 2 PEs"
        );
        line.record_start(2);
        assert_eq!(
            line.text(),
            "2 of 3 PEs have started; host b has started 1 of 2 PEs"
        );
        line.record_start(1);
        assert_eq!(line.text(), "3 of 3 PEs have started");
    }

    #[test]
    fn the_first_and_the_last_count() {
        let mut timings = Timings::new();
        timings.record_plan(3);
        for host in ["a", "b", "a"] {
            timings.record_phase(Phase::Started, host);
        }
        for host in ["b", "a"] {
            timings.record_phase(Phase::Initialized, host);
        }
        for _ in 0..3 {
            timings.record_exchange();
        }
        timings.record_phase(Phase::Ended, "a");

        let table = timings.table();
        let phases: Vec<&str> = table
            .lines()
            .map(|line| line.split(" s  ").nth(1).expect("a phase"))
            .collect();
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
