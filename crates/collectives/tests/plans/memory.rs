//! The memory of a member, and the rules of access that a plan must keep.

use crate::call::Call;
use crate::clock::{Clock, Event};
use crate::value::Value;
use rushmem_collectives::{Buffer, Span};
use std::collections::HashMap;

/// A run of parts in the memory of a member, which the caller names.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub call: usize,
    /// The copy of the receive buffers, if it is in those.
    pub copy: ReceiveCopy,
    pub span: Span,
    pub count: u32,
}

/// One of the copies of the receive buffers that calls use in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReceiveCopy {
    /// True if no other team uses it.
    pub is_own: bool,
    pub number: usize,
}

/// A part of a receive buffer.
#[derive(PartialEq, Eq, Hash)]
struct ReceivePart {
    copy: ReceiveCopy,
    /// The number of the receive buffer.
    buffer: u8,
    part: usize,
}

/// An access to memory, and the clock of the member that makes it.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub event: Event,
    pub clock: &'a Clock,
}

/// The memory of a member that peers may write: destinations and receive buffers. If a call is in
/// place, `Source` is the destination.
pub struct Memory {
    n: u32,
    program: Vec<Call>,
    /// The destination of each call, until the member has left the call.
    dest: Vec<Vec<Cell>>,
    receive_buffers: HashMap<ReceivePart, Cell>,
}

/// One part.
#[derive(Clone, Default)]
struct Cell {
    content: Content,
    /// The reads of the content, or if the cell is empty, of its last content.
    reads: Vec<Event>,
}

#[derive(Clone, Copy, Default)]
enum Content {
    #[default]
    Empty,
    /// A put was issued, and may become visible at any time.
    UnderWay,
    Holds {
        value: Value,
        written: Event,
    },
}

impl Memory {
    pub fn new(n: u32, program: &[Call]) -> Self {
        let mut dest = Vec::new();
        for call in program {
            dest.push(vec![Cell::default(); call.dest_parts(n) as usize]);
        }
        Self {
            n,
            program: program.to_vec(),
            dest,
            receive_buffers: HashMap::new(),
        }
    }

    /// Fills the destination with the contribution of the owner, who enters a call in place.
    pub fn fill(&mut self, call: usize, owner: u32, written: Event) {
        for (part, cell) in (0..).zip(&mut self.dest[call]) {
            cell.content = Content::Holds {
                value: Value::source(call, owner, part),
                written,
            };
        }
    }

    /// Issues a write. The writer must know that the area is empty, or that its content is complete
    /// and was read.
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

    /// Makes the values of an announced write visible.
    pub fn place(&mut self, area: Area, values: &[Value], written: Event) -> Result<(), String> {
        for (part, &value) in (0..area.count).zip(values) {
            self.cell(area, part)?.content = Content::Holds { value, written };
        }
        Ok(())
    }

    /// Reads an area. The reader must know that it was written. This empties a receive buffer.
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

    /// Returns true if a part was never written.
    pub fn is_untouched(&mut self, area: Area) -> Result<bool, String> {
        Ok(matches!(self.cell(area, 0)?.content, Content::Empty))
    }

    /// Ends a call of the owner, after which no access to its destination is allowed. The owner
    /// must know that all reads of it are complete.
    pub fn close(&mut self, call: usize, owner: &Clock) -> Result<(), String> {
        for cell in std::mem::take(&mut self.dest[call]) {
            for read in cell.reads {
                if !owner.knows(read) {
                    return Err("left while a peer reads its destination, or may".into());
                }
            }
        }
        Ok(())
    }

    /// Returns the number of a receive buffer that was written and that the owner did not read.
    pub fn unread(&self) -> Option<u8> {
        self.receive_buffers
            .iter()
            .find(|(_, cell)| !matches!(cell.content, Content::Empty))
            .map(|(part, _)| part.buffer)
    }

    fn cell(&mut self, area: Area, part: u32) -> Result<&mut Cell, String> {
        let part = (area.span.first + part) as usize;
        let cell = match area.span.buffer {
            Buffer::Dest => self.dest[area.call].get_mut(part),
            Buffer::Receive(buffer) => {
                let n_parts = self.program[area.call].receive_buffer_parts(self.n, buffer);
                if part < n_parts as usize {
                    let key = ReceivePart {
                        copy: area.copy,
                        buffer,
                        part,
                    };
                    Some(self.receive_buffers.entry(key).or_default())
                } else {
                    None
                }
            }
            Buffer::Source | Buffer::Accumulator => None,
        };
        cell.ok_or_else(|| format!("{area:?} is not there to be accessed"))
    }
}
