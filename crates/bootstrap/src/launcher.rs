//! The rules of a job at its launcher: what is sent to each PE, when the job ends, and with which
//! status and message.
//!
//! Sans-IO: the caller passes in the bytes that PEs have sent and how their processes have ended,
//! and executes the [`Decision`]s that are returned. There is no socket, process or clock here. The
//! caller must pass in everything that a PE has sent before it reports the exit of that PE.
//!
//! The rules (OpenSHMEM 1.6, "Library Setup, Exit, and Query Routines" does not define the end of a
//! failed job):
//! - A signal that kills a PE ends the job. So does an exit between initialization and finalize
//!   while others run. But if all PEs reach their exit with status 0, there is only a warning.
//! - A PE that exits without an initialization or an exchange that another PE has entered ends the
//!   job, since the other PE can never complete it.
//! - An abort ends the job with the first message, for all PEs that have sent the same one; a
//!   global exit ends it without a message.
//! - A signal that requests the end of programs ends the job at once if a PE has not started, since
//!   it cannot be forwarded to that PE.
//! - If a PE fails before finalize after an allocation has failed, the message names the
//!   allocation. If it fails while it opens a transport, the message names the transport.
//! - Otherwise the job goes on. Its status is that of the first PE that has failed.

pub(crate) mod exit;
mod messages;

use std::sync::Arc;

use exit::{Exit, signal_name};
use rushmem_explain::status::Stage;
use serde::{Deserialize, Serialize};

use crate::node::map::NodeMap;
use crate::proto::{self, Decoder, FromLauncher, FromPe, Receivers, UnmatchedInits};
use crate::records::MAX_RECORD;

use messages::Messages;

/// An action for the launcher, which executes actions in the order in which they are returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send this frame to this PE.
    Send {
        /// The number of the PE in the job.
        pe: u32,
        /// A message, as [`proto::encode`] returns it.
        frame: Arc<[u8]>,
    },
    /// Send this frame to many PEs.
    SendAll {
        /// All PEs, or the first one of each node.
        to: Receivers,
        /// A message, as [`proto::encode`] returns it.
        frame: Arc<[u8]>,
    },
    /// End the job. Only warnings may follow.
    EndJob {
        /// The job's exit status, 0..=255.
        status: i32,
        /// The text to print on stderr, if any; no newline at its end.
        message: Option<String>,
    },
    /// Print a warning on stderr. The job goes on.
    Warn {
        /// The warning; no newline at its end.
        message: String,
    },
    /// All PEs have reported their last finalize. A launcher that may end with one of the PEs
    /// answers them.
    AllFinalized,
}

/// SIGABRT, SIGBUS and SIGSEGV: the signals that may kill a program which uses a null pointer.
const CRASHES: [i32; 3] = [6, 7, 11];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The PE has not called shmem_init.
    Silent,
    /// The PE is between initialization and its last finalize.
    Running,
    /// The PE is at its exit without its last finalize, as are all other PEs.
    Unfinalized(UnmatchedInits),
    /// The last finalize of the PE is done.
    Finalized,
}

#[derive(Debug)]
struct PeState {
    pid: u32,
    phase: Phase,
    /// The number of times that the PE has entered initialization.
    inits: u32,
    /// The record of the PE in the current exchange; `None` until the PE has sent it.
    record: Option<Vec<u8>>,
    decoder: Decoder,
    exit: Option<Exit>,
    /// The description of its first failed allocation.
    refused: Option<String>,
    /// The transport that it is opening; empty if none.
    opening: String,
}

impl PeState {
    /// Returns the state of a PE that has not called shmem_init.
    fn silent() -> PeState {
        PeState {
            pid: 0,
            phase: Phase::Silent,
            inits: 0,
            record: None,
            decoder: Decoder::new(proto::MAX_FROM_PE),
            exit: None,
            refused: None,
            opening: String::new(),
        }
    }
}

/// The state of a job at its launcher.
#[derive(Debug)]
pub struct Server {
    /// The name with which messages of the server itself begin.
    speaker: &'static str,
    nodes: NodeMap,
    hosts: Vec<String>,
    pes: Vec<PeState>,
    /// Number of the current exchange.
    round: u32,
    /// Number of PEs that have contributed to the current exchange.
    records: u32,
    /// The receivers of the records of the current exchange.
    to: Receivers,
    /// Number of PEs that have entered initialization at least once.
    initialized: u32,
    /// Number of PEs that have reported their last finalize since all PEs last had. The phases do
    /// not tell: a PE may have finalized again before another one has resumed.
    finalized: u32,
    status: i32,
    /// The first PE that failed.
    failed: Option<u32>,
    /// The signal that requests the end of the programs, which the launcher has forwarded to them;
    /// `None` if there was none.
    interrupt: Option<i32>,
    /// True once the job has been ended.
    ended: bool,
    statuses: Option<Statuses>,
    messages: Messages,
}

/// The position of the statuses of the PEs of a node in its memory: see [`FromPe::Statuses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses {
    /// The distance between the statuses of two PEs of a node in bytes.
    pub stride: u64,
    /// The offset of the first status in bytes.
    pub offset: u64,
}

impl Server {
    /// Creates the job of the PEs of `nodes`, none of which has called shmem_init. `hosts` are the
    /// names of the nodes.
    ///
    /// # Panics
    /// If there is not one name for each node.
    pub fn new(nodes: NodeMap, hosts: Vec<String>) -> Server {
        assert_eq!(
            hosts.len(),
            nodes.n_nodes() as usize,
            "every node has a name"
        );

        let n_pes = nodes.n_pes();
        Server {
            speaker: "oshrun",
            nodes,
            hosts,
            pes: (0..n_pes).map(|_| PeState::silent()).collect(),
            round: 0,
            records: 0,
            to: Receivers::All,
            initialized: 0,
            finalized: 0,
            status: 0,
            failed: None,
            interrupt: None,
            ended: false,
            statuses: None,
            messages: Messages::new(n_pes),
        }
    }

    /// Sets the name with which messages of the server itself begin, which is `oshrun` by default.
    #[must_use]
    pub fn with_speaker(self, speaker: &'static str) -> Server {
        Server { speaker, ..self }
    }

    /// Returns the position of the statuses of PEs, once PE 0 has reported it.
    pub fn statuses(&self) -> Option<Statuses> {
        self.statuses
    }

    /// Records that the process of `pe` was started.
    pub fn started(&mut self, pe: u32, pid: u32) {
        self.pes[pe as usize].pid = pid;
    }

    /// Handles bytes that `pe` has sent. Returns the decisions that follow.
    pub fn received(&mut self, pe: u32, bytes: &[u8]) -> Vec<Decision> {
        self.pes[pe as usize].decoder.push(bytes);

        let mut decisions = Vec::new();
        // A message may end the job. Those behind it no longer count.
        while !self.ended {
            match self.pes[pe as usize].decoder.take() {
                Ok(Some(message)) => self.handle(pe, message, &mut decisions),
                Ok(None) => break,
                Err(error) => {
                    let what = format!("a frame that cannot be read: {error}");
                    decisions.extend(self.end_on_violation(pe, &what));
                }
            }
        }
        decisions
    }

    /// Handles the end of the process of `pe`. All bytes that it has sent must have been passed to
    /// [`Server::received`]. Returns `None` if nothing follows from it yet.
    pub fn exited(&mut self, pe: u32, exit: Exit) -> Option<Decision> {
        self.pes[pe as usize].exit = Some(exit);
        if self.ended {
            return None;
        }

        if exit.status() != 0 && self.failed.is_none() {
            self.failed = Some(pe);
            self.status = exit.status();
        }

        // The message of a PE is held back for others that may send the same one. The first exit
        // shows that the PEs end, so waiting for more of them only delays the message.
        if self.messages.is_aborting() {
            return self.end(1, None);
        }
        if let Exit::Signal(signal) = exit {
            return self.end_on_killed(pe, signal);
        }

        let others_run = self.pes.iter().any(|other| other.exit.is_none());
        let phase = self.pes[pe as usize].phase;
        if let Some(signal) = self.interrupt
            && matches!(phase, Phase::Running | Phase::Unfinalized(_))
            && others_run
        {
            return self.end_on_signal(signal);
        }

        match phase {
            Phase::Running => self
                .end_on_early_exit(pe, exit, others_run)
                .or_else(|| self.end_if_left_behind()),
            // Only the last of the PEs warns, and only if none has failed.
            Phase::Unfinalized(inits) if !others_run && self.status == 0 => {
                let message = format!("{}: warning: {}", self.speaker, inits.warning());
                Some(Decision::Warn { message })
            }
            _ => self.end_if_left_behind(),
        }
    }

    /// Ends the job since `pe` has exited before finalize. If it is the last PE, does so only for a
    /// failure with a known cause; otherwise returns `None`.
    fn end_on_early_exit(&mut self, pe: u32, exit: Exit, others_run: bool) -> Option<Decision> {
        // An exit with status 0 is no failure that an earlier refusal could explain.
        let cause = if exit.status() == 0 {
            None
        } else {
            self.possible_cause(pe, "before that")
        };
        if cause.is_none() && !others_run {
            return None;
        }

        let message = format!(
            "{}: {} {exit} before shmem_finalize{}",
            self.speaker,
            self.name(pe),
            cause.unwrap_or_default()
        );
        self.end(self.status, Some(message))
    }

    /// Ends the job since a signal has killed `pe`. Returns `None` if the job has already been
    /// ended.
    fn end_on_killed(&mut self, pe: u32, signal: i32) -> Option<Decision> {
        // The PE has died as the user requested, which is no failure of the PE.
        if self.interrupt == Some(signal) {
            return self.end_on_signal(signal);
        }

        let cause = if CRASHES.contains(&signal) {
            self.possible_cause(pe, "if it used a null pointer, that may be because")
                .unwrap_or_default()
        } else {
            String::new()
        };
        let exit = Exit::Signal(signal);
        let message = format!("{}: {} {exit}{cause}", self.speaker, self.name(pe));
        self.end(self.status, Some(message))
    }

    /// Returns the message about the first failed PE, if that PE had not called shmem_init, the job
    /// was not ended for another reason, and no signal has requested the end. It is for the end of
    /// a job whose PEs have printed nothing on stderr.
    pub fn failed_without_init(&self) -> Option<String> {
        if self.ended || self.interrupt.is_some() {
            return None;
        }
        let failed = self.failed?;
        let PeState {
            phase: Phase::Silent,
            exit: Some(exit),
            ..
        } = self.pes[failed as usize]
        else {
            return None;
        };

        let n_failed = self
            .pes
            .iter()
            .filter(|pe| pe.exit.is_some_and(|exit| exit.status() != 0))
            .count();
        let others = match n_failed - 1 {
            0 => String::new(),
            1 => "; 1 other PE failed, too".to_owned(),
            n => format!("; {n} other PEs failed, too"),
        };
        Some(format!(
            "{}: {} {exit} without calling shmem_init{others}",
            self.speaker,
            self.name(failed)
        ))
    }

    /// Returns the end of the message about a failed PE: the transport that it was opening, or
    /// before finalize the allocation that has failed; `None` if there is neither. The PE may have
    /// handled the latter and failed for another reason, so `relation` states how far the two are
    /// related.
    fn possible_cause(&self, pe: u32, relation: &str) -> Option<String> {
        let state = &self.pes[pe as usize];
        if !state.opening.is_empty() {
            return Some(format!(
                "; it was opening {}: select another transport (SHMEM_TRANSPORT), or see what \
                 `shmem-info --doctor` says of this one",
                state.opening
            ));
        }

        let what = state.refused.as_ref()?;
        (state.phase == Phase::Running).then(|| format!("; {relation} it was refused {what}"))
    }

    /// Records that the launcher has forwarded a signal that requests the end of programs. Ends the
    /// job if a PE has not started. Afterwards, an early exit of a PE ends the job with the status
    /// of that signal, not as an error of the PE.
    pub fn interrupted(&mut self, signal: i32) -> Option<Decision> {
        self.interrupt = Some(signal);

        let have_started = self.pes.iter().all(|pe| pe.pid != 0);
        if have_started {
            None
        } else {
            self.end_on_signal(signal)
        }
    }

    /// Ends the job with this status and message, or with those of a PE that has aborted. Returns
    /// `None` if the job has already been ended.
    pub fn end(&mut self, status: i32, message: Option<String>) -> Option<Decision> {
        if self.ended {
            return None;
        }
        self.ended = true;

        // The message of a PE that aborts is more specific than one about the end of its process.
        let (status, message) = match self.messages.take_abort() {
            Some((status, message)) => (status, Some(message)),
            None => (status, message),
        };

        // A job that ends with a message has failed, even if the PE passed 0 or 256.
        self.status = status & 0xff;
        if self.status == 0 && message.is_some() {
            self.status = 1;
        }
        Some(Decision::EndJob {
            status: self.status,
            message,
        })
    }

    /// Returns true if a message of a PE is held back for other PEs that may send the same one.
    pub fn has_pending(&self) -> bool {
        self.messages.has_pending()
    }

    /// Returns the warnings that were held back, and the end of the job if a PE has aborted.
    pub fn take_messages(&mut self) -> Vec<Decision> {
        let warnings = self.messages.take_new_warnings();
        let mut decisions: Vec<Decision> = warnings.into_iter().map(warn).collect();
        if self.messages.is_aborting() {
            decisions.extend(self.end(1, None));
        }
        decisions
    }

    /// Returns all warnings that were held back, and once more those that other PEs have sent since
    /// they were printed, with these PEs.
    pub fn take_all_warnings(&mut self) -> Vec<Decision> {
        let warnings = self.messages.take_all_warnings();
        warnings.into_iter().map(warn).collect()
    }

    /// Returns the exit status of the job so far: the one with which it was ended, otherwise that
    /// of the first PE that failed, otherwise 0.
    pub fn status(&self) -> i32 {
        self.status
    }

    /// Returns the number of PEs that have entered initialization at least once.
    pub fn initialized(&self) -> u32 {
        self.initialized
    }

    /// Returns the name of a PE for messages: `PE 1 (pid 4711, host a)`.
    pub fn name(&self, pe: u32) -> String {
        format!(
            "PE {pe} (pid {}, host {})",
            self.pes[pe as usize].pid,
            self.host(pe)
        )
    }

    /// Returns the name of the host of `pe`.
    pub fn host(&self, pe: u32) -> &str {
        &self.hosts[self.nodes.node_of(pe) as usize]
    }

    /// Returns true while some PEs have contributed to an exchange and others have not.
    pub(crate) fn is_exchanging(&self) -> bool {
        self.records > 0 && !self.ended
    }

    /// Returns true while some PEs have reported their last finalize and others have not.
    pub(crate) fn is_finalizing(&self) -> bool {
        self.finalized > 0 && !self.ended
    }

    /// Returns the number of PEs.
    pub fn n_pes(&self) -> u32 {
        self.nodes.n_pes()
    }

    /// Returns how the process of `pe` has ended, if it has.
    pub fn exit(&self, pe: u32) -> Option<Exit> {
        self.pes[pe as usize].exit
    }

    /// Returns true if `pe` has been started and has not ended.
    pub fn runs(&self, pe: u32) -> bool {
        let state = &self.pes[pe as usize];
        state.pid != 0 && state.exit.is_none()
    }

    /// Returns the process ID of `pe`; 0 if it is not known yet.
    pub fn pid(&self, pe: u32) -> u32 {
        self.pes[pe as usize].pid
    }

    /// Returns the stage of `pe` that its messages show.
    pub fn stage(&self, pe: u32) -> Stage {
        match self.pes[pe as usize].phase {
            Phase::Silent => Stage::Uninitialized,
            Phase::Running | Phase::Unfinalized(_) => Stage::Starting,
            Phase::Finalized => Stage::Finalized,
        }
    }

    fn handle(&mut self, pe: u32, message: FromPe, decisions: &mut Vec<Decision>) {
        let index = pe as usize;
        match (self.pes[index].phase, message) {
            (_, FromPe::Abort { status, message }) => {
                if self.messages.record_abort(pe, status, &message) {
                    decisions.extend(self.end(status, None));
                }
            }
            (_, FromPe::Warning { message }) => {
                decisions.extend(self.messages.record_warning(pe, &message).map(warn));
            }
            (_, FromPe::GlobalExit { status }) => decisions.extend(self.end(status, None)),
            (_, FromPe::Pong) => {}

            (Phase::Silent, FromPe::Hello { pid }) if pid == 0 || pid > i32::MAX as u32 => {
                decisions.extend(self.end_on_violation(pe, "a process ID that cannot be"));
            }
            (Phase::Silent, FromPe::Hello { pid }) => {
                self.pes[index].pid = pid;
                let welcome = FromLauncher::Welcome {
                    pe,
                    nodes: self.nodes.clone(),
                };
                let frame = proto::encode(&welcome).into();
                decisions.push(Decision::Send { pe, frame });
                self.enter(pe, decisions);
            }
            (_, FromPe::Hello { .. }) => {
                let message = format!(
                    "{}: {} started a second OpenSHMEM program in one job: give each program an oshrun \
                     of its own",
                    self.speaker,
                    self.name(pe)
                );
                decisions.extend(self.end(1, Some(message)));
            }

            (Phase::Running, FromPe::Exchange { round, to, record }) => {
                self.add_record(pe, round, to, record, decisions);
            }
            (Phase::Running | Phase::Unfinalized(_), FromPe::Finalized) => {
                self.finalize(pe, decisions);
            }
            (Phase::Running, FromPe::Unfinalized(inits)) => {
                self.pes[index].phase = Phase::Unfinalized(inits);
            }
            (Phase::Running | Phase::Unfinalized(_), FromPe::Refused { what }) => {
                self.pes[index].refused.get_or_insert(what);
            }
            (Phase::Running, FromPe::Opening { what }) => self.pes[index].opening = what,
            (Phase::Running, FromPe::Statuses { stride, offset }) if pe == 0 => {
                self.statuses = Some(Statuses { stride, offset });
            }
            (Phase::Finalized, FromPe::Resumed) => self.enter(pe, decisions),

            _ => decisions.extend(self.end_on_violation(pe, "a message out of turn")),
        }
    }

    /// Records that `pe` has entered initialization.
    fn enter(&mut self, pe: u32, decisions: &mut Vec<Decision>) {
        let state = &mut self.pes[pe as usize];
        state.phase = Phase::Running;
        state.inits += 1;
        if state.inits == 1 {
            self.initialized += 1;
        }

        // Another PE may have exited without the initialization that this one has entered.
        decisions.extend(self.end_if_left_behind());
    }

    /// Records that the last finalize of `pe` is done.
    fn finalize(&mut self, pe: u32, decisions: &mut Vec<Decision>) {
        self.pes[pe as usize].phase = Phase::Finalized;
        self.finalized += 1;
        if self.finalized == self.nodes.n_pes() {
            self.finalized = 0;
            decisions.push(Decision::AllFinalized);
        }
    }

    /// Adds the record of `pe` to exchange number `round`.
    fn add_record(
        &mut self,
        pe: u32,
        round: u32,
        to: Receivers,
        record: Vec<u8>,
        decisions: &mut Vec<Decision>,
    ) {
        // The first record of an exchange decides which PEs receive the records.
        let is_other_exchange = round != self.round || self.records > 0 && to != self.to;
        if is_other_exchange || self.pes[pe as usize].record.is_some() {
            decisions.extend(self.end_on_violation(pe, "an exchange out of turn"));
            return;
        }

        // The other PEs would refuse the records of the exchange.
        if record.len() > MAX_RECORD {
            decisions.extend(self.end_on_violation(pe, "a record that is too large"));
            return;
        }

        self.pes[pe as usize].record = Some(record);
        self.records += 1;
        self.to = to;

        // A PE that has exited already never contributes.
        decisions.extend(self.end_if_left_behind());
        self.gather(decisions);
    }

    /// Completes the current exchange if every PE has contributed.
    fn gather(&mut self, decisions: &mut Vec<Decision>) {
        if self.ended || self.records < self.nodes.n_pes() {
            return;
        }

        let records = self
            .pes
            .iter_mut()
            .filter_map(|pe| pe.record.take())
            .collect();
        let gathered = FromLauncher::Gathered {
            round: self.round,
            records,
        };
        let frame = proto::encode(&gathered).into();
        decisions.push(Decision::SendAll { to: self.to, frame });

        self.round = self.round.wrapping_add(1);
        self.records = 0;
    }

    /// Ends the job if a PE has exited without an initialization or an exchange that another PE has
    /// entered.
    fn end_if_left_behind(&mut self) -> Option<Decision> {
        let most = self.pes.iter().map(|pe| pe.inits).max()?;
        let behind = self
            .pes
            .iter()
            .position(|pe| pe.exit.is_some() && (pe.inits < most || self.records > 0))?;
        let exit = self.pes[behind].exit?;
        let inits = self.pes[behind].inits;

        // The user wanted the programs to end, so that one has is no error.
        if let Some(signal) = self.interrupt {
            return self.end_on_signal(signal);
        }

        let missed = if inits < most {
            let ahead = self.pes.iter().position(|pe| pe.inits == most)?;
            let again = if inits == 0 { "" } else { " again" };
            format!("without calling shmem_init{again}, which PE {ahead} has called")
        } else {
            let waiting = self.pes.iter().position(|pe| pe.record.is_some())?;
            format!("while PE {waiting} waits for it")
        };
        let name = self.name(behind as u32);
        let message = format!("{}: {name} {exit} {missed}", self.speaker);
        self.end(self.status, Some(message))
    }

    fn end_on_signal(&mut self, signal: i32) -> Option<Decision> {
        let name = signal_name(signal);
        let message = format!("{}: the job was ended by {name}", self.speaker);
        self.end(128 + signal, Some(message))
    }

    /// Ends the job since `pe` has violated the protocol. Returns `None` if the job has already
    /// been ended.
    fn end_on_violation(&mut self, pe: u32, what: &str) -> Option<Decision> {
        let message = format!("{}: {} sent {what}", self.speaker, self.name(pe));
        self.end(1, Some(message))
    }
}

fn warn(message: String) -> Decision {
    Decision::Warn { message }
}

#[cfg(test)]
mod tests;
