//! Constructs jobs for tests: snapshots of PEs as a launcher would collect them.

use rushmem_explain::snapshot::{PeSnapshot, ProcessState, StaticSymbol};
use rushmem_explain::status::{
    AwaitedObject, Collective, InFlight, Members, Poll, PolledObject, Stage, Status,
    SymmetricLocation, Wait, Word, Words,
};
use rushmem_explain::writes::LastWrite;
use std::collections::HashSet;

const SECOND: u64 = 1_000_000_000;

/// When the snapshots were made.
const NOW: u64 = 10_000 * SECOND;

/// A job. All PEs compute at first; the methods that change the job return it.
pub struct TestJob(pub Vec<PeSnapshot>);

impl TestJob {
    pub fn new(n_pes: u32) -> TestJob {
        TestJob((0..n_pes).map(snapshot).collect())
    }

    pub fn n_pes(&self) -> u32 {
        self.0.len() as u32
    }

    /// Sets the state of the processes of PEs.
    pub fn process(mut self, pes: impl IntoIterator<Item = u32>, process: ProcessState) -> TestJob {
        for pe in pes {
            self.0[pe as usize].process = process.clone();
        }
        self
    }

    /// Sets the stage of PEs; `None` takes away their status.
    pub fn stage(mut self, pes: impl IntoIterator<Item = u32>, stage: Option<Stage>) -> TestJob {
        for pe in pes {
            let snapshot = &mut self.0[pe as usize];
            match (stage, &mut snapshot.status) {
                (Some(stage), Some(status)) => status.stage = stage,
                _ => snapshot.status = None,
            }
        }
        self
    }

    /// Adds a wait to PEs, which has lasted `seconds`.
    pub fn wait(
        mut self,
        pes: impl IntoIterator<Item = u32>,
        call: &str,
        seconds: f64,
        subject: impl Fn(u32) -> AwaitedObject,
    ) -> TestJob {
        for pe in pes {
            let snapshot = &mut self.0[pe as usize];
            snapshot.process = ProcessState::Sleeps;

            let since = NOW - (seconds * SECOND as f64) as u64;
            let status = snapshot
                .status
                .as_mut()
                .expect("a PE that waits has a status");
            status.waits.push(Wait {
                thread: status.waits.len() as u32,
                call: call.to_owned(),
                called_at: None,
                search: None,
                allocated_at: None,
                limit: None,
                since,
                subject: subject(pe),
            });
        }
        self
    }

    /// Lets PEs wait in `shmem_barrier_all`, as their 41st collective, for 12 s.
    pub fn barrier_all(self, pes: impl IntoIterator<Item = u32>) -> TestJob {
        let n_pes = self.n_pes();
        self.wait(pes, "shmem_barrier_all", 12.0, |_| world(n_pes, 41))
    }

    /// Lets a PE wait in `shmem_long_wait_until` on `flag[2] >= 8` for 31 s.
    pub fn wait_until(self, pe: u32, value: u64) -> TestJob {
        let mut job = self.wait([pe], "shmem_long_wait_until", 31.0, |_| word());
        let snapshot = &mut job.0[pe as usize];
        snapshot.values.push(Some(value));
        snapshot.symbols.push(StaticSymbol {
            address: 0x4010,
            name: "flag[2]".into(),
        });
        job
    }

    /// Sets the limit of the waits of a PE, in seconds.
    pub fn limit(mut self, pe: u32, seconds: u64) -> TestJob {
        let status = self.0[pe as usize].status.as_mut().expect("a status");
        for wait in &mut status.waits {
            wait.limit = Some(seconds * SECOND);
        }
        self
    }

    /// Adds a write of a PE to the word of [`word`] on another PE, made `seconds` ago.
    pub fn writes(mut self, writer: u32, pe: u32, seconds: f64) -> TestJob {
        let writes = self.0[writer as usize].writes.get_or_insert_default();
        writes.push(LastWrite {
            began_at: NOW - (seconds * SECOND as f64) as u64,
            pe,
            location: SymmetricLocation::Static { address: 0x4010 },
            nbytes: 8,
            call: "shmem_long_p".into(),
        });
        self
    }

    /// Sets the operations in flight of PEs.
    pub fn in_flight(
        mut self,
        pes: impl IntoIterator<Item = u32>,
        n: u64,
        targets: &[u32],
        more: bool,
    ) -> TestJob {
        for pe in pes {
            let status = self.0[pe as usize].status.as_mut().expect("a status");
            status.in_flight = Some(InFlight {
                n,
                targets: targets.to_vec(),
                more,
            });
        }
        self
    }

    /// Lets a PE hold a lock.
    pub fn holds(mut self, pe: u32, lock: u64) -> TestJob {
        let status = self.0[pe as usize].status.as_mut().expect("a status");
        status.held_locks.push(location(lock));
        self
    }

    /// Lets a PE repeat a call on `flag[2]` of a PE, or on the lock at an offset of the heap.
    pub fn polls(mut self, pe: u32, call: &str, of: PolledObject, lock: u64) -> TestJob {
        let snapshot = &mut self.0[pe as usize];
        snapshot.symbols.push(StaticSymbol {
            address: 0x4010,
            name: "flag[2]".into(),
        });
        let word = match of {
            PolledObject::MemoryOf(_) => SymmetricLocation::Static { address: 0x4010 },
            PolledObject::Lock => location(lock),
        };
        let status = snapshot.status.as_mut().expect("a status");
        status.poll = Some(Poll {
            call: call.to_owned(),
            called_at: Some("ring.c:12 in exchange".into()),
            is_searched: true,
            at: NOW,
            word,
            of,
        });
        self
    }

    /// Lets PEs wait for a lock for 20 s.
    pub fn set_lock(
        self,
        pes: impl IntoIterator<Item = u32>,
        lock: u64,
        behind: Option<u32>,
    ) -> TestJob {
        self.wait(pes, "shmem_set_lock", 20.0, |_| AwaitedObject::Lock {
            lock: location(lock),
            behind,
        })
    }

    /// Explains the job, and checks that the text is short and has no sentence twice.
    pub fn explained(&self, n_pes: u32) -> Explanation {
        let text = rushmem_explain::explain(n_pes, &self.0);
        let (conclusion, table) = text.split_once("\n\n").unwrap_or((&text, ""));
        println!("{text}\n");

        assert!(
            table.replace("\n    ", " ").lines().count() <= 25,
            "a long table"
        );
        assert!(conclusion.lines().count() <= 50, "a long conclusion");
        for line in text.lines() {
            assert!("oshrun: ".len() + line.len() <= 100, "a long line: {line}");
        }

        let sentences: Vec<&str> = conclusion.lines().map(str::trim).collect();
        let sentences = sentences.join(" ");
        let once: HashSet<&str> = sentences.split(". ").collect();
        assert_eq!(
            once.len(),
            sentences.split(". ").count(),
            "a sentence comes twice: {text}"
        );
        Explanation {
            table: table.replace("\n    ", " "),
            conclusion: sentences,
        }
    }
}

/// The explanation of a job.
pub struct Explanation {
    /// The table of the PEs that the conclusion does not describe.
    pub table: String,
    /// The sentences of the conclusion.
    pub conclusion: String,
}

fn snapshot(pe: u32) -> PeSnapshot {
    let process = ProcessState::Runs {
        cpu_ms: 99,
        of_ms: 100,
    };
    PeSnapshot {
        status: Some(Status::new(100 + pe, Stage::Initialized)),
        read_at: NOW,
        ..PeSnapshot::new(pe, process)
    }
}

fn location(offset: u64) -> SymmetricLocation {
    SymmetricLocation::Heap {
        offset,
        block: None,
    }
}

/// Returns the collective with number `nth` on the team of all PEs.
pub fn world(n_pes: u32, nth: u64) -> AwaitedObject {
    team("SHMEM_TEAM_WORLD", 0, strided(0, 1, n_pes), nth, None)
}

/// Returns `n` members at equal distances.
pub fn strided(start: u32, stride: i32, n: u32) -> Members {
    Members::Strided { start, stride, n }
}

/// Returns a collective on a team.
pub fn team(
    name: &str,
    number: u64,
    members: Members,
    nth: u64,
    awaited: Option<u32>,
) -> AwaitedObject {
    AwaitedObject::Collective(Collective {
        team: name.to_owned(),
        is_active_set: name.starts_with("the active set"),
        number,
        members,
        nth,
        awaited,
    })
}

/// Returns an awaited word: `flag[2] >= 8`.
pub fn word() -> AwaitedObject {
    let word = Word {
        location: SymmetricLocation::Static { address: 0x4010 },
        in_memfd: None,
        nbytes: 8,
        signed: true,
        wanted: 8,
    };
    AwaitedObject::Words(Words {
        words: vec![word],
        more: 0,
        all: true,
        comparison: ">=".into(),
    })
}
