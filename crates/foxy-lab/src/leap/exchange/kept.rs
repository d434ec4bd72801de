//! Keeps the idle connections of each path (proxy or origin), so that later copies of requests can
//! reuse them (RFC 9112 §9.3).

use super::Copying;
use crate::leap::{Asked, LeapRun, Manner, PathFailure};
use crate::named::named;
use crate::wire::http2::Http2Connection;
use crate::wire::tls::outbound::Channel;
use bytes::BytesMut;
use foxy_http::Scheme;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::time::timeout;

/// Whether copies of requests reuse connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connections {
    /// Each copy of a request opens a new connection.
    #[default]
    New,
    /// A copy of a request uses an idle connection, if any.
    Kept,
}

named! {
    /// The kind of connection on which LEAP sent a copy of a request.
    pub enum Carriage {
        /// A new connection.
        New = "new_connections",
        /// A reused connection.
        Kept = "kept_connections",
        /// A reused connection that the server had closed. The copy was repeated on a new
        /// connection (RFC 9110 §9.2.2).
        KeptThenNew = "kept_connections_closed",
    }
}

/// Whether a copy of the request may use an idle connection: connections are reused, and the
/// request has HTTP/1.1 and is safe to repeat. If the server closes the connection, LEAP cannot
/// know whether the request arrived.
pub fn may_keep(run: &LeapRun, asked: &Asked) -> bool {
    run.connections == Connections::Kept
        && asked.message.version == foxy_http::Version::Http11
        && asked.message.method.is_idempotent()
}

/// The server that a connection reaches: `None` for the proxy or origin itself, otherwise the
/// server that the URL names.
type Place = Option<(Scheme, Arc<str>)>;

fn place(copying: Copying<'_>) -> Place {
    let Copying { path, asked, .. } = copying;
    let is_own = asked.scheme == Scheme::Http && path.manner != Manner::Named;
    (!is_own).then(|| (asked.scheme, Arc::clone(&asked.authority)))
}

/// The idle connections to one proxy or to the origin. The most recently used connection is last.
#[derive(Debug, Default)]
struct IdleChannels {
    channels: VecDeque<(Place, Channel)>,
    frames: VecDeque<(Place, Http2Connection)>,
    surplus: u64,
}

#[derive(Debug)]
pub struct Kept {
    paths: RefCell<Vec<IdleChannels>>,
    most: usize,
}

impl Kept {
    pub fn new(paths: usize, most: usize) -> Self {
        let paths = std::iter::repeat_with(IdleChannels::default).take(paths).collect();
        Self { paths: RefCell::new(paths), most }
    }

    /// Takes an idle connection that is still usable. Drops connections that the server has closed,
    /// or on which unexpected bytes have arrived.
    pub fn take(&self, copying: Copying<'_>) -> Option<Channel> {
        let (place, waiting) = (place(copying), &mut self.paths.borrow_mut()[copying.place]);
        loop {
            let found = waiting.channels.iter().rposition(|(its, _)| *its == place)?;
            let (_, mut channel) = waiting.channels.remove(found)?;
            match state(&mut channel) {
                State::Silent => return Some(channel),
                State::Closed => {}
                State::Surplus => waiting.surplus += 1,
            }
        }
    }

    /// Keeps a connection after its answer for later copies. Returns `Surplus` if the server sent
    /// bytes after the answer.
    pub fn put(&self, copying: Copying<'_>, mut channel: Channel) -> Result<(), PathFailure> {
        match state(&mut channel) {
            State::Surplus => return Err(PathFailure::Surplus),
            State::Closed => return Ok(()),
            State::Silent => {}
        }
        let waiting = &mut self.paths.borrow_mut()[copying.place];
        waiting.channels.push_back((place(copying), channel));
        if waiting.channels.len() > self.most {
            waiting.channels.pop_front();
        }
        Ok(())
    }

    pub fn take_frames(&self, copying: Copying<'_>) -> Option<Http2Connection> {
        let (place, waiting) = (place(copying), &mut self.paths.borrow_mut()[copying.place]);
        loop {
            let found = waiting.frames.iter().rposition(|(its, _)| *its == place)?;
            let (_, mut stream) = waiting.frames.remove(found)?;
            if stream.is_ready() {
                return Some(stream);
            }
        }
    }

    pub fn put_frames(&self, copying: Copying<'_>, stream: Http2Connection) {
        let frames = &mut self.paths.borrow_mut()[copying.place].frames;
        frames.push_back((place(copying), stream));
        if frames.len() > self.most {
            frames.pop_front();
        }
    }

    /// Closes all idle connections. Returns for each path (proxy or origin) the number of
    /// connections on which bytes arrived after an answer.
    pub fn surplus(&self) -> Vec<u64> {
        let count = |waiting: &mut IdleChannels| {
            let late = waiting.channels.drain(..).filter_map(|(_, mut channel)| {
                (state(&mut channel) == State::Surplus).then_some(())
            });
            waiting.frames.clear();
            waiting.surplus + late.count() as u64
        };
        self.paths.borrow_mut().iter_mut().map(count).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Silent,
    Closed,
    Surplus,
}

fn state(channel: &mut Channel) -> State {
    let mut room = [0];
    let mut room = ReadBuf::new(&mut room);
    // The waker does nothing, because the next reader registers its own waker.
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(channel).poll_read(&mut context, &mut room) {
        Poll::Pending => State::Silent,
        Poll::Ready(Ok(())) if !room.filled().is_empty() => State::Surplus,
        Poll::Ready(_) => State::Closed,
    }
}

/// Returns `Surplus` if bytes follow the answer within one millisecond (the runtime's shortest
/// timer). The measured response time excludes this check.
pub async fn nothing_behind(
    stream: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
) -> Result<(), PathFailure> {
    if input.is_empty() {
        input.reserve(1);
        // A close or a reset does not matter here. Only bytes after the answer count.
        let _nothing_yet = timeout(Duration::ZERO, stream.read_buf(input)).await;
    }
    if input.is_empty() { Ok(()) } else { Err(PathFailure::Surplus) }
}
