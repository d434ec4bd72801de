//! The admin server: counters for Prometheus, a health check, purges and explanations, over plain
//! HTTP/1.1, one request a connection. It is not the proxy: it shares no code and no threads with
//! the path of a request.

use super::admin_access::{self, Claims};
use super::admin_explain::{self, Asked};
use super::admin_purge::{self, PurgeTarget};
use foxy_proxy::cache::purge::NotPurged;
use foxy_proxy::core::token::Token;
use foxy_proxy::explain::Explanation;
use foxy_proxy::intercept::HostPattern;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Longest request head taken, in bytes.
const HEAD_LIMIT: usize = 8 * 1024;
/// Longest request body taken, in bytes.
const BODY_LIMIT: usize = 1 << 20;
/// Header fields taken.
const FIELD_LIMIT: usize = 64;
/// For a whole exchange.
const PATIENCE: Duration = Duration::from_secs(5);
/// Exchanges at a time; more wait.
const AT_A_TIME: usize = 64;
/// Between attempts to accept when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

const INDEX: &str = "foxy\n/metrics  counters for Prometheus\n/healthz  200 when all is well, 503 when not\n\
                     /purge    POST: forget what is stored; see docs/operation.md\n\
                     /explain  ?url=URL what is stored for it, and what a GET would come to\n";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What comes later, on this thread.
pub type Later<T> = Pin<Box<dyn Future<Output = T>>>;

/// What the server answers with, and acts on.
pub trait Facts {
    /// The document for `/metrics`.
    fn metrics(&self) -> String;
    /// What keeps foxy from its work; empty when all is well.
    fn troubles(&self) -> Vec<String>;
    /// The names under which it is asked, besides addresses and `localhost`.
    fn hosts(&self) -> &[HostPattern];
    /// What a request that acts must carry, if anything does.
    fn token(&self) -> Option<&Token>;
    /// Purges; gives the number of the last purge.
    fn purge(&self, wanted: PurgeTarget) -> Later<Result<u64, NotPurged>>;
    /// Explains what would become of a request.
    fn explain(&self, asked: &Asked) -> Later<Explanation>;
}

/// Serves until dropped. Must run inside a `LocalSet`.
pub async fn run(listener: TcpListener, facts: Rc<dyn Facts>) {
    let slots = Arc::new(Semaphore::new(AT_A_TIME));
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let facts = Rc::clone(&facts);
        tokio::task::spawn_local(async move {
            let _slow_or_gone = timeout(PATIENCE, exchange(stream, peer.ip(), &*facts)).await;
            drop(slot);
        });
    }
}

async fn exchange(mut stream: TcpStream, peer: IpAddr, facts: &dyn Facts) -> std::io::Result<()> {
    let mut read = Vec::with_capacity(1024);
    let answer = loop {
        if let Some(answer) = answer(&read, peer, facts).await {
            break answer;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    };
    stream.write_all(&answer).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// A request, as far as it matters here.
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

    /// From where it says to come, and for whom it is.
    fn claims(&self) -> Claims<'_> {
        let hosts = self.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
        Claims {
            host: self.field("host"),
            repeated: hosts.count() > 1,
            origin: self.field("origin"),
            site: self.field("sec-fetch-site"),
        }
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }

    fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }
}

/// The response to what has been read so far; none while the request is not complete.
async fn answer(read: &[u8], peer: IpAddr, facts: &dyn Facts) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELD_LIMIT];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(read) {
        Ok(httparse::Status::Partial) if read.len() <= HEAD_LIMIT => return None,
        Ok(httparse::Status::Complete(length)) if length <= HEAD_LIMIT => length,
        Ok(_) => return Some(refusal("431 Request Header Fields Too Large", "head too long")),
        Err(error) => return Some(refusal("400 Bad Request", &format!("not HTTP/1.1: {error}"))),
    };
    let (method, target) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
    let mut request = Request { method, target, fields: request.headers, body: &[], peer };
    if let Err(refused) = admin_access::judge(request.claims(), facts.hosts()) {
        let (status, text) = refused.answer();
        return Some(refusal(status, text));
    }
    if request.field("transfer-encoding").is_some() {
        return Some(refusal("411 Length Required", "send the body with a Content-Length"));
    }
    if let Some(text) = request.field("content-length") {
        let wanted =
            std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<usize>().ok());
        request.body = match wanted {
            None => return Some(refusal("400 Bad Request", "the Content-Length is not a number")),
            Some(wanted) if wanted > BODY_LIMIT => {
                return Some(refusal("413 Content Too Large", "a body has at most 1 MiB"));
            }
            Some(wanted) => read[length..].get(..wanted)?,
        };
    }
    Some(route(&request, facts).await)
}

async fn route(request: &Request<'_>, facts: &dyn Facts) -> Vec<u8> {
    let with_body = request.method != "HEAD";
    match (request.method, request.path()) {
        ("POST", "/purge") => purge(request, facts).await,
        (_, "/purge") => response(
            "405 Method Not Allowed",
            TEXT,
            "Allow: POST\r\n",
            "purges are sent with POST\n",
            with_body,
        ),
        ("GET", "/explain") => explain(request, facts).await,
        ("GET" | "HEAD", "/") => response("200 OK", TEXT, "", INDEX, with_body),
        ("GET" | "HEAD", "/metrics") => {
            response("200 OK", EXPOSITION, "", &facts.metrics(), with_body)
        }
        ("GET" | "HEAD", "/healthz") => {
            let troubles = facts.troubles();
            let status = if troubles.is_empty() { "200 OK" } else { "503 Service Unavailable" };
            let body = serde_json::json!({ "ok": troubles.is_empty(), "troubles": troubles });
            response(status, JSON, "", &format!("{body}\n"), with_body)
        }
        ("GET" | "HEAD", _) => response("404 Not Found", TEXT, "", INDEX, with_body),
        _ => {
            let text = "only GET and HEAD are answered here\n";
            response("405 Method Not Allowed", TEXT, "Allow: GET, HEAD\r\n", text, true)
        }
    }
}

async fn purge(request: &Request<'_>, facts: &dyn Facts) -> Vec<u8> {
    if let Err(refused) = may_act(request, facts) {
        return refused;
    }
    let wanted = match admin_purge::read(request.query(), request.body) {
        Ok(wanted) => wanted,
        Err(text) => return refusal("400 Bad Request", &text),
    };
    let (purged, strength) = (wanted.scopes.len(), wanted.strength);
    match facts.purge(wanted).await {
        Ok(number) => {
            let body = serde_json::json!({ "purged": purged, "strength": strength.name(), "number": number });
            response("200 OK", JSON, "", &format!("{body}\n"), true)
        }
        Err(reason) => refusal("503 Service Unavailable", &format!("{reason} ({})", reason.name())),
    }
}

async fn explain(request: &Request<'_>, facts: &dyn Facts) -> Vec<u8> {
    if let Err(refused) = may_act(request, facts) {
        return refused;
    }
    match admin_explain::read(request.query()) {
        Ok(asked) => {
            let body = admin_explain::as_json(&asked.url, &facts.explain(&asked).await);
            response("200 OK", JSON, "", &format!("{body}\n"), true)
        }
        Err(text) => refusal("400 Bad Request", &text),
    }
}

/// Whether a request may change anything or see what is stored: with the token, or where there is
/// none, from this machine.
fn may_act(request: &Request<'_>, facts: &dyn Facts) -> Result<(), Vec<u8>> {
    match facts.token() {
        Some(token)
            if request.field("authorization").is_some_and(|value| token.is_borne_by(value)) =>
        {
            Ok(())
        }
        Some(_) => {
            let text = "send `Authorization: Bearer TOKEN` with the token of admin-token-file (admin-token)\n";
            Err(response("401 Unauthorized", TEXT, "WWW-Authenticate: Bearer\r\n", text, true))
        }
        None if request.peer.to_canonical().is_loopback() => Ok(()),
        None => {
            let text = "without admin-token-file only this machine itself may do that (admin-loopback-only)";
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
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         {fields}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod tests;
