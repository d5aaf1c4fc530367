//! Pseudorandom numbers and bytes, which are the same in every run.

/// A generator of pseudorandom numbers (splitmix64).
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Returns a generator whose numbers depend only on the seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next number, of any 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }

    /// Returns the next `nbytes` pseudorandom bytes.
    pub fn bytes(&mut self, nbytes: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(nbytes + 8);
        while bytes.len() < nbytes {
            bytes.extend_from_slice(&self.next_u64().to_le_bytes());
        }
        bytes.truncate(nbytes);
        bytes
    }
}

pub(crate) fn bytes(seed: u64, nbytes: usize) -> Vec<u8> {
    Random::new(seed).bytes(nbytes)
}
