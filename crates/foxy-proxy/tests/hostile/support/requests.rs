//! Requests of hostile clients, and the plain origin behind the proxy.

use crate::support::proxy::Proxy;
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, send};

/// A request that must never reach an origin.
pub const SMUGGLED: &str =
    "GET http://smuggled.example/ HTTP/1.1\r\nHost: smuggled.example\r\n\r\n";

/// An origin that answers any number of bodiless requests.
pub async fn plain_origin() -> ScriptedOrigin {
    let answer = send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok");
    ScriptedOrigin::with([Step::Head, answer].iter().cycle().take(20).cloned().collect()).await
}

/// Sends text to a proxy in front of `origin` on a new connection.
pub async fn sent(proxy: &Proxy, origin: &ScriptedOrigin, text: &str) -> RawClient {
    let mut client = RawClient::connect(proxy.port).await;
    client.send(text.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
    client
}
