//! The limits of the control groups of this process.

use rushmem_topology::GroupLimit;

use super::bound::{Resource, ResourceLimit};

/// Returns the bounds of all groups that contain this process.
pub fn find() -> impl Iterator<Item = ResourceLimit> {
    let of = |resource, remedy| {
        move |of: GroupLimit| ResourceLimit {
            resource,
            source: of.file.display().to_string(),
            limit: of.limit,
            used: of.used,
            remedy,
        }
    };
    let tasks = "start fewer PEs, or ask the administrator of this host for a higher limit";
    let memory = "start fewer PEs, or request more memory for this job";
    let tasks = GroupLimit::of_tasks().into_iter().map(of(Resource::Tasks, tasks));
    tasks.chain(GroupLimit::of_memory().into_iter().map(of(Resource::Memory, memory)))
}
