//! Communication of the PEs about a measurement, by the library under test: a broadcast and gathers
//! to PE 0. All PEs execute the same plan, and PE 0 reports.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::library::{CONTROL_BYTES, Joined};
use crate::record::Clock;

/// The size in bytes of the two numbers before a part of published bytes: see [`framed`].
const HEAD_BYTES: usize = 16;

/// The job of a measurement, as one PE sees it.
pub struct BenchJob<'a> {
    pub library: Joined<'a>,
    /// This PE.
    pub me: u32,
    /// The number of PEs.
    pub n: u32,
    /// The clock as measured on PE 0, so that all PEs subtract the same overhead.
    pub clock: Clock,
}

impl<'a> BenchJob<'a> {
    /// Measures the clock. All PEs call it, after [`Joined::allocate`].
    pub fn new(library: Joined<'a>) -> Self {
        let mut job = Self {
            me: library.my_pe(),
            n: library.n_pes(),
            clock: clock(&library),
            library,
        };
        job.clock = job.share(0, Some(&job.clock));
        job
    }

    /// Returns the value of `root`, which must pass one, on all PEs; the argument of other PEs is
    /// ignored. All PEs call it.
    pub fn share<T: Serialize + DeserializeOwned>(&self, root: u32, value: Option<&T>) -> T {
        let bytes = if self.me == root {
            let bytes = value.map(to_json).unwrap_or_default();
            self.publish(&bytes);
            bytes
        } else {
            self.read(root)
        };
        serde_json::from_slice(&bytes).expect("what was written")
    }

    /// Lets all other PEs [`read`](Self::read) these bytes.
    fn publish(&self, bytes: &[u8]) {
        let mut parts = bytes.chunks(CONTROL_BYTES - HEAD_BYTES);
        let mut left = bytes.len();
        loop {
            // At least one part, though it may be empty.
            let part = parts.next().unwrap_or_default();
            left -= part.len();
            self.library.post(&framed(part, left as u64));

            // The others read the part between these barriers.
            self.library.barrier();
            self.library.barrier();
            if left == 0 {
                return;
            }
        }
    }

    /// Returns the bytes that `root` [publishes](Self::publish).
    fn read(&self, root: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            self.library.barrier();
            let part = self.read_part(root);
            bytes.extend(part.bytes);
            // The root overwrites the part only after this barrier.
            self.library.barrier();
            if part.left == 0 {
                return bytes;
            }
        }
    }

    /// Returns the values of all PEs on PE 0, and nothing on other PEs. All PEs call it.
    pub fn gather<T: Serialize + DeserializeOwned>(&self, own: &T) -> Vec<T> {
        let bytes = to_json(own);
        assert!(bytes.len() <= CONTROL_BYTES - HEAD_BYTES, "a few lines");
        let mut values = Vec::new();
        for bytes in self.gather_bytes(&bytes) {
            values.push(serde_json::from_slice(&bytes).expect("what was written"));
        }
        values
    }

    /// Returns the numbers of all PEs on PE 0, and nothing on other PEs. All PEs call it.
    pub fn gather_numbers(&self, own: &[u64]) -> Vec<Vec<u64>> {
        let bytes: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut all = Vec::new();
        for bytes in self.gather_bytes(&bytes) {
            all.push(bytes.chunks_exact(8).map(number).collect());
        }
        all
    }

    fn gather_bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.library.post(&framed(own, 0));
        self.library.barrier();

        let mut all = Vec::new();
        if self.me == 0 {
            for pe in 0..self.n {
                all.push(self.read_part(pe).bytes);
            }
        }
        // No PE publishes again before PE 0 has read.
        self.library.barrier();
        all
    }

    /// Returns the part that `pe` has published.
    fn read_part(&self, pe: u32) -> Part {
        let head = self.library.read(pe, HEAD_BYTES);
        let nbytes = number(&head[..8]) as usize;
        let mut framed = self.library.read(pe, HEAD_BYTES + nbytes);
        Part {
            bytes: framed.split_off(HEAD_BYTES),
            left: number(&head[8..]),
        }
    }
}

/// Returns the number of eight bytes.
fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// A part of the bytes that a PE publishes.
struct Part {
    bytes: Vec<u8>,
    /// The number of bytes in later parts.
    left: u64,
}

/// Returns a part behind two 8-byte numbers: its length, and the number of bytes in later parts.
fn framed(part: &[u8], left: u64) -> Vec<u8> {
    let mut framed = Vec::new();
    framed.extend((part.len() as u64).to_le_bytes());
    framed.extend(left.to_le_bytes());
    framed.extend(part);
    framed
}

fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("it has a form in JSON")
}

/// Measures how long it takes to read the clock, and the clock's granularity: the smallest
/// difference of two readings, or of two such differences.
fn clock(library: &Joined<'_>) -> Clock {
    let readings = library.read_clock(20_000);
    let mut steps: Vec<u64> = readings.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();

    // The overhead is a mean, because most steps of a coarse clock are 0. The largest tenth of the
    // steps is left out, since they include interrupts and preemption.
    let usual = &steps[..steps.len() * 9 / 10];
    let overhead = usual.iter().sum::<u64>() as f64 / usual.len() as f64;

    let differences = steps.windows(2).map(|pair| pair[1] - pair[0]);
    let candidates = steps.iter().copied().chain(differences);
    let resolution = candidates.filter(|&ns| ns > 0).min().unwrap_or(1);

    Clock {
        name: "CLOCK_MONOTONIC".into(),
        overhead_ns: overhead,
        resolution_ns: resolution as f64,
    }
}
