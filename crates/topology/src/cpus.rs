//! A set of CPUs (hardware threads) by the numbers that the operating system gives them.

use std::fmt;

/// A set of CPUs, written as the kernel does: `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// CPU `i` is bit `i % 64` of word `i / 64`; the last word is not zero.
    words: Vec<u64>,
}

impl CpuSet {
    /// Parses a list such as `0-3,8`; a blank text is the empty set. Returns `None` if the text is
    /// no list, or if a number is 2^20 or more.
    pub fn parse(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet::default();
        for range in list.trim().split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let first: u32 = first.parse().ok()?;
            let last: u32 = last.parse().ok()?;
            // No machine has that many CPUs, so a larger number is an error, and must not take
            // memory.
            if first > last || last >= 1 << 20 {
                return None;
            }

            for cpu in first..=last {
                set.insert(cpu);
            }
        }
        Some(set)
    }

    /// Returns the set that has CPU `i` if bit `i % 64` of word `i / 64` is 1.
    pub fn from_words(words: &[u64]) -> CpuSet {
        let mut set = CpuSet {
            words: words.to_vec(),
        };
        set.trim();
        set
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: u32) {
        let word = cpu as usize / 64;
        self.words.resize(self.words.len().max(word + 1), 0);
        self.words[word] |= 1 << (cpu % 64);
    }

    /// Returns true if the set has this CPU.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words
            .get(cpu as usize / 64)
            .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Returns the CPUs, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().zip(0u32..).flat_map(|(&word, index)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| index * 64 + bit)
        })
    }

    /// Returns the number of CPUs.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Returns true if the set has no CPU.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the CPUs that are in both sets.
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        let words: Vec<u64> = self
            .words
            .iter()
            .zip(&other.words)
            .map(|(one, two)| one & two)
            .collect();
        CpuSet::from_words(&words)
    }

    /// Returns true if any CPU is in both sets.
    pub fn meets(&self, other: &CpuSet) -> bool {
        self.words
            .iter()
            .zip(&other.words)
            .any(|(one, two)| one & two != 0)
    }

    /// Returns true if all CPUs of this set are in `other`.
    pub fn is_within(&self, other: &CpuSet) -> bool {
        self.and(other) == *self
    }

    /// Adds the CPUs of another set.
    pub fn extend(&mut self, other: &CpuSet) {
        let n_words = self.words.len().max(other.words.len());
        self.words.resize(n_words, 0);
        for (own, more) in self.words.iter_mut().zip(&other.words) {
            *own |= more;
        }
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::default();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|&next| next == last + 1) {
                last = next;
            }

            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
