//! What a worker asks for exchanges and connections: one dialler, one pool. It begins exchanges;
//! `exchange` drives them.

use crate::core::client_block::ClientBlock;
use crate::upstream::address::destination::DestinationPolicy;
use crate::upstream::address::resolve::{LookupLimits, Lookups, Resolve};
use crate::upstream::body::RequestBody;
use crate::upstream::dial::{DialedProtocol, Dialer, Dialled, Origin};
use crate::upstream::error::ConnectError;
use crate::upstream::exchange::UpstreamExchange;
use crate::upstream::http2::{Lines, OriginConnections};
use crate::upstream::pool::{Connection, Pool, PoolLimits};
use crate::upstream::settings::UpstreamSettings;
use bytes::Bytes;
use foxy_http::{Headers, Method};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A request to an origin. Hop-by-hop headers of the client are already removed; the framing
/// headers are set from the body's length by the exchange.
#[derive(Debug)]
pub struct UpstreamRequest {
    /// Where to.
    pub origin: Origin,
    /// The method.
    pub method: Method,
    /// The target as it is written on the wire, such as `/path?query`.
    pub target: Bytes,
    /// The headers, Host among them. `Connection` and `Upgrade` are there only if an upgrade is
    /// asked for.
    pub headers: Headers,
    /// The body.
    pub body: RequestBody,
}

/// What happened on the upstream side since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamCounts {
    /// Connections opened, those of tunnels included.
    pub opened: u64,
    /// Attempts to connect that failed.
    pub connect_failures: u64,
    /// Requests sent on a connection used before.
    pub reused: u64,
    /// Requests sent again because a kept connection had died, or because the origin did nothing of
    /// them.
    pub retried: u64,
    /// Requests sent over HTTP/2.
    pub http2: u64,
}

/// Begins exchanges with origins. Clones share everything; it belongs to one current-thread
/// runtime.
#[derive(Clone)]
pub struct UpstreamClient {
    shared: Rc<UpstreamCore>,
}

pub(crate) struct UpstreamCore {
    pub(crate) settings: UpstreamSettings,
    dialer: Dialer,
    pool: RefCell<Pool>,
    lines: RefCell<Lines>,
    counts: Cell<UpstreamCounts>,
}

impl UpstreamClient {
    /// A client with nothing connected. Must be called within a `LocalSet`: a task closes
    /// connections that waited too long, and ends with the last clone.
    pub fn new(
        settings: UpstreamSettings,
        resolver: Rc<dyn Resolve>,
        policy: Rc<DestinationPolicy>,
    ) -> Self {
        let limits = LookupLimits {
            timeout: settings.resolve_timeout,
            most: settings.lookups,
            of_client: settings.lookups_per_client,
        };
        let lookups = Lookups::new(resolver, limits);
        let limits = PoolLimits {
            per_origin: settings.idle_per_origin,
            total: settings.idle_total,
            idle: settings.idle_timeout,
        };
        let shared = Rc::new(UpstreamCore {
            dialer: Dialer::new(lookups, policy, settings.tls.clone(), settings.connect_timeout),
            pool: RefCell::new(Pool::new(limits)),
            lines: RefCell::default(),
            counts: Cell::default(),
            settings,
        });
        tokio::task::spawn_local(sweep(Rc::downgrade(&shared), limits));
        Self { shared }
    }

    /// An exchange that has done nothing yet; [`UpstreamExchange::head`] starts it.
    pub fn exchange(&self, request: UpstreamRequest) -> UpstreamExchange {
        UpstreamExchange::new(Rc::clone(&self.shared), request)
    }

    /// A connection for a CONNECT of that client.
    ///
    /// # Errors
    /// [`ConnectError::Forbidden`] if the policy forbids the port or every address; or why
    /// connecting failed.
    pub async fn connect(
        &self,
        origin: &Origin,
        client: ClientBlock,
    ) -> Result<TcpStream, ConnectError> {
        self.shared.dialer.policy().check_connect_port(origin.port)?;
        self.shared
            .counted(self.shared.dialer.dial_tcp(origin, Some(client)).await)
            .map(|(stream, _)| stream)
    }

    /// Whether a CONNECT may go there at all, by its port and by the addresses the name has now.
    /// Connects to nothing.
    ///
    /// # Errors
    /// [`ConnectError::Forbidden`] if the policy forbids the port or every address; or why the name
    /// has none.
    pub async fn may_connect(
        &self,
        origin: &Origin,
        client: ClientBlock,
    ) -> Result<(), ConnectError> {
        self.shared.dialer.policy().check_connect_port(origin.port)?;
        self.shared.dialer.addresses(origin, Some(client)).await.map(drop)
    }

    /// What happened so far.
    pub fn counts(&self) -> UpstreamCounts {
        self.shared.counts.get()
    }

    /// Connections kept for their next request.
    pub fn idle_connections(&self) -> usize {
        self.shared.pool.borrow().len() + self.shared.lines.borrow().idle()
    }
}

impl UpstreamCore {
    /// A new connection. What that takes lies apart, so that exchanges on kept ones do not carry
    /// room for it.
    pub(crate) async fn dial(
        &self,
        origin: &Origin,
        offered: DialedProtocol,
        client: Option<ClientBlock>,
    ) -> Result<Dialled, ConnectError> {
        self.counted(Box::pin(self.dialer.dial(origin, offered, client)).await)
    }

    /// What is known of the HTTP/2 connections to `origin`.
    pub(crate) fn line(&self, origin: &Origin) -> Rc<OriginConnections> {
        self.lines.borrow_mut().line(origin)
    }

    fn counted<T>(&self, dialled: Result<T, ConnectError>) -> Result<T, ConnectError> {
        match &dialled {
            Ok(_) => self.count(|counts| counts.opened += 1),
            Err(_) => self.count(|counts| counts.connect_failures += 1),
        }
        dialled
    }

    /// A kept connection that looks alive.
    pub(crate) fn take_idle(&self, origin: &Origin) -> Option<Connection> {
        let connection = self.pool.borrow_mut().take(origin, Instant::now())?;
        self.count(|counts| counts.reused += 1);
        Some(connection)
    }

    /// Keeps a connection whose exchange ended cleanly.
    pub(crate) fn keep(&self, origin: &Origin, connection: Connection) {
        self.pool.borrow_mut().put(origin, connection, Instant::now());
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut UpstreamCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}

/// Closes old connections until the client is gone.
async fn sweep(shared: Weak<UpstreamCore>, limits: PoolLimits) {
    let pause = (limits.idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(5));
    loop {
        tokio::time::sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.pool.borrow_mut().sweep(Instant::now());
        shared.lines.borrow_mut().sweep(Instant::now(), limits.idle, limits.total);
    }
}
