//! Runs one *exchange*: a request to an origin and its response. It uses an idle or a new
//! connection, with either HTTP version. The request is sent while the response is read, so that
//! the proxy notices an early answer. An incomplete response never counts as complete.

use crate::core::addresses::client_ends::ClientEnds;
use crate::core::transport::Transport;
use crate::upstream::client::{UpstreamCore, UpstreamRequest};
use crate::upstream::dial::Origin;
use crate::upstream::error::{ConnectError, Http2Error, ParentFailure, UpstreamError};
use crate::upstream::fleet::FleetNode;
use crate::upstream::http1::Http1Link;
use crate::upstream::http2::{self, Http2Exchange};
use crate::upstream::origins::attempts::ServerAttempts;
use crate::upstream::origins::choice::Repeatable;
use crate::upstream::origins::server::ServerFault;
use crate::upstream::protocol_link::{Link, remove_forged_field};
use crate::upstream::reach::{ReachOptions, Reached};
use crate::upstream::route::{By, NodeSource, OriginTimes, Responder, Route};
use crate::upstream::sending::{OutgoingRequest, RetryReason, Stage, WaitEnd};
use crate::upstream::through::ParentAttempts;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{BodyLength, Headers, Method, ResponseEvent, ResponseHead, Scheme};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

/// Largest number of times that one exchange sends its request again over HTTP/2.
const MAX_REPEATS: usize = 3;

/// Events before the body of a response.
#[derive(Debug)]
pub enum HeadEvent {
    /// The client sent `Expect: 100-continue`, and must now receive a 100 response. Either the
    /// origin sent a 100 response, or it took too long. This event occurs at most once.
    Continue,
    /// Another 1xx response, which the caller forwards.
    Interim(ResponseHead),
    /// The final head, and the framing of the body. If the framing is [`BodyLength::Tunnel`], the
    /// caller continues with [`UpstreamExchange::into_tunnel`]. Otherwise the caller continues with
    /// [`UpstreamExchange::next`].
    Final(ResponseHead, BodyLength),
}

/// An event of a response body. First any number of `Data`, then at most one `Trailers`, then
/// `End`.
#[derive(Debug)]
pub enum BodyEvent {
    /// At least one byte of the body.
    Data(Bytes),
    /// Trailers without the fields that trailers must not contain.
    Trailers(Headers),
    /// The response is complete: its length is the length that the origin announced.
    End,
}

/// An exchange with an origin. Dropping it before its end closes its HTTP/1.1 connection, or resets
/// its HTTP/2 stream.
pub struct UpstreamExchange {
    shared: Rc<UpstreamCore>,
    route: Route,
    /// The attempts through parent proxies. `None` if the operator has set no parent proxies.
    attempts: Option<Box<ParentAttempts>>,
    /// The attempts with the servers of the operator's origin. `None` if the origin has no servers
    /// to choose from.
    servers: Option<Box<ServerAttempts>>,
    client: Option<ClientEnds>,
    request: OutgoingRequest,
    /// Scheme of the request's URL, if a node of the fleet receives the request.
    scheme: Option<Scheme>,
    link: Option<Link>,
    over_http1: bool,
    repeats: usize,
    started: foxy_base::Instant,
    /// Time for which the exchange has waited for connections.
    connect: Duration,
    /// Time from the start to the head of the final response.
    first_byte: Option<Duration>,
}

impl UpstreamExchange {
    pub(crate) fn new(shared: Rc<UpstreamCore>, request: UpstreamRequest) -> Self {
        let UpstreamRequest { origin, method, target, headers, body } = request;
        let upgrade = headers.contains("upgrade");
        let waits_for_continue = !body.is_complete() && headers.has_token("expect", "100-continue");
        let is_cacheable =
            matches!(method, Method::Get | Method::Head) && body.is_complete() && !upgrade;
        let attempts = || Box::new(ParentAttempts::for_request(&origin, &target, is_cacheable));
        let is_repeatable = method.is_idempotent() && body.is_complete() && !upgrade;
        let repeatable = if is_repeatable { Repeatable::Yes } else { Repeatable::No };
        let group = origin.member.as_ref().filter(|member| member.server.is_none());
        let servers = group.map(|member| ServerAttempts::new(&member.group, repeatable));
        let head_timeout = shared.head_timeout(&origin);
        Self {
            attempts: shared.parents.is_some().then(attempts),
            servers: servers.map(Box::new),
            shared,
            route: Route::direct(Origin { ways: None, ..origin }),
            client: None,
            scheme: None,
            request: OutgoingRequest {
                method,
                target,
                headers,
                body,
                upgrade,
                waits_for_continue,
                taken: false,
                stage: Stage::Head,
                head_timeout,
                active: Instant::now(),
            },
            link: None,
            over_http1: upgrade,
            repeats: 0,
            started: clock::monotonic(),
            connect: Duration::ZERO,
            first_byte: None,
        }
    }

    /// Sends the request to a node of the fleet instead of the origin. The node has more time to
    /// answer, because it may wait for the origin. `scheme` is the scheme of the request's URL.
    pub(crate) fn sent_to_node(self, node: &FleetNode, scheme: Scheme) -> Self {
        let scheme = Some(scheme);
        let route = Route::to_node(node);
        let head_timeout = self.request.head_timeout + self.shared.settings.connect_timeout;
        let request = OutgoingRequest { head_timeout, ..self.request };
        Self { attempts: None, servers: None, route, scheme, request, ..self }
    }

    /// Returns the number of the node that receives the request. Returns `None` if an origin or a
    /// parent proxy receives it.
    pub(crate) const fn node(&self) -> Option<usize> {
        match self.route.by {
            By::Node(number) => Some(number),
            By::Direct | By::Parent(_) | By::Tunnel(_) => None,
        }
    }

    /// Returns true if the request was given to a connection.
    pub const fn is_sent(&self) -> bool {
        self.link.is_some()
    }

    /// Sets the client for whom the exchange connects to the origin. The client's name look-ups are
    /// limited. A PROXY header and `source-address = "client"` use the client's address.
    pub fn asked_by(self, client: ClientEnds) -> Self {
        Self { client: Some(client), ..self }
    }

    /// Returns the server and parent proxy that receive the request, and the times so far.
    pub(crate) fn responder(&self) -> Responder {
        let server = self.servers.as_ref().and_then(|servers| servers.chosen());
        let Self { started, connect, .. } = *self;
        let times = self.first_byte.map(|first_byte| OriginTimes { started, connect, first_byte });
        let node = self.route.by.node().map(|number| (number, NodeSource::Origin));
        Responder { parent: self.route.by.parent(), server, node, times }
    }

    /// Returns the next event before the body. The caller repeats the call until it returns
    /// [`HeadEvent::Final`]. If the caller drops the future before it is ready, nothing is lost,
    /// and the caller may call again.
    ///
    /// # Errors
    /// The reason why there is no response. The exchange has then ended.
    pub async fn head(&mut self) -> Result<HeadEvent, UpstreamError> {
        assert!(self.request.stage == Stage::Head, "the final head was given already");
        loop {
            self.connect().await?;
            let turned = self.turn().await;
            match self.judged(turned)? {
                WaitEnd::Retry(why) => {
                    if let Err(error) = self.retry(why) {
                        self.change_server(error, why == RetryReason::Lost)?;
                    }
                }
                WaitEnd::ContinueTimeout => {
                    self.request.waits_for_continue = false;
                    return Ok(HeadEvent::Continue);
                }
                WaitEnd::Event(ResponseEvent::Interim(head))
                    if head.status == 100 && self.request.waits_for_continue =>
                {
                    self.request.waits_for_continue = false;
                    return Ok(HeadEvent::Continue);
                }
                WaitEnd::Event(ResponseEvent::Interim(head)) => {
                    return Ok(HeadEvent::Interim(head));
                }
                WaitEnd::Event(ResponseEvent::Head(head, length)) => {
                    self.request.stage = Stage::Body;
                    let first_byte = clock::monotonic().since(self.started);
                    self.first_byte = Some(first_byte);
                    self.shared.count_first_byte(self.node(), first_byte);
                    return Ok(HeadEvent::Final(head, length));
                }
                WaitEnd::Event(_) => unreachable!("heads come first"),
            }
        }
    }

    /// Returns the next event of the body, and meanwhile sends more of the request. Reads from the
    /// origin only while the future is polled. If the caller drops the future before it is ready,
    /// nothing is lost, and the caller may call again. After [`BodyEvent::End`], the connection is
    /// kept if possible.
    ///
    /// # Errors
    /// The reason why the response is incomplete. The exchange has then ended.
    pub async fn next(&mut self) -> Result<BodyEvent, UpstreamError> {
        assert!(self.request.stage != Stage::Head, "the final head comes first");
        if self.request.stage == Stage::Done {
            return Ok(BodyEvent::End);
        }
        self.request.touch();
        match self.turn().await? {
            WaitEnd::Event(ResponseEvent::Body(bytes)) => {
                self.shared.hears(self.node());
                Ok(BodyEvent::Data(bytes))
            }
            WaitEnd::Event(ResponseEvent::Trailers(trailers)) => Ok(BodyEvent::Trailers(trailers)),
            WaitEnd::Event(ResponseEvent::End) => {
                self.finish();
                Ok(BodyEvent::End)
            }
            WaitEnd::Event(ResponseEvent::Interim(_) | ResponseEvent::Head(..))
            | WaitEnd::ContinueTimeout
            | WaitEnd::Retry(_) => unreachable!("heads come first"),
        }
    }

    /// Returns the connection, after a head whose framing is [`BodyLength::Tunnel`]. Also returns
    /// the bytes of the tunnel that arrived together with this head.
    pub fn into_tunnel(mut self) -> Option<(Transport, Bytes)> {
        match self.link.take()? {
            Link::Http1(link) => Some(link.into_tunnel()),
            Link::Http2(_) => None,
        }
    }

    /// Finds a connection, and begins to send the head of the request.
    ///
    /// Over HTTP/1.1, only an idempotent request with a complete body and no upgrade uses an idle
    /// connection. The origin may have closed the connection meanwhile, and the request would be
    /// lost (RFC 9112 §9.3.1). A repeated request uses a new connection (RFC 9110 §9.2.2).
    async fn connect(&mut self) -> Result<(), UpstreamError> {
        while self.link.is_none() {
            self.choose_route()?;
            let OutgoingRequest { method, target, headers, body, .. } = &self.request;
            let scheme = self.scheme.unwrap_or(self.route.origin.scheme);
            let head = (!self.over_http1 && self.shared.may_share(&self.route))
                .then(|| http2::request(scheme, method, target, headers, body.length()));
            let head = head.flatten();
            let may_be_lost = method.is_idempotent() && body.is_complete() && !self.request.upgrade;
            let wanted = ReachOptions {
                http2: head.is_some(),
                kept: self.repeats == 0 && may_be_lost,
                client: self.client.map(ClientEnds::block),
            };
            let begun = Instant::now();
            let reached = self.shared.reach(&self.route, wanted).await;
            self.connect += begun.elapsed();
            let reached = match reached {
                Ok(reached) => reached,
                Err(error) => {
                    self.try_another_way(error)?;
                    continue;
                }
            };
            self.link = match (reached, head) {
                (Reached::Http2(lease), Some(head)) => {
                    let stream = Http2Exchange::open(lease, head, body.is_complete());
                    stream.map(|stream| Link::Http2(Box::new(stream)))
                }
                (Reached::Http2(_), None) => None,
                (Reached::Http1(..), _) if self.scheme.is_some() => {
                    return Err(Http2Error::Protocol.into());
                }
                (Reached::Http1(connection, kept), _) => {
                    Some(Link::Http1(Box::new(Http1Link::open(*connection, kept, &self.request))))
                }
            };
            self.request.touch();
            if self.link.is_none()
                && let Err(error) = self.repeat(Http2Error::Refused)
            {
                self.change_server(error, false)?;
            }
        }
        Ok(())
    }

    /// Chooses the server of the origin and the route to it, unless both are already chosen.
    fn choose_route(&mut self) -> Result<(), ConnectError> {
        if let Some(servers) = &mut self.servers
            && servers.needs_server()
        {
            let OutgoingRequest { body, upgrade, headers, .. } = &mut self.request;
            let origin = servers.choose(body.is_complete() && !*upgrade)?;
            servers.adapt(headers);
            (self.over_http1, self.repeats) = (*upgrade, 0);
            if let Some(attempts) = &mut self.attempts {
                attempts.restart(&origin);
            }
            self.route = Route::direct(origin);
        }
        if let (Some(parents), Some(attempts)) = (&self.shared.parents, &mut self.attempts)
            && attempts.needs_route
        {
            self.route = parents.choose_route(self.shared.dialer(), attempts)?;
            parents.adapt(&mut self.request, attempts, self.route.by);
        }
        self.route.client = self.shared.single_client(&self.route, self.client);
        Ok(())
    }

    /// Prepares to try another parent proxy after a failure. Fails with the same error if another
    /// parent proxy could not help.
    fn try_another_parent(&mut self, error: ConnectError) -> Result<(), ConnectError> {
        match (&self.shared.parents, &mut self.attempts) {
            (Some(parents), Some(attempts)) => parents.try_another(attempts, self.route.by, error),
            _ => Err(error),
        }
    }

    /// Prepares to try another parent proxy or another server, because the request could not be
    /// sent.
    fn try_another_way(&mut self, error: UpstreamError) -> Result<(), UpstreamError> {
        let error = match error {
            UpstreamError::Connect(error) => match self.try_another_parent(error) {
                Ok(()) => return Ok(()),
                Err(error) => error.into(),
            },
            error => error,
        };
        self.change_server(error, false)
    }

    /// Records a failure of the chosen server, and prepares to send the request to another server.
    /// Returns `error` if no other server is permitted to receive it. `received` is true if the
    /// failed server has possibly received the request.
    fn change_server(&mut self, error: UpstreamError, received: bool) -> Result<(), UpstreamError> {
        let servers = self.servers.as_mut().zip(ServerFault::of(error));
        let (servers, fault) = servers.ok_or(error)?;
        servers.fails(fault);
        if !servers.try_another(received) {
            return Err(error);
        }
        self.link = None;
        Ok(())
    }

    /// Judges from the answer whether the chosen server works, and records the result. After a
    /// failure status, a GET or HEAD may go to another server. After no response at all, every
    /// request that may be sent twice may go to another server.
    fn judged(&mut self, turned: Result<WaitEnd, UpstreamError>) -> Result<WaitEnd, UpstreamError> {
        let turned = match self.judged_by_parent(turned) {
            Err(error) => self.past_sibling(error),
            turned => turned,
        };
        let Some(servers) = &mut self.servers else { return turned };
        match turned {
            Ok(WaitEnd::Event(ResponseEvent::Head(head, length))) => {
                if !ServerFault::is_status(head.status) {
                    servers.works();
                } else {
                    servers.fails(ServerFault::Failing);
                    let is_safe = matches!(self.request.method, Method::Get | Method::Head);
                    if is_safe && servers.try_another(true) {
                        self.link = None;
                        return Ok(WaitEnd::Retry(RetryReason::OtherServer));
                    }
                }
                Ok(WaitEnd::Event(ResponseEvent::Head(head, length)))
            }
            Err(error) if self.link.as_ref().is_some_and(Link::has_answered) => {
                if let Some(fault) = ServerFault::of(error) {
                    servers.fails(fault);
                }
                Err(error)
            }
            Err(error) => {
                self.change_server(error, true)?;
                Ok(WaitEnd::Retry(RetryReason::OtherServer))
            }
            turned => turned,
        }
    }

    /// Judges from the answer whether the parent proxy works, and records the result. If the parent
    /// refuses this proxy's credentials, the parent has not processed the request. The request may
    /// then go to another parent.
    fn judged_by_parent(
        &mut self,
        turned: Result<WaitEnd, UpstreamError>,
    ) -> Result<WaitEnd, UpstreamError> {
        let (Some(parents), By::Parent(number)) = (&self.shared.parents, self.route.by) else {
            return turned;
        };
        match &turned {
            Ok(WaitEnd::Event(ResponseEvent::Head(head, _))) if head.status == 407 => {
                let failure = ParentFailure::Credentials;
                let error = parents.fails(number, failure);
                let OutgoingRequest { method, body, taken, .. } = &self.request;
                let is_repeatable = method.is_idempotent() && body.is_complete() && !taken;
                self.link = None;
                if !is_repeatable {
                    return Err(error.into());
                }
                self.try_another_parent(error)?;
                Ok(WaitEnd::Retry(RetryReason::OtherParent))
            }
            Ok(WaitEnd::Event(ResponseEvent::Head(..))) => {
                parents.works(number);
                turned
            }
            Ok(_) | Err(UpstreamError::RequestBodyBroken) => turned,
            Err(_) => {
                parents.is_silent(number);
                turned
            }
        }
    }

    /// Prepares to send the request without the sibling (a `foxy run` whose cache this proxy
    /// shares), because the sibling gave no answer.
    fn past_sibling(&mut self, error: UpstreamError) -> Result<WaitEnd, UpstreamError> {
        let has_answered = self.link.as_ref().is_some_and(Link::has_answered);
        let both = self.shared.parents.as_ref().zip(self.attempts.as_mut());
        let Some((parents, attempts)) = both.filter(|_| !has_answered) else { return Err(error) };
        if !parents.is_left(attempts, self.route.by) {
            return Err(error);
        }
        self.link = None;
        Ok(WaitEnd::Retry(RetryReason::OtherParent))
    }

    async fn turn(&mut self) -> Result<WaitEnd, UpstreamError> {
        // A read can bring many tiny chunks. Other requests get their turn between them.
        consume_budget().await;
        let (request, settings) = (&mut self.request, &self.shared.settings);
        let link = self.link.as_mut().ok_or(UpstreamError::NoResponse)?;
        let mut end = link.turn(request, settings).await?;
        if self.node().is_none() {
            remove_forged_field(&mut end);
        }
        Ok(end)
    }

    /// Prepares to send the request again. Fails if HTTP forbids this, if part of the body was
    /// already read from the client, or after too many attempts.
    fn retry(&mut self, why: RetryReason) -> Result<(), UpstreamError> {
        let (link, request) = (self.link.take(), &self.request);
        let may = match why {
            RetryReason::Lost => {
                request.method.is_idempotent() && request.body.is_complete() && !request.taken
            }
            RetryReason::Refused
            | RetryReason::OverHttp1
            | RetryReason::OtherParent
            | RetryReason::OtherServer => !request.taken,
        };
        let error = match why {
            RetryReason::Lost | RetryReason::OtherServer => UpstreamError::NoResponse,
            RetryReason::Refused | RetryReason::OverHttp1 => Http2Error::Refused.into(),
            RetryReason::OtherParent => ParentFailure::Credentials.into(),
        };
        if !may {
            return Err(error);
        }
        if matches!(link, Some(Link::Http2(_))) || why == RetryReason::Lost {
            self.repeat(error)?;
        }
        self.over_http1 |= why == RetryReason::OverHttp1;
        self.shared.count(|counts| counts.retried += 1);
        Ok(())
    }

    /// Counts another attempt over HTTP/2. Returns the error if there were too many attempts.
    fn repeat(&mut self, error: impl Into<UpstreamError>) -> Result<(), UpstreamError> {
        self.repeats += 1;
        if self.repeats > MAX_REPEATS { Err(error.into()) } else { Ok(()) }
    }

    /// Keeps the connection for later requests, if both the request and the response are complete.
    fn finish(&mut self) {
        self.request.stage = Stage::Done;
        let sent = self.request.body.is_complete();
        self.request.body.refuse();
        if let Some(Link::Http1(link)) = self.link.take()
            && let Some(connection) = link.finish(sent)
        {
            self.shared.keep(&self.route, connection);
        }
    }
}
