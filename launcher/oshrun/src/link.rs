//! oshrun's end of the socket to one PE: it reads bytes when the job asks for them, and writes frames in the background.
//!
//! It knows nothing of messages. The job does the reading, so that it can empty the socket as soon as it learns that a PE
//! has exited. A PE that has exited is no error; any other failure of a system call is, since the
//! PE would wait for ever.

use std::io;
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// The connection to one PE; dropping it closes the socket.
#[derive(Debug)]
pub struct Link {
    socket: Arc<UnixStream>,
    frames: mpsc::UnboundedSender<Arc<[u8]>>,
    /// Why frames cannot be sent any more.
    unsendable: Arc<OnceLock<io::Error>>,
    tasks: [AbortHandle; 2],
}

impl Link {
    /// Takes the socket of PE `pe`, which is announced on `readable` whenever something has
    /// arrived, or nothing can be sent any more.
    pub fn new(
        pe: u32,
        socket: std::os::unix::net::UnixStream,
        readable: mpsc::UnboundedSender<u32>,
    ) -> io::Result<Link> {
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UnixStream::from_std(socket)?);
        let (frames, queue) = mpsc::unbounded_channel();
        let unsendable = Arc::new(OnceLock::new());
        let sent = {
            let (socket, readable) = (socket.clone(), readable.clone());
            let unsendable = unsendable.clone();
            async move {
                if let Err(error) = send(&socket, queue).await {
                    // It is set once, and the job reads it as long as it runs.
                    let _ = unsendable.set(error);
                    let _ = readable.send(pe);
                }
            }
        };
        let tasks = [
            tokio::spawn(announce(socket.clone(), pe, readable)).abort_handle(),
            tokio::spawn(sent).abort_handle(),
        ];
        Ok(Link { socket, frames, unsendable, tasks })
    }

    /// Queues a frame. A frame for a PE that has ended is dropped.
    pub fn send(&self, frame: Arc<[u8]>) {
        let _ = self.frames.send(frame);
    }

    /// Why frames cannot be sent to a PE that runs.
    pub fn unsendable(&self) -> Option<&io::Error> {
        self.unsendable.get()
    }

    /// Reads as many of the arrived bytes as fit; 0 if there are none now, or none any more.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::net::recv(&self.socket, &mut *bytes, RecvFlags::DONTWAIT) {
                Ok((nbytes, _)) => return Ok(nbytes),
                Err(Errno::INTR) => {}
                // A PE that exits without reading everything resets the connection.
                Err(Errno::AGAIN | Errno::CONNRESET) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Announces the PE whenever bytes arrive, and once more at the end, which stays ready for ever. The job then reads
/// everything, so readiness is cleared without reading.
async fn announce(socket: Arc<UnixStream>, pe: u32, readable: mpsc::UnboundedSender<u32>) {
    while let Ok(ready) = socket.ready(Interest::READABLE).await {
        let _ =
            socket.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        if readable.send(pe).is_err() || ready.is_read_closed() {
            return;
        }
    }
}

/// Sends the queued frames as long as the PE reads them.
///
/// # Errors
/// When the kernel refuses, although the PE has not exited.
async fn send(
    socket: &UnixStream,
    mut queue: mpsc::UnboundedReceiver<Arc<[u8]>>,
) -> io::Result<()> {
    while let Some(frame) = queue.recv().await {
        let mut rest = &frame[..];
        while !rest.is_empty() {
            match socket.try_write(rest) {
                Ok(nbytes) => rest = &rest[nbytes..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.writable().await?;
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
