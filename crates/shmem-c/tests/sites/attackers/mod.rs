//! Threads that act as another user and fill the queues of a job's sockets.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Uid;

/// The state that the attackers share.
#[derive(Default)]
struct Shared {
    /// The names of the sockets to attack.
    names: Mutex<BTreeSet<String>>,
    /// The names of those whose queues were full.
    filled: Mutex<BTreeSet<String>>,
    over: AtomicBool,
}

/// Attackers, which work until this is dropped.
pub struct Attackers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Attackers {
    /// Starts to attack all named sockets that these processes have or will create.
    pub fn start(pids: Vec<i32>) -> Attackers {
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::new();
        for _ in 0..2 {
            let shared = shared.clone();
            threads.push(thread::spawn(move || attack(&shared)));
        }
        let of_finder = shared.clone();
        threads.push(thread::spawn(move || find_names(&pids, &of_finder)));
        Attackers { shared, threads }
    }

    /// Returns the number of sockets whose queue has been full.
    pub fn n_filled(&self) -> usize {
        self.shared
            .filled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let end = thread.join();
            assert!(end.is_ok() || thread::panicking(), "an attacker failed");
        }
    }
}

/// Collects the names of the sockets of these processes. The kernel lists the names of all
/// processes; those of other jobs are skipped.
fn find_names(pids: &[i32], shared: &Shared) {
    let mut seen = BTreeSet::new();
    while !shared.over.load(Ordering::Relaxed) {
        let list = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        for line in list.lines().filter(|line| line.contains("@rushmem-")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [.., inode, name] = words[..] else {
                continue;
            };

            if seen.insert(inode.to_owned()) && belongs_to(pids, inode) {
                let name = name.trim_start_matches('@').to_owned();
                shared.names.lock().expect("no panic").insert(name);
            }
        }
        thread::yield_now();
    }
}

fn belongs_to(pids: &[i32], inode: &str) -> bool {
    let socket = format!("socket:[{inode}]");
    for pid in pids {
        // The process may have ended.
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        for descriptor in descriptors.flatten() {
            if fs::read_link(descriptor.path()).is_ok_and(|file| file == Path::new(&socket)) {
                return true;
            }
        }
    }
    false
}

fn attack(shared: &Shared) {
    if rustix::process::geteuid().is_root() {
        rustix::thread::set_thread_uid(Uid::from_raw(65534)).expect("root may");
    }

    while !shared.over.load(Ordering::Relaxed) {
        let names = shared.names.lock().expect("no panic").clone();
        for name in names {
            if send(&name) == Err(Errno::AGAIN) {
                shared.filled.lock().expect("no panic").insert(name);
            }
        }
        thread::yield_now();
    }
}

fn send(name: &str) -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    rustix::net::connect(&socket, &address)?;
    rustix::net::send(&socket, &[0xA5; 1000], SendFlags::NOSIGNAL).map(drop)
}
