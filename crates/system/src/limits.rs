//! The limits of this process.
#![allow(unsafe_code)]

use rustix::process::{Resource, Rlimit};
use std::mem::MaybeUninit;

/// Returns the limits of a resource. There are none if a filter of system calls refuses to tell
/// them; `rustix::process::getrlimit` relies on the kernel to tell them, and would invent some.
pub fn getrlimit(resource: Resource) -> Rlimit {
    let mut limits = MaybeUninit::<libc::rlimit64>::uninit();
    // SAFETY: the pointer is valid for writes of the type.
    let code =
        unsafe { libc::getrlimit64(resource as libc::__rlimit_resource_t, limits.as_mut_ptr()) };
    if code != 0 {
        return Rlimit {
            current: None,
            maximum: None,
        };
    }

    // SAFETY: the call has succeeded, so it has written them.
    let limits = unsafe { limits.assume_init() };
    let finite = |limit| (limit != libc::RLIM64_INFINITY).then_some(limit);
    Rlimit {
        current: finite(limits.rlim_cur),
        maximum: finite(limits.rlim_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "no filter refuses the call here")]
    fn limits_are_those_of_the_kernel() {
        for resource in [
            Resource::Nofile,
            Resource::Core,
            Resource::As,
            Resource::Stack,
        ] {
            assert_eq!(getrlimit(resource), rustix::process::getrlimit(resource));
        }
    }
}
