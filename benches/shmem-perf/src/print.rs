//! What the program prints: text in columns, and paragraphs as wide as a narrow terminal. What cannot
//! be printed is an error with a sentence, where the standard library's macros end the program.

use std::io::Write;

use textwrap::{Options, WordSplitter};

/// Columns of a terminal. How many that of the user has, PEs do not know.
const WIDTH: usize = 80;

/// Prints all of it at once.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| format!("standard output cannot be written: {error}"))
}

/// Returns a paragraph in lines, the first after `first`, the others indented as much.
pub fn paragraph(first: &str, text: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let options = Options::new(WIDTH).initial_indent(first).subsequent_indent(&indent);
    let options = options.break_words(false).word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}

/// Rows whose columns are as wide as their widest cells. The first `n_left` columns are aligned at
/// the left, the others at the right.
pub fn aligned(indent: &str, rows: &[Vec<String>], n_left: usize) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cell = |(column, (cell, &width)): (usize, (&String, &usize))| match column < n_left {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        };
        let cells: Vec<String> = row.iter().zip(&widths).enumerate().map(cell).collect();
        text += format!("{indent}{}", cells.join("  ")).trim_end();
        text.push('\n');
    }
    text
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
}
