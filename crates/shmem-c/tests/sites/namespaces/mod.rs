//! Several hosts on one machine, for tests of any launcher.

use std::os::fd::AsFd;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Network namespaces whose interfaces `w` are on one network: host 0 has the address 10.77.0.1,
/// host 1 has 10.77.0.2, and so on.
pub struct Hosts {
    name: String,
    n: u32,
}

impl Hosts {
    /// Creates `n` hosts. Ignores the test if that is impossible.
    pub fn new(test: &str, n: u32) -> Hosts {
        let hosts = Hosts {
            name: format!("rm{}{test}", std::process::id()),
            n,
        };
        let network = hosts.network();
        if let Err(why) = ip(&["netns", "add", &network]) {
            // Nothing was created, so there is nothing to drop.
            std::mem::forget(hosts);
            testkit::absent(format!("there are no network namespaces: {why}"));
        }

        let mut commands = vec![
            format!("-n {network} link add bridge type bridge"),
            format!("-n {network} link set bridge up"),
        ];
        for number in 0..n {
            let host = hosts.host(number);
            let address = number + 1;
            commands.extend([
                format!("netns add {host}"),
                format!("-n {host} link add w type veth peer name w{number} netns {network}"),
                format!("-n {network} link set w{number} master bridge up"),
                format!("-n {host} addr add 10.77.0.{address}/24 dev w"),
                format!("-n {host} link set lo up"),
                format!("-n {host} link set w up"),
            ]);
        }

        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            ip(&words).expect("the first namespace could be made");
        }
        hosts
    }

    /// Returns the prefix of the names of the hosts' namespaces, which end with the number of the
    /// host.
    pub fn prefix(&self) -> String {
        format!("{}h", self.name)
    }

    /// Returns the namespace of a host.
    pub fn host(&self, number: u32) -> String {
        format!("{}{number}", self.prefix())
    }

    /// Calls `work` in a thread that is on a host, and so are the threads that it starts.
    pub fn on<T: Send>(&self, number: u32, work: impl FnOnce() -> T + Send) -> T {
        let namespace = format!("/run/netns/{}", self.host(number));
        let namespace = std::fs::File::open(namespace).expect("ip has made it");

        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind).expect("root may");
                work()
            });
            thread.join().expect("no panic")
        })
    }

    fn network(&self) -> String {
        format!("{}n", self.name)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let mut namespaces = vec![self.network()];
        for number in 0..self.n {
            namespaces.push(self.host(number));
        }

        // A virtual link is removed with either of its ends.
        for namespace in namespaces {
            // One that is left disturbs no other test: names have the number of this process.
            let _ = ip(&["netns", "del", &namespace]);
        }
    }
}

/// Runs `ip`. The error is its message.
pub fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(words)
        .output()
        .map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
