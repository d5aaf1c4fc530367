//! The identity of the build of this library. PEs of two builds may choose different algorithms or
//! read each other's data differently, so no job runs with both.

use crate::start::error::StartError;
use rushmem_bootstrap::{Membership, Records};
use rushmem_pe::digest::{digest, digest_of_text};
use rushmem_pe::memory::statics;
use rushmem_system::host::host_name;
use rushmem_transport::Provider;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The digest of the sources that decide what PEs do together, and of the processor's architecture.
/// The directories, the compiler and the profile of the build do not count. Two PEs with equal
/// builds agree on all algorithms, on the layout of their memory, and on what they send each other.
///
/// The sources of the interfaces in C and Rust are not among these: what they do between PEs, they
/// do by calls of the runtime. So a change of the calls that one of them makes is not noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build(u64);

/// Number of bytes of a build, as a record begins with them.
const NBYTES: usize = size_of::<u64>();

impl Build {
    /// Returns the build of this library with these providers.
    pub fn of(providers: &[Provider]) -> Build {
        let mut parts = vec![
            rushmem_bootstrap::SOURCES,
            rushmem_collectives::SOURCES,
            rushmem_communication::SOURCES,
            rushmem_connect::SOURCES,
            rushmem_explain::SOURCES,
            rushmem_heap::SOURCES,
            rushmem_pe::SOURCES,
            rushmem_system::SOURCES,
            rushmem_topology::SOURCES,
            rushmem_trace::SOURCES,
            rushmem_transport::SOURCES,
            rushmem_derive::digest_of_sources!(),
            digest_of_text(std::env::consts::ARCH),
            u64::from(cfg!(target_endian = "big")),
        ];
        parts.extend(providers.iter().map(|provider| provider.sources));
        Build(digest(&parts))
    }

    /// Exchanges the records of all PEs.
    ///
    /// # Errors
    /// If they are not of one build.
    pub(crate) fn exchange_with_equal_builds(
        self,
        membership: &mut Membership,
        own: &[u8],
    ) -> Result<Records, StartError> {
        let records = membership.exchange(&self.before(own))?;
        match self.without(records) {
            Ok(records) => Ok(records),
            Err(OtherBuild(None)) => Err(StartError::ChangedRecords),
            Err(OtherBuild(Some(pe))) => Err(self.describe_both(membership, pe)),
        }
    }

    /// Returns a record with the build before it, as PEs send it.
    pub(crate) fn before(self, record: &[u8]) -> Vec<u8> {
        [&self.0.to_le_bytes(), record].concat()
    }

    /// Returns the records of all PEs without the builds before them.
    ///
    /// # Errors
    /// If the PEs are not of this build.
    pub(crate) fn without(self, records: Records) -> Result<Records, OtherBuild> {
        let other = records.position(|record| Build::of_record(record) != Some(self));
        if other.is_some() {
            let of_pe_0 = Build::of_record(&records[0]);
            let other = records.position(|record| Build::of_record(record) != of_pe_0);
            return Err(OtherBuild(other));
        }
        let Ok(records) = records.try_map(|record| Ok::<_, Infallible>(record[NBYTES..].to_vec()));
        Ok(records)
    }

    /// Returns the build before a record; `None` if the record is too short for one.
    fn of_record(record: &[u8]) -> Option<Build> {
        let build = record.first_chunk::<NBYTES>()?;
        Some(Build(u64::from_le_bytes(*build)))
    }

    /// Describes PE 0 and PE `pe`, which have different builds. All PEs exchange a text for it: the
    /// only data that PEs of two builds exchange, so its encoding must not change.
    fn describe_both(self, membership: &mut Membership, pe: u32) -> StartError {
        let described = membership.exchange(self.described().as_bytes());
        let describe = |pe: u32| match &described {
            Ok(texts) => String::from_utf8_lossy(&texts[pe]).into_owned(),
            // A build that does not describe itself has ended instead.
            Err(_) => "another one".to_owned(),
        };
        StartError::Builds {
            pe,
            first: describe(0),
            other: describe(pe),
        }
    }

    /// Describes this build to users of other hosts.
    fn described(self) -> String {
        let here = statics::object_holding((Build::of as *const ()).cast());
        let library = here
            .map(|object| object.name)
            .filter(|name| !name.is_empty());
        let file = match library {
            Some(name) => PathBuf::from(OsString::from_vec(name)),
            // The program itself carries the library.
            None => std::env::current_exe().unwrap_or_default(),
        };
        format!("build {self} in {} on host {}", file.display(), host_name())
    }
}

/// The first PE whose build is not that of PE 0; `None` if all PEs have one build, which is not
/// that of this PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherBuild(pub(crate) Option<u32>);

impl Display for Build {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
