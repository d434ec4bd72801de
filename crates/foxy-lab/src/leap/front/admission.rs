//! Decides which requests of clients the Multiplier (LEAP's request copier) accepts, and in which
//! form it sends copies of them to the proxies.

use super::{FrontRefusal, FrontState};
use crate::leap::collector::{self, Reach};
use crate::leap::multiplier::group;
use crate::leap::{Asked, Manner, Message, Path, exchange};
use crate::wire::REQUEST_ID;
use crate::wire::key::Destination;
use crate::wire::tls::entrance::Within;
use bytes::Bytes;
use foxy_http::Scheme;
use foxy_http::{Method, RequestHead, TargetForm, Version, strip_hop_by_hop};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

pub async fn admit(
    state: &FrontState,
    head: &RequestHead,
    client: IpAddr,
    within: &Within,
) -> Result<Asked, FrontRefusal> {
    let asked = read(state, head, client, within)?;
    if !direct_leads_to(state, &asked) && !is_collector(state).await {
        return Err(FrontRefusal::NotTheOrigin);
    }
    // `is_collector` has waited, and other requests may have arrived meanwhile. So the function
    // checks the limit again.
    if state.in_flight.get() >= state.context.run.most_in_flight {
        return Err(FrontRefusal::TooManyRequests);
    }
    Ok(asked)
}

fn read(
    state: &FrontState,
    head: &RequestHead,
    client: IpAddr,
    within: &Within,
) -> Result<Asked, FrontRefusal> {
    if state.over.get() {
        return Err(FrontRefusal::Over);
    }
    match (head.hops_left(), &head.method) {
        (Some(0), Method::Trace) => return Err(FrontRefusal::TraceHere),
        (Some(0), _) => return Err(FrontRefusal::OptionsHere),
        _ => {}
    }
    match head.target.form() {
        TargetForm::Asterisk => return Err(FrontRefusal::OtherScheme),
        TargetForm::Absolute { scheme, .. } if Scheme::named(scheme).is_none() => {
            return Err(FrontRefusal::OtherScheme);
        }
        TargetForm::Absolute { .. } | TargetForm::Authority(_) | TargetForm::Origin(_) => {}
    }
    let named = Destination::of(head, within.scheme());
    if named.as_ref().is_some_and(|named| !within.takes(named)) {
        return Err(FrontRefusal::Misdirected);
    }
    if head.authority().is_some_and(|authority| !authority.is_empty()) && named.is_none() {
        return Err(FrontRefusal::NotHttp);
    }
    let path = head.origin_form().and_then(|path| String::from_utf8(path.into_owned()).ok());
    let path = path.filter(|path| path.starts_with('/')).ok_or(FrontRefusal::OtherScheme)?;
    let been_here = |via: &[u8]| via.ends_with(state.via.as_bytes());
    if head.headers.tokens("via").any(been_here) {
        return Err(FrontRefusal::Loop);
    }
    let (scheme, authority) = server(state, head, named)?;
    state.front.reach.allows(&head.method).map_err(|_| FrontRefusal::MethodNotAllowed)?;
    let message = Arc::new(message(state, head, client));
    Ok(Asked { scheme, authority: authority.into(), path, message, at: Duration::ZERO })
}

fn server(
    state: &FrontState,
    head: &RequestHead,
    named: Option<Destination>,
) -> Result<(Scheme, String), FrontRefusal> {
    let Some(named) = named.filter(|named| !named.is_at(&state.own)) else {
        let missing =
            if head.authority().is_some() { FrontRefusal::Loop } else { FrontRefusal::NoHost };
        return state
            .front
            .authority
            .clone()
            .map(|origin| (state.front.scheme, origin))
            .ok_or(missing);
    };
    let far = state.front.reach == Reach::Offline
        && !state.front.any_host
        && !matches!(Reach::Offline.literal(&named.host), Some(Ok(_)));
    if far {
        return Err(FrontRefusal::FarHost);
    }
    Ok((named.scheme, named.authority()))
}

/// Whether the direct path, which has no proxy, leads to the server that the request names. Also
/// true without a direct path, and if the Multiplier accepts requests for any host or for public
/// hosts.
fn direct_leads_to(state: &FrontState, asked: &Asked) -> bool {
    let paths = &state.context.run.paths;
    let Some(direct) = group::direct(paths).map(|path| &paths[path]) else { return true };
    let named = Path { manner: Manner::Named, ..direct.clone() }.address_for(asked);
    let place = |address: SocketAddr| (address.ip().to_canonical(), address.port());
    let is_origin = named.is_some_and(|named| place(named) == place(direct.address));
    is_origin || state.front.any_host || state.front.reach != Reach::Offline
}

/// Whether the direct path, which has no proxy, leads to a Collector (common parent proxy), which
/// forwards to any server. The answer to an `OPTIONS` request with `Max-Forwards: 0` shows this. No
/// origin sees this request. The function remembers the result.
async fn is_collector(state: &FrontState) -> bool {
    let context = &state.context;
    let Some(direct) = group::direct(&context.run.paths) else { return false };
    let ask = || async {
        let fields = [("Max-Forwards", "0".as_bytes())].into_iter().collect();
        let message = Arc::new(Message { method: Method::Options, fields, ..Message::default() });
        let authority = context.run.paths[direct].address.to_string();
        let plain =
            Asked::get(authority.into(), "/".into(), Duration::ZERO).over(state.front.scheme);
        let [number, _] = context.numbers.probes(direct);
        let copied =
            exchange::ask(context, direct, &Asked { message, ..plain }, number, None).await;
        let text = collector::Refusal::OptionsHere.text();
        copied.outcome.map(|answer| answer.digest == xxh3_128(text.as_bytes()))
    };
    // After a failed attempt the result stays unknown, so the next request tries again.
    state.is_collector.get_or_try_init(ask).await.is_ok_and(|&is_one| is_one)
}

fn message(state: &FrontState, head: &RequestHead, client: IpAddr) -> Message {
    let mut fields = head.headers.clone();
    strip_hop_by_hop(&mut fields);
    for name in ["host", "expect", "content-length"] {
        fields.remove(name);
    }
    if state.context.run.numbers.is_some() {
        fields.remove(REQUEST_ID);
    }
    if let Some(left) = head.hops_left() {
        fields.set("Max-Forwards", left.saturating_sub(1).to_string());
    }
    fields.append("Via", via(state, head.version));
    // A copy uses the version of the client, but at most HTTP/1.1, which every proxy supports.
    let version = if head.version == Version::Http10 { Version::Http10 } else { Version::Http11 };
    let method = head.method.clone();
    Message { method, version, fields, body: None, client: Some(client) }
}

/// Returns the `Via` value for a message that arrived in this HTTP version (RFC 9110 §7.6.3).
pub fn via(state: &FrontState, version: Version) -> String {
    let number = match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2",
    };
    format!("{number} {}", state.via)
}

pub fn with_body(mut asked: Asked, body: Option<Bytes>) -> Asked {
    if body.is_some() {
        let message = Message { body, ..(*asked.message).clone() };
        asked.message = Arc::new(message);
    }
    asked
}
