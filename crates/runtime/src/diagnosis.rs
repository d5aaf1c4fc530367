//! What went wrong: [`crash`] prints where the program has crashed. The [`watchdog`] explains who
//! waits for whom without the help of a launcher. [`polling_calls`] finds calls that the program
//! repeats, when a reader of the statuses asks for it.

pub mod crash;
pub(crate) mod polling_calls;
pub(crate) mod watchdog;
