//! The launcher's end of the socket to a PE.
//!
//! One task writes frames, another one reports that bytes have arrived. The caller reads them, so
//! that it can empty the socket when the PE has exited.
//!
//! The end of the connection when the PE exits is not an error. Any other failure of a system call
//! is one, since the PE would wait forever.

use std::io;
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// The socket to a PE; closed when dropped.
#[derive(Debug)]
pub struct PeSocket {
    socket: Arc<UnixStream>,
    frames: mpsc::UnboundedSender<Arc<[u8]>>,
    /// The error with which sending failed, if it did.
    send_error: Arc<OnceLock<io::Error>>,
    tasks: [AbortHandle; 2],
}

impl PeSocket {
    /// Takes the socket of PE `pe`. Sends `pe` to `readable` when bytes have arrived or sending
    /// failed.
    pub fn new(
        pe: u32,
        socket: std::os::unix::net::UnixStream,
        readable: mpsc::UnboundedSender<u32>,
    ) -> io::Result<PeSocket> {
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UnixStream::from_std(socket)?);
        let (frames, queue) = mpsc::unbounded_channel();
        let send_error = Arc::new(OnceLock::new());
        let receiving = announce(socket.clone(), pe, readable.clone());
        let sending = send_all(socket.clone(), pe, queue, send_error.clone(), readable);
        Ok(PeSocket {
            socket,
            frames,
            send_error,
            tasks: [
                tokio::spawn(receiving).abort_handle(),
                tokio::spawn(sending).abort_handle(),
            ],
        })
    }

    /// Queues a frame. A frame for a PE that has exited is dropped.
    pub fn send(&self, frame: Arc<[u8]>) {
        // The task that sends ends with the PE.
        let _ = self.frames.send(frame);
    }

    /// Returns the error if frames cannot be sent to a running PE.
    pub fn send_error(&self) -> Option<&io::Error> {
        self.send_error.get()
    }

    /// Reads bytes without blocking; 0 if there are none, or at the end.
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

impl Drop for PeSocket {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Sends `pe` to `readable` when bytes arrive, and once at the end of the stream.
async fn announce(socket: Arc<UnixStream>, pe: u32, readable: mpsc::UnboundedSender<u32>) {
    while let Ok(ready) = socket.ready(Interest::READABLE).await {
        // The receiver of `pe` reads everything. An operation that would block clears the readiness
        // without reading here; otherwise the next wait would return at once.
        let _ = socket.try_io(Interest::READABLE, || {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
        if readable.send(pe).is_err() || ready.is_read_closed() {
            return;
        }
    }
}

/// Sends the queued frames until the PE exits. If that fails, stores the error and sends `pe` to
/// `readable`.
async fn send_all(
    socket: Arc<UnixStream>,
    pe: u32,
    queue: mpsc::UnboundedReceiver<Arc<[u8]>>,
    send_error: Arc<OnceLock<io::Error>>,
    readable: mpsc::UnboundedSender<u32>,
) {
    if let Err(error) = send(&socket, queue).await {
        // The error is set only here, so this cannot fail.
        let _ = send_error.set(error);
        // If the receiver is gone, nobody handles PEs any more.
        let _ = readable.send(pe);
    }
}

/// Sends the queued frames until the PE exits.
///
/// # Errors
/// If a system call fails although the PE has not exited.
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
