//! The socket between the old and the new process of an upgrade. Each packet is a message in JSON,
//! and may carry a listening socket or purges. A process ignores unknown messages, so the two
//! processes may have different versions of foxy.

use crate::serve::activation::Purpose;
use foxy_base::{Instant, clock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Version of the messages that the old and the new process exchange.
pub const VERSION: u32 = 1;
/// Size in bytes of the largest packet.
pub const MAX_PACKET_BYTES: usize = 64 << 10;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// First message of the old process. `sockets` is the number of `Socket` packets that follow.
    Hello { version: u32, sockets: usize },
    /// The packet carries a listening socket. `is_given` is true if systemd opened it.
    Socket { purpose: Purpose, is_given: bool },
    /// The new process announces that it will take idle client connections once it serves.
    TakesClients,
    /// The new process is ready to open the stores.
    Ready,
    /// The old process has closed its stores, so the new process may open them.
    TakeStores,
    /// The new process serves.
    Serving,
    /// This process stops, or is replaced itself. The older process must not serve again.
    Leaving,
    /// The new process ends, with this error.
    Failed(String),
    /// The packet carries an idle client connection, which the new process must serve.
    Client { peer: SocketAddr },
    /// The packet carries an idle client connection of a transparent listener. `aimed_at` is the
    /// address to which the client connected.
    TransparentClient { peer: SocketAddr, aimed_at: SocketAddr },
    /// The packet carries purges for the new process. The number identifies this message.
    Purge(u64),
    /// Answers the `Purge` message with the first number. The second number is the number of the
    /// newest purge, or `None` if the purge failed.
    Purged(u64, Option<u64>),
}

#[derive(Debug)]
pub struct Packet {
    pub message: Message,
    pub content: Vec<u8>,
    pub descriptor: Option<OwnedFd>,
}

/// The reason why no packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPacket {
    /// The other process has ended.
    Ended,
    Late,
}

#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    pub const fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Returns this process's end of a new socket pair, and the socket for the other process.
    pub fn pair() -> std::io::Result<(Self, OwnedFd)> {
        let (mine, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(mine), other))
    }

    /// Sends a message, with `content` and a descriptor. If the other process does not read, waits
    /// up to `limit`. Returns whether the message was sent.
    pub fn send(
        &self,
        message: &Message,
        content: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
        limit: Duration,
    ) -> bool {
        let Ok(mut head) = serde_json::to_vec(message) else { return false };
        head.push(b'\n');
        let until = clock::monotonic() + limit;
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let descriptors = descriptor.map(|descriptor| [descriptor]);
            if let Some(descriptors) = &descriptors {
                control.push(SendAncillaryMessage::ScmRights(descriptors));
            }
            let parts = [IoSlice::new(&head), IoSlice::new(content)];
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match retry_on_intr(|| sendmsg(&self.0, &parts, &mut control, flags)) {
                Ok(_) => return true,
                Err(Errno::AGAIN) if self.is_ready(PollFlags::OUT, Some(until)) => {}
                Err(_) => return false,
            }
        }
    }

    /// Sends a message without content or descriptor. Waits up to a second.
    pub fn tell(&self, message: &Message) -> bool {
        self.send(message, &[], None, Duration::from_secs(1))
    }

    /// Waits for the next message that this process knows, at most until the time `until`.
    pub fn receive(&self, until: Option<Instant>) -> Result<Packet, NoPacket> {
        let mut bytes = vec![0; MAX_PACKET_BYTES];
        loop {
            if !self.is_ready(PollFlags::IN, until) {
                return Err(NoPacket::Late);
            }
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let received = match retry_on_intr(|| recvmsg(&self.0, &mut parts, &mut control, flags))
            {
                Ok(received) if received.bytes > 0 => received.bytes,
                Ok(_) | Err(_) => return Err(NoPacket::Ended),
            };
            let descriptor = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
                _ => None,
            });
            let mut halves = bytes[..received].splitn(2, |byte| *byte == b'\n');
            let (head, content) = (halves.next(), halves.next().unwrap_or_default());
            if let Some(message) = head.and_then(|head| serde_json::from_slice(head).ok()) {
                return Ok(Packet { message, content: content.to_vec(), descriptor });
            }
        }
    }

    /// Waits until the socket can be read or written, as `flags` says. Returns false at the time
    /// `until`.
    fn is_ready(&self, flags: PollFlags, until: Option<Instant>) -> bool {
        loop {
            let left = until.map(|until| until.since(clock::monotonic()));
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.0, flags)], limit.as_ref()) {
                Ok(0) => return false,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    #[test]
    fn a_packet_carries_a_socket_and_unknown_messages_are_skipped() {
        let (link, other) = Link::pair().expect("a pair");
        let other = Link::new(other);
        rustix::net::send(&link.0, b"{\"Sing\":7}\n", SendFlags::empty()).expect("sent");
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let message = Message::Socket { purpose: Purpose::Listen, is_given: true };
        assert!(link.send(&message, b"a\nb", Some(listener.as_fd()), Duration::ZERO));
        let packet = other.receive(None).expect("sent");
        assert_eq!((packet.message, &*packet.content), (message, &b"a\nb"[..]));
        let copy = TcpListener::from(packet.descriptor.expect("sent"));
        assert_eq!(copy.local_addr().ok(), listener.local_addr().ok());
        assert_eq!(other.receive(Some(Instant::ZERO)).err(), Some(NoPacket::Late));
        drop(link);
        assert_eq!(other.receive(None).err(), Some(NoPacket::Ended));
        assert!(!other.tell(&Message::Ready));
    }
}
