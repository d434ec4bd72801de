//! Which requests are put to the proxies, and as what. Pure but for what the hall knows.

use super::{Hall, Refusal};
use crate::REQUEST_ID;
use crate::Scheme;
use crate::collector::Reach;
use crate::collector::key::Destination;
use crate::leap::{Asked, Message};
use crate::tls::entrance::Within;
use bytes::Bytes;
use foxy_http::{Method, RequestHead, TargetForm, Version, strip_hop_by_hop};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What the head of a request asks for, if it may; its body is still to come.
pub fn admit(hall: &Hall, head: &RequestHead, client: IpAddr, within: &Within) -> Result<Asked, Refusal> {
    if hall.over.get() {
        return Err(Refusal::Over);
    }
    match (head.hops_left(), &head.method) {
        (Some(0), Method::Trace) => return Err(Refusal::TraceHere),
        (Some(0), _) => return Err(Refusal::OptionsHere),
        _ => {}
    }
    match head.target.form() {
        TargetForm::Asterisk => return Err(Refusal::OtherScheme),
        TargetForm::Absolute { scheme, .. } if Scheme::named(scheme).is_none() => {
            return Err(Refusal::OtherScheme);
        }
        TargetForm::Absolute { .. } | TargetForm::Authority(_) | TargetForm::Origin(_) => {}
    }
    let named = Destination::of(head, within.scheme());
    if named.as_ref().is_some_and(|named| !within.takes(named)) {
        return Err(Refusal::Misdirected);
    }
    if head.authority().is_some_and(|authority| !authority.is_empty()) && named.is_none() {
        return Err(Refusal::NotHttp);
    }
    let path = head.origin_form().and_then(|path| String::from_utf8(path.into_owned()).ok());
    let path = path.filter(|path| path.starts_with('/')).ok_or(Refusal::OtherScheme)?;
    let been_here = |via: &[u8]| via.ends_with(hall.via.as_bytes());
    if head.headers.tokens("via").any(been_here) {
        return Err(Refusal::Loop);
    }
    let (scheme, authority) = server(hall, head, named)?;
    hall.front.reach.allows(&head.method).map_err(|_| Refusal::MethodNotAllowed)?;
    if hall.in_flight.get() >= hall.means.run.most_in_flight {
        return Err(Refusal::TooManyRequests);
    }
    let message = Arc::new(message(hall, head, client));
    Ok(Asked { scheme, authority: authority.into(), path, message, at: Duration::ZERO })
}

/// Whom a request is for: the host that it names, or the origin where it names none or this address.
fn server(hall: &Hall, head: &RequestHead, named: Option<Destination>) -> Result<(Scheme, String), Refusal> {
    let Some(named) = named.filter(|named| !named.is_at(&hall.own)) else {
        let missing = if head.authority().is_some() { Refusal::Loop } else { Refusal::NoHost };
        return hall.front.authority.clone().map(|origin| (hall.front.scheme, origin)).ok_or(missing);
    };
    let far = hall.front.reach == Reach::Offline
        && !hall.front.any_host
        && !matches!(Reach::Offline.literal(&named.host), Some(Ok(_)));
    if far {
        return Err(Refusal::FarHost);
    }
    Ok((named.scheme, named.authority()))
}

/// What every path is sent besides the URL.
fn message(hall: &Hall, head: &RequestHead, client: IpAddr) -> Message {
    let mut fields = head.headers.clone();
    strip_hop_by_hop(&mut fields);
    for name in ["host", "expect", "content-length"] {
        fields.remove(name);
    }
    if hall.means.run.numbers.is_some() {
        fields.remove(REQUEST_ID);
    }
    if let Some(left) = head.hops_left() {
        fields.set("Max-Forwards", left.saturating_sub(1).to_string());
    }
    fields.append("Via", via(hall, head.version));
    // Copies have the version of their client (R106), as far as it is one that every proxy speaks.
    let version = if head.version == Version::Http10 { Version::Http10 } else { Version::Http11 };
    let method = head.method.clone();
    Message { method, version, fields, body: None, client: Some(client) }
}

/// What is added to Via of a message that came in this version (RFC 9110 §7.6.3).
pub fn via(hall: &Hall, version: Version) -> String {
    let number = match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2",
    };
    format!("{number} {}", hall.via)
}

/// The request with its body.
pub fn with_body(mut asked: Asked, body: Option<Bytes>) -> Asked {
    if body.is_some() {
        let message = Message { body, ..(*asked.message).clone() };
        asked.message = Arc::new(message);
    }
    asked
}
