//! Finds a connection for an exchange, or waits for one: a shared HTTP/2 connection, an idle
//! HTTP/1.1 connection, or a new connection.

use crate::core::places::ClientBlock;
use crate::core::transport::Transport;
use crate::upstream::Scheme;
use crate::upstream::client::UpstreamCore;
use crate::upstream::dial::Origin;
use crate::upstream::dialled::{DialedProtocol, Dialled};
use crate::upstream::error::{ConnectError, Http2Error, UpstreamError};
use crate::upstream::http2::{self, DialOutcome, Lease, OriginConnections};
use crate::upstream::pool::Connection;
use crate::upstream::route::{By, Route};
use crate::upstream::settings::OriginHttp2;
use std::cell::Cell;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Shortest time for which an HTTP/2 connection without a request stays open, even if the settings
/// keep no idle connections. So requests that arrive at nearly the same time can share it.
const MIN_IDLE_TIME: Duration = Duration::from_millis(100);

/// The kinds of connections that an exchange can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReachOptions {
    /// True if the exchange may use HTTP/2.
    pub(crate) http2: bool,
    /// True if the exchange may use an idle HTTP/1.1 connection.
    pub(crate) kept: bool,
    /// The client for whom the proxy looks up the origin's name. The number of simultaneous
    /// look-ups of a client is limited.
    pub(crate) client: Option<ClientBlock>,
}

/// The connection on which an exchange can send its request.
pub(crate) enum Reached {
    /// An HTTP/1.1 connection for this exchange alone. The flag is true if the connection has
    /// served another request before.
    Http1(Box<Connection>, bool),
    /// A permit for one request on a shared HTTP/2 connection.
    Http2(Lease),
}

impl UpstreamCore {
    /// Finds a connection for an exchange on `route`. Fails if connecting fails, or if no shared
    /// connection accepts the request within the time limit for a response head.
    pub(crate) async fn reach(
        self: &Rc<Self>,
        route: &Route,
        wanted: ReachOptions,
    ) -> Result<Reached, UpstreamError> {
        if !wanted.http2 {
            if let Some(connection) = self.kept(route, wanted) {
                return Ok(connection);
            }
            return Ok(
                self.unshared(self.dial(route, DialedProtocol::Http1, wanted.client).await?.stream)
            );
        }
        let connections = self.http2_connections(route);
        let mut limit = None;
        loop {
            if let Some(lease) = self.leased(&connections) {
                return Ok(lease);
            }
            if let Some(connection) = self.kept(route, wanted) {
                return Ok(connection);
            }
            if connections.chose_http1() {
                let Dialled { stream, spoken } =
                    self.dial(route, DialedProtocol::Http2, wanted.client).await?;
                match spoken {
                    DialedProtocol::Http1 => return Ok(self.unshared(stream)),
                    DialedProtocol::Http2 => Box::pin(self.share(&connections, stream)).await?,
                }
            } else {
                let limit =
                    *limit.get_or_insert_with(|| Instant::now() + self.head_timeout(&route.origin));
                if let Some(connection) =
                    Box::pin(self.wait(route, wanted.client, &connections, limit)).await?
                {
                    return Ok(connection);
                }
            }
        }
    }

    /// Returns the time limit for the final response head of `origin`, which the operator can set
    /// for each origin.
    pub(crate) fn head_timeout(&self, origin: &Origin) -> Duration {
        let of_group = origin.group().and_then(|group| group.head_timeout);
        of_group.unwrap_or(self.settings.head_timeout)
    }

    /// Returns true if requests on this route may share an HTTP/2 connection. The proxy uses only
    /// HTTP/1.1 with parent proxies, and only HTTP/2 with nodes.
    pub(crate) fn may_share(&self, route: &Route) -> bool {
        let http2 = route.origin.group().and_then(|group| group.http2);
        match http2.unwrap_or(self.settings.http2) {
            _ if matches!(route.by, By::Parent(_)) => false,
            _ if matches!(route.by, By::Node(_)) => true,
            OriginHttp2::Off => false,
            OriginHttp2::Auto => route.origin.scheme == Scheme::Https,
            OriginHttp2::PriorKnowledge => true,
        }
    }

    fn kept(&self, route: &Route, wanted: ReachOptions) -> Option<Reached> {
        let connection = wanted.kept.then(|| self.take_idle(route)).flatten()?;
        Some(Reached::Http1(Box::new(connection), true))
    }

    fn leased(&self, connections: &OriginConnections) -> Option<Reached> {
        let lease = connections.lease()?;
        self.count(|counts| {
            counts.reused += u64::from(lease.kept());
            counts.http2 += 1;
        });
        Some(Reached::Http2(lease))
    }

    fn unshared(&self, stream: Transport) -> Reached {
        Reached::Http1(Box::new(Connection::new(stream, self.settings.limits)), false)
    }

    /// Waits until an HTTP/2 connection accepts another request, or until an attempt to connect has
    /// ended. If no attempt is in progress, starts one. So simultaneous requests share one
    /// connection, and only one attempt finds out which protocol the origin chooses.
    async fn wait(
        self: &Rc<Self>,
        route: &Route,
        client: Option<ClientBlock>,
        connections: &Rc<OriginConnections>,
        limit: Instant,
    ) -> Result<Option<Reached>, UpstreamError> {
        let attempt = connections.attempt().or_else(|| {
            let attempt = connections.begin()?;
            tokio::task::spawn_local(run_attempt(DialAttempt {
                shared: Rc::downgrade(self),
                route: route.clone(),
                client,
                connections: Rc::clone(connections),
                attempt: Rc::clone(&attempt),
            }));
            Some(attempt)
        });
        let _place = connections.wait().ok_or(Http2Error::Crowded)?;
        if limit <= Instant::now() {
            return Err(UpstreamError::HeadTimeout);
        }
        loop {
            let mut changed = pin!(connections.changed().notified());
            changed.as_mut().enable();
            if let Some(lease) = self.leased(connections) {
                return Ok(Some(lease));
            }
            match attempt.as_ref().map(|attempt| attempt.outcome()) {
                Some(None) => changed.await,
                None if connections.has_room_for_another() => return Ok(None),
                None => timeout_at(limit, changed).await.map_err(|_| UpstreamError::HeadTimeout)?,
                Some(Some(outcome)) => match &*outcome {
                    DialOutcome::Http1(stream) => {
                        return Ok(stream.take().map(|stream| self.unshared(stream)));
                    }
                    DialOutcome::Failed(error) if !connections.is_connected() => {
                        return Err((*error).into());
                    }
                    DialOutcome::Joined | DialOutcome::Failed(_) => return Ok(None),
                },
            }
        }
    }

    /// Starts HTTP/2 on a new connection, and lets requests on the same route share it.
    async fn share(
        self: &Rc<Self>,
        connections: &Rc<OriginConnections>,
        stream: Transport,
    ) -> Result<(), ConnectError> {
        let settings = &self.settings;
        let keeps = settings.idle_per_origin > 0 && settings.idle_total > 0;
        let idle = if keeps { settings.idle_timeout.max(MIN_IDLE_TIME) } else { MIN_IDLE_TIME };
        let own = Rc::downgrade(connections);
        let ended = move || {
            if let Some(connections) = Weak::upgrade(&own) {
                connections.prune();
            }
        };
        let begun =
            http2::begin(stream, &settings.limits, idle, Rc::clone(connections.changed()), ended);
        let limit = Instant::now() + settings.connect_timeout;
        let begun = timeout_at(limit, begun).await.map_err(|_| ConnectError::TimedOut)?;
        connections.join(begun.map_err(|_| ConnectError::Failed)?);
        Ok(())
    }
}

/// An attempt to connect. Dropping this value tells the exchanges that wait for it that the attempt
/// has ended.
struct DialAttempt {
    shared: Weak<UpstreamCore>,
    route: Route,
    client: Option<ClientBlock>,
    connections: Rc<OriginConnections>,
    attempt: Rc<http2::Attempt>,
}

impl Drop for DialAttempt {
    fn drop(&mut self) {
        if self.attempt.outcome().is_none() {
            self.connections.end(&self.attempt, DialOutcome::Failed(ConnectError::Failed));
        }
    }
}

async fn run_attempt(dial: DialAttempt) {
    let Some(shared) = dial.shared.upgrade() else { return };
    let connections = &dial.connections;
    let outcome = match shared.dial(&dial.route, DialedProtocol::Http2, dial.client).await {
        Err(error) => DialOutcome::Failed(error),
        Ok(Dialled { stream, spoken: DialedProtocol::Http1 }) => {
            DialOutcome::Http1(Cell::new(Some(stream)))
        }
        Ok(Dialled { stream, spoken: DialedProtocol::Http2 }) => {
            match shared.share(connections, stream).await {
                Ok(()) => DialOutcome::Joined,
                Err(error) => DialOutcome::Failed(error),
            }
        }
    };
    connections.end(&dial.attempt, outcome);
}
