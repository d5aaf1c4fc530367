//! Paragraphs that fit the terminal.

use std::io::IsTerminal;

use textwrap::{Options, WordSplitter};

/// The width of lines if neither a terminal nor the variable COLUMNS gives one.
const COLUMNS: usize = 100;

/// Breaks a paragraph into lines; those after the first one are indented by this many columns.
pub fn wrapped(paragraph: &str, indent: usize) -> String {
    let indent = " ".repeat(indent);
    let options = Options::new(columns())
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(paragraph, options)
}

/// Shows a line of progress on stderr if that is a terminal that can erase lines. The next call
/// replaces the line, so an empty text erases it.
pub fn progress(what: &str) {
    let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    if rustix::stdio::stderr().is_terminal() && !is_dumb {
        eprint!("\r\x1b[K{what}");
    }
}

/// Returns the width of the terminal, or else the value of the variable COLUMNS, or else
/// [`COLUMNS`].
fn columns() -> usize {
    if let Some((width, _)) = terminal_size::terminal_size() {
        return width.0.into();
    }
    let variable = std::env::var("COLUMNS").unwrap_or_default();
    variable.parse().unwrap_or(COLUMNS)
}
