//! The sender of a request: the client's address and its user. The operator's rules depend on both.

use foxy_rules::Fields;
use foxy_rules::operator::RequestFacts;
use std::net::IpAddr;
use std::sync::Arc;

/// The sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Address of the client.
    pub client: IpAddr,
    /// Name of the user who sends the request, if valid credentials prove it.
    pub user: Option<Arc<str>>,
}

impl Asker {
    /// Adds the sender to the facts about a request.
    pub(crate) fn seen_in<'a, F: Fields>(
        &'a self,
        facts: RequestFacts<'a, F>,
    ) -> RequestFacts<'a, F> {
        facts.from_client(self.client).of_user(self.user.as_deref())
    }
}

impl From<IpAddr> for Asker {
    fn from(client: IpAddr) -> Self {
        Self { client, user: None }
    }
}
