//! The event loop of oshrun and of its daemons.

use crate::report::failure::{StartFailure, cannot};
use crate::spawn::descriptors;

/// Runs a future on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, StartFailure> {
    // The event loop needs descriptors, too.
    descriptors::raise()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot("wait for events", &error))?;
    let output = runtime.block_on(future);
    // Dropping the runtime would wait for its tasks.
    std::mem::forget(runtime);
    Ok(output)
}
