//! What is looked at with `SHMEM_CHECK` alone, because it costs time: that all members of a team are in
//! the same collective with the same arguments, that arrays do not overlap, that threads keep to their
//! level where they make contexts, take locks or are in a collective. Errors that cost nothing to find are
//! found always, elsewhere.
#![forbid(unsafe_code)]

use crate::agreement::digest;
use crate::call::{Call, fail};
use crate::constants::{
    SHMEM_THREAD_FUNNELED, SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_SINGLE,
};
use crate::job::{self, Job};
use crate::range::Range;
use crate::team::Members;
use core::ffi::c_int;
use std::fmt::Write;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

/// An argument that must be the same on all members, by its name.
pub(crate) type Argument = (&'static str, u64);

/// Words that carry the name of a call, and the most arguments.
const NAME_WORDS: usize = 6;
const MOST_ARGUMENTS: usize = 5;
/// PEs that a message names of those that do the same.
const NAMED: usize = 8;

/// A message unless all `members` are in `call` with the same `arguments`. `gather` takes this member's
/// word and gives those of all.
pub(crate) fn same(
    call: Call,
    members: &Members,
    arguments: &[Argument],
    mut gather: impl FnMut(u64) -> Vec<u64>,
) {
    let words = words(call, arguments);
    let digests = gather(digest(&words));
    if digests.iter().all(|digest| *digest == digests[0]) {
        return;
    }
    let columns: Vec<Vec<u64>> = words.into_iter().map(gather).collect();
    let lines = (0..members.n as usize).map(|member| {
        let line = columns.iter().map(|column| column[member]).collect();
        (members.world_pe(member as u32).0, line)
    });
    fail!(
        call,
        "the PEs of the team are not all in the same collective with the same arguments: {}",
        report(lines.collect(), arguments)
    )
}

/// What a member tells of its call: the name's bytes, the arguments' values.
fn words(call: Call, arguments: &[Argument]) -> Vec<u64> {
    let mut words = vec![0; NAME_WORDS + MOST_ARGUMENTS];
    for (word, bytes) in words.iter_mut().take(NAME_WORDS).zip(call.0.as_bytes().chunks(8)) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }
    for (word, (_, value)) in words[NAME_WORDS..].iter_mut().zip(arguments) {
        *word = *value;
    }
    words
}

/// Who is where: PEs with the same words together, in the order of the team.
fn report(lines: Vec<(u32, Vec<u64>)>, arguments: &[Argument]) -> String {
    let one_call = lines.iter().all(|(_, words)| words[..NAME_WORDS] == lines[0].1[..NAME_WORDS]);
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for (pe, words) in lines {
        let bytes: Vec<u8> = words[..NAME_WORDS].iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut text = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
        if one_call {
            let values = arguments.iter().zip(&words[NAME_WORDS..]);
            let values: Vec<String> = values.map(|((name, _), v)| format!("{name} {v}")).collect();
            let _ = write!(text, " with {}", values.join(", "));
        }
        match groups.iter_mut().find(|group| group.0 == text) {
            Some(group) => group.1.push(pe),
            None => groups.push((text, vec![pe])),
        }
    }
    let group = |(text, pes): &(String, Vec<u32>)| {
        let names: Vec<String> = pes.iter().take(NAMED).map(|pe| format!("PE {pe}")).collect();
        let more = if pes.len() > NAMED { " and others" } else { "" };
        format!("{}{more} in {text}", names.join(", "))
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

/// A message when `source` and `dest` overlap; where `in_place` is allowed they may be the same.
pub(crate) fn apart(call: Call, job: &Job, source: Range, dest: Range, in_place: bool) {
    let same = in_place && dest.starts_with(source);
    if job.settings.check && !same && source.overlaps(dest) {
        fail!(call, "the arguments source and dest overlap");
    }
}

/// The thread that initialised the library.
static MAIN: Mutex<Option<ThreadId>> = Mutex::new(None);

/// The library was initialised by the calling thread.
pub(crate) fn initialized_here() {
    *job::lock(&MAIN) = Some(thread::current().id());
}

/// A message when the thread level does not let the calling thread call.
pub(crate) fn caller(call: Call, job: &Job) {
    if job.settings.check && job.thread_level <= SHMEM_THREAD_FUNNELED && !is_main() {
        fail!(
            call,
            "called by another thread than the one that initialised the library, but the thread level \
             is {}; ask shmem_init_thread for SHMEM_THREAD_SERIALIZED or SHMEM_THREAD_MULTIPLE",
            level(job.thread_level)
        );
    }
}

/// A message when another thread finalizes than initialised.
pub(crate) fn finalizer(call: Call, job: &Job) {
    if job.settings.check && !is_main() {
        fail!(
            call,
            "called by another thread than the one that initialised the library, which must finalize it"
        );
    }
}

fn is_main() -> bool {
    job::lock(&MAIN).is_none_or(|main| main == thread::current().id())
}

fn level(level: c_int) -> &'static str {
    match level {
        SHMEM_THREAD_SINGLE => "SHMEM_THREAD_SINGLE",
        SHMEM_THREAD_FUNNELED => "SHMEM_THREAD_FUNNELED",
        SHMEM_THREAD_SERIALIZED => "SHMEM_THREAD_SERIALIZED",
        SHMEM_THREAD_MULTIPLE => "SHMEM_THREAD_MULTIPLE",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pe: u32, call: &'static str, arguments: &[Argument]) -> (u32, Vec<u64>) {
        (pe, words(Call(call), arguments))
    }

    #[test]
    fn who_is_where() {
        let lines = vec![
            line(4, "shmem_team_sync", &[]),
            line(2, "shmem_longdouble_prod_reduce", &[("bytes", 16)]),
            line(0, "shmem_team_sync", &[]),
        ];
        let text = report(lines, &[]);
        assert_eq!(text, "PE 4, PE 0 in shmem_team_sync; PE 2 in shmem_longdouble_prod_reduce");
    }

    #[test]
    fn values_are_told_where_only_they_differ() {
        let arguments = |root| [("PE_root", root), ("bytes", 8)];
        let lines = vec![
            line(0, "shmem_int_broadcast", &arguments(0)),
            line(1, "shmem_int_broadcast", &arguments(1)),
        ];
        let text = report(lines, &arguments(0));
        assert!(text.starts_with("PE 0 in shmem_int_broadcast with PE_root 0, bytes 8; PE 1"));
        assert!(text.ends_with("with PE_root 1, bytes 8"), "{text}");
    }

    #[test]
    fn alike_is_not_told() {
        let mut asked = 0;
        same(Call("shmem_team_sync"), &Members::world(3), &[], |word| {
            asked += 1;
            vec![word; 3]
        });
        assert_eq!(asked, 1);
    }
}
