//! Which connection an exchange gets: one it shares, one that was kept, or a new one; and the wait
//! for it. What goes over the connection is not decided here.

use crate::core::client_block::ClientBlock;
use crate::core::transport::Transport;
use crate::upstream::Scheme;
use crate::upstream::client::UpstreamCore;
use crate::upstream::dial::{DialedProtocol, Dialled, Origin};
use crate::upstream::error::{ConnectError, UpstreamError};
use crate::upstream::http2::{
    self, DialOutcome, Http2Error, Lease, OriginConnections, OriginHttp2,
};
use crate::upstream::pool::Connection;
use std::cell::Cell;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The least time that an HTTP/2 connection is kept without a request, even where none is to be
/// kept: requests that come at once share one all the same.
const HARDLY_KEPT: Duration = Duration::from_millis(100);

/// What an exchange can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReachOptions {
    /// Whether it can go over HTTP/2, and may.
    pub(crate) http2: bool,
    /// Whether a kept connection of HTTP/1.1 will do.
    pub(crate) kept: bool,
    /// Whose share a look-up of the origin's name is of; none for nobody's.
    pub(crate) client: Option<ClientBlock>,
}

/// What it gets.
pub(crate) enum Reached {
    /// A connection of its own, and whether it was kept.
    Http1(Box<Connection>, bool),
    /// Room on a shared one.
    Http2(Lease),
}

impl UpstreamCore {
    /// A connection to `origin`.
    ///
    /// # Errors
    /// There is none, or no room on those there are within the time for a head.
    pub(crate) async fn reach(
        self: &Rc<Self>,
        origin: &Origin,
        wanted: ReachOptions,
    ) -> Result<Reached, UpstreamError> {
        if !wanted.http2 {
            if let Some(connection) = self.kept(origin, wanted) {
                return Ok(connection);
            }
            return Ok(self
                .unshared(self.dial(origin, DialedProtocol::Http1, wanted.client).await?.stream));
        }
        let line = self.line(origin);
        let mut limit = None;
        loop {
            if let Some(lease) = self.leased(&line) {
                return Ok(lease);
            }
            if let Some(connection) = self.kept(origin, wanted) {
                return Ok(connection);
            }
            if line.chose_http1() {
                let Dialled { stream, spoken } =
                    self.dial(origin, DialedProtocol::Http2, wanted.client).await?;
                match spoken {
                    DialedProtocol::Http1 => return Ok(self.unshared(stream)),
                    DialedProtocol::Http2 => Box::pin(self.share(&line, stream)).await?,
                }
            } else {
                let limit =
                    *limit.get_or_insert_with(|| Instant::now() + self.settings.head_timeout);
                if let Some(connection) =
                    Box::pin(self.wait((origin, wanted.client), &line, limit)).await?
                {
                    return Ok(connection);
                }
            }
        }
    }

    /// Whether requests to it may share a connection of HTTP/2.
    pub(crate) fn may_share(&self, origin: &Origin) -> bool {
        match self.settings.http2 {
            OriginHttp2::Off => false,
            OriginHttp2::Auto => origin.scheme == Scheme::Https,
            OriginHttp2::PriorKnowledge => true,
        }
    }

    fn kept(&self, origin: &Origin, wanted: ReachOptions) -> Option<Reached> {
        let connection = wanted.kept.then(|| self.take_idle(origin)).flatten()?;
        Some(Reached::Http1(Box::new(connection), true))
    }

    fn leased(&self, line: &OriginConnections) -> Option<Reached> {
        let lease = line.lease()?;
        self.count(|counts| {
            counts.reused += u64::from(lease.kept());
            counts.http2 += 1;
        });
        Some(Reached::Http2(lease))
    }

    fn unshared(&self, stream: Transport) -> Reached {
        Reached::Http1(Box::new(Connection::new(stream, self.settings.limits)), false)
    }

    /// Waits until there may be room, or for an attempt to connect, which is begun if none is under
    /// way: those who come at once share one connection, and what the origin chooses is learnt from
    /// one.
    async fn wait(
        self: &Rc<Self>,
        (origin, client): (&Origin, Option<ClientBlock>),
        line: &Rc<OriginConnections>,
        limit: Instant,
    ) -> Result<Option<Reached>, UpstreamError> {
        let attempt = line.attempt().or_else(|| {
            let attempt = line.begin()?;
            tokio::task::spawn_local(try_once(Attempting {
                shared: Rc::downgrade(self),
                origin: origin.clone(),
                client,
                line: Rc::clone(line),
                attempt: Rc::clone(&attempt),
            }));
            Some(attempt)
        });
        let _place = line.wait().ok_or(Http2Error::Crowded)?;
        if limit <= Instant::now() {
            return Err(UpstreamError::HeadTimeout);
        }
        loop {
            let mut changed = pin!(line.changed().notified());
            changed.as_mut().enable();
            if let Some(lease) = self.leased(line) {
                return Ok(Some(lease));
            }
            match attempt.as_ref().map(|attempt| attempt.outcome()) {
                Some(None) => changed.await,
                None if line.has_room_for_another() => return Ok(None),
                None => timeout_at(limit, changed).await.map_err(|_| UpstreamError::HeadTimeout)?,
                Some(Some(outcome)) => match &*outcome {
                    DialOutcome::Http1(stream) => {
                        return Ok(stream.take().map(|stream| self.unshared(stream)));
                    }
                    DialOutcome::Failed(error) if !line.is_connected() => {
                        return Err((*error).into());
                    }
                    DialOutcome::Joined | DialOutcome::Failed(_) => return Ok(None),
                },
            }
        }
    }

    /// Begins HTTP/2 on a new connection and puts it among the others of its origin.
    async fn share(
        self: &Rc<Self>,
        line: &Rc<OriginConnections>,
        stream: Transport,
    ) -> Result<(), ConnectError> {
        let settings = &self.settings;
        let keeps = settings.idle_per_origin > 0 && settings.idle_total > 0;
        let idle = if keeps { settings.idle_timeout.max(HARDLY_KEPT) } else { HARDLY_KEPT };
        let own = Rc::downgrade(line);
        let ended = move || {
            if let Some(line) = Weak::upgrade(&own) {
                line.prune();
            }
        };
        let begun = http2::begin(stream, &settings.limits, idle, Rc::clone(line.changed()), ended);
        let limit = Instant::now() + settings.connect_timeout;
        let begun = timeout_at(limit, begun).await.map_err(|_| ConnectError::TimedOut)?;
        line.join(begun.map_err(|_| ConnectError::Failed)?);
        Ok(())
    }
}

/// An attempt to connect. However it ends, those who wait for it learn it.
struct Attempting {
    shared: Weak<UpstreamCore>,
    origin: Origin,
    client: Option<ClientBlock>,
    line: Rc<OriginConnections>,
    attempt: Rc<http2::Attempt>,
}

impl Drop for Attempting {
    fn drop(&mut self) {
        if self.attempt.outcome().is_none() {
            self.line.end(&self.attempt, DialOutcome::Failed(ConnectError::Failed));
        }
    }
}

async fn try_once(attempting: Attempting) {
    let Some(shared) = attempting.shared.upgrade() else { return };
    let line = &attempting.line;
    let outcome =
        match shared.dial(&attempting.origin, DialedProtocol::Http2, attempting.client).await {
            Err(error) => DialOutcome::Failed(error),
            Ok(Dialled { stream, spoken: DialedProtocol::Http1 }) => {
                DialOutcome::Http1(Cell::new(Some(stream)))
            }
            Ok(Dialled { stream, spoken: DialedProtocol::Http2 }) => {
                match shared.share(line, stream).await {
                    Ok(()) => DialOutcome::Joined,
                    Err(error) => DialOutcome::Failed(error),
                }
            }
        };
    line.end(&attempting.attempt, outcome);
}
