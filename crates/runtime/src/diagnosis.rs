//! The diagnosis of long waits: [`status`] publishes the waits of this PE, and [`machine`] reads
//! those of all PEs of its machine. [`finalizing`] ends the job if a thread waits in vain for a PE
//! that is in finalize. [`polls`] finds calls that the program repeats. The [`watchdog`] explains waits without the help of a launcher.

pub(crate) mod finalizing;
pub(crate) mod machine;
pub(crate) mod polls;
pub(crate) mod status;
pub(crate) mod watchdog;
