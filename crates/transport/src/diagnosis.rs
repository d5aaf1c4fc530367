//! The report of a provider on this machine before a job: each part of the provider, whether a job
//! can use it, and what helps if not.

use std::fmt;

/// The verdict on whether a job can use something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can.
    Usable,
    /// It is there, and a setting or a better part is preferred to it.
    Unused,
    /// It is there, and no job can use it.
    Refused,
    /// It is not there.
    Absent,
}

/// The report of a provider on one of its parts: a library, one of its own providers, an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The part, such as `tcp;ofi_rxm` or `eth0`.
    pub name: String,
    /// The verdict on whether a job can use the part.
    pub verdict: Verdict,
    /// Why; of a usable part, what it is.
    pub reason: String,
    /// The advice to the user, if there is any.
    pub remedy: Option<String>,
    /// A job whose nodes would connect many pairs of PEs ([`MANY_PAIRS`](crate::MANY_PAIRS)) uses
    /// it before others, since it needs no connections.
    pub is_for_many_pairs: bool,
}

impl Diagnosis {
    /// Returns a diagnosis without a remedy.
    pub fn new(name: impl Into<String>, verdict: Verdict, reason: impl Into<String>) -> Diagnosis {
        let (name, reason) = (name.into(), reason.into());
        Diagnosis { name, verdict, reason, remedy: None, is_for_many_pairs: false }
    }

    /// Returns the diagnosis with this remedy.
    pub fn remedy(self, remedy: impl Into<String>) -> Diagnosis {
        Diagnosis { remedy: Some(remedy.into()), ..self }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Usable => "usable",
            Verdict::Unused => "unused",
            Verdict::Refused => "refused",
            Verdict::Absent => "absent",
        })
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_follows_the_reason() {
        let diagnosis = Diagnosis::new("tcp", Verdict::Refused, "it offers FI_EP_MSG");
        assert_eq!(diagnosis.to_string(), "tcp: it offers FI_EP_MSG");
        assert_eq!(
            diagnosis.remedy("use tcp;ofi_rxm").to_string(),
            "tcp: it offers FI_EP_MSG; use tcp;ofi_rxm"
        );
    }
}
