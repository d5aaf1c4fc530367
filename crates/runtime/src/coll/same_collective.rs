//! Checks that all members of a team are in the same collective with the same arguments. The check
//! costs time, so it is made only with `SHMEM_CHECK`.
//!
//! All members send each other messages that do not use the signals of their team. Two PEs make the
//! calls in which both take part in the same order, so PEs that are in collectives of different
//! teams or active sets notice each other, too. Where threads of a PE need not keep an order, or if
//! the collective does not block, the tag of the messages includes the team, and only members that
//! are in different calls on one team notice each other.

use crate::message_purpose::MessagePurpose;
use crate::teams::checked_group::{CheckedGroup, GROUP_WORDS};
use crate::teams::registry::Teams;
use rushmem_communication::links::Links;
use rushmem_communication::sync::mailbox::{self, MailboxMessage, message_wait};
use rushmem_communication::sync::team_signals::OngoingCollective;
use rushmem_communication::sync::waits;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::digest::digest;
use rushmem_pe::job::members::Members;
use rushmem_transport::Pe;
use std::thread;
use std::time::{Duration, Instant};

/// The name and the value of an argument that must be the same on all members.
pub(crate) type CheckedArgument = (&'static str, u64);

/// The number of words that the name of a call has in its description, from the first word on. Only
/// the first 48 bytes of names are compared.
const NAME_WORDS: usize = 6;
/// The number of words for arguments, after the group.
const MAX_ARGUMENTS: usize = 6;
/// The index of the first argument in the description.
const FIRST_ARGUMENT: usize = NAME_WORDS + GROUP_WORDS;
/// Maximum number of PEs that a message names among those in the same call, so that it stays within
/// a few lines.
const NAMED: usize = 8;

/// The time for which a PE that has found a mistake waits for the calls of further members, to
/// report them. Members that are in the wrong call mostly are there by then; the others would delay
/// the end of a job that cannot go on.
const GRACE: Duration = Duration::from_secs(2);

/// Ends the job with an error unless all `members` are in the same call with the same `arguments`,
/// of which there are at most [`MAX_ARGUMENTS`]. `team` is a number that other teams do not have.
pub(crate) fn require(
    links: &'static Links,
    teams: &Teams,
    entry: &impl OngoingCollective,
    members: &Members,
    team: u64,
    group: CheckedGroup,
    arguments: &[CheckedArgument],
) {
    let job = &links.job;
    let call = entry.call();
    let purpose = MessagePurpose::SameCollective.word();
    let request_tag = mailbox::request_tag(digest(&[purpose, team]));
    let tag = if entry.is_in_request() {
        request_tag
    } else {
        let team = if job.has_threads_somewhere { team } else { 0 };
        digest(&[purpose, team])
    };

    let words = words(call, group, arguments);
    let mut comparison = Comparison::new(links, call, members, tag, words);
    comparison.send_digest();

    let mut in_request = None;
    waits::until_rung(
        links,
        &[],
        || entry.describe(None),
        || {
            comparison.receive_digests();
            if !entry.is_in_request() {
                in_request = comparison.find_in_request(request_tag);
            }
            comparison.is_complete() || !comparison.is_alike() || in_request.is_some()
        },
    );

    if let Some((pe, message)) = in_request {
        fail!(
            call,
            "the PEs of the team are not all in the same collective: PE {} in {call}; PE {pe} in {}; \
             all members must call the same one, which either blocks or does not",
            job.me,
            name_in(&message[1..])
        );
    }
    if comparison.is_alike() {
        return;
    }

    // The members that are in another call have found the difference, too, and come to the same
    // exchange.
    comparison.wait_for_more();
    let mut calls = comparison.exchange_words();
    calls.sort_unstable_by_key(|call| members.team_pe(call.pe).map(|member| member.0));
    fail!(
        call,
        "the PEs of the team or active set are not all in the same collective with the same arguments: {}",
        report(&calls, |words| (group.name)(teams, words), arguments)
    )
}

/// The call of this PE, and what is known of the calls of the other members.
struct Comparison {
    links: &'static Links,
    call: Call,
    /// The tag of the messages.
    tag: u64,
    /// The description of the call of this PE.
    words: Vec<u64>,
    /// The digest of `words`.
    digest: u64,
    others: Vec<OtherMember>,
}

/// Another member, and the digest of its call once that has arrived.
struct OtherMember {
    pe: Pe,
    digest: Option<u64>,
}

/// A member, and the description of its call.
struct MemberCall {
    pe: Pe,
    words: Vec<u64>,
}

impl Comparison {
    fn new(
        links: &'static Links,
        call: Call,
        members: &Members,
        tag: u64,
        words: Vec<u64>,
    ) -> Comparison {
        let others = (0..members.n)
            .map(|member| members.world_pe(member))
            .filter(|pe| *pe != links.job.me)
            .map(|pe| OtherMember { pe, digest: None })
            .collect();

        Comparison {
            links,
            call,
            tag,
            digest: digest(&words),
            words,
            others,
        }
    }

    /// Sends all other members the digest of this call and, for messages about a member in another
    /// kind of call, its name as far as a message has room.
    fn send_digest(&self) {
        let mut message = vec![self.digest];
        message.extend(&self.words[..NAME_WORDS - 1]);

        for other in &self.others {
            self.send(other.pe, &message);
        }
    }

    fn send(&self, pe: Pe, words: &[u64]) {
        let mut message = MailboxMessage::default();
        message[..words.len()].copy_from_slice(words);
        let wait = message_wait(self.call);
        self.links.send_message(&wait, pe, self.tag, &message);
    }

    /// Receives the digests that have arrived from members whose calls are not known yet.
    fn receive_digests(&mut self) {
        for other in &mut self.others {
            if other.digest.is_none() {
                let message = self.links.take_message(other.pe, self.tag);
                other.digest = message.map(|message| message[0]);
            }
        }
    }

    /// Returns true if the calls of all members are known.
    fn is_complete(&self) -> bool {
        self.others.iter().all(|other| other.digest.is_some())
    }

    /// Returns true if all calls that are known are that of this PE.
    fn is_alike(&self) -> bool {
        self.others
            .iter()
            .filter_map(|other| other.digest)
            .all(|digest| digest == self.digest)
    }

    /// Returns a member that has begun a non-blocking collective of the team while this PE is in a
    /// blocking one, and its message. This PE has completed all non-blocking collectives that it
    /// has called on the team, so the message is of one that it has not called.
    fn find_in_request(&mut self, request_tag: u64) -> Option<(Pe, MailboxMessage)> {
        let (pe, message) = self
            .others
            .iter()
            .filter(|other| other.digest.is_none())
            .find_map(|other| {
                let message = self.links.peek_message(other.pe, request_tag)?;
                Some((other.pe, message))
            })?;

        // The member may have left this call and then begun the non-blocking one.
        self.receive_digests();
        let is_in_this_call = self
            .others
            .iter()
            .any(|other| other.pe == pe && other.digest.is_some());
        if is_in_this_call {
            None
        } else {
            Some((pe, message))
        }
    }

    /// Waits a short time for the calls of further members, so that the message names them, too.
    fn wait_for_more(&mut self) {
        let since = Instant::now();
        while !self.is_complete() && since.elapsed() < GRACE {
            waits::test(self.links, || {
                self.receive_digests();
                self.is_complete()
            });
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the calls of this PE and of the members whose digest has arrived. A member with the
    /// digest of this PE is in the same call. Another one has found the difference, too, so this PE
    /// and that one send each other the words of their calls.
    fn exchange_words(&self) -> Vec<MemberCall> {
        let own = |pe| MemberCall {
            pe,
            words: self.words.clone(),
        };

        let mut same = vec![own(self.links.job.me)];
        let mut different = Vec::new();
        for other in &self.others {
            match other.digest {
                None => {}
                Some(digest) if digest == self.digest => same.push(own(other.pe)),
                Some(_) => different.push(MemberCall {
                    pe: other.pe,
                    words: Vec::new(),
                }),
            }
        }

        // One word at a time, since a message has no room for all of them.
        for &word in &self.words {
            for other in &different {
                self.send(other.pe, &[word]);
            }
            for other in &mut different {
                let wait = message_wait(self.call);
                let message = self.links.receive_message(&wait, other.pe, self.tag);
                // No message: the job ends.
                other.words.push(message.map_or(0, |message| message[0]));
            }
        }

        same.extend(different);
        same
    }
}

/// Returns the description of a call: the bytes of its name, its group and the values of its
/// arguments.
fn words(call: Call, group: CheckedGroup, arguments: &[CheckedArgument]) -> Vec<u64> {
    let mut words = vec![0; FIRST_ARGUMENT + MAX_ARGUMENTS];

    let name = call.name().as_bytes().chunks(8);
    for (word, bytes) in words[..NAME_WORDS].iter_mut().zip(name) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }

    words[NAME_WORDS..FIRST_ARGUMENT].copy_from_slice(&group.words);
    for (word, (_, value)) in words[FIRST_ARGUMENT..].iter_mut().zip(arguments) {
        *word = *value;
    }
    words
}

/// Returns the name of a call from the words that describe it.
fn name_in(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes)
        .trim_end_matches('\0')
        .to_owned()
}

/// PEs whose calls have the same text in a message.
struct PesInCall {
    text: String,
    pes: Vec<Pe>,
}

/// Returns which PEs are in which call, as a part of a message. If all calls have the same name,
/// also shows their teams or active sets if these differ, otherwise the arguments that differ.
fn report(
    calls: &[MemberCall],
    group_name: impl Fn([u64; GROUP_WORDS]) -> String,
    arguments: &[CheckedArgument],
) -> String {
    let differs = |word: usize| {
        calls
            .iter()
            .any(|call| call.words[word] != calls[0].words[word])
    };
    let is_one_name = !(0..NAME_WORDS).any(differs);
    let is_one_group = !(NAME_WORDS..FIRST_ARGUMENT).any(differs);

    let mut in_calls: Vec<PesInCall> = Vec::new();
    for MemberCall { pe, words } in calls {
        let mut text = name_in(&words[..NAME_WORDS]);
        if is_one_name && is_one_group {
            let values: Vec<String> = (FIRST_ARGUMENT..)
                .zip(arguments)
                .filter(|(word, _)| differs(*word))
                .map(|(word, (name, _))| format!("{name} {}", words[word]))
                .collect();
            text += &format!(" with {}", values.join(", "));
        } else if is_one_name {
            let of_group = std::array::from_fn(|i| words[NAME_WORDS + i]);
            text += &format!(" with {}", group_name(of_group));
        }

        match in_calls.iter_mut().find(|in_call| in_call.text == text) {
            Some(in_call) => in_call.pes.push(*pe),
            None => in_calls.push(PesInCall {
                text,
                pes: vec![*pe],
            }),
        }
    }

    let sentences: Vec<String> = in_calls.iter().map(PesInCall::sentence).collect();
    sentences.join("; ")
}

impl PesInCall {
    fn sentence(&self) -> String {
        let names: Vec<String> = self
            .pes
            .iter()
            .take(NAMED)
            .map(|pe| format!("PE {pe}"))
            .collect();
        let names = names.join(", ");
        let more = if self.pes.len() > NAMED {
            " and others"
        } else {
            ""
        };

        format!("{names}{more} in {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_pe::call::call;

    fn member(pe: u32, call: Call, team: u64, arguments: &[CheckedArgument]) -> MemberCall {
        MemberCall {
            pe: Pe(pe),
            words: words(call, group(team), arguments),
        }
    }

    fn group(team: u64) -> CheckedGroup {
        CheckedGroup {
            words: [team, 0, 0],
            ..CheckedGroup::NONE
        }
    }

    fn group_name([team, ..]: [u64; GROUP_WORDS]) -> String {
        format!("the team {team:x}")
    }

    #[test]
    fn teams_have_names() {
        let calls = [
            member(0, call!("shmem_int_broadcast"), 1, &[("bytes", 8)]),
            member(1, call!("shmem_int_broadcast"), 4417, &[("bytes", 9)]),
        ];
        let text = report(&calls, group_name, &[("bytes", 8)]);
        assert_eq!(
            text,
            "PE 0 in shmem_int_broadcast with the team 1; \
             PE 1 in shmem_int_broadcast with the team 1141"
        );
    }

    #[test]
    fn who_is_where() {
        let reduce = call!("shmem_longdouble_prod_reduce");
        let calls = [
            member(4, call!("shmem_team_sync"), 1, &[]),
            member(2, reduce, 2, &[("bytes", 16)]),
            member(0, call!("shmem_team_sync"), 1, &[]),
        ];
        let text = report(&calls, group_name, &[]);
        assert_eq!(
            text,
            "PE 4, PE 0 in shmem_team_sync; PE 2 in shmem_longdouble_prod_reduce"
        );
    }

    #[test]
    fn values_are_printed_where_only_they_differ() {
        let arguments = |root| [("PE_root", root), ("nelems", 8)];
        let calls = [
            member(0, call!("shmem_int_broadcast"), 1, &arguments(0)),
            member(1, call!("shmem_int_broadcast"), 1, &arguments(1)),
        ];
        let text = report(&calls, group_name, &arguments(0));
        assert_eq!(
            text,
            "PE 0 in shmem_int_broadcast with PE_root 0; \
             PE 1 in shmem_int_broadcast with PE_root 1"
        );
    }
}
