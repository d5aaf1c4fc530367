//! What this PE shows of its waits, and what is concluded from the statuses of others: [`status`]
//! writes the waits that last long, [`finalizing`] ends a wait for a PE that is in finalize, and
//! the [`watchdog`] explains waits without a launcher.

pub(crate) mod finalizing;
pub(crate) mod status;
pub(crate) mod watchdog;
