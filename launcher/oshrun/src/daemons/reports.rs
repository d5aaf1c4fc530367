//! Checks the messages of a daemon: numbers of PEs and ends of processes that cannot be, and
//! messages out of turn, would mislead the rules of the job.

use std::ops::Range;

use rushmem_bootstrap::Exit;

use super::connection::HostEvent;

/// What a daemon has reported so far.
#[derive(Debug)]
pub struct HostReports {
    /// The PEs of its host.
    pes: Range<u32>,
    /// The state of each of them.
    states: Vec<PeState>,
    /// True once it has reported a failure: then some PEs may not have been started.
    has_failed: bool,
    /// The number of pieces of input that were sent to PE 0 and are not known to be consumed.
    n_inputs: usize,
    /// True once it was ordered to finish.
    is_finishing: bool,
}

/// The state of a PE, as its daemon has reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeState {
    NotStarted,
    Running,
    Ended,
}

impl HostReports {
    /// Creates the reports of a daemon for these PEs, which has reported nothing.
    pub fn new(pes: Range<u32>) -> HostReports {
        HostReports {
            states: vec![PeState::NotStarted; pes.len()],
            pes,
            has_failed: false,
            n_inputs: 0,
            is_finishing: false,
        }
    }

    /// Records that a piece of input was sent to the daemon.
    pub fn record_input(&mut self) {
        self.n_inputs += 1;
    }

    /// Records that the daemon was ordered to finish.
    pub fn record_finish(&mut self) {
        self.is_finishing = true;
    }

    /// Records a message of the daemon.
    ///
    /// # Errors
    /// If the daemon cannot have sent it: what is wrong, as the end of a sentence.
    pub fn record(&mut self, message: &HostEvent) -> Result<(), String> {
        match message {
            HostEvent::Started { pe, .. } => {
                let state = self.state(*pe)?;
                if *state != PeState::NotStarted {
                    return Err(format!("it reported the start of PE {pe} twice"));
                }
                *state = PeState::Running;
            }
            HostEvent::Frames { pe, .. } => {
                if *self.state(*pe)? != PeState::Running {
                    return Err(format!(
                        "it passed on a message of PE {pe}, which does not run"
                    ));
                }
            }
            HostEvent::Exited { pe, exit } => self.record_exit(*pe, *exit)?,
            HostEvent::Failed { .. } => self.has_failed = true,
            HostEvent::Snapshots(batch) => {
                for snapshot in &batch.snapshots {
                    self.state(snapshot.pe)?;
                }
            }
            HostEvent::Overdue(wait) => {
                self.state(wait.pe)?;
            }
            HostEvent::InputConsumed => {
                let Some(rest) = self.n_inputs.checked_sub(1) else {
                    return Err("it passed on input to PE 0 that it had not received".to_string());
                };
                self.n_inputs = rest;
            }
            HostEvent::Idle => self.check_idle()?,
            HostEvent::Done if !self.is_finishing => {
                return Err("it ended before the job".to_string());
            }
            // The task that reads the messages handles the greeting and the output of PEs.
            HostEvent::Greeted { .. } | HostEvent::Printed(_) => {
                return Err("it sent a second greeting".to_string());
            }
            HostEvent::Notice(_) | HostEvent::Done | HostEvent::Pong => {}
        }
        Ok(())
    }

    fn record_exit(&mut self, pe: u32, exit: Exit) -> Result<(), String> {
        let has_failed = self.has_failed;
        let state = self.state(pe)?;
        match *state {
            PeState::Running => {}
            // The failure came after the start of the process, and before the report of the start.
            PeState::NotStarted if has_failed => {}
            PeState::NotStarted => {
                return Err(format!("it reported the end of PE {pe} before its start"));
            }
            PeState::Ended => return Err(format!("it reported the end of PE {pe} twice")),
        }
        *state = PeState::Ended;

        match exit {
            Exit::Status(0..=255) | Exit::Signal(1..=64) => Ok(()),
            _ => Err(format!("it reported that PE {pe} {exit}, which cannot be")),
        }
    }

    /// Checks that all PEs have ended.
    fn check_idle(&self) -> Result<(), String> {
        for (pe, state) in self.pes.clone().zip(&self.states) {
            match state {
                PeState::Running => {
                    return Err(format!(
                        "it reported that all PEs have ended, but PE {pe} runs"
                    ));
                }
                PeState::NotStarted if !self.has_failed => {
                    return Err(format!(
                        "it reported that all PEs have ended, but PE {pe} was not started"
                    ));
                }
                PeState::NotStarted | PeState::Ended => {}
            }
        }
        Ok(())
    }

    /// Returns the state of a PE.
    ///
    /// # Errors
    /// If the PE is not one of this host.
    fn state(&mut self, pe: u32) -> Result<&mut PeState, String> {
        check_pe(pe, &self.pes)?;
        Ok(&mut self.states[(pe - self.pes.start) as usize])
    }
}

/// Checks that a PE is one of those of a daemon's host.
///
/// # Errors
/// What is wrong, as the end of a sentence.
pub fn check_pe(pe: u32, pes: &Range<u32>) -> Result<(), String> {
    if pes.contains(&pe) {
        return Ok(());
    }
    let last = pes.end - 1;
    let own = if pes.start == last {
        format!("PE {last}")
    } else {
        format!("PEs {}-{last}", pes.start)
    };
    Err(format!("it reported on PE {pe}, but runs {own} only"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_explain::snapshot::{PeSnapshot, ProcessState, WaitId};

    use crate::hang_report::snapshots::SnapshotBatch;

    fn started(pe: u32) -> HostEvent {
        HostEvent::Started { pe, pid: 10 }
    }

    fn frames(pe: u32) -> HostEvent {
        HostEvent::Frames {
            pe,
            bytes: Vec::new(),
        }
    }

    fn exited(pe: u32, exit: Exit) -> HostEvent {
        HostEvent::Exited { pe, exit }
    }

    fn snapshot(pe: u32) -> HostEvent {
        HostEvent::Snapshots(SnapshotBatch {
            number: 1,
            snapshots: vec![PeSnapshot::new(pe, ProcessState::Sleeps)],
        })
    }

    fn overdue(pe: u32) -> HostEvent {
        HostEvent::Overdue(WaitId {
            pe,
            thread: 1,
            since: 1,
        })
    }

    /// Passes messages to the reports of PEs 1 and 2. Returns the error of the last one; none of
    /// those before has one.
    fn last_error(mut messages: Vec<HostEvent>) -> Option<String> {
        let mut reports = HostReports::new(1..3);
        let last = messages.pop().expect("a message");
        for message in &messages {
            reports.record(message).expect("a valid message");
        }
        reports.record(&last).err()
    }

    #[test]
    fn a_whole_job_is_valid() {
        let mut reports = HostReports::new(1..3);
        reports.record_input();
        for message in [
            HostEvent::Notice("a".to_string()),
            started(1),
            started(2),
            frames(2),
            HostEvent::Pong,
            HostEvent::InputConsumed,
            snapshot(1),
            overdue(2),
            exited(2, Exit::Status(255)),
            HostEvent::failed("lost output".to_string()),
            exited(1, Exit::Signal(64)),
            HostEvent::Idle,
        ] {
            reports.record(&message).expect("a valid message");
        }
        reports.record_finish();
        reports.record(&HostEvent::Done).expect("a valid message");
    }

    #[test]
    fn a_daemon_that_could_not_start_a_pe_is_idle() {
        let failed = || HostEvent::failed("no memory".to_string());
        let end = exited(1, Exit::Signal(9));
        assert_eq!(last_error(vec![failed(), HostEvent::Idle]), None);
        assert_eq!(last_error(vec![failed(), end, HostEvent::Idle]), None);
    }

    #[test]
    fn each_wrong_number_and_turn_is_an_error() {
        let ended = || exited(1, Exit::Status(0));
        let both = || vec![started(1), started(2)];
        let after = |mut before: Vec<HostEvent>, last| {
            before.push(last);
            last_error(before).unwrap_or_default()
        };

        for other in [0, 3, 99, u32::MAX] {
            for message in [
                started(other),
                frames(other),
                exited(other, Exit::Status(0)),
                snapshot(other),
                overdue(other),
            ] {
                let error = format!("it reported on PE {other}, but runs PEs 1-2 only");
                assert_eq!(after(both(), message), error);
            }
        }

        for exit in [
            Exit::Status(256),
            Exit::Status(-1),
            Exit::Signal(0),
            Exit::Signal(i32::MAX),
            Exit::Unknown,
        ] {
            let error = after(both(), exited(1, exit));
            assert!(error.ends_with("which cannot be"), "{error}");
        }

        for (before, last, error) in [
            (both(), started(1), "it reported the start of PE 1 twice"),
            (
                vec![],
                ended(),
                "it reported the end of PE 1 before its start",
            ),
            (
                vec![started(1), ended()],
                ended(),
                "it reported the end of PE 1 twice",
            ),
            (
                vec![],
                frames(1),
                "it passed on a message of PE 1, which does not run",
            ),
            (
                both(),
                HostEvent::Idle,
                "it reported that all PEs have ended, but PE 1 runs",
            ),
            (
                vec![started(1), ended()],
                HostEvent::Idle,
                "it reported that all PEs have ended, but PE 2 was not started",
            ),
            (both(), HostEvent::Done, "it ended before the job"),
            (
                both(),
                HostEvent::InputConsumed,
                "it passed on input to PE 0 that it had not received",
            ),
            (
                both(),
                HostEvent::Greeted { pe: 1 },
                "it sent a second greeting",
            ),
        ] {
            assert_eq!(after(before, last), error);
        }
    }
}
