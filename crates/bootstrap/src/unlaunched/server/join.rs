//! How a process joins a meeting: it proves that it knows the secret, states which PE it is, and is
//! then a member or is refused. The job begins when all PEs have joined.

use rushmem_connect::handshake::Answer;
use rushmem_connect::strangers::Proven;

use super::{JoinState, MeetingServer, Member, SPEAKER};
use crate::launcher::Server;
use crate::node::map::NodeMap;
use crate::proto::{self, Decoder, FrameError, FromLauncher, FromPe};
use crate::unlaunched::route::MeetingSource;

impl MeetingServer {
    /// Answers a process that knows the secret.
    pub(super) fn answer(&mut self, proven: Proven) {
        // All PEs of the job are there, so this process may be one of the next job at this address.
        let runs = self.job.is_some() && self.over.is_none();
        if runs && matches!(self.source, MeetingSource::Variables) {
            // If this fails, the process tries again, as it does after the answer.
            let _ = proven.answer(Answer::Deferral);
            return;
        }

        let from = proven.from;
        // If this fails, the process has gone, and may connect again.
        if let Ok((stream, session)) = proven.welcome() {
            let number = self.connections.add(&self.watch, stream, session);
            let decoder = Decoder::new(proto::MAX_FROM_PE);
            self.join_states
                .insert(number, JoinState::Proven { from, decoder });
        }
    }

    /// Handles the first message of the process that has proved to be PE `from`, if all of it has
    /// arrived.
    pub(super) fn handle_first_message(
        &mut self,
        number: u32,
        from: u32,
        message: Result<Option<FromPe>, FrameError>,
    ) {
        match message {
            Ok(None) => {}
            Ok(Some(FromPe::Join { pe, .. })) if pe != from => {
                let why =
                    format!("a process that has proved to be PE {from} states that it is PE {pe}");
                self.refuse(number, why);
            }
            Ok(Some(FromPe::Join {
                pe,
                n_pes,
                pid,
                host,
                serves,
            })) => {
                let member = Member {
                    connection: Some(number),
                    pid,
                    host,
                    serves,
                    unanswered: 0,
                };
                self.join(number, pe, n_pes, member);
            }
            Ok(Some(_)) | Err(_) => {
                let why = format!(
                    "the first message of PE {from} to the meeting cannot be read; use one build of Rushmem"
                );
                self.refuse(number, why);
            }
        }
    }

    /// Handles the request of a process to join as PE `pe`.
    fn join(&mut self, connection: u32, pe: u32, n_pes: u32, member: Member) {
        if let Some(why) = self.refusal(pe, n_pes, &member) {
            self.refuse(connection, why.clone());
            // A running job does not end because a process of another one has come to it.
            if self.job.is_none() && self.over.is_none() {
                let message = Some(format!("{SPEAKER}: {why}"));
                self.end(1, message, why, Some(member.host));
            }
            return;
        }

        let Member { pid, host, .. } = &member;
        rushmem_system::log::debug!(pe, n_pes, pid, %host, "a PE has joined");
        self.n_pes = n_pes;
        self.members.insert(pe, member);
        self.join_states.insert(connection, JoinState::Member(pe));

        if self.members.len() == n_pes as usize {
            self.begin();
        }
    }

    /// Refuses a process that has not joined. That process prints the reason.
    pub(super) fn refuse(&mut self, connection: u32, why: String) {
        let refused = proto::encode(&FromLauncher::Refused { why });
        self.connections.send(&self.watch, connection, &refused);
        self.join_states.insert(connection, JoinState::Refused);
    }

    /// Refuses all processes whose first message has not arrived.
    pub(super) fn refuse_all_proven(&mut self, why: &str) {
        let numbers: Vec<u32> = self
            .join_states
            .iter()
            .filter(|(_, state)| matches!(state, JoinState::Proven { .. }))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            self.refuse(number, why.to_owned());
        }
    }

    /// Returns the reason for which a process cannot join; `None` if it can.
    fn refusal(&self, pe: u32, n_pes: u32, member: &Member) -> Option<String> {
        if let Some(over) = &self.over {
            return Some(over.why.clone());
        }

        if let Some(other) = self.members.get(&pe) {
            let why = if self.job.is_some() {
                let remedy = match self.source {
                    MeetingSource::UniqueId => "make another id for another job",
                    MeetingSource::Variables => {
                        "start another job with this SHMEM_JOB after its end, or give it a port and a secret of its own"
                    }
                };
                format!(
                    "the job runs already, and {} is one of its processes; {remedy}",
                    other.name(pe)
                )
            } else {
                format!(
                    "two processes are PE {pe}: pid {} on host {} and pid {} on host {}; give each \
                     process a rank of its own{}",
                    other.pid,
                    other.host,
                    member.pid,
                    member.host,
                    self.remedy_of_two_jobs()
                )
            };
            return Some(why);
        }

        if let Some((&known, member)) = self.members.first_key_value()
            && n_pes != self.n_pes
        {
            return Some(format!(
                "{} expects {n_pes} PEs, but {} expects {}; give all processes the same number{}",
                member.name(pe),
                member.name(known),
                self.n_pes,
                self.remedy_of_two_jobs()
            ));
        }

        if pe >= n_pes {
            return Some(format!(
                "its rank is {pe}, but the {n_pes} PEs are numbered from 0"
            ));
        }
        None
    }

    /// Returns the end of a remedy, for processes that may be of two jobs.
    fn remedy_of_two_jobs(&self) -> &'static str {
        match self.source {
            // An id is made for one job.
            MeetingSource::UniqueId => "",
            MeetingSource::Variables => {
                ", or, if another job with this SHMEM_JOB may still run, start after its end, or give \
                 each a port and a secret of its own"
            }
        }
    }

    /// Begins the job, since all PEs have joined.
    fn begin(&mut self) {
        let hosts = self.members.values().map(|member| &member.host);
        let nodes = NodeMap::from_marks(hosts.clone()).expect("a job has PEs");

        // The node map numbers nodes by the first PE of each, and so does this list.
        let mut names: Vec<String> = Vec::new();
        for host in hosts {
            if !names.contains(host) {
                names.push(host.clone());
            }
        }

        // The server expects a hello of each PE, as PEs send it to oshrun. A member sends none,
        // since it has stated its process ID when it joined.
        let mut job = Server::new(nodes, names).with_speaker(SPEAKER);
        let mut decisions = Vec::new();
        for (&pe, member) in &self.members {
            job.started(pe, member.pid);
            let hello = proto::encode(&FromPe::Hello { pid: member.pid });
            decisions.extend(job.received(pe, &hello));
        }
        self.job = Some(job);
        self.execute(decisions);
    }
}
