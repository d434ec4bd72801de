//! Finds the user who sends a request.

use crate::client::Client;
use crate::core::authentication::NoUser;
use crate::core::counters::Counter;
use crate::core::places::ClientBlock;
use crate::core::tls::HandshakeFacts;
use crate::request::auto_config;
use crate::request::reason::ErrorReason;
use crate::server::steering::needs_login;
use crate::settings::ProxySettings;
use crate::upstream::Scheme;
use crate::worker::Worker;
use foxy_http::{Method, RequestHead};
use std::net::IpAddr;
use std::sync::Arc;

/// Returns the user who sends a request, and the reason to refuse the request, if there is one. If
/// `refusal` is already a reason, does not look for the user. `over` is the scheme of the request,
/// and `from` the address of the client.
pub(crate) async fn identified(
    worker: &Worker,
    (head, over): (&RequestHead, Scheme),
    client: &Client<'_>,
    from: IpAddr,
    refusal: Option<ErrorReason>,
) -> (Option<Arc<str>>, Option<ErrorReason>) {
    match refusal {
        Some(refusal) => (None, Some(refusal)),
        None => match user(worker, (head, over), client, from).await {
            Ok(user) => (user, None),
            Err(reason) => (None, Some(reason)),
        },
    }
}

/// Returns the user that the client's TLS certificate names, or else the user whose credentials the
/// request has. A request inside an intercepted CONNECT has the user of the CONNECT. Returns
/// `Ok(None)` if the proxy has no users. Also returns `Ok(None)` for a PURGE, which has its own
/// check, and for a request for the PAC file. A request without credentials needs no user if the
/// rules demand no login.
async fn user(
    worker: &Worker,
    (head, over): (&RequestHead, Scheme),
    client: &Client<'_>,
    from: IpAddr,
) -> Result<Option<Arc<str>>, ErrorReason> {
    match client.presented().map(HandshakeFacts::user) {
        Some(Ok(Some(user))) => return Ok(Some(user)),
        Some(Err(_)) => return Err(ErrorReason::CertificateUntrusted),
        Some(Ok(None)) | None => {}
    }
    let authenticator = &worker.shared.authenticator;
    let is_purge = matches!(&head.method, Method::Other(name) if &**name == "PURGE");
    if is_purge || asks_for_file(worker.settings(), head, client) || !authenticator.is_needed() {
        return Ok(None);
    }
    let has_credentials = match client.inside() {
        Some(inside) => inside.user.is_some(),
        None => head.headers.contains("proxy-authorization"),
    };
    if !has_credentials && !needs_login(&worker.settings().rules, head, over, from) {
        return Ok(None);
    }
    let user = match client.inside() {
        Some(inside) => {
            let user = inside.user.clone().filter(|user| authenticator.knows(user));
            user.ok_or(NoUser::Credentials)
        }
        None => authenticator.user(&head.headers, ClientBlock::from(from)).await,
    };
    user.map(Some).map_err(|reason| match reason {
        NoUser::Credentials => {
            worker.counters.add(Counter::CredentialsRefused, 1);
            ErrorReason::CredentialsNeeded
        }
        NoUser::Busy => {
            worker.counters.add(Counter::CredentialsBusy, 1);
            ErrorReason::CredentialsBusy
        }
    })
}

/// Returns true if the client asks for the PAC file, and the proxy serves it.
pub(crate) fn asks_for_file(
    settings: &ProxySettings,
    head: &RequestHead,
    client: &Client<'_>,
) -> bool {
    let own_name = client.presented().and_then(HandshakeFacts::server_name);
    settings.auto_config.is_some()
        && settings.mode.is_forward()
        && auto_config::is_asked(head, own_name, || client.reached())
}
