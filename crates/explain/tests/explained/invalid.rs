//! Statuses that no PE of this version writes, such as those of damaged memory. Their explanation
//! may be wrong, but must not panic.

use crate::jobs::{TestJob, strided, team, word};
use rushmem_explain::snapshot::ProcessState;
use rushmem_explain::status::{AwaitedObject, HeapBlock, Members, Stage, SymmetricLocation};
use std::collections::HashSet;

/// Numbers that look random and are the same in each run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns a PE, mostly one of a job of 6 PEs.
    fn pe(&mut self) -> u32 {
        if self.below(20) == 0 {
            u32::MAX
        } else {
            self.below(7) as u32
        }
    }

    fn maybe_pe(&mut self) -> Option<u32> {
        (self.below(2) == 0).then(|| self.pe())
    }

    fn subject(&mut self) -> AwaitedObject {
        match self.below(6) {
            0 => word(),
            1 => {
                let stride = [1, -1, 0, i32::MAX, i32::MIN][self.below(5) as usize];
                let n = [0, 3, 6, u32::MAX][self.below(4) as usize];
                let start = self.pe();
                let nth = self.below(3);
                let number = self.below(3);
                let mut subject = team(
                    "team",
                    number,
                    strided(start, stride, n),
                    nth,
                    self.maybe_pe(),
                );

                let is_listed = self.below(3) == 0;
                if is_listed && let AwaitedObject::Collective(collective) = &mut subject {
                    collective.members = Members::Listed {
                        pes: vec![self.pe(), self.pe()],
                        more: u32::MAX,
                    };
                }
                subject
            }
            2 => {
                let lock = SymmetricLocation::Heap {
                    offset: self.below(2),
                    block: Some(HeapBlock {
                        offset: u64::MAX,
                        nbytes: 0,
                        is_buffer: false,
                    }),
                };
                AwaitedObject::Lock {
                    lock,
                    behind: self.maybe_pe(),
                }
            }
            3 => AwaitedObject::Operations {
                peers: vec![self.pe(), self.pe(), self.pe()],
            },
            4 => AwaitedObject::Message { from: self.pe() },
            _ => AwaitedObject::Exit,
        }
    }

    fn job(&mut self) -> TestJob {
        let mut job = TestJob::new(6);
        for pe in 0..6 {
            for _ in 0..self.below(3) {
                let subject = self.subject();
                let call = ["shmem_barrier_all", "shmem_broadcast", "x"][self.below(3) as usize];
                job = job.wait([pe], call, self.below(4) as f64, |_| subject.clone());
            }

            let snapshot = &mut job.0[pe as usize];
            let n_values = self.below(3);
            for index in 0..n_values {
                let value = if index == 0 { None } else { Some(8) };
                snapshot.values.push(value);
            }
            snapshot.other_threads.busy = u32::from(self.below(9) == 0);

            job = match self.below(12) {
                0 => job.stage([pe], Some(Stage::Starting)),
                1 => job.stage([pe], Some(Stage::Finalized)),
                2 => job.stage([pe], None),
                3 => job.process([pe], ProcessState::Stopped),
                4 => job.process(
                    [pe],
                    ProcessState::Runs {
                        cpu_ms: 1,
                        of_ms: 0,
                    },
                ),
                _ => job,
            };
        }

        // A snapshot that gives a wrong number for its PE.
        job.0[self.below(6) as usize].pe = self.pe();
        job
    }
}

#[test]
fn invalid_statuses_are_explained() {
    let mut numbers = Numbers(1);
    for _ in 0..5000 {
        let n_pes = 1 + numbers.below(7) as u32;
        let job = numbers.job();
        let text = rushmem_explain::explain(n_pes, &job.0);
        let conclusion = text.split("\n\n").next().expect("a part");
        assert!(!conclusion.is_empty(), "{text}");
        // A sentence without a PE belongs to the sentence before it.
        let sentences = conclusion.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut once = HashSet::new();
        for sentence in sentences
            .split(". ")
            .filter(|sentence| sentence.contains("PE"))
        {
            assert!(once.insert(sentence), "{sentence} comes twice: {text}");
        }
    }
}
