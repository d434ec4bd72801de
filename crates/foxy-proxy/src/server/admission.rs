//! Decides from a client's address whether the client may use the proxy. This decision comes before
//! all other decisions about a request.

use crate::request::reason::ErrorReason;
use crate::server::listener;
use crate::settings::ProxySettings;
use std::net::{IpAddr, SocketAddr};

/// Returns the reason to refuse all requests of `client`, or `None` if the client may use the
/// proxy. For a Unix socket, the file mode already decides who may connect.
pub(crate) fn refusal(settings: &ProxySettings, client: SocketAddr) -> Option<ErrorReason> {
    if listener::is_unix(client) { None } else { refusal_of_address(settings, client.ip()) }
}

/// Returns the reason to refuse all requests of clients at this address.
pub(crate) fn refusal_of_address(settings: &ProxySettings, client: IpAddr) -> Option<ErrorReason> {
    let allowed = settings.allow_client.get();
    if allowed.is_empty() {
        return None;
    }
    let address = client.to_canonical();
    let is_allowed = allowed.iter().any(|block| block.contains(address));
    (!is_allowed).then_some(ErrorReason::ClientNotAllowed)
}
