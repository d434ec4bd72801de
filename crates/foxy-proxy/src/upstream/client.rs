//! Sends the requests of one worker to origins. This module opens connections, keeps idle
//! connections, and counts both. `exchange` runs the *exchanges*, each of which is one request and
//! its response.

use crate::core::addresses::client_ends::ClientEnds;
use crate::core::counters::Counters;
use crate::core::places::ClientBlock;
use crate::core::transport::Transport;
use crate::upstream::address::destination::DestinationPolicy;
use crate::upstream::address::resolve::{LookupLimits, Lookups, Resolve};
use crate::upstream::dial::{Dialer, Origin};
use crate::upstream::dialled::{DialedProtocol, Dialled};
use crate::upstream::error::{ConnectError, ParentFailure};
use crate::upstream::exchange::UpstreamExchange;
use crate::upstream::http2::{Http2Pool, OriginConnections};
use crate::upstream::pool::{Connection, Pool, PoolLimits};
use crate::upstream::route::{By, Route};
use crate::upstream::sending::RequestBody;
use crate::upstream::settings::{OriginSource, UpstreamSettings};
use crate::upstream::through::{ParentAttempts, ParentRoutes};
use bytes::Bytes;
use foxy_http::{Headers, Method};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A request to an origin, without the client's hop-by-hop headers. The exchange adds the framing
/// headers (Content-Length or Transfer-Encoding) for the body.
#[derive(Debug)]
pub struct UpstreamRequest {
    /// The origin to connect to.
    pub origin: Origin,
    /// The request method.
    pub method: Method,
    /// The target in the form used in the request line, such as `/path?query`.
    pub target: Bytes,
    /// The headers, including Host. `Connection` and `Upgrade` may only request an upgrade.
    pub headers: Headers,
    /// The body of the request.
    pub body: RequestBody,
}

/// An open connection that carries the bytes of a client's CONNECT.
#[derive(Debug)]
pub struct OpenTunnel {
    /// The connection to the origin, or to the parent proxy.
    pub stream: Transport,
    /// The bytes from the origin that have already arrived through the tunnel.
    pub early: Bytes,
    /// The number of the parent proxy that opened the tunnel. `None` if the proxy connected to the
    /// origin itself.
    pub parent: Option<usize>,
}

/// Counts of connections and requests to origins since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamCounts {
    /// Number of opened connections, including connections for tunnels.
    pub opened: u64,
    /// Number of failed attempts to connect to an origin or parent proxy.
    pub connect_failures: u64,
    /// Number of requests sent on a connection that has served another request before.
    pub reused: u64,
    /// Number of requests that were sent again, because the origin had closed an idle connection
    /// or had not processed the request.
    pub retried: u64,
    /// Number of requests sent over HTTP/2.
    pub http2: u64,
}

/// Starts exchanges with origins for one worker. Clones share all state, and must stay on one
/// current-thread runtime.
#[derive(Clone)]
pub struct UpstreamClient {
    shared: Rc<UpstreamCore>,
}

pub(crate) struct UpstreamCore {
    pub(crate) settings: UpstreamSettings,
    dialer: Dialer,
    pool: RefCell<Pool>,
    http2_pool: RefCell<Http2Pool>,
    counts: Cell<UpstreamCounts>,
    pub(crate) counters: Arc<Counters>,
    /// The parent proxies. `None` if the operator has set none.
    pub(crate) parents: Option<ParentRoutes>,
}

impl UpstreamClient {
    /// Creates a client without connections. The caller must be within a `LocalSet`, because this
    /// method starts a task. The task closes connections that were idle too long, and ends when the
    /// last clone is dropped.
    pub fn new(
        settings: UpstreamSettings,
        resolver: Rc<dyn Resolve>,
        policy: Rc<DestinationPolicy>,
        counters: &Arc<Counters>,
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
            dialer: Dialer::new(
                lookups,
                policy,
                settings.tls.clone(),
                (settings.connect_timeout, settings.source),
            ),
            pool: RefCell::new(Pool::new(limits)),
            http2_pool: RefCell::default(),
            counts: Cell::default(),
            counters: Arc::clone(counters),
            parents: ParentRoutes::new(&settings, counters),
            settings,
        });
        tokio::task::spawn_local(sweep(Rc::downgrade(&shared), limits));
        Self { shared }
    }

    /// Creates an exchange that has not sent anything yet. [`UpstreamExchange::head`] starts it.
    pub fn exchange(&self, request: UpstreamRequest) -> UpstreamExchange {
        UpstreamExchange::new(Rc::clone(&self.shared), request)
    }

    /// Opens a connection for a CONNECT of `client`. `via` is the Via field that a parent proxy
    /// receives with the CONNECT.
    ///
    /// # Errors
    /// [`ConnectError::Forbidden`] if the destination policy forbids the port or every address.
    /// Otherwise the reason why connecting failed.
    pub async fn connect(
        &self,
        origin: &Origin,
        client: ClientEnds,
        via: &Headers,
    ) -> Result<OpenTunnel, ConnectError> {
        let UpstreamCore { dialer, parents, .. } = &*self.shared;
        dialer.policy().check_connect_port(origin.port)?;
        if let Some(parents) = parents {
            let mut attempts = ParentAttempts::for_tunnel(origin);
            while let Route { by: By::Tunnel(number), .. } =
                parents.choose_route(dialer, &mut attempts)?
            {
                let opened = parents.open_tunnel(dialer, number, origin, Some(via)).await;
                match self.shared.counted(opened) {
                    Ok((stream, early)) => {
                        return Ok(OpenTunnel { stream, early, parent: Some(number) });
                    }
                    Err(error) => {
                        parents.try_another(&mut attempts, By::Tunnel(number), error)?;
                    }
                }
            }
        }
        let source = self.shared.single_client(&Route::direct(origin.clone()), Some(client));
        let dialled = dialer.dial_tcp(origin, Some(client.block()), source).await;
        self.shared.counted(dialled).map(|(stream, _)| OpenTunnel {
            stream: Transport::Plain(stream),
            early: Bytes::new(),
            parent: None,
        })
    }

    /// Checks whether the destination policy allows a CONNECT to this origin, by its port and the
    /// current addresses of its name. Opens no connection. If a parent proxy resolves the name,
    /// checks no addresses.
    ///
    /// # Errors
    /// [`ConnectError::Forbidden`] if the destination policy forbids the port or every address.
    /// Otherwise the reason why the name has no address.
    pub async fn may_connect(
        &self,
        origin: &Origin,
        client: ClientBlock,
    ) -> Result<(), ConnectError> {
        let UpstreamCore { dialer, parents, .. } = &*self.shared;
        dialer.policy().check_connect_port(origin.port)?;
        let attempts = ParentAttempts::for_tunnel(origin);
        match parents {
            Some(parents) if !parents.are_bypassed(&attempts) => dialer.check_unresolved(origin),
            _ => dialer.addresses(origin, Some(client)).await.map(drop),
        }
    }

    /// Returns the counts of connections and requests so far.
    pub fn counts(&self) -> UpstreamCounts {
        self.shared.counts.get()
    }

    /// Returns the number of idle connections that are kept for later requests.
    pub fn idle_connections(&self) -> usize {
        self.shared.pool.borrow().len() + self.shared.http2_pool.borrow().idle()
    }
}

impl UpstreamCore {
    /// Opens a new connection. The large future for this work is boxed, so that an exchange on an
    /// idle connection has a small future.
    pub(crate) async fn dial(
        &self,
        route: &Route,
        offered: DialedProtocol,
        client: Option<ClientBlock>,
    ) -> Result<Dialled, ConnectError> {
        self.counted(Box::pin(self.dial_route(route, offered, client)).await)
    }

    async fn dial_route(
        &self,
        Route { origin, by, client }: &Route,
        offered: DialedProtocol,
        asks: Option<ClientBlock>,
    ) -> Result<Dialled, ConnectError> {
        if let By::Node(number) = *by {
            return self.dial_node(origin, number, asks).await;
        }
        let Some((parents, number)) = self.parents.as_ref().zip(by.parent()) else {
            return self.dialer.dial(origin, offered, asks, *client).await;
        };
        if let By::Parent(_) = by {
            let stream = parents.dial_parent(&self.dialer, number).await?;
            return Ok(Dialled { stream, spoken: DialedProtocol::Http1 });
        }
        let opened = parents.open_tunnel(&self.dialer, number, origin, None).await;
        let (mut stream, early) = opened?;
        if !early.is_empty() {
            // The TLS client speaks first, so bytes that arrive before its first message are an
            // error.
            return Err(ParentFailure::Failed.into());
        }
        let limit = Instant::now() + self.dialer.connect_timeout(origin);
        self.dialer.send_header(origin, *client, &mut stream, limit).await?;
        self.dialer.secure(origin, stream, offered, limit).await
    }

    /// Returns the only client that may use connections on `route`, because the origin sees the
    /// client's address. Returns `None` if all clients may use them.
    pub(crate) fn single_client(
        &self,
        route: &Route,
        client: Option<ClientEnds>,
    ) -> Option<ClientEnds> {
        if route.origin.group().is_some_and(|group| group.proxy_header.is_some()) {
            return client;
        }
        let is_source = self.settings.source == OriginSource::Client && route.by == By::Direct;
        client.filter(|_| is_source).map(ClientEnds::without_ports)
    }

    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    pub(crate) fn http2_connections(&self, route: &Route) -> Rc<OriginConnections> {
        self.http2_pool.borrow_mut().connections_on(route)
    }

    fn counted<T>(&self, dialled: Result<T, ConnectError>) -> Result<T, ConnectError> {
        match &dialled {
            Ok(_) => self.count(|counts| counts.opened += 1),
            Err(_) => self.count(|counts| counts.connect_failures += 1),
        }
        dialled
    }

    /// Returns an idle connection on the same route. The origin has not closed this connection, as
    /// far as the proxy knows.
    pub(crate) fn take_idle(&self, route: &Route) -> Option<Connection> {
        let connection = self.pool.borrow_mut().take(route, Instant::now())?;
        self.count(|counts| counts.reused += 1);
        Some(connection)
    }

    pub(crate) fn keep(&self, route: &Route, connection: Connection) {
        self.pool.borrow_mut().put(route, connection, Instant::now());
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut UpstreamCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}

/// Closes connections that were idle too long. Ends when the client is dropped.
async fn sweep(shared: Weak<UpstreamCore>, limits: PoolLimits) {
    let pause = (limits.idle / 4).clamp(Duration::from_millis(100), Duration::from_secs(5));
    loop {
        tokio::time::sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.pool.borrow_mut().sweep(Instant::now());
        shared.http2_pool.borrow_mut().sweep(Instant::now(), limits.idle, limits.total);
    }
}
