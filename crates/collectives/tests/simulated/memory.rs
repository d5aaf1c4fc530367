//! The memory of a member, and the rules of access that a plan must keep.

use crate::call::Call;
use crate::clock::{Clock, Event};
use crate::value::Value;
use rushmem_collectives::{Buffer, Span};
use std::collections::HashMap;

/// A run of parts, in the memory of the member that is meant.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub call: usize,
    /// True if the receive buffers are ones that no other team uses, and the number of the copy.
    pub copy: (bool, usize),
    pub span: Span,
    pub count: u32,
}

/// An access to memory, and what is known to have happened before.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub event: Event,
    pub clock: &'a Clock,
}

/// The memory of a member that peers may write. `Source` and the accumulator are not; but where a
/// call is in place, `Source` is the destination.
pub struct Memory {
    n: u32,
    program: Vec<Call>,
    /// Destination of each call, until the member has left it.
    dest: Vec<Vec<Cell>>,
    /// By copy, number and part.
    receive_buffers: HashMap<((bool, usize), u8, usize), Cell>,
}

/// One part.
#[derive(Clone, Default)]
struct Cell {
    content: Content,
    /// The reads of what it holds; and of what it held, if it is empty.
    reads: Vec<Event>,
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
            receive_buffers: HashMap::new(),
        }
    }

    /// The owner enters a call whose source is its destination.
    pub fn fill(&mut self, call: usize, owner: u32, written: Event) {
        for (part, cell) in (0..).zip(&mut self.dest[call]) {
            cell.content = Content::Holds { value: Value::source(call, owner, part), written };
        }
    }

    /// A write is issued: the area must be empty, or what it holds no longer needed; and that must
    /// be known.
    pub fn announce(&mut self, area: Area, writer: Access) -> Result<(), String> {
        for part in 0..area.count {
            let cell = self.cell(area, part)?;
            let is_free = match cell.content {
                Content::Empty => true,
                Content::UnderWay => false,
                Content::Holds { written, .. } => {
                    area.span.buffer == Buffer::Dest && writer.clock.knows(written)
                }
            };
            if !is_free || !cell.reads.drain(..).all(|read| writer.clock.knows(read)) {
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

    /// Somebody reads: the area must be written, and known to be so. That empties a receive buffer.
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
            cell.reads.push(reader.event);
            if matches!(area.span.buffer, Buffer::Receive(_)) {
                cell.content = Content::Empty;
            }
        }
        Ok(values)
    }

    /// Returns whether a part was never written.
    pub fn is_untouched(&mut self, area: Area) -> Result<bool, String> {
        Ok(matches!(self.cell(area, 0)?.content, Content::Empty))
    }

    /// The owner ends a call: nobody may access its destination from now on.
    pub fn close(&mut self, call: usize, owner: &Clock) -> Result<(), String> {
        let cells = std::mem::take(&mut self.dest[call]);
        let mut reads = cells.iter().flat_map(|cell| &cell.reads);
        match reads.all(|&read| owner.knows(read)) {
            true => Ok(()),
            false => Err("left while a peer reads its destination, or may".into()),
        }
    }

    /// Returns a receive buffer that somebody wrote and the owner did not read.
    pub fn unread(&self) -> Option<u8> {
        (self.receive_buffers.iter())
            .find(|(_, cell)| !matches!(cell.content, Content::Empty))
            .map(|(&(_, receive_buffer, _), _)| receive_buffer)
    }

    fn cell(&mut self, area: Area, part: u32) -> Result<&mut Cell, String> {
        let part = (area.span.first + part) as usize;
        let cell = match area.span.buffer {
            Buffer::Dest => self.dest[area.call].get_mut(part),
            Buffer::Receive(k) => {
                let parts = self.program[area.call].receive_buffer_parts(self.n, k);
                let exists = part < parts as usize;
                exists.then(|| self.receive_buffers.entry((area.copy, k, part)).or_default())
            }
            Buffer::Source | Buffer::Accumulator => None,
        };
        cell.ok_or_else(|| format!("{area:?} is not there to be accessed"))
    }
}
