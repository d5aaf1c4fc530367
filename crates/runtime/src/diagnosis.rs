//! The diagnosis of a job that hangs: [`polls`] finds calls that the program repeats, when a reader
//! of the statuses asks for it. The [`watchdog`] explains waits without the help of a launcher.

pub(crate) mod polls;
pub(crate) mod watchdog;
