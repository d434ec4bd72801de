//! The admin server: metrics, health check, purges, explanations, reloads and upgrades over plain
//! HTTP/1.1. Each connection carries one request. The server shares no HTTP code and no thread with
//! the proxy.

pub mod access;
pub mod metrics;
mod request_metrics;
pub mod requests;

use crate::serve::dashboard::{DataRequest, files};
use crate::serve::reload::NotReloaded;
use crate::serve::upgrade::{self, NotUpgraded, Upgraded};
use access::Claims;
use foxy_base::HostPattern;
use foxy_proxy::cache::purge::NotPurged;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::core::token::Token;
use foxy_proxy::explain::Explanation;
use foxy_proxy::server::listener::Acceptor;
use metrics::MetricsFormat;
use requests::{ExplainRequest, PurgeRequest, Purged};
use serde_json::Value;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

const MAX_HEAD_BYTES: usize = 8 * 1024;
const MAX_BODY_BYTES: usize = 1 << 20;
const MAX_FIELDS: usize = 64;
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);
/// First bytes of the requests whose answers may take longer than [`EXCHANGE_TIMEOUT`].
const LONG_REQUESTS: [&[u8]; 2] = [b"POST /upgrade ", b"POST /reload?watch "];
const MAX_CONNECTIONS: usize = 64;
/// Pause before the next accept after an error, such as no free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const INDEX: &str = "foxy\n/         in a browser: the dashboard\n\
                     /metrics  counters for Prometheus\n/healthz  200 if foxy is healthy, \
                     otherwise 503\n\
                     /purge    POST: purge stored responses; see docs/operation.md\n\
                     /explain  ?url=URL the stored responses, and how foxy would answer a GET\n\
                     /reload   POST: read the configuration again\n\
                     /upgrade  POST: replace the process by another binary\n";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// A future that is not sent to another thread.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// A future that returns data for the dashboard.
pub type DataFuture<'a> = Pin<Box<dyn Future<Output = Option<Value>> + 'a>>;

/// The running proxy: facts and actions for the admin server.
pub trait Operated {
    fn metrics(&self, format: MetricsFormat) -> String;
    /// Returns the reasons why foxy is not healthy. Returns an empty list if foxy is healthy.
    fn troubles(&self) -> Vec<String>;
    /// Returns the host names that `Host` may contain, in addition to addresses and `localhost`.
    fn hosts(&self) -> &[HostPattern];
    /// Returns data for the dashboard. Returns `None` if it does not exist.
    fn data(&self, wanted: DataRequest) -> DataFuture<'_>;
    fn token(&self) -> Option<&Token>;
    fn rules(&self) -> &RulesInForce;
    /// Reads the configuration again, and applies it. After a watched reload, takes the changes
    /// back if foxy's own errors jump. Returns the changes.
    fn reload(&self, is_watched: bool) -> LocalFuture<Result<Value, NotReloaded>>;
    /// Replaces this process by a new process. `binary` is its program. `None` means the program of
    /// this process.
    fn upgrade(&self, binary: Option<String>) -> LocalFuture<Result<Upgraded, NotUpgraded>>;
    /// Purges stored responses, and counts them if the request asks for it.
    fn purge(&self, request: PurgeRequest) -> LocalFuture<Result<Purged, NotPurged>>;
    fn explain(&self, request: &ExplainRequest) -> LocalFuture<Explanation>;
}

/// Accepts connections and answers their requests until the future is dropped. Must run inside a
/// Tokio `LocalSet`.
pub async fn run(listener: Acceptor, operated: Rc<dyn Operated>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let operated = Rc::clone(&operated);
        tokio::task::spawn_local(async move {
            let _slow_or_gone = exchange(stream, peer.ip(), &*operated).await;
            drop(slot);
        });
    }
}

async fn exchange(
    mut stream: TcpStream,
    peer: IpAddr,
    operated: &dyn Operated,
) -> std::io::Result<()> {
    let mut read = Vec::with_capacity(1024);
    let mut until = Instant::now() + EXCHANGE_TIMEOUT;
    let answer = loop {
        let is_long = LONG_REQUESTS.iter().any(|begin| read.starts_with(begin));
        let limit = if is_long { until + upgrade::LONGEST } else { until };
        if let Some(answer) = timeout_at(limit, answer(&read, peer, operated)).await? {
            until = if is_long { Instant::now() + EXCHANGE_TIMEOUT } else { until };
            break answer;
        }
        if timeout_at(until, stream.read_buf(&mut read)).await?? == 0 {
            return Ok(());
        }
    };
    timeout_at(until, send(stream, &answer)).await?
}

async fn send(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.write_all(answer).await?;
    stream.shutdown().await?;
    // Reads and ignores the rest of the request. If unread bytes remained, the close would reset
    // the connection, and the client could lose the response.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

struct Request<'a> {
    method: &'a str,
    target: &'a str,
    fields: &'a [httparse::Header<'a>],
    body: &'a [u8],
    peer: IpAddr,
}

impl Request<'_> {
    fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields
            .iter()
            .find(|field| field.name.eq_ignore_ascii_case(name))
            .map(|field| field.value)
    }

    fn claims(&self) -> Claims<'_> {
        let hosts = self.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
        Claims {
            host: self.field("host"),
            has_second_host: hosts.count() > 1,
            origin: self.field("origin"),
            sec_fetch_site: self.field("sec-fetch-site"),
            is_marked: self.field("foxy-dashboard").is_some(),
            is_read: matches!(self.method, "GET" | "HEAD"),
        }
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }

    /// Whether the client is a browser, which prefers a page over text.
    fn prefers_page(&self) -> bool {
        self.field("accept").is_some_and(|value| value.windows(9).any(|part| part == b"text/html"))
    }

    fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }
}

/// Returns the response to the request in `read`. Returns `None` if the request is not complete
/// yet.
async fn answer(read: &[u8], peer: IpAddr, operated: &dyn Operated) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(read) {
        Ok(httparse::Status::Partial) if read.len() <= MAX_HEAD_BYTES => return None,
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
        Ok(_) => return Some(refusal("431 Request Header Fields Too Large", "head too long")),
        Err(error) => return Some(refusal("400 Bad Request", &format!("not HTTP/1.1: {error}"))),
    };
    let (method, target) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
    let mut request = Request { method, target, fields: request.headers, body: &[], peer };
    if let Err(refused) = access::judge(request.claims(), operated.hosts()) {
        return Some(refusal(refused.status(), refused.text()));
    }
    if request.field("transfer-encoding").is_some() {
        return Some(refusal("411 Length Required", "send the body with a Content-Length"));
    }
    if let Some(text) = request.field("content-length") {
        let length_of_body =
            std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<usize>().ok());
        request.body = match length_of_body {
            None => return Some(refusal("400 Bad Request", "the Content-Length is not a number")),
            Some(bytes) if bytes > MAX_BODY_BYTES => {
                return Some(refusal("413 Content Too Large", "a body has at most 1 MiB"));
            }
            Some(bytes) => read[length..].get(..bytes)?,
        };
    }
    Some(route(&request, operated).await)
}

async fn route(request: &Request<'_>, operated: &dyn Operated) -> Vec<u8> {
    let with_body = request.method != "HEAD";
    match (request.method, request.path()) {
        ("POST", "/purge") => purge(request, operated).await,
        (_, "/purge") => response(
            "405 Method Not Allowed",
            TEXT,
            "Allow: POST\r\n",
            "purges are sent with POST\n",
            with_body,
        ),
        ("POST", "/reload") => reload(request, operated).await,
        ("POST", "/upgrade") => upgrade(request, operated).await,
        ("GET", "/explain") => explain(request, operated).await,
        ("GET" | "HEAD", "/") if request.prefers_page() => page("/dashboard/", with_body),
        ("GET" | "HEAD", "/") => response("200 OK", TEXT, "", INDEX, with_body),
        ("GET" | "HEAD", "/metrics") => {
            let format = MetricsFormat::accepted(request.field("accept"));
            response("200 OK", format.media_type(), "", &operated.metrics(format), with_body)
        }
        ("GET" | "HEAD", "/healthz") => {
            let troubles = operated.troubles();
            let status = if troubles.is_empty() { "200 OK" } else { "503 Service Unavailable" };
            let body = serde_json::json!({ "ok": troubles.is_empty(), "troubles": troubles });
            response(status, JSON, "", &format!("{body}\n"), with_body)
        }
        ("GET" | "HEAD", path) if path.starts_with("/dashboard/") => page(path, with_body),
        ("GET", path) if path.starts_with("/data/") => data(request, operated).await,
        ("GET" | "HEAD", _) => response("404 Not Found", TEXT, "", INDEX, with_body),
        _ => {
            let text = "this page answers GET and HEAD only\n";
            response("405 Method Not Allowed", TEXT, "Allow: GET, HEAD\r\n", text, true)
        }
    }
}

/// Returns a file of the dashboard.
fn page(path: &str, with_body: bool) -> Vec<u8> {
    match files::at(path) {
        Some(file) => response("200 OK", file.kind, files::POLICY, file.text, with_body),
        None => response("404 Not Found", TEXT, "", INDEX, with_body),
    }
}

/// Returns data for the dashboard.
async fn data(request: &Request<'_>, operated: &dyn Operated) -> Vec<u8> {
    if let Err(refused) = authorize(request, operated) {
        return refused;
    }
    let wanted = DataRequest::read(request.path(), request.query());
    let value = match wanted {
        Some(wanted) => operated.data(wanted).await,
        None => None,
    };
    match value {
        Some(value) => response("200 OK", JSON, "", &format!("{value}\n"), true),
        None => response("404 Not Found", TEXT, "", INDEX, true),
    }
}

async fn purge(request: &Request<'_>, operated: &dyn Operated) -> Vec<u8> {
    if let Err(refused) = authorize(request, operated) {
        return refused;
    }
    let wanted = match PurgeRequest::read(request.query(), request.body, operated.rules()) {
        Ok(wanted) => wanted,
        Err(text) => return refusal("400 Bad Request", &text),
    };
    let (names, strength) = (wanted.scopes().len(), wanted.strength);
    let texts: Vec<String> = wanted.names.iter().map(|name| name.text.clone()).collect();
    match operated.purge(wanted).await {
        Ok(purged) => {
            let body = purged.as_json(&texts, names, strength);
            response("200 OK", JSON, "", &format!("{body}\n"), true)
        }
        Err(reason) => refusal("503 Service Unavailable", &format!("{reason} ({})", reason.name())),
    }
}

async fn reload(request: &Request<'_>, operated: &dyn Operated) -> Vec<u8> {
    if let Err(refused) = authorize(request, operated) {
        return refused;
    }
    match operated.reload(request.query() == Some("watch")).await {
        Ok(changes) => response("200 OK", JSON, "", &format!("{changes}\n"), true),
        Err(why @ (NotReloaded::Unusable(_) | NotReloaded::Unopened(_))) => {
            refusal("400 Bad Request", &why.to_string())
        }
        Err(why @ NotReloaded::NeedsRestart(_)) => refusal("409 Conflict", &why.to_string()),
    }
}

/// Replaces the process. The request's body is the path of the new binary. Without a body, starts
/// the same binary again.
async fn upgrade(request: &Request<'_>, operated: &dyn Operated) -> Vec<u8> {
    if let Err(refused) = authorize(request, operated) {
        return refused;
    }
    let Ok(named) = std::str::from_utf8(request.body).map(str::trim) else {
        return refusal("400 Bad Request", "the path of the binary is not UTF-8");
    };
    let named = (!named.is_empty()).then(|| named.to_owned());
    match operated.upgrade(named).await {
        Ok(Upgraded { process, gap }) => {
            let milliseconds = u64::try_from(gap.as_millis()).unwrap_or(u64::MAX);
            let body = serde_json::json!({ "process": process, "gap_ms": milliseconds });
            response("200 OK", JSON, "", &format!("{body}\n"), true)
        }
        Err(why) => refusal("409 Conflict", &why.to_string()),
    }
}

async fn explain(request: &Request<'_>, operated: &dyn Operated) -> Vec<u8> {
    if let Err(refused) = authorize(request, operated) {
        return refused;
    }
    match ExplainRequest::read(request.query()) {
        Ok(wanted) => {
            let body = wanted.as_json(&operated.explain(&wanted).await);
            response("200 OK", JSON, "", &format!("{body}\n"), true)
        }
        Err(text) => refusal("400 Bad Request", &text),
    }
}

/// Checks whether the client may see or change stored responses. If a token is configured, the
/// request must contain it. Otherwise the client must be on this machine.
fn authorize(request: &Request<'_>, operated: &dyn Operated) -> Result<(), Vec<u8>> {
    match operated.token() {
        Some(token)
            if request.field("authorization").is_some_and(|value| token.matches_bearer(value)) =>
        {
            Ok(())
        }
        Some(_) => {
            let text = "send `Authorization: Bearer TOKEN` with the token of admin-token-file \
            (admin-token)\n";
            Err(response("401 Unauthorized", TEXT, "WWW-Authenticate: Bearer\r\n", text, true))
        }
        None if request.peer.to_canonical().is_loopback() => Ok(()),
        None => {
            let text = "without admin-token-file, only a client on this machine may do that \
            (admin-loopback-only)";
            Err(refusal("403 Forbidden", text))
        }
    }
}

fn refusal(status: &str, text: &str) -> Vec<u8> {
    response(status, TEXT, "", &format!("{text}\n"), true)
}

fn response(status: &str, kind: &str, fields: &str, body: &str, with_body: bool) -> Vec<u8> {
    let length = body.len();
    let body = if with_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: \
         no-store\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: \
         same-origin\r\n\
         {fields}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests;
