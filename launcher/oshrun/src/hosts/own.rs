//! Detects whether a host is this machine, which needs no launch agent.

use std::net::{IpAddr, UdpSocket};

/// Returns the name of this machine.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns true if a host is this machine.
pub fn is_own(host: &str) -> bool {
    let slurm_name = std::env::var("SLURMD_NODENAME").ok();
    if host == "localhost" || slurm_name.as_deref() == Some(host) || is_same(host, &name()) {
        return true;
    }
    // A socket can only be bound to an address of this machine. Nothing is sent.
    host.parse::<IpAddr>().is_ok_and(|address| UdpSocket::bind((address, 0)).is_ok())
}

/// Returns true if two names denote the same host; one may lack the domain.
fn is_same(one: &str, other: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_string();
    let both_have_domains = one.contains('.') && other.contains('.');
    one == other || (!both_have_domains && short(one) == short(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_several_names() {
        assert!(is_own("localhost") && is_own("127.0.0.1") && is_own("::1") && is_own(&name()));
        assert!(!is_own("192.0.2.1") && !is_own("no-such-host"));
        assert!(is_same("a", "a.example.org") && is_same("a.example.org", "a"));
        assert!(!is_same("a.example.org", "a.example.net") && !is_same("a", "b"));
    }
}
