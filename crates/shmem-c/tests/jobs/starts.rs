//! Starts of real PEs, drawn by a seed, in which one PE is late, differs, or ends: all of them run
//! to their end, or the job ends with a message about that PE. `start::simulated` of the runtime
//! draws many more, without processes.

use fastrand::Rng;
use testkit::{Job, Outcome, every_size, scenario, seed};

/// What happens to one PE of a start.
#[derive(Debug)]
enum Mishap {
    /// It begins this many microseconds after the others.
    Late(u32),
    /// It has another value of a setting.
    Differs(&'static str, &'static str),
    /// It exits before it initializes the library.
    Exits,
    /// A signal ends it after this many microseconds, wherever it is then.
    IsKilled(u32),
}

/// A start, and the PE that has the mishap.
#[derive(Debug)]
struct Start {
    n_pes: usize,
    /// The setting that decides which PEs share memory.
    nodes: Option<(&'static str, &'static str)>,
    pe: usize,
    mishap: Mishap,
}

impl Start {
    fn draw(rng: &mut Rng) -> Start {
        let n_pes = rng.usize(2..=6);
        let nodes = [
            None,
            Some(("SHMEM_ONNODE", "off")),
            Some(("SHMEM_VIRTUAL_NODES", "2")),
        ];
        let settings = [
            ("SHMEM_SYMMETRIC_SIZE", "3m"),
            ("SHMEM_ONNODE", "off"),
            ("SHMEM_REDUCE_ALGORITHM", "ring"),
        ];
        let mishap = match rng.u8(0..8) {
            0 | 1 => Mishap::Late(rng.u32(1..200_000)),
            2 | 3 => {
                let (name, value) = settings[rng.usize(0..settings.len())];
                Mishap::Differs(name, value)
            }
            4 => Mishap::Exits,
            // Most starts take 10 to 100 ms.
            _ => Mishap::IsKilled(rng.u32(1..150_000)),
        };
        Start {
            n_pes,
            nodes: nodes[rng.usize(0..nodes.len())],
            pe: rng.usize(0..n_pes),
            mishap,
        }
    }

    fn run(&self) -> Outcome {
        let mut job = Job::new(scenario!("starts.c")).n(self.n_pes);
        if let Some((name, value)) = self.nodes {
            job = job.env(name, value);
        }
        let (kind, detail, value) = match self.mishap {
            Mishap::Late(microseconds) => ("late", microseconds.to_string(), ""),
            Mishap::Differs(name, value) => ("differs", name.to_owned(), value),
            Mishap::Exits => ("exits", "0".to_owned(), ""),
            Mishap::IsKilled(microseconds) => ("is_killed", microseconds.to_string(), ""),
        };
        job.args([kind, &self.pe.to_string(), &detail, value]).run()
    }

    /// Checks how the job has ended.
    fn check(&self, outcome: &Outcome) {
        let pe = format!("PE {}", self.pe);
        match self.mishap {
            Mishap::Late(_) => outcome.assert_ok(self.n_pes),
            Mishap::Differs(name, value) => {
                if self.nodes == Some((name, value)) {
                    outcome.assert_ok(self.n_pes);
                } else {
                    outcome.assert_fails(&[&pe, "must be the same on all"]);
                }
            }
            Mishap::Exits => {
                outcome.assert_fails(&[&pe]);
            }
            // After its finalize, the end of a PE is none of the job's business.
            Mishap::IsKilled(_) if outcome.stdout.contains("PASS") => {}
            Mishap::IsKilled(_) => {
                outcome.assert_fails(&[&pe, "SIGALRM"]);
            }
        }
    }
}

#[test]
fn a_start_ends_whatever_happens_to_one_pe() {
    let mut rng = Rng::with_seed(seed());
    let n_starts = if every_size() { 1000 } else { 200 };
    for number in 0..n_starts {
        let start = Start::draw(&mut rng);
        println!("start {number}: {start:?}");
        start.check(&start.run());
    }
}
