//! Lines on standard error: warnings, and messages where no launcher prints them.

use std::fmt;
use std::io::Write;

/// Prints a line by one write, so that it is not mixed with lines of other PEs. Where standard
/// error is closed or full, the line is lost and the job goes on.
pub(crate) fn print(line: fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Prints a warning: `warning!("{name} is empty")`.
macro_rules! warning {
    ($($what:tt)*) => {
        $crate::call::warning::print(format_args!("warning: {}", format_args!($($what)*)))
    };
}
pub(crate) use warning;
