//! Tests clients that request a large object after another client has already received much of it.
//! Such a client reads the beginning from the store, and the rest from the same fetch. If this is
//! impossible, it receives the object from the origin. It must never receive a wrong byte.

use crate::support::http2::Http2Client;
use crate::support::proxy::Proxy;
use crate::support::store::{Broken, BrokenStore, BusyStore, ForgetfulStore, SilentStore};
use crate::support::wire::{RawClient, Response};
use crate::support::{ScriptedOrigin, Step, local};
use foxy_http::Method;
use foxy_proxy::cache::storage::ObjectStore;
use foxy_proxy::core::counters::Counter;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const FRESH: &str = "Cache-Control: max-age=600\r\n";

/// Number of body bytes after which the origin pauses: four and a half MiB.
const PAUSE: usize = 9 << 19;

/// Time limit in this proxy for an answer of the store.
const PATIENCE: Duration = Duration::from_millis(500);

fn large() -> Vec<u8> {
    (0..8 << 20).map(|at| (at % 251) as u8).collect()
}

fn counted(lines: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {}\r\n\r\n", 8 << 20);
    [head.as_bytes(), &large()].concat()
}

/// An object whose fetch has paused. A first client has received about half of the object.
struct HalfWay {
    origin: ScriptedOrigin,
    proxy: Proxy,
    first: JoinHandle<Response>,
    go: Rc<Notify>,
}

impl HalfWay {
    async fn new(store: Option<Arc<dyn ObjectStore>>, answer: Vec<u8>) -> Self {
        let go = Rc::new(Notify::new());
        let (half, rest) = answer.split_at(PAUSE);
        let paced = vec![
            Step::Head,
            Step::Send(half.to_vec()),
            Step::AwaitGo(Rc::clone(&go)),
            Step::Send(rest.to_vec()),
            Step::Hang,
        ];
        let whole = vec![Step::Head, Step::Send(answer), Step::Hang];
        let origin = ScriptedOrigin::start(vec![paced, whole]).await;
        let proxy = Proxy::start_on(store, |settings| {
            settings.memory = 0;
            settings.store_patience = PATIENCE;
        });
        let mut client = asking(&proxy, &origin).await;
        let first = tokio::task::spawn_local(async move { client.response(&Method::Get).await });
        while proxy.count(Counter::BytesFromOrigins) < (PAUSE - 1000) as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Self { origin, proxy, first, go }
    }

    async fn asks(&self) -> RawClient {
        asking(&self.proxy, &self.origin).await
    }

    /// Waits until `joined` further clients have joined the fetch, or until the proxy has opened
    /// another connection to the origin. Then lets the origin continue. Returns the answer of the
    /// first client.
    async fn goes_on(self, joined: u64) -> (Response, ScriptedOrigin, Proxy) {
        while self.proxy.count(Counter::Collapsed) < joined && self.origin.connections() == 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.go.notify_one();
        (self.first.await.expect("no panic"), self.origin, self.proxy)
    }
}

async fn asking(proxy: &Proxy, origin: &ScriptedOrigin) -> RawClient {
    let authority = format!("127.0.0.1:{}", origin.port);
    let mut client = RawClient::connect(proxy.port).await;
    client.send(format!("GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n\r\n")).await;
    client
}

fn is_right(answer: &Response) {
    assert_eq!((answer.head.status, answer.end), (200, Ok(())));
    assert!(answer.body == large(), "{} bytes", answer.body.len());
}

/// Checks that the first client and two late clients receive every byte. `joined` is the number of
/// clients that must join the fetch. `connections` is the number of connections that the origin
/// must see. Returns the answers of the late clients.
async fn two_late_are_right(setting: HalfWay, joined: u64, connections: usize) -> [Response; 2] {
    let [mut one, mut other] = [setting.asks().await, setting.asks().await];
    let (first, origin, _proxy) = setting.goes_on(joined).await;
    is_right(&first);
    let answers = [one.response(&Method::Get).await, other.response(&Method::Get).await];
    answers.iter().for_each(is_right);
    assert_eq!(origin.connections(), connections);
    answers
}

/// Checks that a late client receives every byte through a fetch of its own, while the first client
/// still waits.
async fn a_late_one_has_its_own_fetch(setting: HalfWay) {
    let mut late = setting.asks().await;
    is_right(&late.response(&Method::Get).await);
    let (first, origin, _proxy) = setting.goes_on(0).await;
    is_right(&first);
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn a_client_that_comes_late_gets_every_byte_of_the_same_fetch() {
    let chunked =
        format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", 8 << 20);
    let chunked = [chunked.as_bytes(), &large(), b"\r\n0\r\n\r\n"].concat();
    for answer in [counted(FRESH), chunked] {
        local(async {
            let setting = HalfWay::new(Some(Arc::new(BusyStore::default())), answer).await;
            for answer in two_late_are_right(setting, 2, 1).await {
                assert!(answer.header("cache-status").contains("collapsed"), "{:?}", answer.head);
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_store_that_is_busy_for_a_while_keeps_a_large_response_all_the_same() {
    local(async {
        let setting = HalfWay::new(Some(Arc::new(BusyStore::default())), counted(FRESH)).await;
        let (first, origin, proxy) = setting.goes_on(0).await;
        is_right(&first);
        while proxy.count(Counter::StorePuts) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let again = asking(&proxy, &origin).await.response(&Method::Get).await;
        is_right(&again);
        assert!(again.header("cache-status").contains("hit"), "{:?}", again.head);
    })
    .await;
}

#[tokio::test]
async fn a_store_that_is_slow_is_waited_for_while_somebody_reads_it_back() {
    local(async {
        let store = SilentStore::new();
        let setting = HalfWay::new(Some(store.clone()), counted(FRESH)).await;
        let mut late = setting.asks().await;
        let (first, origin, _proxy) = setting.goes_on(1).await;
        is_right(&first);
        // This pause is longer than the store's timeout for a body that no client reads from the
        // store.
        tokio::time::sleep(2 * PATIENCE).await;
        store.speak();
        is_right(&late.response(&Method::Get).await);
        assert_eq!(origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_client_of_http2_that_comes_late_gets_every_byte_of_the_same_fetch() {
    local(async {
        let setting = HalfWay::new(Some(Arc::new(ForgetfulStore::default())), counted(FRESH)).await;
        let client = Http2Client::connect(&setting.proxy).await;
        let url = format!("http://127.0.0.1:{}/", setting.origin.port);
        let late = tokio::task::spawn_local(async move { client.get(&url).await });
        let (first, origin, _proxy) = setting.goes_on(1).await;
        is_right(&first);
        let answer = late.await.expect("no panic");
        assert!(answer.broken.is_none() && answer.body == large(), "{} bytes", answer.body.len());
        assert_eq!(origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_fill_whose_first_client_leaves_goes_on_for_one_that_came_late() {
    local(async {
        let setting = HalfWay::new(Some(Arc::new(ForgetfulStore::default())), counted(FRESH)).await;
        let mut late = setting.asks().await;
        while setting.proxy.count(Counter::Collapsed) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        setting.first.abort();
        setting.go.notify_one();
        is_right(&late.response(&Method::Get).await);
        assert_eq!(setting.origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn clients_that_come_late_share_another_fetch_when_the_beginning_is_gone() {
    local(async {
        let store = Arc::new(ForgetfulStore::default());
        let setting = HalfWay::new(Some(store.clone()), counted(FRESH)).await;
        store.forget_part(0);
        two_late_are_right(setting, 4, 2).await;
    })
    .await;
}

#[tokio::test]
async fn a_part_that_is_gone_is_fetched_for_a_client_that_came_late_or_it_is_cut() {
    for (etag, connections) in [("ETag: \"one\"\r\n", 2), ("", 1)] {
        local(async {
            let store = Arc::new(ForgetfulStore::default());
            let setting =
                HalfWay::new(Some(store.clone()), counted(&format!("{FRESH}{etag}"))).await;
            store.forget_part(2);
            let mut late = setting.asks().await;
            let answer = late.response(&Method::Get).await;
            assert_eq!(answer.end.is_ok(), connections == 2, "{:?}", answer.end);
            assert!(answer.body == large()[..answer.body.len()], "no byte is wrong");
            let (first, origin, _proxy) = setting.goes_on(1).await;
            is_right(&first);
            assert_eq!(origin.connections(), connections);
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_comes_late_has_a_fetch_of_its_own_where_nothing_can_be_read_back() {
    let stores: [Option<Arc<dyn ObjectStore>>; 3] = [
        None,
        Some(BrokenStore::new(Broken::Refuses)),
        Some(BrokenStore::new(Broken::HangsOnPuts)),
    ];
    for store in stores {
        local(async {
            a_late_one_has_its_own_fetch(HalfWay::new(store, counted(FRESH)).await).await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_response_that_is_no_longer_fresh_answers_nobody_who_came_after_it() {
    for lines in [
        "Cache-Control: max-age=600\r\nAge: 700\r\n",
        "Cache-Control: no-cache\r\nETag: \"one\"\r\n",
    ] {
        local(async {
            let setting =
                HalfWay::new(Some(Arc::new(ForgetfulStore::default())), counted(lines)).await;
            a_late_one_has_its_own_fetch(setting).await;
        })
        .await;
    }
}
