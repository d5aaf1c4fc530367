//! The key by which the PEs of a job find and recognize each other on one machine.
//!
//! PE 0 creates a secret and distributes it by the process manager, which serves only the processes
//! of the job. The key is derived from that secret and the identity of the machine. The name of a
//! PE's socket is derived from the key, and does not reveal the names of other sockets.

use rushmem_connect::Secret;
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use crate::error::Error;
use crate::process_manager::ProcessManager;

/// The key under which PE 0 puts the secret of the job.
pub(crate) const SECRET: &str = "rushmem-secret";

/// Bytes of a proof.
pub(crate) const PROOF: usize = 32;

/// The key of one job on one machine.
#[derive(Clone, Debug)]
pub(crate) struct NodeKey(Secret);

impl NodeKey {
    /// Returns the key of this job on this machine. Each PE of the job calls this function, which
    /// includes one fence.
    pub(crate) fn agree(manager: &mut dyn ProcessManager) -> Result<NodeKey, Error> {
        if manager.pe() == 0 {
            let secret = Secret::random().map_err(Error::Random)?;
            manager.put(SECRET, secret.bytes())?;
        }
        manager.fence()?;
        let secret = Secret::new(&manager.get(0, SECRET)?);

        // This value is the same for all processes of the machine. If it cannot be read, the secret
        // alone is the key.
        let machine = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Ok(NodeKey::new(&secret, &machine))
    }

    pub(crate) fn new(secret: &Secret, machine: &[u8]) -> NodeKey {
        NodeKey(secret.derive("machine", &[machine]))
    }

    /// Returns the address of the socket of PE `pe`.
    pub(crate) fn name(&self, pe: u32) -> Result<SocketAddrUnix, Errno> {
        let digest = self.0.tag("name", &[&pe.to_le_bytes()]);
        let hex: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        SocketAddrUnix::new_abstract_name(format!("rushmem-{hex}-{pe}").as_bytes())
    }

    /// Returns the proof of PE `from` to PE `to` that it belongs to the job.
    pub(crate) fn proof(&self, from: u32, to: u32) -> [u8; PROOF] {
        self.0
            .tag("proof", &[&from.to_le_bytes(), &to.to_le_bytes()])
    }

    /// Returns true if `proof` is the one of PE `from` to PE `to`.
    pub(crate) fn is_proof(&self, from: u32, to: u32, proof: &[u8]) -> bool {
        let about: [&[u8]; 2] = [&from.to_le_bytes(), &to.to_le_bytes()];
        self.0.is_tag("proof", &about, proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_proofs_are_of_one_job_one_machine_and_one_pe() {
        let new = |secret: &[u8], machine| NodeKey::new(&Secret::new(secret), machine);
        let key = new(b"secret", b"machine");
        let others = [new(b"secret", b"another"), new(b"another", b"machine")];
        let name = |key: &NodeKey, pe| key.name(pe).expect("a short name");
        assert_eq!(name(&key, 3), name(&key.clone(), 3));
        assert_ne!(name(&key, 3), name(&key, 4));
        assert!(key.is_proof(3, 4, &key.proof(3, 4)));
        assert!(!key.is_proof(4, 3, &key.proof(3, 4)));
        assert!(!key.is_proof(3, 4, &[0; PROOF]));
        for other in others {
            assert_ne!(name(&key, 3), name(&other, 3));
            assert!(!key.is_proof(3, 4, &other.proof(3, 4)));
        }
    }
}
