//! The events of `tracing` by which the library reports its own work.
//!
//! With `SHMEM_DEBUG`, a subscriber of the library's own prints them to standard error. It is never
//! the default of the process or of a thread, so that a program may set its own subscriber before
//! or after initialization, and gets no event of the library. A program that wants them calls
//! [`give_to_program`].
//!
//! An event that is off costs a load and a branch; events are in code that runs rarely. All crates
//! of the library report through the macros of this module.
//!
//! An event is `info` if it is a choice that a user may ask about, `debug` if it is a finding or a
//! connection, and `trace` otherwise. `MODULES` in `filter` names each crate that has events.

mod filter;

pub use crate::{debug, event, info, is_wanted, trace};
pub use filter::Filter;
pub use tracing::{self, Level};

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use tracing::dispatcher::with_default;
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// The [`rank`] of the most detailed level that is reported; 0 if nothing is. Relaxed: an event
/// that is concurrent to a change may be lost, and `PRINTER` publishes the subscriber.
static MAX_RANK: AtomicU8 = AtomicU8::new(0);
/// The subscriber that prints to standard error.
static PRINTER: OnceLock<Dispatch> = OnceLock::new();
/// True if the program's subscriber gets the events, too. Stored with release order and read with
/// acquire order: a thread of the library that sees it sees the program's subscriber.
static FOR_PROGRAM: AtomicBool = AtomicBool::new(false);
/// The number of this PE, as soon as it is known. Relaxed: it publishes nothing.
static ME: AtomicU32 = AtomicU32::new(u32::MAX);

/// Reports an event: its level, then what `tracing::event!` takes. The number of the PE is added.
#[macro_export]
macro_rules! event {
    ($level:ident, $($what:tt)+) => {
        if $crate::log::is_on($crate::log::Level::$level) {
            $crate::log::report(&|| {
                $crate::log::tracing::event!($crate::log::Level::$level, pe = $crate::log::me(), $($what)+)
            });
        }
    };
}

/// Reports what a user should know of any job.
#[macro_export]
macro_rules! info {
    ($($what:tt)+) => { $crate::event!(INFO, $($what)+) };
}

/// Reports what happens a few times in a job, or once for each peer.
#[macro_export]
macro_rules! debug {
    ($($what:tt)+) => { $crate::event!(DEBUG, $($what)+) };
}

/// Reports what may happen many times.
#[macro_export]
macro_rules! trace {
    ($($what:tt)+) => { $crate::event!(TRACE, $($what)+) };
}

/// Returns true if an event of this level, from the module of the call, would be reported: for
/// callers that must compute its data in advance.
#[macro_export]
macro_rules! is_wanted {
    ($level:ident) => {
        $crate::log::is_on($crate::log::Level::$level)
            && $crate::log::are_taken(|| $crate::log::tracing::enabled!($crate::log::Level::$level))
    };
}

/// Returns true if a subscriber takes the events for which `enabled` is true; [`is_wanted`] calls
/// this.
pub fn are_taken(enabled: impl Fn() -> bool + Sync) -> bool {
    let taken = AtomicBool::new(false);
    // Relaxed: if another thread reports, `report` waits for its end.
    report(&|| {
        taken.fetch_or(enabled(), Ordering::Relaxed);
    });
    taken.into_inner()
}

/// Returns true if some module may report events of this level. Costs a load.
#[inline]
pub fn is_on(level: Level) -> bool {
    rank(level) <= MAX_RANK.load(Ordering::Relaxed)
}

const fn rank(level: Level) -> u8 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

thread_local! {
    /// A variable that is inaccessible once the thread destroys its variables, among them those of
    /// `tracing`.
    static LIVES: DropCheck = const { DropCheck };
}

/// A type with a destructor, so that its thread-local variable is destroyed.
struct DropCheck;

impl Drop for DropCheck {
    fn drop(&mut self) {}
}

/// Passes an event to the subscribers; the macros call this. Exit handlers run after the
/// destructors of thread-local variables, which `tracing` needs to find a subscriber. So another
/// thread reports their events.
#[cold]
#[inline(never)]
pub fn report(event: &(dyn Fn() + Sync)) {
    if LIVES.try_with(|_| ()).is_ok() {
        return pass_on(event);
    }
    std::thread::scope(|scope| {
        // Without memory for a thread the event is lost.
        let _ = std::thread::Builder::new().spawn_scoped(scope, || pass_on(event));
    });
}

fn pass_on(event: &dyn Fn()) {
    if let Some(printer) = PRINTER.get() {
        with_default(printer, event);
    }
    if FOR_PROGRAM.load(Ordering::Acquire) {
        event();
    }
}

/// From now on, prints the events that `filter` admits to standard error. The filter of the first
/// call remains in force.
#[expect(
    clippy::disallowed_methods,
    reason = "the subscriber writes each event by one write"
)]
pub fn print(filter: &Filter) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_ansi(false)
        .event_format(Line)
        .with_writer(std::io::stderr);
    PRINTER.get_or_init(|| Dispatch::new(lines.finish().with(filter.targets())));
    MAX_RANK.fetch_max(rank(filter.max_level()), Ordering::Relaxed);
}

/// From now on, also passes all events to the default subscriber of the thread that reports them.
pub fn give_to_program() {
    FOR_PROGRAM.store(true, Ordering::Release);
    MAX_RANK.store(rank(Level::TRACE), Ordering::Relaxed);
}

/// Sets the number of this PE, which each event names from now on.
pub fn identify(pe: u32) {
    ME.store(pe, Ordering::Relaxed);
}

/// Returns the number of this PE, for the macros; `None` before [`identify`].
pub fn me() -> Option<u32> {
    Some(ME.load(Ordering::Relaxed)).filter(|&pe| pe != u32::MAX)
}

/// A line of the printer: the time, the level, the module as a filter names it, and the event.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = event.metadata().level();
        let module = filter::module(event.metadata().target());

        SystemTime.format_time(&mut line)?;
        write!(line, " {level:>5} {module}: ")?;
        context.format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}
