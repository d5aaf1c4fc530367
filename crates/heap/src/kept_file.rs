//! A file that the library keeps open beside the program's own, which may close its descriptor:
//! some programs close all descriptors that they do not know.

use rustix::fs::fstat;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A file, and what shows that its descriptor still refers to it.
#[derive(Debug)]
pub(crate) struct KeptFile {
    file: OwnedFd,
    identity: FileIdentity,
}

/// The device and the inode of a file, which identify it as long as it is open or mapped.
#[derive(Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl KeptFile {
    pub(crate) fn new(file: OwnedFd) -> Result<KeptFile, Errno> {
        let identity = FileIdentity::of(&file)?;
        Ok(KeptFile { file, identity })
    }

    /// Returns the descriptor; `None` if the program has closed it, also if it is open again as
    /// that of another file.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let now = FileIdentity::of(&self.file).ok()?;
        if now == self.identity {
            Some(self.file.as_fd())
        } else {
            None
        }
    }
}

impl FileIdentity {
    fn of(file: &OwnedFd) -> Result<FileIdentity, Errno> {
        let stat = fstat(file)?;
        Ok(FileIdentity {
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }
}
