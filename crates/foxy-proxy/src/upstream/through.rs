//! Reaches origins through parent proxies. This module chooses a parent for each request. If the
//! parent fails before any byte of the request was sent, it chooses another parent.

use crate::core::counters::{Counter, Counters};
use crate::core::transport::Transport;
use crate::upstream::address::destination::{ChosenBy, DestinationRefusal};
use crate::upstream::dial::{Dialer, Origin};
use crate::upstream::dialled::DialedProtocol;
use crate::upstream::error::{ConnectError, ParentFailure};
use crate::upstream::fail_over::Tried;
use crate::upstream::parents::connect::{TunnelAnswer, ask_for_tunnel};
use crate::upstream::parents::health::ParentFault;
use crate::upstream::parents::parent::{Parent, ParentCredentials};
use crate::upstream::parents::{Aim, Chosen, ExpectedWay, Parents};
use crate::upstream::route::{By, Route};
use crate::upstream::sending::OutgoingRequest;
use crate::upstream::settings::UpstreamSettings;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{Headers, Limits, Scheme};
use foxy_rules::operator::Ways;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The attempts of one request to reach its origin through parent proxies.
pub(crate) struct ParentAttempts {
    /// The origin of the request. Its field `ways` is always `None`, because the field `ways` below
    /// has the value.
    origin: Origin,
    /// The ways to the origin (directly or through certain parents) that an operator's rule
    /// permits. `None` if no rule decided about the request.
    ways: Option<Arc<Ways>>,
    /// The target of the request in origin form. Empty for a tunnel.
    target: Bytes,
    is_tunnel: bool,
    /// Whether a cache can answer the request.
    is_cacheable: bool,
    tried: Tried,
    /// The reason why the last parent proxy failed.
    failure: ParentFailure,
    /// True if a route must be chosen: at the start, and again after the parent proxy of the route
    /// has failed.
    pub(crate) needs_route: bool,
}

impl ParentAttempts {
    /// Creates the attempts for a request whose target is `target`.
    pub(crate) fn for_request(origin: &Origin, target: &Bytes, is_cacheable: bool) -> Self {
        let target = target.clone();
        Self { target, is_tunnel: false, is_cacheable, ..Self::for_tunnel(origin) }
    }

    /// Creates the attempts for a client's CONNECT.
    pub(crate) fn for_tunnel(origin: &Origin) -> Self {
        Self {
            origin: Origin { ways: None, ..origin.clone() },
            ways: origin.ways.clone(),
            target: Bytes::new(),
            is_tunnel: true,
            is_cacheable: false,
            tried: Tried::default(),
            failure: ParentFailure::Unreachable,
            needs_route: true,
        }
    }

    /// Forgets all attempts, because the request now goes to another server of its origin.
    pub(crate) fn restart(&mut self, origin: &Origin) {
        let ways = self.ways.take();
        *self = Self { ways, ..Self::for_request(origin, &self.target, self.is_cacheable) };
    }

    /// Returns the scheme that a parent proxy must serve to receive the request. A tunnel counts as
    /// https, because it usually carries TLS. A PROXY header reaches the origin only in a tunnel.
    fn scheme(&self) -> Scheme {
        let has_header = self.origin.group().is_some_and(|group| group.proxy_header.is_some());
        if self.is_tunnel || has_header { Scheme::Https } else { self.origin.scheme }
    }

    fn aim<'a>(&'a self, key: &'a [u8]) -> Aim<'a> {
        let Origin { host, port, .. } = &self.origin;
        let (scheme, is_cacheable) = (self.scheme(), self.is_cacheable);
        Aim { scheme, host, port: *port, key, is_cacheable, ways: self.ways.as_deref() }
    }

    /// Returns the text from which rendezvous hashing chooses the parent proxy. A parent that reads
    /// requests gets the whole URL, so that it caches its own share of the URLs.
    fn key(&self) -> Vec<u8> {
        match self.scheme() {
            Scheme::Http => absolute_target(&self.origin, &self.target),
            Scheme::Https => authority(&self.origin).into_bytes(),
        }
    }
}

/// The routes that the requests of one worker can take through parent proxies.
pub(crate) struct ParentRoutes {
    parents: Arc<Parents>,
    counters: Arc<Counters>,
    /// Time limit for a parent proxy's answer to a CONNECT.
    timeout: Duration,
    limits: Limits,
}

impl ParentRoutes {
    /// Creates the routes through parent proxies. Returns `None` if the operator has set no parent.
    pub(crate) fn new(settings: &UpstreamSettings, counters: &Arc<Counters>) -> Option<Self> {
        Some(Self {
            parents: Arc::clone(settings.parents.as_ref()?),
            counters: Arc::clone(counters),
            timeout: settings.connect_timeout,
            limits: settings.limits,
        })
    }

    /// Returns true if the operator wants no parent proxy for the destination of the request.
    pub(crate) fn are_bypassed(&self, attempts: &ParentAttempts) -> bool {
        self.parents.are_bypassed(attempts.aim(&[]))
    }

    /// Chooses the route of a request, and counts the choice.
    ///
    /// # Errors
    /// [`ConnectError::Forbidden`] if the destination policy forbids the destination. Otherwise the
    /// reason why no parent proxy works.
    pub(crate) fn choose_route(
        &self,
        dialer: &Dialer,
        attempts: &mut ParentAttempts,
    ) -> Result<Route, ConnectError> {
        let key = attempts.key();
        let aim = attempts.aim(&key);
        if aim.is_cacheable || !self.parents.are_bypassed(aim) {
            dialer.check_unresolved(&attempts.origin)?;
        }
        let (by, counter) = match self.parents.choose(aim, attempts.tried, clock::monotonic()) {
            Chosen::Direct => (By::Direct, Counter::ParentBypasses),
            Chosen::Fallback => (By::Direct, Counter::ParentFallbacks),
            Chosen::Nothing => {
                self.counters.add(Counter::ParentRefusals, 1);
                return Err(attempts.failure.into());
            }
            Chosen::Parent(number) => {
                let first = attempts.tried.is_empty();
                let counter =
                    if first { Counter::ParentRequests } else { Counter::ParentFailovers };
                let absolute = aim.scheme == Scheme::Http;
                (if absolute { By::Parent(number) } else { By::Tunnel(number) }, counter)
            }
        };
        self.counters.add(counter, 1);
        attempts.needs_route = false;
        let origin = match by {
            By::Parent(number) => origin_of(self.parents.parent(number)),
            By::Direct | By::Tunnel(_) | By::Node(_) => attempts.origin.clone(),
        };
        Ok(Route { origin, by, client: None })
    }

    /// Notes that the parent proxy of a route has failed before a byte of the request was sent.
    /// Fails with the same error if another parent could not help.
    pub(crate) fn try_another(
        &self,
        attempts: &mut ParentAttempts,
        by: By,
        error: ConnectError,
    ) -> Result<(), ConnectError> {
        match (by.parent(), error) {
            (Some(number), _) if self.parents.is_sibling(number) => {
                self.leave_sibling(attempts, number);
                Ok(())
            }
            (Some(number), ConnectError::Parent(failure)) if failure.permits_another() => {
                attempts.tried.add(number);
                attempts.failure = failure;
                attempts.needs_route = true;
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Prepares to send a request without the sibling (a `foxy run` whose cache this proxy shares),
    /// because the sibling gave no answer. Returns false if the route does not lead through the
    /// sibling.
    pub(crate) fn is_left(&self, attempts: &mut ParentAttempts, by: By) -> bool {
        let sibling = by.parent().filter(|number| self.parents.is_sibling(*number));
        sibling.inspect(|number| self.leave_sibling(attempts, *number)).is_some()
    }

    fn leave_sibling(&self, attempts: &mut ParentAttempts, number: usize) {
        attempts.tried.add(number);
        attempts.needs_route = true;
    }

    /// Opens a connection to the parent proxy with this number, with TLS if its URL says so.
    pub(crate) async fn dial_parent(
        &self,
        dialer: &Dialer,
        number: usize,
    ) -> Result<Transport, ConnectError> {
        let parent = origin_of(self.parents.parent(number));
        let dialled = dialer.dial(&parent, DialedProtocol::Http1, None, None).await;
        dialled.map(|dialled| dialled.stream).map_err(|error| match error {
            ConnectError::OutOfResources => error,
            ConnectError::Tls(_) => self.fails(number, ParentFailure::Tls),
            ConnectError::Forbidden(DestinationRefusal::OwnAddress) => ParentFailure::Loop.into(),
            _ => self.fails(number, ParentFailure::Unreachable),
        })
    }

    /// Opens a tunnel to `origin` through a parent proxy. `via` is the Via field of a client's
    /// CONNECT, with this proxy added. Also returns the bytes that arrived after the parent's
    /// answer.
    pub(crate) async fn open_tunnel(
        &self,
        dialer: &Dialer,
        number: usize,
        origin: &Origin,
        via: Option<&Headers>,
    ) -> Result<(Transport, Bytes), ConnectError> {
        let mut stream = self.dial_parent(dialer, number).await?;
        let authority = authority(origin);
        let mut headers = via.cloned().unwrap_or_default();
        if via.is_none() {
            headers.append("Via", self.parents.via());
        }
        headers.append("Host", &authority);
        authorize(&mut headers, self.parents.parent(number));
        let asked = ask_for_tunnel(&mut stream, &authority, &headers, self.limits);
        let failure = match timeout(self.timeout, asked).await {
            Err(_) => {
                self.is_silent(number);
                ParentFailure::TimedOut
            }
            Ok(answer) => {
                match answer {
                    TunnelAnswer::Broken => {
                        self.is_silent(number);
                    }
                    TunnelAnswer::Status(407) => {}
                    TunnelAnswer::Open(_) | TunnelAnswer::Status(_) => self.works(number),
                }
                match answer.opened() {
                    Ok(rest) => return Ok((stream, rest)),
                    Err(failure) => failure,
                }
            }
        };
        Err(self.fails(number, failure))
    }

    /// Records a failure of a parent proxy, and returns the error for it.
    pub(crate) fn fails(&self, number: usize, failure: ParentFailure) -> ConnectError {
        let is_down = matches!(
            failure,
            ParentFailure::Unreachable | ParentFailure::Tls | ParentFailure::Credentials
        );
        if is_down && self.parents.fails(number, ParentFault::Down, clock::monotonic()) {
            self.counters.add(Counter::ParentsDown, 1);
        }
        failure.into()
    }

    /// Records that a parent proxy accepted a connection, but gave no answer.
    pub(crate) fn is_silent(&self, number: usize) {
        self.parents.fails(number, ParentFault::Silent, clock::monotonic());
    }

    /// Records that a parent proxy answered a request.
    pub(crate) fn works(&self, number: usize) {
        self.parents.works(number);
    }

    /// Changes a request for its route: sets the form of its target, and adds the parent proxy's
    /// credentials.
    pub(crate) fn adapt(&self, request: &mut OutgoingRequest, attempts: &ParentAttempts, by: By) {
        request.headers.remove("proxy-authorization");
        request.target = attempts.target.clone();
        if let By::Parent(number) = by {
            request.target = absolute_target(&attempts.origin, &attempts.target).into();
            authorize(&mut request.headers, self.parents.parent(number));
        }
    }
}

/// Returns how a request with this target, or a tunnel, would reach its origin now, for an
/// explanation. Changes nothing.
pub(crate) fn expected_way(
    parents: &Parents,
    origin: &Origin,
    target: Option<&Bytes>,
) -> ExpectedWay {
    let attempts = match target {
        Some(target) => ParentAttempts::for_request(origin, target, false),
        None => ParentAttempts::for_tunnel(origin),
    };
    parents.expected(attempts.aim(&attempts.key()), clock::monotonic())
}

/// Returns the parent proxy as a destination to which the operator permits connections.
fn origin_of(parent: &Parent) -> Origin {
    Origin::new(parent.scheme(), parent.host(), parent.port(), ChosenBy::Operator)
}

fn authorize(headers: &mut Headers, parent: &Parent) {
    if let Some(value) = parent.credentials().map(ParentCredentials::value) {
        headers.set("Proxy-Authorization", value);
    }
}

/// Returns the host and port of an origin, as a CONNECT contains them.
fn authority(origin: &Origin) -> String {
    let Origin { host, port, .. } = origin;
    let is_bare = host.contains(':') && !host.starts_with('[');
    if is_bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Returns the target of a request to a parent proxy: the whole URL (absolute form, RFC 9112
/// §3.2.2, §3.2.4).
fn absolute_target(origin: &Origin, target: &[u8]) -> Vec<u8> {
    let authority = authority(origin);
    let usual = format!(":{}", origin.scheme.default_port());
    let authority = authority.strip_suffix(&usual).unwrap_or(&authority);
    let path = if target == b"*" { b"" } else { target };
    [origin.scheme.as_str().as_bytes(), b"://", authority.as_bytes(), path].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::parents::ParentSettings;
    use crate::upstream::sending::{RequestBody, Stage};
    use foxy_http::Method;
    use tokio::time::Instant;

    #[test]
    fn a_request_that_changes_its_way_leaves_the_credentials_behind() {
        let parents = ["http://user:word@a.test:1", "http://b.test:1"];
        let parents = parents.map(|url| url.parse().expect("a parent")).to_vec();
        let parents = ParentSettings { parents, ..ParentSettings::default() };
        let parents = Parents::new(parents, "foxy", 7).map(Arc::new);
        let settings = UpstreamSettings { parents, ..UpstreamSettings::default() };
        let routes = ParentRoutes::new(&settings, &Arc::default()).expect("it has parents");
        let origin = Origin::new(Scheme::Http, "x.test", 8080, ChosenBy::Client);
        let target = Bytes::from_static(b"/p?q");
        let attempts = ParentAttempts::for_request(&origin, &target, false);
        let mut request = OutgoingRequest {
            method: Method::Get,
            target: Bytes::from_static(b"/p?q"),
            headers: Headers::new(),
            body: RequestBody::none(),
            upgrade: false,
            waits_for_continue: false,
            taken: false,
            stage: Stage::Head,
            head_timeout: Duration::from_secs(1),
            active: Instant::now(),
        };
        let absolute = "http://x.test:8080/p?q";
        for (by, target, credentials) in [
            (By::Parent(0), absolute, Some(&b"Basic dXNlcjp3b3Jk"[..])),
            (By::Parent(1), absolute, None),
            (By::Parent(0), absolute, Some(b"Basic dXNlcjp3b3Jk")),
            (By::Direct, "/p?q", None),
            (By::Tunnel(0), "/p?q", None),
        ] {
            routes.adapt(&mut request, &attempts, by);
            assert_eq!(request.target, target, "{by:?}");
            assert_eq!(request.headers.get("proxy-authorization"), credentials, "{by:?}");
        }
    }
}
