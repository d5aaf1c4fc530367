//! Two hosts on one machine, for tests of any launcher.

use std::process::Command;

/// Two network namespaces with a wire between them.
pub struct Hosts {
    name: String,
}

impl Hosts {
    /// Where they cannot be had the test is ignored.
    pub fn new(test: &str) -> Hosts {
        let hosts = Hosts { name: format!("rm{}{test}", std::process::id()) };
        let [a, b] = [0, 1].map(|host| hosts.host(host));
        let first = ip(&["netns", "add", &a]);
        if let Err(why) = first {
            // Nothing was made.
            std::mem::forget(hosts);
            testkit::absent(format!("there are no network namespaces: {why}"));
        }
        for words in [
            vec!["netns", "add", &b],
            vec!["-n", &a, "link", "add", "w", "type", "veth", "peer", "name", "w", "netns", &b],
            vec!["-n", &a, "addr", "add", "10.77.0.1/24", "dev", "w"],
            vec!["-n", &b, "addr", "add", "10.77.0.2/24", "dev", "w"],
        ] {
            ip(&words).expect("the first namespace could be made");
        }
        for host in [&a, &b] {
            for device in ["lo", "w"] {
                ip(&["-n", host, "link", "set", device, "up"]).expect("a device of ours");
            }
        }
        hosts
    }

    /// What the names of both namespaces begin with; 0 or 1 follows.
    pub fn prefix(&self) -> String {
        format!("{}h", self.name)
    }

    /// The namespace of host 0 or 1.
    pub fn host(&self, host: u32) -> String {
        format!("{}h{host}", self.name)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in [0, 1] {
            // The wire goes with the first of its ends.
            let _ = ip(&["netns", "del", &self.host(host)]);
        }
    }
}

/// Runs `ip`; what it complains about is the error.
pub fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(complaint) }
}
