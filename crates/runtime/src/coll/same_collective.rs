//! Checks that all members of a team are in the same collective with the same arguments. The check
//! costs time, so it is made only with `SHMEM_CHECK`.
//!
//! All members send each other messages that do not use the signals of their team. Two PEs make the
//! calls in which both take part in the same order, so PEs that are in collectives of different
//! teams or active sets notice each other, too. Where threads of a PE need not keep an order, or if
//! the collective does not block, the tag of the messages includes the team, and only members that
//! are in different calls on one team notice each other.

use rushmem_communication::sync::mailbox::{self, MailboxMessage, mailboxes, message_wait};
use rushmem_communication::sync::team_signals::OngoingCollective;
use rushmem_communication::sync::waits;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::digest::digest;
use rushmem_pe::job::Job;
use rushmem_pe::job::members::Members;
use rushmem_transport::Pe;
use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

/// The name and the value of an argument that must be the same on all members.
pub(crate) type CheckedArgument = (&'static str, u64);

/// The team or active set of a collective, as words that differ from those of any other one.
#[derive(Clone, Copy)]
pub(crate) struct CheckedGroup {
    pub(crate) words: [u64; GROUP_WORDS],
    /// Returns the name in messages of the team or active set with these words.
    pub(crate) name: fn([u64; GROUP_WORDS]) -> String,
}

impl CheckedGroup {
    /// The group of a call whose arguments name the PEs that take part.
    pub(crate) const NONE: CheckedGroup = CheckedGroup {
        words: [0; GROUP_WORDS],
        name: |_| String::new(),
    };
}

/// The words of the description of a call: first its name, of which 48 bytes are compared, then its
/// group and its arguments.
const NAME_WORDS: usize = 6;
const GROUP_WORDS: usize = 3;
const MAX_ARGUMENTS: usize = 5;
/// The index of the first argument in the description.
const FIRST_ARGUMENT: usize = NAME_WORDS + GROUP_WORDS;
/// Maximum number of PEs that a message names among those in the same call.
const NAMED: usize = 8;

/// Distinguishes the tag of these messages from the tags of other purposes.
const SAME_COLLECTIVE: u64 = 7;
/// The time for which a PE that has found a mistake waits for the calls of further members, to
/// report them.
const GRACE: Duration = Duration::from_secs(2);

/// Ends the job with an error unless all `members` are in the same call with the same `arguments`,
/// of which there are at most [`MAX_ARGUMENTS`]. `team` is a number that other teams do not have.
pub(crate) fn require(
    entry: &impl OngoingCollective,
    job: &Job,
    members: &Members,
    team: u64,
    group: CheckedGroup,
    arguments: &[CheckedArgument],
) {
    let call = entry.call();
    let words = words(call, group, arguments);
    let request_tag = mailbox::request_tag(digest(&[SAME_COLLECTIVE, team]));
    let thread_tag = digest(&[
        SAME_COLLECTIVE,
        if job.has_threads_somewhere { team } else { 0 },
    ]);
    let tag = if entry.is_in_request() {
        request_tag
    } else {
        thread_tag
    };
    let own = digest(&words);
    let all = (0..members.n).map(|member| members.world_pe(member));
    let mut others: Vec<OtherMember> = all
        .filter(|pe| *pe != job.me)
        .map(|pe| OtherMember { pe, digest: None })
        .collect();
    let [name @ .., _] = &words[..NAME_WORDS] else {
        unreachable!("a name has several words")
    };
    for other in &others {
        send(call, job, other.pe, tag, &[&[own], name].concat());
    }
    let complete = |others: &[OtherMember]| others.iter().all(|other| other.digest.is_some());
    let alike = |others: &[OtherMember]| {
        others
            .iter()
            .all(|o| o.digest.is_none_or(|digest| digest == own))
    };
    let mut unlike = None;
    waits::until_rung(
        job,
        &[],
        || entry.describe(None),
        || {
            receive_digests(job, &mut others, tag);
            if !entry.is_in_request() {
                unlike = find_in_request(job, &mut others, tag, request_tag);
            }
            complete(&others) || !alike(&others) || unlike.is_some()
        },
    );
    if let Some((pe, message)) = unlike {
        fail!(
            call,
            "the PEs of the team are not all in the same collective: PE {} in {call}; PE {pe} in {}; \
             all members must call the same one, which either blocks or does not",
            job.me,
            name_in(&message[1..])
        );
    }
    if alike(&others) {
        return;
    }
    let announced = Instant::now();
    while !complete(&others) && announced.elapsed() < GRACE {
        waits::test(|| {
            receive_digests(job, &mut others, tag);
            complete(&others)
        });
        thread::sleep(Duration::from_millis(1));
    }
    others.retain(|other| other.digest.is_some());
    fail!(
        call,
        "the PEs of the team or active set are not all in the same collective with the same arguments: {}",
        report(
            lines(call, job, members, &others, tag, own, &words),
            group,
            arguments
        )
    )
}

/// Another member, and the digest of its call once that has arrived.
struct OtherMember {
    pe: Pe,
    digest: Option<u64>,
}

fn send(call: Call, job: &Job, pe: Pe, tag: u64, words: &[u64]) {
    let mut message = MailboxMessage::default();
    message[..words.len()].copy_from_slice(words);
    mailboxes().send(&message_wait(call), job, pe, tag, &message);
}

/// Returns a member that has begun a non-blocking collective of the team while this PE is in a
/// blocking one, and its message. This PE has completed all non-blocking collectives that it has
/// called on the team, so the message is of one that it has not called.
fn find_in_request(
    job: &Job,
    others: &mut [OtherMember],
    tag: u64,
    request_tag: u64,
) -> Option<(Pe, MailboxMessage)> {
    let (pe, message) = others
        .iter()
        .filter(|other| other.digest.is_none())
        .filter_map(|other| Some((other.pe, mailboxes().peek(job, other.pe, request_tag)?)))
        .next()?;
    // The member may have left this call and then begun the non-blocking one.
    receive_digests(job, others, tag);
    let is_silent = |other: &OtherMember| other.pe == pe && other.digest.is_none();
    others.iter().any(is_silent).then_some((pe, message))
}

/// Receives the digests that have arrived from members whose calls are not known yet.
fn receive_digests(job: &Job, others: &mut [OtherMember], tag: u64) {
    for other in others.iter_mut().filter(|other| other.digest.is_none()) {
        other.digest = mailboxes()
            .take(job, other.pe, tag)
            .map(|message| message[0]);
    }
}

/// Returns the words of the call of each PE, in the order of the team. Members with the digest of
/// this PE are in the same call. The other ones have found the difference, too, so this PE and each
/// of them exchange the words of their calls.
fn lines(
    call: Call,
    job: &Job,
    members: &Members,
    others: &[OtherMember],
    tag: u64,
    own: u64,
    words: &[u64],
) -> Vec<(u32, Vec<u64>)> {
    let mut lines = vec![(job.me, words.to_vec())];
    lines.extend(
        others
            .iter()
            .filter(|o| o.digest == Some(own))
            .map(|o| (o.pe, words.to_vec())),
    );
    let first = lines.len();
    lines.extend(
        others
            .iter()
            .filter(|o| o.digest != Some(own))
            .map(|o| (o.pe, Vec::new())),
    );
    for &word in words {
        for (pe, _) in &lines[first..] {
            send(call, job, *pe, tag, &[word]);
        }
        for (pe, received) in &mut lines[first..] {
            let message = mailboxes().receive(&message_wait(call), job, *pe, tag);
            received.push(message.map_or(0, |message| message[0]));
        }
    }
    lines.sort_unstable_by_key(|(pe, _)| members.team_pe(*pe).map(|member| member.0));
    lines.into_iter().map(|(pe, line)| (pe.0, line)).collect()
}

/// Returns the description of a call: the bytes of its name, its group and the values of its
/// arguments.
fn words(call: Call, group: CheckedGroup, arguments: &[CheckedArgument]) -> Vec<u64> {
    let mut words = vec![0; FIRST_ARGUMENT + MAX_ARGUMENTS];
    for (word, bytes) in words
        .iter_mut()
        .take(NAME_WORDS)
        .zip(call.name().as_bytes().chunks(8))
    {
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

/// Returns which PEs are in which call, as a part of a message. If all calls have the same name,
/// also shows their teams or active sets if these differ, otherwise the arguments that differ.
fn report(
    lines: Vec<(u32, Vec<u64>)>,
    group: CheckedGroup,
    arguments: &[CheckedArgument],
) -> String {
    let differs = |word: usize| {
        lines
            .iter()
            .any(|(_, words)| words[word] != lines[0].1[word])
    };
    let one_call = !(0..NAME_WORDS).any(differs);
    let one_group = !(NAME_WORDS..FIRST_ARGUMENT).any(differs);
    let all = (FIRST_ARGUMENT..)
        .zip(arguments)
        .map(|(i, argument)| (i, argument.0));
    let shown: Vec<(usize, &str)> = all.filter(|(i, _)| differs(*i)).collect();
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for (pe, words) in &lines {
        let mut text = name_in(&words[..NAME_WORDS]);
        if one_call && one_group {
            let value = |(i, name): &(usize, &str)| format!("{name} {}", words[*i]);
            let values: Vec<String> = shown.iter().map(value).collect();
            let _ = write!(text, " with {}", values.join(", "));
        } else if one_call {
            let of_group = std::array::from_fn(|i| words[NAME_WORDS + i]);
            let _ = write!(text, " with {}", (group.name)(of_group));
        }
        match groups.iter_mut().find(|group| group.0 == text) {
            Some(group) => group.1.push(*pe),
            None => groups.push((text, vec![*pe])),
        }
    }
    let group = |(text, pes): &(String, Vec<u32>)| {
        let names: Vec<String> = pes
            .iter()
            .take(NAMED)
            .map(|pe| format!("PE {pe}"))
            .collect();
        let more = if pes.len() > NAMED { " and others" } else { "" };
        format!("{}{more} in {text}", names.join(", "))
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pe: u32, call: Call, team: u64, arguments: &[CheckedArgument]) -> (u32, Vec<u64>) {
        (pe, words(call, group(team), arguments))
    }

    fn group(team: u64) -> CheckedGroup {
        let name = |[team, ..]: [u64; GROUP_WORDS]| format!("the team {team:x}");
        CheckedGroup {
            words: [team, 0, 0],
            name,
        }
    }

    #[test]
    fn teams_have_names() {
        let lines = vec![
            line(
                0,
                rushmem_pe::call::call!("shmem_int_broadcast"),
                1,
                &[("bytes", 8)],
            ),
            line(
                1,
                rushmem_pe::call::call!("shmem_int_broadcast"),
                4417,
                &[("bytes", 9)],
            ),
        ];
        let text = report(lines, group(1), &[("bytes", 8)]);
        let said = |team| format!("in shmem_int_broadcast with the team {team}");
        assert_eq!(text, format!("PE 0 {}; PE 1 {}", said("1"), said("1141")));
    }

    #[test]
    fn who_is_where() {
        let lines = vec![
            line(4, rushmem_pe::call::call!("shmem_team_sync"), 1, &[]),
            line(
                2,
                rushmem_pe::call::call!("shmem_longdouble_prod_reduce"),
                2,
                &[("bytes", 16)],
            ),
            line(0, rushmem_pe::call::call!("shmem_team_sync"), 1, &[]),
        ];
        let text = report(lines, group(1), &[]);
        assert_eq!(
            text,
            "PE 4, PE 0 in shmem_team_sync; PE 2 in shmem_longdouble_prod_reduce"
        );
    }

    #[test]
    fn values_are_printed_where_only_they_differ() {
        let arguments = |root| [("PE_root", root), ("bytes", 8)];
        let lines = vec![
            line(
                0,
                rushmem_pe::call::call!("shmem_int_broadcast"),
                1,
                &arguments(0),
            ),
            line(
                1,
                rushmem_pe::call::call!("shmem_int_broadcast"),
                1,
                &arguments(1),
            ),
        ];
        let text = report(lines, group(1), &arguments(0));
        let [first, second] = ["PE_root 0", "PE_root 1"];
        let said = |root| format!("in shmem_int_broadcast with {root}");
        assert_eq!(text, format!("PE 0 {}; PE 1 {}", said(first), said(second)));
    }
}
