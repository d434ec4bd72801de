//! Clients that ask for large stored objects and do not read them: together they hold no more than the budget of parts,
//! each in time nothing, and they keep nobody else waiting.

use crate::support::proxy::Proxy;
use crate::support::store::CountingStore;
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use std::sync::Arc;
use std::time::Duration;

/// More than a connection on loopback takes in its buffers.
const LENGTH: usize = 16 << 20;

/// What all parts may take with the least memory.
const BUDGET: usize = 8 << 20;

const GET: &str = "GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n";

async fn asking(proxy: &Proxy, origin: &ScriptedOrigin) -> RawClient {
    let mut client = RawClient::connect(proxy.port).await;
    client.send(GET.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
    client
}

#[tokio::test]
async fn clients_that_do_not_read_hold_a_bounded_part_of_what_is_stored_and_in_time_nothing() {
    local(async {
        let head =
            format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {LENGTH}\r\n\r\n");
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

        let let_go = async {
            while store.held() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), let_go).await.expect("stalled clients hold nothing");
        let answer = stalled.remove(0).read_exactly(LENGTH).await;
        assert!(answer == body, "a client that goes on gets the rest");
        assert_eq!(origin.connections(), 1);
    })
    .await;
}
