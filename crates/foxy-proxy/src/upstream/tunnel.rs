//! Bytes both ways between a client and an origin, after CONNECT or an upgrade. What passes is nobody's business
//! here; only its amount and its silence are.

use bytes::Bytes;
use std::cell::Cell;
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::Instant;

/// Bytes held for one direction, only while they are on their way.
const BUFFER: usize = 16 << 10;

/// The two ends of a tunnel, and what was read too far before it opened.
#[derive(Debug)]
pub struct Tunnel<'a> {
    /// The client's connection.
    pub client: &'a mut TcpStream,
    /// What the client sent after its request.
    pub from_client: Bytes,
    /// The origin's connection.
    pub origin: TcpStream,
    /// What the origin sent after its response head.
    pub from_origin: Bytes,
}

/// How a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TunnelEnd {
    /// Both sides closed.
    Closed,
    /// Nothing passed for too long.
    Idle,
    /// A side reset its connection.
    Reset,
}

/// What passed through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelReport {
    /// Bytes from the client to the origin.
    pub to_origin: u64,
    /// Bytes from the origin to the client.
    pub to_client: u64,
    /// How it ended.
    pub end: TunnelEnd,
}

/// What both directions know of each other.
struct Activity {
    last: Cell<Instant>,
}

impl Tunnel<'_> {
    /// Carries bytes until both sides have closed, one was reset, or nothing passed for `idle`. A side that closes
    /// its sending half has that passed on, and may still receive.
    pub async fn run(self, idle: Duration) -> TunnelReport {
        let Self { client, from_client, mut origin, from_origin } = self;
        let activity = Activity { last: Cell::new(Instant::now()) };
        let (to_origin, to_client) = (Cell::new(0), Cell::new(0));
        let (client_reads, client_writes) = client.split();
        let (origin_reads, origin_writes) = origin.split();
        let carried = async {
            tokio::try_join!(
                carry(client_reads, origin_writes, from_client, &activity, &to_origin),
                carry(origin_reads, client_writes, from_origin, &activity, &to_client),
            )
        };
        let end = tokio::select! {
            carried = carried => if carried.is_ok() { TunnelEnd::Closed } else { TunnelEnd::Reset },
            () = activity.silent_for(idle) => TunnelEnd::Idle,
        };
        TunnelReport { to_origin: to_origin.get(), to_client: to_client.get(), end }
    }
}

impl Activity {
    async fn silent_for(&self, idle: Duration) {
        loop {
            let deadline = self.last.get() + idle;
            if deadline <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }
}

/// One direction, to the end of what `from` sends.
async fn carry(
    from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    first: Bytes,
    activity: &Activity,
    count: &Cell<u64>,
) -> io::Result<()> {
    send(&mut to, &first, activity, count).await?;
    drop(first);
    loop {
        from.readable().await?;
        let mut buffer = Vec::with_capacity(BUFFER);
        loop {
            buffer.clear();
            match from.try_read_buf(&mut buffer) {
                Ok(0) => return to.shutdown().await,
                Ok(_) => send(&mut to, &buffer, activity, count).await?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Sends all of `bytes`; each part that is taken is a sign of life.
async fn send(
    to: &mut WriteHalf<'_>,
    mut bytes: &[u8],
    activity: &Activity,
    count: &Cell<u64>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = to.write(bytes).await?;
        bytes = &bytes[written..];
        count.set(count.get() + written as u64);
        activity.last.set(Instant::now());
    }
    Ok(())
}

#[cfg(test)]
#[path = "tunnel_tests.rs"]
mod tests;
