//! A line on the terminal that shows how many PEs have started, and which host the others wait for.
//!
//! Appears only if stderr is a terminal and the start takes some time. Disappears when all PEs have
//! started.

use std::io::Write;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

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
        }
    }

    /// Waits until the line should be shown or updated; forever if it should not. Cancel safe.
    pub async fn due(&self) {
        match self.is_terminal && self.started < self.n_pes {
            true => sleep_until(self.shown + INTERVAL).await,
            false => std::future::pending().await,
        }
    }

    /// Shows the line, with what the job waits for.
    pub fn update(&mut self, waits_for: Option<&str>) {
        let (started, n_pes) = (self.started, self.n_pes);
        let waits_for = waits_for.map_or_else(String::new, |waits_for| format!("; {waits_for}"));
        self.show(&format!("\r\x1b[Koshrun: {started} of {n_pes} PEs have started{waits_for}"));
        self.is_visible = true;
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
