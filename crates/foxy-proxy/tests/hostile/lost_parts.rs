//! Large stored bodies of which the store has lost a part: the client gets all of it from elsewhere, or sees that it
//! did not; the next one gets it whole.

use crate::support::proxy::Proxy;
use crate::support::store::ForgetfulStore;
use crate::support::wire::{RawClient, Response};
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use std::sync::Arc;
use std::time::Duration;

/// Three parts: two of a mebibyte and a short one.
const LENGTH: usize = (2 << 20) + 5000;

fn body() -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 251) as u8).collect()
}

/// A response with this status and these header lines.
fn response(status: &str, lines: &str, body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
    vec![Step::Head, send(&head), Step::Send(body.to_vec())]
}

/// How long a client waits for the beginning of what is stored.
const PATIENCE: Duration = Duration::from_millis(300);

struct Setting {
    origin: ScriptedOrigin,
    store: Arc<ForgetfulStore>,
    proxy: Proxy,
}

impl Setting {
    /// A proxy that has fetched and stored the body, and whose store lost one part of it then.
    async fn new(lines: &str, lost: usize, later: Vec<Vec<Step>>) -> Self {
        let setting = Self::whole(lines, later).await;
        setting.store.forget_part(lost);
        setting
    }

    /// The same with everything still there.
    async fn whole(lines: &str, later: Vec<Vec<Step>>) -> Self {
        let first = response("200 OK", lines, &body());
        let origin = ScriptedOrigin::start([vec![first], later].concat()).await;
        let store = Arc::new(ForgetfulStore::default());
        let proxy = Proxy::start_on(Some(store.clone()), |settings| {
            settings.memory = 0;
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
        client.send(format!("GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n")).await;
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
    let ways = [response("206 Partial Content", &range, &whole[half..]), response("200 OK", FRESH, &whole)];
    for way in ways {
        local(async {
            let setting = Setting::new(FRESH, 1, vec![way, response("200 OK", FRESH, &body())]).await;
            let answer = setting.get("").await;
            assert!(answer.end.is_ok() && answer.body == body(), "{:?} {}", answer.end, answer.body.len());
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
            let setting = Setting::new(FRESH, 1, vec![way, response("200 OK", FRESH, &body())]).await;
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
            send("HTTP/1.1 304 Not Modified\r\nETag: \"one\"\r\nCache-Control: max-age=1\r\nAge: 9\r\n\r\n"),
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
async fn a_follower_is_not_given_the_variant_its_leader_asked_about() {
    local(async {
        let variant = |tag: &str| {
            format!("HTTP/1.1 200 OK\r\nVary: Accept-Language\r\nCache-Control: max-age=1\r\nAge: 9\r\nETag: \"{tag}\"\r\n")
        };
        let answers = |tag: &str| vec![Step::Head, send(&format!("{}Content-Length: 2\r\n\r\n{tag}", variant(tag)))];
        let confirms = |tag: &str| {
            let text = variant(tag).replace("200 OK", "304 Not Modified");
            vec![Step::Head, Step::Pause(std::time::Duration::from_millis(150)), send(&format!("{text}\r\n"))]
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
