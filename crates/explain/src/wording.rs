//! Writes the parts of sentences about waits: calls, durations, ordinals, and awaited words with
//! their locations and values.

use crate::job::{Detail, Job, ObservedState};
use crate::ranges::{self, enumerate_once};
use crate::snapshot::PeSnapshot;
use crate::status::{
    AwaitedObject, Collective, PolledObject, SymmetricLocation, Wait, Words, number,
};

/// Maximum number of columns of a line of an explanation, to which oshrun adds its name.
pub const COLUMNS: usize = 100 - "oshrun: ".len();

const SECOND: u64 = 1_000_000_000;

impl ObservedState<'_> {
    /// Returns the predicate of a sentence about `n` PEs in this state.
    pub fn predicate(&self, n: usize) -> String {
        let verb = |one: &str, many: &str| if n == 1 { one } else { many }.to_owned();
        let is = verb("is", "are");
        let has = verb("has", "have");

        match self {
            ObservedState::Elsewhere => {
                let hosts = verb("another host", "other hosts");
                format!("{is} on {hosts}, of which nothing is known here")
            }
            ObservedState::HostSilent(host) => {
                format!("{is} on host {host}, which does not answer")
            }
            ObservedState::Ended(Some(how)) => format!("{has} ended ({how})"),
            ObservedState::Ended(None) => format!("{has} ended"),
            ObservedState::RunsOtherProgram(name) => {
                let runs = verb("runs", "run");
                format!("{has} called exec and {runs} {name}, which is not a part of the job")
            }
            ObservedState::Finalized => format!("{has} finalized"),
            ObservedState::Leaving => format!("{has} reached the exit without shmem_finalize"),
            ObservedState::Stopped => format!("{is} stopped by a signal"),
            ObservedState::Traced => format!("{is} stopped by a debugger"),
            ObservedState::WaitsForDisk => {
                verb("waits", "wait") + " for a disk or for swapped memory"
            }
            ObservedState::WaitsForChild => {
                let waits = verb("waits", "wait");
                format!("{waits} for a child of vfork, until it calls exec or _exit")
            }
            ObservedState::NoStatus => {
                let they = verb("it has", "they have");
                format!("{has} no status that can be read; perhaps {they} not passed shmem_init")
            }
            ObservedState::Uninitialized => format!("{has} not called shmem_init"),
            ObservedState::Starting => format!("{is} in shmem_init"),
            ObservedState::Sleeps => verb("sleeps", "sleep") + " outside the library",
            ObservedState::Computes => verb("computes", "compute"),
            ObservedState::Polls(poll) => {
                format!("{} {} again and again", verb("calls", "call"), poll.call)
            }
            ObservedState::Waits(_) => verb("waits", "wait"),
        }
    }
}

impl Job<'_> {
    /// Returns the waits of a PE as they follow `PE 3 waits`, such as `in shmem_quiet`. Equal texts
    /// are named once: a thread that waits for a request, and the thread that carries the request
    /// out, are in the same collective. A PE that does not wait counts as one in `shmem_init`.
    pub fn waits(&self, pe: u32, detail: Detail) -> String {
        let observed = &self.pes[pe as usize];
        if !observed.is_waiting() {
            return "in shmem_init".to_owned();
        }

        let mut described: Vec<DescribedWait> = Vec::new();
        for (wait, values) in observed.waits() {
            let object = match (&wait.subject, observed.snapshot) {
                (AwaitedObject::Collective(entered), _) => format!(", {}", collective(entered)),
                (_, Some(snapshot)) if detail > Detail::Calls => {
                    self.object(snapshot, wait, values, detail)
                }
                _ => String::new(),
            };

            // A call may wait for its operations while it waits for something else.
            let is_operations = matches!(wait.subject, AwaitedObject::Operations { .. });
            match described.last_mut() {
                Some(outer) if is_operations && outer.is_around(wait) => outer.text += &object,
                _ => described.push(DescribedWait {
                    wait,
                    text: format!("in {}{}{object}", call(wait), limit(wait)),
                }),
            }
        }
        let texts = described.into_iter().map(|described| described.text);
        enumerate_once(texts, observed.further_waits())
    }

    /// Returns the predicate of a sentence about a PE that does not wait, and about `n` PEs in the
    /// same state: `computes`, or the call that it repeats and who may change its word.
    pub fn activity(&self, pe: u32, n: usize) -> String {
        let observed = &self.pes[pe as usize];
        let mut predicate = observed.state.predicate(n);
        if observed.has_no_main_thread() {
            predicate += "; its main thread has ended (pthread_exit)";
        }
        let (ObservedState::Polls(poll), Some(snapshot)) = (observed.state, observed.snapshot)
        else {
            return predicate;
        };

        let line = match &poll.called_at {
            Some(line) => format!(" ({line})"),
            None => String::new(),
        };
        let word = location(snapshot, &poll.word);
        let object = match poll.of {
            PolledObject::Lock => match self.holder(&poll.word) {
                Some(holder) => format!("{word}, a lock that PE {holder} holds"),
                None => format!("{word}, a lock"),
            },
            PolledObject::MemoryOf(owner) if owner == pe => {
                format!("{word}, which another PE must change")
            }
            PolledObject::MemoryOf(owner) => {
                format!("{word} of PE {owner}, which that PE or another one must change")
            }
        };
        format!("{predicate}{line} on {object}")
    }

    /// Returns the end of a text on a wait: the words or the lock for which it waits or, with
    /// `Detail::Peers`, also the PEs.
    fn object(
        &self,
        snapshot: &PeSnapshot,
        wait: &Wait,
        values: &[Option<u64>],
        detail: Detail,
    ) -> String {
        let with_peers = detail == Detail::Peers;
        match &wait.subject {
            AwaitedObject::Words(words) => {
                format!(" on {}", words_text(snapshot, wait, words, values))
            }
            AwaitedObject::Lock { lock, .. } => {
                let name = awaited(snapshot, wait, lock);
                match self.holder(lock) {
                    Some(pe) if with_peers => format!(" on {name}, which PE {pe} holds"),
                    _ => format!(" on {name}"),
                }
            }
            AwaitedObject::Operations { .. } | AwaitedObject::Message { .. } if !with_peers => {
                String::new()
            }
            AwaitedObject::Operations { peers } if peers.is_empty() => {
                ", for operations over the network".to_owned()
            }
            AwaitedObject::Operations { peers } => {
                let names = ranges::pes(&ranges::sorted(peers));
                format!(", for operations on {names}")
            }
            AwaitedObject::Message { from } => format!(", for a message from PE {from}"),
            AwaitedObject::Collective(_) | AwaitedObject::Exit | AwaitedObject::Leaving => {
                String::new()
            }
        }
    }

    /// Returns the clause that says how long PEs have waited: `, for 12 s`. It is empty for other
    /// PEs, such as those in `shmem_init`, since it is not known when their waits began.
    pub fn lasting(&self, pes: &[u32]) -> String {
        if !self.pes[pes[0] as usize].is_waiting() {
            return String::new();
        }
        format!(", for {}", self.durations(pes))
    }

    /// Returns how long PEs have waited: each as long as its longest wait.
    pub fn durations(&self, pes: &[u32]) -> String {
        let mut min = u64::MAX;
        let mut max = 0;
        for pe in pes {
            let observed = &self.pes[*pe as usize];
            let longest = observed
                .waits()
                .filter_map(|(wait, _)| Some(observed.snapshot?.age(wait)))
                .max()
                .unwrap_or(0);
            min = min.min(longest);
            max = max.max(longest);
        }
        durations(min.min(max), max)
    }
}

/// A wait, and the text about it.
struct DescribedWait<'a> {
    wait: &'a Wait,
    text: String,
}

impl DescribedWait<'_> {
    /// Returns true if another wait is a part of the same call of the same thread.
    fn is_around(&self, inner: &Wait) -> bool {
        self.wait.thread == inner.thread && self.wait.call == inner.call
    }
}

/// Returns the call of a wait and its location: `shmem_quiet (ring.c:12 in exchange)`.
pub fn call(wait: &Wait) -> String {
    match &wait.called_at {
        Some(location) => format!("{} ({location})", wait.call),
        None => wait.call.clone(),
    }
}

/// Returns `, at most 30 s,` for a wait with that limit, and nothing for others.
fn limit(wait: &Wait) -> String {
    match wait.limit {
        Some(limit) => format!(", at most {},", duration(limit)),
        None => String::new(),
    }
}

/// Returns `the 41st collective on SHMEM_TEAM_WORLD`.
fn collective(entered: &Collective) -> String {
    format!(
        "the {} collective on {}",
        ordinal(entered.nth),
        entered.team
    )
}

/// Returns the awaited words, with the comparison and the value of one of them.
fn words_text(snapshot: &PeSnapshot, wait: &Wait, words: &Words, values: &[Option<u64>]) -> String {
    let total = words.more.saturating_add(words.words.len() as u64);
    if words.words.is_empty() {
        return format!("{total} words");
    }

    // The first word that keeps the wait from its end, or else any.
    let unmet = words.unmet(values);
    let index = unmet.first().copied().unwrap_or(0);
    let word = &words.words[index];
    let name = awaited(snapshot, wait, &word.location);
    let wanted = number(word, word.wanted);
    let is = match values.get(index).copied().flatten() {
        Some(value) => format!(", which is {}", number(word, value)),
        None => String::new(),
    };
    let now = if unmet.is_empty() { " by now" } else { "" };
    let text = format!("{name} {} {wanted}{is}{now}", words.comparison);

    if total == 1 {
        text
    } else if words.all {
        // Words that are not listed have no known value.
        let n = words.more.saturating_add(unmet.len() as u64);
        format!("all of {total} words, of which {n} do not satisfy the comparison: {text}")
    } else {
        format!("any of {total} words, such as {text}")
    }
}

/// Returns the name of an awaited word or lock. In a block of the heap, it has the location at
/// which the block was allocated or the buffer registered, if that is known.
fn awaited(snapshot: &PeSnapshot, wait: &Wait, word: &SymmetricLocation) -> String {
    if let SymmetricLocation::Heap {
        offset,
        block: Some(block),
    } = word
        && let Some(line) = &wait.allocated_at
        // The status has this line for the block of the first word alone.
        && wait.subject.block() == Some(block)
    {
        let byte = offset.saturating_sub(block.offset);
        let nbytes = block.nbytes;
        let made = if block.is_buffer {
            "registered"
        } else {
            "allocated"
        };
        return format!("byte {byte} of the {nbytes} bytes {made} at {line}");
    }
    location(snapshot, word)
}

/// Returns the name of the static variable at a location, if it is known, or its offset in the
/// heap.
pub fn location(snapshot: &PeSnapshot, location: &SymmetricLocation) -> String {
    match location {
        SymmetricLocation::Static { address } => {
            let mut symbols = snapshot.symbols.iter();
            match symbols.find(|symbol| symbol.address == *address) {
                Some(symbol) => symbol.name.clone(),
                None => format!("the static variable at {address:#x}"),
            }
        }
        SymmetricLocation::Heap {
            offset,
            block: Some(block),
        } => format!(
            "byte {} of the {} of {} bytes at heap offset {:#x}",
            offset.saturating_sub(block.offset),
            if block.is_buffer {
                "registered buffer"
            } else {
                "allocation"
            },
            block.nbytes,
            block.offset
        ),
        SymmetricLocation::Heap {
            offset,
            block: None,
        } => format!("heap offset {offset:#x}"),
        SymmetricLocation::Other { address } => format!("address {address:#x}"),
    }
}

/// Returns the lines, wrapped at this number of columns. Continuation lines are indented by 4 more.
pub fn wrapped<'a>(lines: impl IntoIterator<Item = &'a str>, columns: usize) -> String {
    let mut text = Vec::new();
    for line in lines {
        let indent = line.len() - line.trim_start().len();
        let mut row = String::new();
        for word in line.split_inclusive(' ') {
            if !row.trim().is_empty() && row.len() + word.trim_end().len() > columns {
                text.push(std::mem::replace(&mut row, " ".repeat(indent + 4)));
            }
            row += word;
        }
        text.push(row);
    }

    text.iter()
        .map(|row| row.trim_end())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns `1st`, `2nd`, `11th`.
pub fn ordinal(n: u64) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

/// Returns the durations from `min` to `max` nanoseconds: `12 s`, `10 s to 12 s`.
pub fn durations(min: u64, max: u64) -> String {
    let min = duration(min);
    let max = duration(max);
    if min == max {
        min
    } else {
        format!("{min} to {max}")
    }
}

/// Returns a duration: with decimals below 1 s, else in whole seconds, minutes or hours.
fn duration(ns: u64) -> String {
    match ns / SECOND {
        0 => format!("{:.2} s", ns as f64 / SECOND as f64),
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_ordinals_read_well() {
        assert_eq!(durations(31 * SECOND, 31 * SECOND + 5), "31 s");
        assert_eq!(durations(SECOND / 4, 200 * SECOND), "0.25 s to 3 min");
        let ordinals: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 41, 112].map(ordinal).into();
        assert_eq!(
            ordinals.join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 41st 112th"
        );
    }
}
