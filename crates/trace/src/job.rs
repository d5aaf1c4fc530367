//! The traces of all PEs of a job, and the relations between their records: which record ended a
//! wait on another PE, and between which PEs a collective moved data.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::layout::{Kind, TraceRecord, file_name};
use crate::pe::PeTrace;

/// The name of the JSON file with the trace of a job, in the directory of the PEs' files.
pub const FILE: &str = "trace.json";

/// The traces of the PEs of a job.
#[derive(Debug)]
pub struct JobTrace {
    /// The traces by ascending PE, at least one. PEs without a trace file are missing.
    pub pes: Vec<PeTrace>,
}

/// A word of a PE, by its location in the trace. Words are sorted by PE, then by location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    pe: u32,
    location: u64,
}

/// A change of a word. Changes are sorted by the time at which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WordChange {
    begin: u64,
    record: RecordIndex,
}

/// The operations that a quiet completes: those on its context, to one PE or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct QuietScope {
    context: u32,
    peer: Option<u32>,
}

/// A thread of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TracedThread {
    /// The index of its PE in [`JobTrace::pes`].
    pe: usize,
    thread: u32,
}

/// Identifies a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordIndex {
    /// The index of its PE in [`JobTrace::pes`].
    pub pe: usize,
    /// Its index in that PE's records.
    pub record: usize,
}

/// The PEs of a job without a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingPes {
    /// Their number.
    pub n: u32,
    /// The first of them, or the number of all PEs if none is missing.
    pub first: u32,
}

/// An action of one PE that has an effect on another PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The record of the action.
    pub from: RecordIndex,
    /// The record on the other PE that ended because of it, or received its data.
    pub to: RecordIndex,
}

/// A call that waits, its duration, and the record for which it waited.
#[derive(Clone, Copy, Debug)]
pub struct TracedWait {
    /// The record of the call.
    pub call: RecordIndex,
    /// The duration of the call in nanoseconds, until the end of the trace if it has not ended.
    pub nanoseconds: u64,
    /// The record that ended it, usually one of another PE; `None` if it is not known.
    pub cause: Option<RecordIndex>,
}

/// The waits of a PE, and those of others for it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTotals {
    /// The number of the PE.
    pub pe: u32,
    /// The time that its calls waited.
    pub waited: u64,
    /// The time that other PEs waited until this PE began the action that ended their waits.
    pub made_wait: u64,
}

impl JobTrace {
    /// Reads the traces in a directory that belong to the same job as that of the lowest PE.
    ///
    /// # Errors
    /// A sentence, if there is no trace or if one cannot be read.
    pub fn of_dir(dir: &Path) -> Result<JobTrace, String> {
        let read = |pe: u32| {
            let file = dir.join(file_name(pe));
            let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            PeTrace::of_file(&bytes).map_err(|why| format!("{}: {why}", file.display()))
        };

        let numbers = traced_pes(dir)?;
        let Some((first, others)) = numbers.split_first() else {
            return Err(format!(
                "{} has no traces of PEs; name the directory of SHMEM_TRACE",
                dir.display()
            ));
        };

        let mut job = JobTrace {
            pes: vec![read(*first)?],
        };
        for &pe in others {
            // The file of a higher PE is of another job, with more PEs.
            if pe < job.n_pes() {
                job.add(read(pe)?);
            }
        }
        Ok(job)
    }

    /// Adds the trace of a PE if it is of the same job and above all PEs so far.
    pub fn add(&mut self, trace: PeTrace) {
        if let Some(last) = self.pes.last() {
            let is_of_job = last.job == trace.job && last.n_pes == trace.n_pes;
            if !is_of_job || last.pe >= trace.pe {
                return;
            }
        }
        self.pes.push(trace);
    }

    /// Returns the PEs that have no trace.
    pub fn missing(&self) -> MissingPes {
        let first = (0..)
            .zip(&self.pes)
            .take_while(|(pe, trace)| *pe == trace.pe)
            .count();
        MissingPes {
            n: self.n_pes() - self.pes.len() as u32,
            first: first as u32,
        }
    }

    /// Returns the number of PEs of the job.
    pub fn n_pes(&self) -> u32 {
        self.pes[0].n_pes
    }

    /// Returns the record with this index.
    pub fn record(&self, index: RecordIndex) -> &TraceRecord {
        &self.pes[index.pe].records[index.record]
    }

    /// Returns the name of a record: the function, perhaps with the location of the call.
    pub fn name(&self, index: RecordIndex) -> &str {
        self.pes[index.pe].name(self.record(index))
    }

    /// Returns the number of the PE that made a record.
    pub fn pe(&self, index: RecordIndex) -> u32 {
        self.pes[index.pe].pe
    }

    /// Returns the indices of all records, by PE and then in the order in which they began.
    pub fn record_indices(&self) -> impl Iterator<Item = RecordIndex> {
        self.pes.iter().enumerate().flat_map(|(pe, trace)| {
            (0..trace.records.len()).map(move |record| RecordIndex { pe, record })
        })
    }

    /// Returns the first and the last time in the records, in nanoseconds.
    pub fn times(&self) -> Range<u64> {
        let all = || self.record_indices().map(|index| self.record(index));
        let begin = all().map(|record| record.begin).min().unwrap_or(0);
        let end = all()
            .map(|record| record.end.unwrap_or(record.begin))
            .max()
            .unwrap_or(0);
        begin..end
    }

    /// Returns the number of bytes that the PEs of each group have written to or read from PEs of
    /// each group. A group has `group` consecutive PEs.
    pub fn matrix(&self, group: u32) -> Vec<Vec<u64>> {
        let n = self.n_pes().div_ceil(group) as usize;
        let group_of = |pe: u32| (pe / group) as usize;

        let mut bytes = vec![vec![0u64; n]; n];
        for index in self.record_indices() {
            let record = self.record(index);
            let Some(peer) = record.peer else { continue };

            let own = &mut bytes[group_of(self.pe(index))];
            // A damaged file may name a PE that the job does not have.
            if let Some(cell) = own.get_mut(group_of(peer)) {
                *cell = cell.saturating_add(record.nbytes);
            }
        }
        bytes
    }

    /// Returns, for each record of a PE, the time at which its operations in flight were complete:
    /// the end of the next quiet on its context that concerns all PEs or its peer; `None` if there
    /// is none. `pe` is an index in [`pes`](JobTrace::pes).
    pub fn completions(&self, pe: usize) -> Vec<Option<u64>> {
        // From the last record to the first: the end of the next quiet.
        let mut next_quiets: HashMap<QuietScope, u64> = HashMap::new();
        let mut completions = Vec::new();
        for record in self.pes[pe].records.iter().rev() {
            let TraceRecord { context, peer, .. } = *record;
            let with_peer = QuietScope { context, peer };
            let with_all = QuietScope {
                context,
                peer: None,
            };
            if let (Kind::Quiet, Some(end)) = (record.kind, record.end) {
                next_quiets.insert(with_peer, end);
            }

            let ends = [with_all, with_peer].map(|scope| next_quiets.get(&scope).copied());
            completions.push(ends.into_iter().flatten().min());
        }
        completions.reverse();
        completions
    }

    /// Returns the flows between PEs: from the last change of a word to the wait for it that ended
    /// then, from the last PE that entered a collective to a member that left it then, and from the
    /// sender to the receiver of data that a collective moves. Leaves out flows that would end
    /// before they begin, for example because clocks differ.
    pub fn flows(&self) -> Vec<Flow> {
        let mut flows: Vec<Flow> = self
            .causes()
            .into_iter()
            .map(|(to, from)| Flow { from, to })
            .collect();
        // The causes are in no order, and a trace is to be the same each time: of flows that begin
        // together, as from the last PE that entered a collective, the records decide.
        flows.sort_by_key(|flow| (self.record(flow.from).begin, flow.from, flow.to));
        flows.extend(self.moves());

        flows.retain(|flow| {
            let begin = self.record(flow.from).begin;
            self.record(flow.to).end.is_none_or(|end| begin <= end)
        });
        flows
    }

    /// Returns the `n` longest waits, the longest first. Every call that is not an access counts as
    /// a wait. Waits that have not ended come before all others.
    pub fn longest_waits(&self, n: usize) -> Vec<TracedWait> {
        let causes = self.causes();
        let last = self.times().end;
        let mut waits = Vec::new();
        for call in self.record_indices() {
            let record = self.record(call);
            if record.is_access() {
                continue;
            }
            waits.push(TracedWait {
                call,
                nanoseconds: record.end.unwrap_or(last).saturating_sub(record.begin),
                cause: causes.get(&call).copied(),
            });
        }

        waits.sort_by_key(|wait| {
            let has_ended = self.record(wait.call).end.is_some();
            (has_ended, Reverse(wait.nanoseconds))
        });
        waits.truncate(n);
        waits
    }

    /// Returns the totals of each PE that waited or for which others waited. PEs for which others
    /// waited the longest come first.
    pub fn wait_totals(&self) -> Vec<WaitTotals> {
        let mut totals: Vec<WaitTotals> = self
            .pes
            .iter()
            .map(|pe| WaitTotals {
                pe: pe.pe,
                waited: 0,
                made_wait: 0,
            })
            .collect();

        for wait in self.longest_waits(usize::MAX) {
            totals[wait.call.pe].waited += wait.nanoseconds;
            if let Some(cause) = wait.cause {
                // What follows the begin of the action is the time of the action itself.
                let until = self.record(cause).begin;
                let waited = until.saturating_sub(self.record(wait.call).begin);
                totals[cause.pe].made_wait += waited.min(wait.nanoseconds);
            }
        }

        totals.retain(|total| total.waited > 0 || total.made_wait > 0);
        totals.sort_by_key(|total| (Reverse(total.made_wait), total.pe));
        totals
    }

    /// Returns, for each wait whose cause is known, the record that ended it: the last change of
    /// one of its words, or for a collective the member that entered last before the wait ended.
    fn causes(&self) -> HashMap<RecordIndex, RecordIndex> {
        let mut causes = HashMap::new();

        let changes = self.changes();
        for wait in self.record_indices() {
            if let Some(last) = self.last_change(wait, &changes) {
                causes.insert(wait, last);
            }
        }

        for mut members in self.collectives().into_values() {
            members.sort_by_key(|index| self.record(*index).begin);
            for &member in &members {
                // A member that enters after this one has left has not ended this one's wait. For
                // example, the root of a broadcast may leave before others enter.
                let Some(end) = self.record(member).end else {
                    continue;
                };
                let n = members.partition_point(|other| self.record(*other).begin <= end);
                if let Some(last) = members[..n].last()
                    && *last != member
                {
                    causes.insert(member, *last);
                }
            }
        }
        causes
    }

    /// Returns the last record that changed a word for which the record `wait` has waited, and that
    /// began before the wait ended; `None` also if `wait` is no wait, or has not ended.
    fn last_change(
        &self,
        wait: RecordIndex,
        changes: &BTreeMap<Word, Vec<WordChange>>,
    ) -> Option<RecordIndex> {
        let record = self.record(wait);
        let end = record.end?;
        if record.kind != Kind::Wait {
            return None;
        }

        let pe = self.pe(wait);
        let [location, nbytes] = record.subject;
        let first = Word { pe, location };
        let behind = Word {
            pe,
            location: location.saturating_add(nbytes.max(1)),
        };

        // Of changes that began together, the record decides, as in flows.
        let mut last: Option<WordChange> = None;
        for (_, changes) in changes.range(first..behind) {
            let n = changes.partition_point(|change| change.begin <= end);
            last = last.max(changes[..n].last().copied());
        }
        Some(last?.record)
    }

    /// Returns the puts and atomic operations by the word that they change, for each word in the
    /// order in which they began.
    fn changes(&self) -> BTreeMap<Word, Vec<WordChange>> {
        let mut changes: BTreeMap<Word, Vec<WordChange>> = BTreeMap::new();
        for index in self.record_indices() {
            let record = self.record(index);
            if let (Kind::Put | Kind::Amo, Some(peer)) = (record.kind, record.peer) {
                let word = Word {
                    pe: peer,
                    location: record.subject[0],
                };
                changes.entry(word).or_default().push(WordChange {
                    begin: record.begin,
                    record: index,
                });
            }
        }

        for changes in changes.values_mut() {
            changes.sort_unstable();
        }
        changes
    }

    /// Returns the records of the members of each collective, by ascending PE.
    fn collectives(&self) -> HashMap<[u64; 2], Vec<RecordIndex>> {
        let mut collectives: HashMap<[u64; 2], Vec<RecordIndex>> = HashMap::new();
        for index in self.record_indices() {
            let record = self.record(index);
            if record.kind == Kind::Collective {
                collectives.entry(record.subject).or_default().push(index);
            }
        }
        collectives
    }

    /// Returns a flow for each copy that a collective has made between two PEs: between the record
    /// of the copy and the other PE's record of the same collective.
    fn moves(&self) -> Vec<Flow> {
        let collectives = self.collectives();
        // The collective in which a thread is: the one that it began last.
        let mut current: HashMap<TracedThread, [u64; 2]> = HashMap::new();
        let mut flows = Vec::new();
        for own in self.record_indices() {
            let record = self.record(own);
            let thread = TracedThread {
                pe: own.pe,
                thread: record.thread,
            };
            match (record.kind, record.peer) {
                (Kind::Collective, _) => {
                    current.insert(thread, record.subject);
                }
                (Kind::Move, Some(peer)) if peer != self.pe(own) => {
                    let members = current
                        .get(&thread)
                        .and_then(|subject| collectives.get(subject));
                    let other = members.and_then(|members| self.member_on(members, peer));
                    let Some(other) = other else { continue };

                    let is_from_peer = record.subject[0] != 0;
                    flows.push(if is_from_peer {
                        Flow {
                            from: other,
                            to: own,
                        }
                    } else {
                        Flow {
                            from: own,
                            to: other,
                        }
                    });
                }
                _ => {}
            }
        }
        flows
    }

    /// Returns the record of a PE among those of the members of a collective, which are sorted by
    /// PE.
    fn member_on(&self, members: &[RecordIndex], pe: u32) -> Option<RecordIndex> {
        let index = members.binary_search_by_key(&pe, |member| self.pe(*member));
        Some(members[index.ok()?])
    }
}

/// Returns the PEs that have a trace file in a directory, in ascending order.
fn traced_pes(dir: &Path) -> Result<Vec<u32>, String> {
    let entries = fs::read_dir(dir).map_err(|error| {
        format!(
            "{}: {error}; name the directory of SHMEM_TRACE",
            dir.display()
        )
    })?;

    let mut pes = Vec::new();
    // An entry that cannot be read is left out, as a PE without a file is.
    for entry in entries.flatten() {
        if let Some(name) = entry.file_name().to_str()
            && let Some(rest) = name.strip_prefix("pe-")
            && let Some(number) = rest.strip_suffix(".ring")
            && let Ok(pe) = number.parse()
        {
            pes.push(pe);
        }
    }
    pes.sort_unstable();
    Ok(pes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: Kind, peer: Option<u32>, times: (u64, u64), subject: [u64; 2]) -> TraceRecord {
        TraceRecord {
            kind,
            in_flight: true,
            name: 0,
            peer,
            thread: 0,
            context: 0,
            begin: times.0,
            end: Some(times.1),
            nbytes: 8,
            subject,
        }
    }

    fn job(records: [Vec<TraceRecord>; 2]) -> JobTrace {
        let pe = |(pe, records)| PeTrace {
            job: 1,
            pe,
            n_pes: 2,
            node: 0,
            dropped: 0,
            records,
            names: Vec::new(),
        };
        JobTrace {
            pes: (0..).zip(records).map(pe).collect(),
        }
    }

    fn index(pe: usize, record: usize) -> RecordIndex {
        RecordIndex { pe, record }
    }

    #[test]
    fn a_wait_ends_by_the_last_change_of_its_words() {
        let put = |begin, word| record(Kind::Put, Some(1), (begin, begin + 1), [word, 0]);
        let wait = record(Kind::Wait, None, (0, 50), [96, 16]);
        let job = job([
            vec![put(10, 96), put(40, 104), put(45, 112), put(60, 96)],
            vec![wait],
        ]);
        assert_eq!(
            job.flows(),
            [Flow {
                from: index(0, 1),
                to: index(1, 0)
            }]
        );
        assert_eq!(job.matrix(1), [[0, 32], [0, 0]]);
        assert_eq!(job.matrix(2), [[32]]);

        let waits = job.longest_waits(1);
        assert_eq!(
            (waits[0].nanoseconds, waits[0].cause),
            (50, Some(index(0, 1)))
        );

        let first = WaitTotals {
            pe: 0,
            waited: 0,
            made_wait: 40,
        };
        let second = WaitTotals {
            pe: 1,
            waited: 50,
            made_wait: 0,
        };
        assert_eq!(job.wait_totals(), [first, second]);
    }

    #[test]
    fn members_wait_for_the_last_one_and_get_what_is_moved() {
        let collective = |begin, nth| record(Kind::Collective, None, (begin, 50), [7, nth]);
        let moved = |is_from| record(Kind::Move, Some(1), (35, 36), [is_from, 0]);
        let own = vec![collective(30, 2), moved(0), moved(1)];
        let job = job([own, vec![collective(10, 1), collective(20, 2)]]);
        let flow = |from, to| Flow { from, to };
        assert_eq!(
            job.flows(),
            [
                flow(index(0, 0), index(1, 1)),
                flow(index(0, 1), index(1, 1)),
                flow(index(1, 1), index(0, 2)),
            ]
        );
    }

    #[test]
    fn a_root_that_has_left_did_not_wait_for_who_came_later() {
        let broadcast = |times| record(Kind::Collective, None, times, [7, 1]);

        let root = vec![
            broadcast((0, 10)),
            record(Kind::Move, Some(1), (5, 6), [0; 2]),
        ];
        let late = job([root, vec![broadcast((30, 40))]]);
        assert_eq!(
            late.flows(),
            [Flow {
                from: index(0, 1),
                to: index(1, 0)
            }]
        );
        assert!(
            late.longest_waits(2)
                .iter()
                .all(|wait| wait.cause.is_none())
        );

        // Data that move to the root cannot have ended its broadcast before they were sent.
        let wrong = vec![
            broadcast((30, 40)),
            record(Kind::Move, Some(0), (35, 36), [0; 2]),
        ];
        assert_eq!(job([vec![broadcast((0, 10))], wrong]).flows(), []);
    }

    #[test]
    fn waits_without_an_end_come_first_and_have_no_cause() {
        let collective = |begin, end| TraceRecord {
            end,
            ..record(Kind::Collective, None, (begin, 0), [7, begin / 100])
        };
        let pe = || vec![collective(0, Some(90)), collective(100, None)];
        let waits = job([pe(), pe()]).longest_waits(3);
        let seen = waits
            .iter()
            .map(|wait| (wait.call.record, wait.nanoseconds, wait.cause));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [(1, 0, None), (1, 0, None), (0, 90, Some(index(1, 0)))]
        );
    }

    #[test]
    fn what_is_in_flight_ends_by_the_next_quiet() {
        let put = |begin| record(Kind::Put, Some(1), (begin, begin + 1), [0; 2]);
        let quiet = record(Kind::Quiet, None, (20, 30), [0; 2]);
        let of_pe = |peer, end| record(Kind::Quiet, Some(peer), (11, end), [0; 2]);
        let flush = record(Kind::Flush, None, (14, 15), [0; 2]);
        let job = job([
            vec![put(10), of_pe(0, 13), flush, quiet, put(40), of_pe(1, 50)],
            vec![],
        ]);
        assert_eq!(job.completions(0)[0], Some(30));
        assert_eq!(job.completions(0)[4], Some(50));
    }
}
