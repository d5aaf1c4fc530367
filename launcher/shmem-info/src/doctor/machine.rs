//! All that the doctor finds on this machine.

use super::finding::Section;
use super::{host, transports};

/// Returns the findings of this machine, for a job of several.
pub fn sections() -> Result<Vec<Section>, String> {
    let mut all = vec![host::section()];
    all.extend(transports::sections()?);
    Ok(all)
}
