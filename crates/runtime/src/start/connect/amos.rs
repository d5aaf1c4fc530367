//! Decides who carries out atomic operations over a transport: a pure function of what is requested
//! and of what all PEs found, so that all PEs come to the same result.
//!
//! Operations of a CPU and of a network on one word are not atomic with respect to each other, so
//! the decision is made once for a job. A job on one node has no transport, and there the CPU
//! carries them out.

use rushmem_transport::{Amos, Provider};

/// A way to carry out atomic operations, and why it is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AmoPath {
    pub(super) amos: Amos,
    pub(super) why: String,
}

/// Returns the ways to try over a provider, best first. `requested` is the setting; `in_hardware`
/// says whether the provider's network has them in hardware on every PE.
///
/// # Errors
/// When the provider cannot do what is requested; a sentence.
pub(super) fn ways(
    requested: Option<Amos>,
    provider: &Provider,
    in_hardware: bool,
) -> Result<Vec<AmoPath>, String> {
    let way = |amos, why: &str| AmoPath { amos, why: why.to_owned() };
    match requested {
        Some(Amos::Network) if !provider.network_amos => Err(format!(
            "SHMEM_AMOS is network, but {} has no atomic operations of its own: with software the CPUs of the targets carry them \
             out",
            provider.name
        )),
        Some(amos) => Ok(vec![way(amos, &format!("SHMEM_AMOS is {amos}"))]),
        None if in_hardware && provider.network_amos => Ok(vec![
            way(Amos::Network, "the hardware of every PE carries them out"),
            way(Amos::Software, "the network's own do not work"),
        ]),
        None => Ok(vec![way(Amos::Software, "not every PE has hardware that carries them out")]),
    }
}

impl AmoPath {
    /// Returns who it is, and why.
    pub(super) fn describe(&self) -> String {
        let who = match self.amos {
            Amos::Software => "by the CPU of the target, on-node and off-node alike",
            Amos::Network => {
                "by the network, on-node too; on contexts of SHMEM_TEAM_SHARED and of teams split from it by the CPU, in a domain of their own"
            }
        };
        format!("{who} ({})", self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::null;

    const NETWORK: Provider = Provider { name: "ofi", network_amos: true, ..null::PROVIDER };
    const SOCKETS: Provider = Provider { name: "tcp", ..null::PROVIDER };

    fn tried(requested: Option<Amos>, provider: &Provider, in_hardware: bool) -> Vec<Amos> {
        let ways = ways(requested, provider, in_hardware).expect("a way");
        ways.into_iter().map(|way| way.amos).collect()
    }

    #[test]
    fn the_network_is_chosen_where_its_hardware_does() {
        assert_eq!(tried(None, &NETWORK, true), [Amos::Network, Amos::Software]);
        assert_eq!(tried(None, &NETWORK, false), [Amos::Software]);
        assert_eq!(tried(None, &SOCKETS, true), [Amos::Software]);
    }

    #[test]
    fn what_is_requested_is_the_only_way() {
        for in_hardware in [false, true] {
            assert_eq!(tried(Some(Amos::Software), &NETWORK, in_hardware), [Amos::Software]);
            assert_eq!(tried(Some(Amos::Network), &NETWORK, in_hardware), [Amos::Network]);
            assert_eq!(tried(Some(Amos::Software), &SOCKETS, in_hardware), [Amos::Software]);
        }
        let refusal = ways(Some(Amos::Network), &SOCKETS, false).expect_err("it has none");
        assert!(refusal.contains("SHMEM_AMOS is network, but tcp has no"), "{refusal}");
    }
}
