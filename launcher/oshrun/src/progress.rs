//! A line at the terminal while a large job starts: how many of its PEs have been started.
//!
//! It appears only if stderr is a terminal and the start takes some time, and disappears when all PEs have started.

use std::io::Write;
use std::time::{Duration, Instant};

/// A start that takes less time than this shows nothing; a longer one updates the line at this interval.
const DELAY: Duration = Duration::from_millis(250);

/// The line.
#[derive(Debug)]
pub struct Progress {
    n_pes: u32,
    started: u32,
    shown: Instant,
    /// Whether it is visible on the terminal.
    stands: bool,
    is_wanted: bool,
}

impl Progress {
    /// For a job of so many PEs.
    pub fn new(n_pes: u32) -> Progress {
        let is_wanted = rustix::termios::isatty(rustix::stdio::stderr());
        Progress { n_pes, started: 0, shown: Instant::now(), stands: false, is_wanted }
    }

    /// Another PE was started.
    pub fn started(&mut self) {
        self.started += 1;
        if self.started == self.n_pes {
            self.clear();
        } else if self.is_wanted && self.shown.elapsed() >= DELAY {
            let (started, n_pes) = (self.started, self.n_pes);
            self.show(&format!("\r\x1b[Koshrun: {started} of {n_pes} PEs have started"));
            self.stands = true;
        }
    }

    /// Something else will be printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.stands) {
            self.show("\r\x1b[K");
        }
    }

    fn show(&mut self, text: &str) {
        self.shown = Instant::now();
        // Errors of a closed terminal do not matter.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
