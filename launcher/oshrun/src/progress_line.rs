//! A line on the terminal that shows how many PEs have started.
//!
//! Appears only if stderr is a terminal and the start takes some time. Disappears when all PEs have
//! started.

use std::io::Write;
use std::time::{Duration, Instant};

/// Delay before the line appears, and interval between updates.
const INTERVAL: Duration = Duration::from_millis(250);

/// The progress line.
#[derive(Debug)]
pub struct ProgressLine {
    n_pes: u32,
    started: u32,
    shown: Instant,
    is_visible: bool,
    is_terminal: bool,
}

impl ProgressLine {
    /// For a job of `n_pes` PEs.
    pub fn new(n_pes: u32) -> ProgressLine {
        let is_terminal = rustix::termios::isatty(rustix::stdio::stderr());
        ProgressLine { n_pes, started: 0, shown: Instant::now(), is_visible: false, is_terminal }
    }

    /// Records the start of a PE.
    pub fn started(&mut self) {
        self.started += 1;
        if self.started == self.n_pes {
            self.clear();
        } else if self.is_terminal && self.shown.elapsed() >= INTERVAL {
            let (started, n_pes) = (self.started, self.n_pes);
            self.show(&format!("\r\x1b[Koshrun: {started} of {n_pes} PEs have started"));
            self.is_visible = true;
        }
    }

    /// Erases the line before other output.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_visible) {
            self.show("\r\x1b[K");
        }
    }

    fn show(&mut self, text: &str) {
        self.shown = Instant::now();
        // Errors of a closed terminal do not matter.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
