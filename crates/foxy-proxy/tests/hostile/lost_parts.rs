//! Tests large stored bodies after the store has lost one of their parts of 1 MiB. The client must
//! receive the lost bytes from the origin, or notice that the answer is incomplete. The next client
//! must receive the whole body.

use crate::support::proxy::Proxy;
use crate::support::store::ForgetfulStore;
use crate::support::wire::{RawClient, Response};
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use std::sync::Arc;
use std::time::Duration;

/// Length in bytes of a body in three parts: two parts of 1 MiB each, and a short part.
const LENGTH: usize = (2 << 20) + 5000;

fn body() -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 251) as u8).collect()
}

/// Returns the script of an origin that answers one request with this status, these header lines
/// and this body.
fn response(status: &str, lines: &str, body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
    vec![Step::Head, send(&head), Step::Send(body.to_vec())]
}

/// Time limit for the store to return the first part of a stored body.
const PATIENCE: Duration = Duration::from_millis(300);

struct Setting {
    origin: ScriptedOrigin,
    store: Arc<ForgetfulStore>,
    proxy: Proxy,
}

impl Setting {
    /// Starts a proxy that has fetched and stored the body, and whose store has then lost the part
    /// number `lost`.
    async fn new(lines: &str, lost: usize, later: Vec<Vec<Step>>) -> Self {
        let setting = Self::whole(lines, later).await;
        setting.store.forget_part(lost);
        setting
    }

    /// Starts a proxy that has fetched and stored the body. No part is lost.
    async fn whole(lines: &str, later: Vec<Vec<Step>>) -> Self {
        Self::with(0, lines, later).await
    }

    /// Starts a proxy that has fetched and stored the body. No part is lost. `memory` is the size
    /// of the proxy's memory cache in bytes.
    async fn with(memory: u64, lines: &str, later: Vec<Vec<Step>>) -> Self {
        let first = response("200 OK", lines, &body());
        let origin = ScriptedOrigin::start([vec![first], later].concat()).await;
        let store = Arc::new(ForgetfulStore::default());
        let proxy = Proxy::start_on(Some(store.clone()), |settings| {
            settings.memory = memory;
            settings.store_patience = PATIENCE;
        });
        let setting = Self { origin, store, proxy };
        assert!(setting.get("").await.body == body());
        while setting.store.parts() < 3 {
            tokio::task::yield_now().await;
        }
        let mut stored = setting.get("Cache-Control: only-if-cached\r\n").await;
        while stored.head.status == 504 {
            stored = setting.get("Cache-Control: only-if-cached\r\n").await;
        }
        setting
    }

    async fn get(&self, lines: &str) -> Response {
        let authority = format!("127.0.0.1:{}", self.origin.port);
        let mut client = RawClient::connect(self.proxy.port).await;
        client
            .send(format!("GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n"))
            .await;
        client.response(&Method::Get).await
    }
}

const FRESH: &str = "Cache-Control: max-age=600\r\nETag: \"one\"\r\n";

#[tokio::test]
async fn a_body_whose_beginning_is_gone_is_a_miss() {
    local(async {
        let setting = Setting::new(FRESH, 0, vec![response("200 OK", FRESH, b"new")]).await;
        assert_eq!(setting.get("").await.text(), "new");
    })
    .await;
}

#[tokio::test]
async fn a_store_that_becomes_slow_within_an_answer_is_waited_for() {
    local(async {
        let setting = Setting::whole("Cache-Control: max-age=600\r\n", vec![]).await;
        setting.store.delay_part(1, 3 * PATIENCE);
        assert!(setting.get("").await.body == body());
        assert_eq!(setting.origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn the_rest_comes_from_an_origin_that_still_has_the_same() {
    let (whole, half) = (body(), 1 << 20);
    let range = format!("{FRESH}Content-Range: bytes {half}-{}/{LENGTH}\r\n", LENGTH - 1);
    let ways = [
        response("206 Partial Content", &range, &whole[half..]),
        response("200 OK", FRESH, &whole),
    ];
    for way in ways {
        local(async {
            let setting =
                Setting::new(FRESH, 1, vec![way, response("200 OK", FRESH, &body())]).await;
            let answer = setting.get("").await;
            assert!(
                answer.end.is_ok() && answer.body == body(),
                "{:?} {}",
                answer.end,
                answer.body.len()
            );
            let asked = setting.origin.heard().remove(1);
            assert!(asked.contains(&format!("Range: bytes={half}-{}\r\n", LENGTH - 1)), "{asked}");
            assert!(asked.contains("If-Range: \"one\"\r\n"), "{asked}");
            let answer = setting.get("").await;
            assert!(answer.end.is_ok() && answer.body == body());
            assert_eq!(setting.origin.connections(), 3, "the broken one was fetched again");
        })
        .await;
    }
}

#[tokio::test]
async fn another_response_is_never_put_in_the_place_of_the_rest() {
    let whole = body();
    let other = FRESH.replace("one", "two");
    let wrong_range = format!("{FRESH}Content-Range: bytes 0-{}/{LENGTH}\r\n", LENGTH - 1);
    let ways = [
        response("200 OK", &other, &whole),
        response("200 OK", FRESH, &whole[1..]),
        response("206 Partial Content", &wrong_range, &whole),
        response("404 Not Found", FRESH, b"gone"),
        vec![Step::Head, Step::Reset],
    ];
    for way in ways {
        local(async {
            let setting =
                Setting::new(FRESH, 1, vec![way, response("200 OK", FRESH, &body())]).await;
            let answer = setting.get("").await;
            assert!(answer.end.is_err(), "the client must see that it is not whole");
            assert!(body().starts_with(&answer.body), "not a wrong byte");
            assert!(setting.get("").await.body == body(), "the next client gets it whole");
        })
        .await;
    }
}

#[tokio::test]
async fn a_confirmed_response_whose_body_is_gone_is_fetched() {
    local(async {
        let stale = "Cache-Control: max-age=1\r\nETag: \"one\"\r\nAge: 9\r\n";
        let confirmed = vec![
            Step::Head,
            send(
                "HTTP/1.1 304 Not Modified\r\nETag: \"one\"\r\nCache-Control: max-age=1\r\n\
                  Age: 9\r\n\r\n",
            ),
        ];
        let later = vec![confirmed.clone(), confirmed, response("200 OK", FRESH, b"new")];
        let origin_first = response("200 OK", stale, &body());
        let origin = ScriptedOrigin::start([vec![origin_first], later].concat()).await;
        let store = Arc::new(ForgetfulStore::default());
        let proxy = Proxy::start_on(Some(store.clone()), |settings| {
            settings.memory = 0;
            settings.store_patience = PATIENCE;
        });
        let setting = Setting { origin, store, proxy };
        assert!(setting.get("").await.body == body());
        let answer = setting.get("").await;
        assert!(answer.end.is_ok() && answer.body == body());
        setting.store.forget_part(0);
        assert_eq!(setting.get("").await.text(), "new");
        assert_eq!(setting.origin.connections(), 4);
    })
    .await;
}

#[tokio::test]
async fn only_if_cached_does_not_send_for_what_is_gone() {
    local(async {
        let setting = Setting::new(FRESH, 0, Vec::new()).await;
        assert_eq!(setting.get("Cache-Control: only-if-cached\r\n").await.head.status, 504);
        assert_eq!(setting.origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn only_if_cached_gets_ranges_that_are_stored_and_else_a_504() {
    const ONLY: &str = "Cache-Control: only-if-cached\r\n";
    local(async {
        let lines = format!("{FRESH}Accept-Ranges: bytes\r\n");
        let part = 1 << 20;
        let range = format!("{lines}Content-Range: bytes {part}-{}/{LENGTH}\r\n", 2 * part - 1);
        let bytes = body()[part..2 * part].to_vec();
        let setting =
            Setting::new(&lines, 1, vec![response("206 Partial Content", &range, &bytes)]).await;
        let stored = "Range: bytes=0-9\r\n";
        for (range, expected) in [
            ("", 504),
            (stored, 206),
            ("Range: bytes=1048570-1048580\r\n", 504),
            ("Range: bytes=0-9,2097152-2097160\r\n", 206),
            ("Range: bytes=0-9,1048576-1048580\r\n", 504),
            ("Range: bytes=-5000\r\n", 206),
        ] {
            let answer = setting.get(&format!("{ONLY}{range}")).await;
            assert_eq!((answer.head.status, answer.end.is_ok()), (expected, true), "{range}");
        }
        assert_eq!(setting.origin.connections(), 1);
        // Another client makes slices of what is left, and gets the missing slice from the origin.
        let answer = setting.get("Range: bytes=1048570-1048580\r\n").await;
        assert!(answer.body == body()[1_048_570..=1_048_580]);
        let answer = setting.get(&format!("{ONLY}{stored}")).await;
        assert_eq!((answer.head.status, &answer.body[..]), (206, &body()[..10]));
        assert_eq!(setting.origin.connections(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_follower_is_not_given_the_variant_its_leader_asked_about() {
    local(async {
        let variant = |tag: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nVary: Accept-Language\r\nCache-Control: max-age=1\r\n\
                     Age: 9\r\nETag: \"{tag}\"\r\n"
            )
        };
        let answers = |tag: &str| {
            vec![
                Step::Head,
                send(&format!(
                    "{}Content-Length: 2\r\n\r\n\
            {tag}",
                    variant(tag)
                )),
            ]
        };
        let confirms = |tag: &str| {
            let text = variant(tag).replace("200 OK", "304 Not Modified");
            vec![
                Step::Head,
                Step::Pause(std::time::Duration::from_millis(150)),
                send(&format!("{text}\r\n")),
            ]
        };
        let scripts = vec![answers("en"), answers("de"), confirms("en"), confirms("de")];
        let origin = ScriptedOrigin::start(scripts).await;
        let setting = Setting { origin, store: Arc::default(), proxy: Proxy::start() };
        for tag in ["en", "de"] {
            assert_eq!(setting.get(&format!("Accept-Language: {tag}\r\n")).await.text(), tag);
        }
        let second = async {
            while setting.origin.heard().len() < 3 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            setting.get("Accept-Language: de\r\n").await
        };
        let (first, second) = tokio::join!(setting.get("Accept-Language: en\r\n"), second);
        assert_eq!((first.text().as_str(), second.text().as_str()), ("en", "de"));
    })
    .await;
}

/// Size of a memory cache in bytes that has room for heads of responses, but not for a part of a
/// body.
const NO_PARTS: u64 = 1 << 20;

/// Header lines of a response whose origin supports range requests.
const IN_RANGES: &str = "Cache-Control: max-age=600\r\nETag: \"one\"\r\nAccept-Ranges: bytes\r\n";

/// Returns the script of an origin that answers a range request for the part `number` of the three
/// parts.
fn slice(number: usize) -> Vec<Step> {
    let (first, end) = (number << 20, LENGTH.min((number + 1) << 20));
    let lines = format!("{IN_RANGES}Content-Range: bytes {first}-{}/{LENGTH}\r\n", end - 1);
    response("206 Partial Content", &lines, &body()[first..end])
}

#[tokio::test]
async fn of_a_body_that_lost_a_part_only_that_is_fetched_and_it_is_whole_again() {
    for lost in [0, 1] {
        local(async {
            let setting = Setting::with(NO_PARTS, IN_RANGES, vec![slice(lost)]).await;
            setting.store.forget_part(lost);
            for _ in 0..2 {
                let answer = setting.get("").await;
                assert!(answer.end.is_ok() && answer.body == body(), "{lost}: {:?}", answer.end);
                while setting.store.parts() < 4 {
                    tokio::task::yield_now().await;
                }
            }
            let heard = setting.origin.heard();
            assert_eq!(heard.len(), 2, "{lost}: the second answer is all stored");
            let range = format!("Range: bytes={}-{}\r\n", lost << 20, ((lost + 1) << 20) - 1);
            assert!(
                heard[1].contains(&range) && heard[1].contains("If-Range: \"one\"\r\n"),
                "{}",
                heard[1]
            );
        })
        .await;
    }
}

#[tokio::test]
async fn what_is_left_of_a_body_is_no_answer_once_the_origin_has_another() {
    let other = IN_RANGES.replace("one", "two");
    let new = response("200 OK", &other, b"new");
    local(async {
        let setting = Setting::with(NO_PARTS, IN_RANGES, vec![new.clone(), new]).await;
        setting.store.forget_part(1);
        let answer = setting.get("").await;
        assert!(answer.end.is_err(), "the first part was sent: nothing else may follow it");
        assert_eq!(setting.get("").await.text(), "new");
        assert_eq!(setting.get("").await.text(), "new");
    })
    .await;
}

#[tokio::test]
async fn a_body_of_which_the_ends_are_gone_is_a_miss() {
    local(async {
        let setting =
            Setting::with(NO_PARTS, IN_RANGES, vec![response("200 OK", IN_RANGES, b"new")]).await;
        [0, 2].into_iter().for_each(|part| setting.store.forget_part(part));
        assert_eq!(setting.get("").await.text(), "new");
        assert!(!setting.origin.heard()[1].contains("Range:"));
    })
    .await;
}
