//! The time limits of a meeting: within them a process must join once it has proved that it knows
//! the secret, all PEs must join after the first one, and a member must give a sign of life while
//! others wait for it.

use std::time::Duration;

use rushmem_explain::ranges;

use super::{HANDSHAKE_LIMIT, JoinState, MeetingServer};
use crate::error::IN_BETWEEN;
use crate::proto::{self, FromLauncher};
use crate::unlaunched::route::{LIMIT_VARIABLE, MeetingSource};

/// How many times within the limit of joining a member is asked for a sign of life while an
/// exchange lasts. One answer that is late must not end a job.
pub(super) const PINGS: u32 = 8;

/// Maximum number of missing PEs that are listed. The others are counted, since the number of PEs
/// may be a mistake.
const MAX_LISTED: usize = 10_000;

impl MeetingServer {
    /// Returns true while a time limit runs: that of all PEs, that of a connection, or that of a
    /// meeting that is over.
    pub(super) fn is_timed(&self) -> bool {
        let awaits_pes = self.job.is_none() && !self.members.is_empty();
        let are_joining = self
            .join_states
            .values()
            .any(|state| !matches!(state, JoinState::Member(_)));

        awaits_pes
            || are_joining
            || self.awaits_members()
            || self.over.is_some()
            || self.muted.is_some()
            || !self.strangers.is_empty()
    }

    /// Refuses processes that have not joined within [`HANDSHAKE_LIMIT`], and ends the job if PEs
    /// are missing, or give no sign of life while others wait, for longer than the limit of
    /// joining. `time` is the duration of the last wait, at most
    /// [`SLICE`](crate::time_limit::SLICE).
    pub(super) fn check_limits(&mut self, time: Duration) {
        self.strangers.expire();
        self.refuse_late();

        if self.awaits_members() {
            self.ask_members(time);
            return;
        }

        // The limit of joining runs from the first member until all have joined.
        if self.job.is_some() || self.over.is_some() || self.members.is_empty() {
            return;
        }

        self.waited += time;
        if self.waited >= self.limits.join {
            self.fail(self.who_is_missing());
        }
    }

    /// Refuses processes that have not joined within [`HANDSHAKE_LIMIT`], and closes the connection
    /// of a refused one that has not ended within twice that time.
    fn refuse_late(&mut self) {
        let mut silent = Vec::new();
        let mut unclosed = Vec::new();
        for (&number, state) in &self.join_states {
            // A connection that is closed has no age, and is removed elsewhere.
            let age = self.connections.age(number).unwrap_or_default();
            match state {
                JoinState::Proven { from, .. } if age > HANDSHAKE_LIMIT => {
                    silent.push((number, *from));
                }
                JoinState::Refused if age > 2 * HANDSHAKE_LIMIT => unclosed.push(number),
                _ => {}
            }
        }

        for (number, from) in silent {
            let why = format!(
                "PE {from} has proved that it knows the secret of the job, but its next message has not arrived within \
                 {} s: it was stopped or got no processor, or a process in between holds back what it sends ({IN_BETWEEN})",
                HANDSHAKE_LIMIT.as_secs()
            );
            self.refuse(number, why);
        }
        for number in unclosed {
            self.join_states.remove(&number);
            self.connections.close(number);
        }
    }

    /// Asks all members for a sign of life, [`PINGS`] times within the limit of joining. Ends the
    /// job if one for which others wait has given none within that limit: a process in between may
    /// hold back what is sent, and then the other PEs would wait for ever.
    fn ask_members(&mut self, time: Duration) {
        self.since_ping += time;
        if self.since_ping < self.limits.join / PINGS {
            return;
        }
        self.since_ping = Duration::ZERO;

        // The first unanswered request was sent up to one interval after the last sign of life.
        // With that interval, PINGS - 1 unanswered requests make up the whole limit at most.
        // Nobody waits for a member that has finalized, so it may be silent.
        let silent = self.members.iter().find(|(pe, member)| {
            member.connection.is_some()
                && member.unanswered + 1 >= PINGS
                && !self.has_finalized(**pe)
        });
        if let Some((&pe, member)) = silent {
            self.fail(format!(
                "{} has sent nothing for {} s while other PEs wait for it: it is stopped or gets no processor, or a \
                 process in between holds back what it sends ({IN_BETWEEN})",
                member.name(pe),
                self.limits.join.as_secs_f64()
            ));
            return;
        }

        let ping = proto::encode(&FromLauncher::Ping);
        for member in self.members.values_mut() {
            member.unanswered += 1;
            if let Some(connection) = member.connection {
                self.connections.send(&self.watch, connection, &ping);
            }
        }
    }

    /// Returns the message that PEs are missing.
    fn who_is_missing(&self) -> String {
        let listed: Vec<u32> = (0..self.n_pes)
            .filter(|pe| !self.members.contains_key(pe))
            .take(MAX_LISTED)
            .collect();
        let missing = self.n_pes as usize - self.members.len();
        let pes = match missing - listed.len() {
            0 => ranges::pes(&listed),
            more => format!("{} and {more} more", ranges::pes(&listed)),
        };

        let verb = if missing == 1 { "has" } else { "have" };
        let how = match self.source {
            MeetingSource::UniqueId => "by its unique id",
            MeetingSource::Variables => "that SHMEM_JOB names",
        };
        format!(
            "of the {} PEs of the job {how}, {pes} {verb} not joined within {} s; start all of them, or raise \
             {LIMIT_VARIABLE}",
            self.n_pes,
            self.limits.join.as_secs_f64()
        )
    }
}
