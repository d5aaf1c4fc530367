//! oshrun's end of the socket to one PE: it reads bytes when the job asks for them, and writes frames in the background.
//!
//! It knows nothing of messages. The job does the reading, so that it can empty the socket as soon as it learns that a PE
//! has exited.

use std::io;
use std::sync::Arc;

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
    tasks: [AbortHandle; 2],
}

impl Link {
    /// Takes the socket of PE `pe`, which is announced on `readable` whenever something has arrived.
    pub fn new(
        pe: u32,
        socket: std::os::unix::net::UnixStream,
        readable: mpsc::UnboundedSender<u32>,
    ) -> io::Result<Link> {
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UnixStream::from_std(socket)?);
        let (frames, queue) = mpsc::unbounded_channel();
        let tasks = [
            tokio::spawn(announce(socket.clone(), pe, readable)).abort_handle(),
            tokio::spawn(send(socket.clone(), queue)).abort_handle(),
        ];
        Ok(Link { socket, frames, tasks })
    }

    /// Queues a frame. A frame for a PE that has ended is dropped.
    pub fn send(&self, frame: Arc<[u8]>) {
        let _ = self.frames.send(frame);
    }

    /// Reads as many of the arrived bytes as fit; 0 if there are none now, or none any more.
    pub fn read(&self, bytes: &mut [u8]) -> usize {
        loop {
            match rustix::net::recv(&self.socket, &mut *bytes, RecvFlags::DONTWAIT) {
                Ok((nbytes, _)) => return nbytes,
                Err(Errno::INTR) => {}
                Err(_) => return 0,
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
async fn send(socket: Arc<UnixStream>, mut queue: mpsc::UnboundedReceiver<Arc<[u8]>>) {
    while let Some(frame) = queue.recv().await {
        let mut rest = &frame[..];
        while !rest.is_empty() {
            match socket.try_write(rest) {
                Ok(nbytes) => rest = &rest[nbytes..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if socket.writable().await.is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}
