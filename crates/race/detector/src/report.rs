//! Prints the report of a race: the memory, the two accesses with their places in the source, and
//! advice on how to order them.

mod advice;

use crate::access::{ShadowKind, ShadowRecord};
use crate::actors::{ActorInfo, ActorRole};
use crate::areas::{Counter, MAX_PAIRS, Memory, ShadowPlace, ShadowSegment, SharedAreas};
use crate::shared::lock;
use crate::sites::{self, Site};
use crate::symbols::{self, SourceLine};
use crate::variables::{self, StaticVariable};
use rushmem_race_interface::DetectorOpening;
use rushmem_system::stderr::print_line;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Maximum number of reports that a job writes. Further ones are only counted: a program with so
/// many races has a few causes, and each report reads debug information.
const LIMIT: u64 = 100;

/// Writes the reports of this process.
pub struct Reporter {
    areas: SharedAreas,
    me: u32,
    /// The file for reports in JSON, or an empty name.
    json: &'static str,
    /// The lines of the file of SHMEM_RACES_SUPPRESSIONS.
    suppressions: &'static str,
    /// The address of this process at which its static data begin.
    statics: usize,
    /// Blocks of the heap by their offsets.
    blocks: Mutex<BTreeMap<usize, HeapBlock>>,
    /// Races that a suppression has matched.
    suppressed: Mutex<HashSet<SuppressedRace>>,
}

/// A block of the symmetric heap.
#[derive(Clone, Copy)]
struct HeapBlock {
    /// The offset in the heap.
    start: usize,
    nbytes: usize,
    /// The site that has allocated it.
    site: u32,
}

/// The memory that a race is on, as a suppression sees it: the variable or block, or one byte if
/// neither is known.
#[derive(PartialEq, Eq, Hash)]
struct SymmetricObject {
    pe: u32,
    segment: ShadowSegment,
    bytes: Range<usize>,
}

/// A race that a suppression has matched.
#[derive(PartialEq, Eq, Hash)]
struct SuppressedRace {
    /// The key of the two sites.
    pair: u64,
    /// `None` for private memory.
    object: Option<SymmetricObject>,
}

/// A static variable, and the offset in it of an address.
struct FoundVariable {
    variable: StaticVariable,
    offset: u64,
}

impl Reporter {
    /// Returns the reporter of a process whose static data begin at address `statics`.
    pub fn new(areas: SharedAreas, opening: &DetectorOpening, statics: usize) -> Reporter {
        Reporter {
            areas,
            me: opening.pe,
            json: opening.json.get(),
            suppressions: opening.suppressions.get(),
            statics,
            blocks: Mutex::default(),
            suppressed: Mutex::default(),
        }
    }

    /// Returns true once a table has been full. The clocks may lack entries then, so no more races
    /// are reported.
    #[inline]
    pub fn has_full_table(&self) -> bool {
        self.areas.counter(Counter::Full).load(Relaxed) != 0
    }

    /// Records the site that has allocated a block of the heap.
    pub fn allocated(&self, offset: usize, nbytes: usize, site: u32) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let block = HeapBlock {
            start: offset,
            nbytes,
            site,
        };
        blocks.insert(offset, block);
    }

    /// Returns the block that contains an offset.
    fn block_of(&self, offset: usize) -> Option<HeapBlock> {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, block) = blocks.range(..=offset).next_back()?;
        if offset - block.start >= block.nbytes {
            return None;
        }
        Some(*block)
    }

    /// Returns the variable or block that contains a byte of symmetric memory.
    fn object(&self, memory: Memory) -> Option<SymmetricObject> {
        let Memory::Symmetric(place) = memory else {
            return None;
        };

        let bytes = match place.segment {
            ShadowSegment::Heap => self
                .block_of(place.offset)
                .map(|block| block.start..block.start + block.nbytes),
            ShadowSegment::Static => self.variable_of(place.offset).map(|found| {
                let start = place.offset - found.offset as usize;
                start..start + found.variable.nbytes as usize
            }),
        };
        Some(SymmetricObject {
            pe: place.pe,
            segment: place.segment,
            bytes: bytes.unwrap_or(place.offset..place.offset + 1),
        })
    }

    /// Returns the static variable that contains an offset of the static data.
    fn variable_of(&self, offset: usize) -> Option<FoundVariable> {
        let program = sites::executable()?;
        let address = (self.statics + offset - program.base) as u64;
        let variable = variables::find(&program.path, address)?;
        let offset = address - variable.address;
        Some(FoundVariable { variable, offset })
    }

    /// Reports a race between `new`, an access to `memory`, and `old`, unless one between their two
    /// sites was reported before, or a suppression matches it. After `LIMIT` reports of the job,
    /// races are only counted.
    pub fn race(&self, memory: Memory, new: &ShadowRecord, old: &ShadowRecord) {
        if self.has_full_table() {
            return;
        }

        // A race on many bytes is found once for each eight of them.
        let pair = pair(new.site, old.site);
        if is_reported(&self.areas, pair) {
            return;
        }

        let Some(race) = self.describe(memory, pair, new, old) else {
            return;
        };

        // Another PE may have reported it meanwhile.
        if !mark_reported(&self.areas, pair) {
            return;
        }
        let n_before = self.areas.counter(Counter::Reported).fetch_add(1, Relaxed);
        if n_before >= LIMIT {
            return;
        }

        let object = &race.object;
        let [first, second] = &race.sides;
        let advice = advice::of(&race.sides, memory);
        print_line(format_args!(
            "race on {object}:\n{first}\n{second}\n  {advice}"
        ));
        if !self.json.is_empty() {
            self.append_json(&race);
        }
    }

    /// Looks up the names and lines of a race. Returns `None` if a suppression matches it.
    fn describe(
        &self,
        memory: Memory,
        pair: u64,
        new: &ShadowRecord,
        old: &ShadowRecord,
    ) -> Option<Race> {
        // To look up names and lines takes milliseconds, so what is suppressed is remembered. The
        // lock is held until the end: another thread may have found the same race.
        let has_suppressions = !self.suppressions.is_empty();
        let key = has_suppressions.then(|| SuppressedRace {
            pair,
            object: self.object(memory),
        });
        let mut suppressed = self
            .suppressed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if key.as_ref().is_some_and(|key| suppressed.contains(key)) {
            return None;
        }

        let race = Race {
            object: self.memory_name(memory, new.nbytes.min(old.nbytes)),
            sides: [Side::new(&self.areas, old), Side::new(&self.areas, new)],
        };
        if let Some(key) = key
            && is_suppressed(self.suppressions, &race)
        {
            suppressed.insert(key);
            return None;
        }
        Some(race)
    }

    /// Returns the name that a report has for the first byte of an access of `nbytes` bytes.
    fn memory_name(&self, memory: Memory, nbytes: u32) -> String {
        let place = match memory {
            Memory::Symmetric(place) => place,
            Memory::Private(addr) => {
                return format!("private memory of PE {} at {addr:#x}", self.me);
            }
        };
        match place.segment {
            ShadowSegment::Heap => self.heap_name(place, nbytes),
            ShadowSegment::Static => self.static_name(place, nbytes),
        }
    }

    /// Returns the name of a place in a heap: the element of a block, the PE, and where the block
    /// was allocated.
    fn heap_name(&self, place: ShadowPlace, nbytes: u32) -> String {
        let pe = place.pe;
        let Some(block) = self.block_of(place.offset) else {
            return format!("byte {} of the heap of PE {pe}", place.offset);
        };

        let sources = match sites::get(&self.areas, block.site) {
            Some(site) => symbols::of_program(&site.frames),
            None => Vec::new(),
        };
        let allocated = match sources.first() {
            Some(source) => format!(", allocated at {source}"),
            None => String::new(),
        };
        let offset = (place.offset - block.start) as u64;
        let name = variables::element("the block", offset, nbytes);
        format!("{name} of PE {pe} ({} bytes{allocated})", block.nbytes)
    }

    /// Returns the name of a place in static data: the element of a variable, the PE, and where the
    /// variable is declared.
    fn static_name(&self, place: ShadowPlace, nbytes: u32) -> String {
        let pe = place.pe;
        let Some(found) = self.variable_of(place.offset) else {
            return format!(
                "byte {} of the static data of PE {pe} (static)",
                place.offset
            );
        };

        let name = found.variable.element(found.offset, nbytes);
        let declared = match found.variable.declared {
            Some(declaration) => format!(", {}", declaration.line),
            None => String::new(),
        };
        format!("{name} of PE {pe} (static{declared})")
    }

    /// Appends a report to the file of SHMEM_RACES_JSON, as a line of its own.
    fn append_json(&self, race: &Race) {
        let path = self.json;
        let accesses = [race.sides[0].json(), race.sides[1].json()];
        let line = json!({"object": race.object, "accesses": accesses});
        let written = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        if let Err(error) = written {
            print_line(format_args!(
                "SHMEM_RACES_JSON: {path} cannot be written: {error}"
            ));
        }
    }
}

/// Returns the key of a pair of sites, the same for either order. It is not 0.
fn pair(a: u32, b: u32) -> u64 {
    u64::from(a.min(b)) << 32 | u64::from(a.max(b)) | 1 << 63
}

/// Returns the word of a pair of sites, or a free one if the pair has none; `None` if there is no
/// room.
fn word_of(areas: &SharedAreas, pair: u64) -> Option<&'static AtomicU64> {
    let first = (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize;
    (0..MAX_PAIRS)
        .map(|i| &areas.pairs[(first + i) % MAX_PAIRS])
        .find(|word| [0, pair].contains(&word.load(Relaxed)))
}

/// Returns true if a race between the two sites was reported, or if the table of pairs is full.
fn is_reported(areas: &SharedAreas, pair: u64) -> bool {
    // Relaxed, and without the lock: `mark_reported` decides.
    word_of(areas, pair).is_none_or(|word| word.load(Relaxed) == pair)
}

/// Records that a race between the two sites is reported. Returns false if one was reported before,
/// or if the table of pairs is full.
fn mark_reported(areas: &SharedAreas, pair: u64) -> bool {
    let _held = lock(areas.counter(Counter::Reports));
    word_of(areas, pair).is_some_and(|word| word.swap(pair, Relaxed) == 0)
}

/// Returns true if a line of `lines` names a function of one of the accesses, or the object:
/// `function:NAME` or `object:NAME`.
fn is_suppressed(lines: &str, race: &Race) -> bool {
    let sources = race.sides.iter().flat_map(|side| &side.sources);
    lines.lines().any(|line| match line.trim().split_once(':') {
        Some(("function", name)) => sources
            .clone()
            .any(|source| source.function.as_deref() == Some(name)),
        // The name of the object, without an index.
        Some(("object", name)) => race.object.split(['[', ' ']).next() == Some(name),
        _ => false,
    })
}

/// A race, with the names and lines of its report.
struct Race {
    /// The memory.
    object: String,
    /// The earlier access, and the later one, at which the race was found.
    sides: [Side; 2],
}

/// One of the two accesses, with its place in the source.
struct Side {
    /// The actor that makes it.
    actor: ActorInfo,
    kind: ShadowKind,
    /// The name of the routine, or a load, a store or an atomic operation of the program.
    what: String,
    /// The number of bytes of the whole access; 0 for a call that frees memory.
    nbytes: u32,
    /// The source lines of its stack, from the innermost function.
    sources: Vec<SourceLine>,
    /// True if the operation may be carried out after its call has returned.
    in_flight: bool,
}

impl Side {
    /// Looks up the actor, the routine and the source lines of a recorded access.
    fn new(areas: &SharedAreas, record: &ShadowRecord) -> Side {
        let site = sites::get(areas, record.site).unwrap_or_else(|| Site {
            call: String::new(),
            frames: Vec::new(),
        });
        let what = if site.call.is_empty() {
            access_of_program(record.kind)
        } else {
            site.call
        };

        let actor = ActorInfo::find(areas, record.actor);
        Side {
            actor,
            kind: record.kind,
            what,
            nbytes: record.nbytes,
            sources: symbols::of_program(&site.frames),
            in_flight: !matches!(actor.role, ActorRole::Thread(_)),
        }
    }

    /// Returns the access as an object of a report in JSON.
    fn json(&self) -> serde_json::Value {
        let thread = match self.actor.role {
            ActorRole::Thread(number) => Some(number),
            _ => None,
        };

        let mut frames = Vec::new();
        for source in &self.sources {
            frames.push(json!({
                "function": source.function,
                "file": source.file,
                "line": source.line,
            }));
        }

        json!({
            "pe": self.actor.pe,
            "thread": thread,
            "access": self.what,
            "nbytes": self.nbytes,
            "in_flight": self.in_flight,
            "frames": frames,
        })
    }
}

/// Writes the lines of a report that describe the access: itself, and the calls around it.
impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  PE {}", self.actor.pe)?;
        if let ActorRole::Thread(number @ 1..) = self.actor.role {
            write!(f, ", thread {number}")?;
        }

        write!(f, ": {}", self.what)?;
        if self.nbytes > 0 {
            write!(f, " of {} bytes", self.nbytes)?;
        }
        match self.sources.first() {
            Some(source) => write!(f, " at {source}")?,
            None => f.write_str(" at an unknown place")?,
        }
        if self.in_flight {
            f.write_str(", in flight since then")?;
        }

        let callers = self.sources.iter().skip(1);
        for source in callers.filter(|source| source.file.is_some()) {
            write!(f, "\n      called at {source}")?;
        }
        Ok(())
    }
}

/// Returns the name of an access that the program makes itself.
fn access_of_program(kind: ShadowKind) -> String {
    let access = if kind.is_atomic() {
        "atomic operation of the language"
    } else if kind.writes() {
        "store"
    } else {
        "load"
    };
    let way = if kind.is_to_peer() {
        " through shmem_ptr"
    } else {
        ""
    };
    format!("{access}{way}")
}
