//! Who carries out atomic operations, for providers that leave the choice to the user.
//!
//! This file must never know how a network carries them out.

use crate::Host;
use std::fmt;

/// Who carries out atomic operations. All PEs of a job must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Amos {
    /// The target's CPU, asked by messages: they are atomic with respect to those of PEs that share its memory.
    Software,
    /// The network, if it can.
    Network,
}

impl Amos {
    /// The value of an environment variable: `software`, which is the default, or `network`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn asked_for(host: &dyn Host, variable: &str) -> Result<Amos, String> {
        match host.variable(variable).as_deref() {
            None | Some("software") => Ok(Amos::Software),
            Some("network") => Ok(Amos::Network),
            Some(other) => {
                Err(format!("{variable} is {other}, but it must be software or network"))
            }
        }
    }

    /// The choice of a number on a wire, which is `amos as u8`.
    pub fn from_number(number: u8) -> Option<Amos> {
        [Amos::Software, Amos::Network].get(usize::from(number)).copied()
    }
}

impl fmt::Display for Amos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Amos::Software => "software",
            Amos::Network => "network",
        })
    }
}
