//! Tests clients that request large stored objects and then read nothing. The parts of bodies in
//! memory must stay within the proxy's memory budget for parts. After some time, memory must
//! contain no part. Other clients must not wait.

use crate::support::http2::RawHttp2;
use crate::support::proxy::Proxy;
use crate::support::store::CountingStore;
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use foxy_testkit::http2::{END_HEADERS, END_STREAM, frame, get_block, kind};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Length in bytes of a body that does not fit into the socket buffers of a loopback connection.
const LENGTH: usize = 16 << 20;

/// Number of bytes that all parts in memory may use, if the memory cache has its smallest size.
const BUDGET: usize = 8 << 20;

const GET: &str = "GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n";

async fn asking(proxy: &Proxy, origin: &ScriptedOrigin) -> RawClient {
    let mut client = RawClient::connect(proxy.port).await;
    client.send(GET.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
    client
}

/// Waits until the proxy has dropped every body that the store has returned.
async fn let_go(store: &CountingStore) {
    let let_go = async {
        while store.held() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), let_go)
        .await
        .expect("stalled clients hold nothing");
}

#[tokio::test]
async fn clients_that_do_not_read_hold_a_bounded_part_of_the_store_and_in_time_nothing() {
    local(async {
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {LENGTH}\r\n\r\n"
        );
        let body: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
        let script = vec![Step::Head, send(&head), Step::Send(body.clone()), Step::Hang];
        let origin = ScriptedOrigin::with(script).await;
        let store = Arc::new(CountingStore::default());
        let proxy = Proxy::start_on(Some(store.clone()), |settings| settings.memory = 0);
        assert!(asking(&proxy, &origin).await.response(&Method::Get).await.body == body);
        while !asking(&proxy, &origin)
            .await
            .response(&Method::Get)
            .await
            .header("cache-status")
            .contains("hit")
        {}

        let mut stalled = Vec::new();
        for _ in 0..24 {
            let mut client = asking(&proxy, &origin).await;
            client.read_until_blank_line().await;
            stalled.push(client);
        }
        let answer = asking(&proxy, &origin).await.response(&Method::Get).await;
        assert!(answer.body == body, "a client that reads is served beside them");
        assert!(store.most_held() <= BUDGET, "{} bytes were held", store.most_held());

        let_go(&store).await;
        let answer = stalled.remove(0).read_exactly(LENGTH).await;
        assert!(answer == body, "a client that goes on gets the rest");
        assert_eq!(origin.connections(), 1);
    })
    .await;
}

/// Identifier of SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.5.2).
const INITIAL_WINDOW: u16 = 4;

/// Length in bytes of a body that is stored as one record.
const SMALLER: usize = 900_000;

#[tokio::test]
async fn streams_without_a_window_stay_within_the_budget_and_get_all_once_they_have_one() {
    const OBJECTS: usize = 10;
    const STREAMS: u32 = 40;
    local(async {
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {SMALLER}\r\n\r\n"
        );
        let body =
            |object: usize| (0..SMALLER).map(|at| ((at + object) % 251) as u8).collect::<Vec<u8>>();
        let answers =
            (0..OBJECTS).flat_map(|object| [Step::Head, send(&head), Step::Send(body(object))]);
        let origin = ScriptedOrigin::with(answers.chain([Step::Hang]).collect()).await;
        let authority = format!("127.0.0.1:{}", origin.port);
        let store = Arc::new(CountingStore::default());
        let proxy = Proxy::start_on(Some(store.clone()), |settings| settings.memory = 0);
        let mut client = RawClient::connect(proxy.port).await;
        for object in 0..OBJECTS {
            client
                .send(format!(
                    "GET http://{authority}/{object} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
                ))
                .await;
            assert!(client.response(&Method::Get).await.body == body(object));
        }

        let mut client = RawHttp2::connect(&proxy, &[(INITIAL_WINDOW, 0)]).await;
        let object = |stream: u32| (stream as usize / 2) % OBJECTS;
        for number in 0..STREAMS {
            let (stream, flags) = (2 * number + 1, END_HEADERS | END_STREAM);
            let fields = get_block(&authority, &format!("/{}", object(stream)));
            client.send(&frame(kind::HEADERS, flags, stream, &fields)).await;
        }
        for _ in 0..STREAMS {
            client.find(|frame| frame.kind == kind::HEADERS).await.expect("a head");
        }
        // The budget limits the bodies that wait for clients. Bodies that are being read from the
        // store may use the same number of bytes again.
        assert!(store.most_held() <= 2 * BUDGET, "{} bytes were held", store.most_held());
        let_go(&store).await;

        let mut bodies: HashMap<u32, Vec<u8>> = HashMap::new();
        let more = |stream| frame(kind::WINDOW_UPDATE, 0, stream, &(1_u32 << 28).to_be_bytes());
        client.send(&more(0)).await;
        for number in 0..STREAMS {
            client.send(&more(2 * number + 1)).await;
        }
        while bodies.values().map(Vec::len).sum::<usize>() < STREAMS as usize * SMALLER {
            let data = client.find(|frame| frame.kind == kind::DATA).await.expect("the rest");
            bodies.entry(data.stream).or_default().extend(data.payload);
        }
        for (stream, found) in bodies {
            assert!(found == body(object(stream)), "stream {stream} has another body");
        }
        assert!(store.most_held() <= 2 * BUDGET, "{} bytes were held", store.most_held());
        assert_eq!(origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn large_heads_are_bounded_together_and_others_are_served() {
    local(async {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        let origin = ScriptedOrigin::with(vec![Step::Head, send(answer)]).await;
        let proxy = Proxy::start_with(|settings| settings.memory = 0);
        let begun = format!("GET http://a.test/ HTTP/1.1\r\nx: {}", "a".repeat(40 << 10));
        let mut stalled = Vec::new();
        for _ in 0..100 {
            let mut client = RawClient::connect(proxy.port).await;
            client.send(&begun).await;
            stalled.push(client);
        }
        let refused = async {
            loop {
                let mut last = stalled.pop().expect("one is refused");
                let answer =
                    tokio::time::timeout(Duration::from_secs(1), last.response(&Method::Get)).await;
                if let Ok(answer) = answer {
                    return answer;
                }
            }
        };
        assert_eq!(refused.await.head.status, 503, "there is room for all");
        assert_eq!(asking(&proxy, &origin).await.response(&Method::Get).await.text(), "ok");
    })
    .await;
}
