//! The calls of the programs: what they are, how often they are made, and their arguments, which
//! the seed draws.

use crate::actor::Expected;
use crate::memory::{CONSTANT, at};
use crate::model::{Cell, Predecessors};
use crate::world::World;
use fastrand::Rng;
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Amos, Completion, LocalBuf, Pe, RemoteAddr, Segment, SignalOrder,
};

/// The frequencies of the calls of a world, which its seed draws: some calls are never made.
#[derive(Clone, Copy, Debug)]
pub struct Habits([u32; Kind::ALL.len()]);

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    PutStrided,
    PutSignal,
    Get,
    GetConstant,
    GetStrided,
    Change,
    Count,
    ReadWord,
    AddShared,
    Fence,
    Quiet,
    QuietOfPe,
    IsQuiet,
    InFlight,
    Session,
    Invalid,
    FreeSources,
}

impl Kind {
    const ALL: [Kind; 18] = [
        Kind::Put,
        Kind::PutStrided,
        Kind::PutSignal,
        Kind::Get,
        Kind::GetConstant,
        Kind::GetStrided,
        Kind::Change,
        Kind::Count,
        Kind::ReadWord,
        Kind::AddShared,
        Kind::Fence,
        Kind::Quiet,
        Kind::QuietOfPe,
        Kind::IsQuiet,
        Kind::InFlight,
        Kind::Session,
        Kind::Invalid,
        Kind::FreeSources,
    ];
}

impl Habits {
    /// Draws frequencies.
    pub fn draw(rng: &mut Rng) -> Habits {
        let mut habits = [0; Kind::ALL.len()];
        for kind in Kind::ALL {
            let usual = match kind {
                Kind::Quiet | Kind::IsQuiet | Kind::InFlight | Kind::QuietOfPe => 3,
                Kind::Invalid | Kind::Session => 2,
                _ => 8,
            };
            if rng.bool() {
                habits[kind as usize] = rng.u32(1..=usual);
            }
        }

        habits[Kind::Put as usize] += 1;
        habits[Kind::Fence as usize] += 2;
        Habits(habits)
    }

    fn kind(&self, rng: &mut Rng) -> Kind {
        let mut left = rng.u32(..self.0.iter().sum::<u32>());

        for kind in Kind::ALL {
            match left.checked_sub(self.0[kind as usize]) {
                None => return kind,
                Some(rest) => left = rest,
            }
        }
        unreachable!("below the sum")
    }
}

/// A transfer of bytes of a PE and memory that the actor keeps.
#[derive(Clone, Copy)]
pub struct Bytes {
    pub remote: RemoteAddr,
    pub local: LocalBuf,
    pub completion: Completion,
}

/// A version of a cell of bytes that an actor puts.
struct Data {
    /// The address of the first block.
    dest: RemoteAddr,
    /// Memory that the actor keeps.
    source: LocalBuf,
    version: u32,
}

/// Blocks of a PE and of memory that the actor keeps.
#[derive(Clone, Copy)]
pub struct Blocks {
    pub remote: RemoteAddr,
    pub local: LocalBuf,
    pub nbytes: usize,
    pub remote_stride: usize,
    pub local_stride: usize,
    pub n: usize,
}

/// What becomes of the old value of an atomic operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Old {
    Ignored,
    Returned,
    /// It is stored in memory that the actor keeps, a word at this address.
    AtQuiet(*mut u8),
}

/// A call with its arguments.
pub enum Call {
    Put {
        pe: Pe,
        put: Bytes,
    },
    PutStrided {
        pe: Pe,
        blocks: Blocks,
    },
    PutSignal {
        pe: Pe,
        put: Bytes,
        signal: AmoRequest,
        order: SignalOrder,
    },
    Get {
        pe: Pe,
        get: Bytes,
    },
    GetStrided {
        pe: Pe,
        blocks: Blocks,
    },
    Amo {
        pe: Pe,
        request: AmoRequest,
        old: Old,
        expected: Expected,
    },
    Fence,
    Quiet,
    QuietOfPe {
        pe: Pe,
    },
    FreeSources {
        pe: Option<Pe>,
    },
    IsQuiet,
    InFlight,
    Session {
        is_open: bool,
    },
    /// An amo of a word that is not aligned, or a put beyond the end of the heap.
    Invalid {
        pe: Pe,
        is_amo: bool,
    },
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Put => "put",
            Kind::PutStrided => "strided put",
            Kind::PutSignal => "put with signal",
            Kind::Get => "get",
            Kind::GetConstant => "get of constant memory",
            Kind::GetStrided => "strided get",
            Kind::Change => "atomic change",
            Kind::Count => "atomic count",
            Kind::ReadWord => "atomic read",
            Kind::AddShared => "atomic addition",
            Kind::Fence => "fence",
            Kind::Quiet => "quiet",
            Kind::QuietOfPe => "quiet of a PE",
            Kind::IsQuiet => "test for quiet",
            Kind::InFlight => "list of PEs in flight",
            Kind::Session => "session",
            Kind::Invalid => "invalid call",
            Kind::FreeSources => "wait for sources",
        }
    }
}

/// Returns an atomic operation on a word of 8 bytes, whose old value is not needed.
pub fn amo(dest: RemoteAddr, op: AmoOp, operand: u64) -> AmoRequest {
    AmoRequest {
        dest,
        width: AmoWidth::Eight,
        op,
        operand,
        condition: 0,
    }
}

impl World {
    /// Draws the next call of an actor, and records what it will change. Returns `None` if the
    /// actor must wait, or makes no more calls.
    pub fn draw_call(&mut self, actor: usize) -> Option<(&'static str, Call)> {
        let pe = self.actors[actor].pe;
        let wire = self.actors[actor].wire;

        if self.dead == Some(pe) {
            return None;
        }

        let mut of_wire = self.actors.iter().filter(|of| of.wire == wire);
        let is_in_use = of_wire.any(|of| of.is_in_call);
        if is_in_use {
            self.actors[actor].is_waiting = true;
            return None;
        }

        self.actors[actor].left = self.actors[actor].left.checked_sub(1)?;

        // Where the CPU carries out atomic operations, the runtime issues no operation of a PE on
        // itself over the network.
        let n_pes = self.pes.len() as u32;
        let mut to = Pe(self.rng.u32(..n_pes));
        if to == pe && self.kind.amos == Amos::Software {
            to = Pe((pe.0 + 1) % n_pes);
        }

        if self.actors[actor].loss.is_some() {
            return Some(match self.rng.u32(..4) {
                0 => ("fence", Call::Fence),
                1 => ("quiet", Call::Quiet),
                _ => ("get", self.draw_constant_get(actor, to)),
            });
        }

        let is_first = std::mem::take(&mut self.actors[actor].is_new);
        let kind = if is_first && self.rng.u32(..3) == 0 {
            Kind::Session
        } else {
            self.habits.kind(&mut self.rng)
        };

        let call = match kind {
            Kind::Put => self.draw_put(actor, to),
            Kind::PutStrided => self.draw_put_strided(actor, to),
            Kind::PutSignal => self.draw_put_signal(actor, to),
            Kind::Get => self.draw_get(actor, to),
            Kind::GetConstant => Some(self.draw_constant_get(actor, to)),
            Kind::GetStrided => Some(self.draw_get_strided(actor, to)),
            Kind::Change => self.draw_change(actor, to),
            Kind::Count => self.draw_count(actor, to),
            Kind::ReadWord => self.draw_read_word(actor, to),
            Kind::AddShared => Some(self.draw_add(actor)),
            Kind::Fence => None,
            Kind::Quiet => Some(Call::Quiet),
            Kind::QuietOfPe => Some(Call::QuietOfPe { pe: to }),
            Kind::IsQuiet => Some(Call::IsQuiet),
            Kind::InFlight => Some(Call::InFlight),
            Kind::Session => {
                let of = &mut self.actors[actor];
                of.is_in_session = !of.is_in_session;
                let is_open = of.is_in_session;
                Some(Call::Session { is_open })
            }
            Kind::FreeSources => Some(Call::FreeSources {
                pe: Some(to).filter(|_| self.rng.bool()),
            }),
            Kind::Invalid => Some(Call::Invalid {
                pe: to,
                is_amo: self.rng.bool(),
            }),
        };

        Some(match call {
            Some(call) => (kind.name(), call),
            None => ("fence", Call::Fence),
        })
    }

    fn draw_completion(&mut self) -> Completion {
        if self.rng.bool() {
            Completion::Now
        } else {
            Completion::AtQuiet
        }
    }

    /// Returns the number of the model of what an actor has issued to a PE.
    pub fn model(&self, actor: usize, to: Pe) -> usize {
        actor * self.pes.len() + to.index()
    }

    /// Draws a cell for which `is_one` returns true, and that may be changed.
    fn draw_cell(&mut self, actor: usize, to: Pe, is_one: impl Fn(&Cell) -> bool) -> Option<usize> {
        let model = self.model(actor, to);
        let epoch = self.actors[actor].epoch;

        let memory = &self.memories[to.index()];
        let model = &mut self.models[model];
        let n = model.cells.len();
        let first = self.rng.usize(..n);

        (first..first + n)
            .map(|cell| cell % n)
            .find(|cell| is_one(&model.cells[*cell]) && model.is_free(*cell, epoch, memory))
    }

    fn draw_put(&mut self, actor: usize, to: Pe) -> Option<Call> {
        let completion = self.draw_completion();
        if self.rng.u32(..30) == 0 {
            let put = Bytes {
                remote: at(Segment::Heap, CONSTANT as u64),
                local: LocalBuf::EMPTY,
                completion,
            };
            return Some(Call::Put { pe: to, put });
        }

        let cell = self.draw_cell(actor, to, |cell| cell.is_bytes() && cell.blocks.len() == 1)?;
        let data = self.draw_data(actor, to, cell);
        let put = Bytes {
            remote: data.dest,
            local: data.source,
            completion,
        };
        Some(Call::Put { pe: to, put })
    }

    /// Issues the next version of a cell of bytes.
    fn draw_data(&mut self, actor: usize, to: Pe, cell: usize) -> Data {
        let model = self.model(actor, to);
        let epoch = self.actors[actor].epoch;
        let version = self.models[model].issue(cell, epoch, false, None);

        let of = &self.models[model].cells[cell];
        let dest = of.blocks[0];
        let bytes = of.bytes(version);

        self.log("version", [model as u64, cell as u64, version.into()]);
        Data {
            dest,
            source: self.actors[actor].source(to, bytes),
            version,
        }
    }

    fn draw_put_strided(&mut self, actor: usize, to: Pe) -> Option<Call> {
        let cell = self.draw_cell(actor, to, |cell| cell.blocks.len() > 1)?;
        let data = self.draw_data(actor, to, cell);

        let model = self.model(actor, to);
        let of = &self.models[model].cells[cell];
        let blocks = Blocks {
            remote: data.dest,
            local: data.source,
            nbytes: of.nbytes(),
            remote_stride: (of.blocks[1].offset - data.dest.offset) as usize,
            local_stride: of.nbytes(),
            n: of.blocks.len(),
        };
        Some(Call::PutStrided { pe: to, blocks })
    }

    fn draw_put_signal(&mut self, actor: usize, to: Pe) -> Option<Call> {
        let signal = self.draw_cell(actor, to, |cell| cell.is_word(AmoWidth::Eight))?;
        let mut cell = self.draw_cell(actor, to, |cell| cell.is_bytes() && cell.blocks.len() == 1);
        // The data may be the word of the signal itself, of which both make a version.
        if self.rng.u32(..4) == 0 {
            cell = Some(signal);
        }
        let cell = cell.filter(|_| self.rng.u32(..4) > 0);

        let mut put = Bytes {
            remote: at(Segment::Heap, 0),
            local: LocalBuf::EMPTY,
            completion: self.draw_completion(),
        };
        let mut follows = Predecessors {
            data: None,
            all: false,
        };
        if let Some(cell) = cell {
            let data = self.draw_data(actor, to, cell);
            put.remote = data.dest;
            put.local = data.source;
            follows.data = Some((cell, data.version));
        }
        follows.all = self.rng.bool();

        let model = self.model(actor, to);
        let epoch = self.actors[actor].epoch;
        let version = self.models[model].issue(signal, epoch, false, Some(follows));
        self.log("signal", [model as u64, signal as u64, version.into()]);

        let of = &self.models[model].cells[signal];
        let new = of.word(version);
        let old = of.word(version - 1);
        let (op, value) = if self.rng.bool() {
            (AmoOp::Set, new)
        } else {
            (AmoOp::Add, new.wrapping_sub(old))
        };
        let signal = AmoRequest::of_word(of.blocks[0], op, value);

        let order = if follows.all {
            SignalOrder::AfterAll
        } else {
            SignalOrder::AfterData
        };
        Some(Call::PutSignal {
            pe: to,
            put,
            signal,
            order,
        })
    }

    fn draw_get(&mut self, actor: usize, to: Pe) -> Option<Call> {
        let model = self.model(actor, to);

        let memory = &self.memories[to.index()];
        self.models[model].check(memory);

        let cells = &self.models[model].cells;
        let cell = self.rng.usize(..cells.len());

        if cells[cell].blocks.len() > 1 {
            return None;
        }

        let source = cells[cell].blocks[0];
        let nbytes = cells[cell].nbytes();
        let version = cells[cell].oldest;
        let completion = self.draw_completion();
        let dest = self.actors[actor].dest(to, nbytes, Expected::Since { cell, version });

        let get = Bytes {
            remote: source,
            local: dest,
            completion,
        };
        Some(Call::Get { pe: to, get })
    }

    fn draw_constant_get(&mut self, actor: usize, to: Pe) -> Call {
        let nbytes = match self.rng.u32(..4) {
            0 => self.rng.usize(1..3000),
            1 => 8,
            _ => self.rng.usize(1..300),
        };

        let offset = self.rng.u64(..(CONSTANT - nbytes) as u64);
        let completion = match self.actors[actor].loss {
            Some(_) => Completion::Now,
            None => self.draw_completion(),
        };

        let expected = Expected::Constant {
            offset,
            block: nbytes,
            stride: nbytes,
        };

        let dest = self.actors[actor].dest(to, nbytes, expected);
        let get = Bytes {
            remote: at(Segment::Heap, offset),
            local: dest,
            completion,
        };
        Call::Get { pe: to, get }
    }

    fn draw_get_strided(&mut self, actor: usize, to: Pe) -> Call {
        let n = self.rng.usize(1..12);
        let block = self.rng.usize(1..60);
        let stride = block + self.rng.usize(..200);

        let offset = self.rng.u64(..(CONSTANT - n * stride) as u64);
        let expected = Expected::Constant {
            offset,
            block,
            stride,
        };

        let dest = self.actors[actor].dest(to, n * block, expected);
        let blocks = Blocks {
            remote: at(Segment::Heap, offset),
            local: dest,
            nbytes: block,
            remote_stride: stride,
            local_stride: block,
            n,
        };
        Call::GetStrided { pe: to, blocks }
    }

    /// Draws what becomes of the old value of an atomic operation.
    fn draw_old(&mut self, actor: usize, to: Pe, width: AmoWidth, expected: Expected) -> Old {
        match self.rng.u32(..3) {
            0 => Old::Ignored,
            1 => Old::Returned,
            _ => {
                let dest = self.actors[actor].dest(to, width.nbytes(), expected);
                Old::AtQuiet(dest.base)
            }
        }
    }

    /// Draws an operation that changes a word to its next version.
    fn draw_change(&mut self, actor: usize, to: Pe) -> Option<Call> {
        let widths = [AmoWidth::Four, AmoWidth::Eight];
        let width = widths[self.rng.usize(..2)];
        let cell = self.draw_cell(actor, to, |cell| cell.is_word(width))?;

        let model = self.model(actor, to);
        let epoch = self.actors[actor].epoch;
        let version = self.models[model].issue(cell, epoch, true, None);
        self.log("change", [model as u64, cell as u64, version.into()]);

        let of = &self.models[model].cells[cell];
        let old = of.word(version - 1);
        let new = of.word(version);
        let dest = of.blocks[0];

        let (op, operand) = match self.rng.u32(..5) {
            0 => (AmoOp::Set, new),
            1 => (AmoOp::Swap, new),
            2 => (AmoOp::CompareSwap, new),
            3 => (AmoOp::Add, new.wrapping_sub(old)),
            _ => (AmoOp::Xor, new ^ old),
        };

        let version = version - 1;
        let expected = Expected::Version { cell, version };
        let request = AmoRequest {
            dest,
            width,
            op,
            operand,
            condition: old,
        };
        Some(Call::Amo {
            pe: to,
            request,
            old: self.draw_old(actor, to, width, expected),
            expected,
        })
    }

    /// Draws an addition to a counter of the actor.
    fn draw_count(&mut self, actor: usize, to: Pe) -> Option<Call> {
        let cell = self.draw_cell(actor, to, |cell| cell.is_counter())?;
        let model = self.model(actor, to);
        let epoch = self.actors[actor].epoch;

        let of = &self.models[model].cells[cell];
        let version = of.oldest;
        let dest = of.blocks[0];
        let nbytes = of.nbytes() as u8;
        let width = AmoWidth::from_nbytes(nbytes).expect("a word");

        self.models[model].issue(cell, epoch, true, None);
        let expected = Expected::Since { cell, version };
        let request = AmoRequest {
            width,
            ..amo(dest, AmoOp::Add, 1)
        };
        Some(Call::Amo {
            pe: to,
            request,
            old: self.draw_old(actor, to, width, expected),
            expected,
        })
    }

    /// Draws an operation on a word that does not change it.
    fn draw_read_word(&mut self, actor: usize, to: Pe) -> Option<Call> {
        let model = self.model(actor, to);
        let memory = &self.memories[to.index()];
        self.models[model].check(memory);

        let cells = &self.models[model].cells;
        let cell = self.rng.usize(..cells.len());

        let of = &cells[cell];
        let width = AmoWidth::from_nbytes(of.nbytes() as u8).filter(|_| !of.is_bytes())?;
        let version = of.oldest;
        let dest = of.blocks[0];

        let (op, operand) = match self.rng.u32(..5) {
            0 => (AmoOp::Fetch, 7),
            1 => (AmoOp::And, u64::MAX),
            2 => (AmoOp::Or, 0),
            3 => (AmoOp::Xor, 0),
            // No version has this value.
            _ => (AmoOp::CompareSwap, 3),
        };

        let expected = Expected::Since { cell, version };
        let old = match self.draw_old(actor, to, width, expected) {
            Old::Ignored if op == AmoOp::Fetch => Old::Returned,
            old => old,
        };

        let request = AmoRequest {
            dest,
            width,
            op,
            operand,
            condition: 0xDEAD_BEEF,
        };
        Some(Call::Amo {
            pe: to,
            request,
            old,
            expected,
        })
    }

    /// Draws an addition to a counter of all actors.
    fn draw_add(&mut self, actor: usize) -> Call {
        let counter = self.rng.usize(..self.counters.len());
        let of = &mut self.counters[counter];
        if of.pe == self.actors[actor].pe && self.kind.amos == Amos::Software {
            return Call::Fence;
        }

        of.issued += 1;
        let pe = of.pe;
        let dest = of.word;
        let width = of.width;
        let expected = Expected::Count { counter };
        let request = AmoRequest {
            width,
            ..amo(dest, AmoOp::Add, 1)
        };
        Call::Amo {
            pe,
            request,
            old: self.draw_old(actor, pe, width, expected),
            expected,
        }
    }
}
