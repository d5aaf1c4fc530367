//! Printing: text in columns, paragraphs as wide as a narrow terminal, and the progress bar of a
//! run. If standard output cannot be written, [`print`] returns an error, whereas the macros of the
//! standard library panic.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

use textwrap::{Options, WordSplitter};

/// The maximum width of a paragraph in columns, since a PE does not know the width of the user's
/// terminal.
const WIDTH: usize = 80;

/// Writes text to standard output and flushes it. An error is one sentence.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| format!("standard output cannot be written: {error}"))
}

/// Returns a paragraph in lines, the first after `first`, the others indented as much.
pub fn paragraph(first: &str, text: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let options = Options::new(WIDTH)
        .initial_indent(first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}

/// Returns rows as lines whose columns are as wide as their widest cells. The first `n_left`
/// columns are aligned at the left, the others at the right.
pub fn aligned(indent: &str, rows: &[Vec<String>], n_left: usize) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![0; n_columns];
    for row in rows {
        for (cell, width) in row.iter().zip(&mut widths) {
            *width = cell.chars().count().max(*width);
        }
    }

    let mut text = String::new();
    for row in rows {
        let mut cells = Vec::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            cells.push(if column < n_left {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            });
        }
        text += format!("{indent}{}", cells.join("  ")).trim_end();
        text.push('\n');
    }
    text
}

/// Opens the file to which this link of `/proc` leads, if it is a terminal.
fn open_terminal(link: &str) -> Option<File> {
    // Anything but a terminal is left alone: opening a pipe could wait.
    let target = std::fs::read_link(link).ok()?;
    let name = target.to_string_lossy();
    if !name.starts_with("/dev/pts/") && !name.starts_with("/dev/tty") {
        return None;
    }

    let file = File::options().write(true).open(&target).ok()?;
    if file.is_terminal() { Some(file) } else { None }
}

const BAR_WIDTH: usize = 30;
/// The time that a launcher may need to forward the text that was printed before the bar.
const PASSED_ON: Duration = Duration::from_millis(300);

/// The progress bar of a run, which only a terminal shows, not a pipe or a file.
pub struct Bar {
    terminal: Option<File>,
    cleared: Instant,
}

impl Bar {
    /// Creates a bar on the terminal of standard error, or of the launcher that forwards it.
    /// Without such a terminal, or unless `is_wanted`, the bar shows nothing.
    pub fn new(is_wanted: bool) -> Self {
        let terminal = if is_wanted {
            let of_launcher = format!("/proc/{}/fd/2", parent_id());
            open_terminal("/proc/self/fd/2").or_else(|| open_terminal(&of_launcher))
        } else {
            None
        };

        Self {
            terminal,
            cleared: Instant::now(),
        }
    }

    /// Shows which part is done and what is next, but not shortly after `clear`. The cursor is at
    /// the left, for text that the launcher forwards late.
    pub fn show(&mut self, part: f64, what: &str) {
        let filled = (part.clamp(0.0, 1.0) * BAR_WIDTH as f64) as usize;
        let bar = "#".repeat(filled) + &".".repeat(BAR_WIDTH - filled);
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
            // The run goes on if the terminal has been closed.
            _ = terminal.write_all(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["", "bytes"], ["put", "8"], ["get_nbi", "64"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let text = "           bytes\n  put          8\n  get_nbi     64\n";
        assert_eq!(aligned("  ", &rows, 1), text);
    }

    #[test]
    fn a_bar_waits_for_text_and_ends_at_the_left() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("terminal");
        let terminal = File::create(&path).expect("a file");
        let mut bar = Bar {
            terminal: Some(terminal),
            cleared: Instant::now(),
        };
        bar.show(0.5, "put");
        assert_eq!(std::fs::read(&path).expect("a file"), b"");
        bar.cleared -= PASSED_ON;
        bar.show(0.5, "put");
        let shown = std::fs::read_to_string(&path).expect("a file");
        assert!(
            shown.starts_with('\r') && shown.ends_with(" 50 %  put\r"),
            "{shown:?}"
        );
    }
}
