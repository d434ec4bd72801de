//! Requests of hostile clients, and a simple origin behind the proxy.

use crate::support::proxy::Proxy;
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, send};

/// A second request that is hidden behind the first. It must never reach an origin.
pub const SMUGGLED: &str =
    "GET http://smuggled.example/ HTTP/1.1\r\nHost: smuggled.example\r\n\r\n";

/// Starts an origin that answers up to ten requests without a body on each connection.
pub async fn plain_origin() -> ScriptedOrigin {
    let answer = send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok");
    ScriptedOrigin::with([Step::Head, answer].iter().cycle().take(20).cloned().collect()).await
}

/// Connects to `proxy` and sends `text`. In `text`, `ORIGIN` stands for the authority of `origin`.
pub async fn sent(proxy: &Proxy, origin: &ScriptedOrigin, text: &str) -> RawClient {
    let mut client = RawClient::connect(proxy.port).await;
    client.send(text.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
    client
}
