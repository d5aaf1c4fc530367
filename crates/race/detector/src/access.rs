//! The record of an access in the detector, and the rule by which two of them conflict.
//!
//! Two accesses of the program itself conflict only if one is to memory of another PE, through a
//! pointer of `shmem_ptr`: what threads do in the memory of their own PE, ThreadSanitizer finds.

use crate::clock::{Actor, Epoch, Stamp};

/// A kind of access, in one byte: whether it writes; whether it is atomic, and if so, on which type
/// and in which domain; whether the library makes it, or else the program, and if the program does,
/// whether it is to memory of another PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowKind(pub u8);

/// Atomic operations that exclude each other (§3.2.1 "Atomicity Guarantees").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicityDomain {
    /// Contexts of teams that were split from the world.
    World = 0,
    /// Contexts of teams that were split from `SHMEM_TEAM_SHARED`.
    Shared = 1,
    /// Signals (§9.8.1).
    Signal = 2,
    /// Atomic operations of the language.
    Language = 3,
}

impl ShadowKind {
    const WRITES: u8 = 1;
    const ATOMIC: u8 = 2;
    const WIDTH: u8 = 2;
    /// The bit of a floating-point operation, if the library makes the access.
    const FLOAT: u8 = 16;
    /// The same bit in an update of a signal: true if the update adds one.
    const COUNTS: u8 = 16;
    /// The same bit in an access of the program: true if the memory is another PE's.
    const TO_PEER: u8 = 16;
    const DOMAIN: u8 = 5;
    const LIBRARY: u8 = 128;

    /// A load of the program.
    pub const LOAD: ShadowKind = ShadowKind(0);
    /// A store of the program.
    pub const STORE: ShadowKind = ShadowKind(ShadowKind::WRITES);
    /// A read of the library.
    pub const READ: ShadowKind = ShadowKind(ShadowKind::LIBRARY);
    /// A write of the library.
    pub const WRITE: ShadowKind = ShadowKind(ShadowKind::LIBRARY | ShadowKind::WRITES);

    /// Returns an atomic operation on a word of `nbytes` bytes.
    pub fn atomic(
        domain: AtomicityDomain,
        nbytes: usize,
        is_float: bool,
        writes: bool,
    ) -> ShadowKind {
        let width = (nbytes.trailing_zeros() as u8 & 3) << ShadowKind::WIDTH;
        let library = if domain == AtomicityDomain::Language {
            0
        } else {
            ShadowKind::LIBRARY
        };
        let float = if is_float { ShadowKind::FLOAT } else { 0 };
        let domain = (domain as u8) << ShadowKind::DOMAIN;
        ShadowKind(ShadowKind::ATOMIC | width | float | domain | library | u8::from(writes))
    }

    /// Returns the update of a signal, which may add one to it.
    pub fn signal(counts: bool) -> ShadowKind {
        ShadowKind::atomic(AtomicityDomain::Signal, 8, counts, true)
    }

    /// Returns true for an operation on a signal.
    pub fn is_of_signal(self) -> bool {
        let domain = 3 << ShadowKind::DOMAIN;
        self.is_atomic() && self.0 & domain == (AtomicityDomain::Signal as u8) << ShadowKind::DOMAIN
    }

    /// Returns true for an operation that adds one to a signal.
    pub fn counts(self) -> bool {
        self.is_of_signal() && self.0 & ShadowKind::COUNTS != 0
    }

    /// Returns this kind of access of the program, but to memory of another PE.
    pub fn to_peer(self) -> ShadowKind {
        ShadowKind(self.0 | ShadowKind::TO_PEER)
    }

    /// Returns true for an access that the program makes to memory of another PE.
    pub fn is_to_peer(self) -> bool {
        !self.is_of_library() && self.0 & ShadowKind::TO_PEER != 0
    }

    /// Returns the kind without the differences between the program's accesses to its own PE's
    /// memory and to that of others, and between updates of a signal.
    fn to_any(self) -> ShadowKind {
        if self.is_of_signal() {
            ShadowKind(self.0 & !ShadowKind::COUNTS)
        } else if self.is_of_library() {
            self
        } else {
            ShadowKind(self.0 & !ShadowKind::TO_PEER)
        }
    }

    /// Returns true if it changes the bytes.
    pub fn writes(self) -> bool {
        self.0 & ShadowKind::WRITES != 0
    }

    /// Returns true if it is an atomic operation.
    pub fn is_atomic(self) -> bool {
        self.0 & ShadowKind::ATOMIC != 0
    }

    /// Returns true if the library makes it.
    pub fn is_of_library(self) -> bool {
        self.0 & ShadowKind::LIBRARY != 0
    }

    /// Returns true for an access that may conflict with loads and stores that a PE makes in its
    /// own memory.
    pub fn is_looked_for(self) -> bool {
        self.is_of_library() || self.is_to_peer()
    }

    /// Returns true if accesses of these kinds to the same bytes are a race unless something orders
    /// them.
    pub fn conflicts(self, other: ShadowKind) -> bool {
        if !self.writes() && !other.writes() {
            return false;
        }
        // What threads do in the memory of their own PE is not for this detector.
        if !self.is_looked_for() && !other.is_looked_for() {
            return false;
        }

        // Atomic operations exclude each other if they are of one type and domain.
        let class = |kind: ShadowKind| kind.to_any().0 | ShadowKind::WRITES;
        let are_exclusive = self.is_atomic() && other.is_atomic() && class(self) == class(other);
        !are_exclusive
    }

    /// Returns true if every access that conflicts with the earlier access `old` conflicts with
    /// this one as well. For a store of the program, accesses by other threads of its PE are not
    /// considered.
    fn replaces(self, old: ShadowKind) -> bool {
        self == old
            || self == ShadowKind::WRITE
            || (self == ShadowKind::READ && !old.writes() && !old.is_atomic())
            || (self.to_any() == ShadowKind::STORE && !old.is_of_library())
    }
}

/// An access as the shadow keeps it, in two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowRecord {
    /// The actor that makes it.
    pub actor: Actor,
    /// The epoch of the actor in which it makes the access.
    pub epoch: Epoch,
    /// A bit for each byte that is accessed, of eight bytes at a multiple of eight.
    pub mask: u8,
    /// The kind of the access.
    pub kind: ShadowKind,
    /// The number of the access's site in the table of sites.
    pub site: u32,
    /// Bytes of the whole access.
    pub nbytes: u32,
}

impl ShadowRecord {
    /// Returns the actor and the epoch.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp {
            actor: self.actor,
            epoch: self.epoch,
        }
    }

    /// Returns the record as two words: the actor, epoch, mask and kind from the upper bits down,
    /// and the site and the number of bytes.
    pub fn words(self) -> [u64; 2] {
        let first = self.stamp().bits() | u64::from(self.mask) << 8 | u64::from(self.kind.0);
        let second = u64::from(self.site) << 32 | u64::from(self.nbytes);
        [first, second]
    }

    /// Returns the record that two words hold; `None` if they hold none.
    pub fn of(words: [u64; 2]) -> Option<ShadowRecord> {
        let [first, second] = words;
        let actor = (first >> 48) as Actor;
        if actor == 0 {
            return None;
        }
        Some(ShadowRecord {
            actor,
            epoch: (first >> 16) as Epoch,
            mask: (first >> 8) as u8,
            kind: ShadowKind(first as u8),
            site: (second >> 32) as u32,
            nbytes: second as u32,
        })
    }

    /// Returns true if the two accesses are a race unless something orders them.
    pub fn conflicts(&self, other: &ShadowRecord) -> bool {
        self.mask & other.mask != 0
            && self.stamp() != other.stamp()
            && self.kind.conflicts(other.kind)
    }

    /// Returns true if the earlier access `old` need not be kept beside this one.
    pub fn replaces(&self, old: &ShadowRecord) -> bool {
        old.mask & !self.mask == 0 && self.kind.replaces(old.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::AtomicityDomain::{Language, Shared, Signal, World};
    use super::*;

    /// Returns an atomic addition to an integer of four bytes.
    fn add(domain: AtomicityDomain) -> ShadowKind {
        ShadowKind::atomic(domain, 4, false, true)
    }

    /// Returns an atomic read of an integer of four bytes.
    fn fetch(domain: AtomicityDomain) -> ShadowKind {
        ShadowKind::atomic(domain, 4, false, false)
    }

    fn race(a: ShadowKind, b: ShadowKind) -> bool {
        assert_eq!(a.conflicts(b), b.conflicts(a), "{a:?} {b:?}");
        a.conflicts(b)
    }

    #[test]
    fn accesses_conflict_if_one_writes() {
        assert!(!race(ShadowKind::READ, ShadowKind::LOAD));
        assert!(race(ShadowKind::WRITE, ShadowKind::LOAD));
        assert!(race(ShadowKind::READ, ShadowKind::STORE));
        assert!(race(ShadowKind::WRITE, ShadowKind::WRITE));

        assert!(!race(fetch(World), ShadowKind::READ));
        assert!(!race(fetch(World), ShadowKind::LOAD));
        assert!(race(fetch(World), ShadowKind::STORE));
        assert!(race(add(World), ShadowKind::READ));
        assert!(race(add(World), ShadowKind::LOAD));
    }

    /// Loads and stores of one PE are those of its own threads, which the detector does not check.
    #[test]
    fn loads_and_stores_conflict_with_those_of_a_peer() {
        assert!(!race(ShadowKind::LOAD, ShadowKind::STORE));
        assert!(!race(ShadowKind::LOAD, ShadowKind::LOAD.to_peer()));
        assert!(race(ShadowKind::STORE.to_peer(), ShadowKind::LOAD));
        assert!(race(ShadowKind::LOAD.to_peer(), ShadowKind::STORE));
        assert!(race(
            ShadowKind::STORE.to_peer(),
            ShadowKind::STORE.to_peer()
        ));
        assert!(race(ShadowKind::STORE.to_peer(), ShadowKind::READ));
    }

    #[test]
    fn atomic_operations_conflict_unless_they_have_one_domain_width_and_type() {
        assert!(!race(add(World), add(World)));
        assert!(!race(add(World), fetch(World)));

        assert!(!race(fetch(World), fetch(Shared)), "neither writes");

        let add_of_8_bytes = ShadowKind::atomic(World, 8, false, true);
        let fetch_of_float = ShadowKind::atomic(World, 4, true, false);
        assert!(race(add(World), add(Shared)));
        assert!(race(add(World), add(Signal)));
        assert!(race(add(World), add_of_8_bytes));
        assert!(race(add(World), fetch_of_float));
    }

    #[test]
    fn atomics_of_the_language_exclude_only_each_other() {
        assert!(!race(add(Language), add(Language).to_peer()));
        assert!(!race(add(Language), ShadowKind::STORE));
        assert!(race(add(Language), ShadowKind::STORE.to_peer()));
        assert!(race(add(World), add(Language)));
        assert!(race(add(World), add(Language).to_peer()));
    }

    #[test]
    fn updates_of_signals_exclude_each_other() {
        let [set, count] = [false, true].map(ShadowKind::signal);
        assert!(!race(set, count) && !race(count, count));
        assert!(race(count, ShadowKind::LOAD) && race(count, add(World)));
        assert!(count.counts() && !set.counts() && !add(World).counts());
        let of_float = ShadowKind::atomic(World, 8, true, true);
        assert!(!of_float.counts() && !of_float.is_of_signal());
    }

    #[test]
    fn a_record_fits_into_two_words() {
        let record = ShadowRecord {
            actor: 0xfffe,
            epoch: 0x8000_0001,
            mask: 0x81,
            kind: ShadowKind::atomic(Signal, 8, true, true),
            site: u32::MAX - 1,
            nbytes: 12345,
        };
        assert_eq!(ShadowRecord::of(record.words()), Some(record));
        assert_eq!(ShadowRecord::of([0, 1]), None);
    }
}
