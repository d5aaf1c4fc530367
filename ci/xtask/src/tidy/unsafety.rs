//! Where unsafe code may stand, and which crate alone maps memory.

use super::{Tree, code};

/// Files, or folders with a slash at the end, that may hold unsafe code. An entry that holds none is
/// a complaint too, so that the list stays as short as it can be.
const MAY_BE_UNSAFE: &[&str] = &[
    "crates/bootstrap/src/inherited.rs",
    "crates/bootstrap/src/managed/mpi.rs",
    "crates/bootstrap/src/managed/pmix.rs",
    "crates/bootstrap/src/managed/watch.rs",
    "crates/heap/src/allocator.rs",
    "crates/heap/src/node.rs",
    "crates/heap/src/numa.rs",
    "crates/heap/src/statics.rs",
    "crates/heap/src/statics/",
    "crates/runtime/src/address.rs",
    "crates/runtime/src/alltoallv.rs",
    "crates/runtime/src/amo.rs",
    "crates/runtime/src/call.rs",
    "crates/runtime/src/combine.rs",
    "crates/runtime/src/internal.rs",
    "crates/runtime/src/lock.rs",
    "crates/runtime/src/lock/word.rs",
    "crates/runtime/src/memory.rs",
    "crates/runtime/src/neighbour.rs",
    "crates/runtime/src/object.rs",
    "crates/runtime/src/order.rs",
    "crates/runtime/src/range.rs",
    "crates/runtime/src/remote.rs",
    "crates/runtime/src/rma.rs",
    "crates/runtime/src/setup.rs",
    "crates/runtime/src/setup/child.rs",
    "crates/runtime/src/setup/connect.rs",
    "crates/runtime/src/setup/leave.rs",
    "crates/runtime/src/setup/probe.rs",
    "crates/runtime/src/setup/threads.rs",
    "crates/runtime/src/signal.rs",
    "crates/runtime/src/statics.rs",
    "crates/runtime/src/stdio.rs",
    "crates/runtime/src/wait.rs",
    "crates/shmem-c/src/",
    "crates/shmem-c/tests/fallback.rs",
    "crates/topology/src/hwloc.rs",
    "crates/transport-ofi/src/atomics.rs",
    "crates/transport-ofi/src/block.rs",
    "crates/transport-ofi/src/choice.rs",
    "crates/transport-ofi/src/defaults.rs",
    "crates/transport-ofi/src/endpoint.rs",
    "crates/transport-ofi/src/fabric.rs",
    "crates/transport-ofi/src/fid.rs",
    "crates/transport-ofi/src/lane.rs",
    "crates/transport-ofi/src/lane/atomic.rs",
    "crates/transport-ofi/src/ofi.rs",
    "crates/transport-ofi/src/origin.rs",
    "crates/transport-ofi/src/service.rs",
    "crates/transport-ofi/src/shared.rs",
    "crates/transport-tcp/",
    "crates/transport-ucx/src/area.rs",
    "crates/transport-ucx/src/endpoint.rs",
    "crates/transport-ucx/src/origin.rs",
    "crates/transport-ucx/src/origin/held.rs",
    "crates/transport-ucx/src/origin/order.rs",
    "crates/transport-ucx/src/pending.rs",
    "crates/transport-ucx/src/probe.rs",
    "crates/transport-ucx/src/sys.rs",
    "crates/transport-ucx/src/target.rs",
    "crates/transport-ucx/src/transport.rs",
    "crates/transport-ucx/src/ucp.rs",
    "crates/transport-ucx/src/ucp/",
    "crates/transport-ucx/tests/loss.rs",
    "crates/transport/src/conformance/",
    "crates/transport/src/endpoint.rs",
    "crates/transport/src/kit/segments.rs",
    "crates/transport/src/mem/",
    "crates/transport/src/null.rs",
    "crates/transport/src/provider.rs",
    "crates/transport/src/thread.rs",
    "crates/transport/src/verbs.rs",
    "launcher/oshrun/src/guard.rs",
    "launcher/oshrun/src/input.rs",
    "launcher/oshrun/src/signals.rs",
    "launcher/oshrun/src/spawn.rs",
    "sys/",
];

/// The crate that alone maps memory.
const MAPS_MEMORY: &str = "crates/heap/";
const MAPPING: &[&str] = &["mmap", "mmap64", "mmap_anonymous", "mremap", "munmap"];

pub fn check(tree: &Tree) -> Vec<String> {
    against(tree, MAY_BE_UNSAFE)
}

fn against(tree: &Tree, may_be_unsafe: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut used = vec![false; may_be_unsafe.len()];
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let code = code::only(&file.text);
        if let Some(line) = code::lines_with(&code, &["unsafe"]).first() {
            let entry = may_be_unsafe.iter().position(|entry| covers(entry, &file.path));
            match entry {
                Some(entry) => used[entry] = true,
                None => complaints.push(format!(
                    "{}:{line}: unsafe code in a file that the list of those that may be unsafe does not name",
                    file.path
                )),
            }
        }
        if !file.path.starts_with(MAPS_MEMORY) {
            for line in code::lines_with(&code, MAPPING) {
                complaints.push(format!("{}:{line}: only {MAPS_MEMORY} maps memory", file.path));
            }
        }
        if is_crate_root(&file.path) && !file.text.contains("#![forbid(unsafe_code)]") {
            let folder = file.path.split("src/").next().unwrap_or_default();
            let needs_unsafe = |entry: &&str| entry.starts_with(folder) || covers(entry, folder);
            if !may_be_unsafe.iter().any(needs_unsafe) {
                complaints.push(format!(
                    "{}: its crate needs no unsafe code, so say #![forbid(unsafe_code)]",
                    file.path
                ));
            }
        }
    }
    for (entry, used) in may_be_unsafe.iter().zip(used) {
        if !used {
            complaints.push(format!(
                "{entry}: it holds no unsafe code, so it need not be in the list of what may be unsafe"
            ));
        }
    }
    complaints
}

fn covers(entry: &str, path: &str) -> bool {
    path == entry || entry.ends_with('/') && path.starts_with(entry)
}

fn is_crate_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree;

    #[test]
    fn unsafe_code_stands_only_where_the_list_says() {
        let tree = tree(&[("crates/a/src/raw.rs", "//! Why.\nunsafe fn f() {}\n")]);
        assert!(against(&tree, &["crates/a/src/raw.rs"]).is_empty());
        assert!(against(&tree, &["crates/a/"]).is_empty());
        assert_eq!(against(&tree, &[]).len(), 1);
    }

    #[test]
    fn an_entry_without_unsafe_code_is_stale() {
        let tree = tree(&[("crates/a/src/raw.rs", "//! unsafe in words alone\n")]);
        assert_eq!(against(&tree, &["crates/a/src/raw.rs"]).len(), 1);
    }

    #[test]
    fn a_crate_without_unsafe_code_forbids_it() {
        let open = tree(&[("crates/a/src/lib.rs", "//! Why.\n")]);
        assert_eq!(against(&open, &[]).len(), 1);
        let closed = tree(&[("crates/a/src/lib.rs", "//! Why.\n#![forbid(unsafe_code)]\n")]);
        assert!(against(&closed, &[]).is_empty());
        let needed =
            tree(&[("crates/a/src/lib.rs", "//! Why.\n"), ("crates/a/src/raw.rs", "unsafe {}")]);
        assert!(against(&needed, &["crates/a/src/raw.rs"]).is_empty());
    }

    #[test]
    fn only_the_heap_maps_memory() {
        let text = "//! Why.\nfn f() { rustix::mm::mmap_anonymous(); }\n";
        assert!(against(&tree(&[("crates/heap/src/map.rs", text)]), &[]).is_empty());
        assert_eq!(against(&tree(&[("crates/runtime/src/map.rs", text)]), &[]).len(), 1);
    }
}
