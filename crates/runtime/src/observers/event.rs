//! The events that observers receive: an action of this PE, its target, its size and its call.

use crate::call::Call;
use crate::job::handle::ContextHandle;
use core::ffi::c_int;
pub(crate) use rushmem_race_interface::{ByteBlocks, FollowedMembers, WordKind};

macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident: $($kind:ident = $text:literal),* $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($kind),* }

        impl $name {
            /// Their names in the output, in the order of the variants.
            pub(crate) const NAMES: &[&str] = &[$($text),*];
        }
    };
}

kinds! {
    /// Operations on memory of a PE.
    AccessKind:
    Put = "put",
    PutNbi = "put_nbi",
    P = "p",
    PutStrided = "put_strided",
    PutSignal = "put_signal",
    PutSignalNbi = "put_signal_nbi",
    Get = "get",
    GetNbi = "get_nbi",
    G = "g",
    GetStrided = "get_strided",
    Amo = "amo",
    AmoFetch = "amo_fetch",
    AmoFetchNbi = "amo_fetch_nbi",
    // Bytes that the plans of collectives move.
    Collective = "collective",
}

kinds! {
    /// Calls whose time counts.
    CallKind:
    Collective = "collective",
    Wait = "wait",
    Lock = "lock",
    Fence = "fence",
    Quiet = "quiet",
}

/// An event: something that this PE begins to do, and later has done.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) call: Call,
    pub(crate) action: Action,
    pub(crate) ctx: ContextHandle,
    /// The PE as the program gave it, or [`NO_PE`].
    pub(crate) pe: c_int,
    /// The bytes of that PE, or the own ones that are waited for, by this PE's addresses.
    pub(crate) remote: ByteBlocks,
    /// The bytes of this PE that an access reads or writes.
    pub(crate) local: ByteBlocks,
}

/// The PE of what concerns none, or several.
pub(crate) const NO_PE: c_int = -1;

/// The action of this PE.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// An access to symmetric memory.
    Access(AccessEvent),
    /// A plan of a collective moves bytes to another PE, or from it.
    Move {
        is_from: bool,
    },
    /// A collective, in which `remote` is its result here and `local` what it reads.
    Collective(Membership),
    /// A non-blocking collective, until the program finds it done.
    Request(Membership),
    /// A collective that a thread of the library carries out.
    CarriedOut(Membership),
    Wait,
    Lock,
    Fence,
    /// A quiet, which may be a part of another call.
    Quiet {
        is_part: bool,
    },
    /// A quiet towards some PEs ...
    QuietOfPes,
    /// ... of which it completes one after the other.
    PeQuiet,
    /// A quiet that does not wait. It ends only if everything is complete.
    QuietTest,
    /// At once: a wait or test has seen what it was to see of a word of this PE.
    Seen,
    /// At once: a lock is taken, or given up.
    LockHeld(bool),
    /// At once: a block of the heap is allocated, or freed.
    Block {
        is_allocated: bool,
    },
}

/// The kind of an access and its properties.
#[derive(Clone, Copy)]
pub(crate) struct AccessEvent {
    pub(crate) kind: AccessKind,
    pub(crate) effect: Effect,
    /// The symmetric argument.
    pub(crate) argument: Argument,
    /// The words of an atomic operation.
    pub(crate) word: WordKind,
    /// The signal that follows the data; 0 for none.
    pub(crate) signal: usize,
    /// Its context is one of `SHMEM_TEAM_SHARED` or of a team split from it.
    pub(crate) of_shared: bool,
}

/// The effect of an access on the memory of the PE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Writes,
    /// It writes if the word has the value that the program expects.
    WritesIfEqual,
}

/// The symmetric argument of an access, which messages name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    Dest,
    Source,
    SigAddr,
}

impl Argument {
    /// Returns its name in the standard.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Argument::Dest => "dest",
            Argument::Source => "source",
            Argument::SigAddr => "sig_addr",
        }
    }
}

/// The place of this PE in a collective.
#[derive(Clone, Copy)]
pub(crate) struct Membership {
    /// A number of the members.
    pub(crate) team: u64,
    /// Which collective of theirs it is.
    pub(crate) nth: u64,
    /// The number of members, and which one this PE is.
    pub(crate) n: u32,
    pub(crate) me: u32,
    /// The members whose arrays its result comes from: the root, or a number.
    pub(crate) follows: (FollowedMembers, u32),
}

impl Event {
    /// Returns an event that concerns no memory, on the default context.
    pub(crate) fn new(call: Call, action: Action) -> Event {
        let (ctx, remote, local) = (ContextHandle::DEFAULT, ByteBlocks::NONE, ByteBlocks::NONE);
        Event { call, action, ctx, pe: NO_PE, remote, local }
    }

    /// Returns the event with these bytes as its own memory.
    pub(crate) fn of<T>(self, start: *const T, nbytes: usize) -> Event {
        Event { remote: ByteBlocks::one(start.addr(), nbytes), ..self }
    }

    /// Adds contiguous bytes of this PE.
    pub(crate) fn with_buffer<T>(self, buffer: *const T, nbytes: usize) -> Event {
        Event { local: ByteBlocks::one(buffer.addr(), nbytes), ..self }
    }

    /// Adds a signal that follows the data.
    pub(crate) fn with_signal(mut self, signal: usize) -> Event {
        if let Action::Access(access) = &mut self.action {
            access.signal = signal;
        }
        self
    }
}
