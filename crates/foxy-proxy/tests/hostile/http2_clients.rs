//! Tests HTTP/2 clients that send hand-written frames. An origin must receive only well-formed
//! requests. The proxy must use a limited amount of memory, and must serve other clients meanwhile.

use crate::support::http2::{Http2Client, RawHttp2, get};
use crate::support::proxy::Proxy;
use crate::support::requests::plain_origin;
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use foxy_proxy::core::counters::Counter;
use foxy_testkit::http2::{END_HEADERS, END_STREAM, block, frame, get_block, kind};
use h2::Reason;
use std::time::Duration;

/// Identifier of SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.5.2).
const INITIAL_WINDOW: u16 = 4;

async fn served(proxy: &Proxy, origin: &ScriptedOrigin) {
    let answer =
        Http2Client::connect(proxy).await.get(&format!("http://127.0.0.1:{}/", origin.port)).await;
    assert_eq!(answer.status, 200, "another client is served");
}

#[tokio::test]
async fn requests_that_are_none_are_refused_and_no_origin_hears_of_them() {
    local(async {
        let (origin, proxy) = (plain_origin().await, Proxy::start());
        let authority = format!("127.0.0.1:{}", origin.port);
        let other: &[(&str, &str)] = &[(":authority", &authority), (":path", "/")];
        let cases: &[&[(&str, &str)]] = &[
            &[(":path", "/ HTTP/1.1")],
            &[(":path", "/a b")],
            &[(":path", "/\r\nx: y")],
            &[(":path", "smuggled.example/")],
            &[(":path", "@smuggled.example/")],
            &[(":path", "*")],
            &[(":authority", "user:word@smuggled.example")],
            &[(":authority", "a b")],
            &[(":authority", "smuggled.example/x?")],
            &[(":method", "GET / HTTP/1.1\r\nx:")],
            &[(":method", "G ET")],
            &[("x", "a\r\nHost: smuggled.example")],
            &[("x", "a\nb")],
            &[("x", "a\0b")],
            &[("x", " a")],
            &[("x y", "a")],
            &[("x:", "a")],
            &[("x\r\ny", "a")],
            &[("X", "a")],
            &[("transfer-encoding", "chunked")],
            &[("connection", "close")],
            &[("keep-alive", "5")],
            &[("proxy-connection", "close")],
            &[("upgrade", "h2c")],
            &[("te", "gzip")],
            &[("host", "smuggled.example")],
            &[("host", &authority), ("host", "smuggled.example")],
            &[("content-length", "5")],
            &[("content-length", "0"), ("content-length", "5")],
            &[("content-length", "+0")],
            &[("content-length", "0, 0")],
        ];
        for case in cases {
            let mut fields = vec![(":method", "GET"), (":scheme", "http")];
            fields.extend(other);
            fields.retain(|(name, _)| !case.iter().any(|(replaced, _)| replaced == name));
            fields.extend(case.iter().filter(|(name, _)| name.starts_with(':')));
            fields.extend(case.iter().filter(|(name, _)| !name.starts_with(':')));
            let mut client = RawHttp2::connect(&proxy, &[]).await;
            client.send(&frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block(&fields))).await;
            let refusals = [kind::RST_STREAM, kind::HEADERS, kind::GOAWAY];
            let refused = client.find(|frame| refusals.contains(&frame.kind)).await;
            let refused = refused.unwrap_or_else(|| panic!("{case:?}: not refused"));
            match refused.kind {
                // The byte 0x8c is the field `:status: 400`, entry 12 of HPACK's static table.
                kind::HEADERS => {
                    assert_eq!(refused.payload.first(), Some(&0x8c), "{case:?}: {refused:?}")
                }
                // The library may treat a malformed field as a compression error.
                kind::GOAWAY => {
                    assert_ne!(refused.reason(), u32::from(Reason::NO_ERROR), "{case:?}")
                }
                _ => assert_eq!(refused.reason(), u32::from(Reason::PROTOCOL_ERROR), "{case:?}"),
            }
            assert_eq!(origin.heard(), Vec::<String>::new(), "{case:?}");
        }
        served(&proxy, &origin).await;
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_not_as_long_as_said_is_reset_and_ends_no_request() {
    local(async {
        for body in [&b"abc"[..], b"abcdefgh"] {
            let script = vec![
                Step::Head,
                Step::Body(5),
                send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            ];
            let origin = ScriptedOrigin::with(script).await;
            let proxy = Proxy::start();
            let authority = format!("127.0.0.1:{}", origin.port);
            let fields = [
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", &authority),
                (":path", "/"),
                ("content-length", "5"),
            ];
            let mut client = RawHttp2::connect(&proxy, &[]).await;
            client.send(&frame(kind::HEADERS, END_HEADERS, 1, &block(&fields))).await;
            client.send(&frame(kind::DATA, END_STREAM, 1, body)).await;
            let reset = client.find(|frame| frame.kind == kind::RST_STREAM).await.expect("a reset");
            assert_eq!(reset.reason(), u32::from(Reason::PROTOCOL_ERROR));
            assert_eq!(origin.heard(), Vec::<String>::new(), "no origin hears of it");
        }
    })
    .await;
}

#[tokio::test]
async fn trailers_with_a_pseudo_field_end_no_request() {
    local(async {
        let script = vec![
            Step::Head,
            Step::Body("3\r\nabc\r\n0\r\n\r\n".len()),
            send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ];
        for trailers in [&[(":path", "/other")][..], &[(":path", "/other"), ("x", "y")]] {
            let origin = ScriptedOrigin::with(script.clone()).await;
            let proxy = Proxy::start();
            let authority = format!("127.0.0.1:{}", origin.port);
            let fields = [
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", &authority),
                (":path", "/"),
            ];
            let mut client = RawHttp2::connect(&proxy, &[]).await;
            client.send(&frame(kind::HEADERS, END_HEADERS, 1, &block(&fields))).await;
            client.send(&frame(kind::DATA, 0, 1, b"abc")).await;
            client.send(&frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block(trailers))).await;
            let answers = [kind::HEADERS, kind::RST_STREAM];
            let answer =
                client.find(|frame| answers.contains(&frame.kind)).await.expect("an answer");
            // The byte 0x8c is the field `:status: 400`, entry 12 of HPACK's static table.
            let refused = answer.kind == kind::RST_STREAM || answer.payload.first() == Some(&0x8c);
            assert!(refused, "{trailers:?}: {answer:?}");
            assert!(!origin.heard().concat().ends_with("0\r\n\r\n"), "{:?}", origin.heard());
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_of_known_length_is_complete_at_the_origin_only_when_its_request_is_sound() {
    const LENGTH: usize = 20_000;
    local(async {
        let body = vec![0; LENGTH / 2];
        let trailers = block(&[(":path", "/other")]);
        let unsound = [
            (20_000, vec![&body[..], &body], Some(trailers.clone())),
            (0, vec![&b""[..]], Some(trailers)),
            (0, vec![&b"hello"[..]], None),
        ];
        for method in ["PUT", "GET"] {
            for (length, pieces, trailers) in &unsound {
                let script = vec![
                    Step::Head,
                    Step::Body(LENGTH),
                    send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
                ];
                let origin = ScriptedOrigin::with(script).await;
                let proxy = Proxy::start();
                let (authority, length) =
                    (format!("127.0.0.1:{}", origin.port), length.to_string());
                let fields = [
                    (":method", method),
                    (":scheme", "http"),
                    (":authority", &authority),
                    (":path", "/"),
                    ("content-length", &length),
                ];
                let mut client = RawHttp2::connect(&proxy, &[]).await;
                client.send(&frame(kind::HEADERS, END_HEADERS, 1, &block(&fields))).await;
                for (number, piece) in pieces.iter().enumerate() {
                    let is_last = number + 1 == pieces.len() && trailers.is_none();
                    let flags = if is_last { END_STREAM } else { 0 };
                    client.send(&frame(kind::DATA, flags, 1, piece)).await;
                }
                if let Some(trailers) = trailers {
                    let flags = END_HEADERS | END_STREAM;
                    client.send(&frame(kind::HEADERS, flags, 1, trailers)).await;
                }
                let answers = [kind::HEADERS, kind::RST_STREAM];
                let answer =
                    client.find(|frame| answers.contains(&frame.kind)).await.expect("an answer");
                // The byte 0x8c is the field `:status: 400`, entry 12 of HPACK's static table.
                let refused =
                    answer.kind == kind::RST_STREAM || answer.payload.first() == Some(&0x8c);
                assert!(refused, "{method} {length}: {answer:?}");
                let heard = origin.heard().concat();
                let has_whole = heard
                    .split_once("\r\n\r\n")
                    .is_some_and(|(_, body)| length == "0" || body.len() >= LENGTH);
                assert!(!has_whole, "{method} {length}: {} bytes", heard.len());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn frames_that_carry_nothing_of_a_request_end_their_connection_and_no_other() {
    const PRIORITY: u8 = 2;
    const WINDOW_UPDATE: u8 = 8;
    local(async {
        let (origin, proxy) = (plain_origin().await, Proxy::start());
        let window = [(INITIAL_WINDOW, 0), (INITIAL_WINDOW, 1)]
            .map(|(id, value): (u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
        let floods = [
            ("SETTINGS", window.map(|payload| frame(kind::SETTINGS, 0, 0, &payload)).concat()),
            ("PING", frame(kind::PING, 0, 0, &[0; 8])),
            ("PRIORITY", frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 1])),
            ("WINDOW_UPDATE", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
            ("an unknown frame", frame(77, 0, 0, b"unknown")),
            ("empty DATA", frame(kind::DATA, 0, 1, &[])),
        ];
        let authority = format!("127.0.0.1:{}", origin.port);
        let fields =
            [(":method", "POST"), (":scheme", "http"), (":authority", &authority), (":path", "/")];
        for (name, flood) in floods {
            let mut client = RawHttp2::connect(&proxy, &[]).await;
            client.send(&frame(kind::HEADERS, END_HEADERS, 1, &block(&fields))).await;
            client.send(&flood.repeat(1500)).await;
            let end = client.find(|frame| frame.kind == kind::GOAWAY).await;
            let end = end.unwrap_or_else(|| panic!("{name}: no farewell"));
            assert_eq!(end.reason(), u32::from(Reason::ENHANCE_YOUR_CALM), "{name}");
        }
        // The HTTP/2 library itself closes the connection of the client that sends empty DATA
        // frames. So the proxy does not count this flood.
        assert_eq!(proxy.count(Counter::Http2Floods), 5);
        served(&proxy, &origin).await;
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_resets_ends_its_connection_and_no_other() {
    local(async {
        let (origin, proxy) = (plain_origin().await, Proxy::start());
        let mut client = RawHttp2::connect(&proxy, &[]).await;
        let fields = get_block(&format!("127.0.0.1:{}", origin.port), "/");
        let flood: Vec<u8> = (0..2000)
            .flat_map(|number| {
                let opened =
                    frame(kind::HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &fields);
                [opened, frame(kind::RST_STREAM, 0, 2 * number + 1, &8u32.to_be_bytes())].concat()
            })
            .collect();
        client.send(&flood).await;
        served(&proxy, &origin).await;
        let end = client.find(|frame| frame.kind == kind::GOAWAY).await;
        assert!(end.is_none_or(|end| end.reason() == u32::from(Reason::ENHANCE_YOUR_CALM)));
        assert!(proxy.count(Counter::Http2Streams) < 400, "{}", proxy.count(Counter::Http2Streams));
    })
    .await;
}

#[tokio::test]
async fn a_client_that_gives_up_request_after_request_is_sent_away() {
    local(async {
        let origin = ScriptedOrigin::with(vec![Step::Head, Step::Hang]).await;
        let proxy = Proxy::start();
        let mut client = RawHttp2::connect(&proxy, &[]).await;
        let fields = get_block(&format!("127.0.0.1:{}", origin.port), "/");
        for number in 0..1000 {
            let stream = 2 * number + 1;
            client.send(&frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, &fields)).await;
            // The answer to the PING proves that the proxy has processed all frames before it.
            if !client.send(&frame(kind::PING, 0, 0, &[0; 8])).await
                || client.find(|frame| frame.kind == kind::PING).await.is_none()
                || !client.send(&frame(kind::RST_STREAM, 0, stream, &8u32.to_be_bytes())).await
            {
                break;
            }
        }
        assert!((200..300).contains(&proxy.count(Counter::Http2Resets)));
        assert!(
            !client.send(&frame(kind::PING, 0, 0, &[0; 8])).await || client.frame().await.is_none()
        );
    })
    .await;
}

#[tokio::test]
async fn a_head_without_end_ends_its_connection_and_no_other() {
    local(async {
        let (origin, proxy) = (plain_origin().await, Proxy::start());
        let mut client = RawHttp2::connect(&proxy, &[]).await;
        let fields = get_block(&format!("127.0.0.1:{}", origin.port), "/");
        client.send(&frame(kind::HEADERS, END_STREAM, 1, &fields)).await;
        let more = frame(kind::CONTINUATION, 0, 1, &block(&[("x", &"a".repeat(100))]).repeat(100));
        let mut sent = 0;
        while sent < 10_000 && client.send(&more).await {
            sent += 1;
        }
        assert!(sent < 10_000, "the flood is cut");
        served(&proxy, &origin).await;
        assert_eq!(proxy.count(Counter::Http2Streams), 1, "only the other client's");
    })
    .await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_answered_so() {
    local(async {
        let (origin, proxy) = (plain_origin().await, Proxy::start());
        let client = Http2Client::connect(&proxy).await;
        let url = format!("http://127.0.0.1:{}/", origin.port);
        let many: Vec<_> = (0..300).map(|number| (format!("x-{number}"), "y")).collect();
        let many: Vec<_> = many.iter().map(|(name, value)| (&name[..], *value)).collect();
        let long = "a".repeat(40 << 10);
        let longer = "a".repeat(70 << 10);
        for (url, fields, status) in [
            (url.clone(), &many[..], 431),
            (format!("{url}{long}"), &[][..], 414),
            (url.clone(), &[("x", &longer[..])][..], 431),
        ] {
            let answer = client.ask(get(&url, fields), &[]).await.expect("an answer");
            assert_eq!(answer.status, status);
        }
        assert_eq!(origin.heard(), Vec::<String>::new());
        served(&proxy, &origin).await;
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_takes_nothing_is_cut_and_its_connection_goes_on() {
    local(async {
        let body = "a".repeat(1 << 20);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let origin = ScriptedOrigin::with(vec![Step::Head, send(&answer), Step::Hang]).await;
        let proxy =
            Proxy::start_with(|settings| settings.client_write = Duration::from_millis(200));
        let mut client = RawHttp2::connect(&proxy, &[(INITIAL_WINDOW, 0)]).await;
        let fields = get_block(&format!("127.0.0.1:{}", origin.port), "/");
        client.send(&frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &fields)).await;
        let reset = client.find(|frame| frame.kind == kind::RST_STREAM).await.expect("a reset");
        assert_eq!((reset.stream, reset.reason()), (1, u32::from(Reason::CANCEL)));
        client.send(&frame(kind::PING, 0, 0, &[7; 8])).await;
        assert!(client.find(|frame| frame.kind == kind::PING).await.is_some());
        assert_eq!(proxy.count(Counter::ClientsLeft), 1);
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_takes_nothing_is_cut() {
    local(async {
        let proxy =
            Proxy::start_with(|settings| settings.client_write = Duration::from_millis(200));
        let mut client = RawHttp2::connect(&proxy, &[]).await;
        let pings = frame(kind::PING, 0, 0, &[0; 8]).repeat(10_000);
        let mut sent = 0;
        while sent < 1000 && client.send(&pings).await {
            sent += 1;
        }
        assert!(sent < 1000, "answers to pings are not kept without end");
    })
    .await;
}

#[tokio::test]
async fn a_connection_without_streams_ends_in_time_with_a_goaway() {
    local(async {
        let proxy = Proxy::start_with(|settings| settings.client_idle = Duration::from_millis(50));
        let mut client = RawHttp2::connect(&proxy, &[]).await;
        let end = client.find(|frame| frame.kind == kind::GOAWAY).await.expect("a farewell");
        assert_eq!(end.reason(), u32::from(Reason::NO_ERROR));
        assert!(client.find(|_| false).await.is_none());
    })
    .await;
}

#[tokio::test]
async fn a_preface_that_does_not_come_whole_is_timed_out() {
    local(async {
        let proxy = Proxy::start_with(|settings| settings.client_head = Duration::from_millis(50));
        let mut client = RawClient::connect(proxy.port).await;
        client.send("PRI * HTTP/2.0\r\n\r\nSM").await;
        let answer = client.response(&Method::Get).await;
        assert!(matches!(answer.head.status, 400 | 408 | 505), "{}", answer.head.status);
        assert!(client.rest().await.is_empty());
    })
    .await;
}
