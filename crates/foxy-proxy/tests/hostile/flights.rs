//! Many clients that want the same thing at the same time, clients that leave, and a store that does not work: one
//! request to the origin, and whole answers for everybody who stays.

use crate::support::proxy::Proxy;
use crate::support::store::{BROKEN, BrokenStore};
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use std::time::Duration;

const GET: &str = "GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n";
const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n";

async fn asking(proxy: &Proxy, origin: &ScriptedOrigin) -> RawClient {
    let mut client = RawClient::connect(proxy.port).await;
    client.send(GET.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
    client
}

#[tokio::test]
async fn many_misses_of_one_key_are_one_request_to_the_origin() {
    local(async {
        let body = "x".repeat(200_000);
        let script = vec![
            Step::Head,
            Step::Pause(Duration::from_millis(100)),
            send(&format!("{FRESH}Content-Length: {}\r\n\r\n", body.len())),
            send(&body[..1000]),
            Step::Pause(Duration::from_millis(50)),
            send(&body[1000..]),
            Step::Hang,
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let mut clients = Vec::new();
        for _ in 0..50 {
            clients.push(asking(&proxy, &origin).await);
        }
        for client in &mut clients {
            let answer = client.response(&Method::Get).await;
            assert_eq!((answer.head.status, answer.end), (200, Ok(())));
            assert!(answer.body == body.as_bytes());
        }
        assert_eq!(origin.connections(), 1);
        let mut late = asking(&proxy, &origin).await;
        assert!(late.response(&Method::Get).await.header("cache-status").contains("hit"));
        assert_eq!(origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn answers_that_may_not_be_shared_are_fetched_for_each() {
    local(async {
        let private = send(
            "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: 2\r\nConnection: close\r\n\r\nme",
        );
        let origin =
            ScriptedOrigin::with(vec![Step::Head, Step::Pause(Duration::from_millis(50)), private]).await;
        let proxy = Proxy::start();
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(asking(&proxy, &origin).await);
        }
        for client in &mut clients {
            assert_eq!(client.response(&Method::Get).await.text(), "me");
        }
        assert_eq!(origin.heard().len(), 5, "nobody gets another's private answer");
    })
    .await;
}

#[tokio::test]
async fn those_who_stay_are_served_when_the_first_client_leaves() {
    local(async {
        let script = vec![
            Step::Head,
            Step::Pause(Duration::from_millis(100)),
            send(&format!("{FRESH}Content-Length: 10\r\n\r\nfirst")),
            Step::Pause(Duration::from_millis(100)),
            send("later"),
            Step::Hang,
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let first = asking(&proxy, &origin).await;
        origin.heard_a_head().await;
        let mut second = asking(&proxy, &origin).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(first);
        let answer = second.response(&Method::Get).await;
        assert_eq!((answer.text().as_str(), answer.end), ("firstlater", Ok(())));
    })
    .await;
}

#[tokio::test]
async fn a_flight_that_breaks_breaks_for_all_and_is_not_stored() {
    local(async {
        let broken = vec![
            Step::Head,
            Step::Pause(Duration::from_millis(50)),
            send(&format!("{FRESH}Content-Length: 10\r\n\r\nfirst")),
        ];
        let whole = vec![Step::Head, send(&format!("{FRESH}Content-Length: 5\r\n\r\nwhole")), Step::Hang];
        let origin = ScriptedOrigin::start(vec![broken, whole]).await;
        let proxy = Proxy::start();
        let mut clients = [asking(&proxy, &origin).await, asking(&proxy, &origin).await];
        for client in &mut clients {
            let answer = client.response(&Method::Get).await;
            assert!(
                answer.end.is_err() || answer.head.status >= 500 || answer.text() == "whole",
                "{answer:?}"
            );
        }
        let answer = asking(&proxy, &origin).await.response(&Method::Get).await;
        assert_eq!(answer.text(), "whole");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_does_not_hold_up_the_others() {
    local(async {
        let body = "y".repeat(8 << 20);
        let script = vec![
            Step::Head,
            send(&format!("{FRESH}Content-Length: {}\r\n\r\n{body}", body.len())),
            Step::Hang,
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let _reads_nothing = asking(&proxy, &origin).await;
        origin.heard_a_head().await;
        let answer = asking(&proxy, &origin).await.response(&Method::Get).await;
        assert!(answer.body == body.as_bytes());
    })
    .await;
}

#[tokio::test]
async fn a_store_that_fails_costs_hits_and_nothing_else() {
    for how in BROKEN {
        local(async move {
            let script = [Step::Head, send(&format!("{FRESH}Content-Length: 5\r\n\r\nright"))];
            let origin = ScriptedOrigin::with(script.iter().cycle().take(400).cloned().collect()).await;
            let proxy = Proxy::start_on(Some(BrokenStore::new(how)), |settings| {
                settings.memory = 0;
                settings.store_patience = Duration::from_millis(5);
            });
            for number in 0..100 {
                let mut client = RawClient::connect(proxy.port).await;
                let path = format!("http://127.0.0.1:{}/{}", origin.port, number % 60);
                client.send(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", origin.port)).await;
                let answer = client.response(&Method::Get).await;
                assert_eq!((answer.head.status, answer.text().as_str()), (200, "right"), "{how:?} {number}");
            }
        })
        .await;
    }
}
