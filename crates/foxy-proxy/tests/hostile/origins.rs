//! Tests how misbehaving origins look to a client of the whole proxy. If the proxy has not
//! forwarded the head yet, the client must receive a documented status. Otherwise the client's
//! connection must be cut. An incomplete response must never look complete.

use crate::support::proxy::Proxy;
use crate::support::wire::{RawClient, Response};
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use std::time::Duration;

const GET: &str = "GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n";

async fn ask(proxy: &Proxy, origin: &ScriptedOrigin, request: &str) -> (RawClient, Response) {
    let mut client = RawClient::connect(proxy.port).await;
    client.send(request.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
    let method = Method::parse(request.split(' ').next().expect("a method")).expect("a method");
    let response = client.response(&method).await;
    (client, response)
}

fn impatient() -> Proxy {
    Proxy::start_with(|settings| {
        settings.upstream.head_timeout = Duration::from_millis(200);
        settings.upstream.body_timeout = Duration::from_millis(200);
    })
}

/// Sends a GET to an origin that follows `script`. Checks the status of the answer, and that its
/// text contains `reason`.
async fn check_status(script: Vec<Step>, status: u16, reason: &'static str) {
    local(async move {
        let origin = ScriptedOrigin::with(script.clone()).await;
        let proxy = impatient();
        let (_client, answer) = ask(&proxy, &origin, GET).await;
        assert_eq!(answer.head.status, status, "{script:?}: {}", answer.text());
        assert!(answer.end.is_ok(), "{script:?}");
        assert!(answer.text().contains(reason), "{script:?}: {}", answer.text());
        assert!(!answer.header("cache-status").contains("stored"), "{script:?}: {:?}", answer.head);
    })
    .await;
}

#[tokio::test]
async fn an_origin_without_a_proper_head_is_a_documented_status() {
    check_status(vec![Step::Head], 502, "no-response").await;
    check_status(vec![Step::Head, Step::Reset], 502, "no-response").await;
    check_status(vec![Step::Head, Step::Hang], 504, "response-timeout").await;
    check_status(
        vec![Step::Head, send("HTTP/1.1 200 OK\r\nX:"), Step::Hang],
        504,
        "response-timeout",
    )
    .await;
    check_status(vec![Step::Head, send("HTTP/1.1 200 OK\r\nX:")], 502, "response-incomplete").await;
    check_status(
        vec![Step::Head, send("SSH-2.0-OpenSSH_9.6\r\n\r\n"), Step::AwaitClose],
        502,
        "bad-response",
    )
    .await;
    let two = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab";
    check_status(vec![Step::Head, send(two), Step::AwaitClose], 502, "bad-response").await;
    let endless = vec![
        Step::Head,
        send("HTTP/1.1 200 OK\r\n"),
        Step::SendForever(b"X-Filler: aaaaaaaaaaaaaaaaa\r\n".repeat(99)),
    ];
    check_status(endless, 502, "bad-response").await;
    let hints = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(99);
    local(async move {
        let origin = ScriptedOrigin::with(vec![Step::Head, Step::SendForever(hints)]).await;
        let proxy = impatient();
        let (_client, answer) = ask(&proxy, &origin, GET).await;
        assert_eq!(answer.head.status, 502);
    })
    .await;
}

#[tokio::test]
async fn a_port_where_nothing_listens_is_named_so() {
    local(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let proxy = Proxy::start();
        let mut client = RawClient::connect(proxy.port).await;
        client
            .send(format!(
                "GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
            ))
            .await;
        let answer = client.response(&Method::Get).await;
        assert_eq!(answer.head.status, 502);
        assert!(answer.text().contains("connection-refused"), "{}", answer.text());
    })
    .await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_never_made_to_look_whole_and_never_stored() {
    const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n";
    let endings = [
        (vec![send(&format!("{FRESH}Content-Length: 9\r\n\r\nhalf"))], "a short length"),
        (vec![send(&format!("{FRESH}Content-Length: 9\r\n\r\nhalf")), Step::Hang], "silence"),
        (
            vec![send(&format!("{FRESH}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"))],
            "no last chunk",
        ),
        (
            vec![send(&format!("{FRESH}Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"))],
            "a short chunk",
        ),
        (
            vec![send(&format!("{FRESH}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n"))],
            "a bad chunk",
        ),
    ];
    for (ending, name) in endings {
        local(async move {
            let broken = [vec![Step::Head], ending].concat();
            let whole = vec![Step::Head, send(&format!("{FRESH}Content-Length: 5\r\n\r\nwhole"))];
            let origin = ScriptedOrigin::start(vec![broken, whole]).await;
            let proxy = impatient();
            let (mut client, answer) = ask(&proxy, &origin, GET).await;
            match answer.head.status {
                200 => assert!(
                    answer.end.is_err(),
                    "{name}: the client must see that it is not whole: {answer:?}"
                ),
                status => assert!([502, 504].contains(&status), "{name}: {answer:?}"),
            }
            if answer.head.status == 200 {
                assert!(client.rest().await.is_empty(), "{name}");
            }
            let (_client, answer) = ask(&proxy, &origin, GET).await;
            assert_eq!(
                (answer.text().as_str(), answer.end),
                ("whole", Ok(())),
                "{name}: the broken one was stored"
            );
        })
        .await;
    }
}

#[tokio::test]
async fn bytes_beyond_the_length_are_nobodys_response() {
    local(async {
        let lie = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\n\
                   okHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
        let good = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: no-store\r\n\r\ngood";
        let origin = ScriptedOrigin::start(vec![
            vec![Step::Head, send(lie), Step::AwaitClose],
            vec![Step::Head, send(good)],
        ])
        .await;
        let proxy = Proxy::start();
        let (_client, answer) = ask(&proxy, &origin, GET).await;
        assert_eq!(answer.text(), "ok");
        let (_client, answer) = ask(&proxy, &origin, GET).await;
        assert_eq!((answer.text().as_str(), origin.connections()), ("good", 2));
    })
    .await;
}

#[tokio::test]
async fn bodies_where_none_may_be_are_cut_off() {
    let answers = [
        ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n"),
    ];
    for (method, text) in answers {
        local(async move {
            let good = send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
            let origin = ScriptedOrigin::start(vec![
                vec![Step::Head, send(text), Step::AwaitClose],
                vec![Step::Head, good],
            ])
            .await;
            let proxy = Proxy::start();
            let request = GET.replacen("GET", method, 1);
            let (mut client, answer) = ask(&proxy, &origin, &request).await;
            assert!(answer.body.is_empty() && answer.end.is_ok(), "{text:?}: {answer:?}");
            client.send(GET.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
            let next = client.response(&Method::Get).await;
            assert_eq!(next.text(), "good", "{text:?}: the client's connection is in step");
        })
        .await;
    }
}

#[tokio::test]
async fn a_body_that_comes_late_where_none_may_be_answers_nobody() {
    const LATE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let no_content = format!("HTTP/1.1 204 No Content\r\nContent-Length: {}\r\n\r\n", LATE.len());
    let interim = format!("HTTP/1.1 103 Early Hints\r\nContent-Length: {}\r\n\r\n", LATE.len());
    let ended = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nCache-Control: no-store\r\n\r\n";
    for announced in [no_content, interim + ended] {
        local(async move {
            // The origin sends the body only after it has received the next request. The body must
            // not become the answer to that request.
            let liar = vec![Step::Head, send(&announced), Step::Head, send(LATE), Step::AwaitClose];
            let good = send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
            let origin = ScriptedOrigin::start(vec![liar, vec![Step::Head, good]]).await;
            let proxy = Proxy::start();
            let (_client, answer) = ask(&proxy, &origin, GET).await;
            assert!(answer.body.is_empty() && answer.end.is_ok(), "{announced:?}: {answer:?}");
            let (_client, next) = ask(&proxy, &origin, &GET.replace("/ ", "/next ")).await;
            assert_eq!((next.text().as_str(), origin.connections()), ("good", 2), "{announced:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_dead_kept_connection_is_not_the_clients_problem() {
    local(async {
        let ok = send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok");
        let origin = ScriptedOrigin::start(vec![
            vec![Step::Head, ok.clone(), Step::Head, Step::Reset],
            vec![Step::Head, ok],
        ])
        .await;
        let proxy = Proxy::start();
        for _ in 0..2 {
            let (_client, answer) = ask(&proxy, &origin, GET).await;
            assert_eq!((answer.head.status, answer.text().as_str()), (200, "ok"));
        }
        assert_eq!(origin.connections(), 2);
    })
    .await;
}

#[tokio::test]
async fn an_early_refusal_of_a_large_body_reaches_the_client() {
    local(async {
        let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\
                       \r\nno";
        let origin = ScriptedOrigin::with(vec![Step::Head, send(refusal), Step::AwaitClose]).await;
        let proxy = Proxy::start();
        let request =
            "POST http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nContent-Length: 100000000\r\n\r\n\
             beginning";
        let (mut client, answer) = ask(&proxy, &origin, request).await;
        assert_eq!((answer.head.status, answer.text().as_str()), (413, "no"));
        client.finish().await;
        assert!(client.rest().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn interim_responses_and_continue_pass() {
    local(async {
        let script = vec![
            Step::Head,
            send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"),
            Step::Body(5),
            send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"),
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let mut client = RawClient::connect(proxy.port).await;
        let authority = format!("127.0.0.1:{}", origin.port);
        client
            .send(format!(
                "PUT http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\nContent-Length: 5\r\n\
                 Expect: 100-continue\r\n\r\n"
            ))
            .await;
        client.send("hello").await;
        let answer = client.response(&Method::Put).await;
        assert_eq!(answer.head.status, 201, "{answer:?}");
        assert!(answer.interim.iter().any(|head| head.status == 103), "{answer:?}");
        assert_eq!(origin.heard()[1], "hello");
    })
    .await;
}

#[tokio::test]
async fn an_upgrade_becomes_a_tunnel_after_101_only() {
    local(async {
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n\
             welcome";
        let origin = ScriptedOrigin::with(vec![Step::Head, send(switch), Step::Body(5), send(" bye")]).await;
        let proxy = Proxy::start();
        let request =
            "GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nConnection: Upgrade\r\n\
             Upgrade: chat\r\n\r\n";
        let mut client = RawClient::connect(proxy.port).await;
        client.send(request.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
        let head = String::from_utf8(client.read_until_blank_line().await).expect("text");
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.to_ascii_lowercase().contains("upgrade: chat"), "{head}");
        client.send("hello").await;
        assert_eq!(client.read_exactly(11).await, b"welcome bye");
        assert_eq!(origin.heard()[1], "hello");
    })
    .await;
}
