//! The progress bar of a run, which only a terminal shows, not a pipe or a file.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

const WIDTH: usize = 30;
/// The time that a launcher may need to forward the text that was printed before the bar.
const PASSED_ON: Duration = Duration::from_millis(300);

/// A bar, or nothing where there is no terminal.
pub struct Bar {
    terminal: Option<File>,
    cleared: Instant,
}

impl Bar {
    /// Creates a bar on the terminal of standard error, or of the launcher that forwards it.
    pub fn new(is_wanted: bool) -> Self {
        let launchers = format!("/proc/{}/fd/2", parent_id());
        let places = ["/proc/self/fd/2", &launchers];
        let open = |path: &&str| {
            // Anything but a terminal is left alone: opening a pipe could wait.
            let target = std::fs::read_link(path).ok()?;
            let name = target.to_string_lossy();
            if !["/dev/pts/", "/dev/tty"].iter().any(|start| name.starts_with(start)) {
                return None;
            }
            let file = File::options().write(true).open(&target).ok()?;
            file.is_terminal().then_some(file)
        };
        let terminal = if is_wanted { places.iter().find_map(open) } else { None };
        Self { terminal, cleared: Instant::now() }
    }

    /// Shows which part is done and what is next. The cursor is at the left, for text that the
    /// launcher forwards late.
    pub fn show(&mut self, part: f64, what: &str) {
        let filled = (part.clamp(0.0, 1.0) * WIDTH as f64) as usize;
        let bar = "#".repeat(filled) + &".".repeat(WIDTH - filled);
        if self.cleared.elapsed() > PASSED_ON {
            self.print(&format!("\r\x1b[K[{bar}] {:3.0} %  {what}\r", part * 100.0));
        }
    }

    /// Removes the bar before other text is printed.
    pub fn clear(&mut self) {
        self.cleared = Instant::now();
        self.print("\r\x1b[K");
    }

    fn print(&mut self, text: &str) {
        if let Some(terminal) = &mut self.terminal {
            // A terminal that is gone is no reason to stop.
            _ = terminal.write_all(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_for_text_and_ends_at_the_left() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("terminal");
        let terminal = File::create(&path).expect("a file");
        let mut bar = Bar { terminal: Some(terminal), cleared: Instant::now() };
        bar.show(0.5, "put");
        assert_eq!(std::fs::read(&path).expect("a file"), b"");
        bar.cleared -= PASSED_ON;
        bar.show(0.5, "put");
        let shown = std::fs::read_to_string(&path).expect("a file");
        assert!(shown.starts_with('\r') && shown.ends_with(" 50 %  put\r"), "{shown:?}");
    }
}
