//! Looks up all records of a name by DNS. A partial answer counts as a failure, because a caller
//! may remove a server that the answer lacks.

use crate::upstream::address::name_resolver::{NameResolver, reason};
use crate::upstream::error::ResolveError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hickory_resolver::TokioResolver;
use hickory_resolver::net::NetError;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use std::net::IpAddr;

/// A server that an SRV record names (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Host name of the server, without the last dot.
    pub target: String,
    /// TCP port of the server.
    pub port: u16,
    /// Share of the requests, relative to other servers.
    pub weight: u16,
}

impl NameResolver {
    /// Returns all IPv4 and IPv6 addresses of a name.
    ///
    /// # Errors
    /// The name has no address, or no DNS server answers for both kinds of addresses.
    pub async fn all_addresses(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let records = self.all_records(name, &[RecordType::A, RecordType::AAAA]).await?;
        found(records.iter().filter_map(RData::ip_addr).collect())
    }

    /// Returns all servers that SRV records of a name describe.
    ///
    /// # Errors
    /// The name has no SRV record, or no DNS server answers.
    pub async fn all_services(&self, name: &str) -> Result<Vec<ServiceRecord>, ResolveError> {
        let service = |data: &RData| match data {
            RData::SRV(srv) if !srv.target.is_root() => Some(ServiceRecord {
                target: srv.target.to_utf8().trim_end_matches('.').to_lowercase(),
                port: srv.port,
                weight: srv.weight,
            }),
            _ => None,
        };
        let records = self.all_records(name, &[RecordType::SRV]).await?;
        found(records.iter().filter_map(service).collect())
    }

    /// Asks all DNS servers. Returns the records of the first server that answers for all `kinds`.
    async fn all_records(
        &self,
        name: &str,
        kinds: &[RecordType],
    ) -> Result<Vec<RData>, ResolveError> {
        let mut name = Name::from_utf8(name).map_err(|_| ResolveError::NoSuchHost)?;
        // The search list of the system does not apply.
        name.set_fqdn(true);
        let asked = self.resolvers().iter().map(|resolver| all_of(resolver, &name, kinds));
        let mut asked: FuturesUnordered<_> = asked.collect();
        let mut failure = ResolveError::ServerFailed;
        while let Some(answer) = asked.next().await {
            match answer {
                Err(error) if error.is_the_servers() => failure = error,
                answer => return answer,
            }
        }
        Err(failure)
    }
}

async fn all_of(
    resolver: &TokioResolver,
    name: &Name,
    kinds: &[RecordType],
) -> Result<Vec<RData>, ResolveError> {
    let mut all = Vec::new();
    for &kind in kinds {
        match resolver.lookup(name.clone(), kind).await {
            Ok(lookup) => all.extend(lookup.answers().iter().map(|record| record.data.clone())),
            Err(error) if is_none(&error) => {}
            Err(error) => return Err(reason(&error)),
        }
    }
    Ok(all)
}

/// Returns true if the server knows that there is no such record.
fn is_none(error: &NetError) -> bool {
    error.is_nx_domain() || error.is_no_records_found()
}

fn found<T>(all: Vec<T>) -> Result<Vec<T>, ResolveError> {
    if all.is_empty() { Err(ResolveError::NoSuchHost) } else { Ok(all) }
}
