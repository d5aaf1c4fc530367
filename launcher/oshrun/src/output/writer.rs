//! Threads that write the output of a job to oshrun's streams and to the files of `--output-files`.
//!
//! Each stream has a thread, and all files share one. A thread may block: a stopped reader or a
//! slow file system delays only its destinations and the PEs that write to them. The threads write
//! bytes, without regard to lines and PEs.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::errors::{StartFailure, reason};

/// Capacity of a writer's queue in chunks: whole lines, or a piece of a long line. PEs wait while
/// the queue is full.
const QUEUE: usize = 8;

/// A destination of output.
pub struct OutputSink {
    /// The name for messages, such as "standard output" or "the file out/3.err".
    name: String,
    fd: Box<dyn AsFd + Send + Sync>,
    /// True if this was a terminal when the job started.
    is_terminal: bool,

    // Relaxed: the flags publish no other data. A chunk that is queued before a flag is seen is
    // dropped by the writer thread, which sets the flags itself.
    /// True if output was lost; nothing more is written then.
    is_lost: AtomicBool,
    /// True if the reader has closed the destination.
    is_unread: AtomicBool,
}

impl OutputSink {
    /// Creates a destination from an open file or stream, with its name for messages.
    pub fn new(name: String, fd: impl AsFd + Send + Sync + 'static) -> OutputSink {
        OutputSink {
            name,
            is_terminal: rustix::termios::isatty(&fd),
            fd: Box::new(fd),
            is_lost: AtomicBool::new(false),
            is_unread: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for OutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Bytes that a thread writes to a destination.
#[derive(Debug)]
struct Chunk {
    destination: Arc<OutputSink>,
    bytes: Vec<u8>,
}

/// A handle of a writer thread, which ends when all handles are dropped.
#[derive(Clone, Debug)]
pub struct Writer(mpsc::Sender<Chunk>);

impl Writer {
    /// Starts a thread. It reports a failure to `losses`, once for each destination. The returned
    /// receiver resolves when the thread has ended.
    pub fn start(
        losses: mpsc::UnboundedSender<String>,
    ) -> io::Result<(Writer, oneshot::Receiver<()>)> {
        // With a handler for SIGXFSZ, a write beyond the limit of ulimit -f fails, and does not
        // kill this process.
        drop(signal(SignalKind::from_raw(libc::SIGXFSZ))?);

        let (chunks, queue) = mpsc::channel(QUEUE);
        let (done, written) = oneshot::channel::<()>();
        std::thread::Builder::new().spawn(move || {
            write_chunks(queue, &losses);
            drop(done);
        })?;
        Ok((Writer(chunks), written))
    }

    /// Queues a chunk. Returns false if the reader has closed the destination.
    pub async fn write(&self, destination: &Arc<OutputSink>, bytes: Vec<u8>) -> bool {
        if destination.is_unread.load(Ordering::Relaxed) {
            return false;
        }

        let chunk = Chunk {
            destination: destination.clone(),
            bytes,
        };
        let is_queued = self.0.send(chunk).await.is_ok();
        // The thread may have detected it while this task waited for room.
        is_queued && !destination.is_unread.load(Ordering::Relaxed)
    }
}

/// Writes chunks until all handles are dropped. A closed or failed destination does not affect
/// others.
fn write_chunks(mut queue: mpsc::Receiver<Chunk>, losses: &mpsc::UnboundedSender<String>) {
    while let Some(Chunk { destination, bytes }) = queue.blocking_recv() {
        let is_lost = destination.is_lost.load(Ordering::Relaxed);
        let is_unread = destination.is_unread.load(Ordering::Relaxed);
        if is_lost || is_unread {
            continue;
        }

        match write_all(destination.fd.as_fd(), &bytes) {
            Ok(()) => {}
            Err(Errno::PIPE) => destination.is_unread.store(true, Ordering::Relaxed),
            // The terminal was closed. A job that survives the hang-up goes on, as programs do that
            // print to the terminal themselves.
            Err(Errno::IO) if destination.is_terminal => {
                destination.is_lost.store(true, Ordering::Relaxed);
            }
            Err(error) => {
                destination.is_lost.store(true, Ordering::Relaxed);
                let reason = reason(&error.into());
                // This fails if the job has ended and nobody handles losses any more.
                let _ = losses.send(format!("cannot write to {}: {reason}", destination.name));
            }
        }
    }
}

fn write_all(fd: BorrowedFd<'_>, mut rest: &[u8]) -> Result<(), Errno> {
    while !rest.is_empty() {
        match rustix::io::write(fd, rest) {
            Ok(nbytes) => rest = &rest[nbytes..],
            Err(Errno::INTR) => {}
            // Another process has made the shared stream non-blocking.
            Err(Errno::AGAIN) => {
                // If a signal interrupts this, the loop comes here again.
                let _ = rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The files of `--output-files` of the PEs of this host: two for each PE.
#[derive(Debug)]
pub struct Files {
    first: u32,
    files: Vec<[Arc<OutputSink>; 2]>,
}

impl Files {
    /// Creates the directory, unless it exists, and empty files for these PEs.
    pub fn create(dir: &Path, pes: Range<u32>) -> Result<Files, StartFailure> {
        std::fs::create_dir_all(dir).map_err(|error| cannot_create("directory", dir, &error))?;

        let first = pes.start;
        let mut files = Vec::new();
        for pe in pes {
            let out = create(&dir.join(format!("{pe}.out")))?;
            let err = create(&dir.join(format!("{pe}.err")))?;
            files.push([out, err]);
        }
        Ok(Files { first, files })
    }

    /// Returns the files of a PE, for standard output and standard error.
    pub fn files(&self, pe: u32) -> [Arc<OutputSink>; 2] {
        self.files[(pe - self.first) as usize].clone()
    }
}

fn create(path: &Path) -> Result<Arc<OutputSink>, StartFailure> {
    let file = File::create(path).map_err(|error| cannot_create("file", path, &error))?;
    let name = format!("the file {}", path.display());
    Ok(Arc::new(OutputSink::new(name, file)))
}

fn cannot_create(what: &str, path: &Path, error: &io::Error) -> StartFailure {
    StartFailure::general(format!(
        "cannot create the {what} {} for output: {}; give --output-files a directory in which you may create files",
        path.display(),
        reason(error)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[tokio::test]
    async fn a_closed_destination_does_not_affect_others() {
        let (reader, unread) = io::pipe().expect("a pipe");
        drop(reader);
        let mut file = File::from(
            rustix::fs::memfd_create("kept", rustix::fs::MemfdFlags::CLOEXEC).expect("a file"),
        );
        let unread = Arc::new(OutputSink::new("a pipe".to_string(), unread));
        let kept = Arc::new(OutputSink::new(
            "a file".to_string(),
            file.try_clone().expect("a descriptor"),
        ));

        let (loss_sender, mut losses) = mpsc::unbounded_channel();
        let (writer, written) = Writer::start(loss_sender).expect("a thread");
        // The thread detects this when it writes.
        while writer.write(&unread, b"lost".to_vec()).await {
            tokio::task::yield_now().await;
        }
        assert!(writer.write(&kept, b"kept".to_vec()).await);
        drop(writer);
        assert!(written.await.is_err(), "nothing is sent");

        let mut text = String::new();
        file.rewind().expect("a file");
        file.read_to_string(&mut text).expect("text");
        assert_eq!(text, "kept");
        assert_eq!(losses.recv().await, None);
    }
}
