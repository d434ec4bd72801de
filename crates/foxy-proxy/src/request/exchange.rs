//! Decides how to handle a request, with pure functions. The first decision is the kind of the
//! request. After the look-up in the cache, the second decision is the next step. `server` and
//! `lookup` execute the steps.
//!
//! ```text
//! request ── malformed, loop, wrong kind of proxy ──────────────────────► Refuse
//!    ├────── CONNECT ───────────────────────────────────────────────────► Tunnel
//!    ├────── TRACE or OPTIONS with Max-Forwards: 0 ─────────────────────► AnswerHere
//!    ├────── a rule redirects ──────────────────────────────────────────► Redirect
//!    ├────── PURGE ─────────────────────────────────────────────────────► Purge
//!    ├────── other method, body, upgrade, If-Match, … ──────────────────► Forward (the cache is not used)
//!    └────── GET, HEAD ── look up ─┬─ fresh enough ─────────────────────► Serve
//!                                  ├─ only-if-cached ───────────────────► Refuse
//!                                  ├─ too old, has validators ──────────► Revalidate
//!                                  └─ nothing, or no validators ────────► Fetch
//! ```

use crate::cache::{CacheKey, Found, Stored};
use crate::core::addresses::client_ends::ClientEnds;
use crate::core::{ForwardReason, View};
use crate::request::answered::AnswerOptions;
use crate::request::cache_status::signed;
use crate::request::mode::Mode;
use crate::request::reason::ErrorReason;
use crate::upstream::{ChosenBy, NoOrigin, Origin, Scheme};
use foxy_base::WallTime;
use foxy_http::{
    Authority, BodyLength, Method, RequestHead, TargetForm, names_other_fields_away,
    upgrade_protocol,
};
use foxy_rules::operator::Upstream;
use foxy_rules::reuse::may_reuse;
use foxy_rules::validate::must_reach_origin;
use foxy_rules::{Permit, RequestControl, Reuse, Validators, cache_key};

/// The kind of a request, which decides how the proxy handles it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Refuse(ErrorReason),
    Tunnel(Origin),
    /// An OPTIONS request that ends at this proxy.
    AnswerHere,
    /// A request that a rule of the operator answers with another URL.
    Redirect(Redirection),
    /// A request with the method PURGE, for this cache key.
    Purge(Vec<u8>),
    /// A request that the proxy sends to the origin without using the cache.
    Forward(Origin, Vec<u8>, ForwardReason),
    /// A request for which the proxy first looks in the cache, under this key.
    LookUp(Origin, Vec<u8>),
}

/// A redirect of a client to another URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirection {
    pub(crate) status: u16,
    /// The new URL, as the field `Location` has it.
    pub(crate) location: Vec<u8>,
}

impl Plan {
    /// Returns the plan for a request that a rule redirects. A redirect needs no origin. Tunnels,
    /// purges of an origin's URL and other refused requests are not redirected.
    pub(crate) fn redirected(self, redirection: Option<Redirection>) -> Self {
        use ErrorReason::{OnlyIfCached, UnknownHost, UnknownPath};
        let is_lost = matches!(self, Self::Refuse(OnlyIfCached | UnknownHost | UnknownPath));
        match redirection {
            Some(to) if is_lost || matches!(self, Self::LookUp(..) | Self::Forward(..)) => {
                Self::Redirect(to)
            }
            _ => self,
        }
    }

    /// Returns the plan for a request that must not use the cache because of an operator's rule. If
    /// the request accepts only a stored response, the plan is to refuse it.
    pub(crate) fn past_the_cache(self, head: &RequestHead) -> Self {
        match self {
            Self::LookUp(..) if RequestControl::of(&View(&head.headers)).only_if_cached => {
                Self::Refuse(ErrorReason::OnlyIfCached)
            }
            Self::LookUp(origin, key) | Self::Forward(origin, key, _) => {
                Self::Forward(origin, key, ForwardReason::Rule)
            }
            plan => plan,
        }
    }

    /// Returns true if a file of the proxy itself, such as the PAC file, may be the answer.
    pub(crate) const fn permits_local_file(&self) -> bool {
        let is_for_a_server = matches!(self, Self::Refuse(ErrorReason::NotAProxyRequest));
        is_for_a_server || matches!(self, Self::LookUp(..) | Self::Forward(..) | Self::Redirect(_))
    }
}

/// A request that the cache may answer, with its cache key.
pub(crate) struct Wanted<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) origin: Origin,
    pub(crate) key: CacheKey,
    pub(crate) options: AnswerOptions,
    pub(crate) client: ClientEnds,
    pub(crate) role: FleetRole,
}

/// Tells whether another node of the fleet may answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FleetRole {
    /// This node belongs to no fleet.
    NoFleet,
    /// A rule chose the upstream, so no other node may answer. The scheme is the scheme of the URL.
    Alone(Scheme),
    /// Another node may answer. The scheme is the scheme of the URL.
    MayAsk(Scheme),
    /// Another node has sent the request, so this node must answer. The scheme is the scheme of the
    /// URL.
    Asked(Scheme),
    /// Another node asks only for a stored response. So this node neither fetches the response nor
    /// asks others.
    AskedForStored,
}

/// Determines the kind of a request. `over` is the scheme of the connection on which the request
/// arrived. `upstream` is the upstream that the operator's rules have chosen.
pub(crate) fn plan(
    head: &RequestHead,
    body: BodyLength,
    over: Scheme,
    mode: &Mode,
    via_name: &str,
    upstream: Option<&Upstream>,
) -> Plan {
    if in_a_circle(head, via_name) {
        return Plan::Refuse(ErrorReason::Loop);
    }
    if head.method == Method::Connect {
        return tunnel(head, mode, upstream);
    }
    let (origin, key) = match target(head, over, mode, upstream) {
        Ok(found) => found,
        Err(reason) => return Plan::Refuse(reason),
    };
    let hops_left = head.hops_left();
    match head.method {
        Method::Other(ref name) if &**name == "PURGE" => return Plan::Purge(key),
        Method::Trace if hops_left == Some(0) => return Plan::Refuse(ErrorReason::TraceHere),
        Method::Options if hops_left == Some(0) => return Plan::AnswerHere,
        _ => {}
    }
    match why_not_cached(head, body) {
        Some(ForwardReason::Bypass) if RequestControl::of(&View(&head.headers)).only_if_cached => {
            Plan::Refuse(ErrorReason::OnlyIfCached)
        }
        Some(reason) => Plan::Forward(origin, key, reason),
        None => Plan::LookUp(origin, key),
    }
}

fn in_a_circle(head: &RequestHead, via_name: &str) -> bool {
    let hops = head.headers.tokens("via");
    let mut names = hops.filter_map(|hop| {
        hop.split(|byte| byte.is_ascii_whitespace()).filter(|part| !part.is_empty()).nth(1)
    });
    names.any(|name| name.eq_ignore_ascii_case(via_name.as_bytes()))
}

fn tunnel(head: &RequestHead, mode: &Mode, upstream: Option<&Upstream>) -> Plan {
    if !mode.is_forward() {
        return Plan::Refuse(ErrorReason::ConnectToReverse);
    }
    let authority = match head.target.form() {
        TargetForm::Authority(text) => Authority::parse(text),
        _ => None,
    };
    match authority {
        Some(Authority { host, port: Some(port) }) => {
            let origin = Origin::new(Scheme::Http, host, port, ChosenBy::Client);
            Plan::Tunnel(origin.by(upstream))
        }
        _ => Plan::Refuse(ErrorReason::BadAuthority),
    }
}

/// Returns the origin of a request, and the text of the request's cache key.
fn target(
    head: &RequestHead,
    over: Scheme,
    mode: &Mode,
    upstream: Option<&Upstream>,
) -> Result<(Origin, Vec<u8>), ErrorReason> {
    let path = head.origin_form().ok_or(ErrorReason::BadAuthority)?;
    let text = head.authority().unwrap_or_default();
    match (mode, head.target.form()) {
        (_, TargetForm::Absolute { scheme, .. }) if Scheme::named(scheme).is_none() => {
            Err(ErrorReason::UnsupportedScheme)
        }
        (Mode::Reverse { origins }, _) => {
            let key = cache_key(over.as_str(), text, &path);
            let origins = origins.get();
            let group = match upstream {
                Some(Upstream::Origin(name)) => origins.named(name).ok_or(NoOrigin::Host)?,
                _ => origins.find(&key)?,
            };
            Ok((group.any_server().by(upstream), key))
        }
        (Mode::Forward, TargetForm::Absolute { scheme, .. }) => {
            let scheme = Scheme::named(scheme).ok_or(ErrorReason::UnsupportedScheme)?;
            let authority = Authority::parse(text).ok_or(ErrorReason::BadAuthority)?;
            let port = authority.port.unwrap_or(scheme.default_port());
            let origin = Origin::new(scheme, authority.host, port, ChosenBy::Client);
            Ok((origin.by(upstream), cache_key(scheme.as_str(), text, &path)))
        }
        (Mode::Forward, _) => Err(ErrorReason::NotAProxyRequest),
    }
}

fn why_not_cached(head: &RequestHead, body: BodyLength) -> Option<ForwardReason> {
    if !matches!(head.method, Method::Get | Method::Head) {
        return Some(ForwardReason::Method);
    }
    let has_body = !matches!(body, BodyLength::None | BodyLength::Length(0));
    let upgrade = upgrade_protocol(head.version, &head.headers).is_some();
    // The Connection field names header fields, which the proxy must remove. Without them, the
    // origin may select another variant than for the original request. So the cache is not used.
    let other = names_other_fields_away(&head.headers);
    (has_body || upgrade || other || must_reach_origin(&View(&head.headers)))
        .then_some(ForwardReason::Bypass)
}

/// The next step after a look-up in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The proxy serves the stored response.
    Serve {
        /// Number of seconds until the response becomes stale. The number is negative if the
        /// response is already stale.
        ttl: i64,
        /// The caching rule that permits a stale answer, if the answer is stale.
        permit: Option<Permit>,
    },
    /// The request accepts only a stored response (`only-if-cached`), but no stored response may
    /// answer it.
    GatewayTimeout,
    Revalidate(ForwardReason),
    Fetch(ForwardReason),
}

pub(crate) fn decide_about(control: &RequestControl, found: &Found, now: WallTime) -> Next {
    match found {
        Found::Response(stored, _) => decide(control, stored, now),
        Found::Varies(_) => decide_without(control, true),
        Found::Nothing | Found::Unknown => decide_without(control, false),
    }
}

pub(crate) fn decide(control: &RequestControl, stored: &Stored, now: WallTime) -> Next {
    match may_reuse(control, stored.facts(), now) {
        Reuse::Fresh { left } => Next::Serve { ttl: signed(left), permit: None },
        Reuse::Stale { by, permit } => Next::Serve { ttl: -signed(by), permit: Some(permit) },
        Reuse::Revalidate(_) if control.only_if_cached => Next::GatewayTimeout,
        Reuse::Revalidate(why) => {
            let reason = match stored.doubt {
                Some(doubt) => ForwardReason::InDoubt(doubt),
                None if why.is_the_requests() => ForwardReason::Request,
                None => ForwardReason::Stale,
            };
            if can_be_validated(stored) { Next::Revalidate(reason) } else { Next::Fetch(reason) }
        }
    }
}

pub(crate) fn can_be_validated(stored: &Stored) -> bool {
    stored.head.status == 200 && !Validators::of(&View(&stored.head.headers)).is_empty()
}

/// Decides the next step if no stored response matches the request. `varies` is true if responses
/// for other request headers are stored (Vary).
pub(crate) fn decide_without(control: &RequestControl, varies: bool) -> Next {
    match (control.only_if_cached, varies) {
        (true, _) => Next::GatewayTimeout,
        (false, true) => Next::Fetch(ForwardReason::VaryMiss),
        (false, false) => Next::Fetch(ForwardReason::UriMiss),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::OriginServer;
    use bytes::BytesMut;
    use foxy_http::{RequestDecoder, RequestEvent};

    fn sort(text: &str, mode: &Mode) -> Plan {
        sort_over(Scheme::Http, text, mode)
    }

    fn sort_over(over: Scheme, text: &str, mode: &Mode) -> Plan {
        let mut buffer = BytesMut::from(text.replace('\n', "\r\n").as_bytes());
        match RequestDecoder::default().next(&mut buffer) {
            Ok(Some(RequestEvent::Head(head, body))) => {
                plan(&head, body, over, mode, "foxy-1", None)
            }
            other => panic!("not a request: {other:?}"),
        }
    }

    fn origin(port: u16) -> Origin {
        Origin::new(Scheme::Http, "a.test", port, ChosenBy::Client)
    }

    #[test]
    fn a_forward_proxy_sorts_requests() {
        let key = |path: &str| format!("http://a.test{path}").into_bytes();
        let forward = |reason| Plan::Forward(origin(80), key("/x"), reason);
        let cases = [
            (
                "GET http://A.test/x?y HTTP/1.1\nHost: a.test\n\n",
                Plan::LookUp(origin(80), key("/x?y")),
            ),
            ("HEAD http://a.test HTTP/1.1\nHost: a.test\n\n", Plan::LookUp(origin(80), key("/"))),
            (
                "GET http://a.test:80/x HTTP/1.1\nHost: b.test\n\n",
                Plan::LookUp(origin(80), key("/x")),
            ),
            (
                "POST http://a.test/x HTTP/1.1\nHost: a.test\nContent-Length: 0\n\n",
                forward(ForwardReason::Method),
            ),
            (
                "GET http://a.test/x HTTP/1.1\nHost: a.test\nContent-Length: 5\n\n",
                forward(ForwardReason::Bypass),
            ),
            (
                "GET http://a.test/x HTTP/1.1\nHost: a.test\nIf-Match: \"a\"\n\n",
                forward(ForwardReason::Bypass),
            ),
            (
                "GET http://a.test/x HTTP/1.1\nHost: a.test\nConnection: upgrade\nUpgrade: websocket\n\n",
                forward(ForwardReason::Bypass),
            ),
            (
                "GET http://a.test/x HTTP/1.1\nHost: a.test\nConnection: Accept-Language\nAccept-Language: de\n\n",
                forward(ForwardReason::Bypass),
            ),
            (
                "GET http://a.test/x HTTP/1.1\nHost: a.test\nConnection: keep-alive, X-Absent\n\n",
                Plan::LookUp(origin(80), b"http://a.test/x".to_vec()),
            ),
            ("CONNECT a.test:443 HTTP/1.1\nHost: a.test:443\n\n", Plan::Tunnel(origin(443))),
            ("GET /x HTTP/1.1\nHost: a.test\n\n", Plan::Refuse(ErrorReason::NotAProxyRequest)),
            (
                "GET HTTPS://A.test/x HTTP/1.1\nHost: a.test\n\n",
                Plan::LookUp(
                    Origin::new(Scheme::Https, "a.test", 443, ChosenBy::Client),
                    b"https://a.test/x".to_vec(),
                ),
            ),
            (
                "GET ftp://a.test/x HTTP/1.1\nHost: a.test\n\n",
                Plan::Refuse(ErrorReason::UnsupportedScheme),
            ),
            (
                "GET http://a.test/ HTTP/1.1\nHost: a.test\nVia: 1.1 b, 1.1 FOXY-1\n\n",
                Plan::Refuse(ErrorReason::Loop),
            ),
            ("OPTIONS http://a.test HTTP/1.1\nHost: a.test\nMax-Forwards: 0\n\n", Plan::AnswerHere),
            (
                "TRACE http://a.test/ HTTP/1.1\nHost: a.test\nMax-Forwards: 0\n\n",
                Plan::Refuse(ErrorReason::TraceHere),
            ),
            (
                "OPTIONS http://a.test HTTP/1.1\nHost: a.test\nMax-Forwards: 00\n\n",
                Plan::AnswerHere,
            ),
            (
                "GET http://a.test/ HTTP/1.1\nHost: a.test\nIf-Match: \"a\"\nCache-Control: only-if-cached\n\n",
                Plan::Refuse(ErrorReason::OnlyIfCached),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(sort(text, &Mode::Forward), expected, "{text}");
        }
    }

    #[test]
    fn a_reverse_proxy_goes_to_its_origin_and_keys_by_host() {
        let server = OriginServer { scheme: Scheme::Http, host: "inside".into(), port: 81 };
        let mode = Mode::reverse(server);
        let plan = sort("GET /x HTTP/1.1\nHost: a.test\n\n", &mode);
        let origins = mode.origins().expect("a reverse proxy");
        let inside = origins.get().groups()[0].any_server();
        assert_eq!(plan, Plan::LookUp(inside.clone(), b"http://a.test/x".to_vec()));
        let plan = sort_over(Scheme::Https, "GET /x HTTP/1.1\nHost: a.test\n\n", &mode);
        assert_eq!(plan, Plan::LookUp(inside, b"https://a.test/x".to_vec()));
        let plan = sort("CONNECT a.test:443 HTTP/1.1\nHost: a.test:443\n\n", &mode);
        assert_eq!(plan, Plan::Refuse(ErrorReason::ConnectToReverse));
        let plan = sort("GET ftp://a.test/x HTTP/1.1\nHost: a.test\n\n", &mode);
        assert_eq!(plan, Plan::Refuse(ErrorReason::UnsupportedScheme));
    }

    #[test]
    fn only_if_cached_ends_here_when_nothing_is_stored() {
        let control = RequestControl { only_if_cached: true, ..RequestControl::default() };
        assert_eq!(decide_without(&control, false), Next::GatewayTimeout);
        assert_eq!(
            decide_without(&RequestControl::default(), true),
            Next::Fetch(ForwardReason::VaryMiss)
        );
    }
}
