//! Tests the pages, the limits and the refusals of the admin server.

use super::connections::{AdminConnection, MAX_HEAD_BYTES, serve};
use super::*;
use foxy_proxy::explain::Step;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

struct Fixed {
    is_well: bool,
    troubles: Vec<&'static str>,
    token: Option<Token>,
    purge: Result<u64, NotPurged>,
    rules: RulesInForce,
}

fn well() -> Fixed {
    let rules = RulesInForce::default();
    Fixed { is_well: true, troubles: vec![], token: None, purge: Ok(7), rules }
}

impl Operated for Fixed {
    fn leave_fleet(&self, _: bool) -> bool {
        false
    }

    fn metrics(&self, _format: MetricsFormat) -> String {
        "foxy_up 1\n".into()
    }

    fn health(&self) -> Health {
        let troubles = self.troubles.iter().map(ToString::to_string).collect();
        Health { is_well: self.is_well, troubles }
    }

    fn hosts(&self) -> &[HostPattern] {
        &[]
    }

    fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    fn data(&self, _wanted: DataRequest) -> DataFuture<'_> {
        Box::pin(std::future::ready(Some(Value::from(5))))
    }

    fn rules(&self) -> &RulesInForce {
        &self.rules
    }

    fn reload(&self, _is_watched: bool) -> LocalFuture<Result<Value, NotReloaded>> {
        Box::pin(std::future::ready(Ok(Value::Null)))
    }

    fn upgrade(&self, _binary: Option<String>) -> LocalFuture<Result<Upgraded, NotUpgraded>> {
        Box::pin(std::future::ready(Err(NotUpgraded::Leaving)))
    }

    fn purge(&self, _wanted: PurgeRequest) -> LocalFuture<Result<Purged, NotPurged>> {
        let purged = |number| Purged { number: Some(number), found: None, reach: None };
        Box::pin(std::future::ready(self.purge.map(purged)))
    }

    fn explain(&self, _asked: &ExplainRequest) -> LocalFuture<Explanation> {
        Box::pin(std::future::ready(Explanation { stored: None, steps: vec![Step::NotStored] }))
    }
}

const HERE: &str = "127.0.0.1";

/// Returns the bytes that a client receives. The client sends `request` and then ends its stream.
fn answered(request: &[u8], from: &str, operated: &Rc<Fixed>) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let connection = Rc::new(AdminConnection::new(from.parse().expect("an address")));
    let (mut client, server) = tokio::io::duplex(1 << 16);
    let serving = serve(server, connection, Rc::clone(operated) as Rc<dyn Operated>);
    let asking = async {
        client.write_all(request).await.expect("sent");
        client.shutdown().await.expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("text");
        answer
    };
    runtime.expect("a runtime").block_on(async { tokio::join!(serving, asking).1 })
}

fn check_with(request: &str, from: &str, operated: &Rc<Fixed>, expected: &[&str]) {
    let answer = answered(request.as_bytes(), from, operated);
    for part in expected {
        assert!(answer.contains(part), "{request:?} from {from} gave {answer:?}, not {part:?}");
    }
}

fn check(request: &str, expected: &[&str]) {
    check_with(request, HERE, &Rc::new(well()), expected);
}

#[test]
fn each_page_is_answered() {
    check("GET / HTTP/1.1\r\n\r\n", &["HTTP/1.1 200 OK\r\n", "/metrics"]);
    check(
        "GET /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &["version=0.0.4", "\r\n\r\nfoxy_up 1\n"],
    );
    check("GET /healthz HTTP/1.0\r\n\r\n", &["200 OK", "{\"ok\":true,\"troubles\":[]}"]);
    check("GET /quux HTTP/1.1\r\n\r\n", &["HTTP/1.1 404 "]);
    check("POST / HTTP/1.1\r\n\r\n", &["HTTP/1.1 405 ", "Allow: GET, HEAD\r\n"]);
    check("GET /purge?all HTTP/1.1\r\n\r\n", &["HTTP/1.1 405 ", "Allow: POST\r\n"]);
    check("nonsense\r\n\r\n", &["HTTP/1.1 400 "]);
}

#[test]
fn head_has_the_length_but_no_body() {
    let answer = answered(b"HEAD /metrics HTTP/1.1\r\n\r\n", HERE, &Rc::new(well()));
    assert!(answer.ends_with("\r\n\r\n"));
    assert!(answer.contains("Content-Length: 10\r\n"));
}

#[test]
fn trouble_is_a_503_that_names_it() {
    let troubles = vec!["the store is broken"];
    let facts = Rc::new(Fixed { is_well: false, troubles, ..well() });
    let answer = answered(b"GET /healthz HTTP/1.1\r\n\r\n", HERE, &facts);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.ends_with("{\"ok\":false,\"troubles\":[\"the store is broken\"]}\n"),
        "{answer}"
    );
}

#[test]
fn a_mild_trouble_is_a_200_that_names_it() {
    let facts = Rc::new(Fixed { troubles: vec!["the log is full"], ..well() });
    let answer = answered(b"GET /healthz HTTP/1.1\r\n\r\n", HERE, &facts);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with("{\"ok\":true,\"troubles\":[\"the log is full\"]}\n"), "{answer}");
}

#[test]
fn an_endless_head_is_refused() {
    assert_eq!(answered(b"GET / HTTP/1.1\r\nA: b", HERE, &Rc::new(well())), "");
    let mut endless = b"GET / HTTP/1.1\r\nA: ".to_vec();
    endless.resize(MAX_HEAD_BYTES + 20, b'b');
    check(&String::from_utf8(endless).expect("text"), &["HTTP/1.1 431 "]);
}

#[test]
fn a_body_is_waited_for_and_bounded() {
    let head = "POST /purge HTTP/1.1\r\nContent-Length: 13\r\n\r\n";
    check(&format!("{head}{{\"all\": true"), &["HTTP/1.1 400 ", "the body is incomplete"]);
    let purged = "{\"number\":7,\"purged\":1,\"strength\":\"soft\"}\n";
    check(&format!("{head}{{\"all\": true}}"), &["HTTP/1.1 200 OK\r\n", purged]);
    let chunked = "Transfer-Encoding: chunked\r\n\r\nd\r\n{\"all\": true}\r\n0\r\n\r\n";
    check(&format!("POST /purge HTTP/1.1\r\n{chunked}"), &["HTTP/1.1 200 OK\r\n", purged]);
    for (length, status) in [("1048577", "413"), ("many", "400")] {
        let request = format!("POST /purge HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        check(&request, &[&format!("HTTP/1.1 {status} ")]);
    }
}

#[test]
fn only_this_machine_or_the_token_purges() {
    let request = |field: &str| format!("POST /purge?all HTTP/1.1\r\n{field}\r\n");
    check_with(&request(""), "::1", &Rc::new(well()), &["200 OK"]);
    check_with(&request(""), "::ffff:127.0.0.1", &Rc::new(well()), &["200 OK"]);
    check_with(&request(""), "192.0.2.1", &Rc::new(well()), &["403 ", "admin-loopback-only"]);
    check(&request("Origin: http://a.test\r\n"), &["403 ", "admin-web-page"]);
    let facts = Rc::new(Fixed { token: Token::new("0123456789abcdef"), ..well() });
    check_with(
        &request(""),
        HERE,
        &facts,
        &["401 ", "Www-Authenticate: Bearer\r\n", "admin-token"],
    );
    check_with(&request("Authorization: Bearer 0123456789abcdeX\r\n"), HERE, &facts, &["401 "]);
    check_with(
        &request("Authorization: Bearer 0123456789abcdef\r\n"),
        "192.0.2.1",
        &facts,
        &["200 OK"],
    );
}

#[test]
fn every_page_refuses_web_pages_and_unlisted_hosts() {
    for page in [
        "GET /",
        "GET /metrics",
        "GET /healthz",
        "GET /explain?url=http://a.test/",
        "POST /purge?all",
    ] {
        let asked = |lines: &str| format!("{page} HTTP/1.1\r\n{lines}\r\n");
        check(&asked("Host: evil.test:3129\r\n"), &["HTTP/1.1 421 ", "`admin-hosts` (admin-host)"]);
        check(
            &asked("Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n"),
            &["HTTP/1.1 403 ", "admin-web-page"],
        );
        check(&asked("Host: 127.0.0.1\r\nHost: evil.test\r\n"), &["HTTP/1.1 400 ", "admin-host"]);
    }
}

#[test]
fn a_browser_gets_the_dashboard_which_may_load_only_from_this_server() {
    let browser = "Host: 127.0.0.1:3129\r\nAccept: text/html,*/*\r\nSec-Fetch-Site: none\r\n";
    let policy = "Content-Security-Policy: default-src 'none'; script-src 'self';";
    check(&format!("GET / HTTP/1.1\r\n{browser}\r\n"), &["200 OK", "text/html", policy]);
    check("GET /dashboard/main.js HTTP/1.1\r\n\r\n", &["200 OK", "text/javascript", "nosniff"]);
    let module = "Host: [::1]:3129\r\nOrigin: http://[::1]:3129\r\nSec-Fetch-Site: same-origin\r\n";
    check(&format!("GET /dashboard/main.js HTTP/1.1\r\n{module}\r\n"), &["200 OK"]);
    check("GET /dashboard/other.js HTTP/1.1\r\n\r\n", &["404 Not Found"]);
}

#[test]
fn data_of_the_dashboard_needs_the_access_of_a_purge() {
    let request = "GET /data/live HTTP/1.1\r\n\r\n";
    check(request, &["200 OK", "application/json", "\r\n\r\n5\n"]);
    check("HEAD /data/live HTTP/1.1\r\n\r\n", &["200 OK", "Content-Length: 2\r\n"]);
    check("GET /data/nothing HTTP/1.1\r\n\r\n", &["404 Not Found"]);
    check_with(request, "192.0.2.1", &Rc::new(well()), &["403 ", "admin-loopback-only"]);
    let facts = Rc::new(Fixed { token: Token::new("0123456789abcdef"), ..well() });
    check_with(request, HERE, &facts, &["401 ", "admin-token"]);
}

#[test]
fn only_the_dashboard_of_this_server_posts_from_a_browser() {
    let post = |origin: &str, mark: &str| {
        format!(
            "POST /purge?all HTTP/1.1\r\nHost: localhost:3129\r\nOrigin: {origin}\r\n\
             Sec-Fetch-Site: same-origin\r\n{mark}\r\n"
        )
    };
    let (own, mark) = ("http://localhost:3129", "Foxy-Dashboard: 1\r\n");
    check(&post(own, mark), &["200 OK"]);
    for (origin, mark) in [(own, ""), ("http://localhost:80", mark), ("null", mark)] {
        check(&post(origin, mark), &["403 ", "admin-web-page"]);
    }
}

#[test]
fn explanations_need_the_same_access() {
    let request = "GET /explain?url=http://a.test/ HTTP/1.1\r\n\r\n";
    check(
        request,
        &["200 OK", "\"rule\":\"not-stored\"", "\"section\":\"RFC 9111 §4\"", "\"stored\":null"],
    );
    check_with(request, "192.0.2.1", &Rc::new(well()), &["403 ", "admin-loopback-only"]);
    check("GET /explain HTTP/1.1\r\n\r\n", &["400 ", "the query has no url"]);
}

#[test]
fn a_refused_purge_names_its_reason() {
    check("POST /purge?tag=a,b HTTP/1.1\r\n\r\n", &["400 ", "one word"]);
    let facts = Rc::new(Fixed { purge: Err(NotPurged::NotDurable), ..well() });
    check_with("POST /purge?all HTTP/1.1\r\n\r\n", HERE, &facts, &["503 ", "purge-not-durable"]);
}
