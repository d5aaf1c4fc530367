//! The memory of a member, and the rules of access that a plan must keep.

use crate::call::Call;
use crate::clock::{Clock, Event};
use crate::value::Value;
use rushmem_collectives::{Place, Span};
use std::collections::HashMap;

/// A run of parts, in the memory of whoever is meant.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub call: usize,
    /// Whether landings of short all-reduces are meant, and which copy.
    pub copy: (bool, usize),
    pub span: Span,
    pub count: u32,
}

/// Who accesses memory, and what is known to have happened before.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub event: Event,
    pub clock: &'a Clock,
}

/// What peers may write of a member's memory. `Source` and the accumulator are the member's own.
pub struct Memory {
    n: u32,
    program: Vec<Call>,
    /// Destination of each call, until the member has left it.
    dest: Vec<Vec<Cell>>,
    landings: HashMap<((bool, usize), u8), Cell>,
}

/// One part.
#[derive(Clone, Copy, Default)]
struct Cell {
    content: Content,
    /// The owner's last access.
    read: Event,
}

#[derive(Clone, Copy, Default)]
enum Content {
    #[default]
    Empty,
    /// A put was issued, and may be seen from now on.
    UnderWay,
    Holds {
        value: Value,
        written: Event,
    },
}

impl Memory {
    pub fn new(n: u32, program: &[Call]) -> Self {
        let dest = |call: &Call| vec![Cell::default(); call.dest_parts(n) as usize];
        Self {
            n,
            program: program.to_vec(),
            dest: program.iter().map(dest).collect(),
            landings: HashMap::new(),
        }
    }

    /// A write is issued: the area must be empty, and known to be so.
    pub fn announce(&mut self, area: Area, writer: Access) -> Result<(), String> {
        for part in 0..area.count {
            let cell = self.cell(area, part)?;
            if !matches!(cell.content, Content::Empty) || !writer.clock.knows(cell.read) {
                return Err(format!("{area:?} is overwritten, or may be"));
            }
            cell.content = Content::UnderWay;
        }
        Ok(())
    }

    /// An announced write is seen.
    pub fn place(&mut self, area: Area, values: &[Value], written: Event) -> Result<(), String> {
        for (part, &value) in (0..area.count).zip(values) {
            self.cell(area, part)?.content = Content::Holds { value, written };
        }
        Ok(())
    }

    /// The owner reads: the area must be written, and known to be so. That empties a landing.
    pub fn read(&mut self, area: Area, reader: Access) -> Result<Vec<Value>, String> {
        let mut values = Vec::with_capacity(area.count as usize);
        for part in 0..area.count {
            let cell = self.cell(area, part)?;
            match cell.content {
                Content::Holds { value, written } if reader.clock.knows(written) => {
                    values.push(value);
                }
                _ => return Err(format!("{area:?} is read before it is there, or may be")),
            }
            cell.read = reader.event;
            if matches!(area.span.place, Place::Landing(_)) {
                cell.content = Content::Empty;
            }
        }
        Ok(values)
    }

    /// Whether a part was never written.
    pub fn is_untouched(&mut self, area: Area) -> Result<bool, String> {
        Ok(matches!(self.cell(area, 0)?.content, Content::Empty))
    }

    /// The owner ends a call: nobody may write its destination from now on.
    pub fn close(&mut self, call: usize) {
        self.dest[call] = Vec::new();
    }

    /// A landing that somebody wrote and the owner did not read.
    pub fn unread(&self) -> Option<u8> {
        (self.landings.iter())
            .find(|(_, cell)| !matches!(cell.content, Content::Empty))
            .map(|(&(_, landing), _)| landing)
    }

    fn cell(&mut self, area: Area, part: u32) -> Result<&mut Cell, String> {
        let part = (area.span.first + part) as usize;
        let cell = match area.span.place {
            Place::Dest => self.dest[area.call].get_mut(part),
            Place::Landing(k) => {
                let exists = part == 0 && self.program[area.call].landings(self.n).contains(&k);
                exists.then(|| self.landings.entry((area.copy, k)).or_default())
            }
            Place::Source | Place::Accumulator => None,
        };
        cell.ok_or_else(|| format!("{area:?} is not there to be accessed"))
    }
}
