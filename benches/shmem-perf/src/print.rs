//! Standard output: what cannot be printed is an error with a sentence, where the standard
//! library's macros end the program.

use std::io::Write;

/// Prints all of it at once.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| format!("standard output cannot be written: {error}"))
}
