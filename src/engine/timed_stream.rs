//! Socket of a handshake, which must end in time however its bytes are spread.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Socket with one deadline for all reads and writes together, so that a peer cannot gain time by
/// sending bytes slowly.
pub(super) struct TimedStream<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl<'a> TimedStream<'a> {
    /// Gives all reads and writes of `stream` together the time `patience`, from now on.
    pub(super) fn new(stream: &'a TcpStream, patience: Duration) -> TimedStream<'a> {
        TimedStream { stream, deadline: Instant::now() + patience }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its handshake took too long"));
        }
        Ok(Some(left))
    }
}

impl Read for TimedStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}

impl Write for TimedStream<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        let mut stream = self.stream;
        stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
