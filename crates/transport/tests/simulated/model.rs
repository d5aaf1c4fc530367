//! What one actor has issued to one PE, and what the memory of that PE may show of it.
//!
//! The actor changes *cells*, which nobody else does. Each change makes the next version of a cell.
//! All bytes of a version depend on its number, so that memory shows which version each word has.
//! Two changes of a cell are always ordered, by a fence or by the end of the first one.

use crate::memory::{Memory, mix};
use rushmem_transport::{AmoWidth, Pe, RemoteAddr};

/// The value of a word of version 1; those of later versions are multiples.
const STEP: u64 = 0x0123_4567_89AB_CDEF;
/// Maximum number of changes of a cell: a byte shows its version modulo 256.
const MAX_CHANGES: u32 = 250;

/// The contents of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Blocks of bytes, of the same length.
    Bytes { nbytes: usize },
    /// A word that operations set from one version to the next.
    Word(AmoWidth),
    /// A word to which operations add 1, in any order.
    Counter(AmoWidth),
}

/// Memory of a PE that one actor changes.
#[derive(Debug)]
pub struct Cell {
    pub content: Content,
    /// The starts of its blocks.
    pub blocks: Vec<RemoteAddr>,
    salt: u64,
    /// The number of changes that were issued, which is also the number of the last version.
    pub issued: u32,
    /// The epoch of the last change.
    pub epoch: u32,
    /// The number of changes that were issued before that epoch.
    before: u32,
    /// The oldest version that memory shows.
    pub oldest: u32,
    /// The newest version that memory shows.
    pub newest: u32,
}

impl Cell {
    /// Returns a cell, and stores its first version.
    pub fn new(content: Content, blocks: Vec<RemoteAddr>, salt: u64, memory: &Memory) -> Cell {
        let cell = Cell {
            content,
            blocks,
            salt,
            issued: 0,
            epoch: 0,
            before: 0,
            oldest: 0,
            newest: 0,
        };

        let bytes = cell.bytes(0);
        for (block, bytes) in cell.blocks.iter().zip(bytes.chunks(cell.nbytes())) {
            memory.set(*block, bytes);
        }

        cell
    }

    /// Returns the number of bytes of a block.
    pub fn nbytes(&self) -> usize {
        match self.content {
            Content::Bytes { nbytes } => nbytes,
            Content::Word(width) | Content::Counter(width) => width.nbytes(),
        }
    }

    /// Returns true if this is a cell of bytes.
    pub fn is_bytes(&self) -> bool {
        matches!(self.content, Content::Bytes { .. })
    }

    /// Returns true if this is a word of this width.
    pub fn is_word(&self, width: AmoWidth) -> bool {
        self.content == Content::Word(width)
    }

    /// Returns true if this is a counter.
    pub fn is_counter(&self) -> bool {
        matches!(self.content, Content::Counter(_))
    }

    /// Returns the value of a word of a version, zero-extended.
    pub fn word(&self, version: u32) -> u64 {
        let (step, width) = match self.content {
            Content::Word(width) => (STEP, width),
            Content::Counter(width) => (1, width),
            Content::Bytes { .. } => unreachable!("a cell of bytes"),
        };

        let word = u64::from(version).wrapping_mul(step);
        match width {
            AmoWidth::Four => word & 0xFFFF_FFFF,
            AmoWidth::Eight => word,
        }
    }

    /// Returns the bytes of a version, block after block.
    pub fn bytes(&self, version: u32) -> Vec<u8> {
        match self.content {
            Content::Bytes { nbytes } => (0..(nbytes * self.blocks.len()) as u64)
                .map(|i| mix(self.salt, i).wrapping_add(version as u8))
                .collect(),
            _ => self.word(version).to_le_bytes()[..self.nbytes()].to_vec(),
        }
    }

    /// Returns the versions of the words in bytes of the first block.
    ///
    /// # Panics
    /// If a word has bytes of two versions, or of none.
    pub fn versions_of(&self, bytes: &[u8]) -> Versions {
        self.versions_in(0, bytes)
    }

    fn versions_in(&self, block: usize, bytes: &[u8]) -> Versions {
        if !self.is_bytes() {
            let version = (0..=self.issued).find(|version| self.bytes(*version) == bytes);
            let Some(version) = version else {
                panic!("no version has the bytes {bytes:x?}: {self:?}")
            };
            return Versions {
                oldest: version,
                newest: version,
            };
        }

        let start = self.blocks[block].offset as usize;
        let n_before = block * bytes.len();
        let version_of =
            |i: usize| u32::from(bytes[i].wrapping_sub(mix(self.salt, (n_before + i) as u64)));

        let mut found = Versions::NONE;
        let mut i = 0;
        while i < bytes.len() {
            let word = word_at(start + i, bytes.len() - i);
            let versions: Vec<u32> = (i..i + word).map(version_of).collect();
            let version = versions[0];
            assert!(
                versions.iter().all(|other| *other == version),
                "the word of {word} bytes at byte {i} of block {block} is torn: {versions:?} of {self:?}"
            );
            assert!(
                version <= self.issued,
                "nobody issued version {version}: {self:?}"
            );

            found.add(version);
            i += word;
        }
        found
    }

    /// Updates the versions that memory shows.
    fn observe(&mut self, memory: &Memory) {
        let mut found = Versions::NONE;
        for block in 0..self.blocks.len() {
            let bytes = memory.bytes(self.blocks[block], self.nbytes());
            let Versions { oldest, newest } = self.versions_in(block, bytes);
            found.add(oldest);
            found.add(newest);
        }

        let Versions { oldest, newest } = found;
        assert!(
            oldest >= self.oldest && newest >= self.newest,
            "version {oldest} to {newest} is older than what was there: {self:?}"
        );
        self.oldest = oldest;
        self.newest = newest;
    }
}

/// The versions of some words of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub oldest: u32,
    pub newest: u32,
}

impl Versions {
    /// The versions of no words.
    const NONE: Versions = Versions {
        oldest: u32::MAX,
        newest: 0,
    };

    fn add(&mut self, version: u32) {
        self.oldest = self.oldest.min(version);
        self.newest = self.newest.max(version);
    }
}

/// Returns the length of the longest aligned word at an offset, of at most `nbytes` bytes.
fn word_at(offset: usize, nbytes: usize) -> usize {
    [8, 4, 2]
        .into_iter()
        .find(|word| offset.is_multiple_of(*word) && *word <= nbytes)
        .unwrap_or(1)
}

/// The operations that a signal follows.
#[derive(Clone, Copy, Debug)]
pub struct Predecessors {
    /// The cell and the version of its data.
    pub data: Option<(usize, u32)>,
    /// Also all earlier puts and signals.
    pub all: bool,
}

/// A change that memory may not show yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    cell: usize,
    /// Memory shows at least a part of the change from this version of the cell on, and all of it
    /// with that one.
    seen_from: u32,
    version: u32,
    epoch: u32,
    is_amo: bool,
    follows: Option<Predecessors>,
}

/// The operations of one actor on one PE.
#[derive(Debug)]
pub struct Model {
    pub actor: usize,
    pub pe: Pe,
    pub cells: Vec<Cell>,
    pending: Vec<Pending>,
}

impl Model {
    /// Returns a model without operations.
    pub fn new(actor: usize, pe: Pe, cells: Vec<Cell>) -> Model {
        Model {
            actor,
            pe,
            cells,
            pending: Vec::new(),
        }
    }

    /// Returns true if a cell may be changed: its last change is ordered before this epoch.
    pub fn is_free(&mut self, cell: usize, epoch: u32, memory: &Memory) -> bool {
        self.check(memory);

        let of = &self.cells[cell];
        let is_ordered = of.is_counter() || of.epoch < epoch || of.oldest == of.issued;
        of.issued < MAX_CHANGES && is_ordered
    }

    /// Records the next change of a cell. Returns the version.
    pub fn issue(
        &mut self,
        cell: usize,
        epoch: u32,
        is_amo: bool,
        follows: Option<Predecessors>,
    ) -> u32 {
        let of = &mut self.cells[cell];
        if of.epoch != epoch {
            of.epoch = epoch;
            of.before = of.issued;
        }

        of.issued += 1;
        let version = of.issued;

        // Additions of one epoch have no order, so a counter may show any of them first.
        let seen_from = if of.is_counter() {
            of.before + 1
        } else {
            version
        };

        self.pending.push(Pending {
            cell,
            seen_from,
            version,
            epoch,
            is_amo,
            follows,
        });

        version
    }

    /// Checks that memory shows nothing that should follow what it does not show.
    pub fn check(&mut self, memory: &Memory) {
        if self.pending.is_empty() {
            return;
        }

        // Each cell with a pending change is observed once.
        for i in 0..self.pending.len() {
            let cell = self.pending[i].cell;
            let is_first = self.pending[..i].iter().all(|other| other.cell != cell);
            if is_first {
                self.cells[cell].observe(memory);
            }
        }

        let is_seen = |of: &Pending| self.cells[of.cell].newest >= of.seen_from;
        let is_complete = |of: &Pending| self.cells[of.cell].oldest >= of.version;

        // What follows a fence must not be seen before all that precedes the fence.
        let seen = self.pending.iter().filter(|of| is_seen(of));
        let newest = seen.max_by_key(|of| of.epoch);
        if let Some(newest) = newest {
            let mut before = self.pending.iter().filter(|of| of.epoch < newest.epoch);
            let missing = before.find(|of| !is_complete(of));
            assert!(
                missing.is_none(),
                "PE {} shows {newest:?} but not yet {missing:?}, before a fence of actor {}: {:?}",
                self.pe,
                self.actor,
                self.cells
            );
        }

        for (i, signal) in self.pending.iter().enumerate() {
            let Some(follows) = signal.follows.filter(|_| is_seen(signal)) else {
                continue;
            };

            if let Some((cell, version)) = follows.data {
                let data = &self.cells[cell];
                assert!(
                    data.oldest >= version,
                    "PE {} shows a signal of actor {} before its data: {signal:?}, {data:?}",
                    self.pe,
                    self.actor
                );
            }

            let mut earlier = self.pending[..i]
                .iter()
                .filter(|of| follows.all && !of.is_amo);
            let missing = earlier.find(|of| !is_complete(of));
            assert!(
                missing.is_none(),
                "PE {} shows a signal of actor {} before what precedes it: {signal:?}, {missing:?}",
                self.pe,
                self.actor
            );
        }

        let cells = &self.cells;
        self.pending.retain(|of| cells[of.cell].oldest < of.version);
    }

    /// Returns true if memory may not show everything that was issued.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Checks that memory shows everything that was issued.
    pub fn check_complete(&mut self, memory: &Memory, after: &str) {
        self.check(memory);
        assert!(
            self.pending.is_empty(),
            "after {after} of actor {}, PE {} does not show {:?} of {:?}",
            self.actor,
            self.pe,
            self.pending,
            self.cells
        );
    }
}
