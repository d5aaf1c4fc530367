//! The diagnosis of long waits: [`status`] publishes those of this PE, [`finalizing`] ends the job
//! if a thread waits for a PE that is in finalize, and the [`watchdog`] explains waits without a
//! launcher.

pub(crate) mod finalizing;
pub(crate) mod machine;
pub(crate) mod status;
pub(crate) mod watchdog;
