//! Builds the DNS answers (RFC 1035) of the name server. It gives the address of every name in its
//! zone, sends negative answers (RFC 2308), and refuses other zones.

use super::NameServerOptions;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// The largest UDP payload in bytes (RFC 9715).
const PAYLOAD: u16 = 1232;
/// The largest TTL in seconds (RFC 2181 §8).
const MOST_SECONDS: u64 = (1 << 31) - 1;

#[derive(Clone, Debug)]
pub(super) struct Zone {
    name: Name,
    address: IpAddr,
    cost: Duration,
    lifetime: u32,
}

/// The error for a text that is not a valid zone name. The error contains the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneUnusable(String);

impl fmt::Display for ZoneUnusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} is not a DNS name; give one such as origin.test", self.0)
    }
}

impl std::error::Error for ZoneUnusable {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Address,
    Nothing,
    Refused,
}

#[derive(Debug)]
pub(super) struct DnsReply {
    pub(super) kind: Kind,
    pub(super) after: Duration,
    pub(super) packet: Vec<u8>,
}

impl Zone {
    pub(super) fn new(options: &NameServerOptions) -> Result<Self, ZoneUnusable> {
        let unusable = || ZoneUnusable(options.zone.clone());
        let mut name = Name::from_ascii(&options.zone).map_err(|_| unusable())?;
        name.set_fqdn(true);
        if name.is_root() {
            return Err(unusable());
        }
        let lifetime =
            u32::try_from(options.lifetime.as_secs().min(MOST_SECONDS)).unwrap_or(u32::MAX);
        Ok(Self { name, address: options.address, cost: options.cost, lifetime })
    }

    pub(super) fn reply(&self, packet: &[u8]) -> Option<DnsReply> {
        let asked = Message::from_vec(packet).ok()?;
        if asked.metadata.message_type != MessageType::Query {
            return None;
        }
        let mut answer = Message::response(asked.metadata.id, asked.metadata.op_code);
        answer.metadata.recursion_desired = asked.metadata.recursion_desired;
        answer.queries.clone_from(&asked.queries);
        if asked.edns.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(PAYLOAD);
            answer.set_edns(edns);
        }
        let refusal = match (asked.metadata.op_code, &*asked.queries) {
            (OpCode::Query, [query]) if self.has(query) => Ok(query),
            (OpCode::Query, [_]) => Err(ResponseCode::Refused),
            (OpCode::Query, _) => Err(ResponseCode::FormErr),
            _ => Err(ResponseCode::NotImp),
        };
        let (kind, after) = match refusal {
            Ok(query) => (self.answer(query, &mut answer), self.cost_of(query.name())),
            Err(code) => {
                answer.metadata.response_code = code;
                (Kind::Refused, Duration::ZERO)
            }
        };
        Some(DnsReply { kind, after, packet: answer.to_vec().ok()? })
    }

    fn has(&self, query: &Query) -> bool {
        query.query_class() == DNSClass::IN && self.name.zone_of(query.name())
    }

    fn answer(&self, query: &Query, answer: &mut Message) -> Kind {
        answer.metadata.authoritative = true;
        let data = match (query.query_type(), self.address) {
            (RecordType::A, IpAddr::V4(address)) => RData::A(address.into()),
            (RecordType::AAAA, IpAddr::V6(address)) => RData::AAAA(address.into()),
            _ => {
                answer.add_authority(self.authority());
                return Kind::Nothing;
            }
        };
        answer.add_answer(Record::from_rdata(query.name().clone(), self.lifetime, data));
        Kind::Address
    }

    /// Returns the SOA record of the zone. Resolvers need it to cache a negative answer (RFC 2308
    /// §5).
    fn authority(&self) -> Record {
        let day = 86_400;
        let start = SOA::new(self.name.clone(), self.name.clone(), 1, day, day, day, self.lifetime);
        Record::from_rdata(self.name.clone(), self.lifetime, RData::SOA(start))
    }

    /// Returns the delay of answers for a name. The delay depends only on the name, in lower case.
    fn cost_of(&self, name: &Name) -> Duration {
        let hash = xxh3_64(name.to_lowercase().to_ascii().as_bytes());
        #[expect(
            clippy::cast_precision_loss,
            reason = "a share of the cost, of no more digits than it needs"
        )]
        let share = (hash >> 11) as f64 / (1_u64 << 53) as f64;
        self.cost.mul_f64(0.5 + share)
    }
}
