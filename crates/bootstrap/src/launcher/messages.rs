//! Messages of PEs to the user. They are held back for a short time, so that equal ones are printed
//! together, with the PEs that have sent them.

use rushmem_explain::ranges;

/// Maximum number of different warnings that are kept; further ones are printed immediately. It
/// bounds the memory of the launcher, and the comparisons for each warning.
const MAX_WARNINGS: usize = 64;

/// The messages of a job.
#[derive(Debug)]
pub(super) struct Messages {
    n_pes: u32,
    /// The status and the first message of PEs that end the job, until it is printed.
    aborting: Option<(i32, JoinedMessage)>,
    warnings: Vec<JoinedMessage>,
}

/// A message and the PEs that have sent it.
#[derive(Debug)]
struct JoinedMessage {
    text: String,
    pes: Vec<u32>,
    /// The number of these PEs, in this order, that were printed with the message.
    printed: usize,
}

impl Messages {
    pub(super) fn new(n_pes: u32) -> Messages {
        Messages {
            n_pes,
            aborting: None,
            warnings: Vec::new(),
        }
    }

    pub(super) fn is_aborting(&self) -> bool {
        self.aborting.is_some()
    }

    /// Returns true if a message is held back for other PEs that may send the same one.
    pub(super) fn has_pending(&self) -> bool {
        self.is_aborting() || self.warnings.iter().any(|joined| joined.printed == 0)
    }

    /// Returns the warnings that have not been printed, and marks them as printed.
    pub(super) fn take_new_warnings(&mut self) -> Vec<String> {
        let mut taken = Vec::new();
        for joined in &mut self.warnings {
            if joined.printed == 0 {
                taken.push(joined.take_warning(self.n_pes));
            }
        }
        taken
    }

    /// Returns the warnings that were not printed for all PEs that have sent them, and marks them
    /// as printed. One that was printed before names only the PEs that have sent it since.
    pub(super) fn take_all_warnings(&mut self) -> Vec<String> {
        let mut taken = Vec::new();
        for joined in &mut self.warnings {
            if joined.printed < joined.pes.len() {
                taken.push(joined.take_warning(self.n_pes));
            }
        }
        taken
    }

    /// Records a warning of a PE. Returns the text to print if all PEs have sent this warning now
    /// and it was not printed before, or if too many warnings are kept.
    pub(super) fn record_warning(&mut self, pe: u32, message: &str) -> Option<String> {
        let known = self
            .warnings
            .iter_mut()
            .position(|joined| joined.join(pe, message));
        let index = match known {
            Some(index) => index,
            None if self.warnings.len() == MAX_WARNINGS => {
                return Some(JoinedMessage::new(pe, message).take_warning(self.n_pes));
            }
            None => {
                self.warnings.push(JoinedMessage::new(pe, message));
                self.warnings.len() - 1
            }
        };

        // No other PE can still send a warning that all PEs have sent, so it need not wait.
        let joined = &mut self.warnings[index];
        if joined.printed == 0 && joined.pes.len() as u32 == self.n_pes {
            Some(joined.take_warning(self.n_pes))
        } else {
            None
        }
    }

    /// Records the message of a PE that ends the job. Only the first message of a job is kept.
    /// Returns true if all PEs have sent that one.
    pub(super) fn record_abort(&mut self, pe: u32, status: i32, message: &str) -> bool {
        let (_, joined) = self
            .aborting
            .get_or_insert_with(|| (status, JoinedMessage::new(pe, message)));
        joined.join(pe, message);
        joined.pes.len() as u32 == self.n_pes
    }

    /// Takes the status and the message of the PEs that end the job; `None` if no PE does.
    pub(super) fn take_abort(&mut self) -> Option<(i32, String)> {
        let (status, mut joined) = self.aborting.take()?;
        Some((status, joined.take_line(self.n_pes)))
    }
}

impl JoinedMessage {
    fn new(pe: u32, message: &str) -> JoinedMessage {
        JoinedMessage {
            text: without_name(pe, message).to_owned(),
            pes: vec![pe],
            printed: 0,
        }
    }

    /// Adds a PE if its message is the same one. Returns false if it is another one.
    fn join(&mut self, pe: u32, message: &str) -> bool {
        let is_same = self.text == without_name(pe, message);
        if is_same && !self.pes.contains(&pe) {
            self.pes.push(pe);
        }
        is_same
    }

    fn take_warning(&mut self, n_pes: u32) -> String {
        format!("warning: {}", self.take_line(n_pes))
    }

    /// Returns the message with those PEs that were not printed with it so far, and marks them as
    /// printed. `n_pes` is the number of PEs of the job.
    fn take_line(&mut self, n_pes: u32) -> String {
        let pes = ranges::sorted(&self.pes[self.printed..]);
        self.printed = self.pes.len();

        if pes.len() as u32 == n_pes && n_pes > 1 {
            format!("all {n_pes} PEs: {}", self.text)
        } else {
            format!("{}: {}", ranges::pes(&pes), self.text)
        }
    }
}

/// Returns the message without the name of the PE at its start.
fn without_name(pe: u32, message: &str) -> &str {
    message
        .strip_prefix(&format!("PE {pe}: "))
        .unwrap_or(message)
}
