//! Tests origins that break the rules of HTTP/2 with hand-written frames, and the error that the
//! proxy reports for each broken rule.

use crate::origin_http2::{get, http2_client, http2_client_with, request};
use crate::support::http2_frames::{
    Frame, FrameOrigin, HTTP1, OPENED, React, STATUS_200, head, settings,
};
use crate::support::local;
use crate::upstream::{Answer, answer, whole};
use foxy_http::{BodyLength, DecodeError, Method};
use foxy_proxy::upstream::{BodyPiece, HeadEvent, Http2Error, RequestBody, UpstreamError};
use foxy_testkit::http2::kind::{
    CONTINUATION, DATA, GOAWAY, HEADERS, PING, PUSH_PROMISE, RST_STREAM, SETTINGS,
};
use foxy_testkit::http2::{END_HEADERS, END_STREAM, field, frame};
use std::cell::Cell;
use std::time::Duration;

const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
const INTERNAL_ERROR: [u8; 4] = [0, 0, 0, 2];
const HTTP_1_1_REQUIRED: [u8; 4] = [0, 0, 0, 13];
const WINDOW_UPDATE: u8 = 8;

/// Creates the frames of a complete and correct answer on a stream.
fn fine(stream: u32) -> Vec<u8> {
    [head(stream, 0, &[]), frame(DATA, END_STREAM, stream, b"fine")].concat()
}

fn goaway(last: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// Starts an origin that sends its SETTINGS when a connection opens. To every request, it reacts as
/// `to_request` says.
async fn answering(to_request: impl Fn(Frame) -> React + 'static) -> FrameOrigin {
    FrameOrigin::start(move |frame| match frame.kind {
        OPENED => React::Send(settings()),
        HEADERS | HTTP1 => to_request(frame),
        _ => React::Send(Vec::new()),
    })
    .await
}

/// Sends a GET to an origin that answers with `bytes`. Checks the resulting response or error.
async fn check(bytes: impl Fn(u32) -> Vec<u8> + 'static, expected: Result<Answer, UpstreamError>) {
    let origin = answering(move |frame| React::Send(bytes(frame.stream))).await;
    let client = http2_client_with(|settings| {
        settings.head_timeout = Duration::from_secs(20);
        settings.body_timeout = Duration::from_secs(20);
    });
    assert_eq!(answer(&mut get(&client, origin.port, "/")).await, expected);
}

const PROTOCOL: Result<Answer, UpstreamError> = Err(UpstreamError::Http2(Http2Error::Protocol));

#[tokio::test]
async fn what_goaway_leaves_undone_is_sent_again_on_a_new_connection() {
    local(async {
        let origin = FrameOrigin::start(|frame| match (frame.kind, frame.connection) {
            (OPENED, _) => React::Send(settings()),
            (HEADERS, 0) => React::Send(goaway(0)),
            (DATA, _) => React::Send(fine(frame.stream)),
            _ => React::Send(Vec::new()),
        })
        .await;
        let client = http2_client();
        let (sender, body) = RequestBody::channel(BodyLength::Length(2));
        let mut exchange = client.exchange(request(origin.port, Method::Post, "/", body));
        let later = async {
            while origin.connections() < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            sender.send(BodyPiece::Data("hi".into())).await.expect("wanted");
        };
        let (answered, ()) = tokio::join!(answer(&mut exchange), later);
        assert_eq!(answered, whole(200, "fine"));
        assert_eq!((origin.connections(), client.counts().retried), (2, 1));
    })
    .await;
}

#[tokio::test]
async fn what_goaway_does_not_leave_undone_is_not_sent_again() {
    local(async {
        let origin = answering(|frame| React::Close(goaway(frame.stream))).await;
        let client = http2_client();
        let mut exchange =
            client.exchange(request(origin.port, Method::Post, "/", RequestBody::none()));
        assert_eq!(answer(&mut exchange).await, Err(UpstreamError::NoResponse));
        assert_eq!(origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_dies_between_requests_is_replaced_for_what_may_be_sent_twice() {
    local(async {
        for (method, expected) in
            [(Method::Get, whole(200, "fine")), (Method::Post, Err(UpstreamError::NoResponse))]
        {
            let origin = answering(|frame| match (frame.connection, frame.stream) {
                (0, 3) => React::Close(Vec::new()),
                _ => React::Send(fine(frame.stream)),
            })
            .await;
            let client = http2_client();
            assert_eq!(answer(&mut get(&client, origin.port, "/")).await, whole(200, "fine"));
            let second = request(origin.port, method.clone(), "/", RequestBody::none());
            assert_eq!(answer(&mut client.exchange(second)).await, expected, "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_refused_request_is_sent_again_a_few_times() {
    local(async {
        let origin = answering(|asked| {
            let refused = frame(RST_STREAM, 0, asked.stream, &REFUSED_STREAM);
            React::Send(if asked.stream == 1 { refused } else { fine(asked.stream) })
        })
        .await;
        assert_eq!(answer(&mut get(&http2_client(), origin.port, "/")).await, whole(200, "fine"));

        let asked = std::rc::Rc::new(Cell::new(0));
        let count = std::rc::Rc::clone(&asked);
        let origin = answering(move |asked| {
            count.set(count.get() + 1);
            React::Send(frame(RST_STREAM, 0, asked.stream, &REFUSED_STREAM))
        })
        .await;
        let refused = Err(UpstreamError::Http2(Http2Error::Refused));
        assert_eq!(answer(&mut get(&http2_client(), origin.port, "/")).await, refused);
        assert_eq!((asked.get(), origin.connections()), (4, 1));
    })
    .await;
}

#[tokio::test]
async fn a_refused_request_whose_body_has_begun_is_not_sent_again() {
    local(async {
        let origin = FrameOrigin::start(|asked| match asked.kind {
            OPENED => React::Send(settings()),
            DATA => React::Send(frame(RST_STREAM, 0, asked.stream, &REFUSED_STREAM)),
            _ => React::Send(Vec::new()),
        })
        .await;
        let (sender, body) = RequestBody::channel(BodyLength::Length(10));
        let mut exchange = http2_client().exchange(request(origin.port, Method::Put, "/", body));
        sender.send(BodyPiece::Data("begun".into())).await.expect("wanted");
        let refused = Err(UpstreamError::Http2(Http2Error::Refused));
        assert_eq!(answer(&mut exchange).await, refused);
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_wants_http1_gets_it() {
    local(async {
        let origin = answering(|asked| match asked.kind {
            HTTP1 => React::Close(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold".to_vec()),
            _ => React::Send(frame(RST_STREAM, 0, asked.stream, &HTTP_1_1_REQUIRED)),
        })
        .await;
        assert_eq!(answer(&mut get(&http2_client(), origin.port, "/")).await, whole(200, "old"));
        assert_eq!(origin.connections(), 2);
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_whole() {
    local(async {
        let reset = || Err(UpstreamError::Http2(Http2Error::StreamReset));
        let begun = |stream, fields: &[(&str, &str)]| {
            [head(stream, 0, fields), frame(DATA, 0, stream, b"half")].concat()
        };
        let reset_by = |stream| frame(RST_STREAM, 0, stream, &INTERNAL_ERROR);
        check(reset_by, reset()).await;
        check(move |stream| [begun(stream, &[]), reset_by(stream)].concat(), reset()).await;
        let no_error =
            move |stream| [begun(stream, &[]), frame(RST_STREAM, 0, stream, &[0; 4])].concat();
        check(no_error, reset()).await;
        let origin = answering(move |asked| React::Close(begun(asked.stream, &[]))).await;
        let cut = Err(UpstreamError::Reset);
        assert_eq!(answer(&mut get(&http2_client(), origin.port, "/")).await, cut);
    })
    .await;
}

#[tokio::test]
async fn lengths_that_lie_are_no_answer() {
    local(async {
        let with = |length: &'static str, flags, body: &'static [u8]| {
            move |stream| {
                [head(stream, 0, &[("content-length", length)]), frame(DATA, flags, stream, body)]
                    .concat()
            }
        };
        check(with("4", END_STREAM, b"four"), whole(200, "four")).await;
        check(with("5", END_STREAM, b"four"), PROTOCOL).await;
        check(with("3", 0, b"four"), PROTOCOL).await;
        check(with("x", END_STREAM, b"four"), PROTOCOL).await;
        check(|stream| head(stream, END_STREAM, &[("content-length", "5")]), PROTOCOL).await;
    })
    .await;
}

#[tokio::test]
async fn the_head_of_a_short_body_whose_length_lies_is_not_told() {
    local(async {
        for (length, flags, body) in
            [("5", END_STREAM, &b"four"[..]), ("3", 0, b"four"), ("9", 0, b"four")]
        {
            let origin = answering(move |asked| {
                let begun = [
                    head(asked.stream, 0, &[("content-length", length)]),
                    frame(DATA, flags, asked.stream, body),
                ];
                match flags {
                    END_STREAM => React::Send(begun.concat()),
                    _ => React::Close(begun.concat()),
                }
            })
            .await;
            let found = get(&http2_client(), origin.port, "/").head().await;
            assert!(found.is_err(), "{length}: {found:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn trailers_with_a_pseudo_field_are_no_answer() {
    local(async {
        let with = |trailers: &'static [(&str, &str)]| {
            move |stream| {
                let block: Vec<u8> =
                    trailers.iter().flat_map(|(name, value)| field(name, value)).collect();
                let begun = [head(stream, 0, &[]), frame(DATA, 0, stream, b"fine")].concat();
                [begun, frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)].concat()
            }
        };
        check(with(&[(":status", "200")]), PROTOCOL).await;
        check(with(&[(":path", "/"), ("x", "y")]), PROTOCOL).await;
    })
    .await;
}

#[tokio::test]
async fn a_body_where_none_may_be_is_no_answer() {
    local(async {
        let no_content = |stream| {
            [frame(HEADERS, END_HEADERS, stream, &[0x89]), frame(DATA, END_STREAM, stream, b"x")]
                .concat()
        };
        check(no_content, PROTOCOL).await;
        let origin = answering(|asked| React::Send(fine(asked.stream))).await;
        let wanted = request(origin.port, Method::Head, "/", RequestBody::none());
        assert_eq!(answer(&mut http2_client().exchange(wanted)).await, PROTOCOL);
    })
    .await;
}

#[tokio::test]
async fn malformed_heads_are_no_answer() {
    local(async {
        for (name, value) in [
            ("Upper", "case"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("x", "line\r\nbreak"),
            ("x", "nul\0"),
            ("", "nameless"),
            ("a b", "c"),
        ] {
            check(move |stream| head(stream, END_STREAM, &[(name, value)]), PROTOCOL).await;
        }
        check(
            |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &field("x", "y")),
            PROTOCOL,
        )
        .await;
        let switch = |stream| frame(HEADERS, END_HEADERS, stream, &field(":status", "101"));
        check(switch, Err(DecodeError::UnexpectedSwitch.into())).await;
        let beyond =
            |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &field(":status", "600"));
        check(beyond, Err(DecodeError::InvalidStatusLine.into())).await;
    })
    .await;
}

#[tokio::test]
async fn heads_beyond_the_limits_are_no_answer() {
    local(async {
        let many = |stream| {
            let lines = vec![("x", "y"); 300];
            head(stream, END_STREAM, &lines)
        };
        check(many, Err(DecodeError::TooManyHeaders.into())).await;
        let value = "v".repeat(120);
        let large = move |stream| {
            let block: Vec<u8> = (0..700).flat_map(|_| field("x", &value)).collect();
            let mut bytes = frame(HEADERS, END_STREAM, stream, &[STATUS_200]);
            for part in block.chunks(16_000) {
                bytes.extend(frame(CONTINUATION, 0, stream, part));
            }
            bytes.extend(frame(CONTINUATION, END_HEADERS, stream, &[]));
            bytes
        };
        check(large, PROTOCOL).await;
    })
    .await;
}

/// Sends a GET to an origin that sends the bytes of `again` without end. Returns the error.
async fn flooded(again: impl Fn(u32) -> Vec<u8> + 'static) -> UpstreamError {
    let origin = answering(move |asked| React::Forever(again(asked.stream))).await;
    answer(&mut get(&http2_client(), origin.port, "/")).await.expect_err("no whole answer")
}

#[tokio::test]
async fn floods_end_the_connection_and_are_named() {
    local(async {
        let flood = UpstreamError::Http2(Http2Error::Flood);
        assert_eq!(flooded(|_| frame(PING, 0, 0, &[0; 8])).await, flood);
        assert_eq!(flooded(|_| frame(SETTINGS, 0, 0, &[])).await, flood);
        assert_eq!(flooded(|stream| frame(2, 0, stream, &[0, 0, 0, 0, 1])).await, flood);
        assert_eq!(flooded(|stream| frame(77, 0, stream, b"unknown")).await, flood);
        let interim = |stream| frame(HEADERS, END_HEADERS, stream, &field(":status", "103"));
        let many = UpstreamError::BadResponse(DecodeError::TooManyInterimResponses);
        let found = flooded(interim).await;
        assert!(found == flood || found == many, "{found:?}");
    })
    .await;
}

#[tokio::test]
async fn an_endless_head_is_cut_off() {
    local(async {
        let origin = answering(|asked| {
            let start = frame(HEADERS, 0, asked.stream, &[STATUS_200]);
            let more = frame(CONTINUATION, 0, asked.stream, &field("x", "y"));
            React::Send([start, more.repeat(50_000)].concat())
        })
        .await;
        let found =
            answer(&mut get(&http2_client(), origin.port, "/")).await.expect_err("no answer");
        let named = [Http2Error::Protocol, Http2Error::Flood].map(UpstreamError::from);
        assert!(named.contains(&found), "{found:?}");
    })
    .await;
}

#[tokio::test]
async fn frames_that_break_the_rules_end_the_connection() {
    local(async {
        let pushed = [&[0, 0, 0, 2, 0x82, 0x84, 0x86][..], &field(":authority", "a.test")].concat();
        check(move |stream| frame(PUSH_PROMISE, END_HEADERS, stream, &pushed), PROTOCOL).await;
        check(|_| frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes()), PROTOCOL).await;
        check(|stream| frame(DATA, END_STREAM, stream, b"before the head"), PROTOCOL).await;
        check(|_| frame(PING, 0, 0, b"short"), PROTOCOL).await;
        check(|stream| frame(HEADERS, END_HEADERS, stream, &[0xff; 20]), PROTOCOL).await;
        check(|_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), PROTOCOL).await;
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_ignores_windows_is_cut_off() {
    local(async {
        let origin = answering(|asked| {
            let full = frame(DATA, 0, asked.stream, &[b'x'; 16 << 10]);
            React::Send([head(asked.stream, 0, &[]), full.repeat(80)].concat())
        })
        .await;
        let client = http2_client();
        let mut exchange = get(&client, origin.port, "/");
        assert!(matches!(exchange.head().await, Ok(HeadEvent::Final(..))));
        // The client reads the first response only after the head of the second. By then, the
        // origin has sent all frames of the first response.
        let mut other = get(&client, origin.port, "/other");
        assert!(matches!(other.head().await, Ok(HeadEvent::Final(..))));
        let error = loop {
            if let Err(error) = exchange.next().await {
                break error;
            }
        };
        assert_eq!(error, UpstreamError::Http2(Http2Error::Protocol));
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_never_says_its_settings_is_asked_one_thing_at_a_time() {
    local(async {
        let origin = FrameOrigin::start(|asked| match asked.kind {
            HEADERS => React::Send(fine(asked.stream)),
            _ => React::Send(Vec::new()),
        })
        .await;
        let client = http2_client();
        let asked = (0..5).map(async |_| answer(&mut get(&client, origin.port, "/")).await);
        for answer in futures_util::future::join_all(asked).await {
            assert_eq!(answer, whole(200, "fine"));
        }
        assert_eq!(origin.connections(), 1);
    })
    .await;
}
