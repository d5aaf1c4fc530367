//! Lines on standard error, which all PEs of a node may share.
//!
//! `eprintln!` and `writeln!` make a system call for each part of their text, so the parts of lines
//! that two processes print at once are mixed. The crates of Rushmem print by this module instead;
//! .clippy.toml refuses `std::io::stderr` elsewhere.

use std::fmt::Display;
use std::io::{Result, Write};

/// Prints a line by one write, so that it is not mixed with lines of other processes. If standard
/// error is closed or full, the line is lost and the job goes on.
pub fn print_line(line: impl Display) {
    // Nobody can be told that standard error does not take the line.
    let _ = print(&format!("{line}\n"));
}

/// Prints a text as it is, by one write.
///
/// # Errors
///
/// The system's error if standard error is closed or full.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the function that others call instead"
)]
pub fn print(text: &str) -> Result<()> {
    std::io::stderr().write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env::current_exe;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    const PRINTS: &str = "RUSHMEM_TEST_PRINTS";

    /// On this socket each write is a message of its own.
    #[test]
    fn a_line_is_one_write() {
        if std::env::var_os(PRINTS).is_some() {
            print_line(format_args!("PE {}: {}", 1, "a message"));
            return;
        }

        let (here, theirs) = UnixDatagram::pair().expect("a socket can be made");
        here.set_read_timeout(Some(Duration::from_secs(10)))
            .expect("the time is not 0");

        let this = current_exe().expect("the process has a name");
        let status = Command::new(this)
            .args(["--exact", "stderr::tests::a_line_is_one_write"])
            .env(PRINTS, "1")
            .stdout(Stdio::null())
            .stderr(OwnedFd::from(theirs))
            .status()
            .expect("this program can be started");
        assert!(status.success(), "{status}");

        let mut message = [0; 100];
        let nbytes = here.recv(&mut message).expect("a message has arrived");
        assert_eq!(&message[..nbytes], b"PE 1: a message\n");
    }
}
