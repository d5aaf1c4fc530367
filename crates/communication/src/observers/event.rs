//! The events that observers are shown: an action of this PE, with its call, target and memory.

use core::ffi::c_int;
use rushmem_pe::call::Call;
use rushmem_pe::job::handle::ContextHandle;
pub use rushmem_race_interface::{ByteBlocks, FollowedMembers, WordKind};

/// Defines the enum `$name`, whose variants are `$kind`, each with its name `$text` in the output.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident: $($kind:ident = $text:literal),* $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = concat!("`", $text, "` in the output.")] $kind),* }

        impl $name {
            /// The names in the output, in the order of the variants.
            pub const NAMES: &[&str] = &[$($text),*];
        }
    };
}

kinds! {
    /// The kinds of accesses to memory of a PE.
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
    // Copies that the plans of collectives make.
    Collective = "collective",
}

kinds! {
    /// The kinds of calls whose duration is counted.
    CallKind:
    Collective = "collective",
    Wait = "wait",
    Lock = "lock",
    Fence = "fence",
    Quiet = "quiet",
    Flush = "flush",
}

/// An event: an action of this PE, which has a begin and an end.
#[derive(Clone, Copy)]
pub struct Event {
    /// The call of the program.
    pub call: Call,
    /// What the PE does.
    pub action: Action,
    /// The context of the action, or the default one.
    pub ctx: ContextHandle,
    /// The target PE, or -1 if the action has none.
    pub pe: c_int,
    /// The bytes of the target that are accessed, by their addresses on this PE. Without a target,
    /// bytes of this PE: awaited words, a lock, a block of the heap, the destination of a
    /// collective.
    pub remote: ByteBlocks,
    /// The local buffer of an access.
    pub local: ByteBlocks,
}

/// The target of an event that concerns no PE or several.
pub const NO_PE: c_int = -1;

/// An action of this PE.
#[derive(Clone, Copy)]
pub enum Action {
    /// An access to symmetric memory.
    Access(AccessEvent),
    /// A copy to or from a PE that the library makes, usually by the plan of a collective. Only the
    /// number of bytes is known of it.
    Move {
        /// True for a copy from a PE.
        is_from: bool,
    },
    /// A collective. `remote` is its destination and `local` its source on this PE.
    Collective(Membership),
    /// A non-blocking collective, until the program has found it complete.
    Request(Membership),
    /// A non-blocking collective, while a thread of the library carries it out.
    CarriedOut(Membership),
    /// A wait for words of this PE.
    Wait,
    /// A call that acquires, tests or releases a lock.
    Lock,
    /// A fence.
    Fence,
    /// A quiet, alone or as a part of another call.
    Quiet {
        /// True for a part of another call.
        is_part: bool,
    },
    /// `shmem_pe_quiet`.
    QuietOfPes,
    /// The part of `shmem_pe_quiet` that completes the operations on one PE.
    PeQuiet,
    /// A quiet of all contexts, as a part of another call.
    QuietOfAll,
    /// A flush of all puts on a context: their sources may be reused.
    Flush,
    /// `shmemx_ctx_pe_flush`.
    FlushOfPes,
    /// The part of `shmemx_ctx_pe_flush` that frees the sources of the puts to one PE.
    PeFlush,
    /// `shmemx_local_complete`: a flush of all contexts.
    LocalComplete,
    /// A test for quiet. The event only ends if all operations are complete.
    QuietTest,
    /// A wait or test has found that a word of this PE satisfies its comparison. Without a
    /// duration.
    Seen {
        /// True if it would also satisfy it with one less.
        has_surplus: bool,
    },
    /// A lock was acquired (true) or released (false). Without a duration.
    LockHeld(bool),
    /// A block of the heap was allocated or freed. Without a duration.
    Block {
        /// True if the block was allocated.
        is_allocated: bool,
    },
}

/// The kind of an access, and its properties.
#[derive(Clone, Copy)]
pub struct AccessEvent {
    /// The kind of the access.
    pub kind: AccessKind,
    /// What it does to the memory of the target.
    pub effect: Effect,
    /// The symmetric argument.
    pub argument: Argument,
    /// The kind of word of an atomic operation.
    pub word: WordKind,
    /// The address of the signal that follows the data; 0 if there is none.
    pub signal: usize,
    /// True if the signal is a count, to which the access adds one.
    pub counts: bool,
    /// True if the team of the context is, or was split from, `SHMEM_TEAM_SHARED`.
    pub of_shared: bool,
}

/// The effect of an access on the memory of the target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads it.
    Reads,
    /// Writes it.
    Writes,
    /// Writes if the word has the expected value.
    WritesIfEqual,
}

/// The symmetric argument of an access, which messages name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// `dest`.
    Dest,
    /// `source`.
    Source,
    /// `sig_addr`.
    SigAddr,
}

impl Argument {
    /// Returns the name of the argument in the standard.
    #[inline]
    pub fn name(self) -> &'static str {
        match self {
            Argument::Dest => "dest",
            Argument::Source => "source",
            Argument::SigAddr => "sig_addr",
        }
    }
}

/// This PE as a member in a collective.
#[derive(Clone, Copy)]
pub struct Membership {
    /// A number that identifies the members.
    pub team: u64,
    /// The number of the collective on the team.
    pub nth: u64,
    /// The number of members.
    pub n: u32,
    /// The number of this PE among the members.
    pub me: u32,
    /// The members on whose arrays the result depends.
    pub follows: FollowedMembers,
    /// The root of [`FollowedMembers::Member`], or the number of first members of
    /// [`FollowedMembers::Below`].
    pub followed_member: u32,
}

impl Event {
    /// Creates an event on the default context, without a target and without memory.
    #[inline]
    pub fn new(call: Call, action: Action) -> Event {
        Event {
            call,
            action,
            ctx: ContextHandle::DEFAULT,
            pe: NO_PE,
            remote: ByteBlocks::NONE,
            local: ByteBlocks::NONE,
        }
    }

    /// Sets bytes of this PE, for an event without a target.
    pub fn with_bytes<T>(self, start: *const T, nbytes: usize) -> Event {
        Event {
            remote: ByteBlocks::one(start.addr(), nbytes),
            ..self
        }
    }

    /// Sets the local buffer, which is contiguous.
    pub fn with_buffer<T>(self, buffer: *const T, nbytes: usize) -> Event {
        Event {
            local: ByteBlocks::one(buffer.addr(), nbytes),
            ..self
        }
    }

    /// Sets the address of the signal that follows the data, and whether it is a count, to which
    /// the access adds one.
    #[inline]
    pub fn with_signal(mut self, signal: usize, counts: bool) -> Event {
        if let Action::Access(access) = &mut self.action {
            access.signal = signal;
            access.counts = counts;
        }
        self
    }
}
