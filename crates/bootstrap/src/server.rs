//! The launcher's view of one job: what each PE is sent, when the job has to end, and with
//! which status and words.
//!
//! Sans-IO: it is fed with what arrived from PEs and how their processes ended, and answers with
//! [`Decision`]s. It never sees a socket, a process or a clock, and it must be fed everything a PE
//! sent before it learns that the PE exited.
//!
//! The rules (OpenSHMEM 1.6, "Library Setup, Exit, and Query Routines" leaves the end of a failed
//! job open):
//! - A signal that kills a PE ends the job, and so does an exit between initialization and finalize
//!   while others run, unless all PEs have agreed on it: where every PE comes to its exit with
//!   status 0, a warning is all.
//! - A PE that exits without an initialization or exchange that another PE has entered ends the
//!   job, since that one can never complete.
//! - An abort ends it with the first message and the PEs that send the same one, a global exit
//!   silently.
//! - A signal that asks programs to end ends the job at once if a PE has not started, since it
//!   cannot reach that one.
//! - A PE that fails before finalize after it was refused memory is named with what it was refused,
//!   one that fails while it opens a transport with the transport.
//! - Everything else is left to run; the job's status is that of the first PE that failed.

mod messages;

use std::sync::Arc;

use rushmem_explain::status::Stage;
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, signal_name};
use crate::nodes::NodeMap;
use crate::proto::{self, Decoder, FromLauncher, FromPe, Receivers};

use messages::Messages;

/// The next action of the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send this frame to this PE.
    Send {
        /// The PE.
        pe: u32,
        /// The whole frame.
        frame: Arc<[u8]>,
    },
    /// Send this frame to many PEs.
    SendAll {
        /// To which.
        to: Receivers,
        /// The whole frame.
        frame: Arc<[u8]>,
    },
    /// End the job: no decision follows.
    EndJob {
        /// The job's exit status, 0..=255.
        status: i32,
        /// The text to print on stderr, if any; no newline at its end.
        message: Option<String>,
    },
    /// Print this on stderr; the job goes on as if nothing were.
    Warn {
        /// The warning; no newline at its end.
        message: String,
    },
}

/// SIGABRT, SIGBUS and SIGSEGV: how a program ends that does not notice a null pointer.
const CRASHES: [i32; 3] = [6, 7, 11];

/// The phase of a PE between initialization and finalize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has not called shmem_init.
    Silent,
    /// It is between initialization and its last finalize.
    Running,
    /// It is at its exit, without its last finalize, as all others are.
    Unfinalized,
    /// Its last finalize is done.
    Finalized,
}

#[derive(Debug)]
struct PeState {
    pid: u32,
    phase: Phase,
    /// The number of times that it entered initialization from outside.
    inits: u32,
    /// Its record for the exchange that is in flight.
    record: Option<Vec<u8>>,
    decoder: Decoder,
    exit: Option<Exit>,
    /// The first memory that it was refused.
    refused: Option<String>,
    /// The transport that it opens; empty if none.
    opening: String,
}

/// One job.
#[derive(Debug)]
pub struct Server {
    /// Who speaks in messages.
    speaker: &'static str,
    nodes: NodeMap,
    hosts: Vec<String>,
    pes: Vec<PeState>,
    round: u32,
    records: u32,
    /// The receivers of the records of the exchange in flight.
    to: Receivers,
    initialized: u32,
    status: i32,
    /// The first PE that failed.
    failed: Option<u32>,
    interrupt: Option<i32>,
    ended: bool,
    statuses: Option<Statuses>,
    messages: Messages,
}

/// The position of the statuses of the PEs of a node in its memory: see [`FromPe::Statuses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses {
    /// The distance between two PEs of a node.
    pub stride: u64,
    /// The offset of the first one.
    pub at: u64,
}

impl Server {
    /// Returns a job of as many PEs as `nodes` has, all silent; `hosts` names the nodes in
    /// messages.
    ///
    /// # Panics
    /// When a node has no name.
    pub fn new(nodes: NodeMap, hosts: Vec<String>) -> Server {
        assert_eq!(hosts.len(), nodes.n_nodes() as usize, "every node has a name");
        let silent = || PeState {
            pid: 0,
            phase: Phase::Silent,
            inits: 0,
            record: None,
            decoder: Decoder::new(proto::MAX_FROM_PE),
            exit: None,
            refused: None,
            opening: String::new(),
        };
        let pes = (0..nodes.n_pes()).map(|_| silent()).collect();
        let messages = Messages::new(nodes.n_pes());
        Server {
            speaker: "oshrun",
            nodes,
            hosts,
            pes,
            round: 0,
            records: 0,
            to: Receivers::All,
            initialized: 0,
            status: 0,
            failed: None,
            interrupt: None,
            ended: false,
            statuses: None,
            messages,
        }
    }

    /// Names somebody else than `oshrun` as the speaker of messages.
    #[must_use]
    pub fn speaking_as(self, speaker: &'static str) -> Server {
        Server { speaker, ..self }
    }

    /// Returns where the statuses of PEs are, once PE 0 has mapped the memory of its node.
    pub fn statuses(&self) -> Option<Statuses> {
        self.statuses
    }

    /// Records that the process of `pe` was started.
    pub fn started(&mut self, pe: u32, pid: u32) {
        self.pes[pe as usize].pid = pid;
    }

    /// Takes the bytes that have arrived from `pe`. Returns the decisions that follow.
    pub fn received(&mut self, pe: u32, bytes: &[u8]) -> Vec<Decision> {
        self.pes[pe as usize].decoder.push(bytes);
        let mut decisions = Vec::new();
        while !self.ended {
            match self.pes[pe as usize].decoder.take() {
                Ok(Some(message)) => self.message(pe, message, &mut decisions),
                Ok(None) => break,
                Err(error) => decisions
                    .extend(self.violation(pe, &format!("a frame that cannot be read: {error}"))),
            }
        }
        decisions
    }

    /// Records that the process of `pe` has ended. Every byte that it sent has been passed to
    /// [`Server::received`].
    pub fn exited(&mut self, pe: u32, exit: Exit) -> Option<Decision> {
        self.pes[pe as usize].exit = Some(exit);
        if self.ended {
            return None;
        }
        if exit.status() != 0 && self.failed.is_none() {
            self.failed = Some(pe);
            self.status = exit.status();
        }
        if self.messages.is_aborting() {
            return self.end(1, None);
        }
        if let Exit::Signal(signal) = exit {
            if self.interrupt == Some(signal) {
                return self.interrupted_end(signal);
            }
            let before = match CRASHES.contains(&signal) {
                true => self.before(pe, "if it used a null pointer, that may be because"),
                false => String::new(),
            };
            // Cause: a signal has killed the PE, such as SIGSEGV. Remedy: run it in a debugger, or
            // with `SHMEM_CHECK=1`.
            let message = format!("{}: {} {exit}{before}", self.speaker, self.name(pe));
            return self.end(self.status, Some(message));
        }
        let others_run = self.pes.iter().any(|other| other.exit.is_none());
        let phase = self.pes[pe as usize].phase;
        let is_early = matches!(phase, Phase::Running | Phase::Unfinalized);
        if let Some(signal) = self.interrupt.filter(|_| is_early && others_run) {
            return self.interrupted_end(signal);
        }
        let before = match exit.status() {
            0 => String::new(),
            _ => self.before(pe, "before that"),
        };
        if phase == Phase::Running && (others_run || !before.is_empty()) {
            let name = self.name(pe);
            // Cause: a PE ends while others go on, with `exit` or a return from `main`. Remedy:
            // call `shmem_finalize` or `shmem_global_exit`.
            let message = format!("{}: {name} {exit} before shmem_finalize{before}", self.speaker);
            return self.end(self.status, Some(message));
        }
        if !others_run && self.status == 0 && phase == Phase::Unfinalized {
            // Cause: the program ends without `shmem_finalize`.
            let message = format!(
                "{}: warning: no PE called shmem_finalize; call it before the program ends",
                self.speaker
            );
            return Some(Decision::Warn { message });
        }
        self.left_behind()
    }

    /// Returns what to say at the end of a job that has printed no error, if its first failed PE
    /// had not called shmem_init.
    pub fn failed_without_init(&self) -> Option<String> {
        let failed = self.failed.filter(|_| self.interrupt.is_none() && !self.ended)?;
        let PeState { phase: Phase::Silent, exit: Some(exit), .. } = self.pes[failed as usize]
        else {
            return None;
        };
        let has_failed = |pe: &&PeState| pe.exit.is_some_and(|exit| exit.status() != 0);
        let others = match self.pes.iter().filter(has_failed).count() - 1 {
            0 => String::new(),
            1 => "; 1 other PE failed, too".to_owned(),
            n => format!("; {n} other PEs failed, too"),
        };
        let (speaker, name) = (self.speaker, self.name(failed));
        Some(format!("{speaker}: {name} {exit} without calling shmem_init{others}"))
    }

    /// Returns what to add to the message about a failed PE: the transport that it was opening, or
    /// the memory that it was refused before finalize. It may have noticed the latter, and have
    /// failed for another reason: `how` says what is known.
    fn before(&self, pe: u32, how: &str) -> String {
        let PeState { refused, opening, phase, .. } = &self.pes[pe as usize];
        match (opening.as_str(), refused) {
            ("", Some(what)) if *phase == Phase::Running => {
                format!("; {how} it was refused {what}")
            }
            ("", _) => String::new(),
            (what, _) => format!(
                "; it was opening {what}: select another transport (SHMEM_TRANSPORT), or see what \
                 `shmem-info --doctor` says of this one"
            ),
        }
    }

    /// Records that the launcher has forwarded a signal that asks programs to end: PEs that now end
    /// early are not to blame.
    pub fn interrupted(&mut self, signal: i32) -> Option<Decision> {
        self.interrupt = Some(signal);
        let have_started = self.pes.iter().all(|pe| pe.pid != 0);
        if have_started { None } else { self.interrupted_end(signal) }
    }

    /// Ends the job for the launcher, with its message. Returns `None` if the job is ending
    /// already.
    pub fn end(&mut self, status: i32, message: Option<String>) -> Option<Decision> {
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        // The message of a PE says more than what follows from its end.
        let (status, message) = match self.messages.take_abort() {
            Some((status, message)) => (status, Some(message)),
            None => (status, message),
        };
        self.status = status & 0xff;
        if self.status == 0 && message.is_some() {
            self.status = 1;
        }
        Some(Decision::EndJob { status: self.status, message })
    }

    /// Returns true if a message of a PE waits for others that may send the same one.
    pub fn has_pending(&self) -> bool {
        self.messages.has_pending()
    }

    /// Prints the warnings that were not printed yet, and ends the job if a PE has requested it.
    pub fn say(&mut self) -> Vec<Decision> {
        let warnings = self.messages.warnings(false).into_iter().map(warn);
        let end = if self.messages.is_aborting() { self.end(1, None) } else { None };
        warnings.chain(end).collect()
    }

    /// Prints all warnings, with the PEs with which they were not printed yet.
    pub fn say_rest(&mut self) -> Vec<Decision> {
        self.messages.warnings(true).into_iter().map(warn).collect()
    }

    /// Returns the job's exit status so far: what ended it, else the first failure of a PE, else 0.
    pub fn status(&self) -> i32 {
        self.status
    }

    /// Returns how many PEs have ever entered initialization.
    pub fn initialized(&self) -> u32 {
        self.initialized
    }

    /// `PE 1 (pid 4711, host a)`.
    pub fn name(&self, pe: u32) -> String {
        format!("PE {pe} (pid {}, host {})", self.pes[pe as usize].pid, self.host(pe))
    }

    /// Returns the name of the host of `pe`.
    pub fn host(&self, pe: u32) -> &str {
        &self.hosts[self.nodes.node_of(pe) as usize]
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

    /// Returns the process of `pe` and how far the PE has come, as far as its messages show.
    pub fn progress(&self, pe: u32) -> (u32, Stage) {
        let PeState { pid, phase, .. } = self.pes[pe as usize];
        let stage = match phase {
            Phase::Silent => Stage::Uninitialized,
            Phase::Running | Phase::Unfinalized => Stage::Starting,
            Phase::Finalized => Stage::Finalized,
        };
        (pid, stage)
    }

    fn message(&mut self, pe: u32, message: FromPe, decisions: &mut Vec<Decision>) {
        let index = pe as usize;
        match (self.pes[index].phase, message) {
            (_, FromPe::Abort { status, message }) => {
                if self.messages.aborted(pe, status, &message) {
                    decisions.extend(self.end(status, None));
                }
            }
            (_, FromPe::Warning { message }) => {
                decisions.extend(self.messages.warned(pe, &message).map(warn));
            }
            (_, FromPe::GlobalExit { status }) => decisions.extend(self.end(status, None)),
            (Phase::Silent, FromPe::Hello { pid }) => {
                self.pes[index].pid = pid;
                let welcome = FromLauncher::Welcome { pe, nodes: self.nodes.clone() };
                decisions.push(Decision::Send { pe, frame: proto::encode(&welcome).into() });
                self.enter(pe, decisions);
            }
            (_, FromPe::Hello { .. }) => decisions.extend(self.end(
                1,
                Some(format!(
                    "{}: {} started a second OpenSHMEM program in one job: give each program an oshrun of its own",
                    self.speaker,
                    self.name(pe)
                )),
            )),
            (Phase::Running, FromPe::Exchange { round, to, record }) => {
                let is_other = round != self.round || self.records > 0 && to != self.to;
                if is_other || self.pes[index].record.replace(record).is_some() {
                    decisions.extend(self.violation(pe, "an exchange out of turn"));
                    return;
                }
                self.records += 1;
                self.to = to;
                decisions.extend(self.left_behind());
                self.gather(decisions);
            }
            (Phase::Running | Phase::Unfinalized, FromPe::Finalized) => {
                self.pes[index].phase = Phase::Finalized;
            }
            (Phase::Running, FromPe::Unfinalized) => self.pes[index].phase = Phase::Unfinalized,
            (Phase::Running | Phase::Unfinalized, FromPe::Refused { what }) => {
                self.pes[index].refused.get_or_insert(what);
            }
            (Phase::Running, FromPe::Opening { what }) => self.pes[index].opening = what,
            (Phase::Running, FromPe::Statuses { stride, at }) if pe == 0 => {
                self.statuses = Some(Statuses { stride, at });
            }
            (Phase::Finalized, FromPe::Resumed) => self.enter(pe, decisions),
            _ => decisions.extend(self.violation(pe, "a message out of turn")),
        }
    }

    /// `pe` goes through initialization.
    fn enter(&mut self, pe: u32, decisions: &mut Vec<Decision>) {
        self.pes[pe as usize].phase = Phase::Running;
        self.pes[pe as usize].inits += 1;
        self.initialized += u32::from(self.pes[pe as usize].inits == 1);
        decisions.extend(self.left_behind());
    }

    /// Completes the exchange in flight if every PE has contributed.
    fn gather(&mut self, decisions: &mut Vec<Decision>) {
        if self.ended || self.records < self.nodes.n_pes() {
            return;
        }
        let records = self.pes.iter_mut().filter_map(|pe| pe.record.take()).collect();
        let gathered = FromLauncher::Gathered { round: self.round, records };
        let frame = proto::encode(&gathered).into();
        decisions.push(Decision::SendAll { to: self.to, frame });
        self.round = self.round.wrapping_add(1);
        self.records = 0;
    }

    /// Ends the job if a PE has exited without something collective that another PE has entered.
    fn left_behind(&mut self) -> Option<Decision> {
        let most = self.pes.iter().map(|pe| pe.inits).max()?;
        let left = |pe: &PeState| pe.exit.is_some() && (pe.inits < most || self.records > 0);
        let behind = self.pes.iter().position(left)?;
        let PeState { exit: Some(exit), inits, .. } = self.pes[behind] else {
            return None;
        };
        if let Some(signal) = self.interrupt {
            return self.interrupted_end(signal);
        }
        let missed = if inits < most {
            let ahead = self.pes.iter().position(|pe| pe.inits == most)?;
            let again = if inits == 0 { "" } else { " again" };
            format!("without calling shmem_init{again}, which PE {ahead} has called")
        } else {
            let waiting = self.pes.iter().position(|pe| pe.record.is_some())?;
            format!("while PE {waiting} waits for it")
        };
        let (speaker, name) = (self.speaker, self.name(behind as u32));
        self.end(self.status, Some(format!("{speaker}: {name} {exit} {missed}")))
    }

    fn interrupted_end(&mut self, signal: i32) -> Option<Decision> {
        self.end(
            128 + signal,
            // Cause: this signal was sent to oshrun. Remedy: none is needed; a batch system may
            // have sent it at a time limit.
            Some(format!("{}: the job was ended by {}", self.speaker, signal_name(signal))),
        )
    }

    fn violation(&mut self, pe: u32, what: &str) -> Option<Decision> {
        self.end(1, Some(format!("{}: {} sent {what}", self.speaker, self.name(pe))))
    }
}

fn warn(message: String) -> Decision {
    Decision::Warn { message }
}

#[cfg(test)]
mod tests;
