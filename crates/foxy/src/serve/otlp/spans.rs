//! Makes the spans of a transaction: a server span for the request, and a client span for the fetch
//! from the origin. The attributes follow OpenTelemetry's semantic conventions for HTTP. The URL is
//! the URL of the logs, without user and password.

use super::attributes::Attributes;
use crate::settings::secrets::is_secret;
use foxy_base::Random;
use foxy_log::transaction::{Text, Transaction};
use foxy_proxy::core::metrics::trace_context::Traceparent;
use foxy_proxy::upstream::Scheme;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, SpanFlags, Status};

/// The request methods that OpenTelemetry's conventions name.
const METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
/// Trace flags of a span if the client sent no `traceparent`. The flag says that foxy records the
/// trace.
const RECORDED: u8 = 1;

/// Returns the number of spans of a transaction.
pub fn count(transaction: &Transaction<'_>) -> u64 {
    1 + u64::from(has_fetch(transaction))
}

/// Returns whether the request caused a fetch that got a response. A request that only joined
/// another request's fetch caused no fetch.
fn has_fetch(transaction: &Transaction<'_>) -> bool {
    transaction.origin_ttfb.is_some() && transaction.text(Text::Outcome) != "collapsed"
}

/// Returns the spans of a transaction. Makes ids with `random`, unless the client gave them.
pub fn of(transaction: &Transaction<'_>, random: &mut Random) -> Vec<Span> {
    let given = Traceparent::of(transaction.text(Text::Traceparent).as_bytes());
    let mut id = || random.next_u64().max(1);
    let trace = given.map_or_else(|| (u128::from(id()) << 64) | u128::from(id()), |it| it.trace());
    let base = Span {
        trace_id: trace.to_be_bytes().to_vec(),
        name: name(transaction).to_owned(),
        ..Span::default()
    };
    let flags = u32::from(given.map_or(RECORDED, |given| given.flags()))
        | SpanFlags::ContextHasIsRemoteMask as u32;
    let own = id();
    let remote = if given.is_some() { SpanFlags::ContextIsRemoteMask as u32 } else { 0 };
    let parent = given.map(|given| given.span().to_be_bytes().to_vec());
    let end = transaction.end.saturating_mul(1_000_000);
    let start = end.saturating_sub(nanos(transaction.elapsed));
    let error = error_type(transaction);
    let server = Span {
        span_id: own.to_be_bytes().to_vec(),
        parent_span_id: parent.unwrap_or_default(),
        flags: flags | remote,
        kind: SpanKind::Server.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes: server_attributes(transaction, &error),
        status: status(!error.is_empty()),
        ..base.clone()
    };
    if !has_fetch(transaction) {
        return vec![server];
    }
    let begin = start + nanos(transaction.origin_start);
    let connected = transaction.origin_connect.filter(|micros| *micros > 0).map(|micros| Event {
        name: "connected".into(),
        time_unix_nano: begin + nanos(Some(micros)),
        ..Event::default()
    });
    let client = Span {
        span_id: id().to_be_bytes().to_vec(),
        parent_span_id: server.span_id.clone(),
        flags,
        kind: SpanKind::Client.into(),
        start_time_unix_nano: begin,
        end_time_unix_nano: begin + nanos(transaction.origin_ttfb),
        attributes: client_attributes(transaction),
        events: connected.into_iter().collect(),
        status: status(transaction.origin_status >= Some(400)),
        ..base
    };
    vec![server, client]
}

fn nanos(micros: Option<u64>) -> u64 {
    micros.unwrap_or(0).saturating_mul(1000)
}

fn status(is_error: bool) -> Option<Status> {
    let error = || Status { code: StatusCode::Error.into(), ..Status::default() };
    is_error.then(error)
}

/// Returns the name of the spans: the method, because a proxy knows no routes.
fn name<'a>(transaction: &'a Transaction<'_>) -> &'a str {
    let method = transaction.text(Text::Method);
    if METHODS.contains(&method) { method } else { "HTTP" }
}

/// Returns why the request failed, or an empty text. A refusal with a status below 500 is the
/// client's fault.
fn error_type(transaction: &Transaction<'_>) -> String {
    let reason = transaction.text(Text::Reason);
    match transaction.status {
        500.. if ["origin-failed", "refused"].contains(&transaction.text(Text::Outcome)) => {
            reason.to_owned()
        }
        500.. => transaction.status.to_string(),
        _ if transaction.text(Text::Cut) == "broke-off" => "broke-off".to_owned(),
        _ => String::new(),
    }
}

fn server_attributes(transaction: &Transaction<'_>, error: &str) -> Vec<KeyValue> {
    let mut all = Attributes::default();
    add_target(&mut all, transaction);
    let path = transaction.path();
    all.text("url.path", path.split('?').next().unwrap_or(path));
    add_server(
        &mut all,
        transaction.host(),
        transaction.port().or_else(|| default_port(transaction)),
    );
    let status = Some(transaction.status).filter(|status| *status != 0);
    all.number("http.response.status_code", status);
    all.number("http.response.body.size", transaction.body);
    let version = transaction.text(Text::Version).trim_start_matches("HTTP/");
    all.text("network.protocol.version", if version == "2.0" { "2" } else { version });
    all.text("error.type", error);
    for (key, text) in [
        ("client.address", Text::Client),
        ("user.name", Text::User),
        ("user_agent.original", Text::Agent),
        ("foxy.request.id", Text::Id),
        ("foxy.outcome", Text::Outcome),
        ("foxy.reason", Text::Reason),
        ("foxy.cut", Text::Cut),
        ("foxy.rules", Text::Rules),
    ] {
        all.text(key, transaction.text(text));
    }
    all.text("foxy.kept", transaction.kept.name());
    all.number("foxy.weight", Some(transaction.weight));
    all.0
}

fn client_attributes(transaction: &Transaction<'_>) -> Vec<KeyValue> {
    let mut all = Attributes::default();
    add_target(&mut all, transaction);
    let (parent, server) = (transaction.text(Text::Parent), transaction.text(Text::Server));
    let port = transaction.port().or_else(|| default_port(transaction));
    match server.rsplit_once(':') {
        _ if !parent.is_empty() => add_server(&mut all, parent, None),
        Some((host, digits)) if !digits.contains(']') => {
            add_server(&mut all, host, digits.parse().ok());
        }
        _ if !server.is_empty() => add_server(&mut all, server, None),
        _ => add_server(&mut all, transaction.host(), port),
    }
    all.number("http.response.status_code", transaction.origin_status);
    let error = transaction.origin_status.filter(|status| *status >= 400);
    all.text("error.type", &error.map(|status| status.to_string()).unwrap_or_default());
    all.text("foxy.origin", transaction.text(Text::Origin));
    all.0
}

/// Adds method and URL. The target of a CONNECT is not a URL.
fn add_target(all: &mut Attributes, transaction: &Transaction<'_>) {
    let method = transaction.text(Text::Method);
    if METHODS.contains(&method) {
        all.text("http.request.method", method);
    } else {
        all.text("http.request.method", "_OTHER");
        all.text("http.request.method_original", method);
    }
    let url = transaction.text(Text::Url);
    if let Some((scheme, _)) = url.split_once("://") {
        all.text("url.full", &without_secrets(url));
        all.text("url.scheme", scheme);
    }
}

/// Returns the URL without the values of secret query parameters, as the conventions demand.
fn without_secrets(url: &str) -> String {
    let Some((begin, query)) = url.split_once('?') else { return url.to_owned() };
    let shown = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}=REDACTED"),
        _ => parameter.to_owned(),
    });
    format!("{begin}?{}", shown.collect::<Vec<_>>().join("&"))
}

fn add_server(all: &mut Attributes, host: &str, port: Option<u16>) {
    all.text("server.address", host.trim_start_matches('[').trim_end_matches(']'));
    all.number("server.port", port);
}

fn default_port(transaction: &Transaction<'_>) -> Option<u16> {
    let (scheme, _) = transaction.text(Text::Url).split_once("://")?;
    Scheme::named(scheme.as_bytes()).map(Scheme::default_port)
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
