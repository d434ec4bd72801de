//! Finds the user who sends a request to a forward proxy with users.

use crate::core::authentication::NoUser;
use crate::core::counters::Counter;
use crate::core::places::ClientBlock;
use crate::intercept::Inside;
use crate::request::reason::ErrorReason;
use crate::worker::Worker;
use foxy_http::{Method, RequestHead};
use std::sync::Arc;

/// Returns the user who sends a request, and the reason to refuse the request. Asks for no user if
/// there is a `refusal` already.
pub(crate) async fn identified(
    worker: &Worker,
    head: &RequestHead,
    inside: Option<&Inside>,
    client: ClientBlock,
    refusal: Option<ErrorReason>,
) -> (Option<Arc<str>>, Option<ErrorReason>) {
    match refusal {
        Some(refusal) => (None, Some(refusal)),
        None => match user(worker, head, inside, client).await {
            Ok(user) => (user, None),
            Err(reason) => (None, Some(reason)),
        },
    }
}

/// Returns no user if the proxy has no users. The user of an intercepted CONNECT sends all requests
/// inside. A PURGE has its own check.
async fn user(
    worker: &Worker,
    head: &RequestHead,
    inside: Option<&Inside>,
    client: ClientBlock,
) -> Result<Option<Arc<str>>, ErrorReason> {
    let authenticator = &worker.shared.authenticator;
    let is_purge = matches!(&head.method, Method::Other(name) if &**name == "PURGE");
    if !authenticator.is_needed() || is_purge {
        return Ok(None);
    }
    let user = match inside {
        Some(inside) => {
            let user = inside.user.clone().filter(|user| authenticator.knows(user));
            user.ok_or(NoUser::Credentials)
        }
        None => authenticator.user(&head.headers, client).await,
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
