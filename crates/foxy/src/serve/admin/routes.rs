//! Routes of the admin server: finds the page that a request means, checks the client's rights, and
//! answers. The server reads the body of a request only if the client has the rights.

use crate::serve::admin::access::{self, Claims};
use crate::serve::admin::connections::AdminConnection;
use crate::serve::admin::metrics::MetricsFormat;
use crate::serve::admin::requests::{ExplainRequest, PurgeRequest};
use crate::serve::admin::{Health, Operated};
use crate::serve::dashboard::{DataRequest, files};
use crate::serve::reload::NotReloaded;
use crate::serve::upgrade::{self, Upgraded};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use std::fmt::Display;
use std::time::Duration;

const MAX_BODY_BYTES: usize = 1 << 20;

const INDEX: &str = "foxy\n/         in a browser: the dashboard\n\
                     /metrics  counters for Prometheus\n/healthz  200 if foxy is healthy, \
                     otherwise 503\n\
                     /purge    POST: purge stored responses; see docs/operation.md\n\
                     /explain  ?url=URL the stored responses, and how foxy would answer a GET\n\
                     /reload   POST: read the configuration again\n\
                     /fleet/drain  POST: take no keys of the fleet; /fleet/stay takes them again\n\
                     /upgrade  POST: replace the process by another binary\n";
const DRAIN: &str = "/fleet/drain";
const STAY: &str = "/fleet/stay";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

type Answer = Response<Full<Bytes>>;
type ExtraFields<'a> = &'a [(&'static str, &'static str)];

/// A request with its whole body.
struct AdminRequest {
    method: Method,
    target: Uri,
    fields: HeaderMap,
    body: Bytes,
}

impl AdminRequest {
    fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name).map(HeaderValue::as_bytes)
    }

    fn claims(&self) -> Claims<'_> {
        let values = |name| self.fields.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        Claims {
            hosts: values("host"),
            origins: values("origin"),
            fetch_sites: values("sec-fetch-site"),
            is_marked: self.fields.contains_key("foxy-dashboard"),
            is_read: matches!(self.method, Method::GET | Method::HEAD),
        }
    }

    /// Returns whether the client is a browser, which prefers a page over text.
    fn prefers_page(&self) -> bool {
        self.field("accept").is_some_and(|value| value.windows(9).any(|part| part == b"text/html"))
    }

    fn is_watched_reload(&self) -> bool {
        self.target.path() == "/reload" && self.target.query() == Some("watch")
    }
}

pub async fn answer(
    request: Request<Incoming>,
    connection: &AdminConnection,
    operated: &dyn Operated,
) -> Answer {
    let (head, body) = request.into_parts();
    let (method, target, fields) = (head.method, head.uri, head.headers);
    let mut request = AdminRequest { method, target, fields, body: Bytes::new() };
    if let Err(refused) = access::judge(&request.claims(), operated.hosts()) {
        return refusal(refused.status(), refused.text());
    }
    if let Some(answer) = open_page(&request, operated) {
        return answer;
    }
    if let Some(refused) = unauthorized(&request, connection, operated) {
        return refused;
    }
    let takes_long = request.target.path() == "/upgrade" || request.is_watched_reload();
    connection.permit(if takes_long { upgrade::LONGEST } else { Duration::ZERO });
    let too_large = || refusal(StatusCode::PAYLOAD_TOO_LARGE, "a body has at most 1 MiB");
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return too_large();
    }
    match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => request.body = body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return too_large(),
        Err(_) => return refusal(StatusCode::BAD_REQUEST, "the body is incomplete"),
    }
    restricted_page(&request, operated).await
}

/// Answers a request that every client may send. Returns `None` for other requests.
fn open_page(request: &AdminRequest, operated: &dyn Operated) -> Option<Answer> {
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    Some(match (request.method.as_str(), request.target.path()) {
        ("POST", "/purge" | "/reload" | "/upgrade" | DRAIN | STAY)
        | ("GET" | "HEAD", "/explain") => {
            return None;
        }
        ("GET" | "HEAD", path) if path.starts_with("/data/") => return None,
        (_, "/purge") => {
            let allow = [("allow", "POST")];
            let text = "purges are sent with POST\n";
            response(StatusCode::METHOD_NOT_ALLOWED, TEXT, &allow, text)
        }
        _ if !is_read => {
            let allow = [("allow", "GET, HEAD")];
            let text = "this page answers GET and HEAD only\n";
            response(StatusCode::METHOD_NOT_ALLOWED, TEXT, &allow, text)
        }
        (_, "/") if request.prefers_page() => page("/dashboard/"),
        (_, "/") => response(StatusCode::OK, TEXT, &[], INDEX),
        (_, "/metrics") => {
            let format = MetricsFormat::accepted(request.field("accept"));
            response(StatusCode::OK, format.media_type(), &[], operated.metrics(format))
        }
        (_, "/healthz") => {
            let Health { is_well, troubles } = operated.health();
            let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            let body = serde_json::json!({ "ok": is_well, "troubles": troubles });
            response(status, JSON, &[], format!("{body}\n"))
        }
        (_, path) if path.starts_with("/dashboard/") => page(path),
        _ => not_found(),
    })
}

/// Answers a request that only permitted clients may send.
async fn restricted_page(request: &AdminRequest, operated: &dyn Operated) -> Answer {
    match request.target.path() {
        "/purge" => purge(request, operated).await,
        "/reload" => reload(request, operated).await,
        "/upgrade" => upgrade(request, operated).await,
        "/explain" => explain(request, operated).await,
        path @ (DRAIN | STAY) => match operated.leave_fleet(path == DRAIN) {
            true => done(&serde_json::json!({ "is_leaving": path == DRAIN })),
            false => refusal(StatusCode::CONFLICT, "this foxy is no node of a fleet"),
        },
        _ => data(request, operated).await,
    }
}

/// Returns a file of the dashboard.
fn page(path: &str) -> Answer {
    match files::at(path) {
        Some(file) => response(StatusCode::OK, file.kind, &files::FIELDS, file.text),
        None => not_found(),
    }
}

/// Returns data for the dashboard.
async fn data(request: &AdminRequest, operated: &dyn Operated) -> Answer {
    let value = match DataRequest::read(request.target.path(), request.target.query()) {
        Some(wanted) => operated.data(wanted).await,
        None => None,
    };
    value.map_or_else(not_found, |value| done(&value))
}

async fn purge(request: &AdminRequest, operated: &dyn Operated) -> Answer {
    let read = PurgeRequest::read(request.target.query(), &request.body, operated.rules());
    let wanted = match read {
        Ok(wanted) => wanted,
        Err(text) => return refusal(StatusCode::BAD_REQUEST, text),
    };
    let (names, strength) = (wanted.scopes().len(), wanted.strength);
    let texts: Vec<String> = wanted.names.iter().map(|name| name.text.clone()).collect();
    match operated.purge(wanted).await {
        Ok(purged) => done(&purged.as_json(&texts, names, strength)),
        Err(reason) => {
            let text = format!("{reason} ({})", reason.name());
            refusal(StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }
}

async fn reload(request: &AdminRequest, operated: &dyn Operated) -> Answer {
    match operated.reload(request.is_watched_reload()).await {
        Ok(changes) => done(&changes),
        Err(why @ (NotReloaded::Unusable(_) | NotReloaded::Unopened(_))) => {
            refusal(StatusCode::BAD_REQUEST, why)
        }
        Err(why @ NotReloaded::NeedsRestart(_)) => refusal(StatusCode::CONFLICT, why),
    }
}

/// Replaces the process. The request's body is the path of the new binary. Without a body, starts
/// the same binary again.
async fn upgrade(request: &AdminRequest, operated: &dyn Operated) -> Answer {
    let Ok(named) = std::str::from_utf8(&request.body).map(str::trim) else {
        return refusal(StatusCode::BAD_REQUEST, "the path of the binary is not UTF-8");
    };
    let named = (!named.is_empty()).then(|| named.to_owned());
    match operated.upgrade(named).await {
        Ok(Upgraded { process, gap }) => {
            let milliseconds = u64::try_from(gap.as_millis()).unwrap_or(u64::MAX);
            done(&serde_json::json!({ "process": process, "gap_ms": milliseconds }))
        }
        Err(why) => refusal(StatusCode::CONFLICT, why),
    }
}

async fn explain(request: &AdminRequest, operated: &dyn Operated) -> Answer {
    match ExplainRequest::read(request.target.query()) {
        Ok(wanted) => done(&wanted.as_json(&operated.explain(&wanted).await)),
        Err(text) => refusal(StatusCode::BAD_REQUEST, text),
    }
}

/// Returns the refusal if the client may not see and change stored responses. If a token is
/// configured, the request must contain it. Otherwise the client must be on this machine.
fn unauthorized(
    request: &AdminRequest,
    connection: &AdminConnection,
    operated: &dyn Operated,
) -> Option<Answer> {
    let sent = request.field("authorization").unwrap_or_default();
    match operated.token() {
        Some(token) if token.matches_bearer(sent) => None,
        Some(_) => {
            let text = "send `Authorization: Bearer TOKEN` with the token of admin-token-file \
            (admin-token)\n";
            let fields = [("www-authenticate", "Bearer")];
            Some(response(StatusCode::UNAUTHORIZED, TEXT, &fields, text))
        }
        None if connection.client.is_loopback() => None,
        None => {
            let text = "without admin-token-file, only a client on this machine may do that \
            (admin-loopback-only)";
            Some(refusal(StatusCode::FORBIDDEN, text))
        }
    }
}

fn done(body: &serde_json::Value) -> Answer {
    response(StatusCode::OK, JSON, &[], format!("{body}\n"))
}

fn not_found() -> Answer {
    response(StatusCode::NOT_FOUND, TEXT, &[], INDEX)
}

fn refusal(status: StatusCode, text: impl Display) -> Answer {
    response(status, TEXT, &[], format!("{text}\n"))
}

fn response(
    status: StatusCode,
    kind: &'static str,
    fields: ExtraFields<'_>,
    body: impl Into<Bytes>,
) -> Answer {
    let usual = [
        ("content-type", kind),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    for &(name, value) in usual.iter().chain(fields) {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
