//! The admin server: counters for Prometheus and a health check, over plain HTTP/1.1, one request a connection.
//! It is not the proxy: it shares no code and no threads with the path of a request.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Longest request head taken, in bytes.
const HEAD_LIMIT: usize = 8 * 1024;
/// Header fields taken.
const FIELD_LIMIT: usize = 64;
/// For a whole exchange.
const PATIENCE: Duration = Duration::from_secs(5);
/// Exchanges at a time; more wait.
const AT_A_TIME: usize = 64;
/// Between attempts to accept when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

const INDEX: &str = "foxy\n/metrics  counters for Prometheus\n/healthz  200 when all is well, 503 when not\n";
const TEXT: &str = "text/plain; charset=utf-8";
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the server answers with.
pub trait Facts {
    /// The document for `/metrics`.
    fn metrics(&self) -> String;
    /// What keeps foxy from its work; empty when all is well.
    fn troubles(&self) -> Vec<String>;
}

/// Serves until dropped. Must run inside a `LocalSet`.
pub async fn run(listener: TcpListener, facts: Rc<dyn Facts>) {
    let slots = Arc::new(Semaphore::new(AT_A_TIME));
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let facts = Rc::clone(&facts);
        tokio::task::spawn_local(async move {
            let _slow_or_gone = timeout(PATIENCE, exchange(stream, &*facts)).await;
            drop(slot);
        });
    }
}

async fn exchange(mut stream: TcpStream, facts: &dyn Facts) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    let answer = loop {
        if let Some(answer) = answer(&head, facts) {
            break answer;
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    };
    stream.write_all(&answer).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// The response to what has been read so far; none while the head is not complete.
fn answer(read: &[u8], facts: &dyn Facts) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELD_LIMIT];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(read) {
        Ok(httparse::Status::Partial) if read.len() <= HEAD_LIMIT => None,
        Ok(httparse::Status::Complete(length)) if length <= HEAD_LIMIT => {
            Some(route(request.method.unwrap_or(""), request.path.unwrap_or(""), facts))
        }
        Ok(_) => Some(response("431 Request Header Fields Too Large", TEXT, "", "head too long\n", true)),
        Err(error) => Some(response("400 Bad Request", TEXT, "", &format!("not HTTP/1.1: {error}\n"), true)),
    }
}

fn route(method: &str, target: &str, facts: &dyn Facts) -> Vec<u8> {
    let with_body = method != "HEAD";
    if !matches!(method, "GET" | "HEAD") {
        let text = "only GET and HEAD are answered here\n";
        return response("405 Method Not Allowed", TEXT, "Allow: GET, HEAD\r\n", text, true);
    }
    match target.split('?').next().unwrap_or("") {
        "/" => response("200 OK", TEXT, "", INDEX, with_body),
        "/metrics" => response("200 OK", EXPOSITION, "", &facts.metrics(), with_body),
        "/healthz" => {
            let troubles = facts.troubles();
            let status = if troubles.is_empty() { "200 OK" } else { "503 Service Unavailable" };
            let body = serde_json::json!({ "ok": troubles.is_empty(), "troubles": troubles });
            response(status, "application/json", "", &format!("{body}\n"), with_body)
        }
        _ => response("404 Not Found", TEXT, "", INDEX, with_body),
    }
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
mod tests {
    use super::*;

    struct Fixed(Vec<&'static str>);

    impl Facts for Fixed {
        fn metrics(&self) -> String {
            "foxy_up 1\n".into()
        }

        fn troubles(&self) -> Vec<String> {
            self.0.iter().map(ToString::to_string).collect()
        }
    }

    fn check(request: &str, expected: &[&str]) {
        let answer = answer(request.as_bytes(), &Fixed(vec![])).expect("complete");
        let answer = String::from_utf8(answer).expect("text");
        for part in expected {
            assert!(answer.contains(part), "{request:?} gave {answer:?}, not {part:?}");
        }
    }

    #[test]
    fn each_page_is_answered() {
        check("GET / HTTP/1.1\r\n\r\n", &["HTTP/1.1 200 OK\r\n", "/metrics"]);
        check("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", &["version=0.0.4", "\r\n\r\nfoxy_up 1\n"]);
        check("GET /healthz HTTP/1.0\r\n\r\n", &["200 OK", "{\"ok\":true,\"troubles\":[]}"]);
        check("GET /quux HTTP/1.1\r\n\r\n", &["HTTP/1.1 404 "]);
        check("POST / HTTP/1.1\r\n\r\n", &["HTTP/1.1 405 ", "Allow: GET, HEAD\r\n"]);
        check("nonsense\r\n\r\n", &["HTTP/1.1 400 "]);
    }

    #[test]
    fn head_has_the_length_but_no_body() {
        let answer = answer(b"HEAD /metrics HTTP/1.1\r\n\r\n", &Fixed(vec![])).expect("complete");
        assert!(answer.ends_with(b"\r\n\r\n"));
        assert!(String::from_utf8_lossy(&answer).contains("Content-Length: 10\r\n"));
    }

    #[test]
    fn trouble_is_a_503_that_names_it() {
        let answer =
            answer(b"GET /healthz HTTP/1.1\r\n\r\n", &Fixed(vec!["the store is broken"])).expect("complete");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.ends_with("{\"ok\":false,\"troubles\":[\"the store is broken\"]}\n"), "{answer}");
    }

    #[test]
    fn a_head_that_does_not_end_is_waited_for_only_so_long() {
        assert_eq!(answer(b"GET / HTTP/1.1\r\nA: b", &Fixed(vec![])), None);
        let mut endless = b"GET / HTTP/1.1\r\nA: ".to_vec();
        endless.resize(HEAD_LIMIT + 20, b'b');
        check(&String::from_utf8(endless).expect("text"), &["HTTP/1.1 431 "]);
    }
}
